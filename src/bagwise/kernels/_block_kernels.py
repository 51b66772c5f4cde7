"""Compiled inner loops over one block of a Gram matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import REASSOCIATE, compiled


@compiled
def gaussian_exponent(
    block: NDArray[Any], left: NDArray[Any], right: NDArray[Any], gamma: Any
) -> None:
    """Turn inner products into ``-gamma * squared distance``, in place.

    ``left`` and ``right`` are the squared norms of the rows on either side. All four arguments
    have one floating type, so that the loop vectorises in that type.
    """
    zero = gamma - gamma
    for i in range(block.shape[0]):
        row = block[i]
        norm = left[i]
        for j in range(row.shape[0]):
            squared = norm + right[j] - (row[j] + row[j])
            row[j] = -gamma * (zero if squared < zero else squared)  # NaN stays: it is not 0


@compiled
def sparse_products(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
    column_indptr: NDArray[Any],
    column_indices: NDArray[Any],
    column_data: NDArray[Any],
    out: NDArray[Any],
) -> None:
    """Write all inner products of CSR rows with rows that are given by columns (CSC)."""
    for i in range(out.shape[0]):
        row = out[i]
        row[:] = 0
        for p in range(indptr[i], indptr[i + 1]):
            column, value = indices[p], data[p]
            for q in range(column_indptr[column], column_indptr[column + 1]):
                row[column_indices[q]] += value * column_data[q]


@compiled
def dense_coordinate_sums(
    a: NDArray[Any],
    b: NDArray[Any],
    chi2: bool,
    out: NDArray[Any],
    first_row: int,
    first_column: int,
) -> None:
    """Write ``sum_k |x_k - y_k|``, or ``sum_k (x_k - y_k)^2 / (x_k + y_k)``, of all pairs of rows.

    The corner of the result is at ``out[first_row, first_column]``. A tile of ``b`` is turned so
    that the innermost loop runs along its rows: it vectorises without re-ordering any sum. The
    tile stays in the cache while all rows of ``a`` pass.
    """
    n_columns, n_features = b.shape
    tile = np.empty((128, 64), a.dtype)
    sums = np.empty(64, a.dtype)
    for j in range(0, n_columns, 64):
        width = min(64, n_columns - j)
        for k in range(0, max(1, n_features), 128):
            depth = min(128, n_features - k)
            tile[:] = 0
            for r in range(width):
                for c in range(depth):
                    tile[c, r] = b[j + r, k + c]
            for i in range(a.shape[0]):
                row = out[first_row + i, first_column + j : first_column + j + width]
                if k == 0:
                    sums[:] = 0
                else:
                    sums[:width] = row
                if chi2:
                    _add_chi2(a[i, k : k + depth], tile, sums)
                else:
                    _add_absolute(a[i, k : k + depth], tile, sums)
                row[:] = sums[:width]


@compiled
def _add_absolute(row: NDArray[Any], tile: NDArray[Any], sums: NDArray[Any]) -> None:
    fours = row.shape[0] // 4 * 4
    for k in range(0, fours, 4):  # four terms for each load and store of a sum
        x0, x1, x2, x3 = row[k], row[k + 1], row[k + 2], row[k + 3]
        y0, y1, y2, y3 = tile[k], tile[k + 1], tile[k + 2], tile[k + 3]
        for j in range(64):
            sums[j] += (abs(x0 - y0[j]) + abs(x1 - y1[j])) + (abs(x2 - y2[j]) + abs(x3 - y3[j]))
    for k in range(fours, row.shape[0]):
        x, y = row[k], tile[k]
        for j in range(64):
            sums[j] += abs(x - y[j])


@compiled
def _add_chi2(row: NDArray[Any], tile: NDArray[Any], sums: NDArray[Any]) -> None:
    for k in range(row.shape[0]):
        x, y = row[k], tile[k]
        for j in range(64):
            sums[j] += _chi2_term(x, y[j])


@compiled
def _chi2_term(x: Any, y: Any) -> Any:
    total = x + y
    difference = x - y
    zero = difference - difference
    # np.divide does not look for a zero divisor, which would keep the loop from vectorising.
    quotient = np.divide(difference, total)
    return zero if total == zero else difference * quotient


@compiled
def sparse_coordinate_sums(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
    left: Floats,
    column_indptr: NDArray[Any],
    column_indices: NDArray[Any],
    column_data: NDArray[Any],
    right: Floats,
    chi2: bool,
    out: NDArray[Any],
) -> None:
    """Do what `dense_coordinate_sums` does for CSR rows and rows that are given by columns (CSC).

    A coordinate in which one row is 0 adds the absolute value of the other, so the sums of these,
    ``left`` and ``right``, are right up to the coordinates where neither is 0.
    """
    sums = np.empty(out.shape[1])
    for i in range(out.shape[0]):
        for j in range(sums.shape[0]):
            sums[j] = left[i] + right[j]
        for p in range(indptr[i], indptr[i + 1]):
            column, x = indices[p], np.float64(data[p])
            for q in range(column_indptr[column], column_indptr[column + 1]):
                y = np.float64(column_data[q])
                if chi2:
                    shared = 4.0 * x * np.divide(y, x + y) if y > 0.0 else 0.0
                else:
                    shared = abs(x) + abs(y) - abs(x - y)
                sums[column_indices[q]] -= shared
        row = out[i]
        for j in range(sums.shape[0]):
            row[j] = 0.0 if sums[j] < 0.0 else sums[j]  # NaN stays


@compiled(fastmath=REASSOCIATE)
def segment_sums(
    block: NDArray[Any],
    row_bounds: Integers,
    column_bounds: Integers,
    row_weight: Floats,
    column_weight: Floats,
) -> Floats:
    """Sum a block over segments of its rows and of its columns, in float64.

    Segment ``r`` of the rows is ``row_bounds[r]:row_bounds[r + 1]``. Each entry counts with the
    product of the weights of its row and its column.
    """
    n_columns = block.shape[1]
    out = np.zeros((row_bounds.size - 1, column_bounds.size - 1))
    folded = np.empty(n_columns)
    for r in range(out.shape[0]):
        folded[:] = 0.0
        for i in range(row_bounds[r], row_bounds[r + 1]):
            row = block[i]
            weight = row_weight[i]
            for j in range(n_columns):
                folded[j] += weight * row[j]
        for c in range(out.shape[1]):
            total = 0.0
            for j in range(np.uint64(column_bounds[c]), np.uint64(column_bounds[c + 1])):
                total += column_weight[j] * folded[j]
            out[r, c] = total
    return out


@compiled
def row_means(block: NDArray[Any], starts: Integers, stops: Integers, out: NDArray[Any]) -> None:
    """Write the mean of each range of rows, summed in double precision."""
    total = np.empty(block.shape[1])
    for g in range(starts.shape[0]):
        total[:] = 0.0
        for i in range(starts[g], stops[g]):
            row = block[i]
            for k in range(row.shape[0]):
                total[k] += row[k]
        size = np.float64(stops[g] - starts[g])
        mean = out[g]
        for k in range(mean.shape[0]):
            mean[k] = total[k] / size


@compiled
def mirror_upper(square: NDArray[Any]) -> None:
    """Copy what is above the diagonal to below it, in small squares that stay in the cache."""
    n = square.shape[0]
    for top in range(0, n, 32):
        for left in range(0, top + 1, 32):
            for i in range(top, min(top + 32, n)):
                for j in range(left, min(left + 32, i)):
                    square[i, j] = square[j, i]
