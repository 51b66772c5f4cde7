"""The door: read a file into bags."""

import logging
from os import PathLike
from pathlib import Path
from typing import Any

from bagwise.bags import Bags
from bagwise.io._gather import gather
from bagwise.io._options import Options
from bagwise.io._problems import bad
from bagwise.io._registry import find_format
from bagwise.io._rows import Reading
from bagwise.io._streams import find_source

_logger = logging.getLogger("bagwise")


def open_file(
    path: str | PathLike[str], *, format: str | None, max_bytes: int | None, options: Options
) -> Reading:
    """Find out what a file is and look at its beginning; say what was guessed."""
    if max_bytes is not None and max_bytes < 1:
        msg = f"max_bytes must be at least 1 or None. Got {max_bytes}."
        raise ValueError(msg)
    source = find_source(Path(path), max_bytes)
    found, how = find_format(source, format)
    module = found.load()
    options.require(found.name, module.OPTIONS)
    try:
        reading: Reading = module.open_reading(source, options)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise bad(source.path, f"the file cannot be read ({error.strerror or error}).") from error
    if how is not None:
        reading.guessed = {"format": f"{reading.format} ({how})", **reading.guessed}
    if reading.guessed:
        told = ", ".join(f"{role}: {what}" for role, what in reading.guessed.items())
        _logger.info("%s: guessed %s", source.path, told)
    return reading


def read(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    max_bytes: int | None = None,
    **options: Any,
) -> Bags:
    r"""Read bags from a file or folder of any known format.

    What is not said is guessed, from names; what was guessed is logged once, at level INFO of the
    logger ``bagwise``, and shown by `inspect`.

    Parameters
    ----------
    path : str or path-like
        A file (text formats may be compressed: .gz, .bz2, .xz, or .zip with one file), a store
        ``name.bags/``, or a folder with one file a bag.
    format : str, optional
        One of csv, parquet, arrow, npz, arff, c45, svmlight, mat, store, folder. Default: by
        suffix, or by the first bytes.
    max_bytes : int, optional
        What the contents may take when unpacked. Default: 256 MiB, or 200 times the size of the
        file if that is more.
    bag : str or int, optional
        Column that tells the bag of a row (of a label table: the file). Default: the column
        ``bag``, ``bag_id`` or ``bag_name``.
    label : str, int, sequence of them, or False, optional
        Column with the label of the bag; several: one column of numbers a label; False: none.
        Default: the column ``y``, ``label``, ``labels`` or ``class``, if there is one.
    features : sequence of str or int, optional
        Columns with the features. Default: all that are not used otherwise.
    instance_name, instance_label : str, int or False, optional
        Columns with the names and labels of the instances. Default: ``instance``,
        ``instance_name`` or ``instance_id``; ``instance_label`` or ``instance_y``.
    separator : str, optional
        Between the cells of a text table. Default: comma, semicolon, tab or bar, whichever the
        first line has most of.
    label_separator : str or False, optional
        Between the labels of a list in one cell; lists make a matrix of labels, with their names.
        Default: a semicolon, if any label has one. False: labels are never lists.
    header : bool, optional
        Whether the first line of a text table names the columns. Default: True.
    encoding : str, optional
        Of a text table. Default: UTF-8.
    zero_based : bool, optional
        svmlight: whether the first feature has index 0. Default: False.
    preset : {"trident", "clam", "torchmil"}, optional
        Folder: how it is laid out. Default: found out from the names in it.
    label_table : str, path-like or False, optional
        Folder: a text table with the label of each file. Default: ``labels.csv``, or the only
        table in the folder.
    key : str, optional
        Name of the array inside each ``.h5`` or ``.pt`` file (default ``features``), of the
        variable of a Matlab file, or of the nested column of a table with one row a bag.
    on_empty, on_missing : {"error", "skip"}, optional
        Folder: what to do about files without instances, and about bags of the label table that
        have no file. Default: "error".

    Returns
    -------
    Bags
        With names and labels where the file has them. Stores are memory-mapped.

    Raises
    ------
    BagFileError
        The file is damaged, or not what it should be. The message begins with the file and, where
        there are lines, the line.
    FileNotFoundError
        There is nothing at this path.
    ImportError
        The format needs a package that is not installed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.csv"
    >>> _ = path.write_text("bag,label,x\na,1,0.5\nb,0,1.5\na,1,2.5\n")
    >>> bags = read(path)
    >>> bags.bag_names, bags.labels, bags.sizes
    (array(['a', 'b'], dtype='<U1'), array([1, 0]), array([2, 1]))
    """
    reading = open_file(path, format=format, max_bytes=max_bytes, options=make_options(options))
    return gather(reading)


def make_options(given: dict[str, Any]) -> Options:
    """Check the names of options."""
    known = Options.__dataclass_fields__
    for name in given:
        if name not in known:
            msg = f"read() has no option {name!r}. It has format, max_bytes, {', '.join(known)}."
            raise TypeError(msg)
    return Options(**given)
