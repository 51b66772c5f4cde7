"""Every public solver refuses bad input with an error that names it and the parameter."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

import bagwise.solvers as solvers
from bagwise import Bags
from bagwise.bags import BagSource
from bagwise.kernels import InstanceKernel
from bagwise.solvers import Cut, DenseGram, FeatureRows, KernelMeans, NuSVMInner, PassRows

X = np.random.default_rng(0).normal(size=(6, 2))
GRAM = X @ X.T + np.eye(6)
SIGN = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
BAGS = Bags(X, [0, 2, 3, 6])
SOURCE = BagSource(BAGS)
MEANS = KernelMeans(BAGS, InstanceKernel("rbf", gamma=0.5), 2)
HALVES = {"sign": SIGN, "group": np.arange(6) // 2 * 2 + (SIGN > 0), "cap": np.ones(6)}
CONE = {
    "points": GRAM, "index": np.arange(6), "sign": SIGN, "cost": 1.0, "contrasts": np.eye(6)[:2],
    "radius": 0.5, "price": 1.0,
}  # fmt: skip
BOTH = np.array([1.0, -1.0, 1.0])
PAIRS = solvers.BagPairs(np.array([[0, 1], [1, 2]]), np.array([True, False]), np.ones(2))
DENSITY = solvers.Density(X, BAGS.offsets, SIGN[:3], cause="most_likely")
PROBLEM = solvers.AssignmentProblem(
    instances=np.eye(4), cross=np.zeros((4, 1)), fixed=np.eye(1), offsets=np.array([0, 2, 4])
)


class _Square:
    """The function x ** 2, above itself."""

    def value(self, x):
        return x * x

    def majorize(self, x):
        return x

    def minimize(self, surrogate, x, tol):
        return 0.5 * x


class _Bowl:
    """The squared norm of each row."""

    def values(self, X, starts):
        self.slopes = dict(zip(starts, 2.0 * X, strict=True))
        return (X**2).sum(axis=1)

    def gradients(self, starts):
        return np.array([self.slopes[start] for start in starts])


def _loss(w):
    return Cut(slope=np.zeros(2), offset=0.5, value=0.5)


#: What each function accepts.
GOOD = {
    "solve_mmc_by_cccp": {"source": SOURCE, "start": np.eye(2), "direction": [1.0, 0.0]},
    "solve_mmc_by_cuts": {"source": SOURCE, "start": np.eye(2), "direction": [1.0, 0.0]},
    "generate_assignments": {
        "problem": PROBLEM,
        "inner": NuSVMInner(np.array([1.0, 1.0, -1.0]), np.full(3, 0.5)),
        "rng": np.random.default_rng(0),
    },
    "boost_bags": {"weak": solvers.Stumps(X), "offsets": BAGS.offsets, "sign": BOTH},
    "cut_rectangle": {"rows": X, "offsets": BAGS.offsets, "sign": BOTH},
    "grow_rectangle": {"rows": X, "offsets": BAGS.offsets, "sign": BOTH},
    "maximize_density": {"density": DENSITY, "starts": np.ones((2, 4))},
    "maximize_density_by_rounds": {"density": DENSITY, "starts": np.ones((2, 4))},
    "majorize_minimize": {"problem": _Square(), "x0": 1.0},
    "minimize_by_cuts": {"loss": _loss, "n_weights": 2, "start": [_loss(None)]},
    "minimize_expansion": {
        "source": MEANS, "Z0": X[:2], "sign": SIGN[:3, None], "cost": np.ones((3, 1))
    },
    "minimize_lbfgs": {"objective": _Bowl(), "X0": X},
    "minimize_squared_hinge": {"A": X, "sign": SIGN, "cost": 1.0, "w0": [0.0, 0.0]},
    "reduce_expansion": {
        "kernel": InstanceKernel("rbf", gamma=0.5), "X": X, "coef": np.ones((1, 6)), "n_vectors": 2
    },
    "projection_range": {
        "points": DenseGram(GRAM), "starts": np.array([0, 3]), "stops": np.array([3, 6]),
        "spreads": np.ones(2), "centred": True,
    },
    "rescale_alpha": {"alpha": np.ones(6), "cost_from": 1.0, "cost_to": 2.0},
    "search_bag_mmc": {"source": SOURCE, "starts": np.eye(2)[None], "direction": [1.0, 0.0]},
    "solve_bag_mmc": {"instances": X, "cluster": [0, 1] * 3, "n_clusters": 2},
    "solve_bag_mmc_by_cuts": {"instances": X, "cluster": [0, 1] * 3, "n_clusters": 2},
    "solve_cone_svm": CONE,
    "solve_cone_svm_by_program": CONE,
    "solve_by_mirror_prox": {
        "problem": PROBLEM,
        "inner": solvers.ODMInner(np.array([1.0, 1.0, -1.0]), np.ones(3), 0.2, 0.2),
        "columns": [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]],
    },
    "solve_linear_odm": {"rows": X, "sign": SIGN, "cost": 1.0},
    "solve_odm": {"gram": GRAM, "sign": SIGN, "cost": 1.0},
    "solve_svm_by_passes": {"rows": PassRows(BAGS), "sign": SIGN, "cost": 1.0},
    "solve_expansion": {
        "source": MEANS, "Z": X[:2], "sign": SIGN[:3, None], "cost": np.ones((3, 1))
    },
    "solve_grouped_svm": {"rows": FeatureRows(X), **HALVES},
    "solve_grouped_svm_dual": {"gram": GRAM, **HALVES},
    "solve_k_means": {"source": SOURCE, "start": X[:2]},
    "solve_k_medoids": {"distance": np.abs(X[:, :1] - X[:, 0]), "n_clusters": 2},
    "solve_key_rows": {
        "rows": X, "offsets": BAGS.offsets, "is_positive": np.arange(3) == 1
    },
    "solve_label_assignments": {
        "rows": X, "lists": solvers.LabelLists.from_indicator(BAGS.offsets, np.eye(3, 2) + 1.0)
    },
    "solve_pair_metric": {"rows": X, "offsets": BAGS.offsets, "pairs": PAIRS, "start": np.eye(2)},
    "solve_center_metric": {
        "rows": X, "lists": solvers.LabelLists.from_indicator(BAGS.offsets, np.eye(3, 2) + 1.0),
        "n_components": 1,
    },
    "solve_ratio_metric": {"rows": X, "near": SIGN > 0, "far": SIGN < 0, "n_components": 1},
    "solve_linear_svm": {"instances": X, "sign": SIGN, "cost": 1.0},
    "solve_mixture": {
        "rows": X, "start": solvers.Mixture(X[:2], np.ones((2, 2)), np.ones(2)), "min_variance": 0.1
    },
    "solve_one_norm_svm": {"A": X, "sign": SIGN, "cost": 1.0},
    "solve_qp": {"P": np.eye(2), "q": [1.0, 1.0], "A_ub": np.eye(2), "b_ub": [1.0, 1.0]},
    "solve_nu_svm": {"gram": GRAM, "sign": SIGN, "ridge": 1.0},
    "solve_svm_dual": {"gram": GRAM, "sign": SIGN, "cost": 1.0},
}  # fmt: skip

#: What no function accepts, by the name of the parameter.
BAD = {
    "tol": [np.nan, -1.0],
    "min_variance": [0.0, np.nan, np.inf],
    "eps": [np.nan, -1.0],
    "inner_tol": [np.nan],
    "max_iter": [-1],
    "max_cuts": [0],
    "max_rounds": [0],
    "inner_max_iter": [0],
    "n_clusters": [0],
    "n_weights": [0],
    "n_vectors": [0],
    "C": [0.0, -1.0, np.nan, np.inf],
    "length": [0.0, np.nan],
    "gap": [-1.0, np.nan],
    "balance": [-1.0, np.nan],
    "direction": [np.ones(3), [np.nan, 1.0]],
    "sign": [np.ones(5), np.zeros(6), np.full(6, np.nan)],
    "cost": [-1.0, np.nan, np.inf, np.ones(5)],
    "cost_from": [np.nan, np.ones(5)],
    "cost_to": [np.nan, np.ones(5)],
    "cap": [-1.0, np.nan, np.ones((6, 1))],
    "group": [np.zeros(5, int), np.full(6, -1), np.zeros(6)],
    "target": [np.nan, np.ones(5)],
    "ridge": [0.0, np.nan, np.ones(5)],
    "penalty": [0.0, np.nan, np.ones(5)],
    "weight": [-1.0, np.nan, np.ones(5)],
    "alpha": [np.full(6, np.nan), np.ones((6, 1))],
    "alpha0": [np.ones(5), np.full(6, np.nan)],
    "x0": [np.ones(5), np.full(6, np.nan)],
    "w0": [np.ones(3), [np.nan, 0.0]],
    "intercept0": [np.nan],
    "cluster": [[0, 1], [0, 5] * 3],
    "quadratic": [np.eye(3), np.full((2, 2), np.nan)],
    "gram": [np.ones((6, 5)), np.full((6, 6), np.nan)],
    "instances": [np.full((6, 2), np.nan), sp.csr_array(np.full((6, 2), np.inf)), np.ones(6)],
    "rows": [[0, 1, 2, 3, 4, 6], [0.5] * 6],
    "A": [np.full((6, 2), np.nan)],
    "q": [[1.0, np.nan], np.eye(2)],
    "P": [np.eye(3), np.full((2, 2), np.nan)],
    "A_ub": [np.eye(3), np.full((2, 2), np.nan)],
    "lower": [np.nan, np.zeros(3)],
    "upper": [np.nan, np.zeros(3)],
    "coef": [np.ones(5), np.full(6, np.nan)],
    "distance": [np.ones((6, 5)), np.full((6, 6), np.nan)],
    "Z": [np.ones(2), np.full((2, 2), np.nan)],
    "X0": [np.ones(2), np.full((2, 2), np.nan)],
    "memory": [0],
    "window": [0],
    "block": [0, 5],
    "Z0": [np.ones(2), np.full((2, 2), np.nan)],
    "start": [np.ones((2, 3)), np.full((2, 2), np.nan)],
    "starts": [np.ones((2, 2)), np.full((1, 2, 2), np.nan)],
}
#: Other words for a parameter, and what means something else to a function.
WORDS = {"A": "instances", "distance": "distances|matrix", "rows": "instances"}
OTHER = {
    ("generate_assignments", "start"),
    ("majorize_minimize", "x0"),
    ("minimize_by_cuts", "start"),
    ("projection_range", "starts"),
    ("solve_one_norm_svm", "start"),
    ("solve_pair_metric", "alpha"),
    ("solve_svm_by_passes", "rows"),
    ("solve_svm_by_passes", "start"),
}


def _cases():
    for name in GOOD:
        parameters = inspect.signature(getattr(solvers, name)).parameters
        for parameter in parameters:
            if (name, parameter) not in OTHER:
                for k, value in enumerate(BAD.get(parameter, [])):
                    yield pytest.param(name, parameter, value, id=f"{name}-{parameter}-{k}")


def test_all_public_functions_are_here():
    public = {name for name in solvers.__all__ if inspect.isfunction(getattr(solvers, name))}
    helpers = {"balance_direction", "instance_keys", "perturbed", "remembered", "scaled_keys"}
    helpers |= {
        "learn_cluster_metric",
        "bag_pairs",
        "best_in_bags",
        "key_direction",
        "best_factor",
        "key_scores",
        "leading",
        "mean_scores",
        "nearest",
        "row_space",
        "whitening",
        "concept_distances",
        "expanded_bounds",
        "log_odds",
        "log_odds_of_missed",
    }  # sums and linear algebra
    assert public - helpers == set(GOOD)


@pytest.mark.parametrize("name", sorted(GOOD))
def test_good_input_is_accepted(name):
    assert getattr(solvers, name)(**GOOD[name]) is not None


@pytest.mark.parametrize(("name", "parameter", "value"), list(_cases()))
def test_errors_name_function_and_parameter(name, parameter, value):
    arguments = GOOD[name] | {parameter: value}
    if parameter == "balance":
        arguments["direction"] = [1.0, 0.0]
    word = f"{parameter}|{WORDS[parameter]}" if parameter in WORDS else parameter
    with pytest.raises(ValueError, match=rf"\b({word})\b") as caught, np.errstate(all="ignore"):
        getattr(solvers, name)(**arguments)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("slope", "offset"), [([0.0] * 3, 0.0), ([np.nan, 0.0], 0.0), ([0.0, 0.0], np.inf)],
    ids=["short", "slope", "offset"],
)  # fmt: skip
def test_planes_to_start_from_are_checked(slope, offset):
    cut = Cut(slope=np.array(slope), offset=offset, value=0.0)
    with pytest.raises(ValueError, match=r"minimize_by_cuts: the (slope|offset) of a cut in start"):
        solvers.minimize_by_cuts(_loss, 2, start=[cut])


def test_groups_of_no_rows_are_refused():
    nothing = {"sign": np.zeros(0), "group": np.zeros(0, int), "cap": 1.0}
    with pytest.raises(ValueError, match="solve_grouped_svm needs at least one row"):
        solvers.solve_grouped_svm(FeatureRows(np.zeros((0, 2))), **nothing)
