"""svmlight lines with the bag as query id: ``label qid:bag index:value ...``."""

import re
from collections.abc import Iterator
from itertools import islice

import numpy as np
from scipy import sparse

from bagwise.io._labels import is_missing_cell, parse_number
from bagwise.io._options import Options
from bagwise.io._problems import TAKE_AS_NAN, bad, shown
from bagwise.io._rows import Coded, Reading, Rows
from bagwise.io._streams import Source

OPTIONS = frozenset({"zero_based", "label_separator", "missing_words"})

_BLOCK_ROWS = 4096
_MAX_INDEX = 2**31 - 2
_BAG = re.compile(r"qid:([^\s:]+)\Z")
_PAIR = re.compile(r"([0-9]{1,10}):(\S+)\Z")


def open_reading(source: Source, options: Options) -> Reading:
    """Prepare to read; the first line is looked at, so that another format is noticed."""
    zero_based = bool(options.zero_based)
    guessed = {} if options.zero_based is not None else {"first feature": "index 1"}
    allow_nan = bool(options.allow_nan)
    if next(_blocks(source, zero_based, 1, allow_nan), None) is None:
        raise bad(source.path, "the file is empty.")
    return Reading(
        source,
        "svmlight",
        lambda: _blocks(source, zero_based, _BLOCK_ROWS, allow_nan),
        guessed=guessed,
        label_separator="," if options.label_separator is None and _has_lists(source) else (
            options.label_separator
        ),
        missing_words=options.takes_words,
    )  # fmt: skip


def _lines(source: Source) -> Iterator[tuple[int, list[str]]]:
    number = 0
    with source.open_text() as text:
        try:
            for number, line in enumerate(text, 1):
                tokens = line.split("#", 1)[0].split()
                if tokens:
                    yield number, tokens
        except UnicodeError as error:
            raise bad(source.path, f"this is not text ({error}).", line=number + 1) from error


def _has_lists(source: Source) -> bool:
    return any("," in tokens[0] for _, tokens in _lines(source))


def _blocks(source: Source, zero_based: bool, size: int, allow_nan: bool) -> Iterator[Rows]:
    lines = _lines(source)
    while block := list(islice(lines, size)):
        yield _rows(source, block, zero_based, allow_nan)


def _rows(
    source: Source, block: list[tuple[int, list[str]]], zero_based: bool, allow_nan: bool
) -> Rows:
    lowest = 0 if zero_based else 1
    data: list[float] = []
    indices: list[int] = []
    indptr = [0]
    labels, bags, numbers = [], [], []
    for number, tokens in block:
        bag = _BAG.match(tokens[1]) if len(tokens) > 1 else None
        if bag is None:
            got = shown(tokens[1]) if len(tokens) > 1 else "nothing"
            msg = f"the bag is needed after the label, as qid:NAME. Got {got}."
            raise bad(source.path, msg, line=number)
        labels.append(tokens[0])
        bags.append(bag[1])
        numbers.append(number)
        last = lowest - 1
        for token in tokens[2:]:
            pair = _PAIR.match(token)
            value = parse_number(pair[2]) if pair else None
            is_missing = pair is not None and is_missing_cell(pair[2])
            if is_missing and allow_nan:
                value = np.nan
            if pair is None or value is None:
                way_out = f" {TAKE_AS_NAN}" if is_missing else ""
                msg = f"index:value is needed. Got {shown(token)}.{way_out}"
                raise bad(source.path, msg, line=number)
            index = int(pair[1])
            if not last < index <= _MAX_INDEX:
                msg = f"indices must rise from {lowest}. Got {index} after {last}."
                if index == 0 and last == 0:
                    msg = "indices begin with 1. If this file begins with 0, pass zero_based=True."
                raise bad(source.path, msg, line=number)
            last = index
            indices.append(index - lowest)
            data.append(value)
        indptr.append(len(data))
    width = max(indices, default=0) + 1
    matrix = sparse.csr_array(
        (np.array(data, dtype=np.float64), np.array(indices, dtype=np.int32), np.array(indptr)),
        shape=(len(block), width),
    )
    return Rows(matrix, Coded.of(bags), Coded.of(labels), None, None, numbers.__getitem__)
