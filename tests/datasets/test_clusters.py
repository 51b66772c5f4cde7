"""Clusters of bags: their sizes, and where their concepts lie."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bagwise.bags import segment_max
from bagwise.datasets import make_cluster_bags


def test_every_bag_has_its_own_concept_and_no_other():
    data = make_cluster_bags(300, n_clusters=4)
    offsets = data.bags.offsets
    for cluster in range(4):
        shown = (data.instance_y == cluster).astype(float)
        assert_array_equal(segment_max(shown, offsets[:-1], offsets[1:]) > 0, data.y == cluster)


@pytest.mark.parametrize(
    ("n_bags", "weights", "expected"),
    [
        (90, None, [30, 30, 30]),
        (100, None, [34, 33, 33]),
        (60, [3, 2, 1], [30, 20, 10]),
        (10, [0.5, 0.26, 0.24], [5, 3, 2]),
    ],
)
def test_cluster_sizes(n_bags, weights, expected):
    data = make_cluster_bags(n_bags, weights=weights)
    assert np.bincount(data.y).tolist() == expected


def test_concepts_and_background():
    data = make_cluster_bags(3000, n_clusters=2, n_features=3, separation=4.0)
    for label, mean in ((0, [4, 0, 0]), (1, [0, 4, 0]), (-1, [0, 0, 0])):
        points = data.bags.instances[data.instance_y == label]
        assert_allclose(points.mean(axis=0), mean, atol=0.1)
        assert_allclose(points.std(axis=0), 1.0, atol=0.1)
    assert_array_equal(data.bags.instance_names == "background", data.instance_y == -1)


def test_key_rate():
    data = make_cluster_bags(3000, min_size=5, max_size=5, key_rate=0.25)
    assert_allclose((data.instance_y >= 0).sum() / 3000, 1 + 4 * 0.25, rtol=0.03)


def test_reproducible():
    first, again, other = (make_cluster_bags(40, random_state=s) for s in (2, 2, 3))
    assert_array_equal(first.bags.instances, again.bags.instances)
    assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_clusters": 1}, "n_clusters must be a whole number, at least 2"),
        ({"n_bags": 2}, "n_bags must be a whole number, at least 3"),
        ({"n_features": 2}, "n_features must be a whole number, at least 3"),
        ({"separation": -1}, "separation"),
        ({"key_rate": 2}, "key_rate"),
        ({"weights": [1, 1]}, "weights must be 3 positive numbers"),
        ({"weights": [1, 0, 1]}, "weights must be 3 positive numbers"),
        ({"n_bags": 10, "weights": [1000, 1, 1000]}, "cluster 1 without any of the 10 bags"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_cluster_bags(**arguments)
