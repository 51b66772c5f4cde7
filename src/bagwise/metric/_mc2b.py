"""MC2B: directions along which classes are near to their bags and far from others."""

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._compat import Interval
from bagwise.bags import segment_rows
from bagwise.base import Summary, documented
from bagwise.metric._linear_metric_learner import (
    LearnedMap,
    LinearMetricLearner,
    named_map,
    usual_components,
)
from bagwise.metric._lists import ListedBags
from bagwise.solvers import bag_pairs, nearest, solve_ratio_metric


@documented
class MC2B(LinearMetricLearner):
    r"""Metric learning from the distances between classes and bags (M-C2B).

    A class is the collection of all instances of its bags. Its distance from a bag is the sum of
    the distances from its instances to the nearest instance of the bag. These distances have to be
    small for the bags of the class and large for others:

    .. math:: \min_L \lambda(L) = \frac{\sum_c \sum_{i \in P_c} \sum_{x \in B_i}
              \sum_{e \in P_c \setminus i} w_i w_e \|L^\top (x - x_e)\|}
              {\sum_c \sum_{i \in P_c} \sum_{x \in B_i} \sum_{e \notin P_c} w_i w_e
              \|L^\top (x - x_e)\|}, \quad L^\top L = I_r

    where :math:`P_c` are the bags of class or label c, :math:`w_i` the weight of bag :math:`B_i`,
    and :math:`x_e` the instance of bag e that is nearest to x in the space of the features.

    Labels are predicted by the nearest mean after the map. All instances of a bag bear its class.
    Where bags have lists of labels, each label goes to one instance of a bag at most: such that the
    sum of squared distances from the means of labels is small.

    Parameters
    ----------
    |n_components: metric, max_pairs, reject|
    tol : float
        Rounds end when one lowers :math:`\lambda` by at most this share of it.
    max_iter : int
        Most rounds.
    |random_state: pairs, verbose: fit|

    Attributes
    ----------
    |components_, offset_, assignments_, centroids_, mapped_centroids_, used_|
    |classes_, multilabel_, intercept_shift_: frequency|
    |result_, n_iter_, n_features_in_, feature_names_in_|

    See Also
    --------
    MIMLCA : A metric that is learned in closed form, with the labels of instances.

    Notes
    -----
    The printed algorithm has no constraint on the map. Then a map of rank one is always optimal:
    the norm of a vector is proportional to the mean of its products with random unit vectors, so
    that the ratio of a map is a weighted mean of those of single directions. What it returns
    depends on how early it is stopped. Here directions are orthonormal. There is one map
    for all classes, as the use of the metric between bags asks for, and :math:`\lambda` itself is
    followed: it never rises.

    References
    ----------
    .. [1] H. Wang, F. Nie, H. Huang: Robust and discriminative distance for multi-instance
       learning. CVPR 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.datasets import make_weak_label_bags
    >>> from bagwise.metric import MC2B
    >>> data = make_weak_label_bags(100, n_labels=5, noisy=False, random_state=0)
    >>> model = MC2B().fit(data.bags, data.y)
    >>> model.components_.shape
    (10, 20)
    >>> bool((abs(model.components_ @ model.components_.T - np.eye(10)) < 1e-12).all())
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="instances of a label are near to all its bags",
        objective="distances of instances from bags of their labels, over those from other bags",
        cost="products of $d^2$ for each instance of pairs of bags, in each round",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearMetricLearner._parameter_constraints,
        "max_pairs": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        max_pairs: int = 3_000,
        reject: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 100,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.max_pairs = max_pairs
        self.reject = reject
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _learn_map(self, task: ListedBags, rows: Floats) -> LearnedMap:
        pairs = bag_pairs(task.lists, task.weight, max_pairs=self.max_pairs, rng=self._rng())
        both = np.concatenate([pairs.bags, pairs.bags[:, ::-1]])
        steps = _class_to_bag(rows, task, both, np.tile(pairs.weight, 2))
        found = solve_ratio_metric(
            steps.rows,
            steps.near,
            steps.far,
            usual_components(self.n_components, rows.shape[1]),
            tol=self.tol,
            max_iter=self.max_iter,
        )
        return named_map(found.components, rows, task, found.certificate)


class _Steps(NamedTuple):
    """Differences of instances from the nearest of another bag, and how often they count."""

    rows: Floats
    near: Floats
    far: Floats


def _class_to_bag(rows: Floats, task: ListedBags, pairs: Integers, weight: Floats) -> _Steps:
    """Compare all instances of the first bag of each pair with the second bag."""
    offsets, lists = task.bags.offsets, task.lists
    first, second = pairs.T
    own = segment_rows(offsets[first], offsets[first + 1])
    pair = np.repeat(np.arange(len(pairs)), task.bags.sizes[first])
    other = second[pair]
    places, _ = nearest(rows, (own, own + 1), rows, (offsets[other], offsets[other + 1]))
    shared = (lists[first] & lists[second]).sum(axis=1)
    near, far = weight * shared, weight * (lists[first].sum(axis=1) - shared)
    return _Steps(rows[own] - rows[places[:, 1]], near[pair], far[pair])
