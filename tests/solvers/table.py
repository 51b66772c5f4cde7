"""The table of all solvers on all hard inputs."""

from dataclasses import replace

from solvers.machines import (
    cone,
    grouped,
    linear_odm,
    linear_svm,
    nu_svm,
    odm,
    one_norm,
    pass_svm,
    squared_hinge,
    svm_dual,
)
from solvers.others import (
    assignments,
    bag_mmc,
    boosted,
    center_metric,
    concepts,
    cut_rectangles,
    cuts,
    expansion,
    k_means,
    k_medoids,
    key_choices,
    label_assignments,
    lbfgs,
    majorized,
    mirror_prox,
    mixture,
    mmc,
    pair_metric,
    qp,
    ratio_metric,
    rectangles,
    reduced,
)
from solvers.problems import KINDS

#: Sizes from which on a solver goes another way, made small.
WAYS = {
    "sets": {
        "_dual_search._WHOLE": 12, "_dual_search._SMALLEST_SET": 8, "_dual_search.LARGEST_SET": 24,
        "_svm_dual_state._FAR": 0.05, "_svm_dual_state._FEWEST": 0.05,
    },
    "steps": {"_dual_search.LARGEST_FREE": 0},
    "descent": {"_linear_svm._MANY_FEATURES": 1, "_linear_svm._LARGEST_GRAM": 0},
    "sweeps": {
        "_linear_svm._MANY_FEATURES": 1, "_linear_svm._LARGEST_GRAM": 0,
        "_linear_svm._LARGEST_FREE": 0, "_linear_svm._PATIENCE": 10_000,
    },
    "sample": {"_linear_svm._SMALL": 16, "_linear_svm._SAMPLE": 3, "_linear_svm._LARGEST_GRAM": 0},
    "smoothing": {"_pass_svm_search._SETS": 0, "_pass_svm_smoothing._SMALLEST_SAMPLE": 8},
    "rounds": {
        "_pass_svm_sets._SET": 8, "_pass_svm_sets._MORE": 4, "_pass_svm_sets._FEWEST": 2,
        "_pass_svm_bounds._SMALLEST_POOL": 8, "_pass_svm_sets.MOST_SUPPORT": 24,
        "_pass_svm_search.MOST_SUPPORT": 24, "_pass_svm_sets._NARROW": 0,
    },
    "conjugate": {"_primal_newton._LARGEST_SYSTEM": 2},
    "short": {
        "_primal_newton._LARGEST_SYSTEM": 2, "_linear_odm._PASS_SYSTEM": 2,
        "_linear_odm._COPIED": 2,
    },
    "guess": {"_nu_svm._SWEEP_ABOVE": 8, "_nu_svm._SMALLEST_GROWTH": 3},
    "generated": {
        "_one_norm_svm._FIRST_ROWS": 6, "_one_norm_svm._NEW_ROWS": 3,
        "_one_norm_svm._NEW_COLUMNS": 1, "_one_norm_svm._STEPS": 2,
    },
}  # fmt: skip


def sent(problem, way):
    """Return a problem that goes the way of a large one."""
    return replace(problem, kind=f"{problem.kind}-{way}", limits=WAYS[way])


def large():
    """Return problems that go the ways of large ones."""
    out = []
    for kind in ("plain", "large", "scaled", "twice", "costs", "single"):
        duals = [svm_dual(kind), svm_dual(kind, squared=True), svm_dual(kind, as_operator=True)]
        duals += [grouped(kind, "solve_grouped_svm_dual")]
        duals += [cone(kind)] * (kind not in ("large", "scaled"))  # these take seconds each
        out += [sent(problem, "sets") for problem in duals]
        if kind in ("plain", "single"):  # else pair steps alone take millions
            out += [sent(problem, "steps") for problem in duals]
        for sparse in (False, True):
            machines = [
                linear_svm(kind, loss, intercept, sparse=sparse)
                for loss in ("hinge", "squared_hinge")
                for intercept in ("free", "penalized")
            ]
            out += [sent(problem, "descent") for problem in machines]
            if kind in ("plain", "single"):
                out += [sent(problem, "sweeps") for problem in machines]
                out += [sent(problem, "sample") for problem in machines]
        for sparse in (False, True):
            by_passes = pass_svm(kind, sparse=sparse)
            out += [sent(by_passes, "smoothing"), sent(by_passes, "rounds")]
        out += [
            sent(linear_odm(kind), "conjugate"),
            sent(linear_odm(kind, by_passes=True), "short"),
        ]
        out += [sent(squared_hinge(kind), "conjugate"), sent(nu_svm(kind), "guess")]
        out += [sent(one_norm(kind), "generated")]
    return out


def table():
    """Return all problems."""
    out = []
    for kind in KINDS:
        out += [svm_dual(kind), svm_dual(kind, squared=True), svm_dual(kind, as_operator=True)]
        for loss in ("hinge", "squared_hinge"):
            out += [linear_svm(kind, loss, b) for b in ("free", "penalized", "none")]
        out += [pass_svm(kind), squared_hinge(kind), squared_hinge(kind, fit_intercept=False)]
        out += [cone(kind), cone(kind, as_operator=True), cone(kind, by_program=True)]
        out += [grouped(kind, "solve_grouped_svm_dual"), grouped(kind, "solve_grouped_svm")]
        out += [grouped(kind, "solve_grouped_svm_dual", masked=True)]
        out += [nu_svm(kind), one_norm(kind), qp(kind), cuts(kind, 1.0)]
        out += [odm(kind), odm(kind, theta=0.6, nu=1.0), linear_odm(kind)]
        out += [bag_mmc(kind, "solve_bag_mmc"), bag_mmc(kind, "solve_bag_mmc_by_cuts")]
        out += [lbfgs(kind), k_means(kind), mixture(kind), assignments(kind), reduced(kind)]
        out += [mmc(kind, f"solve_mmc_by_{name}") for name in ("cuts", "cccp")]
        out += [mmc(kind, "search_bag_mmc"), expansion(kind, "minimize_expansion")]
        out += [expansion(kind, "solve_expansion")]
        out += [k_medoids(kind, "fasterpam"), k_medoids(kind, "alternate")]
        out += [boosted(kind, loss) for loss in ("noisy_or", "isr", "average")]
        out += [concepts(kind, "maximize_density", "noisy_or")]
        out += [concepts(kind, "maximize_density_by_rounds")]
        out += [rectangles(kind), cut_rectangles(kind)]
        out += [label_assignments(kind, method) for method in ("exact", "lloyd")]
        out += [key_choices(kind, method) for method in ("exact", "lloyd")]
        out += [pair_metric(kind), center_metric(kind), ratio_metric(kind)]
    out += [linear_svm(kind, "squared_hinge", "free", sparse=True) for kind in ("plain", "large")]
    out += [linear_odm(kind, bias=0.0, sparse=True) for kind in ("plain", "costs", "large")]
    out += [linear_odm(kind, theta=0.0, by_passes=True) for kind in ("plain", "costs", "twice")]
    out += [mirror_prox(kind) for kind in ("plain", "twice")]
    for metric in ("metric", "singular"):
        out += [squared_hinge(kind, metric=metric) for kind in ("plain", "costs", "large")]
    out += [one_norm(kind, sparse=True) for kind in ("plain", "costs")]
    out += [cuts("plain", C, eps) for C in (0.01, 1e4) for eps in (0.0, 0.01)]
    for solver in ("solve_bag_mmc", "solve_bag_mmc_by_cuts"):
        out += [bag_mmc(kind, solver, balance=0.1) for kind in ("plain", "single", "twice")]
        out += [bag_mmc("plain", solver, C=C, balance=0.0) for C in (0.01, 1e4)]
    for solver in ("search_bag_mmc", "solve_mmc_by_cuts", "solve_mmc_by_cccp"):
        out += [mmc("plain", solver, C=100.0, balance=0.1), mmc("plain", solver, balance=0.0)]
    out += [expansion("plain", "minimize_expansion", optimizer="gradient")]
    out += [majorized(start) for start in (0.2, -3.0)]
    return out


TABLE = table() + large()
