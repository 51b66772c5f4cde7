"""Our own store ``name.bags/``: opened memory-mapped, nothing is read."""

from collections.abc import Iterator

from bagwise.bags import Bags
from bagwise.io._options import Options
from bagwise.io._problems import foreign
from bagwise.io._rows import Reading
from bagwise.io._streams import Source

OPTIONS: frozenset[str] = frozenset()


def open_reading(source: Source, options: Options) -> Reading:
    """Open a store when its one piece is asked for."""

    def pieces() -> Iterator[Bags]:
        with foreign(source.path, "the store is damaged"):
            bags = Bags.open(source.path)
        yield bags

    return Reading(source, "store", pieces=pieces)
