"""Rows of very many features: coordinate steps in the dual, which need no curvature."""

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._threads import short_slices
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.svm._multipliers import balanced
from bagwise.solvers.svm._pass_svm_bounds import Bounds

_SEED = 2008  # of the order in which rows are visited
_SWEEPS = 50  # most sweeps over rows in memory between two over all rows
_REDUCED = 0.1  # share of a violation that these may leave
_OFFERS = 4  # points in which the gap should halve


class CoordinateSearch:
    """Coordinate descent in the dual (Hsieh et al. 2008), on rows that are read in passes.

    A sweep minimises over one multiplier after another, in random order within each chunk. Rows
    that look settled at their bounds are left out; the others, if they are few enough to be held
    in memory, are swept again until they are nearly solved. The intercept is taken for penalised
    about its last value, which moves after each sweep.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.rng = bounds, np.random.default_rng(_SEED)
        norms = bounds.rows.diagonal()
        self.bias = max(float(norms.mean()), 1e-300)
        self.curvature = norms + self.bias
        self.alpha = bounds.dual.copy()
        self.w = bounds.sum_of(self.alpha)
        self.state = np.array([bounds.b, 0.0, 0.0, 0.0])  # see `_linear_svm_kernels`
        self.above, self.below, self.violation = np.inf, -np.inf, np.inf

    def run(self) -> None:
        """Search until the gap is closed or shrinks too slowly."""
        bounds, gaps = self.bounds, [np.inf]
        while not bounds.ended and gaps[-1] <= 0.5 * gaps[max(0, len(gaps) - 1 - _OFFERS)]:
            left = self.sweep_all()
            if len(left) <= bounds.most_rows:
                self.solve_for(left)
            self.offer()
            gaps.append(bounds.gap)

    def sweep_all(self) -> Integers:
        """Sweep over all rows; return those that do not look settled."""
        bounds, found = self.bounds, []
        self.begin_sweep()
        for part, rows in bounds.rows.chunks():
            kept = self.sweep(part, self.alpha[rows], self.rng.permutation(part.n), rows)
            found.append(rows.start + np.sort(kept))
        bounds.n_passes += 2
        self.end_sweep()
        return np.concatenate(found)

    def solve_for(self, index: Integers) -> None:
        """Sweep over some rows, of which fewer and fewer are left, until they are nearly solved."""
        part, alpha, left = self.bounds.rows.take(index), self.alpha[index], np.arange(len(index))
        goal = _REDUCED * self.violation
        for _ in range(_SWEEPS):
            if not len(left) or self.violation <= goal:
                break
            self.begin_sweep()
            left = self.sweep(part, alpha, self.rng.permutation(left), index)
            self.end_sweep()
        self.alpha[index] = alpha

    def begin_sweep(self) -> None:
        """Forget which derivatives the last sweep met."""
        self.state[2:] = -np.inf, np.inf

    def sweep(
        self, part: FeatureRows, alpha: Floats, order: Integers, which: Integers | slice
    ) -> Integers:
        """Sweep over rows in memory, in some order; return those that do not look settled."""
        from bagwise.solvers.svm import _linear_svm_kernels as kernels

        bounds, kept, found = self.bounds, np.empty_like(order), 0
        terms = bounds.sign[which], bounds.target[which], bounds.cost[which]
        ridge, curvature = np.zeros(part.n), self.curvature[which]
        for piece in short_slices(len(order), 4 * part.row_seconds):
            found += kernels.sweep(
                *part.parts, part.rows, order[piece], *terms, ridge, curvature,
                alpha, self.w, self.bias, self.state, self.above, self.below, kept[found:],
            )  # fmt: skip
        return kept[:found]

    def end_sweep(self) -> None:
        """Move the intercept, and see how far derivatives are from what they should be."""
        imbalance, highest, lowest = self.state[1:].tolist()
        self.state[0] += self.bias * imbalance
        self.violation = max(highest, 0.0) - min(lowest, 0.0) + abs(self.bias * imbalance)
        self.above = highest if highest > 0.0 else np.inf
        self.below = lowest if lowest < 0.0 else -np.inf

    def offer(self) -> None:
        """Offer the multipliers, and the weights with their best intercept."""
        bounds = self.bounds
        w, z, b = self.w.copy(), bounds.dot(self.w), float(self.state[0])
        bounds.offer_point(w, b, z)
        bounds.offer_point(*bounds.between((w, b - 1.0, z), (w, b + 1.0, z)))
        alpha = balanced(self.alpha, bounds.sign)
        bounds.offer_dual(alpha, bounds.sum_of(alpha))
