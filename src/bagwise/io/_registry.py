"""The formats that can be read: by name, by suffix, by their first bytes."""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from bagwise.io._problems import bad
from bagwise.io._streams import COMPRESSIONS, Source

_SNIFFED_BYTES = 4096


@dataclass(frozen=True)
class Format:
    """A format: what its files are called, how they begin, and the module that reads them.

    The module has ``OPTIONS`` (names of the options that it uses) and ``open_reading``.
    """

    name: str
    what: str
    suffixes: tuple[str, ...]
    module: str
    sniff: Callable[[bytes], bool] | None = None
    is_text: bool = False

    def load(self) -> ModuleType:
        """Import the reader."""
        return import_module(f"bagwise.io.{self.module}")


FORMATS = {
    one.name: one
    for one in (
        Format("csv", "text table, one row an instance", (".csv", ".tsv", ".tab"), "_csv",
               is_text=True),
        Format("parquet", "Parquet table", (".parquet", ".pq"), "_parquet",
               lambda b: b.startswith(b"PAR1")),
        Format("arrow", "Arrow IPC or Feather table", (".arrow", ".feather", ".ipc"), "_ipc",
               lambda b: b.startswith(b"ARROW1")),
        Format("npz", "NumPy archive with X and offsets", (".npz",), "_npz",
               lambda b: b.startswith(b"PK\x03\x04")),
        Format("arff", "Weka's ARFF, relational or flat", (".arff",), "_arff",
               lambda b: b"@relation" in b.lower(), is_text=True),
        Format("c45", "C4.5 data", (".data",), "_c45", is_text=True),
        Format("svmlight", "svmlight with qid:BAG", (".svm", ".svmlight", ".libsvm"), "_svmlight",
               lambda b: b" qid:" in b, is_text=True),
        Format("mat", "Matlab, versions 5 to 7", (".mat",), "_mat",
               lambda b: b.startswith(b"MATLAB 5.0") or b[126:128] in (b"IM", b"MI")),
        Format("store", "store of bags", (".bags",), "_stored"),
        Format("folder", "folder with one file a bag (.npy, .h5, .pt)", (), "_folder"),
    )
}  # fmt: skip


def find_format(source: Source, name: str | None) -> tuple[Format, str | None]:
    """Return the format of a file, and how it was found out if it had to be."""
    if name is not None:
        if name not in FORMATS:
            msg = f"format must be one of {', '.join(FORMATS)}. Got {name!r}."
            raise ValueError(msg)
        found, guess = FORMATS[name], None
    elif source.path.is_dir():
        is_store = (source.path / "meta.json").exists()
        found = FORMATS["store" if is_store else "folder"]
        guess = "meta.json is there" if is_store else "a folder"
    else:
        found, guess = _by_name_or_content(source)
    if source.path.is_dir() != (found.name in ("store", "folder")):
        kind = "folder" if source.path.is_dir() else "file"
        raise bad(source.path, f"this is a {kind}, which the format {found.name} is not.")
    if source.compression is not None and not found.is_text:
        msg = f"{found.name} inside {source.compression} is not read: uncompress it first."
        raise bad(source.path, msg)
    return found, guess


def _by_name_or_content(source: Source) -> tuple[Format, str]:
    for one in FORMATS.values():
        if source.suffix in one.suffixes:
            return one, f"the suffix {source.suffix}"
    try:
        with source.open() as file:
            start = file.read(_SNIFFED_BYTES)
    except OSError as error:
        raise bad(source.path, f"the file cannot be read ({error}).") from error
    for one in FORMATS.values():
        if one.sniff is not None and one.sniff(start):
            if one.name == "npz" and not _looks_like_npz(source):
                continue
            return one, "the first bytes"
    known = "; ".join(f"{f.name} ({' '.join(f.suffixes) or f.what})" for f in FORMATS.values())
    msg = (
        f"the suffix {source.suffix!r} belongs to no format that is read. These are: {known}. "
        f"Text may be compressed ({' '.join(COMPRESSIONS)}). format= says what a file is."
    )
    raise bad(source.path, msg)


def _looks_like_npz(source: Source) -> bool:
    try:
        with zipfile.ZipFile(source.path) as archive:
            return any(name.endswith(".npy") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return False
