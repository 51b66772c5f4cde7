"""Thresholds of scores: no other makes fewer errors, ties and rounding are settled."""

import numpy as np
import pytest

from bagwise.base import best_threshold
from bagwise.base._threshold import matching_threshold


def errors(threshold, scores, sign, weight):
    return weight[np.where(scores > threshold, 1.0, -1.0) != sign].sum()


@pytest.mark.parametrize("seed", range(20))
def test_threshold_makes_the_fewest_errors(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, 12) / 2.0  # many equal ones
    sign = np.where(rng.permutation(12) < rng.integers(2, 10), 1.0, -1.0)
    weight = rng.integers(1, 4, 12) * 0.1
    threshold = best_threshold(scores, sign, weight)
    everywhere = np.linspace(-3, 3, 241)
    best = min(errors(t, scores, sign, weight) for t in everywhere)
    assert errors(threshold, scores, sign, weight) == pytest.approx(best)
    assert not np.isin(threshold, scores)
    order = rng.permutation(12)
    assert best_threshold(scores[order], sign[order], weight[order]) == threshold
    copies = np.repeat(np.arange(12), np.rint(weight * 10).astype(int))
    assert best_threshold(scores[copies], sign[copies], np.ones(len(copies))) == threshold


def test_threshold_has_the_most_room():
    scores, ones = np.array([0.0, 1.0, 4.0, 5.0]), np.ones(4)
    assert best_threshold(scores, np.array([-1.0, -1.0, 1.0, 1.0]), ones) == 2.5
    assert best_threshold(scores, np.array([-1.0, 1.0, -1.0, 1.0]), ones) == 0.5  # or 4.5
    # All bags alike is as good as anything: beyond the last score, unless a gap is wider.
    even = np.array([0.0, 1.0, 2.0, 3.0])
    assert best_threshold(even, np.array([1.0, -1.0, 1.0, 1.0]), ones) == -1.0
    assert best_threshold(even, np.array([-1.0, -1.0, 1.0, -1.0]), ones) == 4.0
    assert best_threshold(3.0 * even, np.array([1.0, -1.0, 1.0, 1.0]), ones) == 4.5


def test_threshold_of_bags_that_cannot_be_told_apart():
    assert best_threshold(np.array([0.0, 1.0]), np.ones(2), np.ones(2)) == 0.0
    sign = np.array([-1.0, 1.0, 1.0])
    assert best_threshold(np.zeros(3), sign, np.ones(3)) == -1.0
    almost = np.array([0.0, 1e-12, 2e-12])
    assert best_threshold(almost, sign, np.ones(3), 1e-5) == -1.0
    assert best_threshold(almost, sign, np.array([5.0, 1.0, 1.0]), 1e-5) == pytest.approx(1.0)


def test_threshold_beyond_all_scores_needs_no_resolution():
    scores, sign = np.array([0.0, 0.5, 1.0]), np.array([1.0, -1.0, -1.0])
    assert best_threshold(scores, sign, np.ones(3), 5.0) == 2.0
    assert best_threshold(scores, -sign, np.ones(3), 5.0) == -1.0


@pytest.mark.parametrize("turn", [1.0, -1.0])
def test_as_much_weight_above_as_the_positive_bags_have(turn):
    def threshold(scores, sign, weight=(1.0, 1.0, 1.0, 1.0), resolution=0.0):
        scores, sign = turn * np.array(scores), turn * np.array(sign)
        return turn * matching_threshold(scores, sign, np.array(weight), resolution)

    scores = [-10.0, -3.0, -2.0, -1.0]
    assert threshold(scores, [-1.0, -1.0, 1.0, -1.0]) == -1.5
    assert threshold(scores, [1.0, -1.0, 1.0, -1.0]) == -2.5
    assert threshold(scores, [1.0, -1.0, 1.0, 1.0]) == -6.5
    assert threshold(scores, [-1.0, -1.0, 1.0, -1.0], [1.0, 1.0, 3.0, 1.0]) == -2.5
    # A weight of 1 above and one of 5 are both off by 2: the one nearer to 0.
    assert threshold(scores, [-1.0, 1.0, -1.0, -1.0], [1.0, 3.0, 4.0, 1.0]) == -1.5
    # Equal scores stay together.
    assert threshold([-3.0, -2.0, -1.0, -1.0], [-1.0, -1.0, 1.0, -1.0]) == -1.5
    assert threshold(scores, [1.0, -1.0, 1.0, -1.0], resolution=1.0) == -6.5


def test_nothing_matches_between_equal_scores():
    sign = np.array([-1.0, 1.0, 1.0])
    assert matching_threshold(np.zeros(3), sign, np.ones(3)) is None
    assert matching_threshold(np.array([0.0, 1e-6, 2e-6]), sign, np.ones(3), 1e-5) is None
