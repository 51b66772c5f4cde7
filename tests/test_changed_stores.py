"""Stores that change, and values that are none: every estimator refuses them and stays as it was.

A store may change between `Bags.open` and a fit, while a fit learns and after it has learned. NaN
may be in the last bag of a file that something else wrote to.
"""

import os
import re
import shutil
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagwise import Bags
from bagwise.base import BagEstimator
from bagwise.cluster import CPM3C
from bagwise.density import APR
from bagwise.ensemble import MILBoost
from bagwise.exceptions import BagFileError, InvalidBagsError
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL, MIKernelSVM
from instances import LIGHT_DEFAULTS

N_BAGS, SIZE, WIDTH = 16, 3, 4
VALUES = {"dense": "instances.npy", "csr": "data.npy"}
LINEAR = [
    clone(model).set_params(kernel="linear")
    for model in LIGHT_DEFAULTS
    if model.get_params().get("kernel", "linear") != "linear"
]
IN_CHUNKS = InstanceTransformer(StandardScaler(), max_memory=2000)
PREDICTIONS = (
    "predict",
    "decision_function",
    "instance_decision_function",
    "instance_predict",
    "key_instances",
    "transform",
)
CHANGED = "instances.npy, which has changed since. Open it anew."


def name_of(model):
    kernel = "linear" if model in LINEAR else ""
    chunks = "in-chunks" if model is IN_CHUNKS else ""
    return "-".join(filter(None, (type(model).__name__, kernel, chunks)))


def every(models):
    return pytest.mark.parametrize("model", models, ids=name_of)


def make_bags(layout="dense"):
    rng = np.random.default_rng(0)
    y = np.arange(N_BAGS) % 2
    X = rng.normal(size=(N_BAGS * SIZE, WIDTH))
    X += 4.0 * np.repeat(y, SIZE)[:, None]
    X = sp.csr_array(X) if layout == "csr" else X
    return Bags(X, np.arange(N_BAGS + 1) * SIZE, bag_names=[f"b{i}" for i in range(N_BAGS)]), y


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    for layout in VALUES:
        make_bags(layout)[0].write(folder / layout)
    return folder


@pytest.fixture
def copied(originals, tmp_path, monkeypatch):
    """Return a function that copies a store of some layout, which is read in many chunks."""
    monkeypatch.setattr("bagwise.bags._matrix._CHUNK_BYTES", 256)
    return lambda layout: shutil.copytree(originals / layout, tmp_path / "x.bags")


@pytest.fixture
def store(copied):
    """Return the folder of a dense store to spoil, and the labels of its bags."""
    return copied("dense"), make_bags()[1]


def write_value(path, value, row=-2, column=1):
    """Write a value into a file in place, at another time than that of its last change."""
    before = path.stat().st_mtime_ns
    values = np.load(path, mmap_mode="r+")
    values[(row, column) if values.ndim == 2 else row * WIDTH + column] = value
    later = max(path.stat().st_mtime_ns, before + 10**6)  # clocks of file systems are coarse
    os.utime(path, ns=(later, later))


def state(model):
    """Return what a model has learned, to be compared: values of arrays, and which objects."""
    return {
        name: value.tobytes() if isinstance(value, np.ndarray) else id(value)
        for name, value in vars(model).items()
    }


def assert_refused(model, bags, y, error, message):
    """Assert that a fit raises, and that the estimator is what it was, fitted or not."""
    earlier = state(model)
    with pytest.raises(error) as caught:
        model.fit(bags, y)
    assert message in str(caught.value)
    assert state(model) == earlier


# -------------------------------------------------------------------------------------- fits


@every(LIGHT_DEFAULTS)
def test_changed_between_opening_and_fit(model, store):
    folder, y = store
    bags = Bags.open(folder)
    write_value(folder / "instances.npy", 0.5)
    for known in (clone(model), clone(model).fit(*make_bags())):
        assert_refused(known, bags, y, BagFileError, CHANGED)


def test_no_store_is_made_of_a_changed_one(store, tmp_path):
    folder, _ = store
    bags = Bags.open(folder)
    write_value(folder / "instances.npy", 0.5)
    for some in (bags, bags[::-2]):
        with pytest.raises(BagFileError, match=CHANGED):
            some.write(tmp_path / "copy.bags")
        assert not (tmp_path / "copy.bags").exists()


@pytest.mark.parametrize("when", ["before", "after"])
@every(LIGHT_DEFAULTS)
def test_changed_while_a_fit_learns(model, when, store, monkeypatch):
    folder, y = store
    fitted = clone(model).fit(*make_bags())
    is_method = isinstance(model, BagEstimator)
    learner, name = (type(model), "_learn") if is_method else (StandardScaler, "fit")
    learn = getattr(learner, name)

    def learn_with_a_change(self, *args, **options):
        if when == "before":
            write_value(folder / "instances.npy", 0.5)
        learned = learn(self, *args, **options)
        if when == "after":
            write_value(folder / "instances.npy", 0.5)
        return learned

    monkeypatch.setattr(learner, name, learn_with_a_change)
    for known in (clone(model), fitted):
        assert_refused(known, Bags.open(folder), y, BagFileError, CHANGED)


def test_selections_and_lazy_bags_know_their_files(store):
    folder, y = store
    bags = Bags.open(folder)
    lazy = bags.map_instances(np.negative, lazy=True)
    write_value(folder / "instances.npy", 0.5)
    for some in (bags[::-1], bags[np.arange(N_BAGS) != 3], lazy, lazy[2:]):
        assert_refused(SIL(), some, y[: len(some)], BagFileError, CHANGED)


def test_a_pipeline_of_lazy_bags(store, monkeypatch):
    folder, y = store
    learn = SIL._learn

    def learn_with_a_change(self, *args, **options):
        learned = learn(self, *args, **options)
        write_value(folder / "instances.npy", 0.5)
        return learned

    monkeypatch.setattr(SIL, "_learn", learn_with_a_change)
    scale = InstanceTransformer(StandardScaler(), max_memory=1000)
    model = make_pipeline(scale, SIL(kernel="linear"))
    assert scale.fit(make_bags()[0]).transform(Bags.open(folder)).is_lazy
    with pytest.raises(BagFileError) as caught:
        model.fit(Bags.open(folder), y)
    assert CHANGED in str(caught.value)
    assert not hasattr(model[-1], "coef_")


def test_an_error_that_comes_of_a_change_gives_way(store, monkeypatch):
    folder, y = store

    def fail(self, *args):
        write_value(folder / "instances.npy", np.nan)
        msg = "instances must hold finite numbers only"
        raise ValueError(msg)

    monkeypatch.setattr(SIL, "_learn", fail)
    assert_refused(SIL(), Bags.open(folder), y, BagFileError, CHANGED)


def test_an_error_of_another_cause_does_not(store, monkeypatch):
    folder, y = store

    def fail(self, *args):
        msg = "no memory"
        raise MemoryError(msg)

    monkeypatch.setattr(SIL, "_learn", fail)
    assert_refused(SIL(), Bags.open(folder), y, MemoryError, "no memory")


def test_a_store_that_was_replaced_or_deleted_is_still_mapped(store):
    folder, y = store
    first, second = Bags.open(folder), Bags.open(folder)
    expected = MIKernelSVM().fit(*make_bags()).decision_function(make_bags()[0])
    make_bags()[0][::-1].write(folder, overwrite=True)
    np.testing.assert_array_equal(MIKernelSVM().fit(first, y).decision_function(first), expected)
    for file in folder.iterdir():
        file.unlink()
    np.testing.assert_array_equal(MIKernelSVM().fit(second, y).decision_function(second), expected)


# -------------------------------------------------------------------------------- predictions


@every(LIGHT_DEFAULTS)
def test_changed_between_opening_and_prediction(model, store):
    folder, _ = store
    bags, fitted = Bags.open(folder), clone(model).fit(*make_bags())
    write_value(folder / "instances.npy", 0.5)
    used = 0
    for name in ("predict", "decision_function", "transform", "instance_predict", "key_instances"):
        with suppress(AttributeError):
            use = getattr(fitted, name)
            used += 1
            with pytest.raises(BagFileError, match="has changed since"):
                use(bags)
    assert used


@pytest.mark.parametrize("method", ["_bag_outputs", "_instance_outputs"])
def test_changed_while_bags_are_scored(method, store, monkeypatch):
    folder, _ = store
    bags, model = Bags.open(folder), SIL().fit(*make_bags())
    score = getattr(SIL, method)

    def score_with_a_change(self, bags):
        scores = score(self, bags)
        write_value(folder / "instances.npy", 0.5)
        return scores

    monkeypatch.setattr(SIL, method, score_with_a_change)
    use = model.predict if method == "_bag_outputs" else model.instance_predict
    with pytest.raises(BagFileError, match="has changed since"):
        use(bags)


def test_changed_while_bags_are_transformed(store, monkeypatch):
    folder, _ = store
    bags, model = Bags.open(folder), InstanceTransformer(StandardScaler()).fit(make_bags()[0])
    transform = StandardScaler.transform

    def transform_with_a_change(self, X, copy=None):
        made = transform(self, X, copy)
        write_value(folder / "instances.npy", 0.5)
        return made

    monkeypatch.setattr(StandardScaler, "transform", transform_with_a_change)
    with pytest.raises(BagFileError, match="has changed since"):
        model.transform(bags)


# -------------------------------------------------------------------------- NaN and infinity


@pytest.mark.parametrize("layout", ["dense", "csr"])
@every([*LIGHT_DEFAULTS, *LINEAR, IN_CHUNKS])
def test_nan_in_a_late_chunk_is_named(model, layout, copied):
    if isinstance(model, InstanceTransformer) and layout == "csr":
        model = clone(model).set_params(transformer__with_mean=False)
    (bags, y), folder = make_bags(layout), copied(layout)
    write_value(folder / VALUES[layout], np.nan, row=N_BAGS * SIZE - 2)
    where = f"bag {N_BAGS - 1} ('b{N_BAGS - 1}') holds NaN at instance 1, feature "
    spoiled = Bags.open(folder)
    for known in (clone(model), clone(model).fit(bags, y)):
        assert_refused(known, spoiled, y, InvalidBagsError, f"{where}1")
    for method in PREDICTIONS:  # of the model that is fitted; a map of instances has its features
        if isinstance(known, BagEstimator) and hasattr(known, method):
            with pytest.raises(InvalidBagsError, match=re.escape(where)):
                getattr(known, method)(spoiled)


@pytest.mark.parametrize("feature", range(WIDTH))
@every([APR(), MILBoost(n_estimators=1), CPM3C(n_clusters=2)])
def test_nan_is_named_also_in_features_that_a_model_does_not_use(model, feature, store):
    folder, y = store
    bags = make_bags()[0].map_instances(lambda X: X * [10.0, 1.0, 1.0, 1.0])  # the first tells all
    fitted = clone(model).fit(bags, y)
    write_value(folder / "instances.npy", np.nan, column=feature)
    with pytest.raises(InvalidBagsError, match=f"at instance 1, feature {feature}"):
        fitted.predict(Bags.open(folder))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bags_of_selections_and_lazy_ones_are_counted_as_they_are_given(value, store):
    folder, y = store
    write_value(folder / "instances.npy", value)
    bags, what = Bags.open(folder), "NaN" if np.isnan(value) else "infinity"
    for some in (bags, bags.map_instances(np.negative, lazy=True)):
        place = f"bag 2 ('b15') holds {what} at instance 1, feature 1"
        assert_refused(SIL(), some[[4, 5, 15, 6]], y[[4, 5, 15, 6]], InvalidBagsError, place)
        SIL().fit(some[:-1], y[:-1])  # what is not selected does not matter
