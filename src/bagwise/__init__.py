"""Multi-instance learning for scikit-learn: labels belong to bags of instances.

The public names below are imported when they are first used, so that ``import bagwise`` costs
next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bagwise._version import __version__

if TYPE_CHECKING:
    from bagwise._discovery import all_estimators
    from bagwise.bags import Bags
    from bagwise.persistence import load, save

__all__ = ["Bags", "__version__", "all_estimators", "load", "save"]

_HOMES = {
    "Bags": "bagwise.bags",
    "all_estimators": "bagwise._discovery",
    "load": "bagwise.persistence",
    "save": "bagwise.persistence",
}
_SUBPACKAGES = {
    "bags",
    "base",
    "cli",
    "cluster",
    "datasets",
    "density",
    "embedding",
    "ensemble",
    "exceptions",
    "inspection",
    "io",
    "kernels",
    "metric",
    "metrics",
    "model_selection",
    "neighbors",
    "persistence",
    "preprocessing",
    "solvers",
    "svm",
    "testing",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _SUBPACKAGES:
        return import_module(f"bagwise.{name}")
    msg = f"module 'bagwise' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBPACKAGES})
