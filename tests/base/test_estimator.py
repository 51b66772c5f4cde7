"""What families beyond classifiers and clusterers take from `BagEstimator`."""

import pickle
import warnings
from inspect import signature

import numpy as np
import pytest
from sklearn.base import TransformerMixin, is_classifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from bagwise import Bags, all_estimators
from bagwise.base import BagClassifier, _estimator
from bagwise.neighbors import CitationKNN
from bagwise.solvers import Certificate, Status
from bagwise.testing import make_toy_bags, parametrize_with_bag_checks
from testing.sound import VoteOfBags

# ------------------------------------------------------------------------------------- lazy


@parametrize_with_bag_checks([VoteOfBags()])
def test_bag_checks_of_a_lazy_learner(estimator, check):
    check(estimator)


@parametrize_with_checks([VoteOfBags()])
def test_sklearn_checks_of_a_lazy_learner(estimator, check):
    check(estimator)


def test_nothing_to_optimise():
    bags, y = make_toy_bags()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = VoteOfBags().fit(bags, y)
    assert isinstance(model.bags_, Bags)
    assert model.n_iter_ == 0
    assert model.result_.converged
    assert str(model.result_.status) == "nothing to optimise"
    assert model.result_.gap == 0.0
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(bags), model.decision_function(bags))


def test_nothing_is_better_than_converged_in_a_sum():
    done = Certificate(objective=2.0, lower_bound=1.5, status=Status.CONVERGED, n_iter=3)
    assert Certificate.total([Certificate.nothing(), done]).status == Status.CONVERGED
    assert Certificate.total([Certificate.nothing(), done]).gap == 0.5
    both = Certificate.total([Certificate.nothing(), Certificate.nothing()])
    assert both.status == Status.NOTHING


# ----------------------------------------------------------------------------------- metric


class Centres(TransformerMixin, BagClassifier):
    """Scores against the mean of each label's instances; learns the scale of each feature.

    Labels come in lists of any length, one list for each bag or for each instance.
    """

    _parameter_constraints = {}  # noqa: RUF012

    def _encode(self, bags, y, sample_weight):
        if len(y) == bags.n_instances:
            bags = Bags(bags.instances, np.arange(bags.n_instances + 1))
        names = sorted(set().union(*y))
        indicator = np.array([[name in labels for name in names] for labels in y], dtype=int)
        task, known = super()._encode(bags, indicator, sample_weight)
        return task, {**known, "classes_": np.array(names)}

    def _learn(self, bags, target, cost_weight, bag_weight):
        scale = 1.0 / bags.instances.std(axis=0)
        has = np.repeat(target.signs > 0, bags.sizes, axis=0)
        centres = np.array([(scale * bags.instances[rows]).mean(axis=0) for rows in has.T])
        return {"scale_": scale, "centres_": centres}

    def transform(self, X):
        bags = self._validated(X)
        return Bags(bags.instances * self.scale_, bags.offsets)

    def _instance_outputs(self, bags):
        rows = bags.instances * self.scale_
        return 1.0 - np.square(rows[:, None] - self.centres_).sum(axis=2)

    def _bag_outputs(self, bags):
        return np.maximum.reduceat(self._instance_outputs(bags), bags.offsets[:-1], axis=0)


BAGS = [[[0.0, 9.0], [4.0, 1.0]], [[4.0, 1.0]], [[0.0, 9.0], [0.0, 9.0]]]
BAG_LISTS = [["sky", "sea"], ["sea"], ["sky"]]
INSTANCE_LISTS = [["sky"], ["sea"], ["sea"], ["sky"], ["sky"]]


@pytest.mark.parametrize("lists", [BAG_LISTS, INSTANCE_LISTS])
def test_label_lists_of_any_length_for_bags_or_instances(lists):
    model = Centres().fit(BAGS, lists)
    assert model.classes_.tolist() == ["sea", "sky"]
    assert model.multilabel_
    assert is_classifier(model)
    assert model.score(BAGS, model.predict(BAGS)) == 1.0
    assert model.key_instances(BAGS)[0].tolist() == [1, 0]


def test_labels_of_instances_are_learned():
    # Means and deviations by hand: of the columns (0, 4, 4, 0, 0) and (9, 1, 1, 9, 9).
    model = Centres().fit(BAGS, INSTANCE_LISTS)
    scale = 1.0 / np.array([4.0, 8.0]) / np.sqrt(0.24)
    np.testing.assert_allclose(model.scale_, scale, rtol=1e-12)
    np.testing.assert_allclose(model.centres_, scale * [[4.0, 1.0], [0.0, 9.0]], rtol=1e-12)
    assert model.predict(BAGS).tolist() == [[1, 1], [1, 0], [0, 1]]


def test_classifier_and_transformer_at_once():
    model = Centres()
    moved = model.fit_transform(BAGS, BAG_LISTS)
    assert moved.sizes.tolist() == [2, 1, 2]
    assert moved.instances.tolist() == model.transform(BAGS).instances.tolist()
    np.testing.assert_allclose(moved.instances.std(axis=0), 1.0, rtol=1e-12)


# ---------------------------------------------------------------------------------- all of them


CLASSIFIERS = [cls for _, cls in all_estimators() if issubclass(cls, BagClassifier)]


@pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda cls: cls.__name__)
def test_fit_without_y_names_the_class(cls):
    with pytest.raises(ValueError, match=f"{cls.__name__} requires y to be passed"):
        cls().fit(BAGS)
    # A vote of neighbours can hold a weight for a repetition or for a share, not for both.
    assert ("sample_weight" in signature(cls.fit).parameters) != issubclass(cls, CitationKNN)


@pytest.mark.parametrize("name", dict(all_estimators()))
def test_seconds_are_those_of_the_whole_fit(name, monkeypatch):
    clock = iter([100.0, 107.0])
    monkeypatch.setattr(_estimator, "perf_counter", lambda: next(clock))
    bags, y = make_toy_bags(24)
    model = dict(all_estimators())[name]()
    assert model.fit(bags, y).result_.solve_time == 7.0
