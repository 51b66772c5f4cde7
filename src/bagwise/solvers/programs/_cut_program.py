"""The small quadratic programme of cutting planes: a few planes, a few rows, by active sets."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats
from bagwise.exceptions import SolverError
from bagwise.solvers.programs._conic import solve_qp

_RIDGE = 1e-12
_ROUNDING = 1e-12  # of the terms of a slope: what they add up to counts as 0 below this


class SideConstraints(Protocol):
    """A convex set that the weights must lie in, described by its linear inequalities."""

    def violated(self, w: Floats) -> tuple[Floats, float] | None:
        """Return an inequality ``row . w <= right`` that ``w`` breaks most, None if there is none.

        A breach by less than rounding, or by less than the caller can see, need not be reported.
        """

    def project(self, w: Floats) -> Floats:
        """Return the nearest member of the set."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramPoint:
    """Minimum of ``1/2 |w|^2 + C max(0, planes at w)`` inside the side constraints.

    Parameters
    ----------
    w : ndarray of shape (n_weights,)
        The minimiser.
    level : float
        ``max(0, planes at w)``.
    bound : float
        The dual value: no point of the programme is below it.
    multiplier : ndarray of shape (n_planes,)
        Multipliers of the planes, not negative and of sum ``C`` at most.
    """

    w: Floats
    level: float
    bound: float
    multiplier: Floats


class CutProgram:
    """Planes ``offset + slope @ w`` below a convex function, and the minimum over their maximum.

    The dual has one variable for each plane and for each side row that was ever broken: a handful,
    whatever the number of weights. Each solve starts from the solution of the one before.
    """

    def __init__(self, n_weights: int, C: float, side: SideConstraints | None = None) -> None:
        self._C, self._side = float(C), side
        self._planes = np.empty((0, n_weights))
        self._offsets = np.empty(0)
        self._rows = np.empty((0, n_weights))
        self._rights = np.empty(0)
        self._gram = np.zeros((1, 1))  # planes, side rows, and a plane that is 0 at the end
        self._x = np.array([self._C])

    @property
    def n_planes(self) -> int:
        """Number of planes."""
        return len(self._offsets)

    def add_plane(self, slope: Floats, offset: float) -> None:
        """Take in a plane, and with it a dual variable that is 0."""
        n = self.n_planes
        self._insert(n, slope)
        self._planes = np.vstack([self._planes, slope])
        self._offsets = np.append(self._offsets, offset)

    def replace_planes(self, slopes: Floats, offsets: Floats) -> None:
        """Exchange all planes for others, as many."""
        n = self.n_planes
        self._planes, self._offsets = slopes, offsets
        vectors = np.vstack([slopes, self._rows])
        self._gram[:n, :-1] = slopes @ vectors.T
        self._gram[:-1, :n] = self._gram[:n, :-1].T

    def height(self, w: Floats) -> float:
        """Return ``max(0, planes at w)``."""
        return float((self._offsets + self._planes @ w).max(initial=0.0))

    def solve(self) -> ProgramPoint:
        """Return the minimum over the planes so far."""
        while True:
            w = self._minimize()
            broken = None if self._side is None else self._side.violated(w)
            if broken is None:
                break
            row, right = broken
            if (self._rows == row).all(axis=1).any():  # kept, up to rounding
                break
            self._insert(self.n_planes + len(self._rights), row)
            self._rows = np.vstack([self._rows, row])
            self._rights = np.append(self._rights, right)
        n, x = self.n_planes, self._x
        bound = float(self._offsets @ x[:n]) - float(self._rights @ x[n:-1])
        bound -= 0.5 * float(x @ self._gram @ x)
        if self._side is not None:
            w = self._side.project(w)
        return ProgramPoint(w=w, level=self.height(w), bound=bound, multiplier=x[:n].copy())

    def _minimize(self) -> Floats:
        n = self.n_planes
        linear = np.concatenate([-self._offsets, self._rights, [0.0]])
        capped = np.ones(len(linear), bool)
        capped[n:-1] = False
        self._x = _active_set(self._gram, linear, capped, self._C, self._x)
        w: Floats = -(self._x[:n] @ self._planes) - self._x[n:-1] @ self._rows
        return w

    def _insert(self, at: int, vector: Floats) -> None:
        """Make room in the Gram matrix for a vector that comes to stand at a place."""
        n = len(self._gram)
        products = np.concatenate([self._planes @ vector, self._rows @ vector, [0.0]])
        gram = np.empty((n + 1, n + 1))
        keep = np.delete(np.arange(n + 1), at)
        gram[np.ix_(keep, keep)] = self._gram
        gram[at, keep] = gram[keep, at] = products
        gram[at, at] = vector @ vector
        self._gram = gram
        self._x = np.insert(self._x, at, 0.0)


def _active_set(
    quadratic: Floats, linear: Floats, capped: Booleans, total: float, start: Floats
) -> Floats:
    """Minimise ``x'Mx / 2 + c'x`` over ``x >= 0`` whose capped entries add up to ``total``.

    A primal active-set method from a feasible point. The matrix may be singular: it gets a ridge
    that changes the minimum by less than rounding does. Should the active sets lead nowhere,
    clarabel takes over.
    """
    scale = float(np.abs(linear).max()) or 1.0
    # In units in which the diagonal is 1 the systems below keep their digits.
    unit = 1.0 / np.sqrt(quadratic.diagonal() + np.where(capped, scale / total, 0.0))
    matrix = unit[:, None] * quadratic * unit
    matrix.flat[:: len(matrix) + 1] += _RIDGE
    cost, share = unit * linear, np.where(capped, unit, 0.0)
    x, support = start / unit, start > 0.0
    entered = -1
    for _ in range(20 * len(x) + 20):
        active = np.flatnonzero(support)
        try:
            goal, level = _on_support(matrix, cost, share, total, active)
        except np.linalg.LinAlgError:
            break
        falls = np.flatnonzero(goal < 0.0)
        if len(falls):
            lengths = x[active[falls]] / (x[active[falls]] - goal[falls])
            first = int(lengths.argmin())
            leaving = active[falls[first]]
            x[active] = np.maximum(x[active] + lengths[first] * (goal - x[active]), 0.0)
            x[leaving] = 0.0
            support[leaving] = False
            if leaving == entered and lengths[first] == 0.0:  # its slope was rounding
                return _on_total(unit * x, capped, total)
            continue
        x[active] = goal
        bent = matrix @ x
        slope = bent + cost - level * share
        length = max(0.0, float(x @ bent)) ** 0.5
        slope += _ROUNDING * (np.abs(cost) + abs(level) * share + length)
        slope[support] = 0.0
        entered = int(slope.argmin())
        if slope[entered] >= 0.0:
            return _on_total(unit * x, capped, total)
        support[entered] = True
    return _by_clarabel(quadratic, linear, capped, total)


def _on_support(
    matrix: Floats, cost: Floats, share: Floats, total: float, active: NDArray[np.intp]
) -> tuple[Floats, float]:
    """Minimise without bounds on some entries; return the point and the level of the slopes."""
    n = len(active)
    weight = float(share[active].max())
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = matrix[np.ix_(active, active)]
    system[:n, n] = system[n, :n] = share[active] / weight
    solved = np.linalg.solve(system, np.append(-cost[active], total / weight))
    return solved[:n], -float(solved[n]) / weight


def _on_total(x: Floats, capped: Booleans, total: float) -> Floats:
    """Correct the rounding of the sum."""
    x[capped] *= total / x[capped].sum()
    return x


def _by_clarabel(quadratic: Floats, linear: Floats, capped: Booleans, total: float) -> Floats:
    found = solve_qp(quadratic, linear, A_eq=capped[None, :].astype(float), b_eq=[total], lower=0.0)
    if not np.isfinite(found.objective):
        msg = f"The programme of {len(linear)} planes and side rows could not be solved."
        raise SolverError(msg)
    return _on_total(np.maximum(found.x, 0.0), capped, total)
