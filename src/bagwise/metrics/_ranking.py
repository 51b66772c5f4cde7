"""How well scores rank the labels of each bag above the others (Schapire & Singer 2000)."""

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Booleans, Floats


def one_error(y_true: ArrayLike, y_score: ArrayLike) -> float:
    r"""Return the share of bags whose top-ranked label is not in their list.

    .. math:: \frac{1}{n} \sum_{i=1}^n \mathbb{1}\Big[\arg\max_l s_{il} \notin Y_i\Big]

    Labels that share the top score with a wrong one are no help: ties count as errors unless all
    labels in the tie are right.

    Parameters
    ----------
    y_true : array-like of shape (n_bags, n_labels)
        Indicator matrix of the label lists. Bags without a label are left out.
    y_score : array-like of shape (n_bags, n_labels)
        The higher, the more likely.

    Returns
    -------
    error : float
        Between 0 and 1; 0 is best.

    Examples
    --------
    >>> from bagwise.metrics import one_error
    >>> one_error([[1, 0, 0, 1], [0, 1, 0, 0]], [[0.9, 0.8, 0.1, 0.3], [0.2, 0.1, 0.9, 0.3]])
    0.5
    """
    lists, scores = _validated("one_error", y_true, y_score)
    top = scores == scores.max(axis=1, keepdims=True)
    return float(np.mean(np.any(top & ~lists, axis=1)))


def coverage(y_true: ArrayLike, y_score: ArrayLike) -> float:
    r"""Return how far one goes down the ranking, on average, to meet all labels of a bag.

    .. math:: \frac{1}{n} \sum_{i=1}^n \Big(\max_{l \in Y_i} \mathrm{rank}_i(l) - 1\Big)

    Ranks begin at 1, so the value is 0 if each bag has one label, ranked first. A label's rank is
    the number of labels that score as high or higher: ties count against it.

    Parameters
    ----------
    y_true : array-like of shape (n_bags, n_labels)
        Indicator matrix of the label lists. Bags without a label are left out.
    y_score : array-like of shape (n_bags, n_labels)
        The higher, the more likely.

    Returns
    -------
    steps : float
        Between the mean length of the lists minus 1, which is best, and ``n_labels - 1``.

    Notes
    -----
    :func:`sklearn.metrics.coverage_error` is this plus 1. Table 4 of the MIMLCA paper refers to
    Jin, Wang & Zhou (2009) for the definition and does not say where ranks begin; other papers of
    Zhou on such data subtract 1, as here, and the figures are possible either way.

    Examples
    --------
    >>> from bagwise.metrics import coverage
    >>> coverage([[1, 0, 0, 1], [0, 1, 0, 0]], [[0.9, 0.8, 0.1, 0.3], [0.2, 0.1, 0.9, 0.3]])
    2.5
    """
    lists, scores = _validated("coverage", y_true, y_score)
    lowest = np.where(lists, scores, np.inf).min(axis=1, keepdims=True)
    return float(np.mean(np.sum(scores >= lowest, axis=1) - 1))


def average_precision(y_true: ArrayLike, y_score: ArrayLike) -> float:
    r"""Return how pure the ranking is above each label of a bag, on average.

    .. math::
        \frac{1}{n} \sum_{i=1}^n \frac{1}{|Y_i|} \sum_{l \in Y_i}
        \frac{|\{l' \in Y_i : \mathrm{rank}_i(l') \le \mathrm{rank}_i(l)\}|}{\mathrm{rank}_i(l)}

    A label's rank is the number of labels that score as high or higher: ties count against it.

    Parameters
    ----------
    y_true : array-like of shape (n_bags, n_labels)
        Indicator matrix of the label lists. Bags without a label are left out.
    y_score : array-like of shape (n_bags, n_labels)
        The higher, the more likely.

    Returns
    -------
    precision : float
        Between 0 and 1; 1 is best.

    Notes
    -----
    :func:`sklearn.metrics.label_ranking_average_precision_score` is the same except that it
    counts bags without a label as perfectly ranked.

    Examples
    --------
    >>> from bagwise.metrics import average_precision
    >>> scores = [[0.9, 0.8, 0.1, 0.3], [0.2, 0.1, 0.9, 0.3]]
    >>> round(average_precision([[1, 0, 0, 1], [0, 1, 0, 0]], scores), 4)
    0.5417
    """
    lists, scores = _validated("average_precision", y_true, y_score)
    total = 0.0
    for own, score in zip(lists, scores, strict=True):
        of_own = np.sort(score[own])
        rank = len(score) - np.searchsorted(np.sort(score), of_own, side="left")
        rank_inside = len(of_own) - np.searchsorted(of_own, of_own, side="left")
        total += float(np.mean(rank_inside / rank))
    return total / len(lists)


def _validated(name: str, y_true: ArrayLike, y_score: ArrayLike) -> tuple[Booleans, Floats]:
    """Return lists and scores of the bags that have a label."""
    truth = np.asarray(y_true.toarray() if hasattr(y_true, "toarray") else y_true)
    scores = np.asarray(y_score, dtype=np.float64)
    if truth.ndim != 2 or truth.shape != scores.shape:
        msg = (
            f"{name} needs y_true and y_score of the same shape (n_bags, n_labels). "
            f"Got {truth.shape} and {scores.shape}."
        )
        raise ValueError(msg)
    if not np.isin(truth, (0, 1)).all():
        msg = f"{name} needs y_true of zeros and ones. Got {np.unique(truth)[:5].tolist()}."
        raise ValueError(msg)
    bad = np.flatnonzero(np.isnan(scores).any(axis=1))
    if len(bad):
        msg = f"{name} needs y_score without NaN. Bag {bad[0]} has one."
        raise ValueError(msg)
    lists = truth.astype(bool)
    listed = lists.any(axis=1)
    if not listed.any():
        msg = f"{name} needs at least one bag with a label. Got {len(lists)} bags without."
        raise ValueError(msg)
    return lists[listed], scores[listed]
