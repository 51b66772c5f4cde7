"""Compiled loops of k-medoids: the nearest two medoids, swaps, and medoids of clusters.

Distances are read by rows: ``distance[x, o]`` is what point ``o`` pays for medoid ``x``. Medoids
sit in slots; ``near`` and ``second`` are the slots that a point is nearest to.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import REASSOCIATE, compiled

_EPS = 2.0**-52


@compiled
def is_sound(distance: NDArray[Any], first: int, last: int, slack: float) -> tuple[bool, bool]:
    """Tell whether rows are finite and not negative, and whether they equal their columns."""
    finite, symmetric = True, True
    for i in range(first, last):
        for j in range(i, distance.shape[0]):
            here, there = distance[i, j], distance[j, i]
            finite &= 0.0 <= here < np.inf and 0.0 <= there < np.inf
            symmetric &= abs(here - there) <= slack * max(here, there)
    return finite, symmetric


@compiled
def _find_two(
    distance: NDArray[Any], medoids: Integers, o: int,
    near: Integers, second: Integers,
    least: Floats, next_least: Floats,
) -> None:  # fmt: skip
    near[o], second[o], least[o], next_least[o] = 0, 0, np.inf, np.inf
    for slot in range(medoids.size):
        value = distance[medoids[slot], o]
        if value < least[o]:
            second[o], next_least[o] = near[o], least[o]
            near[o], least[o] = slot, value
        elif value < next_least[o]:
            second[o], next_least[o] = slot, value


@compiled
def find_nearest_two(
    distance: NDArray[Any], medoids: Integers, first: int, last: int,
    near: Integers, second: Integers,
    least: Floats, next_least: Floats,
) -> None:  # fmt: skip
    """Find both medoids of the points from ``first`` to ``last``; the first slot of equal ones."""
    for o in range(first, last):
        _find_two(distance, medoids, o, near, second, least, next_least)


@compiled
def sum_up(
    near: Integers, least: Floats, next_least: Floats,
    loss: Floats, total: Floats,
) -> None:  # fmt: skip
    """Write what the removal of each medoid costs, and both totals of the distances."""
    loss[:] = 0.0
    total[:] = 0.0
    for o in range(near.size):
        loss[near[o]] += next_least[o] - least[o]
        total[0] += least[o]
        total[1] += next_least[o]


@compiled
def _estimate(
    row: NDArray[Any], near: Integers,
    least: Floats, next_least: Floats,
    loss: Floats, change: Floats,
) -> Any:  # fmt: skip
    """Return the change of the objective by the best swap with one candidate, up to rounding.

    Points that are farther from the candidate than from two medoids change nothing, and these
    are most. The price is that the removals in ``loss`` are taken back where they do not happen.
    """
    shared = 0.0
    change[:] = loss
    for o in range(row.size):
        value = row[o]
        if value < next_least[o]:
            if value < least[o]:
                shared += value - least[o]
                change[near[o]] += least[o] - next_least[o]
            else:
                change[near[o]] += value - next_least[o]
    return shared + change.min()


@compiled
def _best_slot(
    row: NDArray[Any], medoids: Integers, near: Integers,
    least: Floats, next_least: Floats,
    change: Floats, gain: Floats,
) -> int:  # fmt: skip
    """Return which medoid to give up for a candidate, from sums in which nothing cancels."""
    shared = 0.0
    change[:] = 0.0
    gain[:] = 0.0
    for o in range(row.size):
        slot = near[o]
        change[slot] += min(row[o], next_least[o]) - least[o]
        better = min(row[o] - least[o], 0.0)
        gain[slot] += better
        shared += better
    best = 0
    for slot in range(medoids.size):
        change[slot] += shared - gain[slot]
        if change[slot] < change[best] or (
            change[slot] == change[best] and medoids[slot] < medoids[best]
        ):
            best = slot
    return best


@compiled
def _objective_with(
    row: NDArray[Any], slot: int, near: Integers,
    least: Floats, next_least: Floats,
) -> float:  # fmt: skip
    """Return the objective with a candidate in this slot, summed as `sum_up` does."""
    total = 0.0
    for o in range(row.size):
        total += min(row[o], next_least[o] if near[o] == slot else least[o])
    return total


@compiled
def _swap(
    distance: NDArray[Any], x: int, slot: int, medoids: Integers,
    near: Integers, second: Integers,
    least: Floats, next_least: Floats,
) -> int:  # fmt: skip
    """Put a candidate into a slot; return how many points had to look at all medoids again."""
    medoids[slot] = x
    rescans = 0
    for o in range(near.size):
        value = distance[x, o]
        if near[o] == slot and value <= next_least[o]:
            least[o] = value
        elif near[o] == slot or second[o] == slot:
            _find_two(distance, medoids, o, near, second, least, next_least)
            rescans += 1
        elif value < least[o]:
            second[o], next_least[o] = near[o], least[o]
            near[o], least[o] = slot, value
        elif value < next_least[o]:
            second[o], next_least[o] = slot, value
    return rescans


@compiled
def search_swaps(
    distance: NDArray[Any], order: Integers, first: int, tried: int, budget: int,
    medoids: Integers, near: Integers, second: Integers,
    least: Floats, next_least: Floats,
    loss: Floats, total: Floats,
    change: Floats, gain: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Try candidates in an order, swapping at once where that lowers the objective.

    Starts at place ``first`` of the order. Stops at its end, when ``tried`` candidates in a row are
    as many as there are points, or when ``budget`` is spent. Returns the next place and the number
    tried since the last swap.
    """
    n = near.size
    rounding = n * _EPS
    place = first
    while place < n and tried < n and budget > 0:
        x = order[place]
        row = distance[x]
        place += 1
        tried += 1
        budget -= n
        taken = False
        for slot in range(medoids.size):
            taken |= medoids[slot] == x
        if taken:
            continue
        estimate = _estimate(row, near, least, next_least, loss, change)
        if estimate > 4.0 * rounding * total[1]:
            continue
        slot = _best_slot(row, medoids, near, least, next_least, change, gain)
        objective = _objective_with(row, slot, near, least, next_least)
        # The objective is a function of the medoids alone, to the last bit: a lower one each time
        # means that the search ends.
        if objective < total[0] * (1.0 - rounding):
            rescans = _swap(distance, x, slot, medoids, near, second, least, next_least)
            sum_up(near, least, next_least, loss, total)
            budget -= 8 * n + 8 * rescans * medoids.size
            tried = 1
    return place, tried


@compiled(fastmath=REASSOCIATE)
def _row_total(row: NDArray[Any], points: Integers) -> float:
    total = 0.0
    for o in points:
        total += row[o]
    return total


@compiled
def cluster_totals(
    distance: NDArray[Any], members: Integers, bounds: Integers,
    first: int, last: int, total: Floats,
) -> None:  # fmt: skip
    """Write the sum of distances from each member to its whole cluster.

    Cluster ``c`` is ``members[bounds[c]:bounds[c + 1]]``; ``first`` and ``last`` are positions in
    ``members``.
    """
    c = 0
    for i in range(first, last):
        while bounds[c + 1] <= i:
            c += 1
        total[i] = _row_total(distance[members[i]], members[bounds[c] : bounds[c + 1]])


@compiled
def build_gains(
    distance: NDArray[Any], candidates: Integers, points: Integers,
    least: Floats, first: int, last: int, gain: Floats,
) -> None:  # fmt: skip
    """Write by how much each candidate lowers the sum of ``least`` over some points.

    Where there is no medoid yet ``least`` is infinite: then it is minus the sum of distances.
    """
    for i in range(first, last):
        row = distance[candidates[i]]
        total = 0.0
        for o in points:
            if least[o] == np.inf:
                total -= row[o]
            else:
                total += max(least[o] - row[o], 0.0)
        gain[i] = total
