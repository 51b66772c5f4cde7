"""Models that say the same of every bag."""

import warnings

import numpy as np
import pytest

from bagwise import Bags
from bagwise.base import Target
from bagwise.base._constant import in_turn
from bagwise.embedding import MILES
from bagwise.exceptions import (
    ConstantModelWarning,
    MovedThresholdWarning,
    PositiveClassWarning,
)
from bagwise.model_selection import BagGridSearchCV, BagHalvingGridSearchCV
from bagwise.svm import SIL, MIKernelSVM
from bagwise.testing import make_toy_bags
from testing.sound import NearestMean


class Watched(NearestMean):
    """Remembers how many bags were scored at a time."""

    def _learn(self, *task):
        self.__dict__["_scored"] = []
        return super()._learn(*task)

    def _bag_outputs(self, bags):
        self._scored.append(len(bags))
        return super()._bag_outputs(bags)


@pytest.mark.parametrize(
    "model", [MILES(C=1e-3), MIKernelSVM(C=1e-6), SIL(C=1e-6)], ids=lambda model: str(model)
)
def test_converged_and_constant(model):
    bags, y = make_toy_bags(30, kind="close")
    y[:3] = 0  # so that one class is more frequent
    with pytest.warns(ConstantModelWarning) as caught:
        model.fit(bags, y)
    (warning,) = caught
    assert model.result_.converged
    assert len(np.unique(model.predict(bags))) == 1
    text = f"{type(model).__name__} predicts {model.predict(bags)[0]} for every bag"
    assert text in str(warning.message)
    assert "another C, another gamma" in str(warning.message)
    assert warning.filename == __file__


def test_advice_is_about_parameters_that_there_are():
    with pytest.warns(ConstantModelWarning) as caught:
        NearestMean().fit(np.zeros((4, 2)), [0, 1, 1, 1])
    assert str(caught[0].message) == (
        "NearestMean predicts 1 for every bag that it learned from. Scale the features, or try "
        'class_weight="balanced", another method.'
    )


def test_three_classes_and_label_lists():
    rows = np.zeros((6, 2))
    with pytest.warns(ConstantModelWarning, match="predicts 'c' for every bag"):
        NearestMean().fit(rows, list("abcccc"))
    lists = np.array([[1, 1], [1, 0], [1, 0], [1, 0], [1, 0], [1, 0]])
    with pytest.warns(ConstantModelWarning, match="predicts the same labels for every bag"):
        NearestMean().fit(rows, lists)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NearestMean().fit(rows, np.ones((6, 2), int))  # there was nothing to tell apart


def test_two_bags_are_enough():
    bags, y = make_toy_bags(200)
    order = np.argsort(y, kind="stable")  # all of one class first
    model = Watched().fit([bags[i] for i in order], y[order])
    assert model._scored == [2]


def test_all_bags_are_looked_at_before_it_is_said():
    bags = [np.zeros((2, 2))] * 99 + [np.full((2, 2), 9.0)]
    y = np.arange(100) >= 50
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Watched(class_weight={False: 2.0, True: 1.0}).fit(bags, y)
    assert model.predict(bags).sum() == 1  # the last bag alone
    with pytest.warns(ConstantModelWarning):
        model = Watched().fit(bags[:99], y[:99])
    assert sum(model._scored) == 99


def test_bags_of_weight_zero_do_not_count():
    bags = [np.zeros((1, 2))] * 4 + [np.ones((1, 2))] * 4
    y = np.array([0, 0, 1, 1, 1, 1, 1, 1])
    with pytest.warns(ConstantModelWarning):
        NearestMean().fit(bags, y, sample_weight=[1, 1, 1, 1, 0, 0, 0, 0])


def test_warning_as_error_leaves_nothing_behind():
    model = NearestMean()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConstantModelWarning):
            model.fit(np.zeros((4, 2)), [0, 1, 1, 1])
    assert not hasattr(model, "coef_")


def test_classes_take_turns():
    codes = np.array([0, 0, 0, 2, 1, 1, 2])
    target = Target(np.arange(3), codes)
    assert codes[in_turn(target)].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert sorted(in_turn(target).tolist()) == list(range(7))


@pytest.mark.parametrize("kind", [BagGridSearchCV, BagHalvingGridSearchCV])
@pytest.mark.parametrize(
    ("best", "expected"),
    [(1e-10, ConstantModelWarning), (1e-3, MovedThresholdWarning), (10.0, None)],
)
def test_search_speaks_of_the_best_candidate_only(kind, best, expected):
    bags, y = make_toy_bags(80)
    some = np.flatnonzero((y == 0) | (np.arange(80) % 4 == 1))  # so that one class is more frequent
    names = np.array(["first", f"second, {kind.__name__}, {best}"])
    search = kind(SIL(), {"C": [1e-12, 2e-12, best]}, cv=3)
    if "random_state" in search.get_params(deep=False):  # halving draws the bags of its rounds
        search.set_params(random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        search.fit(Bags.from_list([bags[i] for i in some]), names[y[some]])
    said = [warning.category for warning in caught]
    assert [kind for kind in said if issubclass(kind, ConstantModelWarning)] == (
        [expected] if expected else []
    )
    assert said.count(PositiveClassWarning) == 1


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_search_without_last_fit_says_once_which_class_is_positive(n_jobs):
    bags, y = make_toy_bags(30)
    search = BagGridSearchCV(SIL(), {"C": [1.0, 10.0]}, cv=3, refit=False, n_jobs=n_jobs)
    for _ in range(2):  # each search says it
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PositiveClassWarning)
            search.fit(bags, np.array(["no", "yes"])[y])
        assert len(caught) == 1
        assert "takes 'yes' for the positive class" in str(caught[0].message)
