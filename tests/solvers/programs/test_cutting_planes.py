"""Cutting planes against clarabel on the whole problem, and against theory."""

from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from bagwise.solvers import Status, solve_qp
from bagwise.solvers.clustering._bag_mmc import solve_bag_mmc
from bagwise.solvers.clustering._bag_mmc_by_cuts import solve_bag_mmc_by_cuts
from bagwise.solvers.clustering._balance import Balance
from bagwise.solvers.programs._cut_program import CutProgram
from bagwise.solvers.programs._cutting_planes import Cut, minimize_by_cuts
from solvers.others import cuts
from solvers.problems import KINDS


def _problem(seed, n=40, d=4, k=3, shift=1.0):
    rng = np.random.default_rng(seed)
    X = 2.0 * rng.normal(size=(n, d)) + shift
    return X, rng.integers(0, k, n), X.sum(axis=0)


def _gradients(X, cluster, k):
    """One row for each bag: the gradient of its margin by all weights, cluster after cluster."""
    share = (np.eye(k)[cluster] - 1.0 / k) * k / (k - 1)
    return (share[:, :, None] * X[:, None, :]).reshape(len(X), -1)


def _whole(X, cluster, k, C, balance, m):
    """Solve the problem with a slack for each row, as it stands in the paper, by clarabel."""
    n, d = X.shape
    size = k * d
    P = sp.block_diag([sp.eye_array(size), sp.csr_array((n, n))])
    rows = [np.hstack([-_gradients(X, cluster, k), -np.eye(n)])]
    right = [-np.ones(n)]
    length = np.linalg.norm(m)
    for p in range(k):
        for q in range(k):
            if p != q and balance < inf:
                row = np.zeros((k, d))
                row[p], row[q] = m / length, -m / length
                rows.append(np.append(row.ravel(), np.zeros(n))[None])
                right.append([balance / length])
    lower = np.append(np.full(size, -inf), np.zeros(n))
    cost = np.append(np.zeros(size), np.full(n, C / n))
    return solve_qp(P, cost, np.vstack(rows), np.concatenate(right), lower=lower)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("balance", [0.0, 0.01, 1.0, inf])
def test_equals_the_whole_problem(k, C, balance):
    X, cluster, m = _problem(k, k=k)
    result = solve_bag_mmc_by_cuts(
        X, cluster, k, C=C, balance=balance, direction=m, tol=1e-6, max_iter=500
    )
    reference = _whole(X, cluster, k, C, balance, m)
    assert result.converged
    assert_allclose(result.objective, reference.objective, rtol=2e-6)
    assert_allclose(result.coef.ravel(), reference.x[: k * X.shape[1]], atol=5e-3 * np.sqrt(C))
    assert result.lower_bound <= reference.objective * (1 + 1e-7)


@pytest.mark.parametrize("balance", [0.0, 0.5, inf])
def test_what_is_returned_fits_together(balance):
    X, cluster, m = _problem(7)
    C, k = 5.0, 3
    result = solve_bag_mmc_by_cuts(X, cluster, k, C=C, balance=balance, direction=m, tol=1e-9)
    share = _gradients(X, cluster, k)
    assert_allclose(result.margin, share @ result.coef.ravel(), atol=1e-9)
    hinge = np.maximum(0.0, 1.0 - result.margin)
    assert_allclose(result.objective, 0.5 * np.sum(result.coef**2) + C * hinge.mean(), rtol=1e-12)
    assert_allclose(result.coef.sum(axis=0), 0.0, atol=1e-9)
    assert np.ptp(result.coef @ m) <= balance + 1e-9
    assert (result.x >= 0).all()
    assert (result.x <= C / len(X) * (1 + 1e-12)).all()
    free = (result.x @ share).reshape(k, -1)
    assert_allclose(result.coef, free - np.outer(result.multiplier, m), atol=1e-4)
    assert_allclose(result.multiplier.sum(), 0.0, atol=1e-12)
    penalty = 0.0 if balance == inf else balance / 2 * np.abs(result.multiplier).sum()
    dual = result.x.sum() - 0.5 * np.sum((free - np.outer(result.multiplier, m)) ** 2) - penalty
    assert_allclose(result.lower_bound, dual, rtol=1e-8)


@pytest.mark.parametrize("balance", [0.0, 0.3, inf])
def test_equals_coordinate_descent(balance):
    X, cluster, m = _problem(3, n=60, d=6, k=4)
    ours = {"C": 3.0, "balance": balance, "direction": m, "tol": 1e-7}
    cuts = solve_bag_mmc_by_cuts(X, cluster, 4, max_iter=1000, **ours)
    descent = solve_bag_mmc(X, cluster, 4, max_iter=20000, **ours)
    assert_allclose(cuts.objective, descent.objective, rtol=1e-6)
    assert_allclose(cuts.coef, descent.coef, atol=1e-3)


def test_sparse_single_precision_and_rows():
    X, cluster, m = _problem(5)
    rows = np.arange(0, 40, 2)
    reference = solve_bag_mmc_by_cuts(X[rows], cluster[rows], 3, direction=m, balance=0.2)
    dense = solve_bag_mmc_by_cuts(X, cluster[rows], 3, direction=m, balance=0.2, rows=rows)
    sparse = solve_bag_mmc_by_cuts(
        sp.csr_array(X), cluster[rows], 3, direction=m, balance=0.2, rows=rows
    )
    single = solve_bag_mmc_by_cuts(
        X[rows].astype(np.float32), cluster[rows], 3, direction=m, balance=0.2
    )
    assert_allclose(dense.coef, reference.coef, atol=1e-12)
    assert_allclose(sparse.coef, reference.coef, atol=1e-9)
    assert_allclose(single.objective, reference.objective, rtol=1e-5)


def test_start_from_the_solution_ends_at_once():
    X, cluster, m = _problem(1)
    cold = solve_bag_mmc_by_cuts(X, cluster, 3, C=5.0, balance=0.5, direction=m, tol=1e-8)
    warm = solve_bag_mmc_by_cuts(
        X, cluster, 3, C=5.0, balance=0.5, direction=m, tol=1e-3, alpha0=cold.x
    )
    assert cold.n_iter > 5
    assert warm.n_iter == 1
    assert_allclose(warm.objective, cold.objective, rtol=1e-3)


@pytest.mark.parametrize("eps", [0.3, 0.1, 0.03])
@pytest.mark.parametrize("C", [1.0, 10.0])
def test_rule_and_bound_of_the_paper(eps, C):
    """Theorem 5: at most max(2 / eps, 8 C R^2 / eps^2) cuts, R^2 = k / (k - 1) max |x|^2."""
    k = 3
    for seed in range(5):
        X, cluster, m = _problem(seed)
        result = solve_bag_mmc_by_cuts(
            X, cluster, k, C=C, balance=1.0, direction=m, tol=0.0, eps=eps
        )
        square = k / (k - 1) * np.max(np.sum(X**2, axis=1))
        assert result.converged
        assert result.gap <= C * eps
        assert result.n_iter <= max(2.0 / eps, 8.0 * C * square / eps**2)


def test_intervals_close():
    X, cluster, m = _problem(2, n=80)
    result = solve_bag_mmc_by_cuts(
        X, cluster, 3, C=20.0, balance=1.0, direction=m, tol=1e-5, max_iter=500
    )
    assert (np.diff(result.history) <= 0).all()
    assert (np.diff(result.gap_history) <= 1e-12).all()
    assert result.gap_history[-1] <= 1e-5 * result.objective
    few = solve_bag_mmc_by_cuts(X, cluster, 3, C=20.0, balance=1.0, direction=m, max_iter=4)
    assert few.status is Status.MAX_ITER
    assert few.n_iter == 4
    assert few.lower_bound <= result.objective <= few.objective


def test_empty_clusters_and_rows_of_zeros():
    X, cluster, m = _problem(4)
    X[:3] = 0.0
    result = solve_bag_mmc_by_cuts(
        X, np.minimum(cluster, 1), 4, balance=0.1, direction=m, tol=1e-7, max_iter=500
    )
    reference = _whole(X, np.minimum(cluster, 1), 4, 1.0, 0.1, m)
    assert_allclose(result.objective, reference.objective, rtol=1e-6)
    nothing = solve_bag_mmc_by_cuts(np.zeros((5, 2)), [0, 1, 0, 1, 0], 2, C=3.0)
    assert nothing.objective == 3.0
    assert nothing.converged
    assert_array_equal(nothing.coef, 0.0)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale_of_features(scale):
    """With features times s and C / s^2 the problem is the same, its objective divided by s^2."""
    X, cluster, m = _problem(6)
    plain = solve_bag_mmc_by_cuts(X, cluster, 3, C=2.0, balance=0.3, direction=m, tol=1e-6)
    scaled = solve_bag_mmc_by_cuts(
        scale * X, cluster, 3, C=2.0 / scale**2, balance=0.3, direction=scale * m, tol=1e-6
    )
    assert_allclose(scaled.objective * scale**2, plain.objective, rtol=3e-6)
    assert_allclose(scaled.coef * scale, plain.coef, atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cluster": [0, 3]}, "cluster"),
        ({"cluster": [0.0, 1.0]}, "cluster"),
        ({"n_clusters": 1, "cluster": [0, 0]}, "n_clusters"),
        ({"C": 0.0}, "C "),
        ({"balance": -1.0}, "balance"),
        ({"direction": [1.0]}, "direction"),
        ({"alpha0": [1.0]}, "alpha0"),
        ({"tol": np.nan}, "tol"),
    ],
    ids=["label", "kind", "one", "C", "balance", "direction", "alpha0", "tol"],
)
def test_bad_input(arguments, words):
    given = {"instances": np.eye(2), "cluster": [0, 1], "n_clusters": 2, **arguments}
    with pytest.raises(ValueError, match=words):
        solve_bag_mmc_by_cuts(**given)


def test_a_loss_that_is_no_hinge():
    """The distance from a point: 1/2 |w|^2 + C |w - a| has its minimum at a, or C a / |a|."""
    a = np.array([3.0, 4.0])

    def loss(w):
        away = w - a
        length = float(np.linalg.norm(away))
        slope = away / length if length else np.zeros(2)
        return Cut(slope=slope, offset=length - float(slope @ w), value=length)

    near = minimize_by_cuts(loss, 2, C=1.0, tol=1e-8)
    assert_allclose(near.x, a / 5.0, atol=1e-3)
    assert_allclose(near.objective, 0.5 + 4.0, rtol=1e-7)
    far = minimize_by_cuts(loss, 2, C=20.0, tol=1e-6)
    assert_allclose(far.x, a, atol=1e-3)
    assert far.multiplier.sum() <= 20.0 * (1 + 1e-12)
    assert len(far.multiplier) >= far.n_iter - 1


def test_small_programme_against_clarabel():
    rng = np.random.default_rng(0)
    for _ in range(20):
        d, n, k = 6, int(rng.integers(1, 12)), 3
        C = float(rng.choice([0.1, 1.0, 50.0]))
        slopes, offsets = rng.normal(size=(n, k * d)), rng.uniform(size=n)
        slopes[n // 2 :] = slopes[: n - n // 2]  # planes that are parallel
        side = Balance.of("a test", rng.normal(size=d), 0.2, k, d)
        program = CutProgram(k * d, C, side)
        for slope, offset in zip(slopes, offsets, strict=True):
            program.add_plane(slope, offset)
            point = program.solve()
        rows = [np.hstack([slopes, -np.ones((n, 1))])]
        right = [-offsets]
        for p in range(k):
            for q in range(k):
                row = np.zeros((k, d))
                row[p] += side.unit
                row[q] -= side.unit
                rows.append(np.append(row.ravel(), 0.0)[None])
                right.append([side.width])
        P = np.diag(np.append(np.ones(k * d), 0.0))
        cost = np.append(np.zeros(k * d), C)
        lower = np.append(np.full(k * d, -inf), 0.0)
        best = solve_qp(P, cost, np.vstack(rows), np.concatenate(right), lower=lower)
        value = 0.5 * point.w @ point.w + C * point.level
        assert_allclose(value, best.objective, rtol=1e-7, atol=1e-9)
        assert_allclose(point.bound, best.objective, rtol=1e-7, atol=1e-9)
        assert_allclose(point.w, best.x[:-1], atol=1e-5)
        again = rng.normal(size=(n, k * d))
        program.replace_planes(again, offsets)
        fresh = CutProgram(k * d, C, side)
        for slope, offset in zip(again, offsets, strict=True):
            fresh.add_plane(slope, offset)
        assert_allclose(program.solve().w, fresh.solve().w, atol=1e-7)


def test_balance_projects():
    rng = np.random.default_rng(1)
    side = Balance.of("a test", rng.normal(size=3), 0.4, 4, 3)
    for _ in range(20):
        w = rng.normal(size=12)
        nearest = side.project(w)
        assert side.violated(nearest) is None or np.ptp(
            nearest.reshape(4, 3) @ side.unit
        ) <= side.width * (1 + 1e-12)
        assert_allclose(side.project(nearest), nearest, atol=1e-14)
        other = side.project(rng.normal(size=12))
        assert (w - nearest) @ (other - nearest) <= 1e-12
    assert Balance.of("a test", np.zeros(3), 0.4, 4, 3) is None
    assert Balance.of("a test", np.ones(3), inf, 4, 3) is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_never_rises_until_rounding_ends_the_search(kind):
    """The objective is the least seen and the bound the largest, also where they no longer move."""
    for C in (1.0, 1e4):
        result = cuts(kind, C).solve(tol=0.0)
        assert result.status is Status.STALLED
        assert (np.diff(result.gap_history) <= 0.0).all()
        assert result.gap_history[-1] == result.objective - result.lower_bound
        assert result.relative_gap <= 1e-7
