"""A small schema language: what an attribute may be, how it is stored, how it is checked.

A field dumps a value to JSON (large parts go to the arrays of the file) and loads it back. Both
directions make the same checks, so what can be saved can be loaded, and what was loaded from a
file of unknown origin is as well formed as what `fit` made. Every failure is a `ModelFileError`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from math import isfinite
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from bagwise.exceptions import ModelFileError

#: How deep estimators may be nested, and the parts of a certificate, and lists in parameters.
MAX_NESTING = 6

_LARGEST_CODE_POINT = 0x10FFFF
_KIND_NAMES = {"b": "bool", "i": "int", "u": "unsigned int", "f": "float", "U": "str"}


class EstimatorCodec(Protocol):
    """Stores whole estimators; what `Nested` needs to know of the registry."""

    def dump(self, estimator: Any, at: "Scope") -> Any: ...

    def load(self, node: Any, at: "Scope") -> Any: ...


@dataclass(frozen=True)
class Scope:
    """Where in the model we are, and what is shared along the way.

    Parameters
    ----------
    owner : str
        Class name of the estimator, for messages.
    path : str
        Name of the field, dotted; also the name of its array in the file.
    arrays : dict of str to ndarray
        Filled while dumping; emptied while loading, so that what is left was not asked for.
    sizes : dict of str to int
        Symbolic dimensions of this estimator, bound by the first array that has them.
    codec : EstimatorCodec
        Stores nested estimators.
    depth : int
        How many estimators are around this one.
    """

    owner: str
    path: str
    arrays: dict[str, NDArray[Any]]
    sizes: dict[str, int]
    codec: EstimatorCodec
    depth: int = 0

    def child(self, name: str) -> "Scope":
        """Return the scope of a member."""
        return replace(self, path=f"{self.path}.{name}" if self.path else name)

    def inside(self, owner: str) -> "Scope":
        """Return the scope of another estimator at this place: its dimensions are its own."""
        if self.depth >= MAX_NESTING:
            self.fail(f"is nested deeper than {MAX_NESTING} estimators")
        return replace(self, owner=owner, sizes={}, depth=self.depth + 1)

    def fail(self, text: str, cause: BaseException | None = None) -> NoReturn:
        """Raise, naming the class and the field."""
        msg = f"{self.owner}: {self.path or 'model'} {text}"
        raise ModelFileError(msg) from cause

    def bind(self, name: str, size: int) -> None:
        """Let a symbolic dimension have this size; it keeps it."""
        known = self.sizes.setdefault(name, size)
        if size != known:
            self.fail(f"has {name} = {size}, where another attribute has {known}")

    def put(self, array: NDArray[Any]) -> None:
        """Add the array of this field to the file."""
        self.arrays[self.path] = array

    def take(self) -> NDArray[Any]:
        """Take the array of this field out of the file."""
        if self.path not in self.arrays:
            self.fail("has no array in the file")
        return self.arrays.pop(self.path)

    def members(self, node: Any, names: Collection[str]) -> dict[str, Any]:
        """Return ``node``, which must be a JSON object with exactly these members."""
        if not isinstance(node, dict) or set(node) != set(names):
            self.fail(f"must be an object with the members {sorted(names)}")
        return node


class Field(ABC):
    """One attribute or parameter of an estimator."""

    @abstractmethod
    def dump(self, value: Any, at: Scope) -> Any:
        """Return the JSON for a value, and put its arrays into the scope."""

    @abstractmethod
    def load(self, node: Any, at: Scope) -> Any:
        """Return the value from its JSON and arrays."""


@dataclass(frozen=True)
class Optional(Field):
    """An attribute that some fits do not set; never for parameters."""

    field: Field

    def dump(self, value: Any, at: Scope) -> Any:
        return self.field.dump(value, at)

    def load(self, node: Any, at: Scope) -> Any:
        return self.field.load(node, at)


@dataclass(frozen=True)
class Nullable(Field):
    """A value, or None."""

    field: Field

    def dump(self, value: Any, at: Scope) -> Any:
        return None if value is None else self.field.dump(value, at)

    def load(self, node: Any, at: Scope) -> Any:
        return None if node is None else self.field.load(node, at)


@dataclass(frozen=True)
class OneOf(Field):
    """The first of several fields that takes the value."""

    fields: tuple[Field, ...]

    def dump(self, value: Any, at: Scope) -> Any:
        for which, field in enumerate(self.fields):
            sizes = dict(at.sizes)
            try:
                return [which, field.dump(value, at)]
            except ModelFileError:
                at.sizes.clear()
                at.sizes.update(sizes)
        return at.fail(f"has none of its forms: {_described(value)}")

    def load(self, node: Any, at: Scope) -> Any:
        valid = isinstance(node, list) and len(node) == 2 and type(node[0]) is int
        if not valid or not 0 <= node[0] < len(self.fields):
            at.fail("must say which of its forms it has")
        return self.fields[node[0]].load(node[1], at)


@dataclass(frozen=True, kw_only=True)
class Array(Field):
    """A plain array.

    Parameters
    ----------
    kinds : str
        Kinds of dtype that it may have, of ``"biuf"``.
    shape : tuple of str or None
        Symbolic dimensions, which agree among all attributes of the estimator; None: any size.
    itemsizes : tuple of int
        Sizes in bytes that the dtype may have; empty: any.
    finite : bool
        Whether NaN and infinity are refused.
    ge : float or None
        Smallest value.
    """

    kinds: str = "f"
    shape: tuple[str | None, ...]
    itemsizes: tuple[int, ...] = ()
    finite: bool = True
    ge: float | None = None

    def dump(self, value: Any, at: Scope) -> Any:
        self.check(value, at)
        at.put(value)
        return {"array": _layout(value)}

    def load(self, node: Any, at: Scope) -> Any:
        layout = at.members(node, ["array"])["array"]
        value = at.take()
        self.check(value, at)
        return _laid_out(value, layout, at)

    def check(self, value: Any, at: Scope) -> None:
        """Raise unless the value is such an array."""
        if type(value) not in (np.ndarray, np.memmap):
            at.fail(f"must be an array, not {_described(value)}")
        if value.ndim != len(self.shape):
            at.fail(f"must have {len(self.shape)} dimensions, not {value.ndim}")
        if value.dtype.kind not in self.kinds or (
            self.itemsizes and value.dtype.itemsize not in self.itemsizes
        ):
            names = " or ".join(_KIND_NAMES[kind] for kind in self.kinds)
            sizes = f" of {' or '.join(map(str, self.itemsizes))} bytes" if self.itemsizes else ""
            at.fail(f"must be of {names}{sizes}, not {value.dtype}")
        for name, size in zip(self.shape, value.shape, strict=True):
            if name is not None:
                at.bind(name, size)
        if self.finite and value.dtype.kind == "f" and not np.isfinite(value).all():
            at.fail("must be finite")
        if self.ge is not None and not (value >= self.ge).all():
            at.fail(f"must not be below {self.ge}")


@dataclass(frozen=True, kw_only=True)
class Number(Field):
    """A number, of Python or of numpy: which one is kept, because it decides later dtypes.

    Parameters
    ----------
    kinds : str
        Of ``"if"``.
    finite : bool
        Whether NaN and infinity are refused.
    ge, gt : float or None
        Smallest value; a value below all others.
    size : str or None
        The symbolic dimension that this number is.
    """

    kinds: str = "f"
    finite: bool = True
    ge: float | None = None
    gt: float | None = None
    size: str | None = None

    def dump(self, value: Any, at: Scope) -> Any:
        self._check(value, at)
        if isinstance(value, np.generic):
            at.put(np.asarray(value))
            return {"array": "C"}
        return _dump_float(value) if isinstance(value, float) else value

    def load(self, node: Any, at: Scope) -> Any:
        if isinstance(node, dict) and "array" in node:
            at.members(node, ["array"])
            if node["array"] != "C":
                at.fail("must be in C order")
            array = at.take()
            if array.ndim:
                at.fail("must be a number, not an array")
            value: Any = array[()]
        else:
            value = _load_float(node, at) if isinstance(node, dict) else node
        self._check(value, at)
        return value

    def _check(self, value: Any, at: Scope) -> None:
        kind: str = {int: "i", float: "f"}.get(type(value), "")
        if isinstance(value, np.generic):
            kind = value.dtype.kind
        if not kind or kind not in self.kinds:
            names = " or ".join(_KIND_NAMES[kind] for kind in self.kinds)
            at.fail(f"must be of {names}, not {_described(value)}")
        if kind == "f" and self.finite and not np.isfinite(value):
            at.fail(f"must be finite, not {value}")
        if kind == "i" and not -(2**63) <= int(value) < 2**63:
            at.fail("must fit into 64 bits")
        if self.ge is not None and not value >= self.ge:
            at.fail(f"must be at least {self.ge}, not {value}")
        if self.gt is not None and not value > self.gt:
            at.fail(f"must be above {self.gt}, not {value}")
        if self.size is not None:
            at.bind(self.size, int(value))


@dataclass(frozen=True)
class Flag(Field):
    """True or False; numpy's become Python's."""

    def dump(self, value: Any, at: Scope) -> Any:
        return self.load(bool(value) if isinstance(value, np.bool_) else value, at)

    def load(self, node: Any, at: Scope) -> Any:
        if type(node) is not bool:
            at.fail(f"must be True or False, not {_described(node)}")
        return node


@dataclass(frozen=True)
class Text(Field):
    """One of a few words."""

    choices: tuple[str, ...]

    def dump(self, value: Any, at: Scope) -> Any:
        return self.load(value, at)

    def load(self, node: Any, at: Scope) -> Any:
        if type(node) is not str or node not in self.choices:
            at.fail(f"must be one of {list(self.choices)}, not {_described(node)}")
        return node


@dataclass(frozen=True)
class Strings(Field):
    """A one-dimensional array of Python strings (dtype object), such as ``feature_names_in_``."""

    size: str

    def dump(self, value: Any, at: Scope) -> Any:
        if type(value) is not np.ndarray or value.ndim != 1 or value.dtype != object:
            at.fail(f"must be a 1-d array of str with dtype object, not {_described(value)}")
        texts = [str(text) if type(text) is np.str_ else text for text in value]
        return self._checked(texts, at)

    def load(self, node: Any, at: Scope) -> Any:
        texts = self._checked(node, at)
        value = np.empty(len(texts), dtype=object)
        value[:] = texts
        return value

    def _checked(self, texts: Any, at: Scope) -> list[str]:
        if not isinstance(texts, list) or any(type(text) is not str for text in texts):
            at.fail("must be strings")
        at.bind(self.size, len(texts))
        return texts


@dataclass(frozen=True)
class Labels(Field):
    """Class labels as `numpy.unique` gives them: sorted, distinct; bool, int, float or str."""

    size: str

    def dump(self, value: Any, at: Scope) -> Any:
        if type(value) is not np.ndarray or value.ndim != 1:
            at.fail(f"must be a 1-d array of labels, not {_described(value)}")
        self._check(value, at)
        if value.dtype.kind == "O":
            return {"object": Strings(self.size).dump(value, at)}
        if value.dtype.kind == "U":
            native = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("="))
            at.put(native.view(np.uint32).reshape(len(native), -1))
            return {"array": "str"}
        at.put(value)
        return {"array": "C"}

    def load(self, node: Any, at: Scope) -> Any:
        if isinstance(node, dict) and "object" in node:
            value = Strings(self.size).load(at.members(node, ["object"])["object"], at)
        else:
            form = at.members(node, ["array"])["array"]
            if form not in ("C", "str"):
                at.fail("must be stored as 'C' or 'str'")
            value = _load_unicode(at) if form == "str" else at.take()
        self._check(value, at)
        return value

    def _check(self, value: NDArray[Any], at: Scope) -> None:
        if value.dtype.kind == "O" and any(type(label) is not str for label in value):
            at.fail("of dtype object must be strings")
        if value.dtype.kind not in "biufUO" or value.ndim != 1:
            at.fail(f"must be labels of bool, int, float or str, not {value.dtype}")
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            at.fail("must be finite")
        if not (value[1:] > value[:-1]).all():
            at.fail("must be sorted and distinct")
        at.bind(self.size, len(value))


@dataclass(frozen=True)
class Matrix(Field):
    """A dense or CSR matrix of float32 or float64; finite."""

    rows: str
    columns: str

    def dump(self, value: Any, at: Scope) -> Any:
        if type(value) in (np.ndarray, np.memmap):
            return self._dense.dump(value, at)
        form = _csr_forms().get(type(value))
        if form is None:
            at.fail(f"must be a dense or CSR matrix, not {_described(value)}")
        shape = [int(size) for size in value.shape]
        self._check(value.data, value.indices, value.indptr, shape, at)
        at.child("data").put(value.data)
        at.child("indices").put(value.indices)
        at.child("indptr").put(value.indptr)
        return {"csr": form, "shape": shape}

    def load(self, node: Any, at: Scope) -> Any:
        if isinstance(node, dict) and "array" in node:
            return self._dense.load(node, at)
        shape = at.members(node, ["csr", "shape"])["shape"]
        if not isinstance(shape, list) or [type(size) for size in shape] != [int, int]:
            at.fail("must have two dimensions")
        if not all(0 <= size < 2**63 for size in shape):
            at.fail("must have sizes of 64 bits")
        data, indices, indptr = (at.child(name).take() for name in ("data", "indices", "indptr"))
        self._check(data, indices, indptr, shape, at)
        for make, form in _csr_forms().items():
            if form == node["csr"]:
                value = make((data, indices, indptr), shape=tuple(shape))
                value.indices, value.indptr = indices, indptr  # scipy may have narrowed them
                return value
        return at.fail("must be a CSR 'matrix' or 'array'")

    @property
    def _dense(self) -> Array:
        return Array(kinds="f", shape=(self.rows, self.columns), itemsizes=(4, 8))

    def _check(self, data: Any, indices: Any, indptr: Any, shape: list[int], at: Scope) -> None:
        """Check a CSR matrix in full: compiled code will trust its indices."""
        rows, columns = shape
        at.bind(self.rows, rows)
        at.bind(self.columns, columns)
        index = Array(kinds="i", shape=(None,), itemsizes=(4, 8), ge=0)
        index.check(indices, at.child("indices"))
        index.check(indptr, at.child("indptr"))
        Array(kinds="f", shape=(None,), itemsizes=(4, 8)).check(data, at.child("data"))
        if len(data) != len(indices):
            at.child("data").fail("must be as long as the indices")
        if len(indptr) != rows + 1 or indptr[0] != 0 or indptr[-1] != len(indices):
            at.child("indptr").fail("does not fit the matrix")
        if (indptr[1:] < indptr[:-1]).any():
            at.child("indptr").fail("must not decrease")
        if len(indices) and indices.max() >= columns:
            at.child("indices").fail(f"must be below the number of columns, {columns}")


@dataclass(frozen=True)
class CertificateField(Field):
    """A `bagwise.solvers.Certificate`; of a `Result`, the certificate in it."""

    def dump(self, value: Any, at: Scope, depth: int = 0) -> Any:
        from bagwise.solvers import Certificate

        if not isinstance(value, Certificate):
            at.fail(f"must be a Certificate, not {_described(value)}")
        self._bound(depth, at)
        members = {
            name: Number(finite=False).dump(float(getattr(value, name)), at.child(name))
            for name in self._floats
        }
        members["status"] = str(value.status)
        members["n_iter"] = Number(kinds="i", ge=0).dump(int(value.n_iter), at.child("n_iter"))
        members["history"] = self._history.dump(
            np.asarray(value.history, dtype=np.float64), at.child("history")
        )
        members["parts"] = [
            self.dump(part, at.child(f"parts.{i}"), depth + 1) for i, part in enumerate(value.parts)
        ]
        return members

    def load(self, node: Any, at: Scope, depth: int = 0) -> Any:
        from bagwise.solvers import Certificate, Status

        self._bound(depth, at)
        at.members(node, [field.name for field in dataclass_fields(Certificate)])
        parts = node["parts"]
        if not isinstance(parts, list):
            at.child("parts").fail("must be a list")
        Text(tuple(map(str, Status))).load(node["status"], at.child("status"))
        numbers = {}
        for name in self._floats:
            if isinstance(node[name], dict):
                at.child(name).members(node[name], ["float"])
            numbers[name] = Number(finite=False).load(node[name], at.child(name))
        if type(node["n_iter"]) is not int:
            at.child("n_iter").fail("must be an int")
        return Certificate(
            **numbers,
            status=Status(node["status"]),
            n_iter=Number(kinds="i", ge=0).load(node["n_iter"], at.child("n_iter")),
            history=self._history.load(node["history"], at.child("history")),
            parts=tuple(
                self.load(part, at.child(f"parts.{i}"), depth + 1) for i, part in enumerate(parts)
            ),
        )

    _floats = ("objective", "lower_bound", "residual", "solve_time")

    @property
    def _history(self) -> Array:
        return Array(shape=(None,), itemsizes=(8,), finite=False)

    @staticmethod
    def _bound(depth: int, at: Scope) -> None:
        if depth >= MAX_NESTING:
            at.fail(f"has parts nested deeper than {MAX_NESTING} levels")


@dataclass(frozen=True)
class Nested(Field):
    """An estimator of the registry."""

    def dump(self, value: Any, at: Scope) -> Any:
        return at.codec.dump(value, at)

    def load(self, node: Any, at: Scope) -> Any:
        return at.codec.load(node, at)


@dataclass(frozen=True)
class Steps(Field):
    """The steps of a pipeline: names with estimators, ``"passthrough"`` or None."""

    def dump(self, value: Any, at: Scope) -> Any:
        if not isinstance(value, list | tuple):
            at.fail(f"must be a list, not {_described(value)}")
        steps = []
        for i, step in enumerate(value):
            if not isinstance(step, list | tuple) or len(step) != 2:
                at.child(str(i)).fail("must be a pair of a name and an estimator")
            name, member = step
            plain = member is None or (isinstance(member, str) and member == "passthrough")
            steps.append([name, member if plain else at.codec.dump(member, at.child(str(i)))])
        self._check(value, at)
        return steps

    def load(self, node: Any, at: Scope) -> Any:
        if not isinstance(node, list):
            at.fail("must be a list")
        steps = []
        for i, step in enumerate(node):
            if not isinstance(step, list) or len(step) != 2:
                at.child(str(i)).fail("must be a pair of a name and an estimator")
            name, member = step
            plain = member is None or member == "passthrough"
            steps.append((name, member if plain else at.codec.load(member, at.child(str(i)))))
        self._check(steps, at)
        return steps

    @staticmethod
    def _check(steps: Any, at: Scope) -> None:
        names = [name for name, _ in steps]
        if not names or any(type(name) is not str or "__" in name for name in names):
            at.fail("must have names, without '__'")
        if len(set(names)) != len(names):
            at.fail("must have distinct names")
        for name, member in steps[:-1]:
            if member is not None and member != "passthrough" and not hasattr(member, "transform"):
                at.fail(f"must be transformers before the last one; {name!r} is not")


@dataclass(frozen=True)
class Nothing(Field):
    """A parameter that can be stored only as None, and why."""

    reason: str

    def dump(self, value: Any, at: Scope) -> Any:
        return self.load(value, at)

    def load(self, node: Any, at: Scope) -> Any:
        if node is not None:
            at.fail(f"cannot be stored: {self.reason}")


@dataclass(frozen=True)
class Value(Field):
    """A parameter: None, bool, int, float, str, and lists, tuples and dicts of them.

    Numbers and strings of numpy become Python's.
    """

    def dump(self, value: Any, at: Scope, depth: int = 0) -> Any:
        if depth >= MAX_NESTING:
            at.fail(f"is nested deeper than {MAX_NESTING} levels")
        if isinstance(value, np.bool_ | np.integer | np.floating | np.str_):
            value = value.item()
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int:
            return self._bounded(value, at)
        if type(value) is float:
            return _dump_float(value)
        if type(value) in (list, tuple):
            items = [self.dump(item, at, depth + 1) for item in value]
            return items if type(value) is list else {"tuple": items}
        if type(value) is dict:
            items = [
                [self._key(self.dump(key, at, depth + 1), at), self.dump(item, at, depth + 1)]
                for key, item in value.items()
            ]
            return {"dict": items}
        return at.fail(f"cannot be stored: {_why_not(value)}")

    def load(self, node: Any, at: Scope, depth: int = 0) -> Any:
        if depth >= MAX_NESTING:
            at.fail(f"is nested deeper than {MAX_NESTING} levels")
        if isinstance(node, list):
            return [self.load(item, at, depth + 1) for item in node]
        if not isinstance(node, dict):
            return self._bounded(node, at) if type(node) is int else node
        if len(node) == 1:
            ((form, content),) = node.items()
            if form == "float":
                return _load_float(node, at)
            if form == "tuple" and isinstance(content, list):
                return tuple(self.load(item, at, depth + 1) for item in content)
            if form == "dict" and isinstance(content, list):
                return self._load_dict(content, at, depth)
        return at.fail("must be a value, a tuple or a dict")

    def _load_dict(self, content: list[Any], at: Scope, depth: int) -> dict[Any, Any]:
        result = {}
        for pair in content:
            if not isinstance(pair, list) or len(pair) != 2:
                at.fail("must be a dict of pairs")
            key = self.load(self._key(pair[0], at), at, depth + 1)
            result[key] = self.load(pair[1], at, depth + 1)
        if len(result) != len(content):
            at.fail("must be a dict of distinct keys")
        return result

    @staticmethod
    def _key(node: Any, at: Scope) -> Any:
        if isinstance(node, list) or (isinstance(node, dict) and "float" not in node):
            at.fail("must be a dict with keys of bool, int, float or str")
        return node

    @staticmethod
    def _bounded(value: int, at: Scope) -> int:
        if not -(2**63) <= value < 2**64:
            at.fail("must fit into 64 bits")
        return value


def _dump_float(value: float) -> Any:
    """Return the JSON of a float: a number with its shortest exact digits, or its name."""
    return value if isfinite(value) else {"float": str(value)}


def _load_float(node: Mapping[str, Any], at: Scope) -> float:
    name = at.members(node, ["float"])["float"]
    if name not in ("nan", "inf", "-inf"):
        at.fail("must be a number, or 'nan', 'inf' or '-inf'")
    return float(name)


def _load_unicode(at: Scope) -> NDArray[Any]:
    """Return the string array that is stored as one row of code points per string."""
    codes = at.take()
    if codes.dtype != np.uint32 or codes.ndim != 2 or codes.shape[1] == 0:
        at.fail("of str must be stored as rows of code points")
    if codes.size and codes.max() > _LARGEST_CODE_POINT:
        at.fail("must be valid Unicode")
    return codes.view(np.dtype(f"U{codes.shape[1]}")).reshape(len(codes))


def _layout(array: NDArray[Any]) -> str:
    """Return how the array lies in memory: its order, and the axes that run backwards.

    Matrix products give other bits for other layouts, and scikit-learn keeps transposed and
    reversed views (``PCA``).
    """
    by_columns = not array.flags.c_contiguous and abs(array.strides[0]) < abs(array.strides[-1])
    backwards = [str(axis) for axis, stride in enumerate(array.strides) if stride < 0]
    return "".join(["F" if by_columns else "C", *backwards])


def _laid_out(array: NDArray[Any], layout: Any, at: Scope) -> NDArray[Any]:
    """Return the array with such a layout; it comes in plain C order."""
    if layout == "C":
        return array
    axes = "".join(map(str, range(array.ndim)))
    if not isinstance(layout, str) or not re.fullmatch(f"[CF]{'?'.join(axes)}?", layout):
        at.fail("has an impossible layout")
    backwards = tuple(int(axis) for axis in layout[1:])
    order: Any = layout[0]
    return np.flip(np.array(np.flip(array, backwards), order=order), backwards)


def _csr_forms() -> dict[Any, str]:
    from scipy import sparse

    return {sparse.csr_matrix: "matrix", sparse.csr_array: "array"}


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with the shape {value.shape}"
    if isinstance(value, str | int | float | None):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:37]}..."
    return type(value).__name__


def _why_not(value: Any) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return (
            "a random generator is not plain data; set an int or None before saving, "
            "which does not change what was fitted"
        )
    if hasattr(value, "get_params"):
        return f"an estimator ({type(value).__name__}) is not supported here; use skops"
    if callable(value):
        return "a callable is code, not data; use a named kernel or function, or skops"
    return f"a {type(value).__name__} is not plain data; use skops"
