"""Compiled coordinate steps for the dual of the squared hinge without an intercept."""

from typing import Any

from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def head_steps(
    head: Floats, cross: Floats, sign: Floats, ridge: Floats, z: Floats, decision: Floats
) -> None:
    """Minimise ``z'(Q + D)z / 2 - sum(z)`` over ``z_r >= 0``, for one head row after another.

    ``decision`` is ``gram @ (sign * z)``, so that ``Q z`` is ``sign * decision``.
    """
    p, m = cross.shape
    for r in range(p):
        slope = sign[r] * decision[r] + ridge[r] * z[r] - 1.0
        moved = max(0.0, z[r] - slope / (head[r, r] + ridge[r]))
        change = sign[r] * (moved - z[r])
        if change != 0.0:
            z[r] = moved
            for k in range(p):
                decision[k] += change * head[r, k]
            for k in range(m):
                decision[p + k] += change * cross[r, k]


@compiled(fastmath=REASSOCIATE)
def fixed_steps(
    fixed: NDArray[Any],
    cross: Floats,
    sign: Floats,
    ridge: Floats,
    first: int,
    last: int,
    z: Floats,
    decision: Floats,
) -> None:
    """Do the same for the fixed rows ``first`` up to ``last``."""
    p, m = cross.shape
    for f in range(first, last):
        row, r = fixed[f], p + f
        slope = sign[r] * decision[r] + ridge[r] * z[r] - 1.0
        moved = max(0.0, z[r] - slope / (row[f] + ridge[r]))
        change = sign[r] * (moved - z[r])
        if change != 0.0:
            z[r] = moved
            for k in range(p):
                decision[k] += change * cross[k, f]
            for k in range(m):
                decision[p + k] += change * row[k]
