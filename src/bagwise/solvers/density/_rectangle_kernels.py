"""Compiled loops of `bagwise.solvers.density._rectangle`."""

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def _cost(row: Floats, lower: Floats, upper: Floats) -> float:
    """Return by how much a row would widen a rectangle."""
    total = 0.0
    for k in range(len(row)):
        total += max(lower[k] - row[k], 0.0) + max(row[k] - upper[k], 0.0)
    return total


@compiled
def _insert(row: Floats, bag: int, bounds: Floats, owners: Integers) -> None:
    """Widen a rectangle by the row of a bag.

    ``bounds`` has the lowest, next lowest, highest and next highest value of each feature in its
    rows, ``owners`` the bags of the lowest and of the highest.
    """
    for k in range(len(row)):
        value = row[k]
        if value < bounds[0, k]:
            bounds[1, k] = bounds[0, k]
            bounds[0, k], owners[0, k] = value, bag
        elif value < bounds[1, k]:
            bounds[1, k] = value
        if value > bounds[2, k]:
            bounds[3, k] = bounds[2, k]
            bounds[2, k], owners[1, k] = value, bag
        elif value > bounds[3, k]:
            bounds[3, k] = value


@compiled
def enclose(rows: Floats, chosen: Integers, bounds: Floats, owners: Integers) -> None:
    """Fill the bounds of the chosen rows, and the bags that own them."""
    bounds[:2], bounds[2:] = np.inf, -np.inf
    for i in range(len(chosen)):
        if chosen[i] >= 0:
            _insert(rows[chosen[i]], i, bounds, owners)


@compiled
def cover_next(
    rows: Floats,
    offsets: Integers,
    chosen: Integers,
    bounds: Floats,
    owners: Integers,
    least: Floats,
    ahead: Floats,
    same: float,
) -> None:
    """Choose a row of each further bag that a rectangle covers; if none, of the cheapest bag.

    ``chosen`` is -1 for bags that have none. ``least`` has what rows cost at least, and ``ahead``
    how much more the other rows of a bag cost at least than the chosen one: looks that cannot
    matter are spared. A later row has to be cheaper by ``same``.
    """
    lower, upper = bounds[0].copy(), bounds[2].copy()
    cheapest, which, owner = np.inf, -1, -1
    n_covered = 0
    for i in range(len(chosen)):
        if chosen[i] >= 0:
            continue
        for r in range(offsets[i], offsets[i + 1]):
            if least[r] >= cheapest:
                continue
            least[r] = _cost(rows[r], lower, upper)
            if least[r] <= 0.0:
                chosen[i] = r
                n_covered += 1
                _insert(rows[r], i, bounds, owners)
                break
            if least[r] < cheapest - same:
                cheapest, which, owner = least[r], r, i
    if n_covered == 0 and which >= 0:
        chosen[owner] = which
        _insert(rows[which], owner, bounds, owners)
        least -= cheapest
        ahead -= cheapest


@compiled
def _mark(owners: Integers, n_bags: int) -> Booleans:
    is_owner = np.zeros(n_bags, np.bool_)
    for k in range(owners.shape[1]):
        is_owner[owners[0, k]] = True
        is_owner[owners[1, k]] = True
    return is_owner


@compiled
def choose_again(
    rows: Floats,
    offsets: Integers,
    chosen: Integers,
    bounds: Floats,
    owners: Integers,
    least: Floats,
    ahead: Floats,
    same: float,
) -> bool:
    """Choose the cheapest row of each bag beside those of the others; tell whether any changed.

    Bags without a bound of their own cannot gain. A row is changed only for one that is cheaper by
    ``same``.
    """
    has_changed = False
    is_owner = _mark(owners, len(chosen))
    for i in range(len(chosen)):
        if not is_owner[i] or ahead[i] > 0.0:
            continue
        lower = np.where(owners[0] == i, bounds[1], bounds[0])
        upper = np.where(owners[1] == i, bounds[3], bounds[2])
        cheapest, best, second = _cost(rows[chosen[i]], lower, upper), chosen[i], np.inf
        for r in range(offsets[i], offsets[i + 1]):
            cost = _cost(rows[r], lower, upper)
            if cost < cheapest - same:
                cheapest, best, second = cost, r, cheapest
            elif r != best and cost < second:
                second = cost
        if best != chosen[i]:
            chosen[i] = best
            enclose(rows, chosen, bounds, owners)
            is_owner = _mark(owners, len(chosen))
            least -= cheapest
            ahead[:] = 0.0
            has_changed = True
        ahead[i] = second - cheapest
    return has_changed


@compiled
def fill_excluded(
    rows: Floats, lower: Floats, upper: Floats, margin: float, excluded: Booleans
) -> None:
    """Tell which features exclude each row: by the margin, or else the one that does so most."""
    for r in range(rows.shape[0]):
        furthest, which, is_strong = 0.0, -1, False
        for k in range(rows.shape[1]):
            out = max(lower[k] - rows[r, k], rows[r, k] - upper[k])
            excluded[r, k] = out >= margin
            is_strong = is_strong or out >= margin
            if out > furthest:
                furthest, which = out, k
        if not is_strong and which >= 0:
            excluded[r, which] = True


@compiled
def select_features(excluded: Booleans, weight: Floats, same: float) -> NDArray[np.bool_]:
    """Return features that exclude all rows together, taken greedily by the weight of the rows."""
    n_rows, n_features = excluded.shape
    is_kept, is_left = np.zeros(n_features, np.bool_), np.ones(n_rows, np.bool_)
    for _ in range(n_features):
        gain = np.zeros(n_features)
        for r in range(n_rows):
            if is_left[r]:
                for k in range(n_features):
                    if excluded[r, k]:
                        gain[k] += weight[r]
        best = 0
        for k in range(n_features):
            if gain[k] > gain[best] + same:
                best = k
        if gain[best] <= 0.0:
            break
        is_kept[best] = True
        is_left &= ~excluded[:, best]
    return is_kept
