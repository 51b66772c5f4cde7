"""The bytes of a file, decompressed on the way, within limits."""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from bagwise.exceptions import BagFileError
from bagwise.io._problems import bad

COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip"}

_FREE_BYTES = 256 * 2**20  # what any file may grow to, whatever its size
_MAX_RATIO = 200
_BUFFER = 2**20

_DAMAGE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
_ZIP_DAMAGE = (*_DAMAGE, RuntimeError, KeyError)


@dataclass(frozen=True)
class Source:
    """A file, and how much its contents may grow to when they are unpacked.

    Attributes
    ----------
    path : Path
        The file or folder.
    suffix : str
        Lower-case suffix of the data inside, without that of a compression.
    compression : str or None
        gzip, bzip2, xz or zip.
    max_bytes : int or None
        What the user allows; None: 256 MiB, or 200 times the size of the file if that is more.
    """

    path: Path
    suffix: str
    compression: str | None
    max_bytes: int | None

    @property
    def limit(self) -> int:
        """Bytes that the contents may have."""
        if self.max_bytes is not None:
            return self.max_bytes
        return max(_FREE_BYTES, _MAX_RATIO * self.path.stat().st_size)

    @property
    def n_bytes(self) -> int:
        """Size on the disk; of a folder, that of the files in it."""
        is_folder = self.path.is_dir()
        files = [p for p in self.path.rglob("*") if p.is_file()] if is_folder else [self.path]
        return sum(file.stat().st_size for file in files)

    def admit(self, n_bytes: int, what: str = "the contents") -> None:
        """Refuse contents larger than the limit."""
        if n_bytes > self.limit:
            raise bad(self.path, self._too_large(f"{what} would take {n_bytes:,} bytes"))

    def _too_large(self, what: str) -> str:
        return (
            f"{what}, and {self.limit:,} are allowed for a file of "
            f"{self.path.stat().st_size:,} bytes. If you trust the file, allow more with max_bytes."
        )

    def open(self) -> BinaryIO:
        """Open the contents for reading, from the beginning."""
        try:
            if self.compression is None:
                return self.path.open("rb", buffering=_BUFFER)
            inner = _OPENERS[self.compression](self.path)
        except BagFileError:
            raise
        except _ZIP_DAMAGE as error:
            raise self._damaged(error) from error
        return io.BufferedReader(_Unpacked(self, inner), _BUFFER)

    def open_text(self, encoding: str = "utf-8-sig") -> IO[str]:
        """Open the contents as text; line ends are left as they are."""
        return io.TextIOWrapper(self.open(), encoding=encoding, newline="")

    def _damaged(self, error: Exception) -> BagFileError:
        kind = self.compression or "file"
        return bad(self.path, f"the {kind} data are damaged or cut off ({error}).")


class _Unpacked(io.RawIOBase):
    """A decompressor that counts what comes out of it."""

    def __init__(self, source: Source, inner: IO[bytes]) -> None:
        self._source, self._inner, self._count = source, inner, 0
        self._limit = source.limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._inner.read(len(buffer))
        except _ZIP_DAMAGE as error:
            raise self._source._damaged(error) from error
        self._count += len(data)
        if self._count > self._limit:
            msg = self._source._too_large(f"the contents unpack to more than {self._limit:,} bytes")
            raise bad(self._source.path, msg)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
        super().close()


def _open_zip(path: Path) -> IO[bytes]:
    archive = zipfile.ZipFile(path)
    return archive.open(only_member(path, archive))


_OPENERS: dict[str, Callable[[Path], Any]] = {
    "gzip": gzip.GzipFile,
    "bzip2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
    "zip": _open_zip,
}


def only_member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return the one file of an archive. It is streamed: nothing is written to its name."""
    members = [m for m in archive.infolist() if not m.is_dir() and "__MACOSX" not in m.filename]
    if len(members) != 1:
        names = ", ".join(m.filename for m in members[:5]) or "none"
        raise bad(path, f"a zip archive with one file is needed; it has {len(members)} ({names}).")
    if not is_inside(members[0].filename):
        raise bad(path, f"the member {members[0].filename!r} leads out of the archive.")
    return members[0]


def is_inside(name: str) -> bool:
    """Tell whether a relative name stays below the folder that it is relative to."""
    parts = name.replace("\\", "/").split("/")
    absolute = parts[0] == "" or ":" in parts[0]
    return bool(name) and not absolute and ".." not in parts and "\0" not in name


def find_source(path: Path, max_bytes: int | None) -> Source:
    """Look at the name of a file: its compression and the suffix of what is inside."""
    if not path.exists():
        msg = f"{path} does not exist."
        raise FileNotFoundError(msg)
    outer = path.suffix.lower()
    compression = None if path.is_dir() else COMPRESSIONS.get(outer)
    if compression is None:
        return Source(path, outer, None, max_bytes)
    inner = path.with_suffix("").suffix
    if compression == "zip":
        try:
            with zipfile.ZipFile(path) as archive:
                inner = PurePosixPath(only_member(path, archive).filename).suffix
        except _ZIP_DAMAGE as error:
            if isinstance(error, BagFileError):
                raise
            raise bad(path, f"the zip archive is damaged or cut off ({error}).") from error
    return Source(path, inner.lower(), compression, max_bytes)
