"""Compiled loops over the terms of the Newton model.

A term answers a shortfall ``u = target - sign * (z + b)`` with ``clip(base + slope * u, 0, cap)``.
"""

from bagwise._arrays import Floats, Integers, Signs
from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def answers(
    sign: Signs,
    target: Floats,
    z: Floats,
    b: float,
    base: Floats,
    slope: Floats,
    cap: Floats,
    out: Floats,
) -> tuple[float, float, float]:
    """Write the answers times the signs; return their sum, that of their sizes, and the terms'."""
    total, size, value = 0.0, 0.0, 0.0
    for i in range(z.shape[0]):
        a = base[i] + slope[i] * (target[i] - sign[i] * (z[i] + b))
        answer = min(max(a, 0.0), cap[i])
        out[i] = sign[i] * answer
        total += out[i]
        size += answer
        if answer > 0.0:
            value += answer * (a - 0.5 * answer) / slope[i]
    return total, size, value


@compiled(fastmath=REASSOCIATE)
def along(
    sign: Signs,
    target: Floats,
    z: Floats,
    dz: Floats,
    b: float,
    db: float,
    base: Floats,
    slope: Floats,
    cap: Floats,
    step: float,
) -> tuple[float, float]:
    """Return first and second derivative of the sum of the terms along a direction."""
    first, second = 0.0, 0.0
    for i in range(z.shape[0]):
        rate = sign[i] * (dz[i] + db)
        a = base[i] + slope[i] * (target[i] - sign[i] * (z[i] + b) - step * rate)
        if a > 0.0:
            if a < cap[i]:
                first -= a * rate
                second += slope[i] * rate * rate
            else:
                first -= cap[i] * rate
    return first, second


@compiled
def free_terms(
    sign: Signs,
    target: Floats,
    z: Floats,
    b: float,
    base: Floats,
    slope: Floats,
    cap: Floats,
    widest: float,
    blur: float,
    out: Integers,
    weight: Floats,
) -> int:
    """Write which terms answer strictly between their bounds, and their slopes; return how many.

    A ``blur`` above 0 adds terms whose unclipped answer is beyond a bound by less than so many
    times the distance of the bounds, or ``widest`` if that is less. Their slope counts for less
    the farther they are.
    """
    count = 0
    for i in range(z.shape[0]):
        a = base[i] + slope[i] * (target[i] - sign[i] * (z[i] + b))
        beyond = max(-a, a - cap[i])
        width = min(cap[i], widest)
        if beyond < 0.0 or beyond < blur * width:
            out[count] = i
            weight[count] = slope[i]
            if beyond > 0.0:
                weight[count] /= 1.0 + 2.0 * beyond / width
            count += 1
    return count
