"""Stages of solvers, each alone against its own contract: no later stage repairs an earlier one."""

import numpy as np
import pytest
import scipy.sparse as sp

import bagwise.solvers.svm._dual_search as dual_search
import bagwise.solvers.svm._grouped_dual_set as grouped_set
import bagwise.solvers.svm._grouped_dual_state as grouped_state
import bagwise.solvers.svm._primal_newton as primal_newton
import bagwise.solvers.svm._svm_dual_set as svm_set
import bagwise.solvers.svm._svm_dual_state as svm_state
from bagwise.solvers import BlockGram, FeatureRows, solve_one_norm_svm
from bagwise.solvers.svm import (
    _linear_svm,
    _linear_svm_kernels,
    _nu_svm,
    _nu_svm_kernels,
    _one_norm_svm_kernels,
)
from bagwise.solvers.svm._linear_problem import LinearProblem
from bagwise.solvers.svm._svm_dual_many_free import ManyFree
from solvers.blocks import BlockRows


def draw(n=30, d=6, seed=0):
    """Return rows, signs, costs with a 0 among them, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.4] = 0.0
    cost = rng.uniform(0.5, 2.0, n)
    cost[3] = 0.0
    return X, np.where(np.arange(n) % 3 > 0, 1.0, -1.0), cost, rng.uniform(0.5, 1.5, n)


# -------------------------------------------------------------------------------- linear machine


def plain_sweep(X, order, sign, target, cap, ridge, alpha, w, bias, b):
    """Minimise the dual over one coordinate after another."""
    for r in order:
        slope = sign[r] * (X[r] @ w + b) - target[r] + ridge[r] * alpha[r]
        moved = np.clip(alpha[r] - slope / (X[r] @ X[r] + bias + ridge[r]), 0.0, cap[r])
        change = sign[r] * (moved - alpha[r])
        alpha[r], w, b = moved, w + change * X[r], b + bias * change
    return alpha, w, b


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_a_sweep_minimises_over_each_coordinate(squared, sparse, bias):
    X, sign, cost, target = draw()
    problem = LinearProblem(FeatureRows(X), sign, cost, target, squared, 1.0)
    rng = np.random.default_rng(1)
    alpha = np.minimum(rng.uniform(0.0, 1.0, len(X)), problem.cap)
    alpha[::4] = 0.0
    w, order = X.T @ (sign * alpha), rng.permutation(np.flatnonzero(cost > 0))
    b = bias * float(sign @ alpha)
    expected = plain_sweep(
        X, order, sign, target, problem.cap, problem.ridge, alpha.copy(), w, bias, b
    )
    matrix = FeatureRows(sp.csr_array(X) if sparse else X)
    bound = np.array([b, sign @ alpha, -np.inf, np.inf])
    kept = np.empty_like(order)
    count = _linear_svm_kernels.sweep(
        *matrix.parts, matrix.rows, order, sign, target, problem.cap, problem.ridge,
        (X**2).sum(axis=1) + bias + problem.ridge, alpha, w, bias, bound, np.inf, -np.inf, kept,
    )  # fmt: skip
    np.testing.assert_allclose(alpha, expected[0], atol=1e-12)
    np.testing.assert_allclose(w, expected[1], atol=1e-12)
    assert bound[0] == pytest.approx(expected[2])
    assert bound[1] == pytest.approx(sign @ alpha)
    assert count == len(order)


@pytest.mark.parametrize("squared", [False, True])
def test_a_sweep_drops_rows_that_are_clearly_settled(squared):
    X, sign, cost, target = draw()
    problem = LinearProblem(FeatureRows(X), sign, cost, target - 5.0, squared, 1.0)
    alpha, w = np.zeros(len(X)), np.zeros(X.shape[1])
    order = np.flatnonzero(cost > 0)
    slope = -(target - 5.0)[order]  # at 0 the derivative of each row
    kept, bound = np.empty_like(order), np.array([0.0, 0.0, -np.inf, np.inf])
    limit = float(np.median(slope))
    count = _linear_svm_kernels.sweep(
        *problem.matrix.parts, problem.matrix.rows, order, sign, target - 5.0, problem.cap,
        problem.ridge, (X**2).sum(axis=1) + problem.ridge, alpha, w, 0.0, bound, limit, -np.inf,
        kept,
    )  # fmt: skip
    np.testing.assert_array_equal(kept[:count], order[slope <= limit])


@pytest.mark.parametrize(("residual", "gap", "is_optimal"), [
    (1e-7, 1.0, True), (1e-5, 1e-9, True), (1e-5, 1e-10, True), (1e-5, 1.1e-9, False),
    (1e-5, 1e-7, False),
])  # fmt: skip
def test_a_point_is_optimal_by_its_violation_or_by_a_tiny_gap(residual, gap, is_optimal):
    X, sign, cost, target = draw()
    problem = LinearProblem(FeatureRows(X), sign, cost, target, False, 0.0)
    search = _linear_svm._Search(problem, 1e-6, 10)
    point = _linear_svm.replace(problem.origin(), residual=residual, primal=2.0, dual=2.0 - 2 * gap)
    assert search.is_optimal(point) == is_optimal


@pytest.mark.parametrize("rho", [0.0, 1.0, None])
def test_the_polish_makes_conditions_of_free_rows_hold(rho):
    X, sign, cost, target = draw(n=20, d=30)
    X = np.random.default_rng(8).normal(size=X.shape)
    problem = LinearProblem(FeatureRows(X), sign, 1e3 * cost, target, False, rho)
    rng = np.random.default_rng(2)
    rough = problem.point(problem.feasible(rng.uniform(0.4, 0.6, len(X)) * (cost > 0)))
    polished = _linear_svm._Search(problem, 1e-9, 10)._polish(rough)
    free = (polished.alpha > 0) & (polished.alpha < problem.cap)
    assert polished.dual > rough.dual
    margin = sign * (X @ polished.w + polished.b)
    if free.sum() == (cost > 0).sum():
        np.testing.assert_allclose(margin[free], target[free], atol=1e-9)
    np.testing.assert_allclose(polished.w, X.T @ (sign * polished.alpha), atol=1e-12)
    if rho == 0.0:
        assert abs(sign @ polished.alpha) <= 1e-12 * polished.alpha.sum()


@pytest.mark.parametrize("rho", [0.0, 1.0, None])
@pytest.mark.parametrize("way", ["primal", "dual", "conjugate"])
def test_a_newton_step_solves_the_linear_system(way, rho, monkeypatch):
    n, d = (20, 90) if way != "primal" else (60, 5)
    X, sign, cost, target = draw(n, d)
    if way == "conjugate":
        monkeypatch.setattr(primal_newton, "_LARGEST_SYSTEM", 3)
    rng = np.random.default_rng(3)
    w, b = 0.1 * rng.normal(size=d), 0.2
    model = primal_newton.NewtonModel(
        FeatureRows(X), sign, target, base=np.zeros(n), slope=2.0 * cost,
        cap=np.where(cost > 0, 2.0, 0.0), w=w, b=b, intercept_penalty=rho,
    )  # fmt: skip
    model.evaluate()
    step = np.append(*model._direction()[:2])
    answer = 2.0 * cost * (target - sign * (X @ w + b))
    inside = (answer > 0.0) & (answer < 2.0)
    assert 5 < inside.sum() < n - 1
    wide = np.hstack([X, np.ones((n, 1))])
    hessian = (2.0 * cost * inside * wide.T) @ wide + np.diag(np.r_[np.ones(d), rho or 0.0])
    gradient = np.r_[w, (rho or 0.0) * b] - wide.T @ (sign * np.clip(answer, 0.0, 2.0) * (cost > 0))
    if rho is None:
        hessian[d], hessian[:, d] = 0.0, 0.0
        hessian[d, d], gradient[d] = 1.0, 0.0
    expected = np.linalg.solve(hessian, -gradient)
    tolerance = 1e-2 if way == "conjugate" else 1e-9
    np.testing.assert_allclose(step, expected, atol=tolerance * np.abs(expected).max())


def test_a_line_search_ends_near_the_least_value():
    X, sign, cost, target = draw(60, 5)
    model = primal_newton.NewtonModel(
        FeatureRows(X), sign, target, base=np.zeros(60), slope=2.0 * cost,
        cap=np.where(cost > 0, np.inf, 0.0), w=np.zeros(5), b=0.0,
    )  # fmt: skip
    model.evaluate()
    dw = -model.gradient
    step = model.search(dw, 0.0, X @ dw)

    def value(t):
        slack = np.maximum(target - sign * (X @ (t * dw)), 0.0)
        return 0.5 * t * t * dw @ dw + cost @ slack**2

    grid = np.linspace(0.0, 3.0 * step, 30_001)
    least = min(map(value, grid))
    assert value(step) <= least + 0.01 * (value(0.0) - least)


# ---------------------------------------------------------------------------- duals of kernels


def svm_problem(*, squared=False, source=False, cost_scale=1.0, alpha0=None):
    X, sign, cost, target = draw(40, 4, seed=5)
    K = X @ X.T + 0.1 * np.eye(len(X))
    rows = BlockRows(K) if source else K
    state = svm_state.State(
        rows, sign, cost_scale * cost, target, alpha0,
        loss="squared_hinge" if squared else "hinge", check_finite=True,
    )  # fmt: skip
    return K, state


def slopes(K, state):
    return state.goal - K @ state.beta - state.ridge * state.beta


@pytest.mark.parametrize("squared", [False, True])
def test_a_pair_step_is_the_best_one_of_second_order(squared):
    K, state = svm_problem(squared=squared)
    work = svm_set.WorkingSet(state, None, state.gram, ManyFree(state))
    for _ in range(25):
        before, v = state.beta.copy(), slopes(K, state)
        grows, shrinks = before < state.upper, before > state.lower
        i = int(np.where(grows, v, -np.inf).argmax())
        fall = np.where(shrinks, np.maximum(v[i] - v, 0.0), 0.0)
        bend = np.maximum(state.diagonal[i] + state.diagonal - 2.0 * K[i], state.flat)
        j = int((fall**2 / bend).argmax())
        step = min(fall[j] / bend[j], state.upper[i] - before[i], before[j] - state.lower[j])
        dual = state.dual
        done, violation, decrease, lost = work.steps(0.0, 1)
        assert (done, lost) == (1, False)
        expected = before.copy()
        expected[i] += step
        expected[j] -= step
        np.testing.assert_allclose(state.beta, expected, atol=1e-12)
        np.testing.assert_allclose(state.v, slopes(K, state), atol=1e-12)
        assert decrease == pytest.approx(state.dual - dual, rel=1e-6, abs=1e-12)
        assert violation == pytest.approx(state.violation)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("some", [False, True])
def test_newton_steps_solve_for_the_free_rows(squared, some):
    """Without a bound in the way they end where the free rows agree on the intercept."""
    K, state = svm_problem(squared=squared, cost_scale=1e3, alpha0=np.full(40, 3.0))
    rows = np.flatnonzero(state.cost > 0)[::2] if some else None
    gram = state.gram
    if some:
        gram = np.empty((len(rows), len(rows)))
        state.square(rows, gram)
    work = svm_set.WorkingSet(state, rows, gram, ManyFree(state))
    free, total, dual = work.free, work.beta[work.free].sum(), state.dual
    index = free if rows is None else rows[free]
    others = np.delete(np.arange(40), index)
    A = K[np.ix_(index, index)] + np.diag(state.ridge[index])
    right = state.goal[index] - K[np.ix_(index, others)] @ state.beta[others]
    n = len(index)
    system = np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.append(right, total))[:n]
    inside = (expected > state.lower[index]).all() and (expected < state.upper[index]).all()
    assert work.newton(30, np.inf) or not inside
    work.push()
    np.testing.assert_allclose(state.v, slopes(K, state), atol=1e-9)
    assert state.dual >= dual
    assert state.beta.sum() == pytest.approx(0.0, abs=1e-9)
    left = work.free
    assert np.ptp(work.v[left]) <= 1e-8
    if inside:
        np.testing.assert_allclose(state.beta[index], expected, atol=1e-8)


def test_working_sets_hold_the_worst_rows_of_both_sides_and_the_free_ones():
    rng = np.random.default_rng(0)
    grow, shrink = rng.normal(size=(2, 500))
    shrink -= 10.0  # so that the best of them are far below the others
    dead = rng.random(500) < 0.1
    grow[dead] = shrink[dead] = -np.inf
    free = (rng.random(500) < 0.05) & ~dead
    chosen = dual_search.breaking_rows(grow.copy(), shrink.copy(), free, dead, 64)
    assert chosen.sum() == 64
    assert not (chosen & dead).any()
    assert chosen[free].all()
    for side in (grow, shrink):
        assert chosen[np.argsort(-side)[:8]].all()


@pytest.mark.parametrize("squared", [False, True])
def test_rows_that_rested_know_their_slopes_again(squared, monkeypatch):
    monkeypatch.setattr(svm_state, "_FAR", 0.0)
    monkeypatch.setattr(svm_state, "_FEWEST", 0.05)
    K, state = svm_problem(squared=squared, source=True)
    many = ManyFree(state)
    search = svm_set.WorkingSet(state, np.arange(40), K + np.diag(state.ridge), many)
    search.steps(0.0, 30)
    search.push()
    state.rest(0.0)
    assert state.awake is not None
    assert len(state.awake) < 40
    few = svm_set.WorkingSet(
        state, state.awake, (K + np.diag(state.ridge))[np.ix_(state.awake, state.awake)], many
    )
    few.steps(0.0, 20)
    few.push()
    dual = state.dual
    state.wake()
    np.testing.assert_allclose(state.v, slopes(K, state), atol=1e-10)
    assert dual == pytest.approx(state.dual)


# ------------------------------------------------------------------------------- shared slacks


def grouped_problem(alpha0=None):
    X, sign, _, target = draw(40, 4, seed=6)
    K = X @ X.T + 0.1 * np.eye(40)
    group = np.where(sign > 0, np.arange(40) % 5, 5 + np.arange(40) % 4)
    problem = grouped_state.Problem(
        K, sign, group, np.full(9, 1.5), target, None, check_finite=True
    )  # fmt: skip
    return K, problem, grouped_state.State(problem, alpha0)


def grouped_slopes(K, problem, alpha):
    return problem.side * (problem.target - problem.sign * (K @ (problem.sign * alpha)))


def test_steps_of_groups_raise_the_dual_by_what_they_say():
    K, problem, state = grouped_problem()
    work = grouped_set.WorkingSet(state, None, problem.gram)
    for _ in range(60):
        dual = state.dual
        steps, _, decrease, lost = work.steps(0.0, 1)
        if lost:
            break
        assert steps == 1
        np.testing.assert_allclose(state.v, grouped_slopes(K, problem, state.alpha), atol=1e-12)
        assert state.dual - dual == pytest.approx(decrease, rel=1e-6, abs=1e-12)
        assert decrease > 0.0
        sums = np.bincount(problem.group, state.alpha)
        np.testing.assert_allclose(problem.cap - sums, state.room, atol=1e-12)
        assert abs(problem.sign @ state.alpha) <= 1e-12
        assert (state.alpha >= 0).all()
        assert (state.room >= 0).all()


def test_moves_of_free_rows_make_their_slopes_vanish():
    K, problem, state = grouped_problem()
    work = grouped_set.WorkingSet(state, None, problem.gram)
    work.steps(0.05, 1000)
    moves = work.moves(work.free)
    assert len(moves) > 2
    signed = moves.direction(state.v)
    alpha = state.alpha.copy()
    alpha[moves.free] += problem.side[moves.free] * signed
    after = grouped_slopes(K, problem, alpha)
    np.testing.assert_allclose(moves.slopes(after), 0.0, atol=1e-8)
    assert abs(problem.sign @ alpha) <= 1e-9
    full = np.flatnonzero(state.room <= 0.0)
    np.testing.assert_allclose(np.bincount(problem.group, alpha)[full], problem.cap[full])


# -------------------------------------------------------------------------------------- 1-norm


@pytest.mark.parametrize("n_steps", [2, 3, 5, 8, 1000])
@pytest.mark.parametrize("d", [3, 40])
def test_simplex_steps_lead_from_vertex_to_vertex(n_steps, d):
    """The rows of the basis stand at their kinks, which determines the weights of its columns."""
    X, sign, cost, _ = draw(30, d, seed=9)
    result = solve_one_norm_svm(X, sign, cost, max_iter=n_steps)
    assert set(np.flatnonzero(result.x)) <= set(result.columns)
    fixed = len(result.rows) == len(result.columns)  # the intercept may stay at 0 for a while
    assert fixed or len(result.rows) == len(result.columns) + 1
    np.testing.assert_allclose((sign * result.decision)[result.rows], 1.0, atol=1e-6)
    wide = np.hstack([X[:, result.columns], np.ones((len(X), 1 - fixed))])[result.rows]
    solved = np.linalg.solve(wide, sign[result.rows])
    expected = np.append(result.x[result.columns], [] if fixed else result.intercept)
    np.testing.assert_allclose(solved, expected, atol=1e-4)


# ------------------------------------------------------------------------------------- nu-form


def nu_problem(n_head=6):
    X, sign, _, _ = draw(30, 4, seed=7)
    K = X @ X.T
    blocks = BlockGram(K[:n_head, :n_head], K[:n_head, n_head:], K[n_head:, n_head:])
    return K, sign, np.linspace(0.2, 2.0, 30), blocks


def test_coordinate_steps_of_the_nu_form():
    K, sign, ridge, blocks = nu_problem()
    z = np.random.default_rng(4).uniform(0.0, 0.2, 30)
    decision, expected = K @ (sign * z), z.copy()
    for r in range(30):
        slope = sign[r] * (K[r] @ (sign * expected)) + ridge[r] * expected[r] - 1.0
        expected[r] = max(0.0, expected[r] - slope / (K[r, r] + ridge[r]))
    _nu_svm_kernels.head_steps(blocks.head, blocks.cross, sign, ridge, z, decision)
    for first, last in ((0, 11), (11, 24)):
        _nu_svm_kernels.fixed_steps(
            blocks.fixed, blocks.cross, sign, ridge, first, last, z, decision
        )
    np.testing.assert_allclose(z, expected, atol=1e-12)
    np.testing.assert_allclose(decision, K @ (sign * z), atol=1e-12)


def test_a_newton_step_of_the_nu_form_and_its_line_search():
    K, sign, ridge, blocks = nu_problem()
    newton = _nu_svm.FiniteNewton(blocks, sign, ridge)
    newton.begin(np.ones(30))
    active = np.arange(0, 30, 2)
    goal, margin = newton.minimum(active)
    Q = sign[:, None] * K * sign
    inner = np.linalg.solve((Q + np.diag(ridge))[np.ix_(active, active)], np.ones(len(active)))
    np.testing.assert_allclose(goal[active], inner, atol=1e-10)
    np.testing.assert_allclose(np.delete(goal, active), 0.0)
    np.testing.assert_allclose(margin, Q @ goal, atol=1e-10)

    def primal(t):
        z = newton.z + t * (goal - newton.z)
        return 0.5 * z @ Q @ z + 0.5 * (np.maximum(1.0 - Q @ z, 0.0) ** 2 / ridge).sum()

    length = newton.line_search(goal - newton.z, margin - newton.margin)
    grid = np.linspace(0.0, 2.0 * length, 2001)
    assert primal(length) <= min(map(primal, grid)) + 1e-9


def test_pair_steps_stop_at_the_tolerance():
    _, state = svm_problem()
    work = svm_set.WorkingSet(state, None, state.gram, ManyFree(state))
    for tol in (0.3, 0.03):
        _, violation, _, _ = work.steps(tol, 10_000)
        assert violation <= tol
        assert state.violation == pytest.approx(violation)


# ------------------------------------------------------------------------- simplex steps, 1-norm


@pytest.mark.parametrize(("slack", "n_steps", "cost"), [(0.4, 1, 0.5), (0.6, 0, 1.0)])
def test_a_variable_enters_against_its_own_slack(slack, n_steps, cost):
    """A row falls short by 1 at cost 1; the weight that mends it costs 1/2, and gains 1/2."""
    tableau, value = np.ones((1, 1)), np.array([-1.0])
    basic, nonbasic = np.array([0]), np.array([1])
    rise, fall = np.array([0.0, 0.5]), np.array([1.0, 0.5])
    slacks = np.array([1.0 - slack, slack])  # of the row, of the weight
    steps, _ = _one_norm_svm_kernels.simplex_steps(
        tableau, value, basic, nonbasic, rise, fall, slacks, 9
    )
    assert steps == n_steps
    assert (rise[basic] * np.maximum(value, 0) + fall[basic] * np.maximum(-value, 0)) == [cost]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_of_equally_near_kinks_the_steepest_is_divided_by(order):
    move = np.array([-1e-6, -1.0, -1e-3])[order]
    ones, places, steps_to = np.ones(3), np.empty(3, np.int64), np.empty(3)
    out = _one_norm_svm_kernels._last_kink(move, -move, ones, ones, 1.0, 0.0, places, steps_to)
    assert order[out] == 1
