"""Matlab files: scipy writes them, we read them."""

import io
import struct

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

from bagwise.io import inspect, read
from bagwise.io._mat5 import Cell, Struct, read_mat
from bagwise.io._streams import find_source


@pytest.fixture(params=[False, True], ids=["plain", "compressed"])
def mat(request, tmp_path):
    def make(**variables):
        path = tmp_path / "t.mat"
        scipy_io.savemat(path, variables, do_compression=request.param)
        return path

    return make


def cell(*items, shape=None):
    column = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        column[i] = item
    return column.reshape(shape or (-1, 1))


P, Q = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])


# -------------------------------------------------------------------------------------- variables


def test_variables_equal_what_scipy_reads(mat):
    rng = np.random.default_rng(0)
    numbers = {
        f"{name}_{i}": (rng.normal(size=shape) * 50).astype(name)
        for name in ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
        for i, shape in enumerate([(1, 1), (3, 4), (0, 3), (2, 3, 4)])
    }
    path = mat(**numbers)
    ours, theirs = read_mat(find_source(path, None)), scipy_io.loadmat(path)
    assert set(ours) == set(numbers)
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name])
        assert value.dtype == theirs[name].dtype


def test_other_kinds_of_variables(mat):
    matrix = sparse.random_array((5, 4), density=0.4, rng=np.random.default_rng(0))
    path = mat(
        text="grün",
        lines=np.array(["ab", "cde"]),
        sparse=sparse.csc_array(matrix),
        cells=cell(P, "x", cell(Q)),
        struct={"p": P, "q": {"r": "deep"}},
        flag=np.array([[True, False]]),
        complex=np.array([1j]),
    )
    found = read_mat(find_source(path, None))
    assert found["text"] == "grün"
    assert found["lines"] == ["ab", "cde"]
    np.testing.assert_array_equal(found["sparse"].toarray(), matrix.toarray())
    assert isinstance(found["cells"], Cell)
    assert found["cells"].items[1] == "x"
    np.testing.assert_array_equal(found["cells"].items[2].items[0], Q)
    assert isinstance(found["struct"], Struct)
    assert found["struct"].items[0]["q"].items[0]["r"] == "deep"
    np.testing.assert_array_equal(found["flag"], [[1, 0]])
    assert "complex" not in found


# ---------------------------------------------------------------------------------------- layouts


def test_cell_array_and_labels(mat):
    path = mat(bags=cell(P, Q), labels=np.array([[1.0], [-1.0]]))
    bags = read(path)
    assert bags.sizes.tolist() == [1, 3]
    assert bags.instances.tolist() == [*P.tolist(), *Q.tolist()]
    assert bags.labels.tolist() == [1, -1]
    assert bags.labels.dtype.kind == "i"
    assert inspect(path).guessed["bags"] == "cell array 'bags'"
    assert read(path, label=False).labels is None


@pytest.mark.parametrize("transpose", [False, True])
def test_cell_array_and_targets(mat, transpose):
    targets = np.array([[1, -1, -1], [1, 1, -1]])
    bags = read(mat(bags=cell(P, Q), targets=targets.T if transpose else targets))
    assert bags.labels.tolist() == [[1, 0, 0], [1, 1, 0]]


def test_labels_as_text(mat):
    assert read(mat(x=cell(P, Q), y=cell("pos", "neg"))).labels.tolist() == ["pos", "neg"]
    assert read(mat(x=cell(P, Q), y=np.array(["pos", "neg"]))).labels.tolist() == ["pos", "neg"]


def test_instances_as_columns(mat):
    path = mat(bags=cell(P.T, Q.T))
    bags = read(path)
    assert bags.instances.tolist() == [*P.tolist(), *Q.tolist()]
    assert inspect(path).guessed["instances"] == "columns of the matrices"
    assert bags.labels is None


def test_label_in_the_second_column(mat):
    bags = read(mat(data=cell(P, 1.0, Q, 0.0, shape=(2, 2))))
    assert bags.sizes.tolist() == [1, 3]
    assert bags.labels.tolist() == [1, 0]


def test_row_of_two_bags(mat):
    assert read(mat(data=cell(P, Q, shape=(1, 2)))).sizes.tolist() == [1, 3]


def test_sparse_bags(mat):
    bags = read(mat(bags=cell(sparse.csc_array(P), sparse.csc_array(Q))))
    assert bags.is_sparse
    assert bags.instances.toarray().tolist() == [*P.tolist(), *Q.tolist()]


def test_struct_array(mat):
    kinds = [("instances", object), ("label", object), ("name", object), ("inst_label", object)]
    rows = np.array([(P, 1.0, "a", [[1.0]]), (Q, 0.0, "b", [[0.0], [1.0], [0.0]])], dtype=kinds)
    bags = read(mat(bag=rows))
    assert bags.sizes.tolist() == [1, 3]
    assert bags.labels.tolist() == [1, 0]
    assert bags.bag_names.tolist() == ["a", "b"]
    assert bags.instance_labels.tolist() == [1, 0, 1, 0]


def test_matrix_with_bag_ids(mat):
    path = mat(X=Q, bag=np.array([[2.0, 1.0, 2.0]]), y=np.array([[1.0, 0.0, 1.0]]))
    bags = read(path)
    assert bags.bag_names.tolist() == ["2", "1"]
    assert bags.instances.tolist() == [[3, 4], [7, 8], [5, 6]]
    assert bags.labels.tolist() == [1, 0]
    assert read(path, bag="y", label=False).bag_names.tolist() == ["1", "0"]


def test_prtools(mat):
    data = {"data": Q, "nlab": np.array([[1], [1], [2]]), "lablist": np.array(["neg", "pos"])}
    bags = read(mat(set={**data, "ident": {"milbag": np.array([[5.0], [5.0], [9.0]])}}))
    assert bags.bag_names.tolist() == ["5", "9"]
    assert bags.labels.tolist() == ["neg", "pos"]


def test_one_of_several(mat, fails):
    path = mat(a=cell(P), b=cell(Q))
    assert "several variables may hold the bags (a, b): pass key=" in fails(path)
    assert read(path, key="b").sizes.tolist() == [3]
    assert "there is no variable 'c'. The variables are a, b" in fails(path, key="c")
    assert "there is no variable 'c' (label=)" in fails(path, key="a", label="c")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"x": 1.0}, "no cell or struct array of bags"),
        ({"bags": cell(P, np.zeros((0, 2)))}, "bag(s) [1] have none"),
        ({"bags": cell(P, np.array([[np.inf, 0.0]]))}, "bag 1 holds infinity"),
        ({"bags": cell(P, np.ones((2, 3)))}, "must have one number of features"),
        ({"bags": cell(P, Q), "y": np.ones((3, 3))}, "'y' have shape (3, 3), for 2 bags"),
        ({"bags": cell(P, Q), "y": {"a": 1}}, "the labels 'y' must be numbers or text"),
        ({"bags": cell(P, Q), "y": cell("a", P)}, "one number or text is needed"),
        ({"X": Q, "bag": "abc"}, "must be a vector"),
        ({"X": Q, "bag": np.ones((1, 2))}, "one entry per row"),
        ({"d": {"data": Q, "nlab": np.array([[9]]), "lablist": "x", "milbag": np.ones((3, 1))}},
         "does not point into"),
    ],
)  # fmt: skip
def test_errors(mat, fails, variables, message):
    assert message in fails(mat(**variables))


# ------------------------------------------------------------------------------------ hostile files


def plain_file(**variables):
    buffer = io.BytesIO()
    scipy_io.savemat(buffer, variables)
    return bytearray(buffer.getvalue())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a Matlab file of version 5 to 7"),
        (b"MATLAB 5.0" + bytes(200), "not a Matlab file of version 5 to 7"),
        (bytes(124) + b"\x00\x02IM" + bytes(9), "version 7.3"),
        (b"\x89HDF\r\n\x1a\n" + bytes(200), "version 7.3"),
        (bytes(124) + b"\x00\x01IM", "there is no variable with data"),
        (bytes(124) + b"\x00\x01IM" + struct.pack("<II", 14, 10**9), "bytes is promised"),
        (bytes(124) + b"\x00\x01IM" + struct.pack("<II", 9, 0), "a variable is needed"),
        (bytes(124) + b"\x00\x01IM" + struct.pack("<II", 15, 8) + bytes(8), "cannot be read"),
    ],
)
def test_not_matlab(tmp_path, fails, content, message):
    (tmp_path / "t.mat").write_bytes(content)
    assert message in fails(tmp_path / "t.mat")


@pytest.mark.parametrize("size", [2**31 - 1, -1, 10**6])
@pytest.mark.parametrize("kind", ["cell", "matrix"])
def test_shape_that_lies(tmp_path, fails, kind, size):
    data = plain_file(bags=cell(P, Q) if kind == "cell" else Q)
    at = data.index(struct.pack("<II", 5, 8)) + 8  # the dimensions of the variable
    data[at : at + 4] = struct.pack("<i", size)
    (tmp_path / "t.mat").write_bytes(data)
    message = fails(tmp_path / "t.mat")
    assert "promised" in message or "impossible shape" in message


def test_deep_nesting(tmp_path, fails):
    value = cell(P)
    for _ in range(40):
        value = cell(value)
    (tmp_path / "t.mat").write_bytes(plain_file(bags=value))
    assert "nested more than" in fails(tmp_path / "t.mat")


def test_bomb(mat, fails):
    path = mat(bags=cell(np.zeros((1000, 1000))))
    if path.stat().st_size < 100_000:
        assert "max_bytes" in fails(path, max_bytes=1_000_000)


def test_big_endian(tmp_path):
    """Put together by hand, from the description of the format."""

    def element(kind, data):
        return struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8)

    def matrix(name, rows):
        flat = np.asarray(rows, ">f8")
        return element(14, element(6, struct.pack(">II", 6, 0))
                       + element(5, struct.pack(">ii", *flat.shape))
                       + element(1, name) + element(9, flat.tobytes("F")))  # fmt: skip

    content = b"MATLAB 5.0".ljust(124) + b"\x01\x00MI"
    content += matrix(b"X", [[1, 2], [3, 4]]) + matrix(b"bag", [[7, 8]])
    (tmp_path / "t.mat").write_bytes(content)
    bags = read(tmp_path / "t.mat")
    assert bags.instances.tolist() == [[1, 2], [3, 4]]
    assert bags.bag_names.tolist() == ["7", "8"]
