"""Compiled loops over some rows and columns of a matrix in memory."""

from typing import Any

from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def add_rows(matrix: NDArray[Any], rows: Integers, coef: Floats, out: Floats) -> None:
    """Add ``coef @ matrix[rows]`` in double precision."""
    n, m = out.shape[0], rows.shape[0]
    whole = m - m % 4
    for r in range(0, whole, 4):
        a, b, c, d = matrix[rows[r]], matrix[rows[r + 1]], matrix[rows[r + 2]], matrix[rows[r + 3]]
        s, t, x, y = coef[r], coef[r + 1], coef[r + 2], coef[r + 3]
        for k in range(n):
            out[k] += s * a[k] + t * b[k] + x * c[k] + y * d[k]
    for r in range(whole, m):
        a, s = matrix[rows[r]], coef[r]
        for k in range(n):
            out[k] += s * a[k]


@compiled
def gather(matrix: NDArray[Any], rows: Integers, columns: Integers, out: NDArray[Any]) -> None:
    """Write ``matrix[rows][:, columns]``."""
    for r in range(rows.shape[0]):
        source, destination = matrix[rows[r]], out[r]
        for c in range(columns.shape[0]):
            destination[c] = source[columns[c]]
