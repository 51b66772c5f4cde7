"""Cells of text to rows: numbers checked one by one where anything is unusual."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter

import numpy as np

from bagwise._arrays import Floats
from bagwise.exceptions import BagFileError
from bagwise.io._labels import BLANKS, is_missing_cell, parse_number
from bagwise.io._problems import TAKE_AS_NAN, bad, shown
from bagwise.io._roles import Roles
from bagwise.io._rows import Coded, Rows

Line = tuple[int, list[str]]  # line number, cells

_BLOCK_ROWS = 4096
_BLOCK_CELLS = 2**20


def blocks_of_lines(where: object, lines: Iterable[Line], roles: Roles) -> Iterator[Rows]:
    """Turn split lines into blocks of rows."""
    size = max(1, min(_BLOCK_ROWS, _BLOCK_CELLS // max(1, len(roles.names))))
    remaining = iter(lines)
    while block := list(islice(remaining, size)):
        yield rows_of_lines(where, block, roles)


def unknown_labels(lines: Iterable[Line], roles: Roles) -> Iterator[Line]:
    """Empty the cells of labels that are a question mark, where a format means unknown by it."""
    for number, cells in lines:
        for j in roles.label:
            if j < len(cells) and cells[j] == "?":
                cells[j] = ""
        yield number, cells


def rows_of_lines(where: object, block: Sequence[Line], roles: Roles) -> Rows:
    """Turn split lines into one block of rows."""
    width = len(roles.names)
    for number, cells in block:
        if len(cells) != width:
            msg = f"{width} columns are needed, as in the lines before. Got {len(cells)}."
            raise bad(where, msg, line=number)
    numbers = [number for number, _ in block]
    flat: list[str] = []
    if len(roles.features) == 1:
        flat = [cells[roles.features[0]] for _, cells in block]
    else:
        pick = itemgetter(*roles.features)
        for _, cells in block:
            flat += pick(cells)

    def error_at(position: int) -> BagFileError:
        row, feature = divmod(position, len(roles.features))
        return not_a_number(
            where, flat[position], roles.feature_names[feature], line=numbers[row]
        )  # fmt: skip

    numbers_of = parse_numbers(flat, error_at, allow_nan=roles.allow_nan)
    matrix = numbers_of.reshape(len(block), len(roles.features))

    def text(j: int, what: str) -> list[str]:
        column = [cells[j].strip() for _, cells in block]
        if what and "" in column:
            msg = f"column {roles.names[j]!r}: the {what} is missing."
            raise bad(where, msg, line=numbers[column.index("")])
        return column

    labels: Coded | None = None
    if roles.label_names is not None:
        columns = [text(j, "") for j in roles.label]
        labels = Coded.of(list(zip(*columns, strict=True)))
    elif roles.label:
        labels = Coded.of(text(roles.label[0], ""))
    name, label = roles.instance_name, roles.instance_label
    return Rows(
        matrix,
        Coded.of(text(roles.bag, "bag")),
        labels,
        None if name is None else np.array(text(name, ""), dtype=np.str_),
        None if label is None else Coded.of(text(label, "label of the instance")),
        numbers.__getitem__,
    )


def parse_numbers(
    flat: Sequence[str], error_at: Callable[[int], BagFileError], *, allow_nan: bool
) -> Floats:
    """Return cells as finite numbers; ``error_at`` makes the error for the first that is not.

    Cells that say that a value is missing are NaN, if that is allowed.
    """
    try:
        numbers = np.fromiter(map(float, flat), np.float64, len(flat))
    except ValueError:
        pass
    else:
        # `float` also reads 1_000, nan, and the digits of other scripts.
        text = "".join(flat)
        if np.isfinite(numbers).all() and text.isascii() and "_" not in text:
            return numbers
    numbers = np.empty(len(flat))
    for position, cell in enumerate(flat):
        number = parse_number(cell)
        if number is None and not (allow_nan and is_missing_cell(cell)):
            raise error_at(position)
        numbers[position] = np.nan if number is None else number
    return numbers


def not_a_number(where: object, cell: str, column: str, *, line: int) -> BagFileError:
    """Return the error for a cell that should have been a finite number."""
    text = cell.strip(BLANKS)
    if is_missing_cell(text):
        found = f" ({shown(text)})" if text else ""
        what = f"the value is missing{found}. {TAKE_AS_NAN}"
    elif text.lower().lstrip("+-") in ("inf", "infinity"):
        what = f"{shown(text)} is not finite."
    elif parse_number(text.replace(",", ".")) is not None:
        what = f"{shown(text)} has a decimal comma; numbers are read with a point."
    else:
        what = f"{shown(text)} is not a number."
    return bad(where, f"column {column!r}: {what}", line=line)
