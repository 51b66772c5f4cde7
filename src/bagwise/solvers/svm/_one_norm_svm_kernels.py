"""Compiled simplex steps for sums of kinked costs.

Every variable ``v`` costs ``rise * max(v, 0) + fall * max(-v, 0)``. The nonbasic ones stand at
their kink, 0; ``tableau[k, r]`` is the rate at which basic variable ``r`` moves with nonbasic one
``k``. No point is infeasible: a basic variable that passes its kink only changes its rate of cost.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import REASSOCIATE, compiled

_NEGLIGIBLE = 1e-9  # rates below this part of the largest one count as none


@compiled(fastmath=REASSOCIATE)
def simplex_steps(
    tableau: Floats,
    value: Floats,
    basic: Integers,
    nonbasic: Integers,
    rise: Floats,
    fall: Floats,
    slack: Floats,
    max_steps: int,
) -> tuple[int, bool]:
    """Exchange nonbasic and basic variables until no move pays; work in place.

    Enters the variable with the steepest descent per unit of distance, and moves through kinks of
    basic variables for as long as the cost falls. Returns the number of steps, and whether no
    variable promises a rate of descent above its ``slack``.
    """
    n_nonbasic, n = tableau.shape
    cost_rate, square = np.empty(n_nonbasic + 1), np.empty(n_nonbasic + 1)
    spare = np.zeros(n)  # the partner of the last row if their number is odd
    gradient, unit, move = np.empty(n), np.empty(n), np.empty(n)
    order, steps_to = np.empty(n, np.int64), np.empty(n)
    barred = np.zeros(n_nonbasic, np.bool_)
    up, down = rise[basic], fall[basic]  # of the basic variables
    for r in range(n):
        unit[r] = 0.0
        gradient[r] = up[r] if value[r] > 0 else -down[r]
    k, out, steps = -1, 0, 0
    while True:
        # One pass applies the exchange that was found in the last round (none at first) and
        # prices the new tableau, two rows at a time: they share what is read beside them.
        for j in range(0, n_nonbasic, 2):
            one = tableau[j]
            two = tableau[j + 1] if j + 1 < n_nonbasic else spare
            one_factor, two_factor = 0.0, 0.0
            if k >= 0 and j != k:
                one_factor, one[out] = one[out], 0.0
            if k >= 0 and j + 1 != k:
                two_factor, two[out] = two[out], 0.0
            one_rate, one_length, two_rate, two_length = 0.0, 1.0, 0.0, 1.0
            for r in range(n):
                one_entry = one[r] - one_factor * unit[r]
                two_entry = two[r] - two_factor * unit[r]
                one[r], two[r] = one_entry, two_entry
                one_rate += gradient[r] * one_entry
                two_rate += gradient[r] * two_entry
                one_length += one_entry * one_entry
                two_length += two_entry * two_entry
            cost_rate[j], square[j] = one_rate, one_length
            cost_rate[j + 1], square[j + 1] = two_rate, two_length
        if steps >= max_steps:
            return steps, False

        while True:
            best, k, direction = 0.0, -1, 1.0
            for j in range(n_nonbasic):
                forth = -cost_rate[j] - rise[nonbasic[j]]
                back = cost_rate[j] - fall[nonbasic[j]]
                descent = max(forth, back)
                if barred[j] or descent <= slack[nonbasic[j]]:
                    continue
                if descent * descent > best * square[j]:
                    best, k = descent * descent / square[j], j
                    direction = 1.0 if forth > back else -1.0
            if k < 0:
                return steps, not barred.any()
            descent = max(-cost_rate[k] - rise[nonbasic[k]], cost_rate[k] - fall[nonbasic[k]])
            largest = 0.0
            for r in range(n):
                move[r] = direction * tableau[k, r]
                largest = max(largest, abs(move[r]))
            out = _last_kink(move, value, up, down, descent, _NEGLIGIBLE * largest, order, steps_to)
            if out >= 0:
                break
            barred[k] = True  # only rates that are rounding errors could stop it

        steps += 1
        barred[:] = False
        step = -value[out] / move[out]
        for r in range(n):
            value[r] += step * move[r]
        value[out] = direction * step
        basic[out], nonbasic[k] = nonbasic[k], basic[out]
        up[out], down[out] = rise[basic[out]], fall[basic[out]]
        pivot = tableau[k, out]
        for r in range(n):
            unit[r] = tableau[k, r] / pivot
        unit[out] = 1.0 / pivot
        for r in range(n):
            tableau[k, r] = unit[r]
            gradient[r] = up[r] if value[r] > 0 else -down[r]


@compiled
def _last_kink(
    move: Floats,
    value: Floats,
    up: Floats,
    down: Floats,
    descent: float,
    negligible: float,
    order: Integers,
    steps_to: Floats,
) -> int:
    """Return the basic variable at whose kink the cost stops falling, or -1 if there is none.

    A weighted selection: kinks sorted by distance, each takes ``|move| (up + down)`` off the
    descent.
    """
    low, high, limit = 0, 0, np.inf
    for r in range(move.shape[0]):
        towards = (value[r] > 0) == (move[r] < 0)
        if towards and abs(move[r]) > negligible and up[r] + down[r] > 0:
            distance = -value[r] / move[r]
            if distance > limit:
                continue  # one that is nearer ends the descent by itself
            order[high] = r
            steps_to[r] = distance
            high += 1
            if abs(move[r]) * (up[r] + down[r]) >= descent:
                limit = distance
    left = descent
    chosen = -1
    while high > low:
        threshold = steps_to[order[(low + high) // 2]]
        # three parts: nearer than the threshold, as near, farther
        i, lesser, greater = low, low, high
        nearer, equal = 0.0, 0.0
        while i < greater:
            r = order[i]
            weight = abs(move[r]) * (up[r] + down[r])
            if steps_to[r] < threshold:
                order[i], order[lesser] = order[lesser], r
                nearer += weight
                lesser += 1
                i += 1
            elif steps_to[r] > threshold:
                greater -= 1
                order[i], order[greater] = order[greater], r
            else:
                equal += weight
                i += 1
        if nearer >= left:
            high = lesser
        elif nearer + equal >= left:
            for i in range(lesser, greater):  # of equals, the safest to divide by
                if chosen < 0 or abs(move[order[i]]) > abs(move[chosen]):
                    chosen = order[i]
            return chosen
        else:
            left -= nearer + equal
            low = greater
    return chosen


@compiled
def independent_block(matrix: NDArray[Any], least: float) -> tuple[Integers, Integers]:
    """Return rows and columns of ``matrix``, as many of each, whose block can be inverted safely.

    Gaussian elimination with complete pivoting, in place, which stops at pivots below ``least``
    times the first one.
    """
    m, n = matrix.shape
    rows, columns = np.arange(m), np.arange(n)
    first = 0.0
    for k in range(min(m, n)):
        largest, row, column = 0.0, k, k
        for i in range(k, m):
            for j in range(k, n):
                if abs(matrix[i, j]) > largest:
                    largest, row, column = abs(matrix[i, j]), i, j
        if k == 0:
            first = largest
        if largest <= least * first:
            return rows[:k].copy(), columns[:k].copy()
        rows[k], rows[row] = rows[row], rows[k]
        columns[k], columns[column] = columns[column], columns[k]
        for j in range(n):
            matrix[k, j], matrix[row, j] = matrix[row, j], matrix[k, j]
        for i in range(m):
            matrix[i, k], matrix[i, column] = matrix[i, column], matrix[i, k]
        for i in range(k + 1, m):
            factor = matrix[i, k] / matrix[k, k]
            for j in range(k + 1, n):
                matrix[i, j] -= factor * matrix[k, j]
    k = min(m, n)
    return rows[:k].copy(), columns[:k].copy()
