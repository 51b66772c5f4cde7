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
from scipy.linalg import lapack, solve_triangular

from bagwise._threads import checkpoint, ordered_map
from bagwise.solvers._checks import checked_gram, checked_rows
from bagwise.solvers._result import Result, Status

_SLICE_SECONDS = 0.02
_JITTERS = (0.0, 1e-15, 1e-13, 1e-11, 1e-9)  # relative to the largest diagonal entry
_SWEEP_ABOVE = 300  # rows from which on coordinate steps guess the active rows faster
_SWEEPS = 20
_SMALLEST_GROWTH = 50
_ROUGH = 0.05  # relative gap at which the guess is good enough


@dataclass(frozen=True, kw_only=True, eq=False)
class SimplexDualResult(Result):
    """Minimum over the simplex: ``x`` holds the factors ``a``, not negative and of sum 1.

    It is also an `InnerSolution` of `generate_assignments`.

    Parameters
    ----------
    decision : ndarray of float
        ``gram @ (sign * a)``, the decision function on the rows.
    rho : float
        The margin: ``sign * decision + ridge * a`` in every row of positive ``a``, at least
        that in the others.
    """

    decision: NDArray[np.float64]
    rho: float
    _sign: NDArray[np.float64] = field(repr=False)
    _active: NDArray[np.int64] = field(repr=False)
    _factor: NDArray[np.float64] = field(repr=False)

    @property
    def b(self) -> NDArray[np.float64]:
        """The signed factors ``sign * a``."""
        return self._sign * self.x

    @property
    def value(self) -> float:
        """The problem as a maximum: minus the objective."""
        return -self.objective

    @property
    def error(self) -> float:
        """How far the maximum is above `value` at most."""
        return max(0.0, self.gap)

    def curvature(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the second derivatives of the maximum along changes of the Gram matrix.

        Parameters
        ----------
        rows : ndarray of shape (n_directions, n)
            ``K_k @ b`` for each direction ``K_k`` in which the Gram matrix may change.
        """
        chosen = (rows[:, self._active] * self._sign[self._active]).T
        bent = solve_triangular(self._factor, chosen, lower=True, check_finite=False)
        one = solve_triangular(
            self._factor, np.ones(len(self._active)), lower=True, check_finite=False
        )
        along = one @ bent  # the sum of the factors stays 1
        return bent.T @ bent - np.outer(along, along) / (one @ one)  # type: ignore[no-any-return]


def solve_simplex_dual(
    gram: NDArray[Any],
    sign: ArrayLike,
    ridge: ArrayLike,
    *,
    x0: ArrayLike | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
    check_finite: bool = True,
) -> SimplexDualResult:
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
        Inner products of the rows' images: symmetric and positive semi-definite, in single or
        double precision. It is not copied if it is contiguous.
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
    SimplexDualResult
        ``lower_bound`` is the objective minus the gap ``a'g - min(g)`` at the gradient
        ``g = (Q + D) a``, ``residual`` that gap in units of the objective, ``history`` the
        objective each time that more rows are let in.
    """
    started = perf_counter()
    newton = _FiniteNewton(checked_gram(gram, check_finite=check_finite), sign, ridge)
    newton.begin(x0)
    # One BLAS thread, so that the bits of the answer do not depend on the number of threads.
    [status] = ordered_map(lambda _: newton.run(tol, max_iter), [None], n_threads=1)
    return newton.result(status, perf_counter() - started)


@dataclass(frozen=True)
class SimplexDualInner:
    """The inner problem of KI-SVM for `generate_assignments`: `solve_simplex_dual`.

    Parameters
    ----------
    sign : ndarray of shape (n,)
        Signs of the rows: those of the bags to choose in, then the fixed ones.
    ridge : ndarray of shape (n,) or float
        One over the costs of the rows.
    tol : float
        Largest relative gap of a solution.
    """

    sign: ArrayLike
    ridge: ArrayLike
    tol: float = 1e-9

    def solve(
        self, gram: NDArray[np.float64], start: NDArray[np.float64] | None
    ) -> SimplexDualResult:
        """Solve for a Gram matrix of the rows, from the signed factors of a similar one."""
        x0 = None if start is None else np.abs(start)
        return solve_simplex_dual(
            gram, self.sign, self.ridge, x0=x0, tol=self.tol, check_finite=False
        )


class _FiniteNewton:
    """The problem over the cone, ``min z'(Q + D)z / 2 - sum(z)``, and the current point.

    Newton steps lower its primal, ``z'Qz / 2 + sum((1 - Qz)_+^2 / D) / 2``, in which ``z`` stands
    for the weights and need not be positive.
    """

    def __init__(self, gram: NDArray[Any], sign: ArrayLike, ridge: ArrayLike) -> None:
        self.gram, self.n = gram, len(gram)
        self.sign = checked_rows("sign", sign, self.n)
        if not np.isin(self.sign, (-1.0, 1.0)).all():
            msg = f"sign must hold -1 and +1 only. Got {np.unique(self.sign)[:4]}."
            raise ValueError(msg)
        self.ridge = checked_rows("ridge", ridge, self.n, spread=True)
        if (self.ridge <= 0.0).any():
            row = int(self.ridge.argmin())
            msg = f"ridge must be positive. Got {self.ridge[row]} in row {row}."
            raise ValueError(msg)
        self.z = np.zeros(self.n)
        self.margin = np.zeros(self.n)  # Q z
        self.n_iter = 0
        self.history: list[float] = []

    def begin(self, x0: ArrayLike | None) -> None:
        """Take the start, at its best length; with many rows, improve it by coordinate steps."""
        if x0 is not None:
            start = checked_rows("x0", x0, self.n)
            if (start < 0.0).any():
                msg = f"x0 must not be negative. Got {start.min()} in row {start.argmin()}."
                raise ValueError(msg)
            if start.any():
                margin = self.times(start)
                length = start.sum() / (start @ margin + start @ (self.ridge * start))
                self.z, self.margin = length * start, length * margin
        if self.n > _SWEEP_ABOVE:
            self.sweep()
        self.inside = self.z > 0.0 if self.n > _SWEEP_ABOVE else np.ones(self.n, bool)

    def sweep(self) -> None:
        from bagwise.solvers._simplex_dual_kernels import coordinate_steps

        decision = self.sign * self.margin
        rows = max(1, int(_SLICE_SECONDS * 1e9 / self.n))
        for _ in range(_SWEEPS):
            for first in range(0, self.n, rows):
                checkpoint()
                last = min(first + rows, self.n)
                coordinate_steps(self.gram, self.sign, self.ridge, first, last, self.z, decision)
            self.margin = self.sign * decision
            if self.relative_gap() <= _ROUGH:
                break

    def times(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``Q z``, summed in double precision."""
        from bagwise.solvers._simplex_dual_kernels import add_rows

        out = np.zeros(self.n)
        rows = np.flatnonzero(z)
        factor = self.sign[rows] * z[rows]
        per_slice = 4 * max(1, int(_SLICE_SECONDS * 2.5e8 / self.n))
        for first in range(0, len(rows), per_slice):
            checkpoint()
            piece = slice(first, first + per_slice)
            add_rows(self.gram, rows[piece], factor[piece], out)
        out *= self.sign
        return out

    def relative_gap(self, rows: NDArray[np.bool_] | None = None) -> float:
        """Return the gap of ``z``, over the simplex of some rows, in units of the value there.

        It is infinite if ``z`` is not in the cone.
        """
        slope = self.margin + self.ridge * self.z
        total, form = float(self.z.sum()), float(self.z @ slope)
        if form <= 0.0 or self.z.min() < 0.0:
            return np.inf
        least = float(slope.min() if rows is None else slope[rows].min())
        return 2.0 * (1.0 - total * least / form)

    def run(self, tol: float, max_iter: int) -> Status:
        """Solve for some of the rows, let in those whose conditions break, solve again."""
        while True:
            settled = self.descend(0.1 * tol, max_iter)
            self.settle()
            total = float(self.z.sum())
            self.history.append(
                0.5 * float(self.z @ (self.margin + self.ridge * self.z)) / total**2
            )
            gap = self.relative_gap()
            missing = np.flatnonzero(~self.inside & (self.margin < 1.0))
            if not len(missing) or gap <= 0.1 * tol or not settled:
                break
            most = max(_SMALLEST_GROWTH, len(self.active) // 2)
            if len(missing) > most:
                missing = missing[np.argpartition(self.margin[missing], most)[:most]]
            self.inside[missing] = True
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

    def step(self, active: NDArray[np.int64]) -> bool:
        """Go towards the minimum for these active rows; return whether it is the minimum."""
        self.active, self.factor = active, self.factorise(active)
        goal = np.zeros(self.n)
        if len(active):
            goal[active] = lapack.dpotrs(self.factor, np.ones(len(active)), lower=1)[0]
        margin = self.times(goal)
        if np.array_equal(np.flatnonzero(self.inside & (margin < 1.0)), active):
            self.z, self.margin = goal, margin
            return bool(goal.min() >= 0.0)
        length = self.line_search(goal - self.z, margin - self.margin)
        self.z = self.z + length * (goal - self.z)
        self.margin = self.margin + length * (margin - self.margin)
        return False

    def factorise(self, active: NDArray[np.int64]) -> NDArray[np.float64]:
        from bagwise.solvers._simplex_dual_kernels import gather_form

        k = len(active)
        if k == 0:  # the step is to 0
            return np.empty((0, 0))
        block = np.empty((k, k))
        gather_form(self.gram, self.sign, self.ridge, active, block)
        scale = float(block.diagonal().max())
        for jitter in _JITTERS:
            matrix = block.copy() if jitter else block
            matrix.flat[:: k + 1] += jitter * scale
            factor, info = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=0)
            if info == 0:
                return factor  # type: ignore[no-any-return]
        msg = "gram must be positive semi-definite, and no rounding can explain how it is not."
        raise ValueError(msg)

    def line_search(self, way: NDArray[np.float64], gain: NDArray[np.float64]) -> float:
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
        """Where the point is not in the cone, go to the factors that its margins give."""
        if (self.z < 0.0).any():
            short = np.where(self.inside, np.maximum(1.0 - self.margin, 0.0), 0.0)
            self.z = short / self.ridge
            self.margin = self.times(self.z)

    def result(self, status: Status, solve_time: float) -> SimplexDualResult:
        total = float(self.z.sum())
        a, margin = self.z / total, self.margin / total
        slope = margin + self.ridge * a
        rho = float(a @ slope)
        gap = rho - float(slope.min())
        return SimplexDualResult(
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
            _factor=self.factor,
        )


def minimize_on_simplex(
    quadratic: NDArray[np.float64], linear: NDArray[np.float64], start: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Minimise ``x'Mx / 2 + c'x`` over the unit simplex, for a handful of variables.

    A primal active-set method from a point of the simplex. A positive semi-definite matrix gets a
    ridge of 1e-12 of its largest diagonal entry.
    """
    k = len(linear)
    scale = max(float(quadratic.diagonal().max()), float(np.abs(linear).max()), 1e-300)
    matrix = quadratic + 1e-12 * scale * np.eye(k)
    x, support = start.copy(), start > 0.0
    for _ in range(20 * k + 20):
        rows = np.flatnonzero(support)
        goal, level = _equality_minimum(matrix[np.ix_(rows, rows)], linear[rows])
        step = goal - x[rows]
        falls = np.flatnonzero(goal <= 0.0)
        if len(falls):
            lengths = x[rows[falls]] / -step[falls]
            first = int(lengths.argmin())
            if lengths[first] < 1.0:
                x[rows] = np.maximum(x[rows] + lengths[first] * step, 0.0)
                x[rows[falls[first]]] = 0.0
                support[rows[falls[first]]] = False
                continue
        x[rows] = goal
        slope = matrix @ x + linear - level
        slope[support] = 0.0
        if slope.min() >= -1e-14 * scale:
            break
        support[int(slope.argmin())] = True
    x = np.maximum(x, 0.0)
    return x / x.sum()  # type: ignore[no-any-return]


def _equality_minimum(
    matrix: NDArray[np.float64], linear: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Minimise with the sum kept at 1 and no bounds; return the point and the level of slopes."""
    n = len(linear)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = matrix
    system[n, n] = 0.0
    solved = np.linalg.solve(system, np.append(-linear, 1.0))
    return solved[:n], -float(solved[n])
