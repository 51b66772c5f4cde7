"""Rectangles that hold an instance of every positive bag and few of negative ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._progress import counted, report
from bagwise._threads import checkpoint
from bagwise.solvers._checks import (
    check_at_least,
    check_positive,
    checked_array,
    checked_signs,
    checked_weights,
)
from bagwise.solvers._key_scores import best_in_bags, key_scores
from bagwise.solvers._result import Result, Status

_SAME = 1e-10  # relative difference of rows or features that are as good
_HALVINGS = 60
_MOST_STARTS = 16  # rows of the smallest bag at which rectangles begin


@dataclass(frozen=True, kw_only=True, eq=False)
class RectangleResult(Result):
    """A rectangle: ``x`` holds its lower bounds and, behind them, its upper bounds.

    Features that do not matter have none: minus infinity and infinity.

    Parameters
    ----------
    features : ndarray of int
        Features with bounds.
    chosen : ndarray of int of shape (n_positive_bags,)
        The row of each positive bag around which it was grown.
    """

    features: Integers
    chosen: Integers


def grow_rectangle(
    rows: ArrayLike,
    offsets: ArrayLike,
    sign: ArrayLike,
    weight: ArrayLike = 1.0,
    *,
    margin: float = 1.0,
    max_iter: int = 100,
) -> RectangleResult:
    r"""Find a small rectangle around a row of each positive bag, on features that exclude others.

    Minimised is the sum of widths :math:`\sum_k \max_i x_{i k} - \min_i x_{i k}` over the choice
    of a row :math:`x_i` of each positive bag. First all features count. Rounds of two steps follow:

    * Grow. Begin with the row that is nearest to a point. In turn add a row of a further bag, the
      one that widens the rectangle least, and choose the rows of all bags again, each beside those
      of the others, until none changes.
    * Discriminate. A feature excludes a row of a negative bag if this lies outside by ``margin`` at
      least; a row that no feature excludes so is excluded by the feature in which it lies out
      furthest. Keep the feature that excludes the most weight, then the one that excludes the
      most of what is left, and so on; drop the others.

    They end when no feature is dropped. Where the new rows have a larger rectangle than those of
    the round before, these are kept.

    A first rectangle begins at the middle of what all have to reach. Every rectangle holds a row of
    the smallest positive bag, so others begin at each of these, at most 16. Small rectangles lie
    where all bags have rows. The last one does not grow: it holds the likely key rows of positive
    bags (`key_scores`), which lie away from those of negative bags, and only drops features. Of all
    the one counts that rows of the least weight of negative bags are in; of those the smallest.

    Parameters
    ----------
    rows : array-like of shape (n_rows, n_features)
        Instances, bag after bag, with features whose widths can be added.
    offsets : array-like of int of shape (n_bags + 1,)
        Rows at which bags begin.
    sign : array-like of shape (n_bags,)
        +1 or -1; there are both.
    weight : array-like of shape (n_bags,)
        What each negative bag weighs, and each of its rows.
    margin : float
        How far outside a row is clearly excluded.
    max_iter : int
        Most rounds, at least 1.

    Returns
    -------
    RectangleResult
        The rectangle, its features and the rows inside; ``ends`` has the sums of widths of all.
    """
    name, started = "grow_rectangle", perf_counter()
    ends = np.asarray(offsets, np.int64)
    points = checked_array(name, "rows", rows, (int(ends[-1]), None))
    is_positive = checked_signs(name, sign, len(ends) - 1) > 0
    weights = checked_weights(name, weight, len(is_positive))
    check_positive(name, "margin", margin)
    check_at_least(name, "max_iter", max_iter, 1)
    is_inside = np.repeat(is_positive, np.diff(ends))
    inside = np.flatnonzero(is_inside)
    bag = np.repeat(np.arange(is_positive.sum()), np.diff(ends)[is_positive])
    task = _Task(
        points[is_inside], bag, points[~is_inside], np.repeat(weights, np.diff(ends))[~is_inside],
        np.repeat(np.arange(len(weights)), np.diff(ends))[~is_inside], margin, max_iter,
    )  # fmt: skip
    keys = task.first_of(_likely_keys(points, ends, np.flatnonzero(is_positive), weights)[inside])
    ways: list[Callable[[Integers], Integers]] = [partial(task.grow, s) for s in task.starts()]
    ways.append(lambda _: keys)
    found = list(counted(map(task.iterate, ways), len(ways), "start"))
    least = min(rectangle.reached for rectangle in found) + _SAME * float(weights.sum())
    best = min((one for one in found if one.reached <= least), key=lambda one: one.size)
    bounds = np.repeat([-np.inf, np.inf], points.shape[1]).reshape(2, -1)
    bounds[:, best.features] = best.bounds
    return RectangleResult(
        objective=best.size, status=best.status, n_iter=len(best.history),
        history=np.array(best.history), solve_time=perf_counter() - started, x=bounds.ravel(),
        ends=np.array([one.size for one in found]),
        features=best.features, chosen=inside[best.chosen],
    )  # fmt: skip


class _Found(NamedTuple):
    """A rectangle of some features, the rows inside, and the weight of bags that reach it."""

    features: Integers
    bounds: Floats
    chosen: Integers
    reached: float
    history: list[float]
    status: Status

    @property
    def size(self) -> float:
        """The sum of widths."""
        return self.history[-1]


class _Task(NamedTuple):
    """Rows of positive bags and of negative ones, and what rounds need to know."""

    rows: Floats
    bag: Integers
    outside: Floats
    outside_weight: Floats
    outside_bag: Integers
    margin: float
    max_iter: int

    @property
    def middle(self) -> Floats:
        """The middle of what all rectangles have to reach."""
        first = np.flatnonzero(np.diff(self.bag, prepend=-1))
        reach = np.maximum.reduceat(self.rows, first).min(axis=0)
        middle: Floats = 0.5 * (reach + np.minimum.reduceat(self.rows, first).max(axis=0))
        return middle

    def starts(self) -> Floats:
        """Return the points at which rectangles begin, in an order that values decide."""
        middle = self.middle
        order = _central_first(self.rows - middle, self.bag)
        sizes = np.bincount(self.bag)
        small = order[sizes[self.bag[order]] == sizes.min()][: min(int(sizes.min()), _MOST_STARTS)]
        return np.vstack([middle, self.rows[small]])

    def first_of(self, is_likely: Booleans) -> Integers:
        """Return one of the likely rows of each bag; of several, their values decide."""
        order = _central_first(self.rows - self.middle, self.bag)
        order = order[is_likely[order]]
        return order[np.unique(self.bag[order], return_index=True)[1]]

    def grow(self, start: Floats, features: Integers) -> Integers:
        """Return the row of each bag in a small rectangle of some features."""
        return _grow(self.rows[:, features], self.bag, start[features])

    def iterate(self, choose: Callable[[Integers], Integers]) -> _Found:
        """Choose a row of each bag, given the features that count, and drop features, by turns."""
        features, status = np.arange(self.rows.shape[1]), Status.MAX_ITER
        chosen, history = None, []
        for _ in range(self.max_iter):
            candidates = self.rows[:, features]
            rows = choose(features)
            if chosen is None or _size(candidates[rows]) < _size(candidates[chosen]):
                chosen = rows
            lower, upper = candidates[chosen].min(axis=0), candidates[chosen].max(axis=0)
            outside = self.outside[:, features]
            kept = _discriminate(outside, self.outside_weight, lower, upper, self.margin)
            features, lower, upper = features[kept], lower[kept], upper[kept]
            history.append(float((upper - lower).sum()))
            report("round", len(history), objective=history[-1])
            if kept.all():
                status = Status.CONVERGED
                break
        assert chosen is not None  # there is a round at least
        outside = self.outside[:, features]
        is_in = ((outside >= lower) & (outside <= upper)).all(axis=1)
        first = np.unique(self.outside_bag[is_in], return_index=True)[1]
        reached = float(self.outside_weight[is_in][first].sum())
        return _Found(features, np.array([lower, upper]), chosen, reached, history, status)


def _likely_keys(rows: Floats, offsets: Integers, positive: Integers, weight: Floats) -> Booleans:
    """Tell which rows are likely key rows of their bags."""
    center = rows.mean(axis=0)
    centred = rows - center

    def project(coef: Floats) -> Floats:
        return np.asarray(centred @ (coef @ centred))

    return best_in_bags(key_scores(project, offsets, positive, weight), offsets)


def _size(rows: Floats) -> float:
    return float(np.ptp(rows, axis=0).sum())


def _grow(rows: Floats, bag: Integers, start: Floats) -> Integers:
    """Return the row of each bag in a small rectangle, grown from the row nearest to the start."""
    from bagwise.solvers.density._rectangle_kernels import choose_again, cover_next, enclose

    order = _central_first(rows - start, bag)
    ordered, offsets = rows[order], np.flatnonzero(np.diff(bag[order], prepend=-1, append=-1))
    n_bags, n_features = len(offsets) - 1, rows.shape[1]
    chosen, least, ahead = np.full(n_bags, -1), np.zeros(len(rows)), np.zeros(n_bags)
    chosen[0] = 0
    bounds, owners = np.empty((4, n_features)), np.empty((2, n_features), np.int64)
    enclose(ordered, chosen, bounds, owners)
    state, same = (chosen, bounds, owners, least, ahead), _SAME * _size(rows)
    while (chosen < 0).any():
        checkpoint()
        cover_next(ordered, offsets, *state, same)
        while choose_again(ordered, offsets, *state, same):
            checkpoint()
    found = np.empty_like(chosen)
    found[bag[order[chosen]]] = order[chosen]
    return found


def _central_first(rows: Floats, bag: Integers) -> Integers:
    """Return an order of rows, bag after bag, that their values decide: the least ones first."""
    starts = np.flatnonzero(np.diff(bag, prepend=-1))
    distance = np.einsum("ij,ij->i", rows, rows)
    other = np.einsum("ij,j->i", rows, np.cos(np.arange(rows.shape[1])))  # tells equals apart
    rank = np.unique(distance + 1j * other, return_inverse=True)[1].reshape(-1)
    first, total = np.minimum.reduceat(rank, starts), np.add.reduceat(rank, starts)
    return np.lexsort((rank, bag, total[bag], first[bag]))


def _discriminate(
    rows: Floats, weight: Floats, lower: Floats, upper: Floats, margin: float
) -> Booleans:
    """Return for each feature whether it is kept: all, if none excludes a row."""
    from bagwise.solvers.density._rectangle_kernels import fill_excluded, select_features

    excluded = np.empty(rows.shape, np.bool_)
    fill_excluded(rows, lower, upper, margin, excluded)
    checkpoint()
    kept = select_features(excluded, weight, _SAME * float(weight.sum()))
    return kept if kept.any() else ~kept


def expanded_bounds(
    values: Floats, weight: Floats, *, tau: float, epsilon: float, least: float = 0.0
) -> tuple[Floats, Floats]:
    r"""Return bounds of features beyond which a further value is to be expected but seldom.

    The density of a feature is a mean of normal densities around its values. Their standard
    deviation is such that one in the middle between the least and the greatest value has the share
    ``tau`` of its mass between these. Bounds have the mass ``epsilon / 2`` beyond them; they
    enclose all values.

    Parameters
    ----------
    values : ndarray of shape (n_values, n_features)
        Values.
    weight : ndarray of shape (n_values,)
        Weights in the means.
    tau : float
        Between 0 and 1.
    epsilon : float
        Between 0 and 1.
    least : float
        How far beyond all values the bounds are at least.

    Returns
    -------
    lower, upper : ndarray of shape (n_features,)
        The bounds.
    """
    width = 0.5 * np.ptp(values, axis=0) / float(ndtri(0.5 + 0.5 * tau))
    share = weight / weight.sum()
    return (
        -_upper_bounds(-values, share, width, 0.5 * epsilon, least),
        _upper_bounds(values, share, width, 0.5 * epsilon, least),
    )


def _upper_bounds(
    values: Floats, share: Floats, width: Floats, tail: float, least: float
) -> Floats:
    """Return where a mean of normal densities has the mass ``tail`` beyond, by bisection."""
    low = values.max(axis=0)
    high = low - width * float(ndtri(tail))
    scale = np.maximum(width, np.finfo(float).tiny)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        is_beyond = share @ ndtr((values - middle) / scale) > tail
        low, high = np.where(is_beyond, middle, low), np.where(is_beyond, high, middle)
    return np.asarray(np.maximum(high, values.max(axis=0) + least))
