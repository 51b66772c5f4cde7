"""Compiled inner loop of the pivoted Cholesky factorisation."""

import numpy as np

from bagwise._arrays import Floats
from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def reduce_by_pivot(
    factor: Floats, filled: int, pivot: int, column: Floats, residual: Floats
) -> None:
    """Append one column to a Cholesky factor and take it from the residual diagonal, in place.

    ``column`` holds the kernel between each row and row ``pivot``; columns of ``factor`` before
    ``filled`` are known. Every row goes through the same operations, so equal rows stay equal.
    """
    root = np.sqrt(residual[pivot])
    known = factor[pivot, :filled]
    for i in range(factor.shape[0]):
        row = factor[i]
        total = 0.0
        for j in range(filled):
            total += row[j] * known[j]
        value = (column[i] - total) / root
        row[filled] = value
        residual[i] -= value * value
    factor[pivot, filled] = root
    residual[pivot] = 0.0
