"""The SVM dual against libsvm, an interior-point method, closed forms and its own certificate."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

import bagwise.solvers.svm._dual_search as dual_search
from bagwise import _threads
from bagwise._threads import ordered_map
from bagwise.solvers import (
    Status,
    minimize_squared_hinge,
    rescale_alpha,
    solve_linear_svm,
    solve_svm_dual,
)
from bagwise.solvers.svm._svm_dual_kernels import pair_steps
from solvers.dual_problems import (
    ZOO,
    Problem,
    assert_optimal,
    interior_point,
    problem,
    solve,
    squared_interior_point,
)


@pytest.mark.parametrize("name", ZOO)
def test_conditions_and_certificate_hold(name):
    p = ZOO[name]()
    assert_optimal(p, solve_svm_dual(p.gram, p.sign, p.cost, target=p.target))


@pytest.mark.parametrize("name", ZOO)
def test_agrees_with_interior_point(name):
    p = ZOO[name]()
    result = solve_svm_dual(p.gram, p.sign, p.cost, target=p.target)
    value, f = interior_point(p)
    np.testing.assert_allclose(result.lower_bound, value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(result.decision - result.intercept, f, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in ZOO if not name.startswith("target")])
def test_agrees_with_libsvm(name):
    p = ZOO[name]()
    used = p.cost > 0
    gram, sign = p.gram[np.ix_(used, used)], p.sign[used]
    model = SVC(C=1.0, kernel="precomputed", tol=1e-10)
    model.fit(gram, sign, sample_weight=p.cost[used])
    expected = model.decision_function(p.gram[:, used])
    result = solve_svm_dual(p.gram, p.sign, p.cost)
    # libsvm keeps its kernel values in single precision
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(result.decision, expected, atol=3e-5 * scale)


def test_is_exact_whatever_the_tolerance():
    p = problem(n=100, cost=3.0)
    loose, tight = solve(p, tol=1e-3), solve(p, tol=1e-9)
    assert tight.residual <= 1e-12
    np.testing.assert_allclose(loose.decision, tight.decision, atol=1e-6)


def test_without_polish_it_stops_within_the_tolerance():
    p = problem(200, cost=10.0)
    polished, rough = solve(p, tol=1e-2), solve(p, tol=1e-2, polish=False)
    assert polished.residual < 1e-6 < rough.residual <= 1e-2
    assert rough.n_iter <= polished.n_iter  # Newton steps alone may make it exact
    assert rough.status is Status.CONVERGED
    assert rough.lower_bound <= polished.objective <= rough.objective


@pytest.mark.parametrize("name", ["random", "linear", "duplicates", "hard rbf", "targets"])
def test_a_weight_of_two_is_a_repetition(name):
    p = ZOO[name]()
    n = len(p.sign)
    twice = np.arange(n) % 3 == 0
    rows = np.r_[np.arange(n), np.flatnonzero(twice)]
    weighted = solve_svm_dual(p.gram, p.sign, p.cost * (1.0 + twice), target=p.target)
    repeated = solve_svm_dual(
        p.gram[np.ix_(rows, rows)], p.sign[rows], p.cost[rows], target=p.target[rows]
    )
    np.testing.assert_allclose(repeated.decision[:n], weighted.decision, atol=1e-8)
    np.testing.assert_allclose(repeated.intercept, weighted.intercept, atol=1e-8)


@pytest.mark.parametrize("name", ZOO)
def test_order_of_rows_does_not_matter(name):
    p = ZOO[name]()
    order = np.random.default_rng(1).permutation(len(p.sign))
    shuffled = Problem(p.gram[np.ix_(order, order)], p.sign[order], p.cost[order], p.target[order])
    one, other = solve(p), solve(shuffled)
    np.testing.assert_allclose(other.decision, one.decision[order], atol=1e-8)
    np.testing.assert_allclose(other.objective, one.objective, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ZOO)
def test_warm_start_ends_where_cold_start_does(name):
    p = ZOO[name]()
    cold = solve(p)
    start = np.random.default_rng(2).random(len(p.sign)) * 2.0 * p.cost - 0.5 * p.cost
    warm = solve(p, alpha0=start)
    np.testing.assert_allclose(warm.decision, cold.decision, atol=1e-8)
    again = solve(p, alpha0=cold.x)
    assert again.n_iter <= cold.n_iter
    np.testing.assert_allclose(again.decision, cold.decision, atol=1e-9)


def test_single_precision_gram():
    p = problem(n=200, cost=10.0)
    single = p._replace(gram=p.gram.astype(np.float32))
    result = solve(single)
    assert_optimal(single, result)
    same_numbers = solve(p._replace(gram=single.gram.astype(np.float64)))
    np.testing.assert_allclose(result.decision, same_numbers.decision, atol=1e-8)


def test_gram_in_any_layout_is_left_alone():
    p = problem(n=50)
    expected = solve(p)
    for gram in (np.asfortranarray(p.gram), np.repeat(p.gram, 2, axis=1)[:, ::2], p.gram.copy()):
        gram.flags.writeable = False
        result = solve_svm_dual(gram, p.sign, p.cost)
        np.testing.assert_allclose(result.decision, expected.decision, atol=1e-10)


def test_integer_gram_and_scalar_cost():
    gram = np.array([[4, 0], [0, 4]])
    result = solve_svm_dual(gram, [1, -1], 10)
    np.testing.assert_allclose(result.x, 0.25)  # |a e_1 - a e_2|^2 / 2 - 2 a, least at 2 / 8
    np.testing.assert_allclose(result.decision, [1.0, -1.0])


def test_intercept_without_free_rows_is_the_middle():
    gram = np.zeros((4, 4))
    result = solve_svm_dual(gram, [1, 1, -1, -1], 1.0)
    assert result.intercept == 0.0  # any b in [-1, 1] costs 4
    assert result.objective == 4.0
    moved = solve_svm_dual(gram, [1, 1, -1, -1], 1.0, target=[2, 2, 1, 1])
    assert moved.intercept == 0.5  # any b in [-1, 2]


def test_a_side_without_cost_leaves_one_end_of_the_interval():
    gram, target = np.eye(4), [0.3, 0.7, 1.0, 0.2]
    positive = solve_svm_dual(gram, [1, 1, -1, -1], [1, 1, 0, 0], target=target)
    assert not positive.x.any()
    assert positive.intercept == 0.7
    negative = solve_svm_dual(gram, [1, 1, -1, -1], [0, 0, 1, 1], target=target)
    assert negative.intercept == -1.0
    nothing = solve_svm_dual(gram, [1, 1, -1, -1], 0.0, target=target)
    assert nothing.intercept == 0.0
    many = np.where(np.arange(1500) % 2, 1.0, -1.0)
    large = solve_svm_dual(np.eye(1500), many, (many > 0).astype(float))
    assert large.intercept == 1.0
    for result in (positive, negative, nothing, large):
        assert result.status is Status.CONVERGED
        assert result.objective == result.lower_bound == result.residual == 0.0


@pytest.mark.parametrize("name", ZOO)
def test_squared_hinge_conditions_and_interior_point(name):
    p = ZOO[name]()
    result = solve(p, loss="squared_hinge")
    assert_optimal(p, result, loss="squared_hinge")
    value, f = squared_interior_point(p)
    np.testing.assert_allclose(result.lower_bound, value, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(result.decision - result.intercept, f, atol=1e-4)


@pytest.mark.parametrize("name", ZOO)
def test_squared_hinge_agrees_with_primal_newton_steps(name):
    p = ZOO[name]()
    values, vectors = np.linalg.eigh(p.gram)
    images = vectors * np.sqrt(np.maximum(values, 0.0))
    result = solve(p, loss="squared_hinge")
    primal = minimize_squared_hinge(images, p.sign, p.cost, target=p.target, tol=1e-12)
    np.testing.assert_allclose(result.objective, primal.objective, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(result.decision, primal.decision, atol=1e-6)


@pytest.mark.parametrize("cost", [1e-4, 1.0, 1e3])
def test_squared_hinge_with_a_linear_kernel_agrees_with_primal_and_linear_solvers(cost):
    rng = np.random.default_rng(0)
    sign = np.where(rng.random(80) < 0.3, 1.0, -1.0)
    X = rng.normal(size=(80, 4)) + 0.5 * sign[:, None]
    costs = cost * rng.exponential(size=80) * (rng.random(80) < 0.9)
    target = rng.uniform(-0.5, 1.5, size=80)
    options = {"target": target, "loss": "squared_hinge"}
    result = solve_svm_dual(X @ X.T, sign, costs, **options)
    primal = minimize_squared_hinge(X, sign, costs, target=target, tol=1e-12)
    linear = solve_linear_svm(X, sign, costs, **options, tol=1e-9)
    np.testing.assert_allclose(X.T @ (sign * result.x), primal.x, atol=1e-7)
    np.testing.assert_allclose(result.intercept, primal.intercept, atol=1e-7)
    for other in (primal, linear):
        np.testing.assert_allclose(result.objective, other.objective, rtol=1e-8)
        np.testing.assert_allclose(result.decision, other.decision, atol=1e-6)


def test_both_losses_tend_to_the_hard_margin():
    p = problem(shift=8.0, cost=1e9, kernel=lambda X: X @ X.T)
    hard, squared = solve(p), solve(p, loss="squared_hinge")
    assert hard.x.max() < 1e9
    np.testing.assert_allclose(squared.decision, hard.decision, atol=1e-6)
    np.testing.assert_allclose(squared.lower_bound, hard.lower_bound, rtol=1e-7)


def test_squared_hinge_leaves_the_gram_matrix_alone_in_single_precision_too():
    p = problem(n=200, cost=3.0)
    single = p._replace(gram=p.gram.astype(np.float32))
    single.gram.flags.writeable = False
    result = solve(single, loss="squared_hinge")
    assert_optimal(single, result, loss="squared_hinge")
    same_numbers = solve(p._replace(gram=single.gram.astype(float)), loss="squared_hinge")
    np.testing.assert_allclose(result.decision, same_numbers.decision, atol=1e-9)


def test_squared_hinge_of_two_rows_in_closed_form():
    result = solve_svm_dual(np.eye(2), [1, -1], 0.5, loss="squared_hinge")
    np.testing.assert_allclose(result.x, 0.5)  # 2 a - a^2 - a^2, from ridges of 1
    np.testing.assert_allclose(result.decision, [0.5, -0.5])
    np.testing.assert_allclose(result.objective, 0.5)  # 1/4 + 2 * 1/2 * 1/4


def test_unknown_loss_is_refused():
    with pytest.raises(ValueError, match="loss must be one of 'hinge'"):
        solve_svm_dual(np.eye(2), [1, -1], 1.0, loss="log")


def test_rescaled_alpha_keeps_bounds():
    alpha, before = np.array([0.0, 0.5, 1.0, 2.0, 0.0]), np.array([1.0, 1.0, 1.0, 2.0, 0.0])
    np.testing.assert_array_equal(rescale_alpha(alpha, before, 10.0), [0, 0.5, 10, 10, 0])
    np.testing.assert_array_equal(rescale_alpha(alpha, before, 0.3), [0, 0.3, 0.3, 0.3, 0])


def test_a_start_keeps_rows_at_their_bounds_where_free_rows_can_pay():
    sign = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    start = _start(sign, alpha0=[5.0, 2.0, 2.0, 5.0, 2.0])  # 9 against 7; cost 5
    np.testing.assert_allclose(start, [5, 1, 1, 5, 2])
    # 15 against 1: free rows pay 2, then row 2, whose margin is best, 5 and row 1 the rest
    start = _start(np.array([1.0, 1, 1, 1, -1]), alpha0=[5, 5, 5, 2, 1], target=[3, 2, 1, 1, 1])
    np.testing.assert_allclose(start, [1, 0, 0, 0, 1])


def _start(sign, alpha0, target=1.0):
    """Return the feasible point made of ``alpha0``: what no steps at all leave."""
    return solve_svm_dual(np.eye(5), sign, 5.0, target=target, alpha0=alpha0, max_iter=0).x


def test_warm_start_after_signs_have_changed_and_rows_have_gone():
    p = problem(n=200, cost=5.0)
    before = solve(p)
    rng = np.random.default_rng(1)
    flipped, gone = rng.random(200) < 0.05, rng.random(200) < 0.05
    p = p._replace(sign=np.where(flipped, -p.sign, p.sign), cost=np.where(gone, 0.0, p.cost))
    warm = solve(p, alpha0=np.where(flipped, 0.0, before.x))
    assert_optimal(p, warm)
    np.testing.assert_allclose(warm.decision, solve(p).decision, atol=1e-9)


def test_warm_starts_along_costs_take_fewer_steps():
    p = problem(n=300, d=5, seed=2)
    costs = 2.0 ** np.arange(-2, 5)
    cold = [solve_svm_dual(p.gram, p.sign, cost) for cost in costs]
    warm = cold[:1]
    for before, cost in pairwise(costs):
        alpha0 = rescale_alpha(warm[-1].x, before, cost)
        warm.append(solve_svm_dual(p.gram, p.sign, cost, alpha0=alpha0))
    for one, other in zip(cold, warm, strict=True):
        np.testing.assert_allclose(other.decision, one.decision, atol=1e-9)
    assert sum(r.n_iter for r in warm) < 0.8 * sum(r.n_iter for r in cold)


def test_budget_and_rounding_are_reported():
    p = problem(n=100, cost=100.0)
    short = solve(p, max_iter=10)
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 10
    assert short.residual > 1e-6
    assert short.gap > 0
    assert solve(p, tol=1e-20).status is Status.STALLED


def _badly_scaled(scale, n=52):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * scale
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return Problem(X @ X.T, sign, np.ones(n), np.ones(n))


def test_what_rounding_hides_is_not_searched_for():
    """One feature is 1e18 times another: ``v`` is a difference of numbers far above 1 / eps."""
    p = _badly_scaled(np.array([1e-9, 1.0, 1e9]))
    result = solve(p)
    assert result.status is Status.STALLED
    assert result.n_iter < 100_000  # of ten million
    assert ((result.x >= 0) & (result.x <= 1)).all()
    assert result.lower_bound <= p.cost.sum() <= 2 * result.objective  # w = 0 costs no more than n
    assert np.isfinite(result.decision).all()


def test_bad_scales_within_reach_of_rounding_are_solved():
    p = _badly_scaled(np.array([1e-3, 1.0, 1e2]))
    assert_optimal(p, solve(p))


def test_a_row_a_hair_from_its_bound_does_not_stop_the_pair_steps():
    """The hair is lost in the other row of the pair, but the first goes to its bound and is out."""
    beta = np.array([1.0 - 2.0**-53, -4.0, 3.0])
    lower, upper = np.array([0.0, -10.0, 0.0]), np.array([1.0, 0.0, 10.0])
    v = np.array([9.0, -1.0, 1.0]) - beta
    free = np.zeros(3)
    flat, tol, max_steps = 1e-12, 1e-6, 100
    _, violation, _, lost = pair_steps(
        np.eye(3), np.ones(3), beta, lower, upper, v, free, free.copy(), flat, tol, max_steps
    )
    assert not lost
    assert violation <= tol
    np.testing.assert_allclose(beta, [1.0, -1.5, 0.5], rtol=1e-12)  # both free: v = 1/2


def test_a_cost_without_practical_bound_is_a_hard_margin():
    p = problem(n=20, d=30)  # more features than rows: separable
    hard, large = (solve(p._replace(cost=np.full(20, cost))) for cost in (1e300, 1e6))
    assert hard.converged
    np.testing.assert_allclose(hard.decision, large.decision, atol=1e-6)
    assert hard.lower_bound == pytest.approx(large.lower_bound, rel=1e-8)


def test_every_status_comes_with_a_feasible_point():
    p = problem(n=100, cost=100.0)
    for result in (solve(p, max_iter=10), solve(p, tol=1e-20)):
        assert ((result.x >= 0) & (result.x <= 100)).all()
        assert abs(p.sign @ result.x) <= 1e-12 * result.x.sum()
        assert result.lower_bound <= solve(p).objective <= result.objective + 1e-9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sign": np.ones(4)}, "sign must hold -1 and \\+1"),
        ({"sign": np.array([0.0, 1, 0, 1])}, "sign must hold -1 and \\+1"),
        ({"sign": np.ones(3)}, "sign must have shape"),
        ({"cost": np.array([1.0, -2, 1, 1])}, "cost must not be negative. Got -2.0 in row 1"),
        ({"cost": np.array([1.0, np.inf, 1, 1])}, "cost must hold finite"),
        ({"cost": np.ones(5)}, "cost must have shape"),
        ({"target": np.ones((4, 1))}, "target must have shape"),
        ({"target": np.nan}, "target must hold finite"),
        ({"alpha0": np.ones(2)}, "alpha0 must have shape"),
        ({"tol": np.nan}, "tol of solve_svm_dual must be a number, not negative. Got nan"),
        ({"tol": -1e-6}, "tol of solve_svm_dual must be"),
        ({"gram": np.ones((4, 3))}, "gram must be a square matrix. Got shape \\(4, 3\\)"),
        ({"gram": np.full((4, 4), np.nan)}, "gram must hold finite"),
        ({"gram": np.full((4, 4), np.nan), "check_finite": False}, "gram must hold finite"),
        ({"gram": np.diag([1.0, 1.0, np.inf, 1.0])}, "gram must hold finite"),
    ],
)
def test_errors_say_what_is_wrong(changes, message):
    arguments = {"gram": np.eye(4), "sign": np.array([1.0, -1, 1, -1]), "cost": 1.0} | changes
    with pytest.raises(ValueError, match=message):
        solve_svm_dual(**arguments)


def test_can_be_cut_between_slices(monkeypatch):
    monkeypatch.setattr(_threads, "_SLICE_SECONDS", 1e-5)
    calls = []

    def interrupt():
        calls.append(None)
        if len(calls) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(dual_search, "checkpoint", interrupt)
    p = problem(n=200, cost=100.0)
    with pytest.raises(KeyboardInterrupt):
        solve(p)


def test_slices_do_not_change_the_answer(monkeypatch):
    p = problem(n=200, cost=100.0)
    expected = solve(p)
    monkeypatch.setattr(_threads, "_SLICE_SECONDS", 1e-5)
    result = solve(p)
    assert len(result.history) > len(expected.history)
    np.testing.assert_allclose(result.decision, expected.decision, atol=1e-9)


def test_same_bits_in_any_number_of_threads():
    p = problem(n=1200, cost=10.0)
    costs = [0.1, 1.0, 10.0, 100.0]
    one, two = (
        list(ordered_map(lambda c: solve_svm_dual(p.gram, p.sign, c).x, costs, n_threads=n))
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_signs_on_musk1_are_those_of_libsvm():
    """Averaging the intercept over bounded rows too makes one class of everything here."""
    path = Path(os.environ.get("BAGWISE_DATA", "")) / "musk1.npz"
    if "BAGWISE_DATA" not in os.environ or not path.exists():
        pytest.skip("needs musk1.npz in the folder that BAGWISE_DATA names")
    with np.load(path) as data:
        X = data["X"].astype(np.float64)
        sign = np.repeat(np.where(data["y"] > 0, 1.0, -1.0), np.diff(data["offsets"]))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    gram = np.exp(-(((X[:, None] - X[None]) ** 2).sum(-1)) / X.shape[1])
    expected = SVC(C=0.1, kernel="precomputed", tol=1e-10).fit(gram, sign).decision_function(gram)
    result = solve_svm_dual(gram, sign, 0.1)
    assert {-1.0, 1.0} == set(np.sign(expected))
    np.testing.assert_array_equal(np.sign(result.decision), np.sign(expected))


def test_history_falls_and_ends_with_the_certificate():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    sign = np.where(X[:, 0] + 0.5 * rng.normal(size=120) > 0, 1.0, -1.0)
    result = solve_svm_dual(X @ X.T, sign, 1.0)
    assert len(result.history) == len(result.gap_history) >= 5
    assert (np.diff(result.history) <= 1e-9 * np.abs(result.history[-1])).all()
    assert result.history[0] == 0.0  # alpha = 0, where the gap is what the zero function costs
    assert result.gap_history[0] >= 120 - abs(sign.sum())
    assert (result.gap_history >= -1e-9).all()
    np.testing.assert_allclose(result.history[-1], -result.lower_bound)
    np.testing.assert_allclose(result.gap_history[-1], result.gap, atol=1e-9)


def test_rows_that_are_nearly_dependent_take_few_steps():
    """A wide kernel and a large cost: many bounds are met before the free rows are known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    sign = np.where(X[:, 0] + 0.7 * rng.normal(size=600) > 0.0, 1.0, -1.0)
    gram = np.exp(-0.02 * ((X[:, None] - X) ** 2).sum(axis=-1))
    result = solve_svm_dual(gram, sign, 1e4, max_iter=60_000)
    assert result.status is Status.CONVERGED
    assert result.residual <= 1e-8
    assert result.objective - result.lower_bound <= 1e-9 * result.objective
