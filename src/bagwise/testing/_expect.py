"""Expecting an error or a warning, without pytest."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning


@contextmanager
def raises(error: type[BaseException], *patterns: str, what: str) -> Iterator[None]:
    """Expect an error whose message matches every pattern.

    Parameters
    ----------
    error : type of BaseException
        What must be raised, or a subclass.
    *patterns : str
        Regular expressions that the message must contain, in any case of letters.
    what : str
        What was done, as the start of the sentence "... must raise ...".
    """
    try:
        yield
    except error as caught:
        for pattern in patterns:
            if not re.search(pattern, str(caught), re.IGNORECASE):
                msg = f"{what}: the message must contain {pattern!r}. Got: {caught}"
                raise AssertionError(msg) from caught
    except Exception as caught:
        msg = f"{what} must raise {error.__name__}. Got {type(caught).__name__}: {caught}"
        raise AssertionError(msg) from caught
    else:
        msg = f"{what} must raise {error.__name__}. Nothing was raised."
        raise AssertionError(msg)


@contextmanager
def warns(category: type[Warning], *patterns: str, what: str) -> Iterator[None]:
    """Expect a warning whose text matches every pattern."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [str(warning.message) for warning in caught if issubclass(warning.category, category)]
    if not texts:
        msg = f"{what} must warn with {category.__name__}. There was no such warning."
        raise AssertionError(msg)
    for pattern in patterns:
        if not re.search(pattern, texts[0], re.IGNORECASE):
            msg = f"{what}: the warning must contain {pattern!r}. Got: {texts[0]}"
            raise AssertionError(msg)


@contextmanager
def remarks_are_no_matter() -> Iterator[None]:
    """Ignore `UserWarning`, where data are so odd that a method may remark on them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@contextmanager
def convergence_is_no_matter() -> Iterator[None]:
    """Ignore `ConvergenceWarning`, where data are so odd that a method may give up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
