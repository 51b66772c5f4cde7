"""Matlab files: which variables are the bags, and which are their labels.

Known layouts: a cell array of matrices beside labels; a cell array with the label in its second
column; a struct array with a field for the instances; one matrix with the bag of each row; a
struct with ``data``, ``nlab`` and ``milbag``, as PRTools keeps its data sets.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise.bags import Bags
from bagwise.exceptions import InvalidBagsError
from bagwise.io._mat5 import Cell, Struct, read_mat
from bagwise.io._options import Options
from bagwise.io._problems import bad
from bagwise.io._rows import Reading
from bagwise.io._streams import Source

OPTIONS = frozenset({"bag", "label", "key"})

_INSTANCES = ("instances", "instance", "data", "x", "features", "bag", "bags")
_IDS = ("bag", "bags", "bag_id", "bag_ids", "bagid", "milbag", "groups")
_LABELS = ("y", "label", "labels", "target", "targets", "bag_labels", "class")
_NAMES = ("name", "names", "id", "bag_name", "bag_names")
_INSTANCE_LABELS = ("instance_label", "instance_labels", "inst_label", "inst_labels", "instance_y")


def open_reading(source: Source, options: Options) -> Reading:
    """Read the variables and find the bags among them."""
    variables = read_mat(source)
    if not variables:
        raise bad(source.path, "there is no variable with data in it.")
    guessed: dict[str, str] = {}
    try:
        bags = _Finder(source, variables, options, guessed).bags()
    except InvalidBagsError as error:
        raise bad(source.path, str(error)) from error
    return Reading(source, "mat", pieces=lambda: _once(bags), guessed=guessed)


def _once(bags: Bags) -> Iterator[Bags]:
    yield bags


class _Finder:
    def __init__(
        self, source: Source, variables: dict[str, Any], options: Options, guessed: dict[str, str]
    ) -> None:
        self.source, self.variables, self.options = source, variables, options
        self.guessed = guessed

    def bags(self) -> Bags:
        if self.options.key is not None:
            if self.options.key not in self.variables:
                msg = f"there is no variable {self.options.key!r}"
                raise self._fail(msg)
            candidates = [self.options.key]
        else:
            candidates = list(self.variables)
        cells = [n for n in candidates if _is_cell_of_bags(self.variables[n])]
        structs = [n for n in candidates if _instances_field(self.variables[n]) is not None]
        tables = [n for n in candidates if _is_prtools(self.variables[n])]
        if len(cells) + len(structs) + len(tables) > 1:
            names = ", ".join((*cells, *structs, *tables))
            msg = f"several variables may hold the bags ({names}): pass key="
            raise self._fail(msg)
        if cells:
            return self._from_cell(cells[0])
        if tables:
            return self._from_fields(tables[0], self.variables[tables[0]].items[0])
        if structs:
            return self._from_struct(structs[0])
        return self._from_fields("", self.variables)

    def _fail(self, what: str) -> Exception:
        names = ", ".join(sorted(self.variables)[:12])
        return bad(self.source.path, f"{what}. The variables are {names}.")

    def _say(self, role: str, what: str) -> None:
        self.guessed[role] = what

    def _from_cell(self, name: str) -> Bags:
        cell = self.variables[name]
        self._say("bags", f"cell array {name!r}")
        n_rows = _column_length(cell)
        matrices = _oriented([_dense_or_sparse(item) for item in cell.items[:n_rows]], self.guessed)
        known: dict[str, Any] = {}
        if n_rows < len(cell.items):
            self._say("label", "second column of the cell array")
            known["labels"] = _flat_labels(cell.items[n_rows : 2 * n_rows])
        else:
            known.update(self._labels_beside(len(matrices), exclude=name))
        return Bags.from_list(matrices, **known, allow_nan=bool(self.options.allow_nan))

    def _from_struct(self, name: str) -> Bags:
        rows = self.variables[name].items
        key = _instances_field(self.variables[name])
        assert key is not None
        self._say("bags", f"field {key!r} of the struct array {name!r}")
        matrices = _oriented([_dense_or_sparse(row[key]) for row in rows], self.guessed)
        known: dict[str, Any] = {}
        label = _field(rows[0], _LABELS)
        if label is not None and self.options.label is not False:
            self._say("label", f"field {label!r}")
            known["labels"] = _flat_labels([row[label] for row in rows])
        elif self.options.label is not False:
            known.update(self._labels_beside(len(rows), exclude=name))
        names = _field(rows[0], _NAMES)
        if names is not None:
            known["bag_names"] = [_scalar(row[names]) for row in rows]
        inside = _field(rows[0], _INSTANCE_LABELS)
        if inside is not None:
            known["instance_labels"] = _whole(
                np.concatenate([np.ravel(row[inside]) for row in rows])
            )
        return Bags.from_list(matrices, **known, allow_nan=bool(self.options.allow_nan))

    def _from_fields(self, name: str, fields: dict[str, Any]) -> Bags:
        """One matrix, and the bag of each row."""
        key = self.options.key if self.options.key in fields else _field(fields, _INSTANCES[:5])
        inner = fields.get("ident")
        more = inner.items[0] if isinstance(inner, Struct) and inner.items else {}
        ids = {**more, **fields}
        given = self.options.bag
        bag = str(given) if given is not None else _field(ids, [i for i in _IDS if i != key])
        if key is None or bag is None or bag not in ids:
            msg = "there is no cell or struct array of bags, and no matrix with bag ids"
            raise self._fail(msg)
        self._say("bags", f"matrix {key!r} with the bag of each row in {bag!r}")
        matrix = _dense_or_sparse(fields[key])
        groups = _vector(ids[bag])
        labels: Any = None
        if "nlab" in fields and "lablist" in fields:
            self._say("label", "'nlab' and 'lablist'")
            labels = _prtools_labels(self.source, fields["nlab"], fields["lablist"])
        else:
            known = self._labels_beside(matrix.shape[0], exclude=key, fields=fields)
            labels = known.get("labels")
        allow_nan = bool(self.options.allow_nan)
        return Bags.from_groups(matrix, groups, labels=labels, allow_nan=allow_nan)

    def _labels_beside(
        self, length: int, *, exclude: str, fields: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        fields = self.variables if fields is None else fields
        if self.options.label is False:
            return {}
        given = self.options.label
        name = str(given) if given is not None else _field(fields, _LABELS)
        if name is None or name == exclude:
            self._say("label", "none")
            return {}
        if name not in fields:
            msg = f"there is no variable {name!r} (label=)"
            raise self._fail(msg)
        if given is None:
            self._say("label", f"variable {name!r}")
        return {"labels": _label_array(self.source, name, fields[name], length)}


def _field(fields: dict[str, Any], known: Sequence[str]) -> str | None:
    return next((name for k in known for name in fields if name.lower() == k), None)


def _is_matrix(value: Any) -> bool:
    dense = isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "biuf"
    return dense or sparse.issparse(value)


def _column_length(cell: Cell) -> int:
    """Return the number of bags: all cells, or those of the first of two columns."""
    if len(cell.shape) != 2 or cell.shape[1] != 2:
        return len(cell.items)
    second = cell.items[cell.shape[0] :]
    has_labels = all(isinstance(item, str) or np.shape(item) == (1, 1) for item in second)
    return cell.shape[0] if has_labels else len(cell.items)


def _is_cell_of_bags(value: Any) -> bool:
    if not isinstance(value, Cell) or not value.items:
        return False
    return all(_is_matrix(item) for item in value.items[: _column_length(value)])


def _instances_field(value: Any) -> str | None:
    if not isinstance(value, Struct) or not value.items or _is_prtools(value):
        return None
    key = _field(value.items[0], _INSTANCES)
    if key is None or not all(_is_matrix(row.get(key)) for row in value.items):
        return None
    return key


def _is_prtools(value: Any) -> bool:
    if not isinstance(value, Struct) or len(value.items) != 1:
        return False
    fields = value.items[0]
    ident = fields.get("ident")
    inner = ident.items[0] if isinstance(ident, Struct) and ident.items else {}
    return _is_matrix(fields.get("data")) and ("milbag" in fields or "milbag" in inner)


def _dense_or_sparse(value: Any) -> Any:
    return sparse.csr_array(value) if sparse.issparse(value) else value


def _oriented(matrices: list[Any], guessed: dict[str, str]) -> list[Any]:
    """Have instances as rows: the side that all bags share is that of the features."""
    heights, widths = ({m.shape[side] for m in matrices} for side in (0, 1))
    if len(widths) > 1 and len(heights) == 1:
        guessed["instances"] = "columns of the matrices"
        return [m.T for m in matrices]
    return matrices


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return value
    array = np.ravel(value) if isinstance(value, np.ndarray) else np.zeros(0)
    if len(array) != 1:
        msg = f"one number or text is needed for a bag. Got {type(value).__name__} {array[:3]}."
        raise InvalidBagsError(msg)
    return array[0].item()


def _flat_labels(values: list[Any]) -> NDArray[Any]:
    return _whole(np.array([_scalar(value) for value in values]))


def _vector(value: Any) -> NDArray[Any]:
    if isinstance(value, Cell):
        return np.array([str(_scalar(item)) for item in value.items])
    if not isinstance(value, np.ndarray):
        msg = "the bag of each row must be a vector of numbers or a cell array of names."
        raise InvalidBagsError(msg)
    return _whole(value.ravel())


def _whole(array: NDArray[Any]) -> NDArray[Any]:
    """Return integers where all numbers are whole: Matlab keeps them as double."""
    if array.dtype.kind != "f" or not np.isfinite(array).all() or (abs(array) >= 2**53).any():
        return array
    return array.astype(np.int64) if (array == np.round(array)).all() else array


def _label_array(source: Source, name: str, value: Any, length: int) -> NDArray[Any]:
    if isinstance(value, Cell):
        value = _flat_labels(value.items)
    elif isinstance(value, list):
        value = np.array(value)
    elif sparse.issparse(value):
        source.admit(int(np.prod(value.shape)) * 8, f"{name!r}")
        value = value.toarray()
    if not isinstance(value, np.ndarray):
        raise bad(source.path, f"the labels {name!r} must be numbers or text.")
    if value.size == length:
        return _whole(value.ravel())
    if value.ndim == 2 and length in value.shape:
        matrix = value if value.shape[0] == length else value.T
        both = set(np.unique(matrix).tolist()) == {-1, 1}
        return (matrix > 0).astype(np.int8) if both else _whole(matrix)
    raise bad(source.path, f"the labels {name!r} have shape {value.shape}, for {length} bags.")


def _prtools_labels(source: Source, nlab: Any, lablist: Any) -> NDArray[Any]:
    first = lablist.items[0] if isinstance(lablist, Cell) and lablist.items else lablist
    names = [first] if isinstance(first, str) else first
    codes = np.ravel(nlab).astype(np.int64) if isinstance(nlab, np.ndarray) else np.zeros(0, int)
    names = np.ravel(names).tolist() if isinstance(names, np.ndarray) else names
    if not isinstance(names, list) or not len(codes) or not (
        codes.min() >= 1 and codes.max() <= len(names)
    ):  # fmt: skip
        raise bad(source.path, "'nlab' does not point into 'lablist'.")
    return np.array(names)[codes - 1]
