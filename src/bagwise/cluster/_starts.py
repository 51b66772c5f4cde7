"""What searches for clusters begin with, and k-means from several starts."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise._arrays import Floats, Integers
from bagwise._threads import ordered_map
from bagwise.bags import Bags, BagSource, Chunk
from bagwise.kernels import InstanceMetric, nearest
from bagwise.solvers import Result, solve_k_means

_SQUARED = InstanceMetric("sqeuclidean")
_ITERATIONS, _TOL = 300, 1e-4  # of k-means that makes first weights


def given_init(estimator: Any, what: str, shape: tuple[int, int], given: Any = None) -> Floats:
    """Return the numbers that ``init`` of an estimator holds, one row for each cluster.

    What a function has returned is checked in the same way if it is ``given``.
    """
    given = np.asarray(estimator.init if given is None else given, np.float64)
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


def order_by_values(source: BagSource, random: np.random.RandomState) -> Integers:
    """Return a random order of instances that depends on their values, not on how they come."""
    direction = random.normal(size=source.bags.n_features).astype(source.bags.dtype)
    values = source.concatenate(lambda chunk: chunk.instances @ direction)
    return np.argsort(values, kind="stable")


def kmeans_weights(
    source: BagSource,
    order: Integers,
    n_clusters: int,
    n_starts: int,
    random: np.random.RandomState,
) -> Floats:
    """Return the centres of k-means clusters of instances, less their mean, for each start.

    The instances that k-means starts from are drawn from them in this ``order``.
    """

    def draw(random: np.random.RandomState) -> NDArray[Any]:
        return dense_rows(source.bags, order[drawn_rows(len(order), n_clusters, random)])

    runs = kmeans_runs(source, draw, n_starts, random, tol=_TOL, max_iter=_ITERATIONS)
    centres = np.stack([result.x for result in runs])
    return centres - centres.mean(axis=1, keepdims=True)


def kmeans_runs(
    source: BagSource,
    draw: Callable[[np.random.RandomState], NDArray[Any]],
    n_starts: int,
    random: np.random.RandomState,
    *,
    tol: float,
    max_iter: int,
    n_threads: int = 1,
) -> Iterator[Result]:
    """Yield what k-means finds on the instances, by passes, from one start after another.

    Parameters
    ----------
    source : BagSource
        The instances.
    draw : callable
        Returns the first centres, given what is random in a start.
    n_starts : int
        Number of starts.
    random : RandomState
        Where the seeds of the starts come from.
    tol : float
        Change of the centres at which they count as settled, in units of the mean variance of the
        features.
    max_iter : int
        Most iterations of each start.
    n_threads : int
        Threads over which starts are spread if the instances are one chunk; they do not change a
        bit. Else starts follow one another, and the chunks are for the threads of the source.
    """
    seeds = random.randint(np.iinfo(np.int32).max, size=n_starts)

    def run(seed: int) -> Result:
        return solve_k_means(
            source, draw(np.random.RandomState(seed)),
            tol=tol, relative_to="instances", refill=True, max_iter=max_iter,
        )  # fmt: skip

    return ordered_map(run, seeds, n_threads=n_threads if source.n_chunks == 1 else 1)


def drawn_rows(n_rows: int, n: int, random: np.random.RandomState) -> Integers:
    """Return the numbers of ``n`` rows that are drawn at random, with equal chances."""
    return np.asarray(random.choice(n_rows, n, replace=False), np.int64)


def distant_rows(source: BagSource, n: int, random: np.random.RandomState) -> Integers:
    """Return the numbers of ``n`` rows that lie far from each other: the start of k-means++.

    The first is drawn with equal chances. Each other is the best of a few that are drawn with
    chances in proportion to their squared distances from the nearest row so far: the one that
    leaves the smallest sum of these (Arthur and Vassilvitskii 2007, with the trials of their
    section 5). Each takes one pass.
    """
    bags, n_trials = source.bags, 2 + int(np.log(n))
    chosen = np.empty(n, np.int64)
    chosen[0] = random.randint(bags.n_instances)
    closest = squared_distances(source, dense_rows(bags, chosen[:1]))[0]
    for number in range(1, n):
        upto = np.cumsum(closest, dtype=np.float64)
        trials = np.searchsorted(upto, random.uniform(size=n_trials) * upto[-1])
        trials = np.minimum(trials, bags.n_instances - 1)
        distance = squared_distances(source, dense_rows(bags, trials))
        np.minimum(distance, closest, out=distance)
        best = int(distance.sum(axis=1, dtype=np.float64).argmin())
        chosen[number], closest = trials[best], distance[best].copy()
    return chosen


def squared_distances(source: BagSource, centres: NDArray[Any]) -> NDArray[Any]:
    """Return the squared distances of all instances from centres, (n_centres, n_instances)."""
    rows = np.arange(len(centres), dtype=np.int64)
    out = np.empty(
        (len(centres), source.bags.n_instances), np.result_type(source.bags.dtype, centres)
    )

    def fill(chunk: Chunk) -> None:
        out[:, chunk.rows] = nearest(_SQUARED, centres, rows, rows + 1, chunk.instances)

    for _ in source.map(fill):
        pass
    return out


def dense_rows(bags: Bags, rows: Integers) -> NDArray[Any]:
    """Return some instances as a dense matrix, without a copy of the others."""
    picked = bags.take_instances(rows)
    return picked.toarray() if sparse.issparse(picked) else np.asarray(picked)
