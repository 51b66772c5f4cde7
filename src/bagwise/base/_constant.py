"""Models that say the same of every bag."""

from typing import TYPE_CHECKING

import numpy as np

from bagwise._arrays import Integers
from bagwise._warnings import warn
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


def warn_if_constant(classifier: "BagClassifier", bags: "Bags", target: Target) -> None:
    """Warn that all training bags get the same prediction, though they have different labels.

    Bags are predicted in groups, each twice as large as the one before, until two predictions
    differ. Classes take turns, so that a few bags are enough unless the model is constant.

    Parameters
    ----------
    classifier : BagClassifier
        Fitted.
    bags : Bags
        What it was fitted to.
    target : Target
        Their labels.
    """
    if (target.signs == target.signs[0]).all():
        return
    order, start, size, first = in_turn(target), 0, _FIRST, None
    while start < len(order):
        group = order[start : start + size]
        labels = classifier._labels_of(classifier._bag_scores(bags[group]))
        first = labels[0] if first is None else first
        if (labels != first).any():
            return
        start, size = start + size, 2 * size
    known = classifier.get_params(deep=False)
    advice = [text for name, text in _ADVICE.items() if name in known]
    answer = "the same labels" if target.is_multilabel else f"{np.asarray(first).item()!r}"
    msg = (
        f"{type(classifier).__name__} predicts {answer} for every bag that it learned from. "
        f"Scale the features, or try {', '.join([*advice, 'another method'])}."
    )
    warn(msg, ConstantModelWarning)


def in_turn(target: Target) -> Integers:
    """Return the bags in an order in which their classes take turns."""
    codes = target.codes
    if codes is None:
        return np.arange(len(target.signs))
    by_class, counts = np.argsort(codes, kind="stable"), np.bincount(codes)
    place = np.empty(len(codes), np.intp)  # of each bag among those of its class
    place[by_class] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.lexsort((codes, place))
