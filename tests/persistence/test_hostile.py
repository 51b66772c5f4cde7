"""Files that were made to do harm: each is refused with the one exception, and nothing runs."""

import copy
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import safetensors.numpy
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from bagwise.exceptions import ModelFileError
from bagwise.persistence import _format, load, save
from persistence.standins import (
    KEY,
    KernelStandIn,
    blob_of,
    put_together,
    raw_file,
    restamp,
    stable_id,
    take_apart,
)

X = np.random.default_rng(0).normal(size=(24, 5))
Y = np.tile(["a", "b", "c"], 8)


class Bomb:
    def __reduce__(self):
        return os.abort, ()


def saved(tmp_path, estimator):
    save(estimator, tmp_path / "model")
    return (tmp_path / "model").read_bytes()


def zipped(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(name, content)
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def inner(**changes):
    """Our JSON with changes, in a file without arrays."""
    return put_together({}, {"sha256": "0" * 64, "format": 1, **changes}, b"")


def inner_text(text):
    return put_together({}, f'{{"sha256":"{"0" * 64}","format":1,"model":{text}}}', b"")


def tensor(dtype="F64", shape=(1,), offsets=(0, 8), size=8):
    """A file with one array that is declared like this."""
    declared = {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}
    text = json.dumps({"sha256": "0" * 64, "format": 1}, separators=(",", ":"))
    return raw_file({"__metadata__": {"bagwise": text}, "x": declared}, b"\1" * size)


def two_tensors(first, second, size=16):
    text = json.dumps({"sha256": "0" * 64, "format": 1}, separators=(",", ":"))
    header = {"__metadata__": {"bagwise": text}}
    for name, offsets in (("x", first), ("y", second)):
        header[name] = {"dtype": "F64", "shape": [1], "data_offsets": offsets}
    return raw_file(header, bytes(size))


GOOD = blob_of({"versions": {}, "model": {}}, {"x": np.ones(3)})

#: Files that break the layout. Where they have a checksum, it is right.
LAYOUT = {
    "empty": b"",
    "seven bytes": b"\0" * 7,
    "length only": (0).to_bytes(8, "little"),
    "length beyond the file": (100).to_bytes(8, "little") + b"{}",
    "length of 64 bits": b"\xff" * 8 + GOOD[8:],
    "length one too long": restamp(
        (int.from_bytes(GOOD[:8], "little") + 1).to_bytes(8, "little") + GOOD[8:]
    ),
    "header over the limit": raw_file(b" " * (_format.MAX_HEADER + 1)),
    "header of spaces": raw_file(b" " * 99),
    "header not UTF-8": raw_file(b'{"\xff": 1}'),
    "header a list": raw_file([]),
    "header a number": raw_file(b"1"),
    "header deep": raw_file(b"[" * 100_000 + b"]" * 100_000),
    "header deep object": raw_file(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "header with NaN": raw_file(b'{"__metadata__": NaN}'),
    "pickle": pickle.dumps(Bomb()),
    "pickle, protocol 0": pickle.dumps(Bomb(), protocol=0),
    "pickle after a length": raw_file(pickle.dumps(Bomb())),
    "zip": zipped("model.pkl", pickle.dumps(Bomb())),
    "zip bomb": zipped("zeros", bytes(10**6)),
    "npz": npz(x=np.ones(3)),
    "npz with objects": npz(x=np.array([Bomb()], dtype=object)),
    "zip after a model": restamp(GOOD + zipped("a", b"b")),
    "model after a zip": restamp(zipped("a", b"b") + GOOD),
    "script": b"#!/bin/sh\nkill $PPID\n",
    "text": b"C = 1.0\n" * 20,
    "foreign safetensors": safetensors.numpy.save({"x": np.ones(3)}),
    "foreign metadata": safetensors.numpy.save({"x": np.ones(3)}, {"format": "pt"}),
    "foreign JSON": safetensors.numpy.save({}, {"bagwise": "hello"}),
    "metadata a list": raw_file({"__metadata__": [1]}),
    "metadata not text": raw_file({"__metadata__": {"bagwise": {"format": 1}}}),
    "metadata with more": restamp(
        safetensors.numpy.save({}, {"bagwise": json.dumps({"format": 1}), "more": "x"})
    ),
    "model a list": put_together({}, [], b""),
    "model null": put_together({}, None, b""),
    "model deep": inner_text("[" * 100_000 + "]" * 100_000),
    "model a little too deep": inner_text("[" * 101 + "]" * 101),
    "model with NaN": inner_text("NaN"),
    "model with infinity": inner_text('{"C":-Infinity}'),
    "model with 1e999": inner_text('{"C":1e999}'),
    "model with a long integer": inner_text("9" * 5000),
    "model with a duplicate key": inner_text('{"class":"a","class":"b"}'),
    "two digests": inner_text(f'{{"sha256":"{"0" * 64}"}}'),
    "no digest": put_together({}, {"format": 1}, b""),
    "digest too short": put_together({}, {"sha256": "0" * 63, "format": 1}, b""),
    "digest in capitals": GOOD.replace(
        take_apart(GOOD)[1]["sha256"].encode(), take_apart(GOOD)[1]["sha256"].upper().encode()
    ),
    "digest wrong": GOOD.replace(take_apart(GOOD)[1]["sha256"].encode(), b"a" * 64),
    "digest not first": put_together({}, {"a": {"sha256": "0" * 64}, "format": 1}, b""),
    **{
        f"format {number!r}": inner(format=number)
        for number in (2, 10**9, 0, -1, True, 1.0, "1", None, [1])
    },
    "bytes after the arrays": restamp(GOOD + b"\0"),
    "bytes missing": restamp(GOOD[:-1]),
    "arrays missing": restamp(GOOD[:-24]),
    "overlap": two_tensors([0, 8], [4, 12]),
    "same place": two_tensors([0, 8], [0, 8], size=8),
    "hole": two_tensors([0, 8], [16, 24], size=24),
    "hole at the start": two_tensors([8, 16], [16, 24], size=24),
    "offsets backwards": tensor(offsets=(8, 0)),
    "offsets beyond": tensor(offsets=(0, 2**40)),
    "offsets negative": tensor(offsets=(-8, 0)),
    "offsets of 64 bits": tensor(offsets=(2**64 - 8, 2**64)),
    "shape negative": tensor(shape=(-1,)),
    "shape huge": tensor(shape=(2**60,)),
    "shape overflows": tensor(shape=(2**32, 2**32, 2**32)),
    "shape overflows to the right size": tensor(shape=(2**61 + 1,)),
    "shape empty but huge": tensor(shape=(0, 2**63), offsets=(0, 0), size=0),
    "shape of too many dimensions": tensor(shape=(1,) * 100),
    "shape of fractions": tensor(shape=(1.5,)),
    "shape of text": tensor(shape=("1",)),
    "shape and dtype disagree": tensor("F32"),
    "dtype object": tensor("O"),
    "dtype void": tensor("V8"),
    "dtype complex": tensor("C64"),
    "dtype bfloat16": tensor("BF16", shape=(4,)),
    "dtype float8": tensor("F8_E4M3", shape=(8,)),
    "dtype a number": tensor(8),
    "bool of other bytes": raw_file(
        {
            "__metadata__": {"bagwise": f'{{"sha256":"{"0" * 64}","format":1}}'},
            "x": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]},
        },
        b"\2",
    ),
    "same name twice": raw_file(
        b'{"__metadata__":{"bagwise":"{\\"sha256\\":\\"' + b"0" * 64 + b'\\",\\"format\\":1}"},'
        b'"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
        b'"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b"\0",
    ),
}


#: The name or its first word -> why such files are refused.
REASONS = {
    "model with NaN": "the constant NaN",
    "model with infinity": "the constant -Infinity",
    "model with 1e999": "a number out of range",
    "model with a duplicate key": "duplicate key",
    "overlap": "damaged layout",
    "same": "damaged layout|duplicate key",
    "hole": "damaged layout",
    "bytes": "damaged layout",
    "arrays": "damaged layout",
    "offsets": "damaged layout",
    "shape": "damaged layout|impossible shape",
    "dtype": "damaged layout|unsupported dtype",
    "bool": "other than 0 and 1",
    "digest": "SHA-256",
    "format": "Upgrade|not a bagwise model",
    "pickle": "not a bagwise model file|not JSON",
    "npz": "not a bagwise model file",
    "foreign": "not a bagwise model file|not JSON",
    "metadata": "not a bagwise model file",
}


@pytest.mark.parametrize("name", LAYOUT)
def test_hostile_layout(tmp_path, name):
    path = tmp_path / "model"
    path.write_bytes(LAYOUT[name])
    reason = REASONS.get(name) or REASONS.get(name.split()[0].strip(","), "Model file")
    with pytest.raises(ModelFileError, match=reason) as raised:
        load(path)
    assert type(raised.value) is ModelFileError
    assert len(str(raised.value)) < 600


def test_newer_format_says_to_upgrade(tmp_path):
    (tmp_path / "model").write_bytes(inner(format=2))
    with pytest.raises(ModelFileError, match=r"has format 2; .* up to 1\. Upgrade bagwise"):
        load(tmp_path / "model")


def test_directory(tmp_path):
    with pytest.raises(ModelFileError, match="not a regular file"):
        load(tmp_path)


# A valid layout with a hostile model


def deep_parts(state, _):
    part = {**state["result_"], "parts": []}
    for _ in range(8):
        part = {**part, "parts": [part]}
    state["result_"] = part


def nested_pipelines(depth):
    node = {"class": "sklearn.preprocessing.Normalizer", "params": {}, "state": None}
    node["output"] = None
    for _ in range(depth):
        node = {
            "class": "sklearn.pipeline.Pipeline",
            "params": {"steps": [["a", node]]},
            "state": {},
            "output": None,
        }
    return node


def setting(*path, to):
    def change(model, arrays):
        for name in path[:-1]:
            model = model[name]
        model[path[-1]] = to

    return change


def array(name, to):
    def change(model, arrays):
        arrays[name] = to(arrays[name]) if callable(to) else to

    return change


def without(*path):
    def change(model, arrays):
        for name in path[:-1]:
            model = model[name]
        del model[path[-1]]

    return change


def without_array(name):
    return lambda model, arrays: arrays.pop(name)


MODEL = {
    "class os.system": setting("class", to="os.system"),
    "class eval": setting("class", to="builtins.eval"),
    "class of scikit-learn": setting("class", to="sklearn.linear_model.LogisticRegression"),
    "class by relative path": setting("class", to="../../etc/passwd"),
    "class by attribute": setting("class", to="sklearn.preprocessing.StandardScaler.__class__"),
    "class of an array": setting("class", to="numpy.ndarray"),
    "class a list": setting("class", to=["os.system"]),
    "class an object": setting("class", to={"__reduce__": "os.system"}),
    "class null": setting("class", to=None),
    "class very long": setting("class", to="x" * 10**6),
    "class of another state": setting("class", to="sklearn.decomposition.PCA"),
    "class missing": without("class"),
    "member added": setting("code", to="import os"),
    "params missing": without("params"),
    "params a list": setting("params", to=[]),
    "params null": setting("params", to=None),
    "param unknown": setting("params", "shell", to="sh"),
    "param self": setting("params", "self", to=1),
    "param of code": setting("params", "kernel", to="__import__('os').abort()"),
    "param of a class": setting("params", "kernel", to={"class": "os.system"}),
    "param of an estimator": setting("params", "C", to=nested_pipelines(1)),
    "param NaN": setting("params", "C", to={"float": "nan"}),
    "param infinite": setting("params", "C", to={"float": "-inf"}),
    "param negative": setting("params", "C", to=-1.0),
    "param of another type": setting("params", "C", to="1.0"),
    "param a long list": setting("params", "C", to=[0] * 10**5),
    "param deep": setting("params", "C", to=[[[[[[[[1]]]]]]]]),
    "param a dict with a list as key": setting("params", "class_weight", to={"dict": [[[], 1]]}),
    "param a dict with equal keys": setting(
        "params", "class_weight", to={"dict": [[1, 1], [1.0, 2]]}
    ),
    "param a huge integer": setting("params", "random_state", to=2**70),
    "state null but arrays": setting("state", to=None),
    "state a list": setting("state", to=[]),
    "state missing a part": without("state", "dual_coef_"),
    "state with a class": setting("state", "__class__", to="os.system"),
    "state with a method": setting("state", "predict", to={"array": "C"}),
    "state with a dict": setting("state", "__dict__", to={}),
    "state with a parameter": setting("state", "C", to=1.0),
    "state pointing to another array": setting("state", "dual_coef_", to={"array": "intercept_"}),
    "output unknown": setting("output", to="excel"),
    "output of a class without": setting("output", to="pandas"),
    "array missing": without_array("dual_coef_"),
    "array added": array("more", np.ones(3)),
    "array with path tricks": array("../../x", np.ones(3)),
    "array of another shape": array("dual_coef_", lambda a: a[:, :-1]),
    "array transposed": array("dual_coef_", lambda a: a.T.copy()),
    "array of another dtype": array("dual_coef_", lambda a: a.astype(np.float32)),
    "array of integers": array("dual_coef_", lambda a: a.astype(int)),
    "array with NaN": array("dual_coef_", lambda a: a * np.nan),
    "array empty": array("support_", lambda a: a[:0]),
    "array a number": array("intercept_", np.array(1.0)),
    "index negative": array("support_", lambda a: a - 5),
    "labels unsorted": array("classes_", lambda a: a[::-1].copy()),
    "labels not Unicode": array("classes_", lambda a: a + 2**30),
    "labels equal": array("classes_", lambda a: a * 0 + 97),
    "labels of no width": array("classes_", np.empty((3, 0), np.uint32)),
    "one label": array("classes_", lambda a: a[:1]),
    "labels as objects": setting("state", "classes_", to={"object": [{}, [], None]}),
    "n_features_in_ zero": setting("state", "n_features_in_", to=0),
    "n_features_in_ huge": setting("state", "n_features_in_", to=10**30),
    "n_features_in_ another": setting("state", "n_features_in_", to=4),
    "n_features_in_ true": setting("state", "n_features_in_", to=True),
    "feature names too many": setting("state", "feature_names_in_", to=["a"] * 6),
    "feature names of numbers": setting("state", "feature_names_in_", to=[1, 2, 3, 4, 5]),
    "gamma_ zero": setting("state", "gamma_", to=0.0),
    "gamma_ NaN": setting("state", "gamma_", to={"float": "nan"}),
    "certificate null": setting("state", "result_", to=None),
    "certificate status": setting("state", "result_", "status", to="perfect"),
    "certificate with more": setting("state", "result_", "gap", to=0.0),
    "certificate too deep": lambda model, arrays: deep_parts(model["state"], arrays),
    "csr in the node only": setting(
        "state", "support_vectors_", to={"csr": "matrix", "shape": [12, 5]}
    ),
}


def changed(blob, change):
    header, arrays = _format.decode(blob)
    header = copy.deepcopy(header)
    change(header["model"], arrays)
    return blob_of(header, arrays)


def assert_refused(tmp_path, blob):
    path = tmp_path / "hostile"
    path.write_bytes(blob)
    with pytest.raises(
        ModelFileError, match=r"does not hold a valid model|not a bagwise"
    ) as raised:
        load(path)
    assert type(raised.value) is ModelFileError
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("name", MODEL)
def test_hostile_model(tmp_path, name):
    assert_refused(tmp_path, changed(saved(tmp_path, KernelStandIn().fit(X, Y)), MODEL[name]))


SPARSE = {
    "index beyond the columns": array("support_vectors_.indices", lambda a: a + 1),
    "index far beyond": array("support_vectors_.indices", lambda a: a + 2**30),
    "index negative": array("support_vectors_.indices", lambda a: a - 1),
    "index of floats": array("support_vectors_.indices", lambda a: a.astype(float)),
    "indptr decreasing": array("support_vectors_.indptr", lambda a: np.r_[a[0], a[-2:0:-1], a[-1]]),
    "indptr beyond": array("support_vectors_.indptr", lambda a: a * 2),
    "indptr not from zero": array("support_vectors_.indptr", lambda a: np.r_[a[1], a[1:]]),
    "indptr too short": array("support_vectors_.indptr", lambda a: a[:-1]),
    "indptr empty": array("support_vectors_.indptr", lambda a: a[:0]),
    "data too short": array("support_vectors_.data", lambda a: a[:-1]),
    "data infinite": array("support_vectors_.data", lambda a: a * np.inf),
    "rows declared too many": setting("state", "support_vectors_", "shape", to=[2**40, 5]),
    "columns declared too many": setting("state", "support_vectors_", "shape", to=[12, 2**40]),
    "shape negative": setting("state", "support_vectors_", "shape", to=[12, -5]),
    "form unknown": setting("state", "support_vectors_", "csr", to="dok"),
    "part missing": without_array("support_vectors_.indptr"),
}


@pytest.mark.parametrize("name", SPARSE)
def test_hostile_sparse_model(tmp_path, name):
    model = KernelStandIn().fit(sparse.csr_array(X * (X > 0)), Y)
    assert_refused(tmp_path, changed(saved(tmp_path, model), SPARSE[name]))


STEP = {"class": KEY, "params": {}, "state": None, "output": None}
PIPELINE = {
    "cache folder": setting("params", "memory", to="/tmp/cache"),
    "no steps": setting("params", "steps", to=[]),
    "steps a dict": setting("params", "steps", to={"dict": []}),
    "step without a name": setting("params", "steps", to=[[STEP]]),
    "step with a list as name": setting("params", "steps", to=[[["a"], STEP]]),
    "steps of one name": setting("params", "steps", to=[["a", None], ["a", None]]),
    "step with a double underscore": setting("params", "steps", to=[["a__b", STEP]]),
    "step a string": setting("params", "steps", to=[["a", "drop"]]),
    "step a number": setting("params", "steps", to=[["a", 1]]),
    "classifier before the end": setting("params", "steps", to=[["a", STEP], ["b", None]]),
    "steps missing": without("params", "steps"),
    "state null": setting("state", to=None),
    "state added": setting("state", "classes_", to={"array": "C"}),
    "too deep": lambda model, arrays: (arrays.clear(), model.update(nested_pipelines(7))),
    "very deep": lambda model, arrays: (arrays.clear(), model.update(nested_pipelines(15))),
    "verbose a string": setting("params", "verbose", to="loud"),
}


@pytest.mark.parametrize("name", PIPELINE)
def test_hostile_pipeline(tmp_path, name):
    model = Pipeline([("a", StandardScaler()), ("b", KernelStandIn())]).fit(X, Y)
    assert_refused(tmp_path, changed(saved(tmp_path, model), PIPELINE[name]))


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"model": {}},
        {"versions": {}, "model": {}},
        {"versions": [], "model": None},
        {"versions": {"bagwise": "1", "scikit-learn": 2, "numpy": "3"}, "model": {}},
        {"versions": {"bagwise": "<script>", "scikit-learn": "1", "numpy": "1"}, "model": {}},
        {"versions": {"bagwise": "1" * 99, "scikit-learn": "1", "numpy": "1"}, "model": {}},
        {"versions": {"bagwise": "1", "scikit-learn": "1", "numpy": "1"}, "model": [], "more": 1},
    ],
    ids=stable_id,
)
def test_hostile_top_level(tmp_path, header):
    assert_refused(tmp_path, blob_of(header, {}))
