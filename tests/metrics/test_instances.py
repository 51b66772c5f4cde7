"""Instance scores against scikit-learn and examples computed by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import precision_score, recall_score, roc_auc_score

from bagwise.metrics import (
    instance_auc,
    instance_precision,
    instance_recall,
    key_instance_success_rate,
)

KEYS, OFFSETS = [0, 1, 0, 1, 1, 0], [0, 2, 5, 6]


def test_success_rate_by_hand():
    assert key_instance_success_rate(KEYS, [0, 1, 0], OFFSETS) == 1 / 2
    assert key_instance_success_rate(KEYS, [1, 2, 0], OFFSETS) == 1.0
    assert key_instance_success_rate(KEYS, [0, 0, 0], OFFSETS) == 0.0


def test_success_rate_counts_the_relevant_bags():
    every = [True, True, True]  # the third bag has no key instance: it cannot succeed
    assert key_instance_success_rate(KEYS, [1, 1, 0], OFFSETS, relevant=every) == 2 / 3
    only = [True, False, False]
    assert key_instance_success_rate(KEYS, [0, 1, 0], OFFSETS, relevant=only) == 0.0


def test_success_rate_of_labels():
    # Label 0 is in bag 0 (row 1), label 1 in bags 0 (row 0) and 1 (row 2): two of three are found.
    keys = [[0, 1], [1, 0], [0, 1], [0, 0]]
    places = [[1, 1], [0, 0]]
    assert_allclose(key_instance_success_rate(keys, places, [0, 2, 4]), 2 / 3, rtol=1e-15)


def test_success_rate_of_bad_input():
    with pytest.raises(ValueError, match="end with the number of instances, 6"):
        key_instance_success_rate(KEYS, [0, 0, 0], [0, 2, 5])
    with pytest.raises(ValueError, match=r"shape \(3,\). Got int64 of shape \(2,\)"):
        key_instance_success_rate(KEYS, [0, 0], OFFSETS)
    with pytest.raises(ValueError, match="Got float64"):
        key_instance_success_rate(KEYS, [0.0, 0.0, 0.0], OFFSETS)
    with pytest.raises(ValueError, match=r"bag 1 has 3 instances, so places must be 0 to 2. Got 3"):
        key_instance_success_rate(KEYS, [0, 3, 0], OFFSETS)
    with pytest.raises(ValueError, match="needs relevant of the shape of places"):
        key_instance_success_rate(KEYS, [0, 0, 0], OFFSETS, relevant=[True])
    with pytest.raises(ValueError, match="at least one relevant bag"):
        key_instance_success_rate([0] * 6, [0, 0, 0], OFFSETS)
    with pytest.raises(ValueError, match="instance_y of zeros and ones"):
        key_instance_success_rate([0, 1, 2, 0, 0, 0], [0, 0, 0], OFFSETS)


@pytest.mark.parametrize("seed", range(4))
def test_agree_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    truth, guess = rng.integers(2, size=50), rng.integers(2, size=50)
    scores = rng.integers(5, size=50)
    assert_allclose(instance_precision(truth, guess), precision_score(truth, guess), rtol=1e-14)
    assert_allclose(instance_recall(truth, guess), recall_score(truth, guess), rtol=1e-14)
    assert_allclose(instance_auc(truth, scores), roc_auc_score(truth, scores), rtol=1e-14)


def test_labels_are_averaged_where_they_occur():
    truth = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0]])
    guess = np.array([[1, 1, 1], [0, 1, 0], [0, 1, 0]])
    assert_allclose(instance_precision(truth, guess), (1 + 2 / 3) / 2, rtol=1e-15)
    assert_allclose(instance_recall(truth, guess), (1 / 2 + 1) / 2, rtol=1e-15)
    scores = np.array([[3, 1, 0], [1, 3, 0], [2, 2, 0]])
    assert_allclose(instance_auc(truth, scores), (1 / 2 + 1) / 2, rtol=1e-15)


def test_unknown_instances_are_left_out():
    truth, guess, known = [1, 0, 1], [1, 1, 0], [True, True, False]
    assert instance_recall(truth, guess, known=known) == 1.0
    assert instance_precision(truth, guess, known=known) == 0.5
    assert instance_auc(truth, [2, 1, 0], known=known) == 1.0
    assert instance_recall([1, 0, -1], guess, known=known) == 1.0


def test_nothing_predicted_is_precision_zero():
    assert instance_precision([1, 0], [0, 0]) == 0.0


def test_bad_input():
    with pytest.raises(ValueError, match=r"same shape. Got \(2,\) and \(3,\)"):
        instance_recall([1, 0], [1, 0, 1])
    with pytest.raises(ValueError, match="at least one positive instance"):
        instance_recall([0, 0], [1, 0])
    with pytest.raises(ValueError, match="All 2 are alike"):
        instance_auc([1, 1], [1.0, 0.0])
    with pytest.raises(ValueError, match=r"known of shape \(2,\). Got \(3,\)"):
        instance_auc([1, 0], [1.0, 0.0], known=[True, True, True])
    with pytest.raises(ValueError, match="instance_pred of zeros and ones"):
        instance_precision([1, 0], [0.5, 0.1])
