"""Arrays that live in files: found, described, reopened, read without mapping."""

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bagwise.bags._lost_pages import has_lost_pages, watched
from bagwise.bags._matrix import LazyRows, Matrix, csr_from_parts, parts_of, read_only
from bagwise.exceptions import BagFileError

if TYPE_CHECKING:
    from bagwise.bags._bags import Bags

#: The file behind each map as it was when the map was first seen. It may be written to since, and
#: another file may take over its name.
_first_seen: WeakKeyDictionary[mmap.mmap, os.stat_result] = WeakKeyDictionary()


@dataclass(frozen=True)
class FileSlice:
    """A contiguous array inside a file; small, so it is what a pickle carries.

    The size and time of the file when it was mapped are kept, so that a file which has changed
    since is refused instead of read.
    """

    path: str
    offset: int
    shape: tuple[int, ...]
    dtype: str
    file_size: int
    modified_ns: int

    @classmethod
    def of(cls, array: NDArray[Any]) -> "FileSlice | None":
        """Describe where the array lives, or return None if that is not (only) a file.

        Follows ``base`` to the memory map: views and base-class casts of a map are found too.
        Maps that are private to this process (copy-on-write) may differ from their file.
        """
        mapped = _map_behind(array)
        if mapped is None or mapped.filename is None or mapped.mode == "c":
            return None
        if not array.flags.c_contiguous:
            return None
        buffer = np.frombuffer(mapped._mmap, dtype=np.uint8)
        offset = _mapping_start(mapped) + _address(array) - _address(buffer)
        path = Path(mapped.filename).resolve()
        try:
            stat = path.stat()
        except OSError:  # unlinked since it was mapped: only the content is left
            return None
        seen = _first_seen.setdefault(mapped._mmap, stat)
        if (seen.st_dev, seen.st_ino) != (stat.st_dev, stat.st_ino):
            return None  # replaced since it was mapped
        return cls(str(path), offset, array.shape, array.dtype.str, seen.st_size, seen.st_mtime_ns)

    def open(self) -> NDArray[Any]:
        """Map the array again, read-only."""
        self.check_unchanged()
        mapped: NDArray[Any] = np.memmap(
            self.path, np.dtype(self.dtype), "r", self.offset, self.shape, "C"
        )
        array = np.asarray(mapped)
        FileSlice.of(array)  # notes which file it is
        return array

    def read_rows(self, start: int, stop: int) -> NDArray[Any]:
        """Read rows into memory of their own, leaving no pages of the file mapped."""
        dtype, row_shape = np.dtype(self.dtype), self.shape[1:]
        row_items = int(np.prod(row_shape))
        rows = np.fromfile(
            self.path,
            dtype,
            count=(stop - start) * row_items,
            offset=self.offset + start * row_items * dtype.itemsize,
        )
        if rows.size != (stop - start) * row_items:
            msg = f"{self.path} ended early: rows {start} to {stop} are not all there."
            raise BagFileError(msg)
        return rows.reshape(-1, *row_shape)

    def check_unchanged(self) -> None:
        """Raise if the file is gone or another than the one described."""
        try:
            stat = os.stat(self.path)  # noqa: PTH116  # asked for each chunk
        except OSError as error:
            msg = f"The bags were memory-mapped from {self.path}, which cannot be opened: {error}."
            raise BagFileError(msg) from error
        if (stat.st_size, stat.st_mtime_ns) != (self.file_size, self.modified_ns):
            msg = (
                f"The bags were memory-mapped from {self.path}, which has changed since. "
                "Open it anew."
            )
            raise BagFileError(msg)


def files_of(matrix: Matrix) -> list[FileSlice]:
    """Return the files that hold an instance matrix, or what lazy rows are made of; often none."""
    return [found for found in map(FileSlice.of, parts_of(matrix)) if found is not None]


def refuse_changed(files: Sequence[FileSlice]) -> None:
    """Raise if one of the files is gone or has changed since it was mapped."""
    for file in files:
        file.check_unchanged()


@contextmanager
def unchanged_files(bags: "Bags") -> Iterator[None]:
    """Refuse bags whose files have changed since they were mapped, or change inside of the block.

    Whatever is made of the bags in the block is then of one state of the files. An error in the
    block gives way to this one, as it may have come of the change. On Linux the process answers the
    signal (SIGBUS) of files that get too short for their maps, from the first map on.

    Parameters
    ----------
    bags : Bags
        In memory, memory-mapped or lazy, or a selection. A file that was replaced or deleted before
        does not matter: the map still has what was opened.
    """
    base = bags._held._base
    files = files_of(base)

    def look() -> None:
        refuse_changed(files)
        refuse_lost(base)

    try:
        with watched([mapped._mmap for mapped in _maps_behind(base)]):
            look()  # not before, when others that read the maps may have lost pages
            yield
    except BagFileError:
        raise
    except Exception:
        look()
        raise
    look()


def refuse_lost(matrix: Matrix) -> None:
    """Raise if pages of a map behind an instance matrix were lost, whatever its file is now."""
    for mapped in _maps_behind(matrix):
        if has_lost_pages(mapped._mmap) or _is_cut(mapped):
            msg = (
                f"The bags were memory-mapped from {mapped.filename}, which has changed since, or "
                "cannot be read any more. Open it anew."
            )
            raise BagFileError(msg)


def _is_cut(mapped: Any) -> bool:
    """Tell whether the file that was mapped, whatever its name is now, is too short for the map."""
    try:
        return bool(mapped._mmap.size() < _mapping_start(mapped) + len(mapped._mmap))
    except (OSError, ValueError):  # no file that can be asked
        return False


def _mapping_start(mapped: Any) -> int:
    """Return where in its file a map begins: numpy maps from the last place that it may."""
    return int(mapped.offset - mapped.offset % mmap.ALLOCATIONGRANULARITY)


def _maps_behind(matrix: Matrix) -> list[Any]:
    """Return the ``np.memmap`` behind each array of a matrix that has one."""
    return [mapped for mapped in map(_map_behind, parts_of(matrix)) if mapped is not None]


def _map_behind(array: NDArray[Any]) -> Any:
    """Return the ``np.memmap`` that an array is a view of, or None.

    What is computed from a map is of its class, too, but has no map.
    """
    mapped: Any = array
    while mapped is not None:
        if isinstance(mapped, np.memmap) and mapped._mmap is not None:  # type: ignore[attr-defined]
            break
        mapped = getattr(mapped, "base", None)
    return mapped


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def pack_array(array: NDArray[Any] | None) -> Any:
    """Return what a pickle carries of an array: a file slice if it lives in a file."""
    return None if array is None else FileSlice.of(array) or array


def unpack_array(packed: Any) -> Any:
    """Undo `pack_array`; the array is read-only, which a pickle forgets."""
    if packed is None:
        return None
    return read_only(packed.open() if isinstance(packed, FileSlice) else packed)


def pack_matrix(matrix: Matrix) -> tuple[Any, ...]:
    """Return what a pickle carries of an instance matrix: file slices where it lives in files."""
    refuse_lost(matrix)
    if isinstance(matrix, LazyRows):
        return pack_matrix(matrix.inner), replace(matrix, inner=None)
    if isinstance(matrix, np.ndarray):
        return (pack_array(matrix),)
    return (*map(pack_array, (matrix.data, matrix.indices, matrix.indptr)), matrix.shape)


def unpack_matrix(packed: tuple[Any, ...]) -> Matrix:
    """Undo `pack_matrix`."""
    if len(packed) == 2:
        return replace(packed[1], inner=unpack_matrix(packed[0]))
    if len(packed) == 1:
        return unpack_array(packed[0])
    data, indices, indptr = map(unpack_array, packed[:3])
    return csr_from_parts(data, indices, indptr, packed[3])
