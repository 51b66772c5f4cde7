"""scikit-learn's and joblib's own tools take `Bags` as they take an array."""

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.utils import resample, shuffle

from bags.naive import NearestMean, assert_same_bags, dense
from bagwise import Bags


@pytest.fixture(params=["memory", "csr", "map"])
def problem(request, tmp_path):
    """Return bags of two classes that are far apart, and their labels."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, size=40)
    y = np.repeat(["cold", "warm"], 20)
    X = rng.normal(size=(sizes.sum(), 3)) + np.repeat(y == "warm", sizes)[:, None] * 6
    bags = Bags(X, np.append(0, np.cumsum(sizes)), labels=y, bag_names=np.arange(40))
    if request.param == "csr":
        bags = bags.map_instances(sparse.csr_array)
    if request.param == "map":
        bags.write(tmp_path / "x.bags")
        bags = Bags.open(tmp_path / "x.bags")
    return bags, y


def test_train_test_split(problem):
    bags, y = problem
    train, test, y_train, y_test = train_test_split(bags, y, test_size=0.25, random_state=0)
    assert isinstance(train, Bags)
    assert (len(train), len(test)) == (30, 10)
    assert train.labels.tolist() == y_train.tolist()
    assert test.labels.tolist() == y_test.tolist()
    assert sorted([*train.bag_names, *test.bag_names]) == sorted(bags.bag_names)
    assert train._base is bags._base


@pytest.mark.parametrize("splitter", [KFold(4, shuffle=True, random_state=0), StratifiedKFold(5)])
def test_splitters(problem, splitter):
    bags, y = problem
    seen = []
    for train, test in splitter.split(bags, y):
        assert len(bags[train]) + len(bags[test]) == 40
        assert not set(bags[train].bag_names) & set(bags[test].bag_names)
        seen.extend(bags[test].bag_names)
    assert sorted(seen) == sorted(bags.bag_names)


def test_group_splitter(problem):
    bags, y = problem
    groups = np.arange(40) % 8
    for train, test in GroupKFold(4).split(bags, y, groups):
        assert not set(groups[train]) & set(groups[test])


def test_shuffle_and_resample(problem):
    bags, y = problem
    shuffled, y_shuffled = shuffle(bags, y, random_state=0)
    assert shuffled.labels.tolist() == y_shuffled.tolist()
    assert len(resample(bags, n_samples=60, random_state=0)) == 60


def as_dense(bags):
    return bags.map_instances(dense)


def test_cross_validation(problem):
    bags, y = as_dense(problem[0]), problem[1]
    assert cross_val_score(NearestMean(), bags, y, cv=4).tolist() == [1.0] * 4
    assert cross_val_predict(NearestMean(), bags, y).tolist() == y.tolist()
    results = cross_validate(NearestMean(), bags, y, return_indices=True, return_estimator=True)
    assert (results["test_score"] == 1).all()


def test_grid_search(problem):
    bags, y = as_dense(problem[0]), problem[1]
    search = GridSearchCV(NearestMean(), {"shrink": [0.0, 1.0]}).fit(bags, y)
    assert search.best_params_ == {"shrink": 0.0}
    assert search.predict(bags[::-1]).tolist() == y[::-1].tolist()


def describe(bags):
    """Return the bags as they arrived, and what can be seen of them there."""
    return bags, repr(bags), float(bags.instances.sum())


@pytest.mark.parametrize("kind", ["small", "large", "map"])
def test_other_processes(kind, tmp_path):
    """Bags go to workers and come back; arrays over 1 MB go through joblib's own memory maps."""
    n = 40_000 if kind == "large" else 400
    rng = np.random.default_rng(0)
    bags = Bags(rng.normal(size=(n, 5)), np.arange(0, n + 1, 4), instance_labels=np.arange(n))
    if kind == "map":
        bags.write(tmp_path / "x.bags")
        bags = Bags.open(tmp_path / "x.bags")
    parts = [bags, bags[::-1], bags[[3, 1]]]
    returned = joblib.Parallel(n_jobs=2, backend="loky")(
        joblib.delayed(describe)(part) for part in parts
    )
    for part, (back, text, total) in zip(parts, returned, strict=True):
        assert_same_bags(back, part)
        assert_same_bags(back.compact(), part.compact())
        assert f"{len(part)} bags" in text
        assert total == float(part.instances.sum())


def test_grid_search_in_processes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 15)
    bags = Bags(rng.normal(size=(60, 3)) + np.repeat(y, 2)[:, None] * 8, np.arange(0, 61, 2))
    search = GridSearchCV(NearestMean(), {"shrink": [0.0, 1.0]}, n_jobs=2, cv=3).fit(bags, y)
    assert search.best_score_ == 1
