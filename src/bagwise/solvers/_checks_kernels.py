"""Compiled loops of `bagwise.solvers._checks`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def upper_half_is_finite(gram: NDArray[Any], start: int, stop: int) -> bool:
    """Tell whether rows ``start:stop``, from the diagonal on, hold no NaN and no infinity."""
    for i in range(start, stop):
        row = gram[i]
        total = 0.0
        for k in range(np.uint64(i), np.uint64(row.shape[0])):
            total += 0.0 * float(row[k])
        if total != 0.0:  # NaN: 0 times NaN or infinity
            return False
    return True
