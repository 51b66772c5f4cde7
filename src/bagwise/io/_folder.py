"""A folder with one file a bag."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.bags import Bags
from bagwise.exceptions import InvalidBagsError
from bagwise.io._bag_file import read_array, read_bag
from bagwise.io._label_file import LabelFile, read_label_file
from bagwise.io._layouts import Layout, find_layout, is_bag_file
from bagwise.io._options import Options
from bagwise.io._problems import bad
from bagwise.io._rows import Reading
from bagwise.io._streams import Source

OPTIONS = frozenset({
    "bag", "label", "separator", "label_separator", "preset", "label_table", "key", "on_empty",
    "on_missing", "missing_words",
})  # fmt: skip

_logger = logging.getLogger("bagwise")


def open_reading(source: Source, options: Options) -> Reading:
    """Find the files and read the label table."""
    try:
        layout = find_layout(source.path, options)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise bad(source.path, f"the folder cannot be read ({error}).") from error
    table = None
    if layout.table is not None:
        table = read_label_file(layout.table, options, source.max_bytes, layout.guessed)
    files = _files(layout) if table is None else _listed_files(layout, table, options)
    return Reading(
        source,
        f"folder of {layout.suffix} files",
        pieces=lambda: _pieces(source, layout, table, files, options),
        guessed=layout.guessed,
    )


def _files(layout: Layout) -> list[tuple[str, Path, int]]:
    """Return name, file and row in the label table (here: none) of each bag."""
    paths = sorted(p for p in layout.bags.iterdir() if is_bag_file(p))
    return [(path.stem, path, -1) for path in paths]


def _listed_files(
    layout: Layout, table: LabelFile, options: Options
) -> list[tuple[str, Path, int]]:
    found, missing = [], 0
    for row, name in enumerate(table.names):
        short = name.removesuffix(layout.suffix)
        path = _find_file(layout, name)
        if path is not None:
            found.append((short, path, row))
        elif options.on_missing == "skip":
            missing += 1
        else:
            msg = (
                f"there is no file {short}{layout.suffix} in {layout.bags}. To leave such bags "
                "out, pass on_missing='skip'."
            )
            raise bad(table.path, msg, line=table.lines[row])
    if missing:
        _logger.info("%s: %d bags of the label table have no file", table.path, missing)
    _tell_unlisted(layout, table, {path for _, path, _ in found})
    if not found:
        raise bad(table.path, f"no bag of the label table has a file in {layout.bags}.")
    return found


def _find_file(layout: Layout, name: str) -> Path | None:
    """Return the file that a row of the label table means, if it is there."""
    short = name.removesuffix(layout.suffix)
    stem = str(Path(name).with_suffix(""))  # a table may list slide.svs
    names = (name, short + layout.suffix, stem + layout.suffix)
    return next((p for n in names if is_bag_file(p := layout.bags / n)), None)


def _tell_unlisted(layout: Layout, table: LabelFile, listed: set[Path]) -> None:
    """Say which files have no row in the label table: they are not read."""
    known = listed | {_find_file(layout, name) for name in table.unlabelled}
    others = [path.name for _, path, _ in _files(layout) if path not in known]
    if others:
        shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        files = "a file" if len(others) == 1 else f"{len(others):,} files"
        layout.guessed["left out"] = f"{files} without a row in {table.path.name} ({shown})"


def _pieces(
    source: Source,
    layout: Layout,
    table: LabelFile | None,
    files: list[tuple[str, Path, int]],
    options: Options,
) -> Iterator[Bags]:
    width: int | None = None
    skipped = []
    for name, path, row in files:
        matrix = read_bag(path, options.key, source.max_bytes)
        if matrix.shape[0] == 0:
            if options.on_empty != "skip":
                msg = "the bag has no instance. To leave such bags out, pass on_empty='skip'."
                raise bad(path, msg)
            skipped.append(name)
            continue
        width = matrix.shape[1] if width is None else width
        if matrix.shape[1] != width:
            msg = f"the bag has {matrix.shape[1]} features, those before it {width}."
            raise bad(path, msg)
        known: dict[str, Any] = {"bag_names": [name]}
        if table is not None and table.labels is not None:
            known["labels"] = table.labels[row : row + 1]
            known["label_names"] = table.label_names
        if layout.labels is not None:
            known["labels"] = _label_of(layout.labels, path.stem, layout.suffix, source)
        if layout.instance_labels is not None:
            labels = _beside(layout.instance_labels, path.stem, layout.suffix, source)
            known["instance_labels"] = labels.reshape(-1)
        try:
            yield Bags(matrix, [0, matrix.shape[0]], **known, allow_nan=bool(options.allow_nan))
        except InvalidBagsError as error:
            raise bad(path, str(error)) from error
    if skipped:
        shown = ", ".join(skipped[:8]) + (", ..." if len(skipped) > 8 else "")
        _logger.info("%s: %d bags have no instance: %s", source.path, len(skipped), shown)


def _beside(folder: Path, stem: str, suffix: str, source: Source) -> NDArray[Any]:
    path = folder / f"{stem}{suffix}"
    if not path.is_file():
        raise bad(path, "the file is missing.")
    return read_array(path, None, source.max_bytes)


def _label_of(folder: Path, stem: str, suffix: str, source: Source) -> NDArray[Any]:
    label = _beside(folder, stem, suffix, source).reshape(-1)
    if not len(label):
        raise bad(folder / f"{stem}{suffix}", "the label is missing.")
    return label if len(label) == 1 else np.asarray(label)[None, :]
