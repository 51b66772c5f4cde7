"""Round trips of estimators, and which estimators are refused."""

import sys

import numpy as np
import pytest
import safetensors
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from bagwise.exceptions import ModelFileError
from bagwise.persistence import load, save
from bagwise.persistence._registry import REGISTRY
from persistence.standins import KernelStandIn, assert_same, stable_id

TARGETS = {
    "int": np.arange(24) % 2 * 5 - 1,
    "uint8": (np.arange(24) % 3).astype(np.uint8),
    "str": np.tile(["no", "yes"], 12),
    "wide str": np.tile(["no", "yes"], 12).astype("U20"),
    "object": np.tile(["no", "yes", "ünsure"], 8).astype(object),
    "bool": np.arange(24) % 2 == 0,
    "float": np.arange(24) % 2 * 1.5,
    "three": np.tile(["a", "b", "c"], 8),
    "multilabel": np.arange(72).reshape(24, 3) % 5 % 2,
    "two labels": np.arange(48).reshape(24, 2) % 5 % 2,
}
FORMS = {
    "float64": np.asarray,
    "float32": np.float32,
    "csr": sparse.csr_array,
    "csr float32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
}


def round_trip(estimator, tmp_path):
    save(estimator, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same(estimator, loaded)
    return loaded


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_kernel_machine(X, tmp_path, target, form):
    X = FORMS[form](X)
    model = KernelStandIn().fit(X, TARGETS[target])
    loaded = round_trip(model, tmp_path)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


TRANSFORMERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False, copy=False),
    MinMaxScaler(),
    MinMaxScaler((-1, 0.5), clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False, with_scaling=False),
    RobustScaler(quantile_range=(10.0, 90.0), unit_variance=True),
    Normalizer("l1"),
    PCA(),
    PCA(2, whiten=True),
    PCA(0.9),
    PCA("mle"),
    PCA(3, svd_solver="randomized", random_state=0),
    PCA(np.int64(3), svd_solver="arpack", random_state=np.int64(3)),
    PCA(2, svd_solver="covariance_eigh"),
    TruncatedSVD(2, random_state=1),
    TruncatedSVD(2, algorithm="arpack", random_state=1),
    Nystroem(n_components=7, random_state=0),
    Nystroem(kernel="chi2", gamma=0.1, n_components=4, random_state=0),
    Nystroem(kernel="polynomial", degree=2, coef0=1, n_components=4, random_state=0),
    Nystroem(kernel="cosine", kernel_params={"dense_output": True}, n_components=3, random_state=0),
    VarianceThreshold(),
    VarianceThreshold(0.3),
]


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=stable_id)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_transformer(X, tmp_path, transformer, dtype):
    X = np.abs(X.astype(dtype))
    fitted = clone(transformer).fit(X)
    for parameter in ("n_components", "random_state"):  # numpy's integers come back as Python's
        if isinstance(getattr(fitted, parameter, None), np.integer):
            setattr(fitted, parameter, int(getattr(fitted, parameter)))
    loaded = round_trip(fitted, tmp_path)
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X), strict=True)


@pytest.mark.parametrize(
    "imputer",
    [
        SimpleImputer(),
        SimpleImputer(strategy="median", add_indicator=True),
        SimpleImputer(strategy="most_frequent", keep_empty_features=True),
        SimpleImputer(strategy="constant", fill_value=-1),
        SimpleImputer(strategy="constant", fill_value=0.5),
        MissingIndicator(features="all"),
    ],
    ids=stable_id,
)
@pytest.mark.parametrize("form", FORMS)
def test_imputer(X, tmp_path, imputer, form):
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    X = FORMS[form](X)
    fitted = clone(imputer).fit(X)
    save(fitted, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same(fitted.transform(X), loaded.transform(X))
    save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_imputer_of_text_is_refused(tmp_path):
    texts = np.array([["a"], [np.nan]], dtype=object)
    imputer = SimpleImputer(strategy="most_frequent").fit(texts)
    refuse(imputer, tmp_path, "must be numbers|must be one of")


@pytest.mark.parametrize(
    "transformer",
    [
        StandardScaler(with_mean=False),
        MaxAbsScaler(),
        RobustScaler(with_centering=False),
        Normalizer(),
        PCA(2),
        TruncatedSVD(2),
        Nystroem(n_components=5, random_state=0),
        VarianceThreshold(),
    ],
    ids=stable_id,
)
@pytest.mark.parametrize("form", ["csr", "csr float32"])
def test_transformer_of_sparse_data(X, tmp_path, transformer, form):
    X = FORMS[form](X)
    fitted = clone(transformer).fit(X)
    loaded = round_trip(fitted, tmp_path)
    ours, theirs = loaded.transform(X), fitted.transform(X)
    assert_same(theirs, ours)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_scaler_with_missing_values_goes_on_learning(X, tmp_path):
    X = X.copy()
    X[3, 1] = X[:, 4] = np.nan
    fitted = StandardScaler().fit(X)
    assert fitted.n_samples_seen_.shape == (5,)
    assert np.isnan(fitted.mean_[4])
    loaded = round_trip(fitted, tmp_path)
    assert_same(fitted.partial_fit(X), loaded.partial_fit(X))


def test_scaler_with_weights(X, tmp_path):
    fitted = StandardScaler().fit(X, sample_weight=np.arange(24))
    loaded = round_trip(fitted, tmp_path)
    assert_same(fitted.partial_fit(X), loaded.partial_fit(X))


def test_feature_names_and_output_setting(X, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdé"))
    fitted = StandardScaler().set_output(transform="pandas").fit(frame)
    loaded = round_trip(fitted, tmp_path)
    pandas.testing.assert_frame_equal(loaded.transform(frame), fitted.transform(frame))
    assert loaded.get_feature_names_out().tolist() == list("abcdé")


def test_pipeline(X, tmp_path):
    pipeline = Pipeline(
        [
            ("scale.1", StandardScaler()),
            ("skip", "passthrough"),
            ("none", None),
            ("inner", make_pipeline(PCA(3), MinMaxScaler())),
            ("svm", KernelStandIn(C=0.1, class_weight={"a": 1, "b": 2.5, "c": 1})),
        ],
    ).fit(X, TARGETS["three"])
    loaded = round_trip(pipeline, tmp_path)
    np.testing.assert_array_equal(loaded.decision_function(X), pipeline.decision_function(X))
    assert list(loaded.named_steps) == ["scale.1", "skip", "none", "inner", "svm"]


@pytest.mark.parametrize(
    "estimator",
    [
        KernelStandIn(C=2.0, class_weight={0: 1.0, 1: 3, True is None: 2}),
        StandardScaler().set_output(transform="polars"),
        make_pipeline(StandardScaler(), KernelStandIn()),
        PCA(2),
    ],
    ids=stable_id,
)
def test_not_fitted_means_parameters_only(tmp_path, estimator):
    from sklearn.exceptions import NotFittedError

    loaded = round_trip(estimator, tmp_path)
    with pytest.raises((NotFittedError, AttributeError)):
        getattr(loaded, "decision_function", getattr(loaded, "transform", None))(np.eye(5))


@pytest.mark.parametrize(
    "weights",
    [{0: 1.0, 1: 2}, {"a": 0.5, "b": 1}, {True: 1, False: 2}, {0.5: 1, 1.5: np.float64(2)}],
    ids=stable_id,
)
def test_class_weights_keep_the_type_of_their_keys(tmp_path, weights):
    save(KernelStandIn(class_weight=weights), tmp_path / "model")
    loaded = load(tmp_path / "model").class_weight
    assert loaded == weights
    assert [type(key) for key in loaded] == [type(key) for key in weights]


def test_same_model_gives_the_same_file(model, tmp_path):
    for name in "ab":
        save(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    save(load(tmp_path / "a"), tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()


def test_loaded_arrays_are_writable_and_own_their_data(model, tmp_path):
    loaded = round_trip(model, tmp_path)
    for name in ("support_vectors_", "dual_coef_", "intercept_", "support_"):
        assert getattr(loaded, name).flags.writeable


def test_safetensors_sees_the_arrays(model, tmp_path):
    path = str(tmp_path / "model.safetensors")
    save(model, path)
    with safetensors.safe_open(path, framework="np") as file:
        for name in ("support_vectors_", "dual_coef_", "intercept_", "support_"):
            np.testing.assert_array_equal(file.get_tensor(name), getattr(model, name), strict=True)


# Refusals


def refuse(estimator, tmp_path, match):
    path = tmp_path / "model"
    path.write_bytes(b"as it was")
    with pytest.raises(ModelFileError, match=match):
        save(estimator, path)
    assert path.read_bytes() == b"as it was"
    assert len(list(tmp_path.iterdir())) == 1


class Subclass(StandardScaler):
    pass


class Namesake:
    """Has the name of a class of the registry, and nothing else."""


Namesake.__name__ = "StandardScaler"


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        FunctionTransformer(),
        Subclass(),
        Namesake(),
        None,
        "StandardScaler",
        StandardScaler,
        {"C": 1},
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=stable_id,
)
def test_other_classes_are_refused(tmp_path, estimator):
    refuse(estimator, tmp_path, "model files hold only .*PCA.*Use skops for other scikit-learn")


def test_callable_kernel_is_refused(tmp_path):
    refuse(KernelStandIn(kernel=lambda a, b: a @ b.T), tmp_path, "kernel cannot be stored: a calla")
    refuse(Nystroem(kernel=len), tmp_path, "Nystroem: kernel cannot be stored")


def test_random_generator_is_refused(tmp_path):
    refuse(KernelStandIn(random_state=np.random.RandomState(0)), tmp_path, "a random generator")


def test_pipeline_with_a_cache_is_refused(tmp_path):
    refuse(Pipeline([("a", PCA())], memory="cache"), tmp_path, "memory cannot be stored: it names")


def test_of_a_search_the_best_estimator_is_saved(X, tmp_path):
    search = GridSearchCV(PCA(), {"n_components": [1, 2]}, cv=2).fit(X)
    refuse(search, tmp_path, "is a GridSearchCV; save its best_estimator_")
    round_trip(search.best_estimator_, tmp_path)


@pytest.mark.parametrize("depth", [5, 6])
def test_depth_of_pipelines(tmp_path, depth):
    estimator = StandardScaler()
    for _ in range(depth):
        estimator = Pipeline([("a", estimator)])
    if depth == 5:
        round_trip(estimator, tmp_path)
    else:
        refuse(estimator, tmp_path, "nested deeper")


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [("a", PCA()), ("a", PCA())],
        [("a__b", PCA())],
        [(1, PCA())],
        [("a", KernelStandIn()), ("b", PCA())],
        [("a", PCA(), 1)],
        ["ab"],
        [PCA()],
        ["passthrough"],
    ],
    ids=stable_id,
)
def test_pipeline_that_could_not_run_is_refused(tmp_path, steps):
    refuse(Pipeline(steps), tmp_path, "Pipeline: steps")


def test_invalid_parameter_is_refused(tmp_path):
    refuse(KernelStandIn(C=-1.0), tmp_path, "'C' parameter of KernelStandIn must be a float")


def test_unknown_attribute_is_refused(model, tmp_path):
    model.extra_ = 1
    refuse(model, tmp_path, r"does not know: \['extra_'\]")


def test_half_fitted_is_refused(model, tmp_path):
    del model.intercept_
    refuse(model, tmp_path, r"lacks \['intercept_'\]")


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("dual_coef_", np.ones((2, 12)), "n_outputs"),
        ("dual_coef_", np.full((3, 12), np.nan), "finite"),
        ("dual_coef_", np.ones((3, 12), np.float32), "8 bytes"),
        ("intercept_", np.ones(1), "n_outputs"),
        ("support_vectors_", np.ones((12, 4)), "n_features"),
        ("support_", np.arange(12) - 1, "below 0"),
        ("gamma_", 0.0, "above 0"),
        ("gamma_", None, "must be of float"),
        ("classes_", np.array(["a"]), "two classes"),
        ("classes_", np.array(["a", "b"]), "n_outputs"),
        ("classes_", np.array(["b", "a", "c"]), "sorted"),
        ("multilabel_", 0, "True or False"),
        ("n_features_in_", 4, "n_features"),
        ("feature_names_in_", np.array(list("abcd"), object), "n_features"),
        ("result_", None, "Certificate"),
        ("_sklearn_output_config", {"transform": "numpy"}, "set_output"),
        ("_sklearn_output_config", {"predict": "pandas"}, "set_output"),
    ],
)
def test_contradicting_state_is_refused(model, tmp_path, name, value, match):
    setattr(model, name, value)
    refuse(model, tmp_path, match)


def test_class_that_is_not_installed(tmp_path, monkeypatch, model):
    from persistence.standins import KEY

    save(model, tmp_path / "model")

    def find():
        raise ImportError

    monkeypatch.setitem(REGISTRY, KEY, __import__("dataclasses").replace(REGISTRY[KEY], find=find))
    with pytest.raises(ModelFileError, match="not in this installation"):
        load(tmp_path / "model")


# Paths


def test_messages_name_the_file_and_its_writer(tmp_path, model):
    with pytest.raises(ModelFileError, match=r"Model file '.*nowhere.*' cannot be written: there"):
        save(model, tmp_path / "nowhere" / "model")
    (tmp_path / "text").write_text("This is not a model, but long enough to be looked at.")
    with pytest.raises(ModelFileError, match=r"Model file '.*text' is not a bagwise model file"):
        load(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")
    save(model, str(tmp_path / "model"))
    assert_same(model, load(str(tmp_path / "model")))


def test_path_must_be_a_path(model):
    for path in (None, 3, b"bytes"):
        with pytest.raises(TypeError):
            save(model, path)
        with pytest.raises(TypeError):
            load(path)


def test_full_disk_is_reported_with_its_cause(tmp_path, model, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    with pytest.raises(ModelFileError, match=r"cannot be written: .*No space left") as raised:
        save(model, tmp_path / "model")
    assert isinstance(raised.value.__cause__, OSError)


# The registry


def test_every_key_is_the_public_path_of_its_class():
    for key, entry in REGISTRY.items():
        if key.startswith("sklearn."):
            module, _, name = key.rpartition(".")
            assert entry.name == name
            assert getattr(sys.modules[module], name) is entry.find()
            assert set(entry.params) <= set(entry.find()._get_param_names())


# skops, the other safe format, for what this one does not hold


def test_skops_holds_the_same_estimators(model, tmp_path, X):
    skops = pytest.importorskip("skops.io")
    pipeline = make_pipeline(StandardScaler(), model).fit(X, TARGETS["three"])
    path = tmp_path / "model.skops"
    skops.dump(pipeline, path)
    trusted = skops.get_untrusted_types(file=path)
    assert all(name.startswith(("persistence.", "bagwise.")) for name in trusted)
    loaded = skops.load(path, trusted=trusted)
    np.testing.assert_array_equal(loaded.decision_function(X), pipeline.decision_function(X))
    assert loaded[-1].result_.status == model.result_.status
