"""What metric learners share: a linear map of features, and centres of labels in its space."""

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.metrics import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from bagwise._arrays import Floats
from bagwise._compat import Interval
from bagwise._warnings import quiet
from bagwise.bags import Bags, BagSource, segment_max
from bagwise.base import FrequencyThreshold, Target, holds_bags, linear_scores, told_by_place
from bagwise.exceptions import ConstantModelWarning

_NONE = {"i": -1, "u": -1, "U": "none"}


class MetricLearner(
    TransformerMixin,
    FrequencyThreshold,
    auto_wrap_output_keys=None,  # type: ignore[call-arg]  # frames hold matrices, not bags
):
    r"""Base of classifiers by the nearest centre in a space that is learned.

    An instance :math:`x` is mapped to :math:`L^\top x`, where the centre of label c is
    :math:`L^\top z_c`. Its scores are :math:`s_c(x) = -\|L^\top (x - z_c)\|^2`.
    The decision function is by how much a label beats the next best, or the score ``reject``.
    A subclass learns ``components_``, and ``mapped_centroids_`` with a row for each of ``used_``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "reject": [Interval(Real, None, None, closed="neither"), None],
        "verbose": ["verbose"],
    }

    reject: float | None

    def _encode(
        self, bags: Bags, y: Any, sample_weight: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        task, known = super()._encode(bags, y, sample_weight)
        target: Target = task[1]
        if target.is_multilabel and not target.positive.any():
            msg = f"{type(self).__name__} needs a label on some list. All lists are empty."
            raise ValueError(msg)
        return task, known

    # ----------------------------------------------------------------------------- the metric

    def transform(self, X: Any) -> Any:
        """Map instances to the space in which the learned metric is Euclidean.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        mapped : Bags or ndarray
            Bags of the same sizes, or a matrix if a matrix was given.
        """
        bags = self._validated(X)
        if not holds_bags(X):
            return self._map(bags.instances)
        return bags.map_instances(self._map)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn the metric and map the instances.

        Warnings about the labels of bags are left out.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : array-like of shape (n_bags,) or (n_bags, n_labels), or list of sets
            Labels; or label lists, as an indicator matrix or as a set of labels for each bag.
        sample_weight : array-like of shape (n_bags,), optional
            Weights of the bags.

        Returns
        -------
        mapped : Bags or ndarray
            As `transform`.
        """
        with quiet(ConstantModelWarning):
            self.fit(X, y, sample_weight)
        return self.transform(X)

    def get_mahalanobis_matrix(self) -> Floats:
        r"""Return :math:`M = L L^\top`.

        Returns
        -------
        matrix : ndarray of shape (n_features, n_features)
            Positive semidefinite; the squared distance of x and y is
            :math:`(x - y)^\top M (x - y)`.
        """
        check_is_fitted(self)
        return np.asarray(self.components_.T @ self.components_)

    def metric(self) -> Callable[[Any, Any], Any]:
        """Return the learned distance as a function.

        Returns
        -------
        distance : callable
            Takes two instances and returns a number, or two matrices and returns the distances
            between their rows. It stays as it is if the estimator is fitted anew.
        """
        check_is_fitted(self)
        learned = self._map_with(dict(vars(self)))

        def distance(x: Any, y: Any) -> Any:
            if np.ndim(x) == 2 or hasattr(x, "toarray"):
                return euclidean_distances(learned(x), learned(y))
            mapped = learned(np.stack([np.asarray(x, float), np.asarray(y, float)]))
            return float(np.linalg.norm(mapped[0] - mapped[1]))

        return distance

    def _map(self, instances: Any) -> Floats:
        return self._map_with(vars(self))(instances)

    def _map_with(self, fitted: Mapping[str, Any]) -> Callable[[Any], Floats]:
        """Return the map of fitted attributes."""
        components, offset = fitted["components_"], fitted["offset_"]
        return lambda instances: np.asarray(linear_scores(instances, components) - offset)

    # ------------------------------------------------------------------------------ instances

    def instance_predict(self, X: Any, none_label: Any = None) -> NDArray[Any]:
        """Return the labels of instances, bag after bag.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        none_label : label, optional
            What an instance gets that is none of these, because its best score is below
            ``reject``. By default -1 if classes are integers and ``"none"`` if they are strings.
            With label lists its row is 0.

        Returns
        -------
        labels : ndarray of shape (n_instances,) or (n_instances, n_labels)
            Labels, or an indicator matrix with label lists.
        """
        bags = self._validated(X)
        places = self._best_places(bags)
        if self.multilabel_:
            indicator = np.zeros((len(places), len(self.classes_)), np.int64)
            named = np.flatnonzero(places >= 0)
            indicator[named, places[named]] = 1
            return indicator
        if self.reject is None:
            return np.asarray(self.classes_[places])
        return self._with_none(places, none_label)

    def _with_none(self, places: NDArray[Any], none_label: Any) -> NDArray[Any]:
        classes = self.classes_
        if none_label is None:
            none_label = _NONE.get(classes.dtype.kind)
            if none_label is None:
                msg = f"instance_predict needs none_label for classes of type {classes.dtype}."
                raise ValueError(msg)
        if none_label in classes.tolist():
            msg = (
                f"none_label must not be one of the classes {classes.tolist()}. Got {none_label!r}."
            )
            raise ValueError(msg)
        kinds = np.result_type(classes.dtype, np.asarray(none_label).dtype)
        labels = classes.astype(kinds)[places]
        labels[places < 0] = none_label
        return np.asarray(labels)

    def _best_places(self, bags: Bags) -> NDArray[np.intp]:
        """Return the column of the best label of each instance, -1 if it is none of these."""

        def best(chunk: Any) -> NDArray[np.intp]:
            scores = self._finite(bags, self._scores(chunk.instances))
            places = scores.argmax(axis=1)
            columns = self.used_[places]
            if self.reject is not None:
                top = scores[np.arange(len(scores)), places]
                columns = np.where(top < self.reject, -1, columns)
            return np.asarray(columns, np.intp)

        with told_by_place(bags):
            return np.asarray(BagSource(bags).concatenate(best))

    # --------------------------------------------------------------------------------- scores

    def _scores(self, instances: Any) -> Floats:
        """Return the scores of instances for the labels that are used."""
        mapped, centers = self._map(instances), self.mapped_centroids_
        norms = np.einsum("ij,ij->i", centers, centers)
        own = np.einsum("ij,ij->i", mapped, mapped)
        return -np.maximum(own[:, None] - 2.0 * (mapped @ centers.T) + norms, 0.0)

    def _leads(self, instances: Any) -> Floats:
        """Return by how much each label beats the next best, or the score of rejection."""
        scores = self._scores(instances)
        rivals = np.full_like(scores, -np.inf)
        if scores.shape[1] > 1:
            rows, best = np.arange(len(scores)), scores.argmax(axis=1)
            rivals[:] = scores[rows, best][:, None]
            scores_without = scores.copy()
            scores_without[rows, best] = -np.inf
            rivals[rows, best] = scores_without.max(axis=1)
        if self.reject is not None:
            rivals = np.maximum(rivals, self.reject)
        leads = np.where(np.isneginf(rivals), 1.0, scores - rivals)
        out = np.repeat(leads.min(axis=1, keepdims=True), self._n_columns, axis=1)
        out = np.minimum(out, -np.finfo(np.float64).tiny)  # labels without a centre never win
        out[:, self.used_] = leads
        return out

    @property
    def _n_columns(self) -> int:
        return len(self.classes_)

    def _instance_outputs(self, bags: Bags) -> Floats:
        leads = BagSource(bags).concatenate(lambda chunk: self._leads(chunk.instances))
        return self._joined(np.asarray(leads))

    def _bag_outputs(self, bags: Bags) -> Floats:
        def best(chunk: Any) -> Floats:
            return np.asarray(segment_max(self._leads(chunk.instances), chunk.starts, chunk.stops))

        return self._shifted(self._joined(np.asarray(BagSource(bags).concatenate(best))))

    def _joined(self, leads: Floats) -> Floats:
        """Return one column for two classes: positive if the second one is ahead."""
        if self.multilabel_ or self._n_columns > 2:
            return leads
        return np.asarray(leads[:, 1:] - leads[:, :1]) / 2.0
