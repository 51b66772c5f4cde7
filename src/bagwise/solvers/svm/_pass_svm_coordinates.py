"""Rows of very many features: coordinate steps in the dual, which need no curvature."""

import numpy as np

from bagwise._arrays import Integers
from bagwise._threads import short_slices
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.svm._multipliers import balanced
from bagwise.solvers.svm._pass_svm_bounds import Bounds

_OFFER = 2  # most passes that tell how good a point and its multipliers are
PASSES = 3 + _OFFER  # that a search needs at least: norms, weights to begin with, a sweep

_SEED = 2008  # of the order in which rows are visited
_SWEEPS = 50  # most sweeps over unsettled rows, between two over all rows
_MORE = 5  # most of them while these are too many to be held in memory
_RUN = 1000  # rows that are read together
_REDUCED = 0.1  # share of a violation that sweeps may leave
_SHRUNK = 0.8  # share of a gap that a point should leave at most
_SLOW = 2  # points that leave more


class CoordinateSearch:
    """Coordinate descent in the dual (Hsieh et al. 2008), on rows that are read in passes.

    A sweep minimises over one multiplier after another, in random order within blocks of rows. Rows
    that look settled at their bounds are left out; the others, if they are few enough to be held
    in memory, are swept again until they are nearly solved. The intercept is taken for penalised
    about its last value, which moves after each sweep.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.rng = bounds, np.random.default_rng(_SEED)
        norms = bounds.rows.diagonal()
        bounds.n_passes += 1
        self.bias = max(float(norms.mean()), 1e-300)
        self.curvature = norms + self.bias
        self.alpha = bounds.dual.copy()
        self.w = bounds.sum_of(self.alpha)
        self.state = np.array([bounds.b, 0.0, 0.0, 0.0])  # see `_linear_svm_kernels`
        self.above, self.below, self.violation = np.inf, -np.inf, np.inf

    def run(self) -> None:
        """Search until the gap is closed or shrinks too slowly."""
        bounds, n_slow = self.bounds, 0
        while not bounds.ended and n_slow < _SLOW and bounds.passes_left > _OFFER:
            before = bounds.gap
            self.solve_for(self.sweep_by_passes(np.arange(bounds.rows.n)))
            self.offer()
            n_slow += bounds.gap > _SHRUNK * before

    def solve_for(self, left: Integers) -> None:
        """Sweep over some rows, of which fewer and fewer are left, until they are nearly solved."""
        bounds, goal, n_sweeps = self.bounds, _REDUCED * self.violation, 0
        n_passes = min(_MORE, bounds.passes_left - _OFFER)
        while len(left) > bounds.most_rows and n_sweeps < n_passes and self.violation > goal:
            left, n_sweeps = self.sweep_by_passes(left), n_sweeps + 1
        if len(left) > bounds.most_rows:
            return
        rows = bounds.rows.take(left)
        while len(left) and n_sweeps < _SWEEPS and self.violation > goal:
            kept, n_sweeps = self.sweep([left], rows), n_sweeps + 1
            rows, left = rows.take(np.searchsorted(left, kept)), kept

    def sweep_by_passes(self, index: Integers) -> Integers:
        """Sweep over rows, a block of them in memory at a time; return those that look unsettled.

        A block has short runs of rows from everywhere: rows of one bag alone are much alike.
        """
        most = self.bounds.most_rows
        self.bounds.n_passes += 1
        if len(index) <= most:
            blocks = [index]
        else:
            runs = np.array_split(index, -(-len(index) // min(_RUN, most)))
            n_blocks = -(-len(index) // most)
            shuffled = np.array_split(self.rng.permutation(len(runs)), n_blocks)
            blocks = [np.concatenate([runs[i] for i in np.sort(some)]) for some in shuffled]
        return self.sweep(blocks)

    def sweep(self, blocks: list[Integers], rows: FeatureRows | None = None) -> Integers:
        """Sweep over blocks of rows; those of the only block may be in memory already."""
        take = self.bounds.rows.take
        self.state[2:] = -np.inf, np.inf
        found = [self.sweep_block(take(i) if rows is None else rows, i) for i in blocks]
        imbalance, highest, lowest = self.state[1:].tolist()
        self.state[0] += self.bias * imbalance
        self.violation = max(highest, 0.0) - min(lowest, 0.0) + abs(self.bias * imbalance)
        self.above = highest if highest > 0.0 else np.inf
        self.below = lowest if lowest < 0.0 else -np.inf
        return np.sort(np.concatenate(found))

    def sweep_block(self, rows: FeatureRows, index: Integers) -> Integers:
        """Sweep over a block in random order; return the numbers of rows that look unsettled."""
        from bagwise.solvers.svm import _linear_svm_kernels as kernels

        bounds, order = self.bounds, self.rng.permutation(len(index))
        kept, found, alpha = np.empty_like(order), 0, self.alpha[index]
        terms = bounds.sign[index], bounds.target[index], bounds.cost[index]
        ridge, curvature = np.zeros(len(index)), self.curvature[index]
        for piece in short_slices(len(order), 4 * rows.row_seconds):
            found += kernels.sweep(
                *rows.parts, rows.rows, order[piece], *terms, ridge, curvature,
                alpha, self.w, self.bias, self.state, self.above, self.below, kept[found:],
            )  # fmt: skip
        self.alpha[index] = alpha
        return index[kept[:found]]

    def offer(self) -> None:
        """Offer the multipliers, and the weights with their best intercept."""
        bounds = self.bounds
        w, z, b = self.w.copy(), bounds.dot(self.w), float(self.state[0])
        bounds.offer_point(w, b, z)
        reach = float(np.abs(bounds.target).max())
        bounds.offer_point(*bounds.between((w, b - reach, z), (w, b + reach, z)))
        alpha = balanced(self.alpha.copy(), bounds.sign)  # the next sweep changes its own
        bounds.offer_dual(alpha, bounds.sum_of(alpha))
