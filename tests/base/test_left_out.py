"""Folds of bags that are left out."""

import numpy as np
import pytest

from bagwise.base import dealt_folds


@pytest.mark.parametrize("seed", range(5))
def test_folds_are_even_and_equal_bags_stay_together(seed):
    rng = np.random.default_rng(seed)
    place = rng.permutation(20) / 7.0
    sign = np.where(rng.permutation(20) < 8, 1.0, -1.0)
    fold, n_distinct = dealt_folds(place, sign, 3)
    assert n_distinct == (8, 12)
    for side in (1.0, -1.0):
        assert np.ptp(np.bincount(fold[sign == side], minlength=3)) <= 1
    copies = rng.permutation(np.repeat(np.arange(20), 1 + rng.integers(0, 3, 20)))
    again, n_again = dealt_folds(place[copies] * (1.0 + 1e-14), sign[copies], 3)
    np.testing.assert_array_equal(again, fold[copies])
    assert n_again == n_distinct


def test_a_class_without_bags_has_none():
    assert dealt_folds(np.arange(4.0), np.ones(4), 3)[1] == (4, 0)
