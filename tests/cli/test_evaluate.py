from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ParameterGrid,
    StratifiedKFold,
    cross_val_score,
)

from bagwise.cli._evaluate import Evaluation, Scores, grid_size
from bagwise.cli._models import with_scaling
from bagwise.cli._output import CommandError, Output
from bagwise.datasets import make_key_instance_bags
from bagwise.metrics import average_precision_scorer
from bagwise.svm import SIL, MIKernelSVM

QUIET = Output(quiet=True)
GRID = {"C": [0.01, 1.0, 30.0]}


@pytest.fixture(scope="module")
def data():
    made = make_key_instance_bags(40, separation=2.0, random_state=0)
    return made.bags, made.y


def folds(n, seed=3):
    return StratifiedKFold(n, shuffle=True, random_state=seed)


def test_plain_validation_is_that_of_scikit_learn(data):
    bags, y = data
    scores = Evaluation(QUIET, bags, y, 3).validate(SIL(), {}, 4)
    assert scores.values == tuple(cross_val_score(SIL(), bags, y, cv=folds(4)))
    assert scores.metric == "accuracy"
    assert scores.protocol == "4-fold cross-validation, stratified, shuffled with seed 3"


def test_validation_with_a_grid_is_nested(data):
    bags, y = data
    scores = Evaluation(QUIET, bags, y, 3).validate(SIL(), GRID, 4)
    search = GridSearchCV(SIL(), GRID, cv=folds(4))
    assert scores.values == tuple(cross_val_score(search, bags, y, cv=folds(4)))
    assert "chosen anew inside each training part" in scores.protocol


def test_choice_is_that_of_grid_search(data):
    bags, y = data
    best, scores = Evaluation(QUIET, bags, y, 3).choose(SIL(), GRID, 4)
    search = GridSearchCV(SIL(), GRID, cv=folds(4)).fit(bags, y)
    assert best == search.best_params_
    assert scores.mean == pytest.approx(search.best_score_)


class ByHand:
    """Search and nested cross-validation as plain loops: what the command is to do."""

    def __init__(self, estimator, bags, y, grid, seed):
        self.estimator, self.bags, self.y, self.seed = estimator, bags, y, seed
        self.candidates = list(ParameterGrid(grid))

    def score(self, params, train, test):
        model = clone(self.estimator).set_params(**params).fit(self.bags[train], self.y[train])
        return (model.predict(self.bags[test]) == self.y[test]).mean()

    def choose(self, rows, n_folds):
        splits = [
            (rows[train], rows[test])
            for train, test in folds(n_folds, self.seed).split(rows, self.y[rows])
        ]
        table = [[self.score(params, *split) for split in splits] for params in self.candidates]
        best = int(np.argmax(np.mean(table, axis=1)))
        return self.candidates[best], table[best]

    def validate(self, n_folds):
        every = np.arange(len(self.y))
        splits = list(folds(n_folds, self.seed).split(every, self.y))
        chosen = [self.choose(train, n_folds)[0] for train, _ in splits]
        return [self.score(params, *split) for params, split in zip(chosen, splits, strict=True)]


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("seed", [0, 7])
def test_search_and_nested_validation_are_the_loops(data, scale, seed):
    bags, y = data
    estimator, prefix = MIKernelSVM(), ""
    if scale:
        estimator, prefix = with_scaling(estimator, bags), "model__"
    grid = {f"{prefix}C": [0.01, 1.0, 100.0], f"{prefix}gamma": [0.01, 0.3]}
    evaluation = Evaluation(QUIET, bags, y, seed)
    by_hand = ByHand(estimator, bags, y, grid, seed)
    best, scores = evaluation.choose(estimator, grid, 4)
    wanted, values = by_hand.choose(np.arange(len(y)), 4)
    assert best == wanted
    assert scores.values == tuple(values)
    assert evaluation.validate(estimator, grid, 4).values == tuple(by_hand.validate(4))


class Counting(Output):
    """Keeps what the bars were told."""

    def __init__(self):
        super().__init__(quiet=True)
        object.__setattr__(self, "bars", [])

    @contextmanager
    def counting(self, doing, total):
        done = []
        yield done.append
        self.bars.append((doing, total, sum(done)))


def test_bar_counts_fits(data):
    bags, y = data
    output = Counting()
    evaluation = Evaluation(output, bags, y, 0)
    evaluation.validate(SIL(), {}, 3)
    evaluation.validate(SIL(), {"C": [1.0]}, 3)
    evaluation.validate(with_scaling(SIL(), bags), {"model__C": [0.1, 1.0]}, 3)
    evaluation.choose(SIL(), {"C": [0.1, 1.0], "gamma": ["scale", 0.1]}, 3)
    assert output.bars == [
        ("Cross-validating", 3, 3),
        ("Cross-validating", 3, 3),
        ("Cross-validating", 3 * (1 + 2 * 3), 3 * (1 + 2 * 3)),
        ("Choosing parameters", 12, 12),
    ]


def test_one_setting_is_no_search(data):
    bags, y = data
    scores = Evaluation(QUIET, bags, y, 3).validate(SIL(), {"C": [30.0]}, 4)
    assert scores.values == tuple(cross_val_score(SIL(C=30.0), bags, y, cv=folds(4)))
    assert "chosen" not in scores.protocol


def test_size_of_a_grid():
    assert grid_size({}) == 1
    assert grid_size({"C": [1, 2, 3], "gamma": [1, 2]}) == 6


def test_label_lists(data):
    bags, y = data
    lists = np.stack([y, 1 - y, np.ones_like(y)], axis=1)
    scores = Evaluation(QUIET, bags, lists, 0).validate(SIL(), {}, 3)
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
        Evaluation(QUIET, bags, y, 0).validate(SIL(), {}, 21)


def test_too_few_bags_for_the_search_inside(data):
    bags, y = data
    lists = np.stack([y, 1 - y], axis=1)[:5]
    with pytest.raises(CommandError, match=r"^5 folds need at least 5 bags. There are 4: lower"):
        Evaluation(QUIET, bags[:5], lists, 0).validate(SIL(), GRID, 5)
