"""``bagwise pack``: any data into a store ``name.bags/`` that opens in no time.

The object that ``--json`` prints::

    {"schema": 1, "command": "pack", "source": str, "guessed": {...},
     "store": {"path": str, "bytes": int, "bags": int, "instances": int, "features": int,
               "dtype": str, "sparse": bool, "labels": bool},
     "seconds": float}
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bagwise.cli._data import DataRequest, load_data, opened_file, tell_guesses
from bagwise.cli._files import check_store_target
from bagwise.cli._output import Output, bad_input
from bagwise.cli._words import count, printable


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
    check_store_target(target, inputs=request.paths(), overwrite=overwrite)
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
    with opened_file(request) as file:
        tell_guesses(output, request, file.guessed)
        with output.counting(f"Packing {request.data}: instances", None) as advance:
            file.pack(target, overwrite=overwrite, progress=_by_steps(advance))
    return file.guessed


def _by_steps(advance: Callable[[int], None]) -> Callable[[int], None]:
    """Return a function of what has been done so far that passes on what is new."""
    before = 0

    def tell(done: int) -> None:
        nonlocal before
        advance(done - before)
        before = done

    return tell
