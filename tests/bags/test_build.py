"""Every way to make bags, and every way in which data are not bags."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from bags.naive import FLOATS, address, dense, grouped
from bagwise import Bags
from bagwise.exceptions import BagwiseError, InvalidBagsError

X = np.arange(20.0).reshape(10, 2)
OFFSETS = [0, 3, 4, 10]


def refused(*fragments):
    """Expect an InvalidBagsError whose message holds all fragments."""
    pattern = "".join(f"(?=.*{fragment})" for fragment in fragments)
    return pytest.raises(InvalidBagsError, match=f"(?s){pattern}")


# ------------------------------------------------------------------------------ the matrix


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_matrix_is_kept_and_not_copied(dtype):
    matrix = X.astype(dtype)
    bags = Bags(matrix, OFFSETS)
    assert bags.dtype == dtype
    assert address(bags.instances) == address(matrix)
    assert matrix.flags.writeable  # only our view is read-only
    assert not bags.instances.flags.writeable


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        (np.int64, np.float64), (np.int8, np.float64), (np.uint16, np.float64),
        (np.bool_, np.float64), (np.float16, np.float32), (np.longdouble, np.float64),
        (object, np.float64), (">f8", np.float64), (">f4", np.float32), (">i4", np.float64),
        (">f2", np.float32),
    ],
)  # fmt: skip
def test_other_numbers_are_converted(dtype, kept):
    values = (X % 2).astype(dtype)
    bags = Bags(values, OFFSETS)
    assert bags.dtype == kept
    assert bags.dtype.isnative
    np.testing.assert_array_equal(bags.instances, X % 2)


def test_lists_of_rows_are_converted():
    np.testing.assert_array_equal(Bags(X.tolist(), OFFSETS).instances, X)


def test_fortran_order_is_copied_into_rows():
    bags = Bags(np.asfortranarray(X), OFFSETS)
    assert bags.instances.flags.c_contiguous
    np.testing.assert_array_equal(bags.instances, X)


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[::-1], np.s_[:, :1]])
def test_strided_views_keep_their_values(view):
    bags = Bags(X[view], [0, len(X[view])])
    np.testing.assert_array_equal(bags.instances, X[view])


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_memory_map_is_not_copied(tmp_path, mode):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode=mode)
    bags = Bags(mapped, OFFSETS)
    assert address(bags.instances) == address(mapped)
    assert bags.is_memory_mapped == (mode != "c")  # a private map may differ from its file
    assert type(bags.instances) is np.ndarray


def test_masked_values_are_refused():
    whole = np.ma.masked_array(X, np.zeros(X.shape, bool))
    assert type(Bags(whole, OFFSETS).instances) is np.ndarray
    np.testing.assert_array_equal(Bags(whole, OFFSETS).instances, X)
    with refused("instances", "masked"):
        Bags(np.ma.masked_array(X, X > 3), OFFSETS)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_csr_is_not_copied(make):
    matrix = make(X)
    bags = Bags(matrix, OFFSETS)
    assert bags.is_sparse
    assert address(bags.instances.data) == address(matrix.data)
    np.testing.assert_array_equal(bags.instances.toarray(), X)


@pytest.mark.parametrize("make", [sparse.csc_array, sparse.coo_array, sparse.lil_matrix])
def test_other_sparse_layouts_become_csr(make):
    bags = Bags(make(X), OFFSETS)
    assert bags.instances.format == "csr"
    np.testing.assert_array_equal(bags.instances.toarray(), X)


@pytest.mark.parametrize(
    ("dtype", "kept"), [(np.float32, np.float32), (np.int32, np.float64), (bool, np.float64)]
)
def test_csr_dtypes(dtype, kept):
    assert Bags(sparse.csr_array((X % 2).astype(dtype)), OFFSETS).dtype == kept


def test_csr_that_is_not_canonical_is_put_right_in_a_copy():
    data, indices, indptr = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1, 0, 1, 1]), [0, 3, 3, 4]
    matrix = sparse.csr_array((data, indices, indptr), shape=(3, 2))  # unsorted, with duplicates
    bags = Bags(matrix, [0, 3])
    np.testing.assert_array_equal(bags.instances.toarray(), [[2, 5], [0, 0], [0, 8]])
    assert bags.instances.nnz == 3
    np.testing.assert_array_equal(matrix.data, [1, 2, 4, 8])
    np.testing.assert_array_equal(matrix.indices, [1, 0, 1, 1])


def csr_pointing_at(column):
    """Return 10 rows of 3 columns, of which one value is said to be in another column."""
    indices = np.zeros(10, np.int32)
    indices[4] = column
    return sparse.csr_array((np.ones(10), indices, np.arange(11)), shape=(10, 3))


@pytest.mark.parametrize(
    ("matrix", "fragments"),
    [
        (np.zeros(4), ["instances", "2-D", "1 dimension"]),
        (np.zeros((2, 2, 2)), ["instances", "2-D", "3 dimension"]),
        (np.array([["a", "b"]] * 10), ["instances", "real numbers", "<U1"]),
        (X + 1j, ["instances", "real numbers", "complex128"]),
        (sparse.csr_array(X + 1j), ["instances", "real numbers", "complex128"]),
        (sparse.coo_array(np.ones(4)), ["instances", "2-D", "1 dimension"]),
        (X.astype("M8[s]"), ["instances", "real numbers", "datetime64"]),
        ([[1.0, 2.0], [3.0]], ["instances", "rectangular"]),
        ([[1.0, None]] * 10, ["bag 0 holds NaN"]),
        (np.array([[1j, object()]] * 10), ["instances", "numbers"]),
        (np.zeros((10, 0)), ["at least one feature", "0 columns"]),
        (csr_pointing_at(3), ["instances", "valid sparse matrix", "< 3"]),
        (csr_pointing_at(-1), ["instances", "valid sparse matrix", "0"]),
    ],
)
def test_what_is_no_matrix_is_refused(matrix, fragments):
    with refused(*fragments):
        Bags(matrix, OFFSETS)


# ---------------------------------------------------------------------------------- offsets


@pytest.mark.parametrize(
    ("offsets", "fragments"),
    [
        ([0, 3, 3, 10], ["at least one instance", r"bag\(s\) \[1\] have none"]),
        ([0, 0, 10, 10], [r"bag\(s\) \[0, 2\] have none"]),
        ([0, 5, 3, 10], ["must not fall", "bag 1", "row 5", "row 3"]),
        ([1, 3, 10], ["begin with 0", "10", "Got 1 and 10"]),
        ([0, 3, 9], ["end with the number of instances, 10", "Got 0 and 9"]),
        ([0, 3, 11], ["10", "Got 0 and 11"]),
        ([], ["offsets", "integers", r"shape \(0,\)"]),
        ([[0, 10]], ["offsets", r"shape \(1, 2\)"]),
        ([0.0, 10.0], ["offsets", "integers", "float64"]),
        ([[0], [3, 10]], ["offsets", "different lengths"]),
        ([0, 2**63 - 1, -2, 10], ["must not fall", "bag 1"]),  # the differences overflow to > 0
        (np.array([0, 2**64 - 1, 10], dtype=np.uint64), ["must not fall", "bag 0"]),
    ],
)
def test_offsets_that_do_not_fit_are_refused(offsets, fragments):
    with refused(*fragments):
        Bags(X, offsets)


def test_many_empty_bags_are_counted():
    with refused(r"\[0, 1, 2, 3, 4, 5, 6, 7, \.\.\.\] \(20 in all\)"):
        Bags(X, [0] * 20 + [0, 10])


def test_offsets_are_copied():
    offsets = np.array(OFFSETS)
    bags = Bags(X, offsets)
    offsets[1] = 7
    np.testing.assert_array_equal(bags.offsets, OFFSETS)


def test_no_bags_at_all():
    bags = Bags(X[:0], [0])
    assert len(bags) == 0
    assert bags.n_instances == 0
    assert bags.to_list() == []


@pytest.mark.parametrize("nothing", [None, np.nan])
@pytest.mark.parametrize("form", [list, lambda labels: np.array(labels, dtype=object)])
def test_text_that_is_missing_is_no_label(nothing, form):
    with refused("labels must not be missing: entry 1 is"):
        Bags(X, [0, 5, 10], labels=form(["p", nothing]))
    with refused("instance_labels must not be missing: entry 3 is"):
        Bags(X, [0, 5, 10], instance_labels=form(["p"] * 3 + [nothing] * 7))
    with refused("labels must not be missing: entry 0 is"):
        Bags.from_groups(X, ["a"] * 5 + ["b"] * 5, labels=form([nothing] * 5 + ["p"] * 5))


# ------------------------------------------------------------------------ NaN and infinity


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", FLOATS)
def test_first_value_that_is_not_finite_is_named(value, layout, dtype):
    matrix = X.astype(dtype)
    matrix[6, 1] = value
    matrix[8, 0] = np.nan
    word = "NaN" if np.isnan(value) else "infinity"
    with refused(f"bag 2 holds {word} at instance 2, feature 1"):
        Bags(layout(matrix), OFFSETS)
    with refused(rf"bag 2 \('z'\) holds {word}"):
        Bags(layout(matrix), OFFSETS, bag_names=["x", "y", "z"])


def test_large_finite_values_are_no_infinity():
    """Their sum overflows, which is how the search for infinities begins."""
    values = np.full((10, 2), np.finfo(np.float32).max, dtype=np.float32)
    assert Bags(values, OFFSETS).n_instances == 10
    assert Bags(sparse.csr_array(values), OFFSETS).n_instances == 10


def test_nan_in_a_later_block_is_found(monkeypatch):
    monkeypatch.setattr("bagwise.bags._matrix._CHUNK_BYTES", 48)
    for row in range(10):
        matrix = X.copy()
        matrix[row, row % 2] = np.nan
        with refused(f"instance {row}, feature {row % 2}"):
            Bags(matrix, [0, 10])
        with refused(f"instance {row}, feature {row % 2}"):
            Bags(sparse.csr_array(matrix), [0, 10])


# ----------------------------------------------------------------------------- aligned arrays


def test_aligned_arrays_are_kept():
    bags = Bags(
        X, OFFSETS, bag_names=["a", "b", "c"], labels=["u", "v", "u"],
        instance_names=np.arange(10), instance_labels=np.arange(10) % 2 == 0,
        feature_names=["p", "q"],
    )  # fmt: skip
    assert bags.bag_names.tolist() == ["a", "b", "c"]
    assert bags.labels.tolist() == ["u", "v", "u"]
    assert bags.instance_names.tolist() == [str(i) for i in range(10)]
    assert bags.instance_labels.dtype == bool
    assert bags.feature_names.tolist() == ["p", "q"]


@pytest.mark.parametrize(
    ("name", "length"),
    [
        ("bag_names", 3), ("labels", 3), ("instance_names", 10), ("instance_labels", 10),
        ("feature_names", 2),
    ],
)  # fmt: skip
def test_aligned_arrays_of_wrong_length_are_refused(name, length):
    for wrong in (length - 1, length + 1):
        with refused(f"{name} must have {length} entries", rf"shape \({wrong},\)"):
            Bags(X, OFFSETS, **{name: ["a"] * wrong})
    with refused(name):
        Bags(X, OFFSETS, **{name: "a"})
    with refused(name, "different lengths"):
        Bags(X, OFFSETS, **{name: [["a"], ["b", "c"]]})


def test_labels_of_any_kind():
    strings = np.array(["u", "v", "u"], dtype=object)
    assert Bags(X, OFFSETS, labels=strings).labels.dtype.kind == "U"
    mixed = np.array([1, 2.5, True], dtype=object)
    assert Bags(X, OFFSETS, labels=mixed).labels.tolist() == [1.0, 2.5, 1.0]
    several = Bags(X, OFFSETS, labels=np.eye(3), label_names=["a", "b", "c"])
    assert several.labels.shape == (3, 3)
    for wrong in ([b"a", 1, 2], np.array(["2020"] * 3, dtype="M8[Y]"), [1j, 2, 3]):
        with refused("labels must be numbers, booleans or strings"):
            Bags(X, OFFSETS, labels=wrong)
    with refused("label_names must have 3 entries"):
        Bags(X, OFFSETS, labels=np.eye(3), label_names=["a", "b"])


# ----------------------------------------------------------------------------------- lists


@pytest.mark.parametrize("dtype", FLOATS)
def test_list_of_arrays(dtype):
    parts = [X[:3].astype(dtype), X[3:4].astype(dtype), X[4:].astype(dtype)]
    bags = Bags.from_list(parts, labels=[1, 0, 1])
    assert bags.dtype == dtype
    np.testing.assert_array_equal(bags.offsets, OFFSETS)
    np.testing.assert_array_equal(bags.instances, X)
    assert bags.labels.tolist() == [1, 0, 1]


def test_list_of_lists_of_tuples_of_anything():
    for parts in ([[[0, 1]], [[2, 3], [4, 5]]], ([(0, 1)], [(2, 3), (4, 5)])):
        bags = Bags.from_list(parts)
        np.testing.assert_array_equal(bags.instances, X[:3])
    np.testing.assert_array_equal(Bags.from_list(iter(parts)).instances, X[:3])
    objects = np.empty(2, dtype=object)
    objects[:] = [X[:1], X[1:3]]
    np.testing.assert_array_equal(Bags.from_list(objects).sizes, [1, 2])
    np.testing.assert_array_equal(Bags.from_list(bags).instances, X[:3])


def test_list_of_csr_stays_sparse_unless_one_is_dense():
    parts = [sparse.csr_array(X[:3]), sparse.csr_matrix(X[3:])]
    assert Bags.from_list(parts).is_sparse
    np.testing.assert_array_equal(Bags.from_list(parts).instances.toarray(), X)
    mixed = Bags.from_list([parts[0], X[3:]])
    assert not mixed.is_sparse
    np.testing.assert_array_equal(mixed.instances, X)


def test_list_of_very_wide_sparse_bags():
    wide = sparse.csr_array(([1.0], ([0], [2**32])), shape=(1, 2**33))
    assert Bags.from_list([wide, wide]).n_features == 2**33


@pytest.mark.parametrize(
    ("parts", "fragments"),
    [
        ([], ["at least one bag"]),
        ([X, X[:0], X], [r"bag\(s\) \[1\] have none"]),
        ([X, X[:, :1], X], [r"one number of features: bag\(s\) \[1\] have \[1\], the others 2"]),
        ([X, X[0]], ["bag 1 must be a 2-D matrix"]),
        ([X, [["a", "b"]]], ["bag 1 must be real numbers"]),
        ([X, [[1.0], [1.0, 2.0]]], ["bag 1 must be numbers in a rectangular array"]),
        ([X, "file.npy", X * 1j], ["bag 1", "bag 2", "complex"]),
        ([X, X * np.nan], ["bag 1 holds NaN at instance 0, feature 0"]),
        (X, ["bag 0 must be a 2-D matrix"]),
    ],
)
def test_lists_that_are_not_bags_are_refused(parts, fragments):
    with refused(*fragments):
        Bags.from_list(parts)


# ------------------------------------------------------------------------------- 3-D arrays


def test_array_is_seen_without_a_copy():
    cube = np.arange(24.0, dtype=np.float32).reshape(4, 3, 2)
    bags = Bags.from_array(cube)
    assert bags.shape == (4, 2)
    assert address(bags.instances) == address(cube)
    np.testing.assert_array_equal(bags[2], cube[2])
    transposed = Bags.from_array(cube.transpose(1, 0, 2))
    np.testing.assert_array_equal(transposed[1], cube[:, 1])
    np.testing.assert_array_equal(Bags.from_array(cube.tolist())[3], cube[3])


@pytest.mark.parametrize(
    ("cube", "fragments"),
    [
        (np.zeros((3, 2)), ["3-D", "2 dimension"]),
        (np.zeros((3, 0, 2)), [r"bag\(s\) \[0, 1, 2\] have none"]),
        (np.zeros((3, 2, 0)), ["at least one feature"]),
        (np.full((3, 2, 1), np.nan), ["bag 0 holds NaN"]),
        (np.ma.masked_equal(np.ones((3, 2, 1)), 1.0), ["masked"]),
        ([[[1.0, 2.0], [3.0]]], ["different lengths"]),
    ],
)
def test_arrays_that_are_not_bags_are_refused(cube, fragments):
    with refused(*fragments):
        Bags.from_array(cube)


# ---------------------------------------------------------------------------------- groups


def test_groups_in_order_are_not_copied():
    bags = Bags.from_groups(X, [7, 7, 7, 2, 5, 5, 5, 5, 5, 5])
    assert address(bags.instances) == address(X)
    assert bags.bag_names.tolist() == ["7", "2", "5"]


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "kind", [np.int64, np.uint8, str, object, float, "M8[D]", "S2"], ids=lambda k: str(k)
)
def test_groups_with_ids_of_any_kind(kind, layout):
    codes = np.array([3, 1, 3, 3, 2, 1, 1, 2, 3, 9])
    ids = codes.astype(str).astype(object) if kind is object else codes.astype(kind)
    rows = np.arange(10)
    bags = Bags.from_groups(
        layout(X), ids, labels=codes > 2, instance_names=rows, instance_labels=rows
    )
    expected = grouped(rows, codes)
    assert len(bags) == 4
    for i, (code, members) in enumerate(expected.items()):
        np.testing.assert_array_equal(dense(bags[i]), X[members])
        assert bags.labels[i] == (code > 2)
        assert bags.bag_names[i] == str(np.asarray(code).astype(ids.dtype).astype(str))
    assert bags.instance_labels.tolist() == list(chain(*expected.values()))
    assert bags.instance_names.tolist() == [str(i) for i in bags.instance_labels]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.sampled_from(["int", "str"]))
def test_groups_equal_a_dictionary(codes, kind):
    rows = np.arange(float(len(codes)))
    ids = codes if kind == "int" else [f"id{c}" for c in codes]
    bags = Bags.from_groups(rows[:, None], ids, labels=np.array(codes) * 10)
    expected = grouped(rows, ids)
    assert bags.bag_names.tolist() == [str(name) for name in expected]
    assert [bag[:, 0].tolist() for bag in bags] == list(expected.values())
    assert bags.labels.tolist() == [10 * codes[int(bag[0, 0])] for bag in bags]


@pytest.mark.parametrize(
    ("ids", "fragments"),
    [
        ([1, 2], ["bag_ids", "10", r"\(2,\)"]),
        (np.zeros((10, 1)), ["bag_ids", r"\(10, 1\)"]),
        ([1.0] * 9 + [np.nan], ["bag_ids", "row 9"]),
        (["a"] * 9 + [np.nan], ["bag_ids", "row 9"]),
        (["a"] * 4 + [None] + ["a"] * 5, ["bag_ids", "row 4"]),
        (np.array(["2020", "NaT"] * 5, dtype="M8[Y]"), ["bag_ids", "row 1"]),
        ([[1], [1, 2]], ["bag_ids", "different lengths"]),
    ],
)
def test_ids_that_do_not_fit_are_refused(ids, fragments):
    with refused(*fragments):
        Bags.from_groups(X, ids)


def test_no_rows_are_no_bags():
    bags = Bags.from_groups(X[:0], [], labels=np.empty(0))
    assert (len(bags), bags.n_features) == (0, 2)


def test_labels_that_vary_inside_a_bag_are_refused():
    ids = ["a", "b"] * 5
    with refused(r"labels must not vary inside a bag: bag 1 \('b'\) has 7 and 0"):
        Bags.from_groups(X, ids, labels=[1, 7] * 4 + [1, 0])
    with refused("bag 0", r"\[1, 0\] and \[1, 1\]"):
        Bags.from_groups(X, ids, labels=[[1, 0]] * 8 + [[1, 1]] * 2)
    with refused("labels must have one entry per row, 10"):
        Bags.from_groups(X, ids, labels=[1, 2])
    with refused(r"bag 0 \('a'\) has nan and 3"):
        Bags.from_groups(X, ids, labels=[np.nan, 1.0] * 4 + [3.0, 1.0])
    unknown = Bags.from_groups(X, ids, labels=[np.nan, 1.0] * 5).labels
    np.testing.assert_array_equal(unknown, [np.nan, 1.0])


def test_errors_are_value_errors_of_ours():
    assert issubclass(InvalidBagsError, ValueError)
    assert issubclass(InvalidBagsError, BagwiseError)
