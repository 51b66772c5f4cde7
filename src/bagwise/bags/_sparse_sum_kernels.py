"""Compiled loops that add up the rows of a CSR matrix, bag by bag."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._jit import compiled

_SCANNED = 8  # columns that are looked at in the time in which one is sorted


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
    last_bag = np.full(n_columns, -1)
    for i in range(first, last):
        n_used = 0
        for p in range(indptr[starts[i]], indptr[stops[i]]):
            j = indices[p]
            n_used += last_bag[j] != i
            last_bag[j] = i
        count[i] = n_used


@compiled
def fill_sums(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    weights: Floats,
    starts: Integers,
    stops: Integers,
    n_columns: int,
    first: int,
    last: int,
    bounds: NDArray[Any],
    total: Floats,
    column: NDArray[Any],
) -> None:
    """Write the sums of bags one behind the other, columns in order.

    Bags that store many values have their columns found by a look at all, others by sorting those
    that they store.
    """
    sums, is_stored = np.zeros(n_columns), np.zeros(n_columns, np.bool_)
    for i in range(first, last):
        low, high = indptr[starts[i]], indptr[stops[i]]
        begin, end = bounds[i], bounds[i + 1]
        add_rows(data, indices, indptr, weights, starts[i], stops[i], sums, is_stored)
        k = begin
        if (high - low) * _SCANNED >= n_columns:
            for j in range(n_columns):
                if is_stored[j]:
                    column[k] = j
                    k += 1
        else:
            for p in range(low, high):
                j = indices[p]
                if is_stored[j]:
                    column[k] = j
                    k += 1
                    is_stored[j] = False
            column[begin:end].sort()
        for k in range(begin, end):
            j = column[k]
            total[k] = sums[j]
            sums[j], is_stored[j] = 0.0, False


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
        for p in range(indptr[start], indptr[stop]):
            j = indices[p]
            is_stored[j] = True
            sums[j] += data[p]
        return
    for r in range(start, stop):
        for p in range(indptr[r], indptr[r + 1]):
            j = indices[p]
            is_stored[j] = True
            sums[j] += weights[r] * data[p]
