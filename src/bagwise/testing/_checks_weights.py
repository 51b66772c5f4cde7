"""Checks of weights: a weight is a repetition, a class weight is the weight of its bags."""

# ruff: noqa: D401 (the docstring of a check says what holds)

from typing import Any

import numpy as np

from bagwise.testing._compare import assert_close, assert_scores_differ
from bagwise.testing._data import make_toy_bags
from bagwise.testing._expect import raises
from bagwise.testing._models import bag_scores, fitted, fresh, learned, takes, with_positive


def check_weight_is_repetition(estimator: Any) -> None:
    """Weight k is the same as having the bag k times."""
    bags, y = make_toy_bags(20, kind="close")
    weight = np.arange(len(bags)) % 3 + 1
    repeated = [bag for bag, times in zip(bags, weight, strict=True) for _ in range(times)]
    scores = bag_scores(fitted(estimator, bags, y, sample_weight=weight), bags)
    expected = bag_scores(fitted(estimator, repeated, np.repeat(y, weight)), bags)
    assert_scores_differ(scores, bag_scores(learned(estimator, bags, y), bags), "weights")
    assert_close(scores, expected, "weights against repeated bags")


def check_zero_weight_is_removal(estimator: Any) -> None:
    """Weight 0 is the same as not having the bag, also where it was the last of its class."""
    bags, y = make_toy_bags(20, kind="close")
    y[3] = 2
    weight = np.ones(len(bags))
    weight[[3, 8, 9]] = 0.0
    kept = np.flatnonzero(weight)
    model = fitted(estimator, bags, y, sample_weight=weight)
    expected = fitted(estimator, [bags[i] for i in kept], y[kept])
    assert_close(bag_scores(model, bags), bag_scores(expected, bags), "weight 0 against removal")
    if not np.array_equal(model.classes_, expected.classes_):
        msg = f"A class whose bags all weigh 0 must not be in classes_. Got {model.classes_}."
        raise AssertionError(msg)


def check_uniform_weight(estimator: Any) -> None:
    """The same weight for all bags multiplies ``C``, or changes nothing if the loss is a mean."""
    bags, y = make_toy_bags(20, kind="close")
    weight = np.full(len(bags), 2.5)
    scores = bag_scores(fitted(estimator, bags, y, sample_weight=weight), bags)
    same = bag_scores(learned(estimator, bags, y), bags)
    try:
        assert_close(scores, same, "weight 2.5 for all bags against none")
    except AssertionError:
        if not takes(estimator, "C"):
            raise
        scaled = bag_scores(fitted(estimator, bags, y, C=2.5 * estimator.C), bags)
        assert_close(scores, scaled, "weight 2.5 for all bags against 2.5 C")


def check_bad_weight_refused(estimator: Any) -> None:
    """Negative weights, weights that are NaN and a wrong number of them are refused."""
    bags, y = make_toy_bags()
    for what, weight in {
        "a negative weight": np.where(np.arange(len(y)) == 2, -1.0, 1.0),
        "a weight that is NaN": np.where(np.arange(len(y)) == 2, np.nan, 1.0),
        "a weight missing": np.ones(len(y) - 1),
        "weights that are all 0": np.zeros(len(y)),
    }.items():
        with raises(ValueError, what=f"fit with {what}"):
            fitted(estimator, bags, y, sample_weight=weight)


def check_class_weight_dict(estimator: Any) -> None:
    """A dict of class weights is the sample weight of the bags of each class."""
    bags, y = make_toy_bags(20, kind="close")
    bags, y = bags + bags[:2], np.append(y, 1 - y[:2])  # no model fits both labels of a bag
    names = np.array(["a", "b"])[y]
    estimator = fresh(estimator, **with_positive(estimator, "b"))
    weighted = fitted(estimator, bags, names, class_weight={"a": 0.3, "b": 2.0})
    plain = fitted(estimator, bags, names, class_weight=None)
    scores = bag_scores(weighted, bags)
    assert_scores_differ(scores, bag_scores(plain, bags), "class weights")
    loss_weight = fitted(
        _with_fixed_gamma(estimator, plain),
        bags,
        names,
        class_weight=None,
        sample_weight=np.array([0.3, 2.0])[y],
    )
    assert_close(scores, bag_scores(loss_weight, bags), "class weights against sample weights")


def _with_fixed_gamma(estimator: Any, model: Any) -> Any:
    """Fix what is read off the features: sample weights count there, class weights do not."""
    if takes(estimator, "gamma") and hasattr(model, "gamma_"):
        return type(estimator)(**{**estimator.get_params(deep=False), "gamma": model.gamma_})
    return estimator


def check_class_weight_balanced(estimator: Any) -> None:
    """``"balanced"`` gives all classes the same total weight, with label lists each side."""
    bags, y = make_toy_bags(24, n_classes=3, kind="close")
    y = np.minimum(y, 1)
    balanced = bag_scores(fitted(estimator, bags, y, class_weight="balanced"), bags)
    counts = np.bincount(y)
    weights = {label: len(y) / (2 * count) for label, count in enumerate(counts)}
    by_hand = bag_scores(fitted(estimator, bags, y, class_weight=weights), bags)
    assert_close(balanced, by_hand, "class_weight='balanced' against the weights by hand")
    indicator = np.column_stack([y, 1 - y, np.ones_like(y)])
    lists = bag_scores(fitted(estimator, bags, indicator, class_weight="balanced"), bags)
    assert_close(lists[:, 0], balanced, "balanced label lists")


def check_class_weight_refused(estimator: Any) -> None:
    """A class weight that does not fit the labels is refused."""
    bags, y = make_toy_bags()
    with raises(ValueError, what="fit with class weights of other classes"):
        fitted(estimator, bags, y, class_weight={"no such class": 2.0})
    indicator = np.column_stack([y, 1 - y])
    with raises(ValueError, "class_weight", what="fit of label lists with a dict of class weights"):
        fitted(estimator, bags, indicator, class_weight={0: 2.0})
