"""MI-SVM and mi-SVM: objectives by their formulas, local optima by enumeration."""

import gc
from itertools import product

import numpy as np
import pytest

from bagwise import Bags
from bagwise.solvers import solve_qp
from bagwise.svm import MICA, MISVM, PCSVM, SIL, STMIL, MissSVM, miSVM
from bagwise.testing import make_toy_bags
from svm.naive import instance_kernel, scale_gamma, scaled_bags, solve_dual

MODELS = [
    MISVM(C=3.0),
    MISVM(C=3.0, negative_slack="bag"),
    MISVM(C=3.0, kernel="linear"),
    MISVM(C=3.0, kernel="linear", negative_slack="bag"),
    MISVM(C=3.0, approx="nystroem", rank=20, random_state=0),
    MISVM(C=3.0, cache_size=0.001),
    MISVM(C=3.0, cache_size=0.001, negative_slack="bag"),
    miSVM(C=3.0),
    miSVM(C=3.0, kernel="linear"),
    miSVM(C=3.0, approx="cholesky", rank=20),
    miSVM(C=3.0, approx="fourier", rank=50, random_state=0),
]


def short(model):
    return repr(model).replace(" ", "")


def loss(model, scores, bags, y):
    """Return the loss in the docstring from the scores of instances."""
    total = 0.0
    for a, b, label in zip(bags.offsets[:-1], bags.offsets[1:], y, strict=True):
        f = scores[a:b]
        if isinstance(model, miSVM) and label:
            labels = np.where(f >= 0, 1.0, -1.0)
            labels[f.argmax()] = 1.0
            total += np.maximum(1.0 - labels * f, 0.0).sum()
        elif label:
            total += max(1.0 - f.max(), 0.0)
        elif getattr(model, "negative_slack", "instance") == "bag":
            total += max(1.0 + f.max(), 0.0)
        else:
            total += np.maximum(1.0 + f, 0.0).sum()
    return model.C * total


def half_norm(model):
    if hasattr(model, "coef_"):
        return 0.5 * float(model.coef_[0] @ model.coef_[0])
    K = instance_kernel(model.support_vectors_, model.support_vectors_, "rbf", gamma=model.gamma_)
    return 0.5 * float(model.dual_coef_[0] @ K @ model.dual_coef_[0])


def solve_primal(K, sign, slack_of, C):
    """Minimise 1/2 a'Ka + C (sum of slacks) over a, b and slacks, some of which rows share."""
    n, m = len(K), slack_of.max() + 1
    quadratic = np.zeros((n + 1 + m, n + 1 + m))
    quadratic[:n, :n] = K
    margins = np.hstack([-sign[:, None] * K, -sign[:, None], -np.eye(m)[slack_of]])
    lower = np.concatenate([np.full(n + 1, -np.inf), np.zeros(m)])
    cost = np.concatenate([np.zeros(n + 1), np.full(m, C)])
    result = solve_qp(quadratic, cost, margins, -np.ones(n), lower=lower, tol=1e-9)
    return K @ result.x[:n] + result.x[n], result.objective


@pytest.mark.parametrize("model", MODELS, ids=short)
@pytest.mark.parametrize("kind", ["close", "witness"])
def test_objective_is_the_one_in_the_docstring_and_falls(model, kind):
    bags, y = make_toy_bags(40, kind=kind, max_size=6)
    bags = Bags.from_list(bags)
    model.fit(bags, y)
    value = half_norm(model) + loss(model, model.instance_decision_function(bags), bags, y)
    assert model.result_.objective == pytest.approx(value, rel=1e-5)
    assert model.result_.converged
    history = model.result_.history
    assert len(history) == model.n_iter_ + 1
    assert (np.diff(history) <= 1e-9 * history[0]).all()
    assert history[-1] == model.result_.objective


@pytest.mark.parametrize("slack", ["instance", "bag"])
def test_ends_where_its_own_choice_is_best(slack):
    """The convex problem of the final key instances has the model as its solution."""
    bags, y = make_toy_bags(30, kind="close")
    bags = Bags.from_list(bags)
    model = MISVM(C=2.0, tol=1e-9, negative_slack=slack).fit(bags, y)
    keys = bags.offsets[:-1] + model.key_instances(bags)
    used = np.repeat(y, bags.sizes) == 0
    used[keys[y == 1]] = True
    K = instance_kernel(*(bags.instances[used],) * 2, "rbf", gamma=scale_gamma(bags.instances))
    sign = np.where(np.repeat(y, bags.sizes)[used] == 1, 1.0, -1.0)
    slack_of = np.repeat(np.arange(len(bags)), bags.sizes)[used]
    if slack == "instance":
        slack_of = np.arange(len(sign))
    scores, objective = solve_primal(K, sign, slack_of, 2.0)
    got = model.instance_decision_function(bags)[used]
    np.testing.assert_allclose(got, scores, atol=1e-4)
    assert model.result_.objective == pytest.approx(objective, rel=1e-6)


def test_enumeration_of_all_key_instances_finds_nothing_better_than_the_best_of_many_starts():
    rng = np.random.default_rng(4)
    bags = Bags.from_list([rng.normal(size=(3, 2)) + (i < 4) * 0.7 for i in range(8)])
    y = (np.arange(8) < 4).astype(int)
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=0.5)
    negatives = np.arange(12, 24)
    values = []
    for keys in product(range(3), repeat=4):
        rows = np.concatenate([np.arange(0, 12, 3) + keys, negatives])
        sign = np.repeat([1.0, -1.0], [4, 12])
        values.append(solve_dual(K[np.ix_(rows, rows)], sign, 5.0)[2])
    one = MISVM(C=5.0, gamma=0.5, tol=1e-9).fit(bags, y).result_.objective
    many = MISVM(C=5.0, gamma=0.5, tol=1e-9, n_init=60, random_state=0).fit(bags, y)
    assert many.result_.objective == pytest.approx(min(values), rel=1e-7)
    assert one >= min(values) - 1e-7


def test_enumeration_of_all_labels_agrees_with_the_best_of_many_starts():
    rng = np.random.default_rng(7)
    bags = Bags.from_list([rng.normal(size=(2, 2)) + (i < 3) * 0.9 for i in range(6)])
    y = (np.arange(6) < 3).astype(int)
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=0.5)
    choices = [(1, 1), (1, -1), (-1, 1)]
    values = []
    for labels in product(choices, repeat=3):
        sign = np.concatenate([np.ravel(labels), np.full(6, -1.0)]).astype(float)
        values.append(solve_dual(K, sign, 1.0)[2])
    many = miSVM(C=1.0, gamma=0.5, tol=1e-9, n_init=60, random_state=0).fit(bags, y)
    assert many.result_.objective == pytest.approx(min(values), rel=1e-7)


def test_labels_that_fit_at_once_are_those_of_sil():
    bags, y = make_toy_bags(20, kind="close")
    sil = SIL(C=100.0, gamma=50.0, positive_cost=1.0).fit(bags, y)
    assert (sil.instance_predict(bags) == np.repeat(y, [len(bag) for bag in bags])).all()
    model = miSVM(C=100.0, gamma=50.0, n_init=1).fit(bags, y)
    np.testing.assert_allclose(
        model.instance_decision_function(bags), sil.instance_decision_function(bags), atol=1e-8
    )
    assert model.n_iter_ == 1


@pytest.mark.parametrize("slack", ["instance", "bag"])
def test_linear_kernel_by_features_and_by_gram_matrix(slack):
    bags, y = make_toy_bags(30, kind="close")
    by_features = MISVM(kernel="linear", negative_slack=slack, tol=1e-9, n_init=2).fit(bags, y)
    by_gram = MISVM(kernel=lambda A, B: A @ B.T, negative_slack=slack, tol=1e-9, n_init=2).fit(
        bags, y
    )
    np.testing.assert_allclose(
        by_features.decision_function(bags), by_gram.decision_function(bags), atol=1e-5
    )
    np.testing.assert_allclose(
        by_features.coef_, by_gram.dual_coef_ @ by_gram.support_vectors_, atol=1e-5
    )


@pytest.mark.parametrize("cls", [SIL, MISVM, miSVM])
def test_precomputed_kernel_equals_the_kernel(cls):
    bags, y = make_toy_bags(24, kind="close")
    bags = Bags.from_list(bags)
    new = Bags.from_list(make_toy_bags(10, kind="close", random_state=1)[0])
    # With a linear kernel the mean instance, from which MISVM starts, is the mean of the images.
    params = {"kernel": "linear" if cls is MISVM else "rbf"}
    params["gamma"] = scale_gamma(bags.instances)
    K = instance_kernel(bags.instances, bags.instances, **params)
    given = cls(kernel="precomputed", tol=1e-9).fit(Bags(K, bags.offsets), y)
    plain = cls(tol=1e-9, **params).fit(bags, y)
    K_new = instance_kernel(new.instances, bags.instances, **params)
    np.testing.assert_allclose(
        given.decision_function(Bags(K_new, new.offsets)), plain.decision_function(new), atol=1e-6
    )
    selection = np.arange(0, 24, 2)
    some = cls(kernel="precomputed", tol=1e-9).fit(Bags(K, bags.offsets)[selection], y[selection])
    expected = cls(tol=1e-9, **params).fit(bags[selection], y[selection])
    np.testing.assert_allclose(
        some.decision_function(Bags(K_new, new.offsets)), expected.decision_function(new), atol=1e-6
    )


def test_precomputed_kernel_must_be_square_symmetric_and_say_if_indefinite():
    _, y = make_toy_bags(10)
    K = np.eye(10)
    with pytest.raises(ValueError, match=r"MISVM\.fit needs a square matrix.*\(10, 9\)"):
        MISVM(kernel="precomputed").fit(K[:, :9], y)
    K[2, 5] = 0.5
    with pytest.raises(ValueError, match="symmetric"):
        MISVM(kernel="precomputed").fit(K, y)
    K[5, 2] = 3.0
    K[2, 5] = 3.0
    with pytest.warns(UserWarning, match=r"not positive semi-definite.*-0\.5 times"):
        MISVM(kernel="precomputed").fit(K, y)


def test_more_starts_never_end_worse_and_are_repeatable(load_set):
    bags, y = scaled_bags(load_set("musk1"))
    one = MISVM(C=10.0).fit(bags, y).result_.objective
    many = [MISVM(C=10.0, n_init=4, random_state=s).fit(bags, y) for s in (0, 0, 1)]
    assert all(model.result_.objective <= one for model in many)
    np.testing.assert_array_equal(many[0].dual_coef_, many[1].dual_coef_)


@pytest.mark.parametrize("cls", [MISVM, miSVM])
def test_finds_the_key_instances_of_toy_bags(cls):
    bags, y = make_toy_bags(60, kind="witness", max_size=6)
    model = cls(C=10.0).fit(bags[:40], y[:40])
    new, labels = bags[40:], y[40:]
    assert model.score(new, labels) >= 0.9
    odd = np.array([bag[:, 1].argmax() for bag in new])
    assert (model.key_instances(new) == odd)[labels == 1].mean() >= 0.9


def inner_product(A, B):
    return A @ B.T


@pytest.mark.parametrize(
    "params",
    [{"kernel": "linear"}, {"kernel": inner_product}, {"kernel": inner_product, "cache_size": 0}],
    ids=["features", "matrix", "pieces"],
)
def test_instances_that_all_score_the_same_are_chosen_by_content(params):
    """A first problem without weights must not leave the choice to the order of instances."""
    rng = np.random.default_rng(5)
    bags = [rng.normal(size=(10, 3)) for _ in range(24)]
    y = np.arange(24) % 2
    for bag in bags[1::2]:
        bag[rng.integers(10)] += 2.0
    results = [
        MISVM(C=1.0, n_init=1, **params).fit([bag[rng.permutation(10)] for bag in bags], y).result_
        for _ in range(3)
    ]
    assert results[0].history[0] == pytest.approx(2.0 * 12, rel=1e-9)  # no weights, all negative
    assert results[0].objective < 12.0
    np.testing.assert_allclose([r.objective for r in results], results[0].objective, rtol=1e-6)


@pytest.mark.parametrize("cls", [MISVM, miSVM, PCSVM, MICA, STMIL, MissSVM])
def test_a_fit_leaves_nothing_to_the_garbage_collector(cls):
    """A kernel matrix that is held in a circle of references outlives its fit."""
    bags, y = make_toy_bags(24)
    cls().fit(bags, y)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        cls().fit(bags, y)
        gc.collect()
        left = [type(one).__name__ for one in gc.garbage if "bagwise" in type(one).__module__]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []
