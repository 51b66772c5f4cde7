"""Linear machines without the Gram matrix of their rows, against those that have it."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

import bagwise.solvers.svm._linear_svm as linear_svm
from bagwise.solvers import FeatureRows, Status, solve_linear_svm, solve_svm_dual
from bagwise.solvers.svm import _linear_svm_kernels as kernels
from bagwise.solvers.svm import _linear_svm_products as products
from bagwise.solvers.svm._linear_problem import LinearProblem
from solvers.svm.test_stages import plain_sweep


def text(n=60, d=400, seed=0):
    """Return sparse rows that lie close together, as means of bags of text do, and their signs."""
    rng = np.random.default_rng(seed)
    common = 1.0 / np.arange(1, d + 1)
    X = rng.poisson(50.0 * common, size=(n, d)) / 20.0
    sign = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    X[sign > 0, 20:24] += 0.2
    return sp.csr_array(X), sign


@pytest.fixture
def without_gram(monkeypatch):
    """Send sparse rows the way of those whose Gram matrix is dear; it must not be formed."""
    monkeypatch.setattr(linear_svm, "_DEAR", 0.0)
    monkeypatch.setattr(linear_svm, "_SHARE", 1e6)
    monkeypatch.setattr(linear_svm, "_MANY_FEATURES", 1)
    monkeypatch.setattr(FeatureRows, "gram", lambda self: pytest.fail("a Gram matrix"))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("cost", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("uneven", [False, True])
def test_solution_is_that_on_the_gram_matrix(without_gram, loss, cost, uneven):
    X, sign = text()
    costs = np.full(len(sign), cost)
    if uneven:
        rng = np.random.default_rng(1)
        costs *= rng.exponential(size=len(sign)) * (rng.random(len(sign)) < 0.8)
    found = solve_linear_svm(X, sign, costs, loss=loss, max_iter=100_000)
    expected = solve_svm_dual((X @ X.T).toarray(), sign, costs, loss=loss, tol=1e-9)
    assert found.status is Status.CONVERGED
    assert found.residual <= 1e-6
    assert found.lower_bound <= expected.objective * (1 + 1e-9)
    assert found.objective == pytest.approx(expected.objective, rel=1e-4)
    np.testing.assert_allclose(found.decision, expected.decision, atol=1e-4)
    np.testing.assert_allclose(X @ found.coef + found.intercept, found.decision, atol=1e-12)


def test_weights_are_those_of_libsvm(without_gram):
    X, sign = text(seed=3)
    found = solve_linear_svm(X, sign, 1.0, max_iter=100_000)
    peer = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X.toarray(), sign)
    np.testing.assert_allclose(found.coef, peer.coef_[0], atol=1e-5)


def test_a_start_at_the_solution_of_another_cost(without_gram):
    X, sign = text()
    before = solve_linear_svm(X, sign, 1.0, max_iter=100_000)
    warm = solve_linear_svm(X, sign, 2.0, alpha0=before.x, max_iter=100_000)
    cold = solve_linear_svm(X, sign, 2.0, max_iter=100_000)
    assert warm.status is Status.CONVERGED
    np.testing.assert_allclose(warm.decision, cold.decision, atol=1e-5)


def test_the_gram_matrix_is_formed_where_products_do_not_do(monkeypatch):
    X, sign = text()
    monkeypatch.setattr(linear_svm, "_DEAR", 0.0)
    monkeypatch.setattr(linear_svm, "_SHARE", 1e-9)
    found = solve_linear_svm(X, sign, 1.0)
    expected = solve_svm_dual((X @ X.T).toarray(), sign, 1.0, tol=1e-9)
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.decision, expected.decision, atol=1e-5)


@pytest.mark.parametrize("squared", [False, True])
def test_a_sweep_is_one_over_rows_less_their_mean(squared):
    X, sign = text(n=20, d=15)
    dense, rng = X.toarray(), np.random.default_rng(2)
    problem = LinearProblem(FeatureRows(X), sign, np.full(20, 2.0), np.ones(20), squared, 0.0)
    mean = dense.mean(axis=0)
    away, alpha, bias, b = dense - mean, rng.uniform(0.0, 1.0, 20), 0.7, 0.3
    order = rng.permutation(20)
    expected = plain_sweep(
        away, order, sign, problem.target, problem.cap, problem.ridge,
        alpha.copy(), away.T @ (sign * alpha), bias, b,
    )  # fmt: skip
    w, lean = dense.T @ (sign * alpha), dense @ mean
    state = np.array([b, sign @ alpha, -np.inf, np.inf, mean @ w, mean @ mean])
    matrix, curvature = problem.matrix, (away**2).sum(axis=1) + bias + problem.ridge
    kernels.centred_sweep(
        *matrix.parts, matrix.rows, order, sign, problem.target, problem.cap, problem.ridge,
        curvature, alpha, w, bias, state, lean, np.inf, -np.inf, np.empty_like(order),
    )  # fmt: skip
    np.testing.assert_allclose(alpha, expected[0], atol=1e-12)
    np.testing.assert_allclose(w - (sign @ alpha) * mean, expected[1], atol=1e-12)
    assert state[0] == pytest.approx(expected[2])
    assert state[4] == pytest.approx(mean @ w)


def test_equations_of_free_rows_hold():
    X, sign = text(n=40, d=500)
    cost = np.full(40, 1e6)  # nothing is at a bound
    problem = LinearProblem(FeatureRows(X), sign, cost, np.ones(40), True, 0.0)
    search = products.ProductSearch(problem, problem.matrix.square_norms(), 1e-6, 1e3)
    found = search._equations(problem.origin(), np.ones(40, bool))
    border = np.ones((41, 41))
    border[:40, :40] = (X @ X.T).toarray() + np.diag(problem.ridge)
    border[40, 40] = 0.0
    solved = np.linalg.solve(border, np.append(sign, 0.0))
    if (sign * solved[:40] > 0.0).all():
        np.testing.assert_allclose(found.alpha, sign * solved[:40], rtol=1e-4)
    weights = X.T @ (sign * found.alpha)
    np.testing.assert_allclose(found.w, weights, atol=1e-12 * np.abs(weights).max())
    np.testing.assert_allclose(found.z, X @ weights, atol=1e-12 * np.abs(found.z).max())
    assert found.dual > problem.origin().dual


def test_products_are_given_up_that_would_take_too_long(monkeypatch):
    monkeypatch.setattr(products, "_OUTSIDE", 1.0)
    X, sign = text(n=80, d=60)  # more rows than features: no weights meet all targets
    problem = LinearProblem(FeatureRows(X), sign, np.full(80, 1e8), np.ones(80), True, 0.0)
    search = products.ProductSearch(problem, problem.matrix.square_norms(), 1e-6, 25.0)
    point = search.run(None)
    assert not point.residual <= 1e-6
    assert search.n_products <= 3 + products._LOOK


def test_steps_to_come():
    X, sign = text(n=20, d=50)
    problem = LinearProblem(FeatureRows(X), sign, np.ones(20), np.ones(20), False, 0.0)
    search = products.ProductSearch(problem, problem.matrix.square_norms(), 1e-6, 25.0)
    goal = products._ENOUGH * 1e-6
    assert search._to_come(5, 1e4 * goal, 1e2 * goal) == pytest.approx(5.0)  # as far as so far
    assert search._to_come(5, goal, 2 * goal) == np.inf


def test_price_of_a_gram_matrix():
    dense = FeatureRows(np.ones((50, 10)))
    assert dense.gram_price == 0.0
    filled = sp.random_array((1000, 500), density=0.25, format="csr", rng=np.random.default_rng(0))
    assert FeatureRows(filled).gram_price == pytest.approx(40.0)  # 1000**2 * 500 / (100 * 125000)
    thin = sp.random_array((1000, 500), density=0.01, format="csr", rng=np.random.default_rng(0))
    assert FeatureRows(thin).gram_price == pytest.approx(10.0)  # values in a column
