"""One key instance per positive bag, and a distractor that only positive bags have."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bagwise.datasets import make_key_instance_bags


def _per_bag(data, flags):
    return np.add.reduceat(flags.astype(int), data.bags.offsets[:-1])


def test_every_positive_bag_has_one_key_instance_and_no_other_bag_has_any():
    data = make_key_instance_bags(300, random_state=5)
    assert_array_equal(_per_bag(data, data.instance_y == 1), data.y)
    assert_array_equal(data.bags.instance_names == "key", data.instance_y == 1)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.5, 50), (1.0, 100)])
def test_distractors_are_in_that_share_of_positive_bags_only(share, expected):
    data = make_key_instance_bags(200, distractor_share=share)
    number = _per_bag(data, data.bags.instance_names == "distractor")
    assert number[data.y == 1].sum() == expected
    assert number[data.y == 0].sum() == 0
    assert number.max() <= 1


def test_distractors_in_negative_bags():
    data = make_key_instance_bags(200, distractor_share=0.0, negative_distractor_share=0.25)
    number = _per_bag(data, data.bags.instance_names == "distractor")
    assert (number[data.y == 1].sum(), number[data.y == 0].sum()) == (0, 25)
    small = make_key_instance_bags(
        20, min_size=1, max_size=1, distractor_share=0.0, negative_distractor_share=1.0
    )
    assert_array_equal(small.bags.instance_names == "distractor", small.y == 0)


def test_kinds_have_their_means_and_unit_deviation():
    data = make_key_instance_bags(
        2000, n_features=3, separation=5.0, distractor_separation=2.0, distractor_share=1.0
    )
    means = {"background": [0, 0, 0], "key": [5, 0, 0], "distractor": [0, 2, 0]}
    for kind, mean in means.items():
        points = data.bags.instances[data.bags.instance_names == kind]
        assert_allclose(points.mean(axis=0), mean, atol=0.15)
        assert_allclose(points.std(axis=0), 1.0, atol=0.1)


@pytest.mark.parametrize("number", [1, 3, 12, None])
def test_bags_have_as_many_distractors_as_asked_for_or_as_fit(number):
    data = make_key_instance_bags(
        100, distractor_share=1.0, negative_distractor_share=1.0, n_distractors=number
    )
    room = data.bags.sizes - data.y
    expected = room if number is None else np.minimum(number, room)
    assert_array_equal(_per_bag(data, data.bags.instance_names == "distractor"), expected)


def test_distractors_lie_at_their_angle_from_key_instances():
    data = make_key_instance_bags(
        4000, n_features=3, distractor_separation=5.0, distractor_cosine=0.6, distractor_share=1.0
    )
    points = data.bags.instances[data.bags.instance_names == "distractor"]
    assert_allclose(points.mean(axis=0), [3.0, 4.0, 0.0], atol=0.1)


def test_no_separation_means_no_difference():
    data = make_key_instance_bags(4000, separation=0.0, n_features=2, distractor_share=0.0)
    points = data.bags.instances[data.instance_y == 1]
    assert_allclose(points.mean(axis=0), 0.0, atol=0.1)


def test_reproducible():
    first, again, other = (make_key_instance_bags(40, random_state=s) for s in (2, 2, 3))
    assert_array_equal(first.bags.instances, again.bags.instances)
    assert first.bags.n_instances != other.bags.n_instances
    assert first.target == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_bags": 2.0}, "n_bags must be a whole number"),
        ({"n_features": 1}, "n_features must be a whole number, at least 2"),
        ({"min_size": 1}, "min_size must be at least 2 if distractor_share > 0"),
        ({"separation": float("nan")}, "separation must be a finite number"),
        ({"distractor_separation": -2}, "distractor_separation"),
        ({"distractor_share": 2}, "distractor_share must be a number from 0 to 1. Got 2"),
        ({"distractor_cosine": 1.5}, "distractor_cosine must be a number from 0 to 1"),
        ({"n_distractors": 0}, "n_distractors must be a whole number, at least 1"),
        ({"negative_distractor_share": -0.1}, "negative_distractor_share"),
        ({"positive_share": "half"}, "positive_share"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_key_instance_bags(**arguments)
