"""What the commands share: where text goes, how errors look, exit codes.

Results go to stdout and nothing else does; progress, warnings and hints go to stderr. With
``--json`` a command prints one object, ``{"schema": 1, "command": ..., ...}``, or
``{"schema": 1, "error": {"code", "message", "where"}}``. A field is only ever added to it; what
changes or goes raises the number.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = 1

OK = 0
BUG = 1
BAD_INPUT = 2
INTERRUPTED = 130


class CommandError(Exception):
    """Something is wrong with what the user asked for: one line, exit code 2.

    Parameters
    ----------
    message : str
        What is wrong and what to do, in one line.
    code : str
        A word that programs can test.
    where : str or None
        The file, bag or option that is meant.
    """

    def __init__(self, message: str, *, code: str = "input", where: str | None = None) -> None:
        super().__init__(message)
        self.code, self.where = code, where


@dataclass(frozen=True)
class Output:
    """Where a command writes.

    Parameters
    ----------
    as_json : bool
        Whether the result is one JSON object.
    quiet : bool
        Whether to say nothing about progress.
    color : bool
        Whether colours are allowed; they are used on terminals, unless ``NO_COLOR`` is set.
    """

    as_json: bool = False
    quiet: bool = False
    color: bool = True

    @cached_property
    def progress(self) -> "Console":
        """The console for everything that is not the result."""
        from rich.console import Console

        return Console(
            stderr=True, quiet=self.quiet, no_color=None if self.color else True, highlight=False
        )

    def result(self, text: str, data: Mapping[str, Any]) -> None:
        """Print the result, once: as text, or as the JSON object that says the same."""
        if self.as_json:
            print_json(data)
        else:
            sys.stdout.write(text.rstrip("\n") + "\n")
        sys.stdout.flush()


def print_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object with the number of its schema."""
    json.dump({"schema": SCHEMA, **data}, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_error(message: str, *, code: str, where: str | None, as_json: bool) -> None:
    """Print an error: one line on stderr, or a JSON object on stdout."""
    line = " ".join(message.split())
    if as_json:
        print_json({"error": {"code": code, "message": line, "where": where}})
        sys.stdout.flush()
    else:
        sys.stderr.write(f"bagwise: {line}\n")


def number(value: float | None) -> float | None:
    """Return a number that JSON can hold: None for infinity and NaN."""
    return None if value is None or not isfinite(value) else float(value)


def close_broken_pipe() -> None:
    """Let the interpreter end in peace when the reader of stdout is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
