"""SparseMI and RandomSetSVM: objectives the slow way, limits, starts, memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

from bagwise import Bags
from bagwise.bags import StoreWriter
from bagwise.base import get_bag_tags
from bagwise.datasets import make_ring_bags, make_three_class_bags
from bagwise.solvers import solve_qp
from bagwise.svm import LabelMeanSVM, RandomSetSVM, SparseMI
from bagwise.testing import make_toy_bags
from bagwise.testing._checks_invariance import check_feature_units
from svm.naive import instance_kernel, scaled_bags

KERNELS = [
    {"kernel": "rbf", "gamma": 0.2},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
]
IDS = [params["kernel"] for params in KERNELS]


def objective(model, bags, signs, C, **kernel):
    """Compute the objective from the fitted attributes, bag by bag."""
    Z, coef = model.expansion_vectors_, model.coef_
    total = 0.5 * np.einsum("ck,kl,cl->", coef, instance_kernel(Z, Z, **kernel), coef)
    for bag, sign in zip(bags, signs, strict=True):
        scores = instance_kernel(bag, Z, **kernel) @ coef.T + model.intercept_
        total += C * (np.maximum(1.0 - sign * scores.mean(axis=0), 0.0) ** 2).sum()
    return total


@pytest.mark.parametrize("params", KERNELS, ids=IDS)
@pytest.mark.parametrize("cls", [SparseMI, RandomSetSVM])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_objective_is_the_formula(cls, params, n_classes):
    bags, y = make_toy_bags(24, kind="close", n_classes=n_classes)
    model = cls(4, C=2.0, random_state=0, **params).fit(bags, y)
    classes = np.arange(n_classes) if n_classes > 2 else [1]
    signs = np.where(y[:, None] == classes, 1.0, -1.0)
    assert model.coef_.shape == (len(classes), 4)
    assert model.expansion_vectors_.shape == (4, 3)
    expected = objective(model, bags, signs, 2.0, **params)
    assert model.result_.objective == pytest.approx(expected, rel=1e-6)
    scores = model.decision_function(bags).reshape(len(bags), -1)
    flat = model.instance_decision_function(bags).reshape(-1, len(classes))
    offsets = np.cumsum([0, *map(len, bags)])
    means = np.add.reduceat(flat, offsets[:-1]) / np.diff(offsets)[:, None]
    np.testing.assert_allclose(scores, means, atol=1e-12)


@pytest.mark.parametrize("params", KERNELS, ids=IDS)
def test_random_set_is_optimal_for_its_vectors(params):
    bags, y = make_toy_bags(20, kind="close")
    model = RandomSetSVM(5, C=2.0, random_state=1, **params).fit(bags, y)
    Z, sign = model.expansion_vectors_, 2.0 * y - 1.0
    A = np.array([instance_kernel(bag, Z, **params).mean(axis=0) for bag in bags])
    n, m = A.shape
    P = np.zeros((m + 1 + n, m + 1 + n))
    P[:m, :m] = instance_kernel(Z, Z, **params)
    P[m + 1 :, m + 1 :] = 4.0 * np.eye(n)
    margins = np.hstack([-sign[:, None] * A, -sign[:, None], -np.eye(n)])
    lower = np.concatenate([np.full(m + 1, -np.inf), np.zeros(n)])
    best = solve_qp(P, np.zeros(len(P)), margins, -np.ones(n), lower=lower, tol=1e-10)
    assert model.result_.objective == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("cls", [SparseMI, RandomSetSVM])
@pytest.mark.parametrize("params", KERNELS, ids=IDS)
def test_enough_vectors_are_the_label_mean_machine(cls, params):
    bags, y = make_toy_bags(20, kind="close")
    bags[3] = np.concatenate([bags[3], bags[3][:1], bags[4]])  # instances that come twice
    distinct = np.unique(np.concatenate(bags), axis=0)
    model = cls(10_000, C=2.0, random_state=0, **params).fit(bags, y)
    dense = LabelMeanSVM(2.0, tol=1e-9, **params).fit(bags, y)
    assert len(model.expansion_vectors_) == len(distinct)
    assert model.result_.objective == pytest.approx(dense.result_.objective, rel=1e-5)
    new, _ = make_toy_bags(10, kind="close", random_state=1)
    np.testing.assert_allclose(
        model.decision_function(new), dense.decision_function(new), atol=2e-3
    )


def test_vectors_start_at_instances_and_only_one_of_the_two_moves_them():
    bags, y = make_toy_bags(30, kind="close")
    instances = np.concatenate(bags)
    fixed = RandomSetSVM(6, random_state=3).fit(bags, y)
    moved = SparseMI(6, random_state=3).fit(bags, y)
    for row in fixed.expansion_vectors_:
        assert (instances == row).all(axis=1).any()
    assert len(np.unique(fixed.expansion_vectors_, axis=0)) == 6
    assert moved.result_.history[0] == pytest.approx(fixed.result_.objective, rel=1e-9)
    assert moved.result_.objective < 0.95 * fixed.result_.objective
    assert (np.diff(moved.result_.history) <= 0).all()
    other = RandomSetSVM(6, random_state=4).fit(bags, y)
    assert not np.array_equal(other.expansion_vectors_, fixed.expansion_vectors_)


def test_the_draw_depends_on_values_alone():
    bags, y = make_toy_bags(30, kind="close")
    first = RandomSetSVM(6, random_state=3).fit(bags, y)
    order = np.random.default_rng(0).permutation(30)
    shuffled = RandomSetSVM(6, random_state=3).fit([bags[i][::-1] for i in order], y[order])
    twice = RandomSetSVM(6, random_state=3).fit(bags + bags, np.append(y, y))
    stacked = Bags.from_list(bags)
    sparse = Bags(sp.csr_array(stacked.instances), stacked.offsets)
    single = Bags(stacked.instances.astype(np.float32), stacked.offsets)
    for other in (shuffled, twice, RandomSetSVM(6, random_state=3).fit(sparse, y)):
        np.testing.assert_array_equal(other.expansion_vectors_, first.expansion_vectors_)
    other = RandomSetSVM(6, random_state=3).fit(single, y)
    assert other.expansion_vectors_.dtype == np.float32
    np.testing.assert_array_equal(
        other.expansion_vectors_, first.expansion_vectors_.astype(np.float32)
    )


@pytest.mark.parametrize("cls", [SparseMI, RandomSetSVM])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("unit", "shift"), [(1.0, 1e9), (1e-50, 0.0), (1e50, 0.0)])
def test_instances_that_are_one_in_single_precision(cls, form, unit, shift):
    bags, y = make_toy_bags(24, kind="close")
    bags = Bags.from_list(bags)
    bags = Bags(form(shift + unit * bags.instances), bags.offsets)
    assert cls(20, random_state=0).fit(bags, y).expansion_vectors_.shape == (20, 3)


def test_every_instance_is_drawn_about_as_often():
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.arange(20) % 2
    count = np.zeros(20)
    for seed in range(200):
        drawn = RandomSetSVM(5, random_state=seed).fit(X, y).expansion_vectors_
        count += (X[:, None] == drawn[None]).all(axis=2).any(axis=1)
    # 50 expected, standard deviation 6
    assert count.min() > 25
    assert count.max() < 75


def test_starts_of_all_kinds():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    bags = [centre + rng.normal(size=(4, 2)) for centre in np.repeat(centres, 10, axis=0)]
    y = np.repeat([0, 1, 1], 10)
    clusters = RandomSetSVM(3, init="kmeans", random_state=2).fit(bags, y).expansion_vectors_
    order = np.lexsort(clusters.round().T)
    means = [np.concatenate(bags[i : i + 10]).mean(axis=0) for i in (0, 10, 20)]
    np.testing.assert_allclose(clusters[order], means, atol=1e-12)
    given = RandomSetSVM(3, init=centres.tolist()).fit(bags, y)
    np.testing.assert_array_equal(given.expansion_vectors_, centres)
    model = SparseMI(3, init=centres).fit(bags, y)
    assert model.result_.history[0] == pytest.approx(given.result_.objective)
    sparse = Bags(sp.csr_array(np.concatenate(bags)), np.arange(0, 121, 4))
    again = RandomSetSVM(3, init="kmeans", random_state=2).fit(sparse, y).expansion_vectors_
    np.testing.assert_allclose(again, clusters, atol=1e-12)


@pytest.mark.parametrize("cls", [SparseMI, RandomSetSVM])
def test_given_vectors_must_fit(cls):
    bags, y = make_toy_bags(20)
    for init in (np.zeros((3, 3)), np.zeros((2, 4)), np.full((2, 3), np.nan)):
        got = "NaN" if np.isnan(init).any() else r"shape \(., .\)"
        message = f"init of {cls.__name__} must hold n_vectors=2 .* 3 finite numbers. Got {got}"
        with pytest.raises(ValueError, match=message):
            cls(2, init=init).fit(bags, y)


def test_more_starts_are_no_worse():
    data = make_ring_bags(60, random_state=0)
    objectives = [
        SparseMI(1, C=10.0, gamma=0.5, n_init=n_init, random_state=0)
        .fit(data.bags, data.y)
        .result_.objective
        for n_init in (1, 3, 10, "auto")
    ]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[3] == objectives[2]


def test_one_vector_finds_the_centre_of_the_ring():
    data, new = make_ring_bags(random_state=0), make_ring_bags(random_state=1)
    model = SparseMI(1, C=100.0, gamma=0.5, random_state=0).fit(data.bags, data.y)
    np.testing.assert_allclose(model.expansion_vectors_, 0.0, atol=0.5)
    assert model.score(new.bags, new.y) >= 0.97
    positive = new.y == 1
    key = model.key_instances(new.bags)
    rows = new.bags.offsets[:-1] + key
    assert (new.instance_y[rows][positive] == 1).mean() >= 0.97


@pytest.mark.parametrize("optimizer", ["lbfgs", "gradient"])
def test_three_classes_share_few_vectors(optimizer):
    data, new = make_three_class_bags(random_state=0), make_three_class_bags(random_state=1)
    model = SparseMI(4, C=100.0, gamma=0.5, init="kmeans", optimizer=optimizer, random_state=0).fit(
        data.bags, data.y
    )
    assert model.coef_.shape == (3, 4)
    assert model.score(new.bags, new.y) >= 0.97


def test_label_lists():
    bags, _ = make_toy_bags(30, kind="close")
    rng = np.random.default_rng(0)
    y = rng.random((30, 3)) < 0.4
    model = SparseMI(5, C=1.0, random_state=0).fit(bags, y.astype(int))
    assert model.coef_.shape == (3, 5)
    signs = np.where(y, 1.0, -1.0)
    expected = objective(model, bags, signs, 1.0, kernel="rbf", gamma=model.gamma_)
    assert model.result_.objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("cls", [SparseMI, RandomSetSVM])
@pytest.mark.parametrize("n_vectors", [1, 2, 30])
def test_coinciding_and_constant_instances(cls, n_vectors):
    y = np.arange(12) % 2
    same = [np.ones((3, 2)) for _ in y]
    model = cls(n_vectors, random_state=0).fit(same, y)
    assert model.expansion_vectors_.shape == (1, 2)
    assert np.isfinite(model.decision_function(same)).all()
    two = [np.full((3, 2), float(label)) for label in y]
    model = cls(n_vectors, C=100.0, gamma=1.0, random_state=0).fit(two, y)
    assert model.score(two, y) == 1.0


def test_vectors_given_twice():
    bags, y = make_toy_bags(20, kind="close")
    init = np.repeat(bags[0][:1], 4, axis=0)
    model = SparseMI(4, init=init, C=10.0).fit(bags, y)
    alone = SparseMI(1, init=init[:1], C=10.0).fit(bags, y)
    assert model.result_.history[0] == pytest.approx(alone.result_.history[0], rel=1e-6)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_neither_memory_nor_where_the_bags_are_changes_the_model(form, tmp_path, monkeypatch):
    monkeypatch.setattr("bagwise.bags._matrix._CHUNK_BYTES", 256)
    bags, y = make_toy_bags(40, kind="close")
    stacked = Bags.from_list(bags)
    stacked = Bags(form(stacked.instances), stacked.offsets)
    with StoreWriter(tmp_path / "toy.bags") as writer:
        writer.extend(stacked)
    stored = Bags.open(tmp_path / "toy.bags")
    models = [
        SparseMI(6, max_memory=limit, random_state=0).fit(some, y)
        for some in (stacked, stored)
        for limit in ("1GB", "4KB", None)
    ]
    assert 6 * 8 * stored.n_instances > 4000  # the kernel is not kept
    for model in models[1:]:
        np.testing.assert_array_equal(model.expansion_vectors_, models[0].expansion_vectors_)
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_sparse_bags_are_as_good_as_dense_ones():
    bags, y = make_toy_bags(40, kind="close")
    stacked = Bags.from_list(bags)
    sparse = Bags(sp.csr_array(stacked.instances), stacked.offsets)
    a, b = (SparseMI(6, random_state=0).fit(some, y) for some in (stacked, sparse))
    assert isinstance(b.expansion_vectors_, np.ndarray)
    np.testing.assert_allclose(b.expansion_vectors_, a.expansion_vectors_, atol=1e-6)
    np.testing.assert_allclose(b.decision_function(sparse), a.decision_function(stacked), atol=1e-6)


def test_the_key_instance_of_a_negative_bag_is_its_most_negative():
    bags, y = make_toy_bags(30, kind="close")
    model = SparseMI(6, random_state=0).fit(bags, y)
    for bag, key, label in zip(bags, model.key_instances(bags), model.predict(bags), strict=True):
        scores = model.instance_decision_function([bag])
        assert key == (scores.argmax() if label == 1 else scores.argmin())


def test_too_few_iterations_warn():
    bags, y = make_toy_bags(40, kind="close")
    with pytest.warns(ConvergenceWarning, match="SparseMI did not converge .*raise max_iter"):
        SparseMI(6, max_iter=2, random_state=0).fit(bags, y)
    with pytest.warns(ConvergenceWarning, match="RandomSetSVM did not converge .*raise max_iter"):
        RandomSetSVM(6, C=1e3, max_iter=1, random_state=0).fit(bags, y)


@pytest.mark.parametrize(
    "params",
    [
        {"n_vectors": 0},
        {"kernel": "laplacian"},
        {"kernel": "precomputed"},
        {"coef0": -1.0},
        {"init": "grid"},
        {"n_init": 0},
        {"optimizer": "newton"},
        {"max_memory": "much"},
    ],
    ids=lambda params: next(iter(params)),
)
def test_bad_parameters(params):
    bags, y = make_toy_bags(20)
    name = next(iter(params))
    with pytest.raises(ValueError, match=name):
        SparseMI(**params).fit(bags, y)


# The figures of an independent prototype, mean over random starts; ours are other draws.
@pytest.mark.parametrize(("n_vectors", "expected"), [(10, 41.1), (50, 35.6)])
def test_objectives_of_the_prototype_on_musk1(load_set, n_vectors, expected):
    bags, y = scaled_bags(load_set("musk1"))
    found = [
        SparseMI(n_vectors, C=1.0, gamma="2/d", random_state=seed).fit(bags, y).result_.objective
        for seed in range(4)
    ]
    assert np.mean(found) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("cls", "least"), [(SparseMI, 0.82), (RandomSetSVM, 0.78)])
def test_default_parameters_work_on_musk1(load_set, cls, least):
    bags, y = scaled_bags(load_set("musk1"))
    assert cross_val_score(cls(random_state=0), bags, y, cv=5).mean() > least


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": 0.2, "optimizer": "gradient"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"kernel": "linear"},
        {"kernel": "linear", "optimizer": "gradient", "C": 30.0},
        {"kernel": "cosine"},
    ],
    ids=str,
)
def test_units_of_features_do_not_matter(params):
    Z = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.2, 0.3, 1.0]])
    model = SparseMI(n_vectors=3, init=Z, **params)
    assert get_bag_tags(model).scale_powers["init"] == 1
    check_feature_units(model)
    assert get_bag_tags(SparseMI()).scale_powers is None
