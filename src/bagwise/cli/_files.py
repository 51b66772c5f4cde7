"""Files that commands write: checked before the work, complete or not there at all."""

import csv
import io
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bagwise._files import write_file
from bagwise.cli._output import CommandError, Output


def check_writable(path: Path, option: str = "--output") -> None:
    """Find out before the work, not after it, that a file cannot be written.

    Parameters
    ----------
    path : Path
        The file to be.
    option : str
        What the user named it with.
    """
    folder = path.parent
    if path.is_dir():
        msg = f"{option} {path} is a folder; name a file."
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
