"""Bags are known again by their instances, whatever else changes."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise import Bags
from bagwise.bags import bag_digests
from bagwise.exceptions import InvalidBagsError

OFFSETS = np.array([0, 1, 4, 9, 12])


def _matrix():
    rng = np.random.default_rng(0)
    return np.where(rng.random((12, 5)) < 0.5, rng.normal(size=(12, 5)), 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kind", ["csr", "csr, 64 bits", "stored zeros", "minus zero", "by columns", "shuffled", "file"]
)
def test_what_does_not_matter(kind, dtype, tmp_path):
    X = _matrix().astype(dtype)
    expected = bag_digests(Bags(_matrix(), OFFSETS))
    shuffled = np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(OFFSETS)])
    if kind == "file":
        Bags(X, OFFSETS).write(tmp_path / "x.bags")
        bags = Bags.open(tmp_path / "x.bags")
    elif kind.startswith("csr"):
        matrix = sp.csr_array(X)
        if "64" in kind:
            matrix.indices, matrix.indptr = (
                part.astype(np.int64) for part in (matrix.indices, matrix.indptr)
            )
        bags = Bags(matrix, OFFSETS)
    elif kind == "stored zeros":
        full = sp.csr_array(np.where(X == 0, 7, X))
        full.data[full.data == 7] = 0
        bags = Bags(full, OFFSETS)
    elif kind == "minus zero":
        bags = Bags(np.where(X == 0, np.array(-0.0, dtype), X), OFFSETS)
    elif kind == "by columns":
        bags = Bags(np.asfortranarray(X), OFFSETS)
    else:
        bags = Bags(X[shuffled], OFFSETS)
    assert bag_digests(bags).tolist() == expected.tolist()


def test_a_selection_has_the_numbers_of_its_bags():
    bags = Bags(_matrix(), OFFSETS)
    chosen = [3, 0, 3]
    assert bag_digests(bags[chosen]).tolist() == bag_digests(bags)[chosen].tolist()


def test_every_value_its_place_and_its_bag_matter():
    X, numbers = np.random.default_rng(1).normal(size=(3, 5)), set()
    numbers.add(bag_digests(Bags(X[:3], [0, 3])).item())
    for i in range(3):
        for j in range(5):
            changed = X[:3].copy()
            changed[i, j] += 1e-3
            numbers.add(bag_digests(Bags(changed, [0, 3])).item())
    swapped = X[:3].copy()
    swapped[:, :2] = swapped[:, 1::-1]
    moved = X[:3].copy()
    moved[:2, 0] = moved[1::-1, 0]
    for other in (swapped, moved, X[:2], X[[0, 1, 2, 2]], X[[0, 1, 1]], np.zeros((3, 5))):
        numbers.add(bag_digests(Bags(other, [0, len(other)])).item())
    assert len(numbers) == 1 + 15 + 6


@pytest.mark.parametrize("values", [range(100), [-1, 1], [0, 1], [1, 1.5]])
def test_many_instances_have_as_many_numbers(values):
    """Also where few bits differ."""
    values = np.array(values, float)
    n_features = 4 if len(values) > 2 else 33
    X = np.random.default_rng(0).choice(values, size=(50_000, n_features))
    n_distinct = len(np.unique(X, axis=0))
    assert len(np.unique(bag_digests(Bags(X, np.arange(len(X) + 1))))) == n_distinct


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", range(5))  # pairs of features, and the one that is left
def test_what_is_no_number_is_named(layout, dtype, value, column):
    """Bags in memory are looked at when they are made; what they are made of may change since."""
    X = layout(np.ones((12, 5), dtype))
    bags = Bags(X, OFFSETS)
    assert np.isfinite(X.sum())
    values = X if isinstance(X, np.ndarray) else X.data.reshape(12, 5)
    values[7, column] = value
    what = "NaN" if np.isnan(value) else "infinity"
    place = f"bag 2 holds {what} at instance 3, feature {column}"
    with pytest.raises(InvalidBagsError, match=place):
        bag_digests(bags)
    with pytest.raises(InvalidBagsError, match=place.replace("bag 2", "bag 1")):
        bag_digests(bags[[3, 2]])
    bag_digests(bags[[3, 1]])


def test_missing_values_that_are_allowed_and_numbers_too_large_for_single_precision():
    X = _matrix()
    X[7, 3] = 1e300
    bag_digests(Bags(X, OFFSETS))
    X[8, 2] = np.nan
    allowed = Bags(X, OFFSETS, allow_nan=True)
    bag_digests(allowed)
    X[9, 2] = np.inf
    with pytest.raises(InvalidBagsError, match="bag 3 holds infinity at instance 0, feature 2"):
        bag_digests(allowed)
