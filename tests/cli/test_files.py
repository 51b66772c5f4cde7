import csv
import io
import os
from pathlib import Path

import pytest

from bagwise.cli._files import (
    ANNOTATIONS,
    CLUSTERS,
    MODEL,
    PREDICTIONS,
    REPORT,
    check_target,
    csv_text,
    hand_over,
)
from bagwise.cli._output import CommandError, Output


def test_csv_comes_back_as_it_was():
    rows = [["a,b", 'say "hi"', "two\nlines", " x "], ["", "-1", "+", "ü"]]
    text = csv_text(["p", "q", "r", "s"], rows)
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == rows
    assert "\r" not in text


def test_csv_numbers_are_exact():
    value = 0.1 + 0.2
    row = csv_text(["x", "y"], [[value, None]]).splitlines()[1]
    assert float(row.split(",")[0]) == value
    assert row.endswith(",")


@pytest.mark.parametrize(
    "name", ["=1+2", "@SUM(A1)", "+cmd|'/C calc'!A0", "-2+3+cmd|' /C calc'!A0", "\t=1", "-f(x)"]
)
def test_csv_holds_no_formula(name):
    (cell,) = next(csv.reader(io.StringIO(csv_text([name], []), newline="")))
    assert cell == f"'{name}"


@pytest.mark.parametrize("name", ["-", "+", "-1.5", "a=b", "(+)-menthol", "-OH", "+1", "1=2"])
def test_csv_leaves_other_names(name):
    (cell,) = next(csv.reader(io.StringIO(csv_text([name], []), newline="")))
    assert cell == name


def test_nothing_half_written(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        hand_over(Output(), path, "x" * 10**6 + "\ud800", {})
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]
    assert path.read_text() == "before"
    hand_over(Output(), path, "after\n", {})
    assert path.read_bytes() == b"after\n"


def test_writable(tmp_path):
    check_target(tmp_path / "new.csv", CLUSTERS)
    with pytest.raises(CommandError, match="is a folder"):
        check_target(tmp_path, CLUSTERS)
    with pytest.raises(CommandError, match=r"of --report does not exist"):
        check_target(tmp_path / "no" / "a.html", REPORT, option="--report")
    assert not list(tmp_path.iterdir())


def test_special_files_are_refused_before_the_work(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CommandError, match="no regular file"):
        check_target(tmp_path / "pipe", CLUSTERS, overwrite=True)


@pytest.mark.parametrize("kind", [MODEL, REPORT, PREDICTIONS, CLUSTERS, ANNOTATIONS])
@pytest.mark.parametrize(
    "content", ["precious", "bag,label,x\na,1,2\n", "<!doctype html><p>mine", '{"a": 1}', "\n"]
)
def test_what_is_of_no_kind_is_kept(tmp_path, kind, content):
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(CommandError, match=f"exists and is not {kind.name}.*--overwrite"):
        check_target(path, kind)
    check_target(path, kind, overwrite=True)
    path.write_text("")  # nothing to lose, as mktemp makes it
    check_target(path, kind)


def test_inputs_are_kept_under_all_their_names(tmp_path, monkeypatch):
    data = tmp_path / "data.csv"
    data.write_text("bag,cluster\na,1\n")  # a table of ours may be input as well
    (tmp_path / "soft.csv").symlink_to(data)
    os.link(data, tmp_path / "hard.csv")
    monkeypatch.chdir(tmp_path)
    check_target(data, CLUSTERS)
    for name in ("data.csv", "./data.csv", data, "soft.csv", "hard.csv"):
        with pytest.raises(CommandError, match="is read by this command"):
            check_target(Path(name), CLUSTERS, inputs=[Path("data.csv")])
    check_target(data, CLUSTERS, inputs=[Path("data.csv")], overwrite=True)
    check_target(Path("new.csv"), CLUSTERS, inputs=[Path("data.csv"), Path("not there")])


def test_files_of_a_folder_that_is_read_are_inputs(tmp_path):
    (tmp_path / "slides").mkdir()
    table = tmp_path / "slides" / "labels.csv"
    table.write_text("bag,cluster\na,1\n")
    (tmp_path / "link").symlink_to(tmp_path / "slides")
    for name in (table, tmp_path / "slides" / "new.csv", tmp_path / "link" / "new.csv"):
        with pytest.raises(CommandError, match=r"is inside .*slides, which this command reads"):
            check_target(name, CLUSTERS, inputs=[tmp_path / "slides"])
        check_target(name, CLUSTERS, inputs=[tmp_path / "slides"], overwrite=True)
    check_target(tmp_path / "new.csv", CLUSTERS, inputs=[tmp_path / "slides"])


OURS = {
    PREDICTIONS: ["bag,predicted,score\na,1,0.5\nb,0,-1.25\nc,0,0.0\n", "bag,predicted,score\n",
        'bag,predicted,"score x, y",score z\n"a ""b""",z,-1.0,1e-07\n'],
    CLUSTERS: ["bag,cluster\na,0\nb,-1\n", "bag,cluster,key instance\na,1,12\n"],
    ANNOTATIONS: ["bag,instance,name,label,score\na,0,,Ann,0.5\na,1,face,,\n"],
}  # fmt: skip
EDITED = {
    PREDICTIONS: [
        "bag,predicted,score\na,1,0.5\nb,1,-1.25\n",  # an answer was corrected
        "bag,predicted,score\na,1,0.5\nb,0,2.5\n",
        "bag,predicted,score\na,1,0.5,checked\n",
        "bag,predicted,score\na,1,0.50\n",
        "bag,predicted,score\na,1,?\n",
        "bag,predicted,score\n# mine\n",
        "bag,predicted,score\r\na,1,0.5\r\n",
        "bag,predicted,score\na,1,0.5\n\n",
        "bag,predicted,score\na,1,0.5",
        'bag,predicted,score\n"a",1,0.5\n',
    ],
    CLUSTERS: [
        "bag,cluster\na,first\n",
        "bag,cluster\na,\n",
        "bag,cluster,key instance\na,1,1.0\n",
    ],
    ANNOTATIONS: [
        "bag,instance,name,label,score\na,x,,Ann,0.5\n",
        "bag,instance,name,label,score\na,0,,,y\n",
    ],
}


@pytest.mark.parametrize(
    ("kind", "text"), [(k, text) for k, texts in OURS.items() for text in texts]
)
def test_tables_of_one_command_are_replaced_by_it_alone(tmp_path, kind, text):
    path = tmp_path / "t.csv"
    path.write_text(text, newline="")
    check_target(path, kind)
    for other in OURS:
        if other is not kind:
            with pytest.raises(CommandError, match=f"exists and is not {other.name}"):
                check_target(path, other)


@pytest.mark.parametrize(
    ("kind", "text"), [(k, text) for k, texts in EDITED.items() for text in texts]
)
def test_tables_that_were_edited_are_kept(tmp_path, kind, text):
    path = tmp_path / "t.csv"
    path.write_text(text, newline="")
    with pytest.raises(CommandError, match=f"exists and is not {kind.name}"):
        check_target(path, kind)
    check_target(path, kind, overwrite=True)


def test_text_that_is_none_is_kept(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"bag,cluster\n\xff,1\n")
    with pytest.raises(CommandError, match="exists and is not"):
        check_target(path, CLUSTERS)
