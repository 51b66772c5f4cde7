"""Checks that units, origin and order of features mean nothing where the tags say so."""

# ruff: noqa: D401 (the docstring of a check says what holds)

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.testing._compare import assert_close
from bagwise.testing._data import make_toy_bags
from bagwise.testing._models import bag_scores, bag_tags, fitted, is_bag_clusterer, learned

Change = Callable[[NDArray[Any]], NDArray[Any]]


def check_feature_units(estimator: Any) -> None:
    """Features times a number, and parameters times the powers of the tags, are the same model.

    The numbers are powers of 2: they cause no rounding that could be the reason for a difference.
    """
    powers = bag_tags(estimator).scale_powers or {}
    for factor in (2.0**10, 2.0**-10):
        changed = {name: getattr(estimator, name) * factor**power for name, power in powers.items()}
        times = partial(np.multiply, factor)
        _check_same_answers(estimator, times, f"features times {factor}", changed)


def check_feature_origin(estimator: Any) -> None:
    """A number that is added to all features changes nothing."""
    _check_same_answers(estimator, lambda bag: bag + 8.0, "features plus 8")


def check_feature_order(estimator: Any) -> None:
    """The order of the features changes nothing."""
    _check_same_answers(estimator, lambda bag: bag[:, ::-1].copy(), "features in another order")


def _check_same_answers(
    estimator: Any, change: Change, what: str, params: dict[str, Any] | None = None
) -> None:
    """Compare scores, or of a clusterer, whose scores may be distances, the clusters."""
    bags, y = make_toy_bags(24, kind="close")
    new, _ = make_toy_bags(kind="close", random_state=3)
    model = learned(estimator, bags, y)
    other = fitted(estimator, [change(bag) for bag in bags], y, **(params or {}))
    changed = [change(bag) for bag in new]
    if is_bag_clusterer(estimator):
        found = np.append(other.labels_, other.predict(changed))
        assert_close(found, np.append(model.labels_, model.predict(new)), f"{what}, clusters")
    else:
        assert_close(bag_scores(other, changed), bag_scores(model, new), what)
