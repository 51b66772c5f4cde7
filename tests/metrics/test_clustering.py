"""Clustering scores against brute force, scikit-learn and the examples of the M3IC paper."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import normalized_mutual_info_score

from bagwise.metrics import clustering_accuracy, normalized_mutual_information


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n_classes", "n_clusters"), [(4, 4), (3, 5), (5, 2)])
def test_accuracy_is_the_best_over_all_matchings(seed, n_classes, n_clusters):
    rng = np.random.default_rng(seed)
    truth, clusters = rng.integers(n_classes, size=40), rng.integers(n_clusters, size=40)
    names = max(n_classes, n_clusters)
    best = max(np.mean(np.array(names)[clusters] == truth) for names in permutations(range(names)))
    assert_allclose(clustering_accuracy(truth, clusters), best, rtol=1e-15)


def test_accuracy_by_hand():
    # 3 + 2 on the diagonal of [[3, 1], [0, 2]]
    assert clustering_accuracy(list("aaaabb"), [7, 7, 7, 2, 2, 2]) == 5 / 6
    assert clustering_accuracy(["a", "b"], [0, 0]) == 0.5


@pytest.mark.parametrize("seed", range(5))
def test_nmi_agrees_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=60)
    clusters = np.where(rng.random(60) < 0.5, truth, rng.integers(3, size=60))
    expected = normalized_mutual_info_score(truth, clusters, average_method="geometric")
    assert_allclose(normalized_mutual_information(truth, clusters), expected, rtol=1e-12)


def test_nmi_examples_of_the_paper():
    truth = [1, 1, 2, 2, 3, 3]
    assert_allclose(normalized_mutual_information(truth, [2, 2, 3, 3, 1, 1]), 1.0, rtol=1e-12)
    assert normalized_mutual_information(truth, [3] * 6) == 0.0


def test_nmi_is_zero_with_one_group_on_either_side_or_both():
    assert normalized_mutual_information([0, 0, 0], [0, 1, 2]) == 0.0
    assert normalized_mutual_information([0, 0, 0], [1, 1, 1]) == 0.0


def test_nmi_by_hand():
    # Joint shares 3/8, 1/8, 1/8, 3/8 and even margins: 1 - H(1/4) in bits.
    truth, clusters = [0] * 4 + [1] * 4, [0, 0, 0, 1, 1, 1, 1, 0]
    expected = 1 + 0.75 * np.log2(0.75) + 0.25 * np.log2(0.25)
    assert_allclose(normalized_mutual_information(truth, clusters), expected, rtol=1e-12)


@pytest.mark.parametrize("metric", [clustering_accuracy, normalized_mutual_information])
def test_independent_of_names_and_of_sides(metric):
    rng = np.random.default_rng(0)
    truth, clusters = rng.integers(3, size=50), rng.integers(3, size=50)
    renamed = np.array(["z", "b", "q"])[clusters]
    assert_allclose(metric(truth, clusters), metric(truth, renamed), rtol=1e-14)
    assert_allclose(metric(truth, clusters), metric(clusters, truth), rtol=1e-14)


@pytest.mark.parametrize("metric", [clustering_accuracy, normalized_mutual_information])
def test_bad_input(metric):
    with pytest.raises(ValueError, match=r"same length. Got 3 and 2"):
        metric([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match=r"y_true with one label per bag. Got shape \(0,\)"):
        metric([], [])
    with pytest.raises(ValueError, match=r"y_pred .* Got shape \(2, 1\)"):
        metric([0, 1], [[0], [1]])
