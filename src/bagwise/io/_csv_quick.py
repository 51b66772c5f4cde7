"""The quick way through a text table: pieces of the file, parsed by pyarrow in threads.

A piece is given up as soon as it holds anything on which pyarrow and the standard library could
differ: unusual quotes, lone carriage returns, cells that are not plain finite numbers.
"""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from bagwise._threads import ordered_map, thread_count
from bagwise.io._columns import as_coded, as_numpy, zip_coded
from bagwise.io._labels import MISSING_CELLS
from bagwise.io._roles import Roles
from bagwise.io._rows import Coded, Rows
from bagwise.io._streams import Source

_PIECE_BYTES = 4 * 2**20
_LEAST_BYTES = 2**18  # below it, importing pyarrow takes longer than reading
_MAX_LINE_BYTES = 2**24
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# As they are usually written; others are left to the exact way.
_NULLS = [f(cell) for cell in MISSING_CELLS for f in (str.lower, str.upper, str.title)] + ["NaN"]


@dataclass(frozen=True)
class Piece:
    """Whole lines of a file; their text is loaded by the thread that parses it."""

    position: int
    load: Callable[[], bytes]


def quick_blocks(
    source: Source, separator: str, roles: Roles, header_line: int
) -> Iterator[Rows | None]:
    """Yield blocks of rows; None, as the last, if the rest must be read the exact way.

    Pieces are cut at ends of lines. A cut inside quotes leaves an odd number of them in the piece
    before it, which is given up; so no piece is ever read that does not begin with a row.
    """
    if _is_small(source) or not separator.isascii() or not _has_pyarrow():
        yield None
        return
    convert = _converter(source, separator, roles)
    pieces = _regions(source, header_line) if source.compression is None else (
        _pieces(source, header_line)
    )  # fmt: skip
    for rows in ordered_map(convert, pieces, window=2 * thread_count()):
        if rows is None or len(rows):
            yield rows
        if rows is None:
            return


def _is_small(source: Source) -> bool:
    if source.compression is None:
        return source.path.stat().st_size < _LEAST_BYTES
    with source.open() as file:
        return len(file.read(_LEAST_BYTES)) < _LEAST_BYTES


def _has_pyarrow() -> bool:
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return False
    return True


def _skip_header(file: BinaryIO, header_line: int) -> int | None:
    """Go to the first row, whose position is returned, past a byte-order mark and the header."""
    start = file.read(3)
    position = 3 if start == _BYTE_ORDER_MARK else 0
    if not header_line:
        file.seek(position)
        return position
    line = start[position:]
    position = 3
    for _ in range(header_line - line.count(b"\n")):
        line = file.readline(_MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            return None
        position += len(line)
    return position


def _regions(source: Source, header_line: int) -> Iterator[Piece | None]:
    """Cut a plain file by looking only at where the cuts are."""
    size = source.path.stat().st_size
    with source.path.open("rb") as file:
        position = _skip_header(file, header_line)
        while position is not None and position < size:
            file.seek(position + _PIECE_BYTES)
            line = file.readline(_MAX_LINE_BYTES)
            stop = min(size, position + _PIECE_BYTES + len(line))
            if stop < size and not line.endswith(b"\n"):
                break
            yield Piece(position, partial(_read_region, source, position, stop))
            position = stop
        if position is None or position < size:
            yield None


def _read_region(source: Source, position: int, stop: int) -> bytes:
    with source.path.open("rb", buffering=0) as file:
        file.seek(position)
        return file.read(stop - position)


def _pieces(source: Source, header_line: int) -> Iterator[Piece | None]:
    """Cut what comes out of a decompressor."""
    with source.open() as file:
        position = _skip_header(file, header_line)
        while position is not None:
            text = file.read(_PIECE_BYTES)
            full = len(text) == _PIECE_BYTES
            line = file.readline(_MAX_LINE_BYTES) if full else b""
            if line and not line.endswith(b"\n") and len(line) == _MAX_LINE_BYTES:
                break
            yield Piece(position, partial(bytes, text + line))
            position += len(text) + len(line)
            if not full:
                return
        yield None


def _is_plain(text: bytes, separator: bytes) -> bool:
    """Tell whether every parser reads the quotes and the line ends of this text alike."""
    if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
        return False
    if b'"' not in text:
        return True
    text = text.replace(b'""', b"")
    n_quotes = text.count(b'"')
    if n_quotes % 2:
        return False
    opening = sum(text.count(mark + b'"') for mark in (separator, b"\n")) + text.startswith(b'"')
    closing = sum(text.count(b'"' + mark) for mark in (separator, b"\n", b"\r"))
    return n_quotes == opening + closing + text.endswith(b'"')


def _converter(
    source: Source, separator: str, roles: Roles
) -> Callable[[Piece | None], Rows | None]:
    import pyarrow as pa
    import pyarrow.csv

    coded = pa.dictionary(pa.int32(), pa.string())
    special: dict[int, Any] = {roles.bag: coded, **dict.fromkeys(roles.label, coded)}
    if roles.instance_label is not None:
        special[roles.instance_label] = coded
    if roles.instance_name is not None:
        special[roles.instance_name] = pa.string()
    types = {str(j): special.get(j, pa.float64()) for j in (*special, *roles.features)}
    parsing = pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    converting = pa.csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        null_values=_NULLS if roles.allow_nan else [],
        strings_can_be_null=False,
    )

    def convert(piece: Piece | None) -> Rows | None:
        text = b"" if piece is None else piece.load()
        if piece is None or not _is_plain(text, separator.encode()):
            return None
        if not text.strip():
            text = b""
        reading = pa.csv.ReadOptions(
            column_names=[str(j) for j in range(len(roles.names))],
            use_threads=False,
            block_size=len(text) + 1,
        )
        try:
            table = pa.csv.read_csv(pa.BufferReader(text), reading, parsing, converting)
        except pa.ArrowException:
            return None
        return _rows(table, roles, lambda row: _line_at(source, piece, separator, row))

    return convert


def _rows(table: Any, roles: Roles, line_of: Callable[[int], int]) -> Rows | None:
    matrix = np.empty((table.num_rows, len(roles.features)))
    n_missing = 0
    for j, position in enumerate(roles.features):
        column_of = table[str(position)].combine_chunks()
        n_missing += column_of.null_count
        matrix[:, j] = as_numpy(column_of.fill_null(np.nan) if column_of.null_count else column_of)
    with np.errstate(over="ignore", invalid="ignore"):  # a sum tells at little cost, but not always
        is_finite = bool(np.isfinite(matrix.sum()))
    if not is_finite and np.count_nonzero(~np.isfinite(matrix)) != n_missing:
        return None

    def column(position: int) -> Coded:
        coded = as_coded(table[str(position)].combine_chunks())
        return Coded(coded.codes, [value.strip() for value in coded.values])

    bags = column(roles.bag)
    labels: Coded | None = None
    if roles.label_names is not None:
        labels = zip_coded([column(j) for j in roles.label])
    elif roles.label:
        labels = column(roles.label[0])
    names = None
    if roles.instance_name is not None:
        text = table[str(roles.instance_name)].to_pylist()
        names = np.array([name.strip() for name in text], dtype=np.str_)
    instance_labels = None if roles.instance_label is None else column(roles.instance_label)
    if any(not name or "\0" in name or len(name) > csv.field_size_limit() for name in bags.values):
        return None
    if instance_labels is not None and "" in instance_labels.values:
        return None
    return Rows(matrix, bags, labels, names, instance_labels, line_of)


def _line_at(source: Source, piece: Piece, separator: str, row: int) -> int:
    """Return the line at which a row of a piece ends."""
    position, text, before = piece.position, piece.load(), 0
    with source.open() as file:
        while position > 0 and (data := file.read(min(position, _PIECE_BYTES))):
            before += data.count(b"\n")
            position -= len(data)
    reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=separator)
    ends = (reader.line_num for cells in reader if cells)
    return before + next(islice(ends, row, None))
