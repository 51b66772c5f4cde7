"""Operators that look at others: a selection of rows, a constant added to all inner products."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise.solvers.operators._row_operator import RowOperator


@dataclass(frozen=True, eq=False)
class SelectedRows(RowOperator):
    """Some rows of another operator, in any order and possibly repeated.

    Parameters
    ----------
    source : RowOperator
        All rows.
    index : ndarray of int of shape (n,)
        Which of them.
    """

    source: RowOperator
    index: Integers

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.index)

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products."""
        return self.source.dtype

    def diagonal(self) -> Floats:
        """Return the squared norm of each row."""
        return self.source.diagonal()[self.index]

    def block(
        self, rows: Integers, columns: Integers | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all."""
        return self.source.block(self.index[rows], self._inside(columns), out)

    def products(self, rows: Integers, coef: Floats, columns: Integers | None = None) -> Floats:
        """Return the inner products of a sum of rows with some rows or all."""
        return self.source.products(self.index[rows], coef, self._inside(columns))

    def weights(self, rows: Integers, coef: Floats) -> Floats:
        """Return a sum of rows itself, if it can be written down."""
        return self.source.weights(self.index[rows], coef)

    def take(self, rows: Integers) -> "SelectedRows":
        """Return some of the rows."""
        return SelectedRows(self.source, self.index[rows])

    def features(self, rows: Integers) -> Any:
        """Return some rows as a matrix, if they have features."""
        return self.source.features(self.index[rows])

    def effort(self, rows: Integers) -> Integers:
        """Return how many rows have to be read for each of these."""
        return self.source.effort(self.index[rows])

    def _inside(self, columns: Integers | None) -> Integers:
        return self.index if columns is None else self.index[columns]


@dataclass(frozen=True, eq=False)
class ShiftedRows(RowOperator):
    """The rows of another operator with a constant added to all inner products.

    It is as if every row had one more feature, the root of the constant.

    Parameters
    ----------
    source : RowOperator
        The rows.
    constant : float
        What is added, not negative.
    """

    source: RowOperator
    constant: float

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.source.n

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products."""
        return self.source.dtype

    def diagonal(self) -> Floats:
        """Return the squared norm of each row."""
        return self.source.diagonal() + self.constant

    def block(
        self, rows: Integers, columns: Integers | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all."""
        out = self.source.block(rows, columns, out)
        out += self.constant
        return out

    def fill_square(self, out: NDArray[Any]) -> bool:
        """Write all inner products, where the rows themselves can."""
        if not self.source.fill_square(out):
            return False
        out += self.constant
        return True

    def products(self, rows: Integers, coef: Floats, columns: Integers | None = None) -> Floats:
        """Return the inner products of a sum of rows with some rows or all."""
        products = self.source.products(rows, coef, columns)
        products += self.constant * coef.sum()
        return products

    def take(self, rows: Integers) -> "ShiftedRows":
        """Return some of the rows."""
        return ShiftedRows(self.source.take(rows), self.constant)

    def effort(self, rows: Integers) -> Integers:
        """Return how many rows have to be read for each of these."""
        return self.source.effort(rows)
