"""Maximum-margin clusters of instances: values counted in a loop, fixed points, chunks."""

from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from bagwise.bags import Bags, BagSource
from bagwise.solvers import Status, solve_qp
from bagwise.solvers.clustering._balance import Balance
from bagwise.solvers.clustering._mmc import (
    _look,
    _Walk,
    solve_mmc_by_cccp,
    solve_mmc_by_cuts,
)

each_solver = pytest.mark.parametrize(
    "solve", [solve_mmc_by_cuts, solve_mmc_by_cccp], ids=["cuts", "cccp"]
)


def _instances(seed=0, n=120, d=5, k=3):
    rng = np.random.default_rng(seed)
    centers = 2.0 * rng.normal(size=(k, d))
    return centers[rng.integers(0, k, n)] + rng.normal(size=(n, d)) + 0.5


def _source(X, n_threads=1):
    return BagSource(Bags(X, np.arange(0, X.shape[0] + 1, 4)), n_threads=n_threads)


def _start(seed, k=3, d=5):
    return np.random.default_rng(seed).normal(size=(k, d))


def _objective(W, X, C):
    """The objective, one instance after another."""
    total = 0.0
    for x in X:
        *_, second, first = np.sort(W @ x)
        total += max(0.0, 1.0 - first + second)
    return 0.5 * np.sum(W**2) + C / len(X) * total


@each_solver
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("balance", [0.0, 2.0, inf])
def test_objective_is_the_true_one_and_the_point_feasible(solve, k, balance):
    X = _instances(k, k=k)
    m = X.sum(axis=0)
    result = solve(_source(X), _start(1, k), C=2.0, balance=balance, direction=m)
    assert_allclose(result.objective, _objective(result.x, X, 2.0), rtol=1e-10)
    assert_array_equal(result.labels, (X @ result.x.T).argmax(axis=1))
    assert np.ptp(result.x @ m) <= balance + 1e-8
    assert_allclose(result.x.sum(axis=0), 0.0, atol=1e-8)
    assert result.objective <= 2.0  # that of no weights
    assert (np.diff(result.history) <= 0).all()
    assert result.history[-1] == result.objective
    assert len(result.history) == result.n_iter


def test_planes_move_along():
    """After any number of moves the planes are what their definition says at the last point."""
    X, k = _instances(4), 3
    source, C = _source(X), 5.0
    walk = _Walk(source, _start(0), C, Balance.of("a test", X.sum(axis=0), 0.5, k, 5))
    inside = np.ones(len(X), bool)
    for _ in range(6):
        walk.add_cut(inside)
        walk.descend(1000)
        inside = walk.seen.margin < 1.0
    for rivals, slope, offset in zip(
        walk._rivals, walk._program._planes, walk._program._offsets, strict=True
    ):
        sums, outside = np.zeros((k, 5)), 0
        for x, rival, best in zip(X, rivals, walk.seen.labels, strict=True):
            if rival >= 0 and rival != best:
                sums[best] += x
                sums[rival] -= x
                outside += 1
        assert_allclose(slope, -sums.ravel() / len(X), atol=1e-12)
        assert offset == outside / len(X)


def test_minimises_over_the_planes_until_that_gains_little():
    """Steps are taken one by one on the side, until one lowers the objective by less than 1 %."""
    X, C = _instances(4), 5.0
    walk, aside = (_Walk(_source(X), _start(0), C, None) for _ in range(2))
    for one in (walk, aside):
        one.add_cut(np.ones(len(X), bool))
    violation = walk.descend(1000)
    values = []
    while len(values) < 2 or values[-1] < 0.99 * values[-2]:
        w = aside._program.solve().w
        aside._move(w)
        values.append(0.5 * w @ w + C * aside._program.height(w))
    assert walk.n_steps == len(values) > 2
    assert_array_equal(walk.seen.labels, aside.seen.labels)
    assert violation == aside.seen.loss - aside._program.height(w)
    walk.add_cut(walk.seen.margin < 1.0)
    walk.descend(walk.n_steps + 1)
    assert walk.n_steps == len(values) + 1  # the limit


def test_the_loss_is_above_the_planes():
    X = _instances(5)
    for C in (0.05, 1.0, 50.0):
        result = solve_mmc_by_cuts(_source(X), _start(2), C=C)
        assert result.residual >= -1e-12
        assert result.converged == (result.residual <= 0.01)
    few = solve_mmc_by_cuts(_source(X), _start(2), C=50.0, max_cuts=3)
    assert few.status is Status.MAX_ITER
    assert few.n_iter == 3


def test_more_steps_are_never_worse():
    X = _instances(6)
    values = [
        solve_mmc_by_cuts(_source(X), _start(0), C=5.0, max_iter=n).objective
        for n in (1, 3, 10, 100)
    ]
    assert (np.diff(values) <= 0).all()


def _machine(X, labels, k, C):
    """The multi-class machine of Crammer and Singer, by clarabel."""
    n, d = X.shape
    rows, right = [], []
    for i in range(n):
        for r in range(k):
            if r != labels[i]:
                row, slack = np.zeros((k, d)), np.zeros(n)
                row[r], row[labels[i]], slack[i] = X[i], -X[i], -1.0
                rows.append(np.append(row.ravel(), slack))
                right.append(-1.0)
    P = sp.block_diag([sp.eye_array(k * d), sp.csr_array((n, n))])
    cost = np.append(np.zeros(k * d), np.full(n, C / n))
    lower = np.append(np.full(k * d, -inf), np.zeros(n))
    return solve_qp(P, cost, np.array(rows), np.array(right), lower=lower)


def test_ends_in_a_fixed_point():
    """The machine that is trained for the clusters found is the one that found them."""
    X, C = _instances(7, n=60), 5.0
    result = solve_mmc_by_cccp(_source(X), _start(3), C=C, tol=1e-6, max_iter=100)
    assert result.converged
    reference = _machine(X, result.labels, 3, C)
    assert_allclose(result.objective, reference.objective, rtol=1e-5)
    assert_allclose(result.x.ravel(), reference.x[:15], atol=1e-2)


def test_goes_on_from_cuts_without_loss():
    X = _instances(8)
    m = X.sum(axis=0)
    problem = {"C": 20.0, "balance": 1.0, "direction": m}
    first = solve_mmc_by_cuts(_source(X), _start(4), max_cuts=5, **problem)
    then = solve_mmc_by_cccp(_source(X), first.x, **problem)
    assert then.objective < first.objective
    again = solve_mmc_by_cccp(_source(X), then.x, **problem)
    assert again.n_iter == 1
    assert again.objective <= then.objective


def test_only_the_order_of_first_scores_matters():
    X = _instances(9)
    shift = np.arange(5.0)
    for scale in (1e-6, 1e6):
        one = solve_mmc_by_cuts(_source(X), _start(5), C=2.0)
        other = solve_mmc_by_cuts(_source(X), scale * (_start(5) + shift), C=2.0)
        assert_array_equal(one.labels, other.labels)
        assert_allclose(one.x, other.x, atol=1e-9)


@each_solver
def test_chunks_threads_and_kinds(solve, monkeypatch):
    X = np.where(np.random.default_rng(0).uniform(size=(120, 5)) < 0.4, 0.0, _instances(10))
    problem = {"C": 3.0, "balance": 1.0, "direction": X.sum(axis=0)}
    whole = solve(_source(X), _start(6), **problem)
    sparse = solve(_source(sp.csr_array(X)), _start(6), **problem)
    single = solve(_source(X.astype(np.float32)), _start(6), **problem)
    assert_array_equal(sparse.labels, whole.labels)
    assert_allclose(sparse.objective, whole.objective, rtol=1e-9)
    assert_allclose(single.objective, whole.objective, rtol=0.05)
    monkeypatch.setattr("bagwise.bags._matrix.chunk_rows", lambda _: 17)
    assert _source(X).n_chunks > 3
    one = solve(_source(X), _start(6), **problem)
    many = solve(_source(X, n_threads=3), _start(6), **problem)
    assert_array_equal(one.x, many.x)
    assert_array_equal(one.labels, whole.labels)
    assert_allclose(one.objective, whole.objective, rtol=1e-9)


def test_ranks_the_clusters():
    X = _instances(11)
    W = _start(7, k=4)
    seen = _look(_source(X), W)
    order = np.argsort(X @ W.T, axis=1)
    assert_array_equal(seen.labels, order[:, -1])
    assert_array_equal(seen.rivals, order[:, -2])
    ranked = np.sort(X @ W.T, axis=1)
    assert_allclose(seen.margin, ranked[:, -1] - ranked[:, -2], atol=1e-12)


@each_solver
def test_instances_of_zeros(solve):
    result = solve(_source(np.zeros((8, 2))), np.eye(2), C=3.0)
    assert result.converged
    assert result.objective == 3.0
    assert_array_equal(result.labels, 0)


@each_solver
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"start": np.ones((1, 5))}, "start"),
        ({"start": np.ones((3, 4))}, "start"),
        ({"start": np.full((3, 5), np.nan)}, "start"),
        ({"C": 0.0}, "C "),
        ({"balance": -1.0, "direction": np.ones(5)}, "balance"),
        ({"direction": np.ones(4), "balance": 1.0}, "direction"),
        ({"tol": -1.0}, "tol"),
    ],
    ids=["one", "width", "nan", "C", "balance", "direction", "tol"],
)
def test_bad_input(solve, arguments, words):
    given = {"start": _start(0), **arguments}
    with pytest.raises(ValueError, match=words):
        solve(_source(_instances()), **given)
