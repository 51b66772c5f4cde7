"""The balance of clusters: what breaks it is found, and mended by the least change."""

import numpy as np
import pytest

from bagwise.solvers.clustering._balance import Balance


@pytest.mark.parametrize("share", [0.4, 0.6, 0.99, 1.01])
@pytest.mark.parametrize("seed", range(5))
def test_an_inequality_is_broken_where_the_range_is_wider(seed, share):
    rng = np.random.default_rng(seed)
    k, direction = 4, rng.normal(size=3)
    weights = rng.normal(size=(k, 3))
    allowed = share * np.ptp(weights @ direction)
    side = Balance.of("a solver", direction, allowed, k, 3)
    found = side.violated(weights.ravel())
    kept = side.project(weights.ravel()).reshape(k, 3)
    assert np.ptp(kept @ direction) <= allowed * (1 + 1e-12)
    if share > 1.0:
        assert found is None
        np.testing.assert_array_equal(kept, weights)
        return
    row, bound = found
    along = weights @ direction
    broken = row @ weights.ravel()
    assert broken * np.linalg.norm(direction) == pytest.approx(np.ptp(along))
    assert bound == pytest.approx(share * broken)
    # The nearest numbers in a range are those at its ends; the best of all ranges is kept.
    lows = np.linspace(along.min(), along.max(), 2001)[:, None]
    moved = along - np.clip(along, lows, lows + allowed)
    least = np.square(moved).sum(axis=1).min() / (direction @ direction)
    assert np.square(kept - weights).sum() <= least * (1 + 1e-12)
