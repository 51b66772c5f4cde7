"""Solvers of MildML, MIML and MC2B against differences, brute force and other formulas."""

import numpy as np
import pytest
from scipy import optimize

from bagwise.solvers import bag_pairs, solve_pair_metric, solve_ratio_metric
from bagwise.solvers.metric._center_metric import CenterStep, apart
from bagwise.solvers.metric._pair_metric import PairLoss
from bagwise.solvers.metric._trace_ratio import trace_ratio

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 4))
OFFSETS = np.arange(0, 41, 4)
PAIRS = bag_pairs(
    RNG.random((10, 3)) < 0.4,
    RNG.uniform(0.5, 2.0, 10),
    max_pairs=100,
    rng=np.random.default_rng(0),
)


def test_loss_of_pairs_is_that_of_the_formula():
    """Pair by pair, with fewer components than features."""
    L, threshold, alpha = RNG.normal(size=(2, 4)), 1.5, 0.3
    total, mass = {True: 0.0, False: 0.0}, {True: 0.0, False: 0.0}
    for (d, e), kind, weight in zip(PAIRS.bags, PAIRS.is_alike, PAIRS.weight, strict=True):
        first, second = (X[OFFSETS[bag] : OFFSETS[bag + 1]] @ L.T for bag in (d, e))
        lead = ((first[:, None] - second) ** 2).sum(axis=2).min() - threshold
        total[bool(kind)] += weight * np.logaddexp(0.0, lead if kind else -lead)
        mass[bool(kind)] += weight
    expected = sum(total[kind] / (2 * mass[kind]) for kind in total) + alpha / 4 * (L**2).sum()
    loss = PairLoss(X, OFFSETS, PAIRS, 2, alpha)
    value = loss.values(np.append(L.ravel(), threshold)[None], np.arange(1))[0]
    assert value == pytest.approx(expected)


def test_gradient_of_pairs_is_that_of_differences():
    loss = PairLoss(X, OFFSETS, PAIRS, 2, 0.3)
    point = np.append(RNG.normal(size=8), 1.5)

    def value(x):
        return float(loss.values(x[None], np.arange(1))[0])

    value(point)
    expected = optimize.approx_fprime(point, value, 1e-7)
    value(point)
    np.testing.assert_allclose(loss.gradients(np.arange(1))[0], expected, atol=1e-6)


def test_pairs_of_one_feature_find_the_best_threshold():
    """With distances 0 and 4 of both kinds, the map and the threshold are those of a logit."""
    rows = np.array([[0.0], [0.0], [2.0], [2.0]])
    lists = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)
    pairs = bag_pairs(lists, np.ones(4), max_pairs=10, rng=np.random.default_rng(0))
    found = solve_pair_metric(rows, np.arange(5), pairs, [[0.5]], alpha=0.1, tol=1e-12)

    def value(x):
        a, b = x
        far = np.logaddexp(0.0, b - 4.0 * a * a)
        return 0.5 * np.logaddexp(0.0, -b) + 0.5 * far + 0.05 * a * a

    best = optimize.minimize(value, [1.0, 1.0], tol=1e-12)
    assert found.objective == pytest.approx(best.fun, abs=1e-8)


def test_trace_ratio_is_no_lower_than_that_of_any_directions():
    V, U = (B @ B.T for B in RNG.normal(size=(2, 5, 5)))
    A = trace_ratio(V, U, 2)
    np.testing.assert_allclose(A @ A.T, np.eye(2), atol=1e-12)
    best = np.trace(A @ V @ A.T) / np.trace(A @ U @ A.T)
    for _ in range(500):
        Q = np.linalg.qr(RNG.normal(size=(5, 2)))[0]
        assert np.trace(Q.T @ V @ Q) / np.trace(Q.T @ U @ Q) <= best
    # At the maximum the traces of V - best U along the leading directions cancel.
    assert np.linalg.eigvalsh(V - best * U)[-2:].sum() == pytest.approx(0.0, abs=1e-9 * best)


def test_one_direction_of_a_trace_ratio_is_a_generalised_eigenvector():
    from scipy.linalg import eigh

    V, U = (B @ B.T for B in RNG.normal(size=(2, 5, 5)))
    A = trace_ratio(V, U, 1)[0]
    assert pytest.approx(eigh(V, U, eigvals_only=True)[-1]) == (A @ V @ A) / (A @ U @ A)


@pytest.mark.parametrize("seed", range(5))
def test_centres_are_the_best_that_are_as_far_apart(seed):
    rng = np.random.default_rng(seed)
    Z, means, mass = rng.normal(size=(4, 2)), 0.3 * rng.normal(size=(4, 2)), rng.uniform(1, 5, 4)
    moved = CenterStep(mass)(Z, means)
    pairs = sum(((Z[c] - Z[e]) ** 2).sum() for c in range(4) for e in range(c))
    assert apart(Z) == pytest.approx(pairs)
    assert apart(moved) == pytest.approx(apart(Z))

    def cost(z):
        return float(mass @ ((z.reshape(4, 2) - means) ** 2).sum(axis=1))

    rule = {"type": "ineq", "fun": lambda z: apart(z.reshape(4, 2)) - apart(Z)}
    ends = [
        optimize.minimize(cost, start, constraints=rule, method="SLSQP")
        for start in (Z.ravel(), *rng.normal(size=(5, 8)))
    ]
    best = min(end.fun for end in ends if end.success)
    assert cost(moved) == pytest.approx(best, rel=1e-5)


def test_centres_are_the_means_where_these_are_far_apart():
    Z, means = RNG.normal(size=(4, 2)), 5.0 * RNG.normal(size=(4, 2))
    np.testing.assert_array_equal(CenterStep(np.ones(4))(Z, means), means)


def test_ratio_of_one_direction_is_the_best_of_all_angles():
    V = RNG.normal(size=(60, 2)) * [1.0, 3.0]
    near, far = RNG.random((2, 60))
    found = solve_ratio_metric(V, near, far, 1, tol=1e-10, max_iter=2000)
    angle = np.linspace(0.0, np.pi, 20_001)
    lengths = np.abs(V @ [np.cos(angle), np.sin(angle)])
    best = (near @ lengths) / (far @ lengths)
    lower = best[np.r_[True, best[1:] <= best[:-1]] & np.r_[best[:-1] <= best[1:], True]]
    assert np.abs(lower / found.objective - 1.0).min() < 1e-3  # one of the local minima
    assert found.objective < np.median(best)


def test_as_many_directions_as_features_leave_lengths_as_they_are():
    near, far = RNG.random((2, 40))
    lengths = np.linalg.norm(X, axis=1)
    found = solve_ratio_metric(X, near, far, 4)
    assert found.objective == pytest.approx((near @ lengths) / (far @ lengths))


def test_without_the_constraint_one_direction_is_enough():
    """Why directions are orthonormal: the ratio of any map is above that of its best direction."""
    near, far = RNG.random((2, 40))

    def ratio(U):
        lengths = np.linalg.norm(X @ U, axis=1)
        return (near @ lengths) / (far @ lengths)

    for _ in range(5):
        U = RNG.normal(size=(4, 3))
        turns = np.linalg.qr(RNG.normal(size=(500, 3, 3)))[0][:, :, :1]
        assert min(ratio(U @ turn) for turn in turns) <= ratio(U) * 1.01
