"""The library's own estimators: a loaded one decides as the saved one, to the last bit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagwise import Bags
from bagwise.cluster import BAMIC, M3IC
from bagwise.exceptions import ModelFileError
from bagwise.persistence import load, save
from bagwise.persistence._registry import REGISTRY
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL, MIKernelSVM, SparseMI
from bagwise.testing import make_toy_bags
from persistence.standins import assert_same

SIZES = np.tile([1, 3, 4], 8)
OFFSETS = np.concatenate([[0], SIZES.cumsum()])
FORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr": lambda X: sparse.csr_matrix(X * (X > 0)),
    "csr float32": lambda X: sparse.csr_array(X.astype(np.float32) * (X > 0)),
}
TARGETS = {
    "int": np.arange(24) % 2 * 5 - 1,
    "str": np.tile(["no", "yes"], 12),
    "object": np.tile(["no", "yes"], 12).astype(object),
    "bool": np.arange(24) % 2 == 0,
    "float": np.arange(24) % 2 * 1.0,
    "three": np.tile(["a", "b", "c"], 8),
    "multilabel": np.arange(72).reshape(24, 3) % 5 % 2,
    "two labels": np.arange(48).reshape(24, 2) % 5 % 2,
    "a label that no bag has": np.eye(3, dtype=int)[np.arange(24) % 2],
}
#: The positive class where it does not go without saying.
POSITIVE = {"int": 4, "str": "no", "object": "no"}
ESTIMATORS = {
    "SIL": SIL(),
    "SIL linear": SIL(kernel="linear", gamma=1),
    "MIKernelSVM": MIKernelSVM(C=2, gamma="median"),
    "MIKernelSVM poly": MIKernelSVM(
        kernel="poly", degree=2, coef0=np.float64(1), normalization="feature_space"
    ),
}
DECISIONS = ["decision_function", "predict", "instance_decision_function", "key_instances"]


def make_bags(form):
    matrix = np.random.default_rng(0).normal(size=(SIZES.sum(), 5))
    return Bags(FORMS[form](matrix), OFFSETS)


def round_trip(estimator, tmp_path):
    save(estimator, tmp_path / "model")
    return load(tmp_path / "model")


def plain(estimator):
    """Parameters as they come back: numpy's numbers are Python's."""
    params = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in estimator.get_params(deep=False).items()
    }
    return estimator.set_params(**params)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_kernel_machines(tmp_path, name, target, form):
    bags = make_bags(form)
    model = clone(ESTIMATORS[name])
    if target in POSITIVE and isinstance(model, SIL):
        model.set_params(pos_label=POSITIVE[target])
    model.fit(bags, TARGETS[target])
    loaded = round_trip(model, tmp_path)
    assert_same(plain(model), loaded)
    for method in DECISIONS:
        got, expected = getattr(loaded, method)(bags), getattr(model, method)(bags)
        np.testing.assert_array_equal(got, expected, strict=True)


def test_pipeline_of_bags(tmp_path):
    bags = make_bags("float64")
    model = make_pipeline(
        InstanceTransformer(StandardScaler()), InstanceTransformer(PCA(3)), MIKernelSVM()
    ).fit(bags, TARGETS["three"])
    loaded = round_trip(model, tmp_path)
    assert_same(model, loaded)
    np.testing.assert_array_equal(loaded.decision_function(bags), model.decision_function(bags))


def test_instance_transformer_keeps_its_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), columns=["x", "ÿ"])
    model = InstanceTransformer(StandardScaler()).fit(frame)
    loaded = round_trip(model, tmp_path)
    assert_same(model, loaded)
    assert loaded.get_feature_names_out().tolist() == ["x", "ÿ"]


@pytest.mark.parametrize("estimator", [SIL(), MIKernelSVM(), InstanceTransformer(PCA(2))], ids=repr)
def test_not_fitted(tmp_path, estimator):
    assert_same(estimator, round_trip(estimator, tmp_path))


def test_callable_kernel_is_refused(tmp_path):
    model = SIL(kernel=lambda a, b: a @ b.T).fit(make_bags("float64"), TARGETS["bool"])
    with pytest.raises(ModelFileError, match="SIL: kernel cannot be stored: a callable"):
        save(model, tmp_path / "model")


def test_registry_knows_these_classes():
    for cls in (SIL, MIKernelSVM, InstanceTransformer):
        assert [entry.find() for entry in REGISTRY.values()].count(cls) == 1


@pytest.mark.parametrize("cls", [SIL, MIKernelSVM])
def test_skops_holds_them_too(tmp_path, cls):
    skops = pytest.importorskip("skops.io")
    bags = make_bags("float64")
    model = make_pipeline(InstanceTransformer(StandardScaler()), cls()).fit(bags, TARGETS["three"])
    skops.dump(model, tmp_path / "model.skops")
    trusted = skops.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("bagwise.") for name in trusted)
    loaded = skops.load(tmp_path / "model.skops", trusted=trusted)
    np.testing.assert_array_equal(loaded.decision_function(bags), model.decision_function(bags))
    assert loaded[-1].result_.gap == model[-1].result_.gap


@pytest.mark.parametrize(
    "model",
    [
        SparseMI(3, init=np.arange(9.0).reshape(3, 3), max_iter=5),
        M3IC(2, init=np.eye(3)[:2].astype(np.float32)),
        BAMIC(2, init=np.array([0, 3])),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_given_start_is_stored(model, tmp_path):
    bags, y = make_toy_bags()
    save(model.fit(bags, y), tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.init, model.init, strict=True)
    np.testing.assert_array_equal(loaded.predict(bags), model.predict(bags))
