"""What an estimator says of each bag, in the form that the report shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.bags import Bags
from bagwise.inspection._assess import key_places


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Predictions, scores and key instances of bags.

    Parameters
    ----------
    label_names : tuple of str
        Names of the classes, which the codes below count.
    truth, predicted : ndarray of int of shape (n_bags,)
        Codes of the classes.
    scores : ndarray of shape (n_bags,)
        With two classes, the score of the second; else how far the predicted one is ahead.
    margins : ndarray of shape (n_bags,)
        How far the score is on the right side: positive if the label is right.
    keys : ndarray of int of shape (n_bags,) or None
        Place of the key instance.
    instance_scores : ndarray of shape (n_instances,) or None
        With two classes, for the second; else for the class predicted for the bag.
    """

    label_names: tuple[str, ...]
    truth: NDArray[np.int64]
    predicted: NDArray[np.int64]
    scores: NDArray[np.float64]
    margins: NDArray[np.float64]
    keys: NDArray[np.int64] | None
    instance_scores: NDArray[np.float64] | None

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.label_names) == 2

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """The tenth of the bags whose scores are closest to the threshold."""
        nearness = np.abs(self.margins)
        return nearness <= np.sort(nearness)[(len(nearness) - 1) // 10]

    @property
    def majority(self) -> tuple[str, float]:
        """The most frequent true class and its share: what a constant answer would score."""
        counts = np.bincount(self.truth, minlength=len(self.label_names))
        return self.label_names[int(counts.argmax())], float(counts.max() / counts.sum())


def judge(estimator: Any, bags: Bags, y: Any, label_names: Sequence[str] | None = None) -> Verdicts:
    """Let a fitted classifier judge bags whose labels are known.

    Parameters
    ----------
    estimator : object
        A fitted bag classifier of two or more classes.
    bags : Bags
        The bags.
    y : array-like of shape (n_bags,)
        Their labels.
    label_names : sequence of str, optional
        Names of ``estimator.classes_``, in that order.
    """
    classes = np.asarray(estimator.classes_)
    truth = _codes(y, classes, bags)
    names = tuple(map(str, classes)) if label_names is None else tuple(map(str, label_names))
    if len(names) != len(classes):
        msg = f"label_names must name the {len(classes)} classes. Got {len(names)} names."
        raise ValueError(msg)
    outputs = np.asarray(estimator.decision_function(bags), dtype=np.float64)
    keys = key_places(estimator, bags)
    instance_scores = None
    if keys is not None:
        instance_scores = np.asarray(estimator.instance_decision_function(bags), dtype=np.float64)
    if outputs.ndim == 1:
        predicted = (outputs > 0).astype(np.int64)
        margins = outputs * np.where(truth == 1, 1.0, -1.0)
        return Verdicts(names, truth, predicted, outputs, margins, keys, instance_scores)
    predicted = outputs.argmax(axis=1)
    if instance_scores is not None:
        column = np.repeat(predicted, bags.sizes)
        instance_scores = instance_scores[np.arange(len(column)), column]
    scores, margins = _lead(outputs, predicted), _lead(outputs, truth)
    return Verdicts(names, truth, predicted, scores, margins, keys, instance_scores)


def _codes(y: Any, classes: NDArray[Any], bags: Bags) -> NDArray[np.int64]:
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


def _lead(outputs: NDArray[np.float64], chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return by how much the chosen class scores above the best of the others."""
    rows = np.arange(len(outputs))
    others = outputs.copy()
    others[rows, chosen] = -np.inf
    return outputs[rows, chosen] - others.max(axis=1)
