"""The list of estimators, read off the subpackages that hold them."""

from importlib import import_module
from typing import Any

#: Subpackages whose public classes are estimators, each constructible without arguments.
ESTIMATOR_PACKAGES = (
    "cluster",
    "density",
    "embedding",
    "ensemble",
    "metric",
    "neighbors",
    "svm",
)


def all_estimators() -> list[tuple[str, type[Any]]]:
    """Return the name and class of every estimator, sorted by name.

    Examples
    --------
    >>> import bagwise
    >>> [name for name, _ in bagwise.all_estimators()][:3]
    ['APR', 'BagKISVM', 'BagKMeans']
    """
    found = [
        (name, getattr(module, name))
        for module in (import_module(f"bagwise.{package}") for package in ESTIMATOR_PACKAGES)
        for name in module.__all__
        if isinstance(getattr(module, name), type)
    ]
    return sorted(found, key=lambda pair: (pair[0].lower(), pair[0]))
