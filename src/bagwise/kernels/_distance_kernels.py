"""Compiled inner loops over one block of distances between instances."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Integers
from bagwise._jit import REASSOCIATE, compiled

#: A minimum over a row vectorises only if no entry can be NaN; the callers see to that.
_NO_NAN = frozenset({"nnan", "nsz"})


@compiled
def _complete(row: NDArray[Any], norm: Any, right: NDArray[Any], share: Any) -> int:
    """Turn products into ``norm + right - 2 product``; count the entries that lost digits."""
    count = 0
    for j in range(row.shape[0]):
        both = norm + right[j]
        value = both - (row[j] + row[j])
        row[j] = value
        count += value < share * both
    return count


@compiled(fastmath=REASSOCIATE)
def _squared_difference(x: NDArray[Any], y: NDArray[Any]) -> float:
    total = 0.0
    for k in range(x.shape[0]):
        difference = np.float64(x[k] - y[k])
        total += difference * difference
    return total


@compiled
def squared_from_products(
    block: NDArray[Any],
    left: NDArray[Any],
    right: NDArray[Any],
    share: Any,
    a: NDArray[Any],
    b: NDArray[Any],
) -> None:
    """Turn inner products into squared distances, in place.

    ``left`` and ``right`` are the squared norms of the rows of ``a`` and ``b``. Entries below
    ``share`` of the sum of both norms are computed anew from the differences of the rows.
    """
    for i in range(block.shape[0]):
        row = block[i]
        norm = left[i]
        if _complete(row, norm, right, share) == 0:
            continue
        for j in range(row.shape[0]):
            if row[j] < share * (norm + right[j]):
                row[j] = _squared_difference(a[i], b[j])


@compiled
def sparse_squared_from_products(
    block: NDArray[Any],
    left: NDArray[Any],
    right: NDArray[Any],
    share: Any,
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
    other_indptr: NDArray[Any],
    other_indices: NDArray[Any],
    other_data: NDArray[Any],
) -> None:
    """Do what `squared_from_products` does for CSR rows, whose columns are sorted."""
    for i in range(block.shape[0]):
        row = block[i]
        norm = left[i]
        if _complete(row, norm, right, share) == 0:
            continue
        for j in range(row.shape[0]):
            if row[j] < share * (norm + right[j]):
                p, q = indptr[i], other_indptr[j]
                total = 0.0
                while p < indptr[i + 1] or q < other_indptr[j + 1]:
                    difference = 0.0
                    ours = p < indptr[i + 1]
                    theirs = q < other_indptr[j + 1]
                    if ours and theirs:
                        ours = indices[p] <= other_indices[q]
                        theirs = other_indices[q] <= indices[p]
                    if ours:
                        difference += data[p]
                        p += 1
                    if theirs:
                        difference -= other_data[q]
                        q += 1
                    total += difference * difference
                row[j] = total


@compiled(fastmath=_NO_NAN)
def row_minima(
    block: NDArray[Any], column_bounds: Integers, first: int, smallest: NDArray[Any]
) -> None:
    """Lower ``smallest[i, first + c]`` to the minimum of row ``i`` over columns' segment ``c``."""
    for i in range(block.shape[0]):
        row = block[i]
        for c in range(column_bounds.size - 1):
            value = smallest[i, first + c]
            for j in range(np.uint64(column_bounds[c]), np.uint64(column_bounds[c + 1])):
                value = row[j] if row[j] < value else value
            smallest[i, first + c] = value


@compiled(fastmath=_NO_NAN)
def column_minima(
    block: NDArray[Any], row_bounds: Integers, first: int, smallest: NDArray[Any]
) -> None:
    """Lower ``smallest[r, first + j]`` to the minimum of column ``j`` over rows' segment ``r``."""
    n_columns = block.shape[1]
    for r in range(row_bounds.size - 1):
        lowest = smallest[r, first : first + n_columns]
        for i in range(row_bounds[r], row_bounds[r + 1]):
            row = block[i]
            for j in range(n_columns):
                lowest[j] = row[j] if row[j] < lowest[j] else lowest[j]


@compiled
def column_positions(
    block: NDArray[Any],
    row_bounds: Integers,
    begin: Integers,
    exact: NDArray[Any],
    slack: NDArray[Any],
    first: int,
    smallest: NDArray[Any],
    position: Integers,
) -> None:
    """Do as `column_minima`, and keep in ``position`` which row of its segment attains it.

    Rows count from ``begin[r]`` in segment ``r``. Of values that differ by no more than
    ``slack[j]`` the first one counts as the minimum's place, also if it was found in an earlier
    block; minima no larger than ``exact[j]`` hold all their digits and get no slack.
    """
    n_columns = block.shape[1]
    lowest = np.empty(n_columns, block.dtype)
    highest = np.empty(n_columns, block.dtype)
    place = np.empty(n_columns, np.int64)
    for r in range(row_bounds.size - 1):
        lowest[:] = np.inf
        for i in range(row_bounds[r], row_bounds[r + 1]):
            row = block[i]
            for j in range(n_columns):
                lowest[j] = row[j] if row[j] < lowest[j] else lowest[j]
        for j in range(n_columns):
            highest[j] = lowest[j] if lowest[j] <= exact[j] else lowest[j] + slack[j]
        for i in range(row_bounds[r + 1] - 1, row_bounds[r] - 1, -1):
            row = block[i]
            here = begin[r] + i - row_bounds[r]
            for j in range(n_columns):
                place[j] = here if row[j] <= highest[j] else place[j]
        for j in range(n_columns):
            if highest[j] < smallest[r, first + j]:
                position[r, first + j] = place[j]
            smallest[r, first + j] = min(smallest[r, first + j], lowest[j])
