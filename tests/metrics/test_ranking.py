"""Ranking scores against scikit-learn, brute force and examples computed by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.metrics import coverage_error, label_ranking_average_precision_score

from bagwise.metrics import average_precision, coverage, one_error

LISTS = [[1, 0, 0, 1], [0, 1, 0, 0]]
SCORES = [[0.9, 0.8, 0.1, 0.3], [0.2, 0.1, 0.9, 0.3]]


def _draw(seed, *, ties):
    rng = np.random.default_rng(seed)
    lists = rng.random((30, 6)) < 0.3
    lists[~lists.any(axis=1), 0] = True
    scores = rng.integers(4, size=(30, 6)) if ties else rng.normal(size=(30, 6))
    return lists.astype(int), scores.astype(float)


def test_by_hand():
    # Bag 0: labels at ranks 1 and 3; bag 1: label at rank 4.
    assert one_error(LISTS, SCORES) == 0.5
    assert coverage(LISTS, SCORES) == (2 + 3) / 2
    assert_allclose(average_precision(LISTS, SCORES), ((1 + 2 / 3) / 2 + 1 / 4) / 2, rtol=1e-15)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_scikit_learn(seed, ties):
    lists, scores = _draw(seed, ties=ties)
    assert_allclose(coverage(lists, scores), coverage_error(lists, scores) - 1, rtol=1e-14)
    expected = label_ranking_average_precision_score(lists, scores)
    assert_allclose(average_precision(lists, scores), expected, rtol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_one_error_without_ties_is_that_of_the_argmax(seed):
    lists, scores = _draw(seed, ties=False)
    wrong = lists[np.arange(len(lists)), scores.argmax(axis=1)] == 0
    assert_allclose(one_error(lists, scores), wrong.mean(), rtol=1e-15)


def test_a_tie_at_the_top_is_an_error_unless_all_are_right():
    assert one_error([[1, 0, 0]], [[1.0, 1.0, 0.0]]) == 1.0
    assert one_error([[1, 1, 0]], [[1.0, 1.0, 0.0]]) == 0.0


def test_perfect_and_worst():
    lists, _ = _draw(0, ties=False)
    assert (one_error(lists, lists), average_precision(lists, lists)) == (0.0, 1.0)
    noise = np.linspace(0, 0.1, 6)  # breaks the ties
    assert_allclose(coverage(lists, lists + noise), lists.sum(axis=1).mean() - 1, rtol=1e-15)
    assert coverage([[1, 0, 0]], [[0.0, 1.0, 2.0]]) == 2.0


@pytest.mark.parametrize("metric", [one_error, coverage, average_precision])
def test_bags_without_labels_are_left_out(metric):
    lists, scores = _draw(1, ties=False)
    more_lists = np.vstack([lists, np.zeros((5, 6), dtype=int)])
    more_scores = np.vstack([scores, np.ones((5, 6))])
    assert metric(more_lists, more_scores) == metric(lists, scores)


@pytest.mark.parametrize("metric", [one_error, coverage, average_precision])
def test_sparse_label_lists(metric):
    assert metric(csr_array(LISTS), SCORES) == metric(LISTS, SCORES)


@pytest.mark.parametrize("metric", [one_error, coverage, average_precision])
def test_bad_input(metric):
    with pytest.raises(ValueError, match=r"same shape .* Got \(1, 2\) and \(1, 3\)"):
        metric([[1, 0]], [[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="same shape"):
        metric([1, 0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"zeros and ones. Got \[0, 2\]"):
        metric([[2, 0]], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="Bag 1 has one"):
        metric([[1, 0], [1, 0]], [[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(ValueError, match="at least one bag with a label"):
        metric([[0, 0]], [[1.0, 2.0]])
