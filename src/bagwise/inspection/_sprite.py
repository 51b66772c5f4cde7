"""Many small pictures as one PNG, written with zlib alone."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Larger pictures are reduced: a page shows them at about this size.
MAX_SIDE = 64

#: Height of a picture on the page, in CSS pixels.
PAGE_HEIGHT = 40

_PALETTE, _RGBA = 3, 6  # colour types of the PNG specification


@dataclass(frozen=True)
class Sprite:
    """One PNG with equal cells, filled row by row.

    Parameters
    ----------
    png : bytes
        The file.
    columns, rows : int
        Number of cells.
    width, height : int
        Pixels of a cell.
    is_ink : bool
        Whether the pictures were grey: they are then black with transparent paper, so that a
        background shines through.
    """

    png: bytes
    columns: int
    rows: int
    width: int
    height: int
    is_ink: bool

    @property
    def page_size(self) -> tuple[int, int]:
        """Width and height of a cell on the page, in CSS pixels."""
        return max(1, round(self.width * PAGE_HEIGHT / self.height)), PAGE_HEIGHT


def make_sprite(pictures: Sequence[Any]) -> Sprite:
    """Put pictures into one PNG.

    Parameters
    ----------
    pictures : sequence of arrays of shape (height, width) or (height, width, 3 or 4)
        Grey (0 black, white at the top) or colours; uint8 from 0 to 255, or numbers from 0 to 1.
        Smaller ones are centred in their cell.
    """
    arrays = [_as_bytes(picture) for picture in pictures]
    is_ink = all(array.ndim == 2 for array in arrays)
    cells = [255 - array if is_ink else _as_rgba(array) for array in arrays]
    height = max(cell.shape[0] for cell in cells)
    width = max(cell.shape[1] for cell in cells)
    columns = ceil(sqrt(len(cells)))
    rows = ceil(len(cells) / columns)
    canvas = np.zeros((rows * height, columns * width, *cells[0].shape[2:]), dtype=np.uint8)
    for i, cell in enumerate(cells):
        top = i // columns * height + (height - cell.shape[0]) // 2
        left = i % columns * width + (width - cell.shape[1]) // 2
        canvas[top : top + cell.shape[0], left : left + cell.shape[1]] = cell
    png = _write_ink(canvas) if is_ink else _write_png(canvas, _RGBA, b"")
    return Sprite(png, columns, rows, width, height, is_ink)


def _as_bytes(picture: Any) -> NDArray[np.uint8]:
    array = np.asarray(picture)
    is_grey = array.ndim == 2
    if not (is_grey or (array.ndim == 3 and array.shape[2] in (3, 4))) or 0 in array.shape:
        msg = (
            "A picture must have the shape (height, width) or (height, width, 3 or 4). "
            f"Got {array.shape}."
        )
        raise ValueError(msg)
    if array.dtype != np.uint8:
        array = np.rint(np.clip(np.nan_to_num(array.astype(np.float64)), 0.0, 1.0) * 255)
    return _reduced(array)


def _reduced(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Average blocks of pixels so that no side is longer than `MAX_SIDE`."""
    step = ceil(max(array.shape[:2]) / MAX_SIDE)
    if step > 1:
        for axis in (0, 1):
            starts = np.arange(0, array.shape[axis], step)
            counts = np.diff(np.append(starts, array.shape[axis]))
            shape = [-1 if a == axis else 1 for a in range(array.ndim)]
            array = np.add.reduceat(array.astype(np.float64), starts, axis) / counts.reshape(shape)
        array = np.rint(array)
    return array.astype(np.uint8)


def _as_rgba(array: NDArray[np.uint8]) -> NDArray[np.uint8]:
    if array.ndim == 2:
        array = np.repeat(array[:, :, None], 3, axis=2)
    if array.shape[2] == 3:
        array = np.concatenate([array, np.full_like(array[:, :, :1], 255)], axis=2)
    return array


def _write_ink(ink: NDArray[np.uint8]) -> bytes:
    """Write black ink of varying opacity: a palette of blacks, a byte per pixel."""
    levels, indices = np.unique(ink, return_inverse=True)
    palette = _chunk(b"PLTE", bytes(3 * len(levels))) + _chunk(b"tRNS", levels.tobytes())
    return _write_png(indices.reshape(ink.shape).astype(np.uint8), _PALETTE, palette)


def _write_png(pixels: NDArray[np.uint8], colour_type: int, palette: bytes) -> bytes:
    height, width = pixels.shape[:2]
    lines = pixels.reshape(height, -1)
    unfiltered = np.concatenate([np.zeros((height, 1), np.uint8), lines], axis=1)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0))
        + palette
        + _chunk(b"IDAT", zlib.compress(unfiltered.tobytes(), 9))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
