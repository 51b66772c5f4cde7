"""NPZ archives: the layout, its variants, and files that lie."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from bagwise.io import inspect, read

DATA = os.environ.get("BAGWISE_DATA", "")


@pytest.fixture
def archive(tmp_path):
    def make(**arrays):
        np.savez(tmp_path / "t.npz", **arrays)
        return tmp_path / "t.npz"

    return make


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def write_members(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def test_everything_that_is_known(archive):
    bags = read(
        archive(
            X=np.eye(3, dtype=np.float32),
            offsets=[0, 1, 3],
            y=np.array([[1, 0], [1, 1]], dtype=np.int8),
            label_names=["p", "q"],
            bag_names=["a", "b"],
            instance_y=[0, 1, 2],
            instance_names=["i", "j", "k"],
            feature_names=["u", "v", "w"],
        )
    )
    assert bags.dtype == np.float32
    assert bags.labels.dtype == np.int8
    assert bags.label_names.tolist() == ["p", "q"]
    assert bags.instance_labels.tolist() == [0, 1, 2]
    assert bags.instance_names.tolist() == ["i", "j", "k"]
    assert bags.feature_names.tolist() == ["u", "v", "w"]


def test_names_of_single_labels_are_left_out(archive):
    bags = read(archive(X=np.eye(2), offsets=[0, 1, 2], y=[0, 1], label_names=["no", "yes"]))
    assert bags.labels.tolist() == [0, 1]
    assert bags.label_names is None


def test_bag_ids_instead_of_offsets(archive):
    path = archive(instances=[[1.0], [2.0], [3.0]], groups=["b", "a", "b"], labels=[1, 0, 1])
    bags = read(path)
    assert bags.bag_names.tolist() == ["b", "a"]
    assert bags.instances.ravel().tolist() == [1, 3, 2]
    assert inspect(path).guessed["instances"] == "array 'instances'"
    assert read(path, bag="labels", label=False).bag_names.tolist() == ["1", "0"]


def test_sparse(archive):
    dense = np.array([[0.0, 1.5, 0.0], [2.5, 0.0, 0.0]])
    m = sparse.csr_array(dense)
    parts = {"data": m.data, "indices": m.indices, "indptr": m.indptr, "shape": m.shape}
    bags = read(archive(**parts, offsets=[0, 2]))
    assert bags.is_sparse
    assert bags.instances.toarray().tolist() == dense.tolist()


def test_fortran_order_and_other_byte_order(archive):
    X = np.asfortranarray(np.arange(6.0).reshape(3, 2)).astype(">f8", order="F")
    about = {"y": np.array([7], ">i2"), "bag_names": np.array(["a"], ">U1")}
    bags = read(archive(X=X, offsets=np.array([0, 3], dtype=">i4"), **about))
    assert bags.instances.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert all(part.dtype.isnative for part in (bags.instances, bags.labels, bags.bag_names))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"offsets": [0, 1]}, "there is no array X"),
        ({"X": [[1.0]]}, "there is no array offsets or bag_ids"),
        ({"X": [[1.0]], "offsets": [0, 2]}, "end with the number of instances, 1"),
        ({"X": [[1.0]], "offsets": [0, 0, 1]}, "bag(s) [0] have none"),
        ({"X": [1.0], "offsets": [0, 1]}, "must be a 2-D matrix"),
        ({"X": [[np.nan]], "offsets": [0, 1]}, "bag 0 holds NaN"),
        ({"X": [["a"]], "offsets": [0, 1]}, "must be real numbers"),
        ({"X": [[1.0]], "offsets": [0, 1], "y": [1, 2]}, "labels must have 1 entries"),
        ({"X": [[1j]], "offsets": [0, 1]}, "numbers or text are needed. Got dtype complex128"),
        ({"X": np.zeros(1, [("a", "f8")]), "offsets": [0, 1]}, "numbers or text are needed"),
        ({"X": [[1.0], [2.0]], "bag_ids": [0, 0], "y": [1]}, "labels must be given for each row"),
        ({"X": [[1.0], [2.0]], "bag_ids": [0, 0], "y": [1, 0]}, "must not vary inside a bag"),
        ({"X": np.float64(3), "bag_ids": [0]}, "2-D"),
        ({"data": [1.0], "indices": [5], "indptr": [0, 1], "shape": [1, 2], "offsets": [0, 1]},
         "do not make a matrix"),
    ],
)  # fmt: skip
def test_errors(archive, fails, arrays, message):
    assert message in fails(archive(**arrays))


def test_named_array_is_missing(archive, fails):
    path = archive(X=[[1.0]], offsets=[0, 1])
    assert "there is no array 'z'. It has X, offsets" in fails(path, label="z")


def test_pickles_are_refused(tmp_path, fails):
    class Harm:
        def __reduce__(self):
            return os.abort, ()

    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "|O", "fortran_order": False, "shape": (1,)}
    )
    path = write_members(
        tmp_path / "t.npz", X=buffer.getvalue() + pickle.dumps(Harm()), offsets=npy([0, 1])
    )
    assert "Got dtype object" in fails(path)


@pytest.mark.parametrize("shape", [(10**12, 10**3), (2, 1), (0, 0), (-1, 1), (True, 1), (1.5,)])
def test_header_that_lies(tmp_path, fails, shape):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (1, 1)}
    )
    header = buffer.getvalue().replace(b"(1, 1)", repr(shape).encode())
    header = (
        header.replace(b" " * (len(repr(shape)) - 6), b"", 1) if len(repr(shape)) > 6 else header
    )
    path = write_members(tmp_path / "t.npz", X=header + bytes(9), offsets=npy([0, 1]))
    fails(path)


def test_archive_that_expands(tmp_path, fails):
    path = write_members(tmp_path / "t.npz", X=npy(np.zeros((500, 500))), offsets=npy([0, 500]))
    assert "the contents would take" in fails(path, max_bytes=100_000)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not an archive"])
def test_not_an_archive(tmp_path, fails, content):
    (tmp_path / "t.npz").write_bytes(content)
    assert "not an NPZ archive" in fails(tmp_path / "t.npz")


def test_archive_with_no_end_of_members(tmp_path, fails):
    path = write_members(tmp_path / "t.npz", **{f"m{i}": b"" for i in range(1001)})
    assert "a few arrays, not 1001" in fails(path)


@pytest.mark.skipif(not Path(DATA).is_dir() or not DATA, reason="BAGWISE_DATA names no folder")
@pytest.mark.parametrize(
    "path", sorted(Path(DATA).glob("*.npz")) if DATA else [], ids=lambda p: p.stem
)
def test_classic_sets_equal_what_numpy_reads(path):
    bags = read(path)
    with np.load(path, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(bags.instances, arrays["X"])
        assert bags.dtype == arrays["X"].dtype
        np.testing.assert_array_equal(bags.offsets, arrays["offsets"])
        np.testing.assert_array_equal(bags.labels, arrays["y"])
        for ours, theirs in (("bag_names", "bag_names"), ("instance_labels", "instance_y")):
            assert (getattr(bags, ours) is None) == (theirs not in arrays)
            if theirs in arrays:
                np.testing.assert_array_equal(getattr(bags, ours), arrays[theirs])
        if arrays["y"].ndim == 2:
            np.testing.assert_array_equal(bags.label_names, arrays["label_names"])
