"""A support vector machine on bags that have become points."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bagwise._arrays import Floats
from bagwise.base import Starts
from bagwise.solvers import Certificate, rescale_alpha, solve_svm_dual


@dataclass(frozen=True, eq=False)
class RowSVM:
    """A machine that was trained on rows.

    Parameters
    ----------
    beta : ndarray of shape (n_rows,)
        Signed multipliers: the weight vector is the sum of the rows times these.
    intercept : float
        The constant of the decision function.
    certificate : Certificate
        How the solver ended.
    cost : ndarray of shape (n_rows,)
        Bounds of the multipliers.
    """

    beta: Floats
    intercept: float
    certificate: Certificate
    cost: Floats


def solve_row_svm(
    gram: Floats, sign: Floats, cost: Floats, *, starts: Starts | None, tol: float, max_iter: int
) -> RowSVM:
    """Train on the inner products of rows; rows of one sign all score as that sign.

    Parameters
    ----------
    gram : ndarray of shape (n_rows, n_rows)
        Inner products.
    sign : ndarray of shape (n_rows,)
        +1.0 or -1.0.
    cost : ndarray of shape (n_rows,)
        Cost of a violated margin.
    starts : Starts or None
        Solutions of the same problem at other costs.
    tol, max_iter
        As in `solve_svm_dual`.
    """
    if (sign == sign[0]).all():
        return RowSVM(np.zeros(len(sign)), float(sign[0]), Certificate.solved(), cost)
    before: RowSVM | None = None if starts is None else starts.find(sign)
    alpha0: Any = None
    if before is not None:
        alpha0 = rescale_alpha(np.abs(before.beta), before.cost, cost)
    result = solve_svm_dual(gram, sign, cost, alpha0=alpha0, tol=tol, max_iter=max_iter)
    found = RowSVM(sign * result.x, result.intercept, result.certificate, cost)
    if starts is not None:
        starts.keep(found, sign)
    return found
