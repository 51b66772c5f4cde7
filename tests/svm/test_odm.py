"""ODM: ridge regression, a quasi-Newton method on the weights, the same bits from a file."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.kernel_ridge import KernelRidge

from bagwise import Bags
from bagwise.bags import StoreWriter
from bagwise.exceptions import MemoryLimitError
from bagwise.svm import ODM
from bagwise.svm.machinery import _kernel_machine
from bagwise.testing import make_toy_bags
from svm.naive import instance_kernel


def points(seed=0, n=60, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


def test_without_a_band_it_is_ridge_regression_on_the_signs():
    X, y = points()
    model = ODM(2.0, theta=0.0, nu=1.0, kernel="rbf", gamma=0.4, bias=3.0).fit(X, y)
    K = instance_kernel(X, X, "rbf", gamma=0.4) + 3.0
    ridge = KernelRidge(alpha=1.0 / (2.0 * 2.0), kernel="precomputed").fit(K, 2.0 * y - 1.0)
    np.testing.assert_allclose(model.decision_function(X), ridge.predict(K), atol=1e-8)


@pytest.mark.parametrize("bias", [0.0, 5.0])
def test_the_objective_of_the_docstring_is_minimised(bias):
    bags, y = make_toy_bags(20, kind="close", max_size=4)
    bags = Bags.from_list(bags)
    weight = 1.0 + np.arange(20) % 3
    C, theta, nu = 0.7, 0.3, 0.4
    model = ODM(C, theta=theta, nu=nu, kernel="linear", bias=bias)
    model.fit(bags, y, sample_weight=weight)
    X, sign = bags.instances, np.repeat(2.0 * y - 1.0, bags.sizes)
    cost = C / (1 - theta) ** 2 * np.repeat(weight, bags.sizes)

    def objective(z):
        w, b = z[:-1], z[-1] * (bias > 0)
        m = sign * (X @ w + b)
        below, above = np.maximum(1 - theta - m, 0), np.maximum(m - 1 - theta, 0)
        penalty = 0.5 * b**2 / bias if bias else 0.0
        return 0.5 * w @ w + penalty + cost @ (below**2 + nu * above**2)

    found = minimize(objective, np.zeros(X.shape[1] + 1), options={"gtol": 1e-7})
    assert model.result_.objective == pytest.approx(found.fun, rel=1e-8)
    assert model.result_.relative_gap <= 1e-9
    fitted = objective(np.append(model.coef_[0], model.intercept_))
    assert fitted == pytest.approx(model.result_.objective, rel=1e-10)
    best = [scores.max() for scores in np.split(X @ model.coef_[0], bags.offsets[1:-1])]
    np.testing.assert_allclose(model.decision_function(bags), best + model.intercept_, atol=1e-12)


def test_features_and_inner_products_are_one_problem():
    X, y = points(1)
    linear = ODM(kernel="linear", tol=1e-10).fit(X, y)
    given = ODM(kernel="precomputed", tol=1e-10).fit(X @ X.T, y)
    scores = linear.decision_function(X)
    np.testing.assert_allclose(scores, given.decision_function(X @ X.T), atol=1e-7)
    full = ODM(approx="cholesky", rank=60, gamma=0.3, tol=1e-10).fit(X, y)
    exact = ODM(gamma=0.3, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(full.decision_function(X), exact.decision_function(X), atol=1e-5)


def test_passes_over_a_store_give_the_same_bits_as_memory(tmp_path, monkeypatch):
    bags, y = make_toy_bags(60, kind="close")
    plain = ODM(kernel="linear").fit(bags, y)
    monkeypatch.setattr(_kernel_machine, "MANY_VALUES", 1)
    with StoreWriter(tmp_path / "toy.bags") as writer:
        for bag in bags:
            writer.append(bag)
    places = Bags.from_list(bags), Bags.open(tmp_path / "toy.bags")
    models = [ODM(kernel="linear").fit(each, y) for each in places]
    models.append(ODM(kernel="linear", max_memory="20kB").fit(places[1], y))
    for other in models[1:]:
        assert (models[0].coef_ == other.coef_).all()
        assert models[0].intercept_ == other.intercept_
    np.testing.assert_allclose(models[0].coef_, plain.coef_, rtol=1e-7)


def test_a_large_matrix_is_refused():
    X, y = points()
    with pytest.raises(MemoryLimitError, match=r"ODM needs the kernel .* approx"):
        ODM(cache_size=0.02).fit(X, y)
    assert ODM(cache_size=0.02, kernel="linear").fit(X, y).result_.converged
