"""Linear support vector machines on rows that are too many to hold: the unit of work is a pass.

Three methods share one pair of bounds. Where many rows fall short of their targets, Newton steps
on a smoothed hinge use all rows for the gradient and a sample for the curvature; the smoothing is
moved to the last multipliers and sharpened until it costs less than asked for. Where features are
too many for that, coordinate steps in the dual come first. Where few rows matter, a working set of
them is solved exactly in memory, one pass finds the rows that it leaves short, and these join.
Multipliers of each method are feasible for the whole problem and bound it from below; the objective
of each point, known after a pass, bounds it from above.
"""

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint, single_blas_thread
from bagwise.solvers._checks import check_limits, checked_array, checked_terms
from bagwise.solvers._result import Result, Status
from bagwise.solvers.operators._pass_rows import PassRows
from bagwise.solvers.svm._multipliers import balanced
from bagwise.solvers.svm._pass_svm_bounds import Bounds, Point, largest
from bagwise.solvers.svm._pass_svm_coordinates import PASSES, CoordinateSearch
from bagwise.solvers.svm._pass_svm_sets import MOST_BOUND, MOST_SUPPORT, SetSearch
from bagwise.solvers.svm._pass_svm_smoothing import Smoothing
from bagwise.solvers.svm._primal_newton import NewtonModel

_NAME = "solve_svm_by_passes"
_SETS = 3  # how often working sets are tried
_WIDE = 3000  # features; with more of them coordinate steps come before Newton steps
_POOLS = 3  # how often pools are tried
_POOL_ROUNDS = 5  # most passes that one of these attempts takes
_TELLING = 0.1  # share of the objective that multipliers of a start reach, if they tell anything
_RARE = 1000  # rows of a sign, at most, with which working sets are tried if these do not
_NEAR = 0.5  # share of the objective that multipliers reach about which Newton steps may begin
_ROOM = 4  # rows that a pool has for each that matters


@dataclass(frozen=True, kw_only=True, eq=False)
class PassSVMResult(Result):
    """A linear machine trained by passes: ``x`` holds the weights ``w``.

    Parameters
    ----------
    intercept : float
        The constant ``b`` of the decision function.
    decision : ndarray of float
        The decision function on all rows, those of cost 0 too.
    dual : ndarray of float
        Multipliers whose dual value is ``lower_bound``.
    answers : ndarray of float
        Multipliers for a similar problem to start from: ``dual``, or those of the last point where
        the search has ended for want of progress and these tell little.
    """

    intercept: float
    decision: Floats
    dual: Floats
    answers: Floats


def solve_svm_by_passes(
    rows: PassRows,
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    start: PassSVMResult | None = None,
    tol: float = 1e-3,
    max_iter: int = 500,
    progress: float = 0.0,
) -> PassSVMResult:
    r"""Train a linear support vector machine by passes over its rows.

    The problem, for rows :math:`x_r` with signs :math:`s_r`, costs :math:`c_r` and targets
    :math:`t_r`, is

    .. math::

        \min_{w, b} \; P(w, b) = \tfrac12 \|w\|^2
        + \sum_r c_r \bigl(t_r - s_r (\langle w, x_r \rangle + b)\bigr)_+

    and its dual

    .. math::

        \max_\alpha \; D(\alpha) = t^\top \alpha
        - \tfrac12 \bigl\|\sum_r s_r \alpha_r x_r\bigr\|^2
        \quad \text{subject to} \quad 0 \le \alpha \le c, \; s^\top \alpha = 0 .

    Parameters
    ----------
    rows : PassRows
        The rows.
    sign : array-like of shape (n,)
        -1 or +1.
    cost : array-like of shape (n,) or float
        Costs, not negative. A row of cost 0 takes no part.
    target : array-like of shape (n,) or float
        Margins that the rows ought to have.
    start : PassSVMResult, optional
        The solution of a similar problem on the same rows. The result is no worse a point of this
        problem than it is; its ``answers`` are where multipliers start.
    tol : float
        Relative gap :math:`(P - D) / P` at which the search ends.
    max_iter : int
        Most passes.
    progress : float
        With a start, and where features are not too many for Newton steps, the search also ends
        after a step that lowers the objective by less than this share of what has been gained since
        the start. The lower bound may be 0 then.

    Returns
    -------
    PassSVMResult
        ``objective`` is the best primal value met, ``lower_bound`` the best dual value,
        ``residual`` their relative gap, ``n_iter`` the number of passes; ``history`` and
        ``gap_history`` hold the best value and the gap after each step. ``STALLED`` means that the
        gap has stopped shrinking, or that a step has gained less than ``progress`` asks for.

    Notes
    -----
    With multipliers :math:`\alpha` and :math:`v = \sum_r s_r \alpha_r x_r` the gap of a point is

    .. math::

        P(w, b) - D(\alpha) = \sum_r \bigl(c_r (u_r)_+ - \alpha_r u_r\bigr)
        + \tfrac12 \|w - v\|^2, \quad u_r = t_r - s_r (\langle w, x_r \rangle + b) .

    The first part is what smoothing costs, the second what Newton steps have left to do: whichever
    is larger is worked on.
    """
    started = perf_counter()
    check_limits(_NAME, tol, max_iter)
    signs, costs, targets = checked_terms(_NAME, sign, cost, target, rows.n)
    start = _checked_start(rows, start)
    live, near = np.flatnonzero(costs), None
    may_be_idle = start is not None and rows.d <= _WIDE
    if len(live) < rows.n:
        signs, costs, targets = signs[live], costs[live], targets[live]
    search = _Search(
        rows if len(live) == rows.n else rows.part(live),
        signs, costs, targets, tol, max_iter, progress if may_be_idle else 0.0,
    )  # fmt: skip
    if start is not None:
        z = start.decision[live] - start.intercept
        near = (start.x, start.intercept, z), start.answers[live]
    dual, answers = np.zeros(rows.n), np.zeros(rows.n)
    with single_blas_thread():
        search.run(near)
        decision = _decision(rows, search, live, start)
    dual[live] = search.dual
    is_known = not search.idle or search.lower >= _NEAR * search.primal
    answers[live] = search.dual if is_known else search.answers
    return PassSVMResult(
        x=search.w,
        intercept=search.b,
        decision=decision,
        dual=dual,
        answers=answers,
        objective=search.primal,
        lower_bound=search.lower,
        residual=search.gap,
        status=search.status,
        n_iter=search.n_passes,
        history=np.array([*search.history, search.primal]),
        gap_history=np.array([*search.gaps, search.primal - search.lower]),
        solve_time=perf_counter() - started,
    )


Start = tuple[Point, Floats]  # a point, and multipliers


class _Search(Bounds):
    """The order of events."""

    def run(self, start: Start | None, *, pools_left: int = _POOLS) -> None:
        """Search, from a point and multipliers if they are given."""
        for b in self.first_intercepts():
            self.offer_point(self.w, b, self.z)
        if self.ended:
            return
        if start is not None:
            self.offer_start(start)
            self.origin, self.answers = self.primal, start[1]
            if self.progress and pools_left and self.suits_pool(self.n_short):
                pools_left -= 1
                self.solve_pools()
                if self.ended:
                    return
        smooth, sets_left, is_wide = Smoothing(self), _SETS, self.rows.d > _WIDE
        if start is None:
            smooth.begin_evenly()
        else:
            is_poor = self.lower < _TELLING * self.primal and not self.progress
            if is_poor and self.n_rare <= _RARE:
                sets_left -= 1
                SetSearch(self).run()
                smooth.begin_at(self.dual)
            else:
                smooth.begin_at(self.answers)
        while not self.ended:
            checkpoint()
            may_be_few = not self.progress and sets_left and smooth.n_support <= MOST_SUPPORT
            if may_be_few and self.count_bound(smooth.model) <= MOST_BOUND:
                sets_left -= 1
                SetSearch(self).run()
                smooth.begin_at(self.dual)
            elif pools_left and self.suits_pool(smooth.n_support):
                pools_left -= 1
                self.solve_pools()
                smooth.begin_at(self.dual)
            elif is_wide and self.passes_left >= PASSES:
                is_wide = False
                CoordinateSearch(self).run()
                if self.lower >= _NEAR * self.primal:
                    smooth.begin_at(self.dual)
            else:
                smooth.step()

    @property
    def n_short(self) -> int:
        """Number of rows that fall short at the best point."""
        return int(np.count_nonzero(self.shortfall(self.z, self.b) > 0.0))

    @property
    def n_rare(self) -> int:
        """Number of rows of the sign that has fewer."""
        n_negative = int(np.count_nonzero(self.sign < 0.0))
        return min(n_negative, self.rows.n - n_negative)

    def count_bound(self, model: NewtonModel) -> int:
        """Count multipliers, the best or those of a centre, near the costs of rows that need it."""
        is_bound = np.maximum(self.dual, model.base) > 0.5 * self.cost
        return int(np.count_nonzero(is_bound & (self.shortfall(model.z, model.b) > 0.0)))

    def suits_pool(self, n_support: int) -> bool:
        """Tell whether a pool can hold all that may matter, and is small beside all rows."""
        size = self.pool_size
        n_used = max(n_support, int(np.count_nonzero(self.dual)))
        is_known = self.lower > 0.0 or self.progress > 0.0
        if self.progress and np.count_nonzero(self.answers) > size:
            return False  # rows that have them would all be in the first pool
        return is_known and _ROOM * n_used <= size and 2 * size <= self.rows.n

    def solve_pools(self) -> None:
        """Solve the problem of the rows nearest to fall short, and see what it leaves short."""
        best: Point = self.w, self.b, self.z
        w, b, z, alpha = *best, self.answers if self.progress else self.dual
        for _ in range(_POOL_ROUNDS):
            near = largest(self.shortfall(z, b), self.pool_size)
            pool = np.union1d(near, np.flatnonzero(alpha))
            rows, sign = self.rows.take(pool), self.sign[pool]
            inner = _Search(
                rows, sign, self.cost[pool], self.target[pool], 0.75 * self.tol, self.max_iter,
                self.progress,
            )  # fmt: skip
            inner.run(((w, b, z[pool]), alpha[pool]), pools_left=0)
            alpha, before = np.zeros(self.rows.n), self.primal
            alpha[pool] = inner.answers if inner.idle else inner.dual
            self.answers = alpha
            if not inner.idle:
                self.offer_dual(alpha, rows.combine(sign * inner.dual))
            w, b, z = inner.w, inner.b, self.dot(inner.w)
            self.offer_point(w, b, z)
            self.idle = inner.idle and before - self.primal >= 0.5 * (inner.origin - inner.primal)
            if self.ended:
                return
            best = self.between(best, (w, b, z))
            self.offer_point(*best)

    def first_intercepts(self) -> list[float]:
        """Return what may be the best intercepts of a machine without weights."""
        sides = [(s, self.sign == s) for s in (-1.0, 1.0)]
        return [s * float(self.target[side].max()) for s, side in sides if side.any()] or [0.0]

    def offer_start(self, start: Start) -> None:
        """Offer a point and multipliers, as far as they suit this problem."""
        self.offer_point(*start[0])
        if self.progress:
            return
        alpha = balanced(np.clip(start[1], 0.0, self.cost), self.sign)
        if np.count_nonzero(alpha) <= MOST_SUPPORT or not self.ended:
            self.offer_dual(alpha, self.sum_of(alpha))

    @property
    def status(self) -> Status:
        """How the search ended."""
        if self.gap <= self.tol:
            return Status.CONVERGED
        return Status.MAX_ITER if self.n_passes >= self.max_iter else Status.STALLED


def _checked_start(rows: PassRows, start: PassSVMResult | None) -> PassSVMResult | None:
    if start is None:
        return None
    return replace(
        start,
        x=checked_array(_NAME, "start.x", start.x, (rows.d,)),
        decision=checked_array(_NAME, "start.decision", start.decision, (rows.n,)),
        answers=checked_array(_NAME, "start.answers", start.answers, (rows.n,)),
    )


def _decision(
    rows: PassRows, search: _Search, live: Integers, start: PassSVMResult | None
) -> Floats:
    """Return the decision function on all rows; those of cost 0 are read now, if they must be."""
    if start is not None and search.w is start.x:
        return start.decision + (search.b - start.intercept)
    out = np.empty(rows.n)
    out[live] = search.z
    is_other = np.ones(rows.n, bool)
    is_other[live] = False
    others = np.flatnonzero(is_other)
    out[others] = rows.part(others).dot(search.w) if len(others) and search.w.any() else 0.0
    return out + search.b
