"""The SVM dual with group caps against an interior-point method, the plain dual, closed forms."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import bagwise.solvers.svm._dual_search as dual_search
import bagwise.solvers.svm._grouped_dual_set as dual_set
from bagwise import _threads
from bagwise._threads import Abandoned
from bagwise.solvers import Status, solve_qp, solve_svm_dual
from bagwise.solvers.svm._grouped_dual import solve_grouped_svm_dual


class Problem(NamedTuple):
    gram: np.ndarray
    sign: np.ndarray
    group: np.ndarray
    cap: np.ndarray
    target: np.ndarray
    mask: np.ndarray
    X: np.ndarray


def _rbf(X, gamma=0.5):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))


def _linear(X):
    return X @ X.T


def _problem(n=60, n_groups=12, d=3, *, cap=1.0, kernel=_rbf, mask=1.0, shift=1.0, seed=0):
    """Draw rows in groups of random sizes; ``mask`` is the share of groups with the intercept."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, size=n)
    feels = (rng.random(n_groups) < mask)[group]
    sign = np.where(rng.random(n_groups) < 0.4, 1.0, -1.0)[group]
    sign = np.where(feels, sign, rng.choice([-1.0, 1.0], n))
    X = rng.normal(size=(n, d)) + shift * sign[:, None] / np.sqrt(d)
    caps = np.full(n_groups, cap)
    return Problem(kernel(X), sign, group, caps, np.ones(n), feels, X)


def _mil(cap=1.0, kernel=_rbf):
    """As in MI-SVM: a group for each negative bag, one row for each positive bag."""
    p = _problem(n=80, n_groups=10, kernel=kernel)
    group = np.r_[np.arange(20), 20 + np.arange(60) % 7]
    sign = np.where(np.arange(80) < 20, 1.0, -1.0)
    return p._replace(group=group, sign=sign, cap=np.full(27, cap))


def _rows(p, rows):
    parts = (part[rows] for part in (p.sign, p.group))
    return Problem(
        p.gram[np.ix_(rows, rows)], *parts, p.cap, p.target[rows], p.mask[rows], p.X[rows]
    )


def _one_positive():
    p = _problem(n=40, n_groups=6, cap=10.0)
    first = np.arange(40) == 17
    group = np.where(first, 6, p.group)
    return p._replace(sign=np.where(first, 1.0, -1.0), group=group, cap=np.full(7, 10.0))


def _zero_rows():
    p = _problem(kernel=_linear)
    X = np.where(np.arange(60)[:, None] % 2 == 0, 0.0, p.X)
    return p._replace(gram=X @ X.T, X=X)


def _group_caps():
    p = _problem(mask=0.7)
    rng = np.random.default_rng(4)
    return p._replace(cap=rng.exponential(size=12) * (rng.random(12) < 0.8))


def _targets():
    p = _problem(mask=0.6, cap=5.0)
    return p._replace(target=np.random.default_rng(5).normal(size=60))


ZOO: dict[str, Callable[[], Problem]] = {
    "random": _problem,
    "linear": lambda: _problem(kernel=_linear),
    "bags": _mil,
    "bags, tight": lambda: _mil(cap=0.01),
    "bags, loose": lambda: _mil(cap=1e4),
    "bags, linear": lambda: _mil(kernel=_linear),
    "singletons": lambda: _problem()._replace(
        group=np.arange(60), cap=np.ones(60), sign=np.where(np.arange(60) % 3, 1.0, -1.0)
    ),
    "two groups": lambda: _problem(n_groups=2, seed=1),
    "many empty groups": lambda: _problem(n_groups=100),
    "no intercept": lambda: _problem(mask=0.0),
    "some intercept": lambda: _problem(mask=0.5),
    "some intercept, linear": lambda: _problem(mask=0.5, kernel=_linear),
    "some intercept, loose": lambda: _problem(mask=0.5, cap=1e4),
    "no intercept, tight": lambda: _problem(mask=0.0, cap=0.05),
    "one sign": lambda: _problem()._replace(sign=np.ones(60)),
    "one positive": _one_positive,
    "duplicates": lambda: _rows(_problem(n=30), np.r_[np.arange(30), np.arange(30), np.arange(10)]),
    "zero rows": _zero_rows,
    "all zero": lambda: _zero_rows()._replace(gram=np.zeros((60, 60)), X=np.zeros((60, 3))),
    "tiny caps": lambda: _problem(cap=1e-6),
    "separable": lambda: _problem(cap=1e6, shift=8.0, kernel=_linear),
    "caps": _group_caps,
    "targets": _targets,
    "target 0": lambda: _problem()._replace(target=np.zeros(60)),
    "narrow": lambda: _problem(kernel=lambda X: _rbf(X, 50.0)),
    "wide": lambda: _problem(kernel=lambda X: _rbf(X, 0.05), cap=10.0),
}


def _solve(p, **options):
    return solve_grouped_svm_dual(
        p.gram, p.sign, p.group, p.cap, target=p.target, intercept=p.mask, **options
    )


def _membership(p):
    """Return the matrix that sums rows over groups."""
    n = len(p.sign)
    return sp.csr_array((np.ones(n), (p.group, np.arange(n))), shape=(len(p.cap), n))


def _interior_point(p):
    """Return the dual value and ``gram @ (sign * alpha)`` from a general convex solver."""
    Q = p.gram * np.multiply.outer(p.sign, p.sign)
    unit = 1.0 / max(p.gram.diagonal().mean(), 1e-6)
    scale = min(p.cap.max(), unit)  # the unit of alpha, so that the solver sees numbers near 1
    oracle = solve_qp(
        Q * scale,
        -p.target,
        _membership(p),
        p.cap / scale,
        sp.csr_array((p.sign * p.mask)[None]),
        [0.0],
        lower=0.0,
        tol=1e-11,
    )
    return -scale * oracle.objective, p.gram @ (p.sign * oracle.x * scale)


def _assert_optimal(p, result, tol=1e-6):
    """Check the optimality conditions and the certificate from their definitions."""
    alpha, b = result.x, result.intercept
    assert result.status is Status.CONVERGED
    assert (alpha >= 0).all()
    total = np.bincount(p.group, alpha, minlength=len(p.cap))
    assert (total <= p.cap * (1 + 1e-14)).all()
    beta = p.sign * alpha
    assert abs(beta[p.mask].sum()) <= 1e-13 * max(alpha.sum(), 1e-300)
    f = p.gram.astype(float) @ beta
    unit = alpha.sum() * max(1.0, np.abs(p.gram).max())
    np.testing.assert_allclose(result.decision, f + p.mask * b, atol=1e-13 * unit + 1e-13)
    hinge = p.target - p.sign * (f + p.mask * b)  # without the maximum with 0
    full = (total >= p.cap * (1 - 1e-14))[p.group]
    slack = np.full(len(p.cap), 0.0)
    np.maximum.at(slack, p.group, hinge)
    used = p.cap[p.group] > 0
    assert (hinge[used & ~full] <= tol).all()
    positive = alpha > 0
    assert (np.abs(hinge[positive & ~full]) <= tol).all()
    assert (hinge[positive] >= slack[p.group][positive] - tol).all()
    primal = 0.5 * beta @ f + p.cap @ slack
    dual = p.target @ alpha - 0.5 * beta @ f
    rounding = 1e-12 + 1e-15 * p.cap.sum()
    np.testing.assert_allclose(result.objective, primal, rtol=1e-9, atol=rounding)
    np.testing.assert_allclose(result.lower_bound, dual, rtol=1e-9, atol=rounding)
    assert result.residual <= tol
    assert -1e-13 * max(1.0, abs(primal)) <= result.gap
    assert result.relative_gap <= 1e-7
    assert (np.diff(result.history) <= 1e-12 * max(1.0, abs(dual))).all()
    assert len(result.gap_history) == len(result.history)


@pytest.mark.parametrize("name", ZOO)
def test_agrees_with_interior_point(name):
    p = ZOO[name]()
    result = _solve(p)
    _assert_optimal(p, result)
    value, f = _interior_point(p)
    np.testing.assert_allclose(result.lower_bound, value, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(result.decision - p.mask * result.intercept, f, atol=1e-6)


@pytest.mark.parametrize("mask", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_value_is_that_of_the_primal_problem(seed, mask):
    """Minimise over ``w``, ``b`` and one slack for each group, as the problem is stated."""
    p = _problem(n=14, n_groups=5, d=2, kernel=_linear, mask=mask, seed=seed, cap=0.7)
    p = p._replace(target=np.random.default_rng(seed).normal(1.0, 0.5, size=14))
    rows = np.hstack(
        [-p.sign[:, None] * p.X, -(p.sign * p.mask)[:, None], -_membership(p).T.toarray()]
    )
    P = np.diag([1.0, 1.0] + [0.0] * 6)
    q = np.r_[0.0, 0.0, 0.0, p.cap]
    # A bounded intercept, as nothing holds it where all rows have one sign.
    lower = np.r_[-np.inf, -np.inf, -100.0, np.zeros(5)]
    upper = np.r_[np.inf, np.inf, 100.0, np.full(5, np.inf)]
    oracle = solve_qp(P, q, rows, -p.target, lower=lower, upper=upper, tol=1e-10)
    result = _solve(p)
    np.testing.assert_allclose(result.objective, oracle.objective, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(p.X.T @ (p.sign * result.x), oracle.x[:2], atol=1e-5)


@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kernel", [_rbf, _linear], ids=["rbf", "linear"])
def test_groups_of_one_row_are_the_plain_dual(kernel, cost):
    p = _problem(n=80, n_groups=80, kernel=kernel, seed=3)
    costs = cost * np.random.default_rng(1).exponential(size=80)
    ours = solve_grouped_svm_dual(p.gram, p.sign, np.arange(80), costs)
    plain = solve_svm_dual(p.gram, p.sign, costs)
    np.testing.assert_allclose(ours.lower_bound, plain.lower_bound, rtol=1e-10)
    np.testing.assert_allclose(ours.decision, plain.decision, atol=1e-8)
    np.testing.assert_allclose(ours.intercept, plain.intercept, atol=1e-8)


@pytest.fixture
def small_working_sets(monkeypatch):
    """Make a few hundred rows a large problem."""
    monkeypatch.setattr(dual_search, "_WHOLE", 32)
    monkeypatch.setattr(dual_search, "_SMALLEST_SET", 24)
    monkeypatch.setattr(dual_search, "LARGEST_SET", 96)


@pytest.mark.parametrize("cap", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("mask", [0.0, 0.5, 1.0])
def test_working_sets_find_the_same_answer(small_working_sets, mask, cap):
    p = _problem(n=250, n_groups=40, cap=cap, mask=mask)
    result = _solve(p)
    _assert_optimal(p, result)
    value, f = _interior_point(p)
    np.testing.assert_allclose(result.lower_bound, value, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(result.decision - p.mask * result.intercept, f, atol=1e-6)


def _few_intercepts(cap, kernel):
    """As in reg-SVM: rows with the intercept are alone in their groups, and most have none."""
    p = _problem(n=90, n_groups=9, kernel=kernel, mask=0.0)
    alone = np.arange(90) < 20
    group = np.where(alone, 9 + np.arange(90), p.group)
    return p._replace(group=group, mask=alone, cap=np.full(29, cap))


@pytest.mark.parametrize("largest_free", [2000, 5])
@pytest.mark.parametrize("cap", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kernel", [_rbf, _linear], ids=["rbf", "linear"])
def test_moves_in_several_groups_at_once_find_the_same_answer(
    monkeypatch, kernel, cap, largest_free
):
    monkeypatch.setattr(dual_set, "_MANY", 0)
    monkeypatch.setattr(dual_search, "LARGEST_FREE", largest_free)
    p = _few_intercepts(cap, kernel)
    result = _solve(p, tol=1e-8)
    _assert_optimal(p, result)
    value, f = _interior_point(p)
    np.testing.assert_allclose(result.lower_bound, value, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(result.decision - p.mask * result.intercept, f, atol=1e-6)


def test_problem_larger_than_a_working_set():
    p = _problem(n=1500, n_groups=150, d=8, cap=10.0, seed=1)
    result = _solve(p)
    _assert_optimal(p, result)
    assert result.residual <= 1e-10
    order = np.random.default_rng(0).permutation(1500)
    shuffled = _solve(_rows(p, order))
    np.testing.assert_allclose(shuffled.decision, result.decision[order], atol=1e-8)


def test_many_free_rows_are_left_to_plain_steps(monkeypatch):
    monkeypatch.setattr(dual_search, "LARGEST_FREE", 5)
    p = _mil(cap=3.0)
    _assert_optimal(p, _solve(p, tol=1e-7), tol=1e-7)


def test_is_exact_whatever_the_tolerance():
    p = _mil(cap=3.0)
    loose, tight = _solve(p, tol=1e-3), _solve(p, tol=1e-9)
    assert tight.residual <= 1e-12
    np.testing.assert_allclose(loose.decision, tight.decision, atol=1e-6)


@pytest.mark.parametrize("name", ZOO)
def test_warm_start_ends_where_cold_start_does(name):
    p = ZOO[name]()
    cold = _solve(p)
    start = np.random.default_rng(2).normal(size=len(p.sign)) * p.cap[p.group]
    warm = _solve(p, alpha0=start)
    np.testing.assert_allclose(warm.decision, cold.decision, atol=1e-7)
    again = _solve(p, alpha0=cold.x)
    assert again.n_iter <= cold.n_iter
    np.testing.assert_allclose(again.decision, cold.decision, atol=1e-8)


def test_warm_start_saves_steps():
    p = _mil(cap=3.0)
    cold = _solve(p)
    near = _solve(p._replace(cap=1.02 * p.cap))
    warm = _solve(p, alpha0=near.x)
    assert warm.n_iter < cold.n_iter / 2
    np.testing.assert_allclose(warm.decision, cold.decision, atol=1e-8)


@pytest.mark.parametrize("n", [60, 1200])
def test_rows_without_cap_take_no_part(n):
    p = _problem(n=n, n_groups=n // 5)
    off = np.arange(n) % 3 == 0
    # Rows that are off may share a group, whatever their signs.
    group = np.where(off, len(p.cap), p.group)
    result = _solve(p._replace(group=group, cap=np.r_[p.cap, 0.0]))
    fewer = _solve(_rows(p, np.flatnonzero(~off)))
    assert not result.x[off].any()
    np.testing.assert_allclose(result.decision[~off], fewer.decision, atol=1e-8)
    f = p.gram @ (p.sign * result.x) + result.intercept
    np.testing.assert_allclose(result.decision, f, atol=1e-12)


def test_nothing_to_do():
    result = solve_grouped_svm_dual(np.eye(3), [1, -1, 1], [0, 1, 0], 0.0)
    assert result.status is Status.CONVERGED
    assert not result.x.any()
    assert result.intercept == result.objective == result.lower_bound == result.residual == 0.0


def test_interval_of_intercepts():
    """With no kernel at all, the losses alone decide where the intercept lies."""
    gram = np.zeros((4, 4))
    result = solve_grouped_svm_dual(gram, [1, 1, -1, -1], [0, 0, 1, 1], 1.0)
    assert result.intercept == 0.0  # max(0, 1 - b) + max(0, 1 + b) is 2 on [-1, 1]
    assert result.objective == 2.0
    moved = solve_grouped_svm_dual(
        gram, [1, 1, -1, -1], [0, 0, 1, 1], 1.0, target=[2.0, 0.5, 1.0, 0.0]
    )
    assert moved.intercept == 0.5  # max(0, 2 - b) + max(0, 1 + b) is 3 on [-1, 2]
    assert moved.objective == 3.0
    heavier = solve_grouped_svm_dual(gram, [1, 1, -1, -1], [0, 0, 1, 1], [2.0, 1.0])
    assert heavier.intercept == 1.0
    one_sided = solve_grouped_svm_dual(gram, [1, 1, 1, 1], [0, 0, 1, 1], 1.0, target=[1, 2, 0, 3])
    assert one_sided.intercept == 3.0
    assert one_sided.objective == 0.0


def test_one_full_group_in_closed_form():
    """Two orthogonal rows share the cap 1 of one group: half each, as both want to grow."""
    result = solve_grouped_svm_dual(np.eye(2), [1, -1], [0, 0], 1.0, intercept=[0, 0])
    np.testing.assert_allclose(result.x, 0.5)
    np.testing.assert_allclose(result.decision, [0.5, -0.5])
    np.testing.assert_allclose(result.objective, 0.75)  # 1/4 + max(1/2, 1/2)
    uneven = solve_grouped_svm_dual(np.diag([1.0, 3.0]), [1, 1], [0, 0], 0.4, intercept=[0, 0])
    np.testing.assert_allclose(uneven.x, [0.3, 0.1])


def test_a_repeated_row_in_its_group_changes_nothing():
    p = _mil()
    twice = _rows(p, np.r_[np.arange(80), np.arange(30, 60)])
    np.testing.assert_allclose(_solve(twice).decision[:80], _solve(p).decision, atol=1e-8)


def test_single_precision_gram():
    p = _mil(cap=10.0)
    single = p._replace(gram=p.gram.astype(np.float32))
    result = _solve(single)
    _assert_optimal(single, result)
    same_numbers = _solve(p._replace(gram=single.gram.astype(np.float64)))
    np.testing.assert_allclose(result.decision, same_numbers.decision, atol=1e-7)


def test_gram_in_any_layout_is_left_alone():
    p = _mil()
    expected = _solve(p)
    for gram in (np.asfortranarray(p.gram), np.repeat(p.gram, 2, axis=1)[:, ::2], p.gram.copy()):
        gram.flags.writeable = False
        np.testing.assert_allclose(
            _solve(p._replace(gram=gram)).decision, expected.decision, atol=1e-10
        )


def test_out_of_steps():
    result = _solve(_mil(), max_iter=5)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 5
    assert result.residual > 1e-6
    assert result.gap > 0


def test_can_be_cut_between_slices(monkeypatch):
    calls = []

    def cut():
        calls.append(None)
        if len(calls) == 5:
            raise Abandoned

    monkeypatch.setattr(dual_search, "checkpoint", cut)
    monkeypatch.setattr(_threads, "_SLICE_SECONDS", 1e-5)
    with pytest.raises(Abandoned):
        _solve(_mil(cap=100.0))
    assert len(calls) == 5


BAD = {
    "gram is not square": ({"gram": np.ones((3, 4))}, "gram must be a square matrix"),
    "gram has NaN": ({"gram": np.full((4, 4), np.nan)}, "gram must hold finite"),
    "sign of 2": ({"sign": [1, 2, -1, -1]}, "sign must hold -1 and [+]1"),
    "sign is short": ({"sign": [1, -1]}, "sign must have shape \\(4,\\)"),
    "group of floats": ({"group": [0.0, 0.0, 1.0, 1.0]}, "group must hold one integer"),
    "group is short": ({"group": [0, 1]}, "group must hold one integer"),
    "group without cap": ({"group": [0, 0, 1, 2]}, "group must lie between 0 and 1"),
    "negative group": ({"group": [0, 0, 1, -1]}, "group must lie between 0 and 1"),
    "negative cap": ({"cap": [1.0, -1.0]}, "cap must be finite and not negative. Got -1.0"),
    "infinite cap": ({"cap": [np.inf, 1.0]}, "cap must be finite"),
    "matrix of caps": ({"cap": np.ones((2, 2))}, "cap must be a number"),
    "mixed signs": ({"group": [0, 1, 1, 1]}, r"Got sign \* intercept of \[-1, 1\] in group 1"),
    "mixed intercept": ({"intercept": [1, 0, 1, 1]}, r"of \[0, 1\] in group 0"),
    "intercept of 2": ({"intercept": [2, 0, 1, 1]}, "intercept must hold 0 and 1"),
    "target has NaN": ({"target": [1, 1, 1, np.nan]}, "target must hold finite"),
    "alpha0 is short": ({"alpha0": [1.0]}, "alpha0 must have shape"),
    "tol is NaN": ({"tol": np.nan}, "tol of solve_grouped_svm_dual must be a number"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    change, message = BAD[name]
    arguments = {"gram": np.eye(4), "sign": [1, 1, -1, -1], "group": [0, 0, 1, 1]}
    with pytest.raises(ValueError, match=message):
        solve_grouped_svm_dual(**{**arguments, "cap": [1.0, 1.0], **change})


def test_nan_is_noticed_without_the_check():
    gram = np.eye(4)
    gram[0, 3] = gram[3, 0] = np.nan
    with pytest.raises(ValueError, match="gram must hold finite"):
        solve_grouped_svm_dual(gram, [1, 1, -1, -1], [0, 0, 1, 1], 1.0, check_finite=False)


def test_rows_that_all_tie_end():
    """With a kernel of zeros every row violates alike, and a set of some may hold one sign only."""
    n = 2200
    result = solve_grouped_svm_dual(
        np.zeros((n, n)), np.repeat([1.0, -1.0], n // 2), np.arange(n), np.ones(n)
    )
    assert result.converged
    assert result.objective == pytest.approx(n)
