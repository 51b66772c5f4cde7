"""Fields of fitted attributes that are more than one array: labels, matrices, certificates."""

from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Integers
from bagwise.persistence._schema import MAX_NESTING, Array, Field, Number, Scope, Text, described

_LARGEST_CODE_POINT = 0x10FFFF
_FLOAT_TYPE = Text(("float32", "float64"))


@dataclass(frozen=True)
class Strings(Field):
    """A one-dimensional array of Python strings (dtype object), such as ``feature_names_in_``."""

    size: str

    def dump(self, value: Any, at: Scope) -> Any:
        if type(value) is not np.ndarray or value.ndim != 1 or value.dtype != object:
            at.fail(f"must be a 1-d array of str with dtype object, not {described(value)}")
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
            at.fail(f"must be a 1-d array of labels, not {described(value)}")
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
            at.fail(f"must be a dense or CSR matrix, not {described(value)}")
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
class FloatType(Field):
    """The dtype float32 or float64."""

    def dump(self, value: Any, at: Scope) -> Any:
        return _FLOAT_TYPE.dump(str(value), at)

    def load(self, node: Any, at: Scope) -> Any:
        return np.dtype(_FLOAT_TYPE.load(node, at))


@dataclass(frozen=True)
class Statistics(Field):
    """A number per feature; NaN for a feature without values, of dtype object if given by users.

    All of them come back as floats, which is what they are used as.
    """

    size: str

    def dump(self, value: Any, at: Scope) -> Any:
        if type(value) is np.ndarray and value.dtype == object:
            if any(isinstance(part, bool) or not isinstance(part, Real) for part in value.ravel()):
                at.fail("must be numbers")
            value = value.astype(np.float64)
        return self._floats.dump(value, at)

    def load(self, node: Any, at: Scope) -> Any:
        return self._floats.load(node, at)

    @property
    def _floats(self) -> Array:
        return Array(shape=(self.size,), finite=False)


@dataclass(frozen=True)
class CertificateField(Field):
    """A `bagwise.solvers.Certificate`; of a `Result`, the certificate in it."""

    def dump(self, value: Any, at: Scope, depth: int = 0) -> Any:
        from bagwise.solvers import Certificate

        if not isinstance(value, Certificate):
            at.fail(f"must be a Certificate, not {described(value)}")
        self._bound(depth, at)
        members = {
            name: Number(finite=False).dump(float(getattr(value, name)), at.child(name))
            for name in self._floats
        }
        members["status"] = str(value.status)
        members["n_iter"] = Number(kinds="i", ge=0).dump(int(value.n_iter), at.child("n_iter"))
        for name in self._histories:
            values = np.asarray(getattr(value, name), dtype=np.float64)
            members[name] = self._history.dump(values, at.child(name))
        members["parts"] = [
            self.dump(part, at.child(f"parts.{i}"), depth + 1) for i, part in enumerate(value.parts)
        ]
        return members

    def load(self, node: Any, at: Scope, depth: int = 0) -> Any:
        from bagwise.solvers import Certificate, Status

        self._bound(depth, at)
        names = {field.name for field in dataclass_fields(Certificate)}
        if isinstance(node, dict) and "ends" not in node:  # an older file
            names.remove("ends")
        at.members(node, names)
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
            **{
                name: self._history.load(node[name], at.child(name))
                for name in self._histories
                if name in node
            },
            parts=tuple(
                self.load(part, at.child(f"parts.{i}"), depth + 1) for i, part in enumerate(parts)
            ),
        )

    _floats = ("objective", "lower_bound", "residual", "solve_time")
    _histories = ("history", "gap_history", "ends")

    @property
    def _history(self) -> Array:
        return Array(shape=(None,), itemsizes=(8,), finite=False)

    @staticmethod
    def _bound(depth: int, at: Scope) -> None:
        if depth >= MAX_NESTING:
            at.fail(f"has parts nested deeper than {MAX_NESTING} levels")


def check_offsets(
    offsets: Integers, scope: Scope, n_parts: int, n_members: int, *, least: int = 1
) -> None:
    """Check that offsets cut members into parts, each of which has at least so many."""
    scope.bind("n_offsets", n_parts + 1)
    ends = offsets[0] == 0 and offsets[-1] == n_members
    if not ends or not (np.diff(offsets) >= least).all():
        scope.fail("must cut the instances into bags" if least else "must cut labels into lists")


def _load_unicode(at: Scope) -> NDArray[Any]:
    """Return the string array that is stored as one row of code points per string."""
    codes = at.take()
    if codes.dtype != np.uint32 or codes.ndim != 2 or codes.shape[1] == 0:
        at.fail("of str must be stored as rows of code points")
    if codes.size and codes.max() > _LARGEST_CODE_POINT:
        at.fail("must be valid Unicode")
    return codes.view(np.dtype(f"U{codes.shape[1]}")).reshape(len(codes))


def _csr_forms() -> dict[Any, str]:
    from scipy import sparse

    return {sparse.csr_matrix: "matrix", sparse.csr_array: "array"}
