"""Scorers: the same numbers as the functions, inside scikit-learn's tools."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagwise import Bags
from bagwise.bags import segment_max
from bagwise.metrics import (
    SCORERS,
    average_precision,
    coverage,
    make_instance_scorer,
    one_error,
)
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL

INSTANCE_METRICS = (
    "instance_auc",
    "instance_precision",
    "instance_recall",
    "key_instance_success_rate",
)


class FirstFeatures(ClassifierMixin, BaseEstimator):
    """Scores instances by their first features: everything can be worked out by hand."""

    def __init__(self, classes=(0, 1)):
        self.classes = classes

    def fit(self, X, y):
        self.classes_ = np.asarray(self.classes)
        self.multilabel_ = np.ndim(y) == 2
        return self

    def instance_decision_function(self, X):
        n_columns = 1 if len(self.classes_) == 2 and not self.multilabel_ else len(self.classes_)
        scores = X.instances[:, :n_columns]
        return scores[:, 0] if n_columns == 1 else scores

    def instance_predict(self, X):
        scores = self.instance_decision_function(X)
        if self.multilabel_:
            return (scores > 0).astype(int)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def decision_function(self, X):
        scores = self.instance_decision_function(X)
        return segment_max(scores, X.offsets[:-1], X.offsets[1:])

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)


class SignClusters(ClusterMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return np.array([int(bag[0, 0] > 0) for bag in X])


def binary_bags(instance_labels):
    """Four bags of two; scores: 1, -1 | 2, 3 | -2, -3 | -1, -4. Bags 0, 1, 2 are positive."""
    scores = np.array([1.0, -1, 2, 3, -2, -3, -1, -4])[:, None]
    return Bags(scores, [0, 2, 4, 6, 8], instance_labels=instance_labels), np.array([1, 1, 1, 0])


KEYS = np.array([1, 0, 1, 0, 1, 0, 0, 0])
# The top scores of the positive bags are at places 0, 1, 0; the keys at 0, 0, 0.
BY_HAND = {
    "key_instance_success_rate": 2 / 3,
    "instance_precision": 2 / 3,  # predicted: rows 0, 2, 3
    "instance_recall": 2 / 3,
    # Of the 15 pairs, key 1 wins 4, key 2 wins 4 and key -2 wins 2.
    "instance_auc": 10 / 15,
}


@pytest.mark.parametrize("metric", INSTANCE_METRICS)
@pytest.mark.parametrize(
    ("classes", "truth", "options"),
    [
        ((0, 1), KEYS, {}),
        (("no", "yes"), KEYS, {}),
        ((-1, 1), KEYS, {}),
        ((-1, 1), 2 * KEYS - 1, {}),
        (("no", "yes"), np.where(KEYS, "yes", "no"), {}),
        ((0, 1), np.where(KEYS, 7, [3, 4] * 4), {"positive": 7}),
    ],
)
def test_two_classes(metric, classes, truth, options):
    bags, y = binary_bags(truth)
    y = np.array(classes)[y]
    model = FirstFeatures(classes).fit(bags, y)
    scorer = make_instance_scorer(metric, **options)
    assert_allclose(scorer(model, bags, y), BY_HAND[metric], rtol=1e-15)


def test_unknown_instances():
    truth = KEYS.copy()
    truth[3] = -1  # the false positive
    bags, y = binary_bags(truth)
    model = FirstFeatures().fit(bags, y)
    assert SCORERS["instance_precision"](model, bags, y) == 1.0
    counted = make_instance_scorer("instance_precision", positive=1, unknown=None)
    assert_allclose(counted(model, bags, y), 2 / 3, rtol=1e-15)


def test_more_classes():
    # The best row of bag 0 for a is 0, of bag 1 for b is 3, of bag 2 for c is 4, which is a b.
    scores = np.array([[3.0, 0, 0], [1, 2, 0], [0, 1, 2], [0, 3, 1], [0, 1, 4], [5, 0, 3]])
    bags = Bags(scores, [0, 2, 4, 6], instance_labels=list("abcbbc"))
    model = FirstFeatures(("a", "b", "c")).fit(bags, list("abc"))
    success = SCORERS["key_instance_success_rate"](model, bags, np.array(list("abc")))
    assert_allclose(success, 2 / 3, rtol=1e-15)
    # instance_predict gives a b c b c a
    precision = SCORERS["instance_precision"](model, bags, np.array(list("abc")))
    assert_allclose(precision, (1 / 2 + 1 + 1 / 2) / 3, rtol=1e-15)


def test_label_lists():
    scores = np.array([[3.0, -1, 0], [-1, 2, 1], [-1, -1, -1], [1, -2, 3]])
    lists = np.array([[1, 1, 0], [0, 0, 1]])
    bags = Bags(scores, [0, 2, 4], instance_labels=[0, 1, 2, -1])
    model = FirstFeatures((0, 1, 2)).fit(bags, lists)
    # (bag 0, label 0) and (bag 0, label 1) are found, (bag 1, label 2) is not.
    success = SCORERS["key_instance_success_rate"](model, bags, lists)
    assert_allclose(success, 2 / 3, rtol=1e-15)
    # Predicted: rows 0 and 3 for label 0, row 1 for label 1, rows 1 and 3 for label 2.
    assert_allclose(SCORERS["instance_precision"](model, bags, lists), 2 / 3, rtol=1e-15)
    counted = make_instance_scorer("instance_precision", unknown=None)
    assert_allclose(counted(model, bags, lists), (1 / 2 + 1 + 0) / 3, rtol=1e-15)


def test_pipelines_and_searches_are_looked_into():
    rng = np.random.default_rng(0)
    bags, y = binary_bags(KEYS)
    bags, y = Bags.concatenate([bags] * 6), np.tile(y, 6)
    bags = bags.map_instances(_Jitter(rng))
    pipeline = make_pipeline(InstanceTransformer(StandardScaler()), SIL())
    scorer = SCORERS["key_instance_success_rate"]
    search = GridSearchCV(pipeline, {"sil__C": [0.1, 1.0]}, scoring=scorer, cv=2).fit(bags, y)
    best = search.best_estimator_
    moved = best[:-1].transform(bags)
    assert scorer(search, bags, y) == scorer(best, bags, y) == scorer(best[-1], moved, y)


class _Jitter(BaseEstimator):
    def __init__(self, rng):
        self.rng = rng

    def transform(self, X):
        return X + 0.01 * self.rng.normal(size=X.shape)


def test_cross_validate_with_all_instance_scorers():
    bags, y = binary_bags(KEYS)
    bags, y = Bags.concatenate([bags] * 3), np.tile(y, 3)
    scoring = {name: SCORERS[name] for name in INSTANCE_METRICS}
    found = cross_validate(FirstFeatures(), bags, y, scoring=scoring, cv=3)
    for name in INSTANCE_METRICS:
        assert np.isfinite(found[f"test_{name}"]).all()


def test_cross_validate_label_lists():
    rng = np.random.default_rng(0)
    lists = rng.integers(2, size=(30, 3))
    lists[:, 0] |= ~lists.any(axis=1)
    bags = Bags.from_array(rng.normal(size=(30, 4, 5)))
    names = ("average_precision", "neg_coverage", "neg_one_error")
    found = cross_validate(
        SIL(),
        bags,
        lists,
        scoring={n: SCORERS[n] for n in names},
        cv=3,
        return_estimator=True,
        return_indices=True,
    )
    for fold, (model, rows) in enumerate(
        zip(found["estimator"], found["indices"]["test"], strict=True)
    ):
        scores = model.decision_function(bags[rows])
        assert found["test_average_precision"][fold] == average_precision(lists[rows], scores)
        assert found["test_neg_coverage"][fold] == -coverage(lists[rows], scores)
        assert found["test_neg_one_error"][fold] == -one_error(lists[rows], scores)


def test_cross_validate_clusters():
    bags = Bags.from_array(np.array([1.0, 2, -1, -2, 3, -3])[:, None, None])
    y = np.array(list("ppnnpn"))
    scoring = {name: SCORERS[name] for name in ("clustering_accuracy", "nmi")}
    found = cross_validate(SignClusters(), bags, y, scoring=scoring, cv=[([0], range(6))])
    assert found["test_clustering_accuracy"].tolist() == [1.0]
    assert_allclose(found["test_nmi"], 1.0, rtol=1e-12)


def test_scorers_can_be_pickled_and_shown():
    bags, y = binary_bags(KEYS)
    model = FirstFeatures().fit(bags, y)
    for name in INSTANCE_METRICS:
        copy = pickle.loads(pickle.dumps(SCORERS[name]))
        assert copy(model, bags, y) == SCORERS[name](model, bags, y)
    shown = repr(make_instance_scorer("instance_auc", positive=3))
    assert shown == "make_instance_scorer('instance_auc', positive=3, unknown=-1, pos_label=None)"


def test_bad_input():
    bags, y = binary_bags(KEYS)
    model = FirstFeatures().fit(bags, y)
    scorer = SCORERS["instance_auc"]
    with pytest.raises(ValueError, match=r"'instance_auc' needs Bags .* Got Bags without them"):
        scorer(model, Bags(bags.instances, bags.offsets), y)
    with pytest.raises(ValueError, match="Got list"):
        scorer(model, bags.to_list(), y)
    with pytest.raises(ValueError, match=r"or positive=. Got 5"):
        scorer(model, binary_bags(KEYS + 4)[0], y)
    with pytest.raises(ValueError, match="metric must be one of"):
        make_instance_scorer("instance_f1")
    model = FirstFeatures((0, 1, 2)).fit(bags, y)
    with pytest.raises(ValueError, match=r"among \[0, 1, 2\]. Got 5"):
        scorer(model, binary_bags(KEYS + 4)[0], y)


@pytest.mark.parametrize("metric", INSTANCE_METRICS)
def test_positive_class_that_sorts_first(metric):
    """Bags called "active" and "inactive" are scored as bags called 1 and 0."""
    rng = np.random.default_rng(4)
    y, offsets = np.arange(20) % 2, np.arange(0, 81, 4)
    flags = np.zeros(80, dtype=int)
    flags[offsets[:-1][y == 1] + rng.integers(4, size=10)] = 1
    rows = rng.normal(size=(80, 2)) + 0.7 * flags[:, None]
    names = np.array(["inactive", "active"])
    coded = Bags(rows, offsets, instance_labels=flags)
    named = Bags(rows, offsets, instance_labels=names[flags])
    turned = Bags(-rows, offsets, instance_labels=names[flags])
    expected = SCORERS[metric](SIL().fit(coded, y), coded, y)
    assert 0 < expected < 1
    model = SIL(pos_label="active").fit(named, names[y])
    assert SCORERS[metric](model, named, names[y]) == expected
    # A classifier without a positive class, whose scores are of the second one.
    plain = FirstFeatures().fit(coded, y)
    judge = FirstFeatures(("active", "inactive")).fit(turned, names[y])
    scorer = make_instance_scorer(metric, pos_label="active")
    assert scorer(judge, turned, names[y]) == SCORERS[metric](plain, coded, y)
