"""How well labellings of the same bags agree with one another."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_BAGS = 4096  # compared at a time; their counts are exact in single precision
_NUMBERS = 2**22  # of shared counts in memory at a time


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
    shares = np.stack([np.bincount(row, minlength=n_clusters) for row in table]) / table.shape[1]
    rows = max(1, _NUMBERS // (table.shape[0] * n_clusters**2))
    parts = [
        _information(table[first : first + rows], shares[first : first + rows], table, shares)
        for first in range(0, len(table), rows)
    ]
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    scale = np.sqrt(np.outer(entropy, entropy))
    ratio = np.divide(np.concatenate(parts), scale, out=np.zeros_like(scale), where=scale > 0)
    return np.clip(ratio, 0.0, 1.0)


def _information(
    left: NDArray[np.integer],
    left_shares: NDArray[np.float64],
    right: NDArray[np.integer],
    right_shares: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the mutual information of some labellings with others."""
    k = right_shares.shape[1]
    counts = np.zeros((left.shape[0] * k, right.shape[0] * k))
    for first in range(0, right.shape[1], _BAGS):
        some = slice(first, first + _BAGS)
        counts += _members(left[:, some], k) @ _members(right[:, some], k).T
    joint = (counts / right.shape[1]).reshape(len(left), k, len(right), k)
    expected = left_shares[:, :, None, None] * right_shares
    logs = np.log(np.divide(joint, expected, out=np.ones_like(joint), where=joint > 0))
    information: NDArray[np.float64] = np.einsum("iajb,iajb->ij", joint, logs)
    return information


def _members(table: NDArray[np.integer], n_clusters: int) -> NDArray[np.float32]:
    """Return a row for each cluster of each labelling, with ones at its bags."""
    is_member = table[:, None] == np.arange(n_clusters)[:, None]
    return is_member.reshape(-1, table.shape[1]).astype(np.float32)
