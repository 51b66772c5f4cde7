"""Duals of SVMs to be solved, what other solvers make of them, and what makes an optimum."""

from collections.abc import Callable
from typing import NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp

from bagwise.solvers import Status, solve_qp, solve_svm_dual


class Problem(NamedTuple):
    gram: np.ndarray
    sign: np.ndarray
    cost: np.ndarray
    target: np.ndarray


def rbf(X, gamma=0.5):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))


def problem(n=60, d=3, *, cost=1.0, target=1.0, kernel=rbf, shift=1.0, seed=0):
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    X = rng.normal(size=(n, d)) + shift * sign[:, None] / np.sqrt(d)
    return Problem(kernel(X), sign, np.full(n, cost), np.full(n, target))


def _duplicates():
    p = problem(n=40)
    rows = np.r_[np.arange(40), np.arange(30), np.arange(10)]
    return Problem(p.gram[np.ix_(rows, rows)], p.sign[rows], p.cost[rows], p.target[rows])


def _contradictions():
    p = problem(n=30)
    rows = np.r_[np.arange(30), np.arange(30)]
    sign = np.r_[p.sign, -p.sign]
    return Problem(p.gram[np.ix_(rows, rows)], sign, np.ones(60), np.ones(60))


def _one_positive():
    p = problem(n=40)
    sign = np.where(np.arange(40) == 17, 1.0, -1.0)
    return p._replace(sign=sign, cost=np.full(40, 10.0))


def _zero_rows():
    X = np.random.default_rng(3).normal(size=(40, 3))
    X[::2] = 0.0
    sign = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)
    return Problem(X @ X.T, sign, np.ones(40), np.ones(40))


def _row_costs():
    p = problem()
    rng = np.random.default_rng(4)
    return p._replace(cost=rng.exponential(size=60) * (rng.random(60) < 0.8))


def _targets():
    sizes = np.random.default_rng(5).integers(1, 9, size=60)
    p = problem(cost=5.0)
    return p._replace(target=np.where(p.sign > 0, 2.0 / sizes - 1.0, 1.0))  # as in sMIL


ZOO: dict[str, Callable[[], Problem]] = {
    "random": problem,
    "linear": lambda: problem(kernel=lambda X: X @ X.T),
    "wide": lambda: problem(kernel=lambda X: rbf(X, 0.01), cost=100.0),
    "narrow": lambda: problem(kernel=lambda X: rbf(X, 50.0)),
    "duplicates": _duplicates,
    "contradictions": _contradictions,
    "tiny cost": lambda: problem(cost=1e-6),
    "separable": lambda: problem(cost=1e6, shift=8.0, kernel=lambda X: X @ X.T),
    "hard rbf": lambda: problem(cost=1e4),
    "one positive": _one_positive,
    "zero rows": _zero_rows,
    "all zero": lambda: _zero_rows()._replace(gram=np.zeros((40, 40))),
    "row costs": _row_costs,
    "targets": _targets,
    "target 0": lambda: problem(target=0.0),
    "tiny kernel": lambda: problem(kernel=lambda X: 1e-9 * rbf(X), cost=1e8),
    "two rows": lambda: Problem(np.eye(2), np.array([1.0, -1.0]), np.ones(2), np.ones(2)),
}


def interior_point(p):
    """Return the dual value and ``gram @ beta`` from a general convex solver."""
    n = len(p.sign)
    unit = 1.0 / max(p.gram.diagonal().mean(), 1e-6)
    scale = min(p.cost.max(), unit)  # the unit of alpha, so that the solver sees numbers near 1
    Q = p.gram * np.multiply.outer(p.sign, p.sign) * scale
    A = sp.csc_matrix(np.vstack([p.sign, -np.eye(n), np.eye(n)]))
    b = np.r_[0.0, np.zeros(n), p.cost / scale]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
    quadratic = sp.csc_matrix(np.triu(Q))
    solution = clarabel.DefaultSolver(quadratic, -p.target, A, b, cones, settings).solve()
    assert str(solution.status) in ("Solved", "AlmostSolved")
    alpha = scale * np.array(solution.x)
    return -scale * solution.obj_val, p.gram @ (p.sign * alpha)


def squared_interior_point(p):
    """Return the dual value and ``gram @ beta`` for the squared hinge."""
    used = p.cost > 0  # the others take no part
    sign, ridge = p.sign[used], 0.5 / p.cost[used]
    scale = 1.0 / (p.gram.diagonal().mean() + ridge.min())
    Q = scale * (p.gram[np.ix_(used, used)] * np.multiply.outer(sign, sign) + np.diag(ridge))
    # Much closer to 0, clarabel gives up on some of the zoo with an objective 1 % off.
    solution = solve_qp(Q, -p.target[used], A_eq=sign[None], b_eq=[0.0], lower=0.0, tol=1e-9)
    assert solution.status is Status.CONVERGED
    return -scale * solution.objective, p.gram[:, used] @ (sign * scale * solution.x)


def assert_optimal(p, result, tol=1e-6, loss="hinge"):
    """Check the optimality conditions and the certificate from their definitions."""
    alpha, b = result.x, result.intercept
    squared = loss == "squared_hinge"
    ridge = np.divide(0.5, p.cost, out=np.zeros(len(alpha)), where=squared & (p.cost > 0))
    bound = np.where(p.cost > 0, np.inf, 0.0) if squared else p.cost
    assert result.status is Status.CONVERGED
    assert (alpha >= 0).all()
    assert (alpha <= bound).all()
    beta = p.sign * alpha
    f = p.gram.astype(float) @ beta
    unit = np.abs(beta).sum() * max(1.0, np.abs(p.gram).max())
    assert abs(beta.sum()) <= 1e-13 * np.abs(beta).sum()
    np.testing.assert_allclose(result.decision, f + b, atol=1e-13 * unit + 1e-13)
    margin = p.sign * (f + b) - p.target
    slope = margin + ridge * alpha
    assert (slope[alpha < bound] >= -tol).all()
    assert (slope[alpha > 0] <= tol).all()
    assert result.residual <= tol
    primal = 0.5 * beta @ f + p.cost @ np.maximum(-margin, 0) ** (2 if squared else 1)
    dual = p.target @ alpha - 0.5 * beta @ f - 0.5 * ridge @ alpha**2
    rounding = 1e-12 + 1e-15 * p.cost.sum()
    np.testing.assert_allclose(result.objective, primal, rtol=1e-9, atol=rounding)
    np.testing.assert_allclose(result.lower_bound, dual, rtol=1e-9, atol=rounding)
    assert result.gap >= -1e-13 * max(1.0, abs(primal))
    assert result.relative_gap <= 1e-6
    assert (np.diff(result.history) <= 1e-10 * max(1.0, abs(dual))).all()


def solve(p, **options):
    return solve_svm_dual(p.gram, p.sign, p.cost, target=p.target, **options)
