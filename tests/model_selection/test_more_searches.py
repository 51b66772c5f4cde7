"""Randomised and halving searches: the results of scikit-learn's, with shared work."""

import pickle

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn import model_selection
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bagwise.svm.machinery._bag_kernel_machine as bag_kernel_machine
from bagwise import Bags
from bagwise.base import SharedWork, shared_by
from bagwise.embedding import MILES
from bagwise.model_selection import (
    BagGridSearchCV,
    BagHalvingGridSearchCV,
    BagHalvingRandomSearchCV,
    BagRandomizedSearchCV,
)
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MICA, MISVM, SIL, MIGraphSVM, MIKernelSVM
from bagwise.testing import make_toy_bags

CV = StratifiedKFold(3, shuffle=True, random_state=0)
GRID = {"C": [10.0, 0.1, 1.0], "gamma": [0.1, 1.0, "scale"]}
SPACE = {"C": loguniform(1e-2, 1e2), "gamma": [0.1, 1.0, "scale"]}
SEARCHES = {
    BagRandomizedSearchCV: (SPACE, {"n_iter": 8}),
    BagHalvingGridSearchCV: (GRID, {}),
    BagHalvingRandomSearchCV: (SPACE, {"n_candidates": 9}),
}


@pytest.fixture(scope="module")
def toy():
    bags, y = make_toy_bags(60, max_size=4)
    return Bags.from_list(bags), np.asarray(y)


def theirs(kind):
    """Return the search of scikit-learn that one of ours is made of."""
    return getattr(model_selection, kind.__name__.removeprefix("Bag"))


def both(kind, estimator, space, X, y, *, n_jobs=None, cache_size=1000.0, **settings):
    settings = {"cv": CV, "random_state": 0, **settings}
    reference = theirs(kind)(estimator, space, **settings).fit(X, y)
    search = kind(estimator, space, n_jobs=n_jobs, cache_size=cache_size, **settings).fit(X, y)
    assert list(search.cv_results_) == list(reference.cv_results_)
    assert search.cv_results_["params"] == reference.cv_results_["params"]
    for name, values in reference.cv_results_.items():
        if not name.endswith("_time") and name != "params":
            np.testing.assert_array_equal(search.cv_results_[name], values, err_msg=name)
    for name in ("best_index_", "best_params_", "n_splits_", "n_resources_", "n_candidates_"):
        assert getattr(search, name, None) == getattr(reference, name, None), name
    assert search.best_score_ == reference.best_score_
    np.testing.assert_array_equal(search.decision_function(X), reference.decision_function(X))
    return search


MACHINES = [SIL(), MISVM(), MIKernelSVM(), MICA(), MIGraphSVM(graph="edges"), MILES()]


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("estimator", MACHINES, ids=str)
def test_results_are_those_of_scikit_learn(toy, kind, estimator):
    space, settings = SEARCHES[kind]
    both(kind, estimator, space, *toy, **settings)


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("cache_size", [1000.0, 0.1, 0.0])
def test_pipelines_threads_and_little_memory(toy, kind, cache_size):
    space, settings = SEARCHES[kind]
    pipeline = make_pipeline(InstanceTransformer(StandardScaler()), SIL())
    space = {f"sil__{name}": values for name, values in space.items()}
    both(kind, pipeline, space, *toy, n_jobs=2, cache_size=cache_size, **settings)


@pytest.mark.parametrize("kind", SEARCHES)
def test_input_in_other_shapes(toy, kind):
    bags, y = toy
    space, settings = SEARCHES[kind]
    both(kind, SIL(), space, bags[::-1].compact(), y[::-1], **settings)
    flat = np.array([bag.mean(axis=0) for bag in bags])
    both(kind, LogisticRegression(), {"C": space["C"]}, flat, y, **settings)


def test_a_parameter_as_the_resource(toy):
    both(
        BagHalvingGridSearchCV,
        MISVM(),
        GRID,
        *toy,
        resource="max_iter",
        max_resources=90,
        min_resources=10,
    )


def test_rounds_that_repeat(toy):
    both(BagHalvingGridSearchCV, SIL(), GRID, *toy, aggressive_elimination=True, max_resources=20)


@pytest.mark.parametrize("kind", SEARCHES)
def test_is_an_estimator_like_others(toy, kind):
    bags, y = toy
    space, settings = SEARCHES[kind]
    search = clone(kind(SIL(), space, cv=2, random_state=0, cache_size=50.0, **settings))
    assert search.get_params()["cache_size"] == 50.0
    fitted = pickle.loads(pickle.dumps(search.fit(bags, y)))
    np.testing.assert_array_equal(fitted.predict(bags), search.predict(bags))
    assert "_work" not in vars(search)
    with pytest.raises(ValueError, match="cache_size"):
        search.set_params(cache_size=-1.0).fit(bags, y)


@pytest.mark.parametrize("kind", [BagGridSearchCV, *SEARCHES])
def test_docstrings_are_complete(kind):
    attributes = kind.__doc__.split("    Attributes\n")[0]
    for name in kind(SIL(), {}).get_params(deep=False):
        assert f"\n    {name} : " in attributes
    assert "|" not in kind.__doc__


def made_of(monkeypatch, module, name, n_bags):
    """Return a list that fills with the numbers of bags of the matrices that are made."""
    calls, function = [], getattr(module, name)

    def counted(*args, **settings):
        calls.append(n_bags(*args))
        return function(*args, **settings)

    monkeypatch.setattr(module, name, counted)
    return calls


def test_random_candidates_share_the_matrix_of_their_gamma(toy, monkeypatch):
    bags, y = toy
    calls = made_of(
        monkeypatch, bag_kernel_machine, "set_gram", lambda _, __, starts, *___: len(starts)
    )
    space = {"C": loguniform(1e-2, 1e2), "gamma": [0.1, 1.0]}
    settings = {"n_iter": 12, "cv": CV, "random_state": 0, "refit": False}
    BagRandomizedSearchCV(MIKernelSVM(), space, **settings).fit(bags, y)
    assert calls == [60, 60]
    calls.clear()
    drawn = {"gamma": loguniform(0.1, 1.0)}
    BagRandomizedSearchCV(MIKernelSVM(), drawn, **settings).fit(bags, y)
    assert calls == [60] * 12


def test_rounds_on_few_bags_share_inside_of_folds(toy, monkeypatch):
    bags, y = toy
    calls = made_of(
        monkeypatch, bag_kernel_machine, "set_gram", lambda _, __, starts, *___: len(starts)
    )
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 0.5, 1.0]}
    settings = {"min_resources": 20, "cv": CV, "random_state": 0, "refit": False}
    search = BagHalvingGridSearchCV(MIKernelSVM(), grid, **settings)
    search.fit(bags, y)
    assert search.n_resources_ == [20, 60]
    assert search.n_candidates_ == [9, 3]
    last = {candidate["gamma"] for candidate in search.cv_results_["params"][9:]}
    assert sorted(calls) == [19] * 3 * 3 + [60] * len(last)  # 13 training and 6 test bags a fold


def test_parts_are_found_by_what_they_hold(toy):
    whole = toy[0].with_shared(SharedWork(1e8))
    parts = [np.array([3, 1, 4, 5]), np.array([9, 2, 6, 5])]
    whole.shared.divide(whole, parts)
    for chosen in parts:
        share = shared_by(whole[chosen[1:]])
        assert len(share.whole) == 4
        np.testing.assert_array_equal(
            share.whole[share.index].instances, whole[chosen[1:]].instances
        )
        np.testing.assert_array_equal(
            share.whole.instances[share.rows], whole[chosen[1:]].instances
        )
    of_both = [
        shared_by(whole[part]).of_whole("key", lambda part: part.n_instances) for part in parts
    ]
    assert of_both == [whole[part].n_instances for part in parts]
    assert shared_by(whole[[3, 9]]).whole is whole
    whole.shared.divide(whole, [np.arange(60), np.arange(30)])  # more work than on the whole
    assert shared_by(whole[[3, 1]]).whole is whole
