"""Pairs of bags that share a label or share none, and their nearest instances."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._threads import ordered_map, slice_length

_ALL = 1 << 22  # pairs up to which all are looked at

#: Where segments of rows begin, and where they end.
Ends = tuple[Integers, Integers]


@dataclass(frozen=True, eq=False)
class BagPairs:
    """Pairs of bags, the first before the second.

    Parameters
    ----------
    bags : ndarray of int of shape (n_pairs, 2)
        The numbers of both bags.
    is_alike : ndarray of bool of shape (n_pairs,)
        Whether they share a label.
    weight : ndarray of shape (n_pairs,)
        What each pair counts, such that those that were drawn stand for those that were not.
    """

    bags: Integers
    is_alike: Booleans
    weight: Floats


def bag_pairs(
    lists: Booleans,
    weight: Floats,
    *,
    max_pairs: int,
    rng: np.random.Generator,
) -> BagPairs:
    """Return pairs of bags: all, or of each kind as many as are wanted.

    Parameters
    ----------
    lists : ndarray of bool of shape (n_bags, n_labels)
        Which labels are on the list of each bag.
    weight : ndarray of shape (n_bags,)
        Weights of bags; that of a pair is their product.
    max_pairs : int
        Most pairs that share a label, and most that share none.
    rng : numpy.random.Generator
        Draws pairs if there are more.
    """
    n = len(lists)
    listed = sp.csr_array(lists, dtype=np.int64)
    shared = sp.triu(listed @ listed.T, k=1, format="coo")
    alike = np.stack(shared.coords, axis=1).astype(np.int64)
    n_others = n * (n - 1) // 2 - len(alike)
    others = _others(n, alike, n_others, max_pairs, rng)
    parts = [_drawn(alike, len(alike), max_pairs, rng), _drawn(others, n_others, max_pairs, rng)]
    bags = np.concatenate([part for part, _ in parts])
    share = np.repeat([share for _, share in parts], [len(part) for part, _ in parts])
    is_alike = np.arange(len(bags)) < len(parts[0][0])
    return BagPairs(bags, is_alike, weight[bags[:, 0]] * weight[bags[:, 1]] * share)


def _others(
    n: int, alike: Integers, n_others: int, max_pairs: int, rng: np.random.Generator
) -> Integers:
    """Return pairs of bags that are not alike; not all if they are very many."""
    taken = alike @ np.array([n, 1])
    if n * (n - 1) // 2 <= _ALL:
        first, second = np.triu_indices(n, 1)
        codes = np.setdiff1d(first * n + second, taken, assume_unique=True)
    else:
        codes = np.empty(0, np.int64)
        while len(codes) < min(max_pairs, n_others):
            drawn = np.sort(rng.integers(n, size=(2 * max_pairs, 2)), axis=1)
            drawn = drawn[drawn[:, 0] < drawn[:, 1]] @ np.array([n, 1])
            codes = np.unique(np.append(codes, np.setdiff1d(drawn, taken)))
    return np.stack(np.divmod(codes, n), axis=1).astype(np.int64)


def _drawn(
    pairs: Integers, n_all: int, most: int, rng: np.random.Generator
) -> tuple[Integers, float]:
    """Return at most so many pairs, and how many pairs each of them stands for."""
    if len(pairs) > most:
        pairs = pairs[np.sort(rng.choice(len(pairs), most, replace=False))]
    return pairs, n_all / max(1, len(pairs))


def nearest(
    rows_a: NDArray[Any], ends_a: Ends, rows_b: NDArray[Any], ends_b: Ends
) -> tuple[Integers, Floats]:
    """Return the nearest rows of pairs of segments, and their squared distances.

    Parameters
    ----------
    rows_a, rows_b : ndarray of shape (n_rows, n_features)
        Rows.
    ends_a, ends_b : pair of ndarray of int of shape (n_pairs,)
        Where the segment of each pair begins in these rows, and where it ends.
    """
    from bagwise.solvers.metric._nearest_kernels import nearest_rows

    rows_a, rows_b = np.ascontiguousarray(rows_a), np.ascontiguousarray(rows_b)
    n_pairs = len(ends_a[0])
    places, squares = np.zeros((n_pairs, 2), np.int64), np.empty(n_pairs)
    products = (ends_a[1] - ends_a[0]) * (ends_b[1] - ends_b[0])
    step = slice_length(1e-9 * rows_a.shape[1] * float(products.mean() if n_pairs else 1.0))

    def fill(start: int) -> None:
        part = slice(start, start + step)
        nearest_rows(
            rows_a, ends_a[0][part], ends_a[1][part], rows_b, ends_b[0][part], ends_b[1][part],
            places[part], squares[part],
        )  # fmt: skip

    for _ in ordered_map(fill, range(0, n_pairs, step)):
        pass
    return places, squares
