"""Compiled loops over the rows of a linear machine whose scores are known."""

from bagwise._arrays import Floats
from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def imbalance(
    sign: Floats, target: Floats, z: Floats, b: float, base: Floats, slope: Floats, cap: Floats
) -> tuple[float, float, float]:
    """Return the sum of the signed answers, that of their sizes, and minus its derivative by b."""
    total, size, bend = 0.0, 0.0, 0.0
    for i in range(z.shape[0]):
        a = base[i] + slope[i] * (target[i] - sign[i] * (z[i] + b))
        if a > 0.0:
            if a < cap[i]:
                bend += slope[i]
            else:
                a = cap[i]
            size += a
            total += sign[i] * a
    return total, size, bend


@compiled(fastmath=REASSOCIATE)
def hinge(sign: Floats, target: Floats, cost: Floats, z: Floats, b: float) -> float:
    """Return the sum of the hinges, costs included."""
    loss = 0.0
    for i in range(z.shape[0]):
        loss += cost[i] * max(target[i] - sign[i] * (z[i] + b), 0.0)
    return loss


@compiled(fastmath=REASSOCIATE)
def hinge_slope(
    sign: Floats, target: Floats, cost: Floats, z: Floats, dz: Floats, b: float, db: float,
    step: float,
) -> float:  # fmt: skip
    """Return the derivative of that sum along a direction, from the right."""
    slope = 0.0
    for i in range(z.shape[0]):
        rate = sign[i] * (dz[i] + db)
        short = target[i] - sign[i] * (z[i] + b) - step * rate
        if short > 0.0 or (short == 0.0 and rate < 0.0):
            slope -= cost[i] * rate
    return slope
