"""Instance kernels beside scikit-learn's on any input, and how far rounding can take them."""

import threading
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import (
    cosine_similarity,
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)

import bagwise.kernels._instance as instance
import bagwise.kernels._rows as rows
from bagwise.kernels import InstanceKernel, resolve_gamma, set_gram, set_self

BLOCK = 5
FORMS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "csc": sp.csc_array,
}


@contextmanager
def _small_blocks():
    with mock.patch.object(instance, "BLOCK", BLOCK), mock.patch.object(rows, "_PASS_ENTRIES", 11):
        yield


def _rows(draw, n, d, dtype):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    density = draw(st.sampled_from([0.0, 0.1, 0.6, 1.0]))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    X[rng.random(n) < 0.2] = 0.0  # rows of zeros
    return X.astype(dtype)


@st.composite
def sides(draw):
    d = draw(st.integers(1, 6))
    given_rows = []
    for _ in range(2):
        n = draw(st.sampled_from([1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1]))
        X = _rows(draw, n, d, draw(st.sampled_from([np.float32, np.float64])))
        form = FORMS[draw(st.sampled_from(sorted(FORMS)))](X)
        if not sp.issparse(form):
            form.flags.writeable = draw(st.booleans())
        given_rows.append((form, X))
    return given_rows


@st.composite
def kernels(draw):
    """Return a kernel and scikit-learn's function for it."""
    gamma = draw(st.sampled_from([0.05, 0.5, 2.0]))
    name = draw(st.sampled_from(["linear", "poly", "rbf", "laplacian", "cosine"]))
    if name == "cosine":
        return InstanceKernel("cosine"), cosine_similarity
    if name == "laplacian":
        kernel = InstanceKernel("laplacian", gamma=gamma)
        return kernel, lambda A, B: laplacian_kernel(A, B, gamma=gamma)
    if name == "linear":
        return InstanceKernel("linear"), linear_kernel
    if name == "rbf":
        return InstanceKernel("rbf", gamma=gamma), lambda A, B: rbf_kernel(A, B, gamma=gamma)
    numbers = {
        "gamma": gamma,
        "degree": draw(st.sampled_from([1, 2, 3, 4, 5, 2.0])),
        "coef0": draw(st.sampled_from([0.0, 1.0, -0.5])),
    }
    return InstanceKernel("poly", **numbers), lambda A, B: polynomial_kernel(A, B, **numbers)


@given(sides(), kernels())
def test_gram_is_that_of_scikit_learn(two_sides, kernel_and_peer):
    (a, A), (b, B) = two_sides
    kernel, peer = kernel_and_peer
    expected = peer(A.astype(np.float64), B.astype(np.float64))
    single = A.dtype == B.dtype == np.float32
    with _small_blocks():
        gram = kernel.gram(a, b, n_threads=1)
    assert gram.dtype == (np.float32 if single else np.float64)
    tolerance = 1e-5 if single else 1e-13
    unit = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(gram, expected, atol=tolerance * unit)


@given(sides(), kernels())
def test_one_side_is_symmetric_and_agrees_with_two(two_sides, kernel_and_peer):
    (a, A), _ = two_sides
    kernel, _ = kernel_and_peer
    with _small_blocks():
        own, cross = kernel.gram(a, n_threads=1), kernel.gram(a, A, n_threads=1)
        diagonal = kernel.diagonal(a)
    np.testing.assert_array_equal(own, own.T)
    np.testing.assert_array_equal(own.diagonal(), diagonal)
    if kernel.name in ("rbf", "laplacian"):
        assert (diagonal == 1.0).all()
        assert (own >= 0.0).all()
        assert (own <= 1.0).all()
    unit = max(1.0, float(np.abs(own).max()))
    tolerance = 1e-5 if own.dtype == np.float32 else 1e-13
    np.testing.assert_allclose(own, cross, atol=tolerance * unit)


@given(sides(), kernels(), st.integers(1, 3))
def test_expansion_is_gram_times_coefficients(two_sides, kernel_and_peer, n_outputs):
    (a, _), (b, B) = two_sides
    kernel, _ = kernel_and_peer
    coef = np.random.default_rng(n_outputs).normal(size=(n_outputs, len(B)))
    with _small_blocks():
        gram = kernel.gram(a, b, n_threads=1)
        expansion = kernel.expand(a, b, coef, n_threads=1)
    assert expansion.dtype == np.float64
    unit = max(1.0, float(np.abs(gram).max()))
    # The same blocks, multiplied in double precision
    np.testing.assert_allclose(expansion, gram.astype(float) @ coef.T, atol=1e-13 * unit)


@settings(max_examples=40)
@given(sides(), kernels())
def test_threads_do_not_change_a_bit(two_sides, kernel_and_peer):
    (a, _), (b, _) = two_sides
    kernel, _ = kernel_and_peer
    with _small_blocks():
        for other in (None, b):
            one = kernel.gram(a, other, n_threads=1)
            for n_threads in (2, 4):
                np.testing.assert_array_equal(kernel.gram(a, other, n_threads=n_threads), one)


def _exact_gaussian(gamma, A, B):
    A, B = A.astype(np.longdouble), B.astype(np.longdouble)
    return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(-1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.parametrize("shift", [0.0, 1e2, 1e4, 1e6])
def test_sparse_gaussian_loses_as_much_as_its_squared_norms_do(dtype, d, shift):
    """Distances come from norms and products, so they are as exact as these."""
    X = (shift + np.random.default_rng(0).normal(size=(40, d))).astype(dtype)
    gamma = 1.0 / d
    gram = InstanceKernel("rbf", gamma=gamma).gram(sp.csr_array(X), sp.csr_array(X))
    norms = (X.astype(np.longdouble) ** 2).sum(1)
    eps = np.finfo(dtype).eps
    allowed = eps * (4.0 + (d + 8.0) * gamma * (norms[:, None] + norms[None]))
    assert (np.abs(gram - _exact_gaussian(gamma, X, X)) <= allowed).all()
    assert ((gram >= 0.0) & (gram <= 1.0)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0, 1e2, 1e4, 1e6])
def test_dense_gaussian_does_not_depend_on_the_origin(dtype, d, shift):
    """Rows are moved to their centre where that matters, so their spread alone counts."""
    rng = np.random.default_rng(0)
    A = (shift + rng.normal(size=(40, d))).astype(dtype)
    B = (shift + rng.normal(size=(30, d))).astype(dtype)
    gamma = 1.0 / d
    kernel = InstanceKernel("rbf", gamma=gamma)
    allowed = 200.0 * np.finfo(dtype).eps
    coef = np.eye(30)
    with _small_blocks():
        for sides in ((A, B), (A, A), (B, A), (A, B[:1]), (A[:1], B)):
            assert np.abs(kernel.gram(*sides) - _exact_gaussian(gamma, *sides)).max() <= allowed
        own = kernel.gram(A)
        np.testing.assert_array_equal(own, own.T)
        assert np.abs(own - _exact_gaussian(gamma, A, A)).max() <= allowed
        expansion = kernel.expand(A, B, coef)
        assert np.abs(expansion - _exact_gaussian(gamma, A, B)).max() <= allowed


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gaussian_sums_over_bags_do_not_depend_on_the_origin(dtype):
    X = (1e3 + np.random.default_rng(0).normal(size=(60, 5))).astype(dtype)
    starts, stops = np.array([0, 7, 30]), np.array([7, 30, 60])
    kernel = InstanceKernel("rbf", gamma=0.2)
    exact = _exact_gaussian(0.2, X, X)
    bags = list(zip(starts, stops, strict=True))
    sums = [[exact[a:b, c:d].sum() for c, d in bags] for a, b in bags]
    tolerance = 100.0 * np.finfo(dtype).eps
    expected = np.array(sums, np.float64)
    np.testing.assert_allclose(set_gram(kernel, X, starts, stops), expected, rtol=tolerance)
    inside = set_self(kernel, X, starts, stops)
    np.testing.assert_allclose(inside, expected.diagonal(), rtol=tolerance)


def test_gaussian_of_two_clusters_far_apart_and_far_from_the_origin():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(20, 3)) + 1e5, rng.normal(size=(20, 3)) - 1e5])
    gram = InstanceKernel("rbf", gamma=0.3).gram(X[:20], X[20:])
    np.testing.assert_array_equal(gram, 0.0)
    for part in (X[:20], X[20:]):
        gram = InstanceKernel("rbf", gamma=0.3).gram(X, part)
        assert np.abs(gram - _exact_gaussian(0.3, X, part)).max() < 1e-13


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gaussian_of_points_far_apart_is_zero(form):
    X = np.array([[1e150, 0.0], [0.0, 1e150], [0.0, 0.0], [-1e150, 0.0]])
    for gram in (InstanceKernel("rbf").gram(form(X)), InstanceKernel("rbf").gram(form(X), form(X))):
        np.testing.assert_array_equal(gram, np.eye(4))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gaussian_does_not_hide_nan(form):
    X = np.array([[1.0, np.nan], [0.0, 1.0]])
    gram = InstanceKernel("rbf").gram(form(X), form(np.eye(2)))
    np.testing.assert_array_equal(np.isnan(gram), [[True, True], [False, False]])


def test_sparse_instances_in_mapped_files(tmp_path):
    X = sp.random_array((30, 8), density=0.3, format="csr", rng=0)
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(X, name))
        parts.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    mapped = sp.csr_array(tuple(parts), shape=X.shape)
    for kernel in (InstanceKernel("linear"), InstanceKernel("rbf", gamma=0.5)):
        np.testing.assert_array_equal(kernel.gram(mapped), kernel.gram(X))
        np.testing.assert_array_equal(kernel.gram(mapped, X), kernel.gram(X, X))


def test_callable_gets_blocks_in_the_calling_thread():
    calls = []

    def product(A, B):
        calls.append((A.shape, B.shape, threading.current_thread()))
        return A @ B.T

    X = np.random.default_rng(0).normal(size=(23, 2))
    with _small_blocks():
        gram = InstanceKernel(product).gram(X, n_threads=4)
        InstanceKernel(product).gram(X, X, n_threads=4)
        InstanceKernel(product).expand(X, X, np.ones((1, 23)), n_threads=4)
    np.testing.assert_allclose(gram, X @ X.T, rtol=1e-13)
    assert {thread for *_, thread in calls} == {threading.current_thread()}
    assert all(len_a <= 32 and len_b <= 32 for (len_a, _), (len_b, _), _ in calls)


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 2), (3, 2, 1)])
def test_expansion_refuses_coefficients_of_another_shape(shape):
    with pytest.raises(ValueError, match=r"coef must have shape \(n_outputs, 3\). Got"):
        InstanceKernel("linear").expand(np.ones((5, 2)), np.ones((3, 2)), np.ones(shape))


@st.composite
def weighted_rows(draw):
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 5))
    X = _rows(draw, n, d, draw(st.sampled_from([np.float32, np.float64])))
    X += draw(st.sampled_from([0.0, 3.0]))
    weight = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    assume(weight.any())
    return X, weight, draw(st.sampled_from([np.asarray, sp.csr_array]))


@given(weighted_rows())
def test_gamma_scale_is_one_over_the_variance_of_repeated_rows(problem):
    X, weight, form = problem
    repeated = np.repeat(X, weight, axis=0).astype(np.float64)
    variance = X.shape[1] * repeated.var()
    with _small_blocks():
        gamma = resolve_gamma("scale", form(X), weight)
    if np.ptp(repeated) == 0.0:
        assert gamma == 1.0
    else:
        np.testing.assert_allclose(gamma, 1.0 / variance, rtol=1e-10)


@given(weighted_rows(), st.randoms(use_true_random=False))
def test_gamma_median_is_that_of_all_distinct_pairs(problem, random):
    X, weight, form = problem
    distinct = np.unique(X[weight > 0].astype(np.float64), axis=0)
    i, j = np.triu_indices(len(distinct), 1)
    distances = ((distinct[i] - distinct[j]) ** 2).sum(1)
    expected = 1.0 / np.median(distances) if len(i) else 1.0
    with _small_blocks():
        gamma = resolve_gamma("median", form(X), weight)
        order = np.repeat(np.arange(len(X)), weight)
        random.shuffle(order)
        again = resolve_gamma("median", form(X[order]))
    np.testing.assert_allclose(gamma, expected, rtol=1e-11)
    assert again == gamma  # to the last bit: the picked rows come in the order of their hashes


def test_gamma_median_of_data_far_from_the_origin():
    X = np.random.default_rng(0).normal(size=(50, 3))
    far = X + 1e8
    i, j = np.triu_indices(50, 1)
    expected = 1.0 / np.median(((far[i] - far[j]) ** 2).sum(1))
    np.testing.assert_allclose(resolve_gamma("median", far), expected, rtol=1e-12)


def test_gamma_refuses_weights_below_zero():
    for weight in ([1.0, -1.0], [1.0, np.nan], [1.0]):
        with pytest.raises(ValueError, match="row_weight must give a weight to each of 2 rows"):
            resolve_gamma("scale", np.ones((2, 2)), np.array(weight))
