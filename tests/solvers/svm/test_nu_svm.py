"""The simplex dual against quadprog, clarabel, closed forms and its own certificate."""

import numpy as np
import pytest
import quadprog

import bagwise.solvers.svm._block_gram as block_gram
import bagwise.solvers.svm._nu_svm as simplex_dual
from bagwise._threads import ordered_map
from bagwise.solvers import Status, solve_qp
from bagwise.solvers.assignments._mixture_weights import minimize_on_simplex
from bagwise.solvers.svm._block_gram import BlockGram
from bagwise.solvers.svm._nu_svm import solve_nu_svm
from bagwise.solvers.svm._nu_svm_inner import NuSVMInner


def _problem(n=60, *, cost=10.0, d=3, shift=0.5, seed=0):
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    X = rng.normal(size=(n, d)) + shift * sign[:, None]
    gram = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    return gram, sign, 1.0 / (cost * rng.uniform(0.5, 2.0, n))


def _linear(n=80, d=4):
    rng = np.random.default_rng(1)
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(n, d)) + sign[:, None]
    return X @ X.T, sign, np.full(n, 0.05)


def _duplicates():
    gram, sign, ridge = _problem(n=25)
    rows = np.r_[np.arange(25), np.arange(25), np.arange(10)]
    return gram[np.ix_(rows, rows)], sign[rows], ridge[rows]


def _contradictions():
    gram, sign, ridge = _problem(n=25)
    return np.tile(gram, (2, 2)), np.r_[sign, -sign], np.r_[ridge, ridge]


def _zero_rows():
    gram, sign, ridge = _problem(n=30)
    gram[::3] = gram[:, ::3] = 0.0
    return gram, sign, ridge


def _one_sign():
    gram, sign, ridge = _problem()
    return gram, np.ones_like(sign), ridge


ZOO = {
    "usual": _problem,
    "cheap": lambda: _problem(cost=1e-3),
    "hard": lambda: _problem(cost=1e4),
    "larger": lambda: _problem(n=350, cost=100.0),  # coordinate steps first
    "linear": _linear,
    "duplicates": _duplicates,
    "contradictions": _contradictions,
    "zero rows": _zero_rows,
    "one sign": _one_sign,
    "one row": lambda: _problem(n=1),
}


def _form(gram, sign, ridge):
    return gram * sign * sign[:, None] + np.diag(ridge)


@pytest.mark.parametrize("name", ZOO)
def test_equals_quadprog(name):
    gram, sign, ridge = ZOO[name]()
    n = len(sign)
    H = _form(gram, sign, ridge)
    sides = np.c_[np.ones(n), np.eye(n)]
    x, value, *_ = quadprog.solve_qp(H, np.zeros(n), sides, np.r_[1.0, np.zeros(n)], 1)
    result = solve_nu_svm(gram, sign, ridge)
    assert result.status == Status.CONVERGED
    assert result.objective == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(result.x, x, atol=1e-6 * x.max())


@pytest.mark.parametrize("name", ["hard", "larger", "linear", "duplicates", "zero rows"])
def test_reused_factor_gives_the_same(name, monkeypatch):
    gram, sign, ridge = ZOO[name]()
    expected = solve_nu_svm(gram, sign, ridge)
    monkeypatch.setattr(block_gram, "_DENSE", 5)
    monkeypatch.setattr(block_gram, "_TILE", 16)
    result = solve_nu_svm(gram, sign, ridge)
    assert result.status == Status.CONVERGED
    assert result.objective == pytest.approx(expected.objective, rel=1e-9)
    np.testing.assert_allclose(result.x, expected.x, atol=1e-6 * expected.x.max())


def _separable(n=80, d=4):
    rng = np.random.default_rng(0)
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(n, d)) + 3.0 * sign[:, None]
    return X, sign


@pytest.mark.parametrize("cost", [1e8, 1e12, 1e15, 1e30])
@pytest.mark.parametrize("n", [20, 80, 400])
def test_costs_next_to_infinite_give_the_point_nearest_to_zero(n, cost):
    X, sign = _separable(n)
    result = solve_nu_svm(X @ X.T, sign, 1.0 / cost)
    rows = np.c_[X * sign[:, None]]  # min |w|^2 / 2 with margin 1; the distance to 0 is 1 / |w|
    w = solve_qp(np.eye(X.shape[1]), np.zeros(X.shape[1]), -rows, -np.ones(n), tol=1e-10).x
    assert result.status == Status.CONVERGED
    assert result.objective == pytest.approx(0.5 / (w @ w), rel=1e-6)


@pytest.mark.parametrize("cost", [1e9, 1e15, 1e30])
@pytest.mark.parametrize("n", [20, 80, 400])
def test_rows_that_contradict_at_costs_beyond_rounding_end_with_a_true_residual(n, cost):
    X, sign = _separable(n)
    sign[::3] *= -1.0
    gram = X @ X.T
    result = solve_nu_svm(gram, sign, 1.0 / cost)
    assert result.status == Status.STALLED
    assert result.x.min() >= 0.0
    assert result.x.sum() == pytest.approx(1.0)
    slope = _form(gram, sign, np.full(n, 1.0 / cost)) @ result.x
    np.testing.assert_allclose(
        result.gap, result.x @ slope - slope.min(), rtol=1e-6, atol=1e-13 * gram.max()
    )
    assert result.residual == pytest.approx(result.gap / result.objective)
    assert 0.0 < result.objective < 1e-3


def test_reuse_from_problem_to_problem(monkeypatch):
    monkeypatch.setattr(block_gram, "_DENSE", 5)
    monkeypatch.setattr(block_gram, "_TILE", 16)
    gram, sign, ridge = _problem(n=100)
    fixed, inner, like = gram[4:, 4:].copy(), NuSVMInner(sign, ridge), None
    for share in (1.0, 0.9, 0.5, 0.1):
        blocks = BlockGram(gram[:4, :4] * share**2, gram[:4, 4:] * share, fixed)
        like = inner.solve(blocks, like)
        alone = solve_nu_svm(blocks.dense(), sign, ridge)
        assert like.status == Status.CONVERGED
        assert like.objective == pytest.approx(alone.objective, rel=1e-9)
        np.testing.assert_allclose(like.decision, blocks.dense() @ like.b, atol=1e-13)
        rows = np.random.default_rng(0).normal(size=(3, 100))
        np.testing.assert_allclose(like.curvature(rows), alone.curvature(rows), rtol=1e-6)


@pytest.mark.parametrize("name", ZOO)
def test_certificate(name):
    gram, sign, ridge = ZOO[name]()
    result = solve_nu_svm(gram, sign, ridge)
    a, H = result.x, _form(gram, sign, ridge)
    slope = H @ a
    assert a.min() >= 0.0
    assert a.sum() == pytest.approx(1.0)
    assert result.objective == pytest.approx(0.5 * a @ H @ a)
    gap = a @ slope - slope.min()
    assert result.gap == pytest.approx(gap, abs=1e-9 * result.objective)
    assert result.residual <= 1e-9
    assert result.rho == pytest.approx(2.0 * result.objective)
    np.testing.assert_allclose(result.decision, gram @ (sign * a), atol=1e-12 * gram.max())
    np.testing.assert_array_equal(result.b, sign * a)
    # The primal, at the weights and the margin that the factors give, has minus this value.
    short = np.maximum(result.rho - sign * result.decision, 0.0)
    primal = 0.5 * result.b @ result.decision - result.rho + 0.5 * (short**2 / ridge).sum()
    assert -primal == pytest.approx(result.objective, rel=1e-7)
    assert (np.diff(result.history) <= 1e-12 * result.history[:-1]).all()


def test_equals_clarabel():
    gram, sign, ridge = _problem(n=40, cost=100.0)
    reference = solve_qp(
        _form(gram, sign, ridge), np.zeros(40), A_eq=np.ones((1, 40)), b_eq=[1.0], lower=0.0,
        tol=1e-10,
    )  # fmt: skip
    result = solve_nu_svm(gram, sign, ridge)
    assert result.objective == pytest.approx(reference.objective, rel=1e-7)


def test_closed_forms():
    ridge = np.array([0.5, 1.0, 2.0])
    result = solve_nu_svm(np.zeros((3, 3)), [1, 1, -1], ridge)
    np.testing.assert_allclose(result.x, (1.0 / ridge) / (1.0 / ridge).sum())
    # The row that lies between the origin and the others takes all.
    gram = np.outer([1.0, 5.0, 6.0], [1.0, 5.0, 6.0])
    np.testing.assert_allclose(solve_nu_svm(gram, np.ones(3), 0.1).x, [1.0, 0.0, 0.0])


@pytest.mark.parametrize("name", ["usual", "hard", "larger", "duplicates"])
def test_warm_start(name):
    gram, sign, ridge = ZOO[name]()
    cold = solve_nu_svm(gram, sign, ridge)
    same = solve_nu_svm(gram, sign, ridge, x0=7.0 * cold.x)
    assert same.n_iter == 1
    np.testing.assert_allclose(same.x, cold.x, atol=1e-9)
    elsewhere = solve_nu_svm(gram, sign, ridge, x0=np.eye(len(sign))[0])
    assert elsewhere.objective == pytest.approx(cold.objective, rel=1e-9)
    nowhere = solve_nu_svm(gram, sign, ridge, x0=np.zeros(len(sign)))
    assert nowhere.objective == pytest.approx(cold.objective, rel=1e-9)


def test_curvature_is_the_second_derivative():
    gram, sign, ridge = _problem(n=30, cost=5.0)
    rng = np.random.default_rng(3)
    roots = rng.normal(size=(3, 30, 2))
    changes = roots @ roots.transpose(0, 2, 1)

    def solve(v):
        return solve_nu_svm(gram + np.tensordot(v, changes, 1), sign, ridge)

    def slope(v):
        b = solve(v).b
        return -0.5 * np.einsum("kij,i,j->k", changes, b, b)

    result = solve(np.zeros(3))
    steps = 1e-6 * np.eye(3)
    numeric = [(solve(h).value - solve(-h).value) / 2e-6 for h in steps]
    np.testing.assert_allclose(slope(np.zeros(3)), numeric, rtol=1e-6)
    second = [(slope(h) - slope(-h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(result.curvature(changes @ result.b), second, rtol=1e-6)


def test_single_precision_and_orders_of_the_gram_matrix():
    gram, sign, ridge = _problem(n=80)
    result = solve_nu_svm(gram, sign, ridge)
    single = gram.astype(np.float32)
    exact = solve_nu_svm(single.astype(np.float64), sign, ridge)
    narrow = solve_nu_svm(single, sign, ridge)
    assert narrow.objective == pytest.approx(exact.objective, rel=1e-10)
    np.testing.assert_array_equal(solve_nu_svm(np.asfortranarray(gram), sign, ridge).x, result.x)
    whole = solve_nu_svm(np.eye(3, dtype=int), [1, 1, 1], 1.0)
    np.testing.assert_allclose(whole.x, 1.0 / 3.0)


def test_threads_do_not_matter():
    gram, sign, ridge = ZOO["larger"]()
    here = solve_nu_svm(gram, sign, ridge)
    [there] = ordered_map(lambda _: solve_nu_svm(gram, sign, ridge), [None], n_threads=2)
    np.testing.assert_array_equal(here.x, there.x)


def test_budget_of_steps_keeps_a_valid_certificate():
    gram, sign, ridge = ZOO["hard"]()
    best = solve_nu_svm(gram, sign, ridge)
    short = solve_nu_svm(gram, sign, ridge, max_iter=2)
    assert short.status == Status.MAX_ITER
    assert short.x.min() >= 0.0
    assert short.lower_bound <= best.objective <= short.objective


def test_inner_solver():
    gram, sign, ridge = _problem()
    blocks, inner = BlockGram.of(gram), NuSVMInner(sign, ridge)
    first = inner.solve(blocks, None)
    again = inner.solve(blocks, first)
    assert first.value == pytest.approx(again.value)
    assert 0.0 <= first.error <= 1e-9 * abs(first.value)


@pytest.mark.parametrize("seed", range(8))
def test_small_quadratic_over_the_simplex(seed):
    rng = np.random.default_rng(seed)
    k = 2 + seed
    root = rng.normal(size=(k, max(1, k - seed % 3)))  # some of them singular
    M, c = root @ root.T, rng.normal(size=k)
    start = rng.dirichlet(np.ones(k)) if seed % 2 else np.eye(k)[0]
    x = minimize_on_simplex(M, c, start)
    assert x.min() >= 0.0
    assert x.sum() == pytest.approx(1.0)
    reference = solve_qp(M, c, A_eq=np.ones((1, k)), b_eq=[1.0], lower=0.0, tol=1e-10)
    assert 0.5 * x @ M @ x + c @ x == pytest.approx(reference.objective, abs=1e-8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gram": np.zeros((2, 3))}, "gram must be a square matrix"),
        ({"gram": np.full((2, 2), np.nan)}, "gram must hold finite numbers"),
        ({"gram": -np.eye(2)}, "gram must be positive semi-definite"),
        ({"sign": [1.0, 0.5]}, "sign must hold -1 and"),
        ({"sign": [1.0, 1.0, 1.0]}, "sign must have shape \\(2,\\)"),
        ({"ridge": [1.0, 0.0]}, "ridge must be positive. Got 0.0 in row 1"),
        ({"x0": [1.0, -1.0]}, "x0 must not be negative. Got -1.0 in row 1"),
        ({"x0": [1.0, np.inf]}, "x0 must hold finite numbers"),
    ],
    ids=["shape", "nan", "indefinite", "sign", "signs", "ridge", "negative", "infinite"],
)
def test_bad_input(change, words):
    arguments = {"gram": np.eye(2), "sign": [1.0, -1.0], "ridge": 0.5} | change
    with pytest.raises(ValueError, match=words):
        solve_nu_svm(**arguments)


def test_sweeps_come_first_only_for_many_rows(monkeypatch):
    gram, sign, ridge = ZOO["larger"]()
    monkeypatch.setattr(simplex_dual, "_SWEEP_ABOVE", 10_000)
    plain = solve_nu_svm(gram, sign, ridge)
    monkeypatch.undo()
    assert solve_nu_svm(gram, sign, ridge).objective == pytest.approx(plain.objective)
