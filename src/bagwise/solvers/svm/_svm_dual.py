"""The dual of a kernel support vector machine with one cost and one target per row.

Pair steps with second-order selection (Fan, Chen and Lin 2005) find which rows are free. Once a
rough answer is known they run on a small copy of the Gram matrix that holds the rows in question,
and Newton steps on the free rows make the answer exact. Where thousands of rows are free, Newton
steps and pair steps alternate before that.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Booleans, Floats
from bagwise._threads import single_blas_thread
from bagwise.solvers._checks import check_limits, check_tol
from bagwise.solvers._result import Result
from bagwise.solvers.operators._row_operator import RowOperator
from bagwise.solvers.svm import _dual_search as dual_search
from bagwise.solvers.svm._dual_search import DualSearch, breaking_rows
from bagwise.solvers.svm._svm_dual_many_free import MOST_FREE, ManyFree
from bagwise.solvers.svm._svm_dual_set import WorkingSet, precision
from bagwise.solvers.svm._svm_dual_state import NAME, State

_ABOUT = 1.3  # times what is asked for: a working set that is there already may have as many rows


@dataclass(frozen=True, kw_only=True, eq=False)
class SVMDualResult(Result):
    """Solution of a kernel SVM: ``x`` holds ``alpha``, one number per row.

    Parameters
    ----------
    intercept : float
        The constant ``b`` of the decision function.
    decision : ndarray of float
        The decision function ``gram @ (sign * alpha) + b`` on the rows.
    """

    intercept: float
    decision: Floats


def solve_svm_dual(
    gram: NDArray[Any] | RowOperator,
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    loss: Literal["hinge", "squared_hinge"] = "hinge",
    alpha0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000_000,
    polish: bool = True,
    gap: float = 0.0,
    check_finite: bool = True,
) -> SVMDualResult:
    r"""Train a support vector machine on a Gram matrix.

    The problem, for rows :math:`r` with feature vectors :math:`\phi_r`, signs :math:`s_r`, costs
    :math:`c_r` and targets :math:`t_r`, is

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + \sum_r c_r \bigl(t_r - s_r (\langle w, \phi_r \rangle + b)\bigr)_+^e

    with :math:`e = 1` (``loss="hinge"``) or :math:`e = 2` (``"squared_hinge"``). Its dual, with
    :math:`Q_{rq} = s_r s_q \langle \phi_r, \phi_q \rangle`, is

    .. math::

        \max_{\alpha} \; t^\top \alpha - \tfrac12 \alpha^\top Q \alpha
        - \sum_r \tfrac12 \delta_r \alpha_r^2
        \quad \text{subject to} \quad 0 \le \alpha \le c, \; s^\top \alpha = 0

    with :math:`\delta = 0` for the hinge; for the squared hinge :math:`\delta_r = 1 / (2 c_r)` and
    there is no upper bound.

    Parameters
    ----------
    gram : ndarray of shape (n, n), or RowOperator
        Inner products of the rows: symmetric and positive semi-definite, in single or double
        precision. An array is not copied if it is contiguous. An operator may compute blocks on
        demand; see `remembered` for one that keeps rows.
    sign : array-like of shape (n,)
        -1 or +1; both must occur.
    cost : array-like of shape (n,) or float
        Costs, not negative. A row of cost 0 takes no part.
    target : array-like of shape (n,) or float
        Margins that the rows ought to have; they may be negative.
    loss : str
        See above.
    alpha0 : array-like of shape (n,), optional
        Where to start. It is clipped to the box, and the heavier sign gives up its excess: free
        rows first, then rows at their upper bound. A solution for other costs is best put through
        `rescale_alpha`, which leaves rows at bounds there; a row whose sign has changed is best
        started from 0.
    tol : float
        The largest violation of the optimality conditions: with
        ``v = s t - gram (s alpha) - delta s alpha``, the largest ``v`` of a row whose ``s alpha``
        may grow minus the smallest ``v`` of one whose ``s alpha`` may shrink.
    max_iter : int
        Most pair steps.
    polish : bool
        Whether an answer within ``tol`` is made more exact, as far as few more steps do it.
    gap : float
        The search also ends where the duality gap is known to be no more than this, in units of
        ``max(1, |objective|)``, whatever the violation.
    check_finite : bool
        Whether to look for NaN and infinity in the whole Gram matrix first, if it is an array.

    Returns
    -------
    SVMDualResult
        ``objective`` is the primal value at ``(w, b)``, ``lower_bound`` the dual value,
        ``residual`` the violation that ``tol`` bounds, computed from scratch (with a source, up to
        a thousandth of ``tol``), ``history`` the negative dual values, ``gap_history`` the duality
        gap beside them.

    Notes
    -----
    The intercept is the mean of ``v`` over the free rows (``alpha`` between its bounds); if there
    are none, the middle of the interval of optimal intercepts, or its end if it has only one. With
    ``polish`` and at most 2000 free rows the last step solves their optimality conditions as linear
    equations, so that decision values are accurate far beyond ``tol``. With up to 8192 free rows
    such steps only speed up the search. They need up to a square matrix of so many rows in double
    precision, besides a working set of up to 9216 rows in single precision.
    """
    started = perf_counter()
    check_limits(NAME, tol, max_iter)
    check_tol(NAME, gap, "gap")
    state = State(gram, sign, cost, target, alpha0, loss=loss, check_finite=check_finite)
    search = _Search(state, tol, max_iter, polish=polish, gap=gap)
    with single_blas_thread():
        search.run()
    return search.result(perf_counter() - started)


class _Search(DualSearch):
    """The search for the point of `State`; rows may rest where a source computes their blocks."""

    def __init__(
        self, state: State, tol: float, max_iter: int, *, polish: bool, gap: float
    ) -> None:
        self.state, self.in_memory, self.n_active = state, state.source is None, state.n
        self.last, self.last_gram = np.empty(0, np.int64), np.empty((0, 0))  # of a working set
        self.many = ManyFree(state)
        polish_rounds = 4 if polish else 0
        super().__init__(
            NAME, state, tol, max_iter, steps_per_row=20, polish_rounds=polish_rounds, gap=gap
        )

    @property
    def n_breaking(self) -> int:
        return self.state.n_breaking

    def free_rows(self) -> Booleans:
        return self.state.free

    def record(self) -> None:
        """Note objective and gap; while rows rest they are unknown."""
        if self.state.awake is None:
            super().record()

    def settle(self) -> None:
        self.state.settle(self.tol)

    def rest(self, violation: float) -> None:
        self.state.rest(violation)

    def wake(self) -> bool:
        rested = self.state.awake is not None
        self.state.wake()
        return rested

    def all_rows(self) -> WorkingSet:
        state = self.state
        if self.in_memory:
            return WorkingSet(state, None, state.gram, self.many)
        return self.copied(state.cost > 0.0)

    def some_rows(self, violation: float, free: Booleans, size: int) -> WorkingSet:
        state = self.state
        grow, shrink = state.scores(violation)
        if self.serves_again(free | (np.maximum(grow, shrink) > 0.0), size):
            return WorkingSet(state, self.last, self.last_gram, self.many)
        return self.copied(breaking_rows(grow, shrink, free, state.cost == 0.0, size))

    def serves_again(self, needed: Booleans, size: int) -> bool:
        """Tell whether the last working set holds these rows, and is not much too large."""
        holds = np.count_nonzero(needed[self.last]) == np.count_nonzero(needed)
        is_as_exact = self.last_gram.itemsize >= np.dtype(precision(size)).itemsize
        return bool(holds and is_as_exact and 0 < len(self.last) <= _ABOUT * size)

    def largest_set(self, n_free: int) -> int:
        """Return the usual number, or more if all free rows then fit and Newton steps serve."""
        largest = dual_search.LARGEST_SET
        if n_free <= MOST_FREE:
            return max(largest, n_free + n_free // 8)
        return largest + 2 * largest // 5

    def copied(self, chosen: Booleans) -> WorkingSet:
        """Return a working set with a copy of its part of the Gram matrix."""
        rows = np.flatnonzero(chosen)
        self.last_gram = np.empty((0, 0))  # before the next needs room
        if not self.in_memory:
            self.many = ManyFree(self.state)  # nor is the last one held there
        gram = self.square(len(rows), precision(len(rows)))
        self.state.square(rows, gram)
        self.last, self.last_gram = rows, gram
        return WorkingSet(self.state, rows, gram, self.many)

    def result(self, solve_time: float) -> SVMDualResult:
        state = self.state
        intercept = state.intercept()
        return SVMDualResult(
            x=np.abs(state.beta),
            decision=state.decision(intercept),
            **self.solution(intercept, solve_time),
        )
