"""Vectors to start from: instances drawn by their values, or the centres of clusters."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from bagwise._arrays import Floats, Integers
from bagwise.bags import Bags, BagSource, distinct_instances
from bagwise.solvers import solve_k_means

_LENGTH_ROWS = 100  # vectors between which distances are averaged


def drawn_instances(bags: Bags, n: int, seed: int) -> NDArray[Any]:
    """Return ``n`` distinct instances, or all of them if there are no more.

    The values of the instances and the seed decide which, and in which order they come; see
    `bagwise.bags.distinct_instances`.

    Parameters
    ----------
    bags : Bags
        In memory or memory-mapped.
    n : int
        How many.
    seed : int
        Another seed, another draw.

    Returns
    -------
    ndarray of shape (n_drawn, n_features)
    """
    return _taken(bags, distinct_instances(bags, n, seed)[:n])


def _taken(bags: Bags, rows: Integers) -> NDArray[Any]:
    """Return some instances as a dense matrix, without a copy of the others."""
    picked = bags.take_instances(rows)
    return picked.toarray() if sp.issparse(picked) else np.array(picked)


def cluster_centres(bags: Bags, n: int, seed: int) -> Floats:
    """Return the centres of ``n`` k-means clusters of the distinct instances.

    The clusters begin as `drawn_instances`.
    """
    first = distinct_instances(bags, n, seed)
    counts = np.zeros(bags.n_instances)
    counts[first] = 1.0
    return solve_k_means(BagSource(bags), _taken(bags, first[:n]), weight=counts).x


def typical_length(bags: Bags, vectors: NDArray[Any]) -> float:
    """Return the mean distance between vectors, or between instances if it is 0; else 1."""
    length = _mean_distance(vectors)
    if length == 0.0:
        length = _mean_distance(drawn_instances(bags, _LENGTH_ROWS, 0))
    return length or 1.0


def _mean_distance(rows: NDArray[Any]) -> float:
    rows = rows[:_LENGTH_ROWS].astype(np.float64)
    return float(pdist(rows).mean()) if len(rows) > 1 else 0.0
