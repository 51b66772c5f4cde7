"""MILES: the linear programme as scipy solves it, similarities pair by pair, contributions."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from bagwise import Bags
from bagwise.embedding import MILES
from bagwise.kernels import InstanceMetric, nearest_among
from bagwise.testing import make_toy_bags
from svm.naive import scale_gamma, scaled_bags


def similarity(bags, prototypes, gamma):
    """Return the embedding, one bag at a time."""
    return np.array([np.exp(-gamma * cdist(bag, prototypes, "sqeuclidean").min(0)) for bag in bags])


def solve_paper_program(S, sign, penalty, mu):
    """Return weights, intercept and value of the programme in the paper's variables, by HiGHS."""
    n, p = S.shape
    cost = np.where(sign > 0, mu, 1.0 - mu)
    signed = sign[:, None] * S
    solution = linprog(
        np.concatenate([np.full(2 * p, penalty), [0.0], cost]),
        A_ub=np.hstack([-signed, signed, -sign[:, None], -np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * n,
        method="highs",
    )
    return solution.x[:p] - solution.x[p : 2 * p], solution.x[2 * p], solution.fun


@pytest.fixture(scope="module")
def toy():
    bags, y = make_toy_bags(40, kind="close", max_size=6)
    return Bags.from_list(bags), y


@pytest.mark.parametrize("sizes", [[3, 1100, 1, 600, 2], [1] * 7, list(range(1, 60))], ids=len)
@pytest.mark.parametrize("name", ["sqeuclidean", "euclidean", "cityblock"])
def test_distances_among_bags_are_those_of_all_pairs(sizes, name):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = np.random.default_rng(0).normal(size=(offsets[-1], 3))
    got = nearest_among(InstanceMetric(name), X, offsets[:-1], offsets[1:])
    expected = [cdist(X[a:b], X, name).min(axis=0) for a, b in pairwise(offsets)]
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize(("penalty", "mu"), [(0.45, 0.5), (0.1, 0.5), (0.2, 0.3), (0.05, 0.8)])
def test_solves_the_programme_of_the_paper(toy, penalty, mu):
    bags, y = toy
    weight = {0: 2.0 * (1.0 - mu), 1: 2.0 * mu}
    model = MILES(C=1.0 / (2.0 * penalty), gamma=0.3, class_weight=weight).fit(bags, y)
    S = similarity(bags, bags.instances, 0.3)
    w, b, value = solve_paper_program(S, np.where(y == 1, 1.0, -1.0), penalty, mu)
    assert penalty * model.result_.objective == pytest.approx(value, rel=1e-9)
    assert model.result_.relative_gap <= 1e-9
    np.testing.assert_allclose(model.decision_function(bags), S @ w + b, atol=1e-6)
    full = np.zeros(bags.n_instances)
    full[model.support_] = model.coef_[0]
    np.testing.assert_allclose(full, w, atol=1e-6)
    np.testing.assert_array_equal(model.prototypes_, bags.instances[model.support_])


def test_objective_is_the_one_in_the_docstring(toy):
    bags, y = toy
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(bags))
    model = MILES(C=0.7).fit(bags, y, sample_weight=weight)
    hinge = np.maximum(1.0 - np.where(y == 1, 1.0, -1.0) * model.decision_function(bags), 0.0)
    value = np.abs(model.coef_).sum() + 0.7 * weight @ hinge
    assert model.result_.objective == pytest.approx(value, rel=1e-9)


def test_new_bags_are_compared_with_the_selected_instances(toy):
    bags, y = toy
    model = MILES().fit(bags, y)
    assert model.gamma_ == pytest.approx(scale_gamma(bags.instances))
    new = make_toy_bags(15, kind="close", random_state=1)[0]
    expected = similarity(new, model.prototypes_, model.gamma_) @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(new), expected[:, 0], atol=1e-12)
    assert 0 < len(model.support_) < len(bags)


def contributions(model, bag):
    """Return what each instance gives to the score of its bag, prototype after prototype."""
    out = np.zeros((len(bag), len(model.coef_)))
    D = cdist(bag, model.prototypes_, "sqeuclidean")
    for k, column in enumerate(D.T):
        served = np.flatnonzero(np.isclose(column, column.min(), rtol=1e-9, atol=0.0))
        out[served] += model.coef_[:, k] * np.exp(-model.gamma_ * column.min()) / len(served)
    return out


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", ["dense", "float32", "csr"])
def test_contributions_of_instances_add_up_to_the_score(n_classes, form):
    bags, y = make_toy_bags(30, n_classes=n_classes, kind="close", max_size=5)
    # Whole numbers, of which many are equally near; and two instances share what is theirs.
    bags = [np.rint(3.0 * np.concatenate([bag, bag[:1]])) for bag in bags]
    X = Bags.from_list(bags)
    if form == "float32":
        X = Bags(X.instances.astype(np.float32), X.offsets)
    elif form == "csr":
        X = Bags(sparse.csr_array(X.instances), X.offsets)
    model = MILES(C=3.0).fit(X, y)
    scores = model.instance_decision_function(X).reshape(X.n_instances, -1)
    sums = np.add.reduceat(scores, X.offsets[:-1], axis=0) + model.intercept_
    tolerance = 1e-3 if form == "float32" else 1e-9
    expected = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(sums, expected, atol=tolerance)
    if form == "csr":
        model.prototypes_ = model.prototypes_.toarray()
    by_hand = np.concatenate([contributions(model, bag) for bag in bags])
    np.testing.assert_allclose(scores, by_hand, atol=tolerance)
    for a, b in pairwise(X.offsets):
        np.testing.assert_allclose(scores[a], scores[b - 1], atol=tolerance)


def test_one_embedding_serves_all_classes():
    bags, y = make_toy_bags(30, n_classes=3, kind="close")
    model = MILES(C=2.0).fit(bags, y)
    assert model.coef_.shape == (3, len(model.support_))
    for k in range(3):
        alone = MILES(C=2.0, gamma=model.gamma_).fit(bags, y == k)
        np.testing.assert_allclose(
            model.decision_function(bags)[:, k], alone.decision_function(bags), atol=1e-9
        )
    assert model.result_.objective == pytest.approx(
        sum(MILES(C=2.0).fit(bags, y == k).result_.objective for k in range(3))
    )


@pytest.mark.parametrize("seed", range(6))
def test_ties_are_broken_by_content(seed):
    """One positive bag that weighs little: the linear programme has many solutions."""
    rng = np.random.default_rng(seed)
    X, y, weight = rng.random((12, 30)), np.arange(12) < 1, rng.integers(1, 5, 12)
    weight[0] = 2
    order = rng.permutation(12)
    model = MILES(C=1.0).fit(X, y, weight)
    expected = model.decision_function(X)
    other = MILES(C=1.0).fit(X[order], y[order], weight[order])
    np.testing.assert_allclose(other.decision_function(X), expected, atol=1e-7)
    repeated = MILES(C=1.0).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(repeated.decision_function(X), expected, atol=1e-7)


def test_too_large_a_penalty_selects_nothing(toy):
    bags, y = toy
    model = MILES(C=1e-3).fit(bags, y)
    assert model.prototypes_.shape == (0, bags.n_features)
    np.testing.assert_array_equal(model.decision_function(bags), np.zeros(len(bags)))
    np.testing.assert_array_equal(model.instance_decision_function(bags), 0.0)


def test_finds_the_key_instances_of_toy_bags():
    bags, y = make_toy_bags(60, kind="witness", max_size=6)
    model = MILES(C=3.0).fit(bags[:40], y[:40])
    new, labels = bags[40:], y[40:]
    assert model.score(new, labels) >= 0.9
    odd = np.array([bag[:, 1].argmax() for bag in new])
    assert (model.key_instances(new) == odd)[labels == 1].mean() >= 0.9


def test_default_parameters_on_musk1(load_set):
    bags, y = scaled_bags(load_set("musk1"))
    train = np.arange(len(y)) % 4 > 0
    model = MILES().fit(bags[train], y[train])
    assert model.score(bags[~train], y[~train]) >= 0.7
    assert len(model.support_) < train.sum()


@pytest.mark.parametrize(
    "params", [{"C": 0}, {"gamma": "wide"}, {"gamma": 0.0}, {"tol": 0.0}, {"max_iter": 0}], ids=str
)
def test_bad_parameters(params):
    bags, y = make_toy_bags(8)
    [name] = params
    with pytest.raises(ValueError, match=f"'{name}' parameter of MILES"):
        MILES(**params).fit(bags, y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gamma_too_large_for_the_numbers(dtype):
    bags, y = make_toy_bags()
    model = MILES(gamma=1e300).fit([bag.astype(dtype) for bag in bags], y)
    assert np.isfinite(model.decision_function(bags)).all()


def scores_by_others(monkeypatch, bags, y, weight=None, **parameters):
    """Return the bags that a fit leaves out, fold after fold, with what it says of them."""
    said, real = [], MILES._scores_by_others

    def kept(model, task, left_out):
        said.append((left_out, real(model, task, left_out)))
        return said[-1][1]

    with monkeypatch.context() as patch:
        patch.setattr(MILES, "_scores_by_others", kept)
        return MILES(**parameters).fit(bags, y, weight), said


@pytest.mark.parametrize("C", [2.0, 10.0, 1e6])
@pytest.mark.parametrize("form", ["dense", "float32", "csr"])
def test_folds_are_parts_of_one_matrix(C, form, monkeypatch):
    """They score what is left out as fits to the others do, without a distance more."""
    rng = np.random.default_rng(1)
    bags = Bags.from_list([rng.normal(size=(rng.integers(1, 6), 4)) for _ in range(45)])
    y, weight = np.arange(45) % 3 == 0, rng.uniform(0.5, 2.0, 45)
    if form == "float32":
        bags = Bags(bags.instances.astype(np.float32), bags.offsets)
    elif form == "csr":
        bags = Bags(sparse.csr_array(bags.instances), bags.offsets)
    made = []
    monkeypatch.setattr(
        "bagwise.embedding._miles.nearest_among", lambda *a: made.append(1) or nearest_among(*a)
    )
    model, said = scores_by_others(monkeypatch, bags, y, weight, C=C, gamma=0.2)
    assert (len(made), len(said)) == (1, 3)
    assert np.sum([left_out for left_out, _ in said], axis=0).tolist() == [1] * 45
    for left_out, scores in said:
        part = MILES(C=C, gamma=0.2).fit(bags[~left_out], y[~left_out], weight[~left_out])
        optimum = part.decision_function(bags[left_out]) - part.intercept_shift_
        np.testing.assert_allclose(scores, optimum, atol=2e-3 if form == "float32" else 1e-5)
    assert [name for name in vars(model) if name.startswith("_")] == ["_bag_digests"]


def test_folds_without_weights_have_the_most_frequent_label_or_none(monkeypatch):
    """One instance is worth its penalty, and only together with a bag that is like it."""
    rng = np.random.default_rng(0)
    bags = [rng.uniform(-100.0, 100.0, (1, 3)) for _ in range(12)]
    bags[1] = bags[0] + 0.01
    y = np.arange(12) % 2 == 0
    y[1], y[2] = True, False
    said = scores_by_others(monkeypatch, bags, y, C=0.6, gamma=1.0)[1]
    assert len(said) == 3
    for left_out, scores in said:
        if left_out[0] or left_out[1]:
            expected = np.sign(np.where(y, 1, -1)[~left_out].sum())
            np.testing.assert_array_equal(scores, np.full(left_out.sum(), expected))
