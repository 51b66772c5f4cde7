"""What an estimator says of each bag, in the form that the report shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise.bags import Bags
from bagwise.base import positive_place
from bagwise.inspection._assess import key_places
from bagwise.inspection._learned_from import learned_from
from bagwise.metrics import average_precision


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Predictions, scores and key instances of bags.

    Parameters
    ----------
    label_names : tuple of str
        Names of the classes, which the codes below count.
    truth : ndarray of int of shape (n_bags,) or (n_bags, n_labels), or None
        Codes of the classes, or an indicator matrix of label lists; None if not known.
    predicted : ndarray of int of shape (n_bags,) or (n_bags, n_labels)
        The same of what is predicted.
    scores : ndarray of shape (n_bags,)
        With two classes, the score of the second; with more, how far the predicted one is ahead;
        with label lists, the highest score of any label.
    margins : ndarray of shape (n_bags,)
        How far the score is on the right side: positive if the label is right. On the side that
        is predicted if the truth is not known; with label lists, the score.
    keys : ndarray of int of shape (n_bags,) or None
        Place of the key instance.
    instance_scores : ndarray of shape (n_instances,) or None
        With two classes, for the second; with more, for the class predicted for the bag; with
        label lists, for the label with the highest score.
    top : ndarray of int of shape (n_bags,) or None
        With label lists, the code of the label with the highest score.
    average_precision : float or None
        With label lists that are known, how well the labels are ranked.
    n_seen : int
        How many of the bags the method learned from, as far as it can tell.
    positive : int or None
        With two classes, the code of the positive one; None if the method treats both alike and
        nothing was said.
    """

    label_names: tuple[str, ...]
    truth: Integers | None
    predicted: Integers
    scores: Floats
    margins: Floats
    keys: Integers | None
    instance_scores: Floats | None
    top: Integers | None = None
    average_precision: float | None = None
    n_seen: int = 0
    positive: int | None = None

    @property
    def has_lists(self) -> bool:
        """Whether each bag has a list of labels."""
        return self.predicted.ndim == 2

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.label_names) == 2 and not self.has_lists

    @property
    def is_judged(self) -> bool:
        """Whether each bag is either right or wrong."""
        return self.truth is not None and not self.has_lists

    @property
    def counts(self) -> Integers:
        """For each label, the number of bags for which it is predicted."""
        if self.has_lists:
            return self.predicted.sum(axis=0)
        return np.bincount(self.predicted, minlength=len(self.label_names))

    @property
    def unsure(self) -> Booleans:
        """The tenth of the bags whose scores are closest to the threshold."""
        nearness = np.abs(self.margins)
        return nearness <= np.sort(nearness)[(len(nearness) - 1) // 10]

    @property
    def majority(self) -> tuple[str, float]:
        """The most frequent class and its share: of the true ones, or else of the predicted."""
        codes = self.predicted if self.truth is None else self.truth
        counts = np.bincount(codes, minlength=len(self.label_names))
        return self.label_names[int(counts.argmax())], float(counts.max() / counts.sum())


def judge(
    estimator: Any,
    bags: Bags,
    y: Any = None,
    label_names: Sequence[str] | None = None,
    pos_label: Any = None,
) -> Verdicts:
    """Let a fitted classifier judge bags.

    Parameters
    ----------
    estimator : object
        A fitted bag classifier of two or more classes, or of label lists.
    bags : Bags
        The bags.
    y : array-like of shape (n_bags,) or (n_bags, n_labels), optional
        Their labels, if known; for label lists an indicator matrix.
    label_names : sequence of str, optional
        Names of ``estimator.classes_``, in that order.
    pos_label : label, optional
        The positive one of two classes, if the estimator does not know.
    """
    classes = np.asarray(estimator.classes_)
    names = tuple(map(str, classes)) if label_names is None else tuple(map(str, label_names))
    if len(names) != len(classes):
        msg = f"label_names must name the {len(classes)} classes. Got {len(names)} names."
        raise ValueError(msg)
    has_lists = getattr(estimator, "multilabel_", False)
    truth = None
    if y is not None:
        truth = _indicators(y, classes, bags) if has_lists else _codes(y, classes, bags)
    outputs = np.asarray(estimator.decision_function(bags), dtype=np.float64)
    keys = key_places(estimator, bags)
    inside = None
    if keys is not None:
        inside = np.asarray(estimator.instance_decision_function(bags), dtype=np.float64)
    if has_lists:
        top, seen = outputs.argmax(axis=1), learned_from(estimator, bags)
        scores = _of_column(outputs, top)
        return Verdicts(
            names,
            truth,
            np.asarray(estimator.predict(bags), dtype=np.int64),
            scores,
            scores,
            None if keys is None else _of_column(keys, top),
            None if inside is None else _of_column(inside, np.repeat(top, bags.sizes)),
            top,
            None if truth is None or not truth.any() else average_precision(truth, outputs),
            0 if seen is None else int(seen.sum()),
        )
    if outputs.ndim == 1:
        predicted = (outputs > 0).astype(np.int64)
        side = predicted if truth is None else truth
        margins = outputs * np.where(side == 1, 1.0, -1.0)
        is_told = pos_label is not None or getattr(estimator, "pos_label_", None) is not None
        positive = positive_place(estimator, pos_label) if is_told else None
        return Verdicts(names, truth, predicted, outputs, margins, keys, inside, positive=positive)
    predicted = outputs.argmax(axis=1)
    if inside is not None:
        inside = _of_column(inside, np.repeat(predicted, bags.sizes))
    scores = _lead(outputs, predicted)
    margins = scores if truth is None else _lead(outputs, truth)
    return Verdicts(names, truth, predicted, scores, margins, keys, inside)


def _codes(y: Any, classes: NDArray[Any], bags: Bags) -> Integers:
    labels = np.asarray(y)
    if labels.shape != (len(bags),):
        msg = f"The report needs one label for each of the {len(bags)} bags. Got {labels.shape}."
        raise ValueError(msg)
    codes = {label: code for code, label in enumerate(classes.tolist())}
    unknown = sorted({str(label) for label in labels.tolist() if label not in codes})
    if unknown:
        msg = f"The estimator was not fitted on the label(s) {', '.join(unknown[:5])} in y."
        raise ValueError(msg)
    return np.array([codes[label] for label in labels.tolist()], dtype=np.int64)


def _indicators(y: Any, classes: NDArray[Any], bags: Bags) -> Integers:
    lists = np.asarray(y)
    if lists.shape != (len(bags), len(classes)):
        msg = (
            "The report needs an indicator matrix of label lists, "
            f"{(len(bags), len(classes))}. Got {lists.shape}."
        )
        raise ValueError(msg)
    return (lists > 0).astype(np.int64)


def _of_column(values: NDArray[Any], columns: Integers) -> NDArray[Any]:
    """Return the value of each row in a column of its own."""
    return values[np.arange(len(columns)), columns]


def _lead(outputs: Floats, chosen: Integers) -> Floats:
    """Return by how much the chosen class scores above the best of the others."""
    rows = np.arange(len(outputs))
    others = outputs.copy()
    others[rows, chosen] = -np.inf
    return outputs[rows, chosen] - others.max(axis=1)
