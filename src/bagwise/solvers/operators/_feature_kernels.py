"""Compiled loops over rows of a matrix, dense or CSR; ``rows`` says which of them are meant."""

from typing import Any

from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise.solvers.operators._row_kernels import row_add, row_dot, row_loop, row_square


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
