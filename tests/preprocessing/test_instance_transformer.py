"""A transformer of rows, lifted to the instances of bags."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, Normalizer, StandardScaler

from bagwise import Bags
from bagwise._compat import InvalidParameterError
from bagwise.cluster import BagKMeans
from bagwise.model_selection import BagGridSearchCV, ClusterSearch
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL, MIKernelSVM
from bagwise.testing import make_toy_bags, strategies


def as_csr(bags):
    dense = Bags.from_list(bags)
    return Bags(sparse.csr_array(dense.instances), dense.offsets)


@pytest.fixture
def listed():
    return make_toy_bags(20, 4)


@pytest.mark.parametrize(
    "inner",
    [StandardScaler(), PCA(2), Nystroem(n_components=5, random_state=0), Normalizer()],
    ids=lambda inner: type(inner).__name__,
)
@pytest.mark.parametrize("kind", [list, tuple, Bags.from_list])
def test_equals_the_transformer_on_all_instances(inner, kind, listed):
    bags, _ = listed
    X = np.concatenate(bags)
    expected = clone(inner).fit(X).transform(X)
    got = InstanceTransformer(inner).fit_transform(kind(bags))
    assert isinstance(got, Bags)
    np.testing.assert_array_equal(got.sizes, [len(bag) for bag in bags])
    np.testing.assert_allclose(got.instances, expected, rtol=0, atol=1e-12)


def with_holes(bags, rate=0.2):
    rng = np.random.default_rng(0)
    return [np.where(rng.random(bag.shape) < rate, np.nan, bag) for bag in bags]


@pytest.mark.parametrize("kind", [list, lambda bags: Bags.from_list(bags, allow_nan=True)])
@pytest.mark.parametrize("inner", [SimpleImputer(), KNNImputer()], ids=str)
def test_missing_values_are_filled(listed, kind, inner):
    bags, y = listed
    holes = with_holes(bags)
    X = np.concatenate(holes)
    transformer = InstanceTransformer(inner).fit(kind(holes))
    filled = transformer.transform(kind(holes))
    np.testing.assert_array_equal(filled.instances, clone(inner).fit_transform(X))
    assert not filled.allow_nan
    model = make_pipeline(InstanceTransformer(inner), SIL()).fit(kind(holes), y)
    assert model.predict(kind(holes)).shape == (20,)
    np.testing.assert_array_equal(transformer.transform(X), filled.instances)


def test_sparse_missing_values_are_filled(listed):
    bags, _ = listed
    X = sparse.csr_array(np.concatenate(with_holes(bags)))
    offsets = Bags.from_list(bags).offsets
    filled = InstanceTransformer(SimpleImputer()).fit_transform(Bags(X, offsets, allow_nan=True))
    assert filled.is_sparse
    expected = SimpleImputer().fit_transform(X)
    np.testing.assert_allclose(filled.instances.toarray(), expected.toarray())


def test_a_scaler_keeps_what_is_missing(listed):
    bags, _ = listed
    holes = Bags.from_list(with_holes(bags), allow_nan=True)
    scaled = InstanceTransformer(StandardScaler()).fit_transform(holes)
    assert scaled.allow_nan
    np.testing.assert_array_equal(np.isnan(scaled.instances), np.isnan(holes.instances))


def test_missing_values_are_refused_where_the_transformer_does_not_take_them(listed):
    bags, y = listed
    holes = Bags.from_list(with_holes(bags), allow_nan=True)
    with pytest.raises(ValueError, match=r"bag 0 holds NaN.*InstanceTransformer\(SimpleImputer"):
        InstanceTransformer(PCA(2)).fit(holes)
    with pytest.raises(ValueError, match="bag 0 holds NaN"):
        make_pipeline(InstanceTransformer(StandardScaler()), SIL()).fit(holes, y)


@pytest.mark.parametrize("kind", [list, lambda bags: Bags.from_list(bags, allow_nan=True)])
def test_searches_take_missing_values(listed, kind):
    bags, y = listed
    holes = kind(with_holes(bags))
    model = make_pipeline(InstanceTransformer(SimpleImputer()), MIKernelSVM())
    grid = {
        "instancetransformer__transformer__strategy": ["mean", "median"],
        "mikernelsvm__C": [0.1, 1.0],
    }
    ours = BagGridSearchCV(model, grid, cv=3).fit(holes, y)
    plain = GridSearchCV(model, grid, cv=3).fit(holes, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )
    clusterer = make_pipeline(InstanceTransformer(SimpleImputer()), BagKMeans())
    found = ClusterSearch(clusterer, {"bagkmeans__n_clusters": [2]}, n_runs=2).fit(holes)
    assert found.labels_.shape == (20,)


def test_cube_comes_back_as_bags():
    cube = np.random.default_rng(0).normal(size=(4, 3, 2))
    got = InstanceTransformer(StandardScaler()).fit_transform(cube)
    assert isinstance(got, Bags)
    np.testing.assert_allclose(got.instances.std(axis=0), 1.0)


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, np.ndarray.tolist])
def test_matrix_comes_back_as_a_matrix(make):
    X = np.random.default_rng(0).normal(size=(10, 3))
    got = InstanceTransformer(StandardScaler()).fit_transform(make(X))
    np.testing.assert_allclose(got, StandardScaler().fit_transform(X), rtol=0, atol=1e-12)


def test_supervised_transformer_gets_the_label_of_the_bag(listed):
    bags, y = listed
    rng = np.random.default_rng(0)
    noisy = [np.hstack([rng.normal(size=(len(bag), 3)), bag]) for bag in bags]
    model = InstanceTransformer(SelectKBest(f_classif, k=2)).fit(noisy, y)
    expected = SelectKBest(f_classif, k=2)
    expected.fit(np.concatenate(noisy), np.repeat(y, [len(bag) for bag in bags]))
    np.testing.assert_array_equal(model.transformer_.get_support(), expected.get_support())
    assert set(model.transformer_.get_support(indices=True)) == {3, 4}
    assert model.transform(noisy).n_features == 2


def test_labels_of_the_wrong_length_are_refused(listed):
    bags, y = listed
    model = InstanceTransformer(SelectKBest(k=2))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[20, 19\]"):
        model.fit(bags, y[:-1])
    assert not hasattr(model, "n_features_in_")


def test_sparse_bags_stay_sparse(listed):
    got = InstanceTransformer(MaxAbsScaler()).fit_transform(as_csr(listed[0]))
    assert got.is_sparse
    expected = MaxAbsScaler().fit_transform(np.concatenate(listed[0]))
    np.testing.assert_allclose(got.instances.toarray(), expected, rtol=0, atol=1e-12)


def test_float32_stays_float32(listed):
    single = [bag.astype(np.float32) for bag in listed[0]]
    assert InstanceTransformer(StandardScaler()).fit_transform(single).dtype == np.float32


def test_what_is_known_about_bags_is_kept(listed):
    bags, y = listed
    names = [f"bag {i}" for i in range(20)]
    got = InstanceTransformer(StandardScaler()).fit_transform(
        Bags.from_list(bags, bag_names=names, labels=y)
    )
    assert got.bag_names.tolist() == names
    np.testing.assert_array_equal(got.labels, y)


def test_selection_is_transformed_alone(listed):
    bags = Bags.from_list(listed[0])
    order = [7, 2, 11, 3]
    got = InstanceTransformer(StandardScaler()).fit_transform(bags[order])
    expected = StandardScaler().fit_transform(np.concatenate([listed[0][i] for i in order]))
    np.testing.assert_allclose(got.instances, expected, rtol=0, atol=1e-12)


@given(strategies.bags(dtype=np.float64, min_bags=1))
def test_inverse_undoes_the_scaling(bags):
    model = InstanceTransformer(StandardScaler()).fit(bags)
    back = model.inverse_transform(model.transform(bags))
    np.testing.assert_array_equal(back.sizes, bags.sizes)
    np.testing.assert_allclose(back.instances, bags.instances, rtol=0, atol=1e-9)


def test_inverse_of_a_matrix_is_a_matrix():
    X = np.random.default_rng(0).normal(size=(6, 2))
    model = InstanceTransformer(StandardScaler()).fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X)


def test_inverse_is_there_only_if_the_transformer_has_it(listed):
    assert hasattr(InstanceTransformer(PCA()), "inverse_transform")
    assert not hasattr(InstanceTransformer(Normalizer()), "inverse_transform")
    model = InstanceTransformer(Normalizer()).fit(listed[0])
    with pytest.raises(AttributeError):
        model.inverse_transform(listed[0])


def test_feature_names_go_through(listed):
    named = Bags.from_list(listed[0], feature_names=list("abcd"))
    scaler = InstanceTransformer(StandardScaler()).fit(named)
    assert scaler.feature_names_in_.tolist() == list("abcd")
    assert scaler.get_feature_names_out().tolist() == list("abcd")
    assert scaler.transform(named).feature_names.tolist() == list("abcd")
    assert scaler.transform(listed[0]).feature_names is None
    assert scaler.inverse_transform(scaler.transform(named)).feature_names.tolist() == list("abcd")
    pca = InstanceTransformer(PCA(2)).fit(named)
    assert pca.transform(named).feature_names.tolist() == ["pca0", "pca1"]
    unnamed = InstanceTransformer(StandardScaler()).fit(listed[0])
    assert unnamed.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    assert unnamed.get_feature_names_out(list("wxyz")).tolist() == list("wxyz")


def test_names_and_widths_must_be_those_of_fit(listed):
    named = Bags.from_list(listed[0], feature_names=list("abcd"))
    model = InstanceTransformer(StandardScaler()).fit(named)
    with pytest.raises(ValueError, match="feature 0 was 'a' and is 'd'"):
        model.transform(Bags.from_list(listed[0], feature_names=list("dcba")))
    with pytest.raises(
        ValueError, match="X has 3 features, but InstanceTransformer is expecting 4"
    ):
        model.transform([bag[:, :3] for bag in listed[0]])


def test_the_transformer_given_is_not_fitted(listed):
    inner = StandardScaler()
    model = InstanceTransformer(inner).fit(listed[0])
    assert model.transformer is inner
    assert not hasattr(inner, "mean_")
    assert not hasattr(clone(model), "transformer_")
    assert clone(model).transformer is not inner


def test_fit_parameters_reach_the_transformer(listed):
    bags, _ = listed
    n = sum(map(len, bags))
    weight = np.where(np.arange(n) < len(bags[0]), 1.0, 0.0)
    model = InstanceTransformer(StandardScaler()).fit(bags, sample_weight=weight)
    np.testing.assert_allclose(model.transformer_.mean_, bags[0].mean(axis=0))


def test_transform_before_fit_is_refused(listed):
    model = InstanceTransformer(StandardScaler())
    for method in (model.transform, model.inverse_transform):
        with pytest.raises(NotFittedError, match="InstanceTransformer"):
            method(listed[0])


@pytest.mark.parametrize("inner", [None, "scaler", SIL()])
def test_what_is_no_transformer_is_refused(inner, listed):
    message = "'transformer' parameter of InstanceTransformer must be"
    with pytest.raises(InvalidParameterError, match=message):
        InstanceTransformer(inner).fit(listed[0])


def test_failing_transformer_leaves_nothing_behind(listed):
    def fail(X):
        raise RuntimeError("broken")

    inner = FunctionTransformer(fail, inverse_func=fail, check_inverse=True)
    model = InstanceTransformer(inner)
    with pytest.raises(RuntimeError, match="broken"):
        model.fit(listed[0])
    assert vars(model) == {"transformer": inner, "max_memory": "1GB"}


def test_transformer_that_loses_rows_is_refused(listed):
    model = InstanceTransformer(FunctionTransformer(lambda X: X[1:])).fit(listed[0])
    with pytest.raises(ValueError, match="must return one row per instance"):
        model.transform(listed[0])


def test_pipeline_with_search_over_nested_parameters(listed):
    bags, y = listed
    pipeline = Pipeline(
        [
            ("scale", InstanceTransformer(StandardScaler())),
            ("reduce", InstanceTransformer(PCA(2))),
            ("learn", MIKernelSVM()),
        ]
    )
    grid = {"reduce__transformer__n_components": [1, 3], "learn__C": [0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(Bags.from_list(bags), y)
    assert len(search.cv_results_["params"]) == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    n_components = search.best_params_["reduce__transformer__n_components"]
    assert best["learn"].n_features_in_ == n_components
    by_hand = clone(pipeline).set_params(**search.best_params_).fit(bags, y)
    np.testing.assert_array_equal(best.decision_function(bags), by_hand.decision_function(bags))


def test_scaling_inside_a_fold_sees_the_fold_only(listed):
    bags, y = listed
    shifted = Bags.from_list([bag * 100.0 + 1000.0 for bag in bags])
    model = make_pipeline(InstanceTransformer(StandardScaler()), SIL())
    scores = cross_val_score(model, shifted, y, cv=4, error_score="raise")
    plain = cross_val_score(model, Bags.from_list(bags), y, cv=4)
    np.testing.assert_array_equal(scores, plain)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_bags_stay_bags_whatever_the_output_is_set_to(library, listed):
    bags, y = listed
    expected = InstanceTransformer(StandardScaler()).fit_transform(bags)
    model = InstanceTransformer(StandardScaler()).set_output(transform=library)
    for got in (model.fit_transform(bags), model.transform(bags)):
        np.testing.assert_array_equal(got.instances, expected.instances)
    with config_context(transform_output=library):
        pipeline = make_pipeline(InstanceTransformer(MaxAbsScaler()), SIL())
        pipeline.fit(as_csr(bags), y)
        assert pipeline[0].transform(as_csr(bags)).is_sparse
        assert pipeline.score(bags, y) == 1.0


def test_matrices_come_in_the_frame_that_was_asked_for():
    X = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    got = InstanceTransformer(StandardScaler()).set_output(transform="pandas").fit_transform(X)
    pd.testing.assert_frame_equal(
        got, StandardScaler().set_output(transform="pandas").fit_transform(X)
    )
    with config_context(transform_output="pandas"):
        got = InstanceTransformer(PCA(2)).fit_transform(X)
    assert got.columns.tolist() == ["pca0", "pca1"]


def test_nested_parameters_are_seen():
    model = InstanceTransformer(PCA(n_components=2))
    assert model.get_params()["transformer__n_components"] == 2
    assert model.set_params(transformer__n_components=3).transformer.n_components == 3
