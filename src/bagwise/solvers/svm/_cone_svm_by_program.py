"""An SVM with a cone as a conic programme: slow, and independent of the steps in the dual."""

from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from bagwise._arrays import Floats, Integers
from bagwise.solvers._checks import check_limits
from bagwise.solvers.operators._dense_gram import as_rows
from bagwise.solvers.operators._row_operator import RowOperator
from bagwise.solvers.programs._conic import solve_qp
from bagwise.solvers.svm._cone_svm import ConeSVMResult, cone_result
from bagwise.solvers.svm._cone_svm_state import ConeState

_NAME = "solve_cone_svm_by_program"
_RANK = 1e-13  # eigenvalues below this share of the largest are 0


def solve_cone_svm_by_program(
    points: Any,
    index: ArrayLike,
    sign: ArrayLike,
    cost: ArrayLike,
    contrasts: Any,
    radius: ArrayLike,
    price: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    tol: float = 1e-8,
    max_iter: int = 200,
) -> ConeSVMResult:
    """Solve the problem of `solve_cone_svm` with an interior-point method.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_points), or RowOperator
        Inner products of all points.
    index, sign, cost, contrasts, radius, price, target
        As in `solve_cone_svm`.
    tol : float
        As in `solve_qp`.
    max_iter : int
        Most interior-point iterations.

    Returns
    -------
    ConeSVMResult
        Computed from the multipliers of the rows and the contrasts.
    """
    started = perf_counter()
    check_limits(_NAME, tol, max_iter)
    rows = as_rows(_NAME, points)
    state = ConeState(
        _NAME, rows, np.asarray(index, np.int64), sign, cost, target, contrasts, radius, price, None
    )
    k, n, p = state.n_rows, state.n, len(state.price)
    chosen = sp.csr_array((np.ones(k), state.index, np.arange(k + 1)), shape=(k, rows.n))
    matrix = sp.vstack([chosen, state.contrasts], format="csr")
    used, features = _features(rows, matrix)
    d = features.shape[1]
    along = matrix[:, used] @ features
    # Variables: w, b, the length of w, slacks of rows, slacks of contrasts.
    first = np.hstack([along[:k], np.ones((k, 1)), np.zeros((k, 1))])
    last = np.hstack([along[k:], np.zeros((p, 1)), -state.radius[k:, None]])
    wanted = sp.hstack([np.vstack([state.sign[:, None] * first, last]), sp.eye_array(n)])
    margins = np.concatenate([state.sign * state.goal[:k], np.zeros(p)])
    quadratic = sp.diags_array(np.concatenate([np.ones(d), np.zeros(2 + n)]))
    linear = np.concatenate([np.zeros(d + 2), state.cost, state.price])
    lower = np.concatenate([np.full(d + 2, -np.inf), np.zeros(n)])
    length = sp.csr_array(
        (np.ones(d + 1), ([*range(d + 1)], [d + 1, *range(d)])), shape=(d + 1, d + 2 + n)
    )
    answer = solve_qp(
        quadratic, linear, -wanted, -margins, lower=lower, cones=[(length, np.zeros(d + 1))],
        tol=tol, max_iter=max_iter,
    )  # fmt: skip
    state.start(answer.dual_ub[:k], answer.dual_ub[k:])
    return cone_result(
        state, float(answer.x[d]), status=answer.status, residual=answer.residual,
        n_iter=answer.n_iter, solve_time=perf_counter() - started,
    )  # fmt: skip


def _features(rows: RowOperator, matrix: Any) -> tuple[Integers, Floats]:
    """Return which points take part, and features with their inner products."""
    used = np.unique(matrix.indices).astype(np.int64)
    values, vectors = np.linalg.eigh(rows.block(used, used).astype(np.float64))
    kept = values > _RANK * values[-1]
    return used, vectors[:, kept] * np.sqrt(values[kept])
