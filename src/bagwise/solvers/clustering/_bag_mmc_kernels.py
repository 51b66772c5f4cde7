"""Compiled loops of `solve_bag_mmc`, for dense and CSR rows.

Row ``i`` of the problem is row ``rows[i]`` of the shared matrix. ``sums[p]`` is the sum of
``alpha_i x_i`` over the rows of cluster ``p`` and ``total`` the sum of all ``sums``, so that the
weights without the balance constraint are ``v_p = kappa (sums[p] - total / k)``. Of two clusters
only the difference is needed: ``sums[0]`` holds it, which is ``v_0 = -v_1``. ``level[p]`` is
``v_p . u`` for the unit vector ``u`` of the constraint, and ``mu[p]`` what has to be taken off so
that levels lie within ``width`` of each other: the weights are ``v_p - mu[p] u``. The height of a
row is its inner product with ``u``.

``place`` holds the numbers of a descent that are counted: position in the sweep, rows kept so far,
rows in the sweep, sweeps done, state of the random numbers. ``found`` holds what a sweep finds:
the duality gap as far as its rows know, the largest and the smallest projected derivative; further
the bounds beyond which a row is left out for a while, the dual value, and at its end all levels,
then all ``mu`` (few arrays, as handing an array to a compiled function is not free).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import REASSOCIATE, compiled
from bagwise.solvers.operators._row_kernels import row_add, row_dot, row_loop, row_square_and_dot

POSITION, KEPT, COUNT, SWEEPS, RANDOM = 0, 1, 2, 3, 4
GAP, LARGEST, SMALLEST, DROP_ABOVE, DROP_BELOW, DUAL, LEVEL = 0, 1, 2, 3, 4, 5, 6

_NEWTON_STEPS = 60
_EXACT = 1e-12  # a derivative is 0 below this, as margins are of size 1,
_ROUNDING = 1e-14  # or below this share of the terms it is made of
_TINY = 1e-300


@compiled
def limit_range(level: Floats, width: float, mu: Floats) -> int:
    """Write ``level`` less its projection on vectors of that range; return how many are not 0.

    The projection clips to an interval whose place keeps the sum.
    """
    k = level.shape[0]
    lowest, highest, total = level[0], level[0], level[0]
    for p in range(1, k):
        lowest = min(lowest, level[p])
        highest = max(highest, level[p])
        total += level[p]
    if not highest - lowest > width:
        for p in range(k):
            mu[p] = 0.0
        return 0
    # The clipped sum grows with the lower end; it is too small at the first, too large at the last.
    first, last = lowest, highest - width
    end = 0.5 * (first + last)
    for _ in range(_NEWTON_STEPS):
        excess, outside = -total, 0
        for p in range(k):
            if level[p] < end:
                excess += end
                outside += 1
            elif level[p] > end + width:
                excess += end + width
                outside += 1
            else:
                excess += level[p]
        if excess == 0.0 or outside == 0:
            break
        if excess > 0.0:
            last = end
        else:
            first = end
        moved = end - excess / outside
        if not first <= moved <= last:
            moved = 0.5 * (first + last)
        if moved == end:
            break
        end = moved
    outside = 0
    for p in range(k):
        mu[p] = level[p] - min(max(level[p], end), end + width)
        if mu[p] != 0.0:
            outside += 1
    return outside


@compiled
def _likely_step(
    derivative: float, low: float, high: float, square: float, height: float, r: int, k: int,
    width: float, found: Floats,
) -> float:  # fmt: skip
    """Return the step if the same levels are clipped after it as before, else NaN.

    Levels and multipliers then follow it linearly.
    """
    kappa = k / (k - 1.0)
    other = -height / (k - 1.0)
    outside, end, drift, curvature = 0, 0.0, 0.0, square
    if width < np.inf:
        for p in range(k):
            mu = found[LEVEL + k + p]
            if mu != 0.0:
                outside += 1
                end = found[LEVEL + p] - mu - (width if mu > 0.0 else 0.0)
        if outside > 0:
            drift = other
            if found[LEVEL + k + r] != 0.0:
                drift += (height - other) / outside
                curvature -= height * (height - drift)
    step = min(max(-derivative / max(kappa * curvature, _TINY), low), high)
    if width < np.inf:
        lowest, highest = np.inf, -np.inf
        for p in range(k):
            speed, mu = height if p == r else other, found[LEVEL + k + p]
            if mu == 0.0:
                moved = found[LEVEL + p] + step * speed
                lowest = min(lowest, moved)
                highest = max(highest, moved)
            elif not (mu + step * (speed - drift)) * mu > 0.0:
                return np.nan
        if outside > 0:
            end += step * drift
            if lowest < end or highest > end + width:
                return np.nan
        elif highest - lowest > width:
            return np.nan
    for p in range(k):
        speed = height if p == r else other
        found[LEVEL + p] += step * speed
        if found[LEVEL + k + p] != 0.0:
            found[LEVEL + k + p] += step * (speed - drift)
    found[DUAL] -= step * (derivative + 0.5 * kappa * curvature * step)
    return step


@compiled
def _best_step(
    derivative: float, low: float, high: float, square: float, height: float, r: int, k: int,
    width: float, found: Floats,
) -> float:  # fmt: skip
    """Return the step between two bounds at which the derivative is 0; move levels along.

    The derivative grows with the step, piecewise linearly: the multipliers follow the levels.
    """
    step = _likely_step(derivative, low, high, square, height, r, k, width, found)
    if not np.isnan(step):
        return step
    level, mu = found[LEVEL : LEVEL + k], found[LEVEL + k : LEVEL + 2 * k]
    kappa = k / (k - 1.0)
    other = -height / (k - 1.0)
    at_start = mu[r]
    outside = 0
    for p in range(k):
        if mu[p] != 0.0:
            outside += 1
    step, value = 0.0, derivative
    below, above, below_is_open, above_is_open = low, high, True, True
    for _ in range(_NEWTON_STEPS):
        curvature = square
        if mu[r] != 0.0:
            drift = (height + (outside - 1) * other) / outside
            curvature -= height * (height - drift)
        new = step - value / max(kappa * curvature, _TINY)
        if new <= below:
            new = below if below_is_open else 0.5 * (below + above)
        elif new >= above:
            new = above if above_is_open else 0.5 * (below + above)
        if new == step:
            break
        for p in range(k):
            level[p] += (new - step) * (height if p == r else other)
        found[DUAL] -= 0.5 * (new - step) * value
        step = new
        outside = limit_range(level, width, mu)
        value = derivative + kappa * (step * square - height * (mu[r] - at_start))
        terms = abs(step) * square + abs(height) * (abs(mu[r]) + abs(at_start))
        if abs(value) <= max(_EXACT, _ROUNDING * terms):
            break
        if (value > 0.0 and step <= low) or (value < 0.0 and step >= high):
            break
        if value > 0.0:
            above, above_is_open = step, False
        else:
            below, below_is_open = step, False
    return step


@compiled
def _begin_sweep(order: Integers, place: Integers) -> None:
    """Shuffle the rows of the next sweep."""
    state = np.uint64(place[RANDOM])
    for i in range(place[COUNT] - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        j = np.int64((state >> np.uint64(11)) % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
    place[RANDOM] = np.int64(state)
    place[POSITION] = 0
    place[KEPT] = 0


@compiled
def _end_sweep(place: Integers, found: Floats, tol: float, before: float, share: float) -> bool:
    """Take stock of a sweep; return whether its rows found the duality gap to be small enough."""
    place[SWEEPS] += 1
    place[COUNT] = place[KEPT]
    place[POSITION] = -1
    found[DROP_ABOVE] = found[LARGEST] if found[LARGEST] > _EXACT else np.inf
    found[DROP_BELOW] = found[SMALLEST] if found[SMALLEST] < -_EXACT else -np.inf
    gap = found[GAP]
    found[GAP], found[LARGEST], found[SMALLEST] = 0.0, -np.inf, np.inf
    primal = found[DUAL] + gap
    return bool(gap <= max(tol * primal, share * (before - primal)))


# Two forms of one loop, for dense and for CSR rows: written once with `row_dot` and `row_add`, as
# are loops further down, steps took up to 6 % longer on dense rows and up to 15 % on CSR rows.


@compiled(fastmath=REASSOCIATE)
def dense_descend(
    matrix: NDArray[Any], rows: Integers, cluster: Integers,
    square: Floats, height: Floats, cap: float,
    alpha: Floats, sums: Floats, total: Floats,
    width: float, order: Integers, place: Integers, found: Floats,
    budget: int, max_sweeps: int, tol: float, before: float, share: float,
) -> bool:  # fmt: skip
    """Visit up to ``budget`` rows; return whether a sweep found the gap to be small enough."""
    k, d = sums.shape
    kappa = k / (k - 1.0)
    while budget > 0:
        if place[POSITION] < 0:
            _begin_sweep(order, place)
        first, kept = place[POSITION], place[KEPT]
        last = min(place[COUNT], first + budget)
        budget -= max(last - first, 1)
        gap, largest, smallest = found[GAP], found[LARGEST], found[SMALLEST]
        drop_above, drop_below = found[DROP_ABOVE], found[DROP_BELOW]
        for position in range(first, last):
            i = order[position]
            r, value = cluster[i], alpha[i]
            row, own = matrix[rows[i]], sums[0 if k == 2 else r]
            dot, all_dot = 0.0, 0.0
            if k == 2:
                for f in range(d):
                    dot += row[f] * own[f]
                score = -dot if r else dot
            else:
                for f in range(d):
                    dot += row[f] * own[f]
                    all_dot += row[f] * total[f]
                score = kappa * (dot - all_dot / k)
            slope = kappa * (score - found[LEVEL + k + r] * height[i]) - 1.0
            projected = slope
            if value <= 0.0:
                if slope > drop_above:
                    continue
                projected = min(slope, 0.0)
            elif value >= cap:
                if slope < drop_below:
                    continue
                projected = max(slope, 0.0)
            order[position], order[kept] = order[kept], i
            kept += 1
            gap += cap * max(-slope, 0.0) + value * slope
            largest, smallest = max(largest, projected), min(smallest, projected)
            if abs(projected) <= _EXACT:
                continue
            step = _best_step(
                slope, -value, cap - value, square[i], height[i], r, k, width, found
            )  # fmt: skip
            alpha[i] = cap if step >= cap - value else max(value + step, 0.0)
            if k == 2:
                step = -step if r else step
                for f in range(d):
                    own[f] += step * row[f]
            else:
                for f in range(d):
                    by = step * row[f]
                    own[f] += by
                    total[f] += by
        place[POSITION], place[KEPT] = last, kept
        found[GAP], found[LARGEST], found[SMALLEST] = gap, largest, smallest
        if last == place[COUNT]:
            is_close = _end_sweep(place, found, tol, before, share)
            if is_close or place[SWEEPS] >= max_sweeps or place[COUNT] == 0:
                return True
    return False


@compiled
def csr_descend(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], rows: Integers,
    cluster: Integers, square: Floats, height: Floats,
    cap: float, alpha: Floats, sums: Floats, total: Floats,
    width: float, order: Integers, place: Integers, found: Floats,
    budget: int, max_sweeps: int, tol: float, before: float, share: float,
) -> bool:  # fmt: skip
    """Visit up to ``budget`` rows; return whether a sweep found the gap to be small enough."""
    k = sums.shape[0]
    kappa = k / (k - 1.0)
    while budget > 0:
        if place[POSITION] < 0:
            _begin_sweep(order, place)
        first, kept = place[POSITION], place[KEPT]
        last = min(place[COUNT], first + budget)
        budget -= max(last - first, 1)
        gap, largest, smallest = found[GAP], found[LARGEST], found[SMALLEST]
        drop_above, drop_below = found[DROP_ABOVE], found[DROP_BELOW]
        for position in range(first, last):
            i = order[position]
            r, value = cluster[i], alpha[i]
            begin, end, own = indptr[rows[i]], indptr[rows[i] + 1], sums[0 if k == 2 else r]
            dot, all_dot = 0.0, 0.0
            if k == 2:
                for e in range(begin, end):
                    dot += data[e] * own[indices[e]]
                score = -dot if r else dot
            else:
                for e in range(begin, end):
                    dot += data[e] * own[indices[e]]
                    all_dot += data[e] * total[indices[e]]
                score = kappa * (dot - all_dot / k)
            slope = kappa * (score - found[LEVEL + k + r] * height[i]) - 1.0
            projected = slope
            if value <= 0.0:
                if slope > drop_above:
                    continue
                projected = min(slope, 0.0)
            elif value >= cap:
                if slope < drop_below:
                    continue
                projected = max(slope, 0.0)
            order[position], order[kept] = order[kept], i
            kept += 1
            gap += cap * max(-slope, 0.0) + value * slope
            largest, smallest = max(largest, projected), min(smallest, projected)
            if abs(projected) <= _EXACT:
                continue
            step = _best_step(
                slope, -value, cap - value, square[i], height[i], r, k, width, found
            )  # fmt: skip
            alpha[i] = cap if step >= cap - value else max(value + step, 0.0)
            if k == 2:
                step = -step if r else step
                for e in range(begin, end):
                    own[indices[e]] += step * data[e]
            else:
                for e in range(begin, end):
                    by = step * data[e]
                    own[indices[e]] += by
                    total[indices[e]] += by
        place[POSITION], place[KEPT] = last, kept
        found[GAP], found[LARGEST], found[SMALLEST] = gap, largest, smallest
        if last == place[COUNT]:
            is_close = _end_sweep(place, found, tol, before, share)
            if is_close or place[SWEEPS] >= max_sweeps or place[COUNT] == 0:
                return True
    return False


@compiled
def settle(
    alpha: Floats, sums: Floats, unit: Floats, width: float,
    total: Floats, coef: Floats, found: Floats,
) -> float:  # fmt: skip
    """Compute from the sums what steps only update, and the weights; return half their square."""
    k, d = sums.shape
    level, mu = found[LEVEL : LEVEL + k], found[LEVEL + k : LEVEL + 2 * k]
    kappa = k / (k - 1.0)
    for f in range(d):
        total[f] = 0.0
        for p in range(k):
            total[f] += sums[p, f]
        for p in range(k):
            coef[p, f] = kappa * (sums[p, f] - total[f] / k)
        if k == 2:
            coef[0, f], coef[1, f] = sums[0, f], -sums[0, f]
    for p in range(k):
        level[p] = 0.0
        for f in range(d):
            level[p] += coef[p, f] * unit[f]
    limit_range(level, width, mu)
    penalty, value = 0.0, 0.0
    for p in range(k):
        if mu[p] != 0.0:
            value -= 0.5 * width * abs(mu[p])
            for f in range(d):
                coef[p, f] -= mu[p] * unit[f]
        for f in range(d):
            penalty += 0.5 * coef[p, f] * coef[p, f]
    for i in range(alpha.shape[0]):
        value += alpha[i]
    found[DUAL] = value - penalty
    return penalty


@compiled
def restrict(
    alpha: Floats, cap: float, margin: Floats, slack: float,
    all_rows: Integers, order: Integers, place: Integers,
    found: Floats,
) -> None:  # fmt: skip
    """Take into the next sweep the rows that are not optimal, or nearly so, at these margins."""
    first, last = 0, order.shape[0]
    for i in all_rows:
        may_fall = alpha[i] > 0.0 and (alpha[i] < cap or margin[i] > 1.0 - slack)
        may_rise = alpha[i] < cap and (alpha[i] > 0.0 or margin[i] < 1.0 + slack)
        if may_fall or may_rise:
            order[first] = i
            first += 1
        else:
            last -= 1
            order[last] = i
    place[COUNT] = first
    found[DROP_ABOVE], found[DROP_BELOW] = np.inf, -np.inf


@row_loop
def prepare(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any],
    rows: Integers, cluster: Integers, alpha: Floats,
    unit: Floats, square: Floats, height: Floats,
    sums: Floats,
) -> None:  # fmt: skip
    """Write squared lengths and heights; add each row, times its factor, to its cluster's sum."""
    is_pair = sums.shape[0] == 2
    for i in range(rows.shape[0]):
        square[i], height[i] = row_square_and_dot(data, indices, indptr, rows[i], unit)
        by = -alpha[i] if is_pair and cluster[i] else alpha[i]
        if by != 0.0:
            own = sums[0 if is_pair else cluster[i]]
            row_add(data, indices, indptr, rows[i], by, own)


@row_loop
def margins(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any],
    rows: Integers, cluster: Integers, coef: Floats,
    margin: Floats,
) -> float:  # fmt: skip
    """Write the margins of rows in their clusters; return the sum of their losses."""
    k = coef.shape[0]
    loss = 0.0
    for i in range(rows.shape[0]):
        dot = row_dot(data, indices, indptr, rows[i], coef[cluster[i]])
        margin[i] = k / (k - 1.0) * dot
        loss += max(1.0 - margin[i], 0.0)
    return loss
