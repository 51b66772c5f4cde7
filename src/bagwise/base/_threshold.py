"""The score above which bags are called positive."""

import numpy as np

from bagwise._arrays import Floats


def best_threshold(scores: Floats, sign: Floats, weight: Floats, resolution: float = 0.0) -> float:
    """Return the threshold with the least weight of bags on the wrong side.

    It lies in the middle between two scores, or 1 beyond the last one. Of several that are as good
    to a millionth of all weight it is the one with the most room, then the lowest. Scores that
    differ by at most ``resolution`` are taken for equal. Bags that all have one sign have no
    threshold to learn: 0.
    """
    if (sign == sign[0]).all():
        return 0.0
    order = np.argsort(scores, kind="stable")
    level = scores[order]
    level = np.concatenate([[level[0] - 2.0], level, [level[-1] + 2.0]])
    wrong = np.concatenate([[0.0], np.cumsum((sign * weight)[order])])  # up to a constant
    room = np.diff(level)
    wrong[1:-1][room[1:-1] <= resolution] = np.inf
    good = wrong <= wrong.min() + 1e-6 * weight.sum()
    k = int(np.where(good, room, 0.0).argmax())
    return float(0.5 * (level[k] + level[k + 1]))


def matching_threshold(
    scores: Floats, sign: Floats, weight: Floats, resolution: float = 0.0
) -> float | None:
    """Return the threshold above which there is as much weight as the positive bags have.

    If more weight is on the wrong side there than by one sign for all bags, it is the next one,
    by weight above it, where that is not so; and if there is none, one with the least weight on the
    wrong side. It lies in the middle between two scores. Of several that are as good to a millionth
    of all weight it is the one nearest to 0. Scores that differ by at most ``resolution`` are taken
    for equal; None if all are.
    """
    order = np.argsort(scores, kind="stable")
    level, heavy = scores[order], (sign * weight)[order]
    apart = np.diff(level) > resolution
    if not apart.any():
        return None
    equal = 1e-6 * weight.sum()
    positive, negative = (float(weight[sign == side].sum()) for side in (1.0, -1.0))
    middle = 0.5 * (level[:-1] + level[1:])[apart]
    above = weight.sum() - np.cumsum(np.abs(heavy))[:-1][apart]
    wrong = negative + np.cumsum(heavy)[:-1][apart]
    good = wrong <= max(wrong.min(), min(positive, negative)) + equal
    off = np.where(good, np.abs(above - positive), np.inf)
    return float(middle[np.where(off <= off.min() + equal, np.abs(middle), np.inf).argmin()])


def ranked_right(scores: Floats, sign: Floats, weight: Floats, resolution: float = 0.0) -> float:
    """Return the share of pairs, by weight, in which the positive bag has the higher score.

    This is the area under the ROC curve. Pairs of equal scores count half; these are scores with no
    step of more than ``resolution`` between them. Without pairs it is chance: 0.5.
    """
    order = np.argsort(scores, kind="stable")
    place = np.append(0, np.cumsum(np.diff(scores[order]) > resolution))
    heavy = (sign * weight)[order]
    positive, negative = (np.bincount(place, np.maximum(side * heavy, 0.0)) for side in (1.0, -1.0))
    below = np.cumsum(negative) - 0.5 * negative
    pairs = positive.sum() * negative.sum()
    return float(positive @ below / pairs) if pairs > 0.0 else 0.5


def ranking_error(positive: float, negative: float) -> float:
    r"""Return the standard error of `ranked_right` where scores say nothing of signs.

    It is :math:`\sqrt{(p + q + 1) / (12 p q)}`, as in the test of Mann and Whitney; infinity where
    there are no pairs.

    Parameters
    ----------
    positive, negative : float
        The numbers p and q of bags of both signs, or their weights: how often they are there.
    """
    pairs = positive * negative
    return float(np.sqrt((positive + negative + 1.0) / (12.0 * pairs))) if pairs > 0.0 else np.inf
