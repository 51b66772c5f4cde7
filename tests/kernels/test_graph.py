"""Graph kernels against plain numpy that writes out every pair."""

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import bagwise.kernels._pairs as pairs_module
from bagwise.kernels import InstanceKernel, normalise_set_gram, set_gram, set_self
from bagwise.kernels._graph import BagGraphs, bag_edges, clique_weights, graph_gram, graph_norms

NODE = InstanceKernel("rbf", gamma=0.3)
EDGE = InstanceKernel("rbf", gamma=10.0)
SIZES = [6, 1, 14, 2, 3, 1, 9]


@pytest.fixture(params=["together", "alone", "cut"])
def steps(request, monkeypatch):
    """Work on several bags at a time, on one, or on a few pairs of one."""
    monkeypatch.setattr(pairs_module, "_PRODUCT_ROWS", 6)
    if request.param != "together":
        monkeypatch.setattr(pairs_module, "_PAIRS", 100 if request.param == "alone" else 5)


def _bags(sizes=SIZES, d=3, seed=0, dtype=np.float64):
    """Return rows and bags in another order than the rows; two rows are equal."""
    rng = np.random.default_rng(seed)
    stops = np.cumsum(sizes) + 2
    starts = stops - sizes
    X = rng.normal(size=(int(np.sum(sizes)) + 4, d)).astype(dtype)
    X[starts[0] + 1] = X[starts[0] + 4]
    order = rng.permutation(len(sizes))
    return X, starts[order], stops[order]


def _distances(bag):
    bag = np.asarray(bag, np.float64)
    return np.sqrt(((bag[:, None] - bag[None]) ** 2).sum(axis=2))


def _adjacency(bag, threshold="mean", include_self_pairs=True):
    distance = _distances(bag)
    n = len(bag)
    if threshold == "mean":
        threshold = distance.sum() / max(1, n * n if include_self_pairs else n * (n - 1))
    return (distance < threshold) | (distance == 0)


def _naive_weights(X, starts, stops, **options):
    out = np.zeros(len(X))
    for a, b in zip(starts, stops, strict=True):
        out[a:b] = 1.0 / _adjacency(X[a:b], **options).sum(axis=1)
    return out


def _naive_edges(bag, **options):
    """Return lengths and features of the edges of one bag, from the definition."""
    distance, linked = _distances(bag), _adjacency(bag, **options)
    np.fill_diagonal(linked, False)
    ends = [(u, v) for u, v in itertools.combinations(range(len(bag)), 2) if linked[u, v]]

    def describe(u, v):
        neighbours = np.flatnonzero(linked[u])
        lengths = np.maximum(distance[u, neighbours], 1e-200)  # so short that it takes all weight
        share = 1.0 / max(distance[u, v], 1e-200) / np.sum(1.0 / lengths)
        return (len(neighbours) / len(ends), share)

    features = [sorted([describe(u, v), describe(v, u)], reverse=True) for u, v in ends]
    return [distance[u, v] for u, v in ends], np.reshape(features, (-1, 4))


def _sorted_rows(rows):
    rows = np.asarray(rows)
    return rows[np.lexsort(np.round(rows, 9).T)]


OPTIONS = [
    {},
    {"include_self_pairs": False},
    {"threshold": 1.1},
    {"threshold": 1e-9},
    {"threshold": 1e9},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights(steps, options, form, dtype):
    X, starts, stops = _bags(dtype=dtype)
    X[X < -0.4] = 0.0
    found = clique_weights(form(X), starts, stops, **options)
    np.testing.assert_array_equal(found, _naive_weights(X, starts, stops, **options))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", [0.0, 1e5])
def test_distances_from_products_keep_their_digits(dtype, place):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(150, 4)) * np.where(rng.random(150) < 0.5, 1e-4, 1.0)[:, None]
    X = (X + place).astype(dtype)
    X[7] = X[100]
    bounds = np.array([0]), np.array([150])
    pairs = pairs_module.PairDistances.of("f", X, *bounds, "mean", True)
    pieces = pairs.whole(np.array([0]))
    found = pairs.rounded_distances(pieces)
    np.testing.assert_allclose(found, pairs.distances(pieces), rtol=1e-11)
    np.testing.assert_allclose(found, _distances(X)[np.triu_indices(150, 1)], rtol=1e-11)
    np.testing.assert_array_equal(clique_weights(X, *bounds), _naive_weights(X, *bounds))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_edges(steps, options, form):
    X, starts, stops = _bags()
    X[X < -0.4] = 0.0
    edges, edge_starts, edge_stops = bag_edges(form(X), starts, stops, max_edges=None, **options)
    assert (edge_stops - edge_starts).sum() == len(edges)
    for i, (a, b) in enumerate(zip(starts, stops, strict=True)):
        found = edges[edge_starts[i] : edge_stops[i]]
        expected = _naive_edges(X[a:b], **options)[1]
        np.testing.assert_allclose(
            _sorted_rows(found), _sorted_rows(expected), rtol=1e-12, atol=1e-15
        )


def test_known_graph():
    X = np.array([[0.0], [1.0], [3.0], [20.0]])
    edges, _, _ = bag_edges(X, np.array([0]), np.array([4]), threshold=2.5)
    middle = [2 / 2, 2 / 3, 1 / 2, 1.0], [2 / 2, 1 / 3, 1 / 2, 1.0]
    np.testing.assert_allclose(_sorted_rows(edges), _sorted_rows(middle), rtol=1e-15)
    np.testing.assert_allclose(
        clique_weights(X, np.array([0]), np.array([4]), threshold=2.5), [1 / 2, 1 / 3, 1 / 2, 1.0]
    )


def test_two_instances_are_linked_only_if_equal():
    X = np.array([[0.1, 0.2], [0.7, 0.3], [1e-9, 0.0], [0.0, 0.0], [0.3, 0.4], [0.3, 0.4]])
    starts, stops = np.array([0, 2, 4]), np.array([2, 4, 6])
    for include in (True, False):
        found = clique_weights(X, starts, stops, include_self_pairs=include)
        np.testing.assert_array_equal(found, [1.0, 1.0, 1.0, 1.0, 0.5, 0.5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_distances_do_not_link(dtype):
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    for shift in (0.0, 3.0):
        X = (rotation * 0.37 + shift).astype(dtype)  # rows at one distance, up to rounding
        found = clique_weights(X, np.array([0]), np.array([7]), include_self_pairs=False)
        np.testing.assert_array_equal(found, np.ones(7))


def test_duplicates_are_found_far_from_the_origin():
    rng = np.random.default_rng(1)
    base = 1e6 + rng.normal(size=(4, 3))
    X = base[[0, 1, 2, 3, 0, 0]]
    found = clique_weights(X, np.array([0]), np.array([6]), threshold=1e-5)
    np.testing.assert_array_equal(found, [1 / 3, 1, 1, 1, 1 / 3, 1 / 3])


def test_constant_bags_are_one_clique(steps):
    X = np.full((9, 2), 0.1)
    starts, stops = np.array([0, 5]), np.array([5, 9])
    found = clique_weights(X, starts, stops)
    np.testing.assert_array_equal(found, np.repeat([1 / 5, 1 / 4], [5, 4]))
    edges, edge_starts, edge_stops = bag_edges(X, starts, stops, max_edges=7)
    np.testing.assert_array_equal(edge_stops - edge_starts, [7, 6])
    np.testing.assert_allclose(edges[edge_starts[0]], [0.4, 1 / 4, 0.4, 1 / 4])


@pytest.mark.parametrize("max_edges", [1, 4, 11, 1000])
def test_the_shortest_edges_are_kept(steps, max_edges):
    X, starts, stops = _bags([30, 5, 12])
    edges, edge_starts, edge_stops = bag_edges(X, starts, stops, max_edges=max_edges)
    for i, (a, b) in enumerate(zip(starts, stops, strict=True)):
        lengths, features = _naive_edges(X[a:b])
        expected = features[np.argsort(lengths, kind="stable")[:max_edges]]
        found = edges[edge_starts[i] : edge_stops[i]]
        np.testing.assert_allclose(
            _sorted_rows(found), _sorted_rows(expected), rtol=1e-12, atol=1e-15
        )


def test_edges_that_compete_are_chosen_by_value(steps):
    grid = np.array(list(itertools.product(range(4), range(3))), float)  # many edges of length 1
    rng = np.random.default_rng(2)
    kept = None
    for _ in range(5):
        X = grid[rng.permutation(len(grid))]
        edges, _, _ = bag_edges(X, np.array([0]), np.array([len(X)]), max_edges=6)
        assert len(edges) == 6
        kept = edges if kept is None else kept
        np.testing.assert_allclose(_sorted_rows(edges), _sorted_rows(kept), rtol=1e-12)


@pytest.mark.parametrize("max_edges", [None, 5])
def test_order_of_instances_makes_no_difference(max_edges):
    X, starts, stops = _bags()
    rng = np.random.default_rng(3)
    shuffled = np.arange(len(X))
    for a, b in zip(starts, stops, strict=True):
        shuffled[a:b] = a + rng.permutation(b - a)
    Y = X[shuffled]
    np.testing.assert_array_equal(
        clique_weights(Y, starts, stops), clique_weights(X, starts, stops)[shuffled]
    )
    grams = [
        graph_gram(NODE, EDGE, BagGraphs.of(Z, starts, stops, max_edges=max_edges)) for Z in (X, Y)
    ]
    np.testing.assert_allclose(grams[1], grams[0], rtol=1e-12)


def test_scale_and_place_make_no_difference():
    X, starts, stops = _bags()
    weights, (edges, *bounds) = clique_weights(X, starts, stops), bag_edges(X, starts, stops)
    for Y in (1e5 * X, 1e-7 * X, X + 4.0, -0.3 * X):
        np.testing.assert_array_equal(clique_weights(Y, starts, stops), weights)
        other, *other_bounds = bag_edges(Y, starts, stops)
        np.testing.assert_allclose(other, edges, rtol=1e-9)
        np.testing.assert_array_equal(other_bounds, bounds)


def test_bits_of_distances_do_not_depend_on_the_order():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(37, 23))
    order = rng.permutation(37)
    found = []
    for Y in (X, X[order]):
        pairs = pairs_module.PairDistances.of("f", Y, np.array([0]), np.array([37]), "mean", True)
        square = np.zeros((37, 37))
        square[np.triu_indices(37, 1)] = pairs.distances(pairs.whole(np.array([0])))
        found.append(square + square.T)
    np.testing.assert_array_equal(found[1], found[0][np.ix_(order, order)])
    np.testing.assert_allclose(found[0], _distances(X), rtol=1e-14)


def test_threads_do_not_change_a_bit(steps):
    X, starts, stops = _bags(SIZES * 4)
    for form in (np.asarray, sp.csr_array):
        for function in (clique_weights, bag_edges):
            one = function(form(X), starts, stops, n_threads=1)
            many = function(form(X), starts, stops, n_threads=3)
            for a, b in zip(one, many, strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_large_bag_is_never_held_as_a_square():
    n = 3000
    X = np.random.default_rng(0).normal(size=(n, 2))
    bounds = np.array([0]), np.array([n])
    for function in (clique_weights, bag_edges):  # compiled before memory is watched
        function(X, np.array([0]), np.array([10]))
    tracemalloc.start()
    weights = clique_weights(X, *bounds, n_threads=1)
    edges, _, _ = bag_edges(X, *bounds, n_threads=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * n * 8 / 2
    assert len(edges) == 256
    distances = _distances(X)
    near = (distances < distances.mean()).sum(axis=1)
    np.testing.assert_array_equal(weights, 1.0 / near)


def test_without_links_mi_graph_is_the_normalised_set_kernel():
    X, starts, stops = _bags()
    X += 1e-3 * np.arange(len(X))[:, None]  # no two rows are equal
    weights = clique_weights(X, starts, stops, threshold=1e-9)
    sizes = (stops - starts).astype(float)
    plain = normalise_set_gram(set_gram(NODE, X, starts, stops), sizes, sizes)
    mass = np.array([weights[a:b].sum() for a, b in zip(starts, stops, strict=True)])
    gram = set_gram(NODE, X, starts, stops, weights=weights)
    np.testing.assert_allclose(normalise_set_gram(gram, mass, mass), plain, rtol=1e-14)


def test_mi_graph_kernel_against_pairs():
    X, starts, stops = _bags()
    weights = clique_weights(X, starts, stops)
    mass = np.array([weights[a:b].sum() for a, b in zip(starts, stops, strict=True)])
    gram = set_gram(NODE, X, starts, stops, weights=weights)
    product = normalise_set_gram(gram, mass, mass)
    root = np.sqrt(set_self(NODE, X, starts, stops, weights=weights))
    cosine = normalise_set_gram(gram, root, root)
    naive = _naive_weights(X, starts, stops)
    k = np.exp(-0.3 * _distances(X) ** 2)
    bags = [slice(a, b) for a, b in zip(starts, stops, strict=True)]
    sums = np.array([[naive[p] @ k[p, q] @ naive[q] for q in bags] for p in bags])
    votes = np.array([naive[p].sum() for p in bags])
    np.testing.assert_allclose(product, sums / np.outer(votes, votes), rtol=1e-11)
    norm = np.sqrt(sums.diagonal())
    np.testing.assert_allclose(cosine, sums / np.outer(norm, norm), rtol=1e-11)
    for matrix in (product, cosine):
        assert np.linalg.eigvalsh(matrix).min() > -1e-12


def _naive_gram(X, left, right, normalize):
    def parts(p, q):
        node = np.exp(-0.3 * ((X[p][:, None] - X[q][None]) ** 2).sum(axis=2)).sum()
        e, f = _naive_edges(X[p])[1], _naive_edges(X[q])[1]
        edge = np.exp(-10.0 * ((e[:, None] - f[None]) ** 2).sum(axis=2)).sum()
        return np.array([node, edge])

    def value(p, q):
        both, own, other = parts(p, q), parts(p, p), parts(q, q)
        if normalize == "sum":
            return both.sum() / np.sqrt(own.sum() * other.sum())
        norms = np.sqrt(own * other)
        return np.divide(both, norms, out=np.zeros(2), where=norms > 0).mean()

    return np.array([[value(p, q) for q in right] for p in left])


@pytest.mark.parametrize("normalize", ["sum", "parts"])
def test_graph_gram_against_pairs(normalize):
    X, starts, stops = _bags()
    bags = [slice(a, b) for a, b in zip(starts, stops, strict=True)]
    graphs = BagGraphs.of(X, starts, stops, max_edges=None)
    gram = graph_gram(NODE, EDGE, graphs, normalize=normalize)
    np.testing.assert_allclose(gram, _naive_gram(X, bags, bags, normalize), rtol=1e-11)
    np.testing.assert_array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() > -1e-12
    has_edges = graphs.edge_stops > graphs.edge_starts
    assert not has_edges.all()
    alone = 0.5 if normalize == "parts" else 1.0
    np.testing.assert_allclose(gram.diagonal(), np.where(has_edges, 1.0, alone), rtol=1e-12)


@pytest.mark.parametrize("normalize", ["sum", "parts"])
def test_new_bags_against_stored_ones(normalize):
    X, starts, stops = _bags()
    graphs = BagGraphs.of(X, starts, stops)
    gram = graph_gram(NODE, EDGE, graphs, normalize=normalize)
    support, rest = np.array([5, 0, 2]), np.array([1, 3, 4, 6])
    norms = graph_norms(NODE, EDGE, graphs, normalize=normalize)
    new = BagGraphs.of(X, starts[rest], stops[rest])
    for given in ({}, {"other_norms": norms[support]}):
        found = graph_gram(NODE, EDGE, new, graphs[support], normalize=normalize, **given)
        np.testing.assert_allclose(found, gram[np.ix_(rest, support)], rtol=1e-12)
    edge_sums = set_gram(EDGE, *graphs.edge_parts)
    before = edge_sums.copy()
    known = graph_gram(NODE, EDGE, graphs, normalize=normalize, edge_sums=edge_sums)
    np.testing.assert_array_equal(known, gram)
    np.testing.assert_array_equal(edge_sums, before)
    again = graph_gram(NODE, EDGE, graphs, normalize=normalize, norms=norms)
    np.testing.assert_allclose(again, gram, rtol=1e-12)
    assert len(graphs[1:3]) == 2


@pytest.mark.parametrize("normalize", ["sum", "parts"])
def test_scores_by_expansion(normalize):
    """The recipe in the notes of `graph_norms` gives what the Gram matrix gives."""
    X, starts, stops = _bags()
    graphs = BagGraphs.of(X, starts, stops)
    norms = graph_norms(NODE, EDGE, graphs, normalize=normalize)
    alpha = np.random.default_rng(4).normal(size=len(graphs))
    expected = graph_gram(NODE, EDGE, graphs, normalize=normalize) @ alpha
    scores = np.zeros(len(graphs))
    parts = (graphs.node_parts, graphs.edge_parts)
    for part, (kernel, (rows, first, last)) in enumerate(zip((NODE, EDGE), parts, strict=True)):
        coef = np.zeros((1, len(rows)))
        for i, (a, b) in enumerate(zip(first, last, strict=True)):
            coef[0, a:b] = alpha[i] / norms[i, part]
        values = kernel.expand(rows, rows, coef)[:, 0]
        sums = np.array([values[a:b].sum() for a, b in zip(first, last, strict=True)])
        scores += sums / norms[:, part]
    np.testing.assert_allclose(scores * (0.5 if normalize == "parts" else 1.0), expected)


def test_bags_without_any_edge():
    X = np.random.default_rng(0).normal(size=(5, 2))
    graphs = BagGraphs.of(X, np.arange(5), np.arange(1, 6))
    assert graphs.edges.shape == (0, 4)
    plain = NODE.gram(X)
    np.testing.assert_allclose(graph_gram(NODE, EDGE, graphs), plain, rtol=1e-14)
    found = graph_gram(NODE, EDGE, graphs, graphs, normalize="parts")
    np.testing.assert_allclose(found, plain / 2, rtol=1e-14)
    np.testing.assert_array_equal(clique_weights(X, np.arange(5), np.arange(1, 6)), np.ones(5))


def test_sparse_and_single_precision_graphs():
    X, starts, stops = _bags(dtype=np.float32)
    X[X < 0.2] = 0.0
    expected = graph_gram(NODE, EDGE, BagGraphs.of(X.astype(float), starts, stops))
    sparse = BagGraphs.of(sp.csr_array(X.astype(float)), starts, stops)
    np.testing.assert_allclose(graph_gram(NODE, EDGE, sparse), expected, rtol=1e-11)
    single = graph_gram(NODE, EDGE, BagGraphs.of(X, starts, stops))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, expected, rtol=1e-5)


def test_the_same_bag_twice_and_rows_of_no_bag():
    X, _, _ = _bags()
    twice = clique_weights(X, np.array([2, 2]), np.array([8, 8]))
    np.testing.assert_array_equal(twice, clique_weights(X, np.array([2]), np.array([8])))
    np.testing.assert_array_equal(twice[8:], 0.0)
    edges, starts, stops = bag_edges(X, np.array([2, 2]), np.array([8, 8]))
    np.testing.assert_array_equal(edges[starts[0] : stops[0]], edges[starts[1] : stops[1]])


def test_no_bags():
    X, nothing = np.ones((3, 2)), np.zeros(0, np.int64)
    np.testing.assert_array_equal(clique_weights(X, nothing, nothing), np.zeros(3))
    assert bag_edges(X, nothing, nothing)[0].shape == (0, 4)
    assert graph_gram(NODE, EDGE, BagGraphs.of(X, nothing, nothing)).shape == (0, 0)


def test_refused(steps):
    X, one, two = np.ones((6, 2)), np.array([0]), np.array([2])
    for threshold in (0.0, -1.0, np.nan, np.inf, "median"):
        with pytest.raises(ValueError, match="threshold of clique_weights"):
            clique_weights(X, one, two, threshold=threshold)
    with pytest.raises(ValueError, match="Row 1 is in two"):
        clique_weights(X, np.array([0, 1]), np.array([2, 3]))
    with pytest.raises(ValueError, match="Bag 1 of bag_edges must be a non-empty range"):
        bag_edges(X, np.array([0, 3]), np.array([2, 3]))
    with pytest.raises(ValueError, match="must be lists of one length"):
        bag_edges(X, one, np.array([2, 3]))
    with pytest.raises(ValueError, match="max_edges of bag_edges"):
        bag_edges(X, one, two, max_edges=0)
    huge = np.vstack([X, np.arange(12.0).reshape(6, 2) * 1e200])
    with pytest.raises(ValueError, match=r"fit a float: scale them\. In bag 1"):
        bag_edges(huge, np.array([0, 6]), np.array([6, 12]))
    with pytest.raises(ValueError, match=r"fit a float: scale them\. In bag 1"):
        clique_weights(huge, np.array([0, 6]), np.array([6, 12]))
    graphs = BagGraphs.of(X, one, two)
    with pytest.raises(ValueError, match='normalize of graph_gram must be "sum" or "parts"'):
        graph_gram(NODE, EDGE, graphs, normalize="cosine")
    with pytest.raises(ValueError, match=r"norms for graph_gram must have shape \(1, 2\)"):
        graph_gram(NODE, EDGE, graphs, norms=np.ones(1))
    with pytest.raises(ValueError, match=r"edge_sums for graph_gram must have shape \(1, 1\)"):
        graph_gram(NODE, EDGE, graphs, edge_sums=np.ones((2, 1)))
