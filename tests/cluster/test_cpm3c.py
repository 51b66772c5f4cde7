"""CPM3C: votes and key instances counted in a loop, starts, both solvers, files, real data."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from bagwise import Bags
from bagwise.cluster import CPM3C
from bagwise.datasets import fetch
from bagwise.exceptions import DatasetUnavailableError
from bagwise.metrics import clustering_accuracy
from bagwise.persistence import load, save
from spies import solver_calls

each_solver = pytest.mark.parametrize("solver", ["cccp", "cutting_plane"])


def _bags(n=30, seed=0, k=3, d=4):
    """Bags whose instances lie around one of k directions, with a stray one in some."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    bags = []
    for label in y:
        where = np.full(rng.integers(1, 7), label)
        if len(where) > 2:
            where[0] = rng.integers(0, k)
        bags.append(4.0 * np.eye(k, d)[where] + 0.5 * rng.normal(size=(len(where), d)))
    return bags, y


def _fit(bags, k=3, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CPM3C(k, random_state=0, **params).fit(bags)


@each_solver
@pytest.mark.parametrize("init", ["random", "kmeans"])
@pytest.mark.parametrize("k", [2, 3])
def test_finds_clusters(solver, init, k):
    bags, y = _bags(k=k)
    model = _fit(bags, k, solver=solver, init=init)
    assert clustering_accuracy(y, model.labels_) == 1.0
    new, new_y = _bags(seed=1, k=k)
    assert clustering_accuracy(new_y, model.predict(new)) > 0.9


@each_solver
def test_votes_and_key_instances(solver):
    bags, _ = _bags(seed=2)
    model = _fit(bags, solver=solver, C=0.1)
    W = model.coef_
    instance_labels = []
    for i, bag in enumerate(bags):
        votes, leads = np.zeros(3), []
        for x in bag:
            scores = W @ x
            votes[scores.argmax()] += 1
            instance_labels.append(scores.argmax())
        label = int(votes.argmax())  # the first of several
        for x in bag:
            scores = W @ x
            leads.append(scores[label] - np.delete(scores, label).max())
        assert model.labels_[i] == label
        assert model.key_instances_[i] == int(np.argmax(leads))
        assert_allclose(model.transform(bags)[i], votes / len(bag))
    assert_array_equal(model.instance_labels_, instance_labels)
    assert_array_equal(model.instance_predict(bags), instance_labels)
    assert_array_equal(model.predict(bags), model.labels_)
    assert_array_equal(model.key_instances(bags), model.key_instances_)
    assert_array_equal(model.decision_function(bags), model.transform(bags))
    key = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])[:-1]]) + model.key_instances_
    assert_array_equal(model.instance_labels_[key], model.labels_)


def test_an_instance_scores_by_its_lead_over_the_best_other_cluster():
    bags, _ = _bags(seed=2, k=4)
    model = _fit(bags, 4)
    scores = np.concatenate(bags) @ model.coef_.T
    leads = [scores[:, p] - np.delete(scores, p, axis=1).max(axis=1) for p in range(4)]
    assert_allclose(model.instance_decision_function(bags), np.transpose(leads), atol=1e-12)


def test_a_start_that_leaves_a_cluster_empty_is_not_kept():
    """Without a balance the best objective of all is that of one cluster for all bags."""
    bags, _ = _bags(k=2)
    bags = [bag + 2.0 for bag in bags]
    with solver_calls() as calls:
        model = _fit(bags, 2, balance=np.inf, solver="cutting_plane", n_init=20)
    starts = [call.result for call in calls if call.solver == "solve_mmc_by_cuts"]
    n_used = [len(np.unique(start.labels)) for start in starts]
    best = min(starts, key=lambda start: start.objective)
    assert {1, 2} == set(n_used)
    assert len(np.unique(best.labels)) == 1
    assert_array_equal(np.unique(model.labels_), [0, 1])


def test_tied_votes_go_to_the_lowest_number():
    rng = np.random.default_rng(0)
    pure = [3.0 * np.eye(2)[[i % 2]] + 0.1 * rng.normal(size=(1, 2)) for i in range(10)]
    tied = 3.0 * np.eye(2)
    model = CPM3C(2, random_state=0).fit([*pure, tied, tied[::-1]])
    assert_array_equal(model.labels_[-2:], 0)


@each_solver
def test_objective(solver):
    bags, _ = _bags(seed=3)
    model = _fit(bags, solver=solver, C=3.0, balance=0.5)
    X, W = np.concatenate(bags), model.coef_
    ranked = np.sort(X @ W.T, axis=1)
    hinge = np.maximum(0.0, 1.0 - ranked[:, -1] + ranked[:, -2])
    assert_allclose(model.result_.objective, 0.5 * np.sum(W**2) + 3.0 * hinge.mean(), rtol=1e-9)
    assert np.ptp(W @ X.sum(axis=0)) <= 0.5 + 1e-9
    assert len(model.result_.parts) == 5
    assert model.result_.objective <= min(part.objective for part in model.result_.parts)


def test_polishing_lowers_the_objective():
    bags, _ = _bags(seed=4)
    cuts = _fit(bags, C=20.0, solver="cutting_plane", max_cuts=4)
    more = _fit(bags, C=20.0, solver="cccp", max_cuts=4)
    assert more.result_.objective < cuts.result_.objective
    assert more.result_.converged
    assert_allclose(
        [part.objective for part in more.result_.parts],
        [part.objective for part in cuts.result_.parts],
    )


def test_no_room_along_the_mean():
    bags, _ = _bags(seed=5)
    shifted = [bag + 3.0 for bag in bags]
    model = _fit(shifted, balance=0.0)
    assert_allclose(model.coef_ @ np.concatenate(shifted).sum(axis=0), 0.0, atol=1e-9)
    centred = [bag - np.concatenate(bags).mean(axis=0) for bag in bags]
    free = _fit(centred, balance=np.inf)
    for balance in (0.0, 1.0):  # nothing to keep to
        assert_array_equal(_fit(centred, balance=balance).coef_, free.coef_)


def test_single_precision_is_centred_too():
    """A mean that is rounding only is no direction to keep to."""
    bags, _ = _bags(seed=5)
    rows = np.concatenate(bags)
    centred = [((bag - rows.mean(axis=0)) / rows.std(axis=0)).astype(np.float32) for bag in bags]
    assert np.concatenate(centred).sum(axis=0, dtype=np.float64).any()
    free = _fit(centred, balance=np.inf)
    assert_array_equal(_fit(centred, balance=0.0).coef_, free.coef_)


def test_given_start():
    bags, y = _bags(seed=6)
    model = CPM3C(3, init=np.eye(3, 4)).fit(bags)
    assert_array_equal(model.labels_, y)
    assert len(model.result_.parts) == 1
    with pytest.raises(ValueError, match=r"init of CPM3C .* shape \(3, 4\)"):
        CPM3C(3, init=np.eye(4)).fit(bags)
    with pytest.raises(ValueError, match=r"init of CPM3C .* Got NaN or infinity"):
        CPM3C(3, init=np.full((3, 4), np.nan)).fit(bags)


def test_not_converged_at_the_limit_of_cuts():
    bags, _ = _bags(seed=7)
    with pytest.warns(ConvergenceWarning, match=r"CPM3C did not converge .* max_cuts .*cccp"):
        model = CPM3C(3, C=100.0, solver="cutting_plane", max_cuts=3, random_state=0).fit(bags)
    assert model.result_.status == "max_iter"
    assert model.n_iter_ == 3


def test_empty_clusters_warn_and_stand_last():
    bags = [np.array([[1.0, 0.0]])] * 3 + [np.array([[-1.0, 0.0]])] * 3
    with pytest.warns(ConvergenceWarning, match="CPM3C put bags into 2 of n_clusters=4"):
        model = CPM3C(4, C=10.0, random_state=0).fit(bags)
    assert_array_equal(np.unique(model.labels_), [0, 1])
    assert model.coef_.shape == (4, 2)


def test_one_cluster():
    bags, _ = _bags()
    model = CPM3C(1).fit(bags)
    assert_array_equal(model.labels_, 0)
    assert model.result_.objective == 0.0
    assert_array_equal(model.coef_, 0.0)


@each_solver
def test_sparse_stored_and_threaded(solver, tmp_path):
    bags, _ = _bags(seed=8)
    plain = Bags.from_list(bags)
    model = _fit(plain, solver=solver)
    sparse = _fit(Bags(sp.csr_array(plain.instances), plain.offsets), solver=solver)
    assert_array_equal(sparse.labels_, model.labels_)
    assert_allclose(sparse.coef_, model.coef_, atol=1e-6)
    plain.write(tmp_path / "some.bags")
    stored = _fit(Bags.open(tmp_path / "some.bags"), solver=solver)
    assert_array_equal(stored.coef_, model.coef_)
    threaded = _fit(plain, solver=solver, n_jobs=2)
    assert_array_equal(threaded.coef_, model.coef_)


def test_saves_and_loads(tmp_path):
    bags, _ = _bags(seed=9)
    model = _fit(bags, balance=0.0)
    save(model, tmp_path / "model.bagwise")
    again = load(tmp_path / "model.bagwise")
    assert_array_equal(again.coef_, model.coef_)
    assert_array_equal(again.predict(bags), model.labels_)
    assert again.result_.objective == model.result_.objective


def test_corel():
    """Raw Corel: an independent prototype had 47 to 54 % over nine pairs of C and l."""
    try:
        data = fetch("corel3")
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    model = _fit(data.bags, solver="cutting_plane")
    assert 0.45 <= clustering_accuracy(data.y, model.labels_) <= 0.58
