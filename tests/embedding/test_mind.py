"""MInD: dissimilarities pair by pair, the machine of scikit-learn, any classifier on top."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import bagwise
from bagwise.embedding import MInD
from bagwise.exceptions import ModelFileError
from bagwise.testing import make_toy_bags
from svm.naive import scaled_bags

OVER = {"meanmin": np.mean, "minmin": np.min, "maxmin": np.max}
DIRECTIONS = ["to", "from", "mean", "pooled"]
METRICS = ["sqeuclidean", "cityblock", "sqeuclidean", "euclidean"]


@pytest.fixture(scope="module")
def toy():
    return make_toy_bags(20, kind="close", max_size=5)


def dissimilarity(bag, prototype, kind, direction, metric):
    """Return the dissimilarity of one pair of bags."""
    D = cdist(bag, prototype, metric)
    to, back = D.min(axis=1), D.min(axis=0)
    over = OVER[kind]
    return {
        "to": over(to),
        "from": over(back),
        "mean": (over(to) + over(back)) / 2,
        "pooled": over(np.concatenate([to, back])),
    }[direction]


def vectors(bags, prototypes, training, *parameters):
    """Return bags as vectors: dissimilarities over their mean, over the root of their number."""

    def table(bags):
        return np.array([[dissimilarity(b, p, *parameters) for p in prototypes] for b in bags])

    return table(bags) / table(training).mean() / np.sqrt(len(prototypes))


@pytest.mark.parametrize(("direction", "metric"), list(zip(DIRECTIONS, METRICS, strict=True)))
@pytest.mark.parametrize("kind", OVER)
def test_is_the_machine_of_scikit_learn_on_pairwise_dissimilarities(toy, kind, direction, metric):
    bags, y = toy
    new = make_toy_bags(10, kind="close", random_state=1)[0]
    model = MInD(20.0, dissimilarity=kind, direction=direction, metric=metric).fit(bags, y)
    rows, new_rows = (vectors(b, bags, bags, kind, direction, metric) for b in (bags, new))
    peer = SVC(C=20.0, kernel="linear", tol=1e-9).fit(rows, y)
    np.testing.assert_allclose(
        model.decision_function(new), peer.decision_function(new_rows), atol=1e-5
    )
    sign = np.where(y == 1, 1.0, -1.0)
    hinge = np.maximum(1.0 - sign * peer.decision_function(rows), 0.0)
    objective = 0.5 * np.sum(peer.coef_**2) + 20.0 * hinge.sum()
    assert model.result_.objective == pytest.approx(objective, rel=1e-5)
    assert model.result_.relative_gap <= 1e-6


def test_one_instance_each_leaves_one_dissimilarity():
    X = np.random.default_rng(0).normal(size=(30, 4))
    y = (X[:, 0] > 0).astype(int)
    scores = [
        MInD(dissimilarity=kind, direction=direction).fit(X, y).decision_function(X)
        for kind in OVER
        for direction in DIRECTIONS
    ]
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], rtol=1e-6, atol=1e-6)


def test_prototypes_are_far_apart(toy):
    bags, y = toy
    model = MInD(20.0, direction="pooled", metric="euclidean", n_prototypes=7).fit(bags, y)
    parameters = "meanmin", "pooled", "euclidean"
    D = np.array([[dissimilarity(a, b, *parameters) for b in bags] for a in bags])
    chosen = list(np.unravel_index(D.argmax(), D.shape))
    while len(chosen) < 7:
        chosen.append(int(D[chosen].min(axis=0).argmax()))
    np.testing.assert_array_equal(model.prototypes_, np.sort(chosen))
    assert model.coef_.shape == (1, 7)
    prototypes = [bags[k] for k in model.prototypes_]
    parts = np.split(model.prototype_instances_, model.prototype_offsets_[1:-1])
    for part, prototype in zip(parts, prototypes, strict=True):
        np.testing.assert_array_equal(part, prototype)
    rows = vectors(bags, prototypes, bags, *parameters)
    peer = SVC(C=20.0, kernel="linear", tol=1e-9).fit(rows, y)
    np.testing.assert_allclose(
        model.decision_function(bags), peer.decision_function(rows), atol=1e-4
    )


def test_more_prototypes_than_bags_are_all_bags(toy):
    bags, y = toy
    every, more = MInD().fit(bags, y), MInD(n_prototypes=1000).fit(bags, y)
    np.testing.assert_array_equal(more.decision_function(bags), every.decision_function(bags))


@pytest.mark.parametrize(
    "learner",
    [LogisticRegression(C=5.0), KNeighborsClassifier(3), DecisionTreeClassifier(random_state=0)],
    ids=lambda learner: type(learner).__name__,
)
def test_any_classifier_on_top(toy, learner):
    bags, y = toy
    model = MInD(estimator=learner).fit(bags, y)
    rows = vectors(bags, bags, bags, "meanmin", "to", "sqeuclidean")
    np.testing.assert_array_equal(model.predict(bags), learner.fit(rows, y).predict(rows))
    if hasattr(learner, "decision_function"):
        np.testing.assert_allclose(
            model.decision_function(bags), learner.decision_function(rows), atol=1e-6
        )


def test_a_classifier_on_top_learns_classes_and_lists(toy):
    bags, y = make_toy_bags(30, n_classes=3, kind="apart")
    assert MInD(estimator=LogisticRegression(C=100.0)).fit(bags, y).score(bags, y) >= 0.9
    lists = np.column_stack([y == 0, y == 1, np.ones(len(y))]).astype(int)
    for learner in (DecisionTreeClassifier(random_state=0), LogisticRegression(C=100.0)):
        model = MInD(estimator=learner).fit(bags, lists)
        assert (model.predict(bags) == lists).mean() >= 0.9
        assert (model.predict(bags)[:, 2] == 1).all()


def test_weights_repeat_bags_for_a_classifier_on_top(toy):
    bags, y = toy
    weight = np.arange(len(y)) % 3
    learner = LogisticRegression(C=5.0, tol=1e-8, max_iter=1000)
    weighted = MInD(estimator=learner).fit(bags, y, weight)
    several = [bag for bag, times in zip(bags, weight, strict=True) for _ in range(times)]
    repeated = MInD(estimator=learner).fit(several, np.repeat(y, weight))
    np.testing.assert_allclose(
        weighted.decision_function(bags), repeated.decision_function(bags), atol=1e-4
    )
    with pytest.raises(ValueError, match="KNeighborsClassifier does not"):
        MInD(estimator=KNeighborsClassifier()).fit(bags, y, weight)


def test_a_classifier_on_top_cannot_be_saved(toy, tmp_path):
    bags, y = toy
    model = MInD(estimator=LogisticRegression()).fit(bags, y)
    with pytest.raises(ModelFileError, match=r"estimator=None\).*skops"):
        bagwise.save(model, tmp_path / "mind.model")


def test_default_parameters_on_musk1(load_set):
    bags, y = scaled_bags(load_set("musk1"))
    train = np.arange(len(y)) % 4 > 0
    assert MInD().fit(bags[train], y[train]).score(bags[~train], y[~train]) >= 0.75
