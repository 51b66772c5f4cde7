"""Files that commands write: checked before the work, complete or not there at all.

One rule holds for all of them. A model, a report or a table of results may replace one of its own
kind, which the same command has made before. Whatever else is there is the user's, and so are all
files and folders that the command reads: they are changed with ``--overwrite`` alone. Stores hold
data, and need it always.

A table has no room for a seal. It is taken for one of ours if every line is as the command writes
it: an edit that leaves it so is not noticed.
"""

import csv
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bagwise._files import write_file
from bagwise.cli._output import CommandError, Output

_SEEN_BYTES = 4096


@dataclass(frozen=True)
class Kind:
    """A kind of file that commands write.

    Parameters
    ----------
    name : str
        What it is called in messages.
    beginning : bytes
        Regular expression for its first bytes.
    holds : callable, optional
        Tells of the rows of a table, the first of which is its head, whether they can be ours.
    """

    name: str
    beginning: bytes
    holds: Callable[[list[list[str]]], bool] | None = None

    def fits(self, path: Path) -> bool:
        """Tell whether a file is of this kind; an empty one is of every kind."""
        with path.open("rb") as file:
            start = file.read(_SEEN_BYTES)
        if start and re.match(self.beginning, start, re.DOTALL) is None:
            return False
        return not start or self.holds is None or self._has_rows(path)

    def _has_rows(self, path: Path) -> bool:
        assert self.holds is not None
        try:
            text = path.read_bytes().decode()
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        except (UnicodeError, csv.Error):
            return False
        head, *rest = rows
        whole = all(len(row) == len(head) for row in rest) and csv_text(head, rest) == text
        return whole and self.holds(rows)


def _are_predictions(rows: list[list[str]]) -> bool:
    """Tell whether scores are numbers; of two classes, also whether labels follow their signs."""
    head, *rest = rows
    if not all(_is_number(cell) for row in rest for cell in row[2:]):
        return False
    if head[2:] != ["score"]:
        return True
    sides = [{row[1] for row in rest if side * float(row[2]) > 0} for side in (-1.0, 1.0)]
    return all(len(labels) <= 1 for labels in sides) and not sides[0] & sides[1]


def _are_clusters(rows: list[list[str]]) -> bool:
    return all(_is_count(cell) for row in rows[1:] for cell in row[1:])


def _are_annotations(rows: list[list[str]]) -> bool:
    return all(_is_count(row[1]) and (not row[4] or _is_number(row[4])) for row in rows[1:])


def _is_number(cell: str) -> bool:
    """Tell whether a cell is a number as `csv_text` writes it."""
    try:
        return repr(float(cell)) == cell
    except ValueError:
        return False


def _is_count(cell: str) -> bool:
    return re.fullmatch("0|-?[1-9][0-9]*", cell) is not None


MODEL = Kind("a model", rb'.{8}\{"__metadata__":\{"bagwise":')
REPORT = Kind("a report of bagwise", rb'<!doctype html>.*<meta name="generator" content="bagwise ')
PREDICTIONS = Kind(
    "a table as 'bagwise predict' writes it", rb'bag,predicted,"?score[ \n]', _are_predictions
)
CLUSTERS = Kind(
    "a table as 'bagwise cluster' writes it", rb"bag,cluster(,key instance)?\n", _are_clusters
)
ANNOTATIONS = Kind(
    "a table as 'bagwise annotate' writes it",
    rb"bag,instance,name,label,score\n",
    _are_annotations,
)


def check_target(
    path: Path,
    kind: Kind,
    *,
    inputs: Iterable[Path] = (),
    overwrite: bool = False,
    option: str = "--output",
) -> None:
    """Find out before the work that a file cannot be written, or would replace the user's own.

    Parameters
    ----------
    path : Path
        The file to be.
    kind : Kind
        What will be in it.
    inputs : iterable of Path
        Files and folders that the command reads.
    overwrite : bool
        Whether any file that is there may be replaced.
    option : str
        What the user named it with.
    """
    _check_writable(path, option)
    if overwrite:
        return
    way_out = "Choose another name, or replace it with --overwrite."
    for source in filter(Path.exists, inputs):
        if path.exists() and path.samefile(source):
            msg = f"{option} {path} is read by this command. {way_out}"
            raise CommandError(msg, code="output", where=str(path))
        _check_outside(path, source, option)
    if path.exists() and not kind.fits(path):
        msg = f"{option} {path} exists and is not {kind.name}. {way_out}"
        raise CommandError(msg, code="output", where=str(path))


def check_store_target(path: Path, *, inputs: Iterable[Path] = (), overwrite: bool) -> None:
    """Find out before the work that a store cannot be made, or would replace another.

    Parameters
    ----------
    path : Path
        The folder to be.
    inputs : iterable of Path
        Files and folders that the command reads.
    overwrite : bool
        Whether a store that is there may be replaced.
    """
    if os.path.lexists(path) and not path.is_dir():
        msg = f"{path} is a file, and a store is a folder. Choose another name."
        raise CommandError(msg, code="output", where=str(path))
    if path.is_dir() and not overwrite:
        msg = f"{path} exists. Choose another name, or replace it with --overwrite."
        raise CommandError(msg, code="output", where=str(path))
    if not path.is_dir():
        _check_writable(path, "TARGET")
    if not overwrite:
        for source in inputs:
            _check_outside(path, source, "TARGET")


def _check_outside(path: Path, source: Path, option: str) -> None:
    """Refuse to write into a folder that is read."""
    if source.is_dir() and path.resolve().is_relative_to(source.resolve()):
        msg = (
            f"{option} {path} is inside {source}, which this command reads. Choose another "
            "folder, or write it there with --overwrite."
        )
        raise CommandError(msg, code="output", where=str(path))


def _check_writable(path: Path, option: str) -> None:
    folder = path.parent
    if path.is_dir():
        msg = f"{option} {path} is a folder; name a file."
        raise CommandError(msg, code="output", where=str(path))
    if path.exists() and not path.is_file():
        msg = f"{option} {path} is no regular file; name another."
        raise CommandError(msg, code="output", where=str(path))
    if not folder.is_dir():
        msg = f"the folder {folder} of {option} does not exist."
        raise CommandError(msg, code="output", where=str(path))
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        msg = f"the folder {folder} of {option} cannot be written to: {error.strerror}."
        raise CommandError(msg, code="output", where=str(path)) from error


def hand_over(output: Output, target: Path | None, table: str, data: Mapping[str, Any]) -> None:
    """Write a table to its file, or print it; with ``--json`` print the object that says it.

    Parameters
    ----------
    output : Output
        Where the command writes.
    target : Path or None
        The file, if the user named one.
    table : str
        The result as CSV.
    data : mapping
        The result as JSON; the name of the file is added to it.
    """
    if target is not None:
        write_file(target, table.encode())
        output.note(f"Wrote {target}")
    if target is None or output.as_json:
        output.result(table, {**data, "output": None if target is None else str(target)})


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV, quoted as RFC 4180 says, that a spreadsheet takes for plain values.

    Lines end in a line feed alone, which spreadsheets read as well and other tools need.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(_cell, head))
    writer.writerows(map(_cell, row) for row in rows)
    return stream.getvalue()


def _cell(value: Any) -> Any:
    """Return a cell: numbers in full, and no text that a spreadsheet would run as a formula."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    text = str(value)
    begins = text[:1] in ("=", "@", "\t", "\r")
    calls = text[:1] in ("+", "-") and any(mark in text for mark in "(|!")
    return f"'{text}" if begins or calls else text
