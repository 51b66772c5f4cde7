"""Words of the command line: names that are nearly right, settings, counts."""

import ast
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from bagwise.cli._output import CommandError

_CONSTANTS = {"true": True, "false": False, "none": None, "null": None}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name closest to one that is not known, or the list of them."""
    names = list(known)  # some differ in capitals alone
    close = get_close_matches(name.lower(), map(str.lower, names), n=1)
    if close:
        meant = [candidate for candidate in names if candidate.lower() == close[0]]
        return f"Did you mean {' or '.join(meant)}?"
    return f"Known: {', '.join(names)}." if names else "There are none."


def parse_setting(text: str, option: str) -> tuple[str, str]:
    """Split ``key=value``."""
    key, mark, value = text.partition("=")
    if not mark or not key.strip():
        msg = f"{option} needs KEY=VALUE. Got {text!r}."
        raise CommandError(msg, code="usage", where=option)
    return key.strip(), value.strip()


def parse_settings(texts: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Read ``key=value`` pairs; values are Python literals, or else text."""
    found: dict[str, Any] = {}
    for text in texts or ():
        key, value = parse_setting(text, option)
        if key in found:
            msg = f"{option} gives {key} twice."
            raise CommandError(msg, code="usage", where=option)
        found[key] = literal(value)
    return found


def parse_grid(texts: Sequence[str] | None, option: str) -> dict[str, list[Any]]:
    """Read ``key=value,value,...``: the values to choose from."""
    found: dict[str, list[Any]] = {}
    for text in texts or ():
        key, values = parse_setting(text, option)
        if key in found:
            msg = f"{option} gives {key} twice."
            raise CommandError(msg, code="usage", where=option)
        whole = literal(f"[{values}]")
        parts = values.split(",")
        found[key] = whole if isinstance(whole, list) else [literal(part) for part in parts]
        if not found[key] or not all(part.strip() for part in parts):
            msg = f"{option} needs KEY=VALUE,VALUE,... Got {text!r}."
            raise CommandError(msg, code="usage", where=option)
    return found


def literal(text: str) -> Any:
    """Return what a text means in Python (a number, a list, True, None), or the text."""
    text = text.strip()
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def count(number: int, what: str) -> str:
    """Return "1 bag", "2 bags"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def align(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Return rows as columns of equal width, two spaces apart; the first row is the heading."""
    to_the_right = set(right)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if j in to_the_right else cell.ljust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def printable(text: str) -> str:
    """Return a name that a terminal can show: no control characters, whatever a file has put in."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def same_label(label: Any, other: Any) -> bool:
    """Tell whether two labels mean the same, where one may be text and the other a number."""
    return meaning(label) == meaning(other)


def meaning(label: Any) -> float | str:
    """Return the number that a label is or spells, or its text; truth values are words."""
    if isinstance(label, bool):
        return str(label)
    try:
        return float(label)
    except ValueError:
        return str(label)
