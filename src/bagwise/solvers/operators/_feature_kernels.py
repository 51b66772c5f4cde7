"""Compiled loops over rows of a matrix, dense or CSR; ``rows`` says which of them are meant."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import compiled
from bagwise.solvers.operators._row_kernels import row_add, row_dot, row_loop, row_square

_TILE = 32  # rows and columns of a matrix that stay in the fastest cache


@row_loop
def dot(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: Integers,
    w: Floats,
    out: Floats,
) -> None:
    """Write ``matrix[rows] @ w``."""
    for i in range(rows.shape[0]):
        out[i] = row_dot(data, indices, indptr, rows[i], w)


@row_loop
def combine(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: Integers,
    factor: Floats,
    out: Floats,
) -> None:
    """Add ``factor @ matrix[rows]`` to ``out``."""
    for i in range(rows.shape[0]):
        if factor[i] != 0.0:
            row_add(data, indices, indptr, rows[i], factor[i], out)


@row_loop
def square_norms(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], rows: Integers, out: Floats
) -> None:
    """Write the squared lengths of the rows."""
    for i in range(rows.shape[0]):
        out[i] = row_square(data, indices, indptr, rows[i])


@compiled
def add_curvature(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: Integers,
    weight: Floats,
    out: Floats,
) -> None:
    """Add ``weight * [x, 1] [x, 1]'`` of CSR rows with sorted indices to an upper triangle."""
    d = out.shape[0] - 1
    for i in range(rows.shape[0]):
        start, stop = np.uint64(indptr[rows[i]]), np.uint64(indptr[rows[i] + 1])
        for j in range(start, stop):
            line, value = out[indices[j]], weight[i] * data[j]
            for k in range(j, stop):
                line[np.uint64(indices[k])] += value * data[k]
            line[d] += value
        out[d, d] += weight[i]


@compiled
def mirror(out: Floats) -> None:
    """Copy the upper triangle of a square matrix to the lower one, tile by tile."""
    n = out.shape[0]
    for top in range(0, n, _TILE):
        for left in range(top, n, _TILE):
            for i in range(top, min(top + _TILE, n)):
                for j in range(max(left, i + 1), min(left + _TILE, n)):
                    out[j, i] = out[i, j]


@compiled
def fill_columns(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    place: Integers,
    position: Integers,
    start: int,
    out: Floats,
) -> None:
    """Write the values of CSR rows that belong into a block of columns.

    ``place`` has the new number of each column, ascending, or -1; the block begins at ``start``.
    ``position`` says how far each row has been read, and moves on.
    """
    stop = start + out.shape[1]
    for i in range(out.shape[0]):
        p = position[i]
        while p < indptr[i + 1] and place[indices[p]] < stop:
            if place[indices[p]] >= 0:
                out[i, place[indices[p]] - start] = data[p]
            p += 1
        position[i] = p
