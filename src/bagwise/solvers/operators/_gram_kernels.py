"""Compiled loops over some rows and columns of a matrix in memory."""

from typing import Any

import numpy as np
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


@compiled(fastmath=REASSOCIATE)
def add_symmetric(matrix: NDArray[Any], first: int, last: int, coef: Floats, out: Floats) -> None:
    """Add what some rows of a symmetric matrix give to ``matrix @ coef``, in double precision.

    Rows ``first`` up to ``last`` give their entries from the diagonal on, each to both places.
    """
    n, whole = out.shape[0], last - (last - first) % 4
    for r in range(first, whole, 4):
        end = r + 4
        for i in range(r, end):
            _add_row_and_column(matrix[i], i, end, coef, out)
        a, b, c, d = matrix[r, end:], matrix[r + 1, end:], matrix[r + 2, end:], matrix[r + 3, end:]
        s, t, x, y = coef[r], coef[r + 1], coef[r + 2], coef[r + 3]
        e = f = g = h = 0.0
        factor, total = coef[end:], out[end:]
        for k in range(n - end):
            by = factor[k]
            total[k] += s * a[k] + t * b[k] + x * c[k] + y * d[k]
            e += by * a[k]
            f += by * b[k]
            g += by * c[k]
            h += by * d[k]
        out[r] += e
        out[r + 1] += f
        out[r + 2] += g
        out[r + 3] += h
    for i in range(whole, last):
        _add_row_and_column(matrix[i], i, n, coef, out)


@compiled(fastmath=REASSOCIATE)
def _add_row_and_column(row: NDArray[Any], i: int, end: int, coef: Floats, out: Floats) -> None:
    total = row[i] * coef[i]
    for k in range(i + 1, end):
        total += row[k] * coef[k]
        out[k] += row[k] * coef[i]
    out[i] += total


@compiled
def gather(matrix: NDArray[Any], rows: Integers, columns: Integers, out: NDArray[Any]) -> None:
    """Write ``matrix[rows][:, columns]``."""
    for r in range(rows.shape[0]):
        source, destination = matrix[rows[r]], out[r]
        for c in range(columns.shape[0]):
            destination[c] = source[columns[c]]


@compiled(fastmath=REASSOCIATE)
def sum_block(
    matrix: NDArray[Any],
    left_ends: Integers,
    left: Integers,
    left_coef: Floats,
    right_ends: Integers,
    right: Integers,
    right_coef: Floats,
    out: Floats,
) -> None:
    """Write the inner products of sums of rows with sums of columns, both sides in CSR form."""
    total = np.empty(matrix.shape[1])
    for r in range(out.shape[0]):
        total[:] = 0.0
        for p in range(left_ends[r], left_ends[r + 1]):
            row, coef = matrix[left[p]], left_coef[p]
            for k in range(total.shape[0]):
                total[k] += coef * row[k]
        for c in range(out.shape[1]):
            value = 0.0
            for q in range(right_ends[c], right_ends[c + 1]):
                value += right_coef[q] * total[right[q]]
            out[r, c] = value


@compiled
def widen(memory: Floats, k: int, n: int) -> None:
    """Move the rows of a matrix of ``k`` columns apart, to where they are in one of ``n``."""
    for r in range(k - 1, 0, -1):
        for c in range(k - 1, -1, -1):
            memory[r * n + c] = memory[r * k + c]
