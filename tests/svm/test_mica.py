"""MICA: its linear programmes as scipy solves them, its rounds, its forms of the kernel."""

from contextlib import closing
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.model_selection import StratifiedKFold, cross_val_score

from bagwise import Bags
from bagwise.base import SharedWork
from bagwise.solvers import Status
from bagwise.svm import MICA
from bagwise.svm.machinery import _one_norm_trainer
from bagwise.testing import make_toy_bags
from svm.naive import instance_kernel, scale_gamma, scaled_bags

MODELS = [
    MICA(),
    MICA(C=3.0),
    MICA(C=3.0, kernel="linear"),
    MICA(kernel="poly", degree=2, coef0=1.0),
    MICA(C=3.0, cache_size=0.001),
    MICA(C=3.0, n_init=3, random_state=0),
]


def short(model):
    return repr(model).replace(" ", "")


def solve_program(A, sign, cost):
    """Return weights, intercept and value of a 1-norm SVM on rows, by HiGHS."""
    n, p = A.shape
    signed = sign[:, None] * A
    solution = linprog(
        np.concatenate([np.ones(2 * p), [0.0], np.full(n, cost)]),
        A_ub=np.hstack([-signed, signed, -sign[:, None], -np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * n,
        method="highs",
    )
    return solution.x[:p] - solution.x[p : 2 * p], solution.x[2 * p], solution.fun


def objective(model, bags, y, weight=None):
    """Return the objective in the docstring from the scores of instances."""
    scores = model.instance_decision_function(bags)
    total = 0.0
    for i, label in enumerate(y):
        f = scores[bags.offsets[i] : bags.offsets[i + 1]]
        slack = max(1.0 - f.max(), 0.0) if label else np.maximum(1.0 + f, 0.0).sum()
        total += slack * (1.0 if weight is None else weight[i])
    weights = model.coef_ if hasattr(model, "coef_") else model.dual_coef_
    return np.abs(weights).sum() + model.C * total


@pytest.mark.parametrize("model", MODELS, ids=short)
@pytest.mark.parametrize("kind", ["close", "witness"])
def test_objective_is_the_one_in_the_docstring_and_falls(model, kind):
    bags, y = make_toy_bags(40, kind=kind, max_size=6)
    bags = Bags.from_list(bags)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(bags))
    model.fit(bags, y, sample_weight=weight)
    value = objective(model, bags, y, weight)
    assert model.result_.objective == pytest.approx(value, rel=1e-9)
    assert model.result_.converged
    history = model.result_.history
    assert len(history) == model.n_iter_ + 1
    assert (np.diff(history) <= 0).all()
    assert history[-1] == model.result_.objective


def test_only_the_first_of_many_rows_is_given_up_early(monkeypatch):
    """It suggests key instances; noise in 180 dimensions takes more steps than it has rows."""
    results, solve = [], _one_norm_trainer.solve_one_norm_svm

    def recorded(*args, **kwargs):
        results.append(solve(*args, **kwargs))
        return results[-1]

    monkeypatch.setattr(_one_norm_trainer, "solve_one_norm_svm", recorded)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2400, 180)), np.arange(1200) % 8 == 0
    X[::16, :8] += 1.0
    bags = Bags(X, np.arange(0, 2401, 2))
    model = MICA(C=1.0, kernel="linear", n_init=1).fit(bags, y)
    first, *others = results
    assert first.status is Status.MAX_ITER
    assert first.n_iter == len(first.alpha)
    assert others
    assert all(result.converged for result in others)
    assert model.result_.converged
    assert model.result_.objective == pytest.approx(objective(model, bags, y), rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_ends_where_its_own_choice_is_best(kernel):
    """The linear programme of the final key instances has the model as its solution."""
    bags, y = make_toy_bags(30, kind="close")
    bags = Bags.from_list(bags)
    model = MICA(C=2.0, kernel=kernel, tol=1e-9).fit(bags, y)
    keys = bags.offsets[:-1] + model.key_instances(bags)
    rows = np.concatenate([keys[y == 1], np.flatnonzero(np.repeat(y, bags.sizes) == 0)])
    sign = np.repeat([1.0, -1.0], [(y == 1).sum(), len(rows) - (y == 1).sum()])
    matrix = bags.instances
    if kernel == "rbf":
        matrix = instance_kernel(matrix, matrix, "rbf", gamma=scale_gamma(bags.instances))
    u, b, value = solve_program(matrix[rows], sign, 2.0)
    assert model.result_.objective == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(
        model.instance_decision_function(bags), matrix @ u + b, atol=1e-6 * np.abs(u).sum()
    )


def test_first_programme_has_the_means_of_kernel_rows():
    bags, y = make_toy_bags(20, kind="close", max_size=4)
    bags = Bags.from_list(bags)
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=0.5)
    means = [K[bags.offsets[i] : bags.offsets[i + 1]].mean(axis=0) for i in np.flatnonzero(y)]
    negatives = np.flatnonzero(np.repeat(y, bags.sizes) == 0)
    A = np.concatenate([means, K[negatives]])
    sign = np.repeat([1.0, -1.0], [len(means), len(negatives)])
    u, b, _ = solve_program(A, sign, 1.0)
    scores = K @ u + b
    loss = sum(
        max(1.0 - scores[bags.offsets[i] : bags.offsets[i + 1]].max(), 0.0)
        for i in np.flatnonzero(y)
    )
    loss += np.maximum(1.0 + scores[negatives], 0.0).sum()
    model = MICA(C=1.0, gamma=0.5, n_init=1).fit(bags, y)
    assert model.result_.history[0] == pytest.approx(np.abs(u).sum() + loss, rel=1e-6)


def test_bags_of_one_instance_make_a_one_norm_machine():
    bags, y = make_toy_bags(30, kind="close", max_size=1)
    X = np.concatenate(bags)
    K = instance_kernel(X, X, "rbf", gamma=scale_gamma(X))
    u, b, value = solve_program(K, np.where(y == 1, 1.0, -1.0), 1.0)
    model = MICA(C=1.0).fit(X, y)
    assert model.result_.objective == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), K @ u + b, atol=1e-6)
    assert model.n_iter_ == 1


def test_enumeration_of_all_key_instances_agrees_with_the_best_of_many_starts():
    rng = np.random.default_rng(4)
    bags = Bags.from_list([rng.normal(size=(3, 2)) + (i < 3) * 0.7 for i in range(7)])
    y = (np.arange(7) < 3).astype(int)
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=0.5)
    sign = np.repeat([1.0, -1.0], [3, 12])
    values = []
    for keys in product(range(3), repeat=3):
        rows = np.concatenate([np.arange(0, 9, 3) + keys, np.arange(9, 21)])
        values.append(solve_program(K[rows], sign, 5.0)[2])
    one = MICA(C=5.0, gamma=0.5, tol=1e-9).fit(bags, y).result_.objective
    many = MICA(C=5.0, gamma=0.5, tol=1e-9, n_init=40, random_state=0).fit(bags, y)
    assert many.result_.objective == pytest.approx(min(values), rel=1e-5)
    assert one >= min(values) * (1 - 1e-6)


@pytest.mark.parametrize("form", ["callable", "precomputed", "not stored", "csr"])
def test_other_ways_to_give_the_kernel(form):
    bags, y = make_toy_bags(24, kind="close")
    bags = Bags.from_list(bags)
    new = Bags.from_list(make_toy_bags(10, kind="close", random_state=1)[0])
    gamma = scale_gamma(bags.instances)
    plain = MICA(C=2.0, gamma=gamma).fit(bags, y)
    model, train, test = MICA(C=2.0, gamma=gamma), bags, new
    if form == "callable":
        model.kernel = lambda A, B: instance_kernel(A, B, "rbf", gamma=gamma)
    elif form == "not stored":
        model.cache_size = 0.0
    elif form == "csr":
        train = Bags(sparse.csr_array(bags.instances), bags.offsets)
    else:
        model.kernel = "precomputed"
        train, test = (
            Bags(instance_kernel(b.instances, bags.instances, "rbf", gamma=gamma), b.offsets)
            for b in (bags, new)
        )
    model.fit(train, y)
    np.testing.assert_allclose(
        model.decision_function(test), plain.decision_function(new), atol=1e-6
    )
    np.testing.assert_array_equal(model.support_, plain.support_)
    if form == "precomputed":
        selection = np.arange(0, 24, 2)
        some = MICA(C=2.0, kernel="precomputed").fit(train[selection], y[selection])
        expected = MICA(C=2.0, gamma=gamma).fit(bags[selection], y[selection])
        np.testing.assert_allclose(
            some.decision_function(test), expected.decision_function(new), atol=1e-6
        )


def test_given_matrix_need_not_be_a_kernel_but_square():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(12, 12))  # neither symmetric nor definite
    y = np.arange(12) % 2
    model = MICA(C=1.0, kernel="precomputed").fit(K, y)
    u, b, value = solve_program(K, np.where(y == 1, 1.0, -1.0), 1.0)
    assert model.result_.objective == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(K), K @ u + b, atol=1e-6)
    with pytest.raises(ValueError, match=r"MICA\.fit needs a square matrix.*\(12, 11\)"):
        MICA(kernel="precomputed").fit(K[:, :11], y)


def test_single_precision_without_a_stored_kernel():
    bags, y = make_toy_bags(30, kind="close")
    single = [bag.astype(np.float32) for bag in bags]
    expected = MICA().fit(bags, y).decision_function(bags)
    for cache_size in (1000.0, 0.0):
        model = MICA(cache_size=cache_size).fit(single, y)
        assert model.result_.converged
        assert model.support_vectors_.dtype == np.float32
        np.testing.assert_allclose(model.decision_function(single), expected, atol=1e-3)


def test_columns_that_are_computed_on_demand_are_exact_for_any_cost():
    bags, y = make_toy_bags(30, kind="close")
    single = Bags.from_list([bag.astype(np.float32) for bag in bags])
    model = MICA(C=1e4, cache_size=0.0).fit(single, y)
    exact = Bags(single.instances.astype(np.float64), single.offsets)
    assert model.result_.objective == pytest.approx(objective(model, exact, y), rel=1e-9)


@pytest.mark.parametrize("seed", range(1, 6))
def test_which_of_equal_features_has_the_weight_does_not_depend_on_the_order_of_bags(seed):
    bags, y = make_toy_bags(18, kind="close", random_state=seed)
    bags = Bags.from_list([np.hstack([bag, bag[:, ::-1], -bag]) for bag in bags])
    order = np.random.default_rng(1).permutation(len(y))
    model = MICA(kernel="linear").fit(bags, y)
    other = MICA(kernel="linear").fit(bags[order], y[order])
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_ties_are_broken_by_content(seed):
    """One positive bag that weighs little: the linear programme has many solutions."""
    rng = np.random.default_rng(seed)
    X, y, weight = rng.random((12, 30)), np.arange(12) < 1, rng.integers(1, 5, 12)
    weight[0] = 2
    order = rng.permutation(12)
    model = MICA(C=1.0).fit(X, y, weight)
    expected = model.decision_function(X)
    other = MICA(C=1.0).fit(X[order], y[order], weight[order])
    np.testing.assert_allclose(other.decision_function(X), expected, atol=1e-7)
    repeated = MICA(C=1.0).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(repeated.decision_function(X), expected, atol=1e-7)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "precomputed"])
def test_instances_that_all_score_the_same_are_chosen_by_content(kernel):
    """The first programme has no weights here: every instance is as good as the others."""
    bags, y = make_toy_bags(30, n_classes=3, kind="close", max_size=5)
    y = y == 1
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 3, 30)
    C = 1.0 if kernel == "linear" else 3.0

    def fit(some, labels, weight=None):
        some = Bags.from_list(list(some))
        if kernel == "precomputed":
            some = Bags(instance_kernel(*(some.instances,) * 2, "rbf", gamma=0.3), some.offsets)
        return MICA(C=C, kernel=kernel, n_init=1).fit(some, labels, sample_weight=weight).result_

    plain = fit(bags, y)
    assert plain.history[0] == pytest.approx(2.0 * C * y.sum())
    assert plain.objective < 0.95 * plain.history[0]
    shuffled = fit([rng.permutation(bag) for bag in bags], y)
    assert shuffled.objective == pytest.approx(plain.objective, rel=1e-9)
    twice = np.repeat(np.arange(30), weight)
    repeated = fit([bags[i] for i in twice], y[twice])
    assert fit(bags, y, weight).objective == pytest.approx(repeated.objective, rel=1e-9)


def test_finds_the_key_instances_of_toy_bags():
    bags, y = make_toy_bags(60, kind="witness", max_size=6)
    model = MICA(C=10.0).fit(bags[:40], y[:40])
    new, labels = bags[40:], y[40:]
    assert model.score(new, labels) >= 0.9
    odd = np.array([bag[:, 1].argmax() for bag in new])
    assert (model.key_instances(new) == odd)[labels == 1].mean() >= 0.9


def test_musk1_is_learned_and_sparse(load_set):
    bags, y = scaled_bags(load_set("musk1"))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    assert cross_val_score(MICA(), bags, y, cv=folds).mean() >= 0.75
    assert len(MICA().fit(bags, y).support_) < 50
    nothing = MICA(C=0.01).fit(bags, y)
    assert len(nothing.support_) == 0


@pytest.mark.parametrize(
    "params", [{"C": 0}, {"kernel": "wide"}, {"n_init": 0}, {"tol": 0.0}, {"max_iter": 0}], ids=str
)
def test_bad_parameters(params):
    bags, y = make_toy_bags(8)
    [name] = params
    with pytest.raises(ValueError, match=f"'{name}' parameter of MICA"):
        MICA(**params).fit(bags, y)


def test_has_no_low_rank_map():
    assert not {"approx", "rank"} & MICA().get_params().keys()


def test_first_programmes_that_are_left_early_know_of_no_other_fit(monkeypatch):
    monkeypatch.setattr(_one_norm_trainer, "_FEW_ROWS", 0)
    bags, y = make_toy_bags(80, kind="close", random_state=0)
    with closing(SharedWork(1e8)) as work:
        known = Bags.from_list(bags).with_shared(work)
        for C in (0.3, 100.0, 30.0):
            shared, plain = MICA(C).fit(known, y), MICA(C).fit(bags, y)
            assert shared.result_.objective == pytest.approx(plain.result_.objective, rel=1e-6)
