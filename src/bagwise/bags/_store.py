"""The store ``name.bags/``: a folder of plain ``.npy`` files that opens memory-mapped.

``meta.json`` says what is inside. Dense instances are ``instances.npy``; sparse ones are
``data.npy``, ``indices.npy`` and ``indptr.npy``. ``offsets.npy`` has the bags. Names and labels,
where there are any, have a file each. All of it is readable with numpy alone.

The writer appends, so it needs memory for a block of rows and for what is known about each bag
and instance, not for the instances. It works in a folder of another name, which is renamed when
everything is on the disk: a store is whole or not there.
"""

import ast
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Integers
from bagwise._files import place_folder
from bagwise.bags import _build
from bagwise.bags._bags import Bags
from bagwise.bags._files import pack_array
from bagwise.bags._matrix import Matrix, as_matrix, csr_from_parts, read_only
from bagwise.bags._source import chunk_grid
from bagwise.exceptions import BagFileError, InvalidBagsError

_FORMAT = 1
_DENSE_FILES = ("instances",)
_CSR_FILES = ("data", "indices", "indptr")
_PER_BAG = ("bag_names", "labels")
_PER_INSTANCE = ("instance_names", "instance_labels")
_COLUMN_NAMES = ("feature_names", "label_names")
_MAX_INT32 = 2**31 - 1
_MAX_META_BYTES = 2**20
_MAX_HEADER_BYTES = 2**12
_DTYPE = re.compile(r"[<>|][biufU]\d+")


class StoreWriter:
    """Write a store bag by bag; use it in a ``with`` statement.

    Parameters
    ----------
    path : str or path-like
        The folder to make.
    overwrite : bool
        Whether a store that is there may be replaced.
    allow_nan : bool
        Whether values that are appended may be missing, as NaN. Bags that allow it may always be
        added.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with StoreWriter(f"{folder}/toy.bags") as writer:
    ...     writer.append(np.zeros((3, 2)), name="first")
    ...     writer.append(np.ones((1, 2)), name="second")
    >>> Bags.open(f"{folder}/toy.bags")
    Bags(2 bags, 4 instances, 2 features, float64, memory-mapped; 1 to 3 instances per bag)
    """

    def __init__(
        self, path: str | os.PathLike[str], *, overwrite: bool = False, allow_nan: bool = False
    ) -> None:
        self.path = Path(path)
        self.overwrite = overwrite
        self.allow_nan = allow_nan

    def __enter__(self) -> Self:
        self._check_target()
        self._folder = self.path.with_name(f".{self.path.name}.partial-{secrets.token_hex(4)}")
        try:
            self._folder.mkdir()
        except OSError as error:
            msg = f"{self.path} cannot be made: {error.strerror or error}."
            raise BagFileError(msg) from error
        self._files: dict[str, _NpyAppender] = {}
        self._sizes: list[Integers] = []
        self._aligned: dict[str, list[NDArray[Any]]] = {}
        self._n_pieces = 0
        self._n_bags = 0
        self._n_features: int | None = None
        self._dtype: np.dtype[Any] | None = None
        self._is_sparse = False
        self._n_stored = 0  # non-zeros so far, if sparse
        self._allow_nan = self.allow_nan
        self._column_names: dict[str, NDArray[Any]] = {}
        return self

    def append(
        self,
        instances: Any,
        *,
        name: str | None = None,
        label: Any = None,
        instance_names: ArrayLike | None = None,
        instance_labels: ArrayLike | None = None,
    ) -> None:
        """Add one bag. What is known about the first bag must be known about all."""
        matrix = as_matrix(instances, what=f"bag {self._n_bags}")
        names = None if name is None else np.array([name], dtype=np.str_)
        if matrix.shape[0] == 0:
            bag = _build.describe_bag(0, names, self._n_bags)
            msg = f"Every bag needs at least one instance; {bag} has none."
            raise InvalidBagsError(msg)
        offsets = np.array([0, matrix.shape[0]])
        _build.check_finite(matrix, offsets, names, first=self._n_bags, allow_nan=self.allow_nan)
        self.extend(
            Bags(
                matrix,
                offsets,
                bag_names=names,
                labels=None if label is None else [label],
                instance_names=instance_names,
                instance_labels=instance_labels,
                allow_nan=self.allow_nan,
            )
        )

    def extend(self, bags: Bags) -> None:
        """Add bags, a block of them at a time."""
        self._check_alike(bags)
        self._sizes.append(bags.sizes)
        for what in (*_PER_BAG, *_PER_INSTANCE):
            values = getattr(bags, what)
            if values is not None:
                self._aligned.setdefault(what, []).append(values)
        self._allow_nan |= bags.allow_nan
        self._n_pieces += 1
        self._n_bags += len(bags)
        grid = chunk_grid(bags)
        for first, last in pairwise(grid):
            self._append_rows(bags[first:last].instances)

    def annotate(
        self,
        *,
        labels: ArrayLike | None = None,
        label_names: ArrayLike | None = None,
        instance_names: ArrayLike | None = None,
        instance_labels: ArrayLike | None = None,
    ) -> None:
        """Say about all bags so far what was not known when they came, or replace what was said.

        Parameters
        ----------
        labels : array-like of shape (n_bags,) or (n_bags, n_labels), optional
            Labels of the bags.
        label_names : array-like of shape (n_labels,), optional
            Names of the columns of ``labels``, which must be given too.
        instance_names, instance_labels : array-like of shape (n_instances,), optional
            Names and labels of the instances.
        """
        self._need_bags()
        bag_ends = np.cumsum([len(sizes) for sizes in self._sizes])
        row_ends = np.cumsum([sizes.sum() for sizes in self._sizes])
        n_rows = int(row_ends[-1])
        y = _build.as_labels("labels", labels, self._n_bags)
        n_labels = 0 if y is None or y.ndim == 1 else y.shape[1]
        columns = _build.as_names("label_names", label_names, n_labels)
        given = (
            ("labels", y, bag_ends),
            ("instance_names", _build.as_names("instance_names", instance_names, n_rows), row_ends),
            (
                "instance_labels",
                _build.as_labels("instance_labels", instance_labels, n_rows),
                row_ends,
            ),
        )
        for what, values, ends in given:
            if values is not None:
                self._aligned[what] = np.split(values, ends[:-1])
        if y is not None:
            self._column_names.pop("label_names", None)
        if columns is not None:
            self._column_names["label_names"] = columns

    def _need_bags(self) -> None:
        if not self._n_bags:
            msg = f"{self.path}: a store needs at least one bag."
            raise InvalidBagsError(msg)

    def _check_alike(self, bags: Bags) -> None:
        if self._n_features is None:
            self._n_features, self._dtype = bags.n_features, bags.dtype
            self._is_sparse = bags.is_sparse
            names = {what: getattr(bags, what) for what in _COLUMN_NAMES}
            self._column_names = {what: n for what, n in names.items() if n is not None}
            for name in _CSR_FILES if self._is_sparse else _DENSE_FILES:
                self._files[name] = _NpyAppender(self._folder / f"{name}.npy")
            if self._is_sparse:
                self._files["indptr"].append(np.zeros(1, dtype=np.int64))
        if bags.n_features != self._n_features:
            msg = (
                f"Bags must have one number of features: bag {self._n_bags} has "
                f"{bags.n_features}, those before it {self._n_features}."
            )
            raise InvalidBagsError(msg)
        if np.result_type(bags.dtype, self._dtype) != self._dtype:
            msg = (
                f"A store has the type of its first bag, {self._dtype}: bag {self._n_bags} is "
                f"{bags.dtype}, which does not fit. Convert it first."
            )
            raise InvalidBagsError(msg)
        for what in _COLUMN_NAMES:  # kept where all agree, as `Bags.concatenate` does
            if _build.common_names([self._column_names.get(what), getattr(bags, what)]) is None:
                self._column_names.pop(what, None)

    def _append_rows(self, rows: Matrix) -> None:
        assert self._dtype is not None
        if not self._is_sparse:
            dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
            self._files["instances"].append(dense.astype(self._dtype, copy=False))
            return
        sparse = _as_csr_rows(rows)
        self._files["data"].append(sparse.data.astype(self._dtype, copy=False))
        self._files["indices"].append(sparse.indices.astype(self._index_dtype(0), copy=False))
        self._files["indptr"].append(sparse.indptr[1:].astype(np.int64) + self._n_stored)
        self._n_stored += int(sparse.indptr[-1])

    def _index_dtype(self, n_stored: int) -> type[np.signedinteger[Any]]:
        assert self._n_features is not None
        return np.int32 if max(self._n_features, n_stored) <= _MAX_INT32 else np.int64

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            for file in self._files.values():
                file.close()
            if kind is None:
                self._finish()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)  # gone already if it was renamed

    def _finish(self) -> None:
        self._need_bags()
        for name in ("indices", "indptr") if self._is_sparse else ():
            # One type for both: scipy would copy them into memory to make it so.
            _recast(self._folder / f"{name}.npy", np.dtype(self._index_dtype(self._n_stored)))
        sizes = np.concatenate(self._sizes)
        aligned: dict[str, NDArray[Any]] = {}
        for what, pieces in self._aligned.items():
            if len(pieces) != self._n_pieces:
                msg = f"{self.path}: {what} must be given for all bags or for none."
                raise InvalidBagsError(msg)
            aligned[what] = np.concatenate(pieces)
        aligned.update(self._column_names)
        meta = {
            "format": _FORMAT,
            "kind": "bagwise.bags",
            "layout": "csr" if self._is_sparse else "dense",
            "n_bags": len(sizes),
            "n_instances": int(sizes.sum()),
            "n_features": self._n_features,
            "aligned": sorted(aligned),
            "allow_nan": self._allow_nan,
        }
        for name, array in {"offsets": _build.offsets_of(sizes), **aligned}.items():
            _write(self._folder / f"{name}.npy", partial(np.save, arr=array))
        text = json.dumps(meta, indent=1).encode()
        _write(self._folder / "meta.json", lambda file: file.write(text))
        self._check_target()  # again: it may have appeared meanwhile
        place_folder(self._folder, self.path)

    def _check_target(self) -> None:
        """Raise unless the folder may be made, or replaced."""
        if not os.path.lexists(self.path):
            return
        if not self.overwrite:
            msg = f"{self.path} exists. Choose another name or pass overwrite=True."
            raise BagFileError(msg)
        try:
            _read_kind(self.path)
        except BagFileError as error:
            msg = f"{self.path} exists and is not a store of bags: it is left alone."
            raise BagFileError(msg) from error


def _as_csr_rows(rows: Matrix) -> Any:
    """Return rows as CSR, also if this block happens to be dense."""
    from scipy import sparse

    return rows if not isinstance(rows, np.ndarray) else as_matrix(sparse.csr_array(rows))


class _NpyAppender:
    """A ``.npy`` file whose first dimension grows; the header is written again at the end.

    numpy pads the header so that it can be rewritten in place with any number of rows.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._n_rows = 0
        self._like: NDArray[Any] | None = None

    def append(self, rows: NDArray[Any]) -> None:
        if self._like is None:
            self._like = rows[:0]
            self._write_header()
        np.ascontiguousarray(rows).tofile(self._file)
        self._n_rows += len(rows)

    def _write_header(self) -> None:
        assert self._like is not None
        header = {
            "shape": (self._n_rows, *self._like.shape[1:]),
            "fortran_order": False,
            "descr": np.lib.format.dtype_to_descr(self._like.dtype),
        }
        np.lib.format.write_array_header_1_0(self._file, header)
        self._file.flush()  # tofile writes to the descriptor behind the buffer

    def close(self) -> None:
        if self._like is not None:
            self._file.seek(0)
            self._write_header()
            os.fsync(self._file.fileno())
        self._file.close()


def _recast(path: Path, dtype: np.dtype[Any]) -> None:
    """Rewrite a vector in another type, a block at a time."""
    vector = np.load(path, mmap_mode="r")
    if vector.dtype == dtype:
        return
    appender = _NpyAppender(path.with_suffix(".recast"))
    for start in range(0, max(1, len(vector)), 2**20):
        appender.append(vector[start : start + 2**20].astype(dtype))
    appender.close()
    path.with_suffix(".recast").replace(path)


def _write(path: Path, write: Callable[[BinaryIO], object]) -> None:
    with path.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


# ------------------------------------------------------------------------------------- opening


def open_store(path: str | os.PathLike[str]) -> tuple[Any, ...]:
    """Map the files of a store; returns the parts of a `Bags` in the order of its slots' maker."""
    folder = Path(path)
    meta = _read_meta(folder)
    files = _CSR_FILES if meta["layout"] == "csr" else _DENSE_FILES
    parts = [_map(folder, name) for name in files]
    n_instances, n_features = meta["n_instances"], meta["n_features"]
    base = _as_csr(folder, parts, meta) if len(parts) > 1 else _as_dense(folder, parts[0], meta)
    try:
        offsets = _build.check_offsets(_map(folder, "offsets"), n_instances)
        n_bags = len(offsets) - 1
        if n_bags != meta["n_bags"]:
            msg = f"meta.json says {meta['n_bags']} bags, offsets.npy has {n_bags}."
            raise InvalidBagsError(msg)
        aligned = {name: _map_aligned(folder, name) for name in meta["aligned"]}
        labels = _build.as_labels("labels", aligned.get("labels"), n_bags)
        n_labels = 0 if labels is None or labels.ndim == 1 else labels.shape[1]
        return (
            base,
            offsets[:-1],
            offsets[1:],
            _build.as_names("bag_names", aligned.get("bag_names"), n_bags),
            labels,
            _build.as_names("instance_names", aligned.get("instance_names"), n_instances),
            _build.as_labels("instance_labels", aligned.get("instance_labels"), n_instances),
            _build.as_names("feature_names", aligned.get("feature_names"), n_features),
            _build.as_names("label_names", aligned.get("label_names"), n_labels),
            meta.get("allow_nan", False),  # stores made before it have no such entry
        )
    except InvalidBagsError as error:
        raise _bad(folder, str(error).rstrip(".")) from error


def _read_kind(folder: Path) -> dict[str, Any]:
    """Read what says that a folder is a store, of any release."""
    file = folder / "meta.json"
    try:
        if file.stat().st_size > _MAX_META_BYTES:
            msg = f"it is larger than {_MAX_META_BYTES} bytes"
            raise ValueError(msg)
        meta = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _bad(folder, f"meta.json cannot be read ({error})") from error
    if not isinstance(meta, dict) or meta.get("kind") != "bagwise.bags":
        raise _bad(folder, "meta.json does not describe bags")
    return meta


def _read_meta(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        msg = f"{folder} does not exist."
        raise FileNotFoundError(msg)
    meta = _read_kind(folder)
    if meta.get("format") != _FORMAT:
        raise _bad(
            folder,
            f"it has format {meta.get('format')!r} and this release reads format {_FORMAT}; "
            "a newer release of bagwise may read it",
        )
    counts = [meta.get(key) for key in ("n_bags", "n_instances", "n_features")]
    if not all(type(count) is int and count > 0 for count in counts):
        raise _bad(folder, f"the counts in meta.json must be positive integers, not {counts}")
    if meta.get("layout") not in ("dense", "csr"):
        raise _bad(folder, f"unknown layout {meta.get('layout')!r}")
    if not isinstance(meta.get("allow_nan", False), bool):
        raise _bad(folder, f"allow_nan in meta.json must be true or false, not {meta['allow_nan']}")
    known = {*_PER_BAG, *_PER_INSTANCE, *_COLUMN_NAMES}
    if not isinstance(meta.get("aligned"), list) or not set(map(str, meta["aligned"])) <= known:
        raise _bad(folder, f"unknown files in meta.json: {meta.get('aligned')}")
    return meta


def _map(folder: Path, name: str) -> NDArray[Any]:
    """Map a ``.npy`` file of plain numbers or text that is exactly as long as it says."""
    path = folder / f"{name}.npy"
    try:
        with path.open("rb") as file:
            dtype, shape, order = _read_npy_header(file)
            start, end = file.tell(), file.seek(0, os.SEEK_END)
        n_bytes = math.prod(shape) * dtype.itemsize
        if end - start != n_bytes:
            msg = f"{n_bytes} bytes of values are announced and {end - start} are there"
            raise ValueError(msg)
        array = np.asarray(np.memmap(path, dtype, "r", start, shape, order))
    except (OSError, ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise _bad(folder, f"{name}.npy cannot be read ({error})") from error
    pack_array(array)  # notes which file it is, before it may be replaced
    return array


def _read_npy_header(file: BinaryIO) -> tuple[np.dtype[Any], tuple[int, ...], Literal["C", "F"]]:
    """Read the header of a ``.npy`` file.

    ``np.load`` also opens zip files, and lets shapes overflow and odd headers raise what they
    like. Here the little that a store needs is read, and the rest is a ValueError or SyntaxError.
    """
    major, minor = np.lib.format.read_magic(file)
    if (major, minor) not in ((1, 0), (2, 0), (3, 0)):
        msg = f"version {major}.{minor} of the format is not known"
        raise ValueError(msg)
    length = int.from_bytes(file.read(2 if major == 1 else 4), "little")
    if length > _MAX_HEADER_BYTES:
        msg = f"its header of {length} bytes is too long"
        raise ValueError(msg)
    header = ast.literal_eval(file.read(length).decode("latin1").strip())
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        msg = "its header is not that of an array"
        raise ValueError(msg)
    descr, shape, is_fortran = header["descr"], header["shape"], header["fortran_order"]
    if not isinstance(descr, str) or not _DTYPE.fullmatch(descr):
        msg = f"it must hold numbers or text, not {descr!r}"
        raise ValueError(msg)
    is_shape = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
    if not is_shape or len(shape) > 2 or not isinstance(is_fortran, bool):
        msg = f"its shape {shape!r} is not one"
        raise ValueError(msg)
    return np.dtype(descr), shape, "F" if is_fortran else "C"


def _map_aligned(folder: Path, name: str) -> NDArray[Any]:
    """Map names or labels; text is checked, as numpy crashes on characters that do not exist."""
    array = _map(folder, name)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        codes = np.ascontiguousarray(array).view(np.uint32)
        if codes.max() > 0x10FFFF:
            raise _bad(folder, f"{name}.npy holds characters that do not exist")
    return array


def _as_dense(folder: Path, array: NDArray[Any], meta: dict[str, Any]) -> Matrix:
    if array.shape != (meta["n_instances"], meta["n_features"]) or not array.flags.c_contiguous:
        raise _bad(folder, f"instances.npy has shape {array.shape}, which meta.json denies")
    _check_dtype(folder, array)
    return read_only(array)


def _as_csr(folder: Path, parts: list[NDArray[Any]], meta: dict[str, Any]) -> Matrix:
    """Put the sparse parts together; positions are checked, as compiled code will trust them."""
    data, indices, indptr = parts
    n_rows, n_columns = meta["n_instances"], meta["n_features"]
    _check_dtype(folder, data)
    shapes_fit = data.ndim == indices.ndim == indptr.ndim == 1 and len(indptr) == n_rows + 1
    if not shapes_fit or len(data) != len(indices) or indices.dtype.kind != "i":
        raise _bad(folder, "data.npy, indices.npy and indptr.npy do not fit together")
    if indptr.dtype.kind != "i" or indptr[0] != 0 or indptr[-1] != len(data):
        raise _bad(folder, "indptr.npy does not fit data.npy")
    if (indptr[1:] < indptr[:-1]).any():  # not by their difference: that can overflow
        raise _bad(folder, "indptr.npy falls")
    if len(indices) and (indices.min() < 0 or indices.max() >= n_columns):
        raise _bad(folder, f"indices.npy points outside the {n_columns} features")
    rises = indices[1:] > indices[:-1]
    inner_bounds = indptr[(indptr > 0) & (indptr < len(indices))]
    rises[inner_bounds - 1] = True
    if not rises.all():
        raise _bad(folder, "indices.npy must rise inside each row")
    return csr_from_parts(data, indices, indptr, (n_rows, n_columns))


def _check_dtype(folder: Path, array: NDArray[Any]) -> None:
    if array.dtype not in (np.float32, np.float64):
        raise _bad(folder, f"values must be float32 or float64, not {array.dtype}")


def _bad(folder: Path, what: str) -> BagFileError:
    return BagFileError(f"{folder} is not a store of bags that can be opened: {what}.")
