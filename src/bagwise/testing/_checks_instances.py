"""Checks of what is said about instances."""

# ruff: noqa: D401 (the docstring of a check says what holds)

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Integers
from bagwise.bags import Bags
from bagwise.testing._compare import ROUNDING, assert_close
from bagwise.testing._data import make_toy_bags, shuffle_instances
from bagwise.testing._expect import convergence_is_no_matter, raises
from bagwise.testing._models import (
    bag_scores,
    bag_tags,
    is_bag_clusterer,
    learned,
    takes_label_lists,
)


def _targets(estimator: Any) -> tuple[str, ...]:
    if is_bag_clusterer(estimator):
        return "two clusters", "three clusters"
    classes = ("two classes", "three classes")
    return (*classes, "label lists") if takes_label_lists(estimator) else classes


def _fitted_on(estimator: Any, target: str) -> tuple[Any, list[NDArray[Any]], int]:
    """Return a fitted estimator, its bags and the number of columns that scores have."""
    bags, y = make_toy_bags(21, n_classes=3, kind="close")
    if is_bag_clusterer(estimator):
        n_clusters = 2 if target == "two clusters" else 3
        with convergence_is_no_matter():  # of three clusters that overlap, one may stay empty
            return learned(estimator, bags, None, n_clusters=n_clusters), bags, n_clusters
    if target == "two classes":
        return learned(estimator, bags, np.minimum(y, 1)), bags, 1
    if target == "three classes":
        return learned(estimator, bags, y), bags, 3
    return learned(estimator, bags, np.column_stack([y == 0, y > 0]).astype(int)), bags, 2


def _columns(scores: NDArray[Any]) -> NDArray[Any]:
    return scores[:, None] if scores.ndim == 1 else scores


def check_instance_scores(estimator: Any) -> None:
    """Instances get one row of finite scores each, bag after bag, and labels that agree."""
    for target in _targets(estimator):
        model, bags, n_columns = _fitted_on(estimator, target)
        n_instances = sum(map(len, bags))
        scores = model.instance_decision_function(bags)
        shape = (n_instances,) if n_columns == 1 else (n_instances, n_columns)
        if scores.shape != shape:
            msg = f"{target}: instance scores must have shape {shape}. Got {scores.shape}."
            raise AssertionError(msg)
        one_by_one = np.concatenate([model.instance_decision_function([bag]) for bag in bags])
        assert_close(scores, one_by_one, f"{target}: instance scores", tolerance=ROUNDING)
        if target == "label lists":
            expected = (scores > 0).astype(int)
        else:
            code = (scores > 0).astype(int) if n_columns == 1 else scores.argmax(axis=1)
            expected = code if is_bag_clusterer(model) else model.classes_[code]
        if not np.array_equal(model.instance_predict(bags), expected):
            msg = f"{target}: instance_predict must agree with instance_decision_function."
            raise AssertionError(msg)


def check_instance_scores_refused(estimator: Any) -> None:
    """A method without instance scores says so."""
    bags, y = make_toy_bags()
    model = learned(estimator, bags, y)
    for question in ("instance_decision_function", "instance_predict", "key_instances"):
        with raises(AttributeError, what=f"{question} of a method without instance scores"):
            getattr(model, question)(bags)


def check_instance_order_permutes_scores(estimator: Any) -> None:
    """Instances in another order get the same scores in that order; the bag's stays."""
    for target in _targets(estimator):
        model, bags, _ = _fitted_on(estimator, target)
        shuffled, orders = shuffle_instances(bags)
        offsets = Bags.from_list(bags).offsets
        rows = np.concatenate(
            [start + order for start, order in zip(offsets, orders, strict=False)]
        )
        what = f"{target}: instances in another order"
        assert_close(
            model.instance_decision_function(shuffled),
            model.instance_decision_function(bags)[rows],
            what,
            tolerance=ROUNDING,
        )
        assert_close(bag_scores(model, shuffled), bag_scores(model, bags), what, tolerance=ROUNDING)


def check_max_rule(estimator: Any) -> None:
    """The score of a bag is that of its best instance, column by column."""
    for target in _targets(estimator):
        model, bags, _ = _fitted_on(estimator, target)
        scores = model.instance_decision_function(bags)
        offsets = Bags.from_list(bags).offsets
        best = np.array([scores[a:b].max(axis=0) for a, b in pairwise(offsets)])
        assert_close(bag_scores(model, bags), best, f"{target}: best instances", tolerance=ROUNDING)


def check_key_instances(estimator: Any) -> None:
    """The key instance has the highest score for the predicted class or cluster.

    It is the first if several do.
    """
    for target in _targets(estimator):
        model, bags, n_columns = _fitted_on(estimator, target)
        bags = [np.concatenate([bag, bag]) for bag in bags]  # every instance has a twin
        keys = model.key_instances(bags)
        shape = (len(bags), n_columns) if target == "label lists" else (len(bags),)
        if keys.shape != shape or keys.dtype.kind != "i":
            msg = f"{target}: key_instances must be integers of shape {shape}. Got {keys!r}."
            raise AssertionError(msg)
        expected = _keys_by_hand(model, bags, target)
        if not np.array_equal(keys, expected):
            msg = f"{target}: key_instances must be {expected.tolist()}. Got {keys.tolist()}."
            raise AssertionError(msg)


def _keys_by_hand(model: Any, bags: list[NDArray[Any]], target: str) -> Integers:
    scores = _columns(model.instance_decision_function(bags))
    outputs = _columns(bag_scores(model, bags))
    offsets = Bags.from_list(bags).offsets
    keys = []
    for i, (start, stop) in enumerate(pairwise(offsets)):
        inside = scores[start:stop]
        if target == "label lists":
            keys.append(inside.argmax(axis=0))
        elif outputs.shape[1] > 1:
            keys.append(inside[:, outputs[i].argmax()].argmax())
        elif outputs[i, 0] > 0 or bag_tags(model).max_rule:
            keys.append(inside[:, 0].argmax())
        else:
            keys.append(inside[:, 0].argmin())
    return np.array(keys)
