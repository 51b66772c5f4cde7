"""The table beside a folder of bags: a column that names the file, and one with its label."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from bagwise.exceptions import BagFileError
from bagwise.io._csv import find_separator, split_lines
from bagwise.io._labels import is_blank, make_label_table
from bagwise.io._options import Options
from bagwise.io._problems import bad, label_is_missing, shown
from bagwise.io._roles import BAG_NAMES, LABEL_NAMES, Columns, plain
from bagwise.io._rows import Coded
from bagwise.io._streams import Source, find_source, is_inside

#: How the column with the name of a file or bag is usually called, the likeliest first.
FILE_NAMES = (
    *BAG_NAMES, "file", "filename", "file_name", "slide_id", "slide", "image", "image_id",
    "name", "id", "case_id",
)  # fmt: skip


@dataclass(frozen=True)
class LabelFile:
    """What the table says, in its order; bags without a label apart, if they are left out."""

    path: Path
    names: list[str]
    lines: list[int]
    labels: NDArray[Any] | None
    label_names: list[str] | None
    unlabelled: list[str]


def read_label_file(
    path: Path, options: Options, max_bytes: int | None, guessed: dict[str, str]
) -> LabelFile:
    """Read a label table; what had to be guessed is added to ``guessed``."""
    source = find_source(path, max_bytes)
    separator, _ = find_separator(source, options)
    lines = split_lines(source, separator, options)
    number, header = next(lines, (0, []))
    if not header:
        raise bad(path, "the label table is empty.")
    columns = Columns(path, [cell.strip() for cell in header], line=number)
    bag = _find_bag(columns, options, guessed)
    chosen, matrix = _find_labels(columns, options, guessed)
    names: dict[str, int] = {}
    values: list[Any] = []
    for number, cells in lines:
        if len(cells) != len(header):
            msg = f"{len(header)} columns are needed, as in line 1. Got {len(cells)}."
            raise bad(path, msg, line=number)
        name = cells[bag].strip()
        if not is_inside(name):
            msg = f"{shown(name)} does not name a file inside the folder."
            raise bad(path, msg, line=number)
        if name in names:
            msg = f"bag {shown(name)} is there already, in line {names[name]}."
            raise bad(path, msg, line=number)
        names[name] = number
        values.append(tuple(cells[j].strip() for j in chosen))
    if not names:
        raise bad(path, "the label table has no row.")
    lacks = partial(is_blank, words=options.takes_words)
    left_out: list[str] = []
    if options.on_missing_label == "drop":
        left_out = [n for n, cells in zip(names, values, strict=True) if any(map(lacks, cells))]
        if len(left_out) == len(names):
            raise bad(path, "no bag of the label table has a label.")
        values = [cells for cells in values if not any(map(lacks, cells))]
    gone = set(left_out)
    kept = {name: number for name, number in names.items() if name not in gone}
    missing = [
        (cell, label_is_missing(path, name, cell, line=number))
        for (name, number), cells in zip(kept.items(), values, strict=True)
        for cell in filter(lacks, cells)
    ]
    labels, label_names = _understand(source, columns, chosen, matrix, values, options, missing)
    return LabelFile(path, list(kept), list(kept.values()), labels, label_names, left_out)


def _find_bag(columns: Columns, options: Options, guessed: dict[str, str]) -> int:
    if options.bag is not None:
        return columns.position(options.bag, "bag")
    simple = [plain(name) for name in columns.names]
    found = next((name for name in FILE_NAMES if name in simple), None)
    if found is None:
        msg = f"no column names the files. Name it with bag=. The columns are {columns}."
        raise bad(columns.where, msg, line=columns.line)
    guessed["bag"] = f"column {columns.names[simple.index(found)]!r}"
    return simple.index(found)


def _find_labels(
    columns: Columns, options: Options, guessed: dict[str, str]
) -> tuple[list[int], bool]:
    given = options.label
    if given is False:
        return [], False
    if isinstance(given, Sequence) and not isinstance(given, str):
        return [columns.position(column, "label") for column in given], True
    if given is not None:
        return [columns.position(given, "label")], False
    found = columns.guess(LABEL_NAMES, "label")
    if found is None:
        msg = f"no column holds the labels. Name it with label=. The columns are {columns}."
        raise bad(columns.where, msg, line=columns.line)
    guessed["label"] = f"column {columns.names[found]!r}"
    return [found], False


def _understand(
    source: Source,
    columns: Columns,
    chosen: list[int],
    matrix: bool,
    values: list[tuple[str, ...]],
    options: Options,
    missing: list[tuple[str, BagFileError]],
) -> tuple[NDArray[Any] | None, list[str] | None]:
    if not chosen:
        return None, None
    for cell, error in missing:
        if matrix or cell:  # of an empty cell, wait whether it is an empty list
            raise error
    coded = Coded.of(values if matrix else [value[0] for value in values])
    table = make_label_table(
        source.path,
        coded.values,
        text=True,
        separator=options.label_separator,
        columns=[columns.names[j] for j in chosen] if matrix else None,
    )
    if missing and not table.are_lists:
        raise missing[0][1]
    return table.rows[coded.codes], table.names
