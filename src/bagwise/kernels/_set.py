"""The set kernel between bags: sums of an instance kernel over all pairs of their instances.

Divided by the sizes of the bags (or by their norms) it is the normalised set kernel of Gärtner,
Flach, Kowalczyk and Smola (2002).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._progress import counted
from bagwise._threads import checkpoint, ordered_map
from bagwise.kernels._instance import InstanceKernel, mirror, tiles
from bagwise.kernels._rows import BLOCK, Matrix, check_widths, common_dtype, converted, slices
from bagwise.kernels._sides import Side

#: Rows of neighbouring bags that share a block when only the sums inside bags are wanted.
_GROUP = 128


def set_gram(
    kernel: InstanceKernel,
    X: Matrix,
    starts: Integers,
    stops: Integers,
    Y: Matrix | None = None,
    y_starts: Integers | None = None,
    y_stops: Integers | None = None,
    *,
    weights: Floats | None = None,
    y_weights: Floats | None = None,
    n_threads: int | None = None,
) -> Floats:
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
    left = Side.of("set_gram", X, starts, stops, weights)
    if Y is None:
        right = left
    elif y_starts is None or y_stops is None:
        msg = "set_gram needs y_starts and y_stops to know the bags of Y. Got None."
        raise ValueError(msg)
    else:
        right = Side.of("set_gram", Y, y_starts, y_stops, y_weights)
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
    starts: Integers,
    stops: Integers,
    *,
    weights: Floats | None = None,
    n_threads: int | None = None,
) -> Floats:
    """Return the sum over all pairs inside each bag: the diagonal of `set_gram`, alone.

    Parameters are those of `set_gram`.
    """
    side = Side.of("set_self", X, starts, stops, weights)
    if kernel.name == "linear":
        return kernel.diagonal(side.feature_sums())
    dtype = common_dtype(side.matrix)
    out = np.zeros(len(side.starts))

    def inside(bags: slice) -> Floats:
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
    gram: Floats, left: Floats, right: Floats, *, out: Floats | None = None
) -> Floats:
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


def _pair_sums(
    kernel: InstanceKernel, left: Side, right: Side, *, symmetric: bool, n_threads: int | None
) -> Floats:
    """Sum over pairs, block by block of the two lists of rows."""
    dtype = common_dtype(left.matrix, right.matrix)
    left_norms = _list_norms(kernel, left, dtype)
    right_norms = left_norms if symmetric else _list_norms(kernel, right, dtype)
    out = np.zeros((len(left.starts), len(right.starts)))

    def fold(tile: tuple[slice, slice]) -> Floats:
        rows, columns = tile
        return _block_sums(
            kernel, left, right, rows, columns, left_norms[rows], right_norms[columns]
        )

    grid = list(tiles(left.length, right.length, symmetric=symmetric))
    sums = ordered_map(fold, grid, n_threads=kernel.threads(n_threads))
    for (rows, columns), values in zip(grid, counted(sums, len(grid)), strict=True):
        row_bags, column_bags = left.bags(rows), right.bags(columns)
        if symmetric and rows != columns and row_bags.stop - 1 == column_bags.start:
            values[-1, 0] *= 2.0  # a bag on both sides of the cut: its pairs in both orders
        out[row_bags, column_bags] += values
    if symmetric:
        for rows, columns in tiles(*out.shape, symmetric=True):
            checkpoint()
            mirror(out, rows, columns)
    return out


def _list_norms(kernel: InstanceKernel, side: Side, dtype: "np.dtype[Any]") -> NDArray[Any]:
    out = np.empty(side.length, dtype)
    for rows in slices(side.length, BLOCK):
        checkpoint()
        index = side.index(rows)
        out[rows] = kernel.norms(side.matrix[index], dtype, index)
    return out


def _block_sums(
    kernel: InstanceKernel,
    left: Side,
    right: Side,
    rows: slice,
    columns: slice,
    left_norms: NDArray[Any],
    right_norms: NDArray[Any],
) -> Floats:
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
