"""Distances between the instances inside each bag, in pieces of bounded size.

Neighbouring small bags are worked on together; a bag with very many pairs is cut into pieces, whose
distances are computed twice, because its mean distance must be known before they can be used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import ordered_map
from bagwise.kernels._rows import Matrix, canonical_rows, common_dtype, converted

_PAIRS = 1 << 20  # pairs of instances whose distances are held at a time
_WORK = 1 << 27  # features that are compared at a time: about 30 ms
_SPARSE_FACTOR = 8  # a stored entry costs so many times more than a feature of a dense row
_ROWS = 1 << 16  # instances of small bags that are worked on together
_PRODUCT_ROWS = 96  # of a bag: from here on one matrix product is faster than differences
_CANCELLED = 1e-3  # a difference smaller than this, relatively, has lost three digits
_TIE = {4: 1e-6, 8: 1e-9}  # bytes of a number: relative difference that is taken for rounding


class Pieces(NamedTuple):
    """Pairs ``u < v`` of bags: those of bag ``k`` with ``u`` in ``firsts[k]:lasts[k]``."""

    starts: Integers
    stops: Integers
    firsts: Integers
    lasts: Integers
    nodes: Integers  # where the instances of each bag begin in arrays of one per instance

    @property
    def sizes(self) -> Integers:
        """The number of instances of each bag."""
        return self.stops - self.starts

    @property
    def n_pairs(self) -> int:
        """The number of pairs of all pieces."""
        size, count = self.sizes, self.lasts - self.firsts
        return int((count * (2 * size - 1 - self.firsts - self.lasts) // 2).sum())


@dataclass(frozen=True)
class PairDistances:
    """The bags of a matrix, and which of their instances count as near to each other."""

    function: str  # for messages
    matrix: Matrix
    starts: Integers
    stops: Integers
    threshold: float | None  # None: the mean distance of the bag
    include_self_pairs: bool

    @classmethod
    def of(
        cls,
        function: str,
        X: Matrix,
        starts: Integers,
        stops: Integers,
        threshold: float | str,
        include_self_pairs: bool,
    ) -> "PairDistances":
        """Check the arguments of ``function``."""
        X = canonical_rows(X)
        X = converted(X, common_dtype(X))
        starts, stops = np.asarray(starts, np.int64), np.asarray(stops, np.int64)
        if starts.shape != stops.shape or starts.ndim != 1:
            msg = (
                f"starts and stops of {function} must be lists of one length. "
                f"Got {starts.shape}, {stops.shape}."
            )
            raise ValueError(msg)
        wrong = np.flatnonzero((starts < 0) | (stops <= starts) | (stops > X.shape[0]))
        if wrong.size:
            i = wrong[0]
            msg = (
                f"Bag {i} of {function} must be a non-empty range of the {X.shape[0]} rows. "
                f"Got {starts[i]}:{stops[i]}."
            )
            raise ValueError(msg)
        if isinstance(threshold, str):
            known = threshold == "mean"
        else:
            known = bool(np.isfinite(threshold) and threshold > 0)
        if not known:
            msg = (
                f'threshold of {function} must be "mean" or a finite distance above 0. '
                f"Got {threshold!r}."
            )
            raise ValueError(msg)
        limit = None if isinstance(threshold, str) else float(threshold)
        return cls(function, X, starts, stops, limit, include_self_pairs)

    @property
    def sizes(self) -> Integers:
        """The number of instances of each bag."""
        return self.stops - self.starts

    @property
    def load(self) -> Floats:
        """How many steps each bag is worth; one is what is done between two looks at Ctrl-C."""
        sizes = self.sizes.astype(np.float64)
        return sizes * (sizes - 1.0) / 2.0 / self._pairs_per_step + sizes / _ROWS

    @property
    def _pairs_per_step(self) -> int:
        n_rows, n_features = (int(n) for n in self.matrix.shape)
        if sp.issparse(self.matrix):
            n_features = _SPARSE_FACTOR * (1 + int(self.matrix.nnz) // max(1, n_rows))
        return max(1, min(_PAIRS, _WORK // max(1, n_features)))

    def runs(self) -> Iterator[Integers]:
        """Yield small bags in runs of one or two steps; together they are all but `large`.

        A bag that is worth a matrix product is a run of its own.
        """
        load = self.load
        small = np.flatnonzero(load <= 1.0)
        step = np.floor(np.cumsum(load[small]))
        alone = self.sizes[small] >= _PRODUCT_ROWS
        cuts = np.flatnonzero((np.diff(step) > 0) | alone[1:] | alone[:-1]) + 1
        return (run for run in np.split(small, cuts) if run.size)

    def large(self) -> list[int]:
        """Return the bags that must be cut."""
        return np.flatnonzero(self.load > 1.0).tolist()

    def whole(self, bags: Integers) -> Pieces:
        """Return all pairs of some bags."""
        starts, stops = self.starts[bags], self.stops[bags]
        sizes = stops - starts
        return Pieces(starts, stops, np.zeros_like(sizes), sizes, np.cumsum(sizes) - sizes)

    def cut(self, bag: int) -> list[Pieces]:
        """Cut the pairs of one bag into pieces of half a step."""
        start, stop = self.starts[[bag]], self.stops[[bag]]
        size = int(stop[0] - start[0])
        in_row = np.arange(size - 1, 0, -1)
        step = max(1, self._pairs_per_step // 2)
        firsts = np.flatnonzero(np.diff((np.cumsum(in_row) - in_row) // step, prepend=-1))
        bounds = [*firsts.tolist(), size - 1]
        return [
            Pieces(start, stop, np.array([first]), np.array([last]), np.zeros(1, np.int64))
            for first, last in pairwise(bounds)
        ]

    def distances(self, pieces: Pieces) -> Floats:
        """Return the distances of all pairs of some pieces."""
        from bagwise.kernels import _graph_kernels as kernels

        out = np.empty(pieces.n_pairs)
        where = (pieces.starts, pieces.stops, pieces.firsts, pieces.lasts)
        if sp.issparse(self.matrix):
            matrix = self.matrix
            kernels.sparse_distances(matrix.data, matrix.indices, matrix.indptr, *where, out)
        else:
            kernels.dense_distances(self.matrix, *where, out)
        return out

    def rounded_distances(self, pieces: Pieces) -> Floats:
        """Return `distances` up to a relative error of about 1e-12, sooner if bags are larger."""
        if len(pieces.starts) != 1 or pieces.sizes[0] < _PRODUCT_ROWS or sp.issparse(self.matrix):
            return self.distances(pieces)
        from bagwise.kernels._graph_kernels import distances_from_products

        values = self.matrix[pieces.starts[0] : pieces.stops[0]]
        out = np.empty(pieces.n_pairs)
        with np.errstate(over="ignore", invalid="ignore"):  # the sum of distances will tell
            rows = values - values.mean(axis=0, dtype=np.float64)
            products = rows @ rows.T
        norms = products.diagonal().copy()
        distances_from_products(products, norms, values, _CANCELLED, out)
        return out

    def within(self, bags: Integers, pieces: Pieces, distances: Floats) -> Floats:
        """Return below which distance the instances of whole bags are linked."""
        return self._reach(bags, self._sums(pieces, distances))

    def within_large(self, bag: int, n_threads: int | None) -> Floats:
        """Return the same for one bag that must be cut."""
        if self.threshold is not None:
            return self._reach(np.array([bag]), np.zeros(1))

        def add(piece: Pieces) -> float:
            return float(self._sums(piece, self.distances(piece))[0])

        total = sum(ordered_map(add, self.cut(bag), n_threads=n_threads))
        return self._reach(np.array([bag]), np.array([total]))

    def _sums(self, pieces: Pieces, distances: Floats) -> Floats:
        from bagwise.kernels._graph_kernels import piece_sums

        sums: Floats = piece_sums(distances, pieces.sizes, pieces.firsts, pieces.lasts)
        return sums

    def _reach(self, bags: Integers, sums: Floats) -> Floats:
        # A mean of equal distances may be rounded up: what is below it by rounding alone is not.
        below = 1.0 - _TIE[self.matrix.dtype.itemsize]
        if self.threshold is not None:
            return np.full(len(bags), self.threshold * below)
        wrong = np.flatnonzero(~np.isfinite(sums))
        if wrong.size:
            msg = (
                f"{self.function} needs instances whose squared distances fit a float: "
                f"scale them. In bag {bags[wrong[0]]} they do not."
            )
            raise ValueError(msg)
        size = self.sizes[bags].astype(np.float64)
        n_others = size if self.include_self_pairs else np.maximum(1.0, size - 1.0)
        mean: NDArray[Any] = 2.0 * sums / (size * n_others)
        return mean * below
