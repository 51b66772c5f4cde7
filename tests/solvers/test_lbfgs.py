"""L-BFGS on functions with known minima, and each of many starts as if it were alone."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

import bagwise._threads as threads
import bagwise.solvers._lbfgs as lbfgs
from bagwise.solvers import Status, minimize_lbfgs


class Function:
    """A function of one point, at several."""

    def __init__(self, value, gradient):
        self.value, self.gradient, self.points, self.batches = value, gradient, {}, []

    def values(self, X, starts):
        assert X.shape[0] == len(starts)
        self.batches.append(len(starts))
        self.points = dict(zip(starts.tolist(), X.copy(), strict=True))
        return np.array([self.value(x) for x in X])

    def gradients(self, starts):
        return np.array([self.gradient(self.points[start]) for start in starts.tolist()])


def rosenbrock():
    return Function(rosen, rosen_der)


def quadratic(A, b):
    return Function(lambda x: 0.5 * x @ A @ x - b @ x, lambda x: A @ x - b)


def _positive(n, condition, rng):
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (Q * np.geomspace(1.0, condition, n)) @ Q.T


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_quadratics_are_minimised(n, condition):
    rng = np.random.default_rng(n)
    A, b = _positive(n, condition, rng), rng.normal(size=n)
    expected = np.linalg.solve(A, b)
    least = -0.5 * b @ expected
    for result in minimize_lbfgs(
        quadratic(A, b), rng.normal(size=(3, n)), tol=1e-12, max_iter=3000
    ):
        assert result.status is Status.CONVERGED
        assert result.objective == pytest.approx(least, rel=1e-8, abs=1e-8)
        np.testing.assert_allclose(A @ result.x, b, atol=1e-3)


def test_rosenbrock_like_scipy():
    starts = np.random.default_rng(0).uniform(-2.0, 2.0, size=(20, 6))
    results = minimize_lbfgs(rosenbrock(), starts, tol=1e-12, max_iter=1000)
    for start, result in zip(starts, results, strict=True):
        other = minimize(rosen, start, jac=rosen_der, options={"gtol": 1e-8})
        assert result.status is Status.CONVERGED
        assert rosen(result.x) == result.objective
        # There are two minima, at (1, ..., 1) and near (-1, 1, ..., 1).
        assert min(result.objective, abs(result.objective - 3.97394)) < 1e-5
        assert min(other.fun, abs(other.fun - 3.97394)) < 1e-5
        assert np.abs(rosen_der(result.x)).max() < 1e-3
    from_scipy = [minimize(rosen, start, jac=rosen_der).fun for start in starts]
    assert np.mean([r.objective for r in results]) <= np.mean(from_scipy) + 1.0


def test_few_evaluations_are_needed():
    starts = np.random.default_rng(1).uniform(-2.0, 2.0, size=(20, 6))
    function = rosenbrock()
    minimize_lbfgs(function, starts, tol=1e-10, max_iter=1000)
    counts = [
        minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", options={"ftol": 1e-12}).nfev
        for start in starts
    ]
    assert sum(function.batches) <= 1.5 * sum(counts)
    assert len(function.batches) < 0.4 * sum(counts)  # one call serves all that are still going


def test_many_starts_are_each_as_if_alone():
    starts = np.random.default_rng(2).uniform(-3.0, 3.0, size=(12, 5))
    together = minimize_lbfgs(rosenbrock(), starts, tol=1e-8, max_iter=300)
    assert len({result.n_iter for result in together}) > 3
    for start, result in zip(starts, together, strict=True):
        [alone] = minimize_lbfgs(rosenbrock(), start[None], tol=1e-8, max_iter=300)
        assert (result.status, result.n_iter) == (alone.status, alone.n_iter)
        np.testing.assert_allclose(result.x, alone.x, rtol=1e-6)
        np.testing.assert_allclose(result.history, alone.history, rtol=1e-5, atol=1e-10)


def test_directions_are_those_of_the_two_loops():
    """The compact form equals the recursion of Nocedal (1980), in whatever place a pair is."""
    rng = np.random.default_rng(3)
    A = _positive(8, 50.0, rng)
    pairs, known = lbfgs._Pairs(2, 8, 4), []
    for _ in range(7):
        s = rng.normal(size=8) * 10.0 ** rng.uniform(-6, 3)
        known = [*known, (s, A @ s)][-4:]
        pairs.add(np.array([s, np.zeros(8)]), np.array([A @ s, np.zeros(8)]))
        gradient = rng.normal(size=8)
        q, factors = gradient.copy(), []
        for s, y in reversed(known):
            factors.append(s @ q / (s @ y))
            q -= factors[-1] * y
        s, y = known[-1]
        q *= (s @ y) / (y @ y)
        for (s, y), factor in zip(known, reversed(factors), strict=True):
            q += (factor - y @ q / (s @ y)) * s
        got = pairs.directions(np.array([gradient, gradient]))
        np.testing.assert_allclose(got[0], -q, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(got[1], -gradient)  # it has no pairs yet
    pairs.forget(np.array([0]))
    np.testing.assert_array_equal(pairs.directions(np.ones((2, 8))), -np.ones((2, 8)))


def test_history_never_rises_and_ends_at_the_objective():
    starts = np.random.default_rng(4).uniform(-5.0, 5.0, size=(10, 4))
    for result in minimize_lbfgs(rosenbrock(), starts, max_iter=40):
        assert (np.diff(result.history) <= 0.0).all()
        assert len(result.history) == result.n_iter + 1
        assert result.history[-1] == result.objective


def test_too_few_iterations_are_reported():
    starts = np.array([[-1.2, 1.0], [1.0, 1.0]])
    short, done = minimize_lbfgs(rosenbrock(), starts, max_iter=3)
    assert (short.status, short.n_iter) == (Status.MAX_ITER, 3)
    assert short.residual > 1e-6
    assert (done.status, done.n_iter, done.residual) == (Status.CONVERGED, 0, 0.0)
    np.testing.assert_array_equal(done.x, [1.0, 1.0])
    np.testing.assert_array_equal(done.history, [0.0])
    [none] = minimize_lbfgs(rosenbrock(), starts[:1], max_iter=0)
    assert (none.status, none.n_iter) == (Status.MAX_ITER, 0)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_badly_scaled_problems(scale):
    rng = np.random.default_rng(5)
    A, b = _positive(6, 100.0, rng), rng.normal(size=6)
    starts = scale * rng.normal(size=(4, 6))
    function = quadratic(A / scale**2, b / scale)
    results = minimize_lbfgs(function, starts, tol=1e-10, max_iter=500, length=scale)
    for result in results:
        assert result.status is Status.CONVERGED
        np.testing.assert_allclose(result.x / scale, np.linalg.solve(A, b), atol=1e-3)


def test_far_starts_beside_near_ones():
    starts = np.array([[1.0001, 1.0], [-1e3, 1e4], [1e-3, -1e-3]])
    for result in minimize_lbfgs(rosenbrock(), starts, tol=1e-12, max_iter=3000):
        assert result.objective < 1e-6


def test_steps_where_there_is_no_value_are_cut():
    def value(x):
        return float(x[0] - np.log(x[0])) if x[0] > 0.0 else np.nan

    [result] = minimize_lbfgs(
        Function(value, lambda x: 1.0 - 1.0 / x), [[0.01]], length=100.0, tol=1e-12
    )
    assert result.status is Status.CONVERGED
    assert result.x[0] == pytest.approx(1.0, abs=1e-5)


def test_a_start_without_a_value_stalls_alone():
    function = Function(
        lambda x: float(np.sqrt(x[0]) + 1.0 / x[0]), lambda x: 0.5 / np.sqrt(x) - x**-2
    )
    with np.errstate(all="ignore"):
        lost, found = minimize_lbfgs(function, [[-1.0], [1.0]])
    assert (lost.status, lost.n_iter) == (Status.STALLED, 0)
    assert found.status is Status.CONVERGED
    assert found.x[0] == pytest.approx(2.0 ** (2 / 3), rel=1e-3)


def test_a_wrong_gradient_stalls():
    [result] = minimize_lbfgs(Function(lambda x: float(x @ x), lambda x: -2.0 * x), [[1.0, 2.0]])
    assert (result.status, result.n_iter) == (Status.STALLED, 0)
    assert result.objective == 5.0
    np.testing.assert_array_equal(result.x, [1.0, 2.0])


def test_pairs_that_mislead_are_forgotten():
    """A kink lies across the valley: quasi-Newton steps fail there, the gradient still leads on."""
    function = Function(
        lambda x: 10.0 * abs(x[0]) + 0.5 * x[1] ** 2,
        lambda x: np.array([10.0 * np.sign(x[0]), x[1]]),
    )
    [result] = minimize_lbfgs(function, [[1.0, 30.0]], tol=0.0, max_iter=200)
    assert result.status is Status.STALLED
    assert (np.diff(result.history) <= 0.0).all()
    assert result.objective < 0.05 * result.history[0]


def test_the_longest_vector_counts():
    rule = lbfgs.StoppingRule(tol=0.1, length=2.0, block=2, unit=lambda values: 10.0 * values)
    gradients = np.array([[3.0, 4.0, 0.0, 1.0], [0.0, 0.0, 6.0, 8.0]])
    np.testing.assert_allclose(rule.residual(np.array([1.0, 2.0]), gradients), [1.0, 1.0])


@pytest.mark.parametrize(
    ("decrease", "n_steps", "is_met"),
    [(0.05, 1, False), (0.05, 4, False), (0.05, 5, True), (0.15, 5, False), (0.5e-4, 1, True)],
)
def test_a_few_slow_steps_prove_little(decrease, n_steps, is_met):
    """Before the window is full, a thousandth of tol ends a descent."""
    rule = lbfgs.StoppingRule(tol=0.1, window=5)
    history = [np.array([0.9 - decrease * step]) for step in range(n_steps + 1)]
    assert rule.is_met(history, np.array([[1.0]])).tolist() == [is_met]


@pytest.mark.parametrize("curvature", [1e-4, 1e-2, 1.0])
def test_steps_are_long_enough_for_the_slope_to_fall(curvature):
    """The condition of Wolfe, also for a first step that is far too short."""
    function = quadratic(np.array([[curvature]]), np.zeros(1))
    [result] = minimize_lbfgs(function, [[1000.0]], max_iter=1)
    assert abs(result.x[0]) <= 0.9 * 1000.0


def test_can_be_cut(monkeypatch):
    calls = []

    def cut():
        calls.append(None)
        if len(calls) == 5:
            raise threads.Abandoned

    monkeypatch.setattr(lbfgs, "checkpoint", cut)
    with pytest.raises(threads.Abandoned):
        minimize_lbfgs(rosenbrock(), [[-1.2, 1.0]])


def test_blocks_must_fit():
    with pytest.raises(ValueError, match="minimize_lbfgs: block must divide the 3 variables"):
        minimize_lbfgs(rosenbrock(), np.ones((2, 3)), block=2)


def test_no_starts_no_results():
    assert minimize_lbfgs(quadratic(np.eye(3), np.ones(3)), np.empty((0, 3))) == []


def test_results_stand_for_themselves():
    [result] = minimize_lbfgs(rosenbrock(), [[-1.2, 1.0]], max_iter=500)
    assert result.lower_bound == -np.inf
    assert result.solve_time > 0.0
    assert {field.name for field in dataclasses.fields(result)} >= {"x", "history", "residual"}
