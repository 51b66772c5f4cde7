"""What every `fit` does, whatever is learned: all of it happens, or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager


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
