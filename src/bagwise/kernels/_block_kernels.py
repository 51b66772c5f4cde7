"""Compiled inner loops over one block of a Gram matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


@compiled(fastmath=REASSOCIATE)
def segment_sums(
    block: NDArray[Any],
    row_bounds: NDArray[np.int64],
    column_bounds: NDArray[np.int64],
    row_weight: NDArray[np.float64],
    column_weight: NDArray[np.float64],
) -> NDArray[np.float64]:
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
