"""Models that say the same of every bag, or of too many."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._warnings import warn
from bagwise.base._moved_threshold import Task, move_threshold
from bagwise.base._target import Target
from bagwise.exceptions import ConstantModelWarning

if TYPE_CHECKING:
    from bagwise.bags import Bags
    from bagwise.base._classifier import BagClassifier

_FIRST = 2  # bags that are looked at in the beginning
_EQUAL = 1e-9  # shares that differ by less are equal
_ADVICE = {
    "C": "another C",
    "gamma": "another gamma",
    "class_weight": 'class_weight="balanced"',
    "n_init": "a larger n_init",
}


def move_if_constant(classifier: "BagClassifier", task: Task) -> None:
    """Move the threshold of a model that predicts one class for all training bags, or warn.

    Only with two classes; see `move_threshold`. Of classifiers that do not count mistakes it moves
    sooner: where the most frequent label is right for more training bags, by weight.

    Parameters
    ----------
    classifier : BagClassifier
        Fitted.
    task : Task
        What it was fitted to.
    """
    bags, target = task.bags, task.target
    if classifier._threshold_moves:
        classifier.intercept_shift_ = np.zeros(target.n_outputs)
    if (target.positive == target.positive[0]).all():
        return
    is_movable = classifier._threshold_moves and target.codes is not None and target.n_outputs == 1
    order = in_turn(target)
    scores = _scores_if_constant(classifier, bags, order)
    if scores is None:
        if is_movable and not classifier._counts_mistakes(bags):
            _move_if_mistaken(classifier, task)
        return
    (label,) = classifier._labels_of(scores[:1])
    if is_movable:
        fault = (
            f"{type(classifier).__name__} predicts {label.item()!r} at its optimum for every bag "
            f"that it learned from."
        )
        in_place = target.side * scores[np.argsort(order), 0]
        if move_threshold(classifier, task, in_place, fault):
            return
    _warn_constant(classifier, label)


def _move_if_mistaken(classifier: "BagClassifier", task: Task) -> None:
    """Move the threshold if the most frequent label is right for more training bags, by weight."""
    sign, weight, side = task.target.signs[:, 0], task.cost_weight[:, 0], task.target.side
    scores = side * classifier._bag_scores(task.bags)[:, 0]
    is_positive = float(np.average(sign > 0, weights=weight))
    right = float(np.average((scores > 0) == (sign > 0), weights=weight))
    if right >= max(is_positive, 1.0 - is_positive) - _EQUAL:
        return
    frequent = classifier.classes_[int((is_positive > 0.5) == (side > 0))]
    fault = (
        f"{type(classifier).__name__} is right for {right:.0%} of the bags that it learned from, "
        f"and {frequent.item()!r} is for {max(is_positive, 1.0 - is_positive):.0%}."
    )
    move_threshold(classifier, task, scores, fault)


def _scores_if_constant(
    classifier: "BagClassifier", bags: "Bags", order: Integers
) -> Floats | None:
    """Return the scores of bags in this order if all have the same prediction.

    Bags are predicted in groups, each twice as large as the one before, until two predictions
    differ. Classes take turns, so that a few bags are enough unless the model is constant.
    """
    groups: list[Floats] = []
    start, size = 0, _FIRST
    while start < len(order):
        groups.append(classifier._bag_scores(bags[order[start : start + size]]))
        labels = classifier._labels_of(np.concatenate([groups[0][:1], groups[-1]]))
        if (labels != labels[0]).any():
            return None
        start, size = start + size, 2 * size
    return np.concatenate(groups)


def _warn_constant(classifier: "BagClassifier", label: Any) -> None:
    known = classifier.get_params(deep=False)
    advice = [text for name, text in _ADVICE.items() if name in known]
    answer = "the same labels" if classifier.multilabel_ else f"{label.item()!r}"
    msg = (
        f"{type(classifier).__name__} predicts {answer} for every bag that it learned from. "
        f"Scale the features, or try {', '.join([*advice, 'another method'])}."
    )
    warn(msg, ConstantModelWarning)


def in_turn(target: Target) -> Integers:
    """Return the bags in an order in which their classes take turns."""
    codes = target.codes
    if codes is None:
        return np.arange(len(target.positive))
    by_class, counts = np.argsort(codes, kind="stable"), np.bincount(codes)
    place = np.empty(len(codes), np.intp)  # of each bag among those of its class
    place[by_class] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.lexsort((codes, place))
