"""Pairs of bags against all pairs, and nearest rows against all distances."""

import tracemalloc

import numpy as np
import pytest

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


def test_pairs_that_are_drawn_stand_for_all():
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


def test_all_pairs_of_a_kind_are_as_likely():
    """Some bags have equal lists, some none, and some pairs share several labels."""
    lists = lists_of(3, n=14)
    assert (lists @ lists.T.astype(int)).max() > 1
    assert not lists.any(axis=1).all()
    shares = lists.astype(int) @ lists.T > 0
    rng, n_draws = np.random.default_rng(0), 150
    counts = np.zeros((14, 14))
    for _ in range(n_draws):
        pairs = bag_pairs(lists, np.ones(14), max_pairs=20, rng=rng)
        np.add.at(counts, tuple(pairs.bags.T), 1.0)
    for kind in (shares, ~shares):
        drawn = counts[np.triu(kind, 1)]
        share = 20 / len(drawn)
        error = (drawn - n_draws * share) / np.sqrt(n_draws * share * (1.0 - share))
        assert np.abs(error).max() < 4.0


def test_layout_of_lists_does_not_matter():
    lists = np.tile(lists_of(1), (1, 4))
    first, other = (
        bag_pairs(form, np.ones(30), max_pairs=20, rng=np.random.default_rng(0)).bags
        for form in (lists, np.asfortranarray(lists))
    )
    np.testing.assert_array_equal(first, other)


def test_pairs_depend_on_the_seed_alone():
    first, again, other = (
        bag_pairs(lists_of(1), np.ones(30), max_pairs=20, rng=np.random.default_rng(seed)).bags
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("is_alike", [True, False], ids=["share", "share none"])
def test_the_only_pair_of_its_kind_is_found_among_a_million(is_alike):
    """Neither kind is drawn until it comes, nor are all pairs held."""
    n, rare = 1500, [3, 7]
    if is_alike:
        lists = np.eye(n, n + 1, dtype=bool)
        lists[rare, n] = True
    else:
        lists = np.ones((n, 2), bool)
        lists[rare] = np.eye(2)
    tracemalloc.start()
    pairs = bag_pairs(lists, np.ones(n), max_pairs=10, rng=np.random.default_rng(0))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    found = pairs.is_alike == is_alike
    np.testing.assert_array_equal(pairs.bags[found], [rare])
    assert (~found).sum() == 10
    assert most < n * n  # bytes: two for each pair


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
