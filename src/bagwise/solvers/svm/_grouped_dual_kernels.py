"""Compiled steps of the SVM dual with group caps.

Rows are seen in signed form: ``side`` is -1 where growing ``alpha`` lowers the intercept's
constraint and +1 elsewhere, a row moves up or down, and ``v`` is the slope of the dual objective
along that move. The matrix of the dual is ``weight[i] * weight[k] * gram[i, k]``.

Two rows may move against each other if ``up`` of the first and ``down`` of the second are 0 and not
minus infinity. Inside a group without room only a row that grows while another shrinks can move.
Rows that do not have the intercept, listed in ``alone``, move by themselves.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._jit import REASSOCIATE, compiled

_STRIP = 64  # maxima are found strip by strip: fast over all rows, then exactly in one strip

_TINY = 1e-300

_AT_ONCE = 8  # groups in which rows move in one pass, where rows are many

#: A maximum over an array becomes vector instructions only if NaN need not be respected.
_NO_NAN = REASSOCIATE | {"nnan"}


@compiled
def _set_mask(
    k: int, has_room: bool, paired: Booleans, side: Floats, alpha: Floats, up: Floats, down: Floats
) -> None:
    grow = 0.0 if has_room and paired[k] else -np.inf
    shrink = 0.0 if alpha[k] > 0.0 and paired[k] else -np.inf
    up[k] = grow if side[k] > 0.0 else shrink
    down[k] = shrink if side[k] > 0.0 else grow


@compiled
def _set_masks(
    rows: Integers,
    has_room: bool,
    paired: Booleans,
    side: Floats,
    alpha: Floats,
    up: Floats,
    down: Floats,
) -> None:
    """Say for rows of one group in which directions they may move against rows of other groups."""
    for k in rows:
        _set_mask(k, has_room, paired, side, alpha, up, down)


@compiled(fastmath=_NO_NAN)
def _update(
    v: Floats,
    weight: Floats,
    first: NDArray[Any],
    second: NDArray[Any],
    by_first: float,
    by_second: float,
    up: Floats,
    down: Floats,
) -> tuple[float, float, int]:
    """Update ``v`` after a step; return its extremes over the masks and the strip of the first."""
    n = v.shape[0]
    highest, lowest, strip = -np.inf, -np.inf, 0
    for start in range(0, n, _STRIP):
        strip_highest, strip_lowest = -np.inf, -np.inf
        for k in range(np.uint64(start), np.uint64(min(n, start + _STRIP))):
            change = by_first * np.float64(first[k]) + by_second * np.float64(second[k])
            value = v[k] - weight[k] * change
            v[k] = value
            strip_highest = max(strip_highest, value + up[k])
            strip_lowest = max(strip_lowest, down[k] - value)
        if strip_highest > highest:
            highest, strip = strip_highest, start
        lowest = max(lowest, strip_lowest)
    return highest, lowest, strip


@compiled(fastmath=_NO_NAN)
def _partner(
    i: int, row: NDArray[Any], diagonal: Floats, v: Floats, down: Floats, flat: float
) -> tuple[float, int]:
    """Return the promise of the best row to go down while row ``i`` goes up, and that row."""
    n, v_i, diagonal_i = v.shape[0], v[i], diagonal[i]
    best, strip = -np.inf, 0
    for start in range(0, n, _STRIP):
        strip_best = -np.inf
        for k in range(np.uint64(start), np.uint64(min(n, start + _STRIP))):
            slope = max(v_i - v[k] + down[k], 0.0)
            curvature = max(max(diagonal_i + diagonal[k] - 2.0 * row[k], flat), _TINY)
            strip_best = max(strip_best, slope * slope / curvature)
        if strip_best > best:
            best, strip = strip_best, start
    best, j = -np.inf, 0
    for k in range(strip, min(n, strip + _STRIP)):
        slope = max(v_i - v[k] + down[k], 0.0)
        promise = slope * slope / max(diagonal_i + diagonal[k] - 2.0 * row[k], flat)
        if promise > best:
            best, j = promise, k
    return best, j


@compiled(fastmath=_NO_NAN)
def _widest_group(
    v: Floats, side: Floats, alpha: Floats, room: Floats, members: Integers, starts: Integers
) -> tuple[float, int, int]:
    """Return the largest slope of a swap in a group without room, the group and the row to grow."""
    widest, group, row = -np.inf, 0, 0
    for g in range(room.shape[0]):
        if room[g] > 0.0 or starts[g + 1] - starts[g] < 2:
            continue
        s = side[members[starts[g]]]
        most, least = -np.inf, np.inf
        for k in members[starts[g] : starts[g + 1]]:
            value = s * v[k]
            most = max(most, value)
            least = min(least, value if alpha[k] > 0.0 else np.inf)
        if most - least > widest:
            widest, group = most - least, g
    if widest > -np.inf:
        most = -np.inf
        for k in members[starts[group] : starts[group + 1]]:
            if side[k] * v[k] > most:
                most, row = side[k] * v[k], k
    return widest, group, row


@compiled
def _swap_partner(
    i: int,
    rows: Integers,
    row: NDArray[Any],
    weight: Floats,
    diagonal: Floats,
    side: Floats,
    alpha: Floats,
    v: Floats,
    flat: float,
) -> tuple[float, int]:
    """Return the promise of the best row of the group to shrink while row ``i`` grows."""
    best, j = -np.inf, i
    for k in rows:
        if alpha[k] > 0.0 and k != i:
            slope = max(side[i] * (v[i] - v[k]), 0.0)
            mixed = weight[i] * weight[k] * np.float64(row[k])
            promise = slope * slope / max(diagonal[i] + diagonal[k] - 2.0 * mixed, flat)
            if promise > best:
                best, j = promise, k
    return best, j


@compiled
def _single(
    v: Floats,
    alpha: Floats,
    group: Integers,
    room: Floats,
    diagonal: Floats,
    alone: Integers,
    flat: float,
) -> tuple[float, float, int]:
    """Return the largest slope of a row that moves by itself, the best promise and its row."""
    steepest, best, row = -np.inf, -np.inf, 0
    for k in alone:
        slope = -np.inf
        if v[k] > 0.0 and room[group[k]] > 0.0:
            slope = v[k]
        elif v[k] <= 0.0 and alpha[k] > 0.0:
            slope = -v[k]
        steepest = max(steepest, slope)
        if slope > 0.0 and slope * slope / max(diagonal[k], flat) > best:
            best, row = slope * slope / max(diagonal[k], flat), k
    return steepest, best, row


@compiled
def _grow(k: int, amount: float, alpha: Floats, room: Floats, g: int, takes_room: bool) -> None:
    """Add to ``alpha`` and take from the group's room; bounds are reached exactly."""
    alpha[k] = 0.0 if alpha[k] == -amount else alpha[k] + amount
    if takes_room:
        room[g] = 0.0 if room[g] == amount else max(room[g] - amount, 0.0)


@compiled
def group_steps(
    gram: NDArray[Any],
    weight: Floats,
    diagonal: Floats,
    paired: Booleans,
    side: Floats,
    group: Integers,
    members: Integers,
    starts: Integers,
    alone: Integers,
    alpha: Floats,
    room: Floats,
    v: Floats,
    up: Floats,
    down: Floats,
    flat: float,
    tol: float,
    max_steps: int,
) -> tuple[int, float, float, bool]:
    """Step until no pair, no swap inside a group and no single row promises more than ``tol``.

    Of the best moves of each kind, the one whose quadratic model falls most is made.
    ``members[starts[g] : starts[g + 1]]`` are the rows of group ``g``. Returns the number of steps,
    the violation, the decrease of the objective, and whether the last step was lost in rounding.
    Curvatures below ``flat`` count as ``flat``.
    """
    i, j, by_i, by_j, steps, decrease, lost = 0, 0, 0.0, 0.0, 0, 0.0, False
    while True:
        highest, lowest, strip = _update(v, weight, gram[i], gram[j], by_i, by_j, up, down)
        widest, swap_group, swap_row = _widest_group(v, side, alpha, room, members, starts)
        steepest, single, single_row = _single(v, alpha, group, room, diagonal, alone, flat)
        violation = max(highest + lowest, widest, steepest)
        if violation <= tol or steps >= max_steps or lost:
            return steps, violation, decrease, lost

        best = -np.inf
        if highest + lowest > 0.0:
            top = -np.inf
            for k in range(strip, min(v.shape[0], strip + _STRIP)):
                if v[k] + up[k] > top:
                    top, i = v[k] + up[k], k
            best, j = _partner(i, gram[i], diagonal, v, down, flat)
        if widest > 0.0:
            rows = members[starts[swap_group] : starts[swap_group + 1]]
            swap, k = _swap_partner(
                swap_row, rows, gram[swap_row], weight, diagonal, side, alpha, v, flat
            )
            if swap > best:
                best = swap
                i, j = (swap_row, k) if side[k] > 0.0 else (k, swap_row)
        if single > best:
            i = j = single_row

        # Row i goes up and row j down, or row i moves alone. Whoever grows needs room in its
        # group, unless the other one makes it.
        g, h = group[i], group[j]
        if i == j:
            slope, curvature = abs(v[i]), max(diagonal[i], flat)
            limit = room[g] if v[i] > 0.0 else alpha[i]
        else:
            slope = v[i] - v[j]
            mixed = weight[i] * weight[j] * np.float64(gram[i, j])
            curvature = max(diagonal[i] + diagonal[j] - 2.0 * mixed, flat)
            limit_i = alpha[i] if side[i] < 0.0 else (np.inf if g == h else room[g])
            limit_j = alpha[j] if side[j] > 0.0 else (np.inf if g == h else room[h])
            limit = min(limit_i, limit_j)
        step = min(slope / curvature, limit)
        # A step that ends at a bound is never lost, however short: it takes a row out of the way.
        lost = step < limit and (alpha[i] + step == alpha[i] or alpha[j] + step == alpha[j])
        if lost:
            by_i, by_j = 0.0, 0.0
            continue
        had_room_g, had_room_h = room[g] > 0.0, room[h] > 0.0
        if i == j:
            by_i, by_j = np.copysign(step, v[i]), 0.0
            _grow(i, by_i, alpha, room, g, True)
        else:
            by_i, by_j = step, -step
            _grow(i, side[i] * step, alpha, room, g, g != h)
            _grow(j, -side[j] * step, alpha, room, h, g != h)
        by_i, by_j = weight[i] * by_i, weight[j] * by_j
        for k, f, had_room in ((i, g, had_room_g), (j, h, had_room_h)):
            if (room[f] > 0.0) == had_room:
                _set_mask(k, had_room, paired, side, alpha, up, down)
            else:
                rows = members[starts[f] : starts[f + 1]]
                _set_masks(rows, not had_room, paired, side, alpha, up, down)
        decrease += step * (slope - 0.5 * step * curvature)
        steps += 1


@compiled
def bent_step(
    matrix: Floats,
    direction: Floats,
    product: Floats,
    slopes: Floats,
    side: Floats,
    anchor: Integers,
    group: Integers,
    alpha: Floats,
    upper: Floats,
    room: Floats,
) -> bool:
    """Follow a direction uphill, bent at the bounds that it meets, to the top of the dual.

    ``product`` is ``matrix @ direction``. A row that meets a bound stays there, and its anchor, if
    it has one (else -1), takes over its part, so that their sum goes on as before. The way also
    ends where an anchor meets a bound, or a group its cap. Everything from ``direction`` to
    ``slopes``, ``alpha`` and ``room`` is changed. Returns whether no bound was met.
    """
    n = direction.shape[0]
    is_anchor = np.zeros(n, np.bool_)
    for k in range(n):
        if anchor[k] >= 0:
            is_anchor[anchor[k]] = True
    fill = np.empty(room.shape[0])
    is_straight = True
    while True:
        slope, curvature = 0.0, 0.0
        fill[:] = 0.0
        for k in range(n):
            slope += slopes[k] * direction[k]
            curvature += product[k] * direction[k]
            fill[group[k]] += side[k] * direction[k]
        if slope <= 0.0:
            return is_straight
        length, met = slope / curvature if curvature > _TINY else np.inf, -1
        for k in range(n):
            pace = side[k] * direction[k]
            if pace != 0.0:
                reach = alpha[k] / -pace if pace < 0.0 else (upper[k] - alpha[k]) / pace
                if reach <= length and reach < np.inf:
                    length, met = reach, k
        for g in range(room.shape[0]):
            if fill[g] > 0.0 and room[g] < np.inf and room[g] / fill[g] <= length:
                length, met = room[g] / fill[g], n + g
        if length == np.inf:  # lost in rounding: every way uphill ends at a bound
            return is_straight
        for k in range(n):
            alpha[k] = max(alpha[k] + length * side[k] * direction[k], 0.0)
            slopes[k] -= length * product[k]
        for g in range(room.shape[0]):
            room[g] = max(room[g] - length * fill[g], 0.0)
        if met < 0:
            return is_straight
        is_straight = False
        if met >= n:
            room[met - n] = 0.0
            return is_straight
        part, heir = direction[met], anchor[met]
        alpha[met] = 0.0 if side[met] * part < 0.0 else upper[met]
        if is_anchor[met]:
            return is_straight
        direction[met] = 0.0
        for k in range(n):
            product[k] -= part * matrix[met, k]
        if heir >= 0:
            direction[heir] += part
            for k in range(n):
                product[k] += part * matrix[heir, k]


@compiled
def _best_move(rows: Integers, alpha: Floats, v: Floats, has_room: bool) -> tuple[float, int, int]:
    """Return the largest slope of a move in a group, the row that grows and the one that shrinks.

    One of them is -1 if the other moves alone. No row of the group has the intercept.
    """
    most, least, top, bottom = -np.inf, np.inf, -1, -1
    for k in rows:
        if v[k] > most:
            most, top = v[k], k
        if alpha[k] > 0.0 and v[k] < least:
            least, bottom = v[k], k
    if has_room:
        return (most, top, -1) if most >= -least else (-least, -1, bottom)
    return (most - least, top, bottom) if most >= 0.0 else (-least, -1, bottom)


@compiled
def _slope_after(
    k: int, v: Floats, weight: Floats, gram: NDArray[Any], rows: Integers, coef: Floats, m: int
) -> float:
    """Return ``v`` of a row once the first ``m`` rows listed have moved; 0 for no row."""
    if k < 0:
        return 0.0
    row, value = gram[k], float(v[k])
    for q in range(m):
        value -= weight[k] * coef[q] * np.float64(row[rows[q]])
    return value


@compiled
def _curvature(
    i: int, j: int, gram: NDArray[Any], weight: Floats, diagonal: Floats, flat: float
) -> float:
    """Return the curvature along two rows that move against each other, or along the only one."""
    if i < 0 or j < 0:
        square: float = diagonal[max(i, j)]
    else:
        mixed = weight[i] * weight[j] * np.float64(gram[i, j])
        square = diagonal[i] + diagonal[j] - 2.0 * mixed
    return max(square, flat)


@compiled
def _is_lost(i: int, j: int, step: float, alpha: Floats) -> bool:
    """Tell whether a step changes no multiplier."""
    return (i >= 0 and alpha[i] + step == alpha[i]) or (j >= 0 and alpha[j] + step == alpha[j])


@compiled(fastmath=_NO_NAN)
def _take_off(
    v: Floats, weight: Floats, gram: NDArray[Any], rows: Integers, coef: Floats, m: int
) -> None:
    """Subtract ``weight * (coef @ gram[rows])`` of the first ``m`` rows, four in each pass."""
    for r in range(0, m, 4):
        a, b, c, d = gram[rows[r]], gram[rows[r + 1]], gram[rows[r + 2]], gram[rows[r + 3]]
        s, t, x, y = coef[r], coef[r + 1], coef[r + 2], coef[r + 3]
        for k in range(v.shape[0]):
            change = s * np.float64(a[k]) + t * np.float64(b[k])
            change += x * np.float64(c[k]) + y * np.float64(d[k])
            v[k] -= weight[k] * change


@compiled
def many_group_steps(
    gram: NDArray[Any],
    weight: Floats,
    diagonal: Floats,
    paired: Booleans,
    side: Floats,
    group: Integers,
    members: Integers,
    starts: Integers,
    alpha: Floats,
    room: Floats,
    v: Floats,
    up: Floats,
    down: Floats,
    flat: float,
    tol: float,
    max_steps: int,
) -> tuple[int, float, float, bool]:
    """Do what `group_steps` does with moves in several groups in each pass over the rows.

    A row that has the intercept must be alone in its group. In a pass one pair of such rows moves,
    then one row or two in each of the other groups with the largest slopes, each to the minimum
    after the moves before it. That takes more steps, of which each costs a fraction: where rows are
    many, the passes are what takes time.
    """
    pairs: Integers = np.flatnonzero(paired)
    has_swaps = starts[1:] > starts[:-1]
    has_swaps[group[pairs]] = False
    swapping: Integers = np.flatnonzero(has_swaps)
    slopes = np.empty(swapping.shape[0])
    rows, coef = np.zeros(2 * _AT_ONCE + 5, np.int64), np.zeros(2 * _AT_ONCE + 5)
    m, steps, decrease, lost = 0, 0, 0.0, False
    while True:
        coef[m:] = 0.0
        _take_off(v, weight, gram, rows, coef, m)
        highest, lowest, i = -np.inf, -np.inf, 0
        for k in pairs:
            if v[k] + up[k] > highest:
                highest, i = v[k] + up[k], k
            lowest = max(lowest, down[k] - v[k])
        violation = highest + lowest
        for place, g in enumerate(swapping):
            own = members[starts[g] : starts[g + 1]]
            slopes[place] = _best_move(own, alpha, v, room[g] > 0.0)[0]
            violation = max(violation, slopes[place])
        if violation <= tol or steps >= max_steps or lost:
            return steps, violation, decrease, lost

        lost, m = True, 0
        if highest + lowest > 0.5 * tol:
            best, j = -np.inf, i
            for k in pairs:
                slope = max(v[i] - v[k] + down[k], 0.0)
                promise = slope * slope / _curvature(i, k, gram, weight, diagonal, flat)
                if promise > best:
                    best, j = promise, k
            slope, curvature = v[i] - v[j], _curvature(i, j, gram, weight, diagonal, flat)
            limit_i = alpha[i] if side[i] < 0.0 else room[group[i]]
            limit_j = alpha[j] if side[j] > 0.0 else room[group[j]]
            limit = min(limit_i, limit_j)
            step = min(slope / curvature, limit)
            if step == limit or not _is_lost(i, j, step, alpha):
                for k, change in ((i, step), (j, -step)):
                    _grow(k, side[k] * change, alpha, room, group[k], True)
                    _set_mask(k, room[group[k]] > 0.0, paired, side, alpha, up, down)
                    rows[m], coef[m] = k, weight[k] * change
                    m += 1
                decrease += step * (slope - 0.5 * step * curvature)
                steps, lost = steps + 1, False
        for _ in range(min(_AT_ONCE, swapping.shape[0])):
            place = int(slopes.argmax())
            if not slopes[place] > 0.5 * tol or steps >= max_steps:
                break
            slopes[place] = -np.inf
            g = swapping[place]
            own = members[starts[g] : starts[g + 1]]
            _, i, j = _best_move(own, alpha, v, room[g] > 0.0)
            if i >= 0 and j >= 0:
                _, j = _swap_partner(i, own, gram[i], weight, diagonal, side, alpha, v, flat)
            slope = _slope_after(i, v, weight, gram, rows, coef, m)
            slope -= _slope_after(j, v, weight, gram, rows, coef, m)
            if not slope > 0.0:
                continue
            curvature = _curvature(i, j, gram, weight, diagonal, flat)
            limit = room[g] if j < 0 else alpha[j]
            step = min(slope / curvature, limit)
            if step < limit and _is_lost(i, j, step, alpha):
                continue
            for k, change in ((i, step), (j, -step)):
                if k >= 0:
                    _grow(k, change, alpha, room, g, i < 0 or j < 0)
                    rows[m], coef[m] = k, weight[k] * change
                    m += 1
            decrease += step * (slope - 0.5 * step * curvature)
            steps, lost = steps + 1, False
