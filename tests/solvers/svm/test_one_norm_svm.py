"""The 1-norm SVM against HiGHS on the whole problem, clarabel, closed forms and its own dual."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from bagwise.solvers import Status, solve_qp
from bagwise.solvers.svm import _one_norm_svm
from bagwise.solvers.svm._one_norm_svm import solve_one_norm_svm
from bagwise.solvers.svm._one_norm_svm_kernels import independent_block


def _normal(rng, n, p):
    return rng.normal(size=(n, p))


def _binary(rng, n, p):
    """Many kinks coincide."""
    return rng.integers(0, 2, size=(n, p)).astype(float)


def _sparse(rng, n, p):
    return rng.integers(-1, 2, size=(n, p)) * (rng.random((n, p)) < 0.1)


def _duplicates(rng, n, p):
    A = np.repeat(rng.normal(size=(n, p // 3)), 3, axis=0)[:n]
    return np.hstack([A, A, -A, np.zeros((n, 2)), np.ones((n, 1))])


def _scales(rng, n, p):
    return rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-3, 3, size=p)


def _kernel(rng, n, p):
    """Nearly singular."""
    X = rng.normal(size=(n, 3))
    return np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(axis=-1))


KINDS = [_normal, _binary, _sparse, _duplicates, _scales, _kernel]


def _problem(kind, seed, n=45, p=70):
    rng = np.random.default_rng(seed)
    A = kind(rng, n, p)
    sign = np.where(A[:, 0] + 0.5 * rng.normal(size=n) > np.median(A[:, 0]), 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    cost = rng.exponential(size=n) * (rng.random(n) < 0.9) * 10.0 ** rng.uniform(-1, 1)
    penalty = rng.uniform(0.5, 2.0, size=A.shape[1]) * 10.0 ** rng.uniform(-1, 0.5)
    return A, sign, cost, penalty


def _linear_program(A, sign, cost, penalty):
    n, p = A.shape
    penalty = np.broadcast_to(penalty, (p,))
    signed = sign[:, None] * A
    rows = np.hstack([-signed, signed, -sign[:, None], -np.eye(n)])
    c = np.concatenate([penalty, penalty, [0.0], np.broadcast_to(cost, (n,))])
    return c, rows, -np.ones(n), np.append(np.zeros(2 * p), -np.inf).tolist() + [0.0] * n


def _optimum(A, sign, cost, penalty):
    c, rows, right, lower = _linear_program(A, sign, cost, penalty)
    solution = linprog(c, rows, right, bounds=[(low, None) for low in lower])
    assert solution.status == 0
    return solution.fun


def _value(A, sign, cost, penalty, w, b):
    penalty, cost = np.broadcast_to(penalty, w.shape), np.broadcast_to(cost, sign.shape)
    return penalty @ np.abs(w) + cost @ np.maximum(1.0 - sign * (A @ w + b), 0.0)


def _assert_certified(A, sign, cost, penalty, result, tol=1e-8):
    cost, penalty = np.broadcast_to(cost, sign.shape), np.broadcast_to(penalty, A.shape[1])
    size = max(1.0, result.objective)
    assert result.status is Status.CONVERGED
    value = _value(A, sign, cost, penalty, result.x, result.intercept)
    assert result.objective == pytest.approx(value, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(result.decision, A @ result.x + result.intercept, atol=1e-7)
    assert (result.alpha >= 0.0).all()
    assert (result.alpha <= cost).all()
    assert abs(sign @ result.alpha) <= 1e-10 * size
    assert (np.abs(A.T @ (sign * result.alpha)) <= penalty * (1.0 + 1e-7)).all()
    assert result.lower_bound == pytest.approx(result.alpha.sum())
    assert -1e-10 * size <= result.gap <= tol * size
    assert result.residual == pytest.approx(result.gap / size)
    assert (np.diff(result.history) <= 0.0).all()
    assert result.history[-1] == result.objective
    assert np.count_nonzero(result.x) <= len(result.columns) <= len(result.rows)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_one_linear_program(kind, seed):
    problem = _problem(kind, seed)
    A, sign, cost, penalty = problem
    result = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    _assert_certified(*problem, result)
    assert result.objective == pytest.approx(_optimum(*problem), rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_few_columns_and_rows_at_a_time(kind, seed, monkeypatch):
    for name, number in [("_FIRST_ROWS", 6), ("_NEW_ROWS", 3), ("_NEW_COLUMNS", 4), ("_STEPS", 5)]:
        monkeypatch.setattr(_one_norm_svm, name, number)
    problem = _problem(kind, 100 + seed)
    A, sign, cost, penalty = problem
    result = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    _assert_certified(*problem, result)
    assert result.objective == pytest.approx(_optimum(*problem), rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_interior_point(seed):
    problem = _problem(_normal, 50 + seed)
    A, sign, cost, penalty = problem
    c, rows, right, lower = _linear_program(*problem)
    oracle = solve_qp(None, c, rows, right, lower=np.array(lower))
    result = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    assert result.objective == pytest.approx(oracle.objective, rel=1e-6)


@pytest.mark.parametrize("shape", [(900, 30), (30, 900), (1500, 1)])
def test_long_and_wide(shape):
    rng = np.random.default_rng(3)
    A = rng.normal(size=shape)
    sign = np.where(A[:, 0] + rng.normal(size=len(A)) > 0, 1.0, -1.0)
    result = solve_one_norm_svm(A, sign, 0.5, penalty=2.0)
    _assert_certified(A, sign, 0.5, 2.0, result)
    assert result.objective == pytest.approx(_optimum(A, sign, 0.5, 2.0), rel=1e-8)


def test_optimality_conditions():
    """Multipliers are 0 beyond the margin, the cost inside it; prices meet used penalties."""
    A, sign, cost, penalty = _problem(_normal, 8)
    result = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    margin = sign * result.decision
    np.testing.assert_allclose(result.alpha[margin > 1.0 + 1e-7], 0.0, atol=1e-8)
    inside = margin < 1.0 - 1e-7
    np.testing.assert_allclose(result.alpha[inside], cost[inside], rtol=1e-7)
    np.testing.assert_allclose(margin[result.rows], 1.0, atol=1e-9)
    used = np.flatnonzero(result.x)
    price = A.T @ (sign * result.alpha)
    np.testing.assert_allclose(price[used], penalty[used] * np.sign(result.x[used]), rtol=1e-7)


def test_separable_closed_form():
    """Between -1 and 3 the cheapest slope is 1/2, through the middle; column 1 is worse."""
    A = np.array([[-1.0, 0.1], [3.0, 0.2], [5.0, 0.9], [-2.0, -0.5]])
    sign = np.array([-1.0, 1.0, 1.0, -1.0])
    result = solve_one_norm_svm(A, sign, 100.0, penalty=3.0)
    np.testing.assert_allclose(result.x, [0.5, 0.0], atol=1e-12)
    assert result.intercept == pytest.approx(-0.5)
    assert result.objective == pytest.approx(1.5)
    assert result.lower_bound == pytest.approx(1.5)
    np.testing.assert_array_equal(result.columns, [0])
    np.testing.assert_array_equal(np.sort(result.rows), [0, 1])


@pytest.mark.parametrize(("weight", "intercept"), [(1.0, -1.0), (1.5, 0.0), (9.0, 1.0)])
def test_penalty_too_large_for_any_column(weight, intercept):
    """Two positive rows against three negative ones: a constant, and the lighter sign pays."""
    A = np.random.default_rng(0).normal(size=(5, 7))
    sign = np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    cost = np.where(sign > 0, weight, 1.0)
    result = solve_one_norm_svm(A, sign, cost, penalty=1e4)
    np.testing.assert_array_equal(result.x, np.zeros(7))
    assert result.intercept == intercept
    assert result.objective == pytest.approx(2.0 * min(2.0 * weight, 3.0), rel=1e-15)
    assert result.lower_bound == pytest.approx(result.objective, rel=1e-15)
    np.testing.assert_array_equal(result.decision, np.full(5, intercept))
    assert result.n_iter == 0


def test_column_enters_at_its_price():
    """With as many rows of each sign the zero solution holds down to the dearest column."""
    rng = np.random.default_rng(1)
    A, sign = rng.normal(size=(40, 6)), np.repeat([1.0, -1.0], 20)
    threshold = np.abs(A.T @ sign).max()
    above = solve_one_norm_svm(A, sign, 1.0, penalty=threshold * 1.0001)
    below = solve_one_norm_svm(A, sign, 1.0, penalty=threshold * 0.999)
    assert not above.x.any()
    assert np.flatnonzero(below.x).tolist() == [np.abs(A.T @ sign).argmax()]
    assert below.objective < above.objective == 40.0


@pytest.mark.parametrize("s", [-1.0, 1.0])
def test_one_sign(s):
    A = np.random.default_rng(0).normal(size=(4, 3))
    result = solve_one_norm_svm(A, np.full(4, s), 1.0)
    assert result.status is Status.CONVERGED
    assert result.objective == result.lower_bound == 0.0
    assert result.intercept == s
    assert not result.x.any()
    # rows of the other sign that cost nothing change nothing
    other = solve_one_norm_svm(A, [s, s, -s, s], [1.0, 1.0, 0.0, 1.0])
    assert (other.objective, other.intercept) == (0.0, s)


def test_nothing_costs_and_no_columns():
    result = solve_one_norm_svm(np.ones((3, 2)), [1, -1, 1], 0.0)
    assert (result.objective, result.lower_bound, result.intercept) == (0.0, 0.0, 0.0)
    result = solve_one_norm_svm(np.ones((3, 0)), [1, -1, 1], 1.0)
    assert (result.objective, result.lower_bound, result.intercept) == (2.0, 2.0, 1.0)
    result = solve_one_norm_svm(np.zeros((3, 5)), [1, -1, 1], 1.0)
    assert (result.objective, result.lower_bound, result.intercept) == (2.0, 2.0, 1.0)


def test_weight_equals_repetition():
    A, sign, _, penalty = _problem(_normal, 5)
    weight = np.random.default_rng(5).integers(0, 4, size=len(A))
    weighted = solve_one_norm_svm(A, sign, 0.3 * weight, penalty=penalty)
    repeated = solve_one_norm_svm(
        np.repeat(A, weight, axis=0), np.repeat(sign, weight), 0.3, penalty=penalty
    )
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)
    np.testing.assert_allclose(weighted.x, repeated.x, atol=1e-8)  # unique in general position


def test_rows_of_cost_zero_take_no_part():
    A, sign, cost, penalty = _problem(_normal, 6)
    part = cost > 0
    result = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    alone = solve_one_norm_svm(A[part], sign[part], cost[part], penalty=penalty)
    assert 0 < part.sum() < len(A)
    np.testing.assert_allclose(result.x, alone.x, atol=1e-9)
    np.testing.assert_allclose(result.decision[part], alone.decision, atol=1e-9)
    assert not result.alpha[~part].any()


@pytest.mark.parametrize("kind", KINDS)
def test_order_does_not_change_the_objective(kind):
    A, sign, cost, penalty = _problem(kind, 9)
    rng = np.random.default_rng(9)
    rows, columns = rng.permutation(A.shape[0]), rng.permutation(A.shape[1])
    one = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    other = solve_one_norm_svm(
        A[rows][:, columns], sign[rows], cost[rows], penalty=penalty[columns]
    )
    flipped = solve_one_norm_svm(-A, -sign, cost, penalty=penalty)
    assert one.objective == pytest.approx(other.objective, rel=1e-8)
    assert one.objective == pytest.approx(flipped.objective, rel=1e-8)


def test_same_input_same_bits():
    A, sign, cost, penalty = _problem(_binary, 2)
    one, other = (solve_one_norm_svm(A, sign, cost, penalty=penalty) for _ in range(2))
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.alpha, other.alpha)


class _Hidden:
    """A matrix that notes which of its columns were looked at."""

    def __init__(self, A):
        self.A, (self.n, self.d), self.seen = A, A.shape, set()

    def combine(self, coef):
        return self.A.T @ coef

    def columns(self, index):
        self.seen.update(index.tolist())
        return self.A[:, index]


def test_columns_that_are_not_stored():
    A, sign, cost, penalty = _problem(_normal, 4, n=30, p=2000)
    source = _Hidden(A)
    hidden = solve_one_norm_svm(source, sign, cost, penalty=penalty)
    plain = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    np.testing.assert_allclose(hidden.x, plain.x, atol=1e-10)
    assert set(np.flatnonzero(hidden.x).tolist()) <= source.seen
    assert len(source.seen) < 600


def test_sparse_and_single_precision():
    A, sign, cost, penalty = _problem(_sparse, 3)
    dense = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    for same in (sp.csr_array(A), sp.coo_matrix(A), A.astype(np.float32), np.asfortranarray(A)):
        result = solve_one_norm_svm(same, sign, cost, penalty=penalty)
        assert result.objective == pytest.approx(dense.objective, rel=1e-12)
    single = np.random.default_rng(0).normal(size=A.shape).astype(np.float32)
    result = solve_one_norm_svm(single, sign, cost, penalty=penalty)
    _assert_certified(single.astype(float), sign, cost, penalty, result)


def test_start_at_the_solution():
    A, sign, cost, penalty = _problem(_normal, 7)
    cold = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    warm = solve_one_norm_svm(A, sign, cost, penalty=penalty, start=cold)
    assert cold.n_iter > 10
    assert warm.n_iter == 0
    assert warm.objective == pytest.approx(cold.objective, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_start_from_a_similar_problem(kind, monkeypatch):
    monkeypatch.setattr(_one_norm_svm, "_FIRST_ROWS", 20)
    A, sign, cost, penalty = _problem(kind, 11)
    first = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    changed = A.copy()
    changed[::4] = A[1]  # of the old basis, rows that have become equal cannot all remain
    cost = np.roll(cost, 1)
    warm = solve_one_norm_svm(changed, sign, cost, penalty=penalty, start=first)
    _assert_certified(changed, sign, cost, penalty, warm)
    assert warm.objective == pytest.approx(_optimum(changed, sign, cost, penalty), rel=1e-7)


def test_start_along_a_grid_of_penalties():
    A, sign, cost, _ = _problem(_normal, 12)
    result, steps, cold_steps = None, 0, 0
    for penalty in np.geomspace(3.0, 0.1, 8):
        result = solve_one_norm_svm(A, sign, cost, penalty=penalty, start=result)
        cold = solve_one_norm_svm(A, sign, cost, penalty=penalty)
        assert result.objective == pytest.approx(cold.objective, rel=1e-9)
        steps, cold_steps = steps + result.n_iter, cold_steps + cold.n_iter
    assert steps < cold_steps


@pytest.mark.parametrize("budget", [1, 5, 20])
def test_budget_is_kept_and_the_bound_holds(budget):
    A, sign, cost, penalty = _problem(_normal, 13)
    result = solve_one_norm_svm(A, sign, cost, penalty=penalty, max_iter=budget)
    best = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == budget
    assert result.lower_bound <= best.objective < result.objective
    value = _value(A, sign, cost, penalty, result.x, result.intercept)
    assert result.objective == pytest.approx(value)


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_scale_of_costs_and_penalties(factor):
    A, sign, cost, penalty = _problem(_normal, 14)
    one = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    other = solve_one_norm_svm(A, sign, factor * cost, penalty=factor * penalty)
    assert other.objective == pytest.approx(factor * one.objective, rel=1e-8)
    np.testing.assert_allclose(other.x, one.x, atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": np.ones(3)}, r"A must be a matrix of numbers\. Got shape \(3,\)"),
        ({"A": np.full((3, 2), "a")}, "A must be a matrix of numbers"),
        ({"A": np.array([[1.0, np.nan], [1, 2], [2, 3]])}, r"A must be finite\. Column 1"),
        ({"sign": [1, 0, -1]}, r"sign must hold -1 and \+1 only\. Got \[-1\.  0\.  1\.\]"),
        ({"sign": [1, -1]}, "sign must have shape \\(3,\\)"),
        ({"cost": [1, -2, 1]}, r"cost must not be negative\. Got -2\.0 in row 1"),
        ({"cost": np.inf}, "cost must hold finite"),
        ({"tol": np.nan}, "tol of solve_one_norm_svm must be a number"),
        ({"penalty": [1.0, 0.0]}, r"penalty must be greater than 0\. Got 0\.0 for column 1"),
        ({"penalty": np.ones(3)}, "penalty must have shape \\(2,\\)"),
    ],
)
def test_errors(arguments, message):
    good = {"A": np.eye(3, 2), "sign": [1, 1, -1], "cost": 1.0, "penalty": 1e-3}
    with pytest.raises(ValueError, match=message):
        solve_one_norm_svm(**(good | arguments))


def test_start_where_no_column_is_worth_its_penalty_any_more():
    A, sign, cost, penalty = _problem(_normal, 12)
    first = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    assert first.x.any()
    mass = {s: cost[sign == s].sum() for s in (-1.0, 1.0)}
    warm = solve_one_norm_svm(A, sign, cost, penalty=1e6, start=first)
    assert not warm.x.any()
    assert warm.intercept == max(mass, key=mass.get)
    assert warm.objective == pytest.approx(2.0 * min(mass.values()))
    assert warm.lower_bound == pytest.approx(warm.objective)


@pytest.mark.parametrize("n_columns", [2, 3])
def test_an_odd_and_an_even_number_of_rows_of_the_tableau(n_columns):
    A, sign, cost, penalty = _problem(_normal, 13)
    A, penalty = A[:, :n_columns], 0.1 * np.ones(n_columns)
    result = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    assert result.x.all()
    assert result.objective == pytest.approx(_optimum(A, sign, cost, penalty), rel=1e-9)


def test_a_start_that_is_worse_than_no_weights_is_not_taken():
    A, sign, cost, penalty = _problem(_normal, 0)
    start = solve_one_norm_svm(A[::-1], sign, 1e3 * cost, penalty=penalty)
    columns, rows = start.columns, start.rows
    edge = np.append(A[np.ix_(rows, columns)], np.ones((len(rows), 1)), axis=1)
    *weights, b = np.linalg.solve(edge, sign[rows])  # of the same basis in the new problem
    w = np.zeros(A.shape[1])
    w[columns] = weights
    constant = np.sign(sign @ cost)
    assert _value(A, sign, cost, penalty, w, b) > _value(A, sign, cost, penalty, 0.0 * w, constant)
    cold = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    warm = solve_one_norm_svm(A, sign, cost, penalty=penalty, start=start)
    assert warm.n_iter == cold.n_iter
    _assert_certified(A, sign, cost, penalty, warm)


def test_columns_join_where_nothing_is_left_to_gain(monkeypatch):
    A, sign, cost, penalty = _problem(_normal, 1)
    monkeypatch.setattr(_one_norm_svm, "_NEW_COLUMNS", 4)
    monkeypatch.setattr(_one_norm_svm, "_STEPS", 1)
    search = _one_norm_svm._Search(_one_norm_svm._Problem(A, sign, cost, penalty), 1e-6, 1000)
    search._begin(None, search.problem.price(search.problem.feasible(cost)))
    for _ in range(20):
        before = len(search.index)
        _, optimal = search._steps(1)
        joined, _ = search._evaluate(optimal=optimal)
        assert optimal or (not joined and len(search.index) == before)


def test_start_of_another_shape():
    A, sign, cost, penalty = _problem(_normal, 15)
    start = solve_one_norm_svm(A, sign, cost, penalty=penalty)
    with pytest.raises(ValueError, match=r"start must be of shape \(40, 70\). Got \(45, 70\)"):
        solve_one_norm_svm(A[:40], sign[:40], cost[:40], penalty=penalty, start=start)


def test_independent_block():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(9, 4)) @ rng.normal(size=(4, 12))
    rows, columns = independent_block(matrix.copy(), 1e-9)
    assert len(rows) == len(columns) == 4
    assert np.linalg.cond(matrix[np.ix_(rows, columns)]) < 1e4
    rows, columns = independent_block(np.zeros((3, 5)), 1e-9)
    assert len(rows) == len(columns) == 0
