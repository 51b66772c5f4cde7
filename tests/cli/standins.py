"""Estimators for commands whose own come later."""

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin


class M3IC(ClusterMixin, BaseEstimator):
    """Clusters bags by the largest value of their first feature."""

    _parameter_constraints = {"n_clusters": [int], "random_state": ["random_state"]}  # noqa: RUF012

    def __init__(self, n_clusters=2, *, random_state=None):
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X, y=None):
        self._validate_params()
        heights = np.array([bag[:, 0].max() for bag in X])
        ranks = heights.argsort().argsort()
        self.labels_ = ranks * self.n_clusters // len(ranks)
        return self

    def key_instances(self, X):
        return np.array([bag[:, 0].argmax() for bag in X])
