"""Mutations of model files: any damage is seen, and a repaired checksum does not help."""

import copy
import json
import os
import sys
import warnings
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from bagwise.exceptions import ModelFileError
from bagwise.persistence import _format
from bagwise.persistence._models import decode, encode
from bagwise.persistence._registry import REGISTRY
from bagwise.persistence._schema import Optional
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL, MIKernelSVM
from persistence.standins import (
    KEY,
    KernelStandIn,
    assert_same,
    blob_of,
    put_together,
    restamp,
    take_apart,
)

N_MUTATIONS = int(os.environ.get("BAGWISE_FUZZ", "2000"))
pytestmark = pytest.mark.fuzz

X = np.abs(np.random.default_rng(0).normal(size=(12, 3)))
Y = np.tile(["a", "b", "c"], 4)


def estimators():
    yield KernelStandIn(class_weight={"a": 1, "b": 2.0, "c": 1}).fit(X, Y)
    yield KernelStandIn().fit(sparse.csr_array(X * (X > 1)), np.arange(12) % 2)
    yield KernelStandIn().fit(X.astype(np.float32), Y.astype(object))
    yield make_pipeline(StandardScaler(), PCA(2), "passthrough", KernelStandIn()).fit(X, Y)
    yield make_pipeline(MinMaxScaler(), Nystroem(n_components=3, random_state=0)).fit(X)
    yield SIL().fit(sparse.csr_array(X * (X > 1)), Y)
    yield make_pipeline(InstanceTransformer(StandardScaler()), MIKernelSVM()).fit(X, Y == "a")
    holes = np.where(X > 2, np.nan, X)
    yield InstanceTransformer(SimpleImputer(add_indicator=True)).fit(holes)


@pytest.fixture
def blobs():
    return [to_bytes(estimator) for estimator in estimators()]


def to_bytes(estimator):
    return blob_of(*encode(estimator))


def from_bytes(blob):
    return decode(*_format.decode(blob))


# What happens while a file is read, beyond arithmetic. The hook cannot be removed, only silenced.

_events = None


def _hook(event, args):
    if _events is not None and not event.startswith(("object.", "builtins.id", "sys._getframe")):
        _events.append((event, str(args)[:200]))


@pytest.fixture(scope="module", autouse=True)
def _hooked():
    for entry in REGISTRY.values():  # what our own table imports is imported before
        entry.find()
    sys.addaudithook(_hook)


@contextmanager
def watched():
    """Assert that nothing is imported, compiled, executed or opened in the block."""
    global _events
    _events = []
    try:
        yield
    finally:
        events, _events = _events, None
        assert not events


def test_the_hook_sees_an_import():
    with pytest.raises(AssertionError, match="import"), watched(), suppress(ImportError):
        __import__("this_is_not_there")


# Damage


def damaged(blob, others, rng):
    data = bytearray(blob)
    size = len(data)
    here, there = sorted(int(place) for place in rng.integers(0, size + 1, 2))
    length = int(rng.integers(1, 33))
    match int(rng.integers(9)):
        case 0:
            for place in rng.integers(0, size, rng.integers(1, 4)):
                data[place] ^= 1 << int(rng.integers(8))
        case 1:
            data[int(rng.integers(size))] = int(rng.integers(256))
        case 2:
            del data[here:]
        case 3:
            del data[here : here + length]
        case 4:
            data[here:here] = rng.bytes(length)
        case 5:
            data[here:here] = data[there : there + length]
        case 6:
            one, two = data[here : here + length], data[there : there + length]
            if here + length <= there and there + length <= size:
                data[here : here + length], data[there : there + length] = two, one
        case 7:
            data[here : here + length] = bytes(len(data[here : here + length]))
        case _:
            other = others[int(rng.integers(len(others)))]
            data[here:there] = other[here:there]
    return bytes(data)


def test_damage_is_always_seen(blobs):
    rng = np.random.default_rng(1)
    accepted = unchanged = 0
    with watched():
        for i in range(N_MUTATIONS):
            blob = blobs[i % len(blobs)]
            mutant = damaged(blob, blobs, rng)
            if mutant in blobs:
                unchanged += 1
                continue
            try:
                from_bytes(mutant)
            except ModelFileError:
                continue
            accepted += 1
    assert accepted == 0
    assert unchanged < N_MUTATIONS / 4


# Forgery: structured mutations with a repaired checksum

LEAVES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    2**31,
    2**63,
    2**200,
    0.5,
    -1e308,
    "",
    "a",
    "C",
    "F0",
    "nan",
    "rbf",
    "converged",
    "passthrough",
    "os.system",
    [],
    {},
    [[]],
    [1, 2],
    {"array": "C"},
    {"array": "str"},
    {"float": "nan"},
    {"float": "inf"},
    {"tuple": []},
    {"dict": [[1, 2]]},
    {"csr": "array", "shape": [1, 1]},
    {"object": ["a", "b"]},
]
NAMES = ["array", "float", "tuple", "dict", "csr", "shape", "class", "params", "state", "C", "a"]


def places(node, path=()):
    """All places in a JSON value."""
    yield path
    children = ()
    if isinstance(node, dict):
        children = node.items()
    elif isinstance(node, list):
        children = enumerate(node)
    for key, child in children:
        yield from places(child, (*path, key))


def at(node, path):
    for key in path:
        node = node[key]
    return node


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


def mutate_json(header, rng):
    every = [path for path in places(header) if path]
    path = pick(rng, every)
    parent, key = at(header, path[:-1]), path[-1]
    leaves = [*LEAVES, *REGISTRY]
    match int(rng.integers(7)):
        case 0 | 1:
            parent[key] = copy.deepcopy(pick(rng, leaves))
        case 2:
            del parent[key]
        case 3:
            parent[key] = copy.deepcopy(at(header, pick(rng, every)))
        case 4 if isinstance(parent, dict):
            parent[pick(rng, [*NAMES, *parent])] = parent.pop(key)
        case 5 if isinstance(parent, dict):
            parent[pick(rng, NAMES)] = copy.deepcopy(pick(rng, leaves))
        case 6 if type(parent[key]) in (int, float):
            parent[key] = parent[key] * pick(rng, [-1, 2, 0.5]) + pick(rng, [0, 1, -1])
            if not np.isfinite(float(parent[key])):
                parent[key] = 0.0
        case _ if isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))


def mutate_arrays(arrays, rng):
    if not arrays:
        return
    name = pick(rng, sorted(arrays))
    array = arrays[name]
    match int(rng.integers(9)):
        case 0:
            del arrays[name]
        case 1:
            arrays[pick(rng, [*arrays, "x", ""])] = arrays.pop(name)
        case 2:
            arrays[name] = arrays[pick(rng, sorted(arrays))]
        case 3:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arrays[name] = array.astype(pick(rng, ["?", "i1", "i4", "i8", "u4", "f4", "f8"]))
        case 4:
            arrays[name] = pick(rng, [array[None], array.reshape(-1), array.T, array[..., None]])
        case 5 if array.ndim:
            arrays[name] = pick(rng, [array[:-1], array[1:], array[:0], array[::-1]])
        case 6 if array.ndim:
            arrays[name] = np.concatenate([array, array[:1]])
        case _ if array.size:
            specials = [0, 1, 255] if array.dtype.kind in "ub" else [0, 1, -1, 100]
            if array.dtype.kind == "f":
                specials += [np.nan, np.inf, 1e38]
            array = array.copy()
            array.reshape(-1)[int(rng.integers(array.size))] = pick(rng, specials)
            arrays[name] = array


def test_forgery_gives_a_valid_model_or_the_one_exception(blobs):
    rng = np.random.default_rng(2)
    accepted, refused = 0, 0
    for i in range(N_MUTATIONS):
        header, arrays = _format.decode(blobs[i % len(blobs)])
        for _ in range(int(rng.integers(1, 4))):
            if rng.random() < 0.6 and header:
                mutate_json(header, rng)
            else:
                mutate_arrays(arrays, rng)
        blob = blob_of(header, arrays)
        try:
            with watched():
                model = from_bytes(blob)
        except ModelFileError:
            refused += 1
            continue
        accepted += 1
        assert_same(model, from_bytes(to_bytes(model)))  # makes all checks of the schema once more
        with suppress(Exception):  # it may be nonsense, but must not harm the process
            getattr(model, "decision_function", getattr(model, "transform", None))(X)
    assert accepted > N_MUTATIONS / 50  # or the mutations are too wild to test anything
    assert refused > N_MUTATIONS / 5


def test_forged_declarations_of_arrays(blobs):
    """Mutations of what the safetensors header says of dtypes, shapes and places."""
    rng = np.random.default_rng(3)
    for i in range(N_MUTATIONS):
        outer, inner, data = take_apart(blobs[i % len(blobs)])
        for _ in range(int(rng.integers(1, 3))):
            declared = {name: outer[name] for name in outer if name != "__metadata__"}
            mutate_json(declared, rng)
            outer = {"__metadata__": outer["__metadata__"], **declared}
        blob = put_together(outer, inner, data)
        try:
            with watched():
                model = from_bytes(blob)
        except ModelFileError:
            continue
        assert_same(model, from_bytes(restamp(blob)))


def test_forged_text(blobs):
    """Mutations of the text of our JSON, which mostly make it no JSON."""
    rng = np.random.default_rng(4)
    for i in range(N_MUTATIONS):
        outer, inner, data = take_apart(blobs[i % len(blobs)])
        text = json.dumps(inner, separators=(",", ":"))
        start = len('{"sha256":"') + 64
        place = int(rng.integers(start, len(text)))
        cut = int(rng.integers(0, 3))
        extra = pick(rng, ["", "[", "]", "{", "}", '"', ",", ":", "1", "-", "e9", "\\", "\\u0000"])
        blob = put_together(outer, text[:place] + extra + text[place + cut :], data)
        try:
            with watched():
                from_bytes(blob)
        except ModelFileError:
            continue


def test_every_class_with_every_state(blobs):
    """Kernel machines have the same state, but for the positive class; other pairs are refused."""
    state = REGISTRY["bagwise.svm.SIL"].state.keys() - {"pos_label_", "positive_cost_"}
    machines = {KEY}
    for key, entry in REGISTRY.items():
        more = [field for name, field in entry.state.items() if name not in state]
        if entry.state.keys() >= state and all(isinstance(field, Optional) for field in more):
            machines.add(key)
    assert len(machines) > 4
    for blob in blobs:
        header, _ = _format.decode(blob)
        for key in REGISTRY:
            _, arrays = _format.decode(blob)
            model = {**header["model"], "class": key, "params": {}}
            forged = blob_of({**header, "model": model}, arrays)
            both = {key, header["model"]["class"]} <= machines
            if both and REGISTRY[key].state.keys() >= header["model"]["state"].keys():
                loaded = from_bytes(forged)
                assert type(loaded) is REGISTRY[key].find()
                assert_same(loaded, from_bytes(to_bytes(loaded)))
            else:
                with pytest.raises(ModelFileError):
                    from_bytes(forged)
