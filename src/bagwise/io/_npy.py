"""The ``.npy`` layout, read with a look at the header before anything is allocated."""

import math
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from bagwise.io._problems import bad, foreign

_MAX_HEADER = 10_000
_CHUNK = 2**22


def read_npy(where: object, file: IO[bytes], n_bytes: int, *, kinds: str = "biufU") -> NDArray[Any]:
    """Read an array from a file of ``n_bytes`` bytes.

    Objects (pickles) are refused, and so is a header whose shape does not fit the size.
    """
    with foreign(where, "this is not a .npy array that can be read"):
        major, _ = npy_format.read_magic(file)
        read_header = {
            1: npy_format.read_array_header_1_0,
            2: npy_format.read_array_header_2_0,
        }.get(major)
        if read_header is None:
            raise bad(where, f".npy version {major} is not known.")
        shape, fortran, dtype = read_header(file, max_header_size=_MAX_HEADER)
        if dtype.kind not in kinds or dtype.hasobject or dtype.names is not None:
            raise bad(where, f"numbers or text are needed. Got dtype {dtype}.")
        if any(not isinstance(n, int) or n < 0 for n in shape):
            raise bad(where, f"the shape {shape} is impossible.")
        size = math.prod(shape) * dtype.itemsize
        header = n_bytes - size
        if dtype.itemsize == 0 or header < 0 or header > _MAX_HEADER + 16:
            raise bad(where, f"the header promises shape {shape}, the file has {n_bytes} bytes.")
        data = _read_exactly(where, file, size)
        if file.read(1):
            raise bad(where, f"there is more than the array of shape {shape}.")
        array = np.frombuffer(data, dtype)
        return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def _read_exactly(where: object, file: IO[bytes], size: int) -> bytearray:
    """Read into one buffer that grows with what is really there."""
    data = bytearray()
    while len(data) < size:
        piece = file.read(min(_CHUNK, size - len(data)))
        if not piece:
            raise bad(where, f"the data end after {len(data)} of {size} bytes.")
        data += piece
    return data
