"""Compiled loops of key rows: the best row of each bag, given those of the others."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._jit import compiled


@compiled
def choose_rows(
    rows: NDArray[Any],
    starts: Integers,
    weight: Floats,
    is_positive: Booleans,
    center: Floats,
    is_exact: bool,
    tol: float,
    places: Integers,
    total: Floats,
) -> int:
    """Choose in one positive bag after another the row that makes the sum longest.

    With ``is_exact`` the sum follows each bag at once. Else it stays as it is, and a row counts by
    how far it lies in the direction of the sum.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Rows of bags.
    starts : ndarray of int of shape (n_bags + 1,)
        Rows at which bags begin.
    weight, is_positive : ndarray of shape (n_bags,)
        Weights of bags, and which of them have a chosen row.
    center : ndarray of shape (n_features,)
        The mean that is subtracted from rows.
    is_exact : bool
        See above.
    tol : float
        A row has to be better by this share of the squared lengths to be chosen anew.
    places : ndarray of int of shape (n_bags,)
        The chosen row of each bag, -1 where its mean still stands for it. Changed in place.
    total : ndarray of shape (n_features,)
        The sum of the chosen rows. Changed in place with ``is_exact``.

    Returns
    -------
    int
        How many bags have changed.
    """
    n_features = len(center)
    others = np.empty(n_features)
    n_changes = 0
    for i in range(len(starts) - 1):
        if not is_positive[i]:
            continue
        before, own = places[i], weight[i]
        others[:] = total
        if is_exact and before >= 0:
            for f in range(n_features):
                others[f] -= own * (rows[before, f] - center[f])
        best, highest, current, size = -1, -np.inf, -np.inf, 0.0
        for j in range(starts[i], starts[i + 1]):
            product, square = 0.0, 0.0
            for f in range(n_features):
                value = rows[j, f] - center[f]
                product += value * others[f]
                square += value * value
            gain = 2.0 * product + own * square if is_exact else product
            size = max(size, abs(product) + own * square)
            if gain > highest:
                best, highest = j, gain
            if j == before:
                current = gain
        if best == before or highest <= current + tol * size:
            continue
        n_changes += 1
        places[i] = best
        if is_exact:
            for f in range(n_features):
                total[f] = others[f] + own * (rows[best, f] - center[f])
    return n_changes


@compiled
def add_rows(rows: NDArray[Any], starts: Integers, weight: Floats, total: Floats) -> None:
    """Add all rows to a sum, by weight of their bags."""
    for i in range(len(starts) - 1):
        for j in range(starts[i], starts[i + 1]):
            for f in range(len(total)):
                total[f] += weight[i] * rows[j, f]


@compiled
def scatter(rows: NDArray[Any], starts: Integers, weight: Floats, center: Floats) -> float:
    """Return the squared distances of rows from the centre, by weight of their bags."""
    total = 0.0
    for i in range(len(starts) - 1):
        for j in range(starts[i], starts[i + 1]):
            square = 0.0
            for f in range(len(center)):
                square += (rows[j, f] - center[f]) ** 2
            total += weight[i] * square
    return total


@compiled
def add_means(
    rows: NDArray[Any],
    starts: Integers,
    weight: Floats,
    is_positive: Booleans,
    center: Floats,
    total: Floats,
) -> None:
    """Add the mean of every positive bag to the sum, less the centre."""
    for i in range(len(starts) - 1):
        if not is_positive[i]:
            continue
        share = weight[i] / (starts[i + 1] - starts[i])
        for j in range(starts[i], starts[i + 1]):
            for f in range(len(center)):
                total[f] += share * (rows[j, f] - center[f])
