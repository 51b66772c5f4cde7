"""The file layer: the safetensors layout, our JSON as its metadata, one SHA-256 over all bytes.

A model file is a safetensors file that any tool can open::

    8 bytes      length of the header, little endian
    header       {"__metadata__": {"bagwise": TEXT}, NAME: {"dtype", "shape", "data_offsets"}, ...}
    arrays       raw, little endian, in C order, without holes

TEXT is JSON, ``{"sha256": DIGEST, "format": 1, ...}``. The digest is that of the whole file with
its own 64 characters replaced by zeros, so a change of any byte is seen, and the metadata has one
key only, because safetensors writes several in random order: equal models give equal files.

A checksum guards against damage, not against malice. What a file says is believed only after the
checks here and those of `bagwise.persistence._schema`.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from bagwise._files import write_file
from bagwise.exceptions import ModelFileError

#: Number of the format written; a reader takes this and all lower numbers.
FORMAT = 1
#: Longest header, in bytes. Strings live there, arrays do not.
MAX_HEADER = 16 * 2**20
#: Deepest nesting of JSON.
MAX_DEPTH = 100

_DTYPES = {
    "BOOL": "|b1",
    "I8": "|i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "U8": "|u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}
_STORABLE = frozenset(np.dtype(code) for code in _DTYPES.values())

_BLANK = "0" * 64
# How the digest's field looks inside the header, where the quotes of our JSON are escaped. No
# other string can look like this: its own quotes would be escaped twice.
_DIGEST_FIELD = rb"\"sha256\":\""
_DIGEST = re.compile(rb"[0-9a-f]{64}")


def write(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a model file so that ``path`` holds either what it held before or all of the new one.

    Parameters
    ----------
    path : str or os.PathLike
        A link is followed: the file that it points to is replaced.
    header : mapping
        JSON values; the keys ``"sha256"`` and ``"format"`` are ours.
    arrays : mapping of str to ndarray
        Of bool, int, uint or float16/32/64.

    Raises
    ------
    ModelFileError
        If the content cannot be stored, or the file system refuses (the `OSError` is the cause).
    """
    pieces = encode(header, arrays)
    with _as_model_file_error("cannot be written"):
        write_file(path, *pieces)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a model file: the header as it was given to `write`, and the arrays.

    Raises
    ------
    FileNotFoundError, PermissionError
        If the path cannot be opened.
    ModelFileError
        For every other reason why this is not a whole model file that this release can read.
    """
    path = Path(path)
    with _as_model_file_error("cannot be read", passing=(FileNotFoundError, PermissionError)):
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for a writer
            _refuse("is not a regular file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            _header_length(file.read(8), size)  # before reading gigabytes of something else
            file.seek(0)
            blob = file.read(size)
    return decode(blob)


def encode(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> list[memoryview]:
    """Return the bytes of a model file, in pieces that share memory."""
    text = json.dumps(
        {"sha256": _BLANK, "format": FORMAT, **header}, allow_nan=False, separators=(",", ":")
    )
    plain = {name: _little_endian(name, array) for name, array in arrays.items()}
    blob = memoryview(safetensors.numpy.save(plain, metadata={"bagwise": text}))
    length = int.from_bytes(blob[:8], "little")
    if length > MAX_HEADER:
        _refuse(f"would need a header of {length} bytes; the limit is {MAX_HEADER}")
    start = _digest_start(bytes(blob[8 : 8 + length]))
    digest = hashlib.sha256(blob).hexdigest().encode()
    return [blob[:start], memoryview(digest), blob[start + 64 :]]


def decode(blob: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays from the bytes of a model file."""
    length = _header_length(blob[:8], len(blob))
    raw = blob[8 : 8 + length]
    outer = _parse_json(raw, "header")
    header = _own_header(outer)
    _check_digest(blob, raw, header)
    deserialize: Any = safetensors.deserialize
    try:
        tensors = deserialize(blob)
    except (safetensors.SafetensorError, ValueError, OverflowError) as error:
        _refuse(f"has a damaged layout ({error})", error)
    arrays = {name: _array(name, tensor) for name, tensor in tensors}
    del header["sha256"], header["format"]
    return header, arrays


def _own_header(outer: Any) -> dict[str, Any]:
    """Return our JSON from the metadata, if this is a model file that we can read."""
    metadata = outer.get("__metadata__") if isinstance(outer, dict) else None
    text = metadata.get("bagwise") if isinstance(metadata, dict) else None
    if not isinstance(text, str) or not isinstance(metadata, dict) or len(metadata) != 1:
        _refuse("is not a bagwise model file")
    header = _parse_json(text, "header of the model")
    number = header.get("format") if isinstance(header, dict) else None
    if type(number) is not int or number < 1 or not isinstance(header, dict):
        _refuse("is not a bagwise model file")
    if number > FORMAT:
        _refuse(
            f"has format {number}; this release of bagwise reads formats up to {FORMAT}. "
            "Upgrade bagwise to load it"
        )
    return header


def _check_digest(blob: bytes, raw: bytes, header: dict[str, Any]) -> None:
    start = _digest_start(raw)
    stated = blob[start : start + 64]
    digest = hashlib.sha256(blob[:start])
    digest.update(_BLANK.encode())
    digest.update(memoryview(blob)[start + 64 :])
    if stated != digest.hexdigest().encode() or header.get("sha256") != stated.decode():
        _refuse("is damaged: its SHA-256 does not match its content")


def _digest_start(raw: bytes) -> int:
    """Return where in the file the 64 characters of the digest begin."""
    start = raw.find(_DIGEST_FIELD) + len(_DIGEST_FIELD)
    if raw.count(_DIGEST_FIELD) != 1 or not _DIGEST.match(raw, start):
        _refuse("is damaged: it states no SHA-256")
    return 8 + start


def _header_length(start: bytes, size: int) -> int:
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > size - 8:
        _refuse("is not a bagwise model file, or was cut short")
    if length > MAX_HEADER:
        _refuse(f"has a header of {length} bytes; the limit is {MAX_HEADER}")
    return length


def _parse_json(text: str | bytes, what: str) -> Any:
    """Parse strict JSON: no duplicate keys, no NaN or infinity, bounded depth."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) != len(items):
            _refuse(f"has a {what} with a duplicate key")
        return result

    def constant(name: str) -> NoReturn:
        _refuse(f"has a {what} with the constant {name}, which is not JSON")

    def number(digits: str) -> float:
        value = float(digits)
        if not np.isfinite(value):
            _refuse(f"has a {what} with a number out of range")
        return value

    try:
        value = json.loads(
            text.decode("utf-8") if isinstance(text, bytes) else text,
            object_pairs_hook=pairs,
            parse_constant=constant,
            parse_float=number,
        )
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:  # ValueError: also a bad encoding
        _refuse(f"has a {what} that is not JSON", error)
    depth, level = 0, [value]
    while level:
        if depth > MAX_DEPTH:
            _refuse(f"has a {what} nested deeper than {MAX_DEPTH} levels")
        depth += 1
        level = [
            member
            for node in level
            if isinstance(node, dict | list)
            for member in (node.values() if isinstance(node, dict) else node)
        ]
    return value


def _little_endian(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return the array as safetensors needs it: C order, little endian."""
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _STORABLE:
        _refuse(f"cannot hold array {name!r}: its dtype is {array.dtype}")
    # Not ascontiguousarray, which turns a 0-d array into a 1-d one.
    return np.asarray(array, dtype=dtype, order="C")


def _array(name: str, tensor: Mapping[str, Any]) -> NDArray[Any]:
    """Return an array of our own: writable, native byte order."""
    code = _DTYPES.get(tensor["dtype"])
    if code is None:
        _refuse(f"has array {name!r} of the unsupported dtype {tensor['dtype']}")
    try:
        view: NDArray[Any] = np.ndarray(tensor["shape"], dtype=code, buffer=tensor["data"])
    except (ValueError, OverflowError, TypeError) as error:
        _refuse(f"has array {name!r} of an impossible shape", error)
    if code == "|b1" and view.size and view.view(np.uint8).max() > 1:
        _refuse(f"has array {name!r} of bool with bytes other than 0 and 1")
    return view.astype(view.dtype.newbyteorder("="), order="C", copy=True)


@contextmanager
def _as_model_file_error(what: str, passing: tuple[type[OSError], ...] = ()) -> Iterator[None]:
    """Turn errors of the file system into ModelFileError, except those that may pass."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        # ValueError: a null character in the path; RuntimeError: a loop of links, up to Python 3.12
        if isinstance(error, (ModelFileError, *passing)):
            raise
        _refuse(f"{what}: {error}", error)


def _refuse(text: str, cause: BaseException | None = None) -> NoReturn:
    raise ModelFileError(text) from cause
