"""Instances that take more than ``max_memory``: fitted in chunks, transformed when read."""

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)
from threadpoolctl import threadpool_limits

import bagwise
from bagwise import Bags
from bagwise.bags import instance_bytes
from bagwise.cluster import M3IC
from bagwise.exceptions import MemoryLimitError
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MISVM, SIL, LabelMeanSVM, MIKernelSVM, StatisticKernelSVM

N_BAGS, WIDTH = 48, 96
LIMIT = "10MB"  # holds two chunks, and is less than all instances


@pytest.fixture(scope="module")
def plain():
    """About 15 MB of float32, in units that differ; positive bags have some instances far out."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(600, 1000, N_BAGS)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    y = np.arange(N_BAGS) % 2
    rows = rng.normal(3.0, 1.0, size=(offsets[-1], WIDTH))
    for i in np.flatnonzero(y):
        rows[offsets[i] : offsets[i] + 60, :4] += 3.0
    rows *= rng.uniform(0.1, 10.0, WIDTH)
    return Bags(rows.astype(np.float32), offsets, labels=y)


@pytest.fixture(scope="module")
def stored(plain, tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "plain.bags"
    plain.write(path)
    return Bags.open(path)


@pytest.fixture(scope="module")
def csr(tmp_path_factory):
    rows = sparse.random_array(
        (60_000, 500), density=0.03, format="csr", rng=np.random.default_rng(1)
    )
    path = tmp_path_factory.mktemp("large") / "csr.bags"
    Bags(rows, np.arange(0, 60_001, 300)).write(path)
    return Bags.open(path)


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


ROW_BY_ROW = [
    MinMaxScaler(),
    MaxAbsScaler(),
    Normalizer(),
    Binarizer(threshold=2.0),
    FunctionTransformer(np.abs),
]


@pytest.mark.parametrize("inner", ROW_BY_ROW, ids=str)
@pytest.mark.parametrize("where", ["stored", "plain"])
def test_row_by_row_gives_the_bits_of_scikit_learn(inner, where, plain, request):
    bags = request.getfixturevalue(where)
    made = InstanceTransformer(inner, max_memory=LIMIT).fit_transform(bags)
    assert made.is_lazy
    expected = clone(inner).fit_transform(plain.instances)
    chosen = [7, 3, 30]
    rows = np.concatenate([expected[slice(*plain.offsets[i : i + 2])] for i in chosen])
    np.testing.assert_array_equal(made[chosen].instances, rows)
    np.testing.assert_array_equal(made.instances, expected)


def test_moments_in_chunks_are_those_of_all_instances(plain, stored):
    inner = StandardScaler().fit(plain.instances)
    large = InstanceTransformer(StandardScaler(), max_memory=LIMIT).fit(stored)
    np.testing.assert_allclose(large.transformer_.mean_, inner.mean_, rtol=1e-6)
    np.testing.assert_allclose(large.transformer_.var_, inner.var_, rtol=1e-5)
    assert large.transformer_.n_samples_seen_ == plain.n_instances
    made, expected = large.transform(stored), inner.transform(plain.instances)
    np.testing.assert_allclose(made.instances, expected, rtol=0, atol=1e-4)


def test_shape_decides_and_not_where_rows_lie(plain, stored):
    models = [
        InstanceTransformer(StandardScaler(), max_memory=LIMIT).fit(bags)
        for bags in (plain, stored)
    ]
    for name in ("mean_", "var_", "scale_"):
        first, second = (getattr(model.transformer_, name) for model in models)
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("size", [None, 700, 5000])
def test_components_are_those_of_its_own_fit(plain, stored, size):
    inner = IncrementalPCA(5, batch_size=size)
    with threadpool_limits(1):  # the last bits of a decomposition depend on the number of threads
        model = InstanceTransformer(inner, max_memory=LIMIT).fit(stored)
        expected = clone(inner).fit(plain.instances)
    np.testing.assert_array_equal(model.transformer_.components_, expected.components_)
    made = model.transform(stored)
    assert not made.is_lazy  # five features of each instance fit
    np.testing.assert_allclose(
        made.instances, expected.transform(plain.instances), rtol=0, atol=1e-3
    )


@pytest.mark.parametrize(
    "inner", [StandardScaler(with_mean=False), MaxAbsScaler(), Normalizer()], ids=str
)
def test_sparse_stays_sparse(inner, csr):
    assert instance_bytes(csr) > 10_000_000
    made = InstanceTransformer(inner, max_memory=LIMIT).fit_transform(csr)
    assert made.is_lazy
    assert made.is_sparse
    expected = clone(inner).fit_transform(csr.instances)
    assert made.instances.nnz == expected.nnz
    np.testing.assert_allclose(made.instances.data, expected.data, rtol=1e-12)


def test_one_after_another(plain, stored):
    steps = [
        InstanceTransformer(inner, max_memory=LIMIT) for inner in (MinMaxScaler(), MaxAbsScaler())
    ]
    made = make_pipeline(*steps).fit_transform(stored)
    assert made.is_lazy
    expected = make_pipeline(MinMaxScaler(), MaxAbsScaler()).fit_transform(plain.instances)
    np.testing.assert_array_equal(made.instances, expected)


def test_small_bags_are_transformed_at_once(stored):
    assert not InstanceTransformer(StandardScaler()).fit_transform(stored).is_lazy
    assert not InstanceTransformer(PCA(2), max_memory=None).fit_transform(stored).is_lazy


@pytest.mark.parametrize("inner", [PCA(2), RobustScaler(), SelectKBest(k=3)], ids=str)
def test_what_needs_all_instances_is_refused_from_a_store(inner, plain, stored):
    model = InstanceTransformer(inner, max_memory=LIMIT)
    with pytest.raises(MemoryLimitError, match=f"{type(inner).__name__} has no partial_fit"):
        model.fit(stored, stored.labels)
    assert not hasattr(model, "transformer_")
    made = model.fit(plain, plain.labels).transform(plain)  # they are in memory already
    labels = np.repeat(plain.labels, plain.sizes)
    expected = clone(inner).fit(plain.instances, labels).transform(plain.instances)
    np.testing.assert_allclose(made.instances, expected, rtol=0, atol=1e-4)


def centred(rows):
    return rows - rows.mean(axis=0)


def test_rows_that_depend_on_each_other_are_not_cut_apart(plain, stored):
    model = InstanceTransformer(FunctionTransformer(centred), max_memory=LIMIT)
    np.testing.assert_array_equal(model.fit_transform(plain).instances, centred(plain.instances))
    with pytest.raises(MemoryLimitError, match="rows that depend on each other"):
        model.fit(stored).transform(stored)


def test_a_limit_below_one_chunk_is_refused(stored):
    with pytest.raises(MemoryLimitError, match="largest chunk"):
        InstanceTransformer(StandardScaler(), max_memory="1MB").fit(stored)


MODELS = [
    MIKernelSVM(kernel="linear"),
    LabelMeanSVM(kernel="linear"),
    StatisticKernelSVM(kernel="linear", statistic="mean_std"),
    M3IC(n_clusters=2, init="random", n_init=2, max_memory=LIMIT, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_what_learns_in_passes_never_holds_all_instances(model, stored, monkeypatch):
    monkeypatch.setenv("BAGWISE_NUM_THREADS", "1")  # so many chunks are in work at a time

    def fit(limit):
        steps = InstanceTransformer(MaxAbsScaler(), max_memory=limit), clone(model)
        tracemalloc.start()
        try:
            fitted = make_pipeline(*steps).fit(stored, stored.labels)
            scores = fitted.predict(stored)
            return fitted, scores, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    fit(LIMIT)  # compiles
    small, scores, least = fit(LIMIT)
    eager, expected, most = fit(None)
    np.testing.assert_array_equal(small[-1].coef_, eager[-1].coef_)
    np.testing.assert_array_equal(scores, expected)
    assert most > instance_bytes(stored)
    assert least < instance_bytes(stored)  # a few chunks of 4 MB, as they are and in float64


@pytest.mark.parametrize("model", [MISVM, SIL])
def test_linear_machines_by_passes(model, plain, stored, monkeypatch):
    monkeypatch.setattr("bagwise.svm.machinery._kernel_machine.MANY_VALUES", 1000)
    machine = (
        model(C=0.01, kernel="linear", n_init=1)
        if model is MISVM
        else model(C=0.01, kernel="linear")
    )
    folds = KFold(3, shuffle=True, random_state=0)
    scores = [
        cross_val_predict(
            make_pipeline(InstanceTransformer(MaxAbsScaler(), max_memory=limit), machine),
            stored, stored.labels, cv=folds, method="decision_function",
        )
        for limit in (LIMIT, None)
    ]  # fmt: skip
    np.testing.assert_array_equal(*scores)


def test_searches_share_lazy_bags(stored):
    pipeline = make_pipeline(
        InstanceTransformer(StandardScaler(), max_memory=LIMIT), MIKernelSVM(kernel="linear")
    )
    grid = {"mikernelsvm__C": [0.1, 1.0]}
    search = BagGridSearchCV(pipeline, grid, cv=3).fit(stored, stored.labels)
    alone = [
        cross_validate(clone(pipeline).set_params(mikernelsvm__C=C), stored, stored.labels, cv=3)
        for C in (0.1, 1.0)
    ]
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], [found["test_score"].mean() for found in alone]
    )


def test_pipelines_are_saved_and_pickled(stored, tmp_path):
    model = make_pipeline(
        InstanceTransformer(StandardScaler(), max_memory=LIMIT), MIKernelSVM(kernel="linear")
    ).fit(stored, stored.labels)
    expected = model.decision_function(stored)
    bagwise.save(model, tmp_path / "model")
    loaded = bagwise.load(tmp_path / "model")
    assert loaded[0].max_memory == LIMIT
    for again in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.decision_function(stored), expected)
