"""Matlab's version 5 files, every size checked against the bytes that are there.

scipy's reader allocates what a header promises before it looks. This one does not, and knows only
what data need: numbers, text, cells, structs, sparse matrices.
"""

import math
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise.io._problems import bad, foreign
from bagwise.io._streams import Source

_HEADER_BYTES = 128
_MAX_DEPTH = 12
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8",
            13: "u8", 16: "u1", 17: "u2", 18: "u4"}  # fmt: skip
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE = 1, 2, 3, 4, 5
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8",
            15: "u8"}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A cell array: its shape, and its items in Matlab's order (columns first)."""

    shape: tuple[int, ...]
    items: list[Any]


@dataclass(frozen=True)
class Struct:
    """A struct array (or an object): one dict for each element."""

    shape: tuple[int, ...]
    items: list[dict[str, Any]]


def read_mat(source: Source) -> dict[str, Any]:
    """Return the variables of a file: arrays, sparse matrices, str, `Cell`, `Struct`."""
    with foreign(source.path, "the Matlab file cannot be read"):
        size = source.path.stat().st_size
        source.admit(size)
        data = source.path.read_bytes()
        if data[:8] == b"\x89HDF\r\n\x1a\n" or data[124:128] in (b"\x00\x02IM", b"\x02\x00MI"):
            msg = "this is a Matlab file of version 7.3. Save it with save(..., '-v7') to read it."
            raise bad(source.path, msg)
        if len(data) < _HEADER_BYTES or data[124:128] not in (b"\x00\x01IM", b"\x01\x00MI"):
            raise bad(source.path, "this is not a Matlab file of version 5 to 7.")
        return _Parser(source, "<" if data[126:128] == b"IM" else ">").variables(data)


class _Parser:
    def __init__(self, source: Source, order: str) -> None:
        self.source, self.order = source, order
        self.unpacked = 0

    def fail(self, what: str) -> Exception:
        return bad(self.source.path, what)

    def variables(self, data: bytes) -> dict[str, Any]:
        found: dict[str, Any] = {}
        position = _HEADER_BYTES
        while position + 8 <= len(data):
            kind, body, position = self.element(data, position)
            if kind == _COMPRESSED:
                kind, body, _ = self.element(self.unpack(body), 0)
            if kind != _MATRIX:
                msg = f"a variable is needed at byte {position}, not type {kind}."
                raise self.fail(msg)
            name, value = self.matrix(body, 0)
            if name and value is not None:
                found[name] = value
        return found

    def unpack(self, body: bytes) -> bytes:
        room = self.source.limit - self.unpacked
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(body, max(1, room))
        self.unpacked += len(data)
        if unpacker.unconsumed_tail:
            self.source.admit(self.source.limit + 1)
        if not unpacker.eof:
            msg = "a compressed variable is cut off."
            raise self.fail(msg)
        return data

    def element(self, data: bytes, position: int) -> tuple[int, bytes, int]:
        """Return type, bytes and the position after an element."""
        if position + 8 > len(data):
            msg = "the file ends inside a variable."
            raise self.fail(msg)
        kind, size = struct.unpack_from(self.order + "II", data, position)
        if kind >> 16:  # small: type and size in four bytes, then up to four of data
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                msg = "a short element is longer than four bytes."
                raise self.fail(msg)
            return kind, data[position + 4 : position + 4 + size], position + 8
        stop = position + 8 + size
        if stop > len(data):
            msg = f"an element of {size:,} bytes is promised where fewer are left."
            raise self.fail(msg)
        after = stop if kind == _COMPRESSED else stop + -size % 8
        return kind, data[position + 8 : stop], after

    def matrix(self, body: bytes, depth: int) -> tuple[str, Any]:
        """Return name and value of an array; None for what is not data (functions, handles)."""
        if not body:
            return "", np.zeros((0, 0))
        if depth > _MAX_DEPTH:
            msg = f"cells and structs are nested more than {_MAX_DEPTH} deep."
            raise self.fail(msg)
        _, flags, position = self.element(body, 0)
        if len(flags) < 4:
            msg = "a variable has no flags."
            raise self.fail(msg)
        word = struct.unpack_from(self.order + "I", flags)[0]
        kind, is_complex = word & 0xFF, bool(word & 0x800)
        if kind not in (_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE, *_CLASSES):
            return "", None
        dims, position = self.numbers(body, position)
        shape = tuple(int(n) for n in dims)
        if len(shape) < 2 or min(shape) < 0 or len(shape) > 8:
            msg = f"a variable has the impossible shape {shape}."
            raise self.fail(msg)
        _, name, position = self.element(body, position)
        rest = (body, position, shape, depth)
        if is_complex:
            return name.decode("ascii", "replace"), None
        if kind == _CELL:
            value: Any = Cell(shape, self.items(body, position, math.prod(shape), depth)[0])
        elif kind in (_STRUCT, _OBJECT):
            value = self.struct(*rest, is_object=kind == _OBJECT)
        elif kind == _CHAR:
            value = self.text(body, position, shape)
        elif kind == _SPARSE:
            value = self.sparse(body, position, shape)
        else:
            values, _ = self.numbers(body, position)
            if len(values) != math.prod(shape):
                msg = f"shape {shape} is promised for {len(values)} values."
                raise self.fail(msg)
            value = values.astype(_CLASSES[kind]).reshape(shape, order="F")
        return name.decode("ascii", "replace"), value

    def numbers(self, body: bytes, position: int) -> tuple[NDArray[Any], int]:
        kind, data, position = self.element(body, position)
        if kind not in _NUMBERS:
            msg = f"numbers are needed, not an element of type {kind}."
            raise self.fail(msg)
        dtype = np.dtype(self.order + _NUMBERS[kind])
        if len(data) % dtype.itemsize:
            msg = "an element ends inside a number."
            raise self.fail(msg)
        return np.frombuffer(data, dtype), position

    def items(self, body: bytes, position: int, count: int, depth: int) -> tuple[list[Any], int]:
        if count * 8 > len(body) - position:
            msg = f"{count:,} items are promised where fewer are left."
            raise self.fail(msg)
        found = []
        for _ in range(count):
            kind, data, position = self.element(body, position)
            if kind != _MATRIX:
                msg = f"an item of a cell or struct is needed, not type {kind}."
                raise self.fail(msg)
            found.append(self.matrix(data, depth + 1)[1])
        return found, position

    def struct(
        self, body: bytes, position: int, shape: tuple[int, ...], depth: int, *, is_object: bool
    ) -> Struct:
        if is_object:
            _, _, position = self.element(body, position)  # the name of its class
        length, position = self.numbers(body, position)
        _, packed, position = self.element(body, position)
        width = int(length[0]) if len(length) == 1 else 0
        if width < 1 or len(packed) % width:
            msg = "the names of the fields of a struct cannot be told apart."
            raise self.fail(msg)
        names = [
            packed[i : i + width].split(b"\0", 1)[0].decode("ascii", "replace")
            for i in range(0, len(packed), width)
        ]
        n_elements = math.prod(shape) if names else 0
        values, _ = self.items(body, position, n_elements * len(names), depth)
        rows = [values[i : i + len(names)] for i in range(0, len(values), len(names) or 1)]
        return Struct(shape, [dict(zip(names, row, strict=True)) for row in rows])

    def text(self, body: bytes, position: int, shape: tuple[int, ...]) -> str | list[str]:
        """Return one string, or one for each row of a matrix of characters."""
        kind, data, _ = self.element(body, position)
        encodings = {17: "utf-16", 4: "utf-16", 18: "utf-32"}
        suffix = "-le" if self.order == "<" else "-be"
        known = encodings.get(kind)
        text = data.decode(f"{known}{suffix}" if known else "utf-8", "replace")
        if len(shape) != 2 or shape[0] <= 1:
            return text
        if len(text) != math.prod(shape):
            msg = f"shape {shape} is promised for {len(text)} characters."
            raise self.fail(msg)
        return [text[i :: shape[0]].rstrip() for i in range(shape[0])]

    def sparse(self, body: bytes, position: int, shape: tuple[int, ...]) -> Any:
        rows, position = self.numbers(body, position)
        starts, position = self.numbers(body, position)
        values, _ = self.numbers(body, position)
        if len(shape) != 2 or len(starts) != shape[1] + 1 or starts[0] != 0:
            msg = "the columns of a sparse matrix do not fit its shape."
            raise self.fail(msg)
        count = int(starts[-1])
        if not 0 <= count <= min(len(rows), len(values)):
            msg = "a sparse matrix has fewer values than it promises."
            raise self.fail(msg)
        parts = (values[:count].astype("f8"), rows[:count].astype("i8"), starts.astype("i8"))
        matrix = sparse.csc_array(parts, shape=shape)
        matrix.check_format(full_check=True)
        return matrix
