"""Squared hinge in its nu-form: a quadratic form over the unit simplex, by finite Newton steps.

Over the cone that the simplex spans, the minimiser is known up to its length, and there the
problem is the dual of an ordinary squared hinge without an intercept. Its primal is continuously
differentiable and piecewise quadratic: a Newton step is exact as soon as the active rows are the
right ones (Mangasarian 2002), and the previous solution of a similar problem nearly tells them.
"""

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._threads import checkpoint, short_slices, single_blas_thread
from bagwise.solvers._checks import check_limits, checked_array, checked_gram, checked_signs
from bagwise.solvers._result import Result, Status
from bagwise.solvers.svm._block_gram import BlockGram, BorderedSystem, Systems, cholesky
from bagwise.solvers.svm._landmark_system import LandmarkSystems

_NAME = "solve_nu_svm"  # in errors
_REFINE = 1e-11  # error of a margin from which on a system is solved a second time
_MOST_STEPS = 200
_ROUNDING = 1e-6  # relative gap above which Newton steps failed, and did not only end in rounding
_HULL_STEPS = 300
_HULL_ROWS = 200
_SWEEP_ABOVE = 300  # rows from which on coordinate steps guess the active rows faster
_SWEEPS = 20
_WARM_SWEEPS = 2  # from the solution of a similar problem
_SMALLEST_GROWTH = 50
_ROUGH = 0.05  # relative gap at which the guess is good enough


@dataclass(frozen=True, kw_only=True, eq=False)
class NuSVMResult(Result):
    """Minimum over the simplex: ``x`` holds the coefficients ``a``, not negative and of sum 1.

    It is also an `InnerSolution` of `generate_assignments`.

    Parameters
    ----------
    decision : ndarray of float
        ``gram @ (sign * a)``, the decision function on the rows.
    rho : float
        The margin: ``sign * decision + ridge * a`` in every row of positive ``a``, at least
        that in the others.
    """

    decision: Floats
    rho: float
    _sign: Floats = field(repr=False)
    _active: Integers = field(repr=False)
    _gram: BlockGram = field(repr=False)
    _systems: Systems | LandmarkSystems = field(repr=False)

    @property
    def b(self) -> Floats:
        """The signed coefficients ``sign * a``."""
        return self._sign * self.x

    @property
    def value(self) -> float:
        """The problem as a maximum: minus the objective."""
        return -self.objective

    @property
    def error(self) -> float:
        """How far the maximum is above `value` at most."""
        return max(0.0, self.gap)

    def curvature(self, rows: Floats) -> Floats:
        """Return the second derivatives of the maximum along changes of the Gram matrix.

        Parameters
        ----------
        rows : ndarray of shape (n_directions, n)
            ``K_k @ b`` for each direction ``K_k`` in which the Gram matrix may change.
        """
        active = self._active
        right = np.vstack([rows[:, active], self._sign[active]]).T
        form = self._systems.of(self._gram, active).form(right)
        along = form[-1, :-1]  # the sum of the coefficients stays 1
        return form[:-1, :-1] - np.outer(along, along) / form[-1, -1]  # type: ignore[no-any-return]


def solve_nu_svm(
    gram: NDArray[Any],
    sign: ArrayLike,
    ridge: ArrayLike,
    *,
    x0: ArrayLike | None = None,
    tol: float = 1e-9,
    max_iter: int = _MOST_STEPS,
    check_finite: bool = True,
) -> NuSVMResult:
    r"""Minimise a quadratic form over the unit simplex.

    .. math::

        \min_a \; \tfrac12 a^\top (Q + D) a \quad \text{subject to} \quad
        a \ge 0, \; \textstyle\sum_r a_r = 1

    with :math:`Q_{rq} = s_r s_q \langle \phi_r, \phi_q \rangle` and a diagonal :math:`D`. This is
    the dual of the squared hinge in nu-form, without an intercept, of costs :math:`1 / D_{rr}`:

    .. math::

        \min_{w, \rho} \; \tfrac12 \|w\|^2 - \rho
        + \tfrac12 \sum_r \frac{1}{D_{rr}} \bigl(\rho - s_r \langle w, \phi_r \rangle\bigr)_+^2

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Inner products of the rows' feature vectors: symmetric and positive semi-definite, in single
        or double precision. It is not copied if it is contiguous.
    sign : array-like of shape (n,)
        -1 or +1; they may all be the same.
    ridge : array-like of shape (n,) or float
        The diagonal of :math:`D`, positive.
    x0 : array-like of shape (n,), optional
        Where to start; only its direction counts.
    tol : float
        Largest gap at the end, in units of the objective.
    max_iter : int
        Most Newton steps.
    check_finite : bool
        Whether to look for NaN and infinity in the whole Gram matrix first.

    Returns
    -------
    NuSVMResult
        ``lower_bound`` is the objective minus the gap ``a'g - min(g)`` at the gradient
        ``g = (Q + D) a``, ``residual`` that gap in units of the objective, ``history`` the
        objective each time that more rows are let in.
    """
    check_limits(_NAME, tol, max_iter)
    blocks = BlockGram.of(checked_gram(_NAME, gram, check_finite=check_finite))
    return solved(FiniteNewton(blocks, sign, ridge), x0, tol, max_iter)


def solved(
    newton: "FiniteNewton", x0: ArrayLike | None, tol: float, max_iter: int = _MOST_STEPS
) -> NuSVMResult:
    """Return what Newton steps from a start come to."""
    started = perf_counter()
    with single_blas_thread():
        newton.begin(x0)
        status = newton.run(tol, max_iter)
    return newton.result(status, perf_counter() - started)


class FiniteNewton:
    """The problem over the cone, ``min z'(Q + D)z / 2 - sum(z)``, and the current point.

    Newton steps lower its primal, ``z'Qz / 2 + sum((1 - Qz)_+^2 / D) / 2``, in which ``z`` stands
    for the weights and need not be positive.
    """

    def __init__(
        self, gram: BlockGram, sign: ArrayLike, ridge: ArrayLike, systems: Any = None
    ) -> None:
        self.gram, self.n = gram, len(gram)
        self.sign = checked_signs(_NAME, sign, self.n)
        self.ridge = checked_array(_NAME, "ridge", ridge, (self.n,), spread=True)
        if (self.ridge <= 0.0).any():
            row = int(self.ridge.argmin())
            msg = f"{_NAME}: ridge must be positive. Got {self.ridge[row]} in row {row}."
            raise ValueError(msg)
        self.systems = self.shared(systems)
        self.z = np.zeros(self.n)
        self.margin = np.zeros(self.n)  # Q z
        self.active = np.empty(0, np.int64)
        self.n_iter = 0
        self.history: list[float] = []

    def shared(self, systems: Any) -> Any:
        """Return the systems of a similar problem if they fit, else new ones."""
        if isinstance(systems, Systems) and systems.fit(self.gram, self.ridge):
            return systems
        return Systems(self.gram.fixed, self.ridge)

    def begin(self, x0: ArrayLike | None) -> None:
        """Take the start, at its best length; with many rows, improve it by coordinate steps."""
        self.start(x0)
        if self.n > _SWEEP_ABOVE:
            self.sweep(_SWEEPS if x0 is None else _WARM_SWEEPS)
            self.inside = (self.z > 0.0) | (self.margin < 1.0)

    def start(self, x0: ArrayLike | None) -> None:
        """Take the start, at its best length."""
        self.inside = np.ones(self.n, bool)
        if x0 is not None:
            start = checked_array(_NAME, "x0", x0, (self.n,))
            if (start < 0.0).any():
                msg = (
                    f"{_NAME}: x0 must not be negative. Got {start.min()} in row {start.argmin()}."
                )
                raise ValueError(msg)
            if start.any():
                margin = self.times(start)
                length = start.sum() / (start @ margin + start @ (self.ridge * start))
                self.z, self.margin = length * start, length * margin

    def sweep(self, number: int) -> None:
        from bagwise.solvers.svm._nu_svm_kernels import fixed_steps, head_steps

        gram, decision = self.gram, self.sign * self.margin
        for _ in range(number):
            if self.relative_gap() <= _ROUGH:
                break
            head_steps(gram.head, gram.cross, self.sign, self.ridge, self.z, decision)
            for rows in short_slices(len(gram.fixed), 1e-9 * self.n):
                fixed_steps(
                    gram.fixed, gram.cross, self.sign, self.ridge,
                    rows.start, rows.stop, self.z, decision,
                )  # fmt: skip
            self.margin = self.sign * decision

    def times(self, z: Floats) -> Floats:
        """Return ``Q z``."""
        return self.sign * self.gram.times(self.sign * z)

    def value(self) -> float:
        """Return the objective at the point of the simplex."""
        return 0.5 * self.form() / float(self.z.sum()) ** 2

    def form(self) -> float:
        """Return ``z'(Q + D)z``, of which rounding may make no more than the first part 0."""
        return max(0.0, float(self.z @ self.margin)) + float(self.z @ (self.ridge * self.z))

    def relative_gap(self, rows: Booleans | None = None) -> float:
        """Return the gap of ``z``, over the simplex of some rows, in units of the value there.

        It is infinite if ``z`` is not in the cone.
        """
        slope = self.margin + self.ridge * self.z
        total, form = float(self.z.sum()), self.form()
        if form <= 0.0 or self.z.min() < 0.0:
            return np.inf
        least = float(slope.min() if rows is None else slope[rows].min())
        return 2.0 * (1.0 - total * least / form)

    def run(self, tol: float, max_iter: int) -> Status:
        """Solve for some of the rows, let in those whose conditions break, solve again."""
        while True:
            settled = self.descend(0.1 * tol, max_iter)
            self.settle()
            self.history.append(self.value())
            gap = self.relative_gap()
            missing = np.flatnonzero(~self.inside & (self.margin < 1.0))
            if not len(missing) or gap <= 0.1 * tol or not settled:
                break
            most = max(_SMALLEST_GROWTH, len(self.active) // 2)
            if len(missing) > most:
                missing = missing[np.argpartition(self.margin[missing], most)[:most]]
            self.inside[missing] = True
        if gap > max(tol, _ROUNDING) and self.n_iter < max_iter:
            self.nearest_point(tol)
            gap = self.relative_gap()
            self.history.append(self.value())
        if gap <= tol:
            return Status.CONVERGED
        return Status.MAX_ITER if self.n_iter >= max_iter else Status.STALLED

    def descend(self, tol: float, max_iter: int) -> bool:
        """Take Newton steps for the rows inside; return whether their minimum is reached."""
        primal = self.primal()
        while self.n_iter < max_iter:
            checkpoint()
            settled = self.step(np.flatnonzero(self.inside & (self.margin < 1.0)))
            self.n_iter += 1
            before, primal = primal, self.primal()
            if settled or self.relative_gap(self.inside) <= tol:
                return True
            if not primal < before:
                return self.relative_gap(self.inside) <= 10.0 * tol
        return False

    def primal(self) -> float:
        short = np.where(self.inside, np.maximum(1.0 - self.margin, 0.0), 0.0)
        return 0.5 * float(self.z @ self.margin + short @ (short / self.ridge))

    def step(self, active: Integers) -> bool:
        """Go towards the minimum for these active rows; return whether it is the minimum."""
        self.active = active
        goal, margin = self.minimum(active)
        if np.array_equal(np.flatnonzero(self.inside & (margin < 1.0)), active):
            self.z, self.margin = goal, margin
            return bool(goal.min() >= 0.0)
        length = self.line_search(goal - self.z, margin - self.margin)
        self.z = self.z + length * (goal - self.z)
        self.margin = self.margin + length * (margin - self.margin)
        return False

    def minimum(self, active: Integers) -> tuple[Floats, Floats]:
        """Return the point with ``(Q + D)z = 1`` on these rows and 0 elsewhere, and its margins."""
        sign, ridge = self.sign[active], self.ridge[active]
        system, goal = self.systems.of(self.gram, active), np.zeros(self.n)
        goal[active] = sign * system.solve(sign)
        if not np.isfinite(goal).all():  # singular, by rounding
            return self.z, self.margin
        margin = self.times(goal)
        off = 1.0 - margin[active] - ridge * goal[active]
        if isinstance(system, BorderedSystem) and np.abs(off).max() > _REFINE:
            goal[active] += sign * system.solve(sign * off)
            margin = self.times(goal)
        return goal, margin

    def line_search(self, way: Floats, gain: Floats) -> float:
        """Return the exact minimiser of the primal along ``z + t * way``.

        The slope is piecewise linear in ``t`` and increases; it bends where a row gets or loses
        its margin. ``gain`` is ``Q way``.
        """
        form, room = float(way @ gain), 1.0 - self.margin
        gain = np.where(self.inside, gain, 0.0)
        push, bend = gain * room / self.ridge, gain * gain / self.ridge
        active = room > 0.0
        turning = np.flatnonzero(np.where(active, gain > 0.0, gain < 0.0))
        at = room[turning] / gain[turning]
        order = np.argsort(at, kind="stable")
        turning, at = turning[order], at[order]
        leaves = np.where(active[turning], 1.0, -1.0)
        slope = float(self.margin @ way) - float(push[active].sum())
        bending = form + float(bend[active].sum())
        slopes = slope + np.concatenate([[0.0], np.cumsum(leaves * push[turning])])
        bendings = bending - np.concatenate([[0.0], np.cumsum(leaves * bend[turning])])
        beyond = np.flatnonzero(slopes[:-1] + bendings[:-1] * at >= 0.0)
        piece = int(beyond[0]) if len(beyond) else len(at)
        if slopes[piece] >= 0.0 or bendings[piece] <= 0.0:
            return 0.0 if piece == 0 or slopes[piece] >= 0.0 else float(at[piece - 1])
        length = -slopes[piece] / bendings[piece]
        low = at[piece - 1] if piece > 0 else 0.0
        return float(min(max(length, low), at[piece] if piece < len(at) else np.inf))

    def settle(self) -> None:
        """Where the point is not in the cone, go to the better of two that it suggests.

        These are the coefficients that its margins give, and its own without the negative ones.
        Where rounding leaves nothing of both, the shortest row is left.
        """
        if not (self.z < 0.0).any() and self.z.any():
            return
        short = np.where(self.inside, np.maximum(1.0 - self.margin, 0.0), 0.0)
        candidates = [short / self.ridge, np.maximum(self.z, 0.0)]
        candidates = [z for z in candidates if z.any()] or [self.shortest()]
        self.margin = self.times(candidates[0])
        self.z = candidates[0]
        if self.relative_gap() > _ROUGH and len(candidates) > 1:
            self.take_better(candidates[1])

    def shortest(self) -> Floats:
        z = np.zeros(self.n)
        z[int((self.gram.diagonal() + self.ridge).argmin())] = 1.0
        return z

    def take_better(self, z: Floats) -> None:
        """Go to another point of the cone if it is better.

        Gaps tell good points apart, where differences of the objective may be rounding. Far from
        the optimum the objective does.
        """
        here, gap, value = (self.z, self.margin), self.relative_gap(), self.value()
        self.z, self.margin = z, self.times(z)
        other = self.relative_gap()
        is_better = other < gap if min(other, gap) <= _ROUGH else self.value() < value
        if not is_better:
            self.z, self.margin = here

    def nearest_point(self, tol: float) -> None:
        """Find the minimum by adding one row after another, as long as few rows carry it.

        This is Wolfe's method (1976) for the point of a polytope that is nearest to 0. It solves
        for the rows that carry the point only. Newton steps solve for all rows short of
        their margin, which is hopeless if the ridge is lost in the rounding of many of them.
        """
        start = self.shortest()
        rows = np.flatnonzero(start)
        best, a, before = start, np.ones(1), np.inf
        for _ in range(_HULL_STEPS):
            checkpoint()
            z = np.zeros(self.n)
            z[rows] = a
            slope = self.times(z) + self.ridge * z
            level, new = float(z @ slope), int(slope.argmin())
            if not 0.0 < level < before:
                break
            best, before = z, level
            gap = 1.0 - float(slope[new]) / level
            if gap <= 0.1 * tol or new in rows or len(rows) > _HULL_ROWS:
                break
            place = int(np.searchsorted(rows, new))
            rows, a = self.shrink(np.insert(rows, place, new), np.insert(a, place, 0.0))
        self.take_better(best)
        if self.z is best:
            self.active = np.flatnonzero(best)

    def shrink(self, rows: Integers, a: Floats) -> tuple[Integers, Floats]:
        """Go towards the minimum in the plane of some rows, dropping those that come to 0."""
        while len(rows) > 1:
            sign = self.sign[rows]
            form = self.gram.some(rows) * np.outer(sign, sign)
            form[np.diag_indices(len(rows))] += self.ridge[rows]
            form += form.diagonal().max()  # changes no minimum on the simplex
            goal = lapack.dpotrs(cholesky(form), np.ones(len(rows)), lower=1)[0]
            goal /= goal.sum()
            falls = np.flatnonzero(goal <= 0.0)
            if not len(falls):
                return rows, goal
            lengths = a[falls] / (a[falls] - goal[falls])
            first = int(lengths.argmin())
            a = np.maximum(a + lengths[first] * (goal - a), 0.0)
            a[falls[first]] = 0.0
            rows, a = rows[a > 0.0], a[a > 0.0]
        return rows, np.ones(len(rows))

    def shortfall(self) -> float:
        """Return another bound of how far the objective may be above the minimum."""
        return np.inf

    def result(self, status: Status, solve_time: float) -> NuSVMResult:
        total = float(self.z.sum())
        a, margin = self.z / total, self.margin / total
        slope, rho = margin + self.ridge * a, 2.0 * self.value()
        gap = rho - float(slope.min())
        gap = min(gap, self.shortfall())
        return NuSVMResult(
            x=a,
            decision=self.sign * margin,
            rho=rho,
            objective=0.5 * rho,
            lower_bound=0.5 * rho - max(0.0, gap),
            residual=max(0.0, gap) / (0.5 * rho),
            status=status,
            n_iter=self.n_iter,
            history=np.array(self.history),
            solve_time=solve_time,
            _sign=self.sign,
            _active=self.active,
            _gram=self.gram,
            _systems=self.systems,
        )
