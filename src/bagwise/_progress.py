"""What long work says about itself while it goes on.

A loop calls `report` after each step. Whoever has asked with `listening` hears it, in the same
thread; nobody asks by default, and then a report costs next to nothing. So solvers tell how far
they are without knowing who shows it, or how.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import isfinite, log, nan
from time import perf_counter
from typing import NamedTuple, TextIO, TypeAlias, TypeVar

#: What contains what: a report about one of them ends what was said about those to the right.
LEVELS = ("start", "round", "pass", "cut", "step", "block")

_BAR = 20  # characters
_TERMINAL_SECONDS, _FILE_SECONDS = 0.1, 5.0  # between two lines


class Report(NamedTuple):
    """A step of a loop.

    Parameters
    ----------
    level : str
        What was done: one of `LEVELS`.
    number : int
        How many of them.
    total : int or None
        How many there will be, if that is known.
    objective : float
        The best objective so far, NaN if there is none.
    gap : float
        The relative gap, NaN if it is not known.
    goal : float
        The gap at which the loop ends, NaN if it is not known.
    """

    level: str
    number: int
    total: int | None = None
    objective: float = nan
    gap: float = nan
    goal: float = nan


Listener: TypeAlias = Callable[[Report], None]
Item = TypeVar("Item")

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(
    level: str,
    number: int,
    *,
    total: int | None = None,
    objective: float = nan,
    gap: float = nan,
    goal: float = nan,
) -> None:
    """Tell who listens that a step was done; see `Report`."""
    listener = _listener.get()
    if listener is not None:
        listener(Report(level, number, total, float(objective), float(gap), float(goal)))


def counted(items: Iterable[Item], total: int, level: str = "block") -> Iterator[Item]:
    """Yield items, such as blocks of a large matrix, and report each once it is dealt with.

    Parameters
    ----------
    items : iterable
        What is gone through, in the thread that listens.
    total : int
        How many there are. A single one is not worth a word.
    level : str
        What they are: one of `LEVELS`.
    """
    for number, item in enumerate(items, 1):
        yield item
        if total > 1:
            report(level, number, total=total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have the reports of the block; whoever listened before does not get them."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@dataclass
class Trail:
    """Where the work is: the last report of each level."""

    reports: dict[str, Report] = field(default_factory=dict)
    first_gap: float = nan

    def add(self, step: Report) -> None:
        """Take note of a step; what was said about steps inside of it is over."""
        place = LEVELS.index(step.level)
        for level in LEVELS[place + 1 :]:
            self.reports.pop(level, None)
        last = self.reports.get(step.level)
        self.reports[step.level] = step
        is_first = last is None or step.number < last.number
        if self._outermost("gap") is step and (is_first or not isfinite(self.first_gap)):
            self.first_gap = step.gap

    def __str__(self) -> str:
        parts = [_counted(step) for step in self._from_outside()]
        for name, form in (("objective", ".6g"), ("gap", ".1e")):
            step = self._outermost(name)
            parts += [] if step is None else [f"{name} {getattr(step, name):{form}}"]
        return ", ".join(parts)

    @property
    def share(self) -> float:
        """How much of the way from the first gap to its goal is done, NaN if that is not known."""
        step = self._outermost("gap")
        if step is None or not (self.first_gap > step.goal > 0.0):
            return nan
        gap = min(max(step.gap, step.goal), self.first_gap)
        return log(self.first_gap / gap) / log(self.first_gap / step.goal)

    def _from_outside(self) -> list[Report]:
        return [self.reports[level] for level in LEVELS if level in self.reports]

    def _outermost(self, name: str) -> Report | None:
        """Return the outermost step that knows a number: steps inside of it solve parts only."""
        return next((s for s in self._from_outside() if isfinite(getattr(s, name))), None)


def _counted(step: Report) -> str:
    return f"{step.level} {step.number}" + (f" of {step.total}" if step.total else "")


class ProgressLine:
    """Shows reports as text: on a terminal or in a notebook one line that changes, else lines.

    Parameters
    ----------
    name : str
        What is going on.
    verbose : int
        1: the line changes ten times a second at most; where it cannot, there is a new one every
        five seconds. 2 or more: a line for each step.
    stream : text stream, optional
        Where to write; the standard error stream by default.
    clock : callable
        Returns seconds.
    """

    def __init__(
        self,
        name: str,
        verbose: int = 1,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.name, self.verbose, self.clock = name, int(verbose), clock
        self.stream = sys.stderr if stream is None else stream
        self.changes = self.verbose == 1 and _can_rewrite(self.stream)
        self.trail, self.began = Trail(), clock()
        self.shown_at, self.width = self.began, 0

    def __call__(self, step: Report) -> None:
        """Take note of a step, and show it if it is time."""
        self.trail.add(step)
        pause = _TERMINAL_SECONDS if self.changes else _FILE_SECONDS
        if self.verbose > 1 or self.clock() - self.shown_at >= pause:
            self.show()

    def show(self, end: str | None = None) -> None:
        """Write the line; how the work ended takes the place of the bar."""
        self.shown_at = self.clock()
        text = f"{self.name}: {self.trail}, {self.shown_at - self.began:.1f} s"
        if isfinite(share := self.trail.share):
            done = round(_BAR * share)
            bar = "#" * done + "." * (_BAR - done) if end is None else f" {end} ".center(_BAR, "-")
            text = f"[{bar}] {text}"
        self._write(f"\r{text.ljust(self.width)}" if self.changes else f"{text}\n")
        self.width = len(text)

    def close(self, end: str = "ended") -> None:
        """Show where the work ended and how, in a word, and leave the line."""
        if self.trail.reports and self.verbose == 1:
            self.show(end)
        if self.changes and self.width:
            self._write("\n")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def _can_rewrite(stream: TextIO) -> bool:
    """Tell whether a line can be written over: on a terminal and in a notebook."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")


@contextmanager
def shown(name: str, verbose: int) -> Iterator[None]:
    """Show the reports of the block, unless ``verbose`` is 0."""
    if not verbose:
        yield
        return
    line, end = ProgressLine(name, verbose), "broken off"
    try:
        with listening(line):
            yield
        end = "ended"
    finally:
        line.close(end)
