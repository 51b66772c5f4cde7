"""The problem of a linear support vector machine: feasible points and their certificates."""

from dataclasses import dataclass, replace

import numpy as np

from bagwise._arrays import Floats
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.svm._multipliers import balanced, intercept_between


@dataclass(frozen=True, eq=False)
class LinearPoint:
    """A point of the primal and of the dual, and what is known of them."""

    alpha: Floats
    w: Floats
    b: float
    z: Floats
    residual: float
    primal: float
    dual: float


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """The problem, with what follows from its definition."""

    matrix: FeatureRows
    sign: Floats
    cost: Floats
    target: Floats
    squared: bool
    rho: float | None  # penalty of the intercept; None: there is no intercept

    @property
    def cap(self) -> Floats:
        return np.where(self.cost > 0, np.inf, 0.0) if self.squared else self.cost

    @property
    def ridge(self) -> Floats:
        out = np.zeros(len(self.cost))
        if self.squared:
            np.divide(0.5, self.cost, out=out, where=self.cost > 0)
        return out

    def sample(self, rng: np.random.Generator, size: int) -> "LinearProblem":
        """Return a problem on some rows, as many of either sign, of the same total cost."""
        parts = []
        cost = self.cost.copy()
        for s in (-1.0, 1.0):
            rows = np.flatnonzero((self.sign == s) & (self.cost > 0))
            if len(rows) > size // 2:
                every = len(rows) / (size // 2)
                spots = (np.arange(size // 2) + rng.random(size // 2)) * every
                chosen = rows[np.minimum(spots.astype(np.int64), len(rows) - 1)]
                cost[chosen] *= cost[rows].sum() / max(cost[chosen].sum(), 1e-300)
                rows = chosen
            parts.append(rows)
        chosen = np.concatenate(parts)
        return replace(
            self, matrix=self.matrix.take(chosen), sign=self.sign[chosen], cost=cost[chosen],
            target=self.target[chosen],
        )  # fmt: skip

    def primal(self, w: Floats, b: float, z: Floats) -> float:
        slack = np.maximum(self.target - self.sign * (z + b), 0.0)
        loss = slack * slack if self.squared else slack
        return 0.5 * float(w @ w) + 0.5 * (self.rho or 0.0) * b * b + float(self.cost @ loss)

    def feasible(self, alpha: Floats) -> Floats:
        """Clip to the box; with a free intercept, make both signs weigh the same."""
        alpha = np.clip(alpha, 0.0, self.cap)
        if self.rho != 0.0:
            return alpha
        # First on the rows between their bounds, so that no row needs to leave a bound.
        for _ in range(2):
            excess = float(self.sign @ alpha)
            if excess == 0.0:
                return alpha
            down = self.sign * excess > 0.0
            room = np.where(down, alpha, np.where(self.squared, alpha, self.cap - alpha))
            room[(alpha <= 0.0) | (alpha >= self.cap)] = 0.0
            if room.sum() <= abs(excess):
                break
            share = abs(excess) * room / room.sum()
            alpha = np.clip(alpha + np.where(down, -share, share), 0.0, self.cap)
        excess = float(self.sign @ alpha)
        if abs(excess) <= 1e-13 * float(alpha.sum()):
            return alpha
        return balanced(alpha, self.sign)

    def origin(self) -> LinearPoint:
        """Return the point where all is 0, but for an intercept that is free."""
        n, d = self.matrix.n, self.matrix.d
        return self.certified(np.zeros(n), np.zeros(d), np.zeros(n))

    def without_rounding(self, point: LinearPoint) -> LinearPoint:
        """Return a point, or one without weights that is better: they are rounding then."""
        if self.squared or self.rho != 0.0:
            return point
        w, z = np.zeros_like(point.w), np.zeros_like(point.z)
        for s in (-1.0, 1.0):
            b = s * float(self.target[self.sign == s].max(initial=0.0))
            primal = self.primal(w, b, z)
            if primal < point.primal:
                point = replace(point, w=w, b=b, z=z, primal=primal)
        return point

    def point(self, alpha: Floats, known: LinearPoint | None = None) -> LinearPoint:
        """Return the best point that a feasible ``alpha`` stands for, with its certificate.

        The rows are not read if ``known`` is that point, of a problem with other costs.
        """
        if known is not None and np.array_equal(alpha, known.alpha):
            return self.certified(alpha, known.w, known.z)
        w = self.matrix.combine(self.sign * alpha)
        return self.certified(alpha, w, self.matrix.dot(w))

    def certified(self, alpha: Floats, w: Floats, z: Floats) -> LinearPoint:
        """Return the point of a feasible ``alpha`` whose weights and products are known."""
        sign, cap, ridge = self.sign, self.cap, self.ridge
        v = sign * (self.target - ridge * alpha) - z
        can_rise, can_fall = alpha < cap, alpha > 0.0
        grow = np.where(sign > 0, can_rise, can_fall)
        shrink = np.where(sign > 0, can_fall, can_rise)
        highest = float(v[grow].max(initial=-np.inf))
        lowest = float(v[shrink].min(initial=np.inf))
        if self.rho == 0.0:
            b = intercept_between(v, can_rise & can_fall, (highest, lowest))
            residual = max(0.0, highest - lowest)
        else:
            b = 0.0 if self.rho is None else float(sign @ alpha) / self.rho
            residual = max(0.0, highest - b, b - lowest)
        dual = float(self.target @ alpha) - 0.5 * float(w @ w) - 0.5 * (self.rho or 0.0) * b * b
        dual -= 0.5 * float(alpha @ (ridge * alpha))
        return LinearPoint(alpha, w, b, z, residual, self.primal(w, b, z), dual)
