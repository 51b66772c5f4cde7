"""Bags on one side of a comparison: ranges of rows of a matrix, cut into blocks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint
from bagwise.bags import sparse_sums
from bagwise.kernels._rows import BLOCK, Matrix, canonical_rows, slices


@dataclass(frozen=True)
class Side:
    """Bags on one side: their instances in the order of the bags make one long list of rows."""

    matrix: Matrix
    starts: Integers
    stops: Integers
    weights: Floats | None
    offsets: Integers  # where in the list each bag begins

    @classmethod
    def of(
        cls, caller: str, X: Matrix, starts: Integers, stops: Integers, weights: Floats | None
    ) -> "Side":
        """Check the arguments of the function ``caller``."""
        X = canonical_rows(X)
        starts, stops = np.asarray(starts, np.int64), np.asarray(stops, np.int64)
        if starts.shape != stops.shape or starts.ndim != 1:
            msg = (
                f"starts and stops of {caller} must be lists of one length. "
                f"Got {starts.shape}, {stops.shape}."
            )
            raise ValueError(msg)
        wrong = np.flatnonzero((starts < 0) | (stops < starts) | (stops > X.shape[0]))
        if wrong.size:
            i = wrong[0]
            msg = (
                f"Bag {i} of {caller} must be a range of the {X.shape[0]} rows. "
                f"Got {starts[i]}:{stops[i]}."
            )
            raise ValueError(msg)
        if weights is not None:
            weights = np.asarray(weights, np.float64)
            if weights.shape != (X.shape[0],):
                msg = f"weights of {caller} must have shape {(X.shape[0],)}. Got {weights.shape}."
                raise ValueError(msg)
        return cls(X, starts, stops, weights, np.concatenate([[0], np.cumsum(stops - starts)]))

    @property
    def length(self) -> int:
        return int(self.offsets[-1])

    def select(self, bags: slice) -> "Side":
        offsets = self.offsets[bags.start : bags.stop + 1]
        return Side(
            self.matrix, self.starts[bags], self.stops[bags], self.weights, offsets - offsets[0]
        )

    def groups(self, n_rows: int) -> Iterator[slice]:
        """Cut the bags into runs of at most so many rows; a larger bag is a run of its own."""
        first = 0
        while first < len(self.starts):
            room = self.offsets[first] + n_rows
            last = int(np.searchsorted(self.offsets, room, side="right")) - 1
            last = max(first + 1, last)
            yield slice(first, last)
            first = last

    def bags(self, rows: slice) -> slice:
        """Return the bags that a piece of the list touches."""
        first = int(np.searchsorted(self.offsets, rows.start, side="right")) - 1
        return slice(first, int(np.searchsorted(self.offsets, rows.stop, side="left")))

    def bounds(self, rows: slice) -> Integers:
        """Return where in a piece of the list its bags begin and the last one ends."""
        bags = self.bags(rows)
        bounds = np.clip(self.offsets[bags.start : bags.stop + 1], rows.start, rows.stop)
        bounds -= rows.start
        return bounds

    def index(self, rows: slice) -> slice | Integers:
        """Return the rows of the matrix that a piece of the list stands for."""
        bags = self.bags(rows)
        shift = self.starts[bags] - self.offsets[bags.start : bags.stop]
        if (shift == shift[0]).all():
            return slice(int(rows.start + shift[0]), int(rows.stop + shift[0]))
        return np.repeat(shift, np.diff(self.bounds(rows))) + np.arange(rows.start, rows.stop)

    def weight(self, index: slice | Integers, length: int) -> Floats:
        return np.ones(length) if self.weights is None else np.array(self.weights[index])

    def feature_sums(self) -> Matrix:
        """Return the weighted sum of the instances of each bag: all that a linear kernel sees."""
        if sp.issparse(self.matrix):
            return sparse_sums(self.matrix, self.starts, self.stops, weights=self.weights)
        out = np.zeros((len(self.starts), self.matrix.shape[1]))
        for rows in slices(self.length, BLOCK):
            checkpoint()
            index = self.index(rows)
            block = self.matrix[index].astype(np.float64)
            block *= self.weight(index, len(block))[:, None]
            bags, bounds = self.bags(rows), self.bounds(rows)
            filled = bounds[:-1] < bounds[1:]
            out[bags][filled] += np.add.reduceat(block, bounds[:-1][filled], axis=0)
        return out
