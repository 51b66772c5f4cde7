"""Comparisons that say what differs and by how much; every one of them is tested to fail."""

import copy
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from scipy import sparse

from bagwise.bags import Bags

#: For scores that differ by the order of floating-point sums alone.
ROUNDING = 1e-9
#: For scores of two solutions of one problem, each exact to the tolerance of its solver.
SOLVER = 1e-5

#: Attributes that measure time.
_CLOCKS = frozenset({"solve_time"})


def assert_close(actual: Any, expected: Any, what: str, *, tolerance: float = SOLVER) -> None:
    """Raise unless scores agree to ``tolerance`` in units of the largest score, at least 1."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        msg = f"{what}: the shapes {actual.shape} and {expected.shape} differ."
        raise AssertionError(msg)
    assert_finite(actual, what)
    assert_finite(expected, what)
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    error = np.abs(actual - expected).max(initial=0.0)
    if not error <= tolerance * scale:
        msg = f"{what}: scores differ by {error:.3g}; at most {tolerance * scale:.3g} is right."
        raise AssertionError(msg)


def assert_identical(actual: Any, expected: Any, what: str) -> None:
    """Raise unless two values are the same to the last bit."""
    place = difference(actual, expected)
    if place is not None:
        msg = f"{what}: not the same to the last bit ({place})."
        raise AssertionError(msg)


def assert_finite(values: Any, what: str) -> None:
    """Raise if a score is NaN or infinite."""
    if not np.isfinite(values).all():
        msg = f"{what}: scores must be finite. Got {np.asarray(values).ravel()[:5]}..."
        raise AssertionError(msg)


def assert_scores_differ(actual: Any, expected: Any, what: str) -> None:
    """Raise if scores agree, so that a comparison which follows would mean nothing."""
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    if np.shape(actual) == np.shape(expected) and np.allclose(
        actual, expected, rtol=0, atol=10 * SOLVER * scale
    ):
        msg = f"{what}: scores should differ and do not."
        raise AssertionError(msg)


def snapshot(estimator: Any) -> dict[str, Any]:
    """Return a deep copy of all that an estimator holds."""
    return copy.deepcopy(vars(estimator))


def assert_same_state(estimator: Any, before: Mapping[str, Any], what: str) -> None:
    """Raise unless an estimator holds exactly what a `snapshot` holds, at any depth."""
    place = difference(dict(vars(estimator)), dict(before))
    if place is not None:
        msg = f"{what}: the state of {type(estimator).__name__} changed ({place})."
        raise AssertionError(msg)


def difference(a: Any, b: Any, place: str = "") -> str | None:
    """Say where two values first differ, or return None if they are the same at any depth.

    Floating-point values are compared bit by bit, times that were measured not at all.
    """
    here = place or "value"
    if type(a) is not type(b):
        return f"{here}: {type(a).__name__} against {type(b).__name__}"
    a_parts, b_parts = _parts(a), _parts(b)
    if a_parts is not None and b_parts is not None:
        return _part_difference(a_parts, b_parts, place, here)
    if isinstance(a, np.ndarray):
        return _array_difference(a, b, here)
    if isinstance(a, float | np.floating):
        return _array_difference(np.array(a), np.array(b), here)
    return None if a is b or a == b else f"{here}: {a!r} against {b!r}"


def _array_difference(a: np.ndarray, b: np.ndarray, here: str) -> str | None:
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{here}: {a.dtype} {a.shape} against {b.dtype} {b.shape}"
    if a.dtype == object:
        return _part_difference(dict(enumerate(a.flat)), dict(enumerate(b.flat)), here, here)
    return None if a.tobytes() == b.tobytes() else f"{here}: values"


def _part_difference(
    a: Mapping[Any, Any], b: Mapping[Any, Any], place: str, here: str
) -> str | None:
    if odd := a.keys() ^ b.keys():
        return f"{here}: {sorted(map(str, odd))} on one side only"
    for key in a:
        if key not in _CLOCKS:
            found = difference(a[key], b[key], f"{place}.{key}" if place else str(key))
            if found is not None:
                return found
    return None


def _parts(value: Any) -> dict[Any, Any] | None:
    """Return what a compound value is made of, by name or number, or None if it is simple."""
    if isinstance(value, str | bytes | type | FunctionType):
        return None
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    if sparse.issparse(value):
        csr = sparse.csr_array(value)
        return {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": csr.shape}
    if isinstance(value, Bags):
        return {"_base": value._base, **value._rest()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, np.random.RandomState):
        return {"state": value.get_state()}
    if isinstance(value, np.random.Generator):
        return {"state": value.bit_generator.state}
    if isinstance(value, partial):
        return {"func": value.func, "args": value.args, "keywords": value.keywords}
    return dict(vars(value)) if hasattr(value, "__dict__") else None
