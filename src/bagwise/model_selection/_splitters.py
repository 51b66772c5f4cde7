"""Folds of bags: equal shares of classes or labels, groups of bags kept together."""

import re
from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.multiclass import type_of_target

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._warnings import warn
from bagwise.bags import Bags

Split = tuple[Integers, Integers]


def groups_from_names(bags: Any, pattern: str = r"^([^_]+)_") -> NDArray[np.str_]:
    r"""Return the group of each bag, read from its name.

    Parameters
    ----------
    bags : Bags or sequence of str
        Bags that have names, or the names.
    pattern : str
        Regular expression that is looked for in each name. The group is what its first parenthesis
        matches, or the whole match if it has none. The default is what stands before the first
        underscore, as in ``patient7_slide2``.

    Returns
    -------
    groups : ndarray of str of shape (n_bags,)
        To be passed as ``groups`` to the ``split`` of a splitter or the ``fit`` of a search.

    Examples
    --------
    >>> from bagwise.model_selection import groups_from_names
    >>> groups_from_names(["p1_left", "p1_right", "p2_left"])
    array(['p1', 'p1', 'p2'], dtype='<U2')
    >>> groups_from_names(["slide-07a", "slide-07b"], r"\d+")
    array(['07', '07'], dtype='<U2')
    """
    names = bags.bag_names if isinstance(bags, Bags) else bags
    if names is None:
        msg = "groups_from_names needs bags with names. These have none: give bag_names to Bags."
        raise ValueError(msg)
    expression = re.compile(pattern)
    groups = []
    for place, name in enumerate(names):
        found = expression.search(str(name))
        if found is None:
            msg = (
                f"groups_from_names found no match of {pattern!r} in the name of bag {place}, "
                f"{str(name)!r}."
            )
            raise ValueError(msg)
        groups.append(found.group(1 if expression.groups else 0) or "")
    return np.array(groups, dtype=np.str_)


class _BagSplitter(BaseCrossValidator):
    """What the splitters share: folds in, training and test bags out, and how they look."""

    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    @abstractmethod
    def _folds(self, y: Any, groups: Any) -> Iterator[tuple[Integers, int]]:
        """Yield the fold of each bag, and how many folds there are, once for each repetition."""

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[Split]:
        """Yield the indices of training and test bags of each fold.

        Parameters
        ----------
        X : Bags or sequence
            The bags; only their number matters.
        y : array-like of shape (n_bags,) or (n_bags, n_labels)
            Labels, or an indicator matrix of label lists.
        groups : array-like of shape (n_bags,), optional
            Bags of one group are always in the same fold.

        Yields
        ------
        train, test : ndarray of int
            Indices of bags, ascending.
        """
        if y is None:
            msg = f"The 'y' parameter of {type(self).__name__}.split should not be None."
            raise ValueError(msg)
        check_consistent_length(X, y, groups)
        for fold, n_splits in self._folds(y, groups):
            for k in range(n_splits):
                yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in sorted(vars(self).items()))
        return f"{type(self).__name__}({settings})"


class StratifiedBagKFold(_BagSplitter):
    """Folds of bags with equal shares of every class or label, groups kept together.

    Where scikit-learn's `StratifiedKFold` takes classes only, this one also takes label lists (an
    indicator matrix), and groups: bags of one patient, one molecule's scaffold or one camera are
    never on both sides of a split. For classes without groups the numbers of bags of a class in any
    two folds differ by at most one, and so do the sizes of the folds.

    Parameters
    ----------
    n_splits : int
        Number of folds.
    shuffle : bool
        Whether bags, or groups, that are alike are put in random order first.
    random_state : int, RandomState or None
        Of that order.

    See Also
    --------
    RepeatedStratifiedBagKFold : The same several times.
    groups_from_names : Groups from the names of bags.
    sklearn.model_selection.LeaveOneGroupOut : One fold for each group.

    Notes
    -----
    Label lists are distributed as Sechidis et al. propose, rarest label first: among the bags that
    are left, take the label that fewest of them have; each bag with it goes to the fold that lacks
    this label most, or of those that lack it equally, the one that lacks most bags. Groups are
    distributed whole, those with the most uneven labels first, each to the fold where the shares of
    all labels then are closest to equal. Neither is optimal, which would be hard to compute.

    References
    ----------
    K. Sechidis, G. Tsoumakas, I. Vlahavas. On the stratification of multi-label data. ECML PKDD
    2011.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.model_selection import StratifiedBagKFold
    >>> y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> patient = np.array(["a", "a", "b", "b", "c", "c", "d", "d"])
    >>> for train, test in StratifiedBagKFold(2).split(y, y, patient):
    ...     print(patient[test])
    ['a' 'a' 'c' 'c']
    ['b' 'b' 'd' 'd']
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        _check_count("n_splits", n_splits, 2, type(self).__name__)
        if not isinstance(shuffle, bool | np.bool_):
            msg = f"shuffle of {type(self).__name__} must be True or False. Got {shuffle!r}."
            raise TypeError(msg)
        if not shuffle and random_state is not None:
            msg = (
                f"random_state of {type(self).__name__} has no effect without shuffling: set "
                f"shuffle=True. Got {random_state!r}."
            )
            raise ValueError(msg)
        self.n_splits = int(n_splits)
        self.shuffle = bool(shuffle)
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : ignored
            As scikit-learn's splitters have them.
        """
        return self.n_splits

    def _folds(self, y: Any, groups: Any) -> Iterator[tuple[Integers, int]]:
        rng = check_random_state(self.random_state) if self.shuffle else None
        yield _stratified(y, groups, self.n_splits, rng, type(self).__name__), self.n_splits


class RepeatedStratifiedBagKFold(_BagSplitter):
    """`StratifiedBagKFold` several times, shuffled differently each time.

    Ten times ten folds are how many papers on multi-instance learning report their accuracy. With
    groups, only those with the same numbers of bags of every class or label change places: if no
    two are alike, all repetitions are the same.

    Parameters
    ----------
    n_splits : int
        Number of folds.
    n_repeats : int
        How many times.
    random_state : int, RandomState or None
        Of the order of bags.

    See Also
    --------
    StratifiedBagKFold : Once.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.model_selection import RepeatedStratifiedBagKFold
    >>> y = np.arange(20) % 2
    >>> cv = RepeatedStratifiedBagKFold(5, n_repeats=3, random_state=0)
    >>> len(list(cv.split(y, y)))
    15
    """

    def __init__(
        self, n_splits: int = 10, n_repeats: int = 10, *, random_state: Any = None
    ) -> None:
        _check_count("n_splits", n_splits, 2, type(self).__name__)
        _check_count("n_repeats", n_repeats, 1, type(self).__name__)
        self.n_splits = int(n_splits)
        self.n_repeats = int(n_repeats)
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits: folds times repetitions.

        Parameters
        ----------
        X, y, groups : ignored
            As scikit-learn's splitters have them.
        """
        return self.n_splits * self.n_repeats

    def _folds(self, y: Any, groups: Any) -> Iterator[tuple[Integers, int]]:
        rng = check_random_state(self.random_state)
        for _ in range(self.n_repeats):
            yield _stratified(y, groups, self.n_splits, rng, type(self).__name__), self.n_splits


# ------------------------------------------------------------------------------ distributing


def _stratified(y: Any, groups: Any, n_splits: int, rng: Any, owner: str) -> Integers:
    """Return the fold of each bag."""
    indicator, is_lists = _indicator(y, owner)
    n_bags = len(indicator)
    units, n_units = np.arange(n_bags), n_bags
    if groups is not None:
        units, n_units = _numbered(groups, owner)
    what = "groups" if groups is not None else "bags"
    if n_splits > n_units:
        msg = f"{owner} cannot make n_splits={n_splits} folds of {n_units} {what}."
        raise ValueError(msg)
    _check_classes(indicator, n_splits, is_lists=is_lists, owner=owner)
    order = np.arange(n_units) if rng is None else rng.permutation(n_units)
    if groups is not None:
        counts = np.zeros((n_units, indicator.shape[1] + 1))
        np.add.at(counts, units, np.column_stack([indicator, np.ones(n_bags)]))
        fold = _whole_groups(counts, order, n_splits)
    elif is_lists:
        fold = _label_lists(indicator.astype(bool), order, n_splits)
    else:
        fold = _dealt(indicator.argmax(axis=1), order, n_splits)
    return fold[units]


def _numbered(groups: Any, owner: str) -> tuple[Integers, int]:
    """Return the number of the group of each bag, by first appearance, and how many there are."""
    names = np.asarray(groups)
    if names.ndim != 1:
        msg = f"groups of {owner}.split must be one for each bag. Got shape {names.shape}."
        raise ValueError(msg)
    try:
        _, first, units = np.unique(names, return_index=True, return_inverse=True)
    except TypeError as error:
        msg = f"groups of {owner}.split must be of one kind, all numbers or all strings: {error}."
        raise ValueError(msg) from error
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[units], len(first)


def _dealt(codes: Integers, order: Integers, n_splits: int) -> Integers:
    """Deal the bags like cards, class after class, so that no fold gets two more than another."""
    sequence = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), np.int64)
    fold[sequence] = np.arange(len(codes)) % n_splits
    return fold


def _label_lists(labels: Booleans, order: Integers, n_splits: int) -> Integers:
    """Distribute bags by their rarest labels first."""
    n_bags = len(labels)
    fold = np.full(n_bags, -1, np.int64)
    lacks_label = np.tile(labels.sum(axis=0) / n_splits, (n_splits, 1))
    lacks_bags = np.full(n_splits, n_bags / n_splits)

    def give(bag: int, to: int) -> None:
        fold[bag] = to
        lacks_label[to] -= labels[bag]
        lacks_bags[to] -= 1.0

    left = labels.sum(axis=0)
    while left.any():
        rarest = int(np.where(left > 0, left, np.iinfo(left.dtype).max).argmin())
        for bag in order[labels[order, rarest] & (fold[order] < 0)]:
            lack = lacks_label[:, rarest]
            most = np.flatnonzero(lack >= lack.max() - 1e-9)
            give(bag, int(most[lacks_bags[most].argmax()]))
        left = labels[fold < 0].sum(axis=0)
    for bag in order[fold[order] < 0]:  # bags without any label
        give(bag, int(lacks_bags.argmax()))
    return fold


def _whole_groups(counts: Floats, order: Integers, n_splits: int) -> Integers:
    """Distribute groups, by how many bags of each label, and in all, they have."""
    total = counts.sum(axis=0)
    shares = counts / np.where(total > 0, total, 1.0)
    fold = np.empty(len(counts), np.int64)
    held = np.zeros((n_splits, counts.shape[1]))
    n_groups = np.zeros(n_splits, np.int64)
    uneven = np.round(shares.std(axis=1), 12)
    largest = np.round(shares[:, -1], 12)
    by_weight = order[np.lexsort((-largest[order], -uneven[order]))]
    for group in by_weight:
        # The spread of the shares grows by what the fold already holds of the group's labels; of
        # an empty fold that is nothing, so that no fold stays empty.
        rise = np.round(held @ shares[group], 12)
        best = int(np.lexsort((n_groups, held[:, -1], rise))[0])
        fold[group] = best
        held[best] += shares[group]
        n_groups[best] += 1
    return fold


# ---------------------------------------------------------------------------------- checks


def _indicator(y: ArrayLike, owner: str) -> tuple[Integers, bool]:
    """Return one column for each class or label, and whether bags have lists of labels."""
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        dense = y.toarray() if sparse.issparse(y) else np.asarray(y)  # type: ignore[union-attr]
        return (dense > 0).astype(np.int64), True
    if kind not in ("binary", "multiclass"):
        msg = (
            f"{owner} needs classes or an indicator matrix of label lists as y. Got a target of "
            f"type {kind!r}."
        )
        raise ValueError(msg)
    _, codes = np.unique(np.asarray(y).ravel(), return_inverse=True)
    return (codes[:, None] == np.arange(codes.max(initial=-1) + 1)).astype(np.int64), False


def _check_classes(indicator: Integers, n_splits: int, *, is_lists: bool, owner: str) -> None:
    sizes = indicator.sum(axis=0)
    if is_lists:
        sizes = sizes[sizes > 0]
    elif (sizes < n_splits).all():
        msg = (
            f"{owner}: n_splits={n_splits} is greater than the number of bags of every class, "
            f"{sizes.tolist()}."
        )
        raise ValueError(msg)
    if len(sizes) and sizes.min() < n_splits:
        what = "label" if is_lists else "class"
        msg = (
            f"{owner}: the rarest {what} has only {sizes.min()} bags, fewer than "
            f"n_splits={n_splits}: some folds have none of them."
        )
        warn(msg)


def _check_count(name: str, value: Any, least: int, owner: str) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        msg = f"{name} of {owner} must be an integer of at least {least}. Got {value!r}."
        raise ValueError(msg)
