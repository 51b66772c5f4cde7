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

from bagwise._arrays import Floats, Integers
from bagwise._progress import report
from bagwise._threads import checkpoint, single_blas_thread
from bagwise.solvers._checks import check_limits, checked_array, checked_gram
from bagwise.solvers._result import Result, Status
from bagwise.solvers.svm._band import Band
from bagwise.solvers.svm._block_gram import BlockGram
from bagwise.solvers.svm._changing_system import ChangingSystem

_NAME = "solve_odm"  # in errors
_MOST_STEPS = 200
_ROUNDING = 1e-7  # largest error by the factor of another system, in units of the largest slack


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
    _system: ChangingSystem = field(repr=False)

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
    gram: NDArray[Any] | BlockGram,
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    theta: float = 0.2,
    nu: float = 0.2,
    decision0: ArrayLike | None = None,
    like: ODMResult | None = None,
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
    gram : ndarray of shape (n, n), or BlockGram
        Inner products of the rows: symmetric and positive semi-definite, in single or double
        precision. It is not copied if it is contiguous. Blocks are not checked.
    sign : array-like of shape (n,)
        -1 or +1; they may all be the same.
    cost : array-like of shape (n,) or float
        Costs, not negative. A row of cost 0 takes no part.
    theta : float
        Half the width of the band, from 0 to below 1.
    nu : float
        What a margin above the band costs, in units of one below; positive.
    decision0 : array-like of shape (n,), optional
        Decision values of these rows in a similar problem. The first step goes to the minimum for
        the rows that they put below and above the band.
    like : ODMResult, optional
        Result of a similar problem. If the fixed rows of the Gram matrix, which must be the same
        array, were outside the band on the same side there, and at the same costs, a factor of
        their inner products serves again. Without ``decision0`` its decision values are the start.
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
    blocks = gram
    if not isinstance(blocks, BlockGram):
        blocks = BlockGram.of(checked_gram(_NAME, gram, check_finite=check_finite))
    band = Band(_NAME, sign, cost, theta, nu, len(blocks))
    near = None if decision0 is None else checked_array(_NAME, "decision0", decision0, (band.n,))
    return _solve(_FiniteNewton(blocks, band), near, like, tol, max_iter)


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
    max_iter : int
        Most Newton steps.
    """

    sign: ArrayLike
    cost: ArrayLike
    theta: float
    nu: float
    tol: float = 1e-9
    max_iter: int = _MOST_STEPS

    def solve(self, gram: BlockGram, like: Any, tol: float = 0.0) -> ODMResult:
        """Solve for a Gram matrix of the rows, starting from the solution of a similar one."""
        del tol  # the last Newton step is exact
        band = Band(_NAME, self.sign, self.cost, self.theta, self.nu, len(gram))
        before = like if isinstance(like, ODMResult) else None
        return _solve(_FiniteNewton(gram, band), None, before, self.tol, self.max_iter)


def _solve(
    newton: "_FiniteNewton",
    near: Floats | None,
    like: ODMResult | None,
    tol: float,
    max_iter: int,
) -> ODMResult:
    started = perf_counter()
    with single_blas_thread():
        if like is not None:
            newton.system = like._system
            near = like.decision if near is None else near
        status = newton.run(near, tol, max_iter)
        return newton.result(status, perf_counter() - started)


class _FiniteNewton:
    """The problem and the current point: coefficients ``b`` of the rows and ``f = K b``."""

    def __init__(self, gram: BlockGram, band: Band) -> None:
        self.gram, self.band, self.n = gram, band, len(gram)
        self.b, self.f = np.zeros(self.n), np.zeros(self.n)
        self.system: ChangingSystem | None = None
        self.n_iter = 0
        self.history: list[float] = []

    def run(self, near: Floats | None, tol: float, max_iter: int) -> Status:
        """Take Newton steps until the right rows are below and above the band.

        The first step from given decision values is a full one: nothing is known of where it
        begins.
        """
        self.aim(self.f if near is None else near)
        settled = near is not None and max_iter > 0 and self.jump()
        self.evaluate()
        self.history.append(self.value)
        while not settled and self.n_iter < max_iter:
            checkpoint()
            if self.n_iter:
                self.aim(self.f)
            settled = self.step()
            before = self.value
            self.evaluate()
            self.history.append(min(self.value, before))
            report("step", self.n_iter, objective=self.value, gap=self.relative_gap, goal=tol)
            if self.relative_gap <= 0.01 * tol or not self.value < before:
                break
        if self.relative_gap <= tol:
            return Status.CONVERGED
        return Status.MAX_ITER if self.n_iter >= max_iter else Status.STALLED

    def evaluate(self) -> None:
        """Compute the values of the primal and the dual at the current point."""
        half_norm = 0.5 * float(self.b @ self.f)
        self.value = half_norm + self.band.loss(self.f)
        self.dual = self.band.conjugate(self.b) - half_norm

    @property
    def relative_gap(self) -> float:
        """The gap in units of the value."""
        return max(0.0, self.value - self.dual) / max(abs(self.value), 1e-300)

    def aim(self, f: Floats) -> None:
        """Compute the goal: the minimum for the rows that are below and above the band at ``f``."""
        band = self.band
        self.below, self.above = band.sides(f)
        self.active = np.flatnonzero(self.below | self.above)
        weight = band.bend(self.below, self.above)
        ridge = np.divide(1.0, weight, out=np.zeros(self.n), where=weight > 0.0)
        target = band.sign * np.where(self.above, band.high, band.low)
        self.system = ChangingSystem(self.gram, ridge, self.active, self.system)
        with np.errstate(over="ignore", invalid="ignore"):  # of a system that is next to singular
            error = self.reach(target, ridge)
        if self.system.is_shared and not error <= _ROUNDING:  # NaN too
            self.system = ChangingSystem(self.gram, ridge, self.active)
            self.reach(target, ridge)

    def reach(self, target: Floats, ridge: Floats) -> float:
        """Solve the system; return the largest error of a row, in units of the largest slack."""
        assert self.system is not None
        self.goal_b = np.zeros(self.n)
        self.goal_b[self.active] = self.system.solve(target[self.active])
        self.goal_f = self.gram.times(self.goal_b)
        slack = ridge * self.goal_b
        error = (self.goal_f + slack - target)[self.active]
        return float(np.abs(error).max(initial=0.0) / max(np.abs(slack).max(initial=0.0), 1e-300))

    def jump(self) -> bool:
        """Go to the goal; return whether it is the minimum."""
        self.n_iter += 1
        self.b, self.f = self.goal_b, self.goal_f
        below, above = self.band.sides(self.f)
        return np.array_equal(below, self.below) and np.array_equal(above, self.above)

    def step(self) -> bool:
        """Go towards the goal as far as the value falls; return whether it is the minimum."""
        b, f = self.b, self.f
        if self.jump():
            return True
        way, gain = self.goal_b - b, self.goal_f - f
        length = self.band.line_search(f, gain, start=float(b @ gain), form=float(way @ gain))
        self.b, self.f = b + length * way, f + length * gain
        return False

    def result(self, status: Status, solve_time: float) -> ODMResult:
        assert self.system is not None
        return ODMResult(
            x=self.b,
            decision=self.f,
            objective=self.value,
            lower_bound=self.dual,
            residual=self.relative_gap,
            status=status,
            n_iter=self.n_iter,
            history=np.array(self.history),
            solve_time=solve_time,
            _gram=self.gram,
            _active=self.active,
            _system=self.system,
        )
