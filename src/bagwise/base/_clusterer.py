"""The contract that every clusterer of bags keeps, written once."""

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bagwise.bags import Bags, segment_argmax
from bagwise.base._certificates import warn_unless_converged
from bagwise.base._fitting import all_or_nothing, forget_fit
from bagwise.base._tags import BagTags
from bagwise.base._validation import validate_bags
from bagwise.solvers import Certificate


def _scores_instances(estimator: "BagClusterer") -> bool:
    return estimator.__bagwise_tags__().instance_scores


def used_first(
    estimator: Any, labels: NDArray[np.integer], n_clusters: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Put the clusters that hold bags first, and warn of those that do not.

    Parameters
    ----------
    estimator : object
        Its class name is in the warning.
    labels : ndarray of int of shape (n_bags,)
        Clusters of the bags, from 0.
    n_clusters : int
        Number of clusters, empty ones included.

    Returns
    -------
    labels : ndarray of int of shape (n_bags,)
        The new numbers.
    order : ndarray of int of shape (n_clusters,)
        The old number of each cluster, in the new order: sorts rows of centres or weights.
    """
    is_used = np.bincount(labels, minlength=n_clusters) > 0
    order = np.argsort(~is_used, kind="stable")
    if not is_used.all():
        msg = (
            f"{type(estimator).__name__} put bags into {is_used.sum()} of n_clusters={n_clusters} "
            "clusters; the others are empty. Ask for fewer, or try other parameters."
        )
        warnings.warn(msg, ConvergenceWarning, stacklevel=5)
    new = np.empty(n_clusters, dtype=np.int64)
    new[order] = np.arange(n_clusters)
    return new[labels], order


class BagClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Base of all clusterers of bags.

    A subclass writes these and inherits the rest of the contract:

    * ``fit``, with its own documentation, which calls `_fit`;
    * `_learn`, which takes validated bags and returns the fitted attributes (``labels_``,
      a ``result_`` certificate among them) without touching the estimator;
    * `_bag_outputs` and, where instances have scores, `_instance_outputs`;
    * `_per_cluster`, unless it learns ``coef_`` or ``dual_coef_``.

    Labels count from 0 without holes. A cluster that holds none of the training bags is warned
    of and stands last (`used_first`); new bags may still fall into it.
    """

    #: End of the sentence "To converge, ..." in a `ConvergenceWarning`.
    _convergence_advice = "raise max_iter or tol"

    #: Fitted attributes with an entry for each cluster; the first that is there is counted.
    _per_cluster: tuple[str, ...] = ("coef_", "dual_coef_")

    n_clusters: int
    labels_: NDArray[np.int64]

    def _fit(self, X: Any) -> Self:
        with all_or_nothing(self):
            self._validate_params()
            forget_fit(self)
            bags = validate_bags(self, X, reset=True)
            if len(bags) < self.n_clusters:
                msg = (
                    f"{type(self).__name__} needs at least n_clusters={self.n_clusters} bags. "
                    f"Got n_samples={len(bags)}."
                )
                raise ValueError(msg)
            for name, value in self._learn(bags).items():
                setattr(self, name, value)
            # Inside the block: where warnings are errors, this one is a failed fit like any other.
            warn_unless_converged(self, self.result_, self._convergence_advice)
        return self

    @abstractmethod
    def _learn(self, bags: Bags) -> dict[str, Any]:
        """Solve the problem; return fitted attributes, ``labels_`` and ``result_`` among them."""

    @abstractmethod
    def _bag_outputs(self, bags: Bags) -> NDArray[np.float64]:
        """Return scores of shape (n_bags, n_clusters): a bag is in the cluster of the highest."""

    def _instance_outputs(self, bags: Bags) -> NDArray[np.float64]:
        """Return scores of shape (n_instances, n_clusters); only where the tags promise them."""
        msg = f"{type(self).__name__} scores bags only, not instances."
        raise AttributeError(msg)

    # ------------------------------------------------------------------------------- on bags

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the cluster of each bag; the first of several with the same score.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        labels : ndarray of int of shape (n_bags,)
            Clusters, counted from 0.
        """
        return self._bag_outputs(self._validated(X)).argmax(axis=1)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of bags for the clusters: a bag is in the cluster of the highest.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        scores : ndarray of shape (n_bags, n_clusters)
            One column for each cluster.
        """
        return self._bag_outputs(self._validated(X))

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return what the method measures between each bag and each cluster.

        These are the scores of `decision_function`, unless a method measures distances.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        scores : ndarray of shape (n_bags, n_clusters)
            Scores, highest for the cluster of the bag.
        """
        return self._bag_outputs(self._validated(X))

    # -------------------------------------------------------------------------- on instances

    @available_if(_scores_instances)
    def instance_decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of instances, bag after bag: one row for each of ``X.instances``.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        scores : ndarray of shape (n_instances, n_clusters)
            One column for each cluster.
        """
        return self._instance_outputs(self._validated(X))

    @available_if(_scores_instances)
    def instance_predict(self, X: Any) -> NDArray[np.int64]:
        """Return the cluster of each instance, bag after bag.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        labels : ndarray of int of shape (n_instances,)
            As `predict`.
        """
        return self._instance_outputs(self._validated(X)).argmax(axis=1)

    @available_if(_scores_instances)
    def key_instances(self, X: Any) -> NDArray[np.int64]:
        """Return which instance of each bag speaks most for the cluster of the bag.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        places : ndarray of int of shape (n_bags,)
            Place inside the bag, counted from 0.
        """
        bags = self._validated(X)
        return self._key_places(bags, self._bag_outputs(bags).argmax(axis=1))

    def _key_places(self, bags: Bags, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place of the instance with the highest score for the cluster of its bag."""
        scores = self._instance_outputs(bags)
        own = scores[np.arange(len(scores)), np.repeat(labels, bags.sizes)]
        return segment_argmax(own, bags.offsets[:-1], bags.offsets[1:])

    # -------------------------------------------------------------------------------- shared

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver, as in ``result_``."""
        certificate: Certificate = self.result_
        return certificate.n_iter

    @property
    def _n_features_out(self) -> int:
        """Number of columns of `transform`; scikit-learn makes their names from it.

        It is that of the fit: the parameter ``n_clusters`` may have changed since.
        """
        check_is_fitted(self)
        for name in self._per_cluster:
            if hasattr(self, name):
                return len(getattr(self, name))
        msg = f"_per_cluster of {type(self).__name__} must name an attribute that fit sets."
        raise TypeError(msg)

    def _validated(self, X: Any) -> Bags:
        check_is_fitted(self)
        return validate_bags(self, X, reset=False)

    def __bagwise_tags__(self) -> BagTags:
        return BagTags()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        return tags
