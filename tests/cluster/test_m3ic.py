"""M3IC."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from bagwise import Bags
from bagwise.cluster import M3IC
from bagwise.datasets import make_cluster_bags
from bagwise.exceptions import MemoryLimitError
from bagwise.metrics import clustering_accuracy


@pytest.fixture(scope="module")
def concepts():
    return make_cluster_bags(90, n_clusters=3, n_features=5, separation=8.0, random_state=3)


def objective(model, bags):
    W, k = model.coef_, model.n_clusters
    best = [(bag @ (W - W.mean(axis=0)).T).max() for bag in bags.to_list()]
    loss = np.maximum(0.0, 1.0 - k / (k - 1) * np.array(best))
    return 0.5 * (W**2).sum() + model.C * loss.mean()


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"balance": 0.0},
        {"balance": np.inf, "C": 0.1},
        {"init": "kmeans"},
        {"solver": "cutting_plane"},
        {"kernel": "poly", "degree": 2, "gamma": 1.0, "C": 0.1},
        {"kernel": "poly", "degree": 1, "gamma": 1.0, "approx": "cholesky", "rank": 5},
        {"kernel": "poly", "degree": 2, "gamma": 1.0, "C": 0.1, "approx": "nystroem", "rank": 40},
    ],
    ids=str,
)
def test_finds_concepts_and_key_instances(concepts, params):
    bags = concepts.bags
    model = M3IC(3, random_state=0, **params).fit(bags)
    assert clustering_accuracy(concepts.y, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(bags), model.labels_)
    np.testing.assert_array_equal(model.key_instances(bags), model.key_instances_)
    rows = bags.offsets[:-1] + model.key_instances_
    assert (concepts.instance_y[rows] == concepts.y).mean() > 0.95
    new = make_cluster_bags(60, n_clusters=3, n_features=5, separation=8.0, random_state=4)
    both = np.append(model.labels_, model.predict(new.bags))
    assert clustering_accuracy(np.append(concepts.y, new.y), both) > 0.95


def test_certificate(concepts):
    model = M3IC(3, random_state=0, n_init=4).fit(concepts.bags)
    assert model.result_.converged
    assert model.result_.objective == pytest.approx(objective(model, concepts.bags), rel=1e-9)
    assert len(model.result_.parts) == 4
    assert model.result_.objective in [part.objective for part in model.result_.parts]
    assert model.result_.gap_history[-1] <= 1e-3 * model.result_.objective
    mean = sum(bag.mean(axis=0) for bag in concepts.bags.to_list())
    assert np.ptp(model.coef_ @ mean) <= 1.0 + 1e-9


def test_an_exact_kernel_is_the_linear_method_in_its_space(concepts):
    bags = concepts.bags[:30]
    linear = M3IC(2, init="kmeans", random_state=0, n_init=2).fit(bags)
    same = M3IC(2, init="kmeans", random_state=0, n_init=2, kernel="poly", degree=1, gamma=1.0)
    same.fit(bags)
    assert same.result_.objective == pytest.approx(linear.result_.objective, rel=1e-6)
    np.testing.assert_allclose(same.transform(bags), linear.transform(bags), atol=1e-5)


@pytest.mark.parametrize("approx", [None, "cholesky", "nystroem", "fourier"])
def test_kernel_scores(concepts, approx):
    bags = concepts.bags[:40]
    model = M3IC(2, kernel="rbf", gamma=0.02, approx=approx, rank=30, random_state=1, C=30.0)
    model.fit(bags)
    scores = model.instance_decision_function(bags)
    assert scores.shape == (bags.n_instances, 2)
    np.testing.assert_allclose(scores.sum(axis=1), 0.0, atol=1e-7)
    pieces = np.split(scores, bags.offsets[1:-1])
    np.testing.assert_allclose(model.transform(bags), [piece.max(axis=0) for piece in pieces])
    np.testing.assert_array_equal(model.predict(bags), model.labels_)
    assert hasattr(model, "coef_") == (approx == "fourier")
    assert model.gamma_ == 0.02


def test_several_clusters(concepts):
    bags, y = concepts.bags, concepts.y
    model = M3IC(3, random_state=0).fit(bags)
    first, second = (int(np.flatnonzero(y == c)[0]) for c in (0, 1))
    both = Bags.from_list([np.concatenate([bags[first], bags[second]]), np.zeros((2, 5))])
    members = model.predict_multi(both, margin=0.9)
    expected = np.zeros(3, bool)
    expected[model.labels_[[first, second]]] = True
    np.testing.assert_array_equal(members, [expected, [False] * 3])
    scores = model.decision_function(bags)
    np.testing.assert_array_equal(model.predict_multi(bags), 1.5 * scores >= 1.0)
    np.testing.assert_array_equal(model.predict_multi(bags, margin=-np.inf), True)
    model.set_params(n_clusters=2)  # means nothing before the next fit
    np.testing.assert_array_equal(model.predict_multi(bags), 1.5 * scores >= 1.0)


def test_units_and_cost(concepts):
    bags = concepts.bags
    a = M3IC(3, C=2.0, balance=1.0, random_state=0).fit(bags)
    b = M3IC(3, C=2.0 / 16**2, balance=1.0, random_state=0)
    b.fit(Bags(16.0 * bags.instances, bags.offsets))
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_allclose(16.0 * b.coef_, a.coef_, rtol=1e-6, atol=1e-12)


def test_sparse_and_stored_bags(concepts, tmp_path):
    bags = concepts.bags
    X = np.where(np.abs(bags.instances) > 1.0, bags.instances, 0.0)
    dense, sparse = Bags(X, bags.offsets), Bags(sp.csr_array(X), bags.offsets)
    a, b = (M3IC(3, random_state=0).fit(x) for x in (dense, sparse))
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-9)
    dense.write(tmp_path / "dense.bags")
    c = M3IC(3, random_state=0, max_memory="64MB").fit(Bags.open(tmp_path / "dense.bags"))
    np.testing.assert_array_equal(a.coef_, c.coef_)
    np.testing.assert_array_equal(a.key_instances_, c.key_instances_)
    sparse.write(tmp_path / "sparse.bags")
    d = M3IC(3, random_state=0).fit(Bags.open(tmp_path / "sparse.bags"))
    np.testing.assert_array_equal(b.coef_, d.coef_)


@pytest.mark.parametrize("params", [{"init": "kmeans"}, {"kernel": "rbf", "max_memory": 10}])
def test_stored_bags_where_all_instances_are_needed(concepts, tmp_path, params):
    bags = concepts.bags[:40].compact()
    bags.write(tmp_path / "some.bags")
    a, b = (
        M3IC(2, random_state=0, n_init=2, **params).fit(x)
        for x in (bags, Bags.open(tmp_path / "some.bags"))
    )
    np.testing.assert_array_equal(a.transform(bags), b.transform(bags))
    np.testing.assert_array_equal(a.labels_, b.labels_)


def test_threads_do_not_change_the_result(concepts):
    a, b = (M3IC(3, random_state=0, n_jobs=n).fit(concepts.bags) for n in (1, 2))
    np.testing.assert_array_equal(a.coef_, b.coef_)


def test_given_weights(concepts):
    bags = concepts.bags
    W = np.eye(3, 5)
    model = M3IC(3, init=W).fit(bags)
    assert clustering_accuracy(concepts.y, model.labels_) > 0.95
    assert len(model.result_.parts) == 1
    with pytest.raises(ValueError, match=r"init of M3IC .* shape \(3, 5\). Got shape \(2, 5\)"):
        M3IC(3, init=W[:2]).fit(bags)
    with pytest.raises(ValueError, match=r"with kernel='linear' only. Got 'rbf'"):
        M3IC(3, init=W, kernel="rbf").fit(bags)
    with pytest.raises(ValueError, match="init of M3IC must hold weights that differ"):
        M3IC(3, init=np.ones((3, 5))).fit(bags)


def test_one_cluster(concepts):
    model = M3IC(1).fit(concepts.bags)
    assert (model.labels_ == 0).all()
    assert model.result_.objective == 1.0


def test_empty_clusters_stand_last():
    bags = [np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])]
    with pytest.warns(ConvergenceWarning, match="M3IC put bags into 2 of n_clusters=3"):
        model = M3IC(3, random_state=0, C=100.0).fit(bags)
    assert sorted(np.unique(model.labels_)) == [0, 1]
    np.testing.assert_array_equal(model.predict(bags), model.labels_)


def test_centred_bags_are_told_of(concepts):
    bags = concepts.bags
    mean = np.mean([bag.mean(axis=0) for bag in bags.to_list()], axis=0)
    centred = Bags(bags.instances - mean, bags.offsets)
    for balance in (0.0, 1.0):
        with pytest.warns(ConvergenceWarning, match=f"balance={balance} of M3IC asks nothing"):
            model = M3IC(3, balance=balance, random_state=0).fit(centred)
        free = M3IC(3, balance=np.inf, random_state=0).fit(centred)
        np.testing.assert_array_equal(model.coef_, free.coef_)


def test_too_many_instances_for_an_exact_kernel(monkeypatch):
    monkeypatch.setattr("bagwise.base._feature_map.MOST_EXACT", 10)
    with pytest.raises(MemoryLimitError, match=r"at most 10 instances. Got 12.*approx='nystroem'"):
        M3IC(kernel="rbf").fit(np.ones((12, 2)))


def test_fourier_needs_a_kernel_of_differences():
    with pytest.raises(ValueError, match="approx='fourier' needs kernel='rbf' or 'laplacian'"):
        M3IC(kernel="poly", approx="fourier").fit(np.eye(6))
