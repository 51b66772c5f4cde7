"""Sums of bags that stay sparse, beside sums of the same rows made dense."""

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise.bags import Bags, BagSource, sparse_sums


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


def test_no_bit_depends_on_threads_or_chunks(monkeypatch):
    from bagwise.bags import _sparse_sums

    rng = np.random.default_rng(0)
    rows = sp.random_array((3000, 50), density=0.1, format="csr", rng=rng)
    bags = Bags(rows, np.arange(0, 3001, 30))
    once = sparse_sums(*bags.segments, n_threads=1)
    monkeypatch.setattr(_sparse_sums, "_VALUES_PER_RANGE", 500)
    several = sparse_sums(*bags.segments, n_threads=3)
    chunks = BagSource(bags).concatenate(
        lambda chunk: sparse_sums(chunk.instances, chunk.starts, chunk.stops)
    )
    for other in (several, chunks):
        assert (once.toarray() == other.toarray()).all()
