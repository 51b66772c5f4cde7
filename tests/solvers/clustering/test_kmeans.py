"""K-means against scikit-learn, and the properties of Lloyd's steps."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans

from bagwise import Bags
from bagwise.bags import BagSource
from bagwise.solvers import Status, solve_k_means


def _source(X):
    return BagSource(Bags(X, np.arange(0, X.shape[0] + 1, 5)))


def _instances(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 3.0 * rng.integers(0, 3, size=(n, 1))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_agrees_with_scikit_learn(sparse, weighted):
    X = _instances()
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    weight = np.random.default_rng(1).random(200) if weighted else np.ones(200)
    result = solve_k_means(
        _source(sp.csr_array(X) if sparse else X), X[:4], weight=weight, tol=0.0, max_iter=300
    )
    peer = KMeans(4, init=X[:4], n_init=1, tol=0.0, max_iter=300, algorithm="lloyd")
    peer.fit(X, sample_weight=weight)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.x, peer.cluster_centers_, atol=1e-9)
    np.testing.assert_allclose(result.objective, peer.inertia_, rtol=1e-9)


def test_steps_lower_the_objective_and_can_run_out():
    X = _instances(seed=3)
    result = solve_k_means(_source(X), X[:6], tol=0.0, max_iter=100)
    assert all(new <= old + 1e-9 * old for old, new in pairwise(result.history))
    short = solve_k_means(_source(X), X[:6], tol=0.0, max_iter=2)
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 2
    assert short.residual > 0.0


def test_a_weight_of_two_is_a_repetition_and_a_weight_of_zero_an_absence():
    X = _instances(n=50)
    weight = np.arange(50) % 3
    repeated = np.repeat(X, weight, axis=0)
    repeated = np.concatenate([repeated, np.zeros((-len(repeated) % 5, 3))])
    counts = np.ones(len(repeated))
    counts[int(weight.sum()) :] = 0.0
    weighted = solve_k_means(_source(X), X[:3], weight=weight)
    np.testing.assert_allclose(
        weighted.x, solve_k_means(_source(repeated), X[:3], weight=counts).x, atol=1e-12
    )


def test_a_centre_that_gets_nothing_stays():
    X = _instances()
    far = np.full(3, 1e3)
    assert (solve_k_means(_source(X), np.stack([X[0], far])).x[1] == far).all()


def test_one_cluster_is_the_mean():
    X = _instances()
    result = solve_k_means(_source(X), X[:1], tol=0.0)
    np.testing.assert_allclose(result.x[0], X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(result.objective, np.square(X - X.mean(axis=0)).sum(), rtol=1e-9)


def test_precision_and_order_of_bags_hardly_matter():
    X = _instances()
    bags = Bags(X, np.arange(0, 201, 5))
    expected = solve_k_means(BagSource(bags), X[:4]).x
    shuffled = bags[np.random.default_rng(0).permutation(40)]
    np.testing.assert_allclose(solve_k_means(BagSource(shuffled), X[:4]).x, expected, atol=1e-10)
    single = solve_k_means(_source(X.astype(np.float32)), X[:4]).x
    np.testing.assert_allclose(single, expected, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_instances_far_from_zero_keep_their_digits(dtype):
    X = np.round(64.0 * _instances()) / 64.0  # exact in both precisions, there and here
    far = 2.0**12 if dtype == np.float32 else 2.0**30
    here = solve_k_means(_source(X), X[:4], tol=0.0, max_iter=100)
    there = solve_k_means(_source((X + far).astype(dtype)), X[:4] + far, tol=0.0, max_iter=100)
    assert there.status is Status.CONVERGED
    np.testing.assert_allclose(there.x - far, here.x, atol=1e-6)
    np.testing.assert_allclose(there.objective, here.objective, rtol=1e-5)
    assert all(new <= old * (1.0 + 1e-6) for old, new in pairwise(there.history))


def test_more_centres_than_instances_end_on_the_instances():
    X = _instances(n=5)
    result = solve_k_means(_source(X), np.concatenate([X, X, X + 1e-3]), tol=0.0)
    np.testing.assert_allclose(result.x[:5], X, atol=1e-12)
    assert 0.0 <= result.objective < 1e-12


def test_no_centre_is_refused():
    with pytest.raises(ValueError, match="rows of start of solve_k_means must be at least 1"):
        solve_k_means(_source(_instances()), np.zeros((0, 3)))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_an_empty_centre_is_moved_to_the_farthest_instance(sparse):
    """One step by hand: 9 is farthest from the mean of all, which the first centre would get."""
    X = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
    source = BagSource(Bags(sp.csr_array(X) if sparse else X, [0, 2, 5]))
    start = [[1.0], [-50.0]]
    assert solve_k_means(source, start, max_iter=1).x.tolist() == [[3.0], [-50.0]]
    result = solve_k_means(source, start, refill=True, max_iter=1)
    np.testing.assert_allclose(result.x, [[1.5], [9.0]], atol=1e-12)
    assert result.objective == pytest.approx(5.0)


def test_centres_beyond_the_distinct_instances_stay():
    X = np.repeat([[0.0, 1.0], [2.0, 5.0]], 10, axis=0)
    result = solve_k_means(_source(X), np.concatenate([X[[0, 0, 10]], [[40.0, 0.0]]]), refill=True)
    assert result.converged
    assert result.objective == pytest.approx(0.0, abs=1e-12)


def test_the_unit_of_the_tolerance_is_that_of_scikit_learn():
    X = _instances(500)
    for tol in (1e-1, 1e-2, 1e-3, 1e-4):
        peer = KMeans(5, init=X[:5], n_init=1, tol=tol).fit(X)
        result = solve_k_means(_source(X), X[:5], tol=tol, relative_to="instances", max_iter=300)
        assert result.n_iter == peer.n_iter_
        np.testing.assert_allclose(result.x, peer.cluster_centers_, rtol=1e-9)
