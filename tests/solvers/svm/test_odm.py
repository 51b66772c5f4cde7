"""Optimal margin distribution machines: closed forms, other solvers, mixtures of assignments."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bagwise.solvers import (
    AssignmentProblem,
    BlockGram,
    ODMInner,
    generate_assignments,
    minimize_squared_hinge,
    solve_odm,
)


def rows(seed, n=40, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    sign = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, sign, 10.0 ** rng.uniform(-1, 2, n)


def test_without_a_band_and_with_equal_costs_it_is_ridge_regression():
    X, sign, cost = rows(0)
    K = X @ X.T
    result = solve_odm(K, sign, cost, theta=0.0, nu=1.0)
    wanted = np.linalg.solve(K + np.diag(0.5 / cost), sign)
    np.testing.assert_allclose(result.decision, K @ wanted, rtol=1e-8)


@pytest.mark.parametrize("theta", [0.1, 0.5])
def test_where_large_margins_cost_nothing_it_is_the_squared_hinge(theta):
    X, sign, cost = rows(1)
    result = solve_odm(X @ X.T, sign, cost, theta=theta, nu=1e-12)
    plain = minimize_squared_hinge(X, sign, cost, target=1.0 - theta, fit_intercept=False)
    np.testing.assert_allclose(result.objective, plain.objective, rtol=1e-8)
    np.testing.assert_allclose(result.decision, plain.decision, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_a_quasi_newton_method_on_the_weights_finds_the_same(seed):
    X, sign, cost = rows(seed)
    theta, nu = 0.15 * seed, 0.2 + 0.2 * seed

    def primal(w):
        m = sign * (X @ w)
        below, above = np.maximum(1 - theta - m, 0), np.maximum(m - 1 - theta, 0)
        slope = X.T @ (sign * cost * (2 * nu * above - 2 * below))
        return 0.5 * w @ w + cost @ (below**2 + nu * above**2), w + slope

    found = minimize(primal, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1e-9})
    result = solve_odm(X @ X.T, sign, cost, theta=theta, nu=nu)
    assert result.converged
    assert result.relative_gap <= 1e-12
    np.testing.assert_allclose(result.objective, found.fun, rtol=1e-9)


def test_the_curvature_is_that_of_the_value():
    """Second derivatives of the maximum along a change of the Gram matrix, by differences."""
    X, sign, cost = rows(2, n=20)
    other = np.random.default_rng(5).normal(size=(20, 3))
    K, change = X @ X.T, other @ other.T
    inner = {"theta": 0.3, "nu": 0.4, "tol": 1e-12}

    def value(t):
        return solve_odm(K + t * change, sign, cost, **inner).lower_bound

    here, h = solve_odm(K, sign, cost, **inner), 1e-4
    second = (value(h) - 2 * value(0.0) + value(-h)) / h**2
    np.testing.assert_allclose(here.curvature((change @ here.x)[None])[0, 0], second, rtol=1e-3)


def test_mixtures_of_assignments_have_a_proven_gap_where_all_can_be_looked_at():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 4))
    X[::3] += 0.7
    K = X @ X.T + 1.0
    problem = AssignmentProblem(K[:15, :15], K[:15, 15:], K[15:, 15:], np.arange(0, 16, 3))
    sign = np.repeat([1.0, -1.0], [5, 10])
    inner = ODMInner(sign, np.repeat([4.0, 1.0], [5, 10]), theta=0.2, nu=0.2, tol=1e-12)
    result = generate_assignments(problem, inner, rng=rng, tol=1e-8)
    assert result.gap_is_proven
    assert result.converged
    # No assignment alone has a lower value than the mixture, and each is above the bound.
    values = []
    for choice in np.ndindex(*(3,) * 5):
        rows = np.concatenate([np.arange(0, 15, 3) + choice, np.arange(15, 25)])
        values.append(
            solve_odm(K[np.ix_(rows, rows)], sign, inner.cost, theta=0.2, nu=0.2).objective
        )
    assert result.lower_bound <= min(values) + 1e-9
    assert result.objective <= min(values) * (1 + 1e-7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"theta": 1.0}, "theta must be at least 0 and below 1"),
        ({"theta": -0.1}, "theta must be at least 0 and below 1"),
        ({"nu": 0.0}, "nu must be positive"),
        ({"cost": -1.0}, "cost must be not negative"),
    ],
)
def test_bad_input_is_refused(changes, message):
    X, sign, cost = rows(0)
    with pytest.raises(ValueError, match=message):
        solve_odm(X @ X.T, **{"sign": sign, "cost": cost, **changes})


def halves(seed, n=150, n_head=12):
    """Return rows of which the first may change, others in their place, signs and costs."""
    X, sign, cost = rows(seed, n=n)
    other = X.copy()
    other[:n_head:3] = rows(seed + 1, n=n)[0][:n_head:3]
    fixed = X[n_head:] @ X[n_head:].T
    grams = [
        BlockGram(A[:n_head] @ A[:n_head].T, A[:n_head] @ A[n_head:].T, fixed) for A in (X, other)
    ]
    return grams, (X, other), sign, cost


@pytest.mark.parametrize("seed", range(4))
def test_the_result_of_a_similar_problem_and_any_decision_values_lead_to_the_same_end(seed):
    (first, second), (_, X), sign, cost = halves(seed)
    before = solve_odm(first, sign, cost)
    alone = solve_odm(X @ X.T, sign, cost)
    drawn = np.random.default_rng(seed).normal(size=len(sign))
    for start in (
        {"like": before},
        {"decision0": drawn},
        {"like": before, "decision0": X @ (X.T @ alone.x)},
    ):
        result = solve_odm(second, sign, cost, **start)
        assert result.converged
        assert result.objective == pytest.approx(alone.objective, rel=1e-10)
        np.testing.assert_allclose(result.decision, alone.decision, atol=1e-7)
    assert result.n_iter == 1  # the last start is the solution


@pytest.mark.parametrize("seed", range(3))
def test_a_shared_factor_that_rounding_spoils_is_made_anew(seed):
    """Rows in a plane with next to no ridge: systems bordered by others of them are singular."""
    rng, cost, like = np.random.default_rng(seed), 1e7, None
    Z, H = rng.normal(size=(117, 2)), rng.normal(size=(24, 2))
    fixed, sign = Z @ Z.T, np.where(rng.random(141) < 0.5, 1.0, -1.0)
    for k in range(3):
        H[4 * k : 4 * k + 4] = rng.normal(size=(4, 2))
        gram = BlockGram(H @ H.T, H @ Z.T, fixed)
        like = solve_odm(gram, sign, cost, theta=0.0, nu=1.0, like=like)
        X = np.vstack([H, Z])
        w = np.linalg.solve(X.T @ X + 0.5 / cost * np.eye(2), X.T @ sign)  # ridge regression
        assert like.converged
        value = 0.5 * w @ w + cost * ((sign - X @ w) ** 2).sum()
        assert like.objective == pytest.approx(value, rel=1e-6)


def test_starts_that_are_not_numbers_are_refused():
    X, sign, cost = rows(0)
    for decision0 in (np.full(40, np.nan), np.zeros(39)):
        with pytest.raises(ValueError, match="decision0"):
            solve_odm(X @ X.T, sign, cost, decision0=decision0)
