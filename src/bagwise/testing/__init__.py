"""Checks that hold a bag estimator to its contract, and data for tests."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bagwise.testing._battery import (
    check_bag_estimator,
    parametrize_with_bag_checks,
    yield_bag_checks,
)
from bagwise.testing._data import make_toy_bags

if TYPE_CHECKING:
    from bagwise.testing import _strategies as strategies  # noqa: F401

__all__ = [
    "check_bag_estimator",
    "make_toy_bags",
    "parametrize_with_bag_checks",
    "yield_bag_checks",
]


def __getattr__(name: str) -> Any:
    if name == "strategies":  # not in __all__: it needs hypothesis, and the checks do not
        return import_module("bagwise.testing._strategies")
    msg = f"module 'bagwise.testing' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted([*__all__, "strategies"])
