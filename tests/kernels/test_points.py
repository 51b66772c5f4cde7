"""Gram matrices of instances and kernel means of bags."""

import numpy as np
import pytest

from bagwise.kernels import InstanceKernel, point_gram

SIZES = np.array([1, 4, 2, 7, 3])
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
KERNELS = [InstanceKernel("rbf", gamma=0.3), InstanceKernel("poly", degree=2, coef0=1.0)]


def name_of(kernel):
    return kernel.name


def instances(dtype=np.float64):
    return np.random.default_rng(0).normal(size=(OFFSETS[-1], 3)).astype(dtype)


def by_definition(kernel, X):
    """Return the matrix with every point as a combination of instances."""
    averages = np.repeat(np.eye(len(SIZES)) / SIZES[:, None], SIZES, axis=1)
    combine = np.vstack([np.eye(len(X)), averages])
    return combine @ kernel.gram(X.astype(np.float64)) @ combine.T


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_means_follow_the_instances(kernel, dtype, tolerance):
    X = instances(dtype)
    gram = point_gram(kernel, X, OFFSETS, means=True)
    assert gram.dtype == dtype
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(gram, by_definition(kernel, X), rtol=tolerance, atol=tolerance)
    n = len(X)
    np.testing.assert_array_equal(point_gram(kernel, X, OFFSETS), gram[:n, :n])


def test_means_of_large_bags_of_float32():
    X = np.random.default_rng(0).normal(size=(1500, 3)).astype(np.float32)
    gram = point_gram(KERNELS[0], X, np.array([0, 1500]), means=True)
    exact = gram[:1500, :1500].mean(axis=1, dtype=np.float64)
    np.testing.assert_allclose(gram[:1500, 1500], exact, rtol=2e-7)
