"""MIMLCA: a metric, and the label of each instance, from bags with lists of labels."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Booleans, Integers
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import Summary, Target, documented
from bagwise.metric._cluster_metric_learner import ClusterMetricLearner
from bagwise.metric._lists import distinct
from bagwise.solvers import (
    Basis,
    Certificate,
    FeaturePasses,
    LabelAssignmentResult,
    LabelLists,
    solve_label_assignments,
)


@documented
class MIMLCA(ClusterMetricLearner):
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

    Parameters
    ----------
    solver : {"exact", "lloyd"}
        ``"exact"``: bag after bag gets the labels that are best given all other bags.
        ``"lloyd"``: the means of labels are fixed while all bags get new labels, as in Algorithm 1
        of [1]_. That stops early, because an instance holds the mean of its label near itself.
    |n_components: directions, ridge, center, rule, alpha: similarity, reject|
    |kernel, gamma, degree, coef0, approx, rank|
    n_init : int
        Number of starts: the first from the means of bags, further ones random. The lowest
        objective wins.
    max_iter : int
        Most sweeps over the bags for a start.
    max_memory : int, str or None
        Bytes, or a text such as ``"2GB"``, for what is kept of the instances. Coordinates that do
        not fit in half of it are computed anew in each sweep.
    random_state : int, RandomState or None
        Seed of random starts and of random maps.

    Attributes
    ----------
    |assignments_|
    |components_: kernel, centroids_: kernel, mapped_centroids_: square, used_, n_labelled_|
    |offset_: center, support_vectors_: map, dual_coef_: map, coef_: map|
    |fourier_weights_, fourier_offset_, gamma_, classes_, multilabel_|
    |intercept_shift_: frequency|
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
        max_memory: int | str | None = None,
        random_state: Any = None,
    ) -> None:
        self.solver = solver
        self.n_components = n_components
        self.ridge = ridge
        self.center = center
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
        self.max_memory = max_memory
        self.random_state = random_state

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
        best = self._best_start(passes, basis, task.lists, rng)
        return task.spread(best.labels), best.certificate

    def _best_start(
        self, passes: FeaturePasses, basis: Basis, lists: Booleans, rng: np.random.Generator
    ) -> LabelAssignmentResult:
        rows = passes.whitened(basis, self._keep_bytes())
        results = [
            solve_label_assignments(
                rows,
                LabelLists.from_indicator(passes.source.bags.offsets, lists),
                n_features=basis.n_components,
                sample_weight=passes.weight,
                start="means" if number == 0 else "random",
                method=self.solver,  # type: ignore[arg-type]
                max_iter=self.max_iter,
                rng=rng,
            )
            for number in range(self.n_init)
        ]
        return Certificate.lowest(results)
