"""Tables: pandas, polars and Arrow, without importing any of them before the user has."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Integers
from bagwise.bags._build import is_missing, refuse_empty
from bagwise.exceptions import InvalidBagsError

if TYPE_CHECKING:
    from bagwise.bags._bags import Bags

_BLOCK_ROWS = 4096


def is_several(name: Any) -> bool:
    """Tell a list of columns from the name of one, which may also be a number."""
    return not isinstance(name, str) and hasattr(name, "__len__")


class FrameColumns:
    """The columns of a table, whichever library it is from."""

    def __init__(self, frame: Any) -> None:
        is_lazy = hasattr(frame, "collect")
        names = None if is_lazy else getattr(frame, "column_names", None)  # pyarrow
        names = getattr(frame, "columns", None) if names is None and not is_lazy else names
        if names is None or not hasattr(frame, "__getitem__"):
            msg = (
                "A pandas or polars DataFrame or a pyarrow Table is needed. "
                f"Got {type(frame).__name__}."
            )
            raise InvalidBagsError(msg)
        self.frame = frame
        self.names: list[str] = list(names)
        self._counts = Counter(self.names)

    def others(self, *taken: Any) -> list[str]:
        """Return the columns that are not taken."""
        used: set[str] = set()
        for name in taken:
            used.update(() if name is None else name if is_several(name) else [name])
        return [name for name in self.names if name not in used]

    def values(self, name: Any) -> NDArray[Any] | None:
        """Return a column as an array, several as a matrix, none as None."""
        if name is None:
            return None
        if is_several(name):
            return np.stack([self.column(one) for one in name], axis=1)
        return self.column(name)

    def labelled(self, bag: str, label: Any, on_missing: str) -> "FrameColumns":
        """Return the rows of bags that have a label; refuse the others, or leave them out."""
        if on_missing not in ("error", "drop"):
            msg = f"on_missing_label must be 'error' or 'drop'. Got {on_missing!r}."
            raise ValueError(msg)
        if label is None:
            return self
        named = list(label) if is_several(label) else [label]
        missing = {name: is_missing(self.column(name)) for name in named}
        unlabelled = np.logical_or.reduce(list(missing.values()))
        if not unlabelled.any():
            return self
        if is_missing(self.column(bag)).any():
            return self  # refused for that when rows are put into bags
        ids = self.column(bag).astype(np.str_)
        partly = unlabelled & np.isin(ids, ids[~unlabelled])
        if partly.any() or on_missing == "error":
            row = int(np.argmax(partly if partly.any() else unlabelled))
            column = next(name for name in named if missing[name][row])
            way_out = (
                "Other rows of the bag have one."
                if partly.any()
                else "To leave such bags out, pass on_missing_label='drop'."
            )
            msg = (
                f"Labels must not be missing: bag {str(ids[row])!r} has none in row {row}, column "
                f"{column!r}. {way_out}"
            )
            raise InvalidBagsError(msg)
        if unlabelled.all():
            msg = f"No bag has a label in {label!r}."
            raise InvalidBagsError(msg)
        take = getattr(self.frame, "take", self.frame.__getitem__)  # polars has no `take`
        return FrameColumns(take(np.flatnonzero(~unlabelled)))

    def matrix(self, names: Sequence[str]) -> NDArray[Any]:
        """Return numeric columns as a C-ordered matrix, float32 if all of them are."""
        columns = [self._numeric(name) for name in names]
        if not columns:
            msg = f"No feature columns are left. The table has {self.names}."
            raise InvalidBagsError(msg)
        dtype = np.result_type(*columns)
        matrix = np.empty((len(columns[0]), len(columns)), dtype)
        for start in range(0, len(matrix), _BLOCK_ROWS):  # so that a block stays in cache
            block = slice(start, start + _BLOCK_ROWS)
            for j, column in enumerate(columns):
                matrix[block, j] = column[block]
        return matrix

    def column(self, name: str) -> NDArray[Any]:
        """Return a column as an array."""
        count = self._counts[name]
        if count == 0:
            msg = f"The table has no column {name!r}. It has {self.names}."
            raise InvalidBagsError(msg)
        if count > 1:
            msg = f"The table has {count} columns {name!r}; names must be unique."
            raise InvalidBagsError(msg)
        column = self.frame[name]
        kind: Any = getattr(column, "type", None)
        if hasattr(kind, "index_type"):  # of pyarrow: without this, nulls get the last value
            column = column.cast(kind.value_type)
        return np.asarray(column.to_numpy())

    def _numeric(self, name: str) -> NDArray[Any]:
        column = self.column(name)
        if column.dtype == object:
            try:
                column = column.astype(np.float64)
            except (TypeError, ValueError):
                column = column.astype(np.str_)
        if column.dtype.kind not in "biuf":
            msg = (
                f"Feature columns must be numbers: column {name!r} has dtype {column.dtype}. "
                "Name the feature columns with features=[...]."
            )
            raise InvalidBagsError(msg)
        return column


def to_frame(bags: "Bags", library: str) -> Any:
    """Return the bags as a long table."""
    instances = bags.instances
    dense = instances.toarray() if bags.is_sparse else instances
    bag_names = np.arange(len(bags)) if bags.bag_names is None else bags.bag_names
    named: list[tuple[str, Any]] = [("bag", np.repeat(bag_names, bags.sizes))]
    if bags.labels is not None:
        for name, values in _label_columns(bags.labels, bags.label_names):
            named.append((name, np.repeat(values, bags.sizes)))
    if bags.instance_names is not None:
        named.append(("instance", bags.instance_names))
    if bags.instance_labels is not None:
        named.append(("instance_label", bags.instance_labels))
    features = bags.feature_names
    if features is None:
        features = np.array([f"x{j}" for j in range(bags.n_features)])
    named += [(str(name), dense[:, j]) for j, name in enumerate(features)]
    columns = dict(named)
    if len(columns) < len(named):
        clash = sorted(name for name, n in Counter(name for name, _ in named).items() if n > 1)
        msg = f"The columns of a table need names of their own. Given more than once: {clash}."
        raise InvalidBagsError(msg)
    if library == "pandas":
        import pandas as pd

        return pd.DataFrame(columns)
    if library == "polars":
        import polars as pl

        return pl.DataFrame(columns)
    msg = f"library must be 'pandas' or 'polars'. Got {library!r}."
    raise ValueError(msg)


def _label_columns(
    labels: NDArray[Any], names: NDArray[Any] | None
) -> list[tuple[str, NDArray[Any]]]:
    if labels.ndim == 1:
        return [("label", labels)]
    shown = [f"label{j}" for j in range(labels.shape[1])] if names is None else names.tolist()
    return list(zip(shown, labels.T, strict=True))


def unwrap_arrow(column: Any, *, allow_nan: bool = False) -> tuple[NDArray[Any], Integers]:
    """See an Arrow list column as matrix and offsets; the values are not copied, unless filled."""
    import pyarrow as pa

    array = _one_array(pa, column)
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        msg = f"An Arrow column of lists of vectors is needed. Got type {array.type}."
        raise InvalidBagsError(msg)
    if array.null_count:
        first = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        msg = f"Bags must not be null: bag {first} is. ({array.null_count} in all.)"
        raise InvalidBagsError(msg)
    bounds = array.offsets.to_numpy().astype(np.int64)
    refuse_empty(np.diff(bounds))
    vectors = array.values.slice(bounds[0], bounds[-1] - bounds[0])
    return _vectors_to_matrix(pa, vectors, allow_nan), bounds - bounds[0]


def _one_array(pa: Any, column: Any) -> Any:
    if hasattr(column, "__arrow_array__") and not hasattr(column, "__arrow_c_stream__"):
        column = pa.array(column)  # as awkward has it
    if isinstance(column, pa.Array):
        return column
    if not isinstance(column, pa.ChunkedArray):
        try:
            column = pa.chunked_array(column)
        except (TypeError, ValueError) as error:
            msg = f"An Arrow column is needed. Got {type(column).__name__}."
            raise InvalidBagsError(msg) from error
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _vectors_to_matrix(pa: Any, vectors: Any, allow_nan: bool) -> NDArray[Any]:
    if vectors.null_count:
        msg = f"Instances must not be null: {vectors.null_count} are."
        raise InvalidBagsError(msg)
    kind = vectors.type
    if pa.types.is_fixed_size_list(kind):
        width = kind.list_size
        values = vectors.values.slice(vectors.offset * width, len(vectors) * width)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        bounds = vectors.offsets.to_numpy().astype(np.int64)
        widths = np.unique(np.diff(bounds))
        if len(widths) > 1:
            msg = f"Instances must have one number of features. Got {widths.tolist()}."
            raise InvalidBagsError(msg)
        width = int(widths[0]) if len(widths) else 0
        values = vectors.values.slice(bounds[0], bounds[-1] - bounds[0])
    else:
        msg = f"An Arrow column of lists of vectors is needed. Got lists of {kind}."
        raise InvalidBagsError(msg)
    if values.null_count and not allow_nan:
        msg = (
            f"Features must not be null: {values.null_count} are. allow_nan=True takes them as "
            "missing."
        )
        raise InvalidBagsError(msg)
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        msg = f"Features must be numbers. Got Arrow type {values.type}."
        raise InvalidBagsError(msg)
    flat = values.to_numpy(zero_copy_only=not values.null_count)
    return np.asarray(flat).reshape(len(vectors), width)
