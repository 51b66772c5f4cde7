"""BAMIC against k-medoids on distances computed pair by pair with scipy."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from bagwise import Bags
from bagwise.cluster import BAMIC
from bagwise.exceptions import ModelFileError
from bagwise.kernels import InstanceMetric
from bagwise.persistence import load, save

FACTOR = np.random.default_rng(3).normal(size=(4, 2))


def _between(A, B, kind, metric):
    block = metric(A, B)
    forth, back = block.min(axis=1), block.min(axis=0)
    return {
        "min": forth.min(),
        "max": max(forth.max(), back.max()),
        "average": (forth.sum() + back.sum()) / (len(A) + len(B)),
    }[kind]


def _matrix(left, right, kind, metric=cdist):
    return np.array([[_between(A, B, kind, metric) for B in right] for A in left])


def _bags(n=12, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(rng.integers(1, 6), 4)) + shift * (i % 3) * np.eye(4)[0] for i in range(n)
    ]


METRICS = {
    "euclidean": ("euclidean", cdist),
    "cityblock": ("cityblock", lambda A, B: cdist(A, B, "cityblock")),
    "learned": (
        InstanceMetric("mahalanobis", factor=FACTOR),
        lambda A, B: cdist(A @ FACTOR, B @ FACTOR),
    ),
    "function": (
        lambda A, B: cdist(A, B, "chebyshev"),
        lambda A, B: cdist(A, B, "chebyshev"),
    ),
}

each_distance = pytest.mark.parametrize("distance", ["average", "min", "max"])
each_metric = pytest.mark.parametrize("name", METRICS)


@each_distance
@each_metric
def test_best_medoids_of_all(distance, name):
    metric, peer = METRICS[name]
    bags, new = _bags(), _bags(7, seed=1)
    D = _matrix(bags, bags, distance, peer)
    best = min(D[list(chosen)].min(axis=0).sum() for chosen in combinations(range(12), 3))
    model = BAMIC(3, distance=distance, metric=metric, n_init=40, random_state=0).fit(bags)
    assert model.inertia_ == pytest.approx(best, rel=1e-8)
    assert model.result_.objective == model.inertia_
    assert D[model.medoids_].min(axis=0).sum() == pytest.approx(best, rel=1e-8)
    assert np.array_equal(model.predict(bags), model.labels_)
    medoids = [bags[i] for i in model.medoids_]
    np.testing.assert_allclose(
        model.transform(new), _matrix(new, medoids, distance, peer), rtol=1e-8, atol=1e-12
    )
    assert np.array_equal(model.predict(new), model.transform(new).argmin(axis=1))


@each_distance
@pytest.mark.parametrize("method", ["fasterpam", "alternate"])
def test_precomputed_distances_give_the_same(distance, method):
    bags, new = _bags(30), _bags(7, seed=1)
    model = BAMIC(3, distance=distance, method=method, random_state=0).fit(bags)
    other = BAMIC(3, distance="precomputed", method=method, random_state=0)
    other.fit(_matrix(bags, bags, distance))
    assert np.array_equal(other.medoids_, model.medoids_)
    assert np.array_equal(other.labels_, model.labels_)
    assert other.inertia_ == pytest.approx(model.inertia_, rel=1e-9)
    between = _matrix(new, bags, distance)
    assert np.array_equal(other.predict(between), model.predict(new))
    np.testing.assert_allclose(other.transform(between), model.transform(new), rtol=1e-8)
    assert not hasattr(other, "medoid_instances_")


def test_precomputed_is_checked():
    model = BAMIC(2, distance="precomputed")
    with pytest.raises(ValueError, match=r"square matrix.*Got shape \(3, 2\)"):
        model.fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="one row for each bag"):
        model.fit([np.ones((2, 4)), np.ones((2, 4))])
    with pytest.raises(ValueError, match=r"BAMIC .*symmetric"):
        model.fit(np.array([[0.0, 1, 2], [1, 0, 3], [9, 3, 0]]))
    assert model.__sklearn_tags__().input_tags.pairwise
    assert not BAMIC().__sklearn_tags__().input_tags.pairwise


@each_distance
def test_forms_of_bags_agree(distance):
    dense = [bag * (bag > 0) for bag in _bags(20)]
    bags = Bags.from_list(dense)
    expected = BAMIC(3, distance=distance, random_state=0).fit(bags)
    csr = Bags(sp.csr_array(bags.instances), bags.offsets)
    single = Bags(bags.instances.astype(np.float32), bags.offsets)
    for other in (csr, single, dense):
        model = BAMIC(3, distance=distance, random_state=0).fit(other)
        assert np.array_equal(model.labels_, expected.labels_)
        np.testing.assert_allclose(model.transform(other), expected.transform(bags), atol=2e-3)
    assert sp.issparse(BAMIC(3, distance=distance).fit(csr).medoid_instances_)


def test_medoids_are_kept_as_bags():
    bags = _bags(20)
    model = BAMIC(4, random_state=1).fit(bags)
    assert len(np.unique(model.medoids_)) == 4
    assert np.array_equal(model.labels_[model.medoids_], np.arange(4))
    for c, which in enumerate(model.medoids_):
        inside = slice(model.medoid_offsets_[c], model.medoid_offsets_[c + 1])
        assert np.array_equal(model.medoid_instances_[inside], bags[which])
    np.testing.assert_allclose(np.diag(model.transform([bags[i] for i in model.medoids_])), 0.0)


def test_restarts_and_starts():
    bags = _bags(90, shift=0.0)
    ones = [BAMIC(15, n_init=1, random_state=seed).fit(bags).inertia_ for seed in range(8)]
    many = BAMIC(15, n_init=20, random_state=0).fit(bags).inertia_
    assert many < max(ones)
    for init in ("lab", "build", list(range(15))):
        model = BAMIC(15, init=init, n_init=3, random_state=0).fit(bags)
        assert model.inertia_ <= 1.1 * many
    with pytest.raises(ValueError, match=r"BAMIC .*init .* n_clusters=15 different numbers"):
        BAMIC(15, init=[0, 1]).fit(bags)


def test_equal_bags_leave_clusters_empty():
    bags = [np.full((2, 3), float(i % 2)) for i in range(8)]
    with pytest.warns(ConvergenceWarning, match=r"into 2 of n_clusters=4 clusters"):
        model = BAMIC(4, random_state=0).fit(bags)
    assert model.labels_.tolist() in ([0, 1] * 4, [1, 0] * 4)
    assert np.array_equal(model.predict(bags), model.labels_)
    assert model.inertia_ == 0.0


@pytest.mark.parametrize(("dtype", "far"), [("float32", 1e3), ("float64", 1e6)])
def test_a_far_cluster_does_not_blur_the_others(dtype, far):
    X = np.array([[0.0], [0.1], [3.0], [3.1], [far], [far]], dtype)
    for metric in ("euclidean", "sqeuclidean"):
        model = BAMIC(3, metric=metric, init=[0, 2, 4]).fit(X)
        assert model.labels_.tolist() == model.predict(X).tolist() == [0, 0, 1, 1, 2, 2]


def test_not_converged_warns():
    with pytest.warns(ConvergenceWarning, match="BAMIC did not converge.*raise max_iter"):
        BAMIC(9, n_init=1, max_iter=1, random_state=0).fit(_bags(90, shift=0.0))


def test_distances_to_medoids_are_features():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    bags = [np.vstack([rng.normal(size=(3, 4)), rng.normal(size=(2, 4)) + 4 * c]) for c in y]
    model = make_pipeline(BAMIC(6, random_state=0), LogisticRegression()).fit(bags[:40], y[:40])
    assert model.score(bags[40:], y[40:]) > 0.9
    assert list(model[0].get_feature_names_out()) == [f"bamic{c}" for c in range(6)]


@pytest.mark.parametrize(
    ("name", "value"),
    [("distance", "mean"), ("method", "pam"), ("metric", "mahalanobis"), ("init", "best")],
)
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of BAMIC"):
        BAMIC(**{name: value}).fit(_bags())


@pytest.mark.parametrize(
    "metric",
    ["cosine", METRICS["learned"][0], InstanceMetric("cityblock")],
    ids=["name", "M", "L1"],
)
def test_saved_with_its_metric(tmp_path, metric):
    bags = _bags()
    model = BAMIC(3, metric=metric, random_state=0).fit(bags)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert np.array_equal(loaded.transform(bags), model.transform(bags))
    assert np.array_equal(loaded.predict(bags), model.labels_)
    assert np.array_equal(clone(loaded).fit(bags).labels_, model.labels_)


def test_saved_without_instances(tmp_path):
    D = _matrix(_bags(), _bags(), "max")
    model = BAMIC(3, distance="precomputed", random_state=0).fit(D)
    save(model, tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(D), model.labels_)


def test_function_is_not_saved(tmp_path):
    model = BAMIC(2, metric=cdist).fit(_bags())
    with pytest.raises(ModelFileError, match="BAMIC: metric cannot be stored: a callable"):
        save(model, tmp_path / "model")
    model.set_params(metric=InstanceMetric(cdist))
    with pytest.raises(ModelFileError, match="BAMIC: metric cannot be stored: a callable"):
        save(model, tmp_path / "model")


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("labels_", np.full(12, 3), "labels_ must be below the number of clusters, 3"),
        ("medoids_", np.array([0, 1, 12]), "medoids_ must be below the number of bags, 12"),
        ("medoids_", np.arange(4), "n_offsets = 5, where another attribute has 4"),
        ("medoid_offsets_", np.array([0, 1, 1, 5]), "must cut the instances into bags"),
        ("medoid_offsets_", np.array([0, 1, 2, 99]), "must cut the instances into bags"),
        ("inertia_", -1.0, "inertia_ must be at least 0"),
    ],
)
def test_contradictions_are_not_saved(tmp_path, attribute, value, message):
    model = BAMIC(3, random_state=0).fit(_bags())
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError, match=message):
        save(model, tmp_path / "model")


def test_half_a_model_is_not_saved(tmp_path):
    model = BAMIC(3, random_state=0).fit(_bags())
    offsets = model.medoid_offsets_
    del model.medoid_offsets_
    with pytest.raises(ModelFileError, match="must come together with medoid_offsets_"):
        save(model, tmp_path / "model")
    model.medoid_offsets_ = offsets
    del model.medoid_offsets_, model.medoid_instances_
    with pytest.raises(ModelFileError, match="must be the number of bags"):
        save(model, tmp_path / "model")
