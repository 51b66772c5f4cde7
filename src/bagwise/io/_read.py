"""The doors: a file into bags, into a store, into a description of what is inside."""

from os import PathLike
from typing import Any

from bagwise.bags import Bags
from bagwise.io._describe import Description
from bagwise.io._open import open_bags


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
    on_missing_label : {"error", "drop"}, optional
        What to do about bags without a label: an empty cell, a null, NaN. "drop" leaves them out,
        also where labels are lists. A bag that has its label in some rows only is always an error.
        Default: "error".
    missing_words : bool, optional
        Text tables, label tables and svmlight: whether ``?``, ``NA``, ``N/A``, ``nan``, ``null``
        and ``none``, in small letters or capitals, mean that a label is missing, as an empty cell
        does. False: they are labels. In a list of several labels they always are. Default: True.
    allow_nan : bool, optional
        Whether features may be missing: an empty cell, a null, one of these words. They are NaN
        then, as `bagwise.Bags` says. Default: False.

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
    return open_bags(path, format=format, max_bytes=max_bytes, **options).read()


def pack(
    source: str | PathLike[str],
    target: str | PathLike[str],
    *,
    overwrite: bool = False,
    format: str | None = None,
    max_bytes: int | None = None,
    **options: Any,
) -> Bags:
    r"""Turn a file or folder of any known format into a store, without loading all of it.

    Memory is needed for a block of rows, for the largest bag, and for names and labels. If the rows
    of a bag are not together, the rows go through a temporary file beside the target first.

    Parameters
    ----------
    source : str or path-like
        What to read.
    target : str or path-like
        The store to make; by convention its name ends in ``.bags``. It appears under its name only
        when it is complete.
    overwrite : bool
        Whether a store that is there may be replaced.
    format, max_bytes, **options
        As for `read`.

    Returns
    -------
    Bags
        The store, memory-mapped.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "toy.csv").write_text("bag,label,x\na,1,0.5\nb,0,1.5\n")
    >>> pack(folder / "toy.csv", folder / "toy.bags")
    Bags(2 bags, 2 instances, 1 feature, float64, memory-mapped; 1 instance per bag)
    """
    file = open_bags(source, format=format, max_bytes=max_bytes, **options)
    return file.pack(target, overwrite=overwrite)


def inspect(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    max_bytes: int | None = None,
    **options: Any,
) -> Description:
    r"""Look through a file or folder: format, guesses, counts, sizes and labels.

    The whole file is read, so what `inspect` accepts `read` accepts; instances are not kept.

    Parameters
    ----------
    path : str or path-like
        The file, store or folder.
    format, max_bytes, **options
        As for `read`.

    Returns
    -------
    Description

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.csv"
    >>> _ = path.write_text("bag,label,x\na,1,0.5\nb,0,1.5\n")
    >>> found = inspect(path)
    >>> found.guessed["label"], found.label_counts
    ("column 'label'", {'0': 1, '1': 1})
    """
    return open_bags(path, format=format, max_bytes=max_bytes, **options).describe()
