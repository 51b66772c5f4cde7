"""Vectors to start from: instances drawn by their values, or the centres of clusters."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from bagwise.bags import Bags, BagSource, Chunk

_LENGTH_ROWS = 100  # vectors between which distances are averaged
_LLOYD_STEPS = 20
_SETTLED = 1e-4  # share of their scatter by which centres still move at the end


def drawn_instances(bags: Bags, n: int, seed: int) -> NDArray[Any]:
    """Return ``n`` distinct instances, or all of them if there are no more.

    The values of the instances and the seed decide which, and in which order they come: not where
    they stand, nor how often. Instances are distinct if they differ in single precision, so that
    it is the same draw in both precisions; if these are fewer than ``n``, in their own.

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
    return _taken(bags, _first_rows(bags, n, seed)[:n])


def _first_rows(bags: Bags, n: int, seed: int) -> NDArray[np.int64]:
    """Return where each distinct instance first stands, in an order that the seed decides.

    Instances that only differ in double precision are one if ``n`` others can be had.
    """
    first = _first_of_each(bags, np.dtype(np.float32), seed)
    if len(first) < min(n, bags.n_instances) and bags.dtype != np.float32:
        first = _first_of_each(bags, bags.dtype, seed)
    return first


def _first_of_each(bags: Bags, dtype: np.dtype[Any], seed: int) -> NDArray[np.int64]:
    unsigned = np.dtype(f"u{dtype.itemsize}")

    def hashes(chunk: Chunk) -> NDArray[np.uint64]:
        from bagwise.svm._start_kernels import hash_dense, hash_sparse

        rows = chunk.instances
        out = np.empty(rows.shape[0], np.uint64)
        with np.errstate(over="ignore", under="ignore"):
            if sp.issparse(rows):
                bits = (rows.data.astype(dtype) + dtype.type(0)).view(unsigned)
                hash_sparse(bits, rows.indices, rows.indptr, np.uint64(seed), out)
            else:
                bits = (np.ascontiguousarray(rows, dtype) + dtype.type(0)).view(unsigned)
                hash_dense(bits, np.uint64(seed), out)
        return out

    return np.unique(BagSource(bags).concatenate(hashes), return_index=True)[1]


def _taken(bags: Bags, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return some instances as a dense matrix, without a copy of the others."""
    matrix, starts, _ = bags.segments
    offsets = bags.offsets
    bag = np.searchsorted(offsets, rows, side="right") - 1
    picked = matrix[starts[bag] + rows - offsets[bag]]
    return picked.toarray() if sp.issparse(picked) else np.array(picked)


def cluster_centres(bags: Bags, n: int, seed: int) -> NDArray[np.float64]:
    """Return the centres of ``n`` k-means clusters of the distinct instances (Lloyd's steps).

    The clusters begin as `drawn_instances`; a centre that loses all instances stays where it is.
    """
    first = _first_rows(bags, n, seed)
    centres = _taken(bags, first[:n]).astype(np.float64)
    n = len(centres)
    counts = np.zeros(bags.n_instances)
    counts[first] = 1.0
    source = BagSource(bags)

    def sums(chunk: Chunk, Z: NDArray[np.float64]) -> tuple[Any, Any]:
        rows, weight = chunk.instances, counts[chunk.rows]
        products = rows @ Z.T.astype(rows.dtype)
        label = (np.square(Z).sum(axis=1) - 2.0 * products).argmin(axis=1)
        shape = (len(label), n)
        members = sp.csr_array((weight, label, np.arange(len(label) + 1)), shape=shape)
        total = members.T @ rows
        total = total.toarray() if sp.issparse(total) else total
        return total, np.bincount(label, weight, n)

    for _ in range(_LLOYD_STEPS):
        total, mass = source.reduce(sums, centres)
        filled = mass > 0
        means = total / np.where(filled, mass, 1.0)[:, None]
        moved = np.where(filled[:, None], means - centres, 0.0)
        centres = centres + moved
        if np.square(moved).sum() <= _SETTLED * np.square(centres - centres.mean(axis=0)).sum():
            break
    return centres


def typical_length(bags: Bags, vectors: NDArray[Any]) -> float:
    """Return the mean distance between vectors, or between instances if it is 0; else 1."""
    length = _mean_distance(vectors)
    if length == 0.0:
        length = _mean_distance(drawn_instances(bags, _LENGTH_ROWS, 0))
    return length or 1.0


def _mean_distance(rows: NDArray[Any]) -> float:
    rows = rows[:_LENGTH_ROWS].astype(np.float64)
    return float(pdist(rows).mean()) if len(rows) > 1 else 0.0
