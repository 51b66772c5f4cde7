"""MILBoost as a classifier."""

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import bagwise
from bagwise.datasets import make_key_instance_bags
from bagwise.ensemble import MILBoost
from bagwise.exceptions import ModelFileError

VARIANTS = ["noisy_or", "isr", "average"]


@pytest.fixture(scope="module")
def data():
    return make_key_instance_bags(60, random_state=0)


def scores_by_loops(model, X):
    F = np.full(len(X), model.intercept_[0])
    stumps = zip(
        model.estimator_weights_[0], model.stump_features_[0], model.stump_thresholds_[0],
        model.stump_signs_[0], strict=True,
    )  # fmt: skip
    for weight, feature, threshold, sign in stumps:
        F += weight * np.where(X[:, feature] > threshold, sign, -sign)
    return F


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_and_objective_are_those_stated(variant, data):
    model = MILBoost(variant=variant, n_estimators=20).fit(data.bags, data.y)
    F = scores_by_loops(model, data.bags.instances)
    np.testing.assert_allclose(model.instance_decision_function(data.bags), F, atol=1e-9)
    parts = np.split(F, data.bags.offsets[1:-1])
    sign = np.where(np.asarray(data.y) == 1, 1.0, -1.0)
    scores = model.decision_function(data.bags)
    if variant == "average":
        expected = np.array([part.mean() for part in parts])
        objective = np.exp(-sign * expected).sum()
    else:
        if variant == "isr":
            P = np.array([np.exp(part).sum() / (1.0 + np.exp(part).sum()) for part in parts])
        else:
            P = np.array([1.0 - np.prod(1.0 / (1.0 + np.exp(part))) for part in parts])
        expected = np.log(P / (1.0 - P))
        objective = np.logaddexp(0.0, -sign * scores).sum()
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6)
    assert model.result_.objective == pytest.approx(objective)
    assert (np.diff(model.result_.history) < 0).all()


def test_averages_of_single_instances_are_adaboost():
    """On bags of one instance the exponential loss and its steps are those of AdaBoost.

    AdaBoost starts from 0, so both classes weigh the same here. Its steps are twice as long.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + 0.7 * X[:, 1] + 0.5 * rng.normal(size=80) > 0).astype(int)
    X, y = np.r_[X, -X], np.r_[y, 1 - y]
    model = MILBoost(variant="average", n_estimators=1).fit(X, y)
    stump = DecisionTreeClassifier(max_depth=1)
    other = AdaBoostClassifier(stump, n_estimators=1).fit(X, y)
    h = other.estimators_[0].predict(X)
    error = np.mean(h != y)
    ours = np.where(model.instance_decision_function(X) > 0, 1, 0)
    assert np.mean(ours != y) <= error + 1e-12
    wrong = np.mean(ours != y)
    step = 0.5 * np.log((1.0 - wrong) / wrong)
    assert model.estimator_weights_[0, 0] == pytest.approx(step, rel=1e-2)


@pytest.mark.parametrize("variant", VARIANTS)
def test_any_weak_learner(variant, data):
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = MILBoost(variant=variant, estimator=tree, n_estimators=10).fit(data.bags, data.y)
    assert (np.diff(model.result_.history) < 0).all()
    F = np.full(data.bags.n_instances, model.intercept_[0])
    for weight, learner in zip(model.estimator_weights_[0], model.estimators_[0], strict=True):
        F += weight * learner.predict(data.bags.instances)
    np.testing.assert_allclose(model.instance_decision_function(data.bags), F)
    assert model.score(data.bags, data.y) > 0.8


def test_weak_learners_that_cannot_be_used_or_saved(data, tmp_path):
    with pytest.raises(ValueError, match="KNeighborsClassifier does not"):
        MILBoost(estimator=KNeighborsClassifier()).fit(data.bags, data.y)
    model = MILBoost(estimator=DecisionTreeClassifier(max_depth=1), n_estimators=2)
    with pytest.raises(ModelFileError, match=r"hold decision stumps \(estimator=None\).*skops"):
        bagwise.save(model.fit(data.bags, data.y), tmp_path / "boost.model")
