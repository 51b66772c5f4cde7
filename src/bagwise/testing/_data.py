"""Small bags with known classes, and the same bags in every shape that estimators accept."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise._arrays import Floats, Integers
from bagwise.bags import Bags

_SEPARATION = {"apart": 4.0, "close": 1.0, "witness": 6.0}


def make_toy_bags(
    n_bags: int = 16,
    n_features: int = 3,
    *,
    n_classes: int = 2,
    kind: str = "apart",
    max_size: int = 5,
    random_state: int = 0,
) -> tuple[list[Floats], Integers]:
    """Return a list of random bags and their classes.

    Parameters
    ----------
    n_bags, n_features, n_classes : int
        How many. Classes are as equally frequent as they can be and come in random order.
    kind : {"apart", "close", "witness"}
        ``"apart"``: each class has a centre and all instances of its bags lie around it, far from
        the other classes. ``"close"``: the same, but the classes overlap. ``"witness"``: instances
        lie around the origin, except that each bag of class 1 and above has one, its witness,
        around the centre of the class.
    max_size : int
        Bags have 1 to this many instances.
    random_state : int
        Seed.

    Returns
    -------
    bags : list of ndarray of shape (n_i, n_features)
        The bags.
    y : ndarray of int of shape (n_bags,)
        Classes 0 to ``n_classes - 1``.

    Examples
    --------
    >>> from bagwise.testing import make_toy_bags
    >>> bags, y = make_toy_bags(4, 2)
    >>> [bag.shape for bag in bags], sorted(y.tolist())
    ([(2, 2), (1, 2), (3, 2), (5, 2)], [0, 0, 1, 1])
    """
    if kind not in _SEPARATION:
        msg = f"kind must be one of {sorted(_SEPARATION)}. Got {kind!r}."
        raise ValueError(msg)
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_bags) % n_classes)
    code = np.arange(n_classes)
    centres = np.zeros((n_classes, n_features))
    centres[code, code % n_features] = _SEPARATION[kind] * (1 + code // n_features)
    bags = []
    for label in y:
        bag = rng.normal(size=(rng.integers(1, max_size + 1), n_features))
        if kind == "witness":
            if label:
                bag[rng.integers(len(bag))] += centres[label]
        else:
            bag += centres[label]
        bags.append(bag)
    return bags, y


def as_object_array(bags: Sequence[Any]) -> NDArray[np.object_]:
    """Return bags as a 1-D array of matrices, as frames and splitters hold them."""
    array = np.empty(len(bags), dtype=object)
    for i, bag in enumerate(bags):
        array[i] = bag
    return array


def as_sparse(bags: Sequence[NDArray[Any]]) -> Bags:
    """Return bags on a CSR instance matrix."""
    dense = Bags.from_list(bags)
    return Bags(sparse.csr_array(dense.instances), dense.offsets)


def as_selection(bags: Sequence[NDArray[Any]], random_state: int = 1) -> Bags:
    """Return bags as a view that picks them from a larger container in another order."""
    order = np.random.default_rng(random_state).permutation(len(bags))
    unused = np.full_like(bags[0][:1], 1e3)
    pool: list[Any] = [None] * (2 * len(bags))
    pool[::2] = [bags[i] for i in order]
    pool[1::2] = [unused] * len(bags)
    return Bags.from_list(pool)[2 * np.argsort(order)]


def as_one_instance_bags(matrix: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the rows of a matrix as bags of one instance."""
    return [row[None, :] for row in matrix]


def shuffle_instances(
    bags: Sequence[NDArray[Any]], random_state: int = 2
) -> tuple[list[NDArray[Any]], list[Integers]]:
    """Return bags with their instances in another order, and these orders."""
    rng = np.random.default_rng(random_state)
    orders = [rng.permutation(len(bag)) for bag in bags]
    return [bag[order] for bag, order in zip(bags, orders, strict=True)], orders


def turned(bags: Sequence[NDArray[Any]], random_state: int = 4) -> list[NDArray[Any]]:
    """Return bags of three features, turned: equal distances become so up to rounding only."""
    turn = np.linalg.qr(np.random.default_rng(random_state).normal(size=(3, 3)))[0]
    return [bag @ turn for bag in bags]
