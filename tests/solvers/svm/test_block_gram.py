"""Systems that reuse a factor of the fixed rows, against numpy."""

from itertools import pairwise

import numpy as np
import pytest

import bagwise.solvers.svm._block_gram as block_gram
from bagwise._threads import ordered_map
from bagwise.solvers.operators._gram_kernels import add_symmetric
from bagwise.solvers.svm._block_gram import (
    BlockGram,
    BorderedSystem,
    DenseSystem,
    Systems,
    TiledCholesky,
    cholesky,
)


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(block_gram, "_TILE", 16)
    monkeypatch.setattr(block_gram, "_DENSE", 10)


def _blocks(p=4, m=60, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(p + m, 12))
    K = root @ root.T
    fixed = K[p:, p:].astype(dtype)
    return BlockGram(K[:p, :p].copy(), K[:p, p:].copy(), fixed), rng.uniform(0.5, 2.0, p + m)


def test_dense_and_some():
    gram, _ = _blocks()
    K = np.block([[gram.head, gram.cross], [gram.cross.T, gram.fixed]])
    rows = np.array([0, 2, 3, 5, 40, 63])
    np.testing.assert_array_equal(gram.dense(), K)
    np.testing.assert_array_equal(gram.some(rows), K[np.ix_(rows, rows)])
    np.testing.assert_array_equal(gram.diagonal(), K.diagonal())
    assert len(gram) == 64
    np.testing.assert_array_equal(BlockGram.of(K).dense(), K)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 48, 60])
def test_tiled_factor(n, small_tiles):
    gram, ridge = _blocks(p=0)
    rows = np.sort(np.random.default_rng(n).permutation(60)[:n])
    matrix = gram.fixed[np.ix_(rows, rows)] + np.diag(ridge[rows])
    factor = TiledCholesky(gram.fixed, ridge[rows], rows)
    lower = np.linalg.cholesky(matrix)
    right = np.random.default_rng(0).normal(size=(n, 3))
    np.testing.assert_allclose(factor.forward(right), np.linalg.solve(lower, right), atol=1e-11)
    np.testing.assert_allclose(
        factor.backward(right[:, 0]), np.linalg.solve(lower.T, right[:, 0]), atol=1e-11
    )


def test_threads_do_not_change_the_factor(small_tiles, monkeypatch):
    gram, ridge = _blocks(p=0)

    def panels():
        [factor] = ordered_map(
            lambda _: TiledCholesky(gram.fixed, ridge, np.arange(60)), [None], n_threads=1
        )
        return np.hstack([panel.ravel() for panel in factor.panels])

    monkeypatch.setenv("BAGWISE_NUM_THREADS", "1")
    one = panels()
    monkeypatch.setenv("BAGWISE_NUM_THREADS", "2")
    np.testing.assert_array_equal(panels(), one)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bordered_system_follows_the_rows(small_tiles, dtype):
    gram, ridge = _blocks(dtype=dtype)
    K = gram.dense() + np.diag(ridge)
    systems = Systems(gram.fixed, ridge)
    everything = np.arange(64)
    first = np.setdiff1d(everything, [2, 20, 40])
    right = np.random.default_rng(1).normal(size=(64, 3))
    factors = []
    for rows in (
        first,
        np.setdiff1d(everything, [0, 1, 20, 30, 31]),  # takes two rows and adds one
        np.setdiff1d(everything, [40, 31]),
        everything,
        np.arange(4, 64),  # no head
        np.arange(0, 64, 2),  # too far from the factor
    ):
        system = systems.of(gram, rows)
        assert isinstance(system, BorderedSystem)
        assert systems.of(gram, rows.copy()) is system
        expected = np.linalg.solve(K[np.ix_(rows, rows)], right[rows])
        np.testing.assert_allclose(system.solve(right[rows, 0]), expected[:, 0], atol=1e-11)
        np.testing.assert_allclose(system.form(right[rows]), right[rows].T @ expected, atol=1e-10)
        factors.append(systems.factor)
    assert len(set(map(id, factors[:5]))) == 1
    assert factors[5] is not factors[4]


def test_the_factor_outlives_a_change_of_the_other_rows(small_tiles):
    gram, ridge = _blocks()
    systems = Systems(gram.fixed, ridge)
    rows = np.arange(64)
    systems.of(gram, rows)
    factor = systems.factor
    other = BlockGram(gram.head + np.eye(4), 0.5 * gram.cross, gram.fixed)
    expected = np.linalg.solve(other.dense() + np.diag(ridge), np.ones(64))
    np.testing.assert_allclose(systems.of(other, rows).solve(np.ones(64)), expected, atol=1e-11)
    assert systems.factor is factor
    assert systems.fit(other, ridge)
    assert not systems.fit(BlockGram.of(gram.dense()), ridge)
    assert not systems.fit(other, 2.0 * ridge)


@pytest.mark.parametrize("rows", [np.arange(3, 12), np.arange(4), np.arange(0)], ids=len)
def test_few_rows_get_a_factor_of_their_own(rows, small_tiles):
    gram, ridge = _blocks()
    system = Systems(gram.fixed, ridge).of(gram, rows)
    assert isinstance(system, DenseSystem)
    matrix = gram.some(rows) + np.diag(ridge[rows])
    expected = np.linalg.solve(matrix, np.ones(len(rows)))
    np.testing.assert_allclose(system.solve(np.ones(len(rows))), expected, atol=1e-12)


def test_rounding_is_made_up_for_and_more_is_refused(small_tiles):
    root = np.random.default_rng(0).normal(size=(40, 3))
    K = root @ root.T  # singular
    lower = np.tril(cholesky(K))
    np.testing.assert_allclose(lower @ lower.T, K, atol=1e-8)
    TiledCholesky(K, np.zeros(40), np.arange(40))
    for factorise in (cholesky, lambda K: TiledCholesky(K, np.zeros(40), np.arange(40))):
        with pytest.raises(ValueError, match="positive semi-definite"):
            factorise(K - 0.1 * np.eye(40))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 3, 4, 59, 62])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_products_with_few_rows_and_with_many(dtype, m, share):
    gram, _ = _blocks(m=m, dtype=dtype)
    rng = np.random.default_rng(1)
    coef = rng.normal(size=m + 4)
    coef[4 + round(share * m) :] = 0.0
    expected = gram.dense() @ coef
    np.testing.assert_allclose(gram.times(coef), expected, atol=1e-11)


@pytest.mark.parametrize("cuts", [(0, 11), (0, 4, 11), (0, 3, 8, 11)])
def test_rows_of_a_symmetric_matrix_add_up_to_a_product(cuts):
    rng = np.random.default_rng(0)
    K = rng.normal(size=(11, 11))
    K += K.T
    coef, start = rng.normal(size=(2, 11))
    out = start.copy()
    upper = np.where(np.tri(11, k=-1, dtype=bool), np.nan, K)  # what is below is not read
    for first, last in pairwise(cuts):
        add_symmetric(upper, first, last, coef, out)
    full = np.where(np.isnan(upper), upper.T, upper)
    np.testing.assert_allclose(out, start + full @ coef, atol=1e-13)
