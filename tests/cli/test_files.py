import csv
import io

import pytest

from bagwise.cli._files import check_writable, csv_text, hand_over
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
    check_writable(tmp_path / "new.csv")
    with pytest.raises(CommandError, match="is a folder"):
        check_writable(tmp_path)
    with pytest.raises(CommandError, match=r"of --report does not exist"):
        check_writable(tmp_path / "no" / "a.html", "--report")
    assert not list(tmp_path.iterdir())
