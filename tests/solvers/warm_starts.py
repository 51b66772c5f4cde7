"""Warm starts: every solver ends where it would without one, and from its solution at once."""

import numpy as np

from solvers.problems import runs

#: How a result becomes a start, by solver.
STARTS = {
    "majorize_minimize": lambda r: {"x0": r.x},
    "maximize_density": lambda r: {"starts": r.x[None]},
    "maximize_density_by_rounds": lambda r: {"starts": r.x[None]},
    "minimize_expansion": lambda r: {"Z0": r.x},
    "minimize_lbfgs": lambda r: {"X0": r.x[None]},
    "minimize_squared_hinge": lambda r: {"w0": r.x, "intercept0": r.intercept},
    "solve_bag_mmc": lambda r: {"alpha0": r.x},
    "solve_bag_mmc_by_cuts": lambda r: {"alpha0": r.x},
    "solve_cone_svm": lambda r: {"start": (r.x, r.mu)},
    "solve_grouped_svm": lambda r: {"alpha0": r.x},
    "solve_grouped_svm_dual": lambda r: {"alpha0": r.x},
    "solve_k_means": lambda r: {"start": r.x},
    "solve_k_medoids": lambda r: {"init": r.medoids},
    "solve_linear_odm": lambda r: {"w0": r.x, "intercept0": r.intercept},
    "solve_key_rows": lambda r: {"start": r.chosen},
    "solve_label_assignments": lambda r: {"start": r.labels},
    "solve_linear_svm": lambda r: {"alpha0": r.x},
    "solve_mixture": lambda r: {"start": r.mixture},
    "solve_mmc_by_cccp": lambda r: {"start": r.x},
    "solve_pair_metric": lambda r: {"start": r.components, "threshold": r.threshold},
    "solve_nu_svm": lambda r: {"x0": r.x},
    "solve_odm": lambda r: {"decision0": r.decision},
    "solve_one_norm_svm": lambda r: {"start": r},
    "solve_svm_by_passes": lambda r: {"start": r},
    "solve_svm_dual": lambda r: {"alpha0": r.x},
}
#: Solvers whose start is not a point, with what it is.
OTHERS = {
    "generate_assignments": "the first columns of many",
    "minimize_by_cuts": "planes",
    "search_bag_mmc": "weights whose size means nothing",
    "solve_mmc_by_cuts": "an order of clusters",
}
#: What makes a problem of the same kind with other costs.
COSTS = {"cost": 2.0, "cap": 2.0, "ridge": 0.5, "C": 2.0}


def is_convex(problem):
    return np.isfinite(runs(problem)[-1].result.lower_bound)


def check_a_solver_ends_at_once_from_its_solution(problem):
    cold = runs(problem)[-1].result
    if not (problem.solver in STARTS and cold.converged):
        return
    warm = problem.solve(**STARTS[problem.solver](cold))
    assert warm.converged
    assert warm.n_iter <= max(1 if is_convex(problem) else 5, cold.n_iter // 100)
    tol = runs(problem)[-2].tol
    assert warm.objective <= cold.objective + (1e-8 + 0.1 * tol) * abs(cold.objective)


def check_a_solver_ends_where_it_does_without_a_start(problem):
    """Start from the solution for other costs."""
    names = COSTS.keys() & problem.arguments.keys()
    if not (problem.solver in STARTS and names and is_convex(problem)):
        return
    before = runs(problem)[-2].result
    changed = {name: COSTS[name] * np.asarray(problem.arguments[name]) for name in names}
    cold = problem.solve(**changed)
    warm = problem.solve(**changed, **STARTS[problem.solver](before))
    assert warm.converged >= cold.converged
    slack = max(cold.gap, 0.0) + max(warm.gap, 0.0) + 2.0 * problem.objective(cold).rounding
    assert abs(warm.objective - cold.objective) <= slack + 1e-9 * abs(cold.objective)
    if not problem.limits:
        assert warm.n_iter <= 2 * cold.n_iter + 10


def check_certificates_are_true_soon_after_any_start(problem):
    """Start from the solution for costs that other rows have, those of cost 0 among them."""
    names = COSTS.keys() & problem.arguments.keys()
    if not (problem.solver in STARTS and names and is_convex(problem)):
        return
    rolled = {name: COSTS[name] * np.roll(problem.arguments[name], 1) for name in names}
    start = STARTS[problem.solver](problem.solve(**rolled))
    best = min(problem.objective(run.result) for run in runs(problem))
    for budget in (problem.least, problem.least + 1):
        result = problem.solve(**{problem.budget: budget}, **start)
        value = problem.objective(result)
        assert abs(result.objective - value.value) <= value.rounding
        assert result.lower_bound <= best.value + best.rounding + value.rounding
        if problem.dual is not None:
            wanted = problem.dual(result)
            assert abs(result.lower_bound - wanted.value) <= wanted.rounding
