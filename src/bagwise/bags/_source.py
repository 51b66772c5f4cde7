"""One loop for every scale: a function over chunks of bags, results combined in a fixed order."""

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bagwise._arrays import Integers
from bagwise._threads import ordered_map, thread_count
from bagwise.bags import _matrix
from bagwise.bags._bags import Bags
from bagwise.bags._build import check_finite
from bagwise.bags._files import files_of, refuse_changed, refuse_lost
from bagwise.exceptions import InvalidBagsError, MemoryLimitError


def chunk_grid(bags: Bags) -> Integers:
    """Return the bags at which chunks begin, and the number of bags at the end.

    Chunks hold whole bags and about 4 MB of instances. The grid is a function of the bag sizes and
    of the width of a row alone: never of the number of threads, of a memory limit or of whether
    the instances are in memory or in a file. Sums taken along it are the same to the last bit.
    """
    return _grid(bags.offsets, row_bytes_of(bags))


def _grid(offsets: Integers, row_bytes: int) -> Integers:
    """Return where ranges of bags begin that hold about 4 MB, and the number of bags."""
    n_bags = len(offsets) - 1
    marks = np.arange(0, offsets[-1], _matrix.chunk_rows(row_bytes))
    begins = np.searchsorted(offsets[:-1], marks, side="left")
    return np.unique(np.append(begins[begins < n_bags], [0, n_bags]))


def row_bytes_of(bags: Bags) -> int:
    """Bytes that an instance takes; the mean over this selection, if sparse, not over its base."""
    if not bags.is_sparse:
        return _matrix.row_bytes(bags._base)
    return _matrix.sparse_row_bytes(bags.n_values, bags.n_instances, bags.dtype)


def instance_bytes(bags: Bags) -> int:
    """Return the bytes that the instances of these bags take, or would take if they were read.

    Parameters
    ----------
    bags : Bags
        In memory, memory-mapped or lazy. Of lazy CSR the values that its base stores are counted.
    """
    return bags.n_instances * row_bytes_of(bags)


@dataclass(frozen=True)
class Chunk:
    """A range of bags, as a function under `BagSource.reduce` sees it.

    Parameters
    ----------
    bags : Bags
        The bags of the chunk.
    span : slice
        Which bags of the whole they are: cuts an array with one entry per bag down to the chunk.
    rows : slice
        Which instances of the whole they are: the same for arrays with one entry per instance.
    """

    bags: Bags
    span: slice
    rows: slice

    @property
    def instances(self) -> _matrix.Matrix:
        """The instance matrix of the chunk."""
        return self.bags.instances

    @property
    def starts(self) -> Integers:
        """Row of `instances` at which each bag begins."""
        return self.bags.offsets[:-1]

    @property
    def stops(self) -> Integers:
        """Row of `instances` at which each bag ends."""
        return self.bags.offsets[1:]


class BagSource:
    """Bags as a sequence of chunks that functions are mapped over.

    In memory and memory-mapped bags alike are walked in chunks of about 4 MB by threads. A method
    that is a sum over bags is written once, on `reduce`, and then works at every scale.

    Parameters
    ----------
    bags : Bags
        In memory, memory-mapped or lazy; chunks of lazy bags are transformed when they are read.
    n_threads : int or None
        Threads to use; None asks the environment (``BAGWISE_NUM_THREADS``, then the processors).
    max_memory : int, str or None
        Bound, in bytes or like ``"512MB"``, on what chunks in flight take. Dense memory-mapped
        bags are then read into buffers instead of mapped, so that pages of the file do not count
        against the process. It decides how many chunks are worked on at a time, never what the
        chunks are.
    scratch : int
        Bytes that the function needs per instance beyond the instance itself; counts against
        ``max_memory``.
    held : int
        Bytes that are held besides. What is left of ``max_memory`` is for chunks in flight, but
        one of them always is.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.bags import Bags, BagSource
    >>> source = BagSource(Bags(np.ones((5, 2)), [0, 2, 5]))
    >>> source.reduce(lambda chunk: chunk.instances.T @ chunk.instances)
    array([[5., 5.],
           [5., 5.]])
    """

    def __init__(
        self,
        bags: Bags,
        *,
        n_threads: int | None = None,
        max_memory: int | str | None = None,
        scratch: int = 0,
        held: int = 0,
    ) -> None:
        if not len(bags):
            msg = "A BagSource needs at least one bag. Got a selection of none."
            raise InvalidBagsError(msg)
        self.bags = bags
        self.grid = chunk_grid(bags)
        self._offsets = bags.offsets
        self._n_threads = n_threads
        self._max_memory = parse_bytes(max_memory)
        self._scratch, self._held = scratch, held
        self._base = bags._held._base
        self._files = files_of(self._base)
        is_one = len(_matrix.parts_of(self._base)) == 1
        self._file = self._files[0] if self._files and is_one else None

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return len(self.grid) - 1

    @property
    def copied_bytes(self) -> int:
        """Bytes of instances that all chunks together would hold: 0 if they are views of memory."""
        bags = self.bags._held
        if isinstance(bags._base, np.ndarray) and bags._contiguous_span() is not None:
            return 0
        return instance_bytes(bags)

    @property
    def chunk_bytes(self) -> int:
        """Bytes that the largest chunk takes, ``scratch`` included."""
        n_rows = int(np.diff(self._offsets[self.grid]).max())
        needed = n_rows * (row_bytes_of(self.bags) + self._scratch)
        if isinstance(self._base, _matrix.LazyRows):  # what rows are made of is there as well
            width = _matrix.row_bytes(self._base.inner)
            at_once = _matrix.chunk_rows(width) - 1 + int(np.diff(self._offsets).max())
            needed += min(n_rows, at_once) * width
        return needed

    def map(
        self,
        function: Callable[..., Any],
        *broadcast: Any,
        chunks: Sequence[int] | None = None,
    ) -> Generator[Any, None, None]:
        """Yield ``function(chunk, *broadcast)`` for each chunk, in order.

        Parameters
        ----------
        function : callable
            Gets a `Chunk` and the broadcast arguments. Runs in worker threads: it must not
            change shared state.
        *broadcast
            Handed to every call as they are.
        chunks : sequence of int, optional
            Numbers of the chunks to read; all by default.
        """
        self.refuse_changed()
        n_threads = thread_count(self._n_threads)
        results = ordered_map(
            lambda number: function(self._chunk(number), *broadcast),
            range(self.n_chunks) if chunks is None else chunks,
            n_threads=n_threads,
            window=self._window(n_threads),
        )
        return self._of_one_state(results)

    def _of_one_state(self, results: Generator[Any, None, None]) -> Generator[Any, None, None]:
        """Yield results; the last chunks may have changed after the look before they were read."""
        yield from results
        self.refuse_changed()

    def reduce(
        self,
        function: Callable[..., Any],
        *broadcast: Any,
        combine: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        """Combine ``function(chunk, *broadcast)`` over all chunks, from the first to the last.

        Parameters
        ----------
        function : callable
            Gets a `Chunk` and the broadcast arguments; see `map`.
        *broadcast
            Handed to every call as they are.
        combine : callable or None
            Takes the result so far and the next one. Default: their sum; tuples add up
            entry by entry.
        """
        combine = add_results if combine is None else combine
        with closing(self.map(function, *broadcast)) as results:  # also if `combine` raises
            total = next(results)
            for result in results:
                total = combine(total, result)
        return total

    def concatenate(self, function: Callable[..., Any], *broadcast: Any) -> Any:
        """Join the arrays that ``function(chunk, *broadcast)`` returns, along their first axis.

        For results with one entry per bag or per instance. A function that returns a tuple of
        arrays gives a tuple, one that returns CSR matrices gives one of these.
        """
        pieces = list(self.map(function, *broadcast))
        if isinstance(pieces[0], tuple):
            return tuple(np.concatenate(part) for part in zip(*pieces, strict=True))
        if isinstance(pieces[0], np.ndarray):
            return np.concatenate(pieces)
        return _matrix.stack_rows(pieces)

    def refuse_changed(self) -> None:
        """Raise if a file behind memory-mapped bags has changed since it was mapped.

        `map` asks before each chunk, so that it is told early.
        """
        refuse_changed(self._files)
        refuse_lost(self._base)

    def refuse_nonfinite(self, *, allow_nan: bool = False) -> None:
        """Raise if an instance holds infinity, or NaN unless allowed.

        The message names bag, instance and feature.
        """

        def check(chunk: Chunk) -> None:
            bags, first = chunk.bags, chunk.span.start
            check_finite(
                bags.instances, bags.offsets, bags.bag_names, first=first, allow_nan=allow_nan
            )

        for _ in self.map(check):
            pass

    def _chunk(self, number: int) -> Chunk:
        self.refuse_changed()
        first, last = int(self.grid[number]), int(self.grid[number + 1])
        rows = slice(int(self._offsets[first]), int(self._offsets[last]))
        bags = self.bags[first:last]
        is_here = bags._base is not self._base  # lazy bags were loaded while they are walked
        from_file = self._max_memory is not None and self._file is not None and not is_here
        if bags.is_lazy:
            made, nan = self._made(bags, from_file=from_file), bags.allow_nan
            check_finite(made, bags.offsets, bags.bag_names, first=first, allow_nan=nan)
        elif from_file:
            made = self._read(bags)
        else:
            return Chunk(bags, slice(first, last), rows)
        bags = bags._with_instances(made, bags.feature_names, bags.allow_nan)
        return Chunk(bags, slice(first, last), rows)

    def _made(self, bags: Bags, *, from_file: bool) -> _matrix.Matrix:
        """Return the rows of lazy bags; what they are made of is read in parts of about 4 MB."""
        inner = bags._base.inner
        bounds = _grid(bags.offsets, _matrix.row_bytes(inner)).tolist()
        parts = (bags[a:b] for a, b in pairwise(bounds))
        made = [
            bags._base.make(self._read(part) if from_file else part._rows_of(inner))
            for part in parts
        ]
        return made[0] if len(made) == 1 else _matrix.stack_rows(made)

    def _read(self, bags: Bags) -> _matrix.Matrix:
        """Read rows of the file into memory of their own."""
        assert self._file is not None
        span = bags._contiguous_span()
        if span is not None:
            rows = self._file.read_rows(span.start, span.stop)
        else:
            pairs = zip(bags._starts.tolist(), bags._stops.tolist(), strict=True)
            rows = np.concatenate([self._file.read_rows(*pair) for pair in pairs])
        return _matrix.read_only(rows)

    def _window(self, n_threads: int) -> int | None:
        """How many chunks may be in flight under the memory limit."""
        if self._max_memory is None:
            return None
        largest = self.chunk_bytes
        if largest > self._max_memory:
            msg = (
                f"max_memory={self._max_memory:,} bytes is too little: the largest chunk of bags "
                f"takes {largest:,} bytes ({self._scratch} bytes of scratch per instance "
                "included)."
            )
            raise MemoryLimitError(msg)
        left = max(self._max_memory - self._held, largest)
        return min(left // largest, 4 * n_threads)


def in_parts(bags: Bags, function: Callable[[Bags], Any]) -> Any:
    """Return what a function makes of bags, chunk after chunk if they are lazy.

    Parameters
    ----------
    bags : Bags
        In memory, memory-mapped or lazy.
    function : callable
        Takes bags, returns an array, or a tuple of arrays, with one entry per bag or per instance
        that does not depend on the other bags.
    """
    if not bags._held.is_lazy or not len(bags):
        return function(bags)
    return BagSource(bags).concatenate(lambda chunk: function(chunk.bags))


def read_all(bags: Bags) -> _matrix.Matrix:
    """Return all instances of lazy bags, in memory; they are made as chunks are."""
    source = BagSource(bags)
    if bags.is_sparse:
        return _matrix.stack_rows(list(source.map(lambda chunk: chunk.instances)))
    out = np.empty((bags.n_instances, bags.n_features), bags.dtype)

    def fill(chunk: Chunk) -> None:
        out[chunk.rows] = chunk.instances

    for _ in source.map(fill):
        pass
    return _matrix.read_only(out)


def add_results(total: Any, result: Any) -> Any:
    """Add two results; tuples entry by entry."""
    if isinstance(total, tuple):
        return tuple(add_results(a, b) for a, b in zip(total, result, strict=True))
    return total + result


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}


def parse_bytes(amount: int | str | None) -> int | None:
    """Read an amount of memory: a number of bytes, or text like ``"512MB"`` or ``"2 GiB"``."""
    if isinstance(amount, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]I?)?B?\s*", amount.upper())
        if found:
            return int(float(found[1]) * _UNITS[found[2] or ""])
    elif amount is None or (isinstance(amount, int | np.integer) and amount > 0):
        return None if amount is None else int(amount)
    msg = f"max_memory must be a number of bytes or text like '512MB'. Got {amount!r}."
    raise ValueError(msg)
