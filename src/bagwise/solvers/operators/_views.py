"""Operators that look at others: a selection of rows, a constant added to all inner products."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    index: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.index)

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products."""
        return self.source.dtype

    def diagonal(self) -> NDArray[np.float64]:
        """Return the squared norm of each row."""
        return self.source.diagonal()[self.index]

    def block(
        self,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64] | None = None,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all."""
        return self.source.block(self.index[rows], self._inside(columns), out)

    def products(
        self,
        rows: NDArray[np.int64],
        coef: NDArray[np.float64],
        columns: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64]:
        """Return the inner products of a sum of rows with some rows or all."""
        return self.source.products(self.index[rows], coef, self._inside(columns))

    def weights(self, rows: NDArray[np.int64], coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a sum of rows itself, if it can be written down."""
        return self.source.weights(self.index[rows], coef)

    def take(self, rows: NDArray[np.int64]) -> "SelectedRows":
        """Return some of the rows."""
        return SelectedRows(self.source, self.index[rows])

    def effort(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many rows have to be read for each of these."""
        return self.source.effort(self.index[rows])

    def _inside(self, columns: NDArray[np.int64] | None) -> NDArray[np.int64]:
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

    def diagonal(self) -> NDArray[np.float64]:
        """Return the squared norm of each row."""
        return self.source.diagonal() + self.constant

    def block(
        self,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64] | None = None,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all."""
        out = self.source.block(rows, columns, out)
        out += self.constant
        return out

    def products(
        self,
        rows: NDArray[np.int64],
        coef: NDArray[np.float64],
        columns: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64]:
        """Return the inner products of a sum of rows with some rows or all."""
        products = self.source.products(rows, coef, columns)
        products += self.constant * coef.sum()
        return products

    def take(self, rows: NDArray[np.int64]) -> "ShiftedRows":
        """Return some of the rows."""
        return ShiftedRows(self.source.take(rows), self.constant)

    def effort(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many rows have to be read for each of these."""
        return self.source.effort(rows)
