import math
import warnings
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import sem
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ParameterGrid,
    StratifiedKFold,
    cross_val_score,
)

from bagwise import Bags
from bagwise.cli._evaluate import Evaluation, Scores, grid_size
from bagwise.cli._models import prepared
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
        estimator, prefix = prepared(estimator, bags, scale=True), "model__"
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
    evaluation.validate(prepared(SIL(), bags, scale=True), {"model__C": [0.1, 1.0]}, 3)
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


def test_other_metrics_are_those_of_scikit_learn(data):
    bags, y = data
    scores = Evaluation(QUIET, bags, y, 3).validate(SIL(), {}, 4)
    names = {"balanced accuracy": "balanced_accuracy", "AUC": "roc_auc"}
    assert [other.metric for other in scores.others] == list(names)
    for other in scores.others:
        wanted = cross_val_score(SIL(), bags, y, cv=folds(4), scoring=names[other.metric])
        assert other.values == pytest.approx(tuple(wanted))


def test_three_classes_have_no_single_curve(data):
    bags, _ = data
    scores = Evaluation(QUIET, bags, np.arange(40) % 3, 3).validate(SIL(), {}, 4)
    assert [other.metric for other in scores.others] == ["balanced accuracy"]


def test_folds_that_lack_a_class(data):
    bags, y = data
    few = np.r_[np.flatnonzero(y == 0)[:8], np.flatnonzero(y == 1)[:3]]
    with pytest.warns(UserWarning, match="least populated class"):
        scores = Evaluation(QUIET, bags[few], y[few], 3).validate(SIL(), {}, 4)
    with pytest.warns(UserWarning, match="least populated class"):
        splits = list(folds(4).split(few, y[few]))
    whole = [len(np.unique(y[few][test])) == 2 for _, test in splits]
    assert 2 <= sum(whole) < 4
    chosen = [split for split, has_both in zip(splits, whole, strict=True) if has_both]
    names = {"balanced accuracy": "balanced_accuracy", "AUC": "roc_auc"}
    for other in scores.others:
        wanted = cross_val_score(SIL(), bags[few], y[few], cv=chosen, scoring=names[other.metric])
        assert other.known == pytest.approx(tuple(wanted))
        assert [not math.isnan(value) for value in other.values] == whole
        assert other.mean == pytest.approx(wanted.mean())
        assert other.standard_error == pytest.approx(sem(wanted))
        assert other.text.endswith(f" ({sum(whole)} of 4 folds, others: not defined)")
    assert len(scores.others) == 2


def test_means_of_few_folds_in_words():
    of_one = Scores("AUC", (0.75, math.nan, math.nan), "")
    assert of_one.text == "0.750 (1 of 3 folds, others: not defined)"
    none = Scores("balanced accuracy", (math.nan, math.nan), "")
    assert none.text == "not defined on any fold"
    assert math.isnan(none.mean)


def test_choosing_by_what_is_not_defined_is_refused(data):
    bags, y = data
    few = np.r_[np.flatnonzero(y == 0)[:12], np.flatnonzero(y == 1)[:2]]
    evaluation = Evaluation(QUIET, bags[few], y[few], 3, "roc_auc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(CommandError, match="cannot be chosen by AUC, which is not defined"):
            evaluation.choose(SIL(), GRID, 4)


@pytest.mark.parametrize(("scoring", "name"), [("roc_auc", "AUC"), ("f1", "f1")])
def test_what_is_measured_first_also_chooses(data, scoring, name):
    bags, y = data
    evaluation = Evaluation(QUIET, bags, y, 3, scoring)
    best, chosen = evaluation.choose(SIL(), GRID, 4)
    search = GridSearchCV(SIL(), GRID, cv=folds(4), scoring=scoring).fit(bags, y)
    assert (best, chosen.metric) == (search.best_params_, name)
    assert chosen.mean == pytest.approx(search.best_score_)
    scores = evaluation.validate(SIL(), GRID, 4)
    wanted = cross_val_score(search, bags, y, cv=folds(4), scoring=scoring)
    assert (scores.metric, scores.values) == (name, pytest.approx(tuple(wanted)))
    others = {"accuracy", "balanced accuracy", "AUC"} - {name}
    assert {other.metric for other in scores.others} == others


class Watching(SIL):
    """Keeps the names of the bags that it was fitted to."""

    seen: ClassVar = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append(frozenset(name[:3] for name in X.bag_names))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("grid", [{}, {"C": [0.1, 1.0]}], ids=["plain", "nested"])
def test_groups_stay_together_in_folds_and_in_folds_inside(data, grid):
    bags, y = data
    patients = np.repeat([f"p{i:02}" for i in range(10)], 4)
    names = [f"{patient}-{i}" for i, patient in enumerate(patients)]
    named = Bags(bags.instances, bags.offsets, bag_names=names)
    shuffled = np.random.default_rng(0).permutation(40)
    y = np.tile([0, 1], 20)
    Watching.seen.clear()
    evaluation = Evaluation(QUIET, named[shuffled], y[shuffled], 0, groups="^p[0-9]+")
    scores = evaluation.validate(Watching(), grid, 5)
    assert "groups of bags together" in scores.protocol
    sizes = {len(group) for group in Watching.seen}
    # Of ten patients, eight are left in each fold, and six or seven of these in one inside.
    assert sizes == ({8} if not grid else {6, 7, 8})


def test_label_lists(data):
    bags, y = data
    lists = np.stack([y, 1 - y, np.ones_like(y)], axis=1)
    scores = Evaluation(QUIET, bags, lists, 0).validate(SIL(), {}, 3)
    splits = KFold(3, shuffle=True, random_state=0)
    wanted = cross_val_score(SIL(), bags, lists, cv=splits, scoring=average_precision_scorer)
    assert scores.values == pytest.approx(tuple(wanted))
    assert scores.metric == "average precision"
    assert scores.others == ()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("scoring", ["f1", "jaccard", "precision", "recall"])
def test_scores_of_one_of_two_labels_name_those_of_more(data, scoring):
    bags, y = data
    three, lists = np.arange(len(y)) % 3, np.stack([y, 1 - y, y], axis=1)
    for labels, there in ((three, "3 labels"), (lists, "lists of labels")):
        with pytest.raises(CommandError, match=f"there are {there}: choose {scoring}_macro or"):
            Evaluation(QUIET, bags, labels, 0, scoring).validate(SIL(), {}, 3)
        Evaluation(QUIET, bags, labels, 0, f"{scoring}_macro").validate(SIL(), {}, 3)


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
    with pytest.raises(
        CommandError,
        match=r"^5 folds need at least 5 bags in each training part. There are 4: lower",
    ):
        Evaluation(QUIET, bags[:5], lists, 0).validate(SIL(), GRID, 5)
