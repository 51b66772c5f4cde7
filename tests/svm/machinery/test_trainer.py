"""The same rows have the same solution in every trainer: Gram matrix, its source, features."""

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from bagwise.kernels import InstanceKernel, point_gram
from bagwise.solvers import DenseGram, KernelRows
from bagwise.svm.machinery._problem import HingeProblem, constant_solution
from bagwise.svm.machinery._trainer import KernelTrainer, LinearTrainer

SIZES = np.random.default_rng(5).integers(1, 6, size=12)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
N = int(OFFSETS[-1])
KERNEL = InstanceKernel("linear")


def instances():
    X = np.random.default_rng(0).normal(size=(N, 4))
    X[: N // 2] += 1.0
    return X


def trainers(X):
    source = KernelRows.of(KERNEL, X, OFFSETS, means=True)
    return {
        "gram": KernelTrainer(DenseGram(point_gram(KERNEL, X, OFFSETS, means=True)), N, tol=1e-10),
        "source": KernelTrainer(source, N, tol=1e-10, cache_bytes=2000),
        "kept": KernelTrainer(source, N, tol=1e-10, cache_bytes=1e6),
        "dense": LinearTrainer(X, OFFSETS, tol=1e-10),
        "csr": LinearTrainer(sparse.csr_array(X), OFFSETS, tol=1e-10),
    }


def rows_of(kind):
    rng = np.random.default_rng(3)
    if kind == "instances":
        index = rng.permutation(N)[: N - 5]
    elif kind == "means":
        index = np.concatenate([np.arange(N // 2, N), N + np.arange(6)])
    else:  # some instances twice, with both signs
        index = np.concatenate([np.arange(N), np.arange(4)])
    sign = np.where(index % N < N // 2, 1.0, -1.0)
    if kind == "means":
        sign = np.where(index >= N, 1.0, -1.0)
    if kind == "copies":
        sign[-4:] *= -1.0
    cost = rng.uniform(0.1, 2.0, len(index))
    target = rng.uniform(-0.5, 1.5, len(index))
    return HingeProblem(index, sign, cost, target)


def points(X):
    means = np.array([X[a:b].mean(axis=0) for a, b in pairwise(OFFSETS)])
    return np.vstack([X, means])


def objective(X, rows, solution):
    """Return the objective of `HingeProblem` from the scores alone."""
    scores = points(X) @ solution_weights(X, solution) + solution.intercept
    hinge = np.maximum(rows.target - rows.sign * scores[rows.index], 0.0)
    return 0.5 * solution_weights(X, solution) @ solution_weights(X, solution) + rows.cost @ hinge


def solution_weights(X, solution):
    return X.T @ solution.instance_coef(SIZES)


@pytest.mark.parametrize("kind", ["instances", "means", "copies"])
def test_all_trainers_agree(kind):
    X, rows = instances(), rows_of(kind)
    solved = {name: trainer.solve(rows) for name, trainer in trainers(X).items()}
    for name, solution in solved.items():
        assert solution.certificate.converged, name
        value = objective(X, rows, solution)
        assert solution.certificate.objective == pytest.approx(value, rel=1e-7), name
        assert solution.certificate.gap < 1e-6 * max(1.0, value), name
        scores = X @ solution_weights(X, solution) + solution.intercept
        np.testing.assert_allclose(solution.scores, scores, atol=1e-7, err_msg=name)
        norm = solution_weights(X, solution) @ solution_weights(X, solution)
        assert solution.squared_norm == pytest.approx(norm, rel=1e-6, abs=1e-9), name
        np.testing.assert_allclose(solution.scores, solved["gram"].scores, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("slack", ["own", "shared"])
def test_a_start_does_not_change_the_answer(slack):
    X, rows = instances(), rows_of("instances")
    if slack == "shared":
        group = rows.index // 3 + 1000 * (rows.sign > 0)
        cost = 1.0 + (group % 5)
        rows = HingeProblem(rows.index, rows.sign, cost.astype(float), rows.target, group)
    other = HingeProblem(rows.index[::-1].copy(), rows.sign[::-1].copy(), rows.cost, 1.0)
    for name, trainer in trainers(X).items():
        cold = trainer.solve(rows)
        warm = trainer.solve(rows, trainer.solve(other))
        assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=1e-7), (
            name
        )
        np.testing.assert_allclose(warm.scores, cold.scores, atol=1e-5, err_msg=name)


def test_same_rows_are_recognised():
    rows = rows_of("instances")
    rows = replace(rows, group=1 + np.arange(len(rows.index)))
    parts = {part.name: getattr(rows, part.name).copy() for part in fields(rows)}
    assert rows.same_as(HingeProblem(**parts))
    for name, values in parts.items():
        other = replace(rows, **{name: np.append(-values[:1], values[1:])})
        assert not rows.same_as(other), name
    assert not rows.same_as(replace(rows, group=None))
    assert not rows.same_as(replace(rows, target=1.0))


def test_a_constant_machine_has_no_weights():
    solution = constant_solution(7, -1.0)
    np.testing.assert_array_equal(solution.scores, np.full(7, -1.0))
    assert solution.instance_coef(np.array([3, 4])).tolist() == [0.0] * 7
    assert solution.certificate.converged


def test_rows_that_were_computed_are_there_for_the_next_problem():
    computed = []

    def kernel(A, B):
        computed.append(A.shape[0] * B.shape[0])
        return A @ B.T

    X = instances()
    source = KernelRows.of(InstanceKernel(kernel), X, OFFSETS, means=True)
    trainer = KernelTrainer(source, N, tol=1e-10, cache_bytes=1e6)
    rows = rows_of("instances")
    first = trainer.solve(rows)
    needed = sum(computed)
    trainer.solve(rows, first)
    assert sum(computed) == needed
    trainer.solve(rows)  # without a start it begins anew, whatever was solved before
    assert sum(computed) == 2 * needed


def test_means_cost_nothing_beside_their_instances():
    computed = []

    def kernel(A, B):
        computed.append(A.shape[0] * B.shape[0])
        return A @ B.T

    X = instances()
    source = KernelRows.of(InstanceKernel(kernel), X, OFFSETS, means=True)
    some = source.take(np.concatenate([np.arange(N), [N + 7, N + 2]]))
    rows, every = np.array([1, 5, 9]), points(X)
    np.testing.assert_allclose(source.block(rows), X[rows] @ every.T, rtol=1e-12)
    np.testing.assert_allclose(some.block(rows)[:, N:], X[rows] @ every[[N + 7, N + 2]].T)
    assert sum(computed) == 2 * len(rows) * N


def test_means_of_the_first_problem_stay_beside_the_instances_of_the_next():
    computed = []

    def kernel(A, B):
        computed.append(A.shape[0] * B.shape[0])
        return A @ B.T

    source = KernelRows.of(InstanceKernel(kernel), instances(), OFFSETS, means=True)
    trainer = KernelTrainer(source, N, tol=1e-10, cache_bytes=1e6)
    first = trainer.solve(rows_of("means"))
    whole = trainer._kept.rows
    whole.block(np.arange(whole.n))
    needed = sum(computed)
    second = trainer.solve(rows_of("instances"), first)
    assert sum(computed) == needed
    expected = KernelTrainer(source, N, tol=1e-10).solve(rows_of("instances"))
    np.testing.assert_allclose(second.scores, expected.scores, atol=1e-7)


def test_only_many_points_are_trained_on_loosely(monkeypatch):
    X = instances()
    trainer = KernelTrainer(DenseGram(X @ X.T), N, tol=1e-6)
    assert trainer.loosened(1e-2) is None
    monkeypatch.setattr("bagwise.svm.machinery._trainer._FEW_POINTS", 0)
    loose = trainer.loosened(1e-2)
    assert (loose.tol, loose.gap, loose.polish) == (1e-2, 1e-2, False)
    assert trainer.loosened(1e-7) is None
