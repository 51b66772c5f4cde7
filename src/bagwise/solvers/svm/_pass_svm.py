"""Linear support vector machines on rows that are too many to hold: the unit of work is a pass.

Two methods share one pair of bounds. Where many rows fall short of their targets, Newton steps on a
smoothed hinge use all rows for the gradient and a sample for the curvature; the smoothing is moved
to the last multipliers and sharpened until it costs less than asked for. Where few rows matter, a
working set of them is solved exactly in memory, one pass finds the rows that it leaves short, and
these join. Multipliers of either method are feasible for the whole problem and bound it from
below; the objective of either point, known after a pass, bounds it from above.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint, single_blas_thread
from bagwise.solvers._checks import check_limits, checked_array, checked_terms
from bagwise.solvers._result import Result, Status
from bagwise.solvers.operators._pass_rows import PassRows
from bagwise.solvers.svm._multipliers import balanced
from bagwise.solvers.svm._primal_newton import NewtonModel
from bagwise.solvers.svm._svm_dual import solve_svm_dual

_NAME = "solve_svm_by_passes"
_SEED = 2010  # of the samples of rows that curvature is estimated from
_SET = 750  # rows that a working set begins with, and that each round adds
_MOST_SUPPORT = 2000  # rows short of their targets, and of multipliers, that it may hold
_SET_ROUNDS = 25  # most rounds of a working set before smoothing is tried again
_SETS = 3  # how often working sets are tried
_SET_TOL = 1e-2  # violation at which a working set is solved, in units of the targets
_SAMPLE = 4  # rows per feature that curvature is estimated from
_MOST_FEATURES = 4096  # counted for it
_SMALLEST_SAMPLE = 1000
_SHARE = 0.1  # of a gradient that a step on a sample may leave
_SHARPEN = 3.0  # factor between the slopes of successive smoothings
_PATIENCE = 100  # passes in which the gap should shrink by a tenth


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
    """

    intercept: float
    decision: Floats
    dual: Floats


def solve_svm_by_passes(
    rows: PassRows,
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    start: PassSVMResult | None = None,
    tol: float = 1e-3,
    max_iter: int = 500,
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
        problem than it is.
    tol : float
        Relative gap :math:`(P - D) / P` at which the search ends.
    max_iter : int
        Most passes.

    Returns
    -------
    PassSVMResult
        ``objective`` is the best primal value met, ``lower_bound`` the best dual value,
        ``residual`` their relative gap, ``n_iter`` the number of passes; ``history`` and
        ``gap_history`` hold the best value and the gap after each step. ``STALLED`` means that the
        gap has stopped shrinking.

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
    search = _Search(rows, signs, costs, targets, tol, max_iter)
    with single_blas_thread():
        search.run(start)
    return search.result(perf_counter() - started)


class _Search:
    """The bounds found so far, and the order of events."""

    def __init__(
        self,
        rows: PassRows,
        sign: Floats,
        cost: Floats,
        target: Floats,
        tol: float,
        max_iter: int,
    ) -> None:
        self.rows, self.sign, self.cost, self.target = rows, sign, cost, target
        self.tol, self.max_iter, self.n_passes = tol, max_iter, 0
        self.mark, self.marked = np.inf, 0  # a gap, and the pass at which it was met
        self.primal, self.lower = np.inf, 0.0
        self.w, self.b, self.z = np.zeros(rows.d), 0.0, np.zeros(rows.n)
        self.dual = np.zeros(rows.n)
        self.history: list[float] = []
        self.gaps: list[float] = []

    # ------------------------------------------------------------------------------- the bounds

    @property
    def gap(self) -> float:
        """The relative gap."""
        return (self.primal - self.lower) / self.primal if self.primal > 0.0 else 0.0

    @property
    def ended(self) -> bool:
        """Whether the gap is as asked for, no pass is left, or passes no longer help."""
        return self.gap <= self.tol or self.n_passes >= self.max_iter or self.stalled

    @property
    def stalled(self) -> bool:
        """Whether the gap has stopped shrinking."""
        if self.gap < 0.9 * self.mark:
            self.mark, self.marked = self.gap, self.n_passes
        return self.n_passes - self.marked > _PATIENCE

    def dot(self, w: Floats) -> Floats:
        self.n_passes += 1
        return self.rows.dot(w)

    def combine(self, factor: Floats) -> Floats:
        self.n_passes += 1
        return self.rows.combine(factor)

    def objective(self, w: Floats, b: float, z: Floats) -> float:
        from bagwise.solvers.svm._pass_svm_kernels import hinge

        return 0.5 * float(w @ w) + hinge(self.sign, self.target, self.cost, z, b)

    def offer_point(self, w: Floats, b: float, z: Floats) -> None:
        """Keep a point if it is the best so far."""
        value = self.objective(w, b, z)
        if value < self.primal:
            self.primal, self.w, self.b, self.z = value, w, b, z
        self.history.append(self.primal)
        self.gaps.append(self.primal - self.lower)

    def offer_dual(self, alpha: Floats, v: Floats) -> None:
        """Keep feasible multipliers, with ``v`` the sum of rows that they make, if the best."""
        value = float(self.target @ alpha) - 0.5 * float(v @ v)
        if value > self.lower:
            self.lower, self.dual = value, alpha

    # ------------------------------------------------------------------------------- the search

    def run(self, start: PassSVMResult | None) -> None:
        for b in self.first_intercepts():
            self.offer_point(self.w, b, self.z)
        smooth = _Smoothing(self)
        if start is not None:
            self.offer_start(start)
            smooth.begin_at(start.dual)
        sets_left = _SETS
        while not self.ended:
            checkpoint()
            if sets_left and smooth.n_support <= _MOST_SUPPORT:
                sets_left -= 1
                self.solve_sets()
                smooth.begin_at(self.dual)
            else:
                smooth.step()

    def first_intercepts(self) -> list[float]:
        """Return what may be the best intercepts of a machine without weights."""
        sides = [(s, (self.sign == s) & (self.cost > 0.0)) for s in (-1.0, 1.0)]
        return [s * float(self.target[side].max()) for s, side in sides if side.any()] or [0.0]

    def offer_start(self, start: PassSVMResult) -> None:
        """Offer point and multipliers of a solution, as far as they suit this problem."""
        w = checked_array(_NAME, "start.x", start.x, (self.rows.d,))
        decision = checked_array(_NAME, "start.decision", start.decision, (self.rows.n,))
        alpha = checked_array(_NAME, "start.dual", start.dual, (self.rows.n,))
        self.offer_point(w, start.intercept, decision - start.intercept)
        alpha = balanced(np.clip(alpha, 0.0, self.cost), self.sign)
        support = np.flatnonzero(alpha)
        if len(support) <= _MOST_SUPPORT:
            v = self.rows.take(support).combine((self.sign * alpha)[support])
        elif not self.ended:
            v = self.combine(self.sign * alpha)
        else:
            return
        self.offer_dual(alpha, v)

    def solve_sets(self) -> None:
        """Solve on working sets until the gap is closed, or they grow too large."""
        w, b, z = self.w, self.b, self.z
        chosen, alpha = self.nearest(z, b), self.dual
        tol = _SET_TOL
        for _ in range(_SET_ROUNDS):
            if self.ended:
                return
            some = self.rows.take(chosen)
            sign = self.sign[chosen]
            solved = solve_svm_dual(
                some.gram(), sign, self.cost[chosen], target=self.target[chosen],
                alpha0=alpha[chosen], tol=tol, check_finite=False,
            )  # fmt: skip
            alpha = np.zeros(self.rows.n)
            alpha[chosen] = solved.x
            coef = some.combine(sign * solved.x)
            self.offer_dual(alpha, coef)
            z_new = self.dot(coef)
            w, b, z = self.between((w, b, z), (coef, solved.intercept, z_new))
            self.offer_point(w, b, z)
            short = self.shortfall(z_new, solved.intercept)
            short[chosen] = -np.inf
            if not (short > 0.0).any():  # the set was the right one
                self.offer_point(coef, solved.intercept, z_new)
                if not solved.residual > 0.0 or tol < 1e-12:
                    return
                tol *= 1e-2
                continue
            kept = chosen[solved.x > 0.0]
            if len(kept) > _MOST_SUPPORT:
                return
            chosen = np.union1d(kept, _largest(short, _SET))

    def nearest(self, z: Floats, b: float) -> Integers:
        """Return as many rows of each sign, those that are shortest or nearest to be so."""
        short = self.shortfall(z, b)
        halves = [_largest(np.where(self.sign == s, short, -np.inf), _SET // 2) for s in (-1, 1)]
        return np.union1d(np.concatenate(halves), np.flatnonzero(self.dual)[:_MOST_SUPPORT])

    def shortfall(self, z: Floats, b: float) -> Floats:
        """Return by how much each row that counts falls short of its target."""
        return np.where(self.cost > 0.0, self.target - self.sign * (z + b), -np.inf)

    def between(
        self, first: tuple[Floats, float, Floats], last: tuple[Floats, float, Floats]
    ) -> tuple[Floats, float, Floats]:
        """Return the point between two at which the objective is least."""
        from bagwise.solvers.svm._pass_svm_kernels import hinge_slope

        (w, b, z), (dw, db, dz) = (
            first,
            (last[0] - first[0], last[1] - first[1], last[2] - first[2]),
        )
        low, high, step = 0.0, 1.0, 1.0
        for _ in range(20):
            slope = float(dw @ (w + step * dw)) + hinge_slope(
                self.sign, self.target, self.cost, z, dz, b, db, step
            )
            low, high = (step, high) if slope <= 0.0 else (low, step)
            if low == 1.0:
                return last
            step = 0.5 * (low + high)
        return w + low * dw, b + low * db, z + low * dz

    @property
    def status(self) -> Status:
        if self.gap <= self.tol:
            return Status.CONVERGED
        return Status.MAX_ITER if self.n_passes >= self.max_iter else Status.STALLED

    def result(self, solve_time: float) -> PassSVMResult:
        return PassSVMResult(
            x=self.w,
            intercept=self.b,
            decision=self.z + self.b,
            dual=self.dual,
            objective=self.primal,
            lower_bound=self.lower,
            residual=self.gap,
            status=self.status,
            n_iter=self.n_passes,
            history=np.array([*self.history, self.primal]),
            gap_history=np.array([*self.gaps, self.primal - self.lower]),
            solve_time=solve_time,
        )


class _Smoothing:
    """Newton steps on a hinge that is smoothed about multipliers ``center``.

    Each row answers its shortfall ``u`` with ``clip(center + slope * u, 0, cost)``. The intercept
    is always the one at which the answers of both signs weigh the same, so that they are feasible.
    """

    def __init__(self, search: _Search) -> None:
        self.search, self.rng = search, np.random.default_rng(_SEED)
        self.n_support = search.rows.n
        self.model = NewtonModel(
            search.rows, search.sign, search.target,
            base=0.5 * search.cost, slope=search.cost.copy(), cap=search.cost,
            w=search.w, b=search.b, z=search.z, share=_SHARE,
        )  # fmt: skip
        self.sharpness = 1.0
        self.v: Floats | None = None  # the sum of rows that the answers make, once it is known

    def begin_at(self, dual: Floats) -> None:
        """Go on at the best point of the search, about multipliers that are known."""
        search, model = self.search, self.model
        model.w, model.b, model.z = search.w, search.b, search.z
        model.base = np.minimum(dual, search.cost)
        self.sharpness = max(self.sharpness, 4.0)
        self.n_support = int(np.count_nonzero(search.shortfall(model.z, model.b) > 0.0))
        self._bend()

    def step(self) -> None:
        """Look at the answers; then move the centre, or take a Newton step."""
        search, model = self.search, self.model
        self._settle()
        if self.v is None:
            self.v = search.combine(model.signed)
        alpha = np.abs(model.signed)
        self.n_support = int(np.count_nonzero(alpha))
        search.offer_point(model.w, model.b, model.z)
        search.offer_dual(alpha, self.v)
        if search.ended:
            return
        gradient = model.w - self.v
        short = search.shortfall(model.z, model.b)
        short[search.cost == 0.0] = 0.0
        smoothing = float(search.cost @ np.maximum(short, 0.0)) - float(alpha @ short)
        if 0.5 * float(gradient @ gradient) <= smoothing:
            model.base = alpha
            self.sharpness *= _SHARPEN
            self._bend()
            return
        self._newton(alpha, gradient)

    def _bend(self) -> None:
        """Set the slopes; where no row comes near its cost, costs say nothing about alpha."""
        cost, model = self.search.cost, self.model
        most = max(2.0 * float(model.base.max(initial=0.0)), 1e-6 * float(cost.max()))
        model.slope = self.sharpness * np.minimum(cost, most)
        self.v = None

    def _settle(self) -> None:
        """Find the intercept at which the answers of both signs weigh the same."""
        from bagwise.solvers.svm._pass_svm_kernels import imbalance
        from bagwise.solvers.svm._primal_newton_kernels import answers

        model = self.model
        terms = model.base, model.slope, model.cap
        model.b = _root(lambda b: imbalance(model.sign, model.target, model.z, b, *terms), model.b)
        answers(model.sign, model.target, model.z, model.b, *terms, model.signed)

    def _newton(self, alpha: Floats, gradient: Floats) -> None:
        search, model = self.search, self.model
        free = np.flatnonzero((alpha > 0.0) & (alpha < model.cap))
        size = max(_SAMPLE * min(search.rows.d, _MOST_FEATURES), _SMALLEST_SAMPLE)
        some = free if len(free) <= size else np.sort(self.rng.choice(free, size, replace=False))
        weight = model.slope[some] * (len(free) / max(1, len(some)))
        rows = search.rows.take(some)
        model.gradient, model.gradient_b = gradient, 0.0
        dw, db = model.direction_on(rows, weight)
        self._offer_corrected(alpha, some, rows, weight, dw, db)
        if search.ended:
            return
        dz = search.dot(dw)
        step = model.search(dw, db, dz)
        model.w, model.b, model.z = model.w + step * dw, model.b + step * db, model.z + step * dz
        self.v = None

    def _offer_corrected(
        self, alpha: Floats, some: Integers, rows: Any, weight: Floats, dw: Floats, db: float
    ) -> None:
        """Offer multipliers that are changed on the sample as the Newton step foresees it."""
        from bagwise.solvers.svm._pass_svm_kernels import imbalance

        assert self.v is not None
        model, before = self.model, alpha[some]
        sign, cap, zero = model.sign[some], model.cap[some], np.zeros(len(some))
        z, wanted = rows.dot(dw), float(sign @ before)

        def excess(b: float) -> tuple[float, float, float]:
            total, size, bend = imbalance(sign, zero, z, b, before, weight, cap)
            return total - wanted, size, bend

        b = _root(excess, db)
        after = np.clip(before - weight * sign * (z + b), 0.0, cap)
        changed = alpha.copy()
        changed[some] = after
        v = self.v + rows.combine(sign * (after - before))
        self.search.offer_dual(changed, v)


def _largest(values: Floats, n: int) -> Integers:
    """Return where the largest ``n`` values are that are not minus infinity."""
    if n < len(values):
        found = np.argpartition(-values, n)[:n]
        return found[values[found] > -np.inf]
    return np.flatnonzero(values > -np.inf)


def _root(function: Any, b: float) -> float:
    """Return where a falling function is 0, from its value, its scale and minus its slope."""
    low, high, width = -np.inf, np.inf, 1.0
    for _ in range(200):
        value, size, bend = function(b)
        if abs(value) <= 1e-13 * size:
            return b
        low, high = (b, high) if value > 0.0 else (low, b)
        guess = b + value / bend if bend > 0.0 else np.inf
        if guess == b:
            return b
        if not low < guess < high:
            width *= 2.0
            guess = 0.5 * (low + high)
            if not np.isfinite(guess):
                guess = b + width if value > 0.0 else b - width
        b = guess
    return b
