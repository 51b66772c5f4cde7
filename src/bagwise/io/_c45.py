"""C4.5 data as in the Musk sets: bag, instance name, features, class; perhaps ``.names``."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bagwise.io._cells import Line, blocks_of_lines, unknown_labels
from bagwise.io._labels import parse_number
from bagwise.io._options import Options
from bagwise.io._problems import bad
from bagwise.io._roles import TABLE_OPTIONS, Columns, assign_roles
from bagwise.io._rows import Reading
from bagwise.io._streams import Source

OPTIONS = frozenset({*TABLE_OPTIONS, "label_separator"})

_MAX_NAMES_BYTES = 2**24
_ENTRY = re.compile(r"((?:[^:\\]|\\.)+):(.*)\Z", re.DOTALL)


def open_reading(source: Source, options: Options) -> Reading:
    """Look at the first line, and at the ``.names`` file beside the data if it fits."""
    first = next(_lines(source), None)
    if first is None:
        raise bad(source.path, "the file is empty.")
    number, cells = first
    if len(cells) < 3:
        msg = f"bag, features and class are needed, separated by commas. Got {len(cells)} columns."
        raise bad(source.path, msg, line=number)
    attributes = _read_names(source, len(cells) - 1)
    dropped: list[int] = []
    if attributes is None:
        names = [str(j) for j in range(len(cells))]
        has_name = parse_number(cells[1]) is None
        guessed = {"columns": "without names"}
    else:
        names = [*(name for name, _ in attributes), "class"]
        kinds = [kind for _, kind in attributes]
        dropped = [j for j, kind in enumerate(kinds) if kind == "ignore"]
        has_name = kinds[1] != "continuous"
        guessed = {"columns": f"named by {source.path.with_suffix('.names').name}"}
    defaults: dict[str, Any] = {
        "bag": 0,
        "label": len(cells) - 1,
        "instance_name": 1 if has_name else False,
    }
    for role, position in defaults.items():
        if getattr(options, role) is None:
            options = replace(options, **{role: position})
            guessed[role] = "none" if position is False else f"column {names[position]!r}"
    roles = assign_roles(Columns(source.path, names), options)
    if options.features is None:
        features = tuple(j for j in roles.features if j not in dropped)
        if not features:
            raise bad(source.path, "no feature columns are left.")
        roles = replace(roles, features=features)
    return Reading(
        source,
        "c45",
        lambda: blocks_of_lines(source.path, unknown_labels(_lines(source), roles), roles),
        guessed=guessed,
        feature_names=None if attributes is None else roles.feature_names,
        label_columns=roles.label_names,
        label_separator=options.label_separator,
    )


def _lines(source: Source) -> Iterator[Line]:
    number = 0
    with source.open_text() as text:
        try:
            for number, line in enumerate(text, 1):
                row = line.split("|", 1)[0].strip().removesuffix(".")
                if row:
                    yield number, [cell.strip() for cell in row.split(",")]
        except UnicodeError as error:
            raise bad(source.path, f"this is not text ({error}).", line=number + 1) from error


def _read_names(source: Source, n_attributes: int) -> list[tuple[str, str]] | None:
    """Return name and kind of the attributes, or None if there is no file that fits.

    The files of that name at the UCI repository are prose, so one that does not fit is no error.
    """
    path = source.path.with_suffix(".names")
    if source.compression is not None or not path.is_file():
        return None
    if path.stat().st_size > _MAX_NAMES_BYTES:
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    entries = [line.split("|", 1)[0].strip() for line in text.splitlines()]
    entries = [entry for entry in entries if entry][1:]  # the first names the classes
    if len(entries) != n_attributes:
        return None
    found = []
    for entry in entries:
        match = _ENTRY.match(entry.removesuffix("."))
        if match is None:
            return None
        name = re.sub(r"\\(.)", r"\1", match[1]).strip()
        kind = (match[2].split() or [""])[0].lower()  # "continuous" may be followed by a scale
        found.append((name, kind if kind in ("continuous", "ignore") else "discrete"))
    return found if len({name for name, _ in found} | {"class"}) == len(found) + 1 else None
