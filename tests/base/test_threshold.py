"""Thresholds of scores: no other makes fewer errors, ties and rounding are settled."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from bagwise.base import best_threshold
from bagwise.base._threshold import matching_threshold, ranked_right, ranking_error


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
    assert threshold(scores, [-1.0, -1.0, -1.0, 1.0]) == -1.5
    assert threshold(scores, [1.0, -1.0, 1.0, -1.0]) == -2.5  # two are wrong, as without
    assert threshold(scores, [1.0, -1.0, 1.0, 1.0]) == -2.5  # at -6.5 two are wrong
    assert threshold(scores, [-1.0, 1.0, 1.0, 1.0]) == -6.5
    assert threshold(scores, [-1.0, -1.0, 1.0, -1.0], [1.0, 1.0, 3.0, 1.0]) == -2.5
    # A weight of 1 above and one of 5 are both off by 2, and 4 is wrong: the one nearer to 0.
    assert threshold(scores, [-1.0, -1.0, 1.0, -1.0], [5.0, 4.0, 3.0, 1.0]) == -2.5
    # Equal scores stay together.
    assert threshold([-3.0, -2.0, -1.0, -1.0], [-1.0, -1.0, 1.0, -1.0]) == -1.5
    assert threshold(scores, [1.0, -1.0, 1.0, -1.0], resolution=1.0) == -6.5


@pytest.mark.parametrize("turn", [1.0, -1.0])
def test_no_more_is_wrong_than_by_one_label_for_all(turn):
    def threshold(signs):
        sign = np.array([1.0 if c == "+" else -1.0 for c in signs])
        scores = np.arange(len(sign)) - len(sign)  # from low to high, all of them negative
        return turn * matching_threshold(turn * scores, turn * sign, np.ones(len(sign)))

    assert threshold("----+--+-+") == -3.5  # the match: two of three are right
    assert threshold("--+---+-") == -2.5  # the match: one of two is right, as many as by "-"
    assert threshold("--+-") == -2.5  # with one above two are wrong, with two only one
    assert threshold("++-----+-") == -2.5  # with three above four are wrong, with two only three
    assert threshold("--+-+---") == -1.5  # three are wrong, which is the least


@pytest.mark.parametrize("seed", range(10))
def test_matching_thresholds_by_trying_all(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-5, 4, 12) / 2.0
    sign = np.where(rng.permutation(12) < rng.integers(2, 10), 1.0, -1.0)
    weight = rng.integers(1, 4, 12) * 0.1
    known = np.unique(scores)
    cuts = 0.5 * (known[1:] + known[:-1])
    wrong = np.array([errors(cut, scores, sign, weight) for cut in cuts])
    limit = min(weight[sign > 0].sum(), weight[sign < 0].sum())
    allowed = cuts[wrong <= max(limit, wrong.min()) + 1e-9]
    off = np.array([abs(weight[scores > cut].sum() - weight[sign > 0].sum()) for cut in allowed])
    nearest = allowed[off <= off.min() + 1e-9]
    threshold = matching_threshold(scores, sign, weight)
    assert threshold in nearest
    assert abs(threshold) == np.abs(nearest).min()


@pytest.mark.parametrize("seed", range(5))
def test_pairs_that_are_ranked_right(seed):
    rng = np.random.default_rng(seed)
    scores, weight = rng.integers(-3, 4, 15) / 2.0, rng.random(15)
    sign = np.where(rng.permutation(15) < 5, 1.0, -1.0)
    expected = roc_auc_score(sign, scores, sample_weight=weight)
    assert ranked_right(scores, sign, weight) == pytest.approx(expected)
    noise = 1e-9 * rng.random(15)
    assert ranked_right(scores + noise, sign, weight, 1e-5) == pytest.approx(expected)
    assert ranked_right(noise, sign, weight, 1e-5) == pytest.approx(0.5)
    assert ranked_right(scores, sign, np.where(sign > 0, weight, 0.0)) == 0.5  # no pairs


@pytest.mark.parametrize(("positive", "negative"), [(1, 1), (2, 5), (4, 3)])
def test_chance_is_the_spread_over_all_ways_to_deal_out_signs(positive, negative):
    n, shares = positive + negative, []
    for mine in combinations(range(n), positive):
        sign = np.where(np.isin(np.arange(n), mine), 1.0, -1.0)
        shares.append(ranked_right(np.arange(n, dtype=float), sign, np.ones(n)))
    assert np.mean(shares) == pytest.approx(0.5)
    assert np.std(shares) == pytest.approx(ranking_error(positive, negative))


def test_where_there_are_no_pairs_nothing_is_beyond_chance():
    assert ranking_error(3.0, 0.0) == np.inf


def test_nothing_matches_between_equal_scores():
    sign = np.array([-1.0, 1.0, 1.0])
    assert matching_threshold(np.zeros(3), sign, np.ones(3)) is None
    assert matching_threshold(np.array([0.0, 1e-6, 2e-6]), sign, np.ones(3), 1e-5) is None
