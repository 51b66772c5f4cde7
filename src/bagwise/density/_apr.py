"""Axis-parallel rectangles by iterated discrimination (Dietterich and others 1997)."""

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bagwise._arrays import Floats, as_dense
from bagwise._compat import Interval
from bagwise.bags import Bags, BagSource, Chunk, bag_digests
from bagwise.base import (
    AsymmetricClassifier,
    BagTags,
    FrequencyThreshold,
    Summary,
    Target,
    documented,
    one_vs_rest,
)
from bagwise.solvers import Certificate, expanded_bounds, grow_rectangle

_LEAST = 1e-6  # how far bounds are moved at least, so that the chosen instances are inside
_SURE = 1e9  # score of all instances where all bags have one sign


@documented
class APR(FrequencyThreshold, AsymmetricClassifier):
    r"""A rectangle that positive bags reach and negative bags do not: iterated discrimination.

    A bag is positive if one of its instances lies in the axis-parallel rectangle
    :math:`l_k \le x_k \le u_k` of some of the features k. It looks for a minimum of the sum of
    widths

    .. math:: \min_{j(i)} \; \sum_k \Bigl(\max_{i : y_i = 1} x_{i j(i) k}
              - \min_{i : y_i = 1} x_{i j(i) k}\Bigr)

    over the choice of an instance j(i) of each positive bag; of the features those are kept that
    together exclude the instances of negative bags. Growing and discriminating take turns until no
    feature is dropped. This begins at the middle and at each instance of the smallest positive bag,
    at most 16. One more rectangle, of which features are dropped only, holds likely key instances:
    those that lie furthest in the direction from the mean of negative instances to the mean of
    themselves. The rectangle is taken that the fewest negative bags reach. Then the bounds are
    expanded by a density estimate of the chosen instances. An instance scores as
    :math:`\min_k \min(x_k - l_k, u_k - x_k) / s`, its distance to the nearest bound: positive
    inside the rectangle; outside, minus the largest distance beyond a bound. The unit s is the root
    of the mean variance of the features. A bag scores as its best instance.
    More than two classes are learned one against the rest.

    Parameters
    ----------
    margin : float
        How far outside the rectangle, in units of s, an instance is clearly excluded. The smaller
        it is, the fewer features are kept.
    tau : float
        Width of the density estimate: a normal density around the middle of the rectangle has this
        share of its mass inside, for each feature. The larger, the less the bounds expand.
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
    |classes_, multilabel_, pos_label_, intercept_shift_: frequency|
    |n_features_in_, feature_names_in_|
    result_ : Certificate
        The sum of widths above, of the features that were kept and before the expansion.
    n_iter_ : int
        Rounds of growing and discriminating, summed over outputs.

    See Also
    --------
    DiverseDensity : A point with a scale for each feature, in place of a rectangle.

    Notes
    -----
    Widths of different features are added up, so features ought to be of comparable size.

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

    _summary: ClassVar[Summary] = Summary(
        assumption="an instance inside a rectangle makes a bag positive",
        objective="sum of the widths of a rectangle around an instance of each positive bag",
        cost="passes over the instances of positive bags, one for each of these bags at most",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
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
        margin: float = 1.0,
        tau: float = 0.999,
        epsilon: float = 0.01,
        pos_label: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
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
            sign = signs[:, output]
            if (sign == sign[0]).all():
                return _everywhere(bags.n_features, is_positive=sign[0] > 0)
            found = grow_rectangle(
                instances, bags.offsets, sign, weight,
                margin=self.margin * scale, max_iter=bags.n_features + 1,
            )  # fmt: skip
            bounds = found.x.reshape(2, -1).copy()
            bounds[:, found.features] = expanded_bounds(
                instances[np.ix_(found.chosen, found.features)], weight[sign > 0],
                tau=self.tau, epsilon=self.epsilon, least=_LEAST * scale,
            )  # fmt: skip
            return _Rectangle(bounds[0], bounds[1], found.certificate)

        found = one_vs_rest(solve, target.n_outputs, self.n_jobs)
        return {
            "lower_": np.array([rectangle.lower for rectangle in found]),
            "upper_": np.array([rectangle.upper for rectangle in found]),
            "scale_": scale,
            "result_": Certificate.total([rectangle.certificate for rectangle in found]),
        }

    # --------------------------------------------------------------------------------- scores

    def _room(self, instances: Any, output: int) -> Floats:
        """Return the distance of instances to the nearest bound, negative outside."""
        lower, upper = self.lower_[output], self.upper_[output]
        used = np.flatnonzero((lower > -np.inf) | (upper < np.inf))
        values = as_dense(instances[:, used])
        room = np.minimum(values - lower[used], upper[used] - values)
        return np.clip(room.min(axis=1, initial=np.inf) / self.scale_, -_SURE, _SURE)

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


class _Rectangle(NamedTuple):
    """Bounds of a binary problem, and how they were found."""

    lower: Floats
    upper: Floats
    certificate: Certificate


def _everywhere(n_features: int, *, is_positive: bool) -> _Rectangle:
    """Return the rectangle that has all instances inside, or none."""
    bound = np.full(n_features, np.inf if is_positive else -np.inf)
    return _Rectangle(-bound, bound, Certificate.solved())
