"""The contract that every clusterer of bags keeps, written once."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bagwise._arrays import Floats, Integers
from bagwise._warnings import warn
from bagwise.bags import Bags
from bagwise.base._estimator import BagEstimator


def used_first(
    estimator: Any, labels: NDArray[np.integer], n_clusters: int
) -> tuple[Integers, Integers]:
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
        warn(msg, ConvergenceWarning)
    new = np.empty(n_clusters, dtype=np.int64)
    new[order] = np.arange(n_clusters)
    return new[labels], order


class BagClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BagEstimator):
    """Base of all clusterers of bags.

    A subclass writes these and inherits the rest of the contract:

    * `_learn`, which takes validated bags and returns the fitted attributes (``labels_`` and the
      certificate ``result_`` among them) without touching the estimator;
    * `_bag_outputs` and, where instances have scores, `_instance_outputs`;
    * `_per_cluster`, unless it learns ``coef_`` or ``dual_coef_``.

    Labels count from 0 without holes. A cluster that holds none of the training bags is warned
    of and stands last (`used_first`); new bags may still fall into it.
    """

    #: Fitted attributes with an entry for each cluster; the first that is there is counted.
    _per_cluster: tuple[str, ...] = ("coef_", "dual_coef_")

    n_clusters: int
    labels_: Integers

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters of bags.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : ignored
            There for pipelines.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        return self._fit(X)

    def _encode(
        self, bags: Bags, y: Any, sample_weight: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if len(bags) < self.n_clusters:
            msg = (
                f"{type(self).__name__} needs at least n_clusters={self.n_clusters} bags. "
                f"Got n_samples={len(bags)}."
            )
            raise ValueError(msg)
        return (bags,), {}

    @abstractmethod
    def _learn(self, bags: Bags) -> dict[str, Any]:
        """Solve the problem; return fitted attributes, ``labels_`` and ``result_`` among them."""

    # ------------------------------------------------------------------------------- on bags

    def predict(self, X: Any) -> Integers:
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
        return self._labels_of(self._bag_scores(self._validated(X)))

    def decision_function(self, X: Any) -> Floats:
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
        return self._bag_scores(self._validated(X))

    def transform(self, X: Any) -> Floats:
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
        return self._bag_scores(self._validated(X))

    # -------------------------------------------------------------------------------- shared

    def _labels_of(self, outputs: Floats) -> Integers:
        return outputs.argmax(axis=1)

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
