"""Warnings that point at the line of the user's program that led to them."""

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Packages whose lines are never the user's.
_PASSED_OVER = frozenset({"bagwise", "sklearn", "joblib"})
_left_out: ContextVar[tuple[type[Warning], ...]] = ContextVar("left_out", default=())
_said: list[tuple[type[Warning], set[str]]] = []  # what is to be said once, and was
_lock = threading.Lock()


@contextmanager
def quiet(category: type[Warning] = Warning) -> Iterator[None]:
    """Leave out the library's own warnings of a category, in this thread."""
    token = _left_out.set((*_left_out.get(), category))
    try:
        yield
    finally:
        _left_out.reset(token)


@contextmanager
def once(category: type[Warning]) -> Iterator[None]:
    """Let the library say each warning of a category once meanwhile, in all threads together."""
    said: tuple[type[Warning], set[str]] = category, set()
    with _lock:
        _said.append(said)
    try:
        yield
    finally:
        with _lock:
            _said[:] = [other for other in _said if other is not said]


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line outside of this library, of scikit-learn and of joblib.

    Where there is none, as in a thread or process of theirs, it is the outermost line.
    """
    if issubclass(category, _left_out.get()) or _was_said(message, category):
        return
    level, frame = 2, sys._getframe(1)  # the caller, as `warnings.warn` counts from here
    while frame.f_back is not None and _package(frame.f_globals) in _PASSED_OVER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _was_said(message: str, category: type[Warning]) -> bool:
    """Tell whether a warning is to be said once and was; note that it is."""
    with _lock:
        texts = [texts for kind, texts in _said if issubclass(category, kind)]
        was_said = any(message in said for said in texts)
        for said in texts:
            said.add(message)
    return was_said


def _package(module: dict[str, object]) -> str:
    return str(module.get("__name__", "")).partition(".")[0]
