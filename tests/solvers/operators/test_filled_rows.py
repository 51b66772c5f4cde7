"""Gram matrices that fill up: what they return, and that no row is computed twice."""

import numpy as np
import pytest

from bagwise.kernels import InstanceKernel
from bagwise.solvers import CachedRows, FilledRows, KernelRows, remembered
from solvers.blocks import BlockRows


def _gram(n=8, dtype=np.float64):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return (X @ X.T).astype(dtype)


def _rows(*indices):
    return np.array(indices, np.int64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_row_is_computed_once(dtype):
    gram = _gram(dtype=dtype)
    source = BlockRows(gram)
    rows_of = FilledRows(source)
    coef, columns = np.array([2.0, -1.0, 0.5]), _rows(6, 1)
    for rows in (_rows(0, 3, 5), _rows(5, 3, 7), _rows(7, 0, 3)):
        expected = coef @ gram[rows].astype(np.float64)
        np.testing.assert_allclose(rows_of.products(rows, coef), expected, rtol=1e-12)
        np.testing.assert_allclose(
            rows_of.products(rows, coef, columns), expected[columns], rtol=1e-12
        )
        np.testing.assert_array_equal(rows_of.block(rows), gram[rows])
        np.testing.assert_array_equal(rows_of.block(rows, columns), gram[np.ix_(rows, columns)])
    assert source.asked == [[0, 3, 5], [7]]


def test_a_part_of_a_row_is_computed_alone():
    gram = _gram()
    source = BlockRows(gram)
    rows_of = FilledRows(source)
    rows_of.block(_rows(2))
    rows, columns = _rows(4, 2, 6), _rows(3)
    for out in (None, np.empty((3, 1))):
        np.testing.assert_array_equal(
            rows_of.block(rows, columns, out), gram[np.ix_(rows, columns)]
        )
    np.testing.assert_array_equal(rows_of.block(_rows(5), columns), gram[_rows(5)][:, columns])
    assert source.asked == [[2], [4, 6], [4, 6], [5]]


def test_rows_that_are_repeated_are_there_already():
    gram = _gram()
    source = BlockRows(gram)
    rows_of = FilledRows(source)
    twice = rows_of.repeated(_rows(4, 2))
    index = np.append(np.arange(8), [4, 2])
    products = twice.products(_rows(2, 9), np.array([1.0, 1.0]))
    np.testing.assert_allclose(products, 2.0 * gram[2, index], rtol=1e-12)
    np.testing.assert_array_equal(twice.block(_rows(9, 2)), gram[_rows(2, 2)][:, index])
    assert source.asked == [[2]]


def test_what_fits_decides():
    gram = _gram()
    assert isinstance(remembered(BlockRows(gram), gram.nbytes), FilledRows)
    assert isinstance(remembered(BlockRows(gram), gram.nbytes - 1), CachedRows)


def _points(means):
    X = np.random.default_rng(1).normal(size=(20, 3))
    every = KernelRows.of(InstanceKernel("rbf", gamma=0.3), X, np.arange(0, 21, 4), means=True)
    return every.take(np.append(np.arange(20), means).astype(np.int64))


def test_the_whole_matrix_of_some_instances_is_formed():
    source = _points([]).take(_rows(5, 3, 9, 2))
    rows_of = FilledRows(source)
    rows_of.fill(_rows(0, 1))
    np.testing.assert_allclose(rows_of.array, source.block(np.arange(4)), rtol=1e-12)


@pytest.mark.parametrize("means", [[], [23, 20], [20, 21, 22, 23, 24]])
def test_the_whole_matrix_is_there_once_three_tenths_of_it_were_computed(means):
    source = _points(means)
    expected = source.block(np.arange(source.n))
    rows_of = FilledRows(source)
    rows_of.fill(_rows(0, 1, 10))
    assert rows_of.array is None
    rows, columns = _rows(2, 3, 4, 5, 6), _rows(0, 3, 4, 7, 8, 9, 12, 15, 17, 18)
    np.testing.assert_allclose(
        rows_of.block(rows, columns), expected[np.ix_(rows, columns)], rtol=1e-12
    )
    assert rows_of.array is None
    rows_of.fill(_rows(7, 8, 9))
    np.testing.assert_allclose(rows_of.array, expected, rtol=1e-12)
    np.testing.assert_array_equal(rows_of.array, rows_of.array.T)


def test_rows_that_are_there_do_not_count_again():
    """Of 400 entries 80 are computed, then 10, then 40 more: three tenths are 120."""
    rows_of = FilledRows(_points([]))
    rows_of.fill(_rows(0, 1, 2, 3))
    rows_of.block(_rows(0, 1, 2, 3, 10), np.arange(10))
    assert rows_of.array is None
    rows_of.fill(_rows(0, 1, 11, 12))
    assert rows_of.array is not None


def test_a_mean_counts_as_its_instances():
    """Eight of 22 rows are behind two means of four instances."""
    source = _points([23, 20])
    for ask in (
        lambda rows_of: rows_of.fill(_rows(20, 21)),
        lambda rows_of: rows_of.block(_rows(20, 21), _rows(*range(11), 20, 21)),
    ):
        rows_of = FilledRows(source)
        rows_of.fill(_rows(20))
        assert rows_of.array is None
        ask(rows_of)
        np.testing.assert_allclose(rows_of.array, source.block(np.arange(22)), rtol=1e-12)


def test_the_whole_matrix_of_other_points_is_not_formed():
    source = _points([21]).take(_rows(20, *range(9)))  # a mean before the instances
    rows_of = FilledRows(source)
    rows_of.fill(np.arange(5))
    assert rows_of.array is None
    np.testing.assert_array_equal(rows_of.block(_rows(7)), source.block(_rows(7)))
