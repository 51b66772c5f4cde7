"""What a caller may say about a file, checked once."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, Literal

Column = str | int

_EVERYWHERE = ("on_missing_label", "allow_nan")  # options that all formats have


@dataclass(frozen=True)
class Options:
    """The options of `bagwise.io.read`; None always means: find out."""

    bag: Column | None = None
    label: Column | Sequence[Column] | Literal[False] | None = None
    features: Sequence[Column] | None = None
    instance_name: Column | Literal[False] | None = None
    instance_label: Column | Literal[False] | None = None
    separator: str | None = None
    label_separator: str | Literal[False] | None = None
    header: bool | None = None
    encoding: str | None = None
    zero_based: bool | None = None
    preset: str | None = None
    label_table: str | PathLike[str] | Literal[False] | None = None
    key: str | None = None
    on_empty: str | None = None
    on_missing: str | None = None
    on_missing_label: str | None = None
    missing_words: bool | None = None
    allow_nan: bool | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and len(self.separator) != 1:
            _refuse("separator", "one character", self.separator)
        if self.label_separator not in (None, False) and not isinstance(self.label_separator, str):
            _refuse("label_separator", "a string, False or None", self.label_separator)
        if self.label_separator == "":
            _refuse("label_separator", "at least one character", self.label_separator)
        if self.encoding is not None and not _is_encoding(self.encoding):
            _refuse("encoding", "one that Python knows", self.encoding)
        for name in ("on_empty", "on_missing"):
            if getattr(self, name) not in (None, "error", "skip"):
                _refuse(name, "'error' or 'skip'", getattr(self, name))
        if self.on_missing_label not in (None, "error", "drop"):
            _refuse("on_missing_label", "'error' or 'drop'", self.on_missing_label)
        if self.missing_words not in (None, True, False):
            _refuse("missing_words", "True or False", self.missing_words)
        if self.preset not in (None, "trident", "clam", "torchmil"):
            _refuse("preset", "'trident', 'clam', 'torchmil' or None", self.preset)

    @property
    def takes_words(self) -> bool:
        """Whether words such as NA mean that a label is missing, in files that are text."""
        return self.missing_words is not False

    def require(self, format_name: str, used: frozenset[str]) -> None:
        """Refuse options that have no meaning for a format."""
        given = [f.name for f in fields(self) if getattr(self, f.name) is not None]
        for name in given:
            if name not in used and name not in _EVERYWHERE:
                known = ", ".join(sorted({*used, *_EVERYWHERE}))
                msg = f"Files of format {format_name} have no option {name!r}. They have: {known}."
                raise ValueError(msg)


def _is_encoding(name: str) -> bool:
    try:
        codecs.lookup(name)
    except LookupError:
        return False
    return True


def _refuse(name: str, needed: str, got: Any) -> None:
    msg = f"{name} must be {needed}. Got {got!r}."
    raise ValueError(msg)
