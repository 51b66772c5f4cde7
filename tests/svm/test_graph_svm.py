"""MIGraphSVM against graph kernels that are computed pair by pair."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score

from bagwise import Bags
from bagwise.exceptions import ModelFileError
from bagwise.persistence import load, save
from bagwise.svm import MIGraphSVM, MIKernelSVM
from bagwise.testing import make_toy_bags
from svm.naive import instance_kernel, scaled_bags, solve_dual

KERNELS = [
    {"kernel": "rbf", "gamma": 0.2},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
]
LINKS = [
    {},
    {"include_self_pairs": False},
    {"threshold": 1.5},
]


def as_sparse(bags):
    dense = Bags.from_list(bags)
    return Bags(sparse.csr_array(dense.instances), dense.offsets)


def kernel_name(params):
    return params["kernel"]


def distances(bag):
    return np.sqrt(((bag[:, None] - bag[None]) ** 2).sum(axis=2))


def links(bag, threshold="mean", include_self_pairs=True):
    """Return which pairs are linked, none of an instance with itself."""
    n = len(bag)
    within = distances(bag)
    if threshold == "mean":
        pairs = n**2 if include_self_pairs else max(1, n * (n - 1))
        threshold = within.sum() / pairs
    return (within < threshold) & ~np.eye(n, dtype=bool)


def votes(bag, **options):
    return 1.0 / (1.0 + links(bag, **options).sum(axis=1))


def edges(bag, max_edges=256, **options):
    linked, within = links(bag, **options), distances(bag)
    closeness = np.where(linked, 1.0 / np.where(linked, within, 1.0), 0.0)
    n_edges = linked.sum() / 2
    found = []
    for u in range(len(bag)):
        for v in range(u):
            if linked[u, v]:
                ends = [
                    (linked[end].sum() / n_edges, closeness[u, v] / closeness[end].sum())
                    for end in (u, v)
                ]
                found.append((within[u, v], *max(ends), *min(ends)))
    found = sorted(found)[:max_edges]
    return np.array([edge[1:] for edge in found]).reshape(-1, 4)


def sums(parts, others, weights=None, other_weights=None, **kernel):
    """Return the sums of a kernel over all pairs of rows; there may be parts without rows."""
    if not sum(map(len, parts)) or not sum(map(len, others)):
        return np.zeros((len(parts), len(others)))
    K = instance_kernel(np.concatenate(parts), np.concatenate(others), **kernel)
    return totals(parts, weights) @ K @ totals(others, other_weights).T


def totals(parts, weights):
    """Return the matrix that sums over the rows of each part."""
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    matrix = (owner == np.arange(len(parts))[:, None]).astype(float)
    return matrix if weights is None else matrix * np.concatenate(weights)


def clique_gram(bags, others, normalization, kernel, **options):
    own, other = ([votes(bag, **options) for bag in some] for some in (bags, others))
    if normalization == "average":
        left, right = ([vote.sum() for vote in some] for some in (own, other))
    else:
        left = np.sqrt(np.diag(sums(bags, bags, own, own, **kernel)))
        right = np.sqrt(np.diag(sums(others, others, other, other, **kernel)))
    return sums(bags, others, own, other, **kernel) / np.outer(left, right)


def edge_gram(bags, others, normalization, kernel, edge_gamma=1.0, **options):
    edge_kernel = {"kernel": "rbf", "gamma": edge_gamma}
    own, other = ([edges(bag, **options) for bag in some] for some in (bags, others))

    def parts(a, b, a_edges, b_edges):
        return np.stack([sums(a, b, **kernel), sums(a_edges, b_edges, **edge_kernel)], axis=2)

    values = parts(bags, others, own, other)
    left = np.diagonal(parts(bags, bags, own, own)).T
    right = np.diagonal(parts(others, others, other, other)).T
    if normalization == "feature_space":
        return values.sum(axis=2) / np.sqrt(np.outer(left.sum(axis=1), right.sum(axis=1)))
    norm = np.sqrt(left[:, None] * right[None])
    return np.divide(values, norm, out=np.zeros_like(values), where=norm > 0).mean(axis=2)


def data():
    bags, y = make_toy_bags(16, kind="close", max_size=7)
    new, _ = make_toy_bags(8, kind="close", max_size=7, random_state=1)
    assert min(len(bag) for bag in bags) == 1
    return bags, y, new


def assert_svm_of(gram, model, layout=list):
    """Compare with the SVM on a kernel, at training bags and new ones."""
    bags, y, new = data()
    K = gram(bags, bags)
    coef, intercept, objective = solve_dual(K, 2.0 * y - 1.0, model.C)
    model.fit(layout(bags), y)
    assert model.result_.objective == pytest.approx(objective, rel=1e-7)
    for some in (bags, new):
        expected = gram(some, bags) @ coef + intercept
        scores = model.decision_function(layout(some))
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("layout", [list, as_sparse], ids=["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("normalization", ["average", "feature_space"])
def test_cliques(normalization, kernel, layout):
    assert_svm_of(
        lambda a, b: clique_gram(a, b, normalization, kernel),
        MIGraphSVM(5.0, normalization=normalization, tol=1e-9, **kernel),
        layout,
    )


@pytest.mark.parametrize("options", LINKS, ids=repr)
def test_links_of_cliques(options):
    assert_svm_of(
        lambda a, b: clique_gram(a, b, "average", KERNELS[0], **options),
        MIGraphSVM(5.0, tol=1e-9, **KERNELS[0], **options),
    )


@pytest.mark.parametrize("layout", [list, as_sparse], ids=["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("normalization", ["feature_space", "parts"])
def test_edges(normalization, kernel, layout):
    assert_svm_of(
        lambda a, b: edge_gram(a, b, normalization, kernel),
        MIGraphSVM(5.0, graph="edges", normalization=normalization, tol=1e-9, **kernel),
        layout,
    )


@pytest.mark.parametrize("normalization", ["feature_space", "parts"])
def test_linear_kernel_with_edges_takes_the_steps_that_it_needs(normalization):
    """Single steps on a matrix, not sweeps over features: a thousand may be too few."""
    bags, y = make_toy_bags(60, kind="close")
    model = MIGraphSVM(1000.0, graph="edges", kernel="linear", normalization=normalization)
    model.fit(bags, y)
    assert model.n_iter_ > 1000
    assert model.result_.relative_gap < 1e-6


@pytest.mark.parametrize("options", [*LINKS, {"edge_gamma": 10.0}, {"max_edges": 3}], ids=repr)
def test_links_of_edges(options):
    assert_svm_of(
        lambda a, b: edge_gram(a, b, "parts", KERNELS[0], **options),
        MIGraphSVM(5.0, graph="edges", normalization="parts", tol=1e-9, **KERNELS[0], **options),
    )


@pytest.mark.parametrize(
    ("graph", "normalization"), [("cliques", "average"), ("edges", "feature_space")]
)
def test_default_normalization_is_that_of_the_paper(graph, normalization):
    bags, y, _ = data()
    model = MIGraphSVM(graph=graph).fit(bags, y)
    other = MIGraphSVM(graph=graph, normalization=normalization).fit(bags, y)
    np.testing.assert_array_equal(model.decision_function(bags), other.decision_function(bags))


@pytest.mark.parametrize("normalization", ["average", "feature_space"])
def test_without_links_all_instances_vote(normalization):
    bags, y, new = data()
    plain = MIKernelSVM(normalization=normalization, tol=1e-9).fit(bags, y)
    model = MIGraphSVM(normalization=normalization, threshold=1e-9, tol=1e-9).fit(bags, y)
    np.testing.assert_allclose(
        model.decision_function(new), plain.decision_function(new), atol=1e-9
    )


def test_without_links_there_are_no_edges():
    bags, y, new = data()
    plain = MIKernelSVM(normalization="feature_space", tol=1e-9).fit(bags, y)
    model = MIGraphSVM(graph="edges", threshold=1e-9, tol=1e-9).fit(bags, y)
    assert model.support_edges_.shape == (0, 4)
    np.testing.assert_allclose(
        model.decision_function(new), plain.decision_function(new), atol=1e-6
    )


def test_equal_instances_share_one_vote():
    bags, y, _ = data()
    repeated = [np.concatenate([bag, bag[:1], bag[:1]]) for bag in bags]
    model = MIGraphSVM(gamma=0.3, threshold=1e-9).fit(bags, y)
    np.testing.assert_allclose(
        model.decision_function(repeated), model.decision_function(bags), atol=1e-9
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bag_scores_as_the_weighted_mean_of_its_instances(n_classes):
    bags, y = make_toy_bags(24, n_classes=n_classes, kind="close")
    model = MIGraphSVM().fit(bags, y)
    scores = model.instance_decision_function(bags)
    parts = np.split(scores, np.cumsum([len(bag) for bag in bags])[:-1])
    means = [
        np.average(part, axis=0, weights=votes(bag)) for part, bag in zip(parts, bags, strict=True)
    ]
    np.testing.assert_allclose(model.decision_function(bags), means, atol=1e-9)


@pytest.mark.parametrize("normalization", ["average", "feature_space"])
def test_instance_scores_as_the_bag_that_holds_it_alone(normalization):
    bags, y, _ = data()
    model = MIGraphSVM(normalization=normalization, kernel="poly", coef0=1.0).fit(bags, y)
    alone = [row[None, :] for bag in bags for row in bag]
    np.testing.assert_allclose(
        model.instance_decision_function(bags), model.decision_function(alone), atol=1e-9
    )


def test_edges_score_bags_only():
    bags, y, _ = data()
    model = MIGraphSVM(graph="edges").fit(bags, y)
    assert not hasattr(model, "instance_decision_function")
    assert not hasattr(model, "key_instances")


@pytest.mark.parametrize(
    ("params", "has_analogue"),
    [
        ({}, True),
        ({"kernel": "linear"}, True),
        ({"normalization": "feature_space", "kernel": "linear"}, False),
        ({"graph": "edges"}, True),
        ({"graph": "edges", "normalization": "parts"}, False),
        ({"graph": "edges", "kernel": "linear"}, False),
    ],
)
def test_tags_claim_libsvm_only_where_it_is_true(params, has_analogue):
    analogue = MIGraphSVM(**params).__bagwise_tags__().supervised_analogue
    assert (analogue is not None) is has_analogue


def test_map_of_full_rank_is_the_kernel():
    bags, y, new = data()
    exact = MIGraphSVM(5.0, gamma=0.5, tol=1e-9).fit(bags, y)
    model = MIGraphSVM(5.0, gamma=0.5, tol=1e-9, approx="cholesky", rank=200).fit(bags, y)
    np.testing.assert_allclose(
        model.decision_function(new), exact.decision_function(new), atol=1e-4
    )


@pytest.mark.parametrize("graph", ["cliques", "edges"])
def test_single_precision(graph):
    bags, y, _ = data()
    single = [bag.astype(np.float32) for bag in bags]
    exact = MIGraphSVM(graph=graph).fit(bags, y).decision_function(bags)
    model = MIGraphSVM(graph=graph).fit(single, y)
    assert model.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(model.decision_function(single), exact, atol=1e-4)


@pytest.mark.parametrize("layout", [list, as_sparse], ids=["dense", "csr"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"kernel": "linear", "normalization": "feature_space"},
        {"graph": "edges", "normalization": "parts"},
        {"graph": "edges", "threshold": 1e-9},
    ],
    ids=repr,
)
def test_saved_model_decides_the_same(params, n_classes, layout, tmp_path):
    bags, y = make_toy_bags(24, n_classes=n_classes, kind="close")
    bags = layout(bags)
    model = MIGraphSVM(**params).fit(bags, y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(bags), model.decision_function(bags))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda model: delattr(model, "edge_coef_"), "must come together with edge_coef_"),
        (
            lambda model: setattr(model, "support_edges_", model.support_edges_[:, :3].copy()),
            "has n_edge_features = 4, where another attribute has 3",
        ),
    ],
    ids=["no factors", "three numbers"],
)
def test_contradicting_attributes_are_not_saved(spoil, message, tmp_path):
    bags, y, _ = data()
    model = MIGraphSVM(graph="edges").fit(bags, y)
    spoil(model)
    with pytest.raises(ModelFileError, match=message):
        save(model, tmp_path / "model")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"graph": "miGraph"}, "The 'graph' parameter of MIGraphSVM"),
        ({"normalization": "sum"}, "The 'normalization' parameter of MIGraphSVM"),
        ({"normalization": "parts"}, "must not be 'parts' with graph='cliques'"),
        ({"graph": "edges", "normalization": "average"}, "'average' with graph='edges'"),
        ({"graph": "edges", "approx": "cholesky"}, "'approx' parameter must be None.* 'cholesky'"),
        ({"threshold": 0.0}, "The 'threshold' parameter of MIGraphSVM"),
        ({"max_edges": 0}, "The 'max_edges' parameter of MIGraphSVM"),
        ({"edge_gamma": 0.0}, "The 'edge_gamma' parameter of MIGraphSVM"),
    ],
    ids=repr,
)
def test_bad_parameters(params, message):
    bags, y, _ = data()
    with pytest.raises(ValueError, match=message):
        MIGraphSVM(**params).fit(bags, y)


@pytest.mark.parametrize("graph", ["cliques", "edges"])
def test_default_parameters_work_on_musk1(graph, load_set):
    bags, y = scaled_bags(load_set("musk1"))
    assert cross_val_score(MIGraphSVM(graph=graph), bags, y, cv=5).mean() > 0.75
