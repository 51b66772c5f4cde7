"""Interior-point steps for linear machines: the same solutions as other solvers, for any cost."""

import numpy as np
import pytest
from scipy import sparse

from bagwise.solvers import FeatureRows, solve_linear_svm, solve_svm_dual
from bagwise.solvers.svm import _linear_svm
from bagwise.solvers.svm._linear_problem import LinearProblem
from bagwise.solvers.svm._linear_svm_interior import InteriorSearch

COSTS = [1e-3, 1.0, 1e2, 1e4]


def run_to(problem, gap):
    search = InteriorSearch(problem)
    search.run(gap, 100)
    return search.point()


def mixed_rows(n, d, density, seed=0):
    """Return sparse rows whose signs are noise: many are at their costs, about ``d`` are free."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=density, format="csr", dtype=np.float32, rng=rng)
    return X, np.where(rng.random(n) < 0.4, 1.0, -1.0)


@pytest.mark.parametrize("C", COSTS)
def test_the_solution_is_that_of_pair_steps(C):
    X, sign = mixed_rows(300, 12, 0.3)
    cost = C * np.random.default_rng(1).uniform(0.0, 1.0, 300).round(1)  # some take no part
    target = np.random.default_rng(2).uniform(0.5, 1.5, 300)
    problem = LinearProblem(FeatureRows(X), sign, cost, target, False, 0.0)
    point = run_to(problem, 1e-11)
    dense = X.toarray().astype(np.float64)
    expected = solve_svm_dual(dense @ dense.T, sign, cost, target=target, tol=1e-9)
    assert point.dual <= expected.objective * (1 + 1e-6)
    np.testing.assert_allclose(point.primal, expected.objective, rtol=1e-5)
    np.testing.assert_allclose(point.dual, expected.objective, rtol=1e-5)
    assert (point.alpha[cost == 0.0] == 0.0).all()


@pytest.mark.parametrize("rho", [0.0, 1.0, None], ids=["free", "penalized", "none"])
@pytest.mark.parametrize("C", COSTS)
def test_both_bounds_meet_with_any_intercept(C, rho):
    X, sign = mixed_rows(400, 15, 0.4, seed=3)
    problem = LinearProblem(FeatureRows(X), sign, np.full(400, C), np.ones(400), False, rho)
    search = InteriorSearch(problem)
    search.run(1e-11, 100)
    point = search.point()
    assert search.n_iter < 50
    assert 0.0 <= point.primal - point.dual + 1e-12 * point.primal <= 1e-5 * point.primal


@pytest.mark.parametrize("C", COSTS)
def test_weights_and_multipliers_on_the_way_bound_the_optimum_soon(C):
    X, sign = mixed_rows(400, 40, 0.4, seed=3)
    problem = LinearProblem(FeatureRows(X), sign, np.full(400, C), np.ones(400), False, 0.0)
    exact, search = run_to(problem, 1e-12), InteriorSearch(problem)
    for gap in (0.3, 0.1, 1e-2, 1e-3):
        search.run(gap, 100)
        point = search.inner_point()
        assert point.dual <= exact.primal * (1 + 1e-9)
        assert exact.dual * (1 - 1e-9) <= point.primal
        np.testing.assert_allclose(point.z, X @ point.w, atol=1e-9)
        assert problem.primal(point.w, point.b, point.z) == point.primal
    assert point.primal - point.dual <= 1e-2 * point.primal
    outer = search.point()
    assert C < 1.0 or point.primal - point.dual <= outer.primal - outer.dual


@pytest.mark.parametrize("C", COSTS)
def test_it_ends_where_rows_of_both_signs_can_be_told_apart(C):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(500, 6))
    sign = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += sign
    problem = LinearProblem(FeatureRows(X), sign, np.full(500, C), np.ones(500), False, 0.0)
    point = run_to(problem, 1e-12)
    expected = solve_linear_svm(X, sign, C, tol=1e-9)
    np.testing.assert_allclose(point.dual, expected.objective, rtol=1e-5)


@pytest.mark.parametrize("C", COSTS)
def test_a_solution_takes_few_systems_whatever_the_cost(monkeypatch, C):
    """About as many rows as features are free: Newton steps alone come to hundreds of kinks."""
    X, sign = mixed_rows(6000, 620, 0.05)
    systems = []
    whole = FeatureRows.curvature

    def counted(rows, weight):
        systems.append(rows.n)
        return whole(rows, weight)

    monkeypatch.setattr(FeatureRows, "curvature", counted)
    result = solve_linear_svm(X, sign, C)
    assert result.residual <= 1e-6
    assert result.objective - result.lower_bound <= 1e-6 * result.objective
    assert len(systems) <= 60


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_narrow_rows_after_newton_steps(monkeypatch, C):
    """Newton steps that get no time leave all to the others."""
    monkeypatch.setattr(_linear_svm, "_SLOW_SYSTEMS", 0.0)
    X, sign = mixed_rows(4500, 30, 0.3)
    other = solve_linear_svm(X, sign, C, tol=1e-8)
    monkeypatch.undo()
    expected = solve_linear_svm(X, sign, C, tol=1e-8)
    assert other.residual <= 1e-8
    np.testing.assert_allclose(other.objective, expected.objective, rtol=1e-9)
