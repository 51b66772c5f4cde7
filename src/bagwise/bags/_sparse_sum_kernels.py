"""Compiled loops that reduce the rows of a CSR matrix, bag by bag, to sparse rows.

Each loop takes the bags from ``first`` to ``last``, and reads the rows of a bag from the first to
the last. Entries are written one behind the other, the columns of a bag in order.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._jit import compiled

_SCANNED = 8  # columns that are looked at in the time in which one is sorted


@compiled
def marked_columns(
    indices: NDArray[Any], low: int, high: int, is_stored: Booleans, column: Integers
) -> int:
    """Write the columns that were marked for some entries in order; return how many they are.

    Where entries are many, columns are found by a look at all, else they are sorted. No column is
    marked any longer then.
    """
    n_used = 0
    if (high - low) * _SCANNED >= len(is_stored):
        for j in range(len(is_stored)):
            column[n_used] = j
            n_used += is_stored[j]
            is_stored[j] = False
        return n_used
    for p in range(np.uint64(low), np.uint64(high)):
        used = np.uint64(indices[p])
        if is_stored[used]:
            is_stored[used] = False
            column[n_used] = used
            n_used += 1
    column[:n_used].sort()
    return n_used


@compiled
def count_columns(
    indices: NDArray[Any],
    indptr: NDArray[Any],
    starts: Integers,
    stops: Integers,
    n_columns: int,
    first: int,
    last: int,
    count: Integers,
) -> None:
    """Write in how many columns each bag stores values."""
    is_stored = np.zeros(n_columns, np.bool_)
    for i in range(first, last):
        low, high = indptr[starts[i]], indptr[stops[i]]
        for p in range(np.uint64(low), np.uint64(high)):
            is_stored[np.uint64(indices[p])] = True
        n_used = 0
        if (high - low) * _SCANNED >= n_columns:
            for j in range(n_columns):
                n_used += is_stored[j]
            is_stored[:] = False
        else:
            for p in range(np.uint64(low), np.uint64(high)):
                n_used += is_stored[np.uint64(indices[p])]
                is_stored[np.uint64(indices[p])] = False
        count[i] = n_used


@compiled
def fill_sums(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    weights: Floats,
    starts: Integers,
    stops: Integers,
    divisor: Floats,
    n_columns: int,
    first: int,
    last: int,
    bounds: NDArray[Any],
    value: Floats,
    column: NDArray[Any],
) -> None:
    """Write the sums of the rows of bags, with weights if there are any, divided by numbers."""
    sums, is_stored = np.zeros(n_columns), np.zeros(n_columns, np.bool_)
    used = np.empty(n_columns, np.int64)
    for i in range(first, last):
        low, high, begin = indptr[starts[i]], indptr[stops[i]], bounds[i]
        add_rows(data, indices, indptr, weights, starts[i], stops[i], sums, is_stored)
        for k in range(marked_columns(indices, low, high, is_stored, used)):
            j = used[k]
            value[begin + k], column[begin + k] = sums[j] / divisor[i], j
            sums[j] = 0.0


@compiled
def add_rows(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    weights: Floats,
    start: int,
    stop: int,
    sums: Floats,
    is_stored: Booleans,
) -> None:
    """Add rows, and note which columns they store."""
    if not len(weights):
        for p in range(np.uint64(indptr[start]), np.uint64(indptr[stop])):
            j = np.uint64(indices[p])
            is_stored[j] = True
            sums[j] += data[p]
        return
    for r in range(start, stop):
        for p in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            j = np.uint64(indices[p])
            is_stored[j] = True
            sums[j] += weights[r] * data[p]


@compiled
def fill_ranges(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    starts: Integers,
    stops: Integers,
    n_columns: int,
    first: int,
    last: int,
    value: NDArray[Any],
    column: NDArray[Any],
    count: Integers,
) -> int:
    """Write the smallest values of bags and behind them the largest ones, but no zeros.

    Return how many were written; ``count`` says how many of each bag.

    A column in which a bag stores fewer values than it has rows holds zeros, too.
    """
    least, most = np.full(n_columns, np.inf, data.dtype), np.full(n_columns, -np.inf, data.dtype)
    n_stored, is_stored = np.zeros(n_columns, np.int32), np.zeros(n_columns, np.bool_)
    used, n_written = np.empty(n_columns, np.int64), 0
    for i in range(first, last):
        low, high = indptr[starts[i]], indptr[stops[i]]
        for p in range(np.uint64(low), np.uint64(high)):
            j, x = np.uint64(indices[p]), data[p]
            is_nan = x != x
            least[j] = x if (x < least[j]) | is_nan else least[j]
            most[j] = x if (x > most[j]) | is_nan else most[j]
            n_stored[j] += 1
            is_stored[j] = True
        n_used = marked_columns(indices, low, high, is_stored, used)
        size, begin = stops[i] - starts[i], n_written
        for k in range(n_used):
            j = used[k]
            x = 0.0 if (least[j] > 0.0) & (n_stored[j] < size) else least[j]
            value[n_written] = x
            column[n_written] = j
            n_written += x != 0.0
            least[j] = np.inf
        for k in range(n_used):
            j = used[k]
            x = 0.0 if (most[j] < 0.0) & (n_stored[j] < size) else most[j]
            value[n_written] = x
            column[n_written] = n_columns + j
            n_written += x != 0.0
            most[j], n_stored[j] = -np.inf, 0
        count[i] = n_written - begin
    return n_written


@compiled
def fill_moments(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    starts: Integers,
    stops: Integers,
    n_columns: int,
    first: int,
    last: int,
    value: NDArray[Any],
    column: NDArray[Any],
    count: Integers,
) -> int:
    """Write means and behind them standard deviations, where values are stored; see above."""
    mean, squares = np.zeros(n_columns), np.zeros(n_columns)
    n_stored, is_stored = np.zeros(n_columns, np.int32), np.zeros(n_columns, np.bool_)
    used, n_written = np.empty(n_columns, np.int64), 0
    for i in range(first, last):
        low, high, size = indptr[starts[i]], indptr[stops[i]], stops[i] - starts[i]
        for p in range(np.uint64(low), np.uint64(high)):
            j = np.uint64(indices[p])
            mean[j] += data[p]
            n_stored[j] += 1
            is_stored[j] = True
        n_used = marked_columns(indices, low, high, is_stored, used)
        for k in range(n_used):
            mean[used[k]] /= size
        for p in range(np.uint64(low), np.uint64(high)):
            j = np.uint64(indices[p])
            away = data[p] - mean[j]
            squares[j] += away * away
        for k in range(n_used):
            j, at, behind = used[k], n_written + k, n_written + n_used + k
            square = squares[j] + (size - n_stored[j]) * mean[j] * mean[j]
            value[at], value[behind] = mean[j], np.sqrt(square / size)
            column[at], column[behind] = j, n_columns + j
            mean[j], squares[j], n_stored[j] = 0.0, 0.0, 0
        n_written += 2 * n_used
        count[i] = 2 * n_used
    return n_written
