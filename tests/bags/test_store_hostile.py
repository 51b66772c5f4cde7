"""Stores that lie: each is refused with a BagFileError, or is what it says."""

import json
import os
import pickle
import random
import shutil

import numpy as np
import pytest
from scipy import sparse

from bags.naive import dense, full_bags
from bagwise import Bags
from bagwise.bags import BagSource, scan_max
from bagwise.exceptions import BagFileError

DENSE, CSR = "dense", "csr"
FUZZ = min(int(os.environ.get("BAGWISE_FUZZ", "2000")), 500)


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    full_bags().write(folder / DENSE)
    full_bags(layout=sparse.csr_array).write(folder / CSR)
    return folder


@pytest.fixture
def store(originals, tmp_path):
    """Return a function that copies a store to spoil."""

    def copy(kind):
        target = tmp_path / "x.bags"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(originals / kind, target)
        return target

    return copy


def refuse(folder, message):
    with pytest.raises(BagFileError, match=message) as caught:
        Bags.open(folder)
    assert str(folder) in str(caught.value)


# ---------------------------------------------------------------------------------- meta.json


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "meta.json cannot be read"),
        (b"{", "meta.json cannot be read"),
        (b"\xff\xfe\x00", "meta.json cannot be read"),
        (b"[" * 100_000, "meta.json cannot be read"),
        (b'{"a":' * 100_000, "meta.json cannot be read"),
        (b'{"n_bags": ' + b"9" * 5000 + b"}", "meta.json cannot be read"),
        (b" " * (2**20 + 1), "larger than"),
        (b"[]", "does not describe bags"),
        (b"null", "does not describe bags"),
        (b'{"kind": "other"}', "does not describe bags"),
    ],
    ids=range(10),
)
def test_meta_that_is_no_description(store, text, message):
    folder = store(DENSE)
    (folder / "meta.json").write_bytes(text)
    refuse(folder, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format 2"),
        ({"format": None}, "format None"),
        ({"layout": "coo"}, "unknown layout 'coo'"),
        ({"layout": ["csr"]}, "unknown layout"),
        ({"layout": "csr"}, "data.npy cannot be read"),
        ({"n_bags": 5}, "meta.json says 5 bags, offsets.npy has 4"),
        ({"n_bags": -1}, "positive integers"),
        ({"n_bags": True}, "positive integers"),
        ({"n_bags": 4.0}, "positive integers"),
        ({"n_bags": "4"}, "positive integers"),
        ({"n_instances": 11}, "which meta.json denies"),
        ({"n_instances": 10**30}, "which meta.json denies"),
        ({"n_features": 2}, "which meta.json denies"),
        ({"n_features": 0}, "positive integers"),
        ({"aligned": None}, "unknown files"),
        ({"aligned": "labels"}, "unknown files"),
        ({"aligned": ["../../../etc/passwd"]}, "unknown files"),
        ({"aligned": ["instances"]}, "unknown files"),
        ({"aligned": [["labels"]]}, "unknown files"),
        ({"aligned": [{}]}, "unknown files"),
    ],
)
def test_meta_that_does_not_fit(store, changes, message):
    folder = store(DENSE)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, **changes}))
    refuse(folder, message)


@pytest.mark.parametrize("kind", [DENSE, CSR])
def test_missing_files(store, kind):
    for name in [path.name for path in store(kind).iterdir()]:
        folder = store(kind)
        (folder / name).unlink()
        refuse(folder, f"{name} cannot be read")
        (folder / name).mkdir()
        refuse(folder, f"{name} cannot be read")


def test_a_file_is_no_store(tmp_path):
    (tmp_path / "x.bags").write_text("hello")
    refuse(tmp_path / "x.bags", "meta.json cannot be read")


# --------------------------------------------------------------------------------- npy headers


def npy(header, data=b"", version=1):
    text = header.encode("latin1")
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def header(descr="'<f8'", order="False", shape="(10, 3)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


HEADERS = [
    header(shape="(1152921504606846976, 2)"), header(shape="(9223372036854775807,) * 2"),
    header(shape="(99999999999999999999999999, 2)"), header(shape="(10, 3"),
    header(shape="(-10, -3)"), header(shape="(-1, 3)"), header(shape="(10L, 3L)"),
    header(shape="(True, 30)"), header(shape="[10, 3]"), header(shape="(1e1, 3)"),
    header(shape="(10, 1, 3)"), header(shape="30"), header(shape="((10, 3),)"),
    header(shape="(" * 900 + ")" * 900), header(shape="-" * 900 + "1"), header(shape="None"),
    header(shape="__import__('os').abort()"), header(shape="(10, 3) if 1 else 2"),
    header(descr="'|O'"), header(descr="'<M8[ns]'"), header(descr="'<c16'"), header(descr="'V8'"),
    header(descr="'<f8,<f8'"), header(descr="[('a', '<f8')]"), header(descr="('<f8', (2,))"),
    header(descr="{'names': ['a'], 'formats': ['<f8']}"), header(descr="'<U99999999999'"),
    header(descr="'<f3'"), header(descr="'float64'"), header(descr="''"), header(descr="7"),
    header(descr="'<S8'"), header(descr="b'<f8'"), header(order="1"), header(order="'no'"),
    "", "{}", "[]", "{'descr': '<f8'}", "\x00" * 50, "1+", "{'a': {}}", "{{}: 1}", "{1, 2}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (10, 3), 'extra': 1}", " " * 5000,
    "'" + "\\d" * 10 + "'",
]  # fmt: skip


@pytest.mark.parametrize("name", ["instances", "offsets", "bag_names", "labels", "instance_labels"])
@pytest.mark.parametrize("text", HEADERS, ids=range(len(HEADERS)))
def test_headers_that_lie(store, name, text):
    folder = store(DENSE)
    (folder / f"{name}.npy").write_bytes(npy(text, b"\0" * 240))
    refuse(folder, rf"{name}.npy cannot be read|offsets|{name} must")


@pytest.mark.parametrize("version", [0, 4, 255])
def test_versions_of_the_header(store, version):
    folder = store(DENSE)
    (folder / "instances.npy").write_bytes(npy(header(), b"\0" * 240, version))
    refuse(folder, "instances.npy cannot be read")


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("padding", range(9))
def test_good_headers_of_any_version_and_alignment(store, version, padding):
    folder = store(DENSE)
    values = np.random.default_rng(0).normal(size=(10, 3))
    text = " " * padding + header()
    (folder / "instances.npy").write_bytes(npy(text, values.tobytes(), version))
    bags = Bags.open(folder)
    np.testing.assert_array_equal(bags.instances, values)
    assert_usable(bags)


@pytest.mark.parametrize("kind", [DENSE, CSR])
def test_files_cut_short_or_too_long(store, kind):
    for path in sorted(store(kind).glob("*.npy")):
        content = path.read_bytes()
        for spoiled in (b"", content[:5], content[:50], content[:-1], content + b"\0"):
            folder = store(kind)
            (folder / path.name).write_bytes(spoiled)
            refuse(folder, f"{path.name} cannot be read")


def test_pickles_and_zip_files(store):
    folder = store(DENSE)
    np.save(folder / "labels.npy", np.array([print, None, {}, 1], dtype=object), allow_pickle=True)
    refuse(folder, "labels.npy cannot be read")
    (folder / "labels.npy").write_bytes(pickle.dumps(np.zeros(4)))
    refuse(folder, "labels.npy cannot be read")
    with (folder / "labels.npy").open("wb") as file:
        np.savez(file, labels=np.zeros(4))
    refuse(folder, "labels.npy cannot be read")


# ------------------------------------------------------------------------------------ contents


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("instances", np.zeros((10, 3), np.float16), "float32 or float64, not float16"),
        ("instances", np.zeros((10, 3), np.int64), "float32 or float64, not int64"),
        ("instances", np.zeros((10, 3), ">f8"), "float32 or float64, not >f8"),
        ("instances", np.asfortranarray(np.zeros((10, 3))), "meta.json denies"),
        ("instances", np.zeros(30), "meta.json denies"),
        ("instances", np.zeros((3, 10)), "meta.json denies"),
        ("offsets", np.array([0, 3, 3, 8, 10]), r"bag\(s\) \[1\] have none"),
        ("offsets", np.array([0, 5, 4, 8, 10]), "must not fall: bag 1"),
        ("offsets", np.array([0, 3, 4, 8, 11]), "Got 0 and 11"),
        ("offsets", np.array([0, 2**63 - 1, -2, 8, 10]), "must not fall: bag 1"),
        ("offsets", np.array([0.0, 3, 4, 8, 10]), "integers"),
        ("offsets", np.array(0), "integers"),
        ("bag_names", np.array(["a", "b", "c"]), "bag_names must have 4 entries"),
        ("bag_names", np.full(4, 2**32 - 1, np.uint32).view("<U1"), "characters that do not exist"),
        ("bag_names", np.full(4, 0x110000, np.uint32).view("<U1"), "characters that do not exist"),
        ("labels", np.array(1), "labels must have 4 entries"),
        ("labels", np.zeros(4), "label_names must have 0 entries"),
        ("labels", np.zeros((4, 3)), "label_names must have 3 entries"),
        ("instance_labels", np.zeros(9), "instance_labels must have 10 entries"),
        ("feature_names", np.array(["a"]), "feature_names must have 3 entries"),
    ],
)
def test_dense_contents_that_do_not_fit(store, name, array, message):
    folder = store(DENSE)
    np.save(folder / f"{name}.npy", array)
    refuse(folder, message)


def csr_parts(folder):
    return {name: np.load(folder / f"{name}.npy") for name in ("data", "indices", "indptr")}


def changed(array, place, value):
    array = array.astype(np.int64) if array.dtype.kind == "i" else array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("indices", lambda a: changed(a, 0, 3), "outside the 3 features"),
        ("indices", lambda a: changed(a, -1, -1), "outside the 3 features"),
        ("indices", lambda a: changed(a, 0, 2**62), "outside the 3 features"),
        ("indices", lambda a: a.astype(float), "do not fit together"),
        ("indices", lambda a: a[:-1], "do not fit together"),
        ("indices", lambda a: a[:, None], "do not fit together"),
        ("indices", np.zeros_like, "must rise inside each row"),
        ("indptr", lambda a: changed(a, 0, 1), "does not fit data.npy"),
        ("indptr", lambda a: changed(a, -1, 99), "does not fit data.npy"),
        ("indptr", lambda a: changed(a, 5, 10**9), "indptr.npy falls"),
        ("indptr", lambda a: changed(a, [4, 5], [2**63 - 1, -2]), "indptr.npy falls"),
        ("indptr", lambda a: a[:-1], "do not fit together"),
        ("indptr", lambda a: a.astype(np.uint64), "does not fit data.npy"),
        ("data", lambda a: a.astype(np.int64), "float32 or float64"),
        ("data", lambda a: a[:-1], "do not fit"),
        ("data", lambda a: a[:, None], "do not fit together"),
    ],
)
def test_sparse_contents_that_do_not_fit(store, name, change, message):
    folder = store(CSR)
    np.save(folder / f"{name}.npy", change(np.load(folder / f"{name}.npy")))
    refuse(folder, message)


def test_sparse_indices_of_other_widths_are_read(store):
    folder = store(CSR)
    expected = Bags.open(folder).instances.toarray()
    for index in (np.int8, np.int16, np.int64):
        for name in ("indices", "indptr"):
            np.save(folder / f"{name}.npy", np.load(folder / f"{name}.npy").astype(index))
        bags = Bags.open(folder)
        np.testing.assert_array_equal(bags.instances.toarray(), expected)
        assert_usable(bags)


# ---------------------------------------------------------------------------------------- fuzz


def assert_usable(bags):
    """Everything that an opened store offers works and stays inside its arrays."""
    assert repr(bags)
    assert bags._repr_html_()
    assert len(bags) > 0
    assert (bags.sizes > 0).all()
    assert bags.offsets[-1] == len(dense(bags.instances)) == bags.n_instances
    scan_max(bags._base, np.ones(bags.n_features), bags._starts, bags._stops)
    bags[::-1].compact()
    for name in ("instance_names", "instance_labels", "bag_names", "labels", "feature_names"):
        str(getattr(bags, name))
    BagSource(bags, max_memory="1GB", n_threads=1).reduce(lambda chunk: len(chunk.bags))
    assert len(pickle.loads(pickle.dumps(bags))) == len(bags)


def mutated(content, rng):
    """Return the bytes with one kind of damage."""
    content = bytearray(content)
    place = rng.randrange(len(content) + 1)
    kind = rng.randrange(6)
    if kind == 0 and content:
        content[place % len(content)] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del content[place : place + rng.randrange(1, 20)]
    elif kind == 2:
        content[place:place] = rng.randbytes(rng.randrange(1, 20))
    elif kind == 3:
        extremes = [b"\xff" * 8, b"\x00" * 8, b"\xff" * 7 + b"\x7f", b"\x80", b"9" * 20, b"(", b"-"]
        extreme = rng.choice(extremes)
        content[place : place + len(extreme)] = extreme
    elif kind == 4:
        del content[place:]
    else:
        first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
        content[place:place] = content[first:last]
    return bytes(content)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", [DENSE, CSR])
def test_mutated_stores_are_refused_or_sound(store, kind):
    rng = random.Random(kind)
    folder = store(kind)
    originals = {path.name: path.read_bytes() for path in folder.iterdir()}
    n_refused = 0
    for _ in range(FUZZ):
        name = rng.choice(sorted(originals))
        spoiled = mutated(originals[name], rng)
        write_anew(folder / name, spoiled)
        try:
            bags = Bags.open(folder)
        except BagFileError:
            n_refused += 1
        else:
            with np.errstate(all="ignore"):  # the values themselves may be anything
                assert_usable(bags)
            del bags
        write_anew(folder / name, originals[name])
    assert 0 < n_refused < FUZZ
    assert_usable(Bags.open(folder))


def write_anew(path, content):
    path.unlink()  # another file: what is still mapped keeps its pages
    path.write_bytes(content)
