"""What compiled loops do with one row of a matrix, dense or CSR: one loop serves both.

A matrix comes as ``data, indices, indptr``, of which a dense one uses the first only. The functions
below are put into the loop that calls them when that is compiled, in the form for its matrix. So a
loop is as fast as if it were written for that form: as ordinary functions, or with the parts in a
tuple, they made coordinate steps on CSR rows 5 to 40 % slower. Places in CSR rows are unsigned: a
signed one is looked at, as it might count from the end, and that takes a quarter of the time.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise._jit import REASSOCIATE, compiled

F = TypeVar("F", bound=Callable[..., Any])
Index = NDArray[Any]
Vector = Floats


def row_loop(function: F) -> F:
    """Compile a loop over rows, whose first arguments are ``data, indices, indptr``.

    Sums over dense rows may be re-ordered, so that they vectorise. Over CSR rows they may not: it
    gains nothing there, and made coordinate steps a quarter slower.
    """
    dense, sparse = compiled(fastmath=REASSOCIATE)(function), compiled(function)

    @wraps(function)
    def loop(data: NDArray[Any], *arguments: Any) -> Any:
        return (dense if data.ndim == 2 else sparse)(data, *arguments)

    loop.variants = dense, sparse  # type: ignore[attr-defined]
    return cast(F, loop)


def row_dot(data: NDArray[Any], indices: Index, indptr: Index, row: int, w: Vector) -> float:
    """Return the inner product of a row with a vector."""
    raise NotImplementedError


@overload(row_dot, inline="always")
def _row_dot(data: Any, indices: Any, indptr: Any, row: Any, w: Any) -> Any:
    def dense(data: Any, indices: Any, indptr: Any, row: Any, w: Any) -> Any:
        values, total = data[row], 0.0
        for k in range(values.shape[0]):
            total += values[k] * w[k]
        return total

    def sparse(data: Any, indices: Any, indptr: Any, row: Any, w: Any) -> Any:
        total = 0.0
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            total += data[k] * w[np.uint64(indices[k])]
        return total

    return dense if data.ndim == 2 else sparse


def row_square(data: NDArray[Any], indices: Index, indptr: Index, row: int) -> float:
    """Return the squared length of a row, in which no column comes twice."""
    raise NotImplementedError


@overload(row_square, inline="always")
def _row_square(data: Any, indices: Any, indptr: Any, row: Any) -> Any:
    def dense(data: Any, indices: Any, indptr: Any, row: Any) -> Any:
        values, total = data[row], 0.0
        for k in range(values.shape[0]):
            value = np.float64(values[k])
            total += value * value
        return total

    def sparse(data: Any, indices: Any, indptr: Any, row: Any) -> Any:
        total = 0.0
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            value = np.float64(data[k])
            total += value * value
        return total

    return dense if data.ndim == 2 else sparse


def row_square_and_dot(
    data: NDArray[Any], indices: Index, indptr: Index, row: int, w: Vector
) -> tuple[float, float]:
    """Return the squared length of a row and its inner product with a vector."""
    raise NotImplementedError


@overload(row_square_and_dot, inline="always")
def _row_square_and_dot(data: Any, indices: Any, indptr: Any, row: Any, w: Any) -> Any:
    def dense(data: Any, indices: Any, indptr: Any, row: Any, w: Any) -> Any:
        values, square, dot = data[row], 0.0, 0.0
        for k in range(values.shape[0]):
            value = np.float64(values[k])
            square += value * value
            dot += value * w[k]
        return square, dot

    def sparse(data: Any, indices: Any, indptr: Any, row: Any, w: Any) -> Any:
        square, dot = 0.0, 0.0
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            value = np.float64(data[k])
            square += value * value
            dot += value * w[np.uint64(indices[k])]
        return square, dot

    return dense if data.ndim == 2 else sparse


def row_add(
    data: NDArray[Any], indices: Index, indptr: Index, row: int, by: float, w: Vector
) -> None:
    """Add a multiple of a row to a vector."""
    raise NotImplementedError


@overload(row_add, inline="always")
def _row_add(data: Any, indices: Any, indptr: Any, row: Any, by: Any, w: Any) -> Any:
    def dense(data: Any, indices: Any, indptr: Any, row: Any, by: Any, w: Any) -> Any:
        values = data[row]
        for k in range(values.shape[0]):
            w[k] += by * values[k]

    def sparse(data: Any, indices: Any, indptr: Any, row: Any, by: Any, w: Any) -> Any:
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            w[np.uint64(indices[k])] += by * data[k]

    return dense if data.ndim == 2 else sparse
