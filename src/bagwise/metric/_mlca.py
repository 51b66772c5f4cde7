"""MLCA: the metric of instances with known labels, in closed form."""

from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Integers
from bagwise.bags import Bags
from bagwise.base import Summary, Target, documented, holds_lists
from bagwise.metric._cluster_metric_learner import ClusterMetricLearner
from bagwise.solvers import Basis, Certificate, FeaturePasses


@documented
class MLCA(ClusterMetricLearner):
    r"""Metric learning for cluster analysis from labelled instances (MLCA).

    The metric under which k-means comes closest to the given labels, :math:`M = L L^\top` with

    .. math:: L = (X^\top W X + \lambda I)^+ X^\top W J

    where the rows of X are the features of the instances, W holds their weights, and J has the
    entry :math:`\sqrt{n / n_c}` if an instance bears label c, which :math:`n_c` of n do.

    Parameters
    ----------
    |n_components: directions, ridge, center, rule, alpha: similarity, reject|
    |kernel, gamma, degree, coef0, approx, rank|
    max_memory : int, str or None
        Bytes, or a text such as ``"2GB"``, for what is in work of the instances.
    random_state : int, RandomState or None
        Seed of random maps.
    |verbose: fit|

    Attributes
    ----------
    assignments_ : ndarray of int of shape (n_instances,)
        The column of the label of each training instance.
    |components_: kernel, centroids_: kernel, mapped_centroids_: square, used_, n_labelled_|
    |offset_: center, support_vectors_: map, dual_coef_: map, coef_: map|
    |fourier_weights_, fourier_offset_, gamma_, classes_, multilabel_|
    |intercept_shift_: frequency|
    |result_, n_iter_, n_features_in_, feature_names_in_|

    See Also
    --------
    MIMLCA : The same where only the labels of bags are known.

    References
    ----------
    .. [1] M. T. Law, Y. Yu, M. Cord, E. P. Xing: Closed-form training of Mahalanobis distance for
       supervised clustering. CVPR 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bagwise.metric import MLCA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MLCA().fit(X, y)
    >>> model.components_.shape
    (3, 4)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="all instances of a bag bear its label",
        objective="squared distance of mapped instances from indicators of their labels",
        cost="products of $d^2 N$",
    )

    def __init__(
        self,
        *,
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
        max_memory: int | str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
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
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    def _encode(
        self, bags: Bags, y: Any, sample_weight: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Take one label for each instance; or for each bag, which all its instances then have."""
        n = 0 if y is None or holds_lists(y) else len(np.asarray(y))
        if n == len(bags) or n != bags.n_instances:
            (bags, target, *_, weight), known = super()._encode(bags, y, sample_weight)
        else:
            if sample_weight is not None:
                sample_weight = np.repeat(np.asarray(sample_weight), bags.sizes)
            (bags, target, *_, weight), known = super()._encode(singletons(bags), y, sample_weight)
        if target.is_multilabel:
            msg = f"{type(self).__name__} takes one label for each instance, not lists: see MIMLCA."
            raise ValueError(msg)
        return (bags, target, weight[:, None], weight), known

    def _assign(
        self,
        bags: Bags,
        target: Target,
        passes: FeaturePasses,
        basis: Basis,
        rng: np.random.Generator,
    ) -> tuple[Integers, Certificate]:
        assert target.codes is not None  # lists are refused in _encode
        return np.repeat(target.codes.astype(np.int64), bags.sizes), Certificate.nothing()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags


def singletons(bags: Bags) -> Bags:
    """Return the instances as bags of one."""
    return Bags(bags.instances, np.arange(bags.n_instances + 1))
