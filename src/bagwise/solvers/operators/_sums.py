"""Rows made of other rows: sums of a few of them, and several sets behind one another."""

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import short_slices
from bagwise.exceptions import MemoryLimitError
from bagwise.solvers.operators._cached_rows import CachedRows
from bagwise.solvers.operators._feature_rows import FeatureRows, cross_products
from bagwise.solvers.operators._filled_rows import FilledRows
from bagwise.solvers.operators._row_operator import RowOperator, written
from bagwise.solvers.operators._views import SelectedRows

_FEW = 64  # rows whose squared norms are computed at a time


class SumRows(RowOperator):
    """Rows that are sums of a few rows of another operator, and are never written down all at once.

    Parameters
    ----------
    source : RowOperator
        The rows that are summed.
    matrix : CSR array of shape (n, source.n)
        The coefficients of the sums.
    max_bytes : float
        Most memory for a block of inner products: `MemoryLimitError` beyond.
    """

    def __init__(self, source: RowOperator, matrix: Any, *, max_bytes: float = inf) -> None:
        self._source, self._matrix, self._max_bytes = source, sp.csr_array(matrix), max_bytes
        if isinstance(source, SelectedRows):  # sums of what it selects from
            self._source, whole = source.source, self._matrix
            parts = whole.data, source.index[whole.indices], whole.indptr
            self._matrix = sp.csr_array(parts, shape=(whole.shape[0], source.source.n))

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self._matrix.shape[0])

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products: sums are in double precision."""
        return np.dtype(np.float64)

    def diagonal(self) -> Floats:
        """Return the squared norm of each row."""
        pieces = np.array_split(np.arange(self.n), max(1, -(-self.n // _FEW)))
        return np.concatenate([self.block(few, few).diagonal() for few in pieces])

    def block(
        self, rows: Integers, columns: Integers | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all."""
        columns = np.arange(self.n) if columns is None else columns
        self.refuse_large(len(rows), len(columns))
        sums = self._matrix[rows]
        used, left = compacted(sums)
        same = rows is columns or np.array_equal(rows, columns)
        features = self._source.features(used) if same else None
        if isinstance(self._source, FilledRows):
            self._source.fill(used)
        gram = self._source.array
        if features is not None:
            values = FeatureRows(left @ features).gram()
        elif gram is not None:
            values = _sum_block(gram, sums, sums if same else self._matrix[columns])
        elif same:
            values = left @ (left @ self._inner(used, used)).T
        else:
            others, right = compacted(self._matrix[columns])
            values = (right @ (left @ self._inner(used, others)).T).T
        if same and features is None:
            values = 0.5 * (values + values.T)
        return written(values, out)

    def products(self, rows: Integers, coef: Floats, columns: Integers | None = None) -> Floats:
        """Return the inner products of a sum of rows with some rows or all."""
        products = self._source.products(*self._summed(rows, coef))
        matrix = self._matrix if columns is None else self._matrix[columns]
        out: Floats = matrix @ products
        return out

    def weights(self, rows: Integers, coef: Floats) -> Floats:
        """Return a sum of rows itself, if it can be written down."""
        return self._source.weights(*self._summed(rows, coef))

    def _summed(self, rows: Integers, coef: Floats) -> tuple[Integers, Floats]:
        """Return a sum of rows as one of the rows behind them: which, and their coefficients."""
        total = self._matrix[rows].T @ coef
        used = np.flatnonzero(total)
        return used, total[used]

    def _inner(self, rows: Integers, columns: Integers) -> Floats:
        # Where rows are remembered, whole ones: `products` will need them.
        if isinstance(self._source, CachedRows):
            out = np.empty((len(rows), len(columns)))
            for piece in self._source.strips(rows, self._source.n):
                out[piece] = self._source.block(rows[piece])[:, columns]
            return out
        return self._source.block(rows, columns).astype(np.float64, copy=False)

    def refuse_large(self, n_rows: int, n_columns: int) -> None:
        """Raise an error where a block would take more than ``max_bytes``."""
        n_bytes = 8.0 * n_rows * n_columns
        if n_bytes > self._max_bytes:
            msg = (
                f"The inner products of {n_rows} rows with {n_columns} take "
                f"{1e-6 * n_bytes:.3g} MB, and {1e-6 * self._max_bytes:.3g} MB are allowed."
            )
            raise MemoryLimitError(msg)


class StackedRows(RowOperator):
    """Rows with features that lie in several matrices, one behind the other.

    Parameters
    ----------
    parts : sequence of FeatureRows
        The rows, all of the same number of features.
    """

    def __init__(self, parts: Sequence[FeatureRows]) -> None:
        self._parts = list(parts)
        self._bounds = np.cumsum([0, *(part.n for part in parts)])

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self._bounds[-1])

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products."""
        return np.dtype(np.float64)

    def diagonal(self) -> Floats:
        """Return the squared norm of each row."""
        return np.concatenate([part.diagonal() for part in self._parts])

    def block(
        self, rows: Integers, columns: Integers | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all."""
        columns = np.arange(self.n) if columns is None else columns
        return written(cross_products(self.features(rows), self.features(columns)), out)

    def products(self, rows: Integers, coef: Floats, columns: Integers | None = None) -> Floats:
        """Return the inner products of a sum of rows with some rows or all."""
        weights = self.weights(rows, coef)
        if columns is not None:
            return FeatureRows(self.features(columns)).dot(weights)
        return np.concatenate([part.dot(weights) for part in self._parts])

    def weights(self, rows: Integers, coef: Floats) -> Floats:
        """Return a sum of rows itself."""
        number = self._numbers(rows)
        sums = [
            part.weights(rows[number == k] - self._bounds[k], coef[number == k])
            for k, part in enumerate(self._parts)
        ]
        total: Floats = np.add.reduce(sums)
        return total

    def features(self, rows: Integers) -> Any:
        """Return some rows as a matrix."""
        number = self._numbers(rows)
        blocks = [
            part.features(rows[number == k] - self._bounds[k]) for k, part in enumerate(self._parts)
        ]
        matrix = sp.vstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.vstack(blocks)
        order = np.argsort(number, kind="stable")
        return matrix[np.argsort(order)]

    def _numbers(self, rows: Integers) -> Integers:
        """Return which part each row lies in."""
        return np.searchsorted(self._bounds, rows, side="right") - 1


def _sum_block(gram: NDArray[Any], left: Any, right: Any) -> Floats:
    """Return ``left @ gram @ right.T`` for matrices of few entries."""
    from bagwise.solvers.operators._gram_kernels import sum_block

    out = np.empty((left.shape[0], right.shape[0]))
    sides = [(side.indices.astype(np.int64), side.data) for side in (left, right)]
    ends = right.indptr.astype(np.int64)
    seconds = 1e-9 * (gram.shape[1] * left.nnz / max(1, left.shape[0]) + right.nnz)
    for piece in short_slices(left.shape[0], seconds):
        part = left.indptr[piece.start : piece.stop + 1].astype(np.int64)
        sum_block(gram, part, *sides[0], ends, *sides[1], out[piece])
    return out


def compacted(matrix: Any) -> tuple[Integers, Any]:
    """Return the columns that are not empty, and the matrix without the others."""
    used, place = np.unique(matrix.indices, return_inverse=True)
    shape = (matrix.shape[0], len(used))
    return used.astype(np.int64), sp.csr_array((matrix.data, place, matrix.indptr), shape=shape)
