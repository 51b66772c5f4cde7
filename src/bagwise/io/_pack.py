"""Any file to a store ``name.bags/``, in a stream."""

import tempfile
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise.bags import Bags, StoreWriter
from bagwise.exceptions import InvalidBagsError
from bagwise.io._gather import checked_blocks, gather
from bagwise.io._problems import bad
from bagwise.io._read import make_options, open_file
from bagwise.io._rows import Ledger, Reading

_PIECE_BYTES = 32 * 2**20


class _Interleaved(Exception):
    """A bag came again after others: its rows are not together."""


def pack(
    source: str | PathLike[str],
    target: str | PathLike[str],
    *,
    overwrite: bool = False,
    format: str | None = None,
    max_bytes: int | None = None,
    **options: Any,
) -> Bags:
    r"""Turn a file or folder of any known format into a store, without loading all of it.

    Memory is needed for a block of rows, for the largest bag, and for names and labels. If the rows
    of a bag are not together, the rows go through a temporary file beside the target first.

    Parameters
    ----------
    source : str or path-like
        What to read.
    target : str or path-like
        The store to make; by convention its name ends in ``.bags``. It appears under its name only
        when it is complete.
    overwrite : bool
        Whether a store that is there may be replaced.
    format, max_bytes, **options
        As for `read`.

    Returns
    -------
    Bags
        The store, memory-mapped.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "toy.csv").write_text("bag,label,x\na,1,0.5\nb,0,1.5\n")
    >>> pack(folder / "toy.csv", folder / "toy.bags")
    Bags(2 bags, 2 instances, 1 feature, float64, memory-mapped; 1 instance per bag)
    """
    reading = open_file(source, format=format, max_bytes=max_bytes, options=make_options(options))
    try:
        if reading.pieces is not None:
            _pack_pieces(reading, target, overwrite)
        else:
            _pack_rows(reading, target, overwrite)
    except InvalidBagsError as error:
        raise bad(reading.source.path, str(error)) from error
    return Bags.open(target)


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
        with _LateWriter(target, overwrite, ledger.aligned) as writer:
            for piece in _whole_bags(reading, ledger):
                writer.extend(piece)
    except _Interleaved:
        _pack_spooled(reading, Path(target), overwrite)


class _LateWriter(StoreWriter):
    """A store whose labels are understood only after the last row was seen."""

    def __init__(
        self,
        path: str | PathLike[str],
        overwrite: bool,
        aligned: Callable[[], dict[str, Any]],
    ) -> None:
        super().__init__(path, overwrite=overwrite)
        self._late = aligned

    def _finish(self) -> None:
        late = self._late()
        names = late.pop("label_names", None)
        if names is not None:
            self._column_names["label_names"] = np.array(names)
        per_bag = np.cumsum([len(sizes) for sizes in self._sizes])
        per_row = np.cumsum([sizes.sum() for sizes in self._sizes])
        for what, values in late.items():
            ends = per_bag if what == "labels" else per_row
            self._aligned[what] = np.split(np.asarray(values), ends[:-1])
        super()._finish()


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
        with _LateWriter(target, overwrite, ledger.aligned) as writer:
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
                    )
                )
                first = last
        del matrix
