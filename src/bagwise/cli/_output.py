"""What the commands share: where text goes, how errors look, exit codes.

Results go to stdout and nothing else does; progress, warnings and hints go to stderr. With
``--json`` a command prints one object, ``{"schema": 1, "command": ..., ...}``, or
``{"schema": 1, "error": {"code", "message", "where"}}``. A field is only ever added to it; what
changes or goes raises the number.
"""

import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

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

    def note(self, text: str) -> None:
        """Say something that is not the result: what was guessed, what could be done."""
        self.progress.print(text, soft_wrap=True, markup=False)

    @contextmanager
    def busy(self, doing: str) -> Iterator[None]:
        """Show that something is going on that cannot be counted, for how long, and its reports."""
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        from bagwise._progress import Report, Trail, listening

        text, trail = TextColumn("{task.description} ...", markup=False), Trail()
        with self._live(SpinnerColumn(), text, TimeElapsedColumn()) as live:
            task = live.add_task(doing, total=None)

            def show(step: Report) -> None:
                trail.add(step)
                live.update(task, description=f"{doing}: {trail}")

            with listening(show):
                yield

    @contextmanager
    def counting(self, doing: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Show a bar; gives a function that is told how many steps have been made."""
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        text = TextColumn("{task.description}", markup=False)
        if total is None:
            rest = [TextColumn("{task.completed:,}"), TimeElapsedColumn()]
        else:
            done = TextColumn("{task.completed:,} of {task.total:,}")
            rest = [done, TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn()]
        with self._live(text, BarColumn(), *rest) as live:
            task = live.add_task(doing, total=total)
            yield lambda steps: live.advance(task, steps)

    def _live(self, *columns: "ProgressColumn") -> "Progress":
        from rich.console import Console
        from rich.progress import Progress

        idle = self.quiet or not self.progress.is_terminal
        # Before version 15, rich ends even a disabled display with an empty line.
        console = Console(quiet=True) if idle else self.progress
        return Progress(*columns, console=console, transient=True, disable=idle)

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Print each warning of the block as a line, once, when the block is left."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            try:
                yield
            finally:
                for text in dict.fromkeys(" ".join(str(w.message).split()) for w in caught):
                    self.note(f"warning: {text}")

    def result(self, text: str, data: Mapping[str, Any]) -> None:
        """Print the result, once: as text, or as the JSON object that says the same."""
        if self.as_json:
            print_json(data)
        else:
            sys.stdout.write(text.rstrip("\n") + "\n")
        sys.stdout.flush()


@contextmanager
def bad_input(*, code: str, where: str | None) -> Iterator[None]:
    """Take a ValueError of the block for what it is there: something is wrong with the input."""
    try:
        yield
    except ValueError as error:
        raise CommandError(str(error), code=code, where=where) from error


def print_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object with the number of its schema."""
    json.dump({"schema": SCHEMA, **data}, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_error(message: str, *, code: str, where: str | None, as_json: bool) -> None:
    """Print an error: one line on stderr, or a JSON object on stdout."""
    line = "".join(c if c.isprintable() else "?" for c in " ".join(message.split()))
    if as_json:
        print_json({"error": {"code": code, "message": line, "where": where}})
        sys.stdout.flush()
    else:
        sys.stderr.write(f"bagwise: {line}\n")


def number(value: float | None) -> float | None:
    """Return a number that JSON can hold: None for infinity and NaN."""
    return None if value is None or not isfinite(value) else float(value)


def json_value(value: Any) -> Any:
    """Return a setting or a label as JSON can hold it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(part) for part in value]
    return value if isinstance(value, str | int | None) else str(value)


def close_broken_pipe() -> None:
    """Let the interpreter end in peace when the reader of stdout is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_any_name() -> None:
    """Escape what the terminal's encoding lacks: names in files may hold anything."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # a stream that cannot be flushed fails when it is used
                stream.reconfigure(errors="backslashreplace")
