"""Rectangles that are cut out of all space, bound by bound, where negative bags have rows."""

from collections.abc import Iterator
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats, Integers
from bagwise._progress import report
from bagwise._threads import checkpoint
from bagwise.solvers._checks import (
    check_at_least,
    check_positive,
    checked_array,
    checked_signs,
    checked_weights,
)
from bagwise.solvers._result import Result, Status

_SAME = 1e-10  # shares, and relative differences of values, that are equal
_BLOCK = 64  # features that are looked at together


def cut_rectangle(
    rows: ArrayLike,
    offsets: ArrayLike,
    sign: ArrayLike,
    weight: ArrayLike = 1.0,
    *,
    least_gain: float = 0.02,
    max_iter: int = 100,
) -> Result:
    r"""Cut a rectangle out of all space that positive bags reach and negative bags do not.

    A bag reaches it if one of its rows lies inside. Minimised is the share of negative bags that
    reach it plus the share of positive bags that do not, by weight; it is 1 for all space. In turn
    the bound is added, of a feature and from below or above, that lowers the sum most, until none
    does so by ``least_gain``. A bound lies in the middle between the last bag that is to reach the
    rectangle and the next one. Of bounds that are as good the one of the first feature is taken,
    from below before from above, and of these the one that the fewest bags reach.

    Parameters
    ----------
    rows : array-like of shape (n_rows, n_features)
        Instances, bag after bag.
    offsets : array-like of int of shape (n_bags + 1,)
        Rows at which bags begin.
    sign : array-like of shape (n_bags,)
        +1 or -1; there are both.
    weight : array-like of shape (n_bags,)
        What each bag weighs in its share.
    least_gain : float
        By how much a further bound lowers the sum at least.
    max_iter : int
        Most bounds, at least 1.

    Returns
    -------
    Result
        ``x`` holds the lower bounds and, behind them, the upper bounds; where the rectangle is open
        they are minus infinity and infinity. ``history`` has the sum for all space and after each
        bound.
    """
    name, started = "cut_rectangle", perf_counter()
    ends = np.asarray(offsets, np.int64)
    points = checked_array(name, "rows", rows, (int(ends[-1]), None))
    is_positive = checked_signs(name, sign, len(ends) - 1) > 0
    weights = checked_weights(name, weight, len(is_positive))
    check_positive(name, "least_gain", least_gain)
    check_at_least(name, "max_iter", max_iter, 1)
    share = np.zeros(len(weights))
    for mine, side in ((is_positive, 1.0), (~is_positive, -1.0)):
        share[mine] = side * weights[mine] / weights[mine].sum()
    same = _SAME * float(np.ptp(points, axis=0).max(initial=0.0))
    bag = np.repeat(np.arange(len(weights)), np.diff(ends))
    inside = np.arange(len(points))
    bounds = np.repeat([-np.inf, np.inf], points.shape[1]).reshape(2, -1)
    history, status = [1.0], Status.MAX_ITER
    for _ in range(max_iter):
        best = _Cut(1.0 - history[-1] + least_gain, -1, 1.0, 0.0)
        for cut in _cuts(points, inside, bag[inside], share, same):
            if cut.ahead > best.ahead + _SAME:
                best = cut
        if best.feature < 0:
            status = Status.CONVERGED
            break
        bounds[int(best.side < 0), best.feature] = best.side * best.level
        inside = inside[best.side * points[inside, best.feature] >= best.level]
        history.append(1.0 - best.ahead)
        report("round", len(history) - 1, objective=history[-1])
    return Result(
        objective=history[-1], status=status, n_iter=len(history) - 1, history=np.array(history),
        solve_time=perf_counter() - started, x=bounds.ravel(),
    )  # fmt: skip


class _Cut(NamedTuple):
    """A bound from below (side 1) or above (-1), and by how much the share of positives leads."""

    ahead: float
    feature: int
    side: float
    level: float


def _cuts(
    points: Floats, inside: Integers, bag: Integers, share: Floats, same: float
) -> Iterator[_Cut]:
    """Yield the best bound of each block of features, from below and from above."""
    first = np.flatnonzero(np.diff(bag, prepend=-1))
    shares = share[bag[first]]
    for start in range(0, points.shape[1], _BLOCK):
        values = points[inside, start : start + _BLOCK]
        for side in (1.0, -1.0):
            checkpoint()
            best = np.maximum.reduceat(side * values, first)
            order = np.argsort(-best, axis=0, kind="stable")
            best = np.take_along_axis(best, order, axis=0)
            ahead = np.cumsum(shares[order], axis=0)[:-1]
            ahead[best[:-1] - best[1:] <= same] = -np.inf
            most = ahead.max(axis=0, initial=-np.inf)
            k = int((most >= most.max() - _SAME).argmax())
            if most[k] > -np.inf:
                i = int((ahead[:, k] >= most[k] - _SAME).argmax())
                inner, outer = float(best[i, k]), float(best[i + 1, k])
                middle = 0.5 * (inner + outer)
                level = middle if middle > outer else inner  # which rounding may make the same
                yield _Cut(float(most[k]), start + k, side, level)
