"""Compiled scan over bags: the best instance of each, and the cluster that it is best for."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import compiled


@compiled
def csr_product(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], weights: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """Write the product of sparse rows with weights, which have one row for each feature."""
    for i in range(out.shape[0]):
        for c in range(out.shape[1]):
            out[i, c] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            value, row = np.float64(data[e]), weights[indices[e]]
            for c in range(out.shape[1]):
                out[i, c] += value * row[c]


@compiled
def scan_bags(
    scores: NDArray[Any], starts: Integers, stops: Integers, k: int,
    place: Integers, cluster: Integers, best: Floats,
) -> None:  # fmt: skip
    """Write place, cluster and score of the highest score of each bag, the first if several.

    Each ``k`` columns of the scores are those of the clusters of one search, which has a row in
    each of the outputs.
    """
    for b in range(starts.shape[0]):
        for q in range(place.shape[0]):
            top, at, who = scores[starts[b], q * k], 0, 0
            for j in range(starts[b], stops[b]):
                for p in range(k):
                    if scores[j, q * k + p] > top:
                        top, at, who = scores[j, q * k + p], j - starts[b], p
            place[q, b], cluster[q, b], best[q, b] = at, who, top
