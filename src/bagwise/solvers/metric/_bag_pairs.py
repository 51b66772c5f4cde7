"""Pairs of bags that share a label or share none, and their nearest instances."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._threads import checkpoint, ordered_map, slice_length

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

    Notes
    -----
    Pairs are counted by groups of bags with equal lists, and found by their number. So memory grows
    with the bags and with the pairs that are wanted, not with all pairs; the time grows with the
    square of the number of different lists.
    """
    groups = _Groups(lists)
    parts, share = [], []
    for kind in groups.kinds():
        drawn = min(kind.n_pairs, max_pairs)
        ranks = np.arange(drawn)
        if drawn < kind.n_pairs:
            ranks = np.sort(rng.choice(kind.n_pairs, drawn, replace=False, shuffle=False))
        parts.append(groups.pairs(kind, ranks))
        share.append(kind.n_pairs / max(1, drawn))
    bags = np.concatenate(parts)
    n_drawn = [len(part) for part in parts]
    weights = weight[bags[:, 0]] * weight[bags[:, 1]] * np.repeat(share, n_drawn)
    return BagPairs(bags, np.arange(len(bags)) < n_drawn[0], weights)


class _Kind(NamedTuple):
    """The pairs of bags that share a label, or those that share none, counted by groups.

    ``inside`` counts the pairs of two bags of a group, and ``across`` the bags of later groups that
    make a pair with each bag of it.
    """

    is_alike: bool
    inside: Integers
    across: Integers
    ends: Integers

    @property
    def n_pairs(self) -> int:
        return int(self.ends[-1])


class _Groups:
    """Bags with equal lists, side by side: their pairs are counted, and found by their number.

    Parameters
    ----------
    lists : ndarray of bool of shape (n_bags, n_labels)
        Which labels are on the list of each bag.
    """

    def __init__(self, lists: Booleans) -> None:
        words, group = np.unique(_words(lists), axis=0, return_inverse=True)
        self.words = np.ascontiguousarray(words.T)
        self.bags = np.argsort(group.ravel(), kind="stable")
        self.sizes = np.bincount(group.ravel(), minlength=len(words))
        self.starts = np.cumsum(self.sizes) - self.sizes

    def kinds(self) -> tuple[_Kind, _Kind]:
        """Count the pairs that share a label, and those that share none."""
        alike = np.array([self.sizes[g + 1 :] @ self._shares(g) for g in range(len(self.sizes))])
        later = len(self.bags) - self.starts - self.sizes
        inside = self.sizes * (self.sizes - 1) // 2
        is_listed = self.words.any(axis=0)
        return (
            self._kind(True, inside * is_listed, alike),
            self._kind(False, inside * ~is_listed, later - alike),
        )

    def _kind(self, is_alike: bool, inside: Integers, across: Integers) -> _Kind:
        return _Kind(is_alike, inside, across, np.cumsum(inside + self.sizes * across))

    def pairs(self, kind: _Kind, ranks: Integers) -> Integers:
        """Return the pairs of a kind that have these numbers, in ascending order of bags.

        Parameters
        ----------
        kind : _Kind
            The pairs are numbered group after group: first those inside, then for each bag those
            across.
        ranks : ndarray of int of shape (n_pairs,)
            The numbers, sorted.
        """
        used, cuts = np.unique(np.searchsorted(kind.ends, ranks, side="right"), return_index=True)
        parts = [np.empty((0, 2), np.int64)]
        for g, own in zip(used, np.split(ranks, cuts)[1:], strict=True):
            first = kind.ends[g] - kind.inside[g] - self.sizes[g] * kind.across[g]
            parts.append(self._pairs_of(g, kind, own - first))
        bags = np.sort(self.bags[np.concatenate(parts)], axis=1)
        return np.asarray(bags[np.lexsort(bags.T[::-1])], np.int64)

    def _pairs_of(self, g: int, kind: _Kind, ranks: Integers) -> Integers:
        """Return the places of both bags of pairs of which the first is in a group."""
        inside = _below_diagonal(ranks[ranks < kind.inside[g]])
        parts = [self.starts[g] + inside]
        if len(inside) < len(ranks):
            own, rank = np.divmod(ranks[len(inside) :] - kind.inside[g], kind.across[g])
            partners = self.sizes[g + 1 :] * (self._shares(g) == kind.is_alike)
            ends = np.cumsum(partners)
            place = np.searchsorted(ends, rank, side="right")
            other = self.starts[g + 1 :][place] + rank - (ends[place] - partners[place])
            parts.append(np.stack([self.starts[g] + own, other], axis=1))
        return np.concatenate(parts)

    def _shares(self, g: int) -> Booleans:
        """Tell which later groups share a label with one."""
        checkpoint()
        shares = np.zeros(len(self.sizes) - g - 1, bool)
        for word in np.flatnonzero(self.words[:, g]):
            shares |= (self.words[word, g + 1 :] & self.words[word, g]) != 0
        return shares


def _words(lists: Booleans) -> NDArray[np.uint64]:
    """Return rows of an indicator matrix as bits, 64 to a number."""
    packed = np.packbits(np.ascontiguousarray(lists), axis=1)
    return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)


def _below_diagonal(ranks: Integers) -> Integers:
    """Return pairs of numbers by their rank: (0, 1), (0, 2), (1, 2), (0, 3) and so on."""
    larger = ((1.0 + np.sqrt(1.0 + 8.0 * ranks)) / 2.0).astype(np.int64)
    return np.stack([ranks - larger * (larger - 1) // 2, larger], axis=1)


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
