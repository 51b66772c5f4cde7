"""The dual of an SVM with a cone as data: the problem, the current point and its slopes."""

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from bagwise._arrays import Booleans, Floats, Integers
from bagwise.solvers._checks import checked_array, checked_terms, not_finite
from bagwise.solvers.operators._feature_rows import FeatureRows, cross_products
from bagwise.solvers.operators._row_operator import RowOperator
from bagwise.solvers.operators._sums import compacted
from bagwise.solvers.svm._multipliers import balanced, intercept_between

_ROUNDING = 1e-12  # of all multipliers: what their sum may be off by


class ConeState:
    """The problem and the current point: signed multipliers of rows, then those of contrasts.

    ``along`` are the inner products of all points with the sum of rows and contrasts, ``u`` those
    of rows and contrasts; ``squared`` is the quadratic form, ``offset`` the inner product with the
    radii.
    """

    def __init__(
        self,
        owner: str,
        points: RowOperator,
        index: Integers,
        sign: ArrayLike,
        cost: ArrayLike,
        target: ArrayLike,
        contrasts: Any,
        radius: ArrayLike,
        price: ArrayLike,
        start: tuple[ArrayLike, ArrayLike] | None,
    ) -> None:
        self.owner, self.points, self.index, self.n_rows = owner, points, index, len(index)
        contrasts = sp.csr_array(contrasts, dtype=np.float64)
        p = contrasts.shape[0]
        if contrasts.shape[1] != points.n:
            msg = (
                f"{owner}: contrasts must have one column for each of the {points.n} points. "
                f"Got shape {contrasts.shape}."
            )
            raise ValueError(msg)
        self.sign, self.cost, targets = checked_terms(owner, sign, cost, target, self.n_rows)
        if len(np.unique(self.sign)) < 2:
            msg = f"{owner}: sign must hold -1 and +1, both of them. Got {self.sign[0]:g} only."
            raise ValueError(msg)
        radii = checked_array(owner, "radius", radius, (p,), spread=True)
        self.price = checked_array(owner, "price", price, (p,), spread=True)
        if (radii < 0.0).any() or (self.price < 0.0).any():
            msg = f"{owner}: radius and price must not be negative."
            raise ValueError(msg)
        self.contrasts = contrasts
        self.radius = np.concatenate([np.zeros(self.n_rows), radii])
        self.goal = np.concatenate([self.sign * targets, np.zeros(p)])
        self.lower = np.concatenate([np.where(self.sign < 0, -self.cost, 0.0), np.zeros(p)])
        self.upper = np.concatenate([np.where(self.sign > 0, self.cost, 0.0), self.price])
        self.n = self.n_rows + p
        self.x, self.along = np.zeros(self.n), np.zeros(points.n)
        self.largest = float(points.diagonal().max())
        if not np.isfinite(self.largest):
            raise ValueError(not_finite(self.owner))
        self.flat = max(1e-12 * self.largest, 1e-200)
        self.start(*start) if start is not None else self.refresh()

    def start(self, alpha: ArrayLike, mu: ArrayLike) -> None:
        """Go to multipliers of rows and contrasts, after what is not allowed is taken off."""
        rows = np.clip(checked_array(self.owner, "start", alpha, (self.n_rows,)), 0.0, self.cost)
        contrasts = np.clip(
            checked_array(self.owner, "start", mu, self.price.shape), 0.0, self.price
        )
        if abs(self.sign @ rows) > _ROUNDING * rows.sum():  # less than that, `refresh` takes off
            rows = balanced(rows, self.sign)
        self.x[:] = np.concatenate([self.sign * rows, contrasts])
        self.refresh()

    # ------------------------------------------------------------------------------- the point

    @property
    def multipliers(self) -> Floats:
        """The point itself."""
        return self.x

    def go_to(self, multipliers: Floats) -> None:
        """Go to another point, and compute all that follows from it from scratch."""
        self.x[:] = multipliers
        self.refresh()

    def refresh(self) -> None:
        """Compute all that follows from the point from scratch."""
        rows = self.x[: self.n_rows]
        free = np.flatnonzero(self.free[: self.n_rows])
        if len(free):  # rounding must not unbalance the signs
            room = np.minimum(self.upper - self.x, self.x - self.lower)[free]
            k = free[int(room.argmax())]
            rows[k] = np.clip(rows[k] - rows.sum(), self.lower[k], self.upper[k])
        self.along[:] = self._products(self.x)
        self._measure()
        self.is_exact = True

    def move(self, rows: Integers, x: Floats) -> None:
        """Give some rows and contrasts new multipliers."""
        change = np.zeros(self.n)
        change[rows] = x - self.x[rows]
        self.x[rows] = x
        self.is_exact = False
        if 2 * np.count_nonzero(change) > np.count_nonzero(self.x):
            self.refresh()
            return
        self.along += self._products(change)
        self._measure()

    def _products(self, x: Floats) -> Floats:
        """Return the inner products of all points with a sum of rows and contrasts."""
        coef = self.expansion(x)
        used = np.flatnonzero(coef)
        products = self.points.products(used, coef[used])
        if not np.isfinite(products).all():
            raise ValueError(not_finite(self.owner))
        return products

    def expansion(self, x: Floats) -> Floats:
        """Return a sum of rows and contrasts as one of points: the coefficient of each."""
        k = self.n_rows
        coef = np.bincount(self.index, weights=x[:k], minlength=self.points.n)
        return coef + self.contrasts.T @ x[k:]  # type: ignore[no-any-return]

    def square(self, rows: Integers, out: Floats) -> None:
        """Write the inner products of some rows, in order, among them all contrasts."""
        k = int(np.searchsorted(rows, self.n_rows))
        chosen = self.index[rows[:k]]
        out[:k, :k] = self.points.block(chosen, chosen)
        if self.written is not None:
            out[k:, :k] = cross_products(self.written, self.points.features(chosen))
            out[k:, k:] = self.written_gram
        else:
            used, sums = compacted(self.contrasts)
            cross = sums @ self.points.block(used, np.concatenate([chosen, used]))
            out[k:, :k] = cross[:, :k]
            out[k:, k:] = cross[:, k:] @ sums.T
        out[:k, k:] = out[k:, :k].T

    @cached_property
    def written(self) -> Any:
        """The contrasts as rows of a matrix, if the points have features, else None."""
        indptr, indices, data = self.contrasts.indptr, self.contrasts.indices, self.contrasts.data
        sums = []
        for first, last in pairwise(indptr):
            features = self.points.features(indices[first:last].astype(np.int64))
            if features is None:
                return None
            row = data[None, first:last]
            sums.append((sp.csr_array(row) if sp.issparse(features) else row) @ features)
        if not sums:
            return None
        return sp.vstack(sums, format="csr") if sp.issparse(sums[0]) else np.vstack(sums)

    @cached_property
    def written_gram(self) -> Floats:
        """Inner products of the contrasts that are written down."""
        return FeatureRows(self.written).gram()

    def _measure(self) -> None:
        self.u = np.concatenate([self.along[self.index], self.contrasts @ self.along])
        self.squared = max(0.0, float(self.x @ self.u))
        self.offset = float(self.radius @ self.x)

    @property
    def norm(self) -> float:
        """Length of the weight vector."""
        return max(0.0, float(np.sqrt(self.squared)) - self.offset)

    @property
    def share(self) -> float:
        """What of the sum of all rows and contrasts the cone leaves as weight vector."""
        return self.norm / float(np.sqrt(self.squared)) if self.squared > 0.0 else 1.0

    @property
    def v(self) -> Floats:
        """Slopes of the dual."""
        return self.goal - self.share * self.u + self.norm * self.radius

    # ---------------------------------------------------------------------------- conditions

    @property
    def free(self) -> Booleans:
        return (self.x > self.lower) & (self.x < self.upper)

    def interval(self, v: Floats) -> tuple[float, float]:
        """Return the largest slope of a row that may grow, the smallest of one that may shrink."""
        k = self.n_rows
        x, low, high, v = self.x[:k], self.lower[:k], self.upper[:k], v[:k]
        highest = v[x < high].max(initial=-np.inf)
        lowest = v[x > low].min(initial=np.inf)
        return float(highest), float(lowest)

    @property
    def violation(self) -> float:
        v = self.v
        highest, lowest = self.interval(v)
        grow, shrink = self.scores(0.0, v)
        k = self.n_rows
        single = max(grow[k:].max(initial=-np.inf), shrink[k:].max(initial=-np.inf))
        return float(max(highest - lowest, single))

    def scores(self, violation: float, v: Floats | None = None) -> tuple[Floats, Floats]:
        """Return how much each wants to grow and to shrink; minus infinity where it may not."""
        v = self.v if v is None else v
        level = np.zeros(self.n)
        highest, lowest = self.interval(v)
        ends = [end for end in (highest, lowest) if np.isfinite(end)]
        level[: self.n_rows] = sum(ends) / max(1, len(ends))
        grows, shrinks = self.x < self.upper, self.x > self.lower
        return np.where(grows, v - level, -np.inf), np.where(shrinks, level - v, -np.inf)

    @property
    def rounding(self) -> float:
        """How exactly the slopes can be known."""
        terms = float(np.abs(self.x).sum()) * self.largest + float(np.abs(self.goal).max())
        return float(np.finfo(np.float64).eps * terms)

    # -------------------------------------------------------------------------------- values

    @property
    def dual(self) -> float:
        return float(self.goal @ self.x) - 0.5 * self.norm**2

    def intercept(self) -> float:
        k, v = self.n_rows, self.v
        return intercept_between(v[:k], self.free[:k], self.interval(v))

    def primal(self, intercept: float) -> float:
        v, k = self.v, self.n_rows
        slack = np.maximum(self.sign * (v[:k] - intercept), 0.0)
        short = np.maximum(v[k:], 0.0)
        return 0.5 * self.norm**2 + float(self.cost @ slack) + float(self.price @ short)

    def coef(self) -> Floats:
        """Return the coefficient of each point in the weight vector."""
        return self.share * self.expansion(self.x)
