"""Rows of a table on their way to bags, block by block."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise._arrays import Integers
from bagwise.bags import Bags
from bagwise.exceptions import BagFileError
from bagwise.io._labels import LabelTable, is_blank, make_label_table
from bagwise.io._problems import bad, label_is_missing, shown
from bagwise.io._streams import Source


@dataclass(frozen=True)
class Coded:
    """A column of few distinct values: for each row the position of its value."""

    codes: NDArray[Any]
    values: list[Any]

    @classmethod
    def of(cls, column: list[Any]) -> "Coded":
        """Give each distinct value of a column a number."""
        table: dict[Any, int] = {}
        codes = [table.setdefault(value, len(table)) for value in column]
        return cls(np.array(codes, dtype=np.int64), list(table))

    def take(self, kept: Integers) -> "Coded":
        """Return some of the rows, with the values that they have."""
        used, codes = np.unique(self.codes[kept], return_inverse=True)
        return Coded(codes, [self.values[code] for code in used.tolist()])


@dataclass(frozen=True)
class Rows:
    """A block of rows of a table."""

    matrix: Any
    bags: Coded
    labels: Coded | None
    instance_names: NDArray[Any] | None
    instance_labels: Coded | None
    line_of: Callable[[int], int]  # from a row of the block to its line (or row) in the file

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def take(self, kept: Integers) -> "Rows":
        """Return some of the rows."""
        return Rows(
            self.matrix[kept],
            self.bags.take(kept),
            None if self.labels is None else self.labels.take(kept),
            None if self.instance_names is None else self.instance_names[kept],
            None if self.instance_labels is None else self.instance_labels.take(kept),
            lambda row: self.line_of(int(kept[row])),
        )


@dataclass
class Reading:
    """A file that has been looked at, ready to be read; each call of ``blocks`` starts anew.

    Blocks are `Rows` if the file is a table, `Bags` (with their final labels) if it holds bags.
    """

    source: Source
    format: str
    blocks: Callable[[], Iterator[Rows]] | None = None
    pieces: Callable[[], Iterator[Bags]] | None = None
    guessed: dict[str, str] = field(default_factory=dict)
    feature_names: list[str] | None = None
    unit: str = "line"  # what `line_of` counts: lines, or rows of a binary table
    text: bool = True  # whether text may mean a number
    label_columns: tuple[str, ...] | None = None
    label_separator: str | Literal[False] | None = None
    n_rows: int = 0  # about how many rows there are, if that is known
    allow_nan: bool = False  # whether features of rows may be missing
    missing_words: bool = False  # whether words such as NA mean that a label is missing

    def lacks(self, label: Any) -> bool:
        """Tell whether a label of this file is missing."""
        return is_blank(label, words=self.missing_words)

    def place(self, number: int) -> str:
        """Say where a row is."""
        path = self.source.path
        return f"{path}:{number}" if self.unit == "line" else f"{path}: {self.unit} {number}"


def missing_labels(reading: Reading, labels: Coded) -> NDArray[np.bool_]:
    """Tell for each row whether its label, or one of its labels, is missing."""
    several = reading.label_columns is not None
    lacks = reading.lacks
    blank = [any(map(lacks, v)) if several else lacks(v) for v in labels.values]
    return np.array(blank, dtype=bool)[labels.codes]


class Ledger:
    """What is known about bags and instances while rows go by."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._bags: dict[str, int] = {}
        self._labels: dict[Any, int] = {}
        self._label_of_bag = np.full(64, -1, dtype=np.int64)
        self._blank: BagFileError | None = None  # about the first bag with an empty cell
        self._instance_labels: dict[Any, int] = {}
        self._instance_label_codes: list[Integers] = []
        self._instance_names: list[NDArray[Any]] = []
        self._runs: list[tuple[Integers, Integers]] = []
        self._last = -1
        self.in_order = True  # whether the rows of every bag have been together so far

    def add(self, rows: Rows) -> Integers:
        """Enter a block; returns the number of the bag of each row."""
        codes = rows.bags.codes
        starts = np.append(0, np.flatnonzero(codes[1:] != codes[:-1]) + 1)
        run_codes = codes[starts]
        used, first = np.unique(run_codes, return_index=True)
        numbers = np.full(len(rows.bags.values), -1, dtype=np.int64)
        for code in used[np.argsort(first)].tolist():
            numbers[code] = self._bags.setdefault(str(rows.bags.values[code]), len(self._bags))
        runs = numbers[run_codes]
        steps = np.diff(np.append(self._last, runs))
        self.in_order &= bool((steps[1:] == 1).all() and steps[0] in (0, 1))
        self._last = max(self._last, int(runs[-1]))
        self._runs.append((runs, np.diff(np.append(starts, len(codes)))))
        bags = numbers[codes]
        if rows.labels is not None:
            self._enter_labels(rows, rows.labels, bags)
        if rows.instance_labels is not None:
            table = self._instance_labels
            known = [table.setdefault(v, len(table)) for v in rows.instance_labels.values]
            self._instance_label_codes.append(np.array(known)[rows.instance_labels.codes])
        if rows.instance_names is not None:
            self._instance_names.append(rows.instance_names)
        return bags

    def _enter_labels(self, rows: Rows, labels: Coded, bags: Integers) -> None:
        if len(self._bags) > len(self._label_of_bag):
            grown = np.full(2 * len(self._bags), -1, dtype=np.int64)
            grown[: len(self._label_of_bag)] = self._label_of_bag
            self._label_of_bag = grown
        table, known = self._labels, self._label_of_bag
        numbers = np.array([table.setdefault(value, len(table)) for value in labels.values])
        codes = numbers[labels.codes]
        self._note_blank(rows, labels)
        fresh = known[bags] < 0
        known[bags[fresh][::-1]] = codes[fresh][::-1]  # of several, the last written stays
        differs = known[bags] != codes
        if differs.any():
            row = int(np.argmax(differs))
            values, bag = list(table), list(self._bags)[bags[row]]
            guess = self._reading.guessed.get("label")
            hint = "" if guess is None else (
                f" The label was guessed to be {guess}: name another with label=, or none with "
                "label=False."
            )  # fmt: skip
            msg = (
                f"labels must not differ inside a bag: bag {bag!r} has {_one(values[codes[row]])} "
                f"here and {_one(values[known[bags[row]]])} before.{hint}"
            )
            raise bad(self._reading.place(rows.line_of(row)), msg)

    def _note_blank(self, rows: Rows, labels: Coded) -> None:
        """Refuse a label that is missing; of an empty cell, wait whether it is an empty list."""
        missing = missing_labels(self._reading, labels)
        if not missing.any():
            return
        empty = np.array([value == "" for value in labels.values], dtype=bool)[labels.codes]
        if not (missing & ~empty).any() and self._blank is not None:
            return
        row = int(np.argmax(missing & ~empty if (missing & ~empty).any() else missing))
        place = self._reading.place(rows.line_of(row))
        value, names = labels.values[labels.codes[row]], self._reading.label_columns
        bag, column = rows.bags.values[rows.bags.codes[row]], None
        if names is not None:
            parts = zip(names, value, strict=True)
            column, value = next(pair for pair in parts if self._reading.lacks(pair[1]))
        error = label_is_missing(place, bag, value, column=column)
        if names is not None or value != "":
            raise error
        self._blank = error

    @property
    def bag_names(self) -> list[str]:
        """Names of the bags so far, in order of first appearance."""
        return list(self._bags)

    def sizes_between(self, first: int, last: int) -> Integers:
        """Sizes of the bags from ``first`` to before ``last``, if all of them came lately."""
        sizes = np.zeros(last - first, dtype=np.int64)
        for codes, lengths in reversed(self._runs):
            inside = (codes >= first) & (codes < last)
            np.add.at(sizes, codes[inside] - first, lengths[inside])
            if codes[0] < first:
                break
        return sizes

    @property
    def sizes(self) -> Integers:
        """Number of rows of each bag so far."""
        sizes = np.zeros(len(self._bags), dtype=np.int64)
        for codes, lengths in self._runs:
            np.add.at(sizes, codes, lengths)
        return sizes

    def order(self) -> Integers | None:
        """Rows bag by bag, or None if they are in order."""
        if self.in_order:
            return None
        codes = np.concatenate([np.repeat(*run) for run in self._runs])
        return np.argsort(codes, kind="stable")

    def label_table(self) -> LabelTable | None:
        """Make sense of the labels seen so far."""
        if not self._labels:
            return None
        reading = self._reading
        table = make_label_table(
            reading.source.path,
            list(self._labels),
            text=reading.text,
            separator=reading.label_separator,
            columns=reading.label_columns,
        )
        if self._blank is not None and not table.are_lists:
            raise self._blank
        return table

    def aligned(self) -> dict[str, Any]:
        """Names and labels, as `Bags` takes them, all but the names of bags and features."""
        found: dict[str, Any] = {}
        table = self.label_table()
        if table is not None:
            found["labels"] = table.rows[self._label_of_bag[: len(self._bags)]]
            found["label_names"] = table.names
        order = self.order()
        if self._instance_names:
            names = np.concatenate(self._instance_names)
            found["instance_names"] = names if order is None else names[order]
        if self._instance_label_codes:
            codes = np.concatenate(self._instance_label_codes)
            values = make_label_table(
                self._reading.source.path,
                list(self._instance_labels),
                text=self._reading.text,
                separator=False,
            ).rows
            found["instance_labels"] = values[codes if order is None else codes[order]]
        return {name: value for name, value in found.items() if value is not None}


def _one(value: Any) -> str:
    return shown(value) if isinstance(value, str) else str(value)


class DenseGrower:
    """A matrix that grows by rows in place: the allocator moves it, so there is no second copy.

    Memory that a guess of the number of rows reserves is not touched before it is used.
    """

    def __init__(self, width: int, dtype: Any, n_rows: int = 0) -> None:
        self._array = np.empty((n_rows, width), dtype)
        self._count = 0

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows."""
        stop = self._count + len(rows)
        if stop > len(self._array):
            capacity = max(stop, len(self._array) * 5 // 4)
            self._array.resize((capacity, self._array.shape[1]), refcheck=False)
        self._array[self._count : stop] = rows
        self._count = stop

    def finish(self) -> NDArray[Any]:
        """Return the matrix."""
        self._array.resize((self._count, self._array.shape[1]), refcheck=False)
        return self._array


class SparseGrower:
    """Blocks of a sparse matrix, whose width is that of the widest."""

    def __init__(self) -> None:
        self._blocks: list[Any] = []

    def append(self, rows: Any) -> None:
        """Add rows."""
        self._blocks.append(rows)

    def finish(self) -> Any:
        """Return the matrix."""
        width = max(block.shape[1] for block in self._blocks)
        for block in self._blocks:
            block.resize(block.shape[0], width)
        return sparse.vstack(self._blocks, format="csr")


def grower_for(matrix: Any, n_rows: int = 0) -> DenseGrower | SparseGrower:
    """Return a grower for blocks like this one; ``n_rows`` is how many are expected."""
    if sparse.issparse(matrix):
        return SparseGrower()
    return DenseGrower(matrix.shape[1], matrix.dtype, n_rows)
