"""All blocks of a file into one `Bags`."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bagwise.bags import Bags
from bagwise.exceptions import InvalidBagsError
from bagwise.io._problems import bad
from bagwise.io._rows import DenseGrower, Ledger, Reading, Rows, SparseGrower, grower_for

_ALIGNED = ("bag_names", "labels", "instance_names", "instance_labels")
_COLUMN_NAMES = ("feature_names", "label_names")


def gather(reading: Reading) -> Bags:
    """Read everything into memory; a file that is one piece stays what it is."""
    if reading.blocks is not None:
        return _gather_rows(reading)
    assert reading.pieces is not None
    return join_pieces(reading, reading.pieces())


def _gather_rows(reading: Reading) -> Bags:
    assert reading.blocks is not None
    ledger = Ledger(reading)
    grower: DenseGrower | SparseGrower | None = None
    for rows in checked_blocks(reading, reading.blocks()):
        ledger.add(rows)
        if grower is None:
            row_bytes = rows.matrix.shape[1] * rows.matrix.dtype.itemsize
            n_rows = min(reading.n_rows, reading.source.limit // row_bytes)
            grower = grower_for(rows.matrix, n_rows)
        grower.append(rows.matrix)
    assert grower is not None
    matrix, order = grower.finish(), ledger.order()
    return Bags(
        matrix if order is None else matrix[order],
        np.append(0, np.cumsum(ledger.sizes)),
        bag_names=ledger.bag_names,
        feature_names=reading.feature_names,
        **ledger.aligned(),
        allow_nan=reading.allow_nan,
    )


def checked_blocks(reading: Reading, blocks: Iterator[Rows]) -> Iterator[Rows]:
    """Pass blocks on, keep the sum of their sizes within the limit, refuse a file without any."""
    total, n_rows = 0, 0
    for rows in blocks:
        if not len(rows):
            continue
        n_rows += len(rows)
        total += getattr(rows.matrix, "nbytes", 0)
        reading.source.admit(total, "the features")
        yield rows
    if not n_rows:
        raise bad(reading.source.path, "there is no row of data.")


def join_pieces(reading: Reading, pieces: Iterator[Bags]) -> Bags:
    """Put pieces into one matrix that grows in place."""
    first = next(pieces, None)
    if first is None:
        raise bad(reading.source.path, "there is no bag in it.")
    second = next(pieces, None)
    if second is None:
        return first
    grower = grower_for(first.instances)
    sizes: list[Any] = []
    aligned: dict[str, list[Any]] = {name: [] for name in _ALIGNED}
    n_pieces, allow_nan = 0, False
    for piece in _chain(first, second, pieces):
        if piece.n_features != first.n_features:
            number = sum(map(len, sizes))
            msg = f"{piece.describe(0)} has {piece.n_features} features, "
            msg += f"those before it {first.n_features} (it is bag {number} of the file)."
            raise InvalidBagsError(msg)
        if np.result_type(piece.dtype, first.dtype) != first.dtype:
            msg = f"{piece.describe(0)} is {piece.dtype}, which does not fit those before it, "
            msg += f"{first.dtype}. Convert it first."
            raise InvalidBagsError(msg)
        grower.append(piece.instances)
        sizes.append(piece.sizes)
        n_pieces += 1
        allow_nan |= piece.allow_nan
        for name, values in aligned.items():
            if getattr(piece, name) is not None:
                values.append(getattr(piece, name))
    known: dict[str, Any] = {
        **{name: np.concatenate(v) for name, v in aligned.items() if len(v) == n_pieces},
        **{name: getattr(first, name) for name in _COLUMN_NAMES},
    }
    offsets = np.append(0, np.cumsum(np.concatenate(sizes)))
    return Bags(grower.finish(), offsets, **known, allow_nan=allow_nan)


def _chain(first: Bags, second: Bags, rest: Iterator[Bags]) -> Iterator[Bags]:
    yield first
    yield second
    yield from rest
