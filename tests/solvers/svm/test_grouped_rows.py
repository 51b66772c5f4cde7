"""Linear machines with shared slacks: the whole problem, though only some rows are looked at."""

import numpy as np
import pytest
from scipy import sparse

from bagwise.solvers import (
    FeatureRows,
    solve_grouped_svm,
    solve_linear_svm,
    solve_qp,
)
from solvers.blocks import BlockRows


def problem(seed, n=60, d=4, n_groups=12):
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.arange(n_groups), rng.integers(n_groups, size=n - n_groups)])
    sign = np.where(rng.random(n_groups) < 0.4, 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    cap = rng.uniform(0.1, 3.0, n_groups)
    X = rng.normal(size=(n, d)) + 0.8 * sign[group][:, None]
    target = rng.uniform(0.2, 1.5, n)
    return X, sign[group], group, cap, target


def by_interior_points(X, sign, group, cap, target, intercept_mask=None):
    """Solve the primal with one slack per group as it stands: variables w, b, slacks."""
    d = X.shape[1]
    intercept_mask = np.ones(len(X)) if intercept_mask is None else intercept_mask
    k = len(cap)
    quadratic = sparse.diags_array(np.concatenate([np.ones(d), np.zeros(1 + k)]))
    rows = np.hstack([-sign[:, None] * X, -(sign * intercept_mask)[:, None], -np.eye(k)[group]])
    lower = np.concatenate([np.full(d + 1, -np.inf), np.zeros(k)])
    cost = np.concatenate([np.zeros(d + 1), cap])
    return solve_qp(quadratic, cost, rows, -target, lower=lower, tol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_equals_the_primal_with_one_slack_per_group(seed):
    data = problem(seed)
    result = solve_grouped_svm(FeatureRows(data[0]), *data[1:4], target=data[4], tol=1e-8)
    expected = by_interior_points(*data)
    assert result.converged
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)
    assert 0 <= result.gap + 1e-9 < 1e-5 * max(1.0, result.objective)
    np.testing.assert_allclose(result.coef, expected.x[: data[0].shape[1]], atol=1e-4)
    np.testing.assert_allclose(result.decision, data[0] @ result.coef + result.intercept)


def test_groups_of_one_are_an_ordinary_machine():
    X, sign, _, _, target = problem(3)
    cost = np.random.default_rng(0).uniform(0.1, 2.0, len(sign))
    result = solve_grouped_svm(
        FeatureRows(X), sign, np.arange(len(sign)), cost, target=target, tol=1e-9
    )
    expected = solve_linear_svm(X, sign, cost, target=target, tol=1e-9)
    assert result.objective == pytest.approx(expected.objective, rel=1e-8)
    np.testing.assert_allclose(result.coef, expected.coef, atol=1e-6)


def test_rows_of_a_larger_sparse_matrix_and_a_start():
    X, sign, group, cap, target = problem(4)
    plain = solve_grouped_svm(FeatureRows(X), sign, group, cap, target=target, tol=1e-9)
    order = np.random.default_rng(1).permutation(len(X))
    larger = sparse.csr_array(np.vstack([X[order], np.full((3, X.shape[1]), 99.0)]))
    rows = np.argsort(order)
    again = solve_grouped_svm(
        FeatureRows(larger, rows), sign, group, cap, target=target, alpha0=plain.x, tol=1e-9
    )
    assert again.objective == pytest.approx(plain.objective, rel=1e-8)
    assert again.n_iter <= plain.n_iter
    np.testing.assert_allclose(again.coef, plain.coef, atol=1e-6)


def test_a_group_of_cost_zero_takes_no_part():
    X, sign, group, cap, target = problem(5)
    cap = np.where(np.arange(len(cap)) == 5, 0.0, cap)
    result = solve_grouped_svm(FeatureRows(X), sign, group, cap, target=target, tol=1e-9)
    kept = group != 5
    expected = by_interior_points(X[kept], sign[kept], group[kept], cap, target[kept])
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_rows_need_not_feel_the_intercept(seed):
    """In groups without it, rows may have both signs and ask for nothing at w = 0."""
    X, sign, group, cap, target = problem(seed)
    intercept_mask = group < 8
    rng = np.random.default_rng(seed)
    sign = np.where(intercept_mask, sign, rng.choice([-1.0, 1.0], len(sign)))
    target = np.where(intercept_mask | (group == 8), target, -0.1 * (group % 2))
    settings = {"target": target, "intercept": intercept_mask, "tol": 1e-8}
    result = solve_grouped_svm(FeatureRows(X), sign, group, cap, **settings)
    expected = by_interior_points(X, sign, group, cap, target, intercept_mask)
    assert result.converged
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)
    assert 0 <= result.gap + 1e-9 < 1e-5 * max(1.0, result.objective)
    np.testing.assert_allclose(result.coef, expected.x[: X.shape[1]], atol=1e-4)
    np.testing.assert_allclose(result.decision, X @ result.coef + result.intercept * intercept_mask)
    blocks = solve_grouped_svm(BlockRows(X @ X.T), sign, group, cap, **settings)
    assert blocks.objective == pytest.approx(result.objective, rel=1e-7)


def test_rows_that_ask_for_nothing_have_nothing_to_say():
    X, sign, group, cap, _ = problem(0)
    result = solve_grouped_svm(
        FeatureRows(X), sign, group, cap, target=-1.0, intercept=np.zeros(len(X)), tol=1e-8
    )
    assert result.converged
    assert result.objective == 0.0
    assert not result.coef.any()


def test_a_large_group_does_not_take_a_round_for_each_row():
    """A convex curve: the more of its points are rows, the closer it is followed."""
    angle = np.linspace(0.0, np.pi, 400)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.vstack([X, [[0.0, 3.0]]])
    sign = np.append(np.full(400, -1.0), 1.0)
    group = np.append(np.zeros(400, int), 1)
    result = solve_grouped_svm(FeatureRows(X), sign, group, [50.0, 50.0], tol=1e-9)
    expected = by_interior_points(X, sign, group, np.array([50.0, 50.0]), np.ones(401))
    assert result.converged
    assert result.n_iter < 12
    assert result.objective == pytest.approx(expected.objective, rel=1e-7)


def test_only_so_many_rounds():
    X, sign, group, cap, target = problem(1)
    result = solve_grouped_svm(FeatureRows(X), sign, group, cap, target=target, max_iter=1)
    assert not result.converged
    assert result.n_iter == 1


@pytest.mark.parametrize("seed", range(3))
def test_blocks_of_a_gram_matrix_serve_as_well(seed):
    data = problem(seed)
    result = solve_grouped_svm(BlockRows(data[0] @ data[0].T), *data[1:4], target=data[4], tol=1e-8)
    expected = solve_grouped_svm(FeatureRows(data[0]), *data[1:4], target=data[4], tol=1e-8)
    assert result.objective == pytest.approx(expected.objective, rel=1e-7)
    np.testing.assert_allclose(result.decision, expected.decision, atol=1e-5)


class CountedRows(BlockRows):
    """Rows that count how often each inner product was asked for in a block."""

    def __init__(self, gram):
        super().__init__(gram)
        self.counts = np.zeros(self.gram.shape, int)

    def block(self, rows, columns=None, out=None):
        self.counts[np.ix_(rows, np.arange(self.n) if columns is None else columns)] += 1
        return super().block(rows, columns, out)

    def products(self, rows, coef, columns=None):
        products = coef @ self.gram[rows]
        return products if columns is None else products[columns]


def test_inner_products_are_computed_when_a_row_joins():
    X, sign, group, cap, target = problem(1, n=200)
    rows = CountedRows(X @ X.T)
    result = solve_grouped_svm(rows, sign, group, cap, target=target, tol=1e-8)
    assert result.converged
    assert result.n_iter > 2
    assert rows.counts.max() == 1
