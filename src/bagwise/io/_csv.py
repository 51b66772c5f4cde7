"""Long tables of text: comma, tab, semicolon or bar between the cells, one row an instance.

There are two ways through a file. The exact one is the standard library's parser: it decides what
is in a file and at which line it is wrong. The quick one is pyarrow's, if that is installed. It is
only trusted where both must agree; at anything else, the exact one takes over at the same row.
"""

import csv
from collections.abc import Generator, Iterator

from bagwise.io._cells import Line, blocks_of_lines
from bagwise.io._csv_quick import quick_blocks
from bagwise.io._labels import parse_number
from bagwise.io._options import Options
from bagwise.io._problems import bad
from bagwise.io._roles import TABLE_OPTIONS, Columns, Roles, assign_roles
from bagwise.io._rows import Reading, Rows
from bagwise.io._streams import Source

OPTIONS = frozenset(
    {*TABLE_OPTIONS, "separator", "label_separator", "header", "encoding", "missing_words"}
)

_SAMPLE_BYTES = 2**18
_SEPARATORS = ",;\t|"
_SHOWN_SEPARATORS = {"\t": "tab"}


def open_reading(source: Source, options: Options) -> Reading:
    """Look at the first line of a table."""
    separator, guessed = find_separator(source, options)
    lines = split_lines(source, separator, options)
    first = next(lines, None)
    lines.close()
    if first is None:
        raise bad(source.path, "the file is empty.")
    number, cells = first
    header = True if options.header is None else options.header
    if options.header is None and all(parse_number(cell) is not None for cell in cells):
        msg = (
            "the first line should name the columns, and holds numbers only. If there is no such "
            "line, pass header=False and the number of the bag's column, as in bag=0."
        )
        raise bad(source.path, msg, line=number)
    names = [cell.strip() for cell in cells] if header else [str(j) for j in range(len(cells))]
    roles = assign_roles(Columns(source.path, names, line=number if header else None), options)
    guessed.update(roles.guessed)
    return Reading(
        source,
        "csv",
        lambda: _blocks(source, separator, options, roles, number if header else 0),
        guessed=guessed,
        feature_names=roles.feature_names if header else None,
        label_columns=roles.label_names,
        label_separator=options.label_separator,
        n_rows=_guess_rows(source),
        missing_words=options.takes_words,
    )


def _guess_rows(source: Source) -> int:
    """Guess the number of rows from the length of the first lines; a little too much is right."""
    if source.compression is not None:
        return 0
    with source.open() as file:
        start = file.read(_SAMPLE_BYTES)
    if len(start) < _SAMPLE_BYTES:
        return start.count(b"\n") + 1
    size = source.path.stat().st_size
    return int(1.05 * size * start.count(b"\n") / len(start))


def split_lines(source: Source, separator: str, options: Options) -> Generator[Line, None, None]:
    """Yield the lines that are not empty, split into cells, with the number of their last line."""
    encoding = options.encoding or "utf-8-sig"
    with source.open_text(encoding) as text:
        reader = csv.reader(text, delimiter=separator, strict=True)
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except csv.Error as error:
            raise bad(source.path, f"{error}.", line=reader.line_num) from error
        except UnicodeError as error:
            msg = f"this is not text in {encoding} ({error}); encoding= names another."
            raise bad(source.path, msg, line=reader.line_num + 1) from error


def find_separator(source: Source, options: Options) -> tuple[str, dict[str, str]]:
    if options.separator is not None:
        return options.separator, {}
    with source.open() as file:
        start = file.readline(2**16).decode("utf-8", "replace")
        while start and not start.strip():
            start = file.readline(2**16).decode("utf-8", "replace")
    outside = "".join(start.split('"')[::2])
    likely = "\t" if source.suffix in (".tsv", ".tab") else ","
    counts = {mark: outside.count(mark) for mark in (likely, *_SEPARATORS)}
    separator = max(counts, key=counts.__getitem__)
    return separator, {"separator": _SHOWN_SEPARATORS.get(separator, separator)}


def _blocks(
    source: Source, separator: str, options: Options, roles: Roles, header_line: int
) -> Iterator[Rows]:
    done = 0
    if options.encoding is None:
        for rows in quick_blocks(source, separator, roles, header_line):
            if rows is None:  # it met something that only the exact way decides
                break
            yield rows
            done += len(rows)
        else:
            return
    lines = split_lines(source, separator, options)
    for _ in range(done + (header_line > 0)):
        next(lines, None)
    yield from blocks_of_lines(source.path, lines, roles)
