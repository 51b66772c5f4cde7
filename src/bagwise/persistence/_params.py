"""Fields of parameters: plain values, and estimators where a class has them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bagwise.persistence._schema import (
    MAX_NESTING,
    Array,
    Field,
    Scope,
    described,
    dump_float,
    load_float,
)


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
            at.fail(f"must be a list, not {described(value)}")
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
    """A parameter: None, bool, int, float, str, lists, tuples and dicts of them, or an array.

    Numbers and strings of numpy become Python's. An array, such as the start of a search, has one
    or two dimensions and is a value by itself, not a part of another.
    """

    def dump(self, value: Any, at: Scope, depth: int = 0) -> Any:
        if depth >= MAX_NESTING:
            at.fail(f"is nested deeper than {MAX_NESTING} levels")
        if depth == 0 and type(value) is np.ndarray and value.ndim in (1, 2):
            return _numbers(value.ndim).dump(value, at)
        if isinstance(value, np.bool_ | np.integer | np.floating | np.str_):
            value = value.item()
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int:
            return self._bounded(value, at)
        if type(value) is float:
            return dump_float(value)
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
                return load_float(node, at)
            if form == "tuple" and isinstance(content, list):
                return tuple(self.load(item, at, depth + 1) for item in content)
            if form == "dict" and isinstance(content, list):
                return self._load_dict(content, at, depth)
            if form == "array" and depth == 0:
                stored = at.arrays.get(at.path)
                return _numbers(1 if stored is None else stored.ndim).load(node, at)
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


def _numbers(n_dimensions: int) -> Array:
    return Array(kinds="biuf", shape=(None,) * n_dimensions, finite=False)


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
