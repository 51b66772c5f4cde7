"""Rows that are read block by block are those of the matrix."""

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise import Bags
from bagwise.bags import SelectedRows, _matrix, rows_of
from bagwise.exceptions import InvalidBagsError

SIZES = [3, 1, 7, 2, 5, 4, 6, 2]
FOLD = [5, 0, 2, 7, 4]
KEYS = [
    slice(0, 4),  # within a bag
    slice(1, 3),
    slice(3, 12),
    slice(0, None),
    slice(5, 5),
    slice(2, 20, 3),
    slice(None, None, -1),
    np.array([7, 0, 0, 20]),
    np.array([], np.int64),
]


def _bags(layout, tmp_path, dtype=np.float64):
    X = np.random.default_rng(0).normal(size=(sum(SIZES), 6)).astype(dtype)
    X[np.abs(X) < 0.5] = 0.0
    bags = Bags(sp.csr_array(X) if layout == "sparse" else X, np.cumsum([0, *SIZES]))
    if layout == "stored":
        bags.write(tmp_path / "some.bags")
        return Bags.open(tmp_path / "some.bags")
    return bags.map_instances(np.square, lazy=True) if layout == "lazy" else bags


def _dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


@pytest.mark.parametrize("layout", ["dense", "stored", "sparse", "lazy"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_indexing_is_that_of_the_matrix(layout, dtype, tmp_path):
    bags = _bags(layout, tmp_path, dtype)
    rows, expected = SelectedRows(bags[FOLD]), bags[FOLD].instances
    assert rows.shape == expected.shape
    assert rows.dtype == expected.dtype == dtype
    for key in KEYS:
        assert sp.issparse(rows[key]) == sp.issparse(expected)
        np.testing.assert_array_equal(_dense(rows[key]), _dense(expected)[key])


@pytest.mark.parametrize("layout", ["dense", "stored", "sparse"])
def test_only_what_would_be_a_large_copy_is_read_in_blocks(layout, tmp_path, monkeypatch):
    bags = _bags(layout, tmp_path)
    assert not isinstance(rows_of(bags[FOLD]), SelectedRows)
    monkeypatch.setattr(_matrix, "_CHUNK_BYTES", 100)
    assert isinstance(rows_of(bags[FOLD]), SelectedRows)
    assert not isinstance(rows_of(bags[1:4]), SelectedRows)


def test_lazy_bags_stay_lazy(tmp_path):
    bags = _bags("lazy", tmp_path)
    assert isinstance(rows_of(bags), SelectedRows)
    _ = bags.instances  # from now on they are in memory
    assert not isinstance(rows_of(bags), SelectedRows)


def test_values_that_a_function_makes_infinite_are_named():
    bags = Bags(np.array([[1.0], [2.0], [3.0], [0.0]]), [0, 1, 4])
    with np.errstate(divide="ignore"):
        rows = rows_of(bags.map_instances(lambda x: 1.0 / x, lazy=True))
        assert rows[0:3].tolist() == [[1.0], [0.5], [1.0 / 3.0]]
        for key in (slice(1, 4), slice(0, 4), np.array([0, 3])):
            with pytest.raises(InvalidBagsError, match="bag 1 holds infinity at instance 2"):
                rows[key]


def test_no_array_is_made_of_them_by_chance(tmp_path):
    with pytest.raises(TypeError, match="block by block"):
        np.asarray(SelectedRows(_bags("dense", tmp_path)))
