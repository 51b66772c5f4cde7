"""The conic adapter against closed forms, a dual active-set method and optimality conditions."""

import clarabel
import numpy as np
import pytest
import quadprog
import scipy.sparse as sp
from scipy.optimize import linprog

from bagwise.exceptions import SolverError
from bagwise.solvers import Status, solve_qp


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_quadprog(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(8, 8))
    P, q = root @ root.T + 0.1 * np.eye(8), rng.normal(size=8)
    A, b = rng.normal(size=(6, 8)), rng.random(6)
    E = rng.normal(size=(2, 8))
    result = solve_qp(P, q, A, b, E, np.zeros(2), lower=-0.5, upper=1.0)
    rows = np.vstack([E, -A, np.eye(8), -np.eye(8)])
    right = np.concatenate([np.zeros(2), -b, np.full(8, -0.5), np.full(8, -1.0)])
    x, value, *_ = quadprog.solve_qp(P, -q, rows.T, right, meq=2)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.x, x, atol=1e-5)
    np.testing.assert_allclose(result.objective, value, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(result.lower_bound, value, rtol=1e-6, atol=1e-7)
    stationary = P @ x + q + A.T @ result.dual_ub + E.T @ result.dual_eq
    stationary += result.dual_upper - result.dual_lower
    np.testing.assert_allclose(stationary, 0.0, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_linear_programmes_agree_with_highs(seed):
    """Feasible at a known point, dual feasible at another: so there is a finite optimum."""
    rng = np.random.default_rng(seed)
    A, E = rng.normal(size=(15, 25)), rng.normal(size=(4, 25))
    x, y, z = rng.exponential(size=25), rng.exponential(size=15), rng.normal(size=4)
    c = -A.T @ y - E.T @ z + rng.exponential(size=25) * (rng.random(25) < 0.6)
    b = A @ x + rng.exponential(size=15) * (rng.random(15) < 0.5)
    optimum = linprog(c, A, b, E, E @ x).fun
    for rows, equal in [(A, E), (sp.csr_array(A), sp.coo_matrix(E))]:
        result = solve_qp(None, c, rows, b, equal, E @ x, lower=0.0)
        assert result.status is Status.CONVERGED
        np.testing.assert_allclose(result.objective, optimum, rtol=1e-6)
        reduced = c + A.T @ result.dual_ub + E.T @ result.dual_eq
        np.testing.assert_allclose(reduced, result.dual_lower, atol=1e-5)
        assert abs(result.x @ reduced) <= 1e-6 * max(1.0, abs(optimum))


def test_projection_on_a_ball_and_on_a_cone():
    point = np.array([3.0, 4.0])
    ball = (np.vstack([np.zeros(2), np.eye(2)]), [1.0, 0.0, 0.0])
    result = solve_qp(np.eye(2), -point, cones=[ball])
    np.testing.assert_allclose(result.x, point / 5.0, atol=1e-7)
    np.testing.assert_allclose(result.objective + 12.5, 0.5 * 4.0**2, rtol=1e-7)
    # (0, y) with |y| = 1 is projected on the second-order cone at (1, y) / 2
    y = np.array([0.0, 0.6, 0.8])
    result = solve_qp(sp.eye(3), -y, cones=[(sp.eye(3), np.zeros(3))])
    np.testing.assert_allclose(result.x, [0.5, 0.3, 0.4], atol=1e-7)
    assert len(result.dual_cones) == 1


def test_only_the_upper_bound_where_the_lower_is_infinite():
    result = solve_qp(np.eye(3), [-1.0, -1.0, -1.0], upper=[0.5, np.inf, 2.0])
    np.testing.assert_allclose(result.x, [0.5, 1.0, 1.0], atol=1e-7)
    np.testing.assert_allclose(result.dual_upper, [0.5, 0.0, 0.0], atol=1e-6)
    np.testing.assert_array_equal(result.dual_lower, 0.0)


def test_no_constraints_at_all():
    result = solve_qp(2.0 * np.eye(2), [2.0, -4.0])
    np.testing.assert_allclose(result.x, [-1.0, 2.0], atol=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"P": None, "q": [1.0]}, "is unbounded below"),
        ({"P": np.eye(1), "q": [1.0], "lower": 1.0, "upper": 0.0}, "has no feasible point"),
    ],
)
def test_problems_without_solution(arguments, message):
    with pytest.raises(SolverError, match=message):
        solve_qp(**arguments)


def test_too_few_iterations_are_reported():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 10))
    result = solve_qp(np.eye(10), rng.normal(size=10), A, rng.random(30), max_iter=1)
    assert result.status is Status.MAX_ITER
    assert result.residual > 1e-8


class _Panic(BaseException):
    """How a panic of the compiled library looks from Python."""


@pytest.mark.parametrize("error", [_Panic("index out of bounds"), ValueError("bad")])
def test_failures_of_the_library_become_ours(monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(clarabel, "DefaultSolver", fail)
    with pytest.raises(SolverError, match=f"Clarabel failed.*2 variables: {error}"):
        solve_qp(np.eye(2), np.zeros(2))


def test_an_interrupt_stays_an_interrupt(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(clarabel, "DefaultSolver", interrupt)
    with pytest.raises(KeyboardInterrupt):
        solve_qp(np.eye(2), np.zeros(2))


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="P must be of shape \\(2, 2\\)"):
        solve_qp(np.eye(3), np.zeros(2))
    with pytest.raises(ValueError, match="A_ub must have one column for each of the 2 variables"):
        solve_qp(np.eye(2), np.zeros(2), np.ones((3, 3)), np.ones(3))
    with pytest.raises(ValueError, match=r"A_eq must have one column .* shape \(2"):
        solve_qp(np.eye(2), np.zeros(2), A_eq=np.ones((3, 2)), b_eq=np.ones(2))
