"""Compiled loops over rows of a matrix, dense or CSR; ``rows`` says which of them are meant."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def dense_dot(
    matrix: NDArray[Any], rows: NDArray[np.int64], w: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Write ``matrix[rows] @ w``."""
    for i in range(rows.shape[0]):
        row = matrix[rows[i]]
        total = 0.0
        for k in range(row.shape[0]):
            total += row[k] * w[k]
        out[i] = total


@compiled(fastmath=REASSOCIATE)
def dense_combine(
    matrix: NDArray[Any],
    rows: NDArray[np.int64],
    factor: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Add ``factor @ matrix[rows]`` to ``out``."""
    for i in range(rows.shape[0]):
        if factor[i] != 0.0:
            row, by = matrix[rows[i]], factor[i]
            for k in range(row.shape[0]):
                out[k] += by * row[k]


@compiled(fastmath=REASSOCIATE)
def dense_square_norms(
    matrix: NDArray[Any], rows: NDArray[np.int64], out: NDArray[np.float64]
) -> None:
    """Write the squared lengths of the rows."""
    for i in range(rows.shape[0]):
        row = matrix[rows[i]]
        total = 0.0
        for k in range(row.shape[0]):
            value = np.float64(row[k])
            total += value * value
        out[i] = total


@compiled
def csr_dot(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: NDArray[np.int64],
    w: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write ``matrix[rows] @ w``."""
    for i in range(rows.shape[0]):
        total = 0.0
        for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
            total += data[k] * w[indices[k]]
        out[i] = total


@compiled
def csr_combine(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: NDArray[np.int64],
    factor: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Add ``factor @ matrix[rows]`` to ``out``."""
    for i in range(rows.shape[0]):
        if factor[i] != 0.0:
            for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
                out[indices[k]] += factor[i] * data[k]


@compiled
def csr_square_norms(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Write the squared lengths of the rows, in which no column comes twice."""
    for i in range(rows.shape[0]):
        total = 0.0
        for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
            value = np.float64(data[k])
            total += value * value
        out[i] = total
