"""The votes of training bags on new ones, compiled."""

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._jit import compiled


@compiled
def count_votes(
    distance: Floats,
    reach: Floats,
    radius: Floats,
    labels: Integers,
    offsets: Integers,
    rounding: float,
    out: Floats,
) -> None:
    """Write the scores of bags for outputs; see `CitationKNN` for the formula.

    Parameters
    ----------
    distance : ndarray of shape (n_bags, n_training_bags)
        Distances of the new bags.
    reach : ndarray of shape (n_bags,)
        Training bags within this distance are references of a new bag.
    radius : ndarray of shape (n_training_bags,)
        New bags within this distance are cited by a training bag.
    labels, offsets : ndarray of int
        Training bag ``i`` is positive in the outputs ``labels[offsets[i]:offsets[i + 1]]``.
    rounding : float
        Distances that differ by this share of them are equal.
    out : ndarray of shape (n_bags, n_outputs)
        The scores.
    """
    n_bags, n_training = distance.shape
    n_outputs = out.shape[1]
    votes, near, far = np.empty(n_outputs), np.empty(n_outputs), np.empty(n_outputs)
    seen, slack = np.full(n_outputs, -1), 1.0 + rounding
    for j in range(n_bags):
        first = 0
        for i in range(1, n_training):
            if distance[j, i] < distance[j, first]:
                first = i
        own = labels[offsets[first] : offsets[first + 1]]
        # Of the outputs in which the nearest bag is negative it is the nearest negative one.
        votes[:], near[:], far[:] = 0.0, np.inf, distance[j, first]
        far[own] = np.inf
        total = 0.0
        for i in range(n_training):
            here = distance[j, i]
            vote = 1.0 if here <= slack * reach[j] else 0.0
            vote += 1.0 if here <= slack * radius[i] else 0.0
            total += vote
            for c in labels[offsets[i] : offsets[i + 1]]:
                votes[c] += vote
                near[c] = min(near[c], here)
                seen[c] = i
            for c in own:
                if seen[c] != i:
                    far[c] = min(far[c], here)
        seen[:] = -1
        for c in range(n_outputs):
            out[j, c] = (2.0 * votes[c] - total + 0.5 * _lead(near[c], far[c], rounding)) / total


@compiled
def _lead(near: float, far: float, rounding: float) -> float:
    """Return by how much one distance is below the other, from -1 to 1."""
    if np.isinf(far):
        return 1.0
    if np.isinf(near):
        return -1.0
    lead = far - near
    return 0.0 if abs(lead) <= rounding * near else lead / (far + near)
