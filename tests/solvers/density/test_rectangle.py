"""Rectangles beside plain loops over all choices."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

from bagwise.solvers import Status, expanded_bounds, grow_rectangle


def middle_of(rows, offsets):
    """Return the middle of what every rectangle with a row of each bag has to reach."""
    bags = [rows[start:stop] for start, stop in pairwise(offsets)]
    highest = np.array([bag.max(axis=0) for bag in bags])
    lowest = np.array([bag.min(axis=0) for bag in bags])
    return 0.5 * (highest.min(axis=0) + lowest.max(axis=0))


def grown_by_loops(rows, offsets, start):
    """Return a row of each bag: greedily, all bags choosing again after each step."""
    bags = [list(range(*span)) for span in pairwise(offsets)]
    distance = ((rows - start) ** 2).sum(axis=1)
    bags = sorted((sorted(bag, key=distance.__getitem__) for bag in bags),
                  key=lambda bag: distance[bag[0]])  # fmt: skip

    def size(chosen):
        return np.ptp(rows[list(chosen)], axis=0).sum()

    def cheapest(bag, others, present=None):
        return min([present, *bag] if present is not None else bag,
                   key=lambda row: size([*others, row]))  # fmt: skip

    chosen = {0: bags[0][0]}
    while len(chosen) < len(bags):
        before, now = size(chosen.values()), list(chosen.values())
        best = {i: cheapest(bags[i], now) for i in range(len(bags)) if i not in chosen}
        covered = {i: row for i, row in best.items() if size([*now, row]) <= before}
        if not covered:
            i = min(best, key=lambda i: size([*now, best[i]]))
            covered = {i: best[i]}
        chosen |= covered
        has_changed = True
        while has_changed:
            has_changed = False
            for i in sorted(chosen):
                others = [row for k, row in chosen.items() if k != i]
                row = cheapest(bags[i], others, chosen[i])
                has_changed |= row != chosen[i]
                chosen[i] = row
    return sorted(chosen.values())


@pytest.mark.parametrize("seed", range(20))
def test_growing_is_what_plain_loops_do(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, rng.integers(2, 20))
    offsets = np.r_[0, np.cumsum(sizes)]
    rows = rng.normal(size=(offsets[-1], rng.integers(1, 6)))
    # A negative bag that every feature excludes by the same: the first is kept, and it suffices.
    far = rows.max(axis=0) + 10.0
    result = grow_rectangle(
        np.vstack([rows, far]), np.r_[offsets, offsets[-1] + 1], np.r_[np.ones(len(sizes)), -1.0],
        max_iter=1,
    )  # fmt: skip
    # It never lies inside, so that the narrowest counts of those that begin at the middle and at
    # the rows of a smallest bag. The rows that are furthest from it are never narrower.
    middle = middle_of(rows, offsets)
    smallest = [i for i in range(len(sizes)) if sizes[i] == sizes.min()]
    allowed = []
    for i in smallest:
        starts = [middle, *rows[offsets[i] : offsets[i + 1]]]
        grown = [grown_by_loops(rows, offsets, start) for start in starts]
        allowed.append(min(grown, key=lambda chosen: np.ptp(rows[chosen, 0])))
    assert np.sort(result.chosen).tolist() in allowed
    np.testing.assert_array_equal(result.features, [0])
    lower, upper = result.x.reshape(2, -1)
    inside = rows[result.chosen, 0]
    assert (lower[0], upper[0]) == (inside.min(), inside.max())
    assert (lower[1:] == -np.inf).all()
    assert (upper[1:] == np.inf).all()


def test_features_are_taken_by_the_weight_that_they_exclude():
    """Positive rows span [0, 1] in each feature; what lies 1 outside is clearly excluded."""
    rows = np.array(
        [
            [0.0, 0.0, 0.0],
            [1.0, 1.0, 1.0],
            [3.0, 3.0, 0.5],  # excluded by the first and the second feature
            [3.0, 0.5, 0.5],  # by the first
            [0.5, 3.0, 0.5],  # by the second
            [0.5, 3.0, 0.5],
            [0.5, 1.2, 1.9],  # not clearly: by the third, where it is furthest out
            [0.5, 0.5, 0.5],  # by none
        ]
    )
    offsets, sign = np.arange(9), np.r_[1.0, 1.0, -np.ones(6)]
    features = grow_rectangle(rows, offsets, sign).features
    np.testing.assert_array_equal(features, [0, 1, 2])
    without = grow_rectangle(rows[[0, 1, 2, 4, 5, 7]], np.arange(7), sign[[0, 1, 2, 4, 5, 7]])
    np.testing.assert_array_equal(without.features, [1])
    weight = np.where(np.arange(5) == 3, 9.0, 1.0)
    heavy = grow_rectangle(rows[:5], np.arange(6), sign[:5], weight)
    np.testing.assert_array_equal(heavy.features, [0, 1])
    nothing = grow_rectangle(rows[[0, 1, 7]], np.arange(4), sign[[0, 1, 7]])
    np.testing.assert_array_equal(nothing.features, [0, 1, 2])


def test_of_several_rectangles_the_one_counts_that_fewest_negative_bags_reach():
    """All bags hold rows near 0; those of positive bags at 5 are further apart."""
    rng = np.random.default_rng(0)
    common = 0.1 * rng.normal(size=(40, 1, 2))
    own = np.where(np.arange(40) % 2, 5.0, -5.0)[:, None, None] + 0.5 * rng.normal(size=(40, 1, 2))
    rows, sign = np.concatenate([common, own], axis=1), np.where(np.arange(40) % 2, 1.0, -1.0)
    result = grow_rectangle(rows.reshape(80, 2), np.arange(0, 81, 2), sign)
    np.testing.assert_array_equal(result.chosen % 2, 1)


def shifted_rows(seed, n_bags=60, n_features=6):
    """Return bags of five standard normal rows; one of each positive bag lies 4 further out."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_bags, 5, n_features))
    sign = np.where(np.arange(n_bags) % 2, 1.0, -1.0)
    rows[sign > 0, 3, 0] += 4.0
    return rows.reshape(-1, n_features), np.arange(0, 5 * n_bags + 1, 5), sign


@pytest.mark.parametrize("seed", range(4))
def test_rows_far_from_those_of_negative_bags_make_a_rectangle(seed):
    """The smallest one lies in the middle of all rows, where most negative bags have some."""
    rows, offsets, sign = shifted_rows(seed)
    result = grow_rectangle(rows, offsets, sign)
    assert (result.chosen % 5 == 3).mean() > 0.9
    assert 0 in result.features
    inside = (rows[:, result.features] >= result.x.reshape(2, -1)[0, result.features]).all(axis=1)
    inside &= (rows[:, result.features] <= result.x.reshape(2, -1)[1, result.features]).all(axis=1)
    reached = np.logical_or.reduceat(inside, offsets[:-1])
    assert reached[sign > 0].all()
    assert reached[sign < 0].mean() < 0.5
    assert len(result.ends) == 1 + 5 + 1  # the middle, the rows of a bag, the key rows
    assert result.objective in result.ends


def test_likely_rows_that_tie_are_told_apart_by_their_values():
    """Each positive bag has two rows equally far out; their order must not matter."""
    rng = np.random.default_rng(0)
    rows = 0.1 * rng.normal(size=(20, 3, 2))
    rows[:, 1:] = rows[:, :1] + np.array([[8.0, 3.0], [8.0, -3.0]])
    rows[::2] = 0.3 * rng.normal(size=(10, 3, 2))
    sign, offsets = np.where(np.arange(20) % 2, 1.0, -1.0), np.arange(0, 61, 3)
    one = grow_rectangle(rows.reshape(-1, 2), offsets, sign)
    other = grow_rectangle(rows[::-1, ::-1].reshape(-1, 2), offsets, sign[::-1])
    np.testing.assert_allclose(one.x, other.x)
    np.testing.assert_allclose(one.ends[-1], other.ends[-1])


def test_rounds_end_when_no_feature_is_dropped():
    rng = np.random.default_rng(0)
    rows, offsets = rng.normal(size=(120, 40)), np.arange(0, 121, 4)
    sign = np.where(np.arange(30) % 2 == 1, 1.0, -1.0)
    result = grow_rectangle(rows, offsets, sign)
    assert result.status == Status.CONVERGED
    assert (np.diff(result.history) <= 0).all()
    again = grow_rectangle(rows[:, result.features], offsets, sign)
    assert len(again.features) == len(result.features)
    assert grow_rectangle(rows, offsets, sign, max_iter=1).status == Status.MAX_ITER


@pytest.mark.parametrize(("tau", "epsilon"), [(0.999, 0.01), (0.9, 0.1), (0.5, 0.3)])
def test_expanded_bounds_have_the_stated_mass_beyond(tau, epsilon):
    values = np.array([[0.0, 5.0], [2.0, 5.5], [3.0, 9.0]])
    weight = np.array([1.0, 2.0, 1.0])
    lower, upper = expanded_bounds(values, weight, tau=tau, epsilon=epsilon)
    for k, half in enumerate([1.5, 2.0]):
        width = half / norm.ppf(0.5 + tau / 2)
        above = np.average(norm.sf(upper[k], values[:, k], width), weights=weight)
        below = np.average(norm.cdf(lower[k], values[:, k], width), weights=weight)
        assert above == pytest.approx(epsilon / 2)
        assert below == pytest.approx(epsilon / 2)


def test_bounds_enclose_all_values_whatever_the_mass():
    values = np.array([[0.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    lower, upper = expanded_bounds(values, np.ones(3), tau=0.999, epsilon=0.9, least=0.1)
    np.testing.assert_allclose(lower, [-0.1, 0.9])
    np.testing.assert_allclose(upper, [3.1, 1.1])
