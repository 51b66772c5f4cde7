import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score

from bagwise.cli._evaluate import Scores, Trial
from bagwise.cli._output import CommandError, Output
from bagwise.datasets import make_key_instance_bags
from bagwise.metrics import average_precision_scorer
from bagwise.svm import SIL

QUIET = Output(quiet=True)
GRID = {"C": [0.01, 1.0, 30.0]}


@pytest.fixture(scope="module")
def data():
    made = make_key_instance_bags(40, separation=2.0, random_state=0)
    return made.bags, made.y


def make(params):
    return SIL(**params)


def folds(n, seed=3):
    return StratifiedKFold(n, shuffle=True, random_state=seed)


def test_plain_validation_is_that_of_scikit_learn(data):
    bags, y = data
    scores = Trial(make, bags, y, {}, 3).validate(QUIET, 4)
    assert scores.values == tuple(cross_val_score(SIL(), bags, y, cv=folds(4)))
    assert scores.metric == "accuracy"
    assert scores.protocol == "4-fold cross-validation, stratified, shuffled with seed 3"


def test_validation_with_a_grid_is_nested(data):
    bags, y = data
    scores = Trial(make, bags, y, GRID, 3).validate(QUIET, 4)
    search = GridSearchCV(SIL(), GRID, cv=folds(4))
    assert scores.values == tuple(cross_val_score(search, bags, y, cv=folds(4)))
    assert "chosen anew inside each training part" in scores.protocol


def test_choice_is_that_of_grid_search(data):
    bags, y = data
    best, scores = Trial(make, bags, y, GRID, 3).choose(QUIET, 4)
    search = GridSearchCV(SIL(), GRID, cv=folds(4)).fit(bags, y)
    assert best == search.best_params_
    assert scores.mean == pytest.approx(search.best_score_)


def test_label_lists(data):
    bags, y = data
    lists = np.stack([y, 1 - y, np.ones_like(y)], axis=1)
    scores = Trial(make, bags, lists, {}, 0).validate(QUIET, 3)
    splits = KFold(3, shuffle=True, random_state=0)
    wanted = cross_val_score(SIL(), bags, lists, cv=splits, scoring=average_precision_scorer)
    assert scores.values == pytest.approx(tuple(wanted))
    assert scores.metric == "average precision"


def test_standard_error():
    scores = Scores("accuracy", (0.5, 0.7, 0.9), "")
    assert scores.mean == pytest.approx(0.7)
    assert scores.standard_error == pytest.approx(0.2 / np.sqrt(3))


def test_too_many_folds(data):
    bags, y = data
    with pytest.raises(CommandError, match="21 folds need at least 21 bags with the same label"):
        Trial(make, bags, y, {}, 0).validate(QUIET, 21)
