"""MildML: a metric under which bags are near if they share a label."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Floats
from bagwise._compat import Interval
from bagwise.base import BagTags, Summary, documented
from bagwise.metric._linear_metric_learner import (
    LearnedMap,
    LinearMetricLearner,
    named_map,
    principal_directions,
)
from bagwise.metric._lists import ListedBags
from bagwise.solvers import bag_pairs, nearest, solve_pair_metric

_USUAL = 100  # components


@documented
class MildML(LinearMetricLearner):
    r"""Metric learning from pairs of bags that share a label or share none (MildML).

    The distance of two bags is that of their nearest instances after a linear map. The map and a
    threshold b are learned by logistic regression, such that bags that share a label are nearer
    than the threshold, and others further away:

    .. math:: \min_{L, b} \; \frac{1}{2 P} \sum_{(d, e) \in \mathcal P} w_d w_e
              \log(1 + e^{D_L(d, e) - b}) + \frac{1}{2 N} \sum_{(d, e) \in \mathcal N} w_d w_e
              \log(1 + e^{b - D_L(d, e)}) + \frac{\alpha s}{2 r} \|L\|_F^2, \quad
              D_L(d, e) = \min_{x \in d, y \in e} \|L^\top (x - y)\|^2

    over the pairs :math:`\mathcal P` of bags that share a label, of total weight P, and the pairs
    :math:`\mathcal N` of bags that share none, of total weight N. The number of components is r,
    and s the median of the distances of bags, squared, before the map is learned.

    Labels are predicted by the nearest mean after the map. All instances of a bag bear its class.
    Where bags have lists of labels, each label goes to one instance of a bag at most: such that the
    sum of squared distances from the means of labels is small.

    Parameters
    ----------
    n_components : int, optional
        Number of dimensions that instances are mapped to. By default those of the features, 100 at
        most.
    alpha : float
        The weight :math:`\alpha` of the norm of the map.
    |max_pairs, reject|
    tol : float
        The descent ends when an iteration lowers the objective by at most this much.
    max_iter : int
        Most iterations of the descent.
    |random_state: pairs, verbose: fit|

    Attributes
    ----------
    |components_, offset_, assignments_, centroids_, mapped_centroids_, used_|
    threshold_ : float
        The squared distance b up to which bags are thought to share a label.
    |classes_, multilabel_, intercept_shift_: frequency|
    |result_, n_iter_, n_features_in_, feature_names_in_|

    See Also
    --------
    MIMLCA : A metric that is learned in closed form, with the labels of instances.

    Notes
    -----
    The descent starts from the directions along which the instances vary most, in units in which
    the median of the distances of bags is 1, as the threshold is. Each evaluation of the objective
    finds the nearest instances anew. It is neither convex nor, where these change, smooth. The norm
    of the map is no part of it in [1]_: without, ``alpha=0``, there is no minimum if bags that
    share a label can be told from all others.

    The two kinds of pairs have the same weight. In [1]_ all pairs have, and as few bags share
    a label, the threshold falls until hardly any are thought to.

    References
    ----------
    .. [1] M. Guillaumin, J. Verbeek, C. Schmid: Multiple instance metric learning from
       automatically labeled bags of faces. ECCV 2010.

    Examples
    --------
    >>> from bagwise.datasets import make_weak_label_bags
    >>> from bagwise.metric import MildML
    >>> data = make_weak_label_bags(100, n_labels=5, noisy=False, random_state=0)
    >>> model = MildML(n_components=4).fit(data.bags, data.y)
    >>> named = model.assignments_ >= 0
    >>> float((model.assignments_ == data.instance_y)[named].mean()) > 0.9
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="bags that share a label have near instances, others have not",
        objective="logistic loss of the nearest instances of pairs of bags",
        cost="products of $r d N$ and distances of the instances of all pairs, in each step",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearMetricLearner._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "max_pairs": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        alpha: float = 1e-2,
        max_pairs: int = 50_000,
        reject: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 100,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.max_pairs = max_pairs
        self.reject = reject
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _learn_map(self, task: ListedBags, rows: Floats) -> LearnedMap:
        offsets = task.bags.offsets
        pairs = bag_pairs(task.lists, task.weight, max_pairs=self.max_pairs, rng=self._rng())
        number = min(rows.shape[1], self.n_components or _USUAL)
        start = principal_directions(rows, np.repeat(task.weight, task.bags.sizes), number)
        ends = [(offsets[bag], offsets[bag + 1]) for bag in pairs.bags.T]
        mapped = rows @ start.T
        _, squares = nearest(mapped, ends[0], mapped, ends[1])
        middle = np.median(squares[squares > 0]) if (squares > 0).any() else 1.0
        unit = float(np.sqrt(middle))
        found = solve_pair_metric(
            rows / unit,
            offsets,
            pairs,
            start,
            alpha=self.alpha,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        learned = named_map(found.components / unit, rows, task, found.certificate)
        learned.more["threshold_"] = found.threshold
        return learned

    def __bagwise_tags__(self) -> BagTags:
        return replace(super().__bagwise_tags__(), scale_powers={})
