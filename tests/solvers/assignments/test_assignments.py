"""Column generation against all assignments at once, as one conic programme solved by clarabel."""

from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import pytest

import bagwise.solvers.assignments._assignment_search as assignment_search
import bagwise.solvers.assignments._assignments as assignments
import bagwise.solvers.svm._block_gram as block_gram
import bagwise.solvers.svm._nu_svm_inner as nu_svm_inner
from bagwise._threads import ordered_map
from bagwise.solvers import DenseGram, ODMInner, Status, solve_qp
from bagwise.solvers.assignments._assignment_kernels import (
    TILE,
    ascend,
    begin_values,
    chosen_rows,
    enumerate_forms,
    write_all_own,
)
from bagwise.solvers.assignments._assignment_search import AssignmentProblem, AssignmentSearch
from bagwise.solvers.assignments._assignments import Column, Master, generate_assignments
from bagwise.solvers.svm._nu_svm import solve_nu_svm
from bagwise.solvers.svm._nu_svm_inner import NuSVMInner


def _rbf(A, B, gamma=0.3):
    return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(-1))


def _toy(seed=0, *, sizes=(3,) * 5, n_fixed=8, d=3, mean_rows=False):
    """Bags with one instance each that is apart from the rest, and fixed rows from the rest."""
    rng = np.random.default_rng(seed)
    offsets = np.r_[0, np.cumsum(sizes)]
    X = rng.normal(size=(offsets[-1], d))
    X[offsets[:-1]] += 1.0
    Z = rng.normal(size=(n_fixed, d))
    blocks = _rbf(X, X), _rbf(X, Z), _rbf(Z, Z)
    if mean_rows:  # pairs of fixed rows, averaged
        average = np.kron(np.eye(n_fixed // 2), [[0.5], [0.5]])
        blocks = blocks[0], blocks[1] @ average, average.T @ blocks[2] @ average
    return AssignmentProblem(*blocks, offsets)


def _signs(problem):
    return np.r_[np.ones(problem.n_bags), -np.ones(len(problem.fixed))]


def _choices(problem):
    bags = [range(a, b) for a, b in zip(problem.offsets[:-1], problem.offsets[1:], strict=True)]
    return [np.array(choice) for choice in product(*bags)]


def _gram(problem, weights):
    """Gram matrix of the rows for weights of the instances, straight from the definition."""
    p = problem.n_bags
    D = np.zeros((p, len(weights)))
    for i in range(p):
        bag = slice(problem.offsets[i], problem.offsets[i + 1])
        D[i, bag] = weights[bag]
    top = np.hstack([D @ problem.instances @ D.T, D @ problem.cross])
    return np.vstack([top, np.hstack([(D @ problem.cross).T, problem.fixed])])


def _grams(problem):
    return [_gram(problem, problem.indicator(choice)) for choice in _choices(problem)]


def _form_cones(grams, to_b, scale):
    """Return ``t >= scale * b'K b`` for each ``K`` as cones in ``(x, t)``, where ``b = to_b x``."""
    n = to_b.shape[1]
    cones = []
    for K in grams:
        values, vectors = np.linalg.eigh(K)
        root = (np.sqrt(scale * np.maximum(values, 0.0)) * vectors).T
        G = np.zeros((len(K) + 2, n + 1))
        G[0, n] = G[1, n] = 1.0
        G[2:, :n] = 2.0 * root @ to_b
        cones.append((G, np.r_[1.0, -1.0, np.zeros(len(K))]))
    return cones


def _saddle(quadratic, linear, grams, to_b, *, scale=1.0, **constraints):
    """Maximise ``linear'x - x'quadratic x / 2 - max_k b'K_k b / 2``."""
    n = len(linear)
    P = np.zeros((n + 1, n + 1))
    P[:n, :n] = scale * quadratic
    q = np.r_[-scale * linear, 0.5]
    cones = _form_cones(grams, to_b, scale)
    return -solve_qp(P, q, cones=cones, tol=1e-9, **constraints).objective / scale


def _simplex_saddle(problem, ridge):
    n = problem.n_rows
    return _saddle(
        ridge * np.eye(n), np.zeros(n), _grams(problem), np.diag(_signs(problem)),
        scale=20.0, A_eq=np.r_[np.ones(n), 0.0][None], b_eq=[1.0], lower=0.0,
    )  # fmt: skip


@dataclass
class Ridge:
    """Least squares: ``max_b y'b - ridge |b|^2 / 2 - b'Kb / 2``, so that ``b`` has any sign."""

    y: np.ndarray
    ridge: float

    def solve(self, gram, like, tol):
        return RidgeSolution(self.y, self.ridge, gram.dense() + self.ridge * np.eye(len(gram)))


@dataclass
class RidgeSolution:
    y: np.ndarray
    ridge: float
    system: np.ndarray
    error: ClassVar[float] = 0.0

    @property
    def b(self):
        return np.linalg.solve(self.system, self.y)

    @property
    def decision(self):
        return self.y - self.ridge * self.b

    @property
    def value(self):
        return 0.5 * self.y @ self.b

    def curvature(self, rows):
        return rows @ np.linalg.solve(self.system, rows.T)


@dataclass
class Band:
    """Margins wanted in a band: the inner problem of MI-ODM, by Newton steps on the active rows."""

    sign: np.ndarray
    cost: float
    theta: float
    nu: float

    def solve(self, gram, like, tol):
        low, high = 1.0 - self.theta, 1.0 + self.theta
        Q = gram.dense() * self.sign * self.sign[:, None]
        u = np.zeros(len(Q)) if like is None else self.sign * like.b

        def loss(z):
            m = Q @ z
            bent = np.maximum(low - m, 0.0) ** 2 + self.nu * np.maximum(m - high, 0.0) ** 2
            return 0.5 * z @ m + self.cost * bent.sum()

        for _ in range(100):
            m = Q @ u
            active = np.flatnonzero((m < low) | (m > high))
            below = m[active] < low
            system = Q[np.ix_(active, active)]
            system += np.diag(0.5 / (self.cost * np.where(below, 1.0, self.nu)))
            goal = np.zeros(len(Q))
            goal[active] = np.linalg.solve(system, np.where(below, low, high))
            lengths = 0.5 ** np.arange(12)
            losses = [loss(u + t * (goal - u)) for t in lengths]
            u = u + lengths[int(np.argmin(losses))] * (goal - u)
            if np.abs(Q @ u - m).max() < 1e-13:
                break
        up, down = np.maximum(u, 0.0), np.maximum(-u, 0.0)
        value = -0.5 * u @ Q @ u + low * up.sum() - high * down.sum()
        value -= (up @ up + down @ down / self.nu) / (4.0 * self.cost)
        sign, error = self.sign[active], max(0.0, loss(u) - value)
        system *= sign * sign[:, None]
        return BandSolution(self.sign * u, self.sign * (Q @ u), value, error, active, system)


@dataclass
class BandSolution:
    b: np.ndarray
    decision: np.ndarray
    value: float
    error: float
    active: np.ndarray
    system: np.ndarray

    def curvature(self, rows):
        seen = rows[:, self.active]
        return seen @ np.linalg.solve(self.system, seen.T)


def _run(problem, inner, *, seed=0, **options):
    return generate_assignments(problem, inner, rng=np.random.default_rng(seed), **options)


@pytest.mark.parametrize("mean_rows", [False, True], ids=["instances", "means"])
@pytest.mark.parametrize("seed", range(4))
def test_simplex_dual_over_243_assignments(seed, mean_rows, monkeypatch):
    problem = _toy(seed, mean_rows=mean_rows)
    exact = _simplex_saddle(problem, 0.01)
    inner = NuSVMInner(_signs(problem), 0.01)
    proven = _run(problem, inner, tol=1e-8)
    assert proven.status == Status.CONVERGED
    assert proven.gap_is_proven
    assert proven.objective == pytest.approx(exact, rel=1e-6)
    assert proven.lower_bound == pytest.approx(exact, rel=1e-6)

    monkeypatch.setattr(assignment_search, "_MOST_ENUMERATED", 0)
    searched = _run(problem, inner, tol=1e-8)
    assert not searched.gap_is_proven
    assert searched.lower_bound == -np.inf
    assert searched.objective == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_ridge_with_factors_of_both_signs(seed):
    problem = _toy(seed, sizes=(2, 3, 1, 4, 3))
    y = np.where(np.arange(problem.n_rows) % 2, -1.0, 1.5)
    n = problem.n_rows
    exact = _saddle(0.5 * np.eye(n), y, _grams(problem), np.eye(n))
    result = _run(problem, Ridge(y, 0.5), tol=1e-8)
    assert (result.b[: problem.n_bags] < 0.0).any()
    assert result.gap_is_proven
    assert result.objective == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_band_of_margins(seed):
    problem = _toy(seed)
    sign, n = _signs(problem), problem.n_rows
    inner = Band(sign, cost=5.0, theta=0.2, nu=0.4)
    quadratic = np.diag(np.r_[np.full(n, 0.1), np.full(n, 0.25)])  # 1 / (2 c), 1 / (2 c nu)
    linear = np.r_[np.full(n, 0.8), np.full(n, -1.2)]
    to_b = np.hstack([np.diag(sign), -np.diag(sign)])
    exact = _saddle(quadratic, linear, _grams(problem), to_b, lower=np.r_[np.zeros(2 * n), -np.inf])
    result = _run(problem, inner, tol=1e-8)
    assert result.objective == pytest.approx(exact, rel=1e-6)


def test_restarts_find_the_optimum_where_the_start_does_not_see_it(monkeypatch):
    monkeypatch.setattr(assignment_search, "_MOST_ENUMERATED", 0)
    for seed in range(10):
        problem = _toy(100 + seed, d=2)
        y = np.r_[np.ones(problem.n_bags), -np.ones(len(problem.fixed))]
        result = _run(problem, Ridge(y, 0.05), tol=1e-7)
        forms = [result.b @ K @ result.b for K in _grams(problem)]
        K = np.tensordot(result.x, [_gram(problem, d) for d in result.columns], 1)
        gap = 0.5 * (max(forms) - result.b @ K @ result.b)
        assert gap <= 1e-6 * abs(result.objective)


@pytest.mark.parametrize("n_restarts", [0, 3])
def test_a_small_gap_is_confirmed_by_four_times_as_many_starts(n_restarts, monkeypatch):
    monkeypatch.setattr(assignment_search, "_MOST_ENUMERATED", 0)
    drawn, draw = [], AssignmentProblem.drawn

    def noting(problem, rng, number):
        drawn.append(number)
        return draw(problem, rng, number)

    monkeypatch.setattr(AssignmentProblem, "drawn", noting)
    problem = _toy(0)
    result = _run(problem, NuSVMInner(_signs(problem), 0.1), n_restarts=n_restarts)
    assert result.converged
    assert drawn[-2:] == [n_restarts, 4 * n_restarts]
    assert len(drawn) >= result.n_iter + 1


@pytest.mark.parametrize("n_chosen", [1, 2])
def test_starts_that_cross_columns_choose_in_every_bag_as_one_of_two(n_chosen):
    problem = replace(_toy(0, sizes=(4, 5, 3, 6, 4, 5)), n_chosen=n_chosen)
    rng = np.random.default_rng(0)
    columns = [Column(problem, problem.indicator(c), c) for c in problem.drawn(rng, 3)]
    inner = NuSVMInner(_signs(problem), 0.1)
    starts = Master(problem, inner, columns).crossed(rng, 20)
    assert len(starts) == 20
    parents = np.array([column.choice for column in columns])
    for start in starts:
        bags = np.split(start == parents, problem.slot_starts[1:], axis=1)
        of_parent = np.array([bag.all(axis=1) for bag in bags])  # bags x columns
        assert any(of_parent[:, [a, b]].any(axis=1).all() for a, b in ((0, 1), (0, 2), (1, 2)))
    assert len({start.tobytes() for start in starts}) > 10
    assert Master(problem, inner, columns[:1]).crossed(rng, 20) == []


@pytest.mark.parametrize("n_chosen", [1, 2])
def test_gram_matrices_that_columns_keep_change_nothing(n_chosen, monkeypatch):
    problem = replace(_toy(0), n_chosen=n_chosen)
    results = []
    for least in (0, np.inf):
        monkeypatch.setattr(assignments, "_LARGE_BAGS", least)
        results.append(_run(problem, NuSVMInner(_signs(problem), 0.1)))
    kept, computed = results
    assert kept.objective == pytest.approx(computed.objective, rel=1e-9)
    np.testing.assert_allclose(kept.b, computed.b, atol=1e-6)


def test_singletons_are_one_simplex_dual():
    problem = _toy(sizes=(1,) * 9, n_fixed=12)
    sign = _signs(problem)
    result = _run(problem, NuSVMInner(sign, 0.1))
    alone = solve_nu_svm(_gram(problem, np.ones(9)), sign, 0.1)
    assert result.columns.tolist() == [[1.0] * 9]
    assert result.x.tolist() == [1.0]
    assert result.n_iter == 1
    np.testing.assert_allclose(result.b, alone.b, atol=1e-14)
    assert result.gap_is_proven
    assert result.gap <= 1e-9 * abs(result.objective)


def test_many_singletons_and_a_few_choices_are_enumerated():
    problem = _toy(sizes=(1,) * 40 + (2,) + (1,) * 40 + (3, 2), n_fixed=30)
    result = _run(problem, NuSVMInner(_signs(problem), 0.1), tol=1e-8)
    assert result.status == Status.CONVERGED
    assert result.gap_is_proven
    b = result.b
    forms = [b @ K @ b for K in _grams(problem)]
    value = -0.5 * (0.1 * b @ b + max(forms))  # at these factors, over all assignments
    assert result.objective == pytest.approx(value, rel=1e-7)
    alone = _toy(sizes=(1,) * 100)
    result = _run(alone, NuSVMInner(_signs(alone), 0.1))
    assert result.n_iter == 1
    assert result.status == Status.CONVERGED


def test_reused_factor_gives_the_same(monkeypatch):
    problem = _toy(3, sizes=(4,) * 12, n_fixed=60)
    inner = NuSVMInner(_signs(problem), 0.5)
    expected = _run(problem, inner, tol=1e-7)
    monkeypatch.setattr(block_gram, "_DENSE", 20)
    monkeypatch.setattr(block_gram, "_TILE", 16)
    result = _run(problem, inner, tol=1e-7)
    assert result.status == Status.CONVERGED
    assert result.objective == pytest.approx(expected.objective, rel=3e-7)
    monkeypatch.setenv("BAGWISE_NUM_THREADS", "1")
    np.testing.assert_array_equal(_run(problem, inner, tol=1e-7).b, result.b)


@pytest.mark.parametrize("start", ["mean", "first", "two"])
def test_value_falls_from_every_start(start):
    problem = _toy(3, sizes=(4,) * 12, n_fixed=20)
    first = problem.offsets[:-1]
    begin = {"mean": "mean", "first": first, "two": [first, first + 3]}[start]
    result = _run(problem, NuSVMInner(_signs(problem), 0.01), start=begin, tol=1e-6)
    assert result.status == Status.CONVERGED
    assert len(result.history) == len(result.gap_history) == result.n_iter > 2
    assert (np.diff(result.history) <= 1e-12 * np.abs(result.history[1:])).all()
    assert result.residual <= 1e-6
    assert result.gap_estimate == result.gap_history[-1]
    other = _run(problem, NuSVMInner(_signs(problem), 0.01), seed=1, tol=1e-6)
    assert result.objective == pytest.approx(other.objective, rel=3e-6)


def test_result_is_one_expansion():
    problem = _toy(1, sizes=(4, 2, 5, 3, 4, 4), n_fixed=10)
    result = _run(problem, NuSVMInner(_signs(problem), 0.01), tol=1e-6)
    assert result.x.sum() == pytest.approx(1.0)
    assert (np.diff(result.x) <= 0.0).all()
    np.testing.assert_allclose(
        np.add.reduceat(result.columns, problem.offsets[:-1], axis=1), 1.0, rtol=1e-12
    )
    mixed = np.tensordot(result.x, [_gram(problem, d) for d in result.columns], 1)
    np.testing.assert_allclose(result.decision, mixed @ result.b, atol=1e-14)
    alone = solve_nu_svm(mixed, _signs(problem), 0.01)
    assert result.objective == pytest.approx(-alone.objective, rel=1e-10)
    # A fixed row sees the mixture as the expansion; a bag sees other instances in each column.
    below = problem.cross.T @ result.coef + problem.fixed @ result.fixed_coef
    np.testing.assert_allclose(below, result.decision[problem.n_bags :], atol=1e-14)
    inside = problem.instances @ result.coef + problem.cross @ result.fixed_coef
    np.testing.assert_allclose(result.instance_values, inside, atol=1e-14)


def test_same_generator_same_bits_and_threads_do_not_matter():
    problem = _toy(5, sizes=(5,) * 10, n_fixed=30)
    inner = NuSVMInner(_signs(problem), 0.01)
    first = _run(problem, inner)
    [again] = ordered_map(lambda _: _run(problem, inner), [None], n_threads=2)
    for name in ("x", "columns", "b", "coef", "history", "gap_history"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))


def test_budget_of_rounds():
    problem = _toy(3, sizes=(4,) * 12, n_fixed=20)
    inner = NuSVMInner(_signs(problem), 0.01)
    short, full = _run(problem, inner, max_rounds=2), _run(problem, inner, tol=1e-6)
    assert short.status == Status.MAX_ITER
    assert short.n_iter == 2
    assert 0.0 <= short.objective - full.objective <= short.gap_estimate


def test_no_fixed_rows():
    problem = _toy(2, n_fixed=0)
    result = _run(problem, NuSVMInner(np.ones(5), 0.1), tol=1e-8)
    assert result.objective == pytest.approx(_simplex_saddle(problem, 0.1), rel=1e-6)


def climbed(inner, offsets, b, choice, values, max_sweeps=10):
    """Choose one instance in each bag, from an assignment on."""
    taken = np.zeros(len(inner), bool)
    taken[choice] = True
    own, diagonal = np.empty(len(inner)), inner.diagonal().copy()
    write_all_own(inner, diagonal, offsets[:-1], offsets[1:], choice, b, own)
    return ascend(
        inner, diagonal, offsets[:-1], offsets[1:], b, choice, taken, own, values, 1e-12,
        max_sweeps,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_enumeration_and_ascent_agree_with_the_definition(seed):
    rng = np.random.default_rng(seed)
    problem = _toy(seed, sizes=(2, 3, 1, 4))
    p, first = problem.n_bags, problem.offsets[:-1]
    b = rng.normal(size=p)
    b[rng.integers(p)] = 0.0
    fixed = problem.cross @ rng.normal(size=8)

    def form(choice):
        return b @ problem.instances[np.ix_(choice, choice)] @ b + 2.0 * b @ fixed[choice]

    choices = _choices(problem)
    expected = np.array([form(choice) for choice in choices])
    values = np.empty(len(fixed))
    begin_values(problem.instances, first, b, fixed, values)
    forms = np.empty(problem.n_assignments)
    enumerate_forms(problem.instances, problem.offsets, b, fixed, first.copy(), values, forms)
    np.testing.assert_allclose(forms, expected, atol=1e-12)

    reached = []
    for start in choices:
        choice = start.copy()
        begin_values(problem.instances, choice, b, fixed, values)
        assert climbed(problem.instances, problem.offsets, b, choice, values, max_sweeps=100)
        reached.append(form(choice))
        assert reached[-1] >= form(start) - 1e-12
        for i in range(p):  # no other instance of any bag is better
            for j in range(problem.offsets[i], problem.offsets[i + 1]):
                other = choice.copy()
                other[i] = j
                assert form(other) <= reached[-1] + 1e-11
    assert max(reached) == pytest.approx(expected.max(), rel=1e-12)


@pytest.mark.parametrize("n_chosen", [1, 2])
def test_what_kicks_end_at_is_no_lower_and_cannot_be_bettered(n_chosen):
    rng = np.random.default_rng(n_chosen)
    problem = replace(_toy(3, sizes=(4, 5, 1, 6, 4, 5, 3, 7)), n_chosen=n_chosen)
    b, outer = rng.normal(size=problem.n_bags), 0.1 * problem.cross @ rng.normal(size=8)
    b[1] = 0.0

    def form(choice):
        weights = problem.indicator(choice) * problem.spread(b)
        return weights @ problem.instances @ weights + 2.0 * weights @ outer

    rises = 0
    for start in problem.drawn(rng, 20):
        ends = []
        for kicks in (None, problem.kicks(rng, 20)):
            search = AssignmentSearch(problem, b, outer, 0.0, 1.0)
            search.climb(start, kicks)
            ((value, choice),) = search.best()
            assert value == pytest.approx(form(choice), rel=1e-12)
            assert search.form(choice) == pytest.approx(value, rel=1e-12)
            for i, slot in enumerate(problem.slots):
                for j in range(problem.offsets[slot], problem.offsets[slot + 1]):
                    if j not in choice:
                        assert form(np.sort(np.r_[np.delete(choice, i), j])) <= value + 1e-11
            ends.append(value)
        assert ends[1] >= ends[0] - 1e-12
        rises += ends[1] > ends[0] + 1e-9
    assert rises


def test_a_search_in_single_precision_ends_at_the_same_optimum(monkeypatch):
    problem = _toy(0, sizes=(5,) * 6)
    inner = NuSVMInner(_signs(problem), 0.1)
    results = [_run(problem, inner, tol=1e-6)]
    monkeypatch.setattr(assignment_search, "_ROUNDED", 0)
    monkeypatch.setattr(assignment_search, "_MOST_ENUMERATED", 0)
    problem = _toy(0, sizes=(5,) * 6)
    assert problem.rounded[0].dtype == np.float32
    results.append(_run(problem, inner, tol=1e-6))
    assert all(result.converged for result in results)
    assert results[1].objective == pytest.approx(results[0].objective, rel=3e-6)
    assert results[1].gap_estimate >= 0.0


@pytest.mark.parametrize("many", [2, 1000])
def test_fixed_rows_in_single_precision_give_the_same(many, monkeypatch):
    monkeypatch.setattr(nu_svm_inner, "_MANY", many)
    problem = _toy(0)
    gram = np.block([[problem.instances, problem.cross], [problem.cross.T, problem.fixed]])
    index, n = np.arange(len(gram)), len(problem.instances)
    rounded = AssignmentProblem.of(
        DenseGram(gram), index[:n], problem.offsets, index[n:], single=True
    )
    assert rounded.fixed.dtype == np.float32
    assert rounded.cross.dtype == rounded.instances.dtype == np.float64
    inner = NuSVMInner(_signs(problem), 0.5)
    result = _run(rounded, inner, tol=1e-6)
    assert result.converged
    assert result.objective == pytest.approx(_simplex_saddle(problem, 0.5), rel=1e-5)


@pytest.mark.parametrize("common", [0.0, 1e3])
def test_inner_products_are_rounded_only_where_they_differ(monkeypatch, common):
    """What is left of a small difference in single precision would tell instances apart wrongly."""
    monkeypatch.setattr(assignment_search, "_ROUNDED", 0)
    monkeypatch.setattr(assignment_search, "_MOST_ENUMERATED", 0)
    problem = _toy(0, sizes=(5,) * 6)
    shifted = replace(problem, instances=problem.instances + common * np.ptp(problem.instances))
    assert shifted.rounded[0].dtype == (np.float64 if common else np.float32)


def test_rows_of_several_choices_are_sums_of_rows():
    rng = np.random.default_rng(0)
    cross, base = rng.normal(size=(30, 2 * TILE + 3)), rng.normal(size=2 * TILE + 3)
    choices, b = rng.integers(30, size=(5, 7)), rng.normal(size=7)
    out = np.tile(base, (5, 1))
    for first, last in ((0, TILE), (TILE, len(base))):
        chosen_rows(cross, choices, b, first, last, out)
    np.testing.assert_allclose(out, base + np.einsum("i,kij->kj", b, cross[choices]), atol=1e-13)


def test_ties_go_to_the_lowest_instance():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.5, 0.5]])
    offsets = np.array([0, 4])
    fixed, choice, values = np.zeros(4), np.array([2]), np.empty(4)
    for b in (1.0, -1.0):
        factor = np.array([b])
        begin_values(X @ X.T, choice, factor, fixed, values)
        climbed(X @ X.T, offsets, factor, choice, values)
        assert choice.tolist() == [0]
    climbed(X @ X.T, offsets, np.zeros(1), choice, np.array([0.0, 2.0, 2.0, 1.0]))
    assert choice.tolist() == [1]  # a factor of 0: the largest value


def test_negative_factor_goes_away_from_the_rest():
    X = np.array([[3.0], [-2.0], [1.0]])
    choice, values = np.array([0]), np.empty(3)
    fixed = 4.0 * X[:, 0]
    begin_values(X @ X.T, choice, np.array([-1.0]), fixed, values)
    climbed(X @ X.T, np.array([0, 3]), np.array([-1.0]), choice, values)
    assert choice.tolist() == [1]  # (4 + 2)^2 is above (4 - 3)^2 and (4 - 1)^2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"offsets": [0, 2, 2, 15]}, "offsets must start at 0"),
        ({"offsets": [0, 3, 14]}, r"instances must have shape \(14, 14\)"),
        ({"cross": np.zeros((15, 3))}, "cross must have shape"),
        ({"fixed": np.full((8, 8), np.nan)}, "fixed must hold finite numbers"),
    ],
    ids=["empty", "short", "cross", "nan"],
)
def test_bad_problems(change, words):
    good = _toy()
    blocks = {name: getattr(good, name) for name in ("instances", "cross", "fixed", "offsets")}
    with pytest.raises(ValueError, match=words):
        AssignmentProblem(**(blocks | change))


@pytest.mark.parametrize(
    "start", ["best", [0, 3, 6, 9], [0, 3, 6, 9, 15], [0.0, 3.0, 6.0, 9.0, 12.0]],
    ids=["word", "short", "outside", "floats"],
)  # fmt: skip
def test_bad_start(start):
    problem = _toy()
    with pytest.raises(ValueError, match="start must"):
        _run(problem, NuSVMInner(_signs(problem), 0.1), start=start)


def test_musk1_against_many_more_restarts(load_set):
    data = load_set("musk1")
    X, y = data["X"].astype(np.float64), data["y"] > 0
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    sizes = np.diff(data["offsets"])
    positive = np.repeat(y, sizes)
    P, N, gamma = X[positive], X[~positive], 1.0 / X.shape[1]
    offsets = np.r_[0, np.cumsum(sizes[y])]
    problem = AssignmentProblem(_rbf(P, P, gamma), _rbf(P, N, gamma), _rbf(N, N, gamma), offsets)
    inner = NuSVMInner(_signs(problem), 0.01)
    result = _run(problem, inner, tol=1e-3)
    assert result.status == Status.CONVERGED
    assert (np.diff(result.history) <= 0.0).all()
    many = _run(problem, inner, tol=1e-5, n_restarts=300, seed=7)
    assert many.objective <= result.objective * (1.0 - 1e-12)  # both negative
    assert result.objective - many.objective <= 3e-3 * abs(many.objective)


def test_weights_of_columns_that_are_alike_need_few_inner_problems():
    """Undamped Newton steps go too far among them, and need four times as many."""
    problem = _toy(1, sizes=(4,) * 20, n_fixed=60)
    inner = ODMInner(_signs(problem), 50.0, theta=0.2, nu=0.2)
    result = _run(problem, inner, tol=1e-6)
    assert result.converged
    assert result.n_inner <= 8 * result.n_iter


def test_a_loose_inner_solver_is_told():
    class Loose(Ridge):
        def solve(self, gram, like, tol):
            solution = super().solve(gram, like, tol)
            solution.error = 1.0
            return solution

    problem = _toy()
    result = _run(problem, Loose(_signs(problem), 0.5), tol=1e-6)
    assert result.status == Status.STALLED
    assert result.gap_estimate >= 1.0
    exact = _run(problem, Ridge(_signs(problem), 0.5), tol=1e-6).objective
    assert result.objective == pytest.approx(exact + 1.0, rel=1e-5)  # no more than that is known


@pytest.mark.parametrize("options", [{"max_rounds": 0}, {"n_restarts": -1}], ids=str)
def test_bad_budgets(options):
    problem = _toy()
    with pytest.raises(ValueError, match="must be at least"):
        _run(problem, NuSVMInner(_signs(problem), 0.1), **options)


@pytest.mark.parametrize("seed", range(2))
def test_inner_problems_that_are_solved_loosely_end_at_the_optimum(seed, monkeypatch):
    monkeypatch.setattr(nu_svm_inner, "_MANY", 2)
    problem = _toy(seed=seed)
    result = _run(problem, NuSVMInner(_signs(problem), 0.5), tol=1e-6)
    assert result.converged
    assert result.objective == pytest.approx(_simplex_saddle(problem, 0.5), rel=1e-5)
    assert result.lower_bound <= result.objective


@pytest.mark.parametrize("most", [-1, 0, 1, 3])
def test_inner_problems_that_take_too_many_products_are_solved_by_factors(most, monkeypatch):
    monkeypatch.setattr(nu_svm_inner, "_MANY", 2)
    monkeypatch.setattr(nu_svm_inner, "_MOST_PRODUCTS", most)
    problem = _toy()
    result = _run(problem, NuSVMInner(_signs(problem), 1e-4), tol=1e-6)
    assert result.converged
    assert result.objective == pytest.approx(_simplex_saddle(problem, 1e-4), rel=1e-5)


def test_an_only_assignment_is_solved_for_as_well_as_asked(monkeypatch):
    monkeypatch.setattr(nu_svm_inner, "_MANY", 2)
    whole = _toy()
    problem = AssignmentProblem(
        whole.instances[:3, :3], whole.cross[:3], whole.fixed, offsets=[0, 1, 2, 3]
    )
    result = _run(problem, NuSVMInner(_signs(problem), 0.5), tol=1e-8)
    assert result.converged
    exact = solve_nu_svm(_grams(problem)[0], _signs(problem), 0.5)
    assert result.objective == pytest.approx(-exact.objective, rel=1e-8)


@pytest.mark.parametrize("least", [0.03, 0.01, 0.003])
def test_rounds_that_lower_the_value_too_little_are_the_last(least, monkeypatch):
    monkeypatch.setattr(assignments, "_PATIENCE", 1)
    monkeypatch.setattr(assignments, "_NEW_COLUMNS", 1)
    problem = _toy(0, sizes=(6,) * 10)
    inner = NuSVMInner(_signs(problem), 1e-3)
    result = _run(problem, inner, tol=1e-9, least_decrease=least)
    falls = -np.diff(result.history) / np.abs(result.history[1:])
    assert result.status == Status.STALLED
    assert result.gap_estimate > 1e-9 * abs(result.objective)
    assert falls[-1] < least
    assert (falls[:-1] >= least).all()
