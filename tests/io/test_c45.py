"""C4.5 data, with and without a file of names."""

import pytest

from bagwise.io import inspect, read

ROWS = "m1,m1_1,1,2.5,0.\nm1,m1_2,3,4.5,0.\n\nm2,m2_1,-5,6,1. | comment\n"
NAMES = "0,1.\n| a comment\nmol: m1,m2.\nconf: m1_1,m1_2,m2_1.\n"
NAMES += "f\\:1: continuous scale=2.\nf2: continuous.\n"


@pytest.fixture
def data(tmp_path):
    def make(rows, names=None):
        path = tmp_path / "t.data"
        path.write_text(rows)
        if names is not None:
            (tmp_path / "t.names").write_text(names)
        return path

    return make


def test_without_names(data):
    path = data(ROWS)
    bags = read(path)
    assert bags.bag_names.tolist() == ["m1", "m2"]
    assert bags.instance_names.tolist() == ["m1_1", "m1_2", "m2_1"]
    assert bags.instances.tolist() == [[1, 2.5], [3, 4.5], [-5, 6]]
    assert bags.labels.tolist() == [0, 1]
    assert bags.feature_names is None
    assert inspect(path).guessed["columns"] == "without names"


def test_with_names(data):
    bags = read(data(ROWS, NAMES))
    assert bags.feature_names.tolist() == ["f:1", "f2"]
    assert bags.instance_names.tolist() == ["m1_1", "m1_2", "m2_1"]


def test_ignored_attributes(data):
    names = "0,1.\nmol: ignore.\nconf: ignore.\nu: ignore.\nv: continuous.\n"
    bags = read(data(ROWS, names))
    assert bags.feature_names.tolist() == ["v"]
    assert bags.instance_names.tolist() == ["m1_1", "m1_2", "m2_1"]


@pytest.mark.parametrize(
    "names",
    [
        "This is prose about the data.\nIt goes on.\n",
        "0,1.\na: continuous.\n",
        "0,1.\nprose\nmore: prose\nand\nmore\n",
        "0,1.\nx: continuous.\nx: continuous.\ny: continuous.\nz: continuous.\n",
    ],
)
def test_names_that_do_not_fit_are_not_used(data, names):
    assert read(data(ROWS, names)).feature_names is None


def test_bags_without_instance_names(data):
    bags = read(data("m1,1,2,0\nm1,3,4,0\nm2,5,6,1\n"))
    assert bags.instance_names is None
    assert bags.n_features == 2


def test_columns_can_be_chosen(data):
    path = data("1,m1,i1,7,0\n1,m1,i2,8,0\n")
    bags = read(path, bag=1, label=0, instance_name=2, features=[3])
    assert bags.bag_names.tolist() == ["m1"]
    assert bags.labels.tolist() == [1]
    assert bags.instances.ravel().tolist() == [7, 8]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "t.data: the file is empty"),
        ("| nothing\n", "t.data: the file is empty"),
        ("just text\n", "t.data:1: bag, features and class are needed"),
        ("m,i,1,0\nm,i,x,0\n", "t.data:2: column '2': 'x' is not a number"),
        ("m,i,1,0\nm,i,1,2,0\n", "t.data:2: 4 columns are needed"),
        ("m,i,1,0\nm,i,1,1\n", "t.data:2: labels must not differ inside a bag: bag 'm'"),
    ],
)
def test_errors(data, fails, rows, message):
    assert message in fails(data(rows))


def test_nothing_but_ignored(data, fails):
    names = "0,1.\nmol: ignore.\nconf: ignore.\nu: ignore.\nv: ignore.\n"
    assert "no feature columns are left" in fails(data(ROWS, names))


def test_not_text(tmp_path, fails):
    (tmp_path / "t.data").write_bytes(b"m,i,1,0\n\xff\xfe,i,1,0\n")
    assert "this is not text" in fails(tmp_path / "t.data")
