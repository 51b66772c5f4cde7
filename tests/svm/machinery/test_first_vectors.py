"""First vectors: equal instances count once, and lengths have the unit of the features."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from bagwise import Bags
from bagwise.svm.machinery._first_vectors import cluster_centres, typical_length
from bagwise.testing import make_toy_bags

BAGS = Bags.from_list(make_toy_bags(20, kind="close")[0])


def test_repeated_instances_do_not_pull_the_centres():
    bags = Bags.from_list([np.zeros((9, 1)), [[1.0]], [[10.0], [11.0]], [[11.0]]])
    for seed in range(5):
        np.testing.assert_allclose(np.sort(cluster_centres(bags, 2, seed), axis=0), [[0.5], [10.5]])


@pytest.mark.parametrize("unit", [1.0, 1e-3, 50.0])
def test_a_length_is_the_mean_distance(unit):
    bags = BAGS.map_instances(lambda X: unit * X)
    apart = bags.instances[:4]
    between_instances = pdist(np.unique(bags.instances, axis=0)).mean()
    assert len(bags.instances) <= 100
    assert typical_length(bags, apart) == pytest.approx(pdist(apart).mean())
    assert typical_length(bags, apart[:1]) == pytest.approx(between_instances)
    assert typical_length(bags, apart[[0, 0]]) == pytest.approx(between_instances)


def test_instances_that_all_coincide_have_the_length_one():
    bags = Bags.from_list([np.ones((2, 3)), np.ones((1, 3))])
    assert typical_length(bags, np.ones((1, 3))) == 1.0
