"""Labels and values that are missing: refused, left out, or NaN, alike in all formats."""

import numpy as np
import pytest
from scipy import io as scipy_io

from bagwise.exceptions import BagFileError
from bagwise.io import inspect, pack, read

NAN = np.nan
COLUMNS = {
    "bag": ["a", "b", "a", "c", "d"],
    "y": ["p", None, "p", "n", None],
    "x": [1.0, 2.0, NAN, 4.0, 5.0],
    "z": [0.5, 1.5, 2.5, 3.5, 4.5],
}


def text(value, missing):
    return missing if value is None or value != value else str(value)


def write_csv(folder, missing=""):
    rows = ["bag,y,x,z"]
    for bag, y, *features in zip(*COLUMNS.values(), strict=True):
        rows.append(",".join([bag, text(y, ""), *(text(f, missing) for f in features)]))
    (folder / "t.csv").write_text("\n".join(rows) + "\n")
    return folder / "t.csv"


def write_arff(folder):
    kinds = {"bag": "string", "y": "{p,n}", "x": "numeric", "z": "numeric"}
    rows = ["@relation t", *(f"@attribute {name} {kind}" for name, kind in kinds.items()), "@data"]
    table = zip(*COLUMNS.values(), strict=True)
    rows += [",".join(text(value, "?") for value in row) for row in table]
    (folder / "t.arff").write_text("\n".join(rows) + "\n")
    return folder / "t.arff"


def write_c45(folder):
    rows = []
    for bag, y, *features in zip(*COLUMNS.values(), strict=True):
        rows.append(",".join([bag, *(text(f, "?") for f in features), text(y, "?")]) + ".")
    (folder / "t.data").write_text("\n".join(rows) + "\n")
    return folder / "t.data"


def write_parquet(folder):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    features = {name: pa.array(COLUMNS[name], from_pandas=True) for name in ("x", "z")}
    pq.write_table(pa.table({**COLUMNS, **features}), folder / "t.parquet")
    return folder / "t.parquet"


def write_nested(folder):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    bags = [[[1.0, 0.5], [None, 2.5]], [[2.0, 1.5]], [[4.0, 3.5]], [[5.0, 4.5]]]
    columns = {
        "bag": list("abcd"),
        "y": ["p", None, "n", None],
        "bags": pa.array(bags, pa.list_(pa.list_(pa.float64()))),
    }
    pq.write_table(pa.table(columns), folder / "n.parquet", row_group_size=1)
    return folder / "n.parquet"


def write_folder(folder):
    path = folder / "slides"
    path.mkdir()
    np.save(path / "a.npy", [[1.0, 0.5], [NAN, 2.5]])
    for name, row in {"b": [2.0, 1.5], "c": [4.0, 3.5], "d": [5.0, 4.5]}.items():
        np.save(path / f"{name}.npy", [row])
    (path / "labels.csv").write_text("bag,y\na,p\nb,\nc,n\nd,\n")
    return path


WRITERS = {
    "csv": write_csv,
    "arff": write_arff,
    "c45": write_c45,
    "parquet": write_parquet,
    "nested": write_nested,
    "folder": write_folder,
}
DROP = {"on_missing_label": "drop", "allow_nan": True}


@pytest.mark.parametrize("kind", WRITERS)
def test_both_are_refused_and_the_message_shows_the_way(tmp_path, kind):
    path = WRITERS[kind](tmp_path)
    with pytest.raises(BagFileError, match=r"(label|value) is missing") as caught:
        read(path, allow_nan=True)
    assert "on_missing_label='drop'" in str(caught.value)
    with pytest.raises(BagFileError, match="allow_nan=True"):
        read(path, on_missing_label="drop")


@pytest.mark.parametrize("kind", WRITERS)
def test_bags_without_a_label_are_left_out_and_values_are_nan(tmp_path, kind):
    path = WRITERS[kind](tmp_path)
    bags = read(path, **DROP)
    assert bags.bag_names.tolist() == ["a", "c"]
    assert bags.labels.tolist() == ["p", "n"]
    assert bags.allow_nan
    np.testing.assert_array_equal(bags.instances, [[1.0, 0.5], [NAN, 2.5], [4.0, 3.5]])
    stored = pack(path, tmp_path / "t.bags", **DROP)
    assert stored.allow_nan
    np.testing.assert_array_equal(stored.instances, bags.instances)
    assert stored.labels.tolist() == ["p", "n"]
    assert inspect(path, **DROP).label_counts == {"n": 1, "p": 1}
    again = read(tmp_path / "t.bags")
    np.testing.assert_array_equal(again.instances, bags.instances)


@pytest.mark.parametrize("cell", ["", "?", "NA", "nan", "NaN", "null", "None", " "])
def test_cells_that_say_missing(tmp_path, cell):
    bags = read(write_csv(tmp_path, cell), **DROP)
    assert np.argwhere(np.isnan(bags.instances)).tolist() == [[1, 0]]


@pytest.mark.parametrize("cell", ["inf", "-inf", "1e999", "much", "-nan", "1,5"])
def test_other_cells_stay_refused(tmp_path, cell):
    (tmp_path / "t.tsv").write_text(f"bag\tx\na\t1\na\t{cell}\n")
    with pytest.raises(BagFileError, match=r"t\.tsv:3: column 'x': "):
        read(tmp_path / "t.tsv", allow_nan=True)


def test_infinity_in_parquet_stays_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"bag": ["a", "a"], "x": [NAN, np.inf]}), tmp_path / "t.parquet")
    with pytest.raises(BagFileError, match="row 1: column 'x': inf is not finite"):
        read(tmp_path / "t.parquet", allow_nan=True)


@pytest.mark.parametrize("cell", ["", "nan", "NA"])
def test_large_tables_are_read_the_quick_way_too(tmp_path, monkeypatch, cell):
    pytest.importorskip("pyarrow")
    n = 40_000
    rows = [f"b{i // 4},{i // 4 % 2},{cell if i % 7 == 0 else i},{i}.5" for i in range(n)]
    path = tmp_path / "t.csv"
    path.write_text("bag,y,u,v\n" + "\n".join(rows) + "\n")
    exact = read(path, allow_nan=True, encoding="utf-8")
    monkeypatch.setattr("bagwise.io._csv.blocks_of_lines", None)  # only the quick way is left
    quick = read(path, allow_nan=True)
    np.testing.assert_array_equal(quick.instances, exact.instances)
    assert np.isnan(quick.instances[:, 0]).nonzero()[0].tolist() == list(range(0, n, 7))
    assert not np.isnan(quick.instances[:, 1]).any()


@pytest.mark.parametrize("cell", ["-nan", "nan(7)", "inf"])
def test_the_quick_way_refuses_what_the_exact_one_refuses(tmp_path, cell):
    pytest.importorskip("pyarrow")
    n = 20_000
    rows = [f"b{i // 4},1,{cell if i == n - 1 else i},NA" for i in range(n)]
    (tmp_path / "t.csv").write_text("bag,y,u,v\n" + "\n".join(rows) + "\n")
    with pytest.raises(BagFileError, match=rf"t\.csv:{n + 1}: column 'u': "):
        read(tmp_path / "t.csv", allow_nan=True)


def test_the_quick_way_leaves_out_bags_too(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("bagwise.io._csv.blocks_of_lines", None)
    n = 40_000
    labels = ["" if i % 3 == 0 else str(i % 2) for i in range(n // 4)]
    rows = [f"b{i // 4},{labels[i // 4]},{i}.5,{i}.25" for i in range(n)]
    (tmp_path / "t.csv").write_text("bag,y,u,v\n" + "\n".join(rows) + "\n")
    bags = read(tmp_path / "t.csv", on_missing_label="drop")
    kept = [i for i, label in enumerate(labels) if label]
    assert bags.bag_names.tolist() == [f"b{i}" for i in kept]
    assert bags.labels.tolist() == [int(labels[i]) for i in kept]
    assert bags.instances[:, 0].tolist() == [4 * i + k + 0.5 for i in kept for k in range(4)]


def test_svmlight(tmp_path):
    (tmp_path / "t.svm").write_text("1 qid:a 1:2 3:nan\n0 qid:b 2:1\n")
    with pytest.raises(BagFileError, match=r"t\.svm:1: .*'3:nan'.*allow_nan=True"):
        read(tmp_path / "t.svm")
    bags = read(tmp_path / "t.svm", allow_nan=True)
    np.testing.assert_array_equal(bags.instances.toarray(), [[2, 0, NAN], [0, 1, 0]])


def test_archives_and_matlab(tmp_path):
    X, y = np.array([[1.0], [NAN], [3.0]]), np.array([1.0, NAN, 0.0])
    np.savez(tmp_path / "t.npz", X=X, offsets=[0, 1, 2, 3], y=y)
    scipy_io.savemat(tmp_path / "t.mat", {"x": X, "bag_ids": [[1], [2], [3]]})
    for name in ("t.npz", "t.mat"):
        with pytest.raises(BagFileError, match="allow_nan=True"):
            read(tmp_path / name)
        np.testing.assert_array_equal(read(tmp_path / name, allow_nan=True).instances, X)
    bags = read(tmp_path / "t.npz", on_missing_label="drop", allow_nan=True)
    assert bags.instances.tolist() == [[1], [3]]
    assert bags.labels.tolist() == [1, 0]


# ------------------------------------------------------------------------------ labels in tables


@pytest.mark.parametrize("first", ["", "p"])
def test_a_label_on_some_rows_of_a_bag_is_refused(tmp_path, first):
    second = "p" if first == "" else ""
    (tmp_path / "t.csv").write_text(f"bag,y,x\na,{first},1\nb,n,2\na,{second},3\n")
    line = 2 if first == "" else 4
    with pytest.raises(BagFileError, match=rf"t\.csv:{line}: .*other rows of bag 'a' have one"):
        read(tmp_path / "t.csv", on_missing_label="drop")


def test_label_columns(tmp_path):
    (tmp_path / "t.csv").write_text("bag,p,q,x\na,1,0,1\nb,1,,2\nc,0,1,3\n")
    with pytest.raises(BagFileError, match=r"t\.csv:3: column 'q': the label is missing"):
        read(tmp_path / "t.csv", label=["p", "q"])
    bags = read(tmp_path / "t.csv", label=["p", "q"], on_missing_label="drop")
    assert bags.labels.tolist() == [[1, 0], [0, 1]]


def test_an_empty_list_is_no_missing_label_unless_dropped(tmp_path):
    (tmp_path / "t.csv").write_text("bag,y,x\na,p;q,1\nb,,2\n")
    assert read(tmp_path / "t.csv").labels.tolist() == [[1, 1], [0, 0]]
    assert read(tmp_path / "t.csv", on_missing_label="drop").labels.tolist() == [[1, 1]]


def test_nothing_is_left(tmp_path):
    (tmp_path / "t.csv").write_text("bag,y,x\na,,1\nb,,2\n")
    with pytest.raises(BagFileError, match="there is no row of data"):
        read(tmp_path / "t.csv", on_missing_label="drop")


def test_wrong_words(tmp_path):
    path = write_csv(tmp_path)
    with pytest.raises(ValueError, match="on_missing_label must be 'error' or 'drop'"):
        read(path, on_missing_label="skip")


# --------------------------------------------------------------------------------------- folders


def test_files_without_a_row_are_told(tmp_path):
    path = write_folder(tmp_path)
    np.save(path / "e.npy", [[1.0, 2.0]])
    found = inspect(path, **DROP).guessed["left out"]
    assert found == "a file without a row in labels.csv (e.npy)"
    for i in range(4):
        np.save(path / f"f{i}.npy", [[1.0, 2.0]])
    found = inspect(path, **DROP).guessed["left out"]
    assert found == "5 files without a row in labels.csv (e.npy, f0.npy, f1.npy, ...)"


# ------------------------------------------------------------- words for a label that is missing

WORDS = ["NA", "na", "N/A", "nan", "NaN", "?", "null", "NULL", "None", "none"]


def labelled(path, cells, separator=","):
    rows = [separator.join([f"b{i}", cell, str(i)]) for i, cell in enumerate(cells)]
    path.write_text("\n".join([separator.join(["bag", "y", "x"]), *rows]) + "\n")
    return path


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("others", [("0", "1"), ("p", "n"), ("p;q", "n")])
def test_words_for_a_missing_label(tmp_path, word, others):
    path = labelled(tmp_path / "t.csv", [others[0], word, others[1], others[0]])
    with pytest.raises(BagFileError) as caught:
        read(path)
    message = str(caught.value)
    assert f"t.csv:3: the label is missing. Bag 'b1' has {word!r}. " in message
    assert "on_missing_label='drop'" in message
    assert f"If {word!r} is a label, pass missing_words=False." in message
    kept = read(path, on_missing_label="drop")
    assert kept.bag_names.tolist() == ["b0", "b2", "b3"]
    assert word not in map(str, kept.labels.ravel().tolist())
    if others[0] != "p;q":
        as_label = read(path, missing_words=False)
        assert as_label.labels.tolist() == [others[0], word, others[1], others[0]]


def test_words_inside_a_list_of_labels_are_labels(tmp_path):
    path = labelled(tmp_path / "t.csv", ["Ann;None", "Bob", ""])
    assert read(path).label_names.tolist() == ["Ann", "Bob", "None"]


def test_a_word_is_found_behind_an_empty_list(tmp_path):
    path = labelled(tmp_path / "t.csv", ["Ann;Bob", "", "NA"])
    with pytest.raises(BagFileError, match=r"t\.csv:4: the label is missing\. Bag 'b2' has 'NA'"):
        read(path)


def test_words_in_columns_of_labels(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("bag,p,q,x\na,1,0,0.5\nb,0,NA,1.5\n")
    with pytest.raises(BagFileError, match=r"t\.csv:3: column 'q': the label is missing.*'NA'"):
        read(path, label=["p", "q"])
    assert read(path, label=["p", "q"], on_missing_label="drop").labels.tolist() == [[1, 0]]


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
def test_words_in_large_tables(tmp_path, monkeypatch, separator):
    pytest.importorskip("pyarrow")
    cells = ["NA" if i % 5000 == 7 else "01"[i % 2] for i in range(40_000)]
    path = labelled(tmp_path / "t.csv", cells, separator)
    monkeypatch.setattr("bagwise.io._csv.blocks_of_lines", None)  # only the quick way is left
    with pytest.raises(BagFileError, match=r"t\.csv:9: .* Bag 'b7' has 'NA'"):
        read(path)
    kept = read(path, on_missing_label="drop")
    assert len(kept) == 40_000 - 8
    assert set(kept.labels.tolist()) == {0, 1}


def test_words_in_a_label_table(tmp_path):
    path = write_folder(tmp_path)
    (path / "labels.csv").write_text("bag,y\na,p\nb,NA\nc,n\nd,?\n")
    match = r"labels\.csv:3: the label is missing\. Bag 'b' has 'NA'\. .*missing_words=False"
    with pytest.raises(BagFileError, match=match):
        read(path, allow_nan=True)
    assert read(path, **DROP).bag_names.tolist() == ["a", "c"]
    words = read(path, allow_nan=True, missing_words=False)
    assert words.labels.tolist() == ["p", "NA", "n", "?"]


def test_words_in_svmlight(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 qid:a 1:0.5\nnan qid:b 1:1.5\n0 qid:c 1:2.5\n")
    with pytest.raises(BagFileError, match=r"t\.svm:2: the label is missing\. Bag 'b' has 'nan'"):
        read(path)
    assert read(path, on_missing_label="drop").labels.tolist() == [1, 0]


@pytest.mark.parametrize("kind", ["parquet", "arff"])
def test_a_class_of_a_typed_file_is_a_class(tmp_path, kind):
    """There a missing label has a sign of its own, and the classes are declared or strings."""
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        pq = pytest.importorskip("pyarrow.parquet")
        table = {"bag": ["a", "b"], "y": ["None", "mild"], "x": [1.0, 2.0]}
        pq.write_table(pa.table(table), tmp_path / "t.parquet")
    else:
        head = "@relation t\n@attribute bag string\n@attribute y {None,mild}\n@attribute x numeric"
        (tmp_path / "t.arff").write_text(f"{head}\n@data\na,None,1\nb,mild,2\n")
    assert read(tmp_path / f"t.{kind}").labels.tolist() == ["None", "mild"]
    with pytest.raises(ValueError, match="have no option 'missing_words'"):
        read(tmp_path / f"t.{kind}", missing_words=False)


def test_missing_words_is_a_switch(tmp_path):
    with pytest.raises(ValueError, match=r"missing_words must be True or False\. Got 'NA'"):
        read(labelled(tmp_path / "t.csv", ["a", "b"]), missing_words="NA")
