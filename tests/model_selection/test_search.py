"""BagGridSearchCV: the results of GridSearchCV, with the work that fits share done once."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import bagwise.embedding._miles as miles
import bagwise.svm._graph_svm as graph_svm
import bagwise.svm.machinery._bag_kernel_machine as bag_kernel_machine
import bagwise.svm.machinery._ki_machine as ki_machine
import bagwise.svm.machinery._points as points
import bagwise.svm.machinery._representation as representation
import bagwise.svm.machinery._warm_start as warm_start
from bagwise import Bags, all_estimators
from bagwise.base import Share, SharedWork, Starts
from bagwise.base._cache import Cache
from bagwise.embedding import MILES
from bagwise.kernels import InstanceKernel
from bagwise.model_selection import BagGridSearchCV, StratifiedBagKFold
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import (
    MICA,
    MISVM,
    SIL,
    BagKISVM,
    InsKISVM,
    LabelMeanSVM,
    MIGraphSVM,
    MIKernelSVM,
    StatisticKernelSVM,
    miSVM,
)
from bagwise.svm.machinery._kernel_machine import KernelMachine
from model_selection.searches import CV, EDGES, KEY_INSTANCES, C, Unchanged, both, count_calls, rbf


def three_classes(y):
    return np.array(["a", "b", "c"])[(np.arange(len(y)) // 2 % 2) + (y > 0)]


CASES = {
    "SIL": (SIL(), {"C": C, "gamma": [0.1, "scale"]}),
    "MISVM": (MISVM(), {"C": C, "gamma": [0.1, "2*scale"]}),
    "MISVM, shared slack": (MISVM(negative_slack="bag"), {"C": C}),
    "MISVM, several starts": (MISVM(n_init=3, random_state=0), {"C": C, "n_init": [1, 3]}),
    "miSVM": (miSVM(class_weight="balanced"), {"C": C, "class_weight": [None, "balanced"]}),
    "MIKernelSVM": (MIKernelSVM(), {"C": C, "normalization": ["average", "feature_space"]}),
    "LabelMeanSVM": (LabelMeanSVM(), {"C": C, "gamma": [0.1, 1.0]}),
    "MIGraphSVM": (MIGraphSVM(), {"C": C, "threshold": ["mean", 0.5]}),
    "MIGraphSVM, edges": (EDGES, {"C": C, "gamma": [0.1, "scale"], "edge_gamma": [0.5, 2.0]}),
    "MIGraphSVM, both": (
        MIGraphSVM(),
        {"C": C, "graph": ["cliques", "edges"], "max_edges": [1, 3]},
    ),
    "MIGraphSVM, parts": (EDGES, {"C": C, "normalization": ["parts", None]}),
    "StatisticKernelSVM": (StatisticKernelSVM(), {"C": C, "statistic": ["minmax", "mean"]}),
    "MICA": (MICA(), {"C": C, "gamma": [0.1, "scale"], "class_weight": [None, "balanced"]}),
    "MICA, several starts": (MICA(n_init=3, random_state=0), {"C": C, "kernel": ["rbf", "poly"]}),
    "MICA, little memory": (MICA(cache_size=0.0), {"C": C}),
    "MICA, linear": (MICA(kernel="linear"), {"C": C}),
    "InsKISVM": (KEY_INSTANCES, {"C": C, "gamma": [0.1, "scale"]}),
    "InsKISVM, linear": (InsKISVM(kernel="linear", random_state=0), {"C": C, "bias": [0.5, 1.0]}),
    "BagKISVM": (BagKISVM(random_state=0), {"C": C, "threshold": ["zero", "training"]}),
    "MILES": (MILES(), {"C": C, "gamma": [0.1, "scale"], "class_weight": [None, "balanced"]}),
    "linear": (SIL(kernel="linear"), {"C": C}),
    "linear bag kernel": (MIKernelSVM(kernel="linear"), {"C": C}),
    "low rank": (SIL(approx="nystroem", rank=10, random_state=0), {"C": C}),
    "callable": (SIL(kernel=rbf), {"C": C}),
    "callable, MICA": (MICA(kernel=rbf), {"C": C}),
    "callable, BagKISVM": (BagKISVM(kernel=rbf, random_state=0), {"C": C}),
    "callable, edges": (MIGraphSVM(kernel=rbf, graph="edges"), {"C": C}),
    "list of grids": (SIL(), [{"C": C}, {"kernel": ["poly"], "degree": [2, 3], "C": [1.0]}]),
}


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_grid_search(toy, case):
    bags, y = toy
    search, reference = both(*CASES[case], bags, y, return_train_score=True)
    np.testing.assert_array_equal(search.predict(bags), reference.predict(bags))
    np.testing.assert_array_equal(  # the last fit is an ordinary one
        search.decision_function(bags), reference.decision_function(bags)
    )


@pytest.mark.parametrize("name", ["SIL", "MISVM", "MISVM, shared slack", "callable"])
def test_matrices_that_a_fit_alone_would_not_form_at_once(toy, monkeypatch, name):
    """Of a large matrix a single fit computes the rows that it needs; fits of a search share it."""
    monkeypatch.setattr(representation, "_FORMED", 0.0)
    both(*CASES[name], *toy)


CLASSIFIERS = [
    (name, cls)
    for name, cls in all_estimators()
    if is_classifier(cls()) and "C" in cls().get_params()
]


@pytest.mark.parametrize(("name", "cls"), CLASSIFIERS, ids=[name for name, _ in CLASSIFIERS])
def test_every_classifier(toy, name, cls):
    bags, y = toy

    def mean_margin(model, X, y):
        return float(np.mean(np.where(y > 0, 1.0, -1.0) * model.decision_function(X)))

    grid = {"C": C, "gamma": [0.3, "scale"]} if issubclass(cls, KernelMachine) else {"C": C}
    both(cls(), grid, bags, y, cv=2)
    settings = {"scoring": mean_margin, "refit": False, "cv": 2}
    reference = GridSearchCV(cls(), grid, **settings).fit(bags, y)
    search = BagGridSearchCV(cls(), grid, **settings).fit(bags, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], reference.cv_results_["mean_test_score"], atol=1e-5
    )


NO_MATRIX = ("DDSVM", "PPMMSVM", "RandomSetSVM", "ReducedSetSVM", "SparseMI")


SHARING = {  # estimator, whether a matrix, whether solutions
    **{
        name: (cls(), name not in NO_MATRIX, name not in (*NO_MATRIX, "MIODM", "ODM", "RegSVM"))
        for name, cls in CLASSIFIERS
    },
    "edges": (MIGraphSVM(graph="edges"), True, True),
    "linear edges": (MIGraphSVM(graph="edges", kernel="linear"), True, True),
    "key instances, with numbers of their own": (InsKISVM(random_state=0), True, False),
    "linear": (SIL(kernel="linear"), False, True),
    "linear MICA": (MICA(kernel="linear"), False, True),
    "low rank": (SIL(approx="cholesky", rank=8), False, True),
}


@pytest.mark.parametrize("name", SHARING)
def test_what_is_shared_is_what_the_documentation_says(toy, monkeypatch, name):
    bags, y = toy
    estimator, has_matrix, has_starts = SHARING[name]
    remembered = count_calls(monkeypatch, Share, "remember")
    find, found = Starts.find, []

    def spied(starts, *parts):
        start = find(starts, *parts)
        found.append(start is not None)
        return start

    monkeypatch.setattr(Starts, "find", spied)
    if "gamma" in estimator.get_params():
        estimator.set_params(gamma=0.5)
    grid = {"C": [5.0, 10.0]}  # no model is constant, which would take further fits
    search = BagGridSearchCV(estimator, grid, cv=2, refit=False).fit(bags, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    n_fits = 12 if name == "ODM" else 4  # two folds tell as well that it is right more often
    assert len(remembered) == (n_fits if has_matrix else 0)
    assert any(found) == has_starts


MATRICES = {  # what makes it, how often with 2 numbers for gamma, and with 2 rules in 3 folds
    "MICA": (MICA(), InstanceKernel, "gram", 2, 6),
    "InsKISVM": (InsKISVM(), points, "point_gram", 2, 6),
    "BagKISVM": (BagKISVM(), points, "point_gram", 2, 6),
    "MIGraph": (EDGES, graph_svm, "graph_gram", 2, 6),
    "edges": (EDGES, graph_svm, "bag_edges", 1, 1),
    "pairs of edges": (EDGES, graph_svm, "set_gram", 1, 1),
    "MILES": (MILES(), miles, "nearest_among", 1, 1),
}


@pytest.mark.parametrize("name", MATRICES)
def test_no_matrix_is_made_twice(toy, monkeypatch, name):
    bags, y = toy
    estimator, place, function, *expected = MATRICES[name]
    calls = count_calls(monkeypatch, place, function)
    for gammas, number in zip(([0.1, 1.0], ["scale", "2*scale"]), expected, strict=True):
        calls.clear()
        BagGridSearchCV(
            estimator, {"C": C, "gamma": gammas}, cv=CV, refit=False, return_train_score=True
        ).fit(bags, y)
        assert len(calls) == number


def test_assignments_at_lower_costs_are_where_the_next_fit_starts(toy, monkeypatch):
    bags, y = toy
    starts, ends = [], []
    generate = ki_machine.generate_assignments

    def spied(problem, inner, *, start, **settings):
        result = generate(problem, inner, start=start, **settings)
        starts.append(start)
        ends.append(result.columns)
        return result

    monkeypatch.setattr(ki_machine, "generate_assignments", spied)
    BagGridSearchCV(InsKISVM(gamma=0.5), {"C": [100.0, 1.0, 10.0]}, cv=2, refit=False).fit(bags, y)
    assert all(isinstance(start, str) for start in starts[:2])
    for start, end in zip(starts[2:], ends[:-2], strict=True):  # two folds by turns
        assert {frozenset(choice) for choice in start} <= {
            frozenset(np.flatnonzero(column)) for column in end
        }


SHORT = {
    "SIL": SIL(),
    "MIKernelSVM": MIKernelSVM(),
    "StatisticKernelSVM": StatisticKernelSVM(),
    "MIGraph": EDGES,
    "MICA": MICA(),
    "BagKISVM": BagKISVM(),
    "MILES": MILES(),
}


@pytest.mark.parametrize("share", [0.9, 1.5])
@pytest.mark.parametrize("name", SHORT)
def test_memory_that_is_short_is_not_exceeded(toy, monkeypatch, name, share):
    bags, y = toy
    n_bytes = share * SHORT[name]._shared_bytes(bags)
    put, held = Cache.put, []

    def spied(cache, *args):
        put(cache, *args)
        held.append((cache._held, cache.limit))

    monkeypatch.setattr(Cache, "put", spied)
    pipeline = Pipeline([("scale", "passthrough"), ("svm", SHORT[name])])
    grid = {"svm__C": C, "svm__gamma": ["scale", 0.5], "scale": ["passthrough", Unchanged()]}
    search = BagGridSearchCV(pipeline, grid, cv=CV, refit=False, cache_size=n_bytes / 1e6)
    search.fit(bags, y)
    assert held
    assert all(total <= limit <= n_bytes for total, limit in held)


@pytest.mark.parametrize(
    "kernel", [RBF(1.5), partial(rbf), [rbf]], ids=["not hashable", "partial", "in the grid"]
)
@pytest.mark.parametrize("estimator", [SIL(), MIKernelSVM()], ids=lambda e: str(e))
def test_callable_kernels(toy, estimator, kernel):
    bags, y = toy
    if isinstance(kernel, list):
        both(estimator, {"C": C, "kernel": [*kernel, RBF(1.5), "rbf"]}, bags, y)
    else:
        both(clone(estimator).set_params(kernel=kernel), {"C": C}, bags, y)
        pipeline = Pipeline([("svm", estimator)])
        both(pipeline, {"svm": [SIL(kernel=kernel), MIKernelSVM(kernel="poly")]}, bags, y)


@pytest.mark.parametrize(
    "estimator",
    [SIL(), MISVM(), MIKernelSVM(), MICA(), KEY_INSTANCES, BagKISVM(random_state=0), MILES()],
    ids=lambda e: str(e),
)
def test_scores_are_continuous_ones_too(toy, estimator):
    bags, y = toy

    def mean_margin(model, X, y):
        return float(np.mean(np.where(y > 0, 1.0, -1.0) * model.decision_function(X)))

    def instance_mean(model, X, y):
        return float(np.mean(model.instance_decision_function(X)))

    grid = {"C": C, "gamma": [0.1, "scale"]}
    scoring = {"margin": mean_margin, "instances": instance_mean}
    reference = GridSearchCV(estimator, grid, scoring=scoring, refit=False, cv=CV).fit(bags, y)
    search = BagGridSearchCV(estimator, grid, scoring=scoring, refit=False, cv=CV).fit(bags, y)
    for name in scoring:
        np.testing.assert_allclose(
            search.cv_results_[f"mean_test_{name}"],
            reference.cv_results_[f"mean_test_{name}"],
            atol=1e-5,
        )


@pytest.mark.parametrize(
    "estimator",
    [SIL(), miSVM(), MIKernelSVM(), MICA(), KEY_INSTANCES, EDGES, MILES()],
    ids=lambda e: str(e),
)
def test_classes_and_label_lists(toy, estimator):
    bags, y = toy
    both(estimator, {"C": C}, bags, three_classes(y))
    lists = np.column_stack([y > 0, np.arange(len(y)) % 3 == 0, np.arange(len(y)) % 2]).astype(int)
    both(estimator, {"C": C}, bags, lists, cv=3)


@pytest.mark.parametrize(
    "estimator",
    [SIL(), MISVM(), MIKernelSVM(), MICA(), KEY_INSTANCES, EDGES, MILES()],
    ids=lambda e: str(e),
)
def test_input_in_other_shapes(toy, estimator):
    bags, y = toy
    grid = {"C": C}
    both(estimator, grid, bags.to_list(), y)
    both(estimator, grid, bags[::-1][5:], y[::-1][5:])
    sparse_bags = Bags(sparse.csr_array(np.maximum(bags.instances, 0.0)), bags.offsets)
    both(estimator, grid, sparse_bags, y)
    single = Bags(bags.instances.astype(np.float32), bags.offsets)
    reference = GridSearchCV(estimator, grid, cv=CV).fit(single, y)
    search = BagGridSearchCV(estimator, grid, cv=CV).fit(single, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], reference.cv_results_["mean_test_score"]
    )
    both(estimator, grid, np.random.default_rng(0).normal(size=(30, 3, 2)), y)


def test_weights_groups_and_several_scores(toy):
    bags, y = toy
    rng = np.random.default_rng(0)
    groups = np.arange(len(y)) // 4
    weight = rng.integers(0, 3, len(y)).astype(float)
    for estimator in (SIL(), MIKernelSVM(), MICA(), KEY_INSTANCES, EDGES, MILES()):
        both(
            estimator,
            {"C": C},
            bags,
            y,
            cv=StratifiedBagKFold(3),
            params={"groups": groups, "sample_weight": weight},
            scoring=["accuracy", "roc_auc"],
            refit="roc_auc",
            return_train_score=True,
        )


def test_metadata_routing(toy):
    bags, y = toy
    params = {"sample_weight": 1.0 + np.arange(len(y)) % 3, "groups": np.arange(len(y)) // 2}
    with config_context(enable_metadata_routing=True):
        machine = SIL().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(InstanceTransformer(StandardScaler()), machine)
        scoring = get_scorer("accuracy").set_score_request(sample_weight=True)
        settings = {"cv": StratifiedBagKFold(3), "scoring": scoring, "params": params}
        both(pipeline, {"sil__C": C}, bags, y, **settings)


def test_what_is_not_for_the_shared_path(toy):
    bags, y = toy
    flat = np.array([bag.mean(axis=0) for bag in bags])
    both(LogisticRegression(), {"C": C}, flat, y)
    both(SIL(), {"C": C}, flat, y)
    both(MIKernelSVM(kernel="precomputed"), {"C": C}, rbf(flat, flat), y)
    both(MIKernelSVM(), {"C": C, "kernel": ["precomputed"]}, rbf(flat, flat), y)
    both(SIL(), {"C": C}, bags, y, cache_size=0.0)
    both(MIKernelSVM(), {"C": C}, bags, y, cache_size=0.0)


def test_folds_that_overlap_repeat_or_are_drawn_anew(toy):
    bags, y = toy
    both(SIL(), {"C": C}, bags, y, cv=ShuffleSplit(3, random_state=1))
    rng = np.random.default_rng(3)
    bootstrap = [(rng.integers(0, len(y), len(y)), np.arange(10)) for _ in range(3)]
    both(MIKernelSVM(), {"C": C}, bags, y, cv=bootstrap)
    both(SIL(), {"C": C}, bags, y, cv=bootstrap)
    search = BagGridSearchCV(SIL(), {"C": C}, cv=ShuffleSplit(4), cache_size=0.15).fit(bags, y)
    assert search.cv_results_["split3_test_score"].shape == (2,)


@pytest.mark.parametrize("n_jobs", [None, 3])
def test_one_matrix_for_each_gamma(toy, monkeypatch, n_jobs):
    bags, y = toy
    instance_grams = count_calls(monkeypatch, points, "point_gram")
    bag_grams = count_calls(monkeypatch, bag_kernel_machine, "set_gram")
    settings = {"cv": CV, "refit": False, "n_jobs": n_jobs, "return_train_score": True}
    numbers = {"C": C, "gamma": [0.1, 1.0]}
    rules = {"C": C, "gamma": ["scale", "2*scale"]}
    for estimator, calls in ((SIL(), instance_grams), (MIKernelSVM(), bag_grams)):
        for grid, expected in ((numbers, 2), (rules, 2 * 3)):
            calls.clear()
            BagGridSearchCV(estimator, grid, **settings).fit(bags, y)
            assert len(calls) == expected
    bag_grams.clear()
    both_kinds = {"C": C, "normalization": ["average", "feature_space"]}
    BagGridSearchCV(MIKernelSVM(gamma=1.0), both_kinds, **settings).fit(bags, y)
    assert len(bag_grams) == 1


def test_solutions_at_lower_costs_are_where_the_next_fit_starts(toy, monkeypatch):
    bags, y = toy
    moves = count_calls(monkeypatch, warm_start, "_rescaled")
    grid = {"C": [10.0, 0.1, 1.0]}
    BagGridSearchCV(SIL(gamma=0.5), grid, cv=CV, refit=False).fit(bags, y)
    assert len(moves) == 2 * 3
    for before, rows in moves:
        np.testing.assert_allclose(rows.cost, 10.0 * before.rows.cost)


def test_number_of_jobs_makes_no_difference(toy):
    bags, y = toy
    grid = {"C": C, "gamma": [0.1, "scale"]}
    for estimator in (SIL(), MIKernelSVM(), MICA(), KEY_INSTANCES, EDGES, MILES()):
        both(estimator, grid, bags, y, n_jobs=3)


def test_is_an_estimator_like_others(toy):
    bags, y = toy
    search = BagGridSearchCV(SIL(), {"C": C}, cv=3, cache_size=100.0)
    copy = clone(search)
    assert copy.get_params()["cache_size"] == 100.0
    copy.set_params(estimator__gamma=0.5, cache_size=50.0)
    assert copy.estimator.gamma == 0.5
    fitted = pickle.loads(pickle.dumps(search.fit(bags, y)))
    np.testing.assert_array_equal(fitted.predict(bags), search.predict(bags))
    assert fitted.score(bags, y) == search.score(bags, y)
    with pytest.raises(ValueError, match="cache_size"):
        BagGridSearchCV(SIL(), {"C": C}, cache_size=-1.0).fit(bags, y)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_nested_cross_validation(toy, n_jobs):
    bags, y = toy
    grid = {"C": C}
    with parallel_config(backend="threading", n_jobs=n_jobs):  # searches side by side
        ours = cross_val_score(BagGridSearchCV(SIL(), grid, cv=3), bags, y, cv=CV)
    theirs = cross_val_score(GridSearchCV(SIL(), grid, cv=3), bags, y, cv=CV)
    np.testing.assert_allclose(ours, theirs)


def test_cross_validation_in_processes(toy):
    bags, y = toy
    pipeline = make_pipeline(InstanceTransformer(StandardScaler()), SIL())
    search = BagGridSearchCV(pipeline, {"sil__C": C}, cv=2)
    here = cross_val_score(search, bags, y, cv=CV)
    np.testing.assert_array_equal(cross_val_score(search, bags, y, cv=CV, n_jobs=2), here)


def test_a_search_inside_a_search(toy):
    bags, y = toy
    scores = []
    for kind in (BagGridSearchCV, GridSearchCV):
        inner = kind(SIL(), {"C": C}, cv=2)
        outer = kind(inner, {"estimator__gamma": [0.1, "scale"]}, cv=CV).fit(bags, y)
        pipeline = make_pipeline(InstanceTransformer(StandardScaler()), inner)
        scores.append(
            [outer.cv_results_["mean_test_score"], cross_val_score(pipeline, bags, y)[:2]]
        )
    np.testing.assert_allclose(*scores)


def test_a_search_started_by_the_scorer_of_another(toy):
    bags, y = toy

    def best(model, X, y):
        inner = BagGridSearchCV(SIL(), {"C": C}, cv=2).fit(X, y)
        reference = GridSearchCV(SIL(), {"C": C}, cv=2).fit(X, y)
        assert inner.best_score_ == pytest.approx(reference.best_score_)
        return model.score(X, y)

    both(SIL(), {"C": C}, bags, y, scoring=best, error_score="raise")


def test_searches_in_threads_on_the_same_bags(toy):
    bags, y = toy
    scaled = make_pipeline(InstanceTransformer(StandardScaler()), SIL())
    tasks = [(SIL(), {"C": C}), (MIKernelSVM(), {"C": C}), (scaled, {"sil__C": C})] * 4
    expected = [GridSearchCV(*task, cv=CV).fit(bags, y).cv_results_ for task in tasks[:3]] * 4

    def search(task):
        return BagGridSearchCV(*task, cv=CV, cache_size=0.15).fit(bags, y).cv_results_

    with ThreadPoolExecutor(6) as pool:
        for ours, theirs in zip(pool.map(search, tasks), expected, strict=True):
            np.testing.assert_allclose(ours["mean_test_score"], theirs["mean_test_score"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_fits_that_fail(toy):
    bags, y = toy
    both(SIL(), {"C": [1.0, -1.0]}, bags, y)
    both(SIL(), {"C": [1.0, -1.0]}, bags, y, error_score=0.0)
    with pytest.raises(ValueError, match="C"):
        BagGridSearchCV(SIL(), {"C": [1.0, -1.0]}, error_score="raise").fit(bags, y)
    with pytest.raises(ValueError, match=r"fits failed"):
        BagGridSearchCV(SIL(), {"C": [-1.0]}).fit(bags, y)
    both(EDGES, {"max_edges": [3, "all"]}, bags, y)
    with pytest.raises(ValueError, match="No fits were performed"):
        BagGridSearchCV(SIL(), []).fit(bags, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_fold_on_which_all_fits_fail_where_memory_is_short(toy, bad):
    bags, y = toy
    cv = list(CV.split(bags, y))
    cv[bad] = np.flatnonzero(y == 0), np.flatnonzero(y)  # nothing to learn from one class
    settings = {"cv": cv, "refit": False, "cache_size": 0.12}
    search, _ = both(SIL(), {"C": C}, bags, y, **settings)
    assert np.isnan(search.cv_results_[f"split{bad}_test_score"]).all()
    with pytest.raises(ValueError, match="two classes"):
        BagGridSearchCV(SIL(), {"C": C}, error_score="raise", **settings).fit(bags, y)
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        BagGridSearchCV(SIL(), {"C": [-1.0]}, **settings).fit(bags, y)


def test_warnings_come_through(toy):
    bags, y = toy
    with pytest.warns(ConvergenceWarning) as caught:
        BagGridSearchCV(SIL(max_iter=1), {"C": [1.0, 10.0]}, cv=CV, refit=False).fit(bags, y)
    assert len(caught) == 2 * 3


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_interrupt_leaves_the_search_as_it_was(toy, n_jobs):
    bags, y = toy
    calls = []

    def interrupted(model, X, y):
        calls.append(model)
        if len(calls) > 4:
            raise KeyboardInterrupt
        return 0.0

    search = BagGridSearchCV(SIL(), {"C": C}, cv=CV, scoring=interrupted, n_jobs=n_jobs)
    before = dict(vars(search))
    with pytest.raises(KeyboardInterrupt):
        search.fit(bags, y)
    assert vars(search) == before


def test_nothing_is_kept_after_a_search(toy, monkeypatch):
    bags, y = toy
    models = []

    def remembered(model, X, y):
        models.append(model)
        return model.score(X, y)

    works, make = [], SharedWork.__init__

    def spied(work, n_bytes):
        works.append(work)
        make(work, n_bytes)

    monkeypatch.setattr(SharedWork, "__init__", spied)
    search = BagGridSearchCV(SIL(), {"C": C}, cv=CV, scoring=remembered).fit(bags, y)
    assert [work.is_open for work in works] == [False]
    assert not any(work.kept._values or work.solutions._values for work in works)
    assert "_work" not in vars(search)
    assert bags.shared is None
    # A model that a scorer has kept goes on working, on bags that are not known any more.
    scores = models[0].decision_function(bags)
    assert scores.shape == (len(y),)


def test_verbose_says_how_much_there_is_to_do(toy, capsys):
    bags, y = toy
    BagGridSearchCV(SIL(), {"C": C}, cv=CV, verbose=1).fit(bags, y)
    assert "Fitting 3 folds for each of 2 candidates" in capsys.readouterr().out
