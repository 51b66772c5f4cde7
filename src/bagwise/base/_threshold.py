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

    It lies in the middle between two scores. Of several that come as close to a millionth of all
    weight it is the one nearest to 0. Scores that differ by at most ``resolution`` are taken for
    equal; None if all are.
    """
    order = np.argsort(scores, kind="stable")
    level, heavy = scores[order], weight[order]
    apart = np.diff(level) > resolution
    if not apart.any():
        return None
    middle = 0.5 * (level[:-1] + level[1:])[apart]
    above = weight.sum() - np.cumsum(heavy)[:-1][apart]
    off = np.abs(above - weight[sign > 0].sum())
    good = off <= off.min() + 1e-6 * weight.sum()
    return float(middle[np.where(good, np.abs(middle), np.inf).argmin()])
