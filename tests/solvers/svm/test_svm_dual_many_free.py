"""Newton steps on free rows that are too many for a factor of their own at every step."""

import numpy as np
import pytest

import bagwise.solvers.svm._block_gram as block_gram
import bagwise.solvers.svm._dual_search as dual_search
import bagwise.solvers.svm._svm_dual_many_free as many_free
import bagwise.solvers.svm._svm_dual_set as dual_set
from bagwise.solvers import solve_svm_dual
from bagwise.solvers.svm._svm_dual_state import State
from solvers.blocks import BlockRows
from solvers.dual_problems import assert_optimal, problem, rbf


@pytest.fixture
def few_are_many(monkeypatch):
    """Let dozens of rows share factors as thousands do."""
    monkeypatch.setattr(dual_search, "LARGEST_FREE", 5)
    monkeypatch.setattr(block_gram, "_DENSE", 8)
    monkeypatch.setattr(block_gram, "_TILE", 16)
    monkeypatch.setattr(block_gram, "_MOST_CHANGED", 2)


def near_optimum(n=80, *, noise=0.05, n_at_bounds=20, source=False, loss="hinge", seed=0):
    """Return a problem, its optimum and its state near it: free rows are displaced.

    The optimum is drawn and the targets follow from it: rows at bounds have a slope that keeps them
    there, all others the same.
    """
    rng = np.random.default_rng(seed)
    p = problem(n=n, seed=seed)._replace(sign=np.where(np.arange(n) % 2, 1.0, -1.0))
    alpha, keep = rng.uniform(0.1, 0.9, n), np.zeros(n)
    at_bounds = rng.permutation(n)[:n_at_bounds]
    is_up = (rng.random(n_at_bounds) < 0.3) & (loss == "hinge")
    alpha[at_bounds] = is_up
    keep[at_bounds] = rng.uniform(0.1, 1.0, n_at_bounds) * np.where(is_up, 1.0, -1.0)
    free = np.setdiff1d(np.arange(n), at_bounds)
    heavier = free[p.sign[free] == np.sign(p.sign @ alpha)]
    alpha[heavier] *= 1.0 - abs(p.sign @ alpha) / alpha[heavier].sum()
    assert (alpha[free] > 0.0).all()
    ridge = 0.5 if loss == "squared_hinge" else 0.0
    beta = p.sign * alpha
    p = p._replace(target=p.sign * (p.gram @ beta + ridge * beta + 0.3) + keep)
    displaced = alpha.copy()
    displaced[free] = np.clip(alpha[free] + noise * rng.normal(size=len(free)), 0.0, 1.0)
    rows = BlockRows(p.gram) if source else p.gram
    state = State(rows, p.sign, p.cost, p.target, displaced, loss=loss, check_finite=True)
    return p, beta, state


def working_set(state, rows=None):
    if rows is None and state.source is None:
        return dual_set.WorkingSet(state, None, state.gram, many_free.ManyFree(state))
    rows = np.arange(state.n) if rows is None else rows
    gram = np.empty((len(rows), len(rows)))
    state.square(rows, gram)
    return dual_set.WorkingSet(state, rows, gram, many_free.ManyFree(state))


def slopes(p, state, beta):
    return state.goal - p.gram @ beta - state.ridge * beta


def dual(p, state, beta):
    return 0.5 * beta @ (state.goal + slopes(p, state, beta))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", ["array", "set of an array", "source"])
def test_without_bounds_in_the_way_a_climb_ends_at_the_optimum(
    few_are_many, monkeypatch, kind, loss
):
    monkeypatch.setattr(many_free, "_RIDGE", 1e-14)
    _, optimum, state = near_optimum(noise=0.01, source=kind == "source", loss=loss)
    away = np.abs(state.beta - optimum).max()
    free = np.flatnonzero(state.free)
    rows = np.union1d(free, np.setdiff1d(np.arange(80), free)[:7])
    work = working_set(state, None if kind == "array" else rows)
    work.many.climb(work)
    work.push()
    assert np.abs(state.beta - optimum).max() <= 1e-6 * away
    assert np.ptp(state.v[free]) <= 1e-9


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", ["array", "set of an array", "source"])
@pytest.mark.parametrize("seed", range(6))
def test_a_climb_stays_feasible_and_passes_no_maximum(few_are_many, kind, loss, seed):
    """The displaced rows reach bounds on the way, some of them by mistake."""
    p, _, state = near_optimum(noise=0.2, source=kind == "source", loss=loss, seed=seed)
    free = np.flatnonzero(state.free)
    rows = np.union1d(free, np.setdiff1d(np.arange(80), free)[:7])
    work = working_set(state, None if kind == "array" else rows)
    at = slice(None) if work.rows is None else work.rows
    before = state.beta.copy()
    start = dual(p, state, before)
    work.many.climb(work)
    slopes_of_set = work.v.copy()
    work.push()
    beta = state.beta
    np.testing.assert_allclose(slopes_of_set, slopes(p, state, beta)[at], atol=1e-9)
    assert (beta >= state.lower).all()
    assert (beta <= state.upper).all()
    assert beta.sum() == pytest.approx(before.sum(), abs=1e-9)
    assert dual(p, state, beta) > start
    assert slopes(p, state, beta) @ (beta - before) >= -1e-9  # else it has fallen again


def test_climbs_and_pair_steps_end_at_the_optimum_soon(few_are_many):
    p, optimum, state = near_optimum(n=200, noise=0.2, n_at_bounds=60)
    work = working_set(state)
    for _ in range(12):
        work.many.climb(work)
        work.steps(0.0, 100)
    assert np.abs(p.gram @ (state.beta - optimum)).max() <= 1e-5


def test_one_factor_serves_again_until_many_rows_are_other_ones(few_are_many, monkeypatch):
    _, _, state = near_optimum(n=200, noise=0.05)
    work = working_set(state)
    assert work.many.climb(work)
    factor = work.many.systems.factor
    assert factor is not None
    work.steps(0.0, 20)
    assert work.many.climb(work)
    assert work.many.systems.factor is factor
    monkeypatch.setattr(block_gram, "_MOST_CHANGED", 1000)
    before, [first, second] = work.beta.copy(), work.free[work.beta[work.free] < 0.0][:2]
    work.beta[second] += work.beta[first]
    work.beta[first] = 0.0
    work.follow(before)
    assert not work.many.climb(work)  # another factor is dear
    assert work.many.systems.factor is not factor


@pytest.mark.parametrize("kind", ["a tiny cost", "a long row"])
def test_a_row_that_matters_little_slows_no_climb(few_are_many, kind):
    """It stays at its bound; its own entry of the diagonal is huge."""
    p, optimum, state = near_optimum(noise=0.01, loss="squared_hinge")
    row = np.flatnonzero(optimum == 0.0)[0]
    if kind == "a tiny cost":
        p.cost[row] = 1e-9
    else:
        p.gram[row] = p.gram[:, row] = 0.0
        p.gram[row, row] = 1e9
    state = State(
        p.gram, p.sign, p.cost, p.target, np.abs(state.beta), loss="squared_hinge",
        check_finite=True,
    )  # fmt: skip
    away = np.abs(state.beta - optimum).max()
    work = working_set(state)
    assert work.many.climb(work)
    assert np.abs(state.beta - optimum).max() <= 1e-3 * away


@pytest.mark.parametrize("source", [False, True])
def test_single_precision_has_a_factor_too(monkeypatch, source):
    """Of a smooth kernel, the matrix of which rounding makes indefinite."""
    monkeypatch.setattr(block_gram, "_DENSE", 8)
    p = problem(n=600, kernel=lambda X: rbf(X, 0.01))
    K = p.gram.astype(np.float32)
    assert np.linalg.eigvalsh(K.astype(float))[0] < 0.0
    alpha = np.random.default_rng(0).uniform(0.4, 0.6, 600)
    rows = BlockRows(K) if source else K
    state = State(rows, p.sign, p.cost, p.target, alpha, loss="hinge", check_finite=True)
    gram = np.empty((600, 600), np.float32)
    state.square(np.arange(600), gram)
    work = dual_set.WorkingSet(state, np.arange(600), gram, many_free.ManyFree(state))
    monkeypatch.setattr(many_free, "_MOST_ROUNDS", 1)
    work.many.climb(work)
    assert work.many.systems.factor is not None


@pytest.mark.parametrize("limit", ["others are free", "too many"])
def test_where_they_are_not_tried_nothing_moves(few_are_many, monkeypatch, limit):
    _, _, state = near_optimum()
    free = np.flatnonzero(state.free)
    work = working_set(state, np.delete(np.arange(80), free[0]) if "others" in limit else None)
    if limit == "too many":
        monkeypatch.setattr(dual_set, "MOST_FREE", len(free) - 1)
    before = work.beta.copy()
    assert not work.leap(4, 1e-6)
    np.testing.assert_array_equal(work.beta, before)


@pytest.mark.parametrize("kind", ["indefinite", "one free row", "none free"])
def test_where_there_is_no_answer_nothing_moves(few_are_many, kind):
    p, _, state = near_optimum()
    if kind == "indefinite":
        gram = p.gram - 0.5 * np.eye(80)
        state = State(
            gram, p.sign, p.cost, p.target, np.abs(state.beta), loss="hinge", check_finite=True
        )
    else:
        state.beta[:] = 0.0
        state.beta[5] = 0.5 * p.sign[5] * (kind == "one free row")
    work = working_set(state)
    before, v = work.beta.copy(), work.v.copy()
    assert not work.many.climb(work)
    np.testing.assert_array_equal(work.beta, before)
    np.testing.assert_array_equal(work.v, v)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", ["array", "source"])
@pytest.mark.parametrize("rows", ["random", "sums of others"])
def test_the_search_ends_at_the_optimum_in_fewer_steps(few_are_many, monkeypatch, rows, kind, loss):
    """Sums of other rows make the Gram matrix singular, as means of bags do."""
    monkeypatch.setattr(dual_search, "_WHOLE", 32)
    monkeypatch.setattr(dual_search, "_SMALLEST_SET", 16)
    monkeypatch.setattr(dual_search, "LARGEST_SET", 96)
    p = problem(n=300, d=6, cost=1e4, kernel=lambda X: rbf(X, 0.05))
    if rows == "sums of others":
        mix = np.vstack([np.eye(240), np.kron(np.eye(60), np.full((1, 4), 0.25))])
        p = p._replace(gram=mix @ p.gram[:240, :240] @ mix.T)
    gram = p.gram if kind == "array" else BlockRows(p.gram)
    result = solve_svm_dual(gram, p.sign, p.cost, target=p.target, loss=loss, tol=1e-8)
    assert_optimal(p, result, loss=loss)
    monkeypatch.setattr(many_free.ManyFree, "climb", lambda self, work: False)
    without = solve_svm_dual(gram, p.sign, p.cost, target=p.target, loss=loss, tol=1e-7)
    assert result.n_iter < 0.4 * without.n_iter
    np.testing.assert_allclose(result.lower_bound, without.lower_bound, rtol=1e-9)
