"""What searches for clusters begin with, and k-means from several starts."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from threadpoolctl import ThreadpoolController

from bagwise._arrays import Floats, Integers
from bagwise._threads import ordered_map
from bagwise.bags import Bags


def given_init(estimator: Any, what: str, shape: tuple[int, int]) -> Floats:
    """Return the numbers that ``init`` of an estimator holds, one row for each cluster."""
    given = np.asarray(estimator.init, np.float64)
    if given.shape != shape or not np.isfinite(given).all():
        got = f"shape {given.shape}" if given.shape != shape else "NaN or infinity"
        name = type(estimator).__name__
        msg = f"init of {name} must hold finite {what} of shape {shape}. Got {got}."
        raise ValueError(msg)
    return given


def given_weights(estimator: Any, shape: tuple[int, int]) -> Floats:
    """Return the weights that ``init`` of an estimator holds, as one start of shape (1, *shape)."""
    given = given_init(estimator, "weights", shape)
    if shape[0] > 1 and not np.ptp(given, axis=0).any():  # all scores of an instance are the same
        name = type(estimator).__name__
        msg = f"init of {name} must hold weights that differ. Got the same for all clusters."
        raise ValueError(msg)
    return given[None]


def order_by_values(bags: Bags, random: np.random.RandomState) -> Integers:
    """Return a random order of instances that depends on their values, not on how they come."""
    direction = random.normal(size=bags.n_features).astype(bags.dtype)
    return np.argsort(bags.instances @ direction, kind="stable")


def kmeans_weights(
    bags: Bags,
    order: Integers,
    n_clusters: int,
    n_starts: int,
    random: np.random.RandomState,
) -> Floats:
    """Return the centres of k-means clusters of instances, less their mean, for each start.

    The instances that k-means starts from are drawn from them in this ``order``.
    """

    def draw(instances: Any, n_clusters: int, random_state: np.random.RandomState) -> Any:
        rows = instances[order[random_state.choice(len(order), n_clusters, replace=False)]]
        return rows.toarray() if sparse.issparse(rows) else rows

    models = kmeans_runs(bags, n_clusters, n_starts, random, init=draw)
    centres = np.stack([model.cluster_centers_ for model in models]).astype(np.float64)
    return centres - centres.mean(axis=1, keepdims=True)


def kmeans_runs(
    bags: Bags,
    n_clusters: int,
    n_starts: int,
    random: np.random.RandomState,
    *,
    n_threads: int = 1,
    **options: Any,
) -> Iterator[KMeans]:
    """Yield scikit-learn's `KMeans`, fitted to the instances from one start after another.

    The bits do not depend on the number of threads, over which starts are spread.
    """
    seeds, instances = random.randint(np.iinfo(np.int32).max, size=n_starts), bags.instances

    def run(seed: int) -> KMeans:
        model = KMeans(n_clusters, n_init=1, random_state=seed, **options)
        with _thread_pools().limit(limits=1, user_api="openmp"):  # sums of several threads vary
            return model.fit(instances)

    return ordered_map(run, seeds, n_threads=n_threads)


@cache
def _thread_pools() -> ThreadpoolController:
    """Return what limits the threads of scikit-learn's loops; finding them takes milliseconds."""
    return ThreadpoolController()
