"""Bags that are left out of a fit, wherever the origin of the features is."""

import numpy as np

from bagwise._arrays import Floats, Integers

_EQUAL = 1e-9  # of the largest place: differences that are rounding


def dealt_folds(place: Floats, sign: Floats, number: int) -> tuple[Integers, tuple[int, int]]:
    """Deal out bags to folds, in each class as many to all.

    Parameters
    ----------
    place : ndarray of shape (n_bags,)
        A number of each bag, in whose order they are dealt out. Bags of one class and one place,
        to a billionth, are taken for the same, and are in one fold.
    sign : ndarray of shape (n_bags,)
        The class of each bag, +1 or -1.
    number : int
        Number of folds.

    Returns
    -------
    fold : ndarray of int of shape (n_bags,)
        The fold of each bag.
    n_distinct : (int, int)
        Number of different places of positive bags, and of negative ones.
    """
    fold, counts = np.zeros(len(place), np.intp), []
    for side in (1.0, -1.0):
        mine = np.flatnonzero(sign == side)
        order = mine[np.argsort(place[mine], kind="stable")]
        apart = np.diff(place[order]) > _EQUAL * np.abs(place[mine]).max(initial=0.0)
        rank = np.append(0, np.cumsum(apart))[: len(order)]
        fold[order] = rank % number
        counts.append(int(rank[-1]) + 1 if len(rank) else 0)
    return fold, (counts[0], counts[1])
