"""The container: one instance matrix, and for each bag the range of its rows."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Integers
from bagwise.bags import _build, _matrix
from bagwise.bags._files import (
    FileSlice,
    pack_array,
    pack_matrix,
    refuse_lost,
    unchanged_files,
    unpack_array,
    unpack_matrix,
)
from bagwise.bags._from_other_shapes import FromOtherShapes
from bagwise.bags._lost_pages import were_pages_lost
from bagwise.bags._matrix import Matrix, read_only
from bagwise.bags._segments import segment_rows
from bagwise.exceptions import InvalidBagsError


class Bags(FromOtherShapes):
    """Bags of instances: a matrix of all instances, and where each bag begins and ends.

    Bag ``i`` holds the rows ``offsets[i]`` to ``offsets[i + 1]`` of the instance matrix. Length and
    ``shape[0]`` are the number of bags, so scikit-learn's splitters, searches and pipelines take
    the container as they take an array. A selection of bags is a view: it costs memory in
    proportion to the number of bags and never copies instances.

    Bags do not change once they are made. The arrays that they hand out are read-only.

    Parameters
    ----------
    instances : array-like, sparse matrix or memory map of shape (n_instances, n_features)
        All instances, those of one bag next to each other. float32 and float64 are kept, other
        real numbers become float64. C-ordered arrays, memory maps and CSR are not copied.
    offsets : array-like of int of shape (n_bags + 1,)
        Row at which each bag begins, and the number of rows at the end.
    bag_names : array-like of str of shape (n_bags,), optional
        Names, used in messages and reports.
    labels : array-like of shape (n_bags,) or (n_bags, n_labels), optional
        Labels of the bags, kept beside them; estimators take ``y`` as an argument and do not look.
    instance_names, instance_labels : array-like of shape (n_instances,), optional
        Names and, where the truth is known, labels of the instances.
    feature_names : array-like of str of shape (n_features,), optional
        Names of the columns.
    label_names : array-like of str of shape (n_labels,), optional
        Names of the columns of ``labels``, if it is a matrix.
    allow_nan : bool
        Whether values may be missing, as NaN. Estimators refuse such bags; a transformer that
        fills the values goes before them, as ``InstanceTransformer(SimpleImputer())``. Infinity
        is always refused.

    See Also
    --------
    Bags.from_list, Bags.from_array, Bags.from_groups, Bags.from_frame, Bags.from_arrow :
        From data in other shapes.
    Bags.write, Bags.open : The memory-mapped store on disk.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise import Bags
    >>> bags = Bags(np.arange(10.0).reshape(5, 2), offsets=[0, 2, 5])
    >>> bags
    Bags(2 bags, 5 instances, 2 features, float64; 2 to 3 instances per bag)
    >>> bags[0]
    array([[0., 1.],
           [2., 3.]])
    >>> len(bags[[1, 0, 1]])
    3
    """

    __slots__ = (
        "__weakref__",  # joblib hands weakly referenced data to a Dask worker once, not per task
        "_allow_nan",
        "_bag_names",
        "_base",
        "_feature_names",
        "_index",
        "_instance_labels",
        "_instance_names",
        "_label_names",
        "_labels",
        "_loaded",
        "_shared",
        "_starts",
        "_stops",
        "_whole",
    )

    # `_base` is shared by every selection; `_starts`, `_stops` are rows of it, one pair a bag.
    # Arrays about bags are aligned with this selection, arrays about instances with `_base`.
    # A selection knows the bags that it was taken from, `_whole`, and which of them, `_index`.
    # Lazy bags that were once asked for everything keep it: `_loaded` are the same bags in memory.
    _base: Matrix
    _starts: Integers
    _stops: Integers
    _bag_names: NDArray[Any] | None
    _labels: NDArray[Any] | None
    _instance_names: NDArray[Any] | None
    _instance_labels: NDArray[Any] | None
    _feature_names: NDArray[Any] | None
    _label_names: NDArray[Any] | None
    _allow_nan: bool
    _whole: "Bags | None"
    _index: Integers | None
    _shared: Any
    _loaded: "Bags | None"

    def __init__(
        self,
        instances: Any,
        offsets: ArrayLike,
        *,
        bag_names: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        instance_names: ArrayLike | None = None,
        instance_labels: ArrayLike | None = None,
        feature_names: ArrayLike | None = None,
        label_names: ArrayLike | None = None,
        allow_nan: bool = False,
    ) -> None:
        base = _matrix.as_matrix(instances)
        n_instances, n_features = base.shape
        bounds = _build.check_offsets(offsets, n_instances)
        n_bags = len(bounds) - 1
        self._base, self._starts, self._stops = base, bounds[:-1], bounds[1:]
        self._bag_names = _build.as_names("bag_names", bag_names, n_bags)
        self._labels = _build.as_labels("labels", labels, n_bags)
        self._instance_names = _build.as_names("instance_names", instance_names, n_instances)
        self._instance_labels = _build.as_labels("instance_labels", instance_labels, n_instances)
        self._feature_names = _build.as_names("feature_names", feature_names, n_features)
        n_labels = 0 if self._labels is None or self._labels.ndim == 1 else self._labels.shape[1]
        self._label_names = _build.as_names("label_names", label_names, n_labels)
        self._whole = self._index = self._shared = self._loaded = None
        self._allow_nan = allow_nan
        _build.check_width(base)
        _build.check_finite(base, bounds, self._bag_names, allow_nan=allow_nan)
        pack_matrix(base)  # notes which files it lives in, before they may be replaced

    @classmethod
    def _trusted(
        cls,
        base: Matrix,
        starts: Integers,
        stops: Integers,
        bag_names: NDArray[Any] | None = None,
        labels: NDArray[Any] | None = None,
        instance_names: NDArray[Any] | None = None,
        instance_labels: NDArray[Any] | None = None,
        feature_names: NDArray[Any] | None = None,
        label_names: NDArray[Any] | None = None,
        allow_nan: bool = False,
    ) -> Self:
        """Make bags of parts that are known to be right: no look at the values, no copy."""
        self = object.__new__(cls)
        self._base, self._starts, self._stops = base, starts, stops
        self._bag_names, self._labels = bag_names, labels
        self._instance_names, self._instance_labels = instance_names, instance_labels
        self._feature_names, self._label_names = feature_names, label_names
        self._allow_nan = allow_nan
        self._whole = self._index = self._shared = self._loaded = None
        return self

    @classmethod
    def concatenate(cls, parts: "Sequence[Bags]") -> Self:
        """Put bags behind one another, copying their instances into one matrix.

        Names and labels are kept where every part has them; names of features and of labels
        where all agree.
        """
        parts = list(parts)
        if not parts or not all(isinstance(part, Bags) for part in parts):
            kinds = sorted({type(part).__name__ for part in parts})
            msg = f"Bags.concatenate needs a sequence of Bags, at least one. Got {kinds}."
            raise InvalidBagsError(msg)
        widths = sorted({part.n_features for part in parts})
        if len(widths) > 1:
            msg = f"Bags to be concatenated must have one number of features. Got {widths}."
            raise InvalidBagsError(msg)
        sizes = np.concatenate([part.sizes for part in parts])
        offsets = _build.offsets_of(sizes)
        return cls._trusted(
            _matrix.stack_rows([part.instances for part in parts]),
            offsets[:-1],
            offsets[1:],
            _build.concatenate_all([part.bag_names for part in parts]),
            _build.concatenate_all([part.labels for part in parts]),
            _build.concatenate_all([part.instance_names for part in parts]),
            _build.concatenate_all([part.instance_labels for part in parts]),
            _build.common_names([part.feature_names for part in parts]),
            _build.common_names([part.label_names for part in parts]),
            any(part.allow_nan for part in parts),
        )

    # --------------------------------------------------------------------------------- on disk

    @classmethod
    def read(cls, path: str | PathLike[str], **options: Any) -> "Bags":
        r"""Read bags from a file or folder of any format that `bagwise.io` knows.

        Text tables (CSV, TSV), Parquet, Arrow, NPZ, ARFF, C4.5, svmlight, Matlab, stores, and
        folders with one file a bag; text may be compressed. What is not said is guessed from names
        and logged at level INFO of the logger ``bagwise``; `bagwise.io.inspect` shows it.

        Parameters
        ----------
        path : str or path-like
            The file or folder.
        **options
            ``bag``, ``label`` and ``features`` name columns; ``format`` says what the file is; all
            others are described at `bagwise.io.read`.

        Raises
        ------
        BagFileError
            The file is damaged, or not what it should be; the message says where.
        FileNotFoundError
            There is nothing at this path.

        See Also
        --------
        bagwise.io.read : The same, with all options.
        bagwise.io.pack : Any such file to a store, without loading it.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.csv"
        >>> _ = path.write_text("bag,label,x\na,1,0.5\na,1,1.5\nb,0,2.5\n")
        >>> bags = Bags.read(path)
        >>> bags.sizes, bags.labels
        (array([2, 1]), array([1, 0]))
        """
        from bagwise.io import read

        return read(path, **options)

    @classmethod
    def open(cls, path: str | PathLike[str], *, verify: bool = False) -> Self:
        """Open a store ``name.bags/`` memory-mapped: nothing is read until it is used.

        Parameters
        ----------
        path : str or path-like
            The folder.
        verify : bool
            Read the whole matrix once and refuse infinity, and NaN unless the bags were written
            with ``allow_nan``. Stores written by `write` hold neither.
        """
        from bagwise.bags._store import open_store

        bags = cls._trusted(*open_store(path))
        if verify:
            _build.check_finite(
                bags._base, bags.offsets, bags._bag_names, allow_nan=bags._allow_nan
            )
        return bags

    def write(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write a store ``name.bags/`` in one streaming pass.

        The folder appears under its name only when it is complete.

        Parameters
        ----------
        path : str or path-like
            The folder to make; by convention its name ends in ``.bags``.
        overwrite : bool
            Whether a store that is there may be replaced.
        """
        from bagwise.bags._store import StoreWriter

        with StoreWriter(path, overwrite=overwrite) as writer, unchanged_files(self):
            writer.extend(self)

    # ---------------------------------------------------------------------------------- shape

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self._starts)

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags of this selection."""
        return int(self.sizes.sum())

    @property
    def n_features(self) -> int:
        """Number of features of an instance."""
        return int(self._base.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_bags, n_features)``: what scikit-learn reads as (n_samples, n_features)."""
        return self.n_bags, self.n_features

    @property
    def ndim(self) -> int:
        """Always 2, the length of `shape`."""
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values: float32 or float64."""
        dtype: np.dtype[Any] = self._base.dtype
        return dtype

    @property
    def sizes(self) -> Integers:
        """Number of instances in each bag."""
        return read_only(self._stops - self._starts)

    @property
    def offsets(self) -> Integers:
        """Where each bag begins in `instances`, and their number at the end."""
        return read_only(_build.offsets_of(self.sizes))

    @property
    def is_sparse(self) -> bool:
        """Whether the instance matrix is CSR."""
        return _matrix.is_sparse(self._base)

    @property
    def is_lazy(self) -> bool:
        """Whether instances are transformed each time they are read; see `map_instances`."""
        return isinstance(self._base, _matrix.LazyRows)

    @property
    def n_values(self) -> int:
        """Number of values of the instances; of CSR, of those stored (before lazy functions)."""
        inner = _matrix.inner_matrix(self._base)
        if not self.is_sparse or isinstance(inner, np.ndarray):
            return self.n_instances * self.n_features
        return int((inner.indptr[self._stops] - inner.indptr[self._starts]).sum(dtype=np.int64))

    @property
    def allow_nan(self) -> bool:
        """Whether values may be missing, as NaN."""
        return self._allow_nan

    @property
    def is_memory_mapped(self) -> bool:
        """Whether the instance matrix lives in a file, or what lazy bags are made of."""
        return FileSlice.of(_matrix.parts_of(self._base)[0]) is not None

    # ------------------------------------------------------------------------------- contents

    @property
    def instances(self) -> Matrix:
        """The rows of this selection, bag by bag: a view if they are contiguous, else a copy.

        The copy is made on each access; `compact` makes it once. Lazy bags keep it.
        """
        here = self._in_memory()
        return here._rows_of(here._base)

    def take_instances(self, rows: Integers) -> Matrix:
        """Return a copy of some rows of `instances`, without the others.

        Parameters
        ----------
        rows : ndarray of int
            Places in `instances`.

        Examples
        --------
        >>> Bags([[1.0], [2.0], [3.0]], [0, 1, 3])[[1, 0]].take_instances([0, 2])
        array([[2.],
               [1.]])
        """
        rows, offsets = np.asarray(rows), self.offsets
        bag = np.searchsorted(offsets, rows, side="right") - 1
        here = self._held
        return _matrix.take_rows(here._base, here._starts[bag] + rows - offsets[bag])

    @property
    def bag_names(self) -> NDArray[Any] | None:
        """Names of the bags, or None."""
        return self._bag_names

    @property
    def labels(self) -> NDArray[Any] | None:
        """Labels of the bags, or None."""
        return self._labels

    @property
    def instance_names(self) -> NDArray[Any] | None:
        """Names of the instances, aligned with `instances`, or None."""
        return self._aligned(self._instance_names)

    @property
    def instance_labels(self) -> NDArray[Any] | None:
        """Labels of the instances, aligned with `instances`, or None."""
        return self._aligned(self._instance_labels)

    @property
    def feature_names(self) -> NDArray[Any] | None:
        """Names of the features, or None."""
        return self._feature_names

    @property
    def label_names(self) -> NDArray[Any] | None:
        """Names of the columns of `labels`, or None."""
        return self._label_names

    @property
    def segments(self) -> tuple[Matrix, Integers, Integers]:
        """What compiled functions work on: a matrix, and the rows where each bag begins and ends.

        The matrix is shared by all selections of the same bags and is never copied: it may hold
        rows of other bags too. That of lazy bags is made once and kept.
        """
        here = self._in_memory()
        return here._base, here._starts, here._stops

    def _in_memory(self) -> "Bags":
        """Return these bags, or what lazy ones hold, which is kept."""
        if self.is_lazy and self._loaded is None:
            self._loaded = self.compact()
        return self._held

    @property
    def _held(self) -> "Bags":
        """These bags, or the same in memory if they are lazy and were once asked for all."""
        if were_pages_lost():
            refuse_lost(self._base)
        return self if self._loaded is None else self._loaded

    @property
    def selection(self) -> "tuple[Bags, Integers]":
        """The bags that these were selected from, and which of them they are, in order.

        Bags that are no selection are all of themselves. What copies instances (`compact`,
        `map_instances`, `concatenate`, a pickle) makes bags that are no selection.
        """
        if self._whole is None or self._index is None:
            return self, np.arange(len(self))
        return self._whole, self._index

    @property
    def shared(self) -> Any:
        """What fits on selections of the same bags share, None unless `with_shared` gave it."""
        return self._shared if self._whole is None else self._whole._shared

    def with_shared(self, shared: Any) -> "Bags":
        """Return these bags as a whole of its own, on the same memory, that carries ``shared``.

        All selections from it find the object under `shared`; copies and pickles do not.
        """
        whole = Bags._trusted(self._base, **self._rest())
        whole._shared = shared
        return whole

    def describe(self, bag: int) -> str:
        """Name a bag as messages do: its position, and its name if it has one."""
        return _build.describe_bag(bag, self._bag_names)

    def check_finite(self) -> None:
        """Raise if a value is missing, which only bags made with ``allow_nan`` can hold."""
        for i, matrix in enumerate(self) if self._allow_nan else ():
            names = None if self._bag_names is None else self._bag_names[i : i + 1]
            _build.check_finite(matrix, np.array([0, matrix.shape[0]]), names, first=i)

    def _aligned(self, values: NDArray[Any] | None) -> NDArray[Any] | None:
        if values is None:
            return None
        span = self._contiguous_span()
        return read_only(values[span if span is not None else self._row_index()])

    def _rows_of(self, matrix: Matrix) -> Matrix:
        span = self._contiguous_span()
        if span is None:
            return _matrix.take_rows(matrix, self._row_index())
        if (span.start, span.stop) == (0, matrix.shape[0]):
            return matrix
        return _matrix.row_slice(matrix, span.start, span.stop)

    def _contiguous_span(self) -> slice | None:
        """Rows of the base that this selection is, if they are one range in order."""
        if not len(self):
            return slice(0, 0)
        if not np.array_equal(self._starts[1:], self._stops[:-1]):
            return None
        return slice(int(self._starts[0]), int(self._stops[-1]))

    def _row_index(self) -> Integers:
        """Row of the base for each instance of this selection."""
        return segment_rows(self._starts, self._stops)

    # ------------------------------------------------------------------------------ selection

    def __getitem__(self, key: Any) -> Any:
        """Return a bag's instance matrix (for an int) or a selection of bags (for the rest)."""
        if isinstance(key, tuple):  # scikit-learn asks for (rows, ...)
            key, *others = key or (slice(None),)
            if any(other is not Ellipsis and not _is_whole(other) for other in others):
                msg = "Bags are selected along one axis: bags[rows]. Got a second index."
                raise IndexError(msg)
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                msg = f"Bag {key} does not exist: there are {len(self)} bags."
                raise IndexError(msg)
            here = self._held
            return _matrix.row_slice(here._base, int(here._starts[key]), int(here._stops[key]))
        return self._select(_build.as_selector(key, len(self)))

    def _select(self, key: Any) -> "Bags":
        here = self._held
        selected = Bags._trusted(
            here._base,
            read_only(here._starts[key]),
            read_only(here._stops[key]),
            None if self._bag_names is None else read_only(self._bag_names[key]),
            None if self._labels is None else read_only(self._labels[key]),
            here._instance_names,
            here._instance_labels,
            self._feature_names,
            self._label_names,
            self._allow_nan,
        )
        if self._whole is None or self._index is None:
            selected._whole, selected._index = self, _build.positions(key, len(self))
        else:
            selected._whole, selected._index = self._whole, read_only(self._index[key])
        return selected

    def __iter__(self) -> Iterator[Matrix]:
        here = self._held
        for start, stop in zip(here._starts.tolist(), here._stops.tolist(), strict=True):
            yield _matrix.row_slice(here._base, start, stop)

    def compact(self) -> "Bags":
        """Copy this selection into an instance matrix of its own, in memory."""
        if self._held.is_lazy and len(self):
            from bagwise.bags._source import read_all

            base = read_all(self)
        else:
            here = self._held
            base = _matrix.take_rows(here._base, here._row_index())
        return self._with_instances(base, self._feature_names, self._allow_nan)

    def map_instances(
        self, transformer: Any, *, feature_names: ArrayLike | None = None, lazy: bool = False
    ) -> "Bags":
        """Transform the instances and keep the bags.

        What bags with missing values become may have missing values, too.

        Parameters
        ----------
        transformer : callable or object with ``transform``
            Takes the instance matrix of this selection, returns a matrix with as many rows.
        feature_names : array-like of str, optional
            Names of the new features.
        lazy : bool
            Whether instances are transformed each time they are read, chunk by chunk, instead of
            now. The transformer must make of a row the same whatever rows come with it. Whatever
            needs the whole matrix makes and keeps it; `write` makes a store of it.

        Examples
        --------
        >>> Bags([[1.0], [2.0], [3.0]], [0, 1, 3]).map_instances(np.square)[1]
        array([[4.],
               [9.]])
        """
        function: Callable[[Matrix], Any] = getattr(transformer, "transform", transformer)
        if lazy and len(self):
            return self._mapped_when_read(function, feature_names)
        base = _matrix.one_row_each(function(self.instances), self.n_instances)
        _build.check_width(base)
        _build.check_finite(base, self.offsets, self._bag_names, allow_nan=self._allow_nan)
        names = _build.as_names("feature_names", feature_names, base.shape[1])
        some_missing = self._allow_nan and _matrix.first_nonfinite(base) is not None
        return self._with_instances(base, names, some_missing)

    def _mapped_when_read(
        self, function: Callable[[Matrix], Any], feature_names: ArrayLike | None
    ) -> "Bags":
        here = self._held
        base = _matrix.LazyRows.of(here._base, function, int(here._starts[0]))
        _build.check_width(base)
        names = _build.as_names("feature_names", feature_names, base.n_features)
        return Bags._trusted(base, **{**here._rest(), "feature_names": names})

    def drop_missing(self) -> "Bags":
        """Leave out instances that miss a value, and bags that have no others; the rest is copied.

        Examples
        --------
        >>> holes = Bags([[1.0], [np.nan], [3.0]], [0, 2, 3], allow_nan=True)
        >>> holes.drop_missing().to_list()
        [array([[1.]]), array([[3.]])]
        """
        instances, names, marks = self.instances, self.instance_names, self.instance_labels
        rows = np.flatnonzero(~_matrix.rows_with_nan(instances))
        bag_of = np.repeat(np.arange(len(self)), self.sizes)[rows]
        sizes = np.bincount(bag_of, minlength=len(self))
        some = sizes > 0
        return Bags(
            _matrix.take_rows(instances, rows),
            _build.offsets_of(sizes[some]),
            bag_names=None if self._bag_names is None else self._bag_names[some],
            labels=None if self._labels is None else self._labels[some],
            instance_names=None if names is None else names[rows],
            instance_labels=None if marks is None else marks[rows],
            feature_names=self._feature_names,
            label_names=self._label_names,
        )

    def _with_instances(
        self, base: Matrix, feature_names: NDArray[Any] | None, allow_nan: bool
    ) -> "Bags":
        offsets = self.offsets
        return Bags._trusted(
            base,
            offsets[:-1],
            offsets[1:],
            self._bag_names,
            self._labels,
            self.instance_names,
            self.instance_labels,
            feature_names,
            self._label_names,
            allow_nan,
        )

    # ----------------------------------------------------------------------------- conversion

    def to_list(self) -> list[Matrix]:
        """Return the instance matrices of the bags, as views."""
        return list(self)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a long table: a column ``bag``, what else is known, then the features.

        Parameters
        ----------
        library : {"pandas", "polars"}
            Which kind of table.
        """
        from bagwise.bags._frames import to_frame

        return to_frame(self, library)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        msg = (
            "Bags are not an array: bags differ in size. Use bags.instances for the instance "
            "matrix, or bagwise.preprocessing.InstanceTransformer to apply a scikit-learn "
            "transformer to the instances."
        )
        raise TypeError(msg)

    # ------------------------------------------------------------------- size, pickling, repr

    def __sizeof__(self) -> int:
        """Bytes in memory, the shared instance matrix included unless it is in a file."""
        arrays = [pack_array(array) for array in self._small_arrays().values()]
        own = sum(int(array.nbytes) for array in arrays if isinstance(array, np.ndarray))
        total = object.__sizeof__(self) + own
        total += 0 if self._loaded is None else self._loaded.__sizeof__()
        return total if self.is_memory_mapped else total + _matrix.matrix_bytes(self._base)

    def _rest(self) -> dict[str, Any]:
        """Return all but the instance matrix, as `_trusted` takes it."""
        return {**self._small_arrays(), "allow_nan": self._allow_nan}

    def _small_arrays(self) -> dict[str, Any]:
        """Return the arrays beside the instance matrix."""
        names = (name for name in Bags.__slots__ if name not in _NOT_SMALL)
        return {name.removeprefix("_"): getattr(self, name) for name in names}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a memory map as the path of its file, and a selection as what it selects."""
        covers_half = 2 * self.n_instances >= self._base.shape[0]
        kept = self if covers_half or self.is_memory_mapped else self.compact()
        arrays = {name: pack_array(array) for name, array in kept._small_arrays().items()}
        return _rebuild, (pack_matrix(kept._base), arrays, self._allow_nan)

    def __repr__(self) -> str:
        from bagwise.bags._repr import text_repr

        return text_repr(self)

    def _repr_html_(self) -> str:
        from bagwise.bags._repr import html_repr

        return html_repr(self)


_NOT_SMALL = ("__weakref__", "_allow_nan", "_base", "_whole", "_index", "_shared", "_loaded")


def _rebuild(packed: Any, arrays: dict[str, Any], allow_nan: bool = False) -> Bags:
    small = {name: unpack_array(array) for name, array in arrays.items()}
    return Bags._trusted(unpack_matrix(packed), **small, allow_nan=allow_nan)


def _is_whole(key: Any) -> bool:
    return isinstance(key, slice) and key == slice(None)
