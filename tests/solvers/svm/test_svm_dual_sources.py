"""The SVM dual on rows whose inner products are computed when it asks for them."""

import numpy as np
import pytest

import bagwise.solvers.operators._row_operator as row_operator
from bagwise._threads import ordered_map
from bagwise.solvers import CachedRows, RowOperator, Status, solve_svm_dual
from solvers.blocks import BlockRows
from solvers.dual_problems import ZOO, assert_optimal, problem, solve


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", ZOO)
def test_a_source_serves_as_well_as_an_array(name, loss):
    p = ZOO[name]()
    expected = solve(p, loss=loss)
    for gram in (BlockRows(p.gram), CachedRows(BlockRows(p.gram), 5 * p.gram[0].nbytes)):
        result = solve(p._replace(gram=gram), loss=loss)
        assert_optimal(p, result, loss=loss)
        np.testing.assert_allclose(result.decision, expected.decision, atol=1e-8)
        np.testing.assert_allclose(result.objective, expected.objective, rtol=1e-9, atol=1e-12)


def test_a_source_in_single_precision():
    p = problem(n=1300, d=5, cost=10.0)
    single = p._replace(gram=p.gram.astype(np.float32))
    result = solve(single._replace(gram=CachedRows(BlockRows(single.gram), 1e6)))
    assert_optimal(single, result)


def test_a_source_reports_its_budget_and_a_feasible_point():
    p = problem(n=300, cost=100.0)
    short = solve(p._replace(gram=BlockRows(p.gram)), max_iter=10)
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 10
    assert ((short.x >= 0) & (short.x <= 100)).all()
    assert short.lower_bound <= solve(p).objective <= short.objective


class _Given(RowOperator):
    """An operator that returns what it is told."""

    n, dtype = 4, np.dtype(np.float64)

    def __init__(self, diagonal, entry=0.0):
        self._diagonal, self._entry = diagonal, entry

    def diagonal(self):
        return self._diagonal

    def block(self, rows, columns=None, out=None):
        values = np.full((len(rows), self.n if columns is None else len(columns)), self._entry)
        if out is not None:
            out[:] = values
        return values


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (_Given(np.array([1, 1, np.nan, 1])), "gram must hold finite"),
        (_Given(np.ones(4), entry=np.nan), "gram must hold finite"),
    ],
    ids=["diagonal nan", "block nan"],
)
def test_errors_of_sources_say_what_is_wrong(source, message):
    with pytest.raises(ValueError, match=message):
        solve_svm_dual(source, [1, -1, 1, -1], 1.0)


def test_a_source_can_be_cut_between_blocks(monkeypatch):
    calls = []

    def interrupt():
        calls.append(None)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(row_operator, "_STRIP_ENTRIES", 1000)
    monkeypatch.setattr(row_operator, "checkpoint", interrupt)
    p = problem(n=200)
    with pytest.raises(KeyboardInterrupt):
        solve(p._replace(gram=BlockRows(p.gram)))


def test_a_source_gives_the_same_bits_in_any_number_of_threads():
    p = problem(n=1200, cost=10.0)
    costs = [0.1, 1.0, 10.0]
    one, two = (
        list(
            ordered_map(
                lambda c: solve_svm_dual(CachedRows(BlockRows(p.gram), 1e6), p.sign, c).x,
                costs,
                n_threads=n,
            )
        )
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)
