"""From what users have to matrix and offsets, and the errors for what is not bags."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Integers
from bagwise.bags._matrix import Matrix, as_matrix, first_nonfinite, read_only, stack_rows
from bagwise.exceptions import InvalidBagsError

_SHOWN = 8  # how many offenders a message lists
_MISSING = (
    " If values are missing, make the bags with allow_nan=True and fill them with "
    "InstanceTransformer(SimpleImputer()) before the method."
)


def offsets_of(sizes: Integers) -> Integers:
    """Return the cumulative sizes, beginning with 0."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def describe_bag(bag: int, names: NDArray[Any] | None, first: int = 0) -> str:
    """Name a bag as messages do: its position, counted from ``first``, and its name if any."""
    number = f"bag {first + bag}"
    return number if names is None else f"{number} ({str(names[bag])!r})"


def _listed(bags: Sequence[int]) -> str:
    shown = ", ".join(map(str, bags[:_SHOWN]))
    return f"[{shown}, ...] ({len(bags)} in all)" if len(bags) > _SHOWN else f"[{shown}]"


# ------------------------------------------------------------------------------------- checks


def check_offsets(offsets: ArrayLike, n_instances: int) -> Integers:
    """Return the offsets as int64, or say what is wrong with them."""
    given = _as_array("offsets", offsets)
    if given.ndim != 1 or len(given) == 0 or given.dtype.kind not in "iu":
        msg = (
            "offsets must be a 1-D array of integers, one more than there are bags. "
            f"Got shape {given.shape}, dtype {given.dtype}."
        )
        raise InvalidBagsError(msg)
    bounds = np.array(given, dtype=np.int64)  # a copy: ours to freeze
    if bounds[0] != 0 or bounds[-1] != n_instances:
        msg = (
            f"offsets must begin with 0 and end with the number of instances, {n_instances}. "
            f"Got {bounds[0]} and {bounds[-1]}."
        )
        raise InvalidBagsError(msg)
    falls = bounds[1:] < bounds[:-1]  # not by their difference: that can overflow
    if falls.any():
        bag = int(np.argmax(falls))
        msg = (
            f"offsets must not fall: bag {bag} would begin at row {bounds[bag]} and end at row "
            f"{bounds[bag + 1]}."
        )
        raise InvalidBagsError(msg)
    refuse_empty(np.diff(bounds))
    bounds.flags.writeable = False
    return bounds


def refuse_empty(sizes: Integers) -> None:
    """Raise if a bag has no instance, naming all such bags."""
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        msg = f"Every bag needs at least one instance; bag(s) {_listed(empty.tolist())} have none."
        raise InvalidBagsError(msg)


def check_width(matrix: Matrix) -> None:
    """Raise if instances have no features."""
    if matrix.shape[1] == 0:
        msg = "Instances need at least one feature. Got a matrix with 0 columns."
        raise InvalidBagsError(msg)


def check_finite(
    matrix: Matrix,
    offsets: Integers,
    names: NDArray[Any] | None = None,
    *,
    first: int = 0,
    allow_nan: bool = False,
) -> None:
    """Raise if a value is infinite, or NaN unless allowed, naming bag, instance and feature.

    The first of these bags has the number ``first``.
    """
    found = first_nonfinite(matrix, allow_nan=allow_nan)
    if found is None:
        return
    row, column = found
    bag = int(np.searchsorted(offsets, row, side="right")) - 1
    is_nan = np.isnan(matrix[row, column])
    msg = (
        f"Instances must be finite: {describe_bag(bag, names, first)} holds "
        f"{'NaN' if is_nan else 'infinity'} at instance {row - offsets[bag]}, feature {column}."
        f"{_MISSING if is_nan else ''}"
    )
    raise InvalidBagsError(msg)


def _as_array(what: str, values: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(values)
        if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
            # Of None or NaN beside text numpy makes the texts "None" and "nan".
            kept = np.array(values, dtype=object)
            return kept if is_missing(kept).any() else array
    except ValueError as error:
        msg = f"{what} must be an array. Got lists of different lengths."
        raise InvalidBagsError(msg) from error
    return array


def as_names(what: str, names: ArrayLike | None, length: int) -> NDArray[Any] | None:
    """Return names as an array of strings of the right length."""
    if names is None:
        return None
    array = _as_array(what, names)
    if array.dtype.kind != "U":
        array = np.asarray(array, dtype=np.str_)
    return _checked_length(what, array, length, (1,))


def as_labels(what: str, labels: ArrayLike | None, length: int) -> NDArray[Any] | None:
    """Return labels as an array of numbers or strings of the right length.

    A number may be NaN, for unknown. Text has no such value, so it must not be missing.
    """
    if labels is None:
        return None
    array = _as_array(what, labels)
    if array.dtype == object:  # as data frames hold strings
        if (missing := is_missing(array)).any():
            entry = int(np.argwhere(missing)[0, 0])
            msg = f"{what} must not be missing: entry {entry} is."
            raise InvalidBagsError(msg)
        kinds = {type(item) for item in array.ravel()}
        array = array.astype(np.str_) if kinds <= {str} else _as_array(what, array.tolist())
    if array.dtype.kind not in "biufU":
        msg = f"{what} must be numbers, booleans or strings. Got dtype {array.dtype}."
        raise InvalidBagsError(msg)
    return _checked_length(what, array, length, (1, 2))


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which entries are missing: None, NaN, NaT or the NA of pandas.

    Parameters
    ----------
    values : ndarray
        Labels or ids, of any type.

    Returns
    -------
    ndarray of bool
        Of the same shape.
    """
    if values.dtype == object:
        flags = [_is_nothing(value) for value in values.ravel()]
        return np.array(flags, dtype=bool).reshape(values.shape)
    return np.asarray(values != values)


def _is_nothing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # the NA of pandas is neither equal nor different
        return True
    except ValueError:  # an array
        return False


def concatenate_all(arrays: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Put names or labels behind one another if all parts have them, else return None."""
    present = [array for array in arrays if array is not None]
    return read_only(np.concatenate(present)) if len(present) == len(arrays) else None


def common_names(names: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Return the names if all have the same, else None."""
    first = names[0]
    if first is None:
        return None
    agree = all(other is not None and np.array_equal(first, other) for other in names)
    return first if agree else None


def _checked_length(
    what: str, array: NDArray[Any], length: int, dimensions: tuple[int, ...]
) -> NDArray[Any]:
    if array.ndim not in dimensions or len(array) != length:
        msg = f"{what} must have {length} entries. Got an array of shape {array.shape}."
        raise InvalidBagsError(msg)
    return read_only(array)


def as_selector(key: Any, n_bags: int) -> Any:
    """Return a slice, or an index array of bags that exist."""
    if isinstance(key, slice):
        return key
    index = np.asarray(key)
    if index.size == 0 and index.dtype.kind == "f":  # an empty list
        index = index.astype(np.int64)
    if index.ndim != 1 or index.dtype.kind not in "iub":
        msg = (
            "Bags are selected by an int, a slice, a mask or a 1-D array of positions. "
            f"Got shape {index.shape}, dtype {index.dtype}."
        )
        raise IndexError(msg)
    if index.dtype.kind == "b":
        if len(index) != n_bags:
            msg = f"A mask must have one entry per bag, {n_bags}. Got {len(index)}."
            raise IndexError(msg)
        return np.flatnonzero(index)
    outside = index[(index < -n_bags) | (index >= n_bags)]
    if len(outside):
        msg = f"Bag {outside[0]} does not exist: there are {n_bags} bags."
        raise IndexError(msg)
    return index


def positions(key: Any, n_bags: int) -> Integers:
    """Return which bags a selector of `as_selector` means, counted from 0."""
    if isinstance(key, slice):
        return read_only(np.arange(*key.indices(n_bags)))
    index = np.asarray(key, np.int64)
    return read_only(np.where(index < 0, index + n_bags, index))


# --------------------------------------------------------------------------- lists and arrays


def stack_list(arrays: Iterable[Any]) -> tuple[Matrix, Integers]:
    """Stack a sequence of matrices, one a bag; all that is wrong with them in one message."""
    arrays = list(arrays)
    matrices: list[Matrix] = []
    problems: list[str] = []
    for i, array in enumerate(arrays):
        try:
            matrix = as_matrix(array, what=f"bag {i}")
        except InvalidBagsError as error:
            problems.append(str(error))
        else:
            matrices.append(matrix)
    if not arrays:
        problems.append("A list of bags needs at least one bag.")
    empty = [i for i, m in enumerate(matrices) if m.shape[0] == 0]
    if empty and not problems:
        problems.append(
            f"Every bag needs at least one instance; bag(s) {_listed(empty)} have none."
        )
    widths = np.array([matrix.shape[1] for matrix in matrices])
    if len(widths) and not problems:
        values, counts = np.unique(widths, return_counts=True)
        usual = int(values[counts.argmax()])
        odd = np.flatnonzero(widths != usual)
        if len(odd):
            problems.append(
                f"Bags must have one number of features: bag(s) {_listed(odd.tolist())} have "
                f"{sorted(set(widths[odd].tolist()))}, the others {usual}."
            )
    if problems:
        raise InvalidBagsError(" ".join(problems[:_SHOWN]))
    sizes = np.array([matrix.shape[0] for matrix in matrices], dtype=np.int64)
    return stack_rows(matrices), offsets_of(sizes)


def flatten_array(array: ArrayLike) -> tuple[NDArray[Any], Integers]:
    """See a 3-D array as bags of equal size, without a copy if it is C-ordered."""
    # A mask stays on, to be refused with the matrix.
    cube = array if isinstance(array, np.ndarray) else _as_array("A 3-D array", array)
    if cube.ndim != 3:
        msg = f"A 3-D array (bags x instances x features) is needed. Got {cube.ndim} dimension(s)."
        raise InvalidBagsError(msg)
    n_bags, size, n_features = cube.shape
    if size == 0 and n_bags:
        refuse_empty(np.zeros(n_bags, dtype=np.int64))
    return cube.reshape(n_bags * size, n_features), np.arange(n_bags + 1, dtype=np.int64) * size


# --------------------------------------------------------------------------------- bag ids


@dataclass(frozen=True)
class Groups:
    """How rows in any order become bags: in order of first appearance."""

    names: NDArray[Any]
    offsets: Integers
    order: Integers | None  # rows bag by bag; None if they already are

    def reorder(self, what: str, values: ArrayLike | None) -> NDArray[Any] | None:
        """Bring an array about the rows into the order of the bags."""
        if values is None:
            return None
        array = _as_array(what, values)
        if array.ndim == 0 or len(array) != self.offsets[-1]:
            msg = f"{what} must have one entry per row, {self.offsets[-1]}. Got {array.shape}."
            raise InvalidBagsError(msg)
        return array if self.order is None else array[self.order]

    def once_per_bag(self, what: str, values: ArrayLike | None) -> NDArray[Any] | None:
        """Reduce an array about the rows to one entry per bag; it must not vary inside a bag."""
        rows = self.reorder(what, values)
        if rows is None:
            return None
        first = rows[self.offsets[:-1]]
        expected = np.repeat(first, np.diff(self.offsets), axis=0)
        differs = (rows != expected) & ((rows == rows) | (expected == expected))  # NaN is NaN
        if differs.any():
            row = int(np.argwhere(differs)[0, 0])
            bag = int(np.searchsorted(self.offsets, row, side="right")) - 1
            msg = (
                f"{what} must not vary inside a bag: {describe_bag(bag, self.names)} has "
                f"{np.asarray(first[bag]).tolist()!r} and {np.asarray(rows[row]).tolist()!r}."
            )
            raise InvalidBagsError(msg)
        return np.asarray(first)


def group_rows(bag_ids: ArrayLike, n_rows: int) -> Groups:
    """Find the bags among rows in any order."""
    ids = _as_array("bag_ids", bag_ids)
    if ids.ndim != 1 or len(ids) != n_rows:
        msg = f"bag_ids must have one entry per row, {n_rows}. Got shape {ids.shape}."
        raise InvalidBagsError(msg)
    if (missing := is_missing(ids)).any():
        msg = f"bag_ids must not be missing: row {int(np.argmax(missing))} has none."
        raise InvalidBagsError(msg)
    if ids.dtype == object:
        ids = ids.astype(np.str_)
    if n_rows == 0:
        return Groups(ids.astype(np.str_), np.zeros(1, dtype=np.int64), None)
    # Rows of one bag mostly stand together, so work on runs of equal ids, not on rows.
    run_starts = np.append(0, np.flatnonzero(ids[1:] != ids[:-1]) + 1)
    run_sizes = np.diff(np.append(run_starts, n_rows))
    unique, first_run, run_code = np.unique(ids[run_starts], return_index=True, return_inverse=True)
    by_appearance = np.argsort(first_run, kind="stable")
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(len(unique))
    code = rank[run_code]
    names = unique[by_appearance].astype(np.str_)
    sizes = np.bincount(code, weights=run_sizes, minlength=len(unique)).astype(np.int64)
    order = None
    if len(unique) < len(run_starts):
        order = np.argsort(np.repeat(code, run_sizes), kind="stable").astype(np.int64)
    return Groups(names, offsets_of(sizes), order)
