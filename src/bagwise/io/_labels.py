"""From what a file says to labels: numbers where all are numbers, a matrix where they are lists."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bagwise.io._problems import bad, shown

_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})\Z")  # 18 digits fit int64; "007" is a name
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_MAX_CELLS = 10**8  # of a matrix of labels

#: Cells, in small letters, that say that a value or a label is missing.
MISSING_CELLS = ("", "?", "na", "n/a", "nan", "null", "none")

LIST_SEPARATOR = ";"
BLANKS = " \t\r\n\v\f"  # what `float` takes around a number; `str.strip` takes more


def parse_number(text: str) -> float | None:
    """Return the finite number that a cell holds, or None; stricter than `float`."""
    text = text.strip(BLANKS)
    if not _DECIMAL.match(text):
        return None
    value = float(text)
    return value if np.isfinite(value) else None


def is_missing_cell(cell: str) -> bool:
    """Tell whether a cell of text says that a value or a label is missing."""
    return cell.strip(BLANKS).lower() in MISSING_CELLS


def is_blank(label: Any, *, words: bool) -> bool:
    """Tell whether a label is missing: an empty cell, a null, NaN or, if asked, a word for it."""
    if words and isinstance(label, str):
        return is_missing_cell(label)
    return bool(label is None or label == "" or label != label)


def understand(values: Sequence[str]) -> NDArray[Any]:
    """Return text as booleans, integers, numbers, or strings: the first that fits all of it."""
    if values and set(values) <= {"True", "False"}:
        return np.array([value == "True" for value in values])
    if all(_INTEGER.match(value) for value in values):
        return np.array([int(value) for value in values], dtype=np.int64)
    numbers = [parse_number(value) if _plain_decimal(value) else None for value in values]
    if all(number is not None for number in numbers):
        return np.array(numbers, dtype=np.float64)
    return np.array(values, dtype=np.str_)


def _plain_decimal(value: str) -> bool:
    digits = value.lstrip("+-")
    return not (digits[:1] == "0" and digits[1:2].isdigit())  # "007" is a name


@dataclass(frozen=True)
class LabelTable:
    """What each distinct label of a file becomes; rows of ``rows`` are taken by code."""

    rows: NDArray[Any]
    names: list[str] | None  # of the columns, if rows is a matrix

    @property
    def are_lists(self) -> bool:
        """Whether a bag has a row of labels."""
        return self.rows.ndim == 2


def make_label_table(
    where: object,
    values: Sequence[Any],
    *,
    text: bool,
    separator: str | Literal[False] | None = None,
    columns: Sequence[str] | None = None,
) -> LabelTable:
    """Make sense of the distinct labels of a file.

    Parameters
    ----------
    where : object
        The file, for messages.
    values : sequence
        Distinct labels: text or numbers; tuples of numbers if ``columns``; tuples of names.
    text : bool
        Whether text may mean a number.
    separator : str, False or None
        Text between the labels of a list. None: a semicolon, if any label has one.
    columns : sequence of str, optional
        Names of the columns that the tuples are from.
    """
    if columns is not None:
        return LabelTable(_matrix(where, values, columns), list(columns))
    if any(isinstance(value, tuple) for value in values):
        return _indicators(where, values)
    strings = all(isinstance(value, str) for value in values)
    if strings and separator is not False:
        mark = separator or LIST_SEPARATOR
        if separator is not None or any(mark in value for value in values):
            return _indicators(where, [_split(value, mark) for value in values])
    if strings:
        rows = understand(values) if text else np.array(values, dtype=np.str_)
        return LabelTable(rows, None)
    return LabelTable(_numbers(where, values), None)


def _split(value: str, mark: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(mark) if part.strip())


def _numbers(where: object, values: Sequence[Any]) -> NDArray[Any]:
    array = np.array(values)
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise bad(where, f"labels must be numbers or text. Got {shown(values[:3])}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise bad(where, "labels must not be missing or infinite.")
    return array


def _matrix(where: object, values: Sequence[Any], columns: Sequence[str]) -> NDArray[Any]:
    flat = [cell for row in values for cell in row]
    if flat and all(isinstance(cell, str) for cell in flat):
        array = understand(flat)
    else:
        array = np.array(flat)
    if array.dtype.kind not in "biuf":
        cell = next((c for c in flat if parse_number(str(c)) is None), flat[0])
        raise bad(where, f"label columns must hold numbers, one column a label. Got {shown(cell)}.")
    return array.reshape(len(values), len(columns))


def _indicators(where: object, lists: Iterable[tuple[str, ...]]) -> LabelTable:
    lists = list(lists)
    names = sorted({str(name) for one in lists for name in one}, key=_natural)
    if not names:
        raise bad(where, "there is no label in any list of labels.")
    if len(names) * len(lists) > _MAX_CELLS:
        raise bad(where, f"{len(names):,} different labels are too many for a matrix of labels.")
    column = {name: j for j, name in enumerate(names)}
    rows = np.zeros((len(lists), len(names)), dtype=np.int8)
    for i, one in enumerate(lists):
        rows[i, [column[str(name)] for name in one]] = 1
    return LabelTable(rows, names)


def _natural(name: str) -> tuple[int, float, str]:
    number = parse_number(name)
    return (1, 0.0, name) if number is None else (0, number, name)
