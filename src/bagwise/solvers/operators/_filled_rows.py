"""Rows whose inner products are costly, with room for all of them: each row is computed once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise.solvers.operators._cached_rows import CachedRows
from bagwise.solvers.operators._dense_gram import DenseGram
from bagwise.solvers.operators._row_operator import RowOperator

_NEARLY = 0.75  # of a row: less than this is computed alone, and not remembered
_WHOLE = 0.3  # of the matrix: once so much has been computed, the rest is as well


class FilledRows(RowOperator):
    """An operator that remembers all rows of the Gram matrix which were used.

    The memory of a row is taken when the row is computed. Where the whole matrix is cheap beside
    its rows one by one, all of it is computed once three tenths of its entries have been, and it is
    an `array` from then on. A mean counts as the instances behind it.

    Parameters
    ----------
    source : RowOperator
        Where they come from.
    """

    def __init__(self, source: RowOperator) -> None:
        self._source = source
        self._matrix = np.empty((source.n, source.n), source.dtype)
        self._known = np.zeros(source.n, np.bool_)
        self._n_computed = 0  # entries, those that are not remembered included
        self._rows = DenseGram(self._matrix)
        self._diagonal = source.diagonal()

    @property
    def n(self) -> int:
        """Number of rows."""
        return self._source.n

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products."""
        return self._source.dtype

    @property
    def array(self) -> NDArray[Any] | None:
        """The whole matrix, if all of it is known."""
        return self._matrix if self._known.all() else None

    def diagonal(self) -> Floats:
        """Return the squared norm of each row."""
        return self._diagonal.copy()

    def block(
        self, rows: Integers, columns: Integers | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all."""
        if columns is None or len(columns) >= _NEARLY * self.n:
            self.fill(rows)
        elif len(missing := rows[~self._known[rows]]):
            self._count(missing, int(self.effort(columns).sum()))
        known = self._known[rows]
        if known.all():
            return self._rows.block(rows, columns, out)
        if not known.any():
            return self._source.block(rows, columns, out)
        if out is None:
            out = np.empty((len(rows), self.n if columns is None else len(columns)), self.dtype)
        out[known] = self._rows.block(rows[known], columns)
        out[~known] = self._source.block(rows[~known], columns)
        return out

    def products(self, rows: Integers, coef: Floats, columns: Integers | None = None) -> Floats:
        """Return the inner products of a sum of rows with some rows or all."""
        self.fill(rows)
        return self._rows.products(rows, coef, columns)

    def effort(self, rows: Integers) -> Integers:
        """Return how many rows have to be read for each of these."""
        return self._source.effort(rows)

    def fill(self, rows: Integers) -> None:
        """Compute those of these rows that are not there yet."""
        missing = np.unique(rows[~self._known[rows]])
        if len(missing) and self._count(missing, self.n):
            return
        for piece in self.strips(missing, self.n):
            some = missing[piece]
            self._matrix[some] = self._source.block(some)
            self._known[some] = True

    def _count(self, rows: Integers, n_columns: int) -> bool:
        """Count entries that are to be computed; tell whether the whole matrix was instead."""
        self._n_computed += int(self.effort(rows).sum()) * n_columns
        whole = self._n_computed > _WHOLE * self.n**2 and self._source.fill_square(self._matrix)
        if whole:
            self._known[:] = True
        return whole


def remembered(source: RowOperator, max_bytes: float) -> RowOperator:
    """Return rows of which those that were used are remembered: all, or as many as fit."""
    if source.dtype.itemsize * source.n**2 <= max_bytes:
        return FilledRows(source)
    return CachedRows(source, max_bytes)
