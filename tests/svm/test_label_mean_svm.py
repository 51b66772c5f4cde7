"""LabelMeanSVM: mean scores under the squared hinge, against general solvers."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score

from bagwise import Bags
from bagwise.solvers import minimize_squared_hinge, solve_qp
from bagwise.svm import LabelMeanSVM, MIKernelSVM
from bagwise.testing import make_toy_bags
from svm.naive import instance_kernel, scaled_bags, set_kernel

KERNELS = [
    {"kernel": "rbf", "gamma": 0.2},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
]
LAYOUTS = {
    "dense": lambda bags: Bags.from_list(bags),
    "csr": lambda bags: Bags(
        sparse.csr_array(np.concatenate(bags)), np.cumsum([0, *map(len, bags)])
    ),
}


def kernel_name(params):
    return params["kernel"]


def solve_primal(K, sign, cost):
    """Minimise 1/2 a'Ka + sum c (1 - s (Ka + b))_+^2 over (a, b), with the slacks as variables."""
    n = len(sign)
    P = np.zeros((2 * n + 1, 2 * n + 1))
    P[:n, :n] = K
    P[n + 1 :, n + 1 :] = np.diag(2.0 * np.broadcast_to(cost, n))
    margins = np.hstack([-sign[:, None] * K, -sign[:, None], -np.eye(n)])
    lower = np.concatenate([np.full(n + 1, -np.inf), np.zeros(n)])
    result = solve_qp(P, np.zeros(2 * n + 1), margins, -np.ones(n), lower=lower, tol=1e-9)
    return result.x[:n], result.x[n], result.objective


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
def test_optimum_is_that_of_a_quadratic_program(params, layout):
    bags, y = make_toy_bags(20, kind="close")
    new, _ = make_toy_bags(10, kind="close", random_state=1)
    K = set_kernel(bags, bags, "average", **params)
    coef, intercept, objective = solve_primal(K, 2.0 * y - 1.0, 2.0)
    model = LabelMeanSVM(2.0, tol=1e-9, **params).fit(LAYOUTS[layout](bags), y)
    assert model.result_.objective == pytest.approx(objective, rel=1e-6)
    for some in (bags, new):
        expected = set_kernel(some, bags, "average", **params) @ coef + intercept
        np.testing.assert_allclose(
            model.decision_function(LAYOUTS[layout](some)), expected, atol=1e-4
        )


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_linear_kernel_against_the_primal_solver(C):
    bags, y = make_toy_bags(40, kind="close")
    means = np.array([bag.mean(axis=0) for bag in bags])
    expected = minimize_squared_hinge(means, 2.0 * y - 1.0, C, tol=1e-11)
    model = LabelMeanSVM(C, kernel="linear", tol=1e-10).fit(bags, y)
    np.testing.assert_allclose(model.coef_[0], expected.x, atol=1e-6)
    assert model.intercept_[0] == pytest.approx(expected.intercept, abs=1e-6)
    assert model.result_.objective == pytest.approx(expected.objective, rel=1e-8)


@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
def test_objective_from_the_decision_values(params):
    """Eq. 5 of the paper: half the squared norm plus C times the squared hinges of mean scores."""
    bags, y = make_toy_bags(24, kind="close")
    model = LabelMeanSVM(3.0, tol=1e-9, **params).fit(bags, y)
    scores = model.instance_decision_function(bags)
    means = [part.mean() for part in np.split(scores, np.cumsum([len(bag) for bag in bags])[:-1])]
    loss = 3.0 * (np.maximum(0.0, 1.0 - (2.0 * y - 1.0) * means) ** 2).sum()
    if params["kernel"] == "linear":
        norm = (model.coef_**2).sum()
    else:
        rows, coef = model.support_vectors_, model.dual_coef_[0]
        norm = coef @ instance_kernel(rows, rows, **params) @ coef
    assert model.result_.objective == pytest.approx(0.5 * norm + loss, rel=1e-7)
    assert abs(model.result_.gap) <= 1e-6 * model.result_.objective
    np.testing.assert_allclose(model.decision_function(bags), means, atol=1e-9)


def test_weights_multiply_the_cost():
    bags, y = make_toy_bags(20, kind="close")
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(bags))
    K = set_kernel(bags, bags, "average", kernel="rbf", gamma=0.3)
    coef, intercept, _ = solve_primal(K, 2.0 * y - 1.0, 4.0 * weight * np.where(y == 1, 2.0, 1.0))
    model = LabelMeanSVM(4.0, gamma=0.3, class_weight={0: 1.0, 1: 2.0}, tol=1e-9)
    model.fit(bags, y, sample_weight=weight)
    np.testing.assert_allclose(model.decision_function(bags), K @ coef + intercept, atol=1e-4)


def test_map_of_full_rank_is_the_kernel():
    bags, y = make_toy_bags(24, kind="close")
    exact = LabelMeanSVM(gamma=0.5, tol=1e-9).fit(bags, y)
    model = LabelMeanSVM(gamma=0.5, tol=1e-9, approx="cholesky", rank=200).fit(bags, y)
    np.testing.assert_allclose(
        model.decision_function(bags), exact.decision_function(bags), atol=1e-5
    )
    assert model.result_.objective == pytest.approx(exact.result_.objective, rel=1e-6)


def test_differs_from_the_hinge():
    bags, y = make_toy_bags(24, kind="close")
    scores = LabelMeanSVM(gamma=0.5).fit(bags, y).decision_function(bags)
    hinge = MIKernelSVM(gamma=0.5).fit(bags, y).decision_function(bags)
    assert np.abs(scores - hinge).max() > 0.01


def test_has_no_normalization():
    assert "normalization" not in LabelMeanSVM().get_params()


def test_default_parameters_work_on_musk1(load_set):
    bags, y = scaled_bags(load_set("musk1"))
    assert cross_val_score(LabelMeanSVM(), bags, y, cv=5).mean() > 0.75


@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
def test_it_is_the_set_kernel_with_the_squared_hinge(params):
    bags, y = make_toy_bags(random_state=3)
    mean = LabelMeanSVM(C=3.0, **params).fit(bags, y)
    pairs = MIKernelSVM(C=3.0, loss="squared_hinge", **params).fit(bags, y)
    assert pairs.result_.objective == mean.result_.objective
    np.testing.assert_array_equal(pairs.decision_function(bags), mean.decision_function(bags))


def test_squared_hinge_of_normalised_kernel_against_general_solver():
    bags, y = make_toy_bags(random_state=4)
    model = MIKernelSVM(C=3.0, gamma=0.2, loss="squared_hinge", normalization="feature_space")
    model.fit(bags, y)
    K = set_kernel(list(bags), list(bags), "feature_space", kernel="rbf", gamma=0.2)
    sign = np.where(y == model.classes_[1], 1.0, -1.0)
    objective = solve_primal(K, sign, 3.0)[2]
    assert model.result_.objective == pytest.approx(objective, rel=1e-6)


@pytest.mark.parametrize("model", [LabelMeanSVM(), MIKernelSVM(loss="squared_hinge")])
def test_a_polynomial_that_is_no_kernel_leaves_no_optimum(model):
    bags, y = make_toy_bags(24, kind="close")
    model.set_params(kernel="poly", gamma=0.5, degree=3, coef0=-3.0)
    match = rf"{type(model).__name__}: the kernel.* must be positive semi-definite"
    with pytest.raises(ValueError, match=match):
        model.fit(bags, y)
