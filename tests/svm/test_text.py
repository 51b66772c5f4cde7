"""Machines on means and extremes of bags of text: sparse like dense, stored like in memory."""

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise import Bags
from bagwise.solvers import FeatureRows
from bagwise.solvers.svm import _linear_svm
from bagwise.svm import LabelMeanSVM, MIKernelSVM, StatisticKernelSVM

MODELS = [
    LabelMeanSVM(kernel="linear"),
    MIKernelSVM(kernel="linear"),
    StatisticKernelSVM(kernel="linear"),
    StatisticKernelSVM(C=100.0, statistic="mean_std", kernel="linear"),
]


def text(n_bags=40, size=8, d=1500):
    rng = np.random.default_rng(0)
    X = sp.random_array((n_bags * size, d), density=0.01, format="csr", rng=rng)
    y = np.arange(n_bags) % 2
    bags = Bags(X.astype(np.float32), np.arange(0, n_bags * size + 1, size))
    return bags, y


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_sparse_and_dense_bags_make_the_same_machine(model, monkeypatch, tmp_path):
    bags, y = text()
    dense = model.fit(Bags(bags.instances.toarray(), bags.offsets), y)
    expected = dense.decision_function(bags)
    monkeypatch.setattr(_linear_svm, "_DEAR", 0.0)
    monkeypatch.setattr(_linear_svm, "_SHARE", 1e6)
    monkeypatch.setattr(_linear_svm, "_MANY_FEATURES", 1)
    monkeypatch.setattr(FeatureRows, "gram", lambda self: pytest.fail("a Gram matrix"))
    found = model.fit(bags, y).decision_function(bags)
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())
    bags.write(tmp_path / "text.bags")
    stored = Bags.open(tmp_path / "text.bags")
    np.testing.assert_array_equal(model.fit(stored, y).decision_function(bags), found)
