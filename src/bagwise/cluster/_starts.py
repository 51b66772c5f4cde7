"""Weights that searches for clusters begin with."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from bagwise.bags import Bags


def given_init(estimator: Any, what: str, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return the numbers that ``init`` of an estimator holds, one row for each cluster."""
    given = np.asarray(estimator.init, np.float64)
    if given.shape != shape or not np.isfinite(given).all():
        got = f"shape {given.shape}" if given.shape != shape else "NaN or infinity"
        name = type(estimator).__name__
        msg = f"init of {name} must hold finite {what} of shape {shape}. Got {got}."
        raise ValueError(msg)
    return given


def given_weights(estimator: Any, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return the weights that ``init`` of an estimator holds, as one start of shape (1, *shape)."""
    given = given_init(estimator, "weights", shape)
    if shape[0] > 1 and not np.ptp(given, axis=0).any():  # all scores of an instance are the same
        name = type(estimator).__name__
        msg = f"init of {name} must hold weights that differ. Got the same for all clusters."
        raise ValueError(msg)
    return given[None]


def kmeans_weights(
    bags: Bags, n_clusters: int, n_starts: int, random: np.random.RandomState
) -> NDArray[np.float64]:
    """Return the centres of k-means clusters of instances, less their mean, for each start."""
    seeds, instances = random.randint(np.iinfo(np.int32).max, size=n_starts), bags.instances
    with threadpool_limits(1, user_api="openmp"):  # sums of several threads vary
        models = [
            KMeans(n_clusters, init="random", n_init=1, random_state=seed).fit(instances)
            for seed in seeds
        ]
    centres = np.stack([model.cluster_centers_ for model in models]).astype(np.float64)
    return centres - centres.mean(axis=1, keepdims=True)
