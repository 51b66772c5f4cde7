"""The header of an ARFF file: its attributes, one of which may be relational (the bags)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from bagwise.io._problems import bad, shown
from bagwise.io._streams import Source

_ATTRIBUTE = re.compile(
    r"@attribute\s+(?:'([^'\\]*(?:\\.[^'\\]*)*)'|\"([^\"\\]*(?:\\.[^\"\\]*)*)\"|([^\s{]+))\s*(.*)",
    re.IGNORECASE | re.DOTALL,
)
_VALUE = re.compile(
    r"\s*(?:'([^'\\]*(?:\\.[^'\\]*)*)'\s*|\"([^\"\\]*(?:\\.[^\"\\]*)*)\"\s*|([^,'\"{}]*))(,|\Z)",
    re.DOTALL,
)
_PAIR = re.compile(
    r"\s*([0-9]{1,9})\s+"
    r"(?:'([^'\\]*(?:\\.[^'\\]*)*)'\s*|\"([^\"\\]*(?:\\.[^\"\\]*)*)\"\s*|([^,'\"{}]*))(,|\Z)",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_MAX_ATTRIBUTES = 10**6


@dataclass
class Attribute:
    """A column: numeric, text, nominal (with its values) or relational (with its columns)."""

    name: str
    kind: str
    values: list[str] = field(default_factory=list)
    columns: "list[Attribute]" = field(default_factory=list)

    @property
    def default(self) -> str:
        """What a sparse row means by leaving the attribute out."""
        return self.values[0] if self.values else "0"


class ArffLines:
    """The lines of a file that are not empty and not comments, numbered."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        with self.source.open_text() as text:
            try:
                for self.number, line in enumerate(text, 1):
                    stripped = line.strip()
                    if stripped and not stripped.startswith("%"):
                        yield stripped
            except UnicodeError as error:
                raise bad(self.source.path, f"this is not text ({error}).", line=self.number + 1) \
                    from error  # fmt: skip


def read_header(source: Source, lines: ArffLines, stream: Iterator[str]) -> list[Attribute]:
    """Read up to ``@data``."""
    attributes: list[Attribute] = []
    open_relation: Attribute | None = None
    for count, line in enumerate(stream):
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            if open_relation is not None or not attributes:
                what = "no attributes" if open_relation is None else "a relation without @end"
                raise bad(source.path, f"@data comes after {what}.", line=lines.number)
            return attributes
        if word == "@attribute":
            attribute = _attribute(source, line, lines.number)
            home = attributes if open_relation is None else open_relation.columns
            home.append(attribute)
            if attribute.kind == "relational":
                if open_relation is not None:
                    msg = "a relation inside a relation is not a bag of instances."
                    raise bad(source.path, msg, line=lines.number)
                open_relation = attribute
        elif word == "@end" and open_relation is not None:
            if not open_relation.columns:
                raise bad(source.path, "the relation has no attributes.", line=lines.number)
            open_relation = None
        elif word != "@relation":
            msg = f"@relation, @attribute or @data is needed. Got {shown(line)}."
            raise bad(source.path, msg, line=lines.number)
        if count > _MAX_ATTRIBUTES:
            raise bad(source.path, "there are too many attributes.", line=lines.number)
    if not lines.number:
        raise bad(source.path, "the file is empty.")
    raise bad(source.path, "there is no @data.", line=lines.number)


def _attribute(source: Source, line: str, number: int) -> Attribute:
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise bad(source.path, f"@attribute NAME TYPE is needed. Got {shown(line)}.", line=number)
    quoted = match[1] if match[1] is not None else match[2]
    name = match[3] if quoted is None else unescape(quoted)
    kind = match[4].split("%", 1)[0].strip() if "{" not in match[4] else match[4].strip()
    if kind.startswith("{"):
        inner = kind[1 : kind.rfind("}")] if "}" in kind else None
        values = None if inner is None else split_values(inner)
        if values is None:
            msg = f"the values of attribute {shown(name)} cannot be told apart."
            raise bad(source.path, msg, line=number)
        return Attribute(name, "nominal", values)
    word = kind.split(None, 1)[0].lower() if kind else ""
    if word in ("numeric", "real", "integer"):
        return Attribute(name, "numeric")
    if word in ("string", "date"):
        return Attribute(name, "text")
    if word == "relational":
        return Attribute(name, "relational")
    msg = f"attribute {shown(name)} has the unknown type {shown(kind)}."
    raise bad(source.path, msg, line=number)


def split_values(text: str) -> list[str] | None:
    """Split a row at its commas, minding quotes; None if the quotes do not match."""
    if "'" not in text and '"' not in text and "{" not in text and "}" not in text:
        return [value.strip() for value in text.split(",")]
    values: list[str] = []
    position = 0
    while True:
        match = _VALUE.match(text, position)
        if match is None:
            return None
        quoted = match[1] if match[1] is not None else match[2]
        values.append(match[3].strip() if quoted is None else unescape(quoted))
        if not match[4]:
            return values
        position = match.end()


def split_pairs(text: str) -> list[tuple[int, str]] | None:
    """Split a sparse row into positions and values; None if that cannot be done."""
    pairs: list[tuple[int, str]] = []
    position = 0
    while text.strip():
        match = _PAIR.match(text, position)
        if match is None:
            return None
        quoted = match[2] if match[2] is not None else match[3]
        value = match[4].strip() if quoted is None else unescape(quoted)
        pairs.append((int(match[1]), value))
        if not match[5]:
            break
        position = match.end()
    return pairs


def unescape(text: str) -> str:
    r"""Undo the backslashes in a quoted value."""
    if "\\" not in text:
        return text
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text, flags=re.DOTALL)
