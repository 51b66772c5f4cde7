"""Derivatives of kernels against finite differences."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise.kernels import InstanceKernel, gradient_sum, self_gradient

KERNELS = [
    InstanceKernel("linear"),
    InstanceKernel("poly", gamma=0.3, degree=3, coef0=1.0),
    InstanceKernel("poly", gamma=0.3, degree=2, coef0=0.0),
    InstanceKernel("poly", gamma=0.3, degree=1, coef0=0.5),
    InstanceKernel("poly", gamma=0.01, degree=2.5, coef0=3.0),
    InstanceKernel("rbf", gamma=0.2),
    InstanceKernel("cosine"),
]
IDS = [f"{kernel.name}-{kernel.degree}" for kernel in KERNELS]


def _differences(value, Z, step=1e-5):
    """Differentiate by central differences, one number at a time."""
    out = np.zeros_like(Z)
    for index in np.ndindex(*Z.shape):
        ends = []
        for sign in (1, -1):
            moved = Z.copy()
            moved[index] += sign * step
            ends.append(value(moved))
        out[index] = (ends[0] - ends[1]) / (2 * step)
    return out


def _problem(seed=0, n=17, m=4, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.normal(size=(n, m))


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("known", [False, True])
def test_gradient_sum_is_the_derivative(kernel, form, known):
    X, Z, W = _problem()
    expected = _differences(lambda moved: (W * kernel.gram(X, moved)).sum(), Z)
    K = kernel.gram(X, Z) if known else None
    actual = gradient_sum(kernel, form(X), Z, W, K)
    np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-8)


def test_sums_over_many_rows_of_float32():
    X, Z, _ = _problem(n=60_000, m=40)
    X, Z, W = (part.astype(np.float32) for part in (X, Z + 3, np.ones((len(X), len(Z)))))
    kernel = InstanceKernel("rbf", gamma=0.002)
    exact = gradient_sum(kernel, X.astype(np.float64), Z.astype(np.float64), W)
    found = gradient_sum(kernel, X, Z, W)
    np.testing.assert_allclose(found, exact, atol=5e-7 * np.abs(exact).max())


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
@pytest.mark.parametrize("beta", [np.array([0.4, -1.0, 2.0, 0.3]), np.eye(4)[:3] + 0.2])
def test_self_gradient_counts_the_diagonal(kernel, beta):
    Z = _problem()[1]

    def half(moved):
        rows = np.atleast_2d(beta)
        return 0.5 * np.einsum("ck,kl,cl->", rows, kernel.gram(moved), rows)

    expected = _differences(half, Z)
    np.testing.assert_allclose(self_gradient(kernel, Z, beta), expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(
        self_gradient(kernel, Z, beta, kernel.gram(Z)), expected, rtol=1e-7, atol=1e-8
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
def test_inputs_are_kept_unless_they_are_scratch(kernel):
    X, Z, W = _problem()
    K = kernel.gram(X, Z)
    kept = W.copy(), K.copy()
    expected = gradient_sum(kernel, X, Z, W, K)
    np.testing.assert_array_equal(W, kept[0])
    np.testing.assert_array_equal(K, kept[1])
    for name in ("W", "K"):
        arrays = {"W": W.copy(), "K": K.copy()}
        actual = gradient_sum(kernel, X, Z, **arrays, scratch=arrays[name])
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
def test_single_precision(kernel):
    X, Z, W = _problem()
    expected = gradient_sum(kernel, X, Z, W)
    actual = gradient_sum(kernel, X.astype(np.float32), Z.astype(np.float32), W)
    assert actual.dtype == np.float64
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_cosine_at_zero_is_flat():
    X, Z, W = _problem()
    Z[1] = 0
    X[2] = 0
    gradient = gradient_sum(InstanceKernel("cosine"), X, Z, W)
    np.testing.assert_array_equal(gradient[1], 0)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("name", ["laplacian", "chi2"])
def test_other_kernels_are_refused(name):
    X, Z, W = _problem()
    with pytest.raises(ValueError, match=f"Derivatives are known for .* Got '{name}'"):
        gradient_sum(InstanceKernel(name), abs(X), abs(Z), W)


def test_shapes_are_checked():
    X, Z, W = _problem()
    with pytest.raises(ValueError, match=re.escape("W must have shape (17, 4). Got (4, 17).")):
        gradient_sum(InstanceKernel("rbf"), X, Z, W.T)
    with pytest.raises(ValueError, match="same number of features"):
        gradient_sum(InstanceKernel("rbf"), X, Z[:, :2], W)
