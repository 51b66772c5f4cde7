"""Finite Newton against an interior-point method, liblinear, finite differences, closed forms."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

import bagwise.solvers.svm._primal_newton as primal_newton
from bagwise.solvers import Status, minimize_squared_hinge, solve_qp
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.svm._primal_newton import NewtonModel
from bagwise.solvers.svm._primal_newton_kernels import free_terms


def _data(n=80, d=5, *, shift=1.0, seed=0):
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return rng.normal(size=(n, d)) + shift * sign[:, None] / np.sqrt(d), sign


def _objective(A, sign, cost, w, b, *, target=1.0, R=None):
    slack = np.maximum(target - sign * (A @ w + b), 0.0)
    quad = w @ w if R is None else w @ R @ w
    return 0.5 * quad + (cost * slack**2).sum()


def _oracle(A, sign, cost, *, target=1.0, R=None, fit_intercept=True):
    """Solve for ``(w, b, slack)`` as a quadratic programme."""
    n, d = A.shape
    cost, target = np.broadcast_to(cost, n), np.broadcast_to(target, n)
    P = sp.block_diag([np.eye(d) if R is None else R, np.zeros((1, 1)), np.diag(2.0 * cost)])
    rows = np.hstack([-sign[:, None] * A, -sign[:, None], -np.eye(n)])
    free = np.inf if fit_intercept else 0.0
    lower = np.concatenate([np.full(d, -np.inf), [-free], np.zeros(n)])
    upper = np.concatenate([np.full(d, np.inf), [free], np.full(n, np.inf)])
    keep = lower < upper
    q = np.zeros(keep.sum())
    solution = solve_qp(
        sp.csc_array(P)[keep][:, keep], q, rows[:, keep], -target, lower=lower[keep], tol=1e-9
    )
    return solution.objective, solution.x[:d]


def _metric(d, seed=1):
    root = np.random.default_rng(seed).normal(size=(d, d))
    return root @ root.T / d + 0.01 * np.eye(d)


def _duplicates():
    A, sign = _data(n=30)
    return np.vstack([A, A, A[:7]]), np.concatenate([sign, sign, sign[:7]])


def _contradictions():
    A, sign = _data(n=30)
    return np.vstack([A, A]), np.concatenate([sign, -sign])


def _zero_rows():
    A, sign = _data(n=40)
    A[::2] = 0.0
    return A, sign


def _one_positive():
    A, _ = _data(n=40)
    return A, np.where(np.arange(40) == 11, 1.0, -1.0)


ZOO = {
    "tall": _data,
    "wide": lambda: _data(n=30, d=100),
    "separable": lambda: _data(shift=10.0),
    "duplicates": _duplicates,
    "contradictions": _contradictions,
    "zero rows": _zero_rows,
    "all zero": lambda: (np.zeros((20, 3)), np.where(np.arange(20) < 7, 1.0, -1.0)),
    "one positive": _one_positive,
    "one column": lambda: _data(d=1),
}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("cost", [1e-5, 1.0, 1e4])
@pytest.mark.parametrize("name", ZOO)
def test_conditions_and_gap(name, cost, fit_intercept):
    A, sign = ZOO[name]()
    r = minimize_squared_hinge(A, sign, cost, fit_intercept=fit_intercept)
    assert r.status is Status.CONVERGED
    np.testing.assert_allclose(r.decision, A @ r.x + r.intercept, atol=1e-10)
    np.testing.assert_allclose(r.objective, _objective(A, sign, cost, r.x, r.intercept), rtol=1e-10)
    alpha = 2.0 * cost * np.maximum(1.0 - sign * r.decision, 0.0)
    np.testing.assert_allclose(r.dual, alpha, atol=1e-12 * max(1.0, cost))
    size = max(1.0, 2.0 * cost * len(sign))
    np.testing.assert_allclose(r.x, A.T @ (sign * alpha), atol=1e-8 * size)
    assert abs(sign @ alpha) <= 1e-8 * size or not fit_intercept
    assert fit_intercept or r.intercept == 0.0
    assert -1e-12 * size <= r.gap <= 1e-7 * max(1.0, r.objective)
    assert (np.diff(r.history) <= 1e-12 * max(1.0, r.history[0])).all()


@pytest.mark.parametrize("metric", [False, True])
@pytest.mark.parametrize("cost", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("name", ["tall", "wide", "duplicates", "one positive", "zero rows"])
def test_agrees_with_interior_point(name, cost, metric):
    A, sign = ZOO[name]()
    rng = np.random.default_rng(3)
    costs = cost * rng.exponential(size=len(sign)) * (rng.random(len(sign)) < 0.9)
    target = rng.normal(size=len(sign)) + 1.0
    R = _metric(A.shape[1]) if metric else None
    result = minimize_squared_hinge(A, sign, costs, target=target, quadratic=R)
    value, w = _oracle(A, sign, costs, target=target, R=R)
    np.testing.assert_allclose(result.objective, value, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(result.lower_bound, value, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(result.x, w, atol=1e-3 * max(1.0, np.abs(w).max()))


def test_agrees_with_liblinear():
    A, sign = _data(n=200)
    model = LinearSVC(C=3.0, loss="squared_hinge", fit_intercept=False, tol=1e-10, dual=False)
    expected = model.fit(A, sign).coef_[0]
    result = minimize_squared_hinge(A, sign, 3.0, fit_intercept=False)
    np.testing.assert_allclose(result.x, expected, atol=1e-6)


def test_two_points_in_closed_form():
    """By symmetry b = 0, and w minimises w^2 / 2 + 2 c (1 - w)^2."""
    result = minimize_squared_hinge([[1.0], [-1.0]], [1, -1], 3.0)
    assert result.x[0] == pytest.approx(12.0 / 13.0)
    assert result.intercept == pytest.approx(0.0, abs=1e-14)


def test_gradient_by_finite_differences():
    A, sign = _data(n=50, d=4)
    rng = np.random.default_rng(5)
    R, pull = _metric(4), rng.normal(size=4)
    base, slope, cap = rng.random(50), rng.exponential(size=50), 1.0 + rng.random(50)

    def model(point):
        out = NewtonModel(
            FeatureRows(A), sign, np.ones(50), base=base, slope=slope, cap=cap, quadratic=R,
            w=point[:4], b=float(point[4]), intercept_penalty=0.7, pull=pull, intercept_pull=0.3,
        )  # fmt: skip
        out.evaluate()
        return out

    point, step = rng.normal(size=5), 1e-6
    m = model(point)
    slopes = [
        (model(point + step * e).history[-1] - model(point - step * e).history[-1]) / (2 * step)
        for e in np.eye(5)
    ]
    np.testing.assert_allclose([*m.gradient, m.gradient_b], slopes, rtol=1e-5, atol=1e-6)


def test_solution_is_a_minimum_by_finite_differences():
    A, sign = _data()
    R = _metric(5)
    r = minimize_squared_hinge(A, sign, 2.0, quadratic=R)
    rng = np.random.default_rng(0)
    for _ in range(20):
        e = 1e-4 * rng.normal(size=6)
        assert _objective(A, sign, 2.0, r.x + e[:5], r.intercept + e[5], R=R) >= r.objective


def test_a_ceiling_is_one_more_row():
    """The loss of optimal margin distribution machines, written as a quadratic programme."""
    A, sign = _data(n=60)
    rows = np.r_[np.arange(60), np.arange(60)]
    signs, target = np.r_[sign, -sign], np.r_[np.full(60, 0.8), np.full(60, -1.2)]
    cost = np.r_[np.full(60, 2.0), np.full(60, 1.0)]
    result = minimize_squared_hinge(A, signs, cost, target=target, rows=rows)
    margin = sign * (A @ result.x + result.intercept)
    value = 0.5 * result.x @ result.x + 2.0 * (np.maximum(0.8 - margin, 0) ** 2).sum()
    value += (np.maximum(margin - 1.2, 0) ** 2).sum()
    np.testing.assert_allclose(result.objective, value)
    expected, _ = _oracle(A[rows], signs, cost, target=target)
    np.testing.assert_allclose(value, expected, rtol=1e-7)


@pytest.mark.parametrize("name", ["tall", "wide", "separable", "duplicates"])
def test_warm_start_ends_where_cold_start_does(name):
    A, sign = ZOO[name]()
    cold = minimize_squared_hinge(A, sign, 1.0)
    rng = np.random.default_rng(0)
    far = minimize_squared_hinge(A, sign, 1.0, w0=10 * rng.normal(size=A.shape[1]), intercept0=3.0)
    np.testing.assert_allclose(far.decision, cold.decision, atol=1e-8)
    again = minimize_squared_hinge(A, sign, 1.0, w0=cold.x, intercept0=cold.intercept)
    assert again.n_iter == 0


def test_layouts_and_precisions(tmp_path):
    A, sign = _data(n=60, d=6)
    A = A.astype(np.float32).astype(np.float64)
    A[A < 0.3] = 0.0
    expected = minimize_squared_hinge(A, sign, 1.0)
    np.save(tmp_path / "a.npy", A.astype(np.float32))
    order = np.random.default_rng(0).permutation(60)
    padded = np.vstack([np.full((5, 6), 9.0), A[order]])
    variants = {
        "float32": (A.astype(np.float32), {}),
        "memmap": (np.load(tmp_path / "a.npy", mmap_mode="r"), {}),
        "fortran": (np.asfortranarray(A), {}),
        "strided": (np.repeat(A, 2, axis=0)[::2], {}),
        "csr": (sp.csr_matrix(A), {}),
        "csr float32": (sp.csr_array(A.astype(np.float32)), {}),
        "csc": (sp.csc_array(A), {}),
        "rows": (padded, {"rows": 5 + np.argsort(order)}),
        "csr rows": (sp.csr_array(padded), {"rows": 5 + np.argsort(order)}),
    }
    for name, (matrix, options) in variants.items():
        result = minimize_squared_hinge(matrix, sign, 1.0, **options)
        np.testing.assert_allclose(result.x, expected.x, atol=1e-9, err_msg=name)


def test_csr_with_a_column_twice():
    twice = sp.csr_matrix(([1.0, 2.0, -3.0], [0, 0, 0], [0, 2, 3]), shape=(2, 1))
    result = minimize_squared_hinge(twice, [1, -1], 1.0)
    expected = minimize_squared_hinge([[3.0], [-3.0]], [1, -1], 1.0)
    np.testing.assert_allclose(result.x, expected.x)
    assert twice.nnz == 3


@pytest.mark.parametrize("sparse", [False, True])
def test_large_systems_go_by_conjugate_gradients(monkeypatch, sparse):
    A, sign = _data(n=200, d=120)
    expected = minimize_squared_hinge(A, sign, 1.0)
    monkeypatch.setattr(primal_newton, "_LARGEST_SYSTEM", 10)
    result = minimize_squared_hinge(sp.csr_array(A) if sparse else A, sign, 1.0, tol=1e-8)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.decision, expected.decision, atol=1e-5)


def test_singular_quadratic_form():
    A, sign = _data(n=60, d=4)
    R = np.diag([1.0, 1.0, 0.0, 0.0])
    result = minimize_squared_hinge(A, sign, 1.0, quadratic=R)
    value, _ = _oracle(A, sign, 1.0, R=R)
    np.testing.assert_allclose(result.objective, value, rtol=1e-7)
    assert result.lower_bound == -np.inf or result.gap <= 1e-8


def test_budget_is_reported():
    A, sign = _data(n=200)
    result = minimize_squared_hinge(A, sign, 100.0, max_iter=1)
    assert (result.status, result.n_iter) == (Status.MAX_ITER, 1)
    assert result.residual > 1e-9
    assert result.gap > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sign": [0.0, 1.0, 1.0]}, "sign must hold -1 and \\+1"),
        ({"sign": [1.0, 1.0]}, "sign must have shape \\(3,\\). Got \\(2,\\)"),
        ({"cost": [1.0, -1.0, 1.0]}, "cost must not be negative. Got -1.0 in row 1"),
        ({"cost": np.nan}, "cost must hold finite"),
        ({"target": [1.0, np.inf, 1.0]}, "target must hold finite"),
        ({"w0": [1.0]}, "w0 must have shape \\(2,\\)"),
        ({"quadratic": np.eye(3)}, "quadratic must have shape \\(2, 2\\)"),
        ({"quadratic": np.full((2, 2), np.nan)}, "quadratic must hold finite"),
        ({"A": np.ones(3)}, "must be a matrix"),
        ({"A": np.full((3, 2), np.nan)}, "instances must hold finite"),
        ({"rows": [0, 1, 3]}, "rows must lie between 0 and 2. Got 0 to 3"),
        ({"rows": [0.0, 1.0, 2.0]}, "rows must be a vector of row numbers"),
    ],
)
def test_errors_say_what_is_wrong(changes, message):
    A = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]])
    arguments = {"A": A, "sign": [1, -1, 1], "cost": 1.0} | changes
    with pytest.raises(ValueError, match=message):
        minimize_squared_hinge(**arguments)


# ------------------------------------------------------------------------------ the steps alone


@pytest.mark.parametrize("rho", [None, 0.0, 0.7])
def test_every_way_to_a_newton_step_solves_the_same_system(rho):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(12, 30)), rng.uniform(0.5, 2.0, 12)
    rows = FeatureRows(X)
    model = NewtonModel(
        rows, np.where(np.arange(12) % 3, 1.0, -1.0), np.ones(12),
        base=np.zeros(12), slope=np.ones(12), cap=np.full(12, np.inf),
        intercept_penalty=rho, w=rng.normal(size=30), b=0.3 if rho is not None else 0.0,
    )  # fmt: skip
    model.evaluate()
    gradient = np.append(model.gradient, model.gradient_b)
    bordered = np.column_stack([X, np.full(12, float(rho is not None))])
    hessian = np.diag(np.append(np.ones(30), 1.0 if rho is None else rho))
    hessian += bordered.T @ (weight[:, None] * bordered)
    expected = np.linalg.solve(hessian, -gradient)
    for step in (
        model._primal_direction(rows.curvature(weight)),
        model._dual_direction(rows, weight),
    ):
        np.testing.assert_allclose(step, expected, rtol=1e-8, atol=1e-10)
    rough = hessian @ model._conjugate_direction(rows, weight) + gradient
    assert np.abs(rough).max() <= 1.01e-3 * np.abs(gradient).max()


@pytest.mark.parametrize("blur", [0.0, 0.5])
def test_terms_beyond_their_kinks_bend_less_the_farther_they_are(blur):
    answer = np.array([-2.0, -0.6, -0.2, 0.0, 0.5, 1.0, 1.3, 1.7, 9.0])  # bounds are 0 and 1
    n, slope = len(answer), 2.0
    free, weight = np.empty(n, np.int64), np.empty(n)
    count = free_terms(
        np.ones(n), answer / slope, np.zeros(n), 0.0, np.zeros(n), np.full(n, slope), np.ones(n),
        4.0, blur, free, weight,
    )  # fmt: skip
    beyond = np.maximum(0.0, np.maximum(-answer, answer - 1.0))
    inside = (answer > 0.0) & (answer < 1.0) | (beyond < blur)
    assert free[:count].tolist() == np.flatnonzero(inside).tolist()
    np.testing.assert_allclose(weight[:count], slope / (1.0 + 2.0 * beyond[inside]))
