"""Splitters of bags: every bag tested once, groups never cut, shares near equal."""

import warnings
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import StratifiedGroupKFold, cross_val_score

from bagwise import Bags
from bagwise.model_selection import (
    BagGridSearchCV,
    RepeatedStratifiedBagKFold,
    StratifiedBagKFold,
    groups_from_names,
)
from bagwise.svm import MIKernelSVM
from bagwise.testing import make_toy_bags


def folds_of(cv, y, groups=None):
    """Return the fold of each bag, after checking that the splits are a partition."""
    n = len(y)
    fold = np.full(n, -1)
    for k, (train, test) in enumerate(cv.split(np.zeros(n), y, groups)):
        assert len(test)
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n))
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()
        assert (fold[test] == -1).all()
        fold[test] = k
    assert (fold >= 0).all()
    return fold


def counts(fold, labels, n_splits):
    """Return how many bags of each label are in each fold, and in all."""
    columns = np.column_stack([labels, np.ones(len(labels))])
    return np.array([columns[fold == k].sum(axis=0) for k in range(n_splits)])


def one_hot(y):
    return (np.asarray(y)[:, None] == np.unique(y)).astype(int)


@settings(max_examples=40, deadline=None)
@given(
    y=st.lists(st.integers(0, 3), min_size=6, max_size=60),
    n_splits=st.integers(2, 5),
    shuffle=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:StratifiedBagKFold")
def test_classes_are_dealt_evenly(y, n_splits, shuffle):
    if np.bincount(y).max() < n_splits:
        return
    cv = StratifiedBagKFold(n_splits, shuffle=shuffle, random_state=0 if shuffle else None)
    held = counts(folds_of(cv, y), one_hot(y), n_splits)
    assert (np.ptp(held, axis=0) <= 1).all()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_bags=st.integers(20, 80),
    n_labels=st.integers(2, 6),
    n_splits=st.integers(2, 5),
)
@pytest.mark.filterwarnings("ignore:StratifiedBagKFold")
def test_label_lists_are_near_even(seed, n_bags, n_labels, n_splits):
    rng = np.random.default_rng(seed)
    labels = (rng.random((n_bags, n_labels)) < rng.uniform(0.05, 0.6, n_labels)).astype(int)
    labels[:2] = [[1] * n_labels, [0] * n_labels]
    fold = folds_of(StratifiedBagKFold(n_splits, shuffle=True, random_state=1), labels)
    held = counts(fold, labels, n_splits)
    excess = np.abs(held - held.mean(axis=0))
    assert excess[:, :-1].max() <= 2 + 0.25 * held.mean(axis=0)[:-1].max()
    assert excess[:, -1].max() <= 2 + 0.25 * n_bags / n_splits


def test_label_lists_beat_chance_by_far():
    rng = np.random.default_rng(0)
    labels = (rng.random((300, 8)) < np.linspace(0.03, 0.4, 8)).astype(int)
    ours = counts(folds_of(StratifiedBagKFold(10), labels), labels, 10)
    spread = np.abs(ours - ours.mean(axis=0)).mean()
    random = [counts(rng.permutation(300) % 10, labels, 10) for _ in range(50)]
    by_chance = [np.abs(held - held.mean(axis=0)).mean() for held in random]
    assert spread < 0.5 * min(by_chance)
    assert np.abs(ours[:, 0] - ours[:, 0].mean()).max() < 1  # the rarest label is dealt exactly


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_groups=st.integers(5, 25),
    n_splits=st.integers(2, 5),
    lists=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:StratifiedBagKFold")
def test_groups_are_kept_whole(seed, n_groups, n_splits, lists):
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, 3 * n_groups)])
    y = rng.integers(0, 2, (len(groups), 3) if lists else len(groups))
    if not lists and np.bincount(y).max() < n_splits:
        return
    names = np.array([f"patient {g}" for g in groups])
    cv = StratifiedBagKFold(n_splits, shuffle=True, random_state=seed)
    fold = folds_of(cv, y, names)
    for name in names:
        assert len(set(fold[names == name])) == 1


def test_groups_are_as_even_as_those_of_scikit_learn():
    spreads = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups = rng.integers(0, 30, 200)
        y = (rng.random(200) < rng.random(30)[groups]).astype(int)
        ours = folds_of(StratifiedBagKFold(5), y, groups)
        theirs = folds_of(StratifiedGroupKFold(5), y, groups)
        held = [counts(fold, one_hot(y), 5) for fold in (ours, theirs)]
        spreads.append([np.std(h / h.sum(axis=0), axis=0).sum() for h in held])
    ours, theirs = np.mean(spreads, axis=0)
    assert ours <= 1.1 * theirs


def test_as_many_folds_as_groups_leaves_one_out():
    groups = np.repeat(["a", "b", "c", "d"], [5, 1, 2, 8])
    y = np.arange(len(groups)) % 2
    fold = folds_of(StratifiedBagKFold(4), y, groups)
    assert len(set(zip(fold, groups, strict=True))) == 4


def test_repetitions():
    y = np.arange(40) % 2
    cv = RepeatedStratifiedBagKFold(4, n_repeats=3, random_state=0)
    assert cv.get_n_splits() == 12
    tests = [test.tolist() for _, test in cv.split(y, y)]
    assert len(tests) == 12
    for first in range(0, 12, 4):
        assert sorted(chain(*tests[first : first + 4])) == list(range(40))
    assert tests[:4] != tests[4:8]
    assert tests == [test.tolist() for _, test in cv.split(y, y)]
    groups = np.arange(40) // 2
    for _, test in cv.split(y, y, groups):
        assert (np.bincount(groups[test])[np.unique(groups[test])] == 2).all()


def test_same_seed_same_folds():
    y = np.arange(30) % 3
    for cv in (StratifiedBagKFold(3), StratifiedBagKFold(3, shuffle=True, random_state=5)):
        np.testing.assert_array_equal(folds_of(cv, y), folds_of(cv, y))
    one, other = (StratifiedBagKFold(3, shuffle=True, random_state=s) for s in (0, 1))
    assert (folds_of(one, y) != folds_of(other, y)).any()


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_folds_do_not_depend_on_the_names_of_classes_and_groups(lists, grouped):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, (60, 3)) if lists else rng.integers(0, 3, 60)
    groups = rng.integers(0, 15, 60) if grouped else None
    named = y if lists else np.array(["a", "bb", "c"])[y]
    patients = None if groups is None else [f"patient {(g * 7) % 15}" for g in groups]
    for shuffle in (False, True):
        cv = StratifiedBagKFold(4, shuffle=shuffle, random_state=3 if shuffle else None)
        np.testing.assert_array_equal(folds_of(cv, y, groups), folds_of(cv, named, patients))


def test_a_random_state_object_goes_on():
    y = np.arange(40) % 2
    cv = StratifiedBagKFold(4, shuffle=True, random_state=np.random.RandomState(0))
    assert (folds_of(cv, y) != folds_of(cv, y)).any()


def test_few_label_lists_leave_no_fold_empty():
    rng = np.random.default_rng(0)
    for _ in range(50):
        labels = (rng.random((5, 4)) < 0.5).astype(int)
        labels[0, :2] = [1, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            folds_of(StratifiedBagKFold(5, shuffle=True, random_state=0), labels)


def test_labels_of_any_kind():
    y = np.array(["cat", "dog"] * 6)
    expected = folds_of(StratifiedBagKFold(3), np.arange(12) % 2)
    np.testing.assert_array_equal(folds_of(StratifiedBagKFold(3), y), expected)
    np.testing.assert_array_equal(folds_of(StratifiedBagKFold(3), y.tolist()), expected)
    lists = np.column_stack([np.arange(12) % 2, np.arange(12) % 3 == 0]).astype(int)
    dense = folds_of(StratifiedBagKFold(3), lists)
    fold = np.empty(12, int)
    splits = StratifiedBagKFold(3).split(np.zeros(12), sparse.csr_array(lists))
    for k, (_, test) in enumerate(splits):
        fold[test] = k
    np.testing.assert_array_equal(fold, dense)


def test_works_where_scikit_learn_wants_a_splitter():
    bags, y = make_toy_bags(24, max_size=3)
    scores = cross_val_score(MIKernelSVM(), bags, y, cv=StratifiedBagKFold(3))
    assert len(scores) == 3
    cv = RepeatedStratifiedBagKFold(3, n_repeats=2, random_state=0)
    groups = np.arange(24) // 2
    search = BagGridSearchCV(MIKernelSVM(), {"C": [1.0, 10.0]}, cv=cv).fit(bags, y, groups=groups)
    assert search.n_splits_ == 6


def test_repr_can_be_read():
    cv = StratifiedBagKFold(4, shuffle=True, random_state=0)
    assert repr(cv) == "StratifiedBagKFold(n_splits=4, random_state=0, shuffle=True)"
    assert repr(eval(repr(cv))) == repr(cv)
    cv = RepeatedStratifiedBagKFold(4, n_repeats=2)
    assert repr(cv) == "RepeatedStratifiedBagKFold(n_repeats=2, n_splits=4, random_state=None)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StratifiedBagKFold(1), "n_splits of StratifiedBagKFold"),
        (lambda: StratifiedBagKFold(2.5), "n_splits"),
        (lambda: StratifiedBagKFold(3, random_state=0), "shuffle=True"),
        (lambda: RepeatedStratifiedBagKFold(3, n_repeats=0), "n_repeats"),
    ],
    ids=["one fold", "half a fold", "seed without shuffling", "no repetition"],
)
def test_bad_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_shuffle_is_a_truth_value():
    with pytest.raises(TypeError, match="shuffle"):
        StratifiedBagKFold(3, shuffle="yes")


def test_bad_input():
    y = np.arange(12) % 2
    cv = StratifiedBagKFold(4)
    with pytest.raises(ValueError, match="n_splits=4 folds of 3 groups"):
        list(cv.split(y, y, np.arange(12) % 3))
    with pytest.raises(ValueError, match=r"groups of StratifiedBagKFold.split .* shape \(12, 1\)"):
        list(cv.split(y, y, np.arange(12)[:, None]))
    with pytest.raises(ValueError, match=r"groups of StratifiedBagKFold.split must be of one kind"):
        list(cv.split(y, y, ["a", None] * 6))
    with pytest.raises(ValueError, match="n_splits=4 folds of 0 bags"):
        list(cv.split([], []))
    with pytest.raises(ValueError, match="inconsistent"):
        list(cv.split(y[:5], y))
    with pytest.raises(ValueError, match="should not be None"):
        list(cv.split(y, None))
    with pytest.raises(ValueError, match="number of bags of every class"):
        list(cv.split(y[:6], y[:6]))
    with pytest.raises(ValueError, match="continuous"):
        list(cv.split(y, y + 0.5))
    with pytest.warns(UserWarning, match="rarest class has only 2 bags"):
        list(cv.split(y, np.arange(12) < 2))
    with pytest.warns(UserWarning, match="rarest label has only 1 bags"):
        list(cv.split(y, np.column_stack([y, np.arange(12) == 0]).astype(int)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(cv.split(y, y))


def test_groups_from_names():
    names = ["p1_a", "p1_b", "p22_a"]
    bags = Bags(np.zeros((3, 1)), [0, 1, 2, 3], bag_names=names)
    assert groups_from_names(bags).tolist() == ["p1", "p1", "p22"]
    assert groups_from_names(bags[[2, 0]]).tolist() == ["p22", "p1"]
    assert groups_from_names(names, r"_(.)$").tolist() == ["a", "b", "a"]
    assert groups_from_names(names, r"\d+").tolist() == ["1", "1", "22"]
    with pytest.raises(ValueError, match=r"bag 1, 'x'"):
        groups_from_names(["p1_a", "x"])
    with pytest.raises(ValueError, match="needs bags with names"):
        groups_from_names(Bags(np.zeros((1, 1)), [0, 1]))
