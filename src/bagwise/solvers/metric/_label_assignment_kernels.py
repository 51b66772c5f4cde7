"""Compiled loops of label assignments: the best assignment inside a bag, and sweeps over bags."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def _dot(a: NDArray[Any], b: Floats) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def square_norms(rows: NDArray[Any], out: Floats) -> None:
    """Write the squared norm of each row."""
    for i in range(len(rows)):
        total = 0.0
        for value in rows[i]:
            total += np.float64(value) * np.float64(value)
        out[i] = total


@compiled
def best_assignment(cost: Floats, row_of: Integers, work: Floats) -> None:
    """Find the cheapest way to give every row a column of its own: shortest augmenting paths.

    Parameters
    ----------
    cost : ndarray of shape (n_rows, n_columns)
        No more rows than columns.
    row_of : ndarray of int of shape (n_columns,)
        Is set to the row of each column, -1 where it has none.
    work : ndarray of shape (4, n_columns + 1)
        Scratch space.
    """
    n, m = cost.shape
    price, least, row_price, used = work[0], work[1], work[2], work[3]
    came_from = np.empty(m, np.int64)
    price[:m] = 0.0
    row_price[: m + 1] = 0.0
    row_of[:m] = -1
    for first in range(n):
        row, column = first, -1
        least[:m] = np.inf
        used[:m] = 0.0
        while True:
            lowest, following = np.inf, -1
            for j in range(m):
                if used[j] == 0.0:
                    reduced = cost[row, j] - row_price[row] - price[j]
                    if reduced < least[j]:
                        least[j], came_from[j] = reduced, column
                    if least[j] < lowest:
                        lowest, following = least[j], j
            row_price[first] += lowest
            for j in range(m):
                if used[j] == 1.0:
                    row_price[row_of[j]] += lowest
                    price[j] -= lowest
                else:
                    least[j] -= lowest
            column = following
            used[column] = 1.0
            if row_of[column] < 0:
                break
            row = row_of[column]
        while column >= 0:
            before = came_from[column]
            row_of[column] = first if before < 0 else row_of[before]
            column = before


@compiled
def _fill_costs(
    rows: NDArray[Any],
    squares: Floats,
    names: Integers,
    current: Integers,
    weight: float,
    sums: Floats,
    sum_squares: Floats,
    mass: Floats,
    members: Integers,
    is_exact: bool,
    products: Floats,
    cost: Floats,
) -> None:
    """Write what each instance of a bag costs under each label of its list.

    Exact is the rise of the objective if the bag, first taken out of all sums, gets the label
    there; else it is the weighted squared distance from the mean as it stands.
    """
    n, m = len(rows), len(names)
    for j in range(n):
        for c in range(m):
            products[j, c] = _dot(rows[j], sums[names[c]])
    for c in range(m):
        label = names[c]
        own = -1
        if is_exact:
            for j in range(n):
                if current[j] == label:
                    own = j
        count = members[label] - (1 if own >= 0 else 0)
        total, norm = mass[label], sum_squares[label]
        if own >= 0:
            total -= weight
            norm += weight * (weight * squares[own] - 2.0 * products[own, c])
        for j in range(n):
            if count == 0:
                cost[j, c] = 0.0 if is_exact else weight * squares[j]
                continue
            product = products[j, c]
            if own >= 0:
                product -= weight * _dot(rows[j], rows[own])
            distance = squares[j] - 2.0 * product / total + norm / (total * total)
            share = total / (total + weight) if is_exact else 1.0
            cost[j, c] = weight * share * max(distance, 0.0)


@compiled
def sweep(
    rows: NDArray[Any],
    squares: Floats,
    starts: Integers,
    list_starts: Integers,
    lists: Integers,
    weight: Floats,
    labels: Integers,
    sums: Floats,
    sum_squares: Floats,
    mass: Floats,
    members: Integers,
    is_exact: bool,
    tol: float,
    kept: Booleans,
) -> int:
    """Give the instances of one bag after another the labels that cost least; count the changes.

    With ``is_exact`` sums follow each bag at once, and a bag changes only if that lowers the
    objective by more than ``tol`` of what its instances weigh. Else the sums stay as they are.

    Parameters
    ----------
    rows, squares : ndarray of shapes (n_rows, n_features) and (n_rows,)
        Instances and their squared norms.
    starts : ndarray of int of shape (n_bags + 1,)
        Rows at which bags begin.
    list_starts, lists : ndarray of int
        The labels of bag i are ``lists[list_starts[i]:list_starts[i + 1]]``.
    weight : ndarray of shape (n_bags,)
        Weights of bags.
    labels : ndarray of int of shape (n_rows,)
        The label of each instance, -1 for none. Changed in place.
    sums, sum_squares, mass, members : ndarray
        Of each label: the weighted sum of its instances, its squared norm, their weight and
        their number. Changed in place with ``is_exact``.
    is_exact : bool
        See above.
    tol : float
        See above.
    kept : ndarray of bool of shape (n_bags,)
        Bags that are passed over.
    """
    most = 1
    longest = 1
    for i in range(len(starts) - 1):
        most = max(most, starts[i + 1] - starts[i])
        longest = max(longest, list_starts[i + 1] - list_starts[i])
    larger = max(most, longest)
    products, cost = np.empty((most, longest)), np.empty((most, longest))
    turned = np.empty((longest, most))
    work = np.empty((4, larger + 1))
    match = np.empty(larger, np.int64)
    fresh = np.empty(most, np.int64)
    n_changes = 0
    for i in range(len(starts) - 1):
        n, m = starts[i + 1] - starts[i], list_starts[i + 1] - list_starts[i]
        if m == 0 or kept[i]:
            continue
        own = rows[starts[i] : starts[i + 1]]
        norms = squares[starts[i] : starts[i + 1]]
        names = lists[list_starts[i] : list_starts[i + 1]]
        current = labels[starts[i] : starts[i + 1]]
        _fill_costs(
            own, norms, names, current, weight[i], sums, sum_squares, mass, members, is_exact,
            products, cost,
        )  # fmt: skip
        fresh[:n] = -1
        if n <= m:
            best_assignment(cost[:n, :m], match, work)
            for c in range(m):
                if match[c] >= 0:
                    fresh[match[c]] = names[c]
        else:
            for c in range(m):
                for j in range(n):
                    turned[c, j] = cost[j, c]
            best_assignment(turned[:m, :n], match, work)
            for j in range(n):
                if match[j] >= 0:
                    fresh[j] = names[match[j]]
        before, after, size, differs, is_whole = 0.0, 0.0, 0.0, False, True
        for j in range(n):
            size += weight[i] * norms[j]
            differs = differs or fresh[j] != current[j]
            for c in range(m):
                if names[c] == current[j]:
                    before += cost[j, c]
                if names[c] == fresh[j]:
                    after += cost[j, c]
        n_before = 0
        for j in range(n):
            n_before += 1 if current[j] >= 0 else 0
        is_whole = n_before == min(n, m)
        if not differs or (is_whole and not after < before - tol * size):
            continue
        n_changes += 1
        if is_exact:
            for j in range(n):
                if current[j] != fresh[j]:
                    _move(own[j], current[j], -weight[i], sums, mass, members)
                    _move(own[j], fresh[j], weight[i], sums, mass, members)
            for c in range(m):
                sum_squares[names[c]] = _dot(sums[names[c]], sums[names[c]])
        current[:] = fresh[:n]
    return n_changes


@compiled
def _move(
    row: NDArray[Any], label: int, weight: float, sums: Floats, mass: Floats, members: Integers
) -> None:
    """Add an instance to the sums of a label, or take it away if the weight is negative."""
    if label < 0:
        return
    members[label] += 1 if weight > 0 else -1
    if members[label] == 0:
        sums[label] = 0.0
        mass[label] = 0.0
        return
    mass[label] += weight
    for f in range(len(row)):
        sums[label, f] += weight * row[f]


@compiled
def add_members(
    rows: NDArray[Any],
    starts: Integers,
    weight: Floats,
    labels: Integers,
    sums: Floats,
    mass: Floats,
    members: Integers,
) -> None:
    """Add all instances that have a label to the sums of these."""
    for i in range(len(starts) - 1):
        for j in range(starts[i], starts[i + 1]):
            _move(rows[j], labels[j], weight[i], sums, mass, members)


@compiled
def add_bag_means(
    rows: NDArray[Any],
    starts: Integers,
    list_starts: Integers,
    lists: Integers,
    weight: Floats,
    sums: Floats,
    mass: Floats,
    members: Integers,
) -> None:
    """Add the mean of every bag to the sums of all labels of its list."""
    mean = np.empty(sums.shape[1])
    for i in range(len(starts) - 1):
        if list_starts[i] == list_starts[i + 1]:
            continue
        mean[:] = 0.0
        for j in range(starts[i], starts[i + 1]):
            for f in range(len(mean)):
                mean[f] += rows[j, f]
        mean /= starts[i + 1] - starts[i]
        for place in range(list_starts[i], list_starts[i + 1]):
            _move(mean, lists[place], weight[i], sums, mass, members)
