"""Compiled loops of the SVM dual with a cone: steps along pairs of rows and along contrasts.

Everywhere ``u`` is the Gram matrix of rows and contrasts times the point ``x``, ``squared`` is
``x @ u`` and ``offset`` is ``radius @ x``. The dual in question is

    goal @ x - 0.5 * max(sqrt(squared) - offset, 0) ** 2

A row may grow where ``grow`` is 0 and shrink where ``shrink`` is 0; elsewhere these hold minus
infinity.
"""

import numpy as np

from bagwise._arrays import Floats
from bagwise._jit import REASSOCIATE, compiled

_NEWTON_STEPS = 60  # of a search along a line; far fewer are needed


@compiled
def slope_along(
    t: float, squared: float, product: float, curvature: float, offset: float, turn: float
) -> tuple[float, float]:
    """Return first and second derivative of ``0.5 * max(r(t) - offset - t * turn, 0) ** 2``.

    Here ``r(t)`` is the length of a vector of squared length ``squared`` after ``t`` times another
    was added, whose product with it is ``product`` and whose squared length is ``curvature``.
    """
    length = np.sqrt(max(squared + t * (2.0 * product + t * curvature), 0.0))
    beyond = length - offset - t * turn
    if beyond <= 0.0:
        return 0.0, 0.0
    if length == 0.0:
        growth = np.sqrt(curvature)
        return beyond * (growth - turn), (growth - turn) ** 2
    growth = (product + t * curvature) / length
    bend = max(curvature - growth * growth, 0.0) / length
    return beyond * (growth - turn), (growth - turn) ** 2 + beyond * bend


@compiled
def line_step(
    room: float,
    gain: float,
    squared: float,
    product: float,
    curvature: float,
    offset: float,
    turn: float,
) -> float:
    """Return where between 0 and ``room`` the dual is greatest along a direction that raises it.

    ``gain`` is by how much the linear part of the dual grows along it; the rest is as in
    `slope_along`.
    """
    low, high, t = 0.0, room, 0.0
    slope, bend = slope_along(room, squared, product, curvature, offset, turn)
    if slope <= gain:
        return room
    for _ in range(_NEWTON_STEPS):
        slope, bend = slope_along(t, squared, product, curvature, offset, turn)
        ahead = gain - slope
        if ahead > 0.0:
            low = t
        else:
            high = t
        new = t + ahead / bend if bend > 0.0 else high + 1.0
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - t) <= 1e-15 * high:
            return new
        t = new
    return t


@compiled(fastmath=REASSOCIATE)
def cone_steps(
    gram: Floats,
    n_rows: int,
    x: Floats,
    lower: Floats,
    upper: Floats,
    u: Floats,
    goal: Floats,
    radius: Floats,
    grow: Floats,
    shrink: Floats,
    squared: float,
    offset: float,
    flat: float,
    tol: float,
    max_steps: int,
) -> tuple[int, float, float, bool, float, float]:
    """Move pairs of rows, or single contrasts, until none violates optimality by more than ``tol``.

    The first ``n_rows`` entries are rows, whose changes sum to 0, the others contrasts. Returns the
    number of steps, the violation, the increase of the dual, whether the last step was lost in
    rounding, and ``squared`` and ``offset`` of the new point.
    """
    n = x.shape[0]
    steps, increase, lost = 0, 0.0, False
    i, j, change_i, change_j = 0, 0, 0.0, 0.0
    while True:
        length = np.sqrt(squared)
        beyond = max(length - offset, 0.0)
        share = beyond / length if length > 0.0 else 1.0
        first, second = gram[i], gram[j]
        highest, lowest, grower = -np.inf, -np.inf, 0
        for k in range(n_rows):
            u[k] += change_i * first[k] + change_j * second[k]
            value = goal[k] - share * u[k]
            if value + grow[k] > highest:
                highest, grower = value + grow[k], k
            lowest = max(lowest, shrink[k] - value)
        worst, contrast, side = -np.inf, 0, 1.0
        for k in range(n_rows, n):
            u[k] += change_i * first[k] + change_j * second[k]
            value = beyond * radius[k] - share * u[k]
            if value + grow[k] > worst:
                worst, contrast, side = value + grow[k], k, 1.0
            if shrink[k] - value > worst:
                worst, contrast, side = shrink[k] - value, k, -1.0
        violation = max(highest + lowest, worst)
        if violation <= tol or steps >= max_steps or lost:
            return steps, violation, increase, lost, squared, offset

        if worst > highest + lowest:
            i = j = contrast
            product, curvature = side * u[i], gram[i, i]
            turn, gain = side * radius[i], 0.0
            room = upper[i] - x[i] if side > 0.0 else x[i] - lower[i]
        else:
            i = grower
            first = gram[i]
            value_i, diagonal_i, best = goal[i] - share * u[i], first[i], -1.0
            for k in range(n_rows):
                slope = value_i - goal[k] + share * u[k] + shrink[k]
                if slope > 0.0:
                    bend = max(share * (diagonal_i + gram[k, k] - 2.0 * first[k]), flat)
                    if slope * slope > best * bend:
                        best, j = slope * slope / bend, k
            side, turn, gain = 1.0, 0.0, goal[i] - goal[j]
            product = u[i] - u[j]
            curvature = max(diagonal_i + gram[j, j] - 2.0 * first[j], 0.0)
            room = min(upper[i] - x[i], x[j] - lower[j])
        step = line_step(room, gain, squared, product, curvature, offset, turn)
        old_i, old_j = x[i], x[j]
        change_i = side * step
        x[i] = old_i + change_i
        if step == room and side > 0.0 and room == upper[i] - old_i:
            x[i] = upper[i]
        if i == j:
            change_j = 0.0
            if step == room and side < 0.0:
                x[i] = lower[i]
            lost = x[i] == old_i
        else:
            change_j = -step
            x[j] = lower[j] if step == room and room == old_j - lower[j] else old_j - step
            lost = (x[i] == old_i or x[j] == old_j) and step < room
        if lost:
            x[i], x[j], change_i, change_j = old_i, old_j, 0.0, 0.0
            continue
        before = beyond
        squared = max(squared + step * (2.0 * product + step * curvature), 0.0)
        offset += step * turn
        beyond = max(np.sqrt(squared) - offset, 0.0)
        increase += step * gain - 0.5 * (beyond - before) * (beyond + before)
        for k in (i, j):
            grow[k] = 0.0 if x[k] < upper[k] else -np.inf
            shrink[k] = 0.0 if x[k] > lower[k] else -np.inf
        steps += 1
