"""The SVM dual on more rows than are worked on at a time."""

import numpy as np
import pytest

import bagwise.solvers.svm._dual_search as dual_search
import bagwise.solvers.svm._svm_dual_set as dual_set
import bagwise.solvers.svm._svm_dual_state as svm_dual_state
from bagwise.solvers import CachedRows, Status, solve_svm_dual
from solvers.blocks import BlockRows
from solvers.dual_problems import assert_optimal, interior_point, problem, rbf, solve


@pytest.fixture
def small_working_sets(monkeypatch):
    """Make a few hundred rows a large problem."""
    monkeypatch.setattr(dual_search, "_WHOLE", 32)
    monkeypatch.setattr(dual_search, "_SMALLEST_SET", 16)
    monkeypatch.setattr(dual_search, "LARGEST_SET", 96)


@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_working_sets_find_the_same_answer(small_working_sets, cost, kernel):
    p = problem(n=300, cost=cost, kernel=rbf if kernel == "rbf" else lambda X: X @ X.T)
    result = solve(p)
    assert_optimal(p, result)
    value, f = interior_point(p)
    np.testing.assert_allclose(result.lower_bound, value, rtol=1e-9)
    np.testing.assert_allclose(result.decision - result.intercept, f, atol=1e-6)


def test_working_sets_hold_rows_of_both_signs(small_working_sets):
    """With hardly any kernel, hundreds of rows are equally far from optimal."""
    p = problem(n=300, cost=0.01, kernel=lambda X: rbf(X, 1e3))
    sign = np.where(np.arange(300) < 260, 1.0, -1.0)
    assert_optimal(p._replace(sign=sign), solve(p._replace(sign=sign)))


def test_problem_larger_than_a_working_set():
    p = problem(n=1600, d=5, cost=10.0, seed=1)
    result = solve(p)
    assert_optimal(p, result)
    assert result.residual <= 1e-11
    order = np.random.default_rng(0).permutation(1600)
    shuffled = solve_svm_dual(p.gram[np.ix_(order, order)], p.sign[order], p.cost)
    np.testing.assert_allclose(shuffled.decision, result.decision[order], atol=1e-9)


@pytest.mark.parametrize(("loss", "cost"), [("hinge", 1.0), ("squared_hinge", 1e4)])
def test_a_working_set_that_holds_all_that_matters_serves_again(monkeypatch, loss, cost):
    """Its inner products, with the ridge, are not read a second time."""
    monkeypatch.setattr(dual_search, "_WHOLE", 32)
    monkeypatch.setattr(dual_search, "_SMALLEST_SET", 200)
    monkeypatch.setattr(dual_search, "LARGEST_FREE", 5)
    copies, sets = [], []
    square, push = svm_dual_state.State.square, dual_set.WorkingSet.push
    monkeypatch.setattr(
        svm_dual_state.State,
        "square",
        lambda state, rows, out: (copies.append(len(rows)), square(state, rows, out)),
    )
    monkeypatch.setattr(
        dual_set.WorkingSet,
        "push",
        lambda work: (sets.append(work.rows), push(work)),
    )
    p = problem(n=300, cost=cost)
    assert_optimal(p, solve(p, loss=loss), loss=loss)
    assert 0 < len(copies) < len([rows for rows in sets if rows is not None])


def test_working_sets_from_a_warm_start(small_working_sets):
    p = problem(n=300, cost=5.0)
    cold = solve(p)
    other = solve(p._replace(cost=np.full(300, 2.0)))
    warm = solve(p, alpha0=other.x)
    np.testing.assert_allclose(warm.decision, cold.decision, atol=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("cost", "scale"), [(0.1, 1.0), (10.0, 1.0), (10.0, 1e-3)])
def test_several_pairs_at_once_find_the_same_answer(
    small_working_sets, monkeypatch, cost, scale, loss
):
    """Also where single precision knows few digits of what steps change."""
    p = problem(n=300, cost=cost / scale**2)
    p = p._replace(gram=scale**2 * p.gram)
    one = solve(p, tol=1e-9, loss=loss)
    monkeypatch.setattr(dual_set, "_LARGE", 60)
    monkeypatch.setattr(dual_search, "LARGEST_FREE", 5)
    many = solve(p, tol=1e-7, loss=loss)
    assert many.converged
    assert many.residual <= 1e-7
    np.testing.assert_allclose(many.objective, one.objective, rtol=1e-7)
    np.testing.assert_allclose(many.decision, one.decision, atol=1e-4)


@pytest.mark.parametrize("kind", ["array", "source"])
def test_several_pairs_at_once_keep_the_limit_of_steps(monkeypatch, kind):
    monkeypatch.setattr(dual_set, "_LARGE", 60)
    p = problem(n=200, cost=3.0)
    gram = p.gram if kind == "array" else BlockRows(p.gram)
    for max_iter in (0, 1, 2, 3, 6):
        result = solve_svm_dual(gram, p.sign, p.cost, max_iter=max_iter)
        assert (result.n_iter, result.status) == (max_iter, Status.MAX_ITER)
        assert result.x.min() >= 0.0
        assert (result.x <= p.cost).all()
        assert abs(p.sign @ result.x) <= 1e-12


@pytest.mark.parametrize("kind", ["array", "source"])
def test_a_gap_that_will_do_ends_the_search(small_working_sets, kind):
    p = problem(n=300, cost=3.0)
    gram = p.gram if kind == "array" else BlockRows(p.gram)
    ends = [solve_svm_dual(gram, p.sign, p.cost, gap=gap) for gap in (0.0, 0.01, 0.3)]
    assert ends[0].residual <= 1e-6 < ends[1].residual
    assert ends[1].converged
    assert ends[1].lower_bound <= ends[0].objective <= ends[1].objective
    assert [end.relative_gap <= gap for end, gap in zip(ends[1:], (0.01, 0.3), strict=True)]
    assert ends[2].n_iter < ends[1].n_iter < ends[0].n_iter


def test_too_many_free_rows_are_left_to_pair_steps(monkeypatch):
    monkeypatch.setattr(dual_search, "LARGEST_FREE", 5)
    p = problem(n=100, cost=3.0)
    assert_optimal(p, solve(p, tol=1e-7), tol=1e-7)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
def test_working_sets_from_a_source_with_resting_rows(small_working_sets, monkeypatch, cost, loss):
    monkeypatch.setattr(svm_dual_state, "_FAR", 0.05)
    monkeypatch.setattr(svm_dual_state, "_FEWEST", 0.05)
    rests = []
    set_awake = svm_dual_state.State._set_awake
    monkeypatch.setattr(
        svm_dual_state.State,
        "_set_awake",
        lambda state, rows: (rests.append(rows is not None), set_awake(state, rows)),
    )
    p = problem(n=300, cost=cost)
    expected = solve(p, loss=loss)
    assert not rests
    for gram in (BlockRows(p.gram), CachedRows(BlockRows(p.gram), 60 * p.gram[0].nbytes)):
        rests.clear()
        result = solve(p._replace(gram=gram), loss=loss)
        assert_optimal(p, result, loss=loss)
        # Where more rows are free than fit in a working set, the answer is good to tol only.
        np.testing.assert_allclose(result.decision, expected.decision, atol=2e-6)
        assert any(rests) or cost == 0.01
