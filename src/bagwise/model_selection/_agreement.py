"""How well many labellings of the same bags agree with one another."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_BLOCK = 4096  # bags at a time, whose counts are exact in single precision


def agreement(labellings: Sequence[NDArray[np.integer]]) -> NDArray[np.float64]:
    """Return the normalized mutual information of all pairs of labellings.

    Parameters
    ----------
    labellings : sequence of ndarray of int of shape (n_bags,)
        Clusters of the same bags, counted from 0.

    Returns
    -------
    information : ndarray of shape (n_labellings, n_labellings)
        Mutual information over the geometric mean of the entropies, as
        `bagwise.metrics.normalized_mutual_information` has it: 0 where a labelling has one cluster.
    """
    table = np.stack(labellings)
    n_clusters = int(table.max()) + 1
    joint = _counts(table, n_clusters) / table.shape[1]
    shares = np.einsum("iaia->ia", joint)
    outer = shares[:, :, None, None] * shares[None, None]
    logs = np.log(np.divide(joint, outer, out=np.ones_like(joint), where=joint > 0))
    information = np.einsum("iajb,iajb->ij", joint, logs)
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    scale = np.sqrt(entropy[:, None] * entropy)
    ratio = np.divide(information, scale, out=np.zeros_like(scale), where=scale > 0)
    return np.clip(ratio, 0.0, 1.0)


def _counts(table: NDArray[np.integer], n_clusters: int) -> NDArray[np.float64]:
    """Return how many bags are in cluster a of labelling i and in cluster b of labelling j."""
    n_rows = len(table) * n_clusters
    counts = np.zeros((n_rows, n_rows))
    for first in range(0, table.shape[1], _BLOCK):
        block = table[:, None, first : first + _BLOCK]
        members = (block == np.arange(n_clusters)[:, None]).reshape(n_rows, -1).astype(np.float32)
        counts += members @ members.T
    return counts.reshape(len(table), n_clusters, len(table), n_clusters)
