"""MLCA: labels of instances or of bags, and the closed form."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from bagwise import Bags
from bagwise.base import Target
from bagwise.metric import MLCA


def test_metric_with_centred_rows_ranks_as_discriminants_do():
    """Least squares on centred class indicators spans the space of linear discriminants."""
    X, y = load_iris(return_X_y=True)
    ours = MLCA(center=True).fit(X, y).transform(X)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).transform(X)
    together = np.hstack([ours, theirs])
    together = np.linalg.svd(together - together.mean(axis=0), compute_uv=False)
    assert (together > 1e-8 * together[0]).sum() == 2


def test_one_label_for_each_instance_or_for_each_bag():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    bags = Bags(X, [0, 4, 6, 9, 12])
    y = np.array(["a", "b", "b", "a"])
    wide = np.repeat(y, bags.sizes)
    expected = MLCA().fit(X, wide)
    for model in (MLCA().fit(bags, wide), MLCA().fit(bags, y)):
        np.testing.assert_array_equal(model.components_, expected.components_)
        assert model.predict(bags).shape == (4,)
    mixed = wide.copy()
    mixed[0] = "b"
    assert MLCA().fit(bags, mixed).assignments_[0] == 1


def test_weights_of_bags_are_those_of_their_instances():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 3))
    bags = Bags(X, [0, 4, 6, 9, 12])
    y = np.repeat([0, 1, 0, 1], bags.sizes)
    weight = np.array([1.0, 2.0, 1.0, 3.0])
    often = np.repeat(np.arange(12), np.repeat(weight, bags.sizes).astype(int))
    model = MLCA().fit(bags, y, weight)
    np.testing.assert_allclose(
        model.components_, MLCA().fit(X[often], y[often]).components_, rtol=1e-9
    )


def test_no_column_of_signs_is_made_for_each_label(monkeypatch):
    """They would take as many numbers as there are instances, times the labels."""
    X, y = load_iris(return_X_y=True)
    expected = MLCA().fit(X, y).components_
    bags = Bags(X, np.arange(0, 151, 5))

    def refused(target):
        raise AssertionError

    monkeypatch.setattr(Target, "positive", property(refused))
    np.testing.assert_array_equal(MLCA().fit(bags, y).components_, expected)
    np.testing.assert_array_equal(MLCA().fit(bags, y[::5]).components_, expected)


def test_lists_are_refused():
    with pytest.raises(ValueError, match="one label for each instance, not lists: see MIMLCA"):
        MLCA().fit(np.eye(4), np.eye(4, 3, dtype=int))
