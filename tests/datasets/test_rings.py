"""The two examples of section 4.1 of the SparseMI paper: who lies where, in which bags."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bagwise.bags import segment_max
from bagwise.datasets import make_ring_bags, make_three_class_bags

CENTERS = np.array([[-2, 2], [2, 2], [2, -2], [-2, -2]])


def _has(data, label):
    offsets = data.bags.offsets
    return segment_max((data.instance_y == label).astype(float), offsets[:-1], offsets[1:]) > 0


def test_a_ring_bag_is_positive_if_it_has_an_instance_in_the_center():
    data = make_ring_bags(400, random_state=3)
    assert_array_equal(_has(data, 1), data.y == 1)
    assert data.y.sum() == 200
    assert data.label_names == ("ring only", "center")


def test_ring_and_center_are_where_they_should_be():
    data = make_ring_bags(2000, radius=5.0, width=0.1)
    points, key = data.bags.instances, data.instance_y == 1
    distance = np.linalg.norm(points, axis=1)
    assert_allclose(distance[~key].mean(), 5.0, atol=0.01)
    assert_allclose(distance[~key].std(), 0.1, rtol=0.05)
    assert_allclose(points[~key].mean(axis=0), 0, atol=0.15)  # all around
    assert_allclose(points[key].mean(axis=0), 0, atol=0.01)
    assert_allclose(points[key].std(axis=0), 0.1, rtol=0.1)
    assert_array_equal(data.bags.instance_names == "center", key)


def test_number_of_keys():
    # One, and a fifth of the others.
    data = make_ring_bags(4000, min_size=6, max_size=6, key_rate=0.2, positive_share=1.0)
    assert_allclose(data.instance_y.sum() / 4000, 1 + 5 * 0.2, rtol=0.03)
    alone = make_ring_bags(50, key_rate=0.0, positive_share=1.0)
    assert alone.instance_y.sum() == 50
    full = make_ring_bags(50, key_rate=1.0, positive_share=1.0)
    assert full.instance_y.all()
    none = make_ring_bags(50, positive_share=0.0)
    assert not none.instance_y.any()


def test_key_instances_have_no_fixed_place():
    data = make_ring_bags(900, min_size=3, max_size=3, key_rate=0.0, positive_share=1.0)
    places = np.flatnonzero(data.instance_y) % 3
    assert_allclose(np.bincount(places) / 900, 1 / 3, atol=0.06)


def test_sizes_are_even_between_the_limits():
    data = make_ring_bags(3000, min_size=2, max_size=4)
    assert_allclose(np.bincount(data.bags.sizes)[2:] / 3000, 1 / 3, atol=0.04)


def test_three_classes():
    data = make_three_class_bags(300, random_state=1)
    assert np.bincount(data.y).tolist() == [100, 100, 100]
    for label in (0, 1):
        assert_array_equal(_has(data, label), data.y == label)
    assert (data.instance_y[np.repeat(data.y, data.bags.sizes) == 2] == 2).all()


def test_three_classes_are_made_of_the_four_gaussians_of_the_paper():
    data = make_three_class_bags(3000)
    gaussian = np.char.replace(data.bags.instance_names.astype(str), "Gaussian ", "").astype(int)
    for number, center in enumerate(CENTERS, start=1):
        points = data.bags.instances[gaussian == number]
        assert_allclose(points.mean(axis=0), center, atol=0.03)
        assert_allclose(points.std(axis=0), 0.25, rtol=0.05)
    assert_array_equal(np.select([gaussian == 1, gaussian == 3], [0, 1], 2), data.instance_y)


@pytest.mark.parametrize("make", [make_ring_bags, make_three_class_bags])
def test_reproducible(make):
    first, again, other = make(30), make(30), make(30, random_state=1)
    assert_array_equal(first.bags.instances, again.bags.instances)
    assert_array_equal(first.y, again.y)
    assert first.bags.instances.shape != other.bags.instances.shape
    assert_array_equal(
        make(30, random_state=np.random.default_rng(0)).bags.instances, first.bags.instances
    )


@pytest.mark.parametrize("make", [make_ring_bags, make_three_class_bags])
def test_bags_carry_the_truth(make):
    data = make(30)
    assert_array_equal(data.bags.instance_labels, data.instance_y)
    assert_array_equal(data.bags.labels, data.y)
    assert "Fu et al. 2010" in data.description


@pytest.mark.parametrize("make", [make_ring_bags, make_three_class_bags])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_bags": 0}, "n_bags must be a whole number, at least"),
        ({"min_size": 0}, "min_size must be a whole number, at least 1"),
        ({"min_size": 5, "max_size": 4}, "max_size must be a whole number, at least 5"),
        ({"width": -1}, "width must be a finite number, at least 0"),
        ({"key_rate": 1.5}, "key_rate must be a number from 0 to 1"),
    ],
)
def test_impossible_arguments(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_impossible_arguments_of_one():
    with pytest.raises(ValueError, match=r"n_bags must be a whole number, at least 3. Got 2"):
        make_three_class_bags(2)
    with pytest.raises(ValueError, match="radius"):
        make_ring_bags(radius=np.inf)
    with pytest.raises(ValueError, match="positive_share"):
        make_ring_bags(positive_share=True)
