"""A small schema language: what an attribute may be, how it is stored, how it is checked.

A field dumps a value to JSON (large parts go to the arrays of the file) and loads it back. Both
directions make the same checks, so what can be saved can be loaded, and what was loaded from a
file of unknown origin is as well formed as what `fit` made. Every failure is a `ModelFileError`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from bagwise.exceptions import ModelFileError

#: How deep estimators may be nested, and the parts of a certificate, and lists in parameters.
MAX_NESTING = 6

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
        return at.fail(f"has none of its forms: {described(value)}")

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
            at.fail(f"must be an array, not {described(value)}")
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
        return dump_float(value) if isinstance(value, float) else value

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
            value = load_float(node, at) if isinstance(node, dict) else node
        self._check(value, at)
        return value

    def _check(self, value: Any, at: Scope) -> None:
        kind: str = {int: "i", float: "f"}.get(type(value), "")
        if isinstance(value, np.generic):
            kind = value.dtype.kind
        if not kind or kind not in self.kinds:
            names = " or ".join(_KIND_NAMES[kind] for kind in self.kinds)
            at.fail(f"must be of {names}, not {described(value)}")
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
            at.fail(f"must be True or False, not {described(node)}")
        return node


@dataclass(frozen=True)
class Text(Field):
    """One of a few words."""

    choices: tuple[str, ...]

    def dump(self, value: Any, at: Scope) -> Any:
        return self.load(value, at)

    def load(self, node: Any, at: Scope) -> Any:
        if type(node) is not str or node not in self.choices:
            at.fail(f"must be one of {list(self.choices)}, not {described(node)}")
        return node


def dump_float(value: float) -> Any:
    """Return the JSON of a float: a number with its shortest exact digits, or its name."""
    return value if isfinite(value) else {"float": str(value)}


def load_float(node: Mapping[str, Any], at: Scope) -> float:
    name = at.members(node, ["float"])["float"]
    if name not in ("nan", "inf", "-inf"):
        at.fail("must be a number, or 'nan', 'inf' or '-inf'")
    return float(name)


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
    axes = "".join(f"{axis}?" for axis in range(array.ndim))
    if not isinstance(layout, str) or not re.fullmatch(f"[CF]{axes}", layout):
        at.fail("has an impossible layout")
    backwards = tuple(int(axis) for axis in layout[1:])
    order: Any = layout[0]
    return np.flip(np.array(np.flip(array, backwards), order=order), backwards)


def described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with the shape {value.shape}"
    if isinstance(value, str | int | float | None):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:37]}..."
    return type(value).__name__
