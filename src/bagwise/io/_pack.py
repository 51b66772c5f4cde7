"""Any file to a store ``name.bags/``, in a stream."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise.bags import Bags, StoreWriter
from bagwise.io._gather import checked_blocks, gather
from bagwise.io._problems import bad
from bagwise.io._rows import Ledger, Reading

_PIECE_BYTES = 32 * 2**20


class _Interleaved(Exception):
    """A bag came again after others: its rows are not together."""


def write_store(
    reading: Reading,
    target: str | PathLike[str],
    *,
    overwrite: bool,
    progress: Callable[[int], object] | None,
) -> None:
    """Write a store; `BagFile.pack` says how."""
    if progress is not None:
        reading = _followed(reading, progress)
    if reading.pieces is not None:
        _pack_pieces(reading, target, overwrite)
    else:
        _pack_rows(reading, target, overwrite)


def _followed(reading: Reading, progress: Callable[[int], object]) -> Reading:
    """Tell how many rows have been dealt with whenever the next block is asked for."""

    def follow(blocks: Callable[[], Iterator[Any]], size: Callable[[Any], int]) -> Any:
        def followed() -> Iterator[Any]:
            n_rows = 0
            for block in blocks():
                yield block
                n_rows += size(block)
                progress(n_rows)

        return followed

    if reading.blocks is not None:
        return replace(reading, blocks=follow(reading.blocks, len))
    assert reading.pieces is not None
    return replace(reading, pieces=follow(reading.pieces, lambda piece: piece.n_instances))


def _pack_pieces(reading: Reading, target: str | PathLike[str], overwrite: bool) -> None:
    assert reading.pieces is not None
    with StoreWriter(target, overwrite=overwrite) as writer:
        empty = True
        for piece in reading.pieces():
            writer.extend(piece)
            empty = False
        if empty:
            raise bad(reading.source.path, "there is no bag in it.")


def _pack_rows(reading: Reading, target: str | PathLike[str], overwrite: bool) -> None:
    assert reading.blocks is not None
    first = next(reading.blocks(), None)
    if first is not None and sparse.issparse(first.matrix):
        # The width of a sparse table is known only at its end.
        gather(reading).write(target, overwrite=overwrite)
        return
    try:
        ledger = Ledger(reading)
        with StoreWriter(target, overwrite=overwrite) as writer:
            for piece in _whole_bags(reading, ledger):
                writer.extend(piece)
            writer.annotate(**ledger.aligned())
    except _Interleaved:
        _pack_spooled(reading, Path(target), overwrite)


def _whole_bags(reading: Reading, ledger: Ledger) -> Iterator[Bags]:
    """Yield bags as soon as the next one begins; their labels come later."""
    assert reading.blocks is not None
    open_rows: list[NDArray[Any]] = []  # of the bag that is not known to be over
    done = 0  # bags that are over
    for rows in checked_blocks(reading, reading.blocks()):
        numbers = ledger.add(rows)
        if not ledger.in_order:
            raise _Interleaved
        cut = int(np.searchsorted(numbers, numbers[-1]))  # where the last bag of the block begins
        if numbers[-1] > done:
            open_rows.append(rows.matrix[:cut])
            yield _piece(reading, ledger, np.concatenate(open_rows), done, int(numbers[-1]))
            open_rows, done = [], int(numbers[-1])
        open_rows.append(rows.matrix[cut:])
    yield _piece(reading, ledger, np.concatenate(open_rows), done, done + 1)


def _piece(reading: Reading, ledger: Ledger, matrix: NDArray[Any], first: int, last: int) -> Bags:
    sizes = ledger.sizes_between(first, last)
    return Bags(
        matrix,
        np.append(0, np.cumsum(sizes)),
        bag_names=ledger.bag_names[first:last],
        feature_names=reading.feature_names,
        allow_nan=reading.allow_nan,
    )


def _pack_spooled(reading: Reading, target: Path, overwrite: bool) -> None:
    """Write the rows as they come into a temporary file, then fetch them bag by bag."""
    assert reading.blocks is not None
    ledger = Ledger(reading)
    shape: tuple[int, ...] = ()
    dtype: Any = None
    with tempfile.TemporaryFile(dir=target.absolute().parent) as file:
        n_rows = 0
        for rows in checked_blocks(reading, reading.blocks()):
            ledger.add(rows)
            np.ascontiguousarray(rows.matrix).tofile(file)
            n_rows, shape, dtype = n_rows + len(rows), rows.matrix.shape, rows.matrix.dtype
        file.flush()
        matrix = np.memmap(file, dtype, "r", shape=(n_rows, shape[1]))
        order, sizes, names = ledger.order(), ledger.sizes, ledger.bag_names
        assert order is not None
        offsets = np.append(0, np.cumsum(sizes))
        step = max(1, _PIECE_BYTES // (shape[1] * matrix.itemsize))
        with StoreWriter(target, overwrite=overwrite) as writer:
            first = 0
            while first < len(sizes):
                last = int(np.searchsorted(offsets, offsets[first] + step, side="right")) - 1
                last = min(max(last, first + 1), len(sizes))
                part = np.take(matrix, order[offsets[first] : offsets[last]], axis=0)
                writer.extend(
                    Bags(
                        part,
                        offsets[first : last + 1] - offsets[first],
                        bag_names=names[first:last],
                        feature_names=reading.feature_names,
                        allow_nan=reading.allow_nan,
                    )
                )
                first = last
            writer.annotate(**ledger.aligned())
        del matrix
