"""Truncated Newton steps against exact ones, and the approximate systems that they rest on."""

import numpy as np
import pytest

import bagwise.solvers.svm._landmark_system as landmark_system
import bagwise.solvers.svm._nu_svm_inner as nu_svm_inner
from bagwise.solvers.svm._block_gram import BlockGram, Systems
from bagwise.solvers.svm._landmark_system import LandmarkSystems
from bagwise.solvers.svm._nu_svm import solve_nu_svm
from bagwise.solvers.svm._nu_svm_inner import NuSVMInner


def _problem(n=120, p=6, *, cost=3.0, seed=0):
    """Return blocks with ``p`` rows that change, signs and one over the costs."""
    rng = np.random.default_rng(seed)
    sign = np.r_[np.ones(p), -np.ones(n - p)]
    X = rng.normal(size=(n, 3)) + 0.5 * sign[:, None]
    gram = 1.0 + np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    ridge = 1.0 / (cost * rng.uniform(0.5, 2.0, n))
    return BlockGram(gram[:p, :p].copy(), gram[:p, p:].copy(), gram[p:, p:].copy()), sign, ridge


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(nu_svm_inner, "_MANY", 20)
    monkeypatch.setattr(landmark_system, "_LANDMARKS", 12)


@pytest.mark.parametrize("rows", [np.arange(120), np.arange(1, 120, 2), np.arange(30, 90)], ids=len)
def test_all_rows_as_landmarks_make_the_system_exact(rows):
    blocks, _, ridge = _problem()
    exact = blocks.dense()[np.ix_(rows, rows)] + np.diag(ridge[rows])
    right = np.random.default_rng(1).normal(size=(len(rows), 4))
    system = LandmarkSystems(blocks.fixed, ridge).of(blocks, rows)
    expected = np.linalg.solve(exact, right)
    np.testing.assert_allclose(system.solve(right[:, 0]), expected[:, 0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(system.form(right), right.T @ expected, rtol=1e-6, atol=1e-8)


def test_few_landmarks_keep_norms_and_the_rows_that_change(many):
    blocks, _, ridge = _problem()
    shared, rows = LandmarkSystems(blocks.fixed, ridge), np.arange(len(blocks))
    right = np.random.default_rng(1).normal(size=(len(rows), 2))
    system = np.linalg.inv(np.column_stack([shared.of(blocks, rows).solve(e) for e in np.eye(120)]))
    np.testing.assert_allclose(system, system.T, atol=1e-8)
    whole = blocks.dense() + np.diag(ridge)
    np.testing.assert_allclose(system.diagonal(), whole.diagonal(), rtol=1e-8)
    np.testing.assert_allclose(system[:6, :6], whole[:6, :6], rtol=1e-8)
    seen = 6 + shared.landmarks
    np.testing.assert_allclose(system[:, seen], whole[:, seen], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        shared.of(blocks, rows).form(right), right.T @ np.linalg.solve(system, right), atol=1e-8
    )


def test_systems_follow_their_rows(many):
    blocks, _, ridge = _problem()
    shared, rng = LandmarkSystems(blocks.fixed, ridge), np.random.default_rng(2)
    rows = np.arange(120)
    for share in (0.9, 0.95, 0.3, 0.9, 0.0):
        kept = rows[rng.random(120) < share]
        right = rng.normal(size=len(kept))
        alone = LandmarkSystems(blocks.fixed, ridge).of(blocks, kept).solve(right)
        np.testing.assert_allclose(shared.of(blocks, kept).solve(right), alone, atol=1e-10)


@pytest.mark.parametrize("cost", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("tol", [1e-9, 1e-4])
def test_equals_exact_steps(many, cost, tol):
    blocks, sign, ridge = _problem(cost=cost)
    exact = solve_nu_svm(blocks.dense(), sign, ridge, tol=1e-11)
    result = NuSVMInner(sign, ridge, tol=1e-9).solve(blocks, None, tol)
    assert isinstance(result._systems, LandmarkSystems)
    assert result.converged
    assert result.objective == pytest.approx(exact.objective, rel=tol)
    assert result.lower_bound <= exact.objective * (1.0 + 1e-12)
    assert result.residual <= tol
    assert result.x.min() >= 0.0
    assert result.x.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(result.decision, blocks.dense() @ result.b, atol=1e-12)


def test_rows_that_change_start_from_the_last_solution(many):
    blocks, sign, ridge = _problem()
    inner, like = NuSVMInner(sign, ridge), None
    for share in (1.0, 0.9, 0.5, 0.1):
        changed = BlockGram(blocks.head * share**2, blocks.cross * share, blocks.fixed)
        before, like = like, inner.solve(changed, like, 1e-6)
        exact = solve_nu_svm(changed.dense(), sign, ridge)
        assert like.objective == pytest.approx(exact.objective, rel=1e-6)
        assert before is None or like._systems is before._systems
    again = inner.solve(changed, like, 1e-5)
    assert again.n_iter <= 1


def test_factors_take_over_where_products_are_too_many(many, monkeypatch):
    monkeypatch.setattr(nu_svm_inner, "_MOST_PRODUCTS", 2)
    blocks, sign, ridge = _problem(cost=1e4)
    exact = solve_nu_svm(blocks.dense(), sign, ridge)
    inner = NuSVMInner(sign, ridge)
    result = inner.solve(blocks, None, 1e-9)
    assert isinstance(result._systems, Systems)
    assert result.converged
    assert result.objective == pytest.approx(exact.objective, rel=1e-9)
    assert inner.solve(blocks, result, 1e-9)._systems is result._systems
