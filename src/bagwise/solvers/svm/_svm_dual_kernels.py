"""Compiled loops of the SVM dual: pair steps.

Everywhere ``v`` is ``sign * target - gram @ (sign * alpha)``, less what a ridge takes off, and
``beta = sign * alpha`` lies in ``[lower, upper]``. A row may grow where ``grow`` is 0 and shrink
where ``shrink`` is 0; elsewhere these hold minus infinity, so that adding them takes the row out of
a maximum.
"""

from typing import Any

import numpy as np
from numba import config
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise._jit import REASSOCIATE, compiled

_STRIP = 64  # maxima are found strip by strip: fast over all rows, then exactly in one strip

_TINY = 1e-300


def _emit_larger(context: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flags = ("nnan", "nsz")
        condition = builder.fcmp_ordered(">", *arguments, flags=flags)
        return builder.select(condition, *arguments, flags=flags)

    return types.float64(types.float64, types.float64), generate


#: The larger of two numbers that are not NaN. Stated so to the compiler, a maximum over an array
#: becomes vector instructions; numba's own ``max`` and ``if`` must respect NaN and do not. An
#: intrinsic exists in compiled code only, so plain ``max`` stands in for it where numba is off.
_larger: Any = max if config.DISABLE_JIT else intrinsic(_emit_larger)  # type: ignore[attr-defined]


@compiled(fastmath=REASSOCIATE)
def pair_steps(
    gram: NDArray[Any],
    diagonal: Floats,
    beta: Floats,
    lower: Floats,
    upper: Floats,
    v: Floats,
    grow: Floats,
    shrink: Floats,
    flat: float,
    tol: float,
    max_steps: int,
) -> tuple[int, float, float, bool]:
    """Move pairs of rows until no pair violates optimality by more than ``tol``.

    The first row is the one that most wants to grow, the second promises the largest decrease of
    the quadratic model along the pair. Returns the number of steps, the violation, the decrease of
    the objective, and whether the last step was lost in rounding. Curvatures below ``flat`` count
    as ``flat``. ``diagonal`` is that of the quadratic form; what it has above the diagonal of
    ``gram`` is a ridge, which belongs to the form too.
    """
    n = v.shape[0]
    i, j, step, steps, decrease, lost = 0, 0, 0.0, 0, 0.0, False
    while True:
        first, second = gram[i], gram[j]
        highest, strip, lowest = -np.inf, 0, -np.inf
        for start in range(0, n, _STRIP):
            strip_highest, strip_lowest = -np.inf, -np.inf
            for k in range(np.uint64(start), np.uint64(min(n, start + _STRIP))):
                value = v[k] - step * (np.float64(first[k]) - np.float64(second[k]))
                v[k] = value
                strip_highest = _larger(strip_highest, value + grow[k])
                strip_lowest = _larger(strip_lowest, shrink[k] - value)
            if strip_highest > highest:
                highest, strip = strip_highest, start
            if strip_lowest > lowest:
                lowest = strip_lowest
        violation = highest + lowest
        if violation <= tol or steps >= max_steps or lost:
            return steps, violation, decrease, lost

        best = -np.inf
        for k in range(strip, min(n, strip + _STRIP)):
            if v[k] + grow[k] > best:
                best, i = v[k] + grow[k], k
        first = gram[i]
        v_i, diagonal_i = v[i], diagonal[i]
        best, strip = -np.inf, 0
        for start in range(0, n, _STRIP):
            strip_best = -np.inf
            for k in range(np.uint64(start), np.uint64(min(n, start + _STRIP))):
                slope = _larger(v_i - v[k] + shrink[k], 0.0)
                curvature = _larger(diagonal_i + diagonal[k] - 2.0 * first[k], flat)
                curvature = _larger(curvature, _TINY)  # seen not to be 0 by the compiler
                strip_best = _larger(strip_best, slope * slope / curvature)
            if strip_best > best:
                best, strip = strip_best, start
        best, curvature_j = -np.inf, 1.0
        for k in range(strip, min(n, strip + _STRIP)):
            slope = max(v_i - v[k] + shrink[k], 0.0)
            curvature = max(diagonal_i + diagonal[k] - 2.0 * first[k], flat)
            if slope * slope / curvature > best:
                best, j, curvature_j = slope * slope / curvature, k, curvature

        step = (v_i - v[j]) / curvature_j
        room_i, room_j = upper[i] - beta[i], beta[j] - lower[j]
        old_i, old_j = beta[i], beta[j]
        step = min(step, room_i, room_j)
        beta[i] = upper[i] if step == room_i else old_i + step
        beta[j] = lower[j] if step == room_j else old_j - step
        # A step that ends at a bound is never lost, however short: it takes a row out of the way.
        lost = (beta[i] == old_i or beta[j] == old_j) and step < room_i and step < room_j
        if lost:
            beta[i], beta[j], step = old_i, old_j, 0.0
            continue
        decrease += step * (v_i - v[j] - 0.5 * step * curvature_j)
        v[i] -= step * (diagonal_i - np.float64(first[i]))
        v[j] += step * (diagonal[j] - np.float64(gram[j, j]))
        grow[i] = 0.0 if beta[i] < upper[i] else -np.inf
        shrink[i] = 0.0 if beta[i] > lower[i] else -np.inf
        grow[j] = 0.0 if beta[j] < upper[j] else -np.inf
        shrink[j] = 0.0 if beta[j] > lower[j] else -np.inf
        steps += 1
