"""Axis-parallel rectangles by iterated discrimination (Dietterich and others 1997)."""

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bagwise._arrays import Floats, Integers, as_dense
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, BagSource, Chunk, bag_digests, segment_mean
from bagwise.base import (
    AsymmetricClassifier,
    BagTags,
    FrequencyThreshold,
    Summary,
    Target,
    documented,
    one_vs_rest,
    ranked_right,
)
from bagwise.solvers import Certificate, cut_rectangle, expanded_bounds, grow_rectangle

_LEAST = 1e-6  # how far bounds are moved at least, so that the chosen instances are inside
_SURE = 1e9  # score of all instances where all bags have one sign
_N_FOLDS = 5  # of bags that are left out
_EQUAL = 1e-9  # shares that differ by less are equal
_PART = 0.5  # of how well the better rectangle tells training bags apart, for the other to count


@documented
class APR(FrequencyThreshold, AsymmetricClassifier):
    r"""A rectangle that positive bags reach and negative bags do not, grown or cut.

    A bag is positive if one of its instances lies in the axis-parallel rectangle
    :math:`l_k \le x_k \le u_k` of some of the features k. There are two ways to find it.

    To *grow* it is the iterated discrimination of [1]_, which looks for a minimum of the sum of
    widths

    .. math:: \min_{j(i)} \; \sum_k \Bigl(\max_{i : y_i = 1} x_{i j(i) k}
              - \min_{i : y_i = 1} x_{i j(i) k}\Bigr)

    over the choice of an instance j(i) of each positive bag; of the features those are kept that
    together exclude the instances of negative bags. Growing and discriminating take turns until no
    feature is dropped. This begins at the middle and at each instance of the smallest positive bag,
    at most 16. One more rectangle, of which features are dropped only, holds likely key instances:
    those that lie furthest in the direction from the mean of negative instances to the mean of
    themselves. The rectangle is taken that the fewest negative bags reach. Then the bounds are
    expanded by a density estimate of the chosen instances.

    To *cut* it means to look for a minimum of the share of negative bags that reach it plus the
    share of positive bags that do not, by weight:

    .. math:: \min_{l, u} \; \frac{1}{n_-} \sum_{i : y_i = -1} r_i
              + \frac{1}{n_+} \sum_{i : y_i = 1} (1 - r_i), \qquad
              r_i = \max_j \prod_k [l_k \le x_{ijk} \le u_k]

    It begins with all space. In turn the bound is added that lowers the sum most, in the middle
    between two bags, until none lowers it by 0.02. A side without a bound is open.

    An instance scores as
    :math:`\min_k \min(x_k - l_k, u_k - x_k) / s`, its distance to the nearest bound: positive
    inside the rectangle; outside, minus the largest distance beyond a bound. The unit s is the root
    of the mean variance of the features. A bag scores as its best instance.
    More than two classes are learned one against the rest.

    Parameters
    ----------
    search : {"best", "grow", "cut"}
        How to look for the rectangle. "best": grown or cut, whichever ranks bags better that are
        left out of a fit, a fifth at a time; but none that tells training bags apart less than half
        as well as the other, by the difference of the shares of positive and of negative bags that
        reach it. With "best" and "cut" bags left out of a fit also say whether the threshold has to
        move. "grow" is what was published.
    margin : float
        How far outside the rectangle, in units of s, an instance is clearly excluded. The smaller
        it is, the fewer features are kept.
    tau : float
        Width of the density estimate of a grown rectangle: a normal density around its middle has
        this share of its mass inside, for each feature. The larger, the less the bounds expand.
    epsilon : float
        Mass of the density of each feature beyond the expanded bounds, half of it on either side.
        The larger, the less the bounds expand; they never move inwards.
    |pos_label, n_jobs, verbose: fit|

    Attributes
    ----------
    lower_ : ndarray of shape (n_outputs, n_features)
        Lower bounds of the rectangle of each binary problem; minus infinity for features that were
        dropped.
    upper_ : ndarray of shape (n_outputs, n_features)
        Upper bounds; infinity for features that were dropped.
    scale_ : float
        The unit s.
    cut_ : ndarray of bool of shape (n_outputs,)
        Whether the rectangle of each binary problem was cut; the others were grown.
    |classes_, multilabel_, pos_label_, intercept_shift_: frequency|
    |n_features_in_, feature_names_in_|
    result_ : Certificate
        Of a grown rectangle the sum of widths above, of the features that were kept and before the
        expansion; of a cut one the sum of shares.
    n_iter_ : int
        Rounds of growing and discriminating, or bounds that were cut, summed over outputs.

    See Also
    --------
    DiverseDensity : A point with a scale for each feature, in place of a rectangle.

    Notes
    -----
    Widths of different features are added up, so features ought to be of comparable size.

    A grown rectangle holds an instance of every positive bag, whatever the cost: one that is far
    out makes it so wide that negative bags reach it too. A cut one leaves such bags out. But it has
    few bounds, and where a concept is narrow in many features, as in the Musk data, growing is far
    better. Training bags do not tell which of both is the case: a grown rectangle of many features
    hardly ever holds instances of negative ones.

    The smallest rectangle may lie where all bags have instances, if key instances are further out.
    The one around likely key instances is larger then, but fewer negative bags reach it.

    A rectangle grows bag by bag; after each, all bags choose their instances again. Only those
    whose instances lie on a bound can gain by that, and only they are looked at.

    References
    ----------
    .. [1] T. G. Dietterich, R. H. Lathrop, T. Lozano-Perez: Solving the multiple instance problem
       with axis-parallel rectangles. Artificial Intelligence 89, 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.density import APR
    >>> rng = np.random.default_rng(0)
    >>> bags = [10.0 * rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] = 5.0 + 0.1 * rng.normal(size=2)
    >>> model = APR().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.key_instances(bags[1::2])
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """

    _hides_nan = True  # in features that are not used

    _summary: ClassVar[Summary] = Summary(
        assumption="an instance inside a rectangle makes a bag positive",
        objective="sum of the widths of a rectangle around an instance of each positive bag, or of "
        "the shares of bags on the wrong side of its bounds",
        cost="passes over the instances of positive bags, one for each of these bags at most, and "
        "over all for each bound; six times",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "search": [StrOptions({"best", "grow", "cut"})],
        "margin": [Interval(Real, 0, None, closed="neither")],
        "tau": [Interval(Real, 0, 1, closed="neither")],
        "epsilon": [Interval(Real, 0, 1, closed="neither")],
        **AsymmetricClassifier._parameter_constraints,
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        search: str = "best",
        margin: float = 1.0,
        tau: float = 0.999,
        epsilon: float = 0.01,
        pos_label: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.search = search
        self.margin = margin
        self.tau = tau
        self.epsilon = epsilon
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        bags, signs, weight = _without_repeats(bags, target.signs, bag_weight)
        instances = as_dense(bags.instances)
        scale = _unit(instances, np.repeat(weight, bags.sizes))

        def solve(output: int) -> _Rectangle:
            return _solved(self, _Problem(bags, instances, signs[:, output], weight, scale))

        found = one_vs_rest(solve, target.n_outputs, self.n_jobs)
        return {
            "lower_": np.array([rectangle.lower for rectangle in found]),
            "upper_": np.array([rectangle.upper for rectangle in found]),
            "scale_": scale,
            "cut_": np.array([rectangle.is_cut for rectangle in found]),
            "result_": Certificate.total([rectangle.certificate for rectangle in found]),
        }

    @property
    def _knows_by_heart(self) -> bool:
        return self.search != "grow"  # of which the threshold is part of the published method

    def _settle(self) -> None:
        super()._settle()
        self.search = "cut" if self.cut_[0] else "grow"

    # --------------------------------------------------------------------------------- scores

    def _room(self, instances: Any, output: int) -> Floats:
        """Return the distance of instances to the nearest bound, negative outside."""
        return _room(instances, self.lower_[output], self.upper_[output], self.scale_)

    def _instance_outputs(self, bags: Bags) -> Floats:
        def score(chunk: Chunk) -> Floats:
            outputs = range(len(self.lower_))
            return np.column_stack([self._room(chunk.instances, k) for k in outputs])

        return self._shifted(self._side * BagSource(bags).concatenate(score))

    def _bag_outputs(self, bags: Bags) -> Floats:
        def score(chunk: Chunk) -> Floats:
            rooms = (self._room(chunk.instances, k) for k in range(len(self.lower_)))
            return np.column_stack([np.maximum.reduceat(room, chunk.starts) for room in rooms])

        return self._shifted(self._side * BagSource(bags).concatenate(score))

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(
            order_tolerance=1e-6,
            max_rule=True,
            asymmetric=True,
            scale_powers={},
            shift_invariant=True,
        )


def _without_repeats(bags: Bags, signs: Floats, weight: Floats) -> tuple[Bags, Floats, Floats]:
    """Return the bags with one of those that are the same, which weighs as much as all of these.

    Two of the same would hold each other fast when instances are chosen again, in whatever order
    theirs are. Metric learners, which return something for each instance, merge only bags of one
    order.
    """
    rows = as_dense(bags.instances)
    centred = Bags(rows - rows.mean(axis=0), bags.offsets)  # digests are of single precision
    keys = np.column_stack([bag_digests(centred), (signs > 0).astype(np.uint64)])
    _, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(bags):
        return bags, signs, weight
    return bags[first], signs[first], np.bincount(place.reshape(-1), weight).astype(np.float64)


def _unit(rows: Floats, weight: Floats) -> float:
    """Return the root of the mean variance of the features; 1 if all are constant."""
    share = weight / weight.sum()
    variance = float((share @ (rows - share @ rows) ** 2).mean())
    noise = 1e-12 * float(np.abs(rows).max())
    return np.sqrt(variance) if variance > noise * noise else 1.0


def _room(instances: Any, lower: Floats, upper: Floats, scale: float) -> Floats:
    """Return the distance of instances to the nearest bound, negative outside."""
    used = np.flatnonzero((lower > -np.inf) | (upper < np.inf))
    values = as_dense(instances[:, used])
    room = np.minimum(values - lower[used], upper[used] - values)
    return np.clip(room.min(axis=1, initial=np.inf) / scale, -_SURE, _SURE)


class _Rectangle(NamedTuple):
    """Bounds of a binary problem, and how they were found."""

    lower: Floats
    upper: Floats
    is_cut: bool
    certificate: Certificate


class _Problem(NamedTuple):
    """Bags of two signs, none twice, and the unit of their features."""

    bags: Bags
    instances: Floats
    sign: Floats
    weight: Floats
    scale: float

    def take(self, bags: Integers) -> "_Problem":
        """Return the same of some of the bags, in the same unit."""
        some = self.bags[bags]
        return self._replace(
            bags=some, instances=as_dense(some.instances), sign=self.sign[bags],
            weight=self.weight[bags],
        )  # fmt: skip

    def grow(self, model: APR) -> _Rectangle:
        """Return the rectangle of iterated discrimination, expanded."""
        found = grow_rectangle(
            self.instances, self.bags.offsets, self.sign, self.weight,
            margin=model.margin * self.scale, max_iter=self.bags.n_features + 1,
        )  # fmt: skip
        bounds = found.x.reshape(2, -1).copy()
        bounds[:, found.features] = expanded_bounds(
            self.instances[np.ix_(found.chosen, found.features)], self.weight[self.sign > 0],
            tau=model.tau, epsilon=model.epsilon, least=_LEAST * self.scale,
        )  # fmt: skip
        return _Rectangle(bounds[0], bounds[1], False, found.certificate)

    def cut(self, _: APR) -> _Rectangle:
        """Return the rectangle that is cut out of all space."""
        found = cut_rectangle(self.instances, self.bags.offsets, self.sign, self.weight)
        lower, upper = found.x.reshape(2, -1)
        return _Rectangle(lower, upper, True, found.certificate)

    def both(self, model: APR) -> tuple[_Rectangle, _Rectangle]:
        """Return a grown and a cut rectangle."""
        return self.grow(model), self.cut(model)

    def scores_of(self, found: tuple[_Rectangle, ...]) -> list[Floats]:
        """Return the scores of the bags by several rectangles."""
        return [self.scores(rectangle) for rectangle in found]

    def scores(self, rectangle: _Rectangle) -> Floats:
        """Return the scores of the bags."""
        room = _room(self.instances, rectangle.lower, rectangle.upper, self.scale)
        return np.asarray(np.maximum.reduceat(room, self.bags.offsets[:-1]))

    def lead(self, rectangle: _Rectangle) -> float:
        """Return how much larger a share of positive bags than of negative ones reaches it."""
        is_in = self.scores(rectangle) > 0
        held, reached = (
            float(np.average(is_in[mine], weights=self.weight[mine]))
            for mine in (self.sign > 0, self.sign < 0)
        )
        return held - reached

    def folds(self) -> Integers:
        """Return a fold for each bag, in each class as many of all.

        Bags are dealt out in the order of a mean over their instances. It is the same wherever the
        origin is and whatever the unit, and whatever the order of bags and instances.
        """
        along = self.instances @ np.cos(np.arange(self.bags.n_features)) / self.scale
        along -= along.mean()
        starts, stops = self.bags.offsets[:-1], self.bags.offsets[1:]
        place = segment_mean(along + along**2, starts, stops)  # squares: bags of one mean differ
        fold = np.zeros(len(self.bags), np.intp)
        for side in (-1.0, 1.0):
            mine = self.sign == side
            fold[mine] = np.argsort(np.argsort(place[mine], kind="stable")) % _N_FOLDS
        return fold

    def rankings(self, model: APR) -> tuple[float, float]:
        """Return the shares of pairs ranked right, grown and cut, each bag left out of a fit."""
        fold, scores = self.folds(), np.zeros((2, len(self.bags)))
        for k in np.unique(fold):
            left_out = np.flatnonzero(fold == k)
            found = self.take(np.flatnonzero(fold != k)).both(model)
            scores[:, left_out] = self.take(left_out).scores_of(found)
        grown, cut = (ranked_right(row, self.sign, self.weight) for row in scores)
        return grown, cut


def _solved(model: APR, problem: _Problem) -> _Rectangle:
    """Return the rectangle of a binary problem."""
    sign = problem.sign
    if (sign == sign[0]).all():
        bound = np.full(problem.bags.n_features, np.inf if sign[0] > 0 else -np.inf)
        return _Rectangle(-bound, bound, False, Certificate.solved())
    if model.search != "best":
        return problem.cut(model) if model.search == "cut" else problem.grow(model)
    grown, cut = problem.both(model)
    leads = problem.lead(grown), problem.lead(cut)
    if min(leads) < _PART * max(leads) - _EQUAL or min((sign > 0).sum(), (sign < 0).sum()) < 2:
        return cut if leads[1] > leads[0] + _EQUAL else grown
    ranked = problem.rankings(model)
    if abs(ranked[1] - ranked[0]) <= _EQUAL:
        ranked = leads
    return cut if ranked[1] > ranked[0] + _EQUAL else grown
