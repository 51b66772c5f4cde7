"""Models that say the same of every bag that they learned from."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._warnings import warn
from bagwise.base._label_lists import plain_label
from bagwise.base._target import Target
from bagwise.exceptions import ConstantModelWarning

if TYPE_CHECKING:
    from bagwise.bags import Bags
    from bagwise.base._classifier import BagClassifier

_FIRST = 2  # bags that are looked at in the beginning
_ADVICE = {
    "C": "another C",
    "gamma": "another gamma",
    "class_weight": 'class_weight="balanced"',
    "n_init": "a larger n_init",
}


def scores_if_constant(classifier: "BagClassifier", bags: "Bags", order: Integers) -> Floats | None:
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


def in_turn(target: Target) -> Integers:
    """Return the bags in an order in which their classes take turns."""
    codes = target.codes
    if codes is None:
        return np.arange(target.n_bags)
    by_class, counts = np.argsort(codes, kind="stable"), np.bincount(codes)
    place = np.empty(len(codes), np.intp)  # of each bag among those of its class
    place[by_class] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.lexsort((codes, place))


def warn_constant(classifier: "BagClassifier", label: Any) -> None:
    """Say that the model predicts this label for all bags, and what may help."""
    known = classifier.get_params(deep=False)
    advice = [text for name, text in _ADVICE.items() if name in known]
    answer = "the same labels" if classifier.multilabel_ else f"{plain_label(label)!r}"
    msg = (
        f"{type(classifier).__name__} predicts {answer} for every bag that it learned from. "
        f"Scale the features, or try {', '.join([*advice, 'another method'])}."
    )
    warn(msg, ConstantModelWarning)
