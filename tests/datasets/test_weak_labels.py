"""Bags with captions: the distributions are Tables 5 and 6 of the MIMLCA paper."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bagwise.datasets import make_weak_label_bags

# Typed in from the paper: instances per bag, labels per bag in scenarios (b) and (c).
TABLE_5 = [0, 12562, 5109, 1675, 480, 146, 61, 17, 8, 6, 0, 1, 3, 1, 1, 1]
TABLE_6B = [1384, 16196, 2295, 181, 8, 3, 1, 2, 0, 1]
TABLE_6C = [0, 12225, 6247, 1325, 216, 46, 8, 3, 0, 1]


@pytest.mark.parametrize(("noisy", "table_6"), [(False, TABLE_6B), (True, TABLE_6C)])
def test_at_full_scale_the_numbers_are_those_of_the_tables(noisy, table_6):
    data = make_weak_label_bags(20071, n_labels=50, n_features=1, noisy=noisy)
    assert np.bincount(data.bags.sizes).tolist() == TABLE_5
    assert np.bincount(data.y.sum(axis=1)).tolist() == table_6
    assert data.bags.n_instances == 31147  # "a total of 31,147 faces"


@pytest.mark.parametrize("n_bags", [100, 1000])
def test_at_other_scales_they_are_in_proportion(n_bags):
    for noisy, table in ((False, TABLE_6B), (True, TABLE_6C)):
        data = make_weak_label_bags(n_bags, n_labels=20, noisy=noisy)
        for found, expected in ((data.bags.sizes, TABLE_5), (data.y.sum(axis=1), table)):
            counts = np.bincount(found, minlength=len(expected))
            assert_allclose(counts, n_bags * np.array(expected) / 20071, atol=1)


def _labels_inside(data):
    inside = np.zeros(data.y.shape, dtype=int)
    owner = np.repeat(np.arange(len(data.bags)), data.bags.sizes)
    known = data.instance_y >= 0
    np.add.at(inside, (owner[known], data.instance_y[known]), 1)
    return inside


def test_true_lists_are_the_labels_inside_each_once():
    data = make_weak_label_bags(600, noisy=False)
    assert_array_equal(_labels_inside(data), data.y)
    assert data.y.any(axis=0).all()  # every label is in some bag


def test_noisy_lists_miss_some_and_invent_some():
    data = make_weak_label_bags(2000, missing_rate=0.1)
    inside, listed = _labels_inside(data) > 0, data.y > 0
    assert (inside & ~listed).any()
    assert (listed & ~inside).any()
    assert 0.8 < (inside & listed).sum() / inside.sum() < 0.95


def test_nothing_is_missing_where_it_fits_and_missing_rate_is_zero():
    data = make_weak_label_bags(2000, missing_rate=0.0)
    inside, listed = _labels_inside(data) > 0, data.y > 0
    fits = inside.sum(axis=1) <= listed.sum(axis=1)
    assert not (inside & ~listed)[fits].any()
    nothing = make_weak_label_bags(300, missing_rate=1.0)
    assert not ((_labels_inside(nothing) > 0) & (nothing.y > 0)).any()


def test_instances_of_a_label_share_a_center_and_distractors_do_not():
    data = make_weak_label_bags(3000, n_labels=5, n_features=40, separation=3.0)
    points = data.bags.instances
    for label in range(5):
        assert_allclose(points[data.instance_y == label].std(axis=0).mean(), 1.0, rtol=0.05)
    assert_allclose(points[data.instance_y == -1].std(), np.sqrt(1 + 3.0**2), rtol=0.05)
    assert_array_equal(data.bags.instance_names == "distractor", data.instance_y == -1)


def test_number_of_labels_by_default():
    assert make_weak_label_bags(1000).y.shape == (1000, round(1000 * 5873 / 20071))


@pytest.mark.parametrize("n_bags", [2, 3, 5, 8, 13, 40])
@pytest.mark.parametrize("noisy", [False, True])
def test_small_sets(n_bags, noisy):
    data = make_weak_label_bags(n_bags, noisy=noisy)
    assert len(data.bags) == n_bags
    assert (_labels_inside(data).sum(axis=1) <= data.bags.sizes).all()


def test_reproducible():
    first, again, other = (make_weak_label_bags(100, random_state=s) for s in (2, 2, 3))
    assert_array_equal(first.bags.instances, again.bags.instances)
    assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_bags": 1}, "n_bags must be a whole number, at least 2"),
        ({"n_labels": 1}, "n_labels must be a whole number, at least 2"),
        ({"n_bags": 100, "n_labels": 500}, "n_labels must be from 3 to .* Got 500"),
        ({"n_bags": 20071, "n_labels": 8}, "n_labels must be from 9 to 21405"),
        ({"n_features": 0}, "n_features"),
        ({"separation": -1}, "separation"),
        ({"missing_rate": 3}, "missing_rate"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_weak_label_bags(**arguments)
