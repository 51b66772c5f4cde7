"""ClusterSearch: the rules written out, and what it shares with other searches."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import DBSCAN, KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from bagwise import Bags, load, save
from bagwise.cluster import BAMIC, CPM3C, M3IC, BagKMeans
from bagwise.metrics import normalized_mutual_information
from bagwise.model_selection import ClusterSearch
from bagwise.model_selection import _agreement as agreement_module
from bagwise.model_selection._agreement import agreement
from bagwise.model_selection._cluster_runs import Run
from bagwise.preprocessing import InstanceTransformer

GRID = {"C": [0.01, 0.1, 1.0], "balance": [0.1, 10.0]}
WHOLE = 5  # a random state whose first start leaves no cluster empty
RULES = ["consensus", "stability", "objective_spread"]


def make_bags(n_bags=30, seed=0):
    """Bags with one instance that tells the cluster, among three others that do not."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_bags) % 3
    X = rng.normal(scale=0.7, size=(n_bags, 4, 3)) + 0.2
    X[np.arange(n_bags), rng.integers(4, size=n_bags), y] += 4.0
    return Bags.from_array(X), y


@pytest.fixture(scope="module")
def toy():
    return make_bags()


def runs_one_by_one(model, grid, seeds, bags):
    """Return labels and objectives of all settings and seeds, fitted in the plainest way."""
    labels, objectives = [], []
    for C in grid["C"]:
        for balance in grid["balance"]:
            fits = [
                clone(model)
                .set_params(C=C, balance=balance, n_init=1, random_state=int(seed))
                .fit(bags)
                for seed in seeds
            ]
            labels.append([fit.labels_ for fit in fits])
            objectives.append([fit.result_.objective for fit in fits])
    return labels, np.array(objectives)


def seeds_of(random_state, n_runs):
    return np.random.RandomState(random_state).randint(2**31 - 1, size=n_runs)


# ------------------------------------------------------------------------------------ the rules


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rule", RULES)
def test_rules_equal_their_definitions(rule):
    rng = np.random.default_rng(3)
    bags = Bags.from_array(rng.normal(size=(24, 3, 4)) + 0.3)  # no clusters: the starts disagree
    search = ClusterSearch(
        M3IC(3), GRID, select_by=rule, n_runs=4, warm_start=False, min_size=0.0, random_state=1
    ).fit(bags)
    labels, objectives = runs_one_by_one(M3IC(3), GRID, seeds_of(1, 4), bags)
    nmi = normalized_mutual_information
    is_full = [[len(np.unique(one)) == 3 for one in of_cell] for of_cell in labels]
    assert all(any(row) for row in is_full)

    stability = [np.mean([nmi(a, b) for a, b in combinations(cell, 2)]) for cell in labels]
    spread = [np.std(row, ddof=1) / np.mean(row) for row in objectives]
    every = [one for cell in labels for one in cell]
    with_others = [
        np.mean([nmi(one, other) for j, other in enumerate(every) if j != i])
        for i, one in enumerate(every)
    ]
    allowed = np.where(np.ravel(is_full), with_others, -1.0).reshape(objectives.shape)
    np.testing.assert_allclose(search.results_["stability"], stability, atol=1e-12)
    np.testing.assert_allclose(search.results_["spread"], spread, rtol=1e-9)
    np.testing.assert_allclose(search.results_["consensus"], allowed.max(axis=1), atol=1e-12)

    least = np.where(is_full, objectives, np.inf)
    index, run = {
        "stability": lambda: (np.argmax(stability), least[np.argmax(stability)].argmin()),
        "objective_spread": lambda: (np.argmin(spread), least[np.argmin(spread)].argmin()),
        "consensus": lambda: np.unravel_index(allowed.argmax(), allowed.shape),
    }[rule]()
    assert search.best_index_ == index
    np.testing.assert_array_equal(search.labels_, labels[index][run])
    assert search.best_params_ == search.results_["params"][index]
    assert search.results_["rank"][index] == 1
    np.testing.assert_allclose(search.results_["objective"][index], objectives[index, run])


def test_agreement_is_the_normalized_mutual_information(monkeypatch):
    monkeypatch.setattr(agreement_module, "_NUMBERS", 160)  # two labellings at a time
    rng = np.random.default_rng(0)
    labellings = [rng.integers(k, size=50).astype(np.int32) for k in (2, 3, 5, 1, 4, 2)]
    labellings.append(labellings[2].max() - labellings[2])
    naive = [[normalized_mutual_information(a, b) for b in labellings] for a in labellings]
    np.testing.assert_allclose(agreement(labellings), naive, atol=1e-12)


def chosen_of(labellings, *, n_clusters=2, **options):
    """Return what a search does with labellings of candidates, all with the same objective."""
    runs = [
        [Run(np.asarray(one, np.int32), n_clusters, 1.0, 0.0) for one in of_candidate]
        for of_candidate in labellings
    ]
    search = ClusterSearch(M3IC(n_clusters), {"C": np.arange(1.0, len(runs) + 1)}, **options)
    results, _ = search._compare([{}] * len(runs), runs)
    return search._choose(results), results


@pytest.mark.parametrize("rule", RULES)
def test_tiny_clusters_are_passed_over(rule):
    tiny = np.arange(40) == 7  # 1 of 40 bags, where 20 are the mean
    halves = np.arange(40) < 20
    swapped = np.where(np.isin(np.arange(40), (0, 39)), ~halves, halves)
    cells = [[tiny, tiny, tiny], [halves, halves, swapped]]
    index, results = chosen_of(cells, select_by=rule)
    assert index == 1
    np.testing.assert_allclose(results["smallest_cluster"], [0.05, 1.0])
    np.testing.assert_array_equal(results["rank"], [2, 1])
    assert chosen_of(cells, select_by="stability", min_size=0.05)[0] == 0
    assert chosen_of([[tiny, tiny], [tiny, tiny]], select_by=rule)[0] == 0  # none better


@pytest.mark.parametrize("rule", ["consensus", "stability"])
def test_numbers_of_clusters_and_rounding_do_not_choose(rule):
    rng = np.random.default_rng(0)
    base = [rng.integers(4, size=60) for _ in range(3)]
    cells = [[rng.permutation(4)[labels] for labels in base] for _ in range(12)]
    index, results = chosen_of(cells, n_clusters=4, select_by=rule)
    assert index == 0
    np.testing.assert_array_equal(results["rank"], np.ones(12))


@pytest.mark.parametrize("rule", RULES)
def test_finds_planted_clusters(toy, rule):
    bags, y = toy
    search = ClusterSearch(M3IC(3), GRID, select_by=rule, random_state=0).fit(bags)
    assert normalized_mutual_information(y, search.labels_) > 0.99


def test_settings_that_fail_are_not_chosen(toy):
    """Both votes have the same objectives; but by the majority all bags are background."""
    bags, _ = toy
    keys = bags.instances.reshape(len(bags), 4, 3)
    background = Bags.from_array(np.concatenate([np.zeros((len(bags), 9, 3)), keys], axis=1))
    search = ClusterSearch(
        BagKMeans(3), {"vote": ["majority", "mil"]}, select_by="objective_spread", random_state=0
    ).fit(background)
    majority, mil = search.results_["smallest_cluster"]
    assert majority == 0
    assert mil > 0.1
    assert np.ptp(search.results_["spread"]) == 0
    assert search.best_params_ == {"vote": "mil"}


def test_a_function_chooses(toy):
    bags, _ = toy
    search = ClusterSearch(M3IC(3), GRID, select_by=lambda results: 2, n_runs=1, random_state=0)
    assert search.fit(bags).best_index_ == 2
    assert "score" not in search.results_
    with pytest.raises(ValueError, match=r"one of the 6 candidates\. Got 6"):
        search.set_params(select_by=lambda results: 6).fit(bags)


# ------------------------------------------------------------------------------ shared warm starts


def test_fits_go_along_c_from_the_last_weights(toy, tmp_path):
    bags, _ = toy
    grid = {"C": [1.0, 0.01], "balance": [1.0]}
    search = ClusterSearch(
        M3IC(3), grid, select_by=lambda results: 0, n_runs=1, random_state=WHOLE
    ).fit(bags)
    (seed,) = seeds_of(WHOLE, 1)
    first = M3IC(3, C=0.01, n_init=1, random_state=int(seed)).fit(bags)
    second = M3IC(3, C=1.0, init=first.coef_, random_state=int(seed)).fit(bags)
    np.testing.assert_array_equal(search.best_estimator_.coef_, second.coef_)
    np.testing.assert_array_equal(search.best_estimator_.init, first.coef_)
    save(search.best_estimator_, tmp_path / "best.bagwise")
    again = load(tmp_path / "best.bagwise")
    np.testing.assert_array_equal(again.predict(bags), search.labels_)
    np.testing.assert_array_equal(again.init, first.coef_)
    np.testing.assert_allclose(
        search.results_["objective"], [second.result_.objective, first.result_.objective]
    )


def test_a_fit_with_an_empty_cluster_does_not_pass_its_weights_on():
    bags = Bags.from_array(np.ones((6, 2, 3)))  # all alike: one cluster has them all
    last = {"select_by": lambda results: 1}  # the end of the chain
    search = ClusterSearch(M3IC(2), {"C": [0.1, 1.0]}, n_runs=2, random_state=0, **last)
    with pytest.warns(ConvergenceWarning, match="1 of n_clusters=2"):
        search.fit(bags)
    assert isinstance(search.best_estimator_.init, str)
    np.testing.assert_array_equal(search.results_["n_empty"], [1, 1])


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (M3IC(3, kernel="rbf", gamma=0.1), {"C": [0.1, 1.0]}),
        (CPM3C(3), {"C": [0.01, 0.1]}),
        (BAMIC(3), {"distance": ["min", "average"]}),
        (BagKMeans(3), {"vote": ["majority", "mil"]}),
    ],
    ids=["M3IC-rbf", "CPM3C", "BAMIC", "BagKMeans"],
)
def test_works_with_every_clusterer(toy, model, grid):
    bags, _ = toy
    search = ClusterSearch(model, grid, n_runs=2, random_state=2).fit(bags)
    assert search.labels_.shape == (len(bags),)
    again = clone(search.best_estimator_).fit(bags)
    np.testing.assert_array_equal(again.labels_, search.labels_)


# --------------------------------------------------------------------------------- as an estimator


def test_threads_do_not_change_the_result(toy):
    bags, _ = toy
    one, two = (
        ClusterSearch(M3IC(3), GRID, random_state=0, n_jobs=n_jobs).fit(bags) for n_jobs in (1, 2)
    )
    assert one.best_index_ == two.best_index_
    np.testing.assert_array_equal(one.best_estimator_.coef_, two.best_estimator_.coef_)
    for name in ("objective", "stability", "spread", "consensus"):
        np.testing.assert_array_equal(one.results_[name], two.results_[name])


def test_delegates_to_the_best(toy):
    bags, _ = toy
    new, _ = make_bags(9, seed=1)
    search = ClusterSearch(M3IC(3), GRID, random_state=0)
    with pytest.raises(NotFittedError):
        search.predict(bags)
    labels = search.fit_predict(bags)
    np.testing.assert_array_equal(labels, search.labels_)
    np.testing.assert_array_equal(labels, search.predict(bags))
    np.testing.assert_array_equal(search.key_instances(bags), search.best_estimator_.key_instances_)
    for name in ("predict", "transform", "decision_function", "key_instances"):
        np.testing.assert_array_equal(
            getattr(search, name)(new), getattr(search.best_estimator_, name)(new)
        )
    assert search.n_features_in_ == 3
    assert not hasattr(ClusterSearch(BAMIC(2), {"method": ["alternate"]}), "key_instances")


def test_clone_nested_parameters_and_pickle(toy):
    bags, _ = toy
    search = ClusterSearch(M3IC(3), GRID, random_state=0).set_params(estimator__tol=0.02)
    assert clone(search).get_params()["estimator__tol"] == 0.02
    search.fit(bags)
    assert search.best_estimator_.tol == 0.02
    assert search.estimator.n_init == 10
    assert search.estimator.random_state is None
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(bags), search.labels_)
    assert not hasattr(clone(search), "labels_")


def test_pipelines_lists_sparse_bags_and_matrices(toy):
    bags, _ = toy
    arrays = [np.asarray(bag) for bag in bags.instances.reshape(len(bags), 4, 3)]
    plain = ClusterSearch(M3IC(3), GRID, random_state=0).fit(arrays)
    csr = Bags(sparse.csr_array(bags.instances), bags.offsets)
    of_csr = ClusterSearch(M3IC(3), GRID, random_state=0).fit(csr)
    np.testing.assert_array_equal(plain.labels_, of_csr.labels_)
    pipeline = make_pipeline(InstanceTransformer(FunctionTransformer(np.copy)), M3IC(3))
    grid = {f"m3ic__{name}": values for name, values in GRID.items()}
    piped = ClusterSearch(pipeline, grid, random_state=0).fit(bags)
    np.testing.assert_array_equal(plain.labels_, piped.labels_)
    np.testing.assert_array_equal(piped.predict(bags), piped.labels_)
    of_one = ClusterSearch(BagKMeans(2), {"tol": [1e-4]}, random_state=0).fit(np.eye(6)[:, :2])
    assert of_one.labels_.shape == (6,)


def test_results_have_a_column_for_each_parameter(toy):
    bags, _ = toy
    grid = [{"C": [0.1, 1.0]}, {"balance": [2.0]}]
    results = ClusterSearch(M3IC(3), grid, n_runs=2, random_state=WHOLE).fit(bags).results_
    assert results["param_C"].tolist() == [0.1, 1.0, None]
    assert results["param_balance"].tolist() == [None, None, 2.0]
    assert {len(column) for column in results.values()} == {3}
    assert (results["fit_time"] > 0).all()
    least = np.minimum(results["run0_objective"], results["run1_objective"])
    assert (results["objective"] >= least).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"param_grid": {}}, "at least one parameter"),
        ({"param_grid": []}, "at least one parameter"),
        ({"param_grid": {"C": []}}, "non-empty"),
        ({"param_grid": {"n_init": [2]}}, "cannot have n_init"),
        ({"param_grid": {"random_state": [2]}}, "cannot have random_state"),
        ({"select_by": "labels"}, "'select_by' parameter of ClusterSearch"),
        ({"n_runs": 1, "select_by": "stability"}, "at least 2 for 'stability'. Got 1"),
        ({"n_runs": 0}, "'n_runs' parameter of ClusterSearch"),
        ({"min_size": 2.0}, "'min_size' parameter of ClusterSearch"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_errors(toy, changes, message):
    search = ClusterSearch(M3IC(3), GRID).set_params(**changes)
    with pytest.raises(ValueError, match=message):
        search.fit(toy[0])
    assert not hasattr(search, "results_")


def test_an_estimator_without_an_objective_is_refused(toy):
    with pytest.raises(TypeError, match=r"of ClusterSearch .* Got KMeans, without result_\."):
        ClusterSearch(KMeans(3), {"tol": [1e-4]}).fit(np.eye(6))


def test_tags_are_those_of_the_estimator():
    of_matrix = ClusterSearch(BAMIC(2, distance="precomputed"), {"method": ["alternate"]})
    assert get_tags(of_matrix).input_tags.pairwise
    of_bags = get_tags(ClusterSearch(M3IC(2), GRID)).input_tags
    assert of_bags.sparse
    assert of_bags.three_d_array
    assert not of_bags.pairwise


def test_an_estimator_without_random_state_is_refused(toy):
    with pytest.raises(TypeError, match=r"must have a random_state\. Got DBSCAN"):
        ClusterSearch(DBSCAN(), {"eps": [1.0]}).fit(toy[0])
