"""Which of two classes is the positive one, where a method does not treat both alike."""

from datetime import date
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bagwise._warnings import warn
from bagwise.bags import Bags
from bagwise.base._classifier import BagClassifier
from bagwise.base._label_lists import plain_label
from bagwise.base._target import Target
from bagwise.exceptions import PositiveClassWarning

#: Pairs of labels of which the second is positive by convention; False and True equal 0 and 1.
_CONVENTIONS = ([0, 1], [-1, 1])


class AsymmetricClassifier(BagClassifier):
    """Base of classifiers for which a bag is positive if one of its instances is, or the like.

    They have a parameter ``pos_label``. `_learn` sees signs that are +1 for that class. What it
    returns, `_bag_outputs` and `_instance_outputs` are nevertheless about the second of
    ``classes_``, as scikit-learn wants it: ``target.side`` in `_learn` and ``_side`` afterwards are
    -1.0 if the positive class is the first one, and turn the one into the other.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "pos_label": [Real, str, "boolean", date, np.datetime64, None]
    }

    def _encode(
        self, bags: Bags, y: Any, sample_weight: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        (bags, target, *weights), known = super()._encode(bags, y, sample_weight)
        place = self._positive_place(target)
        label = None if place is None else target.classes.tolist()[place]
        if place == 0:
            target = target.turned()
        return (bags, target, *weights), {**known, "pos_label_": label}

    def _positive_place(self, target: Target) -> int | None:
        """Return which class is positive, None if there are not two; warn if it is a guess."""
        name = type(self).__name__
        is_binary = not target.is_multilabel and len(target.classes) == 2
        if self.pos_label is not None:
            if not is_binary:
                got = "label lists" if target.is_multilabel else f"{len(target.classes)} classes"
                msg = f"pos_label of {name} is for two classes. Got {self.pos_label!r} and {got}."
                raise ValueError(msg)
            return place_of(self.pos_label, target.classes, name)
        if is_binary and self.__bagwise_tags__().asymmetric and not is_conventional(target.classes):
            negative, positive = target.classes.tolist()
            msg = (
                f"{name} takes {positive!r} for the positive class, the one that a single instance "
                f"can decide for, because it sorts behind {negative!r}. If that is wrong, set "
                f"pos_label={negative!r}; if it is right, pos_label={positive!r}."
            )
            warn(msg, PositiveClassWarning)
        return 1 if is_binary else None

    @property
    def _side(self) -> float:
        """-1.0 if the positive class is the first of two, so that it has negative scores."""
        return 1.0 if positive_place(self) else -1.0


def positive_place(classifier: Any, pos_label: Any = None) -> int:
    """Return which of its two classes a fitted classifier, or its user, holds to be positive.

    Parameters
    ----------
    classifier : object
        A fitted classifier.
    pos_label : label or None
        The positive class; None: the ``pos_label_`` of the classifier, else the second class.
    """
    if pos_label is None:
        pos_label = getattr(classifier, "pos_label_", None)
    if pos_label is None:  # it treats both alike, or comes from a file of an earlier release
        return 1
    return place_of(pos_label, classifier.classes_, type(classifier).__name__)


def is_conventional(classes: NDArray[Any]) -> bool:
    """Tell whether it goes without saying that the second of two classes is the positive one.

    So it does for 0 and 1, for -1 and 1 and for booleans.
    """
    return classes.tolist() in _CONVENTIONS


def place_of(label: Any, classes: NDArray[Any], owner: str) -> int:
    """Return the place of the positive label among the classes.

    Parameters
    ----------
    label : label
        Of Python or of numpy; True is the same as 1.
    classes : ndarray
        The classes.
    owner : str
        Class name for the message.

    Raises
    ------
    ValueError
        If it is none of them; the message shows them.
    """
    if classes.dtype.kind == "M" and isinstance(label, date | np.datetime64):
        same = np.flatnonzero(classes == np.datetime64(label))
        if len(same):
            return int(same[0])
    label = plain_label(label)
    labels = classes.tolist()
    if label in labels:
        return labels.index(label)
    text = f"pos_label of {owner} must be one of the classes {labels}. Got {label!r}"
    same_text = [known for known in labels if str(known) == str(label)]
    if same_text:
        text += f", of type {type(label).__name__} and not {type(same_text[0]).__name__}"
    msg = f"{text}."
    raise ValueError(msg)
