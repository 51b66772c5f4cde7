"""Linear machines by passes, beside a conic programme, on many costs and awkward rows."""

import weakref
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise import Bags
from bagwise.solvers import (
    PassRows,
    PassStart,
    Status,
    solve_qp,
    solve_svm_by_passes,
    solve_svm_dual,
)
from bagwise.solvers.svm import (
    _pass_svm_bounds,
    _pass_svm_coordinates,
    _pass_svm_search,
    _pass_svm_sets,
    _pass_svm_smoothing,
)
from bagwise.solvers.svm._coordinate_descent import CoordinateDescent

KINDS = ("plain", "single", "csr", "twice", "constant", "wide", "rare")
COSTS = (1e-3, 0.1, 1.0, 100.0, 1e4)


def make(kind):
    """Return rows and signs; many of the rows overlap, as where instances inherit labels."""
    rng = np.random.default_rng(3)
    n, d = (150, 200) if kind == "wide" else (500, 8)
    X = rng.normal(size=(n, d))
    sign = np.where(X[:, 0] + rng.normal(size=n) > (2.0 if kind == "rare" else 0.3), 1.0, -1.0)
    if kind == "single":
        X = X.astype(np.float32)
    elif kind == "csr":
        X = sp.csr_array(X * (rng.random(X.shape) < 0.4))
    elif kind == "twice":
        X[n // 2 :] = X[: n // 2]
        sign[n // 2 :] = sign[: n // 2]
    elif kind == "constant":
        X[:, 1:3] = 5.0, 0.0
    return X, sign


def rows_of(X):
    return PassRows(Bags(X, np.append(np.arange(0, X.shape[0], 40), X.shape[0])))


def objective(X, sign, C, w, b):
    return 0.5 * w @ w + C * np.maximum(1.0 - sign * (X @ w + b), 0.0).sum()


@pytest.fixture(
    params=["usual", "memory", "smoothing", "small sets", "narrow sets", "pools", "coordinates"]
)
def way(request, monkeypatch):
    """Send small problems the ways of large ones."""
    if request.param == "memory":
        monkeypatch.setattr(_pass_svm_search, "_MANY_FEATURES", 1)
        monkeypatch.setattr(_pass_svm_search, "_FEW_ROWS", 100)
        monkeypatch.setattr(_pass_svm_search, "_CHEAP_PASSES", 0)
        monkeypatch.setattr(_pass_svm_search, "_SETS", 0)
    elif request.param != "usual":
        monkeypatch.setattr(_pass_svm_sets, "_SET", 40)
        monkeypatch.setattr(_pass_svm_sets, "_FEWEST", 10)
        monkeypatch.setattr(_pass_svm_bounds, "_SMALLEST_POOL", 60)
        monkeypatch.setattr(_pass_svm_sets, "MOST_SUPPORT", 200)
        monkeypatch.setattr(_pass_svm_search, "MOST_SUPPORT", 200)
        monkeypatch.setattr(_pass_svm_smoothing, "_SMALLEST_SAMPLE", 40)
    if request.param == "small sets":
        monkeypatch.setattr(_pass_svm_sets, "_NARROW", 0)
    if request.param in ("smoothing", "pools", "coordinates"):
        monkeypatch.setattr(_pass_svm_search, "_SETS", 0)
    if request.param == "pools":
        monkeypatch.setattr(_pass_svm_bounds, "_SMALLEST_POOL", 200)
        monkeypatch.setattr(_pass_svm_search, "_ROOM", 0)
    elif request.param == "coordinates":
        monkeypatch.setattr(_pass_svm_search, "_WIDE", 1)
        monkeypatch.setattr(_pass_svm_bounds, "_POOL_VALUES", 1000)
        monkeypatch.setattr(_pass_svm_coordinates, "_RUN", 10)
        monkeypatch.setattr(_pass_svm_search, "_ROOM", np.inf)
    elif request.param == "smoothing":
        monkeypatch.setattr(_pass_svm_search, "_ROOM", np.inf)
    return request.param


@cache
def optimum(kind, C):
    """Return the least objective, by clarabel's interior points; in units of C, for its sake."""
    X, sign = make(kind)
    X = X.toarray() if sp.issparse(X) else X.astype(float)
    (n, d), unit = X.shape, max(C, 1.0)
    margins = sign[:, None] * np.hstack([X, np.ones((n, 1))])
    quadratic = sp.diags_array(np.repeat([1.0 / unit, 0.0], [d, n + 1]))
    linear = np.repeat([0.0, C / unit], [d + 1, n])
    rows = sp.hstack([-margins, -sp.eye_array(n)], format="csr")
    low = np.repeat([-np.inf, 0.0], [d + 1, n])
    found = solve_qp(quadratic, linear, rows, -np.ones(n), lower=low, tol=1e-8)
    return unit * found.objective


@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_lies_between_the_bounds(kind, way):
    X, sign = make(kind)
    for C in COSTS if way == "usual" else COSTS[::2]:
        if way in ("smoothing", "pools") and kind == "wide" and C > 1.0:
            continue  # the rows can be separated: a matter for working sets
        best = optimum(kind, C)
        result = solve_svm_by_passes(rows_of(X), sign, C)
        assert result.converged, (C, result.residual)
        assert result.gap <= 1e-3 * result.objective
        found = objective(X, sign, C, result.x, result.intercept)
        assert result.objective == pytest.approx(found, rel=1e-5 if kind == "single" else 1e-9)
        assert result.lower_bound <= best * (1 + 1e-5)
        assert best * (1 - 1e-5) <= result.objective <= best * (1 + 1e-3)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_bounds_hold_at_every_early_stop(C, way):
    X, sign = make("plain")
    best = solve_svm_by_passes(rows_of(X), sign, C, tol=1e-6).objective
    for passes in range(12):
        result = solve_svm_by_passes(rows_of(X), sign, C, tol=1e-6, max_iter=passes)
        assert result.n_iter <= passes
        assert result.lower_bound <= best * (1 + 1e-9)
        assert result.objective >= best * (1 - 1e-6)


@pytest.mark.parametrize("n", [1800, 2400])
def test_rows_that_are_few_beside_their_features_are_solved_in_memory(n, monkeypatch):
    """Of noise nearly all rows fall short: Newton steps on samples and pools get nowhere."""
    rng = np.random.default_rng(0)
    X, sign = rng.normal(size=(n, 620)).astype(np.float32), np.where(np.arange(n) % 4, -1.0, 1.0)
    copied, take = [], PassRows.take
    monkeypatch.setattr(
        PassRows, "take", lambda rows, some: copied.append(len(some)) or take(rows, some)
    )
    for C in (1e-2, 1e3):
        found = solve_svm_by_passes(rows_of(X), sign, C)
        assert found.status is Status.CONVERGED
        assert 0.0 <= found.objective - found.lower_bound <= 1e-3 * found.objective
        assert found.n_iter <= _pass_svm_search._CHEAP_PASSES + 8
        x, b = found.x, found.intercept
        assert found.objective == pytest.approx(objective(X, sign, C, x, b), rel=1e-6)
    assert n in copied
    monkeypatch.setattr(_pass_svm_bounds, "_POOL_VALUES", 620 * (n - 2))  # not all may be
    copied.clear()
    solve_svm_by_passes(rows_of(X), sign, 1e-2)
    assert n not in copied


def test_a_set_on_which_steps_are_slow_is_left(monkeypatch):
    """About twice as many rows as features, of noise, are nearly separated by large costs."""
    steps, solve = [], _pass_svm_sets.solve_svm_dual

    def counted(gram, *terms, **settings):
        solved = solve(gram, *terms, **settings)
        steps.append(solved.n_iter / len(gram))
        return solved

    monkeypatch.setattr(_pass_svm_sets, "solve_svm_dual", counted)
    rng = np.random.default_rng(0)
    X, sign = rng.normal(size=(2400, 1100)), np.where(np.arange(2400) % 2, -1.0, 1.0)
    found = solve_svm_by_passes(rows_of(X), sign, 100.0)
    assert 0.0 <= found.objective - found.lower_bound <= 1e-3 * found.objective
    assert max(steps) <= 501
    monkeypatch.setattr(_pass_svm_sets, "_PAIR_STEPS", 1)
    steps.clear()
    again = solve_svm_by_passes(rows_of(X), sign, 100.0)
    assert again.objective == pytest.approx(found.objective, rel=2e-3)
    assert len(steps) <= _pass_svm_search._SETS  # no set is the start of another


def test_the_gap_that_is_reported_last_is_the_one_that_was_reached(monkeypatch):
    """Also where the multipliers of a start close it, before any pass."""
    told = []
    monkeypatch.setattr(
        _pass_svm_bounds, "report", lambda *what, gap, **more: told.append((*what, gap))
    )
    X, sign = make("plain")
    rows = rows_of(X)
    found = solve_svm_by_passes(rows, sign, 1.0)
    start = PassStart(found.x, found.intercept, found.decision, found.dual)
    again = solve_svm_by_passes(rows, sign, 1.0, start=start)
    assert told[-1] == ("pass", again.n_iter, again.residual)
    assert again.residual <= 1e-3


def test_a_start_is_never_lost():
    X, sign = make("plain")
    rows = rows_of(X)
    cold = solve_svm_by_passes(rows, sign, 1.0, tol=1e-5)
    again = solve_svm_by_passes(rows, sign, 1.0, tol=1e-5, start=cold)
    assert again.n_iter <= 1
    changed = sign.copy()
    changed[:3] *= -1.0
    first = solve_svm_by_passes(rows, changed, 1.0, start=cold, max_iter=1)
    assert first.objective <= objective(X, changed, 1.0, cold.x, cold.intercept) * (1 + 1e-12)


@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("progress", [0.0, 0.1])
def test_the_decision_has_the_intercept_that_is_found(C, progress, way):
    X, sign = make("plain")
    rows = rows_of(X)
    cold = solve_svm_by_passes(rows, sign, C, tol=1e-6)
    start = replace(cold, intercept=cold.intercept + 0.3, decision=cold.decision + 0.3)
    found = solve_svm_by_passes(rows, sign, C, start=start, progress=progress)
    np.testing.assert_allclose(found.decision, X @ found.x + found.intercept, atol=1e-9)
    assert found.objective == pytest.approx(objective(X, sign, C, found.x, found.intercept))


def test_rows_of_one_sign_need_no_weights():
    X, _ = make("plain")
    result = solve_svm_by_passes(rows_of(X), np.ones(len(X)), 1.0, target=2.0)
    assert result.converged
    assert result.objective == 0.0
    assert not result.x.any()
    assert result.intercept >= 2.0
    assert result.n_iter == 0


def test_rows_of_cost_0_take_no_part():
    X, sign = make("plain")
    cost = np.where(np.arange(len(X)) % 3, 1.0, 0.0)
    whole = solve_svm_by_passes(rows_of(X), sign, cost, tol=1e-6)
    part = solve_svm_by_passes(rows_of(X[cost > 0]), sign[cost > 0], 1.0, tol=1e-6)
    assert whole.objective == pytest.approx(part.objective, rel=2e-6)
    assert not whole.dual[cost == 0.0].any()
    np.testing.assert_allclose(whole.decision, X @ whole.x + whole.intercept, atol=1e-9)


@pytest.mark.parametrize("kind", ["plain", "csr"])
def test_some_rows_in_any_order_make_up_a_problem(kind):
    X, sign = make(kind)
    rng = np.random.default_rng(0)
    index = rng.permutation(len(sign))[:300]
    cost, target = rng.uniform(0.1, 1.0, 300), rng.uniform(0.5, 1.5, 300)
    cost[:50] = 0.0
    every = {"target": np.ones(len(sign)), "cost": np.zeros(len(sign))}
    every["target"][index], every["cost"][index] = target, cost
    whole = solve_svm_by_passes(rows_of(X), sign, **every, tol=1e-6)
    found = solve_svm_by_passes(rows_of(X), sign[index], cost, target=target, index=index, tol=1e-6)
    np.testing.assert_array_equal(found.x, whole.x)
    np.testing.assert_array_equal(found.dual, whole.dual[index])
    np.testing.assert_allclose(found.decision, X @ found.x + found.intercept, atol=1e-9)
    again = solve_svm_by_passes(
        rows_of(X), sign[index], cost, target=target, index=index, tol=1e-5, start=found
    )
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.decision, found.decision)


def test_a_row_twice_is_refused():
    X, sign = make("plain")
    with pytest.raises(ValueError, match="index must not hold a row twice"):
        solve_svm_by_passes(rows_of(X), sign[:3], 1.0, index=[4, 1, 4])


@pytest.mark.parametrize("cheap", [0, np.inf])
def test_rows_that_do_not_settle_are_visited_a_few_times_only(cheap, monkeypatch):
    monkeypatch.setattr(_pass_svm_search, "_WIDE", 0)
    monkeypatch.setattr(_pass_svm_search, "_SETS", 0)
    monkeypatch.setattr(_pass_svm_coordinates, "_CHEAP", cheap)
    X, sign = make("plain")
    visits, visit = [], CoordinateDescent._visit
    solve = _pass_svm_coordinates.CoordinateSearch.solve_for

    def solve_and_note(self, left):
        visits.append(0)
        solve(self, left)

    def visit_and_count(self, rows, index):
        if visits:
            visits[-1] += len(index)
        return visit(self, rows, index)

    monkeypatch.setattr(_pass_svm_coordinates.CoordinateSearch, "solve_for", solve_and_note)
    monkeypatch.setattr(CoordinateDescent, "_visit", visit_and_count)
    result = solve_svm_by_passes(rows_of(X), sign, 1e4)
    assert result.residual <= 1e-3
    assert visits
    most = 2 if cheap == 0 else 5
    assert max(visits) <= (most + 2) * len(sign)  # with the next sweep over all rows


def test_more_passes_than_allowed_are_not_taken(monkeypatch):
    monkeypatch.setattr(_pass_svm_search, "_SETS", 0)
    X, sign = make("plain")
    result = solve_svm_by_passes(rows_of(X), sign, 1.0, tol=1e-9, max_iter=3)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 3


@pytest.mark.parametrize("C", [0.01, 100.0])
def test_products_sums_and_sweeps_of_all_rows_are_passes(C, way, monkeypatch):
    taken, search = [], _pass_svm_coordinates.CoordinateSearch
    for owner, name in (
        (PassRows, "dot"), (PassRows, "combine"), (PassRows, "diagonal"),
        (search, "sweep_by_passes"),
    ):  # fmt: skip
        plain = getattr(owner, name)

        def counted(*arguments, plain=plain):
            taken.append(1)
            return plain(*arguments)

        monkeypatch.setattr(owner, name, counted)
    X, sign = make("plain")
    n_iter = solve_svm_by_passes(rows_of(X), sign, C).n_iter
    assert n_iter == len(taken) + (way == "memory") > 0  # where all are copied once


def test_rows_of_very_many_features_are_swept(monkeypatch):
    rng = np.random.default_rng(5)
    X = sp.random_array((400, 4000), density=0.01, rng=rng, format="csr")
    sign = np.where(rng.random(400) < 0.3, 1.0, -1.0)
    swept = []
    monkeypatch.setattr(_pass_svm_search, "_SETS", 0)
    plain = _pass_svm_coordinates.CoordinateSearch.run
    monkeypatch.setattr(
        _pass_svm_coordinates.CoordinateSearch, "run", lambda s: (swept.append(1), plain(s))
    )
    for C in (0.1, 1.0, 10.0):
        result = solve_svm_by_passes(rows_of(X), sign, C, tol=1e-4)
        exact = solve_svm_dual((X @ X.T).toarray(), sign, C, tol=1e-9)
        assert result.converged
        assert exact.objective == pytest.approx(result.objective, rel=1e-4)
        assert result.lower_bound <= exact.objective * (1 + 1e-9)
    assert swept


def test_multipliers_of_all_rows_do_not_make_a_pool_of_all_rows(monkeypatch):
    monkeypatch.setattr(_pass_svm_bounds, "_SMALLEST_POOL", 200)
    monkeypatch.setattr(_pass_svm_smoothing, "_SMALLEST_SAMPLE", 40)
    X, _ = make("plain")
    sign = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    rows, taken, take = rows_of(X), [], PassRows.take
    found = solve_svm_by_passes(rows, sign, 100.0)
    start = replace(found, answers=np.full(len(X), 0.01))
    monkeypatch.setattr(_pass_svm_search, "_SETS", 0)
    monkeypatch.setattr(_pass_svm_bounds, "_FEW", 0)
    monkeypatch.setattr(PassRows, "take", lambda r, i: (taken.append(len(i)), take(r, i))[1])
    solve_svm_by_passes(rows, sign, 200.0, start=start, tol=1e-6, progress=0.1)
    assert taken
    assert max(taken) <= 400


def bounds_of(X, sign, C):
    ones = np.ones(len(sign))
    return _pass_svm_bounds.Bounds(rows_of(X), sign, C * ones, ones, 1e-6, 500)


@pytest.mark.parametrize("tol", [0.0, 1e-16, 1e-6])
def test_steps_for_progress_end_at_the_solution(tol):
    X, sign = make("plain")
    start = solve_svm_by_passes(rows_of(X), sign, 1.0, tol=1e-9)
    found = solve_svm_by_passes(rows_of(X), sign, 1.0, start=start, tol=tol, progress=0.01)
    assert found.objective <= start.objective
    assert found.lower_bound <= found.objective


def test_no_rows_that_count_and_a_start():
    X, sign = make("plain")
    start = solve_svm_by_passes(rows_of(X), sign, 1.0)
    found = solve_svm_by_passes(rows_of(X), sign, 0.0, start=start, progress=0.01)
    assert found.objective == found.lower_bound == 0.0


def test_rounding_does_not_lift_the_bound_above_the_objective():
    X, sign = make("plain")
    found = solve_svm_by_passes(rows_of(X), sign, 1.0, tol=0.0)
    assert 0.0 <= found.residual < 1e-12
    assert found.lower_bound <= found.objective
    assert (found.gap_history >= 0.0).all()


def test_rows_of_text_at_a_large_cost():
    """Features of which most are rare: a small sample of the rows would not know them."""
    rng = np.random.default_rng(0)
    n, d = 20_000, 10_000
    chance = 1.0 / np.arange(1, d + 1)
    columns = rng.choice(d, size=(n, 20), p=chance / chance.sum())
    X = sp.csr_array((np.ones(n * 20), columns.ravel(), np.arange(0, 20 * n + 1, 20)), (n, d))
    X.sum_duplicates()
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    found = solve_svm_by_passes(rows_of(X), sign, 100.0, max_iter=200)
    assert found.residual < 0.01


@pytest.mark.parametrize("n", [0, 1, 700, 9_999, 10_000])
@pytest.mark.parametrize("kind", ["plain", "equal", "ascending", "few"])
def test_the_largest_values_are_found(kind, n):
    rng = np.random.default_rng(0)
    values = {
        "plain": rng.normal(size=10_000),
        "equal": np.zeros(10_000),
        "ascending": np.arange(10_000.0),
        "few": np.where(rng.random(10_000) < 0.01, rng.random(10_000), -np.inf),
    }[kind]
    found = _pass_svm_bounds.largest(values, n)
    assert len(set(found)) == len(found)
    expected = np.sort(values)[::-1][:n]
    np.testing.assert_array_equal(np.sort(values[found])[::-1], expected[expected > -np.inf])


def test_sweeps_leave_the_multipliers_that_were_offered_as_they_are():
    X, sign = np.array([[1.0], [-1.0], [2.0], [-2.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    bounds = bounds_of(X, sign, 1.0 / 64.0)
    search = _pass_svm_coordinates.CoordinateSearch(bounds)
    search.sweep_by_passes(np.arange(4))
    np.testing.assert_array_equal(search.descent.alpha, bounds.cost)  # so small that all are short
    search.offer()
    search.descent.alpha[:] = 0.0
    np.testing.assert_array_equal(bounds.dual, bounds.cost)


def test_sweeps_copy_no_more_rows_than_they_may(monkeypatch):
    monkeypatch.setattr(_pass_svm_bounds, "_POOL_VALUES", 400)
    X, sign = make("plain")
    bounds, taken, take = bounds_of(X, sign, 1.0), [], PassRows.take

    def take_and_note(rows, index):
        assert not any(copy() for copy in taken)  # one at a time
        assert len(index) <= bounds.most_rows
        out = take(rows, index)
        taken.append(weakref.ref(out))
        return out

    bounds.dual = np.full(len(sign), 0.1)
    monkeypatch.setattr(PassRows, "take", take_and_note)
    _pass_svm_coordinates.CoordinateSearch(bounds).run()
    assert len(taken) > 10


def test_sweeps_do_not_depend_on_the_unit_of_targets(monkeypatch):
    monkeypatch.setattr(_pass_svm_search, "_SETS", 0)
    monkeypatch.setattr(_pass_svm_search, "_WIDE", 1)
    X, sign = make("plain")
    found, scaled = (
        solve_svm_by_passes(rows_of(X), sign, unit, target=unit) for unit in (1.0, 2.0**10)
    )
    assert scaled.n_iter == found.n_iter
    np.testing.assert_array_equal(scaled.x, 2.0**10 * found.x)
    assert scaled.objective == 2.0**20 * found.objective


def test_a_gap_that_stays_is_given_up(monkeypatch):
    monkeypatch.setattr(_pass_svm_bounds, "_PATIENCE", 5)
    monkeypatch.setattr(_pass_svm_search.Search, "offer_dual", lambda *_: None)
    X, sign = make("plain")
    result = solve_svm_by_passes(rows_of(X), sign, 1.0)
    assert result.status is Status.STALLED
    assert result.n_iter < 50


@pytest.mark.parametrize("C", COSTS)
def test_a_search_that_ends_for_want_of_progress_gains_most_of_what_there_is(C, way):
    X, sign = make("plain")
    rows = rows_of(X)
    cold = solve_svm_by_passes(rows, sign, C, tol=1e-6)
    changed = np.where(np.arange(len(X)) % 25, sign, -sign)
    alpha = np.where(changed == sign, cold.answers, 0.0)
    start = replace(cold, answers=alpha)
    best = solve_svm_by_passes(rows, changed, C, tol=1e-6).objective
    first = objective(X, changed, C, cold.x, cold.intercept)
    found = solve_svm_by_passes(rows, changed, C, start=start, tol=1e-6, progress=0.1)
    assert found.lower_bound <= best * (1 + 1e-9)
    assert best * (1 - 1e-6) <= found.objective <= best + 0.5 * (first - best)
    assert found.objective == pytest.approx(objective(X, changed, C, found.x, found.intercept))
    np.testing.assert_allclose(found.decision, X @ found.x + found.intercept, atol=1e-9)
    assert ((found.answers >= 0.0) & (found.answers <= C)).all()
    final = solve_svm_by_passes(rows, changed, C, start=found)
    assert final.converged
    assert final.objective <= min(found.objective, best * (1 + 1e-3))
