"""Files that commands write: checked before the work, complete or not there at all.

One rule holds for all of them. A model, a report or a table of results may replace one of its own
kind, which a command has made before. Whatever else is there is the user's, and so is all that the
command reads: it is replaced with ``--overwrite`` alone. Stores hold data, and need it always.
"""

import csv
import io
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
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
    """

    name: str
    beginning: bytes

    def fits(self, path: Path) -> bool:
        """Tell whether a file is of this kind; an empty one is of every kind."""
        with path.open("rb") as file:
            start = file.read(_SEEN_BYTES)
        return not start or re.match(self.beginning, start, re.DOTALL) is not None


MODEL = Kind("a model", rb'.{8}\{"__metadata__":\{"bagwise":')
REPORT = Kind("a report of bagwise", rb'<!doctype html>.*<meta name="generator" content="bagwise ')
TABLE = Kind(
    "a table that bagwise wrote",
    rb'bag,predicted,"?score[ \n]|bag,cluster(,key instance)?\n|bag,instance,name,label,score\n',
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
    if overwrite or not path.exists():
        return
    way_out = "Choose another name, or replace it with --overwrite."
    for source in inputs:
        if _is_part(path, source):
            where = "read by this command" if path.samefile(source) else f"a file of {source}"
            msg = f"{option} {path} is {where}. {way_out}"
            raise CommandError(msg, code="output", where=str(path))
    if not kind.fits(path):
        msg = f"{option} {path} exists and is not {kind.name}. {way_out}"
        raise CommandError(msg, code="output", where=str(path))


def check_store_target(path: Path, *, overwrite: bool) -> None:
    """Find out before the work that a store cannot be made, or would replace another.

    Parameters
    ----------
    path : Path
        The folder to be.
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


def _is_part(path: Path, source: Path) -> bool:
    """Tell whether a file that exists is the source, under whatever name, or lies inside it."""
    if not source.exists():
        return False
    return path.samefile(source) or (
        source.is_dir() and path.resolve().is_relative_to(source.resolve())
    )


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
