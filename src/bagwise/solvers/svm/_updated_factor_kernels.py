"""Compiled loops of a Cholesky factor that rows join and leave.

``factor`` holds the lower triangle in its first rows and columns; there may be more of both.
"""

import math

import numpy as np

from bagwise._arrays import Floats
from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def solve_columns(factor: Floats, right: Floats) -> None:
    """Multiply the columns of ``right`` by the inverse of the factor, in place."""
    n, width = right.shape
    for i in range(n):
        row, out = factor[i], right[i]
        for j in range(i):
            part, above = row[j], right[j]
            for k in range(width):
                out[k] -= part * above[k]
        for k in range(width):
            out[k] /= row[i]


@compiled(fastmath=REASSOCIATE)
def solve_two(factor: Floats, x: Floats, y: Floats) -> None:
    """Multiply two vectors by the inverse of the factorised matrix, in place."""
    n = x.shape[0]
    for i in range(n):
        row = factor[i]
        sum_x, sum_y = 0.0, 0.0
        for j in range(i):
            sum_x += row[j] * x[j]
            sum_y += row[j] * y[j]
        x[i] = (x[i] - sum_x) / row[i]
        y[i] = (y[i] - sum_y) / row[i]
    for i in range(n - 1, -1, -1):
        row = factor[i]
        x[i] /= row[i]
        y[i] /= row[i]
        part_x, part_y = x[i], y[i]
        for j in range(i):
            x[j] -= part_x * row[j]
            y[j] -= part_y * row[j]


@compiled
def remove_row(factor: Floats, n: int, k: int) -> None:
    """Take row ``k`` out of the first ``n`` rows: those below move up and are turned back.

    Each of them has one entry too many then, right of the diagonal. A plane rotation of two
    columns takes it to the diagonal.
    """
    cosine, sine = np.empty(n), np.empty(n)
    for i in range(k, n - 1):
        below, row = factor[i + 1], factor[i]
        for j in range(k):
            row[j] = below[j]
        carried = below[k]
        for j in range(k, i):
            entry = below[j + 1]
            row[j] = cosine[j] * carried + sine[j] * entry
            carried = cosine[j] * entry - sine[j] * carried
        entry = below[i + 1]
        length = math.hypot(carried, entry)
        cosine[i], sine[i] = carried / length, entry / length
        row[i] = length
