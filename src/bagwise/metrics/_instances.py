"""How well instances are told apart, where the truth about them is known."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score

from bagwise._arrays import Booleans


def key_instance_success_rate(
    instance_y: ArrayLike,
    places: ArrayLike,
    offsets: ArrayLike,
    *,
    relevant: ArrayLike | None = None,
) -> float:
    """Return the share of positive bags in which the instance pointed at is a key instance.

    This is the success rate of Li et al. (2009), used in section 5.1 of the MI-ODM paper:
    successes over relevant bags. One instance is pointed at in each bag, and bags that a model
    calls negative count too.

    Parameters
    ----------
    instance_y : array-like of shape (n_instances,) or (n_instances, n_labels)
        Zeros and ones: whether an instance is a key instance, or one of which labels.
    places : array-like of int of shape (n_bags,) or (n_bags, n_labels)
        Place, inside each bag and counted from 0, of the instance pointed at: that with the
        highest score for the positive class. Estimators' ``key_instances`` is this only in bags
        that they call positive, unless a bag scores as its best instance does.
    offsets : array-like of int of shape (n_bags + 1,)
        Row at which each bag begins, and the number of rows: ``Bags.offsets``.
    relevant : array-like of bool of the shape of ``places``, optional
        Which bags (or bags and labels) count. By default those that have a key instance.

    Returns
    -------
    rate : float
        Between 0 and 1; 1 is best.

    Examples
    --------
    Three bags; the first two have key instances, and only the second one's is found:

    >>> from bagwise.metrics import key_instance_success_rate
    >>> key_instance_success_rate([0, 1, 0, 1, 1, 0], [0, 1, 0], offsets=[0, 2, 5, 6])
    0.5
    """
    name = "key_instance_success_rate"
    is_key = _flags(name, "instance_y", instance_y)
    pointed = np.asarray(places)
    bounds = np.asarray(offsets)
    if bounds.ndim != 1 or len(bounds) < 2 or bounds[0] != 0 or bounds[-1] != len(is_key):
        msg = (
            f"{name} needs offsets that begin with 0 and end with the number of instances, "
            f"{len(is_key)}. Got {bounds.tolist()[:3]}...{bounds.tolist()[-1:]}."
        )
        raise ValueError(msg)
    sizes = np.diff(bounds)
    if pointed.shape != (len(sizes), *is_key.shape[1:]) or pointed.dtype.kind not in "iu":
        msg = (
            f"{name} needs places of whole numbers and shape {(len(sizes), *is_key.shape[1:])}. "
            f"Got {pointed.dtype} of shape {pointed.shape}."
        )
        raise ValueError(msg)
    is_key, pointed = is_key.reshape(len(is_key), -1), pointed.reshape(len(pointed), -1)
    outside = np.argwhere((pointed < 0) | (pointed >= sizes[:, None]))
    if len(outside):
        bag, label = outside[0]
        msg = (
            f"{name}: bag {bag} has {sizes[bag]} instances, so places must be 0 to "
            f"{sizes[bag] - 1}. Got {pointed[bag, label]}."
        )
        raise ValueError(msg)
    success = np.take_along_axis(is_key, bounds[:-1, None] + pointed, axis=0)
    if relevant is None:
        counted = np.logical_or.reduceat(is_key, bounds[:-1], axis=0)
    else:
        counted = np.asarray(relevant, dtype=bool)
        if counted.size != success.size:
            msg = f"{name} needs relevant of the shape of places. Got {counted.shape}."
            raise ValueError(msg)
        counted = counted.reshape(success.shape)
    if not counted.any():
        msg = f"{name} needs at least one relevant bag. Got none among {len(sizes)} bags."
        raise ValueError(msg)
    return float(success[counted].mean())


def instance_precision(
    instance_y: ArrayLike, instance_pred: ArrayLike, *, known: ArrayLike | None = None
) -> float:
    """Return the share of the instances predicted positive that are positive.

    Parameters
    ----------
    instance_y : array-like of shape (n_instances,) or (n_instances, n_labels)
        The truth, zeros and ones.
    instance_pred : array-like of the same shape
        The predictions, zeros and ones.
    known : array-like of bool of shape (n_instances,), optional
        Whether the truth about an instance is known; the others are left out.

    Returns
    -------
    precision : float
        0 if nothing is predicted positive. With several labels, the mean over those that have a
        positive instance.

    Examples
    --------
    >>> from bagwise.metrics import instance_precision
    >>> instance_precision([1, 0, 0, 1], [1, 1, 0, 0])
    0.5
    """
    truth, predicted = _binary_pair("instance_precision", instance_y, instance_pred, known)
    hits = np.sum(truth & predicted, axis=0)
    return float(np.mean(hits / np.maximum(predicted.sum(axis=0), 1)))


def instance_recall(
    instance_y: ArrayLike, instance_pred: ArrayLike, *, known: ArrayLike | None = None
) -> float:
    """Return the share of the positive instances that are predicted positive.

    Parameters
    ----------
    instance_y : array-like of shape (n_instances,) or (n_instances, n_labels)
        The truth, zeros and ones.
    instance_pred : array-like of the same shape
        The predictions, zeros and ones.
    known : array-like of bool of shape (n_instances,), optional
        Whether the truth about an instance is known; the others are left out.

    Returns
    -------
    recall : float
        With several labels, the mean over those that have a positive instance.

    Examples
    --------
    >>> from bagwise.metrics import instance_recall
    >>> instance_recall([1, 0, 0, 1], [1, 1, 0, 0])
    0.5
    """
    truth, predicted = _binary_pair("instance_recall", instance_y, instance_pred, known)
    return float(np.mean(np.sum(truth & predicted, axis=0) / truth.sum(axis=0)))


def instance_auc(
    instance_y: ArrayLike, instance_score: ArrayLike, *, known: ArrayLike | None = None
) -> float:
    """Return the chance that a positive instance scores higher than a negative one.

    It is the area under the ROC curve over all instances of all bags; ties count one half.

    Parameters
    ----------
    instance_y : array-like of shape (n_instances,) or (n_instances, n_labels)
        The truth, zeros and ones.
    instance_score : array-like of the same shape
        The higher, the more likely positive.
    known : array-like of bool of shape (n_instances,), optional
        Whether the truth about an instance is known; the others are left out.

    Returns
    -------
    area : float
        Between 0 and 1; 1 is best. With several labels, the mean over those that have positive
        and negative instances.

    Examples
    --------
    >>> from bagwise.metrics import instance_auc
    >>> instance_auc([1, 0, 0, 1], [0.9, 0.4, 0.1, 0.2])
    0.75
    """
    name = "instance_auc"
    truth, scores = _pair(name, instance_y, instance_score, known)
    both = truth.any(axis=0) & ~truth.all(axis=0)
    if not both.any():
        msg = f"{name} needs positive and negative instances. All {len(truth)} are alike."
        raise ValueError(msg)
    areas = [roc_auc_score(*column) for column in zip(truth.T[both], scores.T[both], strict=True)]
    return float(np.mean(areas))


def _binary_pair(
    name: str, instance_y: ArrayLike, instance_pred: ArrayLike, known: ArrayLike | None
) -> tuple[Booleans, Booleans]:
    """Return truth and predictions as flags: known rows, labels that have a positive instance."""
    flags = _flags(name, "instance_pred", instance_pred)
    truth, predicted = _pair(name, instance_y, flags, known)
    some = truth.any(axis=0)
    if not some.any():
        msg = f"{name} needs at least one positive instance. Got none among {len(truth)}."
        raise ValueError(msg)
    return truth[:, some], predicted[:, some]


def _pair(
    name: str, instance_y: ArrayLike, other: Any, known: ArrayLike | None
) -> tuple[Booleans, NDArray[Any]]:
    """Return truth and predictions as two matrices of the rows with known truth."""
    truth, predicted = np.asarray(instance_y), np.asarray(other)
    if truth.shape != predicted.shape:
        msg = (
            f"{name} needs truth and predictions of the same shape. "
            f"Got {truth.shape} and {predicted.shape}."
        )
        raise ValueError(msg)
    if known is not None:
        mask = np.asarray(known, dtype=bool)
        if mask.shape != truth.shape[:1]:
            msg = f"{name} needs known of shape {truth.shape[:1]}. Got {mask.shape}."
            raise ValueError(msg)
        truth, predicted = truth[mask], predicted[mask]
    flags = _flags(name, "instance_y", truth)
    return flags.reshape(len(flags), -1), predicted.reshape(len(flags), -1)


def _flags(name: str, parameter: str, values: ArrayLike) -> Booleans:
    array = np.asarray(values)
    if array.ndim not in (1, 2) or not array.size:
        msg = f"{name} needs {parameter} of one or two dimensions. Got shape {array.shape}."
        raise ValueError(msg)
    if not np.isin(array, (0, 1)).all():
        msg = f"{name} needs {parameter} of zeros and ones. Got {np.unique(array)[:5].tolist()}."
        raise ValueError(msg)
    return array.astype(bool)
