"""CitationKNNROI: instances are scored as bags of one."""

import numpy as np
import pytest

from bagwise import Bags
from bagwise.datasets import load_digit_bags
from bagwise.neighbors import CitationKNN, CitationKNNROI


@pytest.fixture(scope="module")
def data():
    return load_digit_bags()


@pytest.mark.parametrize("kind", ["min", "max", "average"])
def test_an_instance_is_a_bag_of_one_by_the_least_distance(data, kind):
    train, new = data.bags[:80], data.bags[80:90]
    model = CitationKNNROI(3, 3, distance=kind).fit(train, data.y[:80])
    plain = CitationKNN(3, 3, distance=kind).fit(train, data.y[:80])
    nearest = CitationKNN(3, 3, distance="min").fit(train, data.y[:80])
    alone = Bags(new.instances, np.arange(new.n_instances + 1))
    np.testing.assert_allclose(
        model.instance_decision_function(new), nearest.decision_function(alone), atol=1e-12
    )
    np.testing.assert_array_equal(model.decision_function(new), plain.decision_function(new))


def test_key_instances_are_found_more_often_than_by_chance(data):
    train, test = np.arange(0, len(data.bags), 2), np.arange(1, len(data.bags), 2)
    model = CitationKNNROI(5, 5).fit(data.bags[train], data.y[train])
    new, y = data.bags[test], data.y[test]
    keys = model.key_instances(new)[y == 1]
    first, sizes = new.offsets[:-1][y == 1], new.sizes[y == 1]
    is_key = new.instance_labels == 3
    chance = (np.add.reduceat(is_key, new.offsets[:-1])[y == 1] / sizes).mean()
    assert is_key[first + keys].mean() > chance + 0.2


def test_without_instances_there_are_no_scores_of_them():
    with pytest.raises(ValueError, match="distance"):
        CitationKNNROI(distance="precomputed").fit(np.eye(3), [0, 1, 1])
