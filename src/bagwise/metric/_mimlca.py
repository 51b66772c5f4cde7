"""MIMLCA: a metric, and the label of each instance, from bags with lists of labels."""

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import euclidean_distances

from bagwise._arrays import Floats, Integers
from bagwise._compat import Interval, StrOptions
from bagwise._progress import counted
from bagwise.bags import Bags, BagSource, segment_max
from bagwise.base import (
    AsymmetricClassifier,
    BagTags,
    Summary,
    Target,
    Task,
    best_threshold,
    documented,
    ranked_right,
    unseen_scores_by,
)
from bagwise.metric._cluster_metric_learner import ClusterMetricLearner
from bagwise.metric._lists import ListedBags, distinct
from bagwise.metric._spreads import ClassSpreads, class_spreads, likelihoods
from bagwise.solvers import (
    Basis,
    Certificate,
    FeaturePasses,
    KeyRowsResult,
    LabelAssignmentResult,
    LabelLists,
    solve_key_rows,
    solve_label_assignments,
)

_EQUAL = 1e-9  # shares of pairs that differ by less are equal


@documented
class MIMLCA(ClusterMetricLearner, AsymmetricClassifier):
    r"""Metric learning for cluster analysis from bags with lists of labels (MIMLCA).

    Of a bag it is known which labels are in it, not which instance bears which. The method finds
    both a metric and the label of each instance: under the metric, the instances of a label lie
    close to their mean, and those of other labels elsewhere.

    With the features :math:`X` of all instances, let :math:`u_j` be the rows of an orthonormal
    basis :math:`U` of its columns. The labels solve

    .. math:: \min_H \sum_j \sum_c w_j H_{jc} \|u_j - \bar u_c\|^2, \quad
              \bar u_c = \frac{\sum_j w_j H_{jc} u_j}{\sum_j w_j H_{jc}}

    where :math:`w_j` is the weight of the instance's bag and H assigns instances to labels of the
    list of their bag: each label to one instance at most, each instance to one label at most, and
    as many as possible. The metric is then :math:`M = L L^\top`,
    :math:`L = (X^\top W X + \lambda I)^+ X^\top W J` over the instances with a label, where J has
    the entry :math:`\sqrt{n / n_c}` if an instance bears label c, which :math:`n_c` of n do.

    Two classes are not a list of one label each: a negative bag has no instance of the positive
    class. So one instance of each positive bag bears that class, and all other instances bear
    the other one; the same objective says which. A bag scores as its best instance.

    No linear map tells a class from another one that is all around it. So of two classes all
    instances of the bags of a class may also stand for it: with their mean :math:`m_c` and their
    variance :math:`v_c` per feature, of d features, an instance then scores

    .. math:: s_c(x) = -\|x - m_c\|^2 / v_c - d \log v_c

    the likelihood of a Gaussian of each class, if bags that were left out of the fit are then
    ranked better than by the metric. The threshold is then the one that is right for the most
    training bags. The metric and ``assignments_`` are the same in either case.

    Parameters
    ----------
    solver : {"exact", "lloyd"}
        ``"exact"``: bag after bag gets the labels that are best given all other bags.
        ``"lloyd"``: the means of labels are fixed while all bags get new labels, as in Algorithm 1
        of [1]_. That stops early, because an instance holds the mean of its label near itself.
    |n_components: directions, ridge, center|
    centers : {"auto", "learned", "classes"}
        Two classes are told apart by the metric, ``"learned"``, or by Gaussians of all instances,
        ``"classes"``; or by what ranks left-out bags better. Gaussians are there with the linear
        kernel, ``rule="distance"`` and no ``reject``, unless all instances of a class are one.
    |rule, alpha: similarity, reject|
    |kernel, gamma, degree, coef0, approx, rank|
    n_init : int
        Number of starts: the first from the means of bags, further ones random. The lowest
        objective wins.
    max_iter : int
        Most sweeps over the bags for a start.
    |pos_label|
    max_memory : int, str or None
        Bytes, or a text such as ``"2GB"``, for what is kept of the instances. Coordinates that do
        not fit in half of it are computed anew in each sweep.
    random_state : int, RandomState or None
        Seed of random starts and of random maps.
    |verbose: fit|

    Attributes
    ----------
    |assignments_|
    |components_: kernel, centroids_: kernel, mapped_centroids_: square, used_, n_labelled_|
    |offset_: center, support_vectors_: map, dual_coef_: map, coef_: map|
    |fourier_weights_, fourier_offset_, gamma_, classes_, multilabel_, pos_label_|
    |intercept_shift_: frequency|
        With Gaussians it is minus the threshold with the fewest errors on the training bags.
    class_means_ : ndarray of shape (2, n_features)
        The means :math:`m_c` of Gaussians in the order of ``used_``, where these score.
    spreads_ : ndarray of shape (2,)
        Their variances :math:`v_c`.
    |result_, n_iter_, n_features_in_, feature_names_in_|

    See Also
    --------
    MLCA : The same metric for instances whose labels are known.

    Notes
    -----
    Labels that no instance bears would have their mean at 0 in the printed method, and win there;
    here they are left out. The kernel of the printed method, in all directions, makes every
    assignment equally good; so does any data with as many features as instances.

    References
    ----------
    .. [1] M. T. Law, Y. Yu, R. Urtasun, R. S. Zemel, E. P. Xing: Efficient multiple instance metric
       learning using weakly supervised data. CVPR 2017.

    Examples
    --------
    >>> from bagwise.datasets import make_weak_label_bags
    >>> from bagwise.metric import MIMLCA
    >>> data = make_weak_label_bags(300, n_labels=10, noisy=False, random_state=0)
    >>> model = MIMLCA().fit(data.bags, data.y)
    >>> named = model.assignments_ >= 0
    >>> float((model.assignments_ == data.instance_y)[named].mean()) > 0.9
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="each label of a list belongs to one instance of the bag",
        objective=(
            "squared distances of instances from the means of their labels, over the labels "
            "too; then that of `MLCA`"
        ),
        cost="products of $d^2 N$, and sweeps over the lists",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [StrOptions({"exact", "lloyd"})],
        **ClusterMetricLearner._parameter_constraints,
        "centers": [StrOptions({"auto", "learned", "classes"})],
        **AsymmetricClassifier._parameter_constraints,
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    _convergence_advice = "raise max_iter"

    def __init__(
        self,
        *,
        solver: str = "exact",
        n_components: int | None = None,
        ridge: float = 0.0,
        center: bool = False,
        centers: str = "auto",
        rule: str = "distance",
        alpha: float = 0.5,
        reject: float | None = None,
        kernel: Any = "linear",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approx: str | None = None,
        rank: int = 300,
        n_init: int = 1,
        max_iter: int = 100,
        pos_label: Any = None,
        max_memory: int | str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.solver = solver
        self.n_components = n_components
        self.ridge = ridge
        self.center = center
        self.centers = centers
        self.rule = rule
        self.alpha = alpha
        self.reject = reject
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.approx = approx
        self.rank = rank
        self.n_init = n_init
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    def _assign(
        self,
        bags: Bags,
        target: Target,
        passes: FeaturePasses,
        basis: Basis,
        rng: np.random.Generator,
    ) -> tuple[Integers, Certificate]:
        task = distinct(bags, target, passes.weight)
        if ((task.lists.sum(axis=1) > 1) | (task.bags.sizes > 1)).any():
            self._warn_if_full(basis, bags.n_instances)
        if len(task.bags) < len(bags):
            kept = passes.source.bags[task.kept]
            passes = FeaturePasses(self._source(kept), task.weight, passes.features)
        rows = passes.whitened(basis, self._keep_bytes())
        if task.codes is not None and len(target.classes) == 2:
            place = int(target.side > 0)
            key = self._best_keys(rows, basis, task, place, rng)
            labels = np.full(task.bags.n_instances, 1 - place)
            labels[key.chosen] = place
            return task.spread(labels), key.certificate
        best = self._best_start(rows, basis, task, rng)
        return task.spread(best.labels), best.certificate

    def _best_start(
        self, rows: Any, basis: Basis, task: ListedBags, rng: np.random.Generator
    ) -> LabelAssignmentResult:
        lists = LabelLists.from_indicator(task.bags.offsets, task.lists)
        results = [
            solve_label_assignments(rows, lists, **options)
            for options in counted(self._starts(basis, task, rng), self.n_init, "start")
        ]
        return Certificate.lowest(results)

    def _best_keys(
        self, rows: Any, basis: Basis, task: ListedBags, place: int, rng: np.random.Generator
    ) -> KeyRowsResult:
        is_positive = task.lists[:, place]
        results = [
            solve_key_rows(rows, task.bags.offsets, is_positive, **options)
            for options in counted(self._starts(basis, task, rng), self.n_init, "start")
        ]
        return Certificate.lowest(results)

    def _starts(
        self, basis: Basis, task: ListedBags, rng: np.random.Generator
    ) -> list[dict[str, Any]]:
        """Return the arguments of the solver for each start."""
        return [
            {
                "n_features": basis.n_components,
                "sample_weight": task.weight,
                "start": "means" if number == 0 else "random",
                "method": self.solver,
                "max_iter": self.max_iter,
                "rng": rng,
            }
            for number in range(self.n_init)
        ]

    #: Whether the metric is to score though there are Gaussians, to compare both.
    _is_by_metric = False

    def _class_spreads(
        self, bags: Bags, target: Target, passes: FeaturePasses
    ) -> ClassSpreads | None:
        is_plain = self.kernel == "linear" and self.rule == "distance" and self.reject is None
        if self.centers == "learned" or not is_plain or target.codes is None:
            return None
        if len(target.classes) != 2:
            return None
        codes = (target.signs[:, 0] > 0).astype(np.int64)
        return class_spreads(passes, codes, bags.n_features)

    def _review(self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats) -> None:
        if self._has_gaussians:
            sign, weight = target.signs[:, 0], cost_weight[:, 0]
            if self.centers == "auto":
                ways = [{"_is_by_metric": True}, {"_is_by_metric": False}]
                task = Task(bags, target, cost_weight, bag_weight)
                by_metric, by_classes = (
                    ranked_right(scores, sign, weight)
                    for scores in unseen_scores_by(self, task, ways)
                )
                if by_classes <= by_metric + _EQUAL:
                    self._forget_gaussians()
        if self._has_gaussians:
            scores = target.side * self._bag_scores(bags)[:, 0]
            self.intercept_shift_ = np.array([-target.side * best_threshold(scores, sign, weight)])
        super()._review(bags, target, cost_weight, bag_weight)

    def _settle(self) -> None:
        super()._settle()
        self.centers = "classes" if self._has_gaussians else "learned"
        if hasattr(self, "spreads_"):  # those of all bags: a part of them may have none
            self._forget_gaussians()

    def _forget_gaussians(self) -> None:
        del self.class_means_, self.spreads_

    # --------------------------------------------------------------------------------- scores

    @property
    def _has_gaussians(self) -> bool:
        """Whether Gaussians tell two classes apart; of files of earlier releases they do not."""
        return hasattr(self, "spreads_") and not self._is_by_metric

    def _scores(self, instances: Any) -> Floats:
        if not self._has_gaussians:
            return super()._scores(instances)
        apart = euclidean_distances(instances, self.class_means_, squared=True)
        return likelihoods(-apart, self.spreads_, self.n_features_in_)

    @property
    def _knows_by_heart(self) -> bool:
        """Whether key instances score, which are chosen such that training bags are apart."""
        return self._has_key_instances and not self._has_gaussians

    @property
    def _has_key_instances(self) -> bool:
        """Whether one instance makes a bag positive: not with lists, several classes, old files."""
        return getattr(self, "pos_label_", None) is not None

    def _best_places(self, bags: Bags) -> NDArray[np.intp]:
        places = super()._best_places(bags)
        if not self._has_key_instances:
            return places
        codes = (self._instance_outputs(bags)[:, 0] > 0).astype(np.intp)
        return np.where(places < 0, places, codes)

    def _instance_outputs(self, bags: Bags) -> Floats:
        outputs = super()._instance_outputs(bags)
        return self._shifted(outputs) if self._has_key_instances else outputs

    def _bag_outputs(self, bags: Bags) -> Floats:
        if not self._has_key_instances:
            return super()._bag_outputs(bags)

        def best(chunk: Any) -> Floats:
            scores = self._side * self._joined(self._leads(chunk.instances))
            return np.asarray(segment_max(scores, chunk.starts, chunk.stops))

        return self._shifted(self._side * np.asarray(BagSource(bags).concatenate(best)))

    def __bagwise_tags__(self) -> BagTags:
        is_old = hasattr(self, "classes_") and not hasattr(self, "pos_label_")
        return replace(super().__bagwise_tags__(), asymmetric=True, max_rule=not is_old)
