"""The argument DATA of every command, and what is said if it cannot be read."""

import gzip
import json

import numpy as np
import pytest

from bagwise import Bags
from bagwise.cli._data import DataRequest, in_options, load_data
from bagwise.cli._output import CommandError, Output
from bagwise.datasets import load_digit_bags
from bagwise.io import READ_OPTIONS

QUIET = Output(quiet=True)


def test_digits(workshop):
    data = load_data(QUIET, DataRequest("digits", settings=("n_bags=12", "target=7")))
    wanted = load_digit_bags(12, target=7)
    np.testing.assert_array_equal(data.bags.instances, wanted.bags.instances)
    np.testing.assert_array_equal(data.y, wanted.y)
    np.testing.assert_array_equal(data.is_key, wanted.instance_y == 7)
    assert data.label_text(data.y[0]) in ("0 (no 7)", "1 (a 7)")
    assert data.render(np.zeros(64), 0).shape == (8, 8)


def test_lists_of_digits(workshop):
    request = DataRequest("digits", settings=("n_bags=5",))
    assert load_data(QUIET, request, lists=True).y.shape == (5, 10)
    request = DataRequest("digits", settings=("n_bags=5", "multilabel=true"))
    assert load_data(QUIET, request).label_list(10) == list("0123456789")


def test_a_name_wins_over_a_file(workshop):
    (workshop / "digits").write_text("bag,y,x\na,1,2\n")
    assert len(load_data(QUIET, DataRequest("digits")).bags) == 200
    data = load_data(QUIET, DataRequest("./digits", settings=("format=csv",)))
    assert len(data.bags) == 1


def test_registry_set(load_set):
    stored = load_set("musk1")
    data = load_data(QUIET, DataRequest("musk1"))
    np.testing.assert_array_equal(data.y, stored["y"])
    assert data.label_text(1) == "1 (musk)"
    assert "Dietterich" in data.description


def test_true_labels_of_instances(load_set):
    """In a set, -1 is not known; in a file, a name that no list has is none of these."""
    stored = load_set("birds_hja")["instance_y"]
    data = load_data(QUIET, DataRequest("birds_hja"))
    columns, known = data.true_columns(data.label_list(13))
    np.testing.assert_array_equal(known, stored >= 0)
    np.testing.assert_array_equal(columns[known], stored[known])


def test_true_labels_in_a_file(workshop):
    (workshop / "a.csv").write_text("bag,y,instance_label,x\na,A;B,B,5\na,A;B,Z,6\nb,A,A,6\n")
    data = load_data(QUIET, DataRequest("a.csv"))
    columns, known = data.true_columns(["A", "B"])
    assert columns.tolist() == [1, -1, 0]
    assert known.all()
    assert data.true_columns(["C", "D"]) is None
    (workshop / "b.csv").write_text("bag,y,instance_label,x\na,A;B,0,5\na,A;B,1,6\n")
    assert load_data(QUIET, DataRequest("b.csv")).true_columns(["A", "B"]) is None


def test_columns_and_guesses(workshop, bagwise):
    code, out, _ = bagwise("inspect photos.csv --json")
    guessed = json.loads(out)["guessed"]
    assert code == 0
    assert guessed["bag"] == "column 'bag'"
    assert guessed["label"] == "column 'labels'"
    _, _, err = bagwise("fit photos.csv -m SIL -o p.model")
    line = err.splitlines()[0]
    assert line.startswith("Guessed for photos.csv: bag is column 'bag'; label is column 'labels'")
    _, _, err = bagwise("fit photos.csv -m SIL -o p.model --quiet")
    assert err == ""


def test_label_columns_and_positions(workshop):
    (workshop / "a.csv").write_text("bag,r,g,x\na,1,0,5\nb,1,1,6\n")
    data = load_data(QUIET, DataRequest("a.csv", label=("r", "g")))
    assert data.y.tolist() == [[1, 0], [1, 1]]
    (workshop / "b.csv").write_text("a,1,5\nb,0,6\n")
    data = load_data(QUIET, DataRequest("b.csv", "0", ("1",), ("header=false",)))
    assert data.bag_names == ["a", "b"]
    assert data.y.tolist() == [1, 0]
    (workshop / "c.csv").write_text("bag\ty\tp\tq\na\t1\t5\t6\n")
    request = DataRequest("c.csv", settings=(r"separator=\t", "features=q"))
    assert load_data(QUIET, request).bags[0].tolist() == [[6.0]]


def test_bags_without_names(workshop, bagwise):
    Bags(np.arange(3.0)[:, None], [0, 1, 3], labels=["a", "b"]).write("n.bags")
    assert bagwise("fit n.bags -m SIL --positive b -o n.model")[0] == 0
    _, out, _ = bagwise("predict n.model n.bags")
    assert [line.split(",")[0] for line in out.splitlines()] == ["bag", "0", "1"]


def test_true_keys_of_a_file(workshop):
    (workshop / "a.csv").write_text("bag,y,instance_label,x\na,1,1,5\na,1,0,6\nb,0,0,6\n")
    assert load_data(QUIET, DataRequest("a.csv")).is_key.tolist() == [True, False, False]
    assert load_data(QUIET, DataRequest("photos.csv")).is_key is None


@pytest.mark.parametrize(
    ("text", "options", "line"),
    [
        (
            "y,x\n1,2\n",
            "",
            "t.csv:1: no column tells which bag a row belongs to. Name it with --bag",
        ),
        ("bag,y,x\na,1,2\n", "--bag molecule", "t.csv:1: there is no column 'molecule' (--bag)."),
        ("bag,y,x\na,1,2\n", "--label active", "t.csv:1: there is no column 'active' (--label)."),
        ("bag,y,x\na,1,2\nb,0\n", "", "t.csv:3: 3 columns are needed"),
        ("bag,y,x\na,1,2\nb,0,abc\n", "", "t.csv:3: column 'x': 'abc' is not a number."),
        (
            "bag,y,x\na,1,2\na,0,3\n",
            "",
            "t.csv:3: labels must not differ inside a bag: bag 'a' has",
        ),
        ("", "", "t.csv: the file is empty."),
        ("bag,y,x\n", "", "t.csv: there is no row of data."),
    ],
)
def test_bad_table(workshop, refused, bagwise, text, options, line):
    (workshop / "t.csv").write_text(text)
    assert refused(f"fit t.csv -m SIL -o m.model {options}").startswith(f"bagwise: {line}")
    assert line in refused(f"pack t.csv t.bags {options}")
    assert not (workshop / "t.bags").exists()
    code, out, _ = bagwise(f"inspect t.csv {options} --json")
    error = json.loads(out)["error"]
    assert code == 2
    assert error["code"] == "data"
    assert error["where"] == line[: line.index(": ")]


def test_text_column_gets_a_hint(workshop, refused):
    (workshop / "t.csv").write_text("bag,y,name,x\na,1,one,2\n")
    assert "--read instance_name=COLUMN" in refused("inspect t.csv")


def test_rows_out_of_order_are_fine(workshop, bagwise):
    (workshop / "t.csv").write_text("bag,y,x\na,1,1\nb,0,2\na,1,3\nc,0,4\nb,0,5\n")
    code, out, _ = bagwise("inspect t.csv --json")
    assert code == 0
    assert json.loads(out)["bags"] == 3
    assert bagwise("pack t.csv t.bags")[0] == 0
    assert [bag.tolist() for bag in Bags.open("t.bags")] == [[[1], [3]], [[2], [5]], [[4]]]


def test_truncated_gzip(workshop, refused):
    whole = gzip.compress((workshop / "molecules.csv").read_bytes())
    (workshop / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    line = refused("inspect t.csv.gz --bag molecule --label active")
    assert line.startswith("bagwise: t.csv.gz: the gzip data are damaged or cut off")


def test_wrong_checksum(workshop, refused, monkeypatch):
    (workshop / "musk1.npz").write_bytes(b"not the set")
    monkeypatch.setenv("BAGWISE_DATA", str(workshop))
    for line in ("fit musk1 -m SIL -o m.model", "datasets fetch musk1", "inspect musk1"):
        assert "musk1.npz is not the musk1.npz of the registry: its SHA-256 is" in refused(line)


@pytest.mark.parametrize(
    ("data", "part"),
    [
        ("no.csv", "no.csv is neither a file nor a data set. bagwise datasets list"),
        ("musk12", "musk12 is neither a file nor a data set. Did you mean musk"),
        ("digit", "Did you mean digits?"),
        ("digits --bag x", "digits is a data set and has no columns to choose with --bag"),
        ("digits --label x", "no columns to choose with --label"),
        ("digits --read imags=all", "no option 'imags' for the digits. Did you mean images?"),
        ("digits --read images=some", "images must be 'all', 'train' or 'test'. Got 'some'."),
        ("musk1 --read x=1", "there is no option 'x' for musk1. There are none."),
        ("photos.csv --read headr=false", "'headr' for the reader. Did you mean header?"),
        ("photos.csv --read key=x", "Files of format csv have no option 'key'"),
        ("photos.csv --bag bag --read bag=bag", "bag is given by --bag and by --read"),
        ("photos.csv --read format=cvs", "format must be one of"),
        ("photos.csv --read max_bytes=x", "bagwise: "),
        ("photos.csv --read features=[[1]]", "bagwise: "),
    ],
)
def test_bad_request(workshop, refused, data, part):
    assert part in refused(f"inspect {data}")


def test_missing_package(workshop, refused, monkeypatch):
    def lose(name, *rest):
        raise ImportError("reading Parquet needs pyarrow: pip install 'bagwise[frames]'")

    monkeypatch.setattr("bagwise.io._open.find_format", lose)
    assert "pip install 'bagwise[frames]'" in refused("inspect photos.csv")


def test_set_that_cannot_be_had(workshop, refused, monkeypatch):
    import socket

    def refuse(*arguments, **options):
        raise OSError("no network in tests")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr("bagwise.datasets._fetch._download", refuse)
    assert "no network in tests" in refused("inspect musk1")


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("pass label=.", "pass --label."),
        ("no column 'x' (bag=). More", "no column 'x' (--bag). More"),
        ("or none with label=False.", "or none with --read label=False."),
        ("pass zero_based=True.", "pass --read zero_based=True."),
        ("several tables: pass label_table=.", "several tables: pass --read label_table=VALUE."),
        ("a/bag=3/x.csv:2: what", "a/bag=3/x.csv:2: what"),
    ],
)
def test_messages_speak_of_options(python, command):
    assert in_options(python) == command


def test_no_label_at_all(workshop):
    data = load_data(QUIET, DataRequest("molecules.csv", "molecule"))
    assert "no labels" in data.summary()
    with pytest.raises(CommandError, match="has no labels, and it is needed"):
        data.need_labels("it is needed")


@pytest.mark.parametrize("name", READ_OPTIONS)
def test_messages_name_every_option_of_the_reader(name):
    assert in_options(f"pass {name}=7.").startswith("pass --")
