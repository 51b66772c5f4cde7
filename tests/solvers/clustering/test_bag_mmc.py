"""The convex problem inside maximum-margin clustering of bags."""

from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise.solvers import Status, solve_qp
from bagwise.solvers.clustering._bag_mmc import MarginProblem, descend, solve_bag_mmc
from bagwise.solvers.clustering._bag_mmc_kernels import limit_range
from bagwise.solvers.operators._feature_rows import FeatureRows


def draw(n=30, d=5, k=3, seed=0):
    """Return rows with a mean, one of them 0 and two of them equal, their clusters and a vector."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1.0
    X[3] = 0.0
    X[7] = X[8]
    return X, rng.integers(0, k, n), rng.normal(size=d) + 5.0


def primal(W, X, r, C):
    """Return the objective, as written in the documentation."""
    k = len(W)
    margin = k / (k - 1) * np.einsum("ij,ij->i", (W - W.mean(axis=0))[r], X)
    return 0.5 * (W**2).sum() + C / len(X) * np.maximum(0.0, 1.0 - margin).sum()


def by_clarabel(X, r, k, C, balance, m):
    """Solve with one slack for each row and one row for each ordered pair of clusters."""
    n, d = X.shape
    share = k / (k - 1) * (np.eye(k)[r] - 1.0 / k)
    A = np.hstack([-np.einsum("ip,if->ipf", share, X).reshape(n, k * d), -np.eye(n)])
    b = -np.ones(n)
    if np.isfinite(balance):
        pairs = [np.kron(np.eye(k)[p] - np.eye(k)[q], m) for p, q in permutations(range(k), 2)]
        A = np.vstack([A, np.hstack([pairs, np.zeros((len(pairs), n))])])
        b = np.append(b, np.full(len(pairs), balance))
    P = sp.block_diag([sp.eye(k * d), sp.csr_array((n, n))])
    q = np.append(np.zeros(k * d), np.full(n, C / n))
    lower = np.append(np.full(k * d, -np.inf), np.zeros(n))
    result = solve_qp(P, q, A, b, lower=lower, tol=1e-9)
    return result.objective, result.x[: k * d].reshape(k, d)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("C", [1 / 16, 1.0, 16.0])
@pytest.mark.parametrize("balance", [0.0, 0.001, 0.1, 2.0, np.inf])
def test_equals_clarabel(k, C, balance):
    X, r, m = draw(k=k, seed=k)
    value, W = by_clarabel(X, r, k, C, balance, m)
    result = solve_bag_mmc(X, r, k, C=C, balance=balance, direction=m, tol=1e-9, max_iter=100_000)
    assert result.converged
    assert result.objective == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(result.coef, W, atol=1e-5)


@pytest.mark.parametrize("balance", [0.0, 0.5, np.inf])
@pytest.mark.parametrize("k", [2, 4])
def test_certificate_is_true(balance, k):
    X, r, m = draw(n=80, d=7, k=k)
    C = 4.0
    result = solve_bag_mmc(X, r, k, C=C, balance=balance, direction=m)
    alpha, W, kappa = result.x, result.coef, k / (k - 1)
    assert ((alpha >= 0) & (alpha <= C / 80)).all()
    assert result.objective == pytest.approx(primal(W, X, r, C), rel=1e-12)
    assert np.ptp(W @ m) <= min(balance, 1e9) + 1e-12
    np.testing.assert_allclose(W.sum(axis=0), 0.0, atol=1e-12)
    sums = np.stack([alpha[r == p] @ X[r == p] for p in range(k)])
    mu = result.multiplier
    np.testing.assert_allclose(W, kappa * (sums - sums.mean(axis=0)) - np.outer(mu, m), atol=1e-12)
    assert mu.sum() == pytest.approx(0.0, abs=1e-12)
    cost = 0.5 * balance * np.abs(mu).sum() if np.isfinite(balance) else 0.0
    assert result.lower_bound == pytest.approx(alpha.sum() - 0.5 * (W**2).sum() - cost, rel=1e-10)
    assert 0 <= result.gap <= 1e-3 * result.objective
    assert result.residual == pytest.approx(result.gap / result.objective)
    np.testing.assert_allclose(result.margin, kappa * np.einsum("ij,ij->i", W[r], X), atol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_no_range_is_the_problem_without_the_direction(k):
    X, r, m = draw(n=60, k=k)
    explicit = X - np.outer(X @ m, m) / (m @ m)
    a = solve_bag_mmc(X, r, k, C=5.0, balance=0.0, direction=m, tol=1e-10, max_iter=20_000)
    b = solve_bag_mmc(explicit, r, k, C=5.0, tol=1e-10, max_iter=20_000)
    assert a.objective == pytest.approx(b.objective, rel=1e-8)
    np.testing.assert_allclose(a.coef, b.coef, atol=1e-6)
    np.testing.assert_allclose(a.coef @ m, 0.0, atol=1e-12)


def test_small_cost_has_a_closed_form():
    X, r, _ = draw(k=3)
    C, n = 1e-3, len(X)
    result = solve_bag_mmc(X, r, 3, C=C, tol=1e-12)
    np.testing.assert_allclose(result.x, C / n)
    sums = np.stack([X[r == p].sum(axis=0) for p in range(3)])
    np.testing.assert_allclose(result.coef, 1.5 * C / n * (sums - sums.mean(axis=0)), atol=1e-15)


@pytest.mark.parametrize("k", [2, 3])
def test_sparse_rows_and_row_numbers_make_no_difference(k):
    X, r, m = draw(n=50, k=k)
    X[np.abs(X) < 0.8] = 0.0
    expected = solve_bag_mmc(X, r, k, C=3.0, balance=0.3, direction=m)
    matrix = sp.csr_array(X)
    before = matrix.copy()
    found = solve_bag_mmc(matrix, r, k, C=3.0, balance=0.3, direction=m)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-9, atol=1e-12)
    assert (matrix != before).nnz == 0
    rows = np.random.default_rng(1).permutation(50)
    place = np.argsort(rows)
    for whole in (X[rows], sp.csr_array(X[rows])):
        found = solve_bag_mmc(whole, r, k, C=3.0, balance=0.3, direction=m, rows=place)
        np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-9, atol=1e-12)


def test_single_precision_read_only():
    X, r, m = draw(n=50)
    single = X.astype(np.float32)
    single.flags.writeable = False
    double = single.astype(np.float64)
    a, b = (solve_bag_mmc(x, r, 3, balance=1.0, direction=m) for x in (single, double))
    np.testing.assert_allclose(a.coef, b.coef, rtol=1e-6, atol=1e-9)
    assert a.coef.dtype == np.float64


def test_start_at_the_solution_ends_at_once():
    X, r, m = draw(n=100)
    first = solve_bag_mmc(X, r, 3, C=9.0, balance=0.5, direction=m, tol=1e-6, max_iter=5000)
    again = solve_bag_mmc(X, r, 3, C=9.0, balance=0.5, direction=m, alpha0=first.x, tol=1e-4)
    assert again.n_iter <= 2 < first.n_iter
    clipped = solve_bag_mmc(X, r, 3, C=1.0, alpha0=np.full(100, 99.0), tol=1e-8, max_iter=9999)
    plain = solve_bag_mmc(X, r, 3, C=1.0, tol=1e-8, max_iter=9999)
    assert clipped.objective == pytest.approx(plain.objective, rel=1e-6)


def test_a_bad_guess_of_margins_costs_little():
    """Margins that are far from true leave out most of the rows that have to move."""
    rng = np.random.default_rng(2)
    r = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + np.eye(3, 4)[r] + 10.0
    problem = MarginProblem.checked("a test", FeatureRows(X), r, 3, 3.0, np.inf, None)
    guess = np.append(np.full(20, 2.0), np.zeros(40))
    found = descend(problem, np.full(60, 0.05), tol=1e-3, max_iter=1000, margin0=guess)
    assert found.converged


def test_zero_rows_and_empty_clusters():
    result = solve_bag_mmc(np.zeros((4, 3)), [0, 1, 0, 1], 3, C=2.0, tol=1e-9)
    assert result.converged
    assert result.objective == pytest.approx(2.0)
    np.testing.assert_array_equal(result.coef, 0.0)
    np.testing.assert_allclose(result.x, 0.5)
    X, _, _ = draw()
    alone = solve_bag_mmc(X, np.zeros(len(X), int), 2, tol=1e-6)
    np.testing.assert_allclose(alone.coef[0], -alone.coef[1])


def test_rows_along_the_direction_get_nothing():
    m = np.array([3.0, 4.0])
    X = np.outer([1.0, 2.0, -1.0], m)
    result = solve_bag_mmc(X, [0, 1, 0], 2, C=1.0, balance=0.0, direction=m, tol=1e-9)
    assert result.objective == pytest.approx(1.0)
    np.testing.assert_allclose(result.coef, 0.0, atol=1e-12)


def test_huge_rows_are_solved():
    X, r, m = draw(n=60)
    for scale in (1e-6, 1e6):
        scaled = solve_bag_mmc(
            scale * X, r, 3, C=1.0 / scale**2, balance=0.5 / scale, direction=scale * m * scale,
            tol=1e-6, max_iter=10_000,
        )  # fmt: skip
        plain = solve_bag_mmc(
            X, r, 3, C=1.0, balance=0.5, direction=scale * m * scale, tol=1e-6, max_iter=10_000
        )
        assert scaled.converged
        assert scaled.objective * scale**2 == pytest.approx(plain.objective, rel=1e-5)


def test_sweeps_are_limited():
    X, r, m = draw(n=200, k=3)
    result = solve_bag_mmc(X, r, 3, C=1e4, balance=0.1, direction=m, tol=1e-12, max_iter=3)
    assert (result.n_iter, result.status) == (3, Status.MAX_ITER)
    assert result.lower_bound < result.objective


@pytest.mark.parametrize("seed", range(5))
def test_limit_range_is_the_projection(seed):
    rng = np.random.default_rng(seed)
    level = rng.normal(size=6)
    width = rng.uniform(0, 2)
    mu = np.empty(6)
    count = limit_range(level, width, mu)
    kept = level - mu
    assert np.ptp(kept) <= width + 1e-12
    assert mu.sum() == pytest.approx(0.0, abs=1e-12)
    assert count == np.count_nonzero(mu)
    pairs = np.array([np.eye(6)[p] - np.eye(6)[q] for p, q in permutations(range(6), 2)])
    found = solve_qp(np.eye(6), -level, pairs, np.full(30, width), tol=1e-9).x
    np.testing.assert_allclose(kept, found, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clusters": 1}, "n_clusters of solve_bag_mmc must be at least 2. Got 1"),
        ({"C": 0.0}, "C of solve_bag_mmc must be a positive number. Got 0.0"),
        ({"balance": -1.0}, "balance must be a number, not negative. Got -1.0"),
        ({"cluster": [0, 1, 2]}, "from 0 to 2 for each of 30 rows"),
        ({"cluster": np.full(30, 3)}, "from 0 to 2 for each of 30 rows"),
        ({"direction": [1.0]}, r"direction must have shape \(5,\). Got \(1,\)"),
        ({"alpha0": [1.0]}, r"alpha0 must have shape \(30,\)"),
        ({"tol": np.nan}, "tol of solve_bag_mmc must be a number"),
        ({"rows": [0, 99]}, "rows must lie between 0 and 29"),
        ({"instances": np.full((30, 5), np.nan)}, "finite numbers only"),
        ({"instances": np.empty((0, 5)), "cluster": []}, "at least one row"),
    ],
)
def test_bad_input_is_refused(change, message):
    X, r, m = draw()
    given = {"instances": X, "cluster": r, "n_clusters": 3, "direction": m, **change}
    with pytest.raises(ValueError, match=message):
        solve_bag_mmc(**given)
