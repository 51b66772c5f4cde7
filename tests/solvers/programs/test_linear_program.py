"""Linear programmes against closed forms, an interior-point method and their own certificate."""

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise.exceptions import SolverError
from bagwise.solvers import Status, solve_linear_program, solve_qp


def _random(seed, m=15, n=25):
    """Return a feasible, bounded problem: feasible at a known point, dual feasible at another."""
    rng = np.random.default_rng(seed)
    A_ub, A_eq = rng.normal(size=(m, n)), rng.normal(size=(4, n))
    x, y, z = rng.exponential(size=n), rng.exponential(size=m), rng.normal(size=4)
    c = -A_ub.T @ y - A_eq.T @ z + rng.exponential(size=n) * (rng.random(n) < 0.6)
    return {
        "c": c,
        "A_ub": A_ub,
        "b_ub": A_ub @ x + rng.exponential(size=m) * (rng.random(m) < 0.5),
        "A_eq": A_eq,
        "b_eq": A_eq @ x,
    }


def _assert_certified(p, r, tol=1e-7):
    assert r.status is Status.CONVERGED
    assert (p["A_ub"] @ r.x - p["b_ub"]).max() <= tol
    np.testing.assert_allclose(p["A_eq"] @ r.x, p["b_eq"], atol=tol)
    assert r.x.min() >= -tol
    assert r.dual_ub.min() >= 0.0
    reduced = p["c"] + p["A_ub"].T @ r.dual_ub + p["A_eq"].T @ r.dual_eq
    np.testing.assert_allclose(r.reduced_cost, reduced, atol=tol)
    assert reduced.min() >= -tol
    assert abs(r.x @ reduced) <= tol * max(1.0, abs(r.objective))
    assert abs(r.dual_ub @ (p["A_ub"] @ r.x - p["b_ub"])) <= tol * max(1.0, abs(r.objective))
    np.testing.assert_allclose(r.objective, p["c"] @ r.x)
    assert abs(r.gap) <= tol * max(1.0, abs(r.objective))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("method", ["highs", "highs-ds", "highs-ipm"])
def test_agrees_with_interior_point(seed, method):
    p = _random(seed)
    result = solve_linear_program(**p, method=method)
    _assert_certified(p, result)
    oracle = solve_qp(None, p["c"], p["A_ub"], p["b_ub"], p["A_eq"], p["b_eq"], lower=0.0)
    np.testing.assert_allclose(result.objective, oracle.objective, rtol=1e-6)


def test_sparse_equals_dense():
    p = _random(7)
    sparse = dict(p, A_ub=sp.csr_array(p["A_ub"]), A_eq=sp.coo_matrix(p["A_eq"]))
    one, other = solve_linear_program(**p), solve_linear_program(**sparse)
    np.testing.assert_allclose(one.objective, other.objective)
    _assert_certified(p, other)


def test_bounds():
    result = solve_linear_program([1.0, -2.0, 0.5], lower=[-1, -2, 3], upper=[4, 5, np.inf])
    np.testing.assert_array_equal(result.x, [-1.0, 5.0, 3.0])
    np.testing.assert_array_equal(result.reduced_cost, [1.0, -2.0, 0.5])
    assert result.objective == result.lower_bound == -9.5


def test_free_variables_by_duality():
    """The least absolute deviation from 1, 2, 10 is the distance to the median."""
    A = [
        [-1, -1, 0, 0],
        [1, -1, 0, 0],
        [-1, 0, -1, 0],
        [1, 0, -1, 0],
        [-1, 0, 0, -1],
        [1, 0, 0, -1],
    ]
    b = [-1, 1, -2, 2, -10, 10]
    result = solve_linear_program([0, 1, 1, 1], A, b, lower=[-np.inf, 0, 0, 0])
    assert result.objective == pytest.approx(9.0)
    assert result.x[0] == pytest.approx(2.0)
    assert result.lower_bound == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"c": [1.0], "A_ub": [[1.0]], "b_ub": [-1.0]}, "has no feasible point"),
        ({"c": [-1.0]}, "is unbounded below"),
        ({"c": [-1.0, 0.0], "A_ub": [[0.0, 1.0]], "b_ub": [1.0]}, "is unbounded below"),
    ],
)
def test_problems_without_solution(arguments, message):
    with pytest.raises(SolverError, match=message):
        solve_linear_program(**arguments)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="A_ub must have one column for each of the 2 variables"):
        solve_linear_program([1.0, 1.0], np.ones((3, 3)), np.ones(3))
    with pytest.raises(ValueError, match=r"A_eq must have one column .* shape \(2"):
        solve_linear_program([1.0, 1.0], A_eq=np.ones((3, 2)), b_eq=np.ones(2))
