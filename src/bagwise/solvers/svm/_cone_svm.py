"""A support vector machine whose weight vector has to be long along some directions.

One second-order cone and linear rows: what a round of PC-SVM solves.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Booleans, Floats
from bagwise._threads import single_blas_thread
from bagwise.solvers._checks import check_limits
from bagwise.solvers._result import Result
from bagwise.solvers.operators._dense_gram import as_rows
from bagwise.solvers.svm._cone_svm_set import ConeSet
from bagwise.solvers.svm._cone_svm_state import ConeState
from bagwise.solvers.svm._dual_search import DualSearch, breaking_rows

_NAME = "solve_cone_svm"  # in errors


@dataclass(frozen=True, kw_only=True, eq=False)
class ConeSVMResult(Result):
    """Solution of an SVM with a cone: ``x`` holds ``alpha``, one number for each row.

    Parameters
    ----------
    mu : ndarray of shape (n_contrasts,)
        Multipliers of the contrasts.
    intercept : float
        The constant ``b`` of the decision function.
    norm : float
        Length of the weight vector.
    coef : ndarray of shape (n_points,)
        Coefficient of each point in the weight vector.
    projections : ndarray of shape (n_points,)
        Inner product of each point with the weight vector.
    """

    mu: Floats
    intercept: float
    norm: float
    coef: Floats
    projections: Floats


def solve_cone_svm(
    points: Any,
    index: ArrayLike,
    sign: ArrayLike,
    cost: ArrayLike,
    contrasts: Any,
    radius: ArrayLike,
    price: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    start: tuple[ArrayLike, ArrayLike] | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000_000,
) -> ConeSVMResult:
    r"""Train a support vector machine that ought to be long along some contrasts.

    The problem, for rows :math:`r` with feature vectors :math:`\phi_r`, signs :math:`s_r`, costs
    :math:`c_r` and targets :math:`t_r`, and for contrasts :math:`g_i` with radii :math:`e_i \ge 0`
    and prices :math:`p_i`, is

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + \sum_r c_r \bigl(t_r - s_r (\langle w, \phi_r \rangle + b)\bigr)_+
        + \sum_i p_i \bigl(e_i \|w\| - \langle w, g_i \rangle\bigr)_+

    Its dual, with :math:`V x = \sum_r s_r \alpha_r \phi_r + \sum_i \mu_i g_i`, is

    .. math::

        \max_{\alpha, \mu} \; t^\top \alpha - \tfrac12 \bigl(\|V x\| - e^\top \mu\bigr)_+^2
        \quad \text{subject to} \quad
        0 \le \alpha \le c, \; s^\top \alpha = 0, \; 0 \le \mu \le p

    and :math:`w = (1 - e^\top \mu / \|V x\|)_+ V x`.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_points), or RowOperator
        Inner products of all points.
    index : array-like of int of shape (n,)
        Which point each row is.
    sign, cost, target : array-like of shape (n,) or float
        As in `solve_svm_dual`.
    contrasts : array or sparse matrix of shape (n_contrasts, n_points)
        The contrasts as sums of points.
    radius, price : array-like of shape (n_contrasts,) or float
        Their radii and prices, not negative.
    start : pair of array-like, optional
        ``alpha`` and ``mu`` of an earlier solution.
    tol : float
        The largest violation of the optimality conditions: of two rows as in `solve_svm_dual`, and
        the slope of the dual in any multiplier of a contrast.
    max_iter : int
        Most steps along a pair of rows or a contrast.

    Returns
    -------
    ConeSVMResult
        ``objective`` is the primal value at ``(w, b)``, ``lower_bound`` the dual value.
    """
    started = perf_counter()
    check_limits(_NAME, tol, max_iter)
    state = ConeState(
        _NAME, as_rows(_NAME, points), np.asarray(index, np.int64), sign, cost, target, contrasts,
        radius, price, start,
    )  # fmt: skip
    search = _Search(state, tol, max_iter)
    with single_blas_thread():
        search.run()
        return cone_result(state, state.intercept(), **search.certificate(started))


class _Search(DualSearch):
    """The search for the point of `ConeState`."""

    in_memory = False

    def __init__(self, state: ConeState, tol: float, max_iter: int) -> None:
        self.state, self.n_active = state, state.n
        super().__init__(_NAME, state, tol, max_iter, steps_per_row=20, polish_rounds=8)

    @property
    def n_breaking(self) -> int:
        return 0

    def free_rows(self) -> Booleans:
        free = self.state.free
        free[self.state.n_rows :] = True  # contrasts always take part
        return free

    def all_rows(self) -> ConeSet:
        return self.copied(np.ones(self.state.n, bool))

    def some_rows(self, violation: float, free: Booleans, size: int) -> ConeSet:
        dead = np.concatenate([self.state.cost == 0.0, np.zeros(len(self.state.price), bool)])
        chosen = breaking_rows(*self.state.scores(violation), free, dead, size)
        chosen[self.state.n_rows :] = True
        return self.copied(chosen)

    def copied(self, chosen: Booleans) -> ConeSet:
        rows = np.flatnonzero(chosen)
        gram = self.square(len(rows))
        self.state.square(rows, gram)
        return ConeSet(self.state, rows, gram)

    def certificate(self, started: float) -> dict[str, Any]:
        """Return what the search knows of its end."""
        known = self.solution(0.0, perf_counter() - started)
        for name in ("intercept", "objective", "lower_bound"):
            del known[name]
        return known


def cone_result(state: ConeState, intercept: float, **certificate: Any) -> ConeSVMResult:
    """Return the point of a state as a solution, certified by primal and dual value.

    Parameters
    ----------
    state : ConeState
        Where a solver ended.
    intercept : float
        The constant of the decision function.
    **certificate
        Status, iterations and whatever else the solver knows.
    """
    return ConeSVMResult(
        x=np.abs(state.x[: state.n_rows]),
        mu=state.x[state.n_rows :].copy(),
        intercept=intercept,
        norm=state.norm,
        coef=state.coef(),
        projections=state.share * state.along,
        objective=state.primal(intercept),
        lower_bound=state.dual,
        **certificate,
    )
