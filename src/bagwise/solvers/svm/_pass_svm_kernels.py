"""Compiled loops over the rows of a linear machine whose scores are known."""

import numpy as np

from bagwise._arrays import Floats, Signs
from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def imbalance(
    sign: Signs, target: Floats, z: Floats, b: float, base: Floats, slope: Floats, cap: Floats
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


@compiled
def shortfall(sign: Signs, target: Floats, z: Floats, b: float, out: Floats) -> None:
    """Write by how much each row falls short of its target."""
    for i in range(z.shape[0]):
        out[i] = target[i] - sign[i] * (z[i] + b)


@compiled
def count_short(sign: Signs, target: Floats, z: Floats, b: float) -> int:
    """Count the rows that fall short."""
    count = 0
    for i in range(z.shape[0]):
        count += target[i] - sign[i] * (z[i] + b) > 0.0
    return count


@compiled
def count_bound(
    sign: Signs, target: Floats, z: Floats, b: float, one: Floats, other: Floats, cost: Floats
) -> int:
    """Count the rows that fall short and have one of two multipliers above half their cost."""
    count = 0
    for i in range(z.shape[0]):
        is_bound = max(one[i], other[i]) > 0.5 * cost[i]
        count += is_bound and target[i] - sign[i] * (z[i] + b) > 0.0
    return count


@compiled
def bend(sign: Signs, base: Floats, cost: Floats, least: float, sharpness: float) -> Floats:
    """Return slopes: costs, or twice the largest multiplier of the sign if that is less."""
    below, above = 0.5 * least, 0.5 * least
    for i in range(sign.shape[0]):
        if sign[i] < 0.0:
            below = max(below, base[i])
        else:
            above = max(above, base[i])
    slope = np.empty(sign.shape[0])
    for i in range(sign.shape[0]):
        slope[i] = sharpness * min(cost[i], 2.0 * (below if sign[i] < 0.0 else above))
    return slope


@compiled(fastmath=REASSOCIATE)
def hinge(sign: Signs, target: Floats, cost: Floats, z: Floats, b: float) -> float:
    """Return the sum of the hinges, costs included."""
    loss = 0.0
    for i in range(z.shape[0]):
        loss += cost[i] * max(target[i] - sign[i] * (z[i] + b), 0.0)
    return loss


@compiled(fastmath=REASSOCIATE)
def smoothed(
    sign: Signs, target: Floats, z: Floats, b: float, base: Floats, slope: Floats, cap: Floats
) -> float:
    """Return the sum of the hinges that are smoothed about multipliers ``base``."""
    loss = 0.0
    for i in range(z.shape[0]):
        short = target[i] - sign[i] * (z[i] + b)
        change = min(max(slope[i] * short, -base[i]), cap[i] - base[i])
        loss += (base[i] + change) * short - 0.5 * change * (change / slope[i])
    return loss


@compiled(fastmath=REASSOCIATE)
def hinge_slope(
    sign: Signs, target: Floats, cost: Floats, z: Floats, dz: Floats, b: float, db: float,
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


@compiled
def roomiest(signed: Floats, cap: Floats) -> tuple[int, float]:
    """Return which multiplier is farthest from its bounds, and how far; -1 and 0 if none is."""
    best, most = -1, 0.0
    for i in range(signed.shape[0]):
        size = abs(signed[i])
        room = min(size, cap[i] - size)
        if room > most:
            best, most = i, room
    return best, most


@compiled
def are_close(one: Floats, other: Floats, share: float) -> bool:
    """Tell whether numbers differ by no more than a share of the others."""
    n_close = 0
    for i in range(one.shape[0]):
        n_close += abs(one[i] - other[i]) <= share * abs(other[i])
    return bool(n_close == one.shape[0])
