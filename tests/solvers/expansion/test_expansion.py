"""Expansions in few vectors: values and derivatives against slow formulas, optima, both modes."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import bagwise.solvers.expansion._kernel_means as blocks
from bagwise import Bags
from bagwise.bags import StoreWriter, _matrix
from bagwise.exceptions import MemoryLimitError
from bagwise.kernels import InstanceKernel
from bagwise.solvers import (
    KernelMeans,
    Status,
    minimize_expansion,
    minimize_squared_hinge,
    solve_expansion,
    solve_qp,
)
from bagwise.solvers.expansion._classifiers import SquaredHinges
from bagwise.solvers.expansion._expansion import _Objective

KERNELS = [
    InstanceKernel("rbf", gamma=0.2),
    InstanceKernel("poly", gamma=0.3, degree=3, coef0=1.0),
    InstanceKernel("poly", gamma=0.3, degree=1, coef0=1.0),
    InstanceKernel("linear"),
    InstanceKernel("cosine"),
]
IDS = [f"{kernel.name}-{kernel.degree}" for kernel in KERNELS]


def _bags(n=12, d=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, size=n)
    X = rng.normal(size=(sizes.sum(), d)).astype(dtype)
    return Bags(X, np.concatenate([[0], np.cumsum(sizes)]))


def _problem(n_outputs=2, m=4, seed=0, **layout):
    bags = _bags(seed=seed, **layout)
    rng = np.random.default_rng(seed + 1)
    sign = np.where(rng.random((len(bags), n_outputs)) < 0.5, 1.0, -1.0)
    sign[0], sign[1] = 1.0, -1.0
    cost = rng.uniform(0.5, 2.0, size=sign.shape)
    return bags, rng.normal(size=(m, bags.n_features)), sign, cost


def _slow_means(kernel, bags, Z):
    K = kernel.gram(np.asarray(bags.instances, np.float64), Z)
    return np.array([K[a:b].mean(axis=0) for a, b in pairwise(bags.offsets)])


def _slow_value(kernel, bags, Z, sign, cost):
    """Return the optimal value by general quadratic programming, slacks as variables."""
    A, total = _slow_means(kernel, bags, Z), 0.0
    n, m = A.shape
    K = kernel.gram(Z) + 1e-8 * kernel.diagonal(Z).mean() * np.eye(m)
    for y, c in zip(sign.T, cost.T, strict=True):
        P = np.zeros((m + 1 + n, m + 1 + n))
        P[:m, :m] = K
        P[m + 1 :, m + 1 :] = np.diag(2.0 * c)
        G = np.hstack([-y[:, None] * A, -y[:, None], -np.eye(n)])
        lower = np.concatenate([np.full(m + 1, -np.inf), np.zeros(n)])
        total += solve_qp(P, np.zeros(m + 1 + n), G, -np.ones(n), lower=lower, tol=1e-10).objective
    return total


@pytest.fixture
def small_pieces(monkeypatch):
    """Make chunks of a few bags, and pieces that end in the middle of a bag."""
    monkeypatch.setattr(blocks, "_LEAST_ROWS", 3)
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 1)
    monkeypatch.setattr(_matrix, "_CHUNK_BYTES", 200)


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("limit", [None, 1])
def test_means_and_their_gradient(small_pieces, kernel, form, limit):
    bags = _bags()
    given = Bags(form(bags.instances), bags.offsets)
    rng = np.random.default_rng(1)
    Z, V = rng.normal(size=(4, 3)), rng.normal(size=(len(bags), 4))
    source = KernelMeans(given, kernel, 4, max_memory=limit)
    assert source.keeps == (limit is None)
    np.testing.assert_allclose(source.means(Z), _slow_means(kernel, bags, Z), rtol=1e-12)
    expected = np.zeros_like(Z)
    for index in np.ndindex(*Z.shape):
        ends = []
        for step in (1e-5, -1e-5):
            moved = Z.copy()
            moved[index] += step
            ends.append((V * _slow_means(kernel, bags, moved)).sum())
        expected[index] = (ends[0] - ends[1]) / 2e-5
    for _ in range(2):  # the second time the kernel is no longer there
        np.testing.assert_allclose(source.gradient(Z, V), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
def test_value_is_that_of_a_quadratic_program(kernel):
    bags, Z, sign, cost = _problem()
    result = solve_expansion(KernelMeans(bags, kernel, len(Z)), Z, sign, cost)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(_slow_value(kernel, bags, Z, sign, cost), rel=1e-6)
    A = _slow_means(kernel, bags, Z)
    np.testing.assert_allclose(result.decision, A @ result.coef.T + result.intercept, atol=1e-8)


def test_many_newton_steps_end_at_the_minimum_of_another_solver():
    rng = np.random.default_rng(0)
    X = rng.standard_t(1.5, size=(300, 5))
    bags = Bags(X, np.arange(301))
    sign = np.where(rng.random((300, 1)) < 0.2, 1.0, -1.0)
    cost = np.exp(rng.normal(size=(300, 1), scale=4.0))
    kernel = InstanceKernel("rbf", gamma=0.1)
    Z = X[:40]
    result = solve_expansion(KernelMeans(bags, kernel, 40), Z, sign, cost)
    expected = minimize_squared_hinge(
        kernel.gram(X, Z), sign[:, 0], cost[:, 0], quadratic=kernel.gram(Z) + 1e-8 * np.eye(40)
    )
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(expected.objective, rel=1e-8)
    short = solve_expansion(KernelMeans(bags, kernel, 40), Z, sign, cost, max_iter=2)
    assert short.status is Status.MAX_ITER
    assert short.objective > result.objective


@pytest.mark.parametrize("seed", range(3))
def test_a_short_step_is_no_proof_of_the_minimum(seed):
    """With a huge cost some Newton steps are cut to next to nothing, far from the minimum."""
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random((60, 1)) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(60, 3))
    X[:, 0] += 2.0 * sign[:, 0]
    kernel, cost, Z = InstanceKernel("rbf", gamma=0.3), np.full((60, 1), 1e10), X[:30]
    source = KernelMeans(Bags(X, np.arange(61)), kernel, 30)
    result = solve_expansion(source, Z, sign, cost)
    expected = minimize_squared_hinge(
        kernel.gram(X, Z), sign[:, 0], cost[:, 0], quadratic=kernel.gram(Z) + 1e-8 * np.eye(30)
    )
    assert result.objective == pytest.approx(expected.objective, rel=1e-3)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("solve", [minimize_expansion, solve_expansion])
def test_a_kernel_without_finite_values_is_refused(solve):
    bags, Z, sign, cost = _problem()
    large = Bags(1e60 * bags.instances, bags.offsets)
    source = KernelMeans(large, InstanceKernel("poly", degree=9), len(Z))
    with pytest.raises(ValueError, match=r"kernel 'poly' between instances .* must be finite"):
        solve(source, 1e60 * Z, sign, cost)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("optimizer", ["lbfgs", "gradient"])
def test_steps_to_where_the_kernel_overflows_are_cut(optimizer):
    bags, Z, sign, cost = _problem()
    source = KernelMeans(bags, InstanceKernel("poly", gamma=0.3, degree=80), len(Z))
    result = minimize_expansion(source, 0.3 * Z, sign, cost, length=2e5, optimizer=optimizer)
    assert np.isfinite([result.objective, result.residual]).all()
    assert np.isfinite(result.x).all()
    assert (np.diff(result.history) <= 0).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
def test_gradient_of_the_optimal_value(kernel):
    bags, Z, sign, cost = _problem()
    source = KernelMeans(bags, kernel, len(Z))
    objective = _Objective(source, Z, SquaredHinges(sign, cost))
    actual = objective.gradient(objective.evaluate(Z))
    expected = np.zeros_like(Z)
    for index in np.ndindex(*Z.shape):
        ends = []
        for step in (1e-5, -1e-5):
            moved = Z.copy()
            moved[index] += step
            ends.append(objective.evaluate(moved).value)
        expected[index] = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
@pytest.mark.parametrize("optimizer", ["lbfgs", "gradient"])
def test_descent(kernel, optimizer):
    bags, Z, sign, cost = _problem(n_outputs=3, m=2, d=4)  # fewer vectors than outputs or features
    result = minimize_expansion(
        KernelMeans(bags, kernel, len(Z)), Z, sign, cost, optimizer=optimizer, max_iter=500
    )
    assert (np.diff(result.history) <= 0).all()
    assert result.history[0] == pytest.approx(_slow_value(kernel, bags, Z, sign, cost), rel=1e-6)
    assert result.objective == result.history[-1]
    np.testing.assert_allclose(
        result.decision, _slow_means(kernel, bags, result.x) @ result.coef.T + result.intercept,
        atol=1e-7,
    )  # fmt: skip
    assert result.n_evaluations > result.n_iter


def test_a_linear_expansion_in_one_vector_is_the_linear_machine():
    """With a linear kernel one vector is enough for one output: w = beta z."""
    bags, Z, sign, cost = _problem(n_outputs=1, m=1)
    kernel = InstanceKernel("linear")
    means = np.array([bag.mean(axis=0) for bag in bags])
    best = minimize_squared_hinge(means, sign[:, 0], cost[:, 0])
    result = minimize_expansion(KernelMeans(bags, kernel, 1), Z, sign, cost, tol=1e-9, max_iter=500)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(best.objective, rel=1e-5)


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
def test_all_instances_as_vectors_leave_nothing_to_gain(kernel):
    bags, _, sign, cost = _problem()
    X = bags.instances
    result = minimize_expansion(KernelMeans(bags, kernel, len(X)), X, sign, cost, tol=1e-3)
    gram = _slow_means(kernel, bags, X)
    gram = np.add.reduceat(gram, bags.offsets[:-1], axis=1) / bags.sizes
    root = np.linalg.cholesky(gram + 1e-12 * np.trace(gram) * np.eye(len(gram)))
    expected = sum(
        minimize_squared_hinge(root, y, c).objective for y, c in zip(sign.T, cost.T, strict=True)
    )
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(expected, rel=1e-4)
    assert result.residual < 1e-3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS[:2], ids=IDS[:2])
def test_same_bits_with_and_without_the_kernel_kept(small_pieces, tmp_path, kernel, dtype):
    bags, Z, sign, cost = _problem(n=40, dtype=dtype)
    with StoreWriter(tmp_path / "some.bags") as writer:
        writer.extend(bags)
    stored = Bags.open(tmp_path / "some.bags")
    results = [
        minimize_expansion(
            KernelMeans(some, kernel, len(Z), max_memory=limit, n_threads=n_threads),
            Z, sign, cost, n_threads=n_threads, max_iter=8,
        )
        for some, limit, n_threads in (
            (bags, None, 1), (bags, 1, 1), (bags, None, 3), (stored, 2000, 2), (stored, None, 1),
        )
    ]  # fmt: skip
    assert not KernelMeans(stored, kernel, len(Z), max_memory=2000).keeps
    assert results[0].x.dtype == dtype
    assert results[0].n_iter > 3
    for other in results[1:]:
        np.testing.assert_array_equal(other.x, results[0].x)
        np.testing.assert_array_equal(other.coef, results[0].coef)
        np.testing.assert_array_equal(other.history, results[0].history)


@pytest.mark.parametrize("keep", [True, False])
def test_a_limit_that_no_chunk_of_a_file_fits_is_refused(small_pieces, tmp_path, keep):
    bags, Z, _, _ = _problem(n=40)
    bags.write(tmp_path / "some.bags")
    kernel, stored = InstanceKernel("rbf", gamma=0.2), Bags.open(tmp_path / "some.bags")
    for some in (stored, stored[::2], stored.map_instances(np.negative, lazy=True)):
        with pytest.raises(MemoryLimitError, match="max_memory=100 bytes is too little"):
            KernelMeans(some, kernel, len(Z), max_memory=100, keep=keep)


def test_a_selection_of_bags_is_those_bags():
    bags, Z, sign, cost = _problem(n=30)
    chosen = np.array([20, 3, 7, 8, 1, 0, 29, 15])
    part = bags[chosen]
    alone = Bags(part.instances, part.offsets)
    kernel = InstanceKernel("rbf", gamma=0.2)
    results = [
        minimize_expansion(KernelMeans(some, kernel, 4), Z, sign[chosen], cost[chosen])
        for some in (part, alone)
    ]
    np.testing.assert_array_equal(results[0].x, results[1].x)


def test_single_precision_is_near():
    bags, Z, sign, cost = _problem(n=40)
    single = Bags(bags.instances.astype(np.float32), bags.offsets)
    kernel = InstanceKernel("rbf", gamma=0.2)
    a, b = (
        minimize_expansion(KernelMeans(some, kernel, 4), Z, sign, cost) for some in (bags, single)
    )
    assert b.objective == pytest.approx(a.objective, rel=1e-3)
    exact = minimize_expansion(
        KernelMeans(bags, kernel, 4), b.x.astype(np.float64), sign, cost, max_iter=1
    )
    assert exact.history[0] == pytest.approx(b.objective, rel=1e-5)


def test_coinciding_vectors():
    bags, Z, sign, cost = _problem()
    Z[1:3] = Z[0]
    source = KernelMeans(bags, InstanceKernel("rbf", gamma=0.2), len(Z))
    result = minimize_expansion(source, Z, sign, cost)
    assert np.isfinite(result.coef).all()
    assert result.objective < result.history[0]
    alone = KernelMeans(bags, InstanceKernel("rbf", gamma=0.2), 2)
    expected = solve_expansion(alone, Z[[0, 3]], sign, cost).objective
    assert result.history[0] == pytest.approx(expected, rel=1e-6)


def test_outputs_of_one_sign_and_of_no_cost_are_constants():
    bags, Z, sign, cost = _problem(n_outputs=3)
    sign[:, 0] = -1.0
    cost[:, 1] = 0.0
    source = KernelMeans(bags, InstanceKernel("rbf", gamma=0.2), len(Z))
    result = minimize_expansion(source, Z, sign, cost)
    np.testing.assert_array_equal(result.coef[:2], 0.0)
    np.testing.assert_array_equal(result.intercept[:2], [-1.0, 0.0])
    single = minimize_expansion(source, Z, sign[:, 2:], cost[:, 2:])
    assert result.objective == single.objective
    only = minimize_expansion(source, Z, sign[:, :1], cost[:, :1])
    assert (only.status, only.objective, only.residual) == (Status.CONVERGED, 0.0, 0.0)


def test_scale_of_features_does_not_matter():
    bags, Z, sign, cost = _problem(n=30)
    results = [
        minimize_expansion(
            KernelMeans(
                Bags(unit * bags.instances, bags.offsets), InstanceKernel("rbf", 0.2 / unit**2), 4
            ),
            unit * Z, sign, cost, length=unit, optimizer=optimizer,
        )
        for unit in (1.0, 1e-9, 1e9)
        for optimizer in ("lbfgs", "gradient")
    ]  # fmt: skip
    for k, result in enumerate(results):
        assert result.objective == pytest.approx(results[k % 2].objective, rel=1e-6)
        assert result.residual == pytest.approx(results[k % 2].residual, rel=1e-3)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("optimizer", ["lbfgs", "gradient"])
def test_vectors_move_for_every_cost(C, optimizer):
    bags, Z, sign, cost = _problem(n=30)
    source = KernelMeans(bags, InstanceKernel("rbf", gamma=0.5), len(Z))
    result = minimize_expansion(source, Z, sign, C * cost, length=2.0, optimizer=optimizer)
    assert result.n_iter > 5
    assert result.objective < result.history[0]


def test_few_iterations_are_reported():
    bags, Z, sign, cost = _problem(n=30)
    source = KernelMeans(bags, InstanceKernel("rbf", gamma=0.5), len(Z))
    result = minimize_expansion(source, Z, sign, cost, max_iter=2)
    assert result.status is Status.MAX_ITER
    assert len(result.history) == 3
    assert result.residual > 0


def test_bad_optimizer_and_kernel():
    bags, Z, sign, cost = _problem()
    source = KernelMeans(bags, InstanceKernel("rbf", gamma=0.5), len(Z))
    with pytest.raises(ValueError, match='optimizer must be "lbfgs" or "gradient"'):
        minimize_expansion(source, Z, sign, cost, optimizer="adam")
    source = KernelMeans(bags, InstanceKernel("laplacian", gamma=0.5), len(Z))
    assert solve_expansion(source, Z, sign, cost).status is Status.CONVERGED
    with pytest.raises(ValueError, match="Derivatives are known for the kernels"):
        minimize_expansion(source, Z, sign, cost)
