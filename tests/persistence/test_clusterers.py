"""Clusterers in model files: they come back whole, and states that contradict themselves do not."""

import numpy as np
import pytest

from bagwise import Bags
from bagwise.cluster import BAMIC, CPM3C, M3IC, BagKMeans
from bagwise.exceptions import ModelFileError
from bagwise.persistence import load, save
from bagwise.testing import make_toy_bags
from persistence.standins import assert_same

ESTIMATORS = {
    "M3IC": M3IC(3, C=2.0),
    "M3IC, kernel": M3IC(kernel="rbf", gamma="median"),
    "M3IC, random features": M3IC(kernel="rbf", approx="fourier", rank=7),
    "BAMIC": BAMIC(3, distance="max"),
    "BagKMeans": BagKMeans(3, vote="mil"),
    "CPM3C": CPM3C(n_init=1),
}


def fit(estimator, dtype=np.float64):
    listed, _ = make_toy_bags(18, n_classes=3)
    bags = Bags.from_list([bag.astype(dtype) for bag in listed], feature_names=list("uvw"))
    fresh = type(estimator)(**{**estimator.get_params(), "random_state": 0})
    return fresh.fit(bags), bags


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_round_trip(tmp_path, name, dtype):
    model, bags = fit(ESTIMATORS[name], dtype)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same(model, loaded)
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    for question in ("predict", "decision_function", "transform"):
        got, expected = getattr(loaded, question)(bags), getattr(model, question)(bags)
        np.testing.assert_array_equal(got, expected, strict=True)
    assert loaded.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_not_fitted(tmp_path, estimator):
    save(estimator, tmp_path / "model")
    assert_same(estimator, load(tmp_path / "model"))


@pytest.mark.parametrize(
    ("name", "attribute", "value", "problem"),
    [
        *((name, "labels_", np.full(18, 3), "below the number of clusters") for name in
          ("M3IC", "BAMIC", "BagKMeans", "CPM3C")),
        ("M3IC", "labels_", np.full(18, -1), "labels_"),
        ("M3IC", "key_instances_", np.zeros(17, int), "n_bags"),
        ("M3IC", "coef_", np.ones((3, 4)), "coef_"),
        ("M3IC", "dual_coef_", np.ones((3, 2)), "coef_ must be there, or dual_coef_, and not both"),
        ("M3IC", "fourier_offset_", np.ones(3), "fourier_weights_"),
        ("M3IC, kernel", "dual_coef_", np.ones((2, 1)), "n_support"),
        ("M3IC, random features", "fourier_weights_", np.ones((3, 6)), "n_weights"),
        ("BAMIC", "medoids_", np.array([0, 1, 18]), "below the number of bags"),
        ("BAMIC", "medoid_offsets_", np.array([0, 1, 1, 2]), "medoid_offsets_"),
        ("BagKMeans", "vote_weights_", np.ones(2), "n_clusters"),
        ("CPM3C", "coef_", np.full((2, 3), np.nan), "finite"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(tmp_path, name, attribute, value, problem):
    model, _ = fit(ESTIMATORS[name])
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError, match=problem):
        save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
