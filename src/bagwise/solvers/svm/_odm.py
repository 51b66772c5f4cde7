"""Optimal margin distribution machines: margins within a band, by finite Newton steps.

The loss of a margin is a square below the band, another one above it and 0 inside. It is
continuously differentiable and piecewise quadratic: a Newton step is exact as soon as the rows
below and above the band are the right ones (Mangasarian 2002).
"""

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._threads import checkpoint, single_blas_thread
from bagwise.solvers._checks import check_limits, checked_array, checked_gram, checked_signs
from bagwise.solvers._result import Result, Status
from bagwise.solvers.svm._block_gram import BlockGram, DenseSystem

_NAME = "solve_odm"  # in errors
_MOST_STEPS = 200
_LINE_STEPS = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class ODMResult(Result):
    """An optimal margin distribution machine: ``x`` holds the coefficients of the rows.

    It is also an `InnerSolution` of `generate_assignments`.

    Parameters
    ----------
    decision : ndarray of float
        ``gram @ x``, the decision function on the rows.
    """

    decision: Floats
    _gram: BlockGram = field(repr=False)
    _active: Integers = field(repr=False)
    _system: DenseSystem = field(repr=False)

    @property
    def b(self) -> Floats:
        """The coefficients."""
        return self.x

    @property
    def value(self) -> float:
        """The problem as a maximum: the value of the dual."""
        return self.lower_bound

    @property
    def error(self) -> float:
        """How far the maximum is above `value` at most."""
        return max(0.0, self.gap)

    def curvature(self, rows: Floats) -> Floats:
        """Return the second derivatives of the maximum along changes of the Gram matrix.

        Parameters
        ----------
        rows : ndarray of shape (n_directions, n)
            ``K_k @ x`` for each direction ``K_k`` in which the Gram matrix may change.
        """
        return self._system.form(rows[:, self._active].T)


def solve_odm(
    gram: NDArray[Any],
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    theta: float = 0.2,
    nu: float = 0.2,
    x0: ArrayLike | None = None,
    tol: float = 1e-9,
    max_iter: int = _MOST_STEPS,
    check_finite: bool = True,
) -> ODMResult:
    r"""Train a machine whose margins lie in a band around 1.

    The problem, for rows :math:`r` with feature vectors :math:`\phi_r`, signs :math:`s_r`, costs
    :math:`c_r` and margins :math:`m_r = s_r \langle w, \phi_r \rangle`, is

    .. math::

        \min_w \; \tfrac12 \|w\|^2 + \sum_r c_r \bigl[ (1 - \theta - m_r)_+^2
        + \nu (m_r - 1 - \theta)_+^2 \bigr]

    There is no intercept; a constant added to the Gram matrix makes one, which is penalised. With
    :math:`w = \sum_r s_r \alpha_r \phi_r` and :math:`\alpha = u - v`, :math:`u, v \ge 0`, the dual
    is

    .. math::

        \max_{\alpha} \; (1 - \theta) \sum_r u_r - (1 + \theta) \sum_r v_r
        - \sum_r \frac{u_r^2}{4 c_r} - \sum_r \frac{v_r^2}{4 \nu c_r} - \tfrac12 \|w\|^2

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Inner products of the rows: symmetric and positive semi-definite, in single or double
        precision. It is not copied if it is contiguous.
    sign : array-like of shape (n,)
        -1 or +1; they may all be the same.
    cost : array-like of shape (n,) or float
        Costs, not negative. A row of cost 0 takes no part.
    theta : float
        Half the width of the band, from 0 to below 1.
    nu : float
        What a margin above the band costs, in units of one below; positive.
    x0 : array-like of shape (n,), optional
        Where to start: coefficients :math:`s_r \alpha_r` of a similar problem.
    tol : float
        Largest gap at the end, in units of the objective.
    max_iter : int
        Most Newton steps.
    check_finite : bool
        Whether to look for NaN and infinity in the whole Gram matrix first.

    Returns
    -------
    ODMResult
        ``objective`` is the value of the primal, ``lower_bound`` that of the dual, ``residual`` the
        gap in units of the objective, ``history`` the primal over the steps, which never rises.
    """
    check_limits(_NAME, tol, max_iter)
    blocks = BlockGram.of(checked_gram(_NAME, gram, check_finite=check_finite))
    return _solve(_FiniteNewton(blocks, sign, cost, theta, nu), x0, tol, max_iter)


@dataclass(frozen=True)
class ODMInner:
    """The inner problem of MI-ODM for `generate_assignments`: `solve_odm`.

    Parameters
    ----------
    sign, cost : ndarray of shape (n,)
        Of the rows: those of the bags to choose in, then the fixed ones.
    theta, nu : float
        The band, and what lies above it.
    tol : float
        Largest relative gap of a solution.
    """

    sign: ArrayLike
    cost: ArrayLike
    theta: float
    nu: float
    tol: float = 1e-9

    def solve(self, gram: BlockGram, like: Any) -> ODMResult:
        """Solve for a Gram matrix of the rows, starting from the solution of a similar one."""
        newton = _FiniteNewton(gram, self.sign, self.cost, self.theta, self.nu)
        return _solve(
            newton, like.x if isinstance(like, ODMResult) else None, self.tol, _MOST_STEPS
        )


def _solve(newton: "_FiniteNewton", x0: ArrayLike | None, tol: float, max_iter: int) -> ODMResult:
    started = perf_counter()
    with single_blas_thread():
        newton.begin(x0)
        status = newton.run(tol, max_iter)
        return newton.result(status, perf_counter() - started)


class _FiniteNewton:
    """The problem and the current point: coefficients ``b`` of the rows and ``f = K b``."""

    def __init__(
        self, gram: BlockGram, sign: ArrayLike, cost: ArrayLike, theta: float, nu: float
    ) -> None:
        self.gram, self.n = gram, len(gram)
        self.sign = checked_signs(_NAME, sign, self.n)
        self.cost = checked_array(_NAME, "cost", cost, (self.n,), spread=True)
        for name, value, valid in (
            ("cost", float(self.cost.min()), "not negative"),
            ("theta", theta, "at least 0 and below 1"),
            ("nu", nu, "positive"),
        ):
            is_bad = value < 0.0 or (name == "theta" and value >= 1.0)
            if is_bad or (name == "nu" and value <= 0.0) or not np.isfinite(value):
                msg = f"{_NAME}: {name} must be {valid}. Got {value:g}."
                raise ValueError(msg)
        self.low, self.high, self.nu = 1.0 - theta, 1.0 + theta, nu
        self.b, self.f = np.zeros(self.n), np.zeros(self.n)
        self.n_iter = 0
        self.history: list[float] = []

    def begin(self, x0: ArrayLike | None) -> None:
        if x0 is not None:
            start = checked_array(_NAME, "x0", x0, (self.n,))
            self.b = np.where(self.cost > 0.0, start, 0.0)
            self.f = self.gram.times(self.b)

    def sides(self, f: Floats) -> tuple[Booleans, Booleans]:
        """Return which rows are below and which above the band."""
        margin, used = self.sign * f, self.cost > 0.0
        return (margin < self.low) & used, (margin > self.high) & used

    def primal(self, b: Floats, f: Floats) -> float:
        margin = self.sign * f
        below, above = np.maximum(self.low - margin, 0.0), np.maximum(margin - self.high, 0.0)
        loss = self.cost @ (below**2 + self.nu * above**2)
        return 0.5 * float(b @ f) + float(loss)

    def dual(self) -> float:
        used = self.cost > 0.0
        alpha, cost = (self.sign * self.b)[used], self.cost[used]
        up, down = np.maximum(alpha, 0.0), np.maximum(-alpha, 0.0)
        value = self.low * up - self.high * down - up**2 / (4.0 * cost)
        value -= down**2 / (4.0 * self.nu * cost)
        return float(value.sum()) - 0.5 * float(self.b @ self.f)

    def run(self, tol: float, max_iter: int) -> Status:
        """Take Newton steps until the right rows are below and above the band."""
        value = self.primal(self.b, self.f)
        self.history.append(value)
        self.system = self.goal(*self.sides(self.f))
        while self.n_iter < max_iter:
            checkpoint()
            if self.n_iter:
                self.system = self.goal(*self.sides(self.f))
            self.n_iter += 1
            settled = self.step()
            before, value = value, self.primal(self.b, self.f)
            self.history.append(min(value, before))
            if settled or self.relative_gap() <= 0.01 * tol or not value < before:
                break
        if self.relative_gap() <= tol:
            return Status.CONVERGED
        return Status.MAX_ITER if self.n_iter >= max_iter else Status.STALLED

    def relative_gap(self) -> float:
        value = self.primal(self.b, self.f)
        return (value - self.dual()) / max(abs(value), 1e-300)

    def goal(self, below: Booleans, above: Booleans) -> DenseSystem:
        """Note the minimum for these rows below and above the band; return its system."""
        self.below, self.above = below, above
        self.active = np.flatnonzero(below | above)
        weight = 2.0 * self.cost * np.where(above, self.nu, 1.0)
        ridge = np.divide(1.0, weight, out=np.zeros(self.n), where=self.cost > 0.0)
        system = DenseSystem(self.gram, ridge, self.active)
        target = self.sign * np.where(above, self.high, self.low)
        self.goal_b = np.zeros(self.n)
        self.goal_b[self.active] = system.solve(target[self.active])
        self.goal_f = self.gram.times(self.goal_b)
        return system

    def step(self) -> bool:
        """Go towards the goal; return whether it is the minimum."""
        below, above = self.sides(self.goal_f)
        if np.array_equal(below, self.below) and np.array_equal(above, self.above):
            self.b, self.f = self.goal_b, self.goal_f
            return True
        way, gain = self.goal_b - self.b, self.goal_f - self.f
        length = self.line_search(way, gain)
        self.b = self.b + length * way
        self.f = self.f + length * gain
        return False

    def line_search(self, way: Floats, gain: Floats) -> float:
        """Return the minimiser of the primal along ``b + t * way``, where ``gain`` is ``K way``.

        The slope is piecewise linear in ``t`` and increases, so that Newton steps between bounds
        find where it is 0.
        """
        form, start = float(way @ gain), float(self.b @ gain)
        margin, change = self.sign * self.f, self.sign * gain
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(_LINE_STEPS):
            here = margin + t * change
            below, above = here < self.low, here > self.high
            weight = 2.0 * self.cost * (below + self.nu * above)
            off = here - np.where(below, self.low, self.high)
            slope = start + t * form + float(weight @ (off * change))
            bend = form + float(weight @ (change * change))
            low, high = (t, high) if slope < 0.0 else (low, t)
            if bend <= 0.0 or slope == 0.0:
                break
            new = t - slope / bend
            if not low < new < high:
                new = 0.5 * (low + high) if np.isfinite(high) else 2.0 * t
            if abs(new - t) <= 1e-15 * max(1.0, t):
                break
            t = new
        return t

    def result(self, status: Status, solve_time: float) -> ODMResult:
        value, dual = self.primal(self.b, self.f), self.dual()
        return ODMResult(
            x=self.b,
            decision=self.f,
            objective=value,
            lower_bound=dual,
            residual=max(0.0, value - dual) / max(abs(value), 1e-300),
            status=status,
            n_iter=self.n_iter,
            history=np.array(self.history),
            solve_time=solve_time,
            _gram=self.gram,
            _active=self.active,
            _system=self.system,
        )
