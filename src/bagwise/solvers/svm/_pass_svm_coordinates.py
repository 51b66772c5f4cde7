"""Rows of very many features: coordinate steps in the dual, which need no curvature."""

from collections.abc import Iterator

import numpy as np

from bagwise._arrays import Integers
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.svm._coordinate_descent import CoordinateDescent
from bagwise.solvers.svm._multipliers import balanced
from bagwise.solvers.svm._pass_svm_bounds import Bounds
from bagwise.solvers.svm._pass_svm_smoothing import sample_size

_OFFER = 2  # most passes that tell how good a point and its multipliers are
PASSES = 3 + _OFFER  # that a search needs at least: norms, weights to begin with, a sweep

_SEED = 2008  # of the blocks of rows
_SWEEPS = 50  # most sweeps over unsettled rows, between two over all rows
_MORE = 5  # most of them while these are too many to be held in memory, and visits in all
_FEW = 2  # the same where Newton steps are cheap
_RUN = 1000  # rows that are read together
_REDUCED = 0.1  # share of a violation that sweeps may leave
_SHRUNK = 0.8  # share of a gap that a point should leave at most
_SLOW = 2  # points that leave more, before it ends; one where Newton steps are cheap
_CHEAP = 2  # rows for each that tells the curvature: with more of them Newton steps are cheap


class CoordinateSearch:
    """Coordinate descent in the dual on rows that are read in passes, a block at a time.

    Rows that look settled are left out; the others, if they are few enough to be held in memory,
    are swept again until they are nearly solved. Where rows are many beside those that tell the
    curvature, Newton steps cost about as much as sweeps, and sweeps end soon unless they gain much.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.rng = bounds, np.random.default_rng(_SEED)
        bounds.n_passes += 1  # the norms
        is_cheap = bounds.rows.n > _CHEAP * sample_size(bounds)
        self.more, self.slow = (_FEW, 1) if is_cheap else (_MORE, _SLOW)
        self.descent = CoordinateDescent(
            bounds.sign.astype(np.float64), bounds.target, bounds.cost, bounds.rows.diagonal(),
            alpha=bounds.dual, w=bounds.sum_of(bounds.dual), b=bounds.b,
        )  # fmt: skip

    def run(self) -> None:
        """Search until the gap is closed or shrinks too slowly."""
        bounds, n_slow = self.bounds, 0
        while not bounds.ended and n_slow < self.slow and bounds.passes_left > _OFFER:
            before = bounds.gap
            self.solve_for(self.sweep_by_passes(np.arange(bounds.rows.n)))
            self.offer()
            n_slow += bounds.gap > _SHRUNK * before

    def solve_for(self, left: Integers) -> None:
        """Sweep over some rows, of which fewer and fewer are left, until they are nearly solved."""
        bounds, descent, n_sweeps, n_visits = self.bounds, self.descent, 0, 0
        goal, n_passes = _REDUCED * descent.violation, min(self.more, bounds.passes_left - _OFFER)
        while len(left) > bounds.most_rows and n_sweeps < n_passes and descent.violation > goal:
            n_visits += len(left)
            left, n_sweeps = self.sweep_by_passes(left), n_sweeps + 1
        if len(left) > bounds.most_rows:
            return
        rows, most = bounds.rows.take(left), self.more * bounds.rows.n
        while len(left) and n_sweeps < _SWEEPS and n_visits < most and descent.violation > goal:
            n_visits += len(left)
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
