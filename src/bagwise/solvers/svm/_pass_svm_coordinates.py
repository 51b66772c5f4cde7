"""Rows of very many features: coordinate steps in the dual, which need no curvature."""

from collections.abc import Iterator

import numpy as np

from bagwise._arrays import Integers
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.svm._coordinate_descent import CoordinateDescent
from bagwise.solvers.svm._multipliers import balanced
from bagwise.solvers.svm._pass_svm_bounds import Bounds

_OFFER = 2  # most passes that tell how good a point and its multipliers are
PASSES = 3 + _OFFER  # that a search needs at least: norms, weights to begin with, a sweep

_SEED = 2008  # of the blocks of rows
_SWEEPS = 50  # most sweeps over unsettled rows, between two over all rows
_MORE = 5  # most of them while these are too many to be held in memory
_RUN = 1000  # rows that are read together
_REDUCED = 0.1  # share of a violation that sweeps may leave
_SHRUNK = 0.8  # share of a gap that a point should leave at most
_SLOW = 2  # points that leave more


class CoordinateSearch:
    """Coordinate descent in the dual on rows that are read in passes, a block at a time.

    Rows that look settled are left out; the others, if they are few enough to be held in memory,
    are swept again until they are nearly solved.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.rng = bounds, np.random.default_rng(_SEED)
        bounds.n_passes += 1  # the norms
        self.descent = CoordinateDescent(
            bounds.sign, bounds.target, bounds.cost, bounds.rows.diagonal(),
            alpha=bounds.dual, w=bounds.sum_of(bounds.dual), b=bounds.b,
        )  # fmt: skip

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
        bounds, descent, n_sweeps = self.bounds, self.descent, 0
        goal, n_passes = _REDUCED * descent.violation, min(_MORE, bounds.passes_left - _OFFER)
        while len(left) > bounds.most_rows and n_sweeps < n_passes and descent.violation > goal:
            left, n_sweeps = self.sweep_by_passes(left), n_sweeps + 1
        if len(left) > bounds.most_rows:
            return
        rows = bounds.rows.take(left)
        while len(left) and n_sweeps < _SWEEPS and descent.violation > goal:
            kept, n_sweeps = np.sort(descent.sweep([(rows, left)])), n_sweeps + 1
            rows, left = rows.take(np.searchsorted(left, kept)), kept

    def sweep_by_passes(self, index: Integers) -> Integers:
        """Sweep over rows; return those that look unsettled."""
        self.bounds.n_passes += 1
        return np.sort(self.descent.sweep(self.blocks(index)))

    def blocks(self, index: Integers) -> Iterator[tuple[FeatureRows, Integers]]:
        """Yield blocks of rows in memory with their numbers.

        A block has short runs of rows from everywhere: rows of one bag alone are much alike.
        """
        take, most = self.bounds.rows.take, self.bounds.most_rows
        if len(index) <= most:
            yield take(index), index
            return
        runs = np.array_split(index, -(-len(index) // min(_RUN, most)))
        n_blocks = -(-len(index) // most)
        for some in np.array_split(self.rng.permutation(len(runs)), n_blocks):
            block = np.concatenate([runs[i] for i in np.sort(some)])
            yield take(block), block

    def offer(self) -> None:
        """Offer the multipliers, and the weights with their best intercept."""
        bounds, descent = self.bounds, self.descent
        w, b, z = descent.w.copy(), descent.b, bounds.dot(descent.w)
        bounds.offer_point(w, b, z)
        reach = float(np.abs(bounds.target).max())
        bounds.offer_point(*bounds.between((w, b - reach, z), (w, b + reach, z)))
        alpha = balanced(descent.alpha.copy(), bounds.sign)  # the next sweep changes its own
        bounds.offer_dual(alpha, bounds.sum_of(alpha))
