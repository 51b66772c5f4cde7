"""Scorers: the same numbers as the functions, inside scikit-learn's tools."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score, get_scorer, get_scorer_names
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagwise import Bags
from bagwise.bags import segment_max
from bagwise.metrics import (
    OF_POSITIVE_CLASS,
    SCORERS,
    average_precision,
    check_scored,
    coverage,
    make_instance_scorer,
    make_positive_scorer,
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


# ------------------------------------------------------------------- about the positive class


class Decided(ClassifierMixin, BaseEstimator):
    """Scores bags by their first feature, for the second class; answers follow the sign."""

    def __init__(self, classes=(0, 1)):
        self.classes = classes

    def fit(self, X, y):
        self.classes_ = np.asarray(self.classes)
        return self

    def decision_function(self, X):
        return np.array([bag[0, 0] for bag in X])

    def predict_proba(self, X):
        share = 1.0 / (1.0 + np.exp(-self.decision_function(X)))
        return np.column_stack([1.0 - share, share])

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class Turned(Decided):
    """The same with the names of the classes exchanged."""

    def decision_function(self, X):
        return -super().decision_function(X)


def decided_bags():
    """Ten bags of one; 3 of 4 that are called positive are, 2 of 6 others are as well."""
    scores = np.array([4.0, 3.0, 2.0, 1.0, -0.5, -1.0, -2.0, -3.0, -4.0, -5.0])
    return Bags(scores[:, None], np.arange(11)), np.array([1, 0, 1, 1, 0, 1, 1, 0, 0, 0])


BY_COUNTING = {  # of 5 positive bags 3 are found, of 5 negative ones 4
    "f1": (2 * 3 / 9, 2 * 4 / 11),
    "precision": (3 / 4, 4 / 6),
    "recall": (3 / 5, 4 / 5),
    "jaccard": (3 / 6, 4 / 7),
    "positive_likelihood_ratio": ((3 / 5) / (1 / 5), (4 / 5) / (2 / 5)),
    "neg_negative_likelihood_ratio": (-(2 / 5) / (4 / 5), -(1 / 5) / (3 / 5)),
}


@pytest.mark.parametrize("scoring", sorted(BY_COUNTING))
@pytest.mark.parametrize("labels", [(0, 1), (1, 2), ("active", "inactive"), (False, True)])
def test_scores_of_either_class_by_counting(scoring, labels):
    bags, code = decided_bags()
    model = Decided(labels).fit(bags, code)
    y = np.asarray(labels)[code]
    for place, expected in zip((1, 0), BY_COUNTING[scoring], strict=True):
        scorer = make_positive_scorer(scoring, pos_label=labels[place])
        assert_allclose(scorer(model, bags, y), expected)
    assert_allclose(make_positive_scorer(scoring)(model, bags, y), BY_COUNTING[scoring][0])


def test_average_precision_of_either_class():
    bags, code = decided_bags()
    model = Decided(("active", "inactive")).fit(bags, code)
    scores = model.decision_function(bags)
    for place, sign in ((1, 1.0), (0, -1.0)):
        scorer = make_positive_scorer("average_precision", pos_label=model.classes[place])
        expected = average_precision_score(code == place, sign * scores)
        assert_allclose(scorer(model, bags, model.classes_[code]), expected)


def test_no_other_score_depends_on_which_class_is_positive():
    """Names of later versions of scikit-learn belong on the list if they do."""
    bags, code = decided_bags()
    model, turned = Decided().fit(bags, code), Turned().fit(bags, code)
    depends = set()
    for name in get_scorer_names():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                score = get_scorer(name)
                values = score(model, bags, code), score(turned, bags, 1 - code)
            except ValueError:  # not for classes
                continue
        if not np.allclose(*values, equal_nan=True):
            depends.add(name)
    regression = {name for name in depends if is_of_numbers(name)}
    assert depends - regression == set(OF_POSITIVE_CLASS)


def is_of_numbers(name):
    """Tell whether a score is one of regression, which changes when labels are renamed."""
    return "error" in name or "deviance" in name or name == "d2_absolute_error_score"


def test_positive_scorer_follows_the_classifier_in_a_search():
    rng = np.random.default_rng(0)
    code = np.arange(24) % 2
    bags = [rng.normal(size=(3, 2)) + np.array([1.5 * c, 0]) for c in code]
    y = np.where(code == 1, "active", "inactive")
    scorer, grid = make_positive_scorer("f1"), {"sil__C": [0.1, 10.0]}
    scale = InstanceTransformer(StandardScaler())
    named = GridSearchCV(
        make_pipeline(scale, SIL(pos_label="active")), grid, scoring=scorer, cv=3
    ).fit(bags, y)
    coded = GridSearchCV(make_pipeline(scale, SIL()), grid, scoring="f1", cv=3).fit(bags, code)
    assert_allclose(named.cv_results_["mean_test_score"], coded.cv_results_["mean_test_score"])
    assert_allclose(scorer(named, bags, y), get_scorer("f1")(coded, bags, code))
    again = pickle.loads(pickle.dumps(scorer))
    assert repr(again) == "make_positive_scorer('f1', pos_label=None)"


def test_positive_scorer_refuses():
    with pytest.raises(ValueError, match=r"scoring must be one of .*'recall'\]. Got 'accuracy'"):
        make_positive_scorer("accuracy")
    bags, code = decided_bags()
    three = Decided((0, 1, 2)).fit(bags, code)
    with pytest.raises(ValueError, match=r"'f1' is for two classes\. Got 3 classes"):
        make_positive_scorer("f1")(three, bags, code)
    with pytest.raises(ValueError, match="must be one of the classes"):
        make_positive_scorer("f1", pos_label="a")(Decided().fit(bags, code), bags, code)


def test_a_score_of_what_a_model_does_not_have():
    check_scored("neg_brier_score", Decided())
    check_scored("roc_auc", SIL())
    with pytest.raises(ValueError, match="'neg_brier_score' needs predict_proba, which SIL does"):
        check_scored("neg_brier_score", make_pipeline(StandardScaler(), SIL()))


def test_scores_of_the_positive_class_take_probabilities_as_well():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.where(np.arange(60) % 3, "b", "a")
    X[y == "a"] += 1.0
    forest = RandomForestClassifier(random_state=0).fit(X, y)
    scores = forest.predict_proba(X)[:, 0]
    found = make_positive_scorer("average_precision", pos_label="a")(forest, X, y)
    assert found == pytest.approx(average_precision_score(y == "a", scores))
