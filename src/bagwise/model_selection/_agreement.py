"""How well labellings of the same bags agree with one another."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats

_NUMBERS = 2**20  # of bags and of shared counts in memory at a time


def agreement(labellings: Sequence[NDArray[np.integer]]) -> Floats:
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
    shares = np.stack([np.bincount(row, minlength=n_clusters) for row in table]) / table.shape[1]
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    information = np.add.outer(entropy, entropy) - _joint_entropy(table, n_clusters)
    scale = np.sqrt(np.outer(entropy, entropy))
    ratio = np.divide(information, scale, out=np.zeros_like(scale), where=scale > 0)
    return np.clip(ratio, 0.0, 1.0)


def _joint_entropy(table: NDArray[np.integer], n_clusters: int) -> Floats:
    """Return the entropy of each pair of rows, taken as one labelling with a cluster per pair."""
    n_labellings, n_bags = table.shape
    counted = np.arange(n_bags + 1)
    terms = counted * (np.log(n_bags) - np.log(np.maximum(counted, 1))) / n_bags
    some = max(1, _NUMBERS // (n_bags + n_clusters**2))
    entropy = np.empty((n_labellings, n_labellings))
    for i, row in enumerate(table):
        first_codes = n_clusters * row.astype(np.int64)
        for start in range(i, n_labellings, some):
            others = table[start : start + some]
            codes = first_codes + others + n_clusters**2 * np.arange(len(others))[:, None]
            counts = np.bincount(codes.ravel(), minlength=len(others) * n_clusters**2)
            entropy[i, start : start + some] = terms[counts].reshape(len(others), -1).sum(axis=1)
        entropy[i:, i] = entropy[i, i:]
    return entropy
