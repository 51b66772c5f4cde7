"""Lists of labels as metric learners take them, and bags that are alike."""

from typing import NamedTuple

import numpy as np

from bagwise._arrays import Booleans, Floats, Integers
from bagwise.bags import Bags, bag_digests, segment_rows
from bagwise.base import Target


class ListedBags(NamedTuple):
    """Bags that differ, their lists and their weights.

    ``kept`` says which bags of a larger collection they are, and ``place`` for each bag of that
    which of these is the same. ``codes`` are the classes of bags that have one each, not lists.
    """

    bags: Bags
    lists: Booleans
    weight: Floats
    kept: Integers
    place: Integers
    codes: Integers | None

    def spread(self, values: Integers) -> Integers:
        """Return what belongs to the instances of these bags, for all instances."""
        offsets = self.bags.offsets
        return values[segment_rows(offsets[:-1][self.place], offsets[1:][self.place])]


def distinct(bags: Bags, target: Target, weight: Floats) -> ListedBags:
    """Return bags of which no two are alike: those that are, are one bag of their weights.

    Bags are alike if they hold the same instances in the same order, so that what is found for the
    instances of one of them can be given to those of the others.

    Parameters
    ----------
    bags : Bags
        Bags.
    target : Target
        Their labels.
    weight : ndarray of shape (n_bags,)
        Their weights.
    """
    lists = listed(target)
    kept, place = np.unique(_first_alike(bags, lists), return_inverse=True)
    if len(kept) == len(bags):
        return ListedBags(bags, lists, weight, kept, place, target.codes)
    total: Floats = np.bincount(place, weight).astype(np.float64)
    codes = None if target.codes is None else target.codes[kept]
    return ListedBags(bags[kept], lists[kept], total, kept, place, codes)


def listed(target: Target) -> Booleans:
    """Tell which labels are on the list of a bag; of classes, its own."""
    if target.codes is None:
        return target.positive
    return np.asarray(target.codes[:, None] == np.arange(len(target.classes)))


def _first_alike(bags: Bags, lists: Booleans) -> Integers:
    """Return for each bag the first one with the same instances in the same order, and list."""
    first = np.arange(len(bags))
    known: dict[int, list[int]] = {}
    for bag, digest in enumerate(bag_digests(bags).tolist()):
        others = known.setdefault(digest, [])
        for other in others:
            if not np.array_equal(lists[bag], lists[other]):
                continue
            if bags[bag].shape == bags[other].shape and not abs(bags[bag] - bags[other]).max():
                first[bag] = other
                break
        else:
            others.append(bag)
    return first
