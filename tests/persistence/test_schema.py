"""The fields: both directions keep every bit, and refuse what does not fit."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.decomposition import PCA

from bagwise.exceptions import ModelFileError
from bagwise.persistence import _format, _schema
from bagwise.persistence._params import Nothing, Value
from bagwise.persistence._schema import Array, Flag, Nullable, Number, OneOf, Scope, Text
from bagwise.persistence._state import CertificateField, Labels, Matrix, Strings
from bagwise.solvers import Certificate, Result, Status
from persistence.standins import assert_same, blob_of, layout, stable_id


def scope(arrays=None, **sizes):
    return Scope("Some", "field", {} if arrays is None else arrays, sizes, codec=None)


def round_trip(field, value, **sizes):
    arrays = {}
    node = field.dump(value, scope(arrays, **sizes))
    header, arrays = _format.decode(blob_of({"node": node}, arrays))
    result = field.load(header["node"], scope(arrays, **sizes))
    assert not arrays
    return result


def refused(field, value, **sizes):
    with pytest.raises(ModelFileError, match=r"^Some: field"):
        field.dump(value, scope(**sizes))


def refused_on_load(field, node, arrays=None, **sizes):
    with pytest.raises(ModelFileError, match=r"^Some: field"):
        field.load(node, scope(arrays, **sizes))


# Arrays and numbers


@given(
    hnp.arrays(
        st.sampled_from(["?", "i1", "i8", "u4", "f2", "f4", "f8"]),
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=0),
    ),
    st.booleans(),
)
def test_array_round_trip(array, fortran):
    array = np.asfortranarray(array) if fortran else array
    field = Array(kinds="biuf", shape=("rows", "columns"), finite=False)
    assert_same(array, round_trip(field, array))


def test_array_view_keeps_its_order():
    base = np.arange(30.0).reshape(5, 6)
    field = Array(shape=(None, None))
    assert round_trip(field, base[:3, :4]).flags.c_contiguous
    assert round_trip(field, base.T[:3, :4]).flags.f_contiguous
    for view in (base[::-1], base[:, ::-1], base[::-1, ::-1], base.T[::-1], base.T[::2, ::-1]):
        result = round_trip(field, view)
        np.testing.assert_array_equal(result, view)
        assert layout(result) == layout(view)


@pytest.mark.parametrize("word", ["", "A", "C2", "C00", "C10", "F-1", "C0 ", "c", 0, None, ["C"]])
def test_array_of_impossible_layout(word):
    refused_on_load(Array(shape=("n", "m")), {"array": word}, {"field": np.zeros((2, 3))})


@pytest.mark.parametrize(
    "value",
    [
        None,
        [[1.0]],
        1.0,
        np.zeros(3),
        np.zeros((1, 1, 1)),
        np.zeros((2, 2), int),
        np.zeros((2, 2), np.float16),
        np.zeros((2, 3)),
        np.array([[nan, 0]] * 2),
        np.array([[inf, 0]] * 2),
        np.full((2, 2), -1.0),
        np.ma.zeros((2, 2)),
    ],
    ids=stable_id,
)
def test_array_refusals(value):
    refused(Array(shape=("n", "n"), itemsizes=(8,), ge=0), value)


def test_array_on_load_needs_its_array_and_order():
    field = Array(shape=("n",))
    for node in (None, {}, [], {"array": "F1"}, {"array": 1}, {"array": "C", "more": 1}, "C"):
        refused_on_load(field, node, {"field": np.zeros(2)})
    refused_on_load(field, {"array": "C"}, {})
    refused_on_load(field, {"array": "C"}, {"field": np.zeros(2)}, n=3)
    refused_on_load(field, {"array": "C"}, {"field": np.zeros(2, int)})


@pytest.mark.parametrize(
    "value", [0, 7, 2**62, 0.1, 1e300, 5e-324, -0.0, np.float32(0.1), np.float64(3), np.int32(4)]
)
def test_number_round_trip(value):
    assert_same(value, round_trip(Number(kinds="if"), value))


@pytest.mark.parametrize("value", [nan, inf, -inf, np.float32(nan)])
def test_number_not_finite(value):
    assert_same(value, round_trip(Number(finite=False), value))
    refused(Number(), value)


@pytest.mark.parametrize("value", [True, np.True_, None, "1", 1j, [1.0], np.zeros(1), 2**63])
def test_number_refusals(value):
    refused(Number(kinds="if"), value)


def test_number_bounds_and_kinds():
    refused(Number(kinds="i", ge=1), 0)
    refused(Number(gt=0), 0.0)
    refused(Number(kinds="i"), 1.0)
    refused(Number(kinds="f"), 1)
    refused(Number(kinds="i", size="n"), 4, n=3)
    assert round_trip(Number(kinds="i", size="n"), 4, n=4) == 4


@pytest.mark.parametrize(
    "node", [{"float": 1}, {"float": "1.0"}, {"float": ["nan"]}, {}, [], "nan", {"array": "F"}]
)
def test_number_on_load(node):
    refused_on_load(Number(finite=False), node, {"field": np.array(1.0)})


def test_number_on_load_is_not_an_array():
    refused_on_load(Number(), {"array": "C"}, {"field": np.zeros(1)})


def test_flag_text_nothing_nullable():
    assert round_trip(Flag(), True) is True
    assert round_trip(Flag(), np.False_) is False
    refused(Flag(), 1)
    assert round_trip(Text(("a", "b")), "b") == "b"
    for value in ("c", None, ["a"], 1):
        refused(Text(("a", "b")), value)
    assert round_trip(Nothing("why"), None) is None
    with pytest.raises(ModelFileError, match="because of this"):
        Nothing("because of this").dump("x", scope())
    assert round_trip(Nullable(Flag()), None) is None
    assert round_trip(Nullable(Flag()), True) is True


def test_one_of():
    field = OneOf((Number(kinds="if"), Array(shape=("n",))))
    assert_same(np.float64(2), round_trip(field, np.float64(2), n=3))
    assert_same(np.ones(3), round_trip(field, np.ones(3), n=3))
    refused(field, np.ones(2), n=3)
    refused(field, "a")
    for node in (None, [], [0], [2, 1], [-1, 1], [True, 1], ["0", 1], [0, 1, 2], 1):
        refused_on_load(field, node)


# Labels and strings


@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]),
        np.array([-5, 0, 7]),
        np.array([0, 255], np.uint8),
        np.array([2**64 - 2, 2**64 - 1], np.uint64),
        np.array([-1.5, 0.25], np.float32),
        np.array(["a", "b"]),
        np.array(["a", "b"], "U9"),
        np.array(["", "a\0b", "ä", "\U0001f600"]),
        np.array(["a", "b"], object),
        np.array(["a\0", "\ud800"], object),
    ],
    ids=stable_id,
)
def test_labels_round_trip(labels):
    assert_same(labels, round_trip(Labels("n"), labels))


def test_labels_of_the_other_byte_order():
    labels = np.array(["a", "bc"]).astype(">U2")
    np.testing.assert_array_equal(round_trip(Labels("n"), labels), ["a", "bc"], strict=True)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1, 0]),
        np.array([1, 1]),
        np.array(["b", "a"]),
        np.array([0.0, nan]),
        np.array([0.0, inf]),
        np.array([[0, 1]]),
        np.array([b"a", b"b"]),
        np.array([0, 1j]),
        np.array(["2020-01-01"], "M8[D]"),
        np.array([1, 2], object),
        np.array(["a", None], object),
        ["a", "b"],
        None,
    ],
    ids=stable_id,
)
def test_labels_refusals(labels):
    refused(Labels("n"), labels)


def test_labels_on_load():
    codes = np.array([[97], [98]], np.uint32)
    for node in (None, [], {}, {"array": "F"}, {"array": ["C"]}, {"array": "C", "object": []}):
        refused_on_load(Labels("n"), node, {"field": codes})
    for array in (
        codes.astype(np.int32),
        codes[:, 0],
        codes[:, :0],
        codes[::-1],
        codes + 0x110000,
        np.zeros((2, 1), np.uint32),
    ):
        refused_on_load(Labels("n"), {"array": "str"}, {"field": array})
    refused_on_load(Labels("n"), {"array": "str"}, {"field": codes}, n=3)
    refused_on_load(Labels("n"), {"array": "C"}, {"field": np.zeros(())})
    refused_on_load(Labels("n"), {"array": "C"}, {"field": np.zeros((2, 2))})
    for texts in (None, {}, "ab", ["a", 1], ["b", "a"], [["a"]], [None]):
        refused_on_load(Labels("n"), {"object": texts})


def test_strings():
    names = np.array(["x", "y", "z" * 1000], object)
    assert_same(names, round_trip(Strings("n"), names))
    refused(Strings("n"), names, n=2)
    for value in (np.array(["a"]), np.array([1], object), np.array([["a"]], object), ["a"]):
        refused(Strings("n"), value)


# Matrices


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_csr_round_trip(make, dtype, index):
    dense = np.random.default_rng(0).integers(-1, 2, (6, 4)).astype(dtype)
    matrix = make(dense)
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    result = round_trip(Matrix("n", "d"), matrix, n=6, d=4)
    assert_same(matrix, result)
    np.testing.assert_array_equal(result.toarray(), dense)


def test_matrix_refusals():
    dense = np.eye(3)
    refused(Matrix("n", "d"), dense, n=2)
    refused(Matrix("n", "d"), sparse.csr_matrix(dense), d=2)
    refused(Matrix("n", "d"), sparse.csc_matrix(dense))
    refused(Matrix("n", "d"), sparse.csr_matrix(dense.astype(int)))
    refused(Matrix("n", "d"), sparse.csr_matrix(np.full((3, 3), inf)))
    refused(Matrix("n", "d"), "matrix")


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("indices", np.array([0, 3, 1])),
        ("indices", np.array([0, -1, 1])),
        ("indices", np.array([0, 2])),
        ("indices", np.array([0.0, 2, 1])),
        ("indices", np.array([[0, 2, 1]])),
        ("indices", np.array([0, 2, 1], np.uint32)),
        ("indices", np.array([0, 2, 1], np.int16)),
        ("indptr", np.array([0, 2])),
        ("indptr", np.array([], int)),
        ("indptr", np.array([1, 2, 3])),
        ("indptr", np.array([0, 2, 4])),
        ("indptr", np.array([0, 4, 3])),
        ("indptr", np.array([0, -1, 3])),
        ("data", np.array([1.0, 2, nan])),
        ("data", np.array([1, 2, 3])),
        ("data", np.array([1.0, 2])),
    ],
)
def test_csr_on_load(name, bad):
    def arrays():
        return {
            "field.data": np.array([1.0, 2, 3]),
            "field.indices": np.array([0, 2, 1]),
            "field.indptr": np.array([0, 2, 3]),
        }

    node = {"csr": "matrix", "shape": [2, 3]}
    expected = [[1, 0, 2], [0, 3, 0]]
    np.testing.assert_array_equal(Matrix("n", "d").load(node, scope(arrays())).toarray(), expected)
    refused_on_load(Matrix("n", "d"), node, {**arrays(), f"field.{name}": bad})
    missing = arrays()
    del missing[f"field.{name}"]
    refused_on_load(Matrix("n", "d"), node, missing)


@pytest.mark.parametrize(
    "node",
    [
        None,
        {"csr": "matrix"},
        {"csr": "coo", "shape": [2, 3]},
        {"csr": ["matrix"], "shape": [2, 3]},
        *(
            {"csr": "matrix", "shape": shape}
            for shape in ([2], [2, 3, 1], None, 6, [2, "3"], [2, 3.0], [-1, 3], [2, 2**70], [3, 3])
        ),
    ],
    ids=stable_id,
)
def test_csr_node_on_load(node):
    arrays = {
        "field.data": np.array([1.0, 2, 3]),
        "field.indices": np.array([0, 2, 1]),
        "field.indptr": np.array([0, 2, 3]),
    }
    refused_on_load(Matrix("n", "d"), node, arrays)


# Certificates


def certificate(**changes):
    return Certificate(**{"objective": 1.5, "status": Status.STALLED, "n_iter": 3, **changes})


def test_certificate_round_trip():
    parts = tuple(certificate(n_iter=i, history=np.arange(i + 0.5)) for i in range(3))
    for value in (
        certificate(),
        certificate(lower_bound=0.1, residual=inf, solve_time=1e-9, history=np.array([nan, 1])),
        certificate(ends=np.array([2.0, 1.5])),
        Certificate.total(parts),
        certificate(parts=(certificate(parts=parts),)),
    ):
        assert_same(value, round_trip(CertificateField(), value))


def test_certificates_of_older_files_know_no_ends():
    arrays = {}
    node = CertificateField().dump(certificate(parts=(certificate(),)), scope(arrays))
    for old in (node, node["parts"][0]):
        del old["ends"]
    value = CertificateField().load(node, scope(arrays))
    assert_same(value, certificate(parts=(certificate(),)))
    assert value.n_starts == 1


def test_result_keeps_its_certificate():
    value = Result(objective=1.0, status=Status.CONVERGED, n_iter=1, x=np.ones(3))
    assert_same(value.certificate, round_trip(CertificateField(), value))


def test_numpy_numbers_in_a_certificate_become_python_numbers():
    value = certificate(objective=np.float64(1.5), n_iter=np.int64(3), status="stalled")
    assert_same(certificate(), round_trip(CertificateField(), value))


def test_certificate_refusals():
    refused(CertificateField(), None)
    refused(CertificateField(), {"objective": 1})
    deep = certificate()
    for _ in range(_schema.MAX_NESTING):
        deep = certificate(parts=(deep,))
    refused(CertificateField(), deep)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "fine"},
        {"status": None},
        {"status": ["converged"]},
        {"objective": "1"},
        {"objective": None},
        {"objective": 1},
        {"objective": True},
        {"objective": {"array": "C"}},
        {"objective": {"float": "1"}},
        {"n_iter": -1},
        {"n_iter": 1.0},
        {"n_iter": True},
        {"n_iter": {"array": "C"}},
        {"n_iter": 2**70},
        {"history": None},
        {"history": {"array": "G"}},
        {"ends": None},
        {"ends": [1.0]},
        {"parts": None},
        {"parts": {"0": 1}},
        {"parts": [None]},
        {"parts": [{}]},
        {"more": 1},
    ],
    ids=stable_id,
)
def test_certificate_on_load(changes):
    arrays = {}
    node = {**CertificateField().dump(certificate(), scope(arrays)), **changes}
    arrays["field.objective"] = arrays["field.n_iter"] = np.array(1.0)
    refused_on_load(CertificateField(), node, arrays)


# Parameters

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
)
KEYS = st.text() | st.integers(-(2**63), 2**64 - 1)


@given(
    st.recursive(
        PLAIN,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(KEYS, inner, max_size=3)
        ),
        max_leaves=5,
    )
)
def test_value_round_trip(value):
    try:
        result = round_trip(Value(), value)
    except ModelFileError as error:
        assert "nested deeper" in str(error)  # noqa: PT017
    else:
        assert_same(value, result)


def test_value_special_cases():
    assert_same(nan, round_trip(Value(), nan))
    assert_same(-0.0, round_trip(Value(), -0.0))
    weights = {0: 1.0, True: 2, "a": 3, 2.5: 4, None: 5, inf: 6}
    assert_same(weights, round_trip(Value(), weights))
    numpy_values = [np.float32(0.5), np.int8(3), np.True_, np.str_("x")]
    assert_same([0.5, 3, True, "x"], round_trip(Value(), numpy_values))
    assert_same({3: 0.5}, round_trip(Value(), {np.int64(3): np.float64(0.5)}))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (len, "a callable is code"),
        (lambda x: x, "use a named kernel or function, or skops"),
        (np.random.RandomState(0), "a random generator is not plain data"),
        (np.random.default_rng(0), "set an int or None before saving"),
        (PCA(), r"an estimator \(PCA\) is not supported here"),
        (np.zeros((1, 1, 1)), "a ndarray is not plain data"),
        ({1, 2}, "a set is not plain data"),
        (b"x", "a bytes is not plain data"),
        (1j, "a complex is not plain data"),
        (np.longdouble(1), "is not plain data"),
        (Status.CONVERGED, "a Status is not plain data"),
        (2**64, "64 bits"),
        ({(1, 2): 3}, "keys of bool"),
        ([[[[[[[[1]]]]]]]], "nested deeper"),
    ],
    ids=stable_id,
)
def test_value_refusals(value, reason):
    with pytest.raises(ModelFileError, match=reason):
        Value().dump(value, scope())


@pytest.mark.parametrize(
    "node",
    [
        {},
        {"float": "1"},
        {"float": None},
        {"tuple": 1},
        {"dict": {}},
        {"dict": [1]},
        {"dict": [[1]]},
        {"dict": [[1, 2, 3]]},
        {"dict": [[[1], 2]]},
        {"dict": [[{"tuple": [1]}, 2]]},
        {"dict": [[{"float": "x"}, 2]]},
        {"dict": [[1, 2], [True, 3]]},
        {"dict": [["a", 2], ["a", 3]]},
        {"estimator": "os.system"},
        {"tuple": [], "dict": []},
        2**64,
        [[[[[[[[1]]]]]]]],
    ],
    ids=stable_id,
)
def test_value_on_load(node):
    refused_on_load(Value(), node)
