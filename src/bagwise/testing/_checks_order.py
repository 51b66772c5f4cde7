"""Checks that the order of bags, and of instances in a bag, means nothing."""

# ruff: noqa: D401 (the docstring of a check says what holds)

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.testing._compare import ROUNDING, assert_close
from bagwise.testing._data import make_toy_bags, shuffle_instances, turned
from bagwise.testing._expect import remarks_are_no_matter
from bagwise.testing._models import bag_scores, bag_tags, fitted, learned


def check_bag_order(estimator: Any) -> None:
    """The fit does not depend on the order of the bags."""
    bags, y = make_toy_bags(24, kind="close")
    order = np.random.default_rng(1).permutation(len(bags))
    model = learned(estimator, bags, y)
    other = fitted(estimator, [bags[i] for i in order], y[order])
    _assert_same_fit(model, other, "another order of bags")


def check_instance_order(estimator: Any) -> None:
    """The fit does not depend on the order of the instances in a bag."""
    bags, y = make_toy_bags(24, kind="close")
    model = learned(estimator, bags, y)
    other = fitted(estimator, shuffle_instances(bags)[0], y)
    _assert_same_fit(model, other, "another order of instances")


def check_ties(estimator: Any) -> None:
    """Nor where bags and instances are the same, or as far from each other as others are.

    The features are whole numbers, so that ties are exact, and then turned, so that what is equal
    is so up to rounding only.
    """
    bags, y = make_toy_bags(18, kind="close")
    whole = [np.rint(np.concatenate([bag, bag[:1]])) for bag in [*bags, *bags[:6]]]
    y = np.append(y, y[:6])
    _check_tied(estimator, whole, y, "ties")
    _check_tied(estimator, turned(whole), y, "ties up to rounding")
    bags, y = make_toy_bags(18, kind="close", random_state=1)
    signs = [np.sign(np.rint(np.concatenate([bag, bag[:1]]))) for bag in bags]
    _check_tied(estimator, turned(signs), y, "ties of most instances")


def _check_tied(estimator: Any, bags: list[NDArray[Any]], y: NDArray[Any], what: str) -> None:
    order = np.random.default_rng(1).permutation(len(y))
    with remarks_are_no_matter():
        model = fitted(estimator, bags, y)
        other = fitted(estimator, [bags[i] for i in order], y[order])
        _assert_same_fit(model, other, f"{what}, another order of bags")
        other = fitted(estimator, shuffle_instances(bags)[0], y)
        _assert_same_fit(model, other, f"{what}, another order of instances")


def _assert_same_fit(model: Any, other: Any, what: str) -> None:
    """Compare scores, or objectives where the tags say that the method finds local optima."""
    tolerance = bag_tags(model).order_tolerance
    if tolerance == 0:
        bags, _ = make_toy_bags(kind="close", random_state=3)
        assert_close(bag_scores(other, bags), bag_scores(model, bags), what)
        return
    expected, got = model.result_.objective, other.result_.objective
    if not abs(got - expected) <= tolerance * abs(expected) + ROUNDING:
        msg = (
            f"{what}: the objective {got:.6g} differs from {expected:.6g} by more than the "
            f"order_tolerance {tolerance:g} of the tags."
        )
        raise AssertionError(msg)


def check_scores_are_independent(estimator: Any) -> None:
    """The score of a bag does not depend on the bags that are scored along with it.

    One of these may be far away, which moves the mean of all: in single precision, where it blurs
    most.
    """
    bags, y = make_toy_bags()
    model = learned(estimator, bags, y)
    together = bag_scores(model, bags)
    alone = np.concatenate([bag_scores(model, [bag]) for bag in bags])
    assert_close(alone, together, "bags scored one by one", tolerance=ROUNDING)
    single = [bag.astype(np.float32) for bag in bags]
    model = fitted(estimator, single, y)
    together = bag_scores(model, single)
    beside = bag_scores(model, [*single, single[0] + np.float32(1e6)])[: len(together)]
    assert_close(beside, together, "bags scored beside one that is far away", tolerance=1e-5)
