"""Rectangles that are cut, beside plain loops over all bounds."""

import numpy as np
import pytest

from bagwise.solvers import Status, cut_rectangle


def wrong(rows, offsets, sign, weight, lower, upper):
    """Return the share of positive bags outside plus the share of negative bags inside."""
    inside = ((rows >= lower) & (rows <= upper)).all(axis=1)
    is_wrong = np.logical_or.reduceat(inside, offsets[:-1]) != (sign > 0)
    return sum(np.average(is_wrong[sign == side], weights=weight[sign == side]) for side in (1, -1))


def drawn(seed):
    rng = np.random.default_rng(seed)
    offsets = np.r_[0, np.cumsum(rng.integers(1, 5, 16))]
    rows = rng.normal(size=(offsets[-1], 3))
    sign = np.where(np.arange(16) % 2, 1.0, -1.0)
    rows[offsets[1:-1:2], 1] += 2.0
    return rows, offsets, sign, rng.uniform(0.5, 2.0, 16)


@pytest.mark.parametrize("seed", range(8))
def test_the_first_bound_is_the_best_of_all(seed):
    rows, offsets, sign, weight = drawn(seed)
    result = cut_rectangle(rows, offsets, sign, weight, max_iter=1)
    lower, upper = result.x.reshape(2, -1)
    assert result.objective == pytest.approx(wrong(rows, offsets, sign, weight, lower, upper))
    best = 1.0
    for k in range(3):
        for level in rows[:, k]:
            for row in (0, 1):
                bounds = np.repeat([-np.inf, np.inf], 3).reshape(2, 3)
                bounds[row, k] = level
                best = min(best, wrong(rows, offsets, sign, weight, *bounds))
    assert result.objective == pytest.approx(best)
    assert np.isfinite(result.x).sum() == result.n_iter == 1


@pytest.mark.parametrize("seed", range(8))
def test_each_bound_lowers_the_sum_until_none_does(seed):
    rows, offsets, sign, weight = drawn(seed)
    result = cut_rectangle(rows, offsets, sign, weight, least_gain=0.05)
    assert result.status == Status.CONVERGED
    assert (np.diff(result.history) < -0.05).all()
    bounds = result.x.reshape(2, -1)
    assert result.objective == pytest.approx(wrong(rows, offsets, sign, weight, *bounds))
    for k in range(3):
        for level in rows[:, k]:
            for row, tighter in enumerate((max, min)):
                other = bounds.copy()
                other[row, k] = tighter(other[row, k], level)
                assert wrong(rows, offsets, sign, weight, *other) >= result.objective - 0.0500001


def test_a_bag_far_from_the_others_is_left_out():
    """Keys lie at 10 to 19 and one at 0, among rows of negative bags at 0 to 9."""
    rows = np.r_[np.arange(10.0, 20.0), 0.0, np.arange(0.0, 10.0)][:, None]
    sign = np.r_[np.ones(11), -np.ones(10)]
    result = cut_rectangle(rows, np.arange(22), sign)
    np.testing.assert_array_equal(result.x, [9.5, np.inf])
    assert result.objective == pytest.approx(1 / 11)


def test_order_and_equal_values():
    rng = np.random.default_rng(0)
    rows, sign = rng.integers(0, 3, (30, 3, 2)).astype(float), np.where(np.arange(30) % 2, 1, -1)
    one = cut_rectangle(rows.reshape(-1, 2), np.arange(0, 91, 3), sign)
    order = rng.permutation(30)
    other = cut_rectangle(rows[order, ::-1].reshape(-1, 2), np.arange(0, 91, 3), sign[order])
    np.testing.assert_array_equal(one.x, other.x)
    nothing = cut_rectangle(np.ones((4, 2)), np.arange(5), [1, -1, 1, -1])
    assert np.isinf(nothing.x).all()
    assert nothing.objective == 1.0
