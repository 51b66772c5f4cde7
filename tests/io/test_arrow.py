"""Parquet and Arrow, long and nested."""

import numpy as np
import pytest

from bagwise.io import inspect, pack, read

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


@pytest.fixture
def long(tmp_path):
    def make(columns, **options):
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table(columns), path, **options)
        return path

    return make


def lists_of(bags, inner=None):
    inner = pa.list_(pa.float64()) if inner is None else inner
    return pa.array(bags, pa.list_(inner))


def test_types_are_kept(long):
    columns = {"bag": [7, 7, 9], "label": ["01", "01", "2"]}
    columns["x"] = pa.array([1, 2, 3], pa.float32())
    bags = read(long(columns))
    assert bags.dtype == np.float32
    assert bags.bag_names.tolist() == ["7", "9"]
    assert bags.labels.tolist() == ["01", "2"]


def test_float32_beside_others_becomes_float64(long):
    x = pa.array([1.5, 2.5], pa.float32())
    bags = read(long({"bag": ["a", "b"], "x": x, "n": [1, 2], "flag": [True, False]}))
    assert bags.dtype == np.float64
    assert bags.instances.tolist() == [[1.5, 1, 1], [2.5, 2, 0]]


def test_dictionary_columns_with_unused_values(long):
    bag = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2]), pa.array(["p", "q", "r"]))
    bags = read(long({"bag": bag, "y": bag, "x": [1.0, 2.0, 3.0]}))
    assert bags.bag_names.tolist() == ["r", "p"]
    assert bags.labels.tolist() == ["r", "p"]
    assert bags.instances.ravel().tolist() == [1, 3, 2]


def test_lists_of_labels(long):
    labels = pa.array([["u", "v"], ["u", "v"], []], pa.list_(pa.string()))
    bags = read(long({"bag": ["a", "a", "b"], "labels": labels, "x": [1.0, 2.0, 3.0]}))
    assert bags.label_names.tolist() == ["u", "v"]
    assert bags.labels.tolist() == [[1, 1], [0, 0]]


def test_label_columns_and_instances(long):
    columns = {"bag": ["a", "a"], "p": [1, 1], "q": [0, 0], "instance": ["i", "j"]}
    columns |= {"instance_label": [0, 1], "x": [1.0, 2.0]}
    bags = read(long(columns), label=["p", "q"])
    assert bags.labels.tolist() == [[1, 0]]
    assert bags.instance_names.tolist() == ["i", "j"]
    assert bags.instance_labels.tolist() == [0, 1]


def test_pandas_index_is_not_a_feature(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"bag": ["a", "b"], "x": [1.0, 2.0]}, index=[5, 9])
    frame.to_parquet(tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet").feature_names.tolist() == ["x"]


def test_names_of_columns_are_taken_as_they_are(long):
    bags = read(long({" bag ": ["a"], "label\n": [1], " x": [2.0]}))
    assert bags.bag_names.tolist() == ["a"]
    assert bags.feature_names.tolist() == [" x"]


def test_many_batches(long, tmp_path, monkeypatch, assert_same):
    monkeypatch.setattr("bagwise.io._parquet._BATCH_BYTES", 100)
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(0, 40, 300))
    columns = {"bag": ids, "label": ids % 3, "x": rng.normal(size=300)}
    path = long(columns, row_group_size=64)
    bags = read(path)
    np.testing.assert_array_equal(bags.instances.ravel(), columns["x"])
    np.testing.assert_array_equal(bags.labels, np.unique(ids) % 3)
    assert_same(pack(path, tmp_path / "t.bags"), bags)


def test_rows_of_later_batches_are_counted_from_the_beginning(long, fails, monkeypatch):
    monkeypatch.setattr("bagwise.io._parquet._BATCH_BYTES", 1)
    ids, values = ["a"] * 5, [0.0, 1.0, 2.0, 3.0, None]
    path = long({"bag": ids, "x": values}, row_group_size=2)
    assert "row 4: column 'x': the value is missing" in fails(path)
    path = long({"bag": ids, "x": [*values[:4], np.inf]}, row_group_size=2)
    assert "row 4: column 'x': inf is not finite" in fails(path)
    path = long({"bag": ids, "y": [1, 1, 1, 1, 2], "x": [*values[:4], 4.0]}, row_group_size=2)
    assert "row 4: labels must not differ" in fails(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"bag": ["a", "b"], "x": [1.0, None]}, "row 1: column 'x': the value is missing"),
        ({"bag": ["a", "b"], "x": [1.0, np.inf]}, "row 1: column 'x': inf is not finite"),
        ({"bag": ["a", None], "x": [1.0, 2.0]}, "row 1: column 'bag': the value is missing"),
        ({"bag": ["a", "b"], "x": ["1", "2"]}, "column 'x' has type string"),
        ({"bag": ["a"], "y": pa.array([1], pa.timestamp("s")), "x": [1]}, "numbers or text"),
        ({"bag": ["a", "a"], "y": [1, 2], "x": [1, 2]}, "row 1: labels must not differ inside"),
        ({"bag": pa.array([], pa.string()), "x": pa.array([], pa.float64())}, "no row of data"),
        ({"mol": ["a"], "x": [1.0]}, "no column tells which bag"),
        ({"bag": ["a", "b"], "y": [1.0, np.nan], "x": [1.0, 2.0]}, "row 1: the label is missing"),
        ({"bag": ["a", "b"], "y": ["p", None], "x": [1.0, 2.0]}, "row 1: the label is missing"),
        ({"bag": ["a"], "y": [np.inf], "x": [1.0]}, "labels must not be missing or infinite"),
    ],
)
def test_errors(long, fails, columns, message):
    found = fails(long(columns))
    assert "t.parquet: " in found
    assert message in found


def test_nested_without_names(tmp_path):
    table = pa.table({"x": lists_of([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]])})
    pq.write_table(table, tmp_path / "n.parquet")
    bags = read(tmp_path / "n.parquet")
    assert bags.sizes.tolist() == [1, 2]
    assert bags.bag_names is None
    assert bags.labels is None


@pytest.mark.parametrize("separate", [False, True])
def test_nested_with_several_labels(tmp_path, separate):
    columns = {"bag_id": [3, 4], "x": lists_of([[[1.0]], [[3.0], [4.0]]])}
    if separate:
        columns |= {"p": [0, 1], "q": [1, 1]}
    else:
        columns["labels"] = ["q", "p;q"]
    pq.write_table(pa.table(columns), tmp_path / "n.parquet", row_group_size=1)
    bags = read(tmp_path / "n.parquet", label=["p", "q"] if separate else None)
    assert bags.label_names.tolist() == ["p", "q"]
    assert bags.labels.tolist() == [[0, 1], [1, 1]]
    assert bags.bag_names.tolist() == ["3", "4"]


@pytest.mark.parametrize(
    ("bags", "message"),
    [
        ([[[1.0]], [], [[2.0]]], "bag 1 ('q'): Every bag needs at least one instance"),
        ([[[1.0]], [[2.0]], None], "bag 2 ('r'): Bags must not be null"),
        ([[[1.0]], [[2.0, 3.0], [4.0]], [[5.0]]], "bag 1 ('q'): Instances must have one number"),
        ([[[1.0]], [[None]], [[5.0]]], "bag 1 ('q'): Features must not be null"),
        ([[[1.0]], [[2.0]], [[np.nan]]], "bag 2 ('r'): Instances must be finite"),
        ([[[1.0]], [[2.0]], [[3.0, 4.0]]], "do not fit together"),
    ],
)
def test_nested_errors_name_the_bag(tmp_path, fails, bags, message):
    table = pa.table({"bag": ["p", "q", "r"], "x": lists_of(bags)})
    pq.write_table(table, tmp_path / "n.parquet")
    assert message in fails(tmp_path / "n.parquet")


def test_nested_needs_a_choice(tmp_path, fails):
    column = lists_of([[[1.0]]])
    pq.write_table(pa.table({"u": column, "v": column}), tmp_path / "n.parquet")
    assert "several columns hold lists of vectors (u, v): pass key=" in fails(
        tmp_path / "n.parquet"
    )
    assert read(tmp_path / "n.parquet", key="v").n_bags == 1
    with pytest.raises(ValueError, match="no option 'features'"):
        read(tmp_path / "n.parquet", key="v", features=["u"])


def test_nested_missing_label(tmp_path, fails):
    table = pa.table({"y": [1, None], "x": lists_of([[[1.0]], [[2.0]]])})
    pq.write_table(table, tmp_path / "n.parquet")
    assert "row 1: column 'y': the value is missing" in fails(tmp_path / "n.parquet")
    assert read(tmp_path / "n.parquet", label=False).labels is None


def test_one_batch_of_arrow_is_not_copied(write):
    path = write("arrow")
    with pa.memory_map(str(path)) as mapped:
        file_size = mapped.size()
    before = pa.total_allocated_bytes()
    bags = read(path)
    assert pa.total_allocated_bytes() - before < file_size
    assert not bags.instances.flags.owndata


def test_arrow_stream(tmp_path):
    table = pa.table({"bag": ["a", "b"], "x": [1.0, 2.0]})
    path = tmp_path / "t.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    assert read(path).instances.ravel().tolist() == [1, 2]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"ARROW1", b"bag,x\n" * 100])
def test_not_a_table(tmp_path, fails, suffix, content):
    (tmp_path / f"t{suffix}").write_bytes(content)
    assert "can be read" in fails(tmp_path / f"t{suffix}")


def test_rows_that_a_small_file_repeats(long, fails):
    path = long({"bag": np.zeros(200_000, int), "x": np.zeros(200_000)})
    assert path.stat().st_size < 20_000
    assert "allow more with max_bytes" in fails(path, max_bytes=100_000)


def test_guesses_of_nested(write):
    guessed = inspect(write("nested")).guessed
    assert guessed["instances"] == "column 'instances'"
    assert guessed["bag"] == "column 'bag'"
