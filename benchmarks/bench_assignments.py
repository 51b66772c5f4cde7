"""Column generation over assignments (KI-SVM), and its inner problem beside clarabel.

The gap that the solver reports is set beside the gap by 500 fresh starts of the search.
Needs the folder of the classic sets: BAGWISE_DATA=... python benchmarks/bench_assignments.py
"""

import os
from pathlib import Path
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from bagwise.kernels import InstanceKernel
from bagwise.solvers import solve_qp
from bagwise.solvers.assignments._assignment_search import AssignmentProblem, AssignmentSearch
from bagwise.solvers.assignments._assignments import generate_assignments
from bagwise.solvers.svm._nu_svm import NuSVMInner, solve_nu_svm

DATASETS = ("musk1", "elephant")
LARGE = "musk2"  # 5581 negative instances: too many for clarabel
COSTS = (1.0, 100.0, 1000.0)
REPEATS = 3


def load(name, negative_rows):
    """Return the problem and the signs of its rows; negative rows are instances or bag means."""
    with np.load(Path(os.environ["BAGWISE_DATA"]) / f"{name}.npz") as data:
        X, positive = data["X"].astype(np.float64), data["y"] > 0
        sizes = np.diff(data["offsets"].astype(np.int64))
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    inside = np.repeat(positive, sizes)
    P, N = X[inside], X[~inside]
    kernel = InstanceKernel("rbf", gamma=1.0 / X.shape[1])
    cross, fixed = kernel.gram(P, N), kernel.gram(N)
    if negative_rows == "bag":
        size = sizes[~positive]
        starts = np.cumsum(size) - size
        cross = np.add.reduceat(cross, starts, axis=1) / size
        fixed = np.add.reduceat(np.add.reduceat(fixed, starts, axis=0), starts, axis=1)
        fixed /= np.outer(size, size)
    offsets = np.concatenate([[0], np.cumsum(sizes[positive])])
    problem = AssignmentProblem(kernel.gram(P), cross, fixed, offsets)
    return problem, np.repeat([1.0, -1.0], [problem.n_bags, len(fixed)])


def best_time(function):
    times, value = [], None
    for _ in range(REPEATS):
        start = perf_counter()
        value = function()
        times.append(perf_counter() - start)
    return min(times), value


def fresh_gap(problem, result, n_starts=500):
    """Return the relative gap that many new starts of the search find."""
    factors = result.fixed_coef
    outer, constant = problem.cross @ factors, float(factors @ problem.fixed @ factors)
    form = float(result.b @ result.decision)
    search = AssignmentSearch(problem, result.b[: problem.n_bags], outer, constant, form)
    for choice in problem.drawn(np.random.default_rng(99), n_starts):
        search.climb(choice)
    [(top, _)] = search.best(1)
    return 0.5 * (top - form) / abs(result.objective)


def bench_columns():
    print("Column generation, z-scored, RBF gamma = 1/d, tol 1e-3")
    print(f"{'data':>9} {'rows':>4} {'n':>5} {'C':>6} {'starts':>6} |", end=" ")
    print("rounds columns inner | objective   gap      fresh    | seconds")
    for name in DATASETS:
        for negative_rows in ("bag", "ins"):
            problem, sign = load(name, negative_rows)
            for cost in COSTS:
                for n_restarts in (0, 20, 100) if cost == 100.0 else (20,):
                    bench_problem(name, negative_rows, problem, sign, cost, n_restarts)
    problem, sign = load(LARGE, "ins")
    for cost in (1.0, 100.0):
        bench_problem(LARGE, "ins", problem, sign, cost, 20, share=63 / 5581)


def bench_problem(name, negative_rows, problem, sign, cost, n_restarts, share=1.0):
    """Print one line; ``share`` is the cost of a negative row in units of that of a bag."""
    inner = NuSVMInner(sign, 1.0 / np.where(sign > 0, cost, share * cost))

    def run():
        rng = np.random.default_rng(0)
        return generate_assignments(problem, inner, rng=rng, n_restarts=n_restarts)

    run()  # compiles
    seconds, result = best_time(run)
    print(
        f"{name:>9} {negative_rows:>4} {problem.n_rows:>5} {cost:>6g} {n_restarts:>6} "
        f"| {result.n_iter:>6} {len(result.x):>7} {result.n_inner:>5} | {result.objective:.8f} "
        f"{result.residual:.1e}  {fresh_gap(problem, result):.1e}  | {seconds:.3f}"
    )


def bench_inner():
    print("\nInner problem at the bag means, from nothing: seconds")
    for name in DATASETS:
        for negative_rows in ("bag", "ins"):
            problem, sign = load(name, negative_rows)
            starts, sizes = problem.offsets[:-1], problem.sizes
            bags = np.add.reduceat(np.add.reduceat(problem.instances, starts, 0), starts, 1)
            cross = np.add.reduceat(problem.cross, starts, 0) / sizes[:, None]
            gram = np.block([[bags / np.outer(sizes, sizes), cross], [cross.T, problem.fixed]])
            for cost in COSTS:
                bench_simplex(name, negative_rows, gram, sign, cost)


def bench_simplex(name, negative_rows, gram, sign, cost):
    n = len(sign)
    form = gram * np.outer(sign, sign) + np.eye(n) / cost
    rows = {"A_eq": np.ones((1, n)), "b_eq": [1.0], "lower": 0.0}
    theirs, reference = best_time(lambda: solve_qp(form, np.zeros(n), tol=1e-6, **rows))
    ours, result = best_time(lambda: solve_nu_svm(gram, sign, 1.0 / cost))
    print(
        f"{name:>9} {negative_rows:>4} {n:>5} {cost:>6g} | clarabel {theirs:.4f} "
        f"{reference.objective:.10f} | ours {ours:.4f} {result.objective:.10f} gap "
        f"{result.residual:.0e} | {theirs / ours:.1f}x"
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        bench_columns()
        bench_inner()
