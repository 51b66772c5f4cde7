"""Text tables: guesses, the two ways through a file, and errors that name line and column."""

import sys

import numpy as np
import pytest

from bagwise.io import _csv_quick, inspect, read


@pytest.fixture(params=["exact", "quick", "quick, tiny pieces"])
def way(request, monkeypatch):
    """Read by the standard library, or by pyarrow even if the file is small."""
    if request.param == "exact":
        monkeypatch.setattr(_csv_quick, "_LEAST_BYTES", 10**9)
        return
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(_csv_quick, "_LEAST_BYTES", 0)
    if "tiny" in request.param:
        monkeypatch.setattr(_csv_quick, "_PIECE_BYTES", 1)


@pytest.fixture
def table(tmp_path, way):
    def make(text, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def test_values_names_and_labels(table):
    bags = read(table("bag,y,u,v\na,1,0.5,1e3\na,1,-2,3.\nb,0,.5,+4\n"))
    assert bags.instances.tolist() == [[0.5, 1000], [-2, 3], [0.5, 4]]
    assert bags.bag_names.tolist() == ["a", "b"]
    assert bags.labels.tolist() == [1, 0]
    assert bags.feature_names.tolist() == ["u", "v"]


def test_rows_of_a_bag_in_any_order(table):
    bags = read(table("bag,y,x\nb,0,1\na,1,2\nb,0,3\na,1,4\n"))
    assert bags.bag_names.tolist() == ["b", "a"]
    assert bags.instances.ravel().tolist() == [1, 3, 2, 4]
    assert bags.labels.tolist() == [0, 1]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_separator_is_found(table, separator):
    bags = read(table("bag,y,x\na,1,2\n".replace(",", separator)))
    assert bags.instances.tolist() == [[2.0]]


def test_separator_inside_quotes_does_not_count(table):
    assert read(table('bag;"a,b,c,d";y\nq;1;0\n')).feature_names.tolist() == ["a,b,c,d"]


@pytest.mark.parametrize("bag", ["bag", "Bag", "bag_id", "BAG-ID", "bag name"])
@pytest.mark.parametrize("label", ["y", "label", "Labels", "class"])
def test_usual_names_are_found(table, bag, label):
    bags = read(table(f"x,{bag},{label}\n1,q,5\n"))
    assert (bags.bag_names.tolist(), bags.labels.tolist()) == (["q"], [5])


def test_columns_can_be_named(table):
    text = "mol,act,conf,truth,u,v\nm1,1,c1,0,1,2\nm1,1,c2,1,3,4\n"
    bags = read(
        table(text), bag="mol", label="act", instance_name="conf", instance_label="truth",
        features=["v"],
    )  # fmt: skip
    assert bags.instances.ravel().tolist() == [2, 4]
    assert bags.instance_names.tolist() == ["c1", "c2"]
    assert bags.instance_labels.tolist() == [0, 1]
    assert bags.labels.tolist() == [1]


def test_columns_without_header(table):
    bags = read(table("7,1,0.5\n7,1,1.5\n8,0,2.5\n"), header=False, bag=0, label=1)
    assert bags.bag_names.tolist() == ["7", "8"]
    assert bags.labels.tolist() == [1, 0]
    assert bags.instances.ravel().tolist() == [0.5, 1.5, 2.5]
    assert bags.feature_names is None


def test_no_label(table):
    path = table("bag,label,x\na,1,2\na,3,4\n")
    assert read(path, label=False).n_features == 2
    path = table("bag,x\na,1\n")
    assert read(path).labels is None
    assert inspect(path).guessed["label"] == "none"


def test_list_of_labels(table):
    bags = read(table("bag,labels,x\na,cat;dog,1\nb,,2\nc,cat,3\n"))
    assert bags.label_names.tolist() == ["cat", "dog"]
    assert bags.labels.tolist() == [[1, 1], [0, 0], [1, 0]]


def test_list_of_labels_with_other_separator(table):
    path = table("bag,labels,x\na,2 10,1\nb,10,2\n")
    bags = read(path, label_separator=" ")
    assert bags.label_names.tolist() == ["2", "10"]
    assert bags.labels.tolist() == [[1, 1], [0, 1]]
    assert read(path).labels.tolist() == ["2 10", "10"]


def test_lists_can_be_refused(table):
    assert read(table("bag,y,x\na,u;v,1\n"), label_separator=False).labels.tolist() == ["u;v"]


def test_label_columns(table):
    bags = read(table("bag,cat,dog,x\na,1,0,5\na,1,0,6\nb,0,1,7\n"), label=["dog", "cat"])
    assert bags.label_names.tolist() == ["dog", "cat"]
    assert bags.labels.tolist() == [[0, 1], [1, 0]]
    assert bags.feature_names.tolist() == ["x"]


@pytest.mark.parametrize(
    ("cells", "values", "kind"),
    [
        (["1", "-1"], [1, -1], "i"),
        (["1.5", "2"], [1.5, 2.0], "f"),
        (["True", "False"], [True, False], "b"),
        (["yes", "1"], ["yes", "1"], "U"),
        (["007", "1"], ["007", "1"], "U"),
        (["007.5", "1"], ["007.5", "1"], "U"),
        (["nan", "1"], ["nan", "1"], "U"),
        (["9" * 30, "1"], [float("9" * 30), 1.0], "f"),
    ],
)
def test_types_of_labels(table, cells, values, kind):
    path = table(f"bag,y,x\na,{cells[0]},0\nb,{cells[1]},0\n")
    labels = read(path, missing_words=False).labels
    assert labels.tolist() == values
    assert labels.dtype.kind == kind


def test_column_without_a_name_is_left_out(table):
    path = table(",bag,x\n0,a,5\n1,a,6\n")
    assert read(path).instances.ravel().tolist() == [5, 6]
    assert "column 1" in inspect(path).guessed["left out"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_empty_lines(table, end):
    bags = read(table(end.join(["", "bag,x", "a,1", "", "b,2", ""])))
    assert bags.instances.ravel().tolist() == [1, 2]


def test_quotes(table):
    text = '"bag","x","y"\n"a ""1"", still","1.5","p"\n"two\nlines",2,"q"\n'
    bags = read(table(text))
    assert bags.bag_names.tolist() == ['a "1", still', "two\nlines"]
    assert bags.instances.ravel().tolist() == [1.5, 2]


def test_byte_order_mark_and_spaces(table):
    bags = read(table(b"\xef\xbb\xbfbag , x\n a , 1 \na,2\n"))
    assert bags.bag_names.tolist() == ["a"]
    assert bags.instances.ravel().tolist() == [1, 2]
    bags = read(table(b"\xef\xbb\xbfa,1\na,2\n"), header=False, bag=0)
    assert bags.bag_names.tolist() == ["a"]


def test_other_encoding(table):
    path = table("bag,x\nGrün,1\n".encode("latin-1"))
    assert read(path, encoding="latin-1").bag_names.tolist() == ["Grün"]


def test_numbers_are_rounded_as_python_does(table):
    numbers = np.random.default_rng(0).normal(size=500) * 10.0 ** np.arange(-250, 250)
    text = "bag,x\n" + "".join(f"a,{number!r}\n" for number in numbers.tolist())
    assert read(table(text)).instances.ravel().tolist() == numbers.tolist()


# ----------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "t.csv:", "the file is empty"),
        ("\n\n", "t.csv:", "the file is empty"),
        ("bag,x\n", "t.csv:", "there is no row of data"),
        ("bag,x\na,1\nb,oops\n", "t.csv:3:", "column 'x': 'oops' is not a number"),
        ("bag,x\na,1\n\n\nb,\n", "t.csv:5:", "column 'x': the value is missing"),
        ("bag,x\na,nan\n", "t.csv:2:", "column 'x': the value is missing ('nan')"),
        ("bag,x\na,?\n", "t.csv:2:", "the value is missing ('?')"),
        ("bag,x\na,-inf\n", "t.csv:2:", "'-inf' is not finite"),
        ("bag,x\na,1e999\n", "t.csv:2:", "'1e999' is not a number"),
        ("bag,x\na,1_000\n", "t.csv:2:", "'1_000' is not a number"),
        ("bag,x\na,١\n", "t.csv:2:", "is not a number"),
        ("bag,x\na,0x10\n", "t.csv:2:", "'0x10' is not a number"),
        ("bag,x,z\na,1,2\na,1\n", "t.csv:3:", "3 columns are needed, as in the lines before"),
        ("bag,x\na,1,2\n", "t.csv:2:", "2 columns are needed, as in the lines before. Got 3"),
        ("bag,x\na,1\n,2\n", "t.csv:3:", "column 'bag': the bag is missing"),
        ("bag,y,x\na,1,0\nb,,0\n", "t.csv:3:", "the label is missing"),
        ("bag,instance_y,x\na,,0\n", "t.csv:2:", "the label of the instance is missing"),
        ("bag,x,x\na,1,2\n", "t.csv:1:", "'x' occurs twice"),
        ("bag,bag_id,x\na,b,2\n", "t.csv:1:", "both 'bag' and 'bag_id' may be meant: pass bag="),
        ("bag,y,label,x\na,1,2,3\n", "t.csv:1:", "pass label="),
        ("mol,x\na,1\n", "t.csv:1:", "no column tells which bag a row belongs to"),
        ("bag,y\na,1\n", "t.csv:", "no feature columns are left"),
        ("1,2\n3,4\n", "t.csv:1:", "holds numbers only"),
        ('bag,x\n"a"b,1\n', "t.csv:2:", "expected after"),
        ('bag,x\n"a,1\n', "t.csv:2:", "unexpected end of data"),
        (b"bag,x\na,1\n\xff\xfe,2\n", "t.csv:", "this is not text in utf-8"),
    ],
)  # fmt: skip
def test_errors_name_line_and_column(table, fails, text, where, what):
    message = fails(table(text))
    assert where in message
    assert what in message


def test_labels_that_differ_inside_a_bag(table, fails):
    message = fails(table('bag,y,x\na,1,0\n"b\nb",0,0\n\na,0,0\n'))
    assert "t.csv:6: " in message
    assert "bag 'a' has '0' here and '1' before" in message
    assert "The label was guessed to be column 'y'" in message
    assert "guessed" not in fails(table("bag,y,x\na,1,0\na,0,0\n"), label="y")


def test_missing_columns(table, fails):
    path = table("bag,x\na,1\n")
    assert "t.csv:1: there is no column 'z' (features=)" in fails(path, features=["z"])
    assert "there is no column 'mol' (bag=)" in fails(path, bag="mol")
    assert "there is no column 'y' (label=)" in fails(path, label="y")
    assert "there is no column 7 (label=)" in fails(path, label=7)
    assert "cannot be a feature" in fails(path, bag="bag", features=["bag"])


def test_label_columns_must_be_numbers(table, fails):
    path = table("bag,p,q,x\na,1,no,2\n")
    assert "label columns must hold numbers" in fails(path, label=["p", "q"])
    path = table("bag,p,q,x\na,1,,2\n")
    assert "t.csv:2: column 'q': the label is missing" in fails(path, label=["p", "q"])


def test_list_without_any_label(table, fails):
    assert "no label in any list" in fails(table("bag,y,x\na,;,1\n"))


def test_error_far_into_a_file(table, fails, request):
    n = 3_000 if "tiny" in request.node.name else 30_000
    text = "bag,x\n" + "a,1\n" * n + "b,x\n" + "a,1\n" * 10
    assert f"t.csv:{n + 2}: column 'x': 'x' is not a number" in fails(table(text))


def test_huge_cell(table, fails):
    assert "field larger than field limit" in fails(table("bag,x\n" + "a" * 200_000 + ",1\n"))


def test_numbers_whose_sum_overflows(table):
    path = table("bag,x1,x2\na,1.7e308,1.7e308\n")
    assert read(path).instances.tolist() == [[1.7e308, 1.7e308]]


def test_the_quick_way_is_taken_without_falling_back(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(_csv_quick, "_LEAST_BYTES", 0)
    monkeypatch.setattr("bagwise.io._csv.blocks_of_lines", None)
    path = tmp_path / "t.csv"
    path.write_text('bag,y,instance,x\n"a",1,i,0.5\n"a",1,j,1.5\n')
    assert read(path).instances.ravel().tolist() == [0.5, 1.5]


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setattr(_csv_quick, "_LEAST_BYTES", 0)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    path = tmp_path / "t.csv"
    path.write_text("bag,x\na,0.5\n")
    assert read(path).instances.tolist() == [[0.5]]


@pytest.mark.parametrize("n_header_lines", [0, 1, 3])
def test_pieces_begin_after_the_header(tmp_path, monkeypatch, n_header_lines):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(_csv_quick, "_LEAST_BYTES", 0)
    monkeypatch.setattr("bagwise.io._csv.blocks_of_lines", None)
    path = tmp_path / "t.csv"
    path.write_text("\n" * (n_header_lines - 1) + "bag,x\n" * (n_header_lines > 0) + "a,1\nb,2\n")
    options = {} if n_header_lines else {"header": False, "bag": 0}
    assert read(path, **options).instances.ravel().tolist() == [1, 2]
