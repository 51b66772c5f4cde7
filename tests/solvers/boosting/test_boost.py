"""Boosting on bags: stumps by brute force, derivatives by differences."""

import numpy as np
import pytest

from bagwise.solvers import Stumps, boost_bags, log_odds_of_missed
from bagwise.solvers.boosting._boost_kernels import fill_pull

OFFSETS = np.array([0, 3, 4, 9, 12])
SIGN = np.array([1.0, -1.0, -1.0, 1.0])
LOSSES = ["noisy_or", "isr", "average"]


@pytest.fixture
def rows():
    return np.random.default_rng(0).integers(0, 5, (12, 3)).astype(float)


def test_no_stump_agrees_better(rows):
    stumps = Stumps(rows)
    rng = np.random.default_rng(1)
    for _ in range(20):
        pull = rng.normal(size=12)
        found, values = stumps(pull)
        every = [
            sign * np.where(rows[:, k] > threshold, 1.0, -1.0)
            for k in range(3)
            for threshold in (-1.0, 0.5, 1.5, 2.5, 3.5)
            for sign in (-1.0, 1.0)
        ]
        assert pull @ values == pytest.approx(max(h @ pull for h in every))
        again = np.where(rows[:, found.feature] > found.threshold, found.sign, -found.sign)
        np.testing.assert_array_equal(values, again)


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("loss", range(3))
def test_derivatives(loss, scale):
    rng = np.random.default_rng(2)
    scores, weight = scale * rng.normal(size=12), rng.random(4) + 0.5
    pull, unused = np.empty(12), np.empty(12)
    fill_pull(loss, scores, OFFSETS, SIGN, weight, pull)
    for k in range(12):
        step = 1e-5 * np.eye(12)[k]
        ahead, behind = (
            fill_pull(loss, scores + way * step, OFFSETS, SIGN, weight, unused) for way in (1, -1)
        )
        expected = -(ahead - behind) / 2e-5
        assert pull[k] == pytest.approx(expected, rel=1e-5, abs=1e-9 * (1.0 + abs(ahead) * 1e3))


def test_the_constant_of_averages_is_half_the_log_odds(rows):
    weight = np.array([1.0, 2.0, 0.5, 3.0])
    result = boost_bags(Stumps(rows), OFFSETS, SIGN, weight, loss="average", max_iter=1)
    assert result.intercept == pytest.approx(0.5 * np.log(4.0 / 2.5), rel=1e-2)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_never_rises(rows, loss):
    result = boost_bags(Stumps(rows), OFFSETS, SIGN, loss=loss, max_iter=30)
    assert (np.diff(result.history) < 0).all()
    assert len(result.x) == len(result.learners) == len(result.history) - 1


def test_losses_have_names(rows):
    with pytest.raises(ValueError, match="loss of boost_bags must be one of"):
        boost_bags(Stumps(rows), OFFSETS, SIGN, loss="max")  # type: ignore[arg-type]


def test_log_odds_of_missed():
    a = np.array([1e-5, 0.3, 5.0])
    P = 1.0 - np.exp(-a)
    np.testing.assert_allclose(log_odds_of_missed(a), np.log(P / (1.0 - P)), rtol=1e-6)
    np.testing.assert_allclose(log_odds_of_missed(np.array([1e-20, 1e3])), [np.log(1e-20), 1e3])
