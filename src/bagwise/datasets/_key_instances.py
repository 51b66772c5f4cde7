"""Bags with one key instance, and with a distractor that only positive bags have."""

from typing import Any

import numpy as np

from bagwise.datasets._dataset import BagDataset
from bagwise.datasets._drawing import (
    build_bags,
    check_count,
    check_length,
    check_share,
    check_sizes,
    draw_chosen,
    draw_sizes,
    shuffled_inside,
)


def make_key_instance_bags(
    n_bags: int = 160,
    *,
    n_features: int = 10,
    min_size: int = 4,
    max_size: int = 10,
    separation: float = 4.0,
    distractor_share: float = 0.5,
    distractor_separation: float = 4.0,
    distractor_cosine: float = 0.0,
    n_distractors: int | None = 1,
    negative_distractor_share: float = 0.0,
    positive_share: float = 0.5,
    random_state: Any = 0,
) -> BagDataset:
    r"""Make bags with one key instance each, and a distractor kind that only positive bags have.

    Background instances are standard normal, key instances :math:`N(s e_1, I)` and distractors
    :math:`N(t (c e_1 + \sqrt{1 - c^2} e_2), I)`. Whoever looks for what positive
    bags have in common finds the distractor as well: it is the mist at the foot of a waterfall, and
    no waterfall. A picture of a cloud, like mist but without waterfall, is then taken for a
    waterfall (Han, Tao & Wang 2010, PC-SVM). Such negative bags are made with
    ``negative_distractor_share``.

    Parameters
    ----------
    n_bags : int
        Number of bags.
    n_features : int
        Number of features, at least 2.
    min_size, max_size : int
        Limits of the number of instances in a bag; sizes are spread evenly between them. With
        distractors at least 2.
    separation : float
        Distance :math:`s` of the key instances' mean from the background's, in standard
        deviations.
    distractor_share : float
        Share of the positive bags that have distractors, from 0 to 1.
    distractor_separation : float
        Distance :math:`t` of the distractors' mean from the background's.
    distractor_cosine : float
        Cosine :math:`c` of the angle between distractors and key instances as seen from the
        background, from 0 to 1: how much of a key instance a distractor has.
    n_distractors : int or None
        Distractors in a bag that has some, or as many as fit; None: all of its instances but the
        key instance.
    negative_distractor_share : float
        Share of the negative bags that have distractors: 0 to learn from, more to test.
    positive_share : float
        Share of positive bags, from 0 to 1.
    random_state : int, numpy.random.Generator or None
        Seed of the drawing; None draws anew at each call. The three kinds do not depend on it, so
        sets with other seeds are fit to test with.

    Returns
    -------
    dataset : BagDataset
        ``instance_y`` is 1 for key instances and 0 for all others; ``instance_names`` say whether
        those are background or distractors.

    Examples
    --------
    >>> from bagwise.datasets import make_key_instance_bags
    >>> data = make_key_instance_bags(80)
    >>> int(data.instance_y.sum()), int(data.y.sum())
    (40, 40)
    >>> int((data.bags.instance_names == "distractor").sum())
    20

    Clouds to test with:

    >>> test = make_key_instance_bags(80, negative_distractor_share=1.0, random_state=1)
    """
    check_sizes(n_bags, min_size, max_size)
    check_count("n_features", n_features, 2)
    check_length("separation", separation)
    check_length("distractor_separation", distractor_separation)
    check_share("distractor_share", distractor_share)
    check_share("distractor_cosine", distractor_cosine)
    if n_distractors is not None:
        check_count("n_distractors", n_distractors, 1)
    check_share("negative_distractor_share", negative_distractor_share)
    check_share("positive_share", positive_share)
    if min_size < 2 and distractor_share > 0:
        msg = (
            "min_size must be at least 2 if distractor_share > 0, for a key instance and a "
            f"distractor. Got {min_size}."
        )
        raise ValueError(msg)
    rng = np.random.default_rng(random_state)
    sizes = draw_sizes(rng, n_bags, min_size, max_size)
    positive = draw_chosen(rng, n_bags, positive_share)
    y = positive.astype(np.int64)
    distracted = np.empty(n_bags, dtype=bool)
    for side, share in ((positive, distractor_share), (~positive, negative_distractor_share)):
        distracted[side] = draw_chosen(rng, int(side.sum()), share)

    place = shuffled_inside(rng, sizes)
    kind = np.zeros(len(place), dtype=np.int64)
    kind[(place == 0) & np.repeat(positive, sizes)] = 1
    behind_key = place - np.repeat(y, sizes)
    is_near = (behind_key >= 0) & (behind_key < (n_distractors or max_size))
    kind[is_near & np.repeat(distracted, sizes)] = 2
    instances = rng.normal(size=(len(place), n_features))
    instances[kind == 1, 0] += separation
    direction = np.array([distractor_cosine, np.sqrt(1.0 - distractor_cosine**2)])
    instances[kind == 2, :2] += distractor_separation * direction
    instance_y = (kind == 1).astype(np.int64)
    names = ("background", "key", "distractor")
    bags = build_bags(instances, sizes, y, instance_y, names, kind)
    return BagDataset(
        bags=bags,
        y=y,
        label_names=("negative", "positive"),
        instance_y=instance_y,
        description=(
            f"{n_bags} bags with {bags.n_instances} instances in {n_features} dimensions; every "
            f"positive bag has one key instance, {separation:g} standard deviations from the "
            f"background, and {int(distracted[positive].sum())} of the {int(positive.sum())} "
            "distractors that are none."
        ),
        target=1,
    )
