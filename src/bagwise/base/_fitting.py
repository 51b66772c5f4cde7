"""What every `fit` does, whatever is learned: all of it happens, or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bagwise._arrays import Booleans
from bagwise.bags import Bags, bag_digests


@contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Put the estimator back as it was if the block is left by any exception, Ctrl-C included."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def forget_fit(estimator: object) -> None:
    """Delete the attributes of an earlier fit: which there are may depend on parameters."""
    for name in [name for name in vars(estimator) if _is_fitted(name)]:
        delattr(estimator, name)


def _is_fitted(name: str) -> bool:
    """Tell whether an attribute of this name is one that ``fit`` sets."""
    return name.endswith("_") and not name.startswith("_")


def remember_bags(estimator: Any, bags: Bags) -> None:
    """Let an estimator know the bags again that it is fitted to: 8 bytes for each.

    Raises
    ------
    InvalidBagsError
        A value is NaN or infinity; see `bag_digests`.
    """
    estimator._bag_digests = np.unique(bag_digests(bags))


def remembered_bags(estimator: Any, bags: Bags) -> Booleans | None:
    """Return which bags an estimator was fitted to, or None if it cannot tell."""
    known = getattr(estimator, "_bag_digests", None)
    return None if known is None else np.isin(bag_digests(bags), known)
