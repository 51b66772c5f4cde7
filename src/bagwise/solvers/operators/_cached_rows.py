"""Rows whose inner products are costly: those used last are remembered."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise.solvers.operators._row_operator import RowOperator


class CachedRows(RowOperator):
    """An operator that remembers the rows of the Gram matrix used last.

    Rows are kept over one set of columns, at first all of them. Requests for these columns fill the
    cache; requests for some of them are served from it as far as it goes.

    Parameters
    ----------
    source : RowOperator
        Where they come from.
    max_bytes : float
        Most bytes to keep. Less than one row: nothing is kept.
    """

    def __init__(self, source: RowOperator, max_bytes: float) -> None:
        self._source, self._max_bytes = source, max_bytes
        self._n = source.n
        self._columns: Integers | None = None
        self._memory = np.empty(
            min(self._n**2, int(max_bytes // source.dtype.itemsize)), source.dtype
        )
        self._clock = 0
        self._lay_out(self._n)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self._n

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products."""
        return self._source.dtype

    def diagonal(self) -> Floats:
        """Return the squared norm of each row."""
        return self._source.diagonal()

    def repeated(self, rows: Integers) -> "CachedRows":
        """Return all rows, and some of them once more at the end, with a cache of their own."""
        return CachedRows(self._source.repeated(rows), self._max_bytes)

    @property
    def n_kept(self) -> int:
        """How many rows are in the cache."""
        return int(np.count_nonzero(self._owner >= 0))

    def _lay_out(self, width: int) -> None:
        capacity = min(self._n, len(self._memory) // max(1, width))
        self._rows = self._memory[: capacity * width].reshape(capacity, width)
        self._slot = np.full(self._n, -1)  # of each row, in the cache
        self._owner = np.full(capacity, -1)  # of each slot
        self._used = np.zeros(capacity, np.int64)  # when each slot was, by the clock

    def narrow(self, columns: Integers | None) -> None:
        """Keep rows over these columns from now on; ``None`` means all.

        Rows in the cache stay if they hold these columns.
        """
        places = self._places(columns)
        rows, owner, used = self._rows, self._owner, self._used
        self._columns = columns
        self._lay_out(self._n if columns is None else len(columns))
        if places is None:
            return
        kept = np.flatnonzero(owner >= 0)
        for slot, old in enumerate(kept):
            # In one memory: a shorter row ends before the next begins.
            self._rows[slot] = rows[old, places]
        self._owner[: len(kept)], self._used[: len(kept)] = owner[kept], used[kept]
        self._slot[owner[kept]] = np.arange(len(kept))

    def _places(self, columns: Integers | None) -> Integers | None:
        """Return where the columns are in a row of the cache, or None if some are not there."""
        if self._columns is None:
            return np.arange(self._n) if columns is None else columns
        if columns is None:
            return None
        places = np.searchsorted(self._columns, columns)
        if len(self._columns) == 0 or places.max(initial=0) == len(self._columns):
            return None
        return places if np.array_equal(self._columns[places], columns) else None

    def _is_kept(self, columns: Integers | None) -> bool:
        if columns is None or self._columns is None:
            return columns is self._columns
        return columns is self._columns or np.array_equal(columns, self._columns)

    def effort(self, rows: Integers) -> Integers:
        """Return how many rows have to be read for each of these."""
        return self._source.effort(rows)

    def products(self, rows: Integers, coef: Floats, columns: Integers | None = None) -> Floats:
        """Return the inner products of a sum of rows with some rows or all."""
        from bagwise.solvers.operators._gram_kernels import add_rows

        if not self._is_kept(columns):
            return super().products(rows, coef, columns)
        out = np.zeros(self._n if columns is None else len(columns))
        for piece in self.strips(rows, len(out)):
            some, factor = rows[piece], coef[piece]
            hit = self._slot[some] >= 0
            slot = self._slot[some[hit]]
            self._used[slot] = self._clock
            add_rows(self._rows, slot, factor[hit], out)
            if not hit.all():
                block = self._source.block(some[~hit], columns)
                add_rows(block, np.arange(len(block)), factor[~hit], out)
                self._keep(some[~hit], block)
        return out

    def block(
        self, rows: Integers, columns: Integers | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all."""
        from bagwise.solvers.operators._gram_kernels import gather

        whole = self._is_kept(columns)
        places = None if whole else self._places(columns)
        if not whole and places is None:
            return self._source.block(rows, columns, out)
        slot = self._slot[rows]
        hit = slot >= 0
        if not hit.any():
            out = self._source.block(rows, columns, out)
        else:
            if out is None:
                width = self._n if columns is None else len(columns)
                out = np.empty((len(rows), width), self.dtype)
            if places is None:
                out[hit] = self._rows[slot[hit]]
            else:
                part = out if hit.all() else np.empty((len(slot[hit]), len(places)), self.dtype)
                gather(self._rows, slot[hit], places, part)
                if part is not out:
                    out[hit] = part
            if not hit.all():
                out[~hit] = self._source.block(rows[~hit], columns)
        if whole:
            self._keep(rows, out)
        return out

    def _keep(self, rows: Integers, block: NDArray[Any]) -> None:
        self._clock += 1
        slot = self._slot[rows]
        self._used[slot[slot >= 0]] = self._clock
        new = np.flatnonzero(slot < 0)
        older = np.flatnonzero(self._used < self._clock)
        new = new[: len(older)]
        if not len(new):
            return
        place = older[np.argsort(self._used[older], kind="stable")[: len(new)]]
        dropped = self._owner[place]
        self._slot[dropped[dropped >= 0]] = -1
        self._rows[place] = block[new]
        self._owner[place], self._slot[rows[new]] = rows[new], place
        self._used[place] = self._clock
