"""What a solver says of a point is true of that point, also away from the optimum."""

from itertools import pairwise

import numpy as np

from bagwise.solvers import Status
from solvers.problems import EPS, runs


def check_objective_is_that_of_the_point(problem):
    for run in runs(problem):
        wanted = problem.objective(run.result)
        assert abs(run.result.objective - wanted.value) <= wanted.rounding


def check_lower_bound_is_that_of_a_feasible_point_of_the_dual(problem):
    for run in runs(problem):
        if problem.dual is not None:
            wanted = problem.dual(run.result)
            assert abs(run.result.lower_bound - wanted.value) <= wanted.rounding


def check_no_lower_bound_is_above_any_objective(problem):
    values = [problem.objective(run.result) for run in runs(problem)]
    best = min(values) if problem.solver != "solve_qp" else values[-1]  # else not yet feasible
    for run, value in zip(runs(problem), values, strict=True):
        slack = best.rounding + value.rounding
        if problem.solver == "solve_qp":  # a bound up to its residual
            slack += run.result.residual * max(1.0, value.size)
        assert run.result.lower_bound <= best.value + slack


def check_budget_is_kept(problem):
    for run in runs(problem):
        assert run.result.n_iter <= run.budget
        if run.result.status is Status.MAX_ITER:
            assert run.result.n_iter == run.budget


def check_a_run_that_goes_on_with_more_budget_has_not_stalled(problem):
    last = runs(problem)[-2]
    for run in runs(problem):
        if run.tol == last.tol and run.budget < last.result.n_iter and not run.result.converged:
            assert run.result.status is Status.MAX_ITER


def check_converged_means_that_the_criterion_holds(problem):
    for run in runs(problem):
        if problem.criterion is None:
            break
        found, size = problem.criterion(run.result)
        blur = 1e-3 * run.tol + 64 * EPS * size
        if run.result.converged:
            assert found <= run.tol + blur
        elif problem.is_sure:
            assert found > run.tol - blur


def check_residual_is_that_of_the_point(problem):
    for run in runs(problem):
        if problem.criterion is None or problem.residual == "other":
            break
        if np.isfinite(run.result.residual):
            found, size = (problem.residual or problem.criterion)(run.result)
            blur = 1e-3 * run.tol + 64 * EPS * size + 1e-9 * found
            assert abs(run.result.residual - found) <= blur


def check_residual_is_above_the_tolerance_until_the_end(problem):
    for run in runs(problem):
        if run.result.status is Status.MAX_ITER and problem.criterion and problem.is_sure:
            assert not run.result.residual <= run.tol


def check_machines_on_easy_rows_are_solved(problem):
    if problem.dual is not None and problem.kind.startswith(("plain", "single", "wide")):
        usual, exact = (run.result for run in runs(problem)[-2:])
        assert usual.converged
        assert abs(usual.objective - exact.objective) <= 1e-5 * exact.objective


def check_more_effort_is_never_worse(problem):
    """More iterations where the objective falls, and a smaller tolerance where there is one end."""
    last = runs(problem)[-2]
    chains = [[last, runs(problem)[-1]]] if np.isfinite(last.result.lower_bound) else []
    if problem.history == "falls":
        chains.append([run for run in runs(problem) if run.tol == last.tol])
    for chain in chains:
        for before, after in pairwise(problem.objective(run.result) for run in chain):
            slack = 1e-9 * abs(before.value) + before.rounding + after.rounding
            assert after.value <= before.value + slack


def check_history_leads_to_the_point(problem):
    for run in runs(problem):
        if problem.history == "none":
            break
        result, wanted = run.result, problem.objective(run.result)
        end = -result.lower_bound if problem.history == "dual" else result.objective
        size = problem.dual(result).rounding if problem.history == "dual" else wanted.rounding
        assert abs(result.history[-1] - end) <= size
        if problem.history != "ends":
            assert (np.diff(result.history) <= size).all()
        if len(result.gap_history):
            assert len(result.gap_history) == len(result.history)
            if np.isfinite(result.lower_bound):
                assert abs(result.gap_history[-1] - result.gap) <= size + wanted.rounding
                assert (result.gap_history >= -size - wanted.rounding).all()
