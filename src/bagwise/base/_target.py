"""Labels of any type, as the signs that binary problems are made of."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_consistent_length
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._compat import check_target
from bagwise.bags import Bags, is_missing
from bagwise.base._label_lists import (
    checked_lists,
    holds_lists,
    indicator_of,
    listed_labels,
    plain_label,
)


@dataclass(frozen=True)
class Target:
    """What is to be learned: one column of signs per binary problem.

    Two classes make one problem (the second class is positive unless it is `turned`), more classes
    one problem each, one against the rest, and label lists one problem for each label.

    Parameters
    ----------
    classes : ndarray
        The labels, sorted; for label lists in an indicator matrix the numbers of the columns.
    codes : ndarray of shape (n_bags,) or None
        Position of each bag's label among the classes; None for label lists.
    lists : ndarray of bool of shape (n_bags, n_labels) or None
        Which labels are on the list of each bag; None for classes.
    side : float
        What scores that suit the signs are multiplied by to be positive for the second of two
        classes: -1.0 if the first one has the sign +1.0, else 1.0.
    """

    classes: NDArray[Any]
    codes: NDArray[np.intp] | None = None
    lists: Booleans | None = None
    side: float = 1.0

    @cached_property
    def positive(self) -> Booleans:
        """Which bags are positive in which problem; of classes made when it is needed first."""
        if self.codes is None:
            assert self.lists is not None
            return self.lists
        if len(self.classes) == 2:
            return (self.codes == int(self.side > 0))[:, None]
        return np.asarray(self.codes[:, None] == np.arange(len(self.classes)))

    @cached_property
    def signs(self) -> Floats:
        """+1.0 or -1.0, of the shape of ``positive``; made when they are needed first."""
        return np.where(self.positive, 1.0, -1.0)

    @property
    def is_multilabel(self) -> bool:
        """Whether bags have lists of labels."""
        return self.codes is None

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.positive if self.codes is None else self.codes)

    @property
    def n_outputs(self) -> int:
        """Number of binary problems."""
        return 1 if self.codes is not None and len(self.classes) == 2 else len(self.classes)

    @property
    def is_one_for_all(self) -> bool:
        """Whether all bags have the same label, or the same list."""
        labels = self.positive if self.codes is None else self.codes
        return bool((labels == labels[0]).all())

    def take(self, bags: Integers) -> "Target":
        """Return the target of some of the bags."""
        if self.codes is None:
            return replace(self, lists=self.positive[bags])
        return replace(self, codes=self.codes[bags])

    def turned(self) -> "Target":
        """Return the target in which the other one of two classes is positive."""
        return replace(self, side=-self.side)


def encode_target(
    estimator: Any, y: Any, sample_weight: Floats, bags: Bags | None = None
) -> Target:
    """Return the target of the bags with positive weight, or say why it cannot be learned.

    Parameters
    ----------
    estimator : object
        Whose class messages name.
    y : array-like
        Labels, or label lists.
    sample_weight : ndarray of shape (n_bags,)
        Weights.
    bags : Bags, optional
        What the labels are of; messages name them.
    """
    name = type(estimator).__name__
    if y is None:
        msg = f"{name} requires y to be passed, but the target y is None."
        raise ValueError(msg)
    if holds_lists(y):
        return _encode_lists(checked_lists(y, name), sample_weight, name)
    _refuse_missing(name, y, bags)
    _refuse_objects(name, y)
    kind = _kind(y)
    is_multilabel = kind == "multilabel-indicator"
    y = check_target(y, estimator, multi_output=is_multilabel)
    if kind not in ("binary", "multilabel-indicator"):  # of these there is nothing to say
        check_classification_targets(y)
    check_consistent_length(sample_weight, y)
    y = y[sample_weight > 0]
    if is_multilabel:
        indicator = np.asarray(y.todense() if hasattr(y, "todense") else y)
        return Target(np.arange(indicator.shape[1]), lists=indicator > 0)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        only = f": {classes.tolist()[0]!r}" if len(classes) else ""
        msg = f"{name} needs bags of at least two classes. Got {len(classes)} class{only}."
        raise ValueError(msg)
    return Target(classes, codes)


def _encode_lists(rows: list[list[Any]], sample_weight: Floats, name: str) -> Target:
    """Return the target of lists of labels."""
    check_consistent_length(sample_weight, rows)
    rows = [row for row, weight in zip(rows, sample_weight, strict=True) if weight > 0]
    classes = listed_labels(rows, name)
    return Target(classes, lists=indicator_of(rows, classes)[:, :-1])


def _refuse_missing(name: str, y: Any, bags: Bags | None) -> None:
    """Refuse labels of which some are missing: None, NaN, the NA of pandas, a null."""
    dtype = getattr(y, "dtype", None)  # series may have types that are not numpy's
    if sparse.issparse(y) or (isinstance(dtype, np.dtype) and dtype.kind not in "fO"):
        return
    try:
        labels = np.asarray(y, dtype=None if isinstance(dtype, np.dtype) else object)
    except (TypeError, ValueError):  # no array at all, which is said later
        return
    if labels.ndim not in (1, 2):
        return
    missing = is_missing(labels)
    rows = missing.any(axis=1) if missing.ndim == 2 else missing
    if rows.any():
        bag = int(rows.argmax())
        got = labels[bag][missing[bag].argmax()] if missing.ndim == 2 else labels[bag]
        known = bags is not None and len(bags) == len(labels)
        which = bags.describe(bag) if bags is not None and known else f"bag {bag}"
        shown = "NaN" if isinstance(got, float | np.floating) else str(got)
        msg = f"{name} needs a label for each bag. In y that of {which} is missing: {shown}."
        raise ValueError(msg)


def _refuse_objects(name: str, y: Any) -> None:
    """Refuse labels in an array of objects that are not all text, and say what they are."""
    dtype = getattr(y, "dtype", None)  # series may have types that are not numpy's
    if not isinstance(dtype, np.dtype) or dtype.kind != "O" or np.ndim(y) != 1:
        return
    others = {type(label) for label in map(plain_label, y) if not isinstance(label, str)}
    if others:
        kinds = sorted({type(plain_label(label)).__name__ for label in y})
        way_out = "y.astype(str)"
        if kinds in (["bool"], ["float"], ["int"]):
            way_out = f"y.astype({kinds[0]})"
        msg = (
            f"Unknown label type: {name} needs text, or numbers in an array of numbers. y is an "
            f"array of objects, of type {' and '.join(kinds)}: pass {way_out}."
        )
        raise ValueError(msg)


def _kind(y: Any) -> str:
    """Return what scikit-learn calls this type of target, at once for two whole numbers."""
    whole = isinstance(y, np.ndarray) and y.dtype.kind in "iu" and y.ndim == 1 and len(y) > 0
    if whole and ((y == y.min()) | (y == y.max())).all():
        return "binary"
    with np.errstate(invalid="ignore"):  # infinity is refused later
        return str(type_of_target(y, input_name="y", raise_unknown=False))


def class_weighted(estimator: Any, target: Target, sample_weight: Floats) -> Floats:
    """Return a weight per bag and binary problem: the bag's own times that of its class.

    A class weight is the weight of every bag of the class, in all one-vs-rest problems alike.
    ``"balanced"`` gives all classes the same total; with label lists, the two sides of each label.
    """
    class_weight = getattr(estimator, "class_weight", None)
    shape = target.n_bags, target.n_outputs
    if class_weight is None:
        return np.broadcast_to(sample_weight[:, None], shape)
    if target.codes is not None:
        if isinstance(class_weight, str):
            mass = np.bincount(target.codes, weights=sample_weight)
            per_class = sample_weight.sum() / (len(mass) * mass)
        else:
            per_class = compute_class_weight(
                class_weight, classes=target.classes, y=target.classes[target.codes]
            )
            if not (per_class >= 0).all():
                msg = (
                    f"class_weight of {type(estimator).__name__} must not be negative. "
                    f"Got {class_weight!r}."
                )
                raise ValueError(msg)
        return np.broadcast_to((sample_weight * per_class[target.codes])[:, None], shape)
    if not isinstance(class_weight, str):
        msg = (
            f"class_weight of {type(estimator).__name__} must be None or 'balanced' with label "
            f"lists. Got {class_weight!r}."
        )
        raise ValueError(msg)
    weights = np.repeat(sample_weight[:, None], target.n_outputs, axis=1)
    for j, sign in enumerate(target.signs.T):
        for side in (-1.0, 1.0):
            mass = sample_weight[sign == side].sum()
            if mass > 0:
                weights[sign == side, j] *= sample_weight.sum() / (2 * mass)
    return weights
