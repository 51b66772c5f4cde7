"""Bags of handwritten digits, made of the images that scikit-learn ships."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from bagwise._arrays import Booleans, Integers
from bagwise.bags import Bags
from bagwise.datasets._dataset import BagDataset
from bagwise.datasets._drawing import check_share, check_sizes, draw_chosen, number_names

_IMAGES = ("all", "train", "test")


def load_digit_bags(
    n_bags: int = 200,
    *,
    target: int = 3,
    mean_size: float = 6.0,
    min_size: int = 4,
    max_size: int = 8,
    witness_rate: float = 0.2,
    positive_share: float = 0.5,
    images: str = "all",
    multilabel: bool = False,
    random_state: Any = 0,
    return_X_y: bool = False,
) -> Any:
    """Make bags of handwritten digits; a bag is positive if a certain digit is inside.

    The instances are real: the 1,797 images of 8 x 8 pixels that scikit-learn ships, so nothing is
    downloaded. What every image shows is known, and with it the key instances. No image is used
    twice until all images of its kind have been used, and never twice in one bag.

    Parameters
    ----------
    n_bags : int
        Number of bags.
    target : int
        The digit that makes a bag positive. Not used if ``multilabel``.
    mean_size : float
        Expected number of instances in a bag.
    min_size, max_size : int
        Limits of that number. Sizes are spread widely between them: evenly if the mean is in the
        middle.
    witness_rate : float
        Share of the target digit in a positive bag, from 0 to 1, rounded to a whole number of
        instances, of which there is at least one. Not used if ``multilabel``.
    positive_share : float
        Share of positive bags, from 0 to 1. Not used if ``multilabel``.
    images : {"all", "train", "test"}
        Which images to use: the first half is "train", the second "test". The halves do not depend
        on ``random_state``, so bags of one never share an image with bags of the other.
    multilabel : bool
        If True, any digits are drawn and the labels of a bag are the digits in it, as an indicator
        matrix with ten columns: names without boxes.
    random_state : int, numpy.random.Generator or None
        Seed of the drawing; None draws anew at each call.
    return_X_y : bool
        If True, return ``(bags, y)`` only.

    Returns
    -------
    dataset : BagDataset
        Its ``bags`` hold the 64 pixels of every image, from 0 (paper) to 16 (ink), with the number
        of the image as ``instance_names``. ``y`` has the labels 0 and 1, ``instance_y`` the digits.

    Examples
    --------
    >>> from bagwise.datasets import load_digit_bags
    >>> data = load_digit_bags(n_bags=20, target=7)
    >>> data.label_names, int(data.y.sum())
    (('no 7', 'a 7'), 10)
    >>> bag = int(data.y.argmax())  # the first positive bag
    >>> first, last = data.bags.offsets[bag : bag + 2]
    >>> 7 in data.instance_y[first:last]
    True

    Bags to learn from and bags to test with, which share no image:

    >>> train = load_digit_bags(100, images="train")
    >>> test = load_digit_bags(100, images="test")
    """
    _check_request(n_bags, target, mean_size, min_size, max_size, images)
    check_share("witness_rate", witness_rate)
    check_share("positive_share", positive_share)
    rng = np.random.default_rng(random_state)
    pixels, digits = load_digits(return_X_y=True)
    chosen = _choose_images(images, len(digits))
    sizes = _draw_sizes_of_mean(rng, n_bags, mean_size, min_size, max_size)
    if multilabel:
        decks = [_Deck(chosen, "images", rng)]
        counts = sizes[:, None]
    else:
        is_target = digits[chosen] == target
        decks = [
            _Deck(chosen[is_target], f"images of a {target}", rng),
            _Deck(chosen[~is_target], f"images of digits other than {target}", rng),
        ]
        positive = draw_chosen(rng, n_bags, positive_share)
        counts = _count_kinds(sizes, positive, witness_rate)
    for deck, column in zip(decks, counts.T, strict=True):
        deck.check_supply(int(column.max()), images)

    rows = np.concatenate(
        [
            rng.permutation(np.concatenate([d.draw(n) for d, n in zip(decks, bag, strict=True)]))
            for bag in counts.tolist()
        ]
    )
    offsets = np.append(0, np.cumsum(sizes))
    if multilabel:
        y = np.zeros((n_bags, 10), dtype=np.int64)
        y[np.repeat(np.arange(n_bags), sizes), digits[rows]] = 1
        label_names = tuple("0123456789")
    else:
        y = positive.astype(np.int64)
        label_names = (f"no {target}", f"a {target}")

    bags = Bags(
        pixels[rows],
        offsets,
        bag_names=number_names("bag" if images == "all" else images, np.arange(n_bags)),
        labels=y,
        label_names=label_names if multilabel else None,
        instance_names=number_names("image", rows),
        instance_labels=digits[rows],
        feature_names=[f"pixel_{row}_{column}" for row in range(8) for column in range(8)],
    )
    if return_X_y:
        return bags, y
    return BagDataset(
        bags=bags,
        y=y,
        label_names=label_names,
        instance_y=digits[rows],
        description=_describe(bags, rows, images, None if multilabel else int(target)),
        target=None if multilabel else int(target),
    )


class _Deck:
    """Images in random order, round after round."""

    def __init__(self, images: Integers, what: str, rng: np.random.Generator) -> None:
        self.images, self.what, self.rng = images, what, rng
        self.queue = rng.permutation(images)

    def check_supply(self, wanted: int, images: str) -> None:
        if wanted > len(self.images):
            msg = (
                f"A bag must not hold an image twice: images={images!r} has {len(self.images)} "
                f"{self.what}, and a bag of {wanted} was asked for. "
                "Lower the sizes of the bags or witness_rate."
            )
            raise ValueError(msg)

    def draw(self, count: int) -> Integers:
        if count > len(self.queue):  # what is left of this round stands last in the next one
            left = self.queue
            others = np.setdiff1d(self.images, left)
            self.queue = np.concatenate([left, self.rng.permutation(others), left])
        drawn, self.queue = np.split(self.queue, [count])
        return drawn


def _count_kinds(sizes: Integers, positive: Booleans, witness_rate: float) -> Integers:
    """Return how many images of the target and of other digits each bag holds."""
    wanted = np.maximum(np.rint(witness_rate * sizes), 1).astype(np.int64)
    witnesses = np.where(positive, wanted, 0)
    return np.stack([witnesses, sizes - witnesses], axis=1)


def _choose_images(images: str, n_images: int) -> Integers:
    half = n_images // 2
    ranges = {"all": (0, n_images), "train": (0, half), "test": (half, n_images)}
    return np.arange(*ranges[images])


def _draw_sizes_of_mean(
    rng: np.random.Generator, n_bags: int, mean: float, low: int, high: int
) -> Integers:
    """Draw from a beta-binomial distribution: any mean, within limits, uniform in the middle."""
    place = (mean - low) / (high - low) if high > low else 0.0
    if place in (0.0, 1.0):
        return np.full(n_bags, round(mean))
    chance = rng.beta(2 * place, 2 * (1 - place), size=n_bags)
    return low + rng.binomial(high - low, chance)


def _describe(bags: Bags, rows: Integers, images: str, target: int | None) -> str:
    which = {"all": "all images", "train": "the first half", "test": "the second half"}[images]
    repeated = len(rows) - len(np.unique(rows))
    once = "no image occurs twice" if repeated == 0 else f"{repeated} images are repetitions"
    rule = (
        "The labels of a bag are the digits in it."
        if target is None
        else f"A bag is positive if it holds a {target}."
    )
    return (
        f"{len(bags)} bags with {bags.n_instances} images of handwritten digits (8 x 8 pixels; "
        f"{which} of scikit-learn's digits, from the UCI repository; {once}). {rule}"
    )


def _check_request(
    n_bags: Any, target: Any, mean_size: Any, min_size: Any, max_size: Any, images: Any
) -> None:
    check_sizes(n_bags, min_size, max_size)
    if isinstance(target, bool) or not isinstance(target, Integral) or not 0 <= int(target) <= 9:
        msg = f"target must be a digit from 0 to 9. Got {target!r}."
        raise ValueError(msg)
    if not isinstance(mean_size, Real) or not min_size <= float(mean_size) <= max_size:
        msg = f"mean_size must be from min_size={min_size} to max_size={max_size}. Got {mean_size}."
        raise ValueError(msg)
    if images not in _IMAGES:
        msg = f"images must be 'all', 'train' or 'test'. Got {images!r}."
        raise ValueError(msg)
