"""BagGridSearchCV with pipelines: which steps are shared, and what steps of others get."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import bagwise.svm.machinery._points as points
from bagwise import Bags
from bagwise.embedding import MILES
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MICA, MISVM, SIL, BagKISVM, MIKernelSVM
from model_selection.searches import CV, EDGES, C, Unchanged, both, count_calls


class Drift(StandardScaler):
    """A scaler whose fit_transform is not its transform."""

    def fit_transform(self, X, y=None, **params):
        return super().fit_transform(X, y, **params) + 0.25


class Lifted(InstanceTransformer):
    def fit_transform(self, X, y=None):
        self.fit(X, y)
        return X.map_instances(clone(self.transformer).fit_transform)


class OnlyKnownBags(Unchanged):
    """A step that refuses bags that it was not fitted on."""

    def fit(self, X, y=None):
        self.known_ = {bag.tobytes() for bag in X.to_list()}
        return self

    def transform(self, X):
        if any(bag.tobytes() not in self.known_ for bag in X.to_list()):
            msg = "unknown bag"
            raise ValueError(msg)
        return X.map_instances(lambda instances: 2.0 * instances)


class OnlyKnownRows(Unchanged):
    """A transformer that refuses rows that it was not fitted on."""

    def fit(self, X, y=None):
        self.known_ = set(map(bytes, X))
        return self

    def transform(self, X):
        if not self.known_.issuperset(map(bytes, X)):
            msg = "unknown row"
            raise ValueError(msg)
        return 2.0 * X


@pytest.mark.parametrize(
    "machine",
    [SIL(), MISVM(), MIKernelSVM(), MICA(), BagKISVM(random_state=0), EDGES, MILES()],
    ids=lambda e: str(e),
)
@pytest.mark.parametrize("cache_size", [1000.0, 0.15, 0.0])
def test_pipelines(toy, machine, cache_size):
    bags, y = toy
    pipeline = Pipeline([("scale", InstanceTransformer(StandardScaler())), ("svm", machine)])
    grid = [{"svm__C": C}, {"svm__gamma": [0.1], "scale__transformer__with_std": [True, False]}]
    search, _ = both(pipeline, grid, bags, y, cache_size=cache_size)
    assert search.best_estimator_.memory is None
    assert isinstance(search.best_estimator_["scale"], InstanceTransformer)


def test_estimators_in_the_grid_stay_what_they_are(toy):
    bags, y = toy
    machines = [SIL(), MICA(), BagKISVM(random_state=0), MILES()]
    before = [str(machine.get_params()) for machine in machines]
    pipeline = Pipeline([("svm", SIL())])
    grid = [{"svm": machines, "svm__C": C, "svm__gamma": [0.1]}, {"svm": machines}]
    both(pipeline, grid, bags, y)
    assert [str(machine.get_params()) for machine in machines] == before


def test_steps_that_cannot_be_shared(toy):
    bags, y = toy
    both(make_pipeline(Lifted(Drift()), SIL()), {"sil__C": C}, bags, y)
    both(make_pipeline("passthrough", SIL()), {"sil__C": C}, bags, y)
    double = FunctionTransformer(lambda X: [2.0 * np.asarray(bag) for bag in X])
    both(make_pipeline(double, SIL()), {"sil__C": C}, bags, y)
    both(make_pipeline(double, SIL()), {"sil__C": C}, bags.to_list(), y)
    lists = Pipeline([("step", InstanceTransformer(StandardScaler())), ("svm", SIL())])
    only_lists = FunctionTransformer(lambda X: [*X, *X[:0]])
    both(lists, {"svm__C": C, "step": [only_lists, "passthrough"]}, bags.to_list(), y)


class Note(Unchanged):
    """A step that notes what it is given."""

    seen = set()  # noqa: RUF012

    def fit(self, X, y=None):
        self.seen.add(type(X))
        return self

    def transform(self, X):
        self.seen.add(type(X))
        return X


@pytest.mark.parametrize("kind", [Bags, list])
@pytest.mark.parametrize("in_grid", [False, True])
def test_steps_of_others_get_what_the_user_gave(toy, monkeypatch, kind, in_grid):
    bags, y = toy
    monkeypatch.setattr(Note, "seen", set())
    pipeline = Pipeline([("step", "passthrough" if in_grid else Note()), ("svm", SIL())])
    grid = {"svm__C": C, **({"step": [Note()]} if in_grid else {})}
    BagGridSearchCV(pipeline, grid, cv=CV).fit(bags if kind is Bags else bags.to_list(), y)
    assert Note.seen == {kind}


def test_a_step_that_does_nothing_costs_nothing(toy, monkeypatch):
    bags, y = toy
    pipeline = make_pipeline(Unchanged(), SIL(gamma=0.5))
    both(pipeline, {"sil__C": C}, bags, y)
    grams = count_calls(monkeypatch, points, "point_gram")
    BagGridSearchCV(pipeline, {"sil__C": C}, cv=CV, refit=False).fit(bags, y)
    assert len(grams) == 1


@pytest.mark.filterwarnings("ignore:Scoring failed")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.parametrize("step", [OnlyKnownBags(), InstanceTransformer(OnlyKnownRows())])
def test_a_step_that_fails_on_test_bags_fails_when_they_are_scored(toy, step):
    bags, y = toy
    pipeline = make_pipeline(step, SIL())
    settings = {"refit": False, "return_train_score": True}
    search, _ = both(pipeline, {"sil__C": C}, bags, y, **settings)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()
    assert np.isfinite(search.cv_results_["mean_train_score"]).all()


@pytest.mark.parametrize("machine", [SIL(), MIKernelSVM()], ids=lambda e: str(e))
def test_scorers_may_copy_the_model(toy, machine):
    bags, y = toy
    pipeline = make_pipeline(InstanceTransformer(StandardScaler()), machine)

    def of_copies(model, X, y):
        copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model]
        scores = [each.decision_function(X) for each in copies]
        np.testing.assert_allclose(scores[0], scores[2], atol=1e-10)
        np.testing.assert_allclose(scores[1], scores[2], atol=1e-10)
        return clone(model).fit(X, y).score(X, y)

    name = type(machine).__name__.lower()
    both(pipeline, {f"{name}__C": C}, bags, y, scoring=of_copies, refit=False, error_score="raise")


def test_one_matrix_and_one_transformation_for_each_fold(toy, monkeypatch):
    bags, y = toy
    grams = count_calls(monkeypatch, points, "point_gram")
    fits = count_calls(monkeypatch, StandardScaler, "fit")
    pipeline = make_pipeline(InstanceTransformer(StandardScaler()), SIL())
    grid = {"sil__C": C, "sil__gamma": [0.1, 1.0]}
    BagGridSearchCV(pipeline, grid, cv=CV, refit=False).fit(bags, y)
    assert len(grams) == 2 * 3
    assert len(fits) == 3


def less_their_mean(X):
    """Look at all rows at once, which a transformer of instances should not do but may."""
    return X - X.mean(axis=0)


def by_the_largest(X):
    """Look at all rows for one number, which may stand in the first of them."""
    return X / np.abs(X).max()


@pytest.mark.parametrize("function", [less_their_mean, by_the_largest])
def test_a_transformation_that_looks_at_all_rows_is_not_shared(toy, function):
    bags, y = toy
    order = np.argsort([-np.abs(bag).max() for bag in bags])  # the largest value comes first
    bags, y = bags[order], y[order]
    pipeline = make_pipeline(InstanceTransformer(FunctionTransformer(function)), SIL())
    both(pipeline, {"sil__C": C, "sil__gamma": [0.1, 1.0]}, bags, y)
