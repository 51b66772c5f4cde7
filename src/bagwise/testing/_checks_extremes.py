"""Checks of data that are odd but allowed: scores stay finite, equal bags score alike."""

# ruff: noqa: D401 (the docstring of a check says what holds)

from typing import Any

import numpy as np

from bagwise.testing._compare import assert_close, assert_finite
from bagwise.testing._data import make_toy_bags
from bagwise.testing._expect import remarks_are_no_matter
from bagwise.testing._models import bag_scores, fitted, learned, questions


def _check_all_finite(estimator: Any, bags: Any, y: Any, what: str) -> Any:
    """Fit and ask everything; return the fitted estimator."""
    with remarks_are_no_matter():
        model = fitted(estimator, bags, y)
    assert_finite(bag_scores(model, bags), what)
    for question in questions(model):
        answer = getattr(model, question)(bags)
        if question != "transform" and np.asarray(answer).dtype.kind == "f":
            assert_finite(answer, f"{what}, {question}")
    return model


def check_one_instance_bags(estimator: Any) -> None:
    """All bags may have one instance, as a list of one-row matrices."""
    bags, y = make_toy_bags(max_size=1)
    _check_all_finite(estimator, bags, y, "bags of one instance")


def check_one_feature(estimator: Any) -> None:
    """One feature is enough."""
    bags, y = make_toy_bags(n_features=1)
    _check_all_finite(estimator, bags, y, "one feature")


def check_constant_features(estimator: Any) -> None:
    """A feature that never varies does no harm, nor do features that all never vary."""
    bags, y = make_toy_bags()
    for bag in bags:
        bag[:, 1] = 7.0
    _check_all_finite(estimator, bags, y, "a constant feature")
    for value in (0.0, 1.0):
        constant = [np.full_like(bag, value) for bag in bags]
        _check_all_finite(estimator, constant, y, f"all features constant at {value:g}")


def check_identical_instances(estimator: Any) -> None:
    """Bags that repeat one instance score like each other, whatever their class."""
    bags, y = make_toy_bags()
    same = [np.repeat([[1.0, -2.0, 0.5]], 3, axis=0) for _ in bags]
    scores = bag_scores(_check_all_finite(estimator, same, y, "identical instances"), same)
    assert_close(scores, np.broadcast_to(scores[0], scores.shape), "identical bags")


def check_duplicate_bags(estimator: Any) -> None:
    """Bags may come twice, with the same label or with another."""
    bags, y = make_toy_bags()
    _check_all_finite(estimator, bags + bags, np.append(y, y), "duplicate bags")
    _check_all_finite(estimator, bags + bags, np.append(y, 1 - y), "contradicting duplicates")


def check_huge_bag(estimator: Any) -> None:
    """One bag may be a hundred times larger than the others."""
    bags, y = make_toy_bags()
    rng = np.random.default_rng(0)
    bags[5] = np.concatenate([bags[5], bags[5][:1] + rng.normal(size=(300, 3))])
    _check_all_finite(estimator, bags, y, "a huge bag")


def check_feature_scale(estimator: Any) -> None:
    """Features may be very large, very small, or both."""
    bags, y = make_toy_bags()
    for scale in (1e-12, 1e12, np.array([1e-9, 1.0, 1e9])):
        _check_all_finite(estimator, [bag * scale for bag in bags], y, f"features times {scale}")


def check_shifted_features(estimator: Any) -> None:
    """Features may lie far from zero."""
    bags, y = make_toy_bags()
    _check_all_finite(estimator, [bag + 1e5 for bag in bags], y, "features far from zero")


def check_far_bags(estimator: Any) -> None:
    """Bags far from everything seen in fit get finite scores."""
    bags, y = make_toy_bags()
    model = learned(estimator, bags, y)
    assert_finite(bag_scores(model, [bag + 1e8 for bag in bags]), "bags far away")
