"""What MLCA and MIMLCA share: features, an orthonormal basis of them, and the metric of labels."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bagwise._arrays import Floats, Integers
from bagwise._compat import Interval, StrOptions
from bagwise._warnings import warn
from bagwise.bags import Bags, BagSource, parse_bytes, rows_of
from bagwise.base import (
    MAP_CONSTRAINTS,
    BagTags,
    FeatureMap,
    KernelParameters,
    Target,
    expand,
    make_features,
    make_map,
)
from bagwise.metric._metric_learner import MetricLearner
from bagwise.metric._spreads import ClassSpreads
from bagwise.solvers import (
    Basis,
    Certificate,
    FeaturePasses,
    learn_cluster_metric,
    row_space,
    whitening,
)

_USUAL_MEMORY = 2e9  # bytes for coordinates that are kept, where no limit is set
_FULL = 0.5  # share of the rank in the number of instances from which on all look alike


class ClusterMetricLearner(KernelParameters, MetricLearner):
    r"""Base of metric learners for cluster analysis.

    A subclass writes `_assign`: which instance bears which label. With ``rule="similarity"`` the
    scores of an instance are

    .. math:: s_c(x) = (L^\top \phi(x))_c - \frac{\alpha}{\sqrt n} \|L^\top z_c\|^2

    where n is the weight of the training instances with a label.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "center": ["boolean"],
        "rule": [StrOptions({"distance", "similarity"})],
        "alpha": [Interval(Real, None, None, closed="neither")],
        **MetricLearner._parameter_constraints,
        **KernelParameters._parameter_constraints,
        **MAP_CONSTRAINTS,
        "max_memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "random_state": ["random_state"],
    }

    n_components: int | None
    ridge: float
    center: bool
    rule: str
    alpha: float
    approx: str | None
    rank: int
    max_memory: int | str | None
    random_state: Any

    @abstractmethod
    def _assign(
        self,
        bags: Bags,
        target: Target,
        passes: FeaturePasses,
        basis: Basis,
        rng: np.random.Generator,
    ) -> tuple[Integers, Certificate]:
        """Return the column of the label of each instance, -1 for none, and how it was found."""

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        mapped, passes = self._features(bags, bag_weight, rng)
        mean = passes.mean() if self.center else None
        if mean is not None:
            passes = passes.centred(mean)
        width = passes.n_features
        space = None
        if passes.n_rows < width:  # then the rows span fewer directions than there are features
            whole = passes.all_rows()
            space = row_space(whole, np.repeat(bag_weight, bags.sizes))
            passes = FeaturePasses(self._source(Bags(space.coordinates, bags.offsets)), bag_weight)
        gram = passes.gram()
        shift = self.ridge * float(np.trace(gram)) / width
        basis = whitening(gram, n_components=self.n_components, shift=shift)
        labels, certificate = self._assign(bags, target, passes, basis, rng)
        # Where the first of two classes is positive it comes last, as the second would, so that
        # other names of the classes change no bit.
        is_turned = target.side < 0
        codes = 1 - labels if is_turned else labels
        metric = learn_cluster_metric(passes, codes, len(target.classes), basis)
        components, centroids = metric.components, metric.centroids
        spreads = self._class_spreads(bags, target, passes)
        means = centroids[:0] if spreads is None else spreads.means
        if space is not None:
            components, centroids, means = (
                space.lift(part, whole) for part in (components, centroids, means)
            )
        offset = np.zeros(len(metric.used)) if mean is None else components @ mean
        learned = mapped.attributes(components)
        if mapped.inner is None:
            learned = {"components_": components, "centroids_": centroids}
            if spreads is not None:
                learned |= {"class_means_": means, "spreads_": spreads.variances}
            if mean is not None:
                for name in learned.keys() & {"centroids_", "class_means_"}:
                    learned[name] = learned[name] + mean
        return {
            **learned,
            "mapped_centroids_": metric.mapped,
            "offset_": offset,
            "used_": 1 - metric.used if is_turned else metric.used,
            "n_labelled_": metric.mass,
            "assignments_": labels,
            "result_": certificate,
        }

    def _class_spreads(
        self, bags: Bags, target: Target, passes: FeaturePasses
    ) -> ClassSpreads | None:
        """Return Gaussians of two classes, for the coordinates of passes; None to have none."""
        return None

    def get_mahalanobis_matrix(self) -> Floats:
        r"""Return :math:`M = L L^\top`, of the linear kernel only.

        Returns
        -------
        matrix : ndarray of shape (n_features, n_features)
            Positive semidefinite; the squared distance of x and y is
            :math:`(x - y)^\top M (x - y)`.
        """
        check_is_fitted(self)
        if not hasattr(self, "components_"):
            msg = (
                f"{type(self).__name__} with kernel={self.kernel!r} has no matrix between features:"
                " use transform or metric()."
            )
            raise AttributeError(msg)
        return super().get_mahalanobis_matrix()

    def _map_with(self, fitted: Mapping[str, Any]) -> Callable[[Any], Floats]:
        if "components_" in fitted:
            return super()._map_with(fitted)
        offset = fitted["offset_"]
        return lambda instances: np.asarray(expand(self, instances, fitted) - offset)

    def _scores(self, instances: Any) -> Floats:
        if self.rule == "distance":
            return super()._scores(instances)
        norms = np.einsum("ij,ij->i", self.mapped_centroids_, self.mapped_centroids_)
        return np.asarray(self._map(instances) - self.alpha / np.sqrt(self.n_labelled_) * norms)

    def _features(
        self, bags: Bags, bag_weight: Floats, rng: np.random.Generator
    ) -> tuple[FeatureMap, FeaturePasses]:
        """Return the map of the kernel, and passes over the features of all instances."""
        kernel = self._resolve_kernel(bags, bag_weight)
        options: dict[str, Any] = {
            "approx": self.approx, "rank": self.rank, "rng": rng, "owner": type(self).__name__,
        }  # fmt: skip
        if kernel.name == "linear":
            mapped = make_map(kernel, bags[:1].instances[:1], **options)
            return mapped, FeaturePasses(self._source(bags), bag_weight)
        if self.approx in ("nystroem", "fourier"):
            mapped = make_map(kernel, rows_of(bags), **options)
            self._check_directions()
            return mapped, FeaturePasses(self._source(bags), bag_weight, mapped.transform)
        self._check_directions()
        mapped, features = make_features(kernel, rows_of(bags), **options)
        return mapped, FeaturePasses(self._source(Bags(features, bags.offsets)), bag_weight)

    def _check_directions(self) -> None:
        """Refuse all directions of a kernel other than the linear one."""
        if self.n_components is None and self.ridge == 0.0:
            msg = (
                f"{type(self).__name__} with kernel={self.kernel!r} needs n_components or ridge: "
                "in all directions of such a kernel any labels are equally good."
            )
            raise ValueError(msg)

    def _source(self, bags: Bags) -> BagSource:
        return BagSource(bags, max_memory=self.max_memory)

    def _keep_bytes(self) -> float:
        limit = parse_bytes(self.max_memory)
        return _USUAL_MEMORY if limit is None else limit / 2

    def _warn_if_full(self, basis: Basis, n_instances: int) -> None:
        """Warn if so many directions are left that any labels are nearly as good as any others."""
        if self.ridge == 0.0 and basis.n_components > _FULL * n_instances:
            msg = (
                f"{type(self).__name__}: the instances span {basis.n_components} directions and "
                f"are only {n_instances}. The more directions, the less the labels of instances "
                "are determined; set n_components or ridge."
            )
            warn(msg, UserWarning)

    def __bagwise_tags__(self) -> BagTags:
        is_linear = self.kernel == "linear"
        return BagTags(
            order_tolerance=0.05,
            exclusive_labels=True,
            scale_powers={} if is_linear and self.rule == "distance" else None,
            shift_invariant=is_linear and self.center and self.rule == "distance",
        )
