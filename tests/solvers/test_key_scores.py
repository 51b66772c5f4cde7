"""Likely key instances beside all choices, and what they must not depend on."""

from itertools import product

import numpy as np
import pytest

from bagwise.solvers import best_in_bags, key_direction, key_scores, mean_scores
from bagwise.svm.machinery._sides import Sides


def some_bags(seed=0, n_bags=8, n_features=3):
    """Return instances, offsets, signs and weights; bag sizes differ."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 5, n_bags))])
    X = rng.normal(size=(offsets[-1], n_features))
    return X, offsets, np.where(np.arange(n_bags) % 2, 1.0, -1.0), rng.uniform(0.5, 2.0, n_bags)


def by_features(X):
    return lambda coef: X @ (coef @ X)


def means_of(X, sides, weight, choice):
    """Return the weighted means of some instances of the positive bags and of all negatives."""
    k = np.average(X[list(choice)], axis=0, weights=weight[sides.positive])
    return k, np.average(X[sides.negatives], axis=0, weights=weight[sides.negative_bags])


@pytest.mark.parametrize("seed", range(5))
def test_mean_scores_are_inner_products_with_the_difference_of_means(seed):
    X, offsets, sign, weight = some_bags(seed)
    sides = Sides.of(offsets, sign)
    of_bags = np.add.reduceat(X, offsets[:-1]) / np.diff(offsets)[:, None]
    k = np.average(of_bags[sides.positive], axis=0, weights=weight[sides.positive])
    n = np.average(X[sides.negatives], axis=0, weights=weight[sides.negative_bags])
    np.testing.assert_allclose(
        mean_scores(by_features(X), offsets, sides.positive, weight), X @ (k - n), atol=1e-12
    )


@pytest.mark.parametrize("seed", range(8))
def test_key_instances_lie_furthest_in_the_direction_of_their_own_mean(seed):
    """And they are further from the negatives than most of all choices, which are tried."""
    X, offsets, sign, weight = some_bags(seed)
    sides = Sides.of(offsets, sign)
    scores = key_scores(by_features(X), offsets, sides.positive, weight)
    best = best_in_bags(scores, offsets)
    keys = np.flatnonzero(best & np.isin(np.arange(len(X)), sides.unlabelled))
    assert len(keys) == len(sides.positive)
    k, n = means_of(X, sides, weight, keys)
    expected = X @ (k - n)
    np.testing.assert_allclose(scores, expected / np.abs(expected).max(), atol=1e-12)
    ranges = [range(a, b) for a, b in zip(sides.starts, sides.stops, strict=True)]
    distances = [
        np.linalg.norm(np.subtract(*means_of(X, sides, weight, c))) for c in product(*ranges)
    ]
    assert np.linalg.norm(k - n) >= np.median(distances)


@pytest.mark.parametrize("seed", range(4))
def test_key_scores_know_no_order_and_no_unit(seed):
    X, offsets, sign, weight = some_bags(seed)
    scores = key_scores(by_features(X), offsets, np.flatnonzero(sign > 0), weight)
    rng = np.random.default_rng(seed)
    bags = rng.permutation(len(sign))
    rows = np.concatenate([rng.permutation(np.arange(offsets[i], offsets[i + 1])) for i in bags])
    permuted = np.concatenate([[0], np.cumsum(np.diff(offsets)[bags])])
    other = key_scores(
        by_features(1e-7 * X[rows]), permuted, np.flatnonzero(sign[bags] > 0), 30.0 * weight[bags]
    )
    np.testing.assert_allclose(other, scores[rows], atol=1e-9)


def test_a_bag_of_weight_two_is_there_twice():
    X, offsets, sign, _ = some_bags(3)
    heavy = np.where(np.arange(len(sign)) == 1, 2.0, 1.0)
    again = slice(offsets[1], offsets[2])
    twice = np.concatenate([X, X[again]])
    more = np.append(offsets, len(twice))
    one = key_scores(by_features(X), offsets, np.flatnonzero(sign > 0), heavy)
    two = key_scores(
        by_features(twice), more, np.flatnonzero(np.append(sign, sign[1]) > 0), np.ones(9)
    )
    np.testing.assert_allclose(two[: len(X)], one, atol=1e-12)


def test_instances_that_tie_share_their_part():
    """Both lie equally far from the negatives, so that no order may choose between them."""
    X = np.array([[1.0, 1.0], [1.0, -1.0], [0.0, 0.0], [0.0, 0.0]])
    rounding = np.array([0.0, 1e-13, 0.0, 0.0])
    offsets = np.array([0, 3, 4])
    scores = key_scores(
        lambda coef: by_features(X)(coef) + rounding, offsets, np.array([0]), np.ones(2)
    )
    np.testing.assert_allclose(scores, [1.0, 1.0, 0.0, 0.0], atol=1e-9)


def test_direction_of_single_instances_is_the_difference_of_weighted_means():
    rng = np.random.default_rng(0)
    rows, weight = rng.normal(size=(12, 3)), rng.uniform(0.5, 2.0, 12)
    is_positive = np.arange(12) % 3 == 0
    apart = np.subtract(
        *(
            np.average(rows[mine], axis=0, weights=weight[mine])
            for mine in (is_positive, ~is_positive)
        )
    )
    along = key_direction(rows, np.arange(13), np.flatnonzero(is_positive), weight)
    np.testing.assert_allclose(along, apart / np.linalg.norm(apart), atol=1e-12)


def test_no_direction_between_equal_instances():
    rows = np.ones((6, 2))
    assert key_direction(rows, np.arange(0, 7, 2), np.array([0, 2]), np.ones(3)) is None
