"""Compiled inner loops over the pairs of instances inside bags.

The pairs ``u < v`` of a bag are listed row by row: ``(0, 1), (0, 2), ..., (1, 2), ...``. A piece of
a bag is the pairs whose ``u`` is in ``first:last``, so it is a contiguous part of that list. Arrays
``starts, stops, firsts, lasts`` give several pieces, and their pairs follow each other.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def dense_distances(
    values: NDArray[Any],
    starts: Integers,
    stops: Integers,
    firsts: Integers,
    lasts: Integers,
    out: Floats,
) -> None:
    """Write the Euclidean distance of each pair of the pieces.

    Differences are taken before they are squared: equal rows are at distance 0 exactly, and the
    bits of a distance do not depend on where its two rows stand.
    """
    n_features = values.shape[1]
    at = 0
    for k in range(starts.size):
        for a in range(starts[k] + firsts[k], starts[k] + lasts[k]):
            x = values[a]
            for b in range(a + 1, stops[k]):
                y = values[b]
                square = 0.0
                for j in range(n_features):
                    difference = np.float64(x[j]) - np.float64(y[j])
                    square += difference * difference
                out[at] = np.sqrt(square)
                at += 1


@compiled
def sparse_distances(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    starts: Integers,
    stops: Integers,
    firsts: Integers,
    lasts: Integers,
    out: Floats,
) -> None:
    """Do what `dense_distances` does for CSR rows, whose columns are sorted."""
    at = 0
    for k in range(starts.size):
        for a in range(starts[k] + firsts[k], starts[k] + lasts[k]):
            for b in range(a + 1, stops[k]):
                p, p_end = indptr[a], indptr[a + 1]
                q, q_end = indptr[b], indptr[b + 1]
                square = 0.0
                while p < p_end or q < q_end:
                    if q >= q_end or (p < p_end and indices[p] < indices[q]):
                        difference = np.float64(data[p])
                        p += 1
                    elif p >= p_end or indices[q] < indices[p]:
                        difference = np.float64(data[q])
                        q += 1
                    else:
                        difference = np.float64(data[p]) - np.float64(data[q])
                        p += 1
                        q += 1
                    square += difference * difference
                out[at] = np.sqrt(square)
                at += 1


@compiled
def distances_from_products(
    products: Floats, norms: Floats, values: NDArray[Any], cancelled: float, out: Floats
) -> None:
    """Write the distances of all pairs of a bag, given inner products of its rows less a constant.

    Where the square is less than ``cancelled`` times what it was subtracted from, too few digits
    are left, and it is computed from the differences.
    """
    at = 0
    for a in range(values.shape[0]):
        for b in range(a + 1, values.shape[0]):
            whole = norms[a] + norms[b]
            square = whole - 2.0 * products[a, b]
            if square < cancelled * whole:
                square = 0.0
                for j in range(values.shape[1]):
                    difference = np.float64(values[a, j]) - np.float64(values[b, j])
                    square += difference * difference
            out[at] = np.sqrt(square)
            at += 1


@compiled
def piece_sums(distances: Floats, sizes: Integers, firsts: Integers, lasts: Integers) -> Floats:
    """Return the sum of the distances of each piece, added up row by row."""
    sums = np.zeros(sizes.size)
    at = 0
    for k in range(sizes.size):
        for u in range(firsts[k], lasts[k]):
            row = 0.0
            for _ in range(u + 1, sizes[k]):
                row += distances[at]
                at += 1
            sums[k] += row
    return sums


@compiled
def count_links(
    distances: Floats,
    sizes: Integers,
    firsts: Integers,
    lasts: Integers,
    reach: Floats,
    nodes: Integers,
) -> Integers:
    """Return for each instance of the bags to how many others it is linked within the pieces.

    The instances of piece ``k`` are entries ``nodes[k]:nodes[k] + sizes[k]`` of the result. Linked
    are those nearer than ``reach[k]``, and equal ones always.
    """
    degree = np.zeros(nodes[-1] + sizes[-1] if sizes.size else 0, np.int64)
    at = 0
    for k in range(sizes.size):
        node, limit = nodes[k], reach[k]
        for u in range(firsts[k], lasts[k]):
            for v in range(u + 1, sizes[k]):
                linked = np.int64((distances[at] < limit) | (distances[at] == 0.0))
                degree[node + u] += linked
                degree[node + v] += linked
                at += 1
    return degree


@compiled
def list_links(
    distances: Floats,
    sizes: Integers,
    firsts: Integers,
    lasts: Integers,
    reach: Floats,
    nodes: Integers,
) -> tuple[Integers, Floats, Integers, Integers, Floats, Floats]:
    """List the links of the pieces, and sum up for each instance what its links weigh.

    Pieces, ``reach`` and ``nodes`` are as in `count_links`.

    Returns
    -------
    ends : ndarray of int of shape (n_links, 2)
        The two instances, by their entry in the arrays below.
    lengths : ndarray of shape (n_links,)
    bounds : ndarray of int of shape (n_pieces + 1,)
        Piece ``k`` has links ``bounds[k]:bounds[k + 1]``.
    degree, equal, inverse : ndarray of shape (n_nodes,)
        Number of links; number of links of length 0; sum of 1 / length of the others.
    """
    n_nodes = nodes[-1] + sizes[-1] if sizes.size else 0
    degree, equal, inverse = np.zeros(n_nodes, np.int64), np.zeros(n_nodes), np.zeros(n_nodes)
    n_links = 0
    at = 0
    for k in range(sizes.size):
        for u in range(firsts[k], lasts[k]):
            for _ in range(u + 1, sizes[k]):
                if distances[at] < reach[k] or distances[at] == 0.0:
                    n_links += 1
                at += 1
    ends, lengths = np.empty((n_links, 2), np.int64), np.empty(n_links)
    bounds = np.zeros(sizes.size + 1, np.int64)
    at = n_links = 0
    for k in range(sizes.size):
        node, limit = nodes[k], reach[k]
        for u in range(firsts[k], lasts[k]):
            for v in range(u + 1, sizes[k]):
                distance = distances[at]
                at += 1
                if not (distance < limit or distance == 0.0):
                    continue
                ends[n_links, 0], ends[n_links, 1] = node + u, node + v
                lengths[n_links] = distance
                n_links += 1
                for end in (node + u, node + v):
                    degree[end] += 1
                    if distance == 0.0:
                        equal[end] += 1.0
                    else:
                        inverse[end] += 1.0 / distance
        bounds[k + 1] = n_links
    return ends, lengths, bounds, degree, equal, inverse


@compiled
def link_features(
    ends: Integers,
    lengths: Floats,
    bounds: Integers,
    n_edges: Integers,
    degree: Integers,
    equal: Floats,
    inverse: Floats,
) -> Floats:
    """Return ``[d_u, p_u, d_v, p_v]`` for each link, the larger of the two ends first."""
    features = np.empty((lengths.size, 4))
    for k in range(bounds.size - 1):
        for link in range(bounds[k], bounds[k + 1]):
            length = lengths[link]
            for side in range(2):
                end = ends[link, side]
                if equal[end] > 0.0:
                    share = 1.0 / equal[end] if length == 0.0 else 0.0
                else:
                    share = 1.0 / length / inverse[end]
                features[link, 2 * side] = degree[end] / n_edges[k]
                features[link, 2 * side + 1] = share
            first, second = features[link, 0], features[link, 2]
            if first < second or (first == second and features[link, 1] < features[link, 3]):
                features[link, 0], features[link, 2] = second, first
                features[link, 1], features[link, 3] = features[link, 3], features[link, 1]
    return features
