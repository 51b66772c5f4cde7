"""Every solver on every problem of the table: true certificates, and starts that lead to the end.

A problem is solved with few iterations, loosely, as usual and exactly; see `runs`.
"""

import inspect
from dataclasses import replace

import pytest

import bagwise.solvers as solvers
from bagwise.solvers import Status
from bagwise.solvers.clustering import _mmc
from bagwise.solvers.svm import _grouped_rows
from solvers import certificates, warm_starts
from solvers.machines import grouped
from solvers.others import assignments, mmc
from solvers.table import TABLE

CHECKS = [
    check
    for module in (certificates, warm_starts)
    for name, check in inspect.getmembers(module, inspect.isfunction)
    if name.startswith("check_")
]


# One test for all checks, so that no problem is solved twice.
@pytest.mark.parametrize("problem", TABLE, ids=str)
def test_solver(problem):
    for check in CHECKS:
        check(problem)


def test_every_start_is_here():
    names = {"alpha0", "x0", "w0", "X0", "Z0", "decision0", "start", "starts", "init"}
    with_start = {
        problem.solver
        for problem in TABLE
        if names & inspect.signature(getattr(solvers, problem.solver)).parameters.keys()
    }
    assert with_start == warm_starts.STARTS.keys() | warm_starts.OTHERS.keys()


def test_every_solver_is_in_the_table():
    results = {
        name
        for name, solver in inspect.getmembers(solvers, inspect.isfunction)
        if name in solvers.__all__ and "Result" in str(inspect.signature(solver).return_annotation)
    }
    assert results | {"search_bag_mmc"} == {problem.solver for problem in TABLE}


def test_problems_have_names_of_their_own():
    assert len({str(problem) for problem in TABLE}) == len(TABLE)


# ------------------------------------------------------------- a part that did not converge


def test_shared_slacks_are_not_solved_if_their_last_small_problem_is_not(monkeypatch):
    solve = _grouped_rows.solve_grouped_svm_dual
    monkeypatch.setattr(
        _grouped_rows,
        "solve_grouped_svm_dual",
        lambda *args, **options: replace(solve(*args, **options), status=Status.STALLED),
    )
    assert grouped("plain", "solve_grouped_svm").solve().status is Status.STALLED


def test_clusters_are_not_found_if_the_last_machine_is_not_trained(monkeypatch):
    monkeypatch.setattr(_mmc, "_MACHINE_CUTS", 1)
    assert not mmc("plain", "solve_mmc_by_cccp", C=100.0).solve(tol=1e-8).converged


def test_bags_are_not_clustered_if_the_last_weights_are_not_exact():
    problem = mmc("plain", "search_bag_mmc", C=100.0)
    assert problem.solve(inner_tol=1e-9).converged
    assert problem.solve(inner_tol=1e-9, inner_max_iter=1).status is Status.STALLED


class Inexact:
    """An inner solver that knows its values to a share only."""

    def __init__(self, inner, share):
        self.inner, self.share = inner, share

    def solve(self, gram, like, tol):
        solution = self.inner.solve(gram, like, tol)
        error = self.share * abs(solution.objective)
        return replace(solution, lower_bound=solution.objective - error)


@pytest.mark.parametrize("kind", ["plain", "large", "twice"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5])
def test_the_error_of_inner_solutions_is_part_of_the_gap(kind, share):
    problem = assignments(kind)
    exact = problem.solve(tol=1e-8)
    result = problem.solve(tol=1e-4, inner=Inexact(problem.arguments["inner"], share))
    assert result.converged == (share == 0.0)
    assert result.gap_estimate >= share * abs(result.objective)
    assert result.lower_bound <= exact.objective <= result.objective + result.gap_estimate
