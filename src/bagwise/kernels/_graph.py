"""Bags as graphs of their instances: the kernels MIGraph and miGraph of Zhou, Sun and Li (2009).

Two instances of a bag are linked if they are nearer to each other than a threshold, by default the
mean distance inside their bag. miGraph is the set kernel with the weights of `clique_weights`.
MIGraph adds a kernel between the edges that `bag_edges` describes: see `graph_gram`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._threads import ordered_map
from bagwise.kernels._instance import InstanceKernel
from bagwise.kernels._pairs import PairDistances, Pieces
from bagwise.kernels._rows import Matrix
from bagwise.kernels._set import normalise_set_gram, set_gram, set_self

_DIGITS = 10  # of edge features that are compared where edges of one length compete


def clique_weights(
    X: Matrix,
    starts: Integers,
    stops: Integers,
    *,
    threshold: float | str = "mean",
    include_self_pairs: bool = True,
    n_threads: int | None = None,
) -> Floats:
    """Return the miGraph weight of each instance: one over the size of its neighbourhood.

    The neighbourhood of an instance is itself and the instances of its bag that are linked to it,
    so a clique of alike instances has one vote together.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances, of which bags are ranges of rows.
    starts, stops : ndarray of int of shape (n_bags,)
        Bag ``i`` is ``X[starts[i]:stops[i]]``. Bags must not overlap, for an instance has one
        weight; the same bag may be given twice.
    threshold : float or "mean"
        Instances at a smaller distance than this are linked. ``"mean"``: the mean distance of
        pairs in the bag. Equal instances are linked whatever the threshold. A distance that equals
        it, up to a relative 1e-9 (1e-6 in single precision), does not link.
    include_self_pairs : bool
        Whether the mean is over all pairs in both orders and of each instance with itself (at
        distance 0), or over pairs of two different instances.
    n_threads : int or None
        Number of threads; it does not change the result.

    Returns
    -------
    ndarray of shape (n_instances,)
        Weights in (0, 1], and 0 for rows of no bag.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [5.0], [7.0]])
    >>> clique_weights(X, np.array([0, 3]), np.array([3, 4]))
    array([0.5, 0.5, 1. , 1. ])
    """
    pairs = PairDistances.of("clique_weights", X, starts, stops, threshold, include_self_pairs)
    _refuse_overlap(pairs)
    out = np.zeros(pairs.matrix.shape[0])

    def weigh(bags: Integers) -> None:
        pieces = pairs.whole(bags)
        distances = pairs.rounded_distances(pieces)
        degree = _degrees(pieces, distances, pairs.within(bags, pieces, distances))
        rows = np.arange(len(degree)) + np.repeat(pieces.starts - pieces.nodes, pieces.sizes)
        out[rows] = 1.0 / (1.0 + degree)

    for _ in ordered_map(weigh, pairs.runs(), n_threads=n_threads):
        pass
    for bag in pairs.large():
        degree = _large_degrees(pairs, bag, n_threads)
        out[pairs.starts[bag] : pairs.stops[bag]] = 1.0 / (1.0 + degree)
    return out


def bag_edges(
    X: Matrix,
    starts: Integers,
    stops: Integers,
    *,
    threshold: float | str = "mean",
    include_self_pairs: bool = True,
    max_edges: int | None = 256,
    n_threads: int | None = None,
) -> tuple[Floats, Integers, Integers]:
    """Return the edges of each bag's graph as MIGraph describes them.

    An edge between ``u`` and ``v`` is ``[d_u, p_u, d_v, p_v]``: ``d`` is the number of edges at
    that end divided by the number of edges in the bag, ``p`` the share of this edge among the edges
    at that end, each of which counts with one over its length. The end with the larger ``d`` (then
    the larger ``p``) comes first, so the order of the instances makes no difference.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances, of which bags are ranges of rows.
    starts, stops : ndarray of int of shape (n_bags,)
        Bag ``i`` is ``X[starts[i]:stops[i]]``. Bags may come in any order and overlap.
    threshold, include_self_pairs
        As in `clique_weights`.
    max_edges : int or None
        Only so many edges of a bag are returned, the shortest; among edges of one length those
        with the smallest features. ``d`` and ``p`` are those of the whole graph.
    n_threads : int or None
        Number of threads; it does not change the result.

    Returns
    -------
    edges : ndarray of shape (n_edges, 4)
        The edges of all bags.
    edge_starts, edge_stops : ndarray of int of shape (n_bags,)
        Bag ``i`` has ``edges[edge_starts[i]:edge_stops[i]]``; none if it has one instance.

    Notes
    -----
    Edges of length 0 are the limit of short ones: at an instance that has equals in its bag, the
    edges to these share the weight evenly, and its other edges have ``p = 0``.

    All edges as long as the last one that is returned are held until the choice between them is
    made: a bag of ``n`` equal instances takes memory for its ``n (n - 1) / 2`` edges.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [5.0], [7.0]])
    >>> bag_edges(X, np.array([0, 3]), np.array([3, 4]))
    (array([[1., 1., 1., 1.]]), array([0, 1]), array([1, 1]))
    """
    if max_edges is not None and max_edges < 1:
        msg = f"max_edges of bag_edges must be at least 1 or None. Got {max_edges}."
        raise ValueError(msg)
    most = np.iinfo(np.int64).max if max_edges is None else int(max_edges)
    pairs = PairDistances.of("bag_edges", X, starts, stops, threshold, include_self_pairs)

    def describe(bags: Integers) -> _Described:
        pieces = pairs.whole(bags)
        distances = pairs.distances(pieces)
        links = _Links.of(pieces, distances, pairs.within(bags, pieces, distances), most)
        n_edges = np.add.reduceat(links.degree, pieces.nodes) // 2
        return _Described(bags, *links.features(n_edges, most))

    described = list(ordered_map(describe, pairs.runs(), n_threads=n_threads))
    for bag in pairs.large():
        links = _large_links(pairs, bag, most, n_threads)
        n_edges = links.degree.sum(keepdims=True) // 2
        described.append(_Described(np.array([bag]), *links.features(n_edges, most)))
    return _joined(described, len(pairs.starts))


@dataclass(frozen=True)
class BagGraphs:
    """Bags with their edges, ready to be compared by `graph_gram`.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances.
    starts, stops : ndarray of int of shape (n_bags,)
        Bag ``i`` is ``X[starts[i]:stops[i]]``.
    edges : ndarray of shape (n_edges, 4)
        Features of edges.
    edge_starts, edge_stops : ndarray of int of shape (n_bags,)
        Bag ``i`` has ``edges[edge_starts[i]:edge_stops[i]]``, perhaps none.
    """

    X: Matrix
    starts: Integers
    stops: Integers
    edges: Floats
    edge_starts: Integers
    edge_stops: Integers

    @classmethod
    def of(cls, X: Matrix, starts: Integers, stops: Integers, **options: Any) -> "BagGraphs":
        """Build the graphs of bags; the options are those of `bag_edges`."""
        return cls(X, starts, stops, *bag_edges(X, starts, stops, **options))

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, bags: Any) -> "BagGraphs":
        """Return some of the bags (a slice, a mask or indices), on the same instances and edges."""
        return BagGraphs(
            self.X,
            self.starts[bags],
            self.stops[bags],
            self.edges,
            self.edge_starts[bags],
            self.edge_stops[bags],
        )

    @property
    def node_parts(self) -> tuple[Matrix, Integers, Integers]:
        """The instances and their bags, as the set kernel takes them."""
        return self.X, self.starts, self.stops

    @property
    def edge_parts(self) -> tuple[Floats, Integers, Integers]:
        """The edges and their bags, as the set kernel takes them."""
        return self.edges, self.edge_starts, self.edge_stops


def graph_gram(
    node_kernel: InstanceKernel,
    edge_kernel: InstanceKernel,
    graphs: BagGraphs,
    others: BagGraphs | None = None,
    *,
    normalize: str = "sum",
    norms: Floats | None = None,
    other_norms: Floats | None = None,
    edge_sums: Floats | None = None,
    n_threads: int | None = None,
) -> Floats:
    r"""Return the MIGraph kernel between bags.

    With the sums ``N`` of the node kernel over all pairs of instances of two bags, and ``E`` of the
    edge kernel over all pairs of their edges, it is

    .. math::

        \frac{N(B, B') + E(B, B')}{\nu(B)\, \nu(B')}, \qquad \nu(B)^2 = N(B, B) + E(B, B)

    for ``"sum"``, and the mean of ``N`` and ``E``, each divided by its own norms, for ``"parts"``.

    Parameters
    ----------
    node_kernel, edge_kernel : InstanceKernel
        The kernels between instances and between edges (of four features).
    graphs : BagGraphs
        The bags.
    others : BagGraphs, optional
        The bags on the other side; by default the same, and then the result is exactly symmetric.
    normalize : {"sum", "parts"}
        See above. There are many more pairs of nodes than of edges, or the other way round:
        ``"parts"`` lets neither drown the other. A part of norm 0, as the edges of a bag without
        any, contributes 0: such a bag has kernel 1/2 with itself under ``"parts"``, else 1.
    norms, other_norms : ndarray of shape (n_bags, 2), optional
        What `graph_norms` returned for the bags of that side; else they are computed.
    edge_sums : ndarray of shape (n_bags, n_other_bags), optional
        The sums ``E``, where they are known: they do not depend on the node kernel.
    n_threads : int or None
        Number of threads; it does not change the result.

    Returns
    -------
    ndarray of shape (n_bags, n_other_bags)
    """
    _check_normalize(normalize, "graph_gram")
    kernels, sides = (node_kernel, edge_kernel), (graphs, graphs if others is None else others)
    given = [norms, norms if others is None else other_norms]
    grams = []
    for kernel, kind in zip(kernels, ("node_parts", "edge_parts"), strict=True):
        if kind == "edge_parts" and edge_sums is not None:
            shape = len(graphs), len(sides[1])
            grams.append(_checked_shape("edge_sums", edge_sums, shape).copy())
            continue
        own = getattr(graphs, kind)
        other = (None, None, None) if others is None else getattr(others, kind)
        grams.append(set_gram(kernel, *own, *other, n_threads=n_threads))
    if others is None and norms is None:
        squares = np.stack([gram.diagonal() for gram in grams], axis=1)
        given = [_norms_of(squares, normalize)] * 2
    left, right = (
        graph_norms(*kernels, side, normalize=normalize, n_threads=n_threads)
        if known is None
        else _checked_shape("norms", known, (len(side), 2))
        for known, side in zip(given, sides, strict=True)
    )
    for part, gram in enumerate(grams):
        normalise_set_gram(gram, left[:, part], right[:, part], out=gram)
    grams[0] += grams[1]
    if normalize == "parts":
        grams[0] *= 0.5
    return grams[0]


def graph_norms(
    node_kernel: InstanceKernel,
    edge_kernel: InstanceKernel,
    graphs: BagGraphs,
    *,
    normalize: str = "sum",
    n_threads: int | None = None,
) -> Floats:
    """Return what `graph_gram` divides the node part and the edge part of each bag by.

    Parameters are those of `graph_gram`.

    Returns
    -------
    ndarray of shape (n_bags, 2)
        Norms for the nodes and for the edges; the same with ``"sum"``. A norm of 0 is given as 1,
        for what it would divide is 0.

    Notes
    -----
    The score ``sum_i a_i k(B_i, B)`` of a new bag needs no Gram matrix: sum over its instances the
    expansion with the coefficient ``a_i / norms[i, 0]`` for all instances of bag ``i``, likewise
    over its edges with ``a_i / norms[i, 1]``, divide each by the new bag's norms, and add (with
    ``"parts"``: take the mean).
    """
    _check_normalize(normalize, "graph_norms")
    squares = np.stack(
        [
            set_self(node_kernel, *graphs.node_parts, n_threads=n_threads),
            set_self(edge_kernel, *graphs.edge_parts, n_threads=n_threads),
        ],
        axis=1,
    )
    return _norms_of(squares, normalize)


def _norms_of(squares: Floats, normalize: str) -> Floats:
    squares = np.maximum(squares, 0.0)
    if normalize == "sum":
        squares = np.repeat(squares.sum(axis=1, keepdims=True), 2, axis=1)
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))


def _checked_shape(name: str, values: Floats, shape: tuple[int, int]) -> Floats:
    values = np.asarray(values, np.float64)
    if values.shape != shape:
        msg = f"{name} for graph_gram must have shape {shape}. Got {values.shape}."
        raise ValueError(msg)
    return values


def _check_normalize(normalize: str, function: str) -> None:
    if normalize not in ("sum", "parts"):
        msg = f'normalize of {function} must be "sum" or "parts". Got {normalize!r}.'
        raise ValueError(msg)


# ------------------------------------------------------------------------------- links in bags


class _Links(NamedTuple):
    """What the compiled `list_links` returns, all of it or the links that are kept."""

    ends: Integers
    lengths: Floats
    bounds: Integers
    degree: Integers
    equal: Floats
    inverse: Floats

    @classmethod
    def of(cls, pieces: Pieces, distances: Floats, reach: Floats, most: int) -> "_Links":
        from bagwise.kernels._graph_kernels import list_links

        return cls(
            *list_links(distances, pieces.sizes, pieces.firsts, pieces.lasts, reach, pieces.nodes)
        ).trimmed(most)

    def trimmed(self, most: int) -> "_Links":
        """Keep so many links of each bag, the shortest, and those as long as the last of these."""
        crowded = np.flatnonzero(np.diff(self.bounds) > most)
        if not crowded.size:
            return self
        kept = np.ones(len(self.lengths), bool)
        for bag in crowded:
            links = slice(self.bounds[bag], self.bounds[bag + 1])
            lengths = self.lengths[links]
            kept[links] = lengths <= np.partition(lengths, most - 1)[most - 1]
        bounds = np.concatenate([[0], np.cumsum(kept)])[self.bounds]
        return self._replace(ends=self.ends[kept], lengths=self.lengths[kept], bounds=bounds)

    def features(self, n_edges: Integers, most: int) -> tuple[Floats, Integers]:
        """Return the features of at most so many links per bag, and how many each bag has."""
        from bagwise.kernels._graph_kernels import link_features

        features: Floats = link_features(
            self.ends, self.lengths, self.bounds, n_edges, self.degree, self.equal, self.inverse
        )
        counts = np.diff(self.bounds)
        crowded = np.flatnonzero(counts > most)  # only where links of one length compete
        if not crowded.size:
            return features, counts
        kept = np.ones(len(features), bool)
        for bag in crowded:
            links = slice(self.bounds[bag], self.bounds[bag + 1])
            by_value = np.round(features[links], _DIGITS).T[::-1]
            kept[links][np.lexsort((*by_value, self.lengths[links]))[most:]] = False
        return features[kept], np.minimum(counts, most)


class _Described(NamedTuple):
    """The edges of some bags, one bag after the other."""

    bags: Integers
    features: Floats
    counts: Integers


def _joined(described: list[_Described], n_bags: int) -> tuple[Floats, Integers, Integers]:
    edges = np.concatenate([np.empty((0, 4)), *(part.features for part in described)])
    starts, stops = np.zeros(n_bags, np.int64), np.zeros(n_bags, np.int64)
    if described:
        bags = np.concatenate([part.bags for part in described])
        counts = np.concatenate([part.counts for part in described])
        stops[bags] = np.cumsum(counts)
        starts[bags] = stops[bags] - counts
    return edges, starts, stops


def _large_links(pairs: PairDistances, bag: int, most: int, n_threads: int | None) -> _Links:
    reach = pairs.within_large(bag, n_threads)

    def find(piece: Pieces) -> _Links:
        return _Links.of(piece, pairs.distances(piece), reach, most)

    found: _Links | None = None
    for links in ordered_map(find, pairs.cut(bag), n_threads=n_threads):
        if found is None:
            found = links
            continue
        found = _Links(
            np.concatenate([found.ends, links.ends]),
            np.concatenate([found.lengths, links.lengths]),
            np.array([0, len(found.lengths) + len(links.lengths)]),
            found.degree + links.degree,
            found.equal + links.equal,
            found.inverse + links.inverse,
        ).trimmed(most)
    assert found is not None  # a large bag has pairs
    return found


def _large_degrees(pairs: PairDistances, bag: int, n_threads: int | None) -> Integers:
    reach = pairs.within_large(bag, n_threads)

    def count(piece: Pieces) -> Integers:
        return _degrees(piece, pairs.distances(piece), reach)

    degree = np.zeros(pairs.sizes[bag], np.int64)
    for part in ordered_map(count, pairs.cut(bag), n_threads=n_threads):
        degree += part
    return degree


def _degrees(pieces: Pieces, distances: Floats, reach: Floats) -> Integers:
    from bagwise.kernels._graph_kernels import count_links

    degree: Integers = count_links(
        distances, pieces.sizes, pieces.firsts, pieces.lasts, reach, pieces.nodes
    )
    return degree


def _refuse_overlap(pairs: PairDistances) -> None:
    bags = np.unique(np.stack([pairs.starts, pairs.stops], axis=1), axis=0)
    shared = np.flatnonzero(bags[1:, 0] < bags[:-1, 1])
    if shared.size:
        row = bags[shared[0] + 1, 0]
        msg = (
            f"clique_weights gives each instance one weight, so different bags must not share "
            f"rows. Row {row} is in two."
        )
        raise ValueError(msg)
