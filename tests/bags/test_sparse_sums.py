"""Sums of bags that stay sparse, beside sums of the same rows made dense."""

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise.bags import Bags, BagSource, sparse_moments, sparse_range, sparse_sums


@pytest.mark.parametrize("n_columns", [5, 60, 3000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_those_of_dense_rows(n_columns, dtype):
    rng = np.random.default_rng(n_columns)
    rows = sp.random_array((200, n_columns), density=0.05, format="csr", rng=rng).astype(dtype)
    starts = rng.integers(0, 180, 40)  # any order, rows shared
    stops = starts + rng.integers(0, 20, 40)
    assert (starts == stops).any()
    weights = rng.normal(size=200)
    dense = rows.toarray().astype(np.float64)
    for weight in (None, weights):
        sums = sparse_sums(rows, starts, stops, weights=weight)
        scaled = dense if weight is None else dense * weights[:, None]
        expected = [scaled[i:j].sum(axis=0) for i, j in zip(starts, stops, strict=True)]
        np.testing.assert_allclose(sums.toarray(), expected, rtol=1e-13, atol=1e-15)
        stored = sp.csr_array((sums.data, sums.indices, sums.indptr), shape=sums.shape)
        assert stored.has_canonical_format
        patterns = [rows[i:j].indices for i, j in zip(starts, stops, strict=True)]
        assert sums.nnz == sum(len(np.unique(pattern)) for pattern in patterns)
        by = rng.uniform(1.0, 2.0, 40)
        parts = sparse_sums(rows, starts, stops, weights=weight, divisor=by)
        np.testing.assert_allclose(parts.toarray(), sums.toarray() / by[:, None], rtol=1e-15)


@pytest.mark.parametrize("n_columns", [5, 60, 3000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremes_and_moments_are_those_of_dense_rows(n_columns, dtype):
    rng = np.random.default_rng(n_columns)
    rows = sp.random_array((200, n_columns), density=0.3, format="csr", rng=rng).astype(dtype)
    rows.data -= dtype(0.5)
    rows.data[::7] = 0.0  # stored zeros are zeros
    starts = rng.integers(0, 180, 40)
    stops = starts + rng.integers(1, 20, 40)  # some of one row, which may be filled
    bags = [rows.toarray()[i:j].astype(np.float64) for i, j in zip(starts, stops, strict=True)]
    found = sparse_range(rows, starts, stops)
    expected = [np.concatenate([bag.min(axis=0), bag.max(axis=0)]) for bag in bags]
    np.testing.assert_array_equal(found.toarray(), expected)
    assert found.dtype == dtype
    assert (found.data != 0.0).all()
    moments = sparse_moments(rows, starts, stops)
    expected = [np.concatenate([bag.mean(axis=0), bag.std(axis=0)]) for bag in bags]
    np.testing.assert_allclose(moments.toarray(), expected, atol=10 * np.finfo(dtype).eps)
    assert moments.dtype == dtype
    for made in (found, moments):
        assert sp.csr_array((made.data, made.indices, made.indptr)).has_canonical_format


def test_extremes_of_columns_without_zeros():
    rows = sp.csr_array([[2.0, -3.0, 1.0], [4.0, -1.0, 0.0], [3.0, -2.0, 5.0]])
    found = sparse_range(rows, np.array([0, 0]), np.array([3, 1])).toarray()
    np.testing.assert_array_equal(found, [[2, -3, 0, 4, -1, 5], [2, -3, 1, 2, -3, 1]])


def test_extremes_and_moments_of_whole_numbers():
    rows, starts, stops = sp.csr_array([[1, 0], [2, 3]]), np.array([0]), np.array([2])
    np.testing.assert_array_equal(sparse_range(rows, starts, stops).toarray(), [[1, 0, 2, 3]])
    found = sparse_moments(rows, starts, stops).toarray()
    np.testing.assert_allclose(found, [[1.5, 1.5, 0.5, 1.5]])


def test_a_column_that_is_stored_twice_is_the_sum_of_both():
    rows = sp.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2, 2])), (2, 1))
    starts, stops = np.array([0]), np.array([2])
    np.testing.assert_array_equal(sparse_range(rows, starts, stops).toarray(), [[0.0, 3.0]])
    np.testing.assert_allclose(sparse_moments(rows, starts, stops).toarray(), [[1.5, 1.5]])


def test_nan_is_passed_on():
    rows = sp.csr_array([[2.0, np.nan], [np.nan, 1.0], [3.0, 5.0]])
    found = sparse_range(rows, np.array([0, 2]), np.array([3, 3])).toarray()
    np.testing.assert_array_equal(found, [[np.nan] * 4, [3.0, 5.0, 3.0, 5.0]])


def test_no_bit_depends_on_threads_or_chunks(monkeypatch):
    from bagwise.bags import _sparse_sums

    rng = np.random.default_rng(0)
    rows = sp.random_array((3000, 50), density=0.1, format="csr", rng=rng)
    bags = Bags(rows, np.arange(0, 3001, 30))
    for reduce in (sparse_sums, sparse_range, sparse_moments):
        once = reduce(*bags.segments, n_threads=1)
        with monkeypatch.context() as patch:
            patch.setattr(_sparse_sums, "_VALUES_PER_RANGE", 500)
            several = reduce(*bags.segments, n_threads=3)
        chunks = BagSource(bags).concatenate(
            lambda chunk, reduce=reduce: reduce(chunk.instances, chunk.starts, chunk.stops)
        )
        for other in (several, chunks):
            assert (once.toarray() == other.toarray()).all()
