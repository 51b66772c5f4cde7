"""Every parameter for accuracy, effort or memory has an effect that is seen.

`EFFORT` names these parameters; a class that has one falls under its test. Where the usual
observation does not tell, a table says which one does, or why there is none.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone, is_clusterer
from sklearn.exceptions import ConvergenceWarning

from bagwise import Bags, all_estimators
from bagwise.bags import StoreWriter
from bagwise.cluster import CPM3C, M3IC, BagKMeans
from bagwise.exceptions import MemoryLimitError
from bagwise.solvers import CachedRows, Status
from bagwise.svm import SparseMI
from bagwise.testing import make_toy_bags
from instances import DEFAULTS, VARIANTS
from spies import solver_calls

#: Parameters that cost or save something, and those that are no such thing though they sound so.
EFFORT = {
    "tol", "max_iter", "max_cuts", "n_init", "n_restarts", "n_starts", "rank", "cache_size",
    "max_memory",
}  # fmt: skip
OTHERS = {
    "max_edges": "part of the kernel",
    "n_clusters": "part of the question",
    "n_candidates": "part of the model",
    "n_citers": "part of the model",
    "max_pairs": "part of the model",
    "n_components": "part of the model",
    "n_key": "part of the model",
    "epsilon": "part of the model",
    "n_estimators": "part of the model",
    "n_jobs": "the battery's check_n_jobs",
    "n_prototypes": "part of the model",
    "n_references": "part of the model",
    "n_vectors": "part of the model",
}

BAGS, Y = make_toy_bags(24, kind="close", random_state=3)


def having(parameter):
    classes = [cls for _, cls in all_estimators() if parameter in cls().get_params(deep=False)]
    return pytest.mark.parametrize("cls", classes, ids=lambda cls: cls.__name__)


def settings_with(parameter):
    """Like `having`, with other paths through the code beside the defaults."""
    models = [m for m in (*DEFAULTS, *VARIANTS) if parameter in m.get_params(deep=False)]
    return pytest.mark.parametrize("model", models, ids=str)


def observed(cls, bags=BAGS, change=None, **params):
    """Fit and return the model with the calls of solvers."""
    model = cls() if isinstance(cls, type) else clone(cls)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=0)
    with solver_calls(change) as calls, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(**params).fit(bags, None if is_clusterer(model) else Y)
    return model, calls


def test_no_parameter_is_forgotten():
    sounding = ("tol", "max_", "n_", "cache", "eps", "inner", "rank")
    for name, cls in all_estimators():
        for parameter in cls().get_params(deep=False):
            if parameter.startswith(sounding):
                assert parameter in EFFORT | OTHERS.keys(), f"{name}: {parameter}"


# ------------------------------------------------------------------------------------- accuracy

#: What asks for more than ``tol``, or for something else: class, solver -> the reason.
OTHER_TOLERANCES = {
    ("DDSVM", "maximize_density"): "the prototypes have an accuracy of their own",
    ("PPMMSVM", "solve_mixture"): "the mixture has an accuracy of its own",
    ("ReducedSetSVM", "solve_svm_dual"): "the machine is exact, its approximation is not",
    ("ReducedSetSVM", "minimize_squared_hinge"): "likewise",
    ("SparseMI", "solve_k_means"): "clusters are where it starts",
    ("CPM3C", "solve_k_means"): "likewise",
    ("M3IC", "solve_k_means"): "likewise",
    ("M3IC", "solve_bag_mmc_by_cuts"): "the convex problems have an accuracy of their own",
}


#: Relative differences of objectives that a local search may make, with the reason.
SLACK = {"M3IC": 1e-3}  # the accuracy of its convex problems, which tol does not change


@settings_with("tol")
def test_tol_reaches_every_solver(model):
    name = type(model).__name__
    for tol in (1e-2, 1e-11):
        _, calls = observed(model, tol=tol)
        used = [
            call.arguments["tol"]
            for call in calls
            if "tol" in call.arguments and (name, call.solver) not in OTHER_TOLERANCES
        ]
        assert max(used, default=0.0) <= tol
        is_exact = name == "MIODM" and model.solver == "local"  # to 1e-9, whatever is asked
        if name != "BagKMeans" and not (is_exact and tol > 1e-9):  # scikit-learn's loop
            assert tol in used


@having("tol")
def test_a_smaller_tol_is_never_worse(cls):
    loose, exact = (observed(cls, tol=tol)[0].result_ for tol in (0.3, 1e-9))
    assert exact.n_iter >= loose.n_iter - 2  # a rough answer may take a step more to be made exact
    assert exact.objective <= loose.objective * (1 + SLACK.get(cls.__name__, 1e-9))


def test_tol_of_k_means_is_that_of_its_steps():
    loose, exact = (observed(BagKMeans, tol=tol, n_init=1)[0].result_ for tol in (1.0, 1e-9))
    assert exact.n_iter > loose.n_iter


@pytest.mark.parametrize("rank", [1, 5, 12])
@having("rank")
def test_rank_is_that_of_the_map(cls, rank):
    """The kernel of an approximation has this rank, on bags or on instances."""
    kernel = {"kernel": "rbf"} if cls.__name__ in ("M3IC", "MinimaxKernelSVM") else {}
    if cls.__name__ in ("MIMLCA", "MLCA"):
        kernel = {"kernel": "rbf", "ridge": 0.1}
    model, _ = observed(cls, approx="fourier", rank=rank, **kernel)
    widths = [value.shape[-1] for value in vars(model).values() if np.ndim(value) == 2]
    assert rank in widths or 2 * rank in widths


# --------------------------------------------------------------------------------------- effort

#: How many problems a method solves one after the other, each with ``max_iter`` steps.
PROBLEMS = {"SBMIL": 2, "CPM3C": 2, "PCSVM": 2}
#: What the parameters are called in solvers.
NAMES = {"max_iter": ("max_iter", "max_rounds")}


@settings_with("max_iter")
def test_no_more_iterations_than_max_iter(model):
    name = type(model).__name__
    for max_iter in (1, 2, 3, 7):
        fitted, calls = observed(model, max_iter=max_iter)
        assert fitted.result_.n_iter <= max_iter * PROBLEMS.get(name, 1)
        budgets = [call.arguments.get(budget) for call in calls for budget in NAMES["max_iter"]]
        assert max_iter in budgets or name == "BagKMeans"


@having("max_iter")
def test_certificates_of_few_iterations_are_true(cls):
    best = observed(cls)[0].result_.objective
    for max_iter in (1, 2, 3):
        model = cls(max_iter=max_iter)
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(BAGS, None if is_clusterer(model) else Y)
        result = model.result_
        told = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        assert told != result.converged
        assert result.lower_bound <= best + 1e-9 * abs(best)
        assert result.objective >= result.lower_bound - 1e-9 * abs(best)


#: Methods that fit folds too, after the model, to judge where its threshold lies; and how many
#: problems the model itself solves.
JUDGED = {"ODM": 1, "MILES": 2}


@having("max_iter")
def test_iterations_of_all_problems_count(cls):
    model, calls = observed(cls)
    solvers = {call.solver for call in calls if hasattr(call.result, "n_iter")}
    if len(solvers) == 1 and "n_init" not in model.get_params(deep=False):
        done = [call.result.n_iter for call in calls if call.solver in solvers]
        assert model.result_.n_iter == sum(done[: JUDGED.get(cls.__name__)])


@settings_with("max_iter")
def test_a_fit_has_not_converged_if_a_problem_inside_has_not(model):
    def stalled(solver, result):
        if isinstance(result, list):  # one for each start
            return [stalled(solver, one) for one in result]
        if solver == "majorize_minimize" or not hasattr(result, "status"):
            return result
        return replace(result, status=Status.STALLED)

    fitted, calls = observed(model, change=stalled)
    if not isinstance(model, BagKMeans):  # scikit-learn's loop
        assert calls
        assert not fitted.result_.converged


def way(call):
    """Return the solver, with the arguments that are words, functions or None."""
    given = {name: getattr(value, "__name__", value) for name, value in call.arguments.items()}
    return call.solver, *((k, v) for k, v in given.items() if v is None or isinstance(v, str))


@pytest.mark.parametrize("parameter", ["method", "optimizer", "solver"])
def test_a_choice_between_ways_to_one_end_reaches_the_solvers(parameter):
    for _, cls in all_estimators():
        if parameter in cls().get_params(deep=False):
            [options] = [rule.options for rule in cls._parameter_constraints[parameter]]
            fits = [observed(cls, **{parameter: option})[1] for option in options]
            ways = {tuple(map(way, calls)) for calls in fits}
            assert len(ways) == len(options), cls.__name__


def test_max_cuts_is_the_number_of_cuts():
    for max_cuts in (1, 2, 3):
        _, calls = observed(CPM3C, max_cuts=max_cuts, solver="cutting_plane", tol=1e-9)
        cuts = [call.result.n_iter for call in calls if call.solver == "solve_mmc_by_cuts"]
        assert max(cuts) == max_cuts


#: How often a method starts, by what is seen of it.
STARTS = {
    "BAMIC": lambda calls: len(calls[0].result.objectives),
    "BagKMeans": lambda calls: sum(call.solver == "solve_k_means" for call in calls),
    "CPM3C": lambda calls: sum(call.solver == "solve_mmc_by_cuts" for call in calls),
    "M3IC": lambda calls: max(len(call.arguments.get("starts", ())) for call in calls),
    "DiverseDensity": lambda calls: len(calls[0].arguments["starts"]),
    "EMDD": lambda calls: len(calls[0].arguments["starts"]),
    "MIMLCA": lambda calls: sum(call.solver == "solve_key_rows" for call in calls) // 4,  # 3 folds
    "PCSVM": lambda calls: alternations(calls) - 1,  # then one with constraints
    "SparseMI": lambda calls: sum(call.solver == "minimize_expansion" for call in calls),
}
#: What makes a method have many ends.
HARD = {"RegSVM": {"normalization": "feature_space"}, "SparseMI": {"n_vectors": 3}}


def alternations(calls):
    return sum(call.solver == "majorize_minimize" for call in calls)


#: Methods whose starts are those of `best_of_starts`.
ALTERNATING = {"MICA", "MISVM", "MissSVM", "PCSVM", "RegSVM", "STMIL", "miSVM"}


@having("n_init")
def test_n_init_is_the_number_of_starts(cls):
    name, values = cls.__name__, []
    for n_init in (1, 2, 5):
        model, calls = observed(cls, n_init=n_init, **HARD.get(name, {}))
        seen = STARTS.get(name, alternations)(calls)
        values.append(model.result_.objective)
        if name in ALTERNATING:  # a start at a problem that was solved before is no loop
            assert seen <= model.result_.n_starts == n_init
            values[-1] = model.result_.ends.min(initial=values[-1])
        else:
            assert seen == n_init
    assert (np.diff(values) <= 1e-9 * np.abs(values[0])).all()


@pytest.mark.parametrize(("n_vectors", "n_starts"), [(4, 10), (5, 10), (6, 1)])
def test_few_vectors_get_many_starts_by_themselves(n_vectors, n_starts):
    _, calls = observed(SparseMI, n_vectors=n_vectors)
    assert STARTS["SparseMI"](calls) == n_starts


@having("n_restarts")
def test_n_restarts_reaches_the_search(cls):
    for n_restarts in (0, 3):
        _, calls = observed(cls, n_restarts=n_restarts)
        seen = [call.arguments.get("n_restarts") for call in calls]
        assert [number for number in seen if number is not None] == [n_restarts]


@having("n_starts")
def test_n_starts_reaches_the_reduction(cls):
    for n_starts in (1, 4):
        _, calls = observed(cls, n_starts=n_starts)
        seen = [call.arguments.get("n_starts") for call in calls]
        assert n_starts in seen


# --------------------------------------------------------------------------------------- memory

#: Methods that have no use for ``cache_size``, as their docstrings say.
NO_CACHE = {"LabelMeanSVM", "MIGraphSVM", "MIKernelSVM"}


def kept_bytes(value, seen):
    """Return how much memory an operator takes for inner products."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, CachedRows):
        return value._memory.nbytes
    if isinstance(value, np.ndarray):
        is_square = value.ndim == 2 and len(value) == value.shape[1] > 1
        return value.nbytes if is_square else 0
    if type(value).__module__.startswith("bagwise") and hasattr(value, "__dict__"):
        return sum(kept_bytes(part, seen) for part in vars(value).values())
    return 0


@having("cache_size")
def test_cache_size_is_kept_and_used(cls):
    kept = []
    for megabytes in (0.001, 0.004, 200.0):
        try:
            _, calls = observed(cls, cache_size=megabytes)
        except MemoryLimitError:
            kept.append(0)
            continue
        operators = [
            call.arguments[name]
            for call in calls
            for name in ("gram", "rows", "A", "problem")
            if name in call.arguments and call.solver != "majorize_minimize"
        ]
        kept.append(max(kept_bytes(operator, set()) for operator in operators))
        assert kept[-1] <= 1e6 * megabytes or cls.__name__ in NO_CACHE
    if cls.__name__ not in NO_CACHE:
        assert kept[0] < kept[-1]


@having("max_memory")
def test_max_memory_is_kept(cls, tmp_path, monkeypatch):
    if cls.__name__ in ("SIL", "MISVM", "miSVM", "PCSVM", "ODM", "MIODM"):
        monkeypatch.setattr("bagwise.svm.machinery._kernel_machine.MANY_VALUES", 1)
        local = {"solver": "local"} if cls.__name__ == "MIODM" else {}
        with pytest.raises(MemoryLimitError, match="max_memory"):
            observed(cls, bags=stored(tmp_path), kernel="linear", max_memory=100, **local)
        return
    if cls.__name__ in ("BagKMeans", "M3IC", "MIMLCA", "MLCA", "RandomSetSVM"):
        with pytest.raises(MemoryLimitError, match="max_memory"):
            observed(cls, bags=stored(tmp_path), max_memory=100)
        return
    needed = sum(map(len, BAGS)) * 3 * 8
    for max_memory in (needed - 1, needed, None):
        _, calls = observed(cls, n_vectors=3, max_memory=max_memory)
        sources = [call.arguments["source"] for call in calls if "source" in call.arguments]
        fits = max_memory is None or max_memory >= needed
        assert {source.keeps for source in sources} == {fits}


def test_scores_of_all_starts_count_against_max_memory(tmp_path):
    bags = stored(tmp_path)
    for n_init in (1, 20):
        needed = bags.n_instances * 8 * (bags.n_features + 2 * n_init)
        observed(M3IC, bags=bags, n_init=n_init, max_memory=needed)
        with pytest.raises(MemoryLimitError, match="max_memory"):
            observed(M3IC, bags=bags, n_init=n_init, max_memory=needed - 1)


def stored(folder):
    with StoreWriter(folder / "toy.bags") as writer:
        for bag in BAGS:
            writer.append(bag)
    return Bags.open(folder / "toy.bags")
