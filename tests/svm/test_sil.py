"""SIL is an ordinary SVM on instances that carry the label of their bag."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bagwise import Bags
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL
from bagwise.testing import make_toy_bags
from svm.naive import instance_kernel, scale_gamma, scaled_bags, solve_dual

KERNELS = [{"kernel": "rbf"}, {"kernel": "linear"}, {"kernel": "poly", "degree": 2, "coef0": 1.0}]


def kernel_name(params):
    return params["kernel"]


def best_per_bag(scores, offsets):
    return np.array([scores[a:b].max() for a, b in pairwise(offsets)])


def plain(C=1.0, **params):
    """Return the machine that others call so."""
    return SIL(C, positive_cost=1.0, **params)


def stacked(bags, y):
    """Return the instances and the labels that they inherit."""
    return np.concatenate(bags), np.repeat(y, [len(bag) for bag in bags])


def reference_scores(X, y, new, cost=1.0, **params):
    params = {"gamma": scale_gamma(X), **params}
    coef, intercept, _ = solve_dual(instance_kernel(X, X, **params), 2.0 * y - 1.0, cost)
    return instance_kernel(new, X, **params) @ coef + intercept


@pytest.fixture(scope="module")
def musk(load_set):
    return scaled_bags(load_set("musk1"))


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
def test_equals_the_svm_of_repeated_labels_on_musk1(params, C, musk):
    bags, y = musk
    X, repeated = bags.instances, np.repeat(y, bags.sizes)
    model = plain(C=C, tol=1e-9, **params).fit(bags, y)
    scores = model.instance_decision_function(bags)
    expected = reference_scores(X, repeated, X, cost=C, **params)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6)
    libsvm = SVC(C=C, tol=1e-8, **params).fit(X, repeated).decision_function(X)
    np.testing.assert_allclose(scores, libsvm, rtol=0, atol=1e-4 * np.abs(libsvm).max())
    bag_scores = best_per_bag(libsvm, bags.offsets)
    clear = np.abs(bag_scores) > 0.01
    assert clear.sum() > 80
    np.testing.assert_array_equal(model.predict(bags)[clear] == 1, bag_scores[clear] > 0)
    np.testing.assert_allclose(
        model.decision_function(bags), best_per_bag(scores, bags.offsets), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
def test_equals_the_svm_of_repeated_labels_on_new_bags(params):
    bags, y = make_toy_bags(30, kind="close")
    new, _ = make_toy_bags(30, kind="close", random_state=1)
    expected = reference_scores(*stacked(bags, y), np.concatenate(new), **params)
    model = plain(tol=1e-9, **params).fit(bags, y)
    scores = model.instance_decision_function(new)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("positive_cost", ["sqrt", 0.3, 2.0])
@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
def test_instances_of_positive_bags_cost_what_was_asked(params, positive_cost):
    bags, y = make_toy_bags(30, kind="close")
    X, repeated = stacked(bags, y)
    sizes = np.repeat([len(bag) for bag in bags], [len(bag) for bag in bags])
    assert len(np.unique(sizes)) > 2
    of_positive = 1.0 / np.sqrt(sizes) if positive_cost == "sqrt" else positive_cost
    cost = 0.5 * np.where(repeated == 1, of_positive, 1.0)
    model = SIL(C=0.5, positive_cost=positive_cost, tol=1e-9, **params).fit(bags, y)
    expected = reference_scores(X, repeated, X, cost=cost, **params)
    scores = model.instance_decision_function(bags) - model.intercept_shift_  # at the optimum
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6)


def test_labels_in_another_order_turn_the_sign():
    bags, y = make_toy_bags(30, kind="close")
    model = plain(C=0.1)
    scores = model.fit(bags, y).instance_decision_function(bags)
    turned = model.fit(bags, 1 - y).instance_decision_function(bags)
    np.testing.assert_allclose(turned, -scores, rtol=0, atol=1e-5)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_objective_is_the_one_in_the_docstring(C):
    bags, y = make_toy_bags(20, kind="close")
    X, repeated = stacked(bags, y)
    K = instance_kernel(X, X, "rbf", gamma=scale_gamma(X))
    _, _, objective = solve_dual(K, 2.0 * repeated - 1.0, C)
    result = plain(C=C, tol=1e-9).fit(bags, y).result_
    assert result.objective == pytest.approx(objective, rel=1e-8)
    assert -1e-12 < result.relative_gap < 1e-6


def test_classes_are_learned_one_against_the_rest():
    bags, y = make_toy_bags(30, n_classes=3, kind="close")
    X, repeated = stacked(bags, y)
    model = plain(tol=1e-9).fit(bags, y)
    expected = [reference_scores(X, repeated == c, X, kernel="rbf") for c in range(3)]
    np.testing.assert_allclose(
        model.instance_decision_function(bags), np.transpose(expected), rtol=0, atol=1e-6
    )
    assert model.dual_coef_.shape[0] == len(model.intercept_) == len(model.result_.parts) == 3


def test_weights_multiply_the_cost():
    bags, y = make_toy_bags(30, kind="close")
    X, repeated = stacked(bags, y)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(bags))
    model = plain(C=2.0, gamma=0.3, class_weight={0: 1.0, 1: 3.0}, tol=1e-9)
    model.fit(bags, y, sample_weight=weight)
    cost = 2.0 * np.repeat(weight, [len(bag) for bag in bags]) * np.where(repeated == 1, 3.0, 1.0)
    expected = reference_scores(X, repeated, X, cost=cost, kernel="rbf", gamma=0.3)
    np.testing.assert_allclose(model.instance_decision_function(bags), expected, rtol=0, atol=1e-6)


def test_expansion_is_what_the_attributes_say():
    bags, y = make_toy_bags(20, kind="close")
    model = SIL().fit(bags, y)
    X = np.concatenate(bags)
    assert model.gamma_ == pytest.approx(scale_gamma(X), rel=1e-12)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    K = instance_kernel(X, model.support_vectors_, "rbf", gamma=model.gamma_)
    expected = K @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.instance_decision_function(bags), expected, atol=1e-12)
    assert 0 < len(model.support_) <= len(X)
    assert np.abs(model.dual_coef_).max() <= 1.0 + 1e-12  # C
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("gamma", "expected"), [("auto", 1 / 3), (0.7, 0.7)])
def test_gamma_by_rule_and_by_number(gamma, expected):
    bags, y = make_toy_bags()
    assert SIL(gamma=gamma).fit(bags, y).gamma_ == pytest.approx(expected)


def test_median_gamma_is_one_over_the_median_squared_distance():
    bags, y = make_toy_bags()
    X = np.concatenate(bags)
    squared = ((X[:, None] - X) ** 2).sum(axis=2)[np.triu_indices(len(X), 1)]
    assert SIL(gamma="median").fit(bags, y).gamma_ == pytest.approx(1 / np.median(squared))


def test_callable_kernel():
    bags, y = make_toy_bags(kind="close")
    model = plain(kernel=lambda A, B: (A @ B.T + 1.0) ** 2).fit(bags, y)
    named = plain(kernel="poly", degree=2, coef0=1.0, gamma=1.0).fit(bags, y)
    np.testing.assert_allclose(
        model.decision_function(bags), named.decision_function(bags), atol=1e-5
    )


def test_key_instance_is_the_odd_one():
    bags, y = make_toy_bags(40, kind="witness", max_size=6)
    model = SIL(C=10.0).fit(bags, y)
    found = (y == 1) & (model.predict(bags) == 1)
    odd = np.array([bag[:, 1].argmax() for bag in bags])
    assert found.sum() >= 18
    assert (model.key_instances(bags) == odd)[found].mean() >= 0.9


def test_one_instance_scores_as_its_bag():
    bags, y = make_toy_bags(30, n_classes=3, kind="close")
    model = SIL().fit(bags, y)
    alone = [bag[:1] for bag in bags]
    np.testing.assert_array_equal(
        model.decision_function(alone), model.instance_decision_function(alone)
    )


def test_default_parameters_work_on_musk1(load_set):
    arrays = load_set("musk1")
    bags = Bags(arrays["X"].astype(np.float64), arrays["offsets"])
    model = make_pipeline(InstanceTransformer(StandardScaler()), SIL())
    assert cross_val_score(model, bags, arrays["y"], cv=5).mean() > 0.7
