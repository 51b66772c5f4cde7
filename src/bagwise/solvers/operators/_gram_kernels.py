"""Compiled loops over some rows and columns of a matrix in memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def add_rows(
    matrix: NDArray[Any],
    rows: NDArray[np.int64],
    coef: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
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
def gather(
    matrix: NDArray[Any], rows: NDArray[np.int64], columns: NDArray[np.int64], out: NDArray[Any]
) -> None:
    """Write ``matrix[rows][:, columns]``."""
    for r in range(rows.shape[0]):
        source, destination = matrix[rows[r]], out[r]
        for c in range(columns.shape[0]):
            destination[c] = source[columns[c]]
