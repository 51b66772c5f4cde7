"""How well clusters agree with classes (Zhang et al. 2011, M3IC, section 4.3)."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from bagwise._arrays import Floats, Integers


def clustering_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    r"""Return the share of bags in the right cluster, clusters and classes matched for the best.

    .. math:: \frac{1}{n} \sum_{i=1}^n \mathbb{1}[y_i = \mathrm{map}(c_i)]

    where map is the one-to-one matching of clusters with classes that gives the largest value
    (Hungarian method). If there are more clusters than classes, the clusters left over match
    nothing.

    Parameters
    ----------
    y_true : array-like of shape (n_bags,)
        Classes, of any type.
    y_pred : array-like of shape (n_bags,)
        Clusters, of any type.

    Returns
    -------
    accuracy : float
        Between 0 and 1; 1 is best.

    Examples
    --------
    >>> from bagwise.metrics import clustering_accuracy
    >>> clustering_accuracy([1, 1, 2, 2, 3, 3], [2, 2, 3, 3, 1, 1])
    1.0
    >>> clustering_accuracy(["a", "a", "a", "b"], [0, 0, 1, 1])
    0.75
    """
    counts = _contingency("clustering_accuracy", y_true, y_pred)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return float(counts[rows, columns].sum() / counts.sum())


def normalized_mutual_information(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    r"""Return the mutual information of classes and clusters over the mean of their entropies.

    .. math::
        \frac{I(X, Y)}{\sqrt{H(X) H(Y)}} =
        \frac{\sum_{p,q} n_{pq} \log \frac{n\, n_{pq}}{n_p \hat n_q}}
             {\sqrt{(\sum_p n_p \log \frac{n_p}{n}) (\sum_q \hat n_q \log \frac{\hat n_q}{n})}}

    The mean is the geometric one. The value is 0 if all bags are in one cluster or one class.

    Parameters
    ----------
    y_true : array-like of shape (n_bags,)
        Classes, of any type.
    y_pred : array-like of shape (n_bags,)
        Clusters, of any type.

    Returns
    -------
    information : float
        Between 0 and 1; 1 is best.

    Notes
    -----
    Equation (34) of the paper lacks the factor :math:`n` inside the upper logarithm. Where both
    sides are one group, scikit-learn's function of nearly this name returns 1; with
    ``average_method="geometric"`` they agree everywhere else.

    Examples
    --------
    The two examples of the paper:

    >>> from bagwise.metrics import normalized_mutual_information
    >>> round(normalized_mutual_information([1, 1, 2, 2, 3, 3], [2, 2, 3, 3, 1, 1]), 12)
    1.0
    >>> normalized_mutual_information([1, 1, 2, 2, 3, 3], [3, 3, 3, 3, 3, 3])
    0.0
    """
    counts = _contingency("normalized_mutual_information", y_true, y_pred)
    if min(counts.shape) == 1:
        return 0.0
    joint = counts / counts.sum()
    of_class, of_cluster = joint.sum(axis=1), joint.sum(axis=0)
    seen = joint > 0
    information = float(
        np.sum(joint[seen] * np.log(joint[seen] / np.outer(of_class, of_cluster)[seen]))
    )
    mean_entropy = np.sqrt(_neg_entropy(of_class) * _neg_entropy(of_cluster))
    return float(np.clip(information / mean_entropy, 0.0, 1.0))


def _neg_entropy(shares: Floats) -> float:
    return float(np.sum(shares * np.log(shares)))


def _contingency(name: str, y_true: ArrayLike, y_pred: ArrayLike) -> Integers:
    """Return how many bags each pair of class (row) and cluster (column) has."""
    truth, predicted = _vector(name, "y_true", y_true), _vector(name, "y_pred", y_pred)
    if len(truth) != len(predicted):
        msg = (
            f"{name} needs y_true and y_pred of the same length. "
            f"Got {len(truth)} and {len(predicted)}."
        )
        raise ValueError(msg)
    classes, rows = np.unique(truth, return_inverse=True)
    clusters, columns = np.unique(predicted, return_inverse=True)
    counts = np.zeros((len(classes), len(clusters)), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    return counts


def _vector(name: str, parameter: str, values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or not len(array):
        msg = f"{name} needs {parameter} with one label per bag. Got shape {array.shape}."
        raise ValueError(msg)
    return array
