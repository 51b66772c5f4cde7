"""What the generators of bags share: checks of arguments, sizes, and putting bags together."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise.bags import Bags


def check_count(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        msg = f"{name} must be a whole number, at least {least}. Got {value!r}."
        raise ValueError(msg)


def check_share(name: str, value: Any) -> None:
    """Refuse what is not a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        msg = f"{name} must be a number from 0 to 1. Got {value!r}."
        raise ValueError(msg)


def check_length(name: str, value: Any) -> None:
    """Refuse what is not a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        msg = f"{name} must be a finite number, at least 0. Got {value!r}."
        raise ValueError(msg)


def check_sizes(n_bags: Any, min_size: Any, max_size: Any) -> None:
    """Refuse numbers and sizes of bags that cannot be."""
    check_count("n_bags", n_bags, 1)
    check_count("min_size", min_size, 1)
    check_count("max_size", max_size, int(min_size))


def draw_sizes(rng: np.random.Generator, n_bags: int, min_size: int, max_size: int) -> Integers:
    """Draw sizes evenly between the limits, both included."""
    return rng.integers(min_size, max_size, size=n_bags, endpoint=True)


def draw_chosen(rng: np.random.Generator, n_bags: int, share: float) -> Booleans:
    """Choose that share of the bags, rounded, at random."""
    return rng.permutation(n_bags) < round(share * n_bags)


def quotas(total: int, weights: Floats) -> Integers:
    """Share out ``total`` in proportion to the weights: whole numbers, largest remainders first."""
    exact = total * weights / weights.sum()
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return counts


def shuffled_inside(rng: np.random.Generator, sizes: Integers) -> Integers:
    """Return for each row its place in a random order of the rows of its bag."""
    owners = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((rng.random(len(owners)), owners))
    places = np.empty(len(owners), dtype=np.int64)
    places[order] = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places


def number_names(prefix: str, numbers: Integers) -> list[str]:
    """Return names that end in numbers of the same width."""
    width = len(str(numbers.max()))
    return [f"{prefix} {number:0{width}d}" for number in numbers.tolist()]


def build_bags(
    instances: NDArray[Any],
    sizes: Integers,
    y: NDArray[Any],
    instance_y: NDArray[Any],
    kinds: Sequence[str],
    kind_of: Integers,
    label_names: Sequence[str] | None = None,
) -> Bags:
    """Return bags that carry labels and instance labels, each instance named by its kind."""
    return Bags(
        instances,
        np.append(0, np.cumsum(sizes)),
        bag_names=number_names("bag", np.arange(len(sizes))),
        labels=y,
        instance_names=np.asarray(kinds)[kind_of],
        instance_labels=instance_y,
        label_names=label_names,
    )
