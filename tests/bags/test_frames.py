"""Tables and Arrow columns, in and out."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from bags.naive import FLOATS, address, assert_same_bags, full_bags, grouped
from bagwise import Bags
from bagwise.exceptions import InvalidBagsError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def table():
    return {
        "u": [0.0, 1.0, 2.0, 3.0],
        "bag": ["b", "a", "b", "c"],
        "v": [4.0, 5.0, 6.0, 7.0],
        "y": [1, 0, 1, 1],
        "z": [0, 1, 0, 0],
        "who": ["p", "q", "r", "s"],
        "true": [True, False, False, True],
    }


# -------------------------------------------------------------------------------- from_frame


def test_all_roles(make):
    bags = Bags.from_frame(
        make(table()), label="y", features=["v", "u"], instance_name="who", instance_label="true"
    )
    assert bags.bag_names.tolist() == ["b", "a", "c"]
    assert bags.labels.tolist() == [1, 0, 1]
    assert bags.feature_names.tolist() == ["v", "u"]
    assert bags.instance_names.tolist() == ["p", "r", "q", "s"]
    assert bags.instance_labels.tolist() == [True, False, False, True]
    np.testing.assert_array_equal(bags[0], [[4, 0], [6, 2]])


def test_several_label_columns(make):
    bags = Bags.from_frame(make(table()), label=["y", "z"], features=["u"])
    assert bags.labels.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert bags.label_names.tolist() == ["y", "z"]


def test_features_are_all_other_columns(make):
    columns = {name: column for name, column in table().items() if name != "who"}
    bags = Bags.from_frame(make(columns), label="y")
    assert bags.feature_names.tolist() == ["u", "v", "z", "true"]
    np.testing.assert_array_equal(bags[1], [[1, 5, 1, 0]])


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_type_is_kept(make, dtype):
    frame = make({"bag": [1, 1], "x": np.zeros(2, dtype), "y": np.ones(2, dtype)})
    assert Bags.from_frame(frame).dtype == dtype


def test_float_types_are_joined(make):
    frame = make({"bag": [1], "x": np.zeros(1, np.float32), "y": np.ones(1, np.float64)})
    assert Bags.from_frame(frame).dtype == np.float64


def test_columns_longer_than_a_block(make):
    x = np.random.default_rng(0).normal(size=(10_000, 3))
    frame = make({"bag": np.arange(10_000) // 7, **{f"x{j}": x[:, j] for j in range(3)}})
    np.testing.assert_array_equal(Bags.from_frame(frame).instances, x)


@pytest.mark.parametrize(
    ("changes", "arguments", "message"),
    [
        ({}, {"bag": "nobag"}, "no column 'nobag'"),
        ({}, {"label": "nolabel"}, "no column 'nolabel'"),
        ({}, {"features": ["u", "w"]}, "no column 'w'"),
        ({}, {"features": []}, "No feature columns"),
        ({}, {}, "Feature columns must be numbers: column 'who'"),
        ({"bag": ["a", None, "b", "c"]}, {"features": ["u"]}, "bag_ids.*row 1 has none"),
        ({"u": [0.0, None, 2.0, 3.0]}, {"features": ["u"]}, r"bag 1 \('a'\) holds NaN"),
        ({"y": [1, 0, 0, 1]}, {"features": ["u"], "label": "y"}, r"bag 0 \('b'\) has 1 and 0"),
    ],
)
def test_tables_that_are_not_bags(make, changes, arguments, message):
    with pytest.raises(InvalidBagsError, match=message):
        Bags.from_frame(make({**table(), **changes}), **arguments)


def test_pandas_kinds():
    frame = pd.DataFrame(table(), index=[9, 9, 1, 0])  # the index plays no part
    frame["bag"] = frame["bag"].astype("category")
    frame["y"] = frame["y"].astype("Int64")
    frame["u"] = frame["u"].astype("Float32")
    bags = Bags.from_frame(frame, label="y", features=["u"])
    assert bags.bag_names.tolist() == ["b", "a", "c"]
    assert bags.labels.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(bags[0], [[0], [2]])
    numbered = pd.DataFrame(np.arange(6.0).reshape(2, 3))
    for bag in range(3):
        others = [str(j) for j in range(3) if j != bag]
        assert Bags.from_frame(numbered, bag=bag).feature_names.tolist() == others
    labelled = Bags.from_frame(numbered, bag=0, label=1)
    assert labelled.labels.tolist() == [1, 4]
    assert Bags.from_frame(numbered, bag=0, label=numbered.columns[1:2]).labels.shape == (2, 1)


def test_pandas_missing_values_are_named():
    for kind in ("Int64", "Float64"):
        frame = pd.DataFrame({"bag": ["m", "m"], "x": pd.array([1, None], dtype=kind)})
        with pytest.raises(InvalidBagsError, match=r"bag 0 \('m'\) holds NaN at instance 1"):
            Bags.from_frame(frame)
    frame = pd.DataFrame({"bag": pd.array([1, None], dtype="Int64"), "x": [1.0, 2.0]})
    with pytest.raises(InvalidBagsError, match="row 1 has none"):
        Bags.from_frame(frame)


# ----------------------------------------------------------------------------- missing labels

PRESENT = {"text": ["p", "n"], "whole": [1, 0], "real": [0.5, 2.5], "truth": [True, False]}


@pytest.mark.parametrize("kind", PRESENT)
def test_missing_labels_are_refused_or_dropped(make, kind):
    first, second = PRESENT[kind]
    frame = make({**table(), "y": [first, None, first, second]})
    message = r"bag 'a' has none in row 1, column 'y'\. .*on_missing_label='drop'"
    with pytest.raises(InvalidBagsError, match=message):
        Bags.from_frame(frame, label="y", features=["u"])
    bags = Bags.from_frame(
        frame, label="y", features=["u"], instance_name="who", on_missing_label="drop"
    )
    assert bags.bag_names.tolist() == ["b", "c"]
    assert bags.labels.tolist() == [first, second]
    assert bags.instance_names.tolist() == ["p", "r", "s"]
    assert bags.instances.ravel().tolist() == [0, 2, 3]
    assert "nan" not in map(str, bags.labels.tolist())


@pytest.mark.parametrize("nothing", [None, np.nan, float("nan"), pd.NA, pd.NaT])
@pytest.mark.parametrize("dtype", [object, "string", "category", "Int64"])
def test_every_kind_of_nothing_in_pandas(nothing, dtype):
    values = [1, 0] if dtype == "Int64" else ["p", "n"]
    if dtype == "Int64" and nothing is pd.NaT:
        pytest.skip("pandas takes no NaT for an integer")
    labels = pd.Series([values[0], nothing, values[0], values[1]], dtype=object).astype(dtype)
    frame = pd.DataFrame({**table(), "y": labels})
    with pytest.raises(InvalidBagsError, match="bag 'a' has none in row 1"):
        Bags.from_frame(frame, label="y", features=["u"])
    bags = Bags.from_frame(frame, label="y", features=["u"], on_missing_label="drop")
    assert bags.labels.tolist() == values


def test_missing_labels_of_several_columns(make):
    frame = make({**table(), "z": [0, 1, 0, None]})
    with pytest.raises(InvalidBagsError, match="bag 'c' has none in row 3, column 'z'"):
        Bags.from_frame(frame, label=["y", "z"], features=["u"])
    bags = Bags.from_frame(frame, label=["y", "z"], features=["u"], on_missing_label="drop")
    assert bags.labels.tolist() == [[1, 0], [0, 1]]


def test_bags_with_a_label_on_some_rows_are_never_dropped(make):
    frame = make({**table(), "y": [1, 0, None, 1]})
    for on_missing_label in ("error", "drop"):
        with pytest.raises(InvalidBagsError, match=r"bag 'b' has none in row 2.* Other rows"):
            Bags.from_frame(frame, label="y", features=["u"], on_missing_label=on_missing_label)


def test_dropping_needs_bags_and_labels(make):
    frame = make({**table(), "y": [None, None, None, None]})
    with pytest.raises(InvalidBagsError, match="No bag has a label"):
        Bags.from_frame(frame, label="y", features=["u"], on_missing_label="drop")
    nameless = make({**table(), "bag": ["b", None, "b", "c"], "y": [1, None, 1, 1]})
    with pytest.raises(InvalidBagsError, match="row 1 has none"):
        Bags.from_frame(nameless, label="y", features=["u"], on_missing_label="drop")
    with pytest.raises(ValueError, match="on_missing_label must be 'error' or 'drop'"):
        Bags.from_frame(frame, label="y", on_missing_label="skip")


def test_column_that_is_there_twice():
    frame = pd.DataFrame([[1, 2.0, 3.0]], columns=["bag", "x", "x"])
    with pytest.raises(InvalidBagsError, match="2 columns 'x'"):
        Bags.from_frame(frame)


@pytest.mark.parametrize("thing", [np.zeros((2, 2)), [1, 2], None, pl.LazyFrame(table())])
def test_what_is_no_table(thing):
    with pytest.raises(InvalidBagsError, match="pandas or polars DataFrame or a pyarrow Table"):
        Bags.from_frame(thing)


# ---------------------------------------------------------------------------------- to_frame


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("layout", [None, sparse.csr_array])
def test_round_trip(library, layout):
    bags = full_bags(layout=layout)[[2, 0, 3]]
    frame = bags.to_frame(library)
    assert list(frame.columns) == [
        "bag", "cat", "dog", "instance", "instance_label", "f0", "f1", "f2",
    ]  # fmt: skip
    back = Bags.from_frame(
        frame, label=["cat", "dog"], instance_name="instance", instance_label="instance_label"
    )
    expected = (
        bags
        if layout is None
        else bags.map_instances(lambda X: X.toarray(), feature_names=bags.feature_names)
    )
    assert_same_bags(back, expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_round_trip_of_bare_bags(library):
    bags = Bags(np.arange(6.0, dtype=np.float32).reshape(3, 2), [0, 1, 3], labels=["n", "p"])
    frame = bags.to_frame(library)
    assert list(frame.columns) == ["bag", "label", "x0", "x1"]
    back = Bags.from_frame(frame, label="label")
    assert back.labels.tolist() == ["n", "p"]
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back.instances, bags.instances)
    unlabelled = Bags(bags.instances, bags.offsets).to_frame(library)
    assert list(unlabelled.columns) == ["bag", "x0", "x1"]


@pytest.mark.parametrize(
    "names",
    [
        {"feature_names": ["bag", "b", "c"]}, {"feature_names": ["a", "b", "a"]},
        {"label_names": ["bag", "dog"]}, {"label_names": ["f0", "dog"]},
        {"feature_names": ["a", "b", "instance"]},
    ],
)  # fmt: skip
def test_two_columns_of_one_name_are_refused(names):
    bags = full_bags()
    known = {name: getattr(bags, name) for name in ("feature_names", "label_names")}
    clashing = Bags(
        bags.instances, bags.offsets, labels=bags.labels, instance_names=bags.instance_names,
        **{**known, **names},
    )  # fmt: skip
    with pytest.raises(InvalidBagsError, match="names of their own"):
        clashing.to_frame()


def test_unknown_library():
    with pytest.raises(ValueError, match="'pandas' or 'polars'"):
        full_bags().to_frame("excel")


# ------------------------------------------------------------------------------------- Arrow

LISTS = [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0]], [[6.0, 7.0], [8.0, 9.0], [10.0, 11.0]]]
X = np.arange(12.0).reshape(6, 2)


def fixed(value):
    return pa.list_(value, 2)


def arrow_types():
    outer = {"list": pa.list_, "large": pa.large_list}
    inner = {"fixed": fixed, "list": pa.list_, "large": pa.large_list}
    return {
        f"{o}-{i}-{v}": outer[o](inner[i](v))
        for o in outer
        for i in inner
        for v in (pa.float32(), pa.float64())
    }


TYPES = arrow_types()


@pytest.mark.parametrize("kind", TYPES)
def test_arrow_lists_are_not_copied(kind):
    column = pa.array(LISTS, type=TYPES[kind])
    bags = Bags.from_arrow(column, labels=[1, 0, 1])
    values = column.values.values
    np.testing.assert_array_equal(bags.instances, X)
    np.testing.assert_array_equal(bags.sizes, [2, 1, 3])
    assert bags.dtype == (np.float32 if "float" in kind else np.float64)
    assert address(bags.instances) == values.buffers()[1].address
    assert bags.labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("cut", [(0, 2), (1, 2), (1, 1), (2, 1), (0, 3)])
def test_arrow_slices(kind, cut):
    start, length = cut
    column = pa.array([[[9.0, 9.0]], *LISTS], type=TYPES[kind])[1:].slice(start, length)
    bags = Bags.from_arrow(column)
    np.testing.assert_array_equal(bags.instances, np.concatenate(LISTS[start : start + length]))
    assert column.values.values.buffers()[1].address <= address(bags.instances)
    assert [len(bag) for bag in bags] == [len(bag) for bag in LISTS[start : start + length]]


@given(st.data())
def test_arrow_chunks_and_slices_equal_the_lists(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    rows = iter(np.arange(2.0 * sum(sizes)).reshape(-1, 2).tolist())
    lists = [[next(rows) for _ in range(size)] for size in sizes]
    kind = TYPES[data.draw(st.sampled_from(sorted(TYPES)))]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(lists)), max_size=3)) | {0, len(lists)})
    chunks = [lists[a:b] for a, b in pairwise(cuts)]
    column = pa.chunked_array([pa.array(chunk, type=kind) for chunk in chunks], type=kind)
    start = data.draw(st.integers(0, len(lists) - 1))
    bags = Bags.from_arrow(column.slice(start))
    assert [bag.tolist() for bag in bags] == lists[start:]


def test_one_chunk_is_not_copied():
    column = pa.array(LISTS, type=pa.list_(fixed(pa.float32())))
    bags = Bags.from_arrow(pa.chunked_array([column]))
    assert address(bags.instances) == column.values.values.buffers()[1].address


def test_no_bags():
    kind = pa.list_(fixed(pa.float64()))
    assert len(Bags.from_arrow(pa.array([], type=kind))) == 0
    assert len(Bags.from_arrow(pa.chunked_array([], type=kind))) == 0


def test_polars_series_through_the_arrow_interface():
    for kind in (pl.List(pl.Array(pl.Float32, 2)), pl.List(pl.List(pl.Float64))):
        bags = Bags.from_arrow(pl.Series(LISTS, dtype=kind))
        np.testing.assert_array_equal(bags.instances, X)


def test_parquet_round_trip(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    column = pa.array(LISTS, type=pa.list_(fixed(pa.float32())))
    parquet.write_table(pa.table({"bag": column}), tmp_path / "x.parquet")
    read = parquet.read_table(tmp_path / "x.parquet")["bag"]
    np.testing.assert_array_equal(Bags.from_arrow(read).instances, X)


def test_arrow_integers_are_converted():
    column = pa.array([[[0, 1]], [[2, 3]]], type=pa.list_(fixed(pa.int16())))
    assert Bags.from_arrow(column).dtype == np.float64


@pytest.mark.parametrize(
    ("lists", "kind", "message"),
    [
        ([[[0.0, 1.0]], []], pa.list_(fixed(pa.float64())), r"bag\(s\) \[1\] have none"),
        ([[[0.0, 1.0]], None], pa.list_(fixed(pa.float64())), "bag 1 is"),
        ([[[0.0, 1.0], None]], pa.list_(fixed(pa.float64())), "Instances must not be null"),
        ([[[0.0, None]]], pa.list_(fixed(pa.float64())), "Features must not be null"),
        ([[[0.0, 1.0], [2.0]]], pa.list_(pa.list_(pa.float64())), r"Got \[1, 2\]"),
        ([[[], []]], pa.list_(pa.list_(pa.float64())), "at least one feature"),
        ([[["a", "b"]]], pa.list_(fixed(pa.string())), "Features must be numbers"),
        ([[0.0, 1.0]], pa.list_(pa.float64()), "lists of vectors"),
        ([0.0, 1.0], pa.float64(), "lists of vectors"),
        ([[[0.0, np.nan]]], pa.list_(fixed(pa.float64())), "bag 0 holds NaN"),
    ],
)
def test_columns_that_are_not_bags(lists, kind, message):
    with pytest.raises(InvalidBagsError, match=message):
        Bags.from_arrow(pa.array(lists, type=kind))


@pytest.mark.parametrize("thing", [3, [1, 2], "path", np.zeros(3)])
def test_what_is_no_arrow_column(thing):
    with pytest.raises(InvalidBagsError, match=r"An Arrow column .*is needed"):
        Bags.from_arrow(thing)


def test_groups_of_frames_equal_the_dictionary():
    rng = np.random.default_rng(3)
    ids = rng.permutation(np.repeat(["p", "q", "r"], [4, 1, 5]))
    frame = pl.DataFrame({"bag": ids, "x": np.arange(10.0)})
    bags = Bags.from_frame(frame)
    expected = grouped(range(10), ids.tolist())
    assert [bag[:, 0].tolist() for bag in bags] == list(expected.values())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_awkward_lists_are_not_copied(dtype):
    ak = pytest.importorskip("awkward")
    X = np.arange(12.0, dtype=dtype).reshape(6, 2)
    offsets = ak.index.Index64(np.array([0, 2, 3, 6]))
    flat = ak.contents.NumpyArray(X.ravel())
    for vectors in (ak.contents.NumpyArray(X), ak.contents.RegularArray(flat, 2)):
        lists = ak.Array(ak.contents.ListOffsetArray(offsets, vectors))
        bags = Bags.from_arrow(lists)
        assert np.shares_memory(bags.instances, X)
        assert bags.sizes.tolist() == [2, 1, 3]
        assert Bags.from_arrow(lists[1:])[0].tolist() == X[2:3].tolist()


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("kind", ["text", "number"])
def test_nulls_of_arrow_dictionaries_are_missing(kind, chunked):
    """They have no value, though pyarrow makes them the last one where it decodes."""

    def column(values):
        coded = pa.array(values).dictionary_encode()
        return pa.chunked_array([coded.slice(0, 2), coded.slice(2)]) if chunked else coded

    high, low = ("hi", "lo") if kind == "text" else (1, 0)
    plain = {"mol": ["q", "q", "r", "r", "s"], "a": [1.0, 2.0, 3.0, 4.0, 5.0]}
    labels = [high, high, None, None, low]
    table = pa.table({**plain, "act": column(labels)})
    with pytest.raises(InvalidBagsError, match=r"bag 'r' has none in row 2, column 'act'"):
        Bags.from_frame(table, bag="mol", label="act")
    kept = Bags.from_frame(table, bag="mol", label="act", on_missing_label="drop")
    assert list(kept.labels) == [high, low]
    features = pa.table({**plain, "a": column([1.0, None, 3.0, 4.0, 5.0])})
    with pytest.raises(InvalidBagsError, match="NaN"):
        Bags.from_frame(features, bag="mol")
    named = pa.table({**plain, "mol": column(["q", "q", None, "r", "s"])})
    with pytest.raises(InvalidBagsError, match="missing"):
        Bags.from_frame(named, bag="mol")
    whole = pa.table({name: column(values) for name, values in plain.items()})
    assert list(Bags.from_frame(whole, bag="mol").bag_names) == ["q", "r", "s"]
