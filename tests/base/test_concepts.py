"""The direction of likely key instances."""

import numpy as np

from bagwise.base import key_direction


def test_direction_of_single_instances_is_the_difference_of_weighted_means():
    rng = np.random.default_rng(0)
    rows, weight = rng.normal(size=(12, 3)), rng.uniform(0.5, 2.0, 12)
    sign = np.where(np.arange(12) % 3 == 0, 1.0, -1.0)
    apart = np.subtract(
        *(np.average(rows[sign == s], axis=0, weights=weight[sign == s]) for s in (1.0, -1.0))
    )
    along = key_direction(rows, np.arange(13), sign, weight)
    np.testing.assert_allclose(along, apart / np.linalg.norm(apart), atol=1e-12)


def test_no_direction_between_equal_instances():
    rows = np.ones((6, 2))
    assert key_direction(rows, np.arange(0, 7, 2), np.array([1.0, -1.0, 1.0]), np.ones(3)) is None
