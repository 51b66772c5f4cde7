"""Pairs of bags against all pairs, and nearest rows against all distances."""

import numpy as np
import pytest

import bagwise.solvers.metric._bag_pairs as module
from bagwise.solvers import bag_pairs, nearest


def lists_of(seed, n=30):
    return np.random.default_rng(seed).random((n, 4)) < 0.3


def test_all_pairs_are_there_once_with_their_weight():
    lists, weight = lists_of(0), np.linspace(1.0, 2.0, 30)
    pairs = bag_pairs(lists, weight, max_pairs=1000, rng=np.random.default_rng(0))
    expected = {
        (i, j): bool((lists[i] & lists[j]).any()) for i in range(30) for j in range(i + 1, 30)
    }
    found = dict(zip(map(tuple, pairs.bags.tolist()), pairs.is_alike.tolist(), strict=True))
    assert found == expected
    assert len(pairs.bags) == len(expected)
    np.testing.assert_allclose(pairs.weight, weight[pairs.bags].prod(axis=1))


@pytest.mark.parametrize("most", [1 << 22, 10], ids=["few bags", "many bags"])
def test_pairs_that_are_drawn_stand_for_all(most, monkeypatch):
    monkeypatch.setattr(module, "_ALL", most)
    lists = lists_of(1)
    shared = np.triu(lists.astype(int) @ lists.T > 0, 1).sum()
    pairs = bag_pairs(lists, np.ones(30), max_pairs=20, rng=np.random.default_rng(0))
    i, j = pairs.bags.T
    assert (i < j).all()
    assert len(np.unique(30 * i + j)) == len(i)
    np.testing.assert_array_equal((lists[i] & lists[j]).any(axis=1), pairs.is_alike)
    assert pairs.is_alike.sum() == (~pairs.is_alike).sum() == 20
    assert pairs.weight[pairs.is_alike].sum() == pytest.approx(shared)
    assert pairs.weight.sum() == pytest.approx(30 * 29 / 2)


def test_nearest_rows_of_segments():
    rng = np.random.default_rng(2)
    A, B = rng.normal(size=(20, 3)), rng.normal(size=(15, 3))
    starts_a, starts_b = rng.integers(0, 15, 40), rng.integers(0, 10, 40)
    stops_a, stops_b = starts_a + rng.integers(1, 6, 40), starts_b + rng.integers(1, 6, 40)
    places, squares = nearest(A, (starts_a, stops_a), B, (starts_b, stops_b))
    for k, (i, j) in enumerate(places):
        block = ((A[starts_a[k] : stops_a[k], None] - B[starts_b[k] : stops_b[k]]) ** 2).sum(axis=2)
        assert squares[k] == pytest.approx(block.min())
        assert ((A[i] - B[j]) ** 2).sum() == pytest.approx(block.min())
