"""Gram matrices of instances and means of bags, formed at once or block by block."""

import numpy as np
import pytest
from scipy import sparse

from bagwise.kernels import InstanceKernel, PointGram, point_gram

SIZES = np.array([1, 4, 2, 7, 3])
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
KERNELS = [InstanceKernel("rbf", gamma=0.3), InstanceKernel("poly", degree=2, coef0=1.0)]


def name_of(kernel):
    return kernel.name


def instances(dtype=np.float64):
    return np.random.default_rng(0).normal(size=(OFFSETS[-1], 3)).astype(dtype)


def by_definition(kernel, X):
    """Return the matrix with every image as a combination of instances."""
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


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_source_has_the_blocks_of_the_matrix(kernel, form):
    X = form(instances())
    gram = point_gram(kernel, X, OFFSETS, means=True)
    source = PointGram.of(kernel, X, OFFSETS, means=True)
    assert source.shape == gram.shape
    np.testing.assert_allclose(source.diagonal(), gram.diagonal(), rtol=1e-12)
    rng = np.random.default_rng(1)
    for rows, columns in [
        (rng.integers(len(gram), size=6), None),
        (np.arange(3), np.arange(2)),
        (rng.integers(len(gram), size=5), rng.integers(len(gram), size=9)),
        (np.array([18, 20]), np.array([17, 0, 19])),
    ]:
        expected = gram[rows] if columns is None else gram[np.ix_(rows, columns)]
        np.testing.assert_allclose(source.block(rows, columns), expected, rtol=1e-11, atol=1e-13)


def test_source_with_copies_repeats_rows():
    kernel, X = KERNELS[0], instances()
    gram = point_gram(kernel, X, OFFSETS, means=True)
    rows = np.array([2, 19, 2])
    source = PointGram.of(kernel, X, OFFSETS, means=True).with_copies(rows)
    every = np.concatenate([np.arange(len(gram)), rows])
    np.testing.assert_allclose(
        source.block(np.arange(len(every))), gram[np.ix_(every, every)], rtol=1e-11, atol=1e-13
    )
    np.testing.assert_allclose(source.diagonal(), gram.diagonal()[every], rtol=1e-12)
