"""Reduced sets: exact gradients, closed forms, and what must not change the answer."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime

from bagwise.kernels import InstanceKernel
from bagwise.solvers import Status, reduce_expansion
from bagwise.solvers.expansion._reduced_set import _Expansion, _greedy, _Rest, solve_shifted

KERNELS = [
    InstanceKernel("rbf", gamma=0.3),
    InstanceKernel("poly", gamma=0.5, degree=3, coef0=1.0),
    InstanceKernel("poly", gamma=0.7, degree=2),
]
RBF = KERNELS[0]


def name_of(kernel):
    return f"{kernel.name}-{kernel.degree}"


def make_expansion(n=40, d=3, outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(outputs, n))


def squared_distance(kernel, X, a, Z, b):
    """Return |sum a phi(x) - sum b phi(z)|^2 from one Gram matrix of all points."""
    rows, factors = np.vstack([X, Z]), np.concatenate([a, -b])
    return factors @ kernel.gram(rows) @ factors


# ------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_gradient_is_that_of_finite_differences(kernel):
    X, coef = make_expansion()
    expansion = _Expansion(kernel, X, coef)
    Z = np.random.default_rng(1).normal(size=(5, 3))
    block = np.empty((len(X), len(Z)))
    value, gradient = expansion.value_and_gradient(Z, block)
    K, KX = kernel.gram(Z), kernel.gram(Z, X)
    norms = np.einsum("ci,ij,cj->", coef, kernel.gram(X), coef)
    assert value == pytest.approx(
        norms - np.einsum("kc,kc->", KX @ coef.T, np.linalg.solve(K, KX @ coef.T)), rel=1e-7
    )
    numeric = approx_fprime(
        Z.ravel(), lambda z: expansion.value_and_gradient(z.reshape(5, 3), block)[0], 1e-6
    )
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=2e-5 * np.abs(numeric).max())


def test_gradient_of_many_blocks_is_that_of_one(monkeypatch):
    X, coef = make_expansion(50)
    Z = X[:4] + 0.1
    block = np.empty((50, 4))
    whole = _Expansion(RBF, X, coef).value_and_gradient(Z, block)[1]
    monkeypatch.setattr("bagwise.solvers.expansion._reduced_set._BLOCK", 7)
    parts = _Expansion(RBF, X, coef).value_and_gradient(Z, block)[1]
    np.testing.assert_allclose(parts, whole, rtol=1e-10)


def test_fixed_points_are_stationary_and_higher():
    X, coef = make_expansion()
    expansion = _Expansion(RBF, X, coef)
    Z = X[:2] + 0.2
    gram = RBF.gram(Z)
    rest = _Rest(expansion, Z, solve_shifted(gram, (coef @ RBF.gram(X, Z)).T)[0], gram)
    places = X[5:9]
    for _ in range(30):
        moved = rest.climb(places)
        assert (rest._squares(moved)[0] >= rest._squares(places)[0]).all()
        places = moved
    values, slopes = rest._squares(places)
    assert np.abs(slopes / values[:, None]).max() < 0.05


def test_gain_is_what_one_more_vector_lowers_the_objective_by():
    X, coef = make_expansion()
    expansion = _Expansion(RBF, X, coef)
    block = np.empty((len(X), 3))
    Z = X[:2] + 0.2
    gram = RBF.gram(Z)
    rest = _Rest(expansion, Z, solve_shifted(gram, (coef @ RBF.gram(X, Z)).T)[0], gram)
    before = expansion.value_and_gradient(Z, block[:, :2].copy())[0]
    for place in X[5:8]:
        after = expansion.value_and_gradient(np.vstack([Z, place]), block)[0]
        assert rest.gains(place[None])[0] == pytest.approx(before - after, rel=1e-6)


# ------------------------------------------------------------------------------- closed forms


def test_two_near_gaussians_become_one_in_their_middle():
    gamma, distance = 0.5, 0.8
    X = np.array([[1.0, 2.0], [1.0, 2.0 + distance]])
    result = reduce_expansion(InstanceKernel("rbf", gamma), X, [1.0, 1.0], 1, tol=1e-12)
    np.testing.assert_allclose(result.x, [[1.0, 2.0 + distance / 2]], atol=1e-4)
    apart, half = np.exp(-gamma * distance**2), np.exp(-gamma * distance**2 / 4)
    assert result.objective == pytest.approx(2 + 2 * apart - 4 * half**2, rel=1e-5)
    assert result.coef == pytest.approx(2 * half, rel=1e-5)
    assert result.squared_norms == pytest.approx(2 + 2 * apart)


@pytest.mark.parametrize("n_vectors", [1, 2, 3])
def test_quadratic_kernel_is_a_spectrum(n_vectors):
    """An expansion is a symmetric matrix, a vector a matrix of rank 1: Eckart and Young."""
    X, coef = make_expansion(30, 5, outputs=1)
    matrix = np.einsum("cj,ja,jb->ab", coef, X, X)
    eigenvalues = np.sort(np.abs(np.linalg.eigvalsh(matrix)))
    kernel = InstanceKernel("poly", gamma=1.0, degree=2)
    result = reduce_expansion(kernel, X, coef, n_vectors, tol=1e-13)
    assert result.objective == pytest.approx((eigenvalues[:-n_vectors] ** 2).sum(), rel=1e-5)
    assert result.squared_norms == pytest.approx((matrix**2).sum())


def test_as_many_vectors_as_the_space_has_dimensions_are_exact():
    X, coef = make_expansion(60, 3, outputs=2)
    kernel = InstanceKernel("poly", gamma=0.5, degree=2, coef0=1.0)
    result = reduce_expansion(kernel, X, coef, 20)
    assert len(result.x) == 10  # squares, products, features and the constant
    assert result.relative_errors.max() < 1e-8
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("n_vectors", [1, 2, 4, 9])
@pytest.mark.parametrize("name", ["linear", "cosine"])
@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_weights_or_their_principal_directions(name, to, n_vectors):
    X, coef = make_expansion(30, 6, outputs=4)
    X[3] = 0.0
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    images = X if name == "linear" else X / np.where(lengths > 0, lengths, 1.0)
    weights = coef @ images
    kernel = InstanceKernel(name)
    result = reduce_expansion(kernel, to(X), coef, n_vectors)
    lengths = np.linalg.svd(weights, compute_uv=False)
    assert len(result.x) == min(n_vectors, 4)
    assert result.objective == pytest.approx((lengths[n_vectors:] ** 2).sum(), abs=1e-12)
    assert result.gap == 0.0
    values = kernel.expand(X, result.x, result.coef)
    if n_vectors >= 4:
        np.testing.assert_allclose(values, images @ weights.T, atol=1e-12)
    errors = [
        squared_distance(kernel, X, *pair)
        for pair in zip(coef, [result.x] * 4, result.coef, strict=True)
    ]
    np.testing.assert_allclose(result.errors, errors, atol=1e-9)
    np.testing.assert_allclose(result.squared_norms, (weights**2).sum(axis=1))


# ------------------------------------------------------------------------------- what is returned


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
@pytest.mark.parametrize("refine", [False, True])
def test_errors_and_factors(kernel, refine):
    X, coef = make_expansion()
    result = reduce_expansion(kernel, X, coef, 3, refine=refine)
    best = np.linalg.lstsq(kernel.gram(result.x), kernel.gram(result.x, X) @ coef.T, rcond=None)[0]
    np.testing.assert_allclose(result.coef, best.T, rtol=1e-5, atol=1e-6)
    for output in range(2):
        error = squared_distance(kernel, X, coef[output], result.x, result.coef[output])
        assert result.errors[output] == pytest.approx(error, rel=1e-6)
    assert result.objective == pytest.approx(result.errors.sum())
    np.testing.assert_allclose(result.relative_errors, result.errors / result.squared_norms)
    total = result.squared_norms.sum()
    assert result.history[-1] == pytest.approx(result.objective, abs=1e-7 * total)
    assert (np.diff(result.history) <= 1e-9 * total).all()
    assert len(result.history) == 3 + result.n_iter


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_refinement_and_more_vectors_lower_the_error(kernel):
    X, coef = make_expansion(60, 8, outputs=1)
    few = reduce_expansion(kernel, X, coef, 4)
    assert few.objective < reduce_expansion(kernel, X, coef, 4, refine=False).objective
    assert reduce_expansion(kernel, X, coef, 8).objective < few.objective


def test_refinement_ends_where_the_gradient_vanishes():
    X, coef = make_expansion(40, 3, outputs=1)
    result = reduce_expansion(RBF, X, coef, 3, tol=1e-14)
    assert result.residual < 1e-4
    expansion = _Expansion(RBF, X, coef)
    gradient = expansion.value_and_gradient(result.x, np.empty((40, 3)))[1]
    unit = RBF.gamma**-0.5 / expansion.total
    assert np.abs(gradient).max() * unit == pytest.approx(result.residual, rel=1e-3, abs=1e-7)


def test_more_starts_find_no_worse_first_vector():
    X, coef = make_expansion(80, 5, outputs=1)
    expansion = _Expansion(RBF, X, coef)
    objectives = [_greedy(expansion, 1, n_starts)[1][0] for n_starts in (1, 5, 80)]
    assert objectives[0] >= objectives[1] >= objectives[2]


def test_the_second_start_is_elsewhere():
    """Two Gaussians are highest between them, higher than the single one whose row is highest."""
    X, coef = np.array([[-1.0], [1.0], [100.0]]), np.array([[1.0, 1.0, 1.4]])
    between, total = 2.0 * np.exp(-RBF.gamma), 2.0 + 2.0 * np.exp(-4.0 * RBF.gamma) + 1.4**2
    for n_starts, height in ((1, 1.4), (2, between), (3, between)):
        result = reduce_expansion(RBF, X, coef, 1, n_starts=n_starts, refine=False)
        assert result.objective == pytest.approx(total - height**2, rel=1e-3)


def test_outputs_share_vectors():
    """Outputs that are multiples of one another are no harder than one of them."""
    X, coef = make_expansion(40, 4, outputs=1)
    one = reduce_expansion(RBF, X, coef, 3, tol=1e-10)
    three = reduce_expansion(RBF, X, np.vstack([coef, -2 * coef, 0 * coef]), 3, tol=1e-10)
    np.testing.assert_allclose(three.relative_errors[:2], one.relative_errors[0], rtol=1e-4)
    assert three.relative_errors[2] == three.coef[2].any() == 0


def test_budget_is_kept():
    X, coef = make_expansion(60, 5)
    result = reduce_expansion(RBF, X, coef, 5, max_iter=2, tol=1e-12)
    assert (result.status, result.n_iter) == (Status.MAX_ITER, 2)


# ------------------------------------------------------------------------------- special input


@pytest.mark.parametrize("n_vectors", [40, 100])
def test_enough_vectors_are_the_instances_themselves(n_vectors):
    X, coef = make_expansion()
    coef[:, 7] = 0.0
    result = reduce_expansion(RBF, X, coef, n_vectors)
    assert result.objective == result.gap == result.n_iter == 0
    assert len(result.x) == 39
    order = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in result.x]
    np.testing.assert_array_equal(result.coef, coef[:, order])


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_equal_rows_count_once(to):
    X, _ = make_expansion(20, 4)
    X[:, 1:] *= np.random.default_rng(1).random((20, 3)) < 0.5
    X[3] = 0.0
    again = np.concatenate([np.arange(20), [3, 5, 5, 19]])
    repeated = np.random.default_rng(2).normal(size=(2, 24))
    merged = np.zeros((2, 20))
    np.add.at(merged.T, again, repeated.T)
    got = reduce_expansion(RBF, to(X[again]), repeated, 22)
    assert len(got.x) == 20
    few = reduce_expansion(RBF, to(X[again]), repeated, 5)
    expected = reduce_expansion(RBF, to(X), merged, 5)
    assert few.objective == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_sparse_rows(kernel):
    X, coef = make_expansion(40, 6)
    X *= np.random.default_rng(1).random(X.shape) < 0.4
    dense = reduce_expansion(kernel, X, coef, 4)
    got = reduce_expansion(kernel, sparse.csr_array(X), coef, 4)
    assert got.objective == pytest.approx(dense.objective, rel=1e-3)
    assert isinstance(got.x, np.ndarray)


def test_single_precision_is_used_in_double():
    X, coef = make_expansion()
    X = X.astype(np.float32)
    single = reduce_expansion(RBF, X, coef, 4)
    double = reduce_expansion(RBF, X.astype(np.float64), coef, 4)
    np.testing.assert_array_equal(single.x, double.x)


def test_order_of_rows_and_threads_change_nothing(monkeypatch):
    X, coef = make_expansion(300, 4)
    expected = reduce_expansion(RBF, X, coef, 6)
    order = np.random.default_rng(1).permutation(300)
    monkeypatch.setenv("BAGWISE_NUM_THREADS", "3")
    monkeypatch.setattr("bagwise.solvers.expansion._reduced_set._SMALL", 0)
    got = reduce_expansion(RBF, X[order], coef[:, order], 6)
    np.testing.assert_array_equal(got.x, expected.x)
    np.testing.assert_array_equal(got.coef, expected.coef)


def test_vectors_that_all_but_coincide():
    """On a line, smooth functions need few vectors: the others make a singular matrix."""
    rng = np.random.default_rng(0)
    X, coef = rng.uniform(size=(60, 1)), rng.normal(size=60)
    result = reduce_expansion(InstanceKernel("rbf", gamma=0.1), X, coef, 30)
    assert np.isfinite(result.x).all()
    assert np.isfinite(result.coef).all()
    assert result.relative_errors[0] < 1e-6


def test_singular_systems_are_solved():
    K = RBF.gram(np.zeros((3, 2)))
    np.testing.assert_allclose(solve_shifted(K, np.ones((3, 1)))[0], 1 / 3, rtol=1e-6)
    indefinite = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert np.isfinite(solve_shifted(indefinite, np.ones((2, 1)))[0]).all()
    np.testing.assert_array_equal(solve_shifted(np.zeros((2, 2)), np.zeros((2, 1)))[0], 0.0)


def test_nothing_to_approximate():
    X, coef = make_expansion(10, 3)
    empty = reduce_expansion(RBF, X, np.zeros_like(coef), 3)
    assert empty.x.shape == (0, 3)
    assert empty.coef.shape == (2, 0)
    kernel = InstanceKernel("poly", degree=2)
    flat = np.zeros((10, 3))
    flat[:, 0] = np.linspace(1.0, 2.0, 10)
    cancelled = np.linalg.svd(np.square(flat[:, :1]).T)[2][-1:]  # its quadratic form is 0
    result = reduce_expansion(kernel, flat, cancelled, 3)
    assert result.objective < 1e-14
    assert not result.coef.any()


def test_features_of_any_scale():
    X, coef = make_expansion(40, 4)
    expected = reduce_expansion(RBF, X, coef, 4).relative_errors
    for scale in (1e-6, 1e6):
        kernel = InstanceKernel("rbf", RBF.gamma / scale**2)
        got = reduce_expansion(kernel, scale * X + 3 * scale, coef, 4).relative_errors
        np.testing.assert_allclose(got, expected, rtol=1e-2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_vectors": 0}, "n_vectors of reduce_expansion must be at least 1. Got 0"),
        ({"n_starts": 0}, "n_starts of reduce_expansion must be at least 1"),
        ({"max_iter": 0}, "max_iter of reduce_expansion must be at least 1"),
        ({"tol": np.nan}, "tol of reduce_expansion"),
        ({"coef": np.ones(39)}, r"coef must have shape \(any, 40\)"),
        ({"coef": np.full(40, np.nan)}, "coef must hold finite numbers"),
        ({"kernel": InstanceKernel("laplacian")}, "Derivatives are known for the kernels"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_bad_input(change, message):
    X, coef = make_expansion()
    arguments = {"kernel": RBF, "X": X, "coef": coef, "n_vectors": 3, **change}
    with pytest.raises(ValueError, match=message):
        reduce_expansion(**arguments)
