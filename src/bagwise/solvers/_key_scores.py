"""Which instances of positive bags are likely to be their key instances, without a model."""

from collections.abc import Callable

import numpy as np

from bagwise._arrays import Booleans, Floats, Integers
from bagwise.bags import segment_max, segment_rows

SAME_SCORE = 1e-9  # of the largest score: differences that are rounding
_ROUNDS = 50  # which are more than enough


def mean_scores(
    project: Callable[[Floats], Floats], offsets: Integers, positive: Integers, weight: Floats
) -> Floats:
    """Return how far instances lie in the direction from the negative to the positive mean.

    Parameters
    ----------
    project : callable
        Takes a coefficient for each instance, returns the inner product of every instance with the
        sum of all times their coefficients.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    positive : ndarray of int
        The positive bags.
    weight : ndarray of shape (n_bags,)
        Weights of the bags.
    """
    every = np.ones(offsets[-1], bool)
    scores = project(_positive_mean(every, offsets, positive, weight))
    scores -= project(_negative_mean(offsets, positive, weight))
    return scores


def key_scores(
    project: Callable[[Floats], Floats], offsets: Integers, positive: Integers, weight: Floats
) -> Floats:
    r"""Return how far instances lie in the direction from the negatives to likely key instances.

    Key instances :math:`x_i`, one of each positive bag, are sought such that their weighted mean
    :math:`k` in feature space is far from the mean :math:`n` of all instances of negative bags. At
    first :math:`k` is the mean of the bags' means. Then :math:`x_i` is the instance of bag
    :math:`i` that lies furthest in the direction :math:`k - n`, and :math:`k` the mean of these,
    until none of them changes. By the inequality of Cauchy and Schwarz, :math:`\|k - n\|` never
    falls. Nothing depends on the order of bags and instances: of instances that lie equally far,
    all are taken, with equal parts.

    Parameters
    ----------
    project : callable
        As in `mean_scores`.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    positive : ndarray of int
        The positive bags.
    weight : ndarray of shape (n_bags,)
        Weights of the bags.

    Returns
    -------
    ndarray of shape (n_instances,)
        Inner products with :math:`k - n`, divided by the largest absolute value.
    """
    away = project(_negative_mean(offsets, positive, weight))
    chosen, scores = np.ones(offsets[-1], bool), np.empty(0)
    for _ in range(_ROUNDS):
        del scores  # which are many
        scores = project(_positive_mean(chosen, offsets, positive, weight))
        scores -= away
        scores /= max(scores.max(), -scores.min()) or 1.0
        before, chosen = chosen, best_in_bags(scores, offsets)
        in_positive = _rows(offsets, positive)
        if np.array_equal(chosen[in_positive], before[in_positive]):
            break
    return scores


def key_direction(
    rows: Floats, offsets: Integers, positive: Integers, weight: Floats
) -> Floats | None:
    """Return the direction from the mean of the negatives to the mean of likely key instances.

    Parameters
    ----------
    rows : ndarray of shape (n_instances, n_features)
        Instances, bag after bag.
    offsets, positive, weight
        As in `key_scores`.

    Returns
    -------
    ndarray of shape (n_features,) or None
        Of length 1; None if both means are one point.
    """

    def project(coef: Floats) -> Floats:
        return np.asarray(rows @ (coef @ rows))

    is_key = best_in_bags(key_scores(project, offsets, positive, weight), offsets)
    coef = _positive_mean(is_key, offsets, positive, weight)
    coef -= _negative_mean(offsets, positive, weight)
    along = coef @ rows
    length = float(np.linalg.norm(along))
    return along / length if length > 1e-9 * float(np.abs(rows).max()) else None


def best_in_bags(scores: Floats, offsets: Integers) -> Booleans:
    """Tell which instances are the best of their bag: several where scores up to 1 are equal."""
    best = segment_max(scores, offsets[:-1], offsets[1:])
    is_best: Booleans = scores >= np.repeat(best - SAME_SCORE, np.diff(offsets))
    return is_best


def _rows(offsets: Integers, bags: Integers) -> Integers:
    """Return the instances of some bags."""
    return segment_rows(offsets[:-1][bags], offsets[1:][bags])


def _positive_mean(
    chosen: Booleans, offsets: Integers, positive: Integers, weight: Floats
) -> Floats:
    """Return coefficients: the mean over positive bags of the means of the instances chosen."""
    index = _rows(offsets, positive)
    index = index[chosen[index]]
    bag = np.searchsorted(offsets, index, side="right") - 1
    share = weight / np.maximum(np.bincount(bag, minlength=len(weight)), 1)
    coef = np.zeros(len(chosen))
    coef[index] = share[bag]
    coef /= coef.sum() or 1.0
    return coef


def _negative_mean(offsets: Integers, positive: Integers, weight: Floats) -> Floats:
    """Return coefficients: the mean of all instances of negative bags."""
    share = weight.astype(np.float64)
    share[positive] = 0.0
    coef = np.repeat(share, np.diff(offsets))
    coef /= coef.sum() or 1.0
    return coef
