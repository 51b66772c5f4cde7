"""The set kernel between bags: sums of an instance kernel over all pairs of their instances.

Divided by the sizes of the bags (or by their norms) it is the normalised set kernel of Gärtner,
Flach, Kowalczyk and Smola (2002).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._threads import checkpoint, ordered_map
from bagwise.kernels._instance import (
    BLOCK,
    InstanceKernel,
    Matrix,
    canonical_rows,
    check_widths,
    common_dtype,
    converted,
    mirror,
    slices,
    tiles,
)

#: Rows of neighbouring bags that share a block when only the sums inside bags are wanted.
_GROUP = 128


def set_gram(
    kernel: InstanceKernel,
    X: Matrix,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    Y: Matrix | None = None,
    y_starts: NDArray[np.int64] | None = None,
    y_stops: NDArray[np.int64] | None = None,
    *,
    weights: NDArray[np.float64] | None = None,
    y_weights: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """Return the sums of ``w(x) w(y) k(x, y)`` over all pairs of instances of two bags.

    The Gram matrix of the instances is never formed: it is computed block by block, and each block
    is folded into the sums at once.

    Parameters
    ----------
    kernel : InstanceKernel
        The kernel between instances.
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances, of which bags are ranges of rows.
    starts, stops : ndarray of int of shape (n_bags,)
        Bag ``i`` is ``X[starts[i]:stops[i]]``. Bags may come in any order, overlap, and leave rows
        of ``X`` out.
    Y, y_starts, y_stops : optional
        The bags on the other side, likewise. Without them the bags of ``X`` are compared with
        each other: only the upper half is computed, and the result is exactly symmetric.
    weights, y_weights : ndarray of shape (n_instances,), optional
        Weights of the rows of ``X`` and of ``Y``; 1 by default.
    n_threads : int or None
        Number of threads; it does not change the result.

    Returns
    -------
    ndarray of shape (n_bags, n_y_bags)
        Sums in double precision, whatever the precision of the instances.
    """
    left = _Side.of(X, starts, stops, weights)
    if Y is None:
        right = left
    elif y_starts is None or y_stops is None:
        msg = "set_gram needs y_starts and y_stops to know the bags of Y. Got None."
        raise ValueError(msg)
    else:
        right = _Side.of(Y, y_starts, y_stops, y_weights)
        check_widths(left.matrix, right.matrix)
    if kernel.name == "linear":
        sums = left.feature_sums()
        return kernel.gram(
            sums, None if Y is None else right.feature_sums(), n_threads=n_threads
        ).astype(np.float64, copy=False)
    return _pair_sums(kernel, left, right, symmetric=Y is None, n_threads=n_threads)


def set_self(
    kernel: InstanceKernel,
    X: Matrix,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    *,
    weights: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """Return the sum over all pairs inside each bag: the diagonal of `set_gram`, alone.

    Parameters are those of `set_gram`.
    """
    side = _Side.of(X, starts, stops, weights)
    if kernel.name == "linear":
        return kernel.diagonal(side.feature_sums())
    dtype = common_dtype(side.matrix)
    out = np.zeros(len(side.starts))

    def inside(bags: slice) -> NDArray[np.float64]:
        # Neighbouring bags share a block: one product for all of them, of which only the squares
        # on the diagonal are kept, costs less than one small product per bag.
        part = side.select(bags)
        rows = slice(0, part.length)
        norms = _list_norms(kernel, part, dtype)
        return _block_sums(kernel, part, part, rows, rows, norms, norms).diagonal()

    groups = list(side.groups(_GROUP))
    small = [bags for bags in groups if 0 < side.select(bags).length <= _GROUP]
    sums = ordered_map(inside, small, n_threads=kernel.threads(n_threads))
    for bags, values in zip(small, sums, strict=True):
        part = side.select(bags)
        out[bags][part.bags(slice(0, part.length))] = values  # bags without rows are left out
    for bags in groups:
        part = side.select(bags)
        if part.length > _GROUP:
            out[bags] = _pair_sums(kernel, part, part, symmetric=True, n_threads=n_threads)[0]
    return out


def normalise_set_gram(
    gram: NDArray[np.float64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    *,
    out: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Divide entry (i, j) of a set kernel by ``left[i] * right[j]``.

    With the sizes of the bags on both sides this is the inner product of mean embeddings; with the
    square roots of `set_self` every bag has norm 1. A matrix that is symmetric stays exactly so if
    ``left`` and ``right`` are the same. ``out`` may be the matrix itself.
    """
    out = np.empty_like(gram) if out is None else out
    for rows in slices(len(gram), BLOCK):
        checkpoint()
        np.divide(gram[rows], np.multiply.outer(left[rows], right), out=out[rows])
    return out


@dataclass(frozen=True)
class _Side:
    """Bags on one side: their instances in the order of the bags make one long list of rows."""

    matrix: Matrix
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    offsets: NDArray[np.int64]  # where in the list each bag begins

    @classmethod
    def of(
        cls,
        X: Matrix,
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
    ) -> "_Side":
        X = canonical_rows(X)
        starts, stops = np.asarray(starts, np.int64), np.asarray(stops, np.int64)
        if starts.shape != stops.shape or starts.ndim != 1:
            msg = (
                f"starts and stops must be lists of one length. Got {starts.shape}, {stops.shape}."
            )
            raise ValueError(msg)
        wrong = np.flatnonzero((starts < 0) | (stops < starts) | (stops > X.shape[0]))
        if wrong.size:
            i = wrong[0]
            msg = f"Bag {i} must be a range of the {X.shape[0]} rows. Got {starts[i]}:{stops[i]}."
            raise ValueError(msg)
        if weights is not None:
            weights = np.asarray(weights, np.float64)
            if weights.shape != (X.shape[0],):
                msg = f"weights must have shape {(X.shape[0],)}. Got {weights.shape}."
                raise ValueError(msg)
        return cls(X, starts, stops, weights, np.concatenate([[0], np.cumsum(stops - starts)]))

    @property
    def length(self) -> int:
        return int(self.offsets[-1])

    def select(self, bags: slice) -> "_Side":
        offsets = self.offsets[bags.start : bags.stop + 1]
        return _Side(
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

    def bounds(self, rows: slice) -> NDArray[np.int64]:
        """Return where in a piece of the list its bags begin and the last one ends."""
        bags = self.bags(rows)
        bounds = np.clip(self.offsets[bags.start : bags.stop + 1], rows.start, rows.stop)
        bounds -= rows.start
        return bounds

    def index(self, rows: slice) -> slice | NDArray[np.int64]:
        """Return the rows of the matrix that a piece of the list stands for."""
        bags = self.bags(rows)
        shift = self.starts[bags] - self.offsets[bags.start : bags.stop]
        if (shift == shift[0]).all():
            return slice(int(rows.start + shift[0]), int(rows.stop + shift[0]))
        return np.repeat(shift, np.diff(self.bounds(rows))) + np.arange(rows.start, rows.stop)

    def weight(self, index: slice | NDArray[np.int64], length: int) -> NDArray[np.float64]:
        return np.ones(length) if self.weights is None else np.array(self.weights[index])

    def feature_sums(self) -> Matrix:
        """Return the weighted sum of the instances of each bag: its image under a linear kernel."""
        if sp.issparse(self.matrix):
            shift = np.repeat(self.starts - self.offsets[:-1], np.diff(self.offsets))
            every = np.arange(self.length) + shift
            factor = sp.csr_array(
                (self.weight(every, len(every)), every, self.offsets),
                shape=(len(self.starts), self.matrix.shape[0]),
            )
            return factor @ self.matrix
        out = np.zeros((len(self.starts), self.matrix.shape[1]))
        for rows in slices(self.length, BLOCK):
            index = self.index(rows)
            block = self.matrix[index].astype(np.float64)
            block *= self.weight(index, len(block))[:, None]
            bags, bounds = self.bags(rows), self.bounds(rows)
            filled = bounds[:-1] < bounds[1:]
            out[bags][filled] += np.add.reduceat(block, bounds[:-1][filled], axis=0)
        return out


def _pair_sums(
    kernel: InstanceKernel, left: _Side, right: _Side, *, symmetric: bool, n_threads: int | None
) -> NDArray[np.float64]:
    """Sum over pairs, block by block of the two lists of rows."""
    dtype = common_dtype(left.matrix, right.matrix)
    left_norms = _list_norms(kernel, left, dtype)
    right_norms = left_norms if symmetric else _list_norms(kernel, right, dtype)
    out = np.zeros((len(left.starts), len(right.starts)))

    def fold(tile: tuple[slice, slice]) -> NDArray[np.float64]:
        rows, columns = tile
        return _block_sums(
            kernel, left, right, rows, columns, left_norms[rows], right_norms[columns]
        )

    grid = list(tiles(left.length, right.length, symmetric=symmetric))
    sums = ordered_map(fold, grid, n_threads=kernel.threads(n_threads))
    for (rows, columns), values in zip(grid, sums, strict=True):
        row_bags, column_bags = left.bags(rows), right.bags(columns)
        if symmetric and rows != columns and row_bags.stop - 1 == column_bags.start:
            values[-1, 0] *= 2.0  # a bag on both sides of the cut: its pairs in both orders
        out[row_bags, column_bags] += values
    if symmetric:
        for rows, columns in tiles(*out.shape, symmetric=True):
            checkpoint()
            mirror(out, rows, columns)
    return out


def _list_norms(kernel: InstanceKernel, side: _Side, dtype: "np.dtype[Any]") -> NDArray[Any]:
    out = np.empty(side.length, dtype)
    for rows in slices(side.length, BLOCK):
        checkpoint()
        index = side.index(rows)
        out[rows] = kernel.norms(side.matrix[index], dtype, index)
    return out


def _block_sums(
    kernel: InstanceKernel,
    left: _Side,
    right: _Side,
    rows: slice,
    columns: slice,
    left_norms: NDArray[Any],
    right_norms: NDArray[Any],
) -> NDArray[np.float64]:
    """Evaluate one block and sum it over the bags on both sides."""
    from bagwise.kernels._block_kernels import segment_sums

    dtype = left_norms.dtype
    on_diagonal = left is right and rows == columns
    row_index, column_index = left.index(rows), right.index(columns)
    a = converted(left.matrix[row_index], dtype)
    b = a if on_diagonal else converted(right.matrix[column_index], dtype)
    block = kernel.block(a, b, left_norms, right_norms)
    if on_diagonal:
        np.fill_diagonal(block, kernel.diagonal(a))
    return segment_sums(
        block,
        left.bounds(rows),
        right.bounds(columns),
        left.weight(row_index, a.shape[0]),
        right.weight(column_index, b.shape[0]),
    )
