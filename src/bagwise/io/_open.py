"""A file of bags that has been looked at, and what can be done with it."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from bagwise.bags import Bags
from bagwise.exceptions import InvalidBagsError
from bagwise.io._describe import Description, describe
from bagwise.io._gather import gather
from bagwise.io._options import Options
from bagwise.io._pack import write_store
from bagwise.io._problems import bad
from bagwise.io._registry import find_format
from bagwise.io._rows import Reading
from bagwise.io._streams import find_source
from bagwise.io._unlabelled import without_unlabelled

_logger = logging.getLogger("bagwise")

#: Names of all that a caller may say about a file, as keywords of `open_bags` and `read`.
READ_OPTIONS = ("format", "max_bytes", *Options.__dataclass_fields__)


class BagFile:
    r"""A file or folder whose format is known and whose beginning has been looked at.

    `open_bags` makes it. The contents are read anew by each of its methods. All of them raise
    `BagFileError`, which begins with the file, if the contents are not bags.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.csv"
    >>> _ = path.write_text("bag,label,x\na,1,0.5\nb,0,1.5\n")
    >>> file = open_bags(path)
    >>> file.format, file.guessed["label"]
    ('csv', "column 'label'")
    >>> file.read()
    Bags(2 bags, 2 instances, 1 feature, float64; 1 instance per bag)
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def __repr__(self) -> str:
        return f"BagFile({str(self.path)!r}, format={self.format!r})"

    @property
    def path(self) -> Path:
        """The file, store or folder."""
        return self._reading.source.path

    @property
    def format(self) -> str:
        """Its format, as `read` names them."""
        return self._reading.format

    @property
    def compression(self) -> str | None:
        """One of gzip, bzip2, xz and zip, or None."""
        return self._reading.source.compression

    @property
    def n_bytes(self) -> int:
        """Size on the disk (of a folder: of the files in it)."""
        return self._reading.source.n_bytes

    @property
    def guessed(self) -> dict[str, str]:
        """What had to be guessed, by role: format, separator, bag, label, and so on."""
        return dict(self._reading.guessed)

    def read(self) -> Bags:
        """Read the bags into memory; stores are memory-mapped."""
        with self._naming_the_file():
            return gather(self._reading)

    def describe(self) -> Description:
        """Look through the contents without keeping the instances."""
        with self._naming_the_file():
            return describe(self._reading)

    def pack(
        self,
        target: str | PathLike[str],
        *,
        overwrite: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> Bags:
        """Write the bags into a store, without loading all of them.

        Parameters
        ----------
        target : str or path-like
            The store to make.
        overwrite : bool
            Whether a store that is there may be replaced.
        progress : callable, optional
            Called after each block with the number of instances read so far. The count begins
            again if a bag turns out not to be in one piece, as the file is then read again.

        Returns
        -------
        Bags
            The store, memory-mapped.
        """
        with self._naming_the_file():
            write_store(self._reading, target, overwrite=overwrite, progress=progress)
        return Bags.open(target)

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except InvalidBagsError as error:
            raise bad(self.path, str(error)) from error


def open_bags(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    max_bytes: int | None = None,
    **options: Any,
) -> BagFile:
    """Find out what a file or folder is; what was guessed is logged as `read` does.

    Use it to look at the format and the guesses before reading, or to follow `BagFile.pack`.

    Parameters
    ----------
    path : str or path-like
        The file, store or folder.
    format, max_bytes, **options
        As for `read`; their names are in ``bagwise.io.READ_OPTIONS``.

    Returns
    -------
    BagFile
    """
    checked = _make_options(options)
    if max_bytes is not None and max_bytes < 1:
        msg = f"max_bytes must be at least 1 or None. Got {max_bytes}."
        raise ValueError(msg)
    source = find_source(Path(path), max_bytes)
    found, how = find_format(source, format)
    module = found.load()
    checked.require(found.name, module.OPTIONS)
    try:
        reading: Reading = module.open_reading(source, checked)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise bad(source.path, f"the file cannot be read ({error.strerror or error}).") from error
    reading.allow_nan = bool(checked.allow_nan)
    if checked.on_missing_label == "drop":
        reading = without_unlabelled(reading)
    if how is not None:
        reading.guessed = {"format": f"{reading.format} ({how})", **reading.guessed}
    if reading.guessed:
        told = ", ".join(f"{role}: {what}" for role, what in reading.guessed.items())
        _logger.info("%s: guessed %s", source.path, told)
    return BagFile(reading)


def _make_options(given: dict[str, Any]) -> Options:
    for name in given:
        if name not in READ_OPTIONS:
            msg = f"read() has no option {name!r}. It has {', '.join(READ_OPTIONS)}."
            raise TypeError(msg)
    return Options(**given)
