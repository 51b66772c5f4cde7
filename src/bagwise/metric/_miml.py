"""MIML: directions along which centres of labels are apart and instances near them."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, BagSource
from bagwise.base import Summary, documented, ranked_right
from bagwise.metric._linear_metric_learner import (
    LearnedMap,
    LinearMetricLearner,
    named_map,
    usual_components,
)
from bagwise.metric._lists import ListedBags
from bagwise.metric._spreads import class_spreads, likelihoods
from bagwise.solvers import FeaturePasses, LabelLists, solve_center_metric

_EQUAL = 1e-9  # shares of pairs that differ by less are equal


@documented
class MIML(LinearMetricLearner):
    r"""Metric learning with a centre for each label (MIML).

    Each label has a centre :math:`z_c`. Of a bag that lists the label, the instance nearest to the
    centre has to be near, and the centres of different labels far apart:

    .. math:: \min_{A, z} \frac{\sum_i w_i \sum_{c \in Y_i} \min_{x \in B_i} \|A^\top (x - z_c)\|^2}
              {\sum_{c, e} \|A^\top (z_c - z_e)\|^2}, \quad A^\top A = I_r

    where :math:`w_i` is the weight of bag :math:`B_i` with the list :math:`Y_i`, and the sum below
    runs over all ordered pairs of labels. The metric is :math:`M = L L^\top` with :math:`L = A`.

    Of lists, labels are predicted by the nearest of these centres. Where bags have one class each,
    the mean of all instances of its bags stands for a class, and :math:`v_c` is their variance
    after the map, per component. Of two classes one may be spread wider than the other, around the
    same place: by the likelihood of a Gaussian for each, an instance scores

    .. math:: s_c(x) = -\|L^\top (x - z_c)\|^2 / v_c - r \log v_c

    if training bags are then ranked better than by :math:`v_c = 1`, the distances alone.

    Parameters
    ----------
    |n_components: metric|
    centers : {"auto", "learned"}
        ``"learned"``: the centres of the objective, and distances from them alone, for classes too.
    |reject|
        Then scores are distances alone.
    tol : float
        Rounds end when one lowers the objective by at most this share of it.
    max_iter : int
        Most rounds: centres, directions, nearest instances.
    |verbose: fit|

    Attributes
    ----------
    |components_, offset_|
    centroids_ : ndarray of shape (n_used, n_features)
        The centres :math:`z_c`, or the means of classes.
    spreads_ : ndarray of shape (n_used,)
        The variances :math:`v_c`, or 1.
    |mapped_centroids_, used_|
    |classes_, multilabel_, intercept_shift_: frequency|
    |result_, n_iter_, n_features_in_, feature_names_in_|

    See Also
    --------
    MIMLCA : Each label of a list goes to another instance.

    Notes
    -----
    The objective of [1]_ is the inverse of this one, and is maximised. The start are the means of
    bags, and nothing is random. Directions are found by the iteration of eigenvectors for ratios of
    traces. Centres are the means of their instances, or if these are closer together than the
    centres before, the best places that are not: all at once, where [1]_ moves one centre after
    another. The listing in the appendix of [2]_ puts centres to 0 outside of the space of the
    directions, which can then hardly change any more; here they are the means there.

    Classes are not lists of one label each: the nearest instance to a centre says little of a class
    that is everywhere in its bags.

    References
    ----------
    .. [1] R. Jin, S. Wang, Z.-H. Zhou: Learning a distance metric from multi-instance multi-label
       data. CVPR 2009.
    .. [2] M. T. Law, Y. Yu, R. Urtasun, R. S. Zemel, E. P. Xing: Efficient multiple instance metric
       learning using weakly supervised data. CVPR 2017.

    Examples
    --------
    >>> from bagwise.datasets import make_weak_label_bags
    >>> from bagwise.metric import MIML
    >>> data = make_weak_label_bags(100, n_labels=5, noisy=False, random_state=0)
    >>> model = MIML().fit(data.bags, data.y)
    >>> model.components_.shape
    (10, 20)
    >>> bool(model.score(data.bags, data.y) > 0.5)
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="each label of a list has an instance of the bag near its centre",
        objective="distances of nearest instances from centres, over those between centres",
        cost="eigenvectors of matrices of $d^2$ in each round",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearMetricLearner._parameter_constraints,
        "centers": [StrOptions({"auto", "learned"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        centers: str = "auto",
        reject: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 50,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.centers = centers
        self.reject = reject
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def _learn_map(self, task: ListedBags, rows: Floats) -> LearnedMap:
        used = np.flatnonzero(task.lists.any(axis=0))
        found = solve_center_metric(
            rows,
            LabelLists.from_indicator(task.bags.offsets, task.lists[:, used]),
            usual_components(self.n_components, rows.shape[1]),
            sample_weight=task.weight,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        own = LearnedMap(found.components, found.centers, used, found.certificate, {})
        if task.codes is None or self.centers == "learned":
            return replace(own, more={"spreads_": np.ones(len(used))})
        named = named_map(found.components, rows, task, found.certificate)
        spreads = np.ones(len(named.used))
        if len(spreads) == 2 and self.reject is None:
            spreads = _spreads(rows @ named.components.T, named.centers @ named.components.T, task)
        return replace(named, more={"spreads_": spreads})

    def _scores(self, instances: Any) -> Floats:
        spreads = getattr(self, "spreads_", np.ones(1))  # files of earlier releases have none
        return likelihoods(super()._scores(instances), spreads, len(self.components_))


def _spreads(mapped: Floats, centers: Floats, task: ListedBags) -> Floats:
    """Return the variance of each of two classes, or 1 if bags are ranked no better with them."""
    assert task.codes is not None
    equal, starts = np.ones(2), task.bags.offsets[:-1]
    passes = FeaturePasses(BagSource(Bags(mapped, task.bags.offsets)), task.weight)
    found = class_spreads(passes, task.codes, mapped.shape[1])
    if found is None:
        return equal
    scores = -np.column_stack([((mapped - center) ** 2).sum(axis=1) for center in centers])

    def ranked(variances: Floats) -> float:
        ahead = np.diff(likelihoods(scores, variances, mapped.shape[1]), axis=1)[:, 0]
        of_bags = np.maximum.reduceat(ahead, starts) + np.minimum.reduceat(ahead, starts)
        return ranked_right(of_bags, np.where(task.codes == 1, 1.0, -1.0), task.weight)

    return found.variances if ranked(found.variances) > ranked(equal) + _EQUAL else equal
