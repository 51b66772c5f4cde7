"""The dual of a kernel support vector machine with one cost and one target per row.

Pair steps with second-order selection (Fan, Chen and Lin 2005) find which rows are free. Once a
rough answer is known they run on a small copy of the Gram matrix that holds the rows in question,
and Newton steps on the free rows make the answer exact.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._threads import single_blas_thread
from bagwise.solvers._checks import check_limits
from bagwise.solvers._result import Result, Status
from bagwise.solvers.operators._gram_source import GramSource
from bagwise.solvers.svm._dual_search import DualSearch
from bagwise.solvers.svm._svm_dual_set import LARGEST_FREE, WorkingSet
from bagwise.solvers.svm._svm_dual_state import NAME, State

_WHOLE = 1024  # up to so many rows, all of them are worked on at once
_SMALLEST_SET, _LARGEST_SET = 512, 4096  # rows of a working set
_NEWTON_BELOW = 1e-3  # violation at which the free rows are probably known
_EXACT = 1e-4  # of tol: the violation that Newton steps are to reach
_POLISH_ATTEMPTS = 5
_LOSSES = 3  # times that rounding may stop the pair steps


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
    decision: NDArray[np.float64]


def solve_svm_dual(
    gram: NDArray[Any] | GramSource,
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    loss: Literal["hinge", "squared_hinge"] = "hinge",
    alpha0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000_000,
    check_finite: bool = True,
) -> SVMDualResult:
    r"""Train a support vector machine on a Gram matrix.

    The problem, for rows :math:`r` with images :math:`\phi_r`, signs :math:`s_r`, costs
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
    gram : ndarray of shape (n, n), or GramSource
        Inner products of the rows' images: symmetric and positive semi-definite, in single or
        double precision. An array is not copied if it is contiguous. A source computes blocks of
        it on demand; see `CachedGram` for one that remembers rows.
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
    at most 2000 free rows the last step solves their optimality conditions as linear equations, so
    that decision values are accurate far beyond ``tol``.
    """
    started = perf_counter()
    check_limits(NAME, tol, max_iter)
    state = State(gram, sign, cost, target, alpha0, loss=loss, check_finite=check_finite)
    search = _Search(state, tol, max_iter)
    with single_blas_thread():
        search.run()
    return search.result(perf_counter() - started)


class _Search(DualSearch):
    """The order of events: pair steps on all rows, then on working sets, then the polish."""

    def __init__(self, state: State, tol: float, max_iter: int) -> None:
        self.state, self.attempts, self.goal = state, 0, tol
        super().__init__(NAME, state, tol, max_iter, steps_per_row=20)

    def record(self) -> None:
        """Note objective and gap; while rows rest they are unknown."""
        if self.state.awake is None:
            super().record()

    def run(self) -> "_Search":
        state, tol = self.state, self.tol
        if state.source is None and state.n > _WHOLE and state.n_breaking > _SMALLEST_SET:
            self.descend(self.whole(), 0.5 * tol, budget=state.n // 6)
        losses = 0
        polished = state.violation == -np.inf  # one sign has no cost: nothing can move
        while True:
            violation = state.violation
            if violation <= tol and polished:
                if state.awake is not None:
                    state.wake()
                    continue
                if state.is_exact:
                    break
                state.settle(tol)
                violation = state.violation
                losses += violation > tol
                polished = not self.sharpens(violation)
                continue
            if losses >= _LOSSES or (self.n_iter >= self.max_iter and violation > tol):
                self.status = Status.STALLED if losses >= _LOSSES else Status.MAX_ITER
                break
            work = self.working_set(violation)
            # Other rows may come in while the free rows are not known: do not be exact too early.
            aim = 0.05 * violation if work.rows is not None else _NEWTON_BELOW
            aim = max(0.5 * self.goal, min(aim, 0.05 * violation))
            # Within tol the answer is good enough: what makes it exact must not cost much more.
            budget = None if violation > tol else max(1000, self.n_iter // 4)
            dual, n_iter = state.dual, self.n_iter
            lost = self.descend(work, aim, budget)
            polish = self.attempts < _POLISH_ATTEMPTS and work.n_free <= LARGEST_FREE
            polished = not polish
            if polish and (lost or aim <= max(_NEWTON_BELOW, tol)):
                polished = work.newton(4)
            work.push()
            del work  # and its matrix, before the next needs room
            self.record()
            blurred = state.rounding > tol
            if lost or blurred:
                state.refresh()
            if lost or (blurred and self.is_hopeless(dual, n_iter)):  # steps can do no more
                polished = True
                losses += state.violation > tol
                continue
            violation = state.violation
            state.rest(violation)
            if polish:
                polished = not self.sharpens(violation, polished=polished)
        if not state.is_exact:
            state.settle(tol)
        self.record()
        return self

    def sharpens(self, violation: float, *, polished: bool = True) -> bool:
        """Tell whether an answer within ``tol`` should be made more exact, and set the goal."""
        state = self.state
        exact = max(_EXACT * self.tol, state.rounding)
        if violation > self.tol:
            return not polished
        if self.attempts >= _POLISH_ATTEMPTS or (polished and violation <= exact):
            return False
        if np.count_nonzero(state.free) > LARGEST_FREE:
            return False
        self.attempts += 1
        self.goal = 0.1 * max(violation, exact)
        return True

    def whole(self) -> WorkingSet:
        return WorkingSet(self.state, None, self.state.gram)

    def working_set(self, violation: float) -> WorkingSet:
        """Choose the free rows and those closest to breaking, or already breaking, a condition."""
        state = self.state
        if state.source is None and state.n <= _WHOLE:
            return self.whole()
        free = state.free
        n_free = int(free.sum())
        size = min(max(_SMALLEST_SET, n_free + n_free // 2), _LARGEST_SET)
        if size >= state.n:
            if state.source is None:
                return self.whole()
            return self.copied(np.flatnonzero(state.cost > 0.0))
        grows, shrinks = state.scores(violation)
        score = np.maximum(grows, shrinks)
        if 3 * n_free <= 2 * size:
            score[free] = np.inf
        for side in (grows, shrinks):  # a step needs one of each
            score[np.argpartition(-side, size // 8)[: size // 8 + 1]] = np.inf
        score[state.cost == 0.0] = -np.inf
        rows = np.argpartition(-score, size)[:size]
        return self.copied(np.sort(rows[score[rows] > -np.inf]))

    def copied(self, rows: NDArray[np.int64]) -> WorkingSet:
        gram = self.square(len(rows))
        self.state.square(rows, gram)
        return WorkingSet(self.state, rows, gram)

    def result(self, solve_time: float) -> SVMDualResult:
        state = self.state
        intercept = state.intercept()
        return SVMDualResult(
            x=np.abs(state.beta),
            intercept=intercept,
            decision=state.decision(intercept),
            objective=state.primal(intercept),
            lower_bound=state.dual,
            residual=max(0.0, state.violation),
            status=self.status,
            n_iter=self.n_iter,
            history=np.array(self.history),
            gap_history=np.array(self.gaps),
            solve_time=solve_time,
        )
