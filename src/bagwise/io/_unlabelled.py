"""Bags without a label, left out on request."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bagwise.bags import Bags, is_missing
from bagwise.io._problems import bad, shown
from bagwise.io._rows import Reading, Rows, missing_labels


def without_unlabelled(reading: Reading) -> Reading:
    """Return a reading of the bags that have a label.

    A bag that has a label in some of its rows only is refused: it is not known what it means.
    """
    if reading.blocks is not None:
        return replace(reading, blocks=lambda: _labelled_rows(reading))
    return replace(reading, pieces=lambda: _labelled_bags(reading))


def _labelled_rows(reading: Reading) -> Iterator[Rows]:
    assert reading.blocks is not None
    with_label: set[str] = set()
    without: set[str] = set()
    for rows in reading.blocks():
        if rows.labels is None:
            yield rows
            continue
        missing = missing_labels(reading, rows.labels)
        with_label |= _names(rows, ~missing)
        without |= _names(rows, missing)
        if partly := with_label & without:
            name = min(partly)
            msg = f"the label is missing, and other rows of bag {shown(name)} have one."
            raise bad(_first_place(reading, name), msg)
        yield rows.take(np.flatnonzero(~missing)) if missing.any() else rows


def _first_place(reading: Reading, bag: str) -> str:
    """Say where the first row of a bag is that has no label; the file is read again for it."""
    assert reading.blocks is not None
    for rows in reading.blocks():
        assert rows.labels is not None
        same = np.array([str(value) == bag for value in rows.bags.values])[rows.bags.codes]
        found = np.flatnonzero(same & missing_labels(reading, rows.labels))
        if len(found):
            return reading.place(rows.line_of(int(found[0])))
    return str(reading.source.path)


def _names(rows: Rows, chosen: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> set[str]:
    return {str(rows.bags.values[code]) for code in np.unique(rows.bags.codes[chosen]).tolist()}


def _labelled_bags(reading: Reading) -> Iterator[Bags]:
    assert reading.pieces is not None
    for bags in reading.pieces():
        if bags.labels is None:
            yield bags
            continue
        missing = is_missing(bags.labels)
        kept = ~(missing.any(axis=1) if missing.ndim == 2 else missing)
        if kept.any():
            yield bags if kept.all() else bags[kept]
