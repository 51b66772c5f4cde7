"""The multiple of a machine with the least objective."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from bagwise.solvers import best_factor


def draw(seed, n=50):
    rng = np.random.default_rng(seed)
    return rng.normal(0.5, 1.0, n), rng.uniform(0.2, 1.5, n), rng.exponential(size=n)


def objective(factor, margin, target, cost, square):
    return 0.5 * factor**2 * square + cost @ np.maximum(target - factor * margin, 0.0)


@pytest.mark.parametrize("square", [0.0, 0.1, 10.0, 1e3])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_multiple_is_better(seed, square):
    terms = *draw(seed), square
    factor, value = best_factor(*terms)
    assert 0.0 <= factor <= 2.0
    assert value == pytest.approx(objective(factor, *terms), rel=1e-14)
    found = minimize_scalar(
        objective, bounds=(0.0, 2.0), args=terms, method="bounded", options={"xatol": 1e-12}
    )
    assert value <= found.fun * (1 + 1e-12)
    assert value <= min(objective(q, *terms) for q in (0.0, 1.0, 2.0))


def test_a_large_cost_asks_for_what_rounding_took():
    """All rows reach their targets with a factor of 1 / (1 - 1e-9), and no larger one is needed."""
    margin, cost = np.array([1.0 - 1e-9, 1.0, 3.0]), np.full(3, 1e12)
    factor, value = best_factor(margin, np.ones(3), cost, 2.0)
    assert factor == pytest.approx(1.0 / (1.0 - 1e-9), rel=1e-14)
    assert value == pytest.approx(1.0, rel=1e-3)


def test_the_optimum_is_left_as_it_is():
    """A machine of two rows whose margins are 1: 1 is the best factor, to the last bit."""
    factor, value = best_factor(np.ones(2), np.ones(2), np.full(2, 5.0), 0.25)
    assert (factor, value) == (1.0, 0.125)
