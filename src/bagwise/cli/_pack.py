"""``bagwise pack``: any data into a store ``name.bags/`` that opens in no time.

The object that ``--json`` prints::

    {"schema": 1, "command": "pack", "source": str, "guessed": {...},
     "store": {"path": str, "bytes": int, "bags": int, "instances": int, "features": int,
               "dtype": str, "sparse": bool, "labels": bool},
     "seconds": float}
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bagwise.cli._data import DataRequest, load_data, reading_file, tell_guesses
from bagwise.cli._files import check_writable
from bagwise.cli._output import CommandError, Output, bad_input
from bagwise.cli._words import count, printable

if TYPE_CHECKING:
    from bagwise.io._rows import Reading


def run_pack(output: Output, request: DataRequest, target: Path, *, overwrite: bool) -> None:
    """Pack.

    Parameters
    ----------
    output : Output
        Where to write.
    request : DataRequest
        What to read.
    target : Path
        The store to make.
    overwrite : bool
        Whether a store that is there may be replaced.
    """
    if os.path.lexists(target) and not target.is_dir():
        msg = f"{target} is a file, and a store is a folder. Choose another name."
        raise CommandError(msg, code="output", where=str(target))
    if target.is_dir() and not overwrite:
        msg = f"{target} exists. Choose another name, or replace it with --overwrite."
        raise CommandError(msg, code="output", where=str(target))
    if not target.is_dir():
        check_writable(target, "TARGET")
    started = time.perf_counter()
    guessed: Mapping[str, str] = {}
    with bad_input(code="output", where=str(target)):
        if request.is_name:
            bags = load_data(output, request).bags
            with output.busy(f"Writing {target}"):
                bags.write(target, overwrite=overwrite)
        else:
            guessed = _pack_file(output, request, target, overwrite)
    from bagwise import Bags

    bags = Bags.open(target)
    seconds = time.perf_counter() - started
    size = sum(file.stat().st_size for file in target.iterdir())
    output.result(
        f"{printable(str(target))}: {count(len(bags), 'bag')}, "
        f"{count(bags.n_instances, 'instance')}, {count(bags.n_features, 'feature')}, "
        f"{bags.dtype}{', sparse' if bags.is_sparse else ''}, "
        f"{'labels' if bags.labels is not None else 'no labels'}; {size / 1e6:,.1f} MB",
        {
            "command": "pack",
            "source": request.data,
            "guessed": dict(guessed),
            "store": {
                "path": str(target),
                "bytes": size,
                "bags": len(bags),
                "instances": bags.n_instances,
                "features": bags.n_features,
                "dtype": str(bags.dtype),
                "sparse": bags.is_sparse,
                "labels": bags.labels is not None,
            },
            "seconds": round(seconds, 3),
        },
    )


def _pack_file(
    output: Output, request: DataRequest, target: Path, overwrite: bool
) -> Mapping[str, str]:
    """Stream a file into the store, counting what has been read."""
    with reading_file(request) as reading:
        from bagwise.io import _pack

        tell_guesses(output, request, reading.guessed)
        with output.counting(f"Packing {request.data}: instances", None) as advance:
            write = _pack._pack_rows if reading.pieces is None else _pack._pack_pieces
            write(_counted(reading, advance), target, overwrite)
    return reading.guessed


def _counted(reading: "Reading", advance: Callable[[int], None]) -> "Reading":
    """Let a bar follow what is read."""
    from dataclasses import replace

    def follow(read: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
        def pieces() -> Iterator[Any]:
            for piece in read():
                yield piece
                advance(getattr(piece, "n_instances", None) or len(piece))

        return pieces

    return replace(
        reading,
        blocks=None if reading.blocks is None else follow(reading.blocks),
        pieces=None if reading.pieces is None else follow(reading.pieces),
    )
