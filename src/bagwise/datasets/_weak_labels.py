"""Bags with lists of labels that may be wrong, like photographs with captions."""

from typing import Any

import numpy as np

from bagwise._arrays import Booleans, Integers
from bagwise.datasets._dataset import BagDataset
from bagwise.datasets._drawing import (
    build_bags,
    check_count,
    check_length,
    check_share,
    number_names,
    quotas,
    shuffled_inside,
)

# Labeled Yahoo! News in Law et al. 2017: 20,071 bags, 5,873 training categories.
_N_CATEGORIES = 5873
#: Table 5: bags of 1, 2, ..., 15 instances.
BAG_SIZES = (12562, 5109, 1675, 480, 146, 61, 17, 8, 6, 0, 1, 3, 1, 1, 1)
#: Table 6, scenario (b): bags with 0, 1, ..., 9 categories, as people see them.
TRUE_LIST_SIZES = (1384, 16196, 2295, 181, 8, 3, 1, 2, 0, 1)
#: Table 6, scenario (c): the same, as found in captions by a program.
CAPTION_LIST_SIZES = (0, 12225, 6247, 1325, 216, 46, 8, 3, 0, 1)


def make_weak_label_bags(
    n_bags: int = 500,
    *,
    n_labels: int | None = None,
    n_features: int = 20,
    separation: float = 2.0,
    noisy: bool = True,
    missing_rate: float = 0.1,
    random_state: Any = 0,
) -> BagDataset:
    """Make bags with noisy label lists and distractors, like news photographs with captions.

    An instance is a face, a bag a photograph, and its list the names in the caption. Sizes of bags
    and lengths of lists are distributed as in Labeled Yahoo! News (Tables 5 and 6 of the MIMLCA
    paper): with 20,071 bags the numbers are those of the tables, with others in proportion.

    Each label that is truly in a bag has one instance there; all further instances are distractors,
    each of another kind, which have no label. With ``noisy=False`` the lists are the true labels
    (scenario b). With ``noisy=True`` (scenario c) they are read off captions: labels may be
    missing, and labels without an instance may be in the list. The longest lists belong to the bags
    with the most labels.

    Parameters
    ----------
    n_bags : int
        Number of bags.
    n_labels : int, optional
        Number of labels, each of which is in some bag. By default 0.29 per bag, as in the tables.
    n_features : int
        Number of features.
    separation : float
        Standard deviation, in every feature, of the centers of labels and distractors; instances
        deviate from their center with standard deviation 1.
    noisy : bool
        Whether the lists are those of scenario (c) or (b).
    missing_rate : float
        Chance that a true label is missing from a noisy list, beyond those for which the list is
        too short.
    random_state : int, numpy.random.Generator or None
        Seed of the drawing; None draws anew at each call.

    Returns
    -------
    dataset : BagDataset
        ``y`` is an indicator matrix of the lists (int8). ``instance_y`` is the true label of an
        instance, whether listed or not, and -1 for distractors.

    Examples
    --------
    >>> from bagwise.datasets import make_weak_label_bags
    >>> data = make_weak_label_bags(200, n_labels=20)
    >>> data.y.shape, int((data.bags.sizes == 1).sum())
    ((200, 20), 125)
    >>> exact = make_weak_label_bags(200, n_labels=20, noisy=False)
    >>> int((exact.y.sum(axis=1) == 0).sum())  # nobody known is in the picture
    14
    """
    check_count("n_bags", n_bags, 2)
    if n_labels is None:
        n_labels = max(2, round(n_bags * _N_CATEGORIES / sum(BAG_SIZES)))
    check_count("n_labels", n_labels, 2)
    check_count("n_features", n_features, 1)
    check_length("separation", separation)
    check_share("missing_rate", missing_rate)
    rng = np.random.default_rng(random_state)
    sizes = rng.permutation(_spread(n_bags, BAG_SIZES, first=1))
    n_true = _labels_that_fit(rng, sizes, _spread(n_bags, TRUE_LIST_SIZES, first=0))
    if n_true.max() > n_labels or n_true.sum() < n_labels:
        msg = (
            f"n_labels must be from {n_true.max()} to {n_true.sum()} for n_bags={n_bags}, so that "
            f"every label has a bag and no bag needs more labels than there are. Got {n_labels}."
        )
        raise ValueError(msg)
    true = _deal_labels(rng, n_true, n_labels)
    lists = _read_captions(rng, true, missing_rate) if noisy else true

    labeled = shuffled_inside(rng, sizes) < np.repeat(n_true, sizes)
    instance_y = np.full(len(labeled), -1)
    instance_y[labeled] = np.nonzero(true)[1]  # row after row, so bag after bag
    centers = separation * rng.normal(size=(n_labels, n_features))
    instances = rng.normal(size=(len(labeled), n_features))
    instances[labeled] += centers[instance_y[labeled]]
    instances[~labeled] += separation * rng.normal(size=(int((~labeled).sum()), n_features))

    y = lists.astype(np.int8)
    names = tuple(number_names("label", np.arange(n_labels)))
    bags = build_bags(instances, sizes, y, instance_y, (*names, "distractor"), instance_y, names)
    return BagDataset(
        bags=bags,
        y=y,
        label_names=names,
        instance_y=instance_y,
        description=(
            f"{n_bags} bags with {bags.n_instances} instances, {int((~labeled).sum())} of which "
            f"are distractors, and {'noisy' if noisy else 'true'} lists of {n_labels} labels; "
            "sizes and lengths of lists as in Labeled Yahoo! News (Law et al. 2017, Tables 5 "
            f"and 6, scenario {'c' if noisy else 'b'})."
        ),
    )


def _spread(n_bags: int, table: tuple[int, ...], *, first: int) -> Integers:
    """Return one number per bag, in increasing order, as often as the table says."""
    counts = quotas(n_bags, np.asarray(table, dtype=np.float64))
    return np.repeat(np.arange(first, first + len(table)), counts)


def _labels_that_fit(rng: np.random.Generator, sizes: Integers, numbers: Integers) -> Integers:
    """Deal out numbers of labels so that no bag has more labels than instances.

    Small sets may lack the large bag that a long list needs, by rounding: it is then shortened.
    """
    n_true = np.full(len(sizes), -1)
    too_long = 0
    # Longest first: short ones fit in any bag that is left.
    for number, count in reversed(list(enumerate(np.bincount(numbers).tolist()))):
        free = np.flatnonzero((n_true < 0) & (sizes >= number))
        taken = rng.choice(free, min(count + too_long, len(free)), replace=False)
        n_true[taken] = number
        too_long += count - len(taken)
    return n_true


def _deal_labels(rng: np.random.Generator, n_true: Integers, n_labels: int) -> Booleans:
    """Give each bag as many different labels, every label at least once.

    Labels are as frequent as names in the news: beyond once, in proportion to 1 / rank.
    """
    weights = 1.0 / np.arange(1, n_labels + 1)
    weights /= weights.sum()
    dealt = np.zeros((len(n_true), n_labels), dtype=bool)
    places = rng.permutation(np.repeat(np.arange(len(n_true)), n_true))
    first, rest = places[:n_labels], places[n_labels:]
    # Bags with several places among the first n_labels get different labels, as each is dealt once.
    dealt[first, rng.permutation(n_labels)] = True
    for bag, number in zip(*np.unique(rest, return_counts=True), strict=True):
        chance = np.where(dealt[bag], 0.0, weights)
        dealt[bag, rng.choice(n_labels, number, replace=False, p=chance / chance.sum())] = True
    return dealt


def _read_captions(rng: np.random.Generator, true: Booleans, missing_rate: float) -> Booleans:
    """Return lists of the lengths of scenario (c) that name true labels where they can."""
    n_bags, n_labels = true.shape
    lengths = np.minimum(_spread(n_bags, CAPTION_LIST_SIZES, first=0), n_labels)
    in_order = np.lexsort((rng.random(n_bags), true.sum(axis=1)))
    lists = np.zeros_like(true)
    for bag, length in zip(in_order, lengths, strict=True):
        own = np.flatnonzero(true[bag])
        own = rng.permutation(own[rng.random(len(own)) >= missing_rate])[:length]
        others = np.flatnonzero(~true[bag])
        wanted = length - len(own)
        if wanted > len(others):  # hardly any other labels: name the missing ones after all
            others = np.setdiff1d(np.arange(n_labels), own)
        lists[bag, own] = True
        lists[bag, rng.choice(others, wanted, replace=False)] = True
    return lists
