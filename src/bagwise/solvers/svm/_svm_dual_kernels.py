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

_AT_ONCE = 4  # pairs that `many_pair_steps` moves between two passes over all rows


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

        i = _largest(1.0, v, grow, strip)
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

        step, lost = _moved(i, j, v_i - v[j], curvature_j, beta, lower, upper, grow, shrink)
        if lost:
            continue
        decrease += step * (v_i - v[j] - 0.5 * step * curvature_j)
        v[i] -= step * (diagonal_i - np.float64(first[i]))
        v[j] += step * (diagonal[j] - np.float64(gram[j, j]))
        steps += 1


@compiled
def extremes(v: Floats, beta: Floats, lower: Floats, upper: Floats) -> tuple[float, float]:
    """Return the largest ``v`` of a row that may grow, and the smallest of one that may shrink.

    Both are NaN if one of these is NaN.
    """
    highest, lowest, total = -np.inf, np.inf, 0.0
    for k in range(v.shape[0]):
        value = v[k]
        if beta[k] < upper[k]:
            highest = max(highest, value)
            total += 0.0 if value == value else value
        if beta[k] > lower[k]:
            lowest = min(lowest, value)
            total += 0.0 if value == value else value
    return highest + total, lowest + total


@compiled(fastmath=REASSOCIATE)
def primal_value(
    v: Floats,
    ridge: Floats,
    beta: Floats,
    goal: Floats,
    sign: Floats,
    cost: Floats,
    intercept: float,
    is_squared: bool,
) -> float:
    """Return the objective of the primal at a point and an intercept."""
    norm, loss = 0.0, 0.0
    for k in range(v.shape[0]):
        ahead = v[k] + ridge[k] * beta[k]  # sign * target - gram @ beta
        slack = max(sign[k] * (ahead - intercept), 0.0)
        norm += beta[k] * (goal[k] - ahead)
        loss += cost[k] * (slack * slack if is_squared else slack)
    return 0.5 * norm + loss


@compiled
def _moved(
    i: int,
    j: int,
    slope: float,
    curvature: float,
    beta: Floats,
    lower: Floats,
    upper: Floats,
    grow: Floats,
    shrink: Floats,
) -> tuple[float, bool]:
    """Let one row grow and another shrink to the minimum between them, or to a bound.

    Returns by how much, and whether that was lost in rounding; then nothing has changed.
    """
    room_i, room_j = upper[i] - beta[i], beta[j] - lower[j]
    old_i, old_j = beta[i], beta[j]
    step = min(slope / curvature, room_i, room_j)
    beta[i] = upper[i] if step == room_i else old_i + step
    beta[j] = lower[j] if step == room_j else old_j - step
    # A step that ends at a bound is never lost, however short: it takes a row out of the way.
    if (beta[i] == old_i or beta[j] == old_j) and step < room_i and step < room_j:
        beta[i], beta[j] = old_i, old_j
        return 0.0, True
    grow[i] = 0.0 if beta[i] < upper[i] else -np.inf
    shrink[i] = 0.0 if beta[i] > lower[i] else -np.inf
    grow[j] = 0.0 if beta[j] < upper[j] else -np.inf
    shrink[j] = 0.0 if beta[j] > lower[j] else -np.inf
    return step, False


@compiled(fastmath=REASSOCIATE)
def many_pair_steps(
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
    """Do what `pair_steps` does with four pairs in each pass over the rows.

    The first pair is the one that violates optimality most. The others come from the strips with
    the next largest ``v`` and the next smallest; each is moved to its minimum after the pairs
    before it. That takes more steps, of which each costs a fraction: where rows are many, the
    passes are what takes time.
    """
    n = v.shape[0]
    n_strips = (n + _STRIP - 1) // _STRIP
    high, low = np.empty(n_strips), np.empty(n_strips)
    ups, downs = np.zeros(_AT_ONCE, np.int64), np.zeros(_AT_ONCE, np.int64)
    size = np.zeros(_AT_ONCE)
    steps, decrease, lost = 0, 0.0, False
    while True:
        a, b, c, d = gram[ups[0]], gram[ups[1]], gram[ups[2]], gram[ups[3]]
        e, f, g, h = gram[downs[0]], gram[downs[1]], gram[downs[2]], gram[downs[3]]
        s, t, x, y = size[0], size[1], size[2], size[3]
        for strip in range(n_strips):
            start = strip * _STRIP
            highest, lowest = -np.inf, -np.inf
            for k in range(np.uint64(start), np.uint64(min(n, start + _STRIP))):
                change = s * (np.float64(a[k]) - np.float64(e[k]))
                change += t * (np.float64(b[k]) - np.float64(f[k]))
                change += x * (np.float64(c[k]) - np.float64(g[k]))
                change += y * (np.float64(d[k]) - np.float64(h[k]))
                value = v[k] - change
                v[k] = value
                highest = _larger(highest, value + grow[k])
                lowest = _larger(lowest, shrink[k] - value)
            high[strip], low[strip] = highest, lowest
        violation = high.max() + low.max()
        if violation <= tol or steps >= max_steps or lost:
            return steps, violation, decrease, lost

        lost = True
        for p in range(_AT_ONCE):
            size[p] = 0.0
            strip_i, strip_j = int(high.argmax()), int(low.argmax())
            if steps >= max_steps or not high[strip_i] + low[strip_j] > tol:
                continue
            high[strip_i], low[strip_j] = -np.inf, -np.inf
            i = _largest(1.0, v, grow, strip_i * _STRIP)
            j = _largest(-1.0, v, shrink, strip_j * _STRIP)
            first, second = gram[i], gram[j]
            v_i, v_j = v[i], v[j]
            for q in range(p):
                v_i -= size[q] * (np.float64(first[ups[q]]) - np.float64(first[downs[q]]))
                v_j -= size[q] * (np.float64(second[ups[q]]) - np.float64(second[downs[q]]))
            # A pair before this one may have moved these rows.
            if not v_i > v_j or grow[i] != 0.0 or shrink[j] != 0.0:
                continue
            curvature = max(diagonal[i] + diagonal[j] - 2.0 * first[j], flat)
            step, is_lost = _moved(i, j, v_i - v_j, curvature, beta, lower, upper, grow, shrink)
            if is_lost:
                continue
            decrease += step * (v_i - v_j - 0.5 * step * curvature)
            v[i] -= step * (diagonal[i] - np.float64(first[i]))
            v[j] += step * (diagonal[j] - np.float64(second[j]))
            ups[p], downs[p], size[p] = i, j, step
            steps += 1
            lost = False


@compiled
def _largest(sign: float, v: Floats, mask: Floats, start: int) -> int:
    """Return where, in the strip that begins at ``start``, ``sign * v + mask`` is largest."""
    best, found = -np.inf, start
    for k in range(start, min(v.shape[0], start + _STRIP)):
        if sign * v[k] + mask[k] > best:
            best, found = sign * v[k] + mask[k], k
    return found
