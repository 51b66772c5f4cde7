"""Rows whose Gram matrix lies in memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import short_slices
from bagwise.solvers._checks import checked_gram
from bagwise.solvers.operators._row_operator import RowOperator, written


class DenseGram(RowOperator):
    """Rows known by a symmetric matrix in memory, which is read and never copied.

    Parameters
    ----------
    gram : array-like of shape (n, n)
        Inner products in single or double precision. A contiguous array is not copied.
    owner : str
        Who asks, for messages.
    check_finite : bool
        Whether to look for NaN and infinity first.
    """

    def __init__(self, gram: Any, *, owner: str = "DenseGram", check_finite: bool = False) -> None:
        self._gram = checked_gram(owner, gram, check_finite=check_finite)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self._gram)

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products."""
        return self._gram.dtype

    @property
    def array(self) -> NDArray[Any]:
        """The matrix."""
        return self._gram

    def diagonal(self) -> Floats:
        """Return the squared norm of each row."""
        return self._gram.diagonal().astype(np.float64)

    def block(
        self, rows: Integers, columns: Integers | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all."""
        from bagwise.solvers.operators._gram_kernels import gather

        if columns is None:
            return written(self._gram[rows], out)
        if out is None:
            out = np.empty((len(rows), len(columns)), self.dtype)
        for piece in short_slices(len(rows), 1e-9 * len(columns)):
            gather(self._gram, rows[piece], columns, out[piece])
        return out

    def products(self, rows: Integers, coef: Floats, columns: Integers | None = None) -> Floats:
        """Return the inner products of a sum of rows, added up in double precision."""
        from bagwise.solvers.operators._gram_kernels import add_rows

        if columns is not None and 2 * len(columns) < self.n:
            return super().products(rows, coef, columns)
        out = np.zeros(self.n)
        for piece in short_slices(len(rows), 1e-9 * self.n, multiple=4):
            add_rows(self._gram, rows[piece], coef[piece], out)
        return out if columns is None else out[columns]

    def repeated(self, rows: Integers) -> "DenseGram":
        """Return all rows, and some of them once more at the end: a matrix in memory too."""
        n, m = self.n, len(rows)
        border = self._gram[rows]
        out = np.empty((n + m, n + m), self.dtype)
        out[:n, :n] = self._gram
        out[n:, :n] = border
        out[:n, n:] = border.T
        out[n:, n:] = border[:, rows]
        return DenseGram(out)


def as_rows(owner: str, gram: Any, *, check_finite: bool = True) -> RowOperator:
    """Return a Gram matrix as an operator; an operator is returned as it is."""
    if isinstance(gram, RowOperator):
        return gram
    return DenseGram(gram, owner=owner, check_finite=check_finite)
