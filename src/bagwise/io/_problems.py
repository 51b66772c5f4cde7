"""What is wrong with a file, said in one form: where, then what."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from bagwise.exceptions import BagFileError, BagwiseError

#: What to do about a value that is missing.
TAKE_AS_NAN = "allow_nan=True takes it as NaN."

#: What to do about a label that is missing.
LEAVE_OUT = "To leave such bags out, pass on_missing_label='drop'."

_SHOWN = 60  # characters of a cell that a message repeats


def bad(where: object, what: str, *, line: int | None = None) -> BagFileError:
    """Return the error ``where:line: what``."""
    place = str(where) if line is None else f"{where}:{line}"
    return BagFileError(f"{place}: {what}")


def shown(cell: object) -> str:
    """Quote a piece of a file for a message, cut to a length that a line can bear."""
    text = str(cell)
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def label_is_missing(
    where: object,
    bag: object,
    cell: object,
    *,
    line: int | None = None,
    column: str | None = None,
) -> BagFileError:
    """Return the error for a label that is missing, and what to do about it.

    Parameters
    ----------
    where, line
        The file and its line, as for `bad`.
    bag : object
        The name of the bag.
    cell : object
        What stands for the label; a word may be meant as one.
    column : str, optional
        Its column, where there are several.
    """
    place = "" if column is None else f"column {column!r}: "
    is_word = isinstance(cell, str) and cell != ""
    has = shown(cell) if is_word else "none"
    more = f" If {has} is a label, pass missing_words=False." if is_word else ""
    msg = f"{place}the label is missing. Bag {shown(bag)} has {has}. {LEAVE_OUT}{more}"
    return bad(where, msg, line=line)


@contextmanager
def foreign(where: object, what: str) -> Iterator[None]:
    """Turn whatever another library raises about a damaged file into the one error of readers.

    Parsers of binary formats answer damage with any exception at all: KeyError, struct.error,
    MemoryError for a size that a header made up. Only our own errors pass unchanged.
    """
    try:
        yield
    except BagwiseError:
        raise
    except Exception as error:
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise bad(where, f"{what}: {reason[:300]}.") from error


def need(module: str, what: str, install: str) -> Any:
    """Import an optional dependency, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        msg = f"{what} needs {module.split('.')[0]}, which is not installed: pip install {install}"
        raise ImportError(msg) from error
