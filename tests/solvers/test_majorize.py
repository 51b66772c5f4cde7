"""The majorise-minimise loop on problems whose iterates are known in closed form."""

import numpy as np
import pytest

from bagwise.solvers import Status, majorize_minimize


class SquareRoots:
    """Minimise ``(x - 3)^2 + 4 sqrt(|x|)``; the root's tangent in ``x^2`` lies above it."""

    def value(self, x):
        return float(((x - 3.0) ** 2 + 4.0 * np.sqrt(np.abs(x))).sum())

    def majorize(self, x):
        return np.abs(x) ** -1.5  # 4 sqrt|x| <= weight x^2 + constant

    def minimize(self, weight, x, tol):
        return 3.0 / (1.0 + weight)


class Tuples(SquareRoots):
    """The same with points that are tuples."""

    def value(self, x):
        return super().value(np.array(x[0]))

    def majorize(self, x):
        return super().majorize(np.array(x[0]))

    def minimize(self, weight, x, tol):
        return (super().minimize(weight, x[0], tol), "tag")


class Rising(SquareRoots):
    """Its surrogate is not above the objective."""

    def __init__(self, step=1.0):
        self.step = step

    def minimize(self, weight, x, tol):
        return x + self.step


def test_ends_where_the_derivative_is_zero():
    result = majorize_minimize(SquareRoots(), np.array([5.0, 9.0]), max_iter=500, tol=1e-14)
    assert result.status is Status.CONVERGED
    x = result.x
    np.testing.assert_allclose(2.0 * (x - 3.0) + 2.0 / np.sqrt(x), 0.0, atol=1e-5)
    assert (np.diff(result.history) <= 0).all()
    assert len(result.history) == result.n_iter + 1
    assert result.objective == SquareRoots().value(x) == result.history[-1]


def test_points_may_be_of_any_type():
    array = majorize_minimize(SquareRoots(), np.array(5.0))
    other = majorize_minimize(Tuples(), (5.0, "start"))
    assert other.x[1] == "tag"
    np.testing.assert_array_equal(other.history, array.history)
    np.testing.assert_array_equal(other.certificate.history, array.history)
    assert not hasattr(other.certificate, "x")


@pytest.mark.parametrize(("step", "status"), [(1.0, Status.STALLED), (1e-6, Status.CONVERGED)])
def test_a_better_point_is_never_traded_for_a_worse_one(step, status):
    """A rise that tol forgives ends the loop, one beyond it is reported."""
    start = np.array(3.0)
    result = majorize_minimize(Rising(step), start, tol=1e-5)
    assert SquareRoots().value(start + step) > SquareRoots().value(start)
    assert result.status is status
    assert result.x is start
    assert result.objective == SquareRoots().value(start)
    assert (np.diff(result.history) == 0).all()


def test_surrogates_are_minimised_to_a_tenth_of_tol():
    class Noting(SquareRoots):
        def minimize(self, weight, x, tol):
            asked.append(tol)
            return super().minimize(weight, x, tol)

    for tol in (1e-2, 1e-9):
        asked = []
        majorize_minimize(Noting(), np.array(5.0), tol=tol)
        assert set(asked) == {0.1 * tol}


def test_nan_is_not_progress():
    class Broken(SquareRoots):
        def minimize(self, weight, x, tol):
            return np.array(np.nan)

    result = majorize_minimize(Broken(), np.array(3.0))
    assert result.status is Status.STALLED
    assert result.x == 3.0


def test_budget_and_callback():
    result = majorize_minimize(SquareRoots(), np.array(9.0), max_iter=2, tol=0.0)
    assert (result.status, result.n_iter) == (Status.MAX_ITER, 2)
    steps = []

    def stop_at_third(step):
        steps.append(step)
        return step.n_iter == 3

    result = majorize_minimize(SquareRoots(), np.array(9.0), tol=0.0, on_step=stop_at_third)
    assert result.n_iter == 3
    assert [step.objective for step in steps] == list(result.history[1:])
    assert sum(step.decrease for step in steps) == pytest.approx(
        result.history[0] - result.history[-1]
    )


def test_no_rounds_at_all():
    result = majorize_minimize(SquareRoots(), np.array(9.0), max_iter=0)
    assert result.n_iter == 0
    assert result.status is Status.MAX_ITER


def test_accuracy_follows_progress():
    """A minimiser that is off by all that it may be still ends where the exact one does."""

    class Sloppy(SquareRoots):
        def minimize(self, weight, x, tol):
            asked.append(tol)
            return super().minimize(weight, x, tol) * (1.0 + np.sqrt(tol))

    asked = []
    start, settings = np.array(40.0), {"max_iter": 500, "tol": 1e-12}
    result = majorize_minimize(Sloppy(), start, looseness=1e-2, **settings)
    exact = majorize_minimize(SquareRoots(), start, **settings)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.objective, exact.objective, rtol=1e-11)
    assert (np.diff(result.history) <= 0).all()
    change = -np.diff(result.history) / result.history[:-1]
    assert asked[0] == 1e-2
    assert asked[-1] == 0.1 * 1e-12
    assert any(1e-13 < tol < 1e-2 for tol in asked)
    for before, after, gained in zip(asked, asked[1:], change, strict=False):
        if gained > before:
            assert after == max(1e-13, min(1e-2, 0.5 * gained))
        else:
            assert after <= max(1e-13, 0.1 * before)


def test_loose_rounds_neither_end_nor_stall_the_loop():
    class Once(SquareRoots):
        def minimize(self, weight, x, tol):
            return super().minimize(weight, x, tol) if tol < 1e-2 else 2.0 * x

    result = majorize_minimize(Once(), np.array(5.0), looseness=1e-2, tol=1e-9, max_iter=500)
    expected = majorize_minimize(SquareRoots(), np.array(5.0), tol=1e-9, max_iter=500)
    assert result.status is Status.CONVERGED
    assert result.history[1] == result.history[0]
    np.testing.assert_allclose(result.objective, expected.objective, rtol=1e-8)


@pytest.mark.parametrize("max_iter", [1, 4])
def test_the_last_round_is_exact_if_rounds_run_out(max_iter):
    class Asked(SquareRoots):
        def minimize(self, weight, x, tol):
            asked.append(tol)
            return super().minimize(weight, x, tol)

    asked = []
    result = majorize_minimize(
        Asked(), np.array(40.0), looseness=1e-2, tol=1e-12, max_iter=max_iter
    )
    assert result.status is Status.MAX_ITER
    assert [tol == 0.1 * 1e-12 for tol in asked] == [False] * (max_iter - 1) + [True]


def test_an_exact_round_that_gains_nothing_takes_the_place_of_a_loose_one():
    class Point(float):
        accuracy = 1.0

    class Flat:
        def value(self, x):
            return 1.0

        def majorize(self, x):
            return None

        def minimize(self, surrogate, x, tol):
            point = Point(x)
            point.accuracy = tol
            return point

    result = majorize_minimize(Flat(), Point(1.0), looseness=1e-2, tol=1e-6)
    assert result.status is Status.CONVERGED
    assert result.x.accuracy == 0.1 * 1e-6
