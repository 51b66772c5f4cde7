"""Gram matrices on demand: what the cache returns, what it remembers and what it forgets."""

import numpy as np
import pytest

from bagwise.solvers import CachedRows
from solvers.blocks import BlockRows


def _gram(n=8, dtype=np.float64):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return (X @ X.T).astype(dtype)


def _rows(*indices):
    return np.array(indices, np.int64)


def test_rows_are_computed_once_while_they_are_kept():
    gram = _gram()
    source = BlockRows(gram)
    cached = CachedRows(source, 4 * gram[0].nbytes)
    assert cached.n == 8
    np.testing.assert_array_equal(cached.diagonal(), gram.diagonal())
    for rows in (_rows(0, 1), _rows(1, 2), _rows(0, 1, 2)):
        np.testing.assert_array_equal(cached.block(rows), gram[rows])
    assert source.asked == [[0, 1], [2]]
    assert cached.n_kept == 3


def test_the_rows_used_longest_ago_are_forgotten():
    gram = _gram()
    source = BlockRows(gram)
    cached = CachedRows(source, 3 * gram[0].nbytes)
    for row in (0, 1, 2, 0, 3):  # 1 makes room for 3
        cached.block(_rows(row))
    source.asked.clear()
    for row in (0, 2, 3):
        cached.block(_rows(row))
    assert source.asked == []
    cached.block(_rows(1))
    assert source.asked == [[1]]


@pytest.mark.parametrize("n_kept", [0, 0.5, 2])
def test_more_rows_than_fit_are_served(n_kept):
    gram = _gram()
    cached = CachedRows(BlockRows(gram), n_kept * gram[0].nbytes)
    for _ in range(2):
        np.testing.assert_array_equal(cached.block(np.arange(8)), gram)
    assert cached.n_kept == int(n_kept)


def test_some_columns_come_from_the_rows_that_are_kept():
    gram = _gram()
    source = BlockRows(gram)
    cached = CachedRows(source, 4 * gram[0].nbytes)
    cached.block(_rows(2, 5))
    rows = _rows(1, 2, 5)
    np.testing.assert_array_equal(cached.block(rows, rows), gram[np.ix_(rows, rows)])
    assert source.asked == [[2, 5], [1]]
    assert cached.n_kept == 2  # parts of rows are not kept


def test_narrow_rows_leave_room_for_more():
    gram = _gram()
    source = BlockRows(gram)
    cached = CachedRows(source, 4 * gram[0].nbytes)
    cached.block(_rows(0, 1, 2, 3))
    columns = _rows(1, 3, 4, 6)
    cached.narrow(columns)
    np.testing.assert_array_equal(cached.block(_rows(0, 1, 2, 3), columns), gram[:4][:, columns])
    assert source.asked == [[0, 1, 2, 3]]
    rows = np.arange(8)
    for _ in range(2):
        np.testing.assert_array_equal(cached.block(rows, columns), gram[:, columns])
    assert source.asked == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert cached.n_kept == 8
    fewer = _rows(3, 6)
    np.testing.assert_array_equal(cached.block(rows, fewer), gram[:, fewer])
    cached.narrow(fewer)
    np.testing.assert_array_equal(cached.block(rows, fewer), gram[:, fewer])
    assert len(source.asked) == 2


@pytest.mark.parametrize("columns", [None, _rows(0, 1), _rows(1, 7), _rows(3, 4, 5)])
def test_columns_that_are_not_kept_are_computed(columns):
    gram = _gram()
    cached = CachedRows(BlockRows(gram), 4 * gram[0].nbytes)
    cached.narrow(_rows(1, 3, 4, 6))
    rows = _rows(1, 2, 3)
    cached.block(rows, _rows(1, 3, 4, 6))
    expected = gram[rows] if columns is None else gram[np.ix_(rows, columns)]
    np.testing.assert_array_equal(cached.block(rows, columns), expected)
    cached.narrow(columns)  # what was kept is of no use
    assert cached.n_kept == 0
    np.testing.assert_array_equal(cached.block(rows, columns), expected)
    cached.narrow(None)
    np.testing.assert_array_equal(cached.block(rows), gram[rows])


def test_no_columns_and_no_rows():
    gram = _gram()
    cached = CachedRows(BlockRows(gram), 4 * gram[0].nbytes)
    nothing = np.empty(0, np.int64)
    assert cached.block(nothing).shape == (0, 8)
    cached.narrow(nothing)
    assert cached.block(_rows(1, 2), nothing).shape == (2, 0)


def test_less_memory_is_kept_to_and_costs_more_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    sign = np.where(X[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    computed = []
    for n_rows in (0, 6, 20, 60):
        source = BlockRows(np.exp(-((X[:, None] - X) ** 2).sum(axis=2)))
        rows = CachedRows(source, max_bytes=8 * 60 * n_rows + 7)
        for chosen in np.split(np.concatenate([rng.permutation(60) for _ in range(5)]), 60):
            rows.products(chosen, sign[chosen])
        assert rows._memory.nbytes <= 8 * 60 * n_rows + 7
        assert rows.n_kept <= n_rows
        computed.append(sum(map(len, source.asked)))
    assert computed[0] > computed[1] > computed[2] > computed[3] == 60


def test_rows_that_are_repeated():
    gram = _gram()
    cached = CachedRows(BlockRows(gram), 3 * gram[0].nbytes)
    twice = cached.repeated(_rows(4, 2))
    index = np.append(np.arange(8), [4, 2])
    np.testing.assert_array_equal(twice.block(_rows(8, 9)), gram[_rows(4, 2)][:, index])
    np.testing.assert_allclose(
        twice.products(_rows(2, 9), np.array([1.0, 1.0])), 2.0 * gram[2, index], rtol=1e-12
    )
