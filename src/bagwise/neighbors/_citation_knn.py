"""Citation-kNN: the vote of the nearest bags and of those that a bag is near to."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from bagwise._arrays import Floats, Integers
from bagwise._compat import HasMethods, Interval
from bagwise._warnings import quiet
from bagwise.bags import Bags
from bagwise.base import (
    DISTANCE_ROUNDING,
    BagClassifier,
    BagTags,
    DistanceParameters,
    Summary,
    Target,
    documented,
)
from bagwise.exceptions import ConstantModelWarning
from bagwise.kernels import InstanceMetric, hausdorff

_BLOCK = 1 << 24  # distances between bags that are held at a time
_WHOLE = 1 << 26  # distances between training bags up to which each is computed once only


@documented
class CitationKNN(DistanceParameters, BagClassifier):
    r"""The vote of the nearest bags, and of the bags that count a bag among their nearest.

    The *references* of a bag B are the R training bags nearest to it. Its *citers* are the training
    bags that B is as near to as their C-th nearest training bag, or nearer. Bags that are as far as
    the last reference are references too. With :math:`v_i` from 0 to 2, the number of votes that
    training bag i has as reference and as citer, and signs :math:`y_i = \pm 1` for a label, the
    score of the label is

    .. math::

        s(B) = \frac{1}{\sum_i v_i} \Big( \sum_i v_i y_i + \frac12 \,
               \frac{d_- - d_+}{d_- + d_+} \Big)

    where :math:`d_+` and :math:`d_-` are the distances from B to the nearest bag with the label and
    without. The second term is less than a vote: it decides and ranks where votes are equal. A
    label is predicted if its score is positive; of more than two classes, the one with the highest.

    Parameters
    ----------
    n_references : int
        R, at least 1.
    n_citers : int
        C; with 0 there are no citers, and on bags of one instance it is the ordinary method of
        nearest neighbours.
    |distance, metric|
        It may be a learner of metrics as well, such as ``MIMLCA()``, or another transformer of
        instances: the bags are transformed, and then compared by Euclidean distances. One that is
        fitted is used as it is, another one is fitted to the training bags. A clone is not fitted,
        so that in a cross-validation each fold learns a metric of its own.

    Attributes
    ----------
    bag_instances_ : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances of the training bags, transformed if ``metric`` is a learner; not with
        ``"precomputed"``.
    bag_offsets_ : ndarray of int of shape (n_bags + 1,)
        Training bag ``i`` is ``bag_instances_[bag_offsets_[i]:bag_offsets_[i + 1]]``.
    radius_ : ndarray of shape (n_bags,)
        The distance from each training bag to its C-th nearest other one; infinite if there are
        fewer, and -1 without citers.
    label_columns_ : ndarray of int
        The outputs in which training bags are positive, bag after bag.
    label_offsets_ : ndarray of int of shape (n_bags + 1,)
        Where those of each bag begin and end.
    metric_ : estimator
        The fitted learner, if ``metric`` is one.
    |classes_, multilabel_|
    |result_: nothing, n_iter_: nothing, n_features_in_, feature_names_in_|

    See Also
    --------
    CitationKNNROI : The same with scores of instances.
    bagwise.metric.MIMLCA : A metric learned from lists of labels.

    Notes
    -----
    In [1]_ bags are compared by ``"min"`` and by ``"max"``, and ``"min"`` is best on Musk. It is
    the distance of two instances only: where all bags hold some instances that are alike, all are
    near to each other. So the default is ``"max"``. For lists of labels, of which bags share some,
    ``"min"`` is the one to choose.

    In [1]_ a tie of two classes is negative. Here the nearest bag decides, and neither class comes
    first. Distances that differ by rounding only are equal.

    The model holds the training bags, and so does its file. Weights of bags are not taken: a vote
    counts bags, so that two copies of all bags are not the same as each bag once.

    References
    ----------
    .. [1] J. Wang, J.-D. Zucker: Solving the multiple-instance problem: a lazy learning approach.
       ICML 2000.

    Examples
    --------
    >>> from bagwise.datasets import load_digit_bags
    >>> from bagwise.neighbors import CitationKNN
    >>> data = load_digit_bags()
    >>> model = CitationKNN(distance="average").fit(data.bags[:150], data.y[:150])
    >>> bool(model.score(data.bags[150:], data.y[150:]) > 0.6)
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="bags near to each other have the same labels",
        objective="none",
        cost="distances of $N^2$ pairs",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_references": [Interval(Integral, 1, None, closed="left")],
        "n_citers": [Interval(Integral, 0, None, closed="left")],
        "distance": DistanceParameters._parameter_constraints["distance"],
        "metric": [
            *DistanceParameters._parameter_constraints["metric"],
            HasMethods(["fit", "transform"]),
        ],
    }

    def __init__(
        self,
        n_references: int = 2,
        n_citers: int = 4,
        *,
        distance: Any = "max",
        metric: Any = "euclidean",
    ) -> None:
        self.n_references = n_references
        self.n_citers = n_citers
        self.distance = distance
        self.metric = metric

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Keep the labelled bags, and find how far the nearest others are.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : array-like of shape (n_bags,) or (n_bags, n_labels), or list of sets
            Labels; or label lists, as an indicator matrix or as a set of labels for each bag. They
            are required.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        return self._fit(X, y)

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        columns = [np.flatnonzero(signs > 0) for signs in target.signs]
        learned = {
            "label_columns_": np.concatenate(columns).astype(np.int64),
            "label_offsets_": np.append(0, np.cumsum([len(own) for own in columns])),
        }
        if self._distance_is_given:
            between = np.asarray(self._given_square(bags), np.float64)
            return {**learned, "radius_": self._radii(between, np.arange(len(bags)))}
        if self._learns_metric:
            learned["metric_"] = learner = self._fitted_learner(bags, target)
            bags = _transformed(learner, bags)
        return {
            **learned,
            "bag_instances_": bags.instances,
            "bag_offsets_": bags.offsets,
            "radius_": self._radii_of(bags, self.distance),
        }

    @property
    def _learns_metric(self) -> bool:
        return hasattr(self.metric, "transform")

    @property
    def _instance_metric(self) -> InstanceMetric:
        return InstanceMetric("euclidean") if self._learns_metric else super()._instance_metric

    def _fitted_learner(self, bags: Bags, target: Target) -> Any:
        try:
            check_is_fitted(self.metric)
        except NotFittedError:
            several = target.codes is None
            y = target.signs > 0 if several else target.classes[target.codes]
            with quiet(ConstantModelWarning):  # nobody asks it for labels
                return clone(self.metric).fit(bags, y.astype(np.int64) if several else y)
        return self.metric

    # ------------------------------------------------------------------- the reach of bags

    def _radii_of(self, bags: Bags, kind: Any) -> Floats:
        """Return the distance of each bag from its C-th nearest other one."""
        n, metric = len(bags), self._instance_metric
        if n * n <= _WHOLE:
            between = hausdorff(metric, *bags.segments, only=kind)
            return self._radii(between, np.arange(n))
        parts = [np.arange(start, min(start + _rows(n), n)) for start in range(0, n, _rows(n))]
        return np.concatenate(
            [
                self._radii(
                    hausdorff(metric, *bags.segments, *bags[part].segments, only=kind).T,
                    part,
                )
                for part in parts
            ]
        )

    def _radii(self, distance: Floats, own: Integers) -> Floats:
        """Return the C-th smallest of each row; ``own`` is the column of the bag itself."""
        if self.n_citers == 0:
            return np.full(len(distance), -1.0)
        if self.n_citers >= distance.shape[1]:
            return np.full(len(distance), np.inf)
        distance = distance.copy()
        distance[np.arange(len(own)), own] = np.inf
        return _smallest(distance, self.n_citers)

    # ------------------------------------------------------------------------------- votes

    def _bag_outputs(self, bags: Bags) -> Floats:
        if self._distance_is_given:
            given = np.asarray(self._given_rows(bags), np.float64)
            return self._votes(given, self.radius_, bags.dtype)
        return self._outputs(*self._mapped(bags).segments, self.distance, self.radius_)

    def _mapped(self, bags: Bags) -> Bags:
        return _transformed(self.metric_, bags) if self._learns_metric else bags

    def _outputs(
        self, instances: Any, starts: Integers, stops: Integers, kind: Any, radius: Floats
    ) -> Floats:
        """Return the scores of bags by this distance, block by block."""
        kept, offsets = self.bag_instances_, self.bag_offsets_
        step = _rows(len(radius))
        parts = []
        for begin in range(0, len(starts), step):
            part = slice(begin, begin + step)
            # The training bags come first: where distances are centred, theirs is the mean that
            # is taken, and a bag's distances do not depend on the bags beside it.
            distance = hausdorff(
                self._instance_metric, kept, offsets[:-1], offsets[1:],
                instances, starts[part], stops[part], only=kind,
            ).T  # fmt: skip
            parts.append(self._votes(distance, radius, kept.dtype, instances.dtype))
        return np.concatenate(parts)

    def _votes(self, distance: Floats, radius: Floats, *dtypes: Any) -> Floats:
        from bagwise.neighbors._vote_kernels import count_votes

        distance = np.ascontiguousarray(distance)
        few = self.n_references >= distance.shape[1]
        reach = np.inf if few else _smallest(distance, self.n_references)
        rounding = max(DISTANCE_ROUNDING[dtype] for dtype in dtypes)
        n_outputs = len(self.classes_) if self.multilabel_ or len(self.classes_) > 2 else 1
        out = np.empty((len(distance), n_outputs))
        count_votes(
            distance, np.broadcast_to(reach, len(distance)).copy(), radius,
            self.label_columns_, self.label_offsets_, rounding, out,
        )  # fmt: skip
        return out

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(instance_scores=False, **self._distance_tags())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._distance_is_given
        return tags


def _transformed(learner: Any, bags: Bags) -> Bags:
    """Return the bags that a learner makes, in the precision of those that it gets."""
    made: Bags = learner.transform(bags)
    return made.map_instances(lambda rows: rows.astype(bags.dtype, copy=False))


def _rows(n_training: int) -> int:
    """Return how many bags are compared with the training bags at a time."""
    return max(1, _BLOCK // n_training)


def _smallest(distance: NDArray[Any], place: int) -> Floats:
    """Return the smallest but so many of each row, counted from 1."""
    return np.ascontiguousarray(np.partition(distance, place - 1, axis=1)[:, place - 1])
