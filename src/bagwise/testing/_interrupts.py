"""Exceptions injected into a fit: at each look at the data, each attribute set, each call.

No trace function and no signal: where the exception comes is counted, so a run can be repeated.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from bagwise.bags import Bags

_FOREIGN = frozenset({"sklearn", "builtins", "abc", "typing", "collections"})


class Trip:
    """Count events, and raise at one of them.

    Parameters
    ----------
    at : int or None
        Number of the event at which to raise, counted from 1; None only counts.
    error : type of BaseException
        What to raise.
    """

    def __init__(self, at: int | None = None, error: type[BaseException] = KeyboardInterrupt):
        self.at = at
        self.error = error
        self.count = 0

    def __call__(self) -> None:
        """Count one event."""
        self.count += 1
        if self.count == self.at:
            msg = "injected by a bag check"
            raise self.error(msg)


class TrippingBags(Bags):
    """Bags that count every look at them."""

    __slots__ = ("_trip",)

    _trip: Trip

    def __getattribute__(self, name: str) -> Any:
        if name != "_trip":
            self._trip()
        return super().__getattribute__(name)

    @classmethod
    def of(cls, bags: Bags, trip: Trip) -> "TrippingBags":
        """Return the same bags, counted."""
        counted = cls._trusted(bags._base, **bags._rest())
        counted._trip = trip
        return counted


@contextmanager
def tripping_attributes(estimator: Any, trip: Trip) -> Iterator[None]:
    """Count every attribute that the estimator is given."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if self is estimator:
            trip()
        object.__setattr__(self, name, value)

    with patch.object(type(estimator), "__setattr__", __setattr__):
        yield


@contextmanager
def tripping_calls(estimator: Any, trip: Trip) -> Iterator[None]:
    """Count the calls of functions that the modules of the estimator's classes make by name."""
    with ExitStack() as stack:
        for module in _modules(estimator):
            for name, function in list(vars(module).items()):
                if isinstance(function, FunctionType) or hasattr(function, "py_func"):
                    stack.enter_context(patch.object(module, name, _counted(function, trip)))
        yield


def _modules(estimator: Any) -> list[ModuleType]:
    names = dict.fromkeys(cls.__module__ for cls in type(estimator).__mro__)
    return [sys.modules[name] for name in names if name.partition(".")[0] not in _FOREIGN]


def _counted(function: Callable[..., Any], trip: Trip) -> Callable[..., Any]:
    @wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        trip()
        return function(*args, **kwargs)

    return counted


def fit_with_data_trip(model: Any, bags: Bags, y: Any, trip: Trip) -> None:
    """Fit on bags that count every look at them."""
    model.fit(TrippingBags.of(bags, trip), y)


def fit_with_attribute_trip(model: Any, bags: Bags, y: Any, trip: Trip) -> None:
    """Fit while attributes are counted."""
    with tripping_attributes(model, trip):
        model.fit(bags, y)


def fit_with_call_trip(model: Any, bags: Bags, y: Any, trip: Trip) -> None:
    """Fit while calls are counted."""
    with tripping_calls(model, trip):
        model.fit(bags, y)


#: The ways in which a fit can be cut, by name.
CUTS: dict[str, Callable[[Any, Bags, Any, Trip], None]] = {
    "a look at the data": fit_with_data_trip,
    "an attribute being set": fit_with_attribute_trip,
    "a call": fit_with_call_trip,
}


def cut_places(n_events: int, most: int = 6) -> list[int]:
    """Return events spread from the first to the last."""
    return np.unique(np.linspace(1, n_events, min(n_events, most)).astype(int)).tolist()
