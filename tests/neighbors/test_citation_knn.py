"""CitationKNN: votes of references and citers, ties, distances, learned metrics, lists."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from bagwise import Bags, load, save
from bagwise.datasets import load_digit_bags, make_weak_label_bags
from bagwise.kernels import InstanceMetric, hausdorff
from bagwise.metric import MIMLCA
from bagwise.metrics import average_precision
from bagwise.neighbors import CitationKNN

KINDS = ("min", "max", "average")


@pytest.fixture(scope="module")
def digits():
    """Return training bags, labels and new bags, without equal distances."""
    data, rng = load_digit_bags(), np.random.default_rng(0)
    bags = data.bags[:90].map_instances(lambda rows: rows + 0.01 * rng.normal(size=rows.shape))
    return bags[:60], np.asarray(data.y[:60]), bags[60:]


def between(bags, others, kind):
    every = hausdorff(InstanceMetric("euclidean"), *bags.segments, *others.segments)
    return getattr(every, kind)


def votes(bags, y, new, n_references, n_citers, kind):
    """Count votes as the paper does, one bag after another: for and against."""
    forth, among = between(new, bags, kind), between(bags, bags, kind)
    out = []
    for d in forth:
        voters = list(np.argsort(d)[:n_references])
        for i, row in enumerate(among):
            nearer = np.sum(np.delete(row, i) < d[i])
            voters += [i] if nearer < n_citers else []
        out.append([np.sum(y[voters] == 1), np.sum(y[voters] == 0)])
    return np.array(out)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_references", "n_citers"), [(2, 4), (5, 1), (1, 0)])
def test_votes_are_those_of_the_paper(digits, kind, n_references, n_citers):
    bags, y, new = digits
    model = CitationKNN(n_references, n_citers, distance=kind).fit(bags, y)
    expected = votes(bags, y, new, n_references, n_citers, kind)
    total = expected.sum(axis=1)
    scores = model.decision_function(new) * total
    np.testing.assert_allclose(scores, expected[:, 0] - expected[:, 1], atol=0.5)
    near, far = (between(new, bags[y == side], kind).min(axis=1) for side in (1, 0))
    np.testing.assert_allclose(
        scores - (expected[:, 0] - expected[:, 1]), 0.5 * (far - near) / (far + near), atol=1e-9
    )


def test_equal_votes_are_decided_by_the_nearest_bag():
    model = CitationKNN(2, 0).fit([[[0.0]], [[10.0]]], [0, 1])
    assert model.predict([[[4.0]], [[6.0]]]).tolist() == [0, 1]
    np.testing.assert_allclose(model.decision_function([[[4.0]]]), 0.25 * (4 - 6) / 10)
    assert model.decision_function([[[5.0]]]).tolist() == [0.0]


def test_bags_as_far_as_the_last_reference_are_references():
    model = CitationKNN(1, 0).fit([[[-1.0]], [[1.0]], [[1.0]], [[5.0]]], [0, 1, 1, 0])
    np.testing.assert_allclose(model.decision_function([[[0.0]]]), 1 / 3)


def test_a_bag_is_not_its_own_neighbour():
    model = CitationKNN(1, 1).fit([[[0.0]], [[1.0]], [[4.0]]], [0, 1, 1])
    np.testing.assert_allclose(model.radius_, [1.0, 1.0, 3.0])
    few = CitationKNN(9, 9).fit([[[0.0]], [[1.0]], [[4.0]]], [0, 1, 1])
    assert np.isinf(few.radius_).all()
    assert few.predict([[[0.0]]]).tolist() == [1]  # all bags vote, twice


@pytest.mark.parametrize("n_classes", [2, 3])
def test_on_single_instances_without_citers_it_is_nearest_neighbours(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=80)
    X = rng.normal(size=(80, 3)) + y[:, None]
    new = rng.normal(size=(200, 3)) + 1.0
    model = CitationKNN(5, 0).fit(X, y)
    plain = KNeighborsClassifier(5).fit(X, y)
    shares = plain.predict_proba(new)
    clear = np.sort(shares, axis=1)[:, -1] > np.sort(shares, axis=1)[:, -2]
    assert clear.sum() > 100
    np.testing.assert_array_equal(model.predict(new)[clear], plain.predict(new)[clear])
    scores = model.decision_function(new).reshape(200, -1)
    half = 0.5 / 5 + 1e-9
    np.testing.assert_allclose(scores, 2 * shares[:, -scores.shape[1] :] - 1, atol=half)


def test_labels_are_voted_on_one_by_one(digits):
    bags, y, new = digits
    lists = np.stack([y, 1 - y, np.arange(len(y)) % 3 == 0], axis=1).astype(int)
    several = CitationKNN(5, 5).fit(bags, lists).decision_function(new)
    for column, own in zip(several.T, lists.T, strict=True):
        one = CitationKNN(5, 5).fit(bags, own).decision_function(new)
        np.testing.assert_allclose(column, one, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_given_distances_are_as_good(digits, kind):
    bags, y, new = digits
    own = CitationKNN(distance=kind).fit(bags, y)
    given = CitationKNN(distance="precomputed").fit(between(bags, bags, kind), y)
    np.testing.assert_allclose(
        given.decision_function(between(new, bags, kind)), own.decision_function(new), atol=1e-9
    )
    with pytest.raises(ValueError, match=r"CitationKNN\.fit needs a square matrix"):
        CitationKNN(distance="precomputed").fit(between(bags, bags, kind)[:, :7], y)


def test_blocks_do_not_matter(digits, monkeypatch):
    bags, y, new = digits
    whole = CitationKNN().fit(bags, y)
    monkeypatch.setattr("bagwise.neighbors._citation_knn._BLOCK", 7 * len(bags))
    monkeypatch.setattr("bagwise.neighbors._citation_knn._WHOLE", 10)
    parts = CitationKNN().fit(bags, y)
    np.testing.assert_allclose(parts.radius_, whole.radius_, rtol=1e-9)
    np.testing.assert_allclose(
        parts.decision_function(new), whole.decision_function(new), atol=1e-9
    )


@pytest.fixture(scope="module")
def lists():
    return make_weak_label_bags(300, n_labels=8, n_features=12, noisy=False, random_state=0)


def test_a_learner_is_the_metric_that_it_learns(lists):
    train, new = lists.bags[:200], lists.bags[200:]
    learner = MIMLCA().fit(train, lists.y[:200])
    fitted = CitationKNN(5, 5, metric=learner).fit(train, lists.y[:200])
    assert fitted.metric_ is learner
    expected = fitted.decision_function(new)
    factor = InstanceMetric("mahalanobis", factor=learner.components_.T)
    for other in (
        CitationKNN(5, 5, metric=MIMLCA()),
        CitationKNN(5, 5, metric=learner.metric()),
        CitationKNN(5, 5, metric=factor),
        make_pipeline(MIMLCA(), CitationKNN(5, 5)),
        clone(fitted),
    ):
        got = other.fit(train, lists.y[:200]).decision_function(new)
        np.testing.assert_allclose(got, expected, atol=1e-6)
    assert not hasattr(clone(fitted).metric, "components_")


def test_a_learned_metric_ranks_labels_better():
    """Features of large scale that have nothing to do with the labels hide the others."""
    data = make_weak_label_bags(300, n_labels=8, n_features=12, noisy=False, random_state=0)
    rng = np.random.default_rng(0)
    noise = 20.0 * rng.normal(size=(data.bags.n_instances, 6))
    bags = Bags(np.hstack([data.bags.instances, noise]), data.bags.offsets)
    ranked = [
        average_precision(
            data.y[200:],
            CitationKNN(10, 10, metric=metric)
            .fit(bags[:200], data.y[:200])
            .decision_function(bags[200:]),
        )
        for metric in ("euclidean", MIMLCA())
    ]
    assert ranked[1] > ranked[0] + 0.2


@pytest.mark.parametrize("metric", ["cosine", MIMLCA(ridge=0.1)], ids=["name", "learner"])
def test_models_with_their_bags_are_saved(lists, tmp_path, metric):
    model = CitationKNN(3, 3, metric=metric).fit(lists.bags[:200], lists.y[:200])
    save(model, tmp_path / "a.model")
    np.testing.assert_array_equal(
        load(tmp_path / "a.model").decision_function(lists.bags[200:]),
        model.decision_function(lists.bags[200:]),
    )


def test_accuracy_on_musk1(load_set):
    """2 references and 4 citers; a mean of ten repeats has to reach 0.87, and is 0.89."""
    data = load_set("musk1")
    bags = Bags(data["X"], data["offsets"])
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    assert (
        cross_val_score(CitationKNN(2, 4, distance="min"), bags, data["y"], cv=folds).mean() >= 0.87
    )
