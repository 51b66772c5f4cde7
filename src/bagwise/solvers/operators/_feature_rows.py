"""Rows known by their features, dense or sparse: products with few passes and no copies."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dsyrk

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint, short_slices, slice_length
from bagwise.solvers.operators._row_operator import RowOperator, written

_DENSE_PRODUCTS = 100  # of two numbers, in the time of one that a sparse product finds
_FILLED = 0.25  # share of the features in a row from which on dense products take less time
_ROUGH = 1e6  # largest sum of squares whose rounding in single precision is small beside 1
_NOTHING = np.empty(0, np.int64)  # where a sparse matrix has its indices


class FeatureRows(RowOperator):
    """Some rows of a shared dense or CSR matrix, read but never copied as a whole.

    Beside inner products (the linear kernel) it offers what needs features: sums of rows as weights
    (`combine`), products of all rows with such weights (`dot`), the `curvature` of Newton steps.

    Parameters
    ----------
    matrix : array or CSR matrix of shape (m, d)
        The matrix that holds the rows, in single or double precision; not copied if its rows are
        contiguous.
    rows : array-like of int of shape (n,), optional
        Which of its rows; all by default.
    owner : str
        Who asks, for messages.
    """

    def __init__(
        self, matrix: Any, rows: ArrayLike | None = None, *, owner: str = "FeatureRows"
    ) -> None:
        self.owner = owner
        if sp.issparse(matrix):
            matrix = sp.csr_array(matrix)
            if not matrix.has_canonical_format:  # a column twice would spoil the rows' lengths
                matrix = matrix.copy()
                matrix.sum_duplicates()
            stored = _floats(matrix.data), matrix.indices, matrix.indptr
            data, indices, indptr = (_read_only(part) for part in stored)
            self.parts: tuple[Any, Any, Any] = data, indices, indptr
            self.width = max(1.0, len(matrix.data) / max(1, matrix.shape[0]))
        else:
            matrix = _floats(np.asarray(matrix))
            if matrix.ndim != 2:
                msg = f"{owner}: instances must be a matrix. Got shape {matrix.shape}."
                raise ValueError(msg)
            if matrix.strides[1] != matrix.itemsize and matrix.size:
                matrix = np.ascontiguousarray(matrix)
            matrix = _read_only(matrix)
            self.parts = matrix, _NOTHING, _NOTHING
            self.width = max(1.0, float(matrix.shape[1]))
        self.matrix, self.is_sparse, self.d = matrix, sp.issparse(matrix), int(matrix.shape[1])
        n_rows = int(matrix.shape[0])
        self.rows = np.arange(n_rows) if rows is None else checked_index(owner, rows, n_rows)
        self.is_whole = rows is None
        self.row_seconds = 2e-9 * self.width  # that a compiled loop takes for a row

    @classmethod
    def of(cls, instances: Any, rows: ArrayLike | None = None, *, owner: str) -> "FeatureRows":
        """Return some rows of a matrix, or of rows with features."""
        if not isinstance(instances, FeatureRows):
            return cls(instances, rows, owner=owner)
        if rows is None:
            return instances
        return instances.take(checked_index(owner, rows, instances.n))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products: sums are in double precision."""
        return np.dtype(np.float64)

    def diagonal(self) -> Floats:
        """Return the squared norm of each row."""
        return self.square_norms()

    def block(
        self, rows: Integers, columns: Integers | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all."""
        if columns is rows:
            values = self.take(rows).gram()
        else:
            others = np.arange(self.n) if columns is None else columns
            values = cross_products(self.features(rows), self.features(others))
        return written(values, out)

    def products(self, rows: Integers, coef: Floats, columns: Integers | None = None) -> Floats:
        """Return the inner products of a sum of rows with some rows or all."""
        others = self if columns is None else self.take(columns)
        return others.dot(self.weights(rows, coef))

    def weights(self, rows: Integers, coef: Floats) -> Floats:
        """Return a sum of rows itself."""
        return self.take(rows).combine(coef)

    def features(self, rows: Integers) -> Any:
        """Return some rows as a matrix, in its precision."""
        return self.matrix[self.rows[rows]]

    def columns(self, index: Integers) -> NDArray[Any]:
        """Return some features of all rows, in the precision of the matrix."""
        block: Any = self.matrix[:, index] if self.is_whole else self.matrix[self.rows][:, index]
        return np.asarray(block.toarray() if self.is_sparse else block)

    def not_finite(self) -> str:
        """Return what to say if the rows hold NaN or infinity."""
        return f"{self.owner}: instances must hold finite numbers only. Got NaN or infinity."

    def take(self, rows: Integers | slice) -> "FeatureRows":
        """Return some of these rows.

        An array of their numbers, as integers, may be kept: it must not change afterwards.
        """
        out = object.__new__(FeatureRows)
        out.__dict__.update(self.__dict__)
        m = int(self.matrix.shape[0])
        if isinstance(rows, slice) or not self.is_whole:
            out.rows = self.rows[rows]
        else:
            out.rows = rows
        out.is_whole = len(out.rows) == m and np.array_equal(out.rows, np.arange(m))
        return out

    def dot(self, w: Floats) -> Floats:
        """Return the inner product of each row with ``w``."""
        from bagwise.solvers.operators import _feature_kernels as kernels

        out = np.empty(self.n)
        for piece in self.slices():
            kernels.dot(*self.parts, self.rows[piece], w, out[piece])
        return out

    def combine(self, factor: Floats) -> Floats:
        """Return the sum of the rows, each times its factor."""
        from bagwise.solvers.operators import _feature_kernels as kernels

        out = np.zeros(self.d)
        for piece in self.slices():
            kernels.combine(*self.parts, self.rows[piece], factor[piece], out)
        return out

    def square_norms(self) -> Floats:
        """Return the squared length of each row."""
        from bagwise.solvers.operators import _feature_kernels as kernels

        out = np.empty(self.n)
        for piece in self.slices():
            kernels.square_norms(*self.parts, self.rows[piece], out[piece])
        return out

    def curvature(self, weight: Floats) -> Floats:
        """Return the sum of ``weight * [x, 1] [x, 1]'`` over the rows."""
        out = np.zeros((self.d + 1, self.d + 1))
        if self.is_sparse and self.width <= _FILLED * self.d:
            self._add_pairs(weight, out)
            return out
        for rows in self._blocks(1e-10):
            checkpoint()
            dense = self._scaled(rows, weight[rows], np.float64)
            out += dense.T @ dense
        return out

    @property
    def curvature_work(self) -> float:
        """What `curvature` takes, about, in products of two numbers of dense matrices."""
        share = min(1.0, self.width / (_FILLED * max(1, self.d))) if self.is_sparse else 1.0
        return self.n * float(self.d) ** 2 * share**2

    def _add_pairs(self, weight: Floats, out: Floats) -> None:
        """Add the same, of rows that are mostly empty: products of their entries, two by two."""
        from bagwise.solvers.operators import _feature_kernels as kernels

        for rows in short_slices(self.n, self.row_seconds * (1.0 + 0.5 * self.width)):
            kernels.add_curvature(*self.parts, self.rows[rows], weight[rows], out)
        checkpoint()
        kernels.mirror(out)

    def curvature_diagonal(self, weight: Floats) -> Floats:
        """Return the diagonal of the same: the sum of ``weight * [x * x, 1]`` over the rows."""
        out = np.zeros(self.d + 1)
        for rows in self.slices():
            checkpoint()
            block, part = self.matrix[self.rows[rows]], weight[rows]
            if self.is_sparse:
                squares = np.square(block.data, dtype=np.float64)
                squares *= np.repeat(part, np.diff(block.indptr))
                out[:-1] += np.bincount(block.indices, squares, self.d)
            else:
                out[:-1] += np.einsum("i,ij,ij->j", part, block, block, dtype=np.float64)
            out[-1] += part.sum()
        return out

    def rough_curvature(self, weight: Floats) -> Floats:
        """Return the same, of rows in single precision in that, unless its rounding matters.

        For systems in which 1 is added to the diagonal, and which need not be solved exactly.
        """
        if self.is_sparse or self.matrix.dtype != np.float32:
            return self.curvature(weight)
        out = np.zeros((self.d + 1, self.d + 1))
        for rows in self._blocks(2e-11):
            checkpoint()
            with np.errstate(over="ignore", invalid="ignore"):
                dense = self._scaled(rows, weight[rows], np.float32)
                out += dense.T @ dense
            if not out.diagonal().max() < _ROUGH:
                return self.curvature(weight)
        return out

    def _blocks(self, seconds: float) -> Iterator[slice]:
        """Cut the rows into pieces; products of two numbers take so many seconds each."""
        step = min(4096, max(16, slice_length(seconds * (self.d + 1) ** 2)))
        return map(slice, range(0, self.n, step), range(step, self.n + step, step))

    def _scaled(self, rows: slice, weight: Floats, dtype: Any) -> NDArray[Any]:
        """Return some rows, dense, with a 1 behind them, times the roots of weights."""
        root = np.sqrt(weight).astype(dtype, copy=False)
        out = np.empty((len(root), self.d + 1), dtype)
        block = self.matrix[self.rows[rows]]
        block = block.toarray() if self.is_sparse else block
        np.multiply(block, root[:, None], out=out[:, : self.d])
        out[:, self.d] = root
        return out

    @property
    def gram_price(self) -> float:
        """What `gram` of sparse rows takes, about, in units of `combine` and `dot`; 0 if dense."""
        if not self.is_sparse or not self.n:
            return 0.0
        n_stored = self.n * self.width
        n_dense = float(self.n) ** 2 * min(self.d, n_stored)
        return float(min(n_dense / (_DENSE_PRODUCTS * n_stored), n_stored / max(1, self.d)))

    def gram(self) -> Floats:
        """Return the inner products of the rows with one another."""
        if self.is_sparse:
            block = self.matrix if self.is_whole else self.matrix[self.rows]
            return cross_products(block, block)
        out = np.zeros((self.n, self.n))
        step = min(4096, max(16, slice_length(1e-10 * (self.n + 1) ** 2)))
        for start in range(0, self.d, step):
            checkpoint()
            dense = self.matrix[self.rows, start : start + step].astype(np.float64)
            out += dense @ dense.T
        return out

    def slices(self) -> Iterator[slice]:
        """Cut the rows into pieces that compiled loops walk in a moment."""
        return short_slices(self.n, self.row_seconds)


def cross_products(left: Any, right: Any) -> Floats:
    """Return the inner products of the rows of two matrices, both dense or both sparse."""
    if not sp.issparse(left):
        return np.asarray(left.astype(np.float64) @ right.astype(np.float64).T)
    count = np.bincount(left.indices, minlength=left.shape[1])
    other = count if right is left else np.bincount(right.indices, minlength=right.shape[1])
    used = np.flatnonzero(count * other)
    n_dense = float(left.shape[0]) * right.shape[0] * len(used)
    if n_dense > _DENSE_PRODUCTS * float(count @ other):
        return np.asarray((left.astype(np.float64) @ right.astype(np.float64).T).toarray())
    return _by_columns(left, right, used)


def _by_columns(left: Any, right: Any, used: Integers) -> Floats:
    """Return the inner products of sparse rows that are well filled: dense in some columns."""
    if right is left:
        return _square_by_columns(left, used)
    out = np.zeros((left.shape[0], right.shape[0]))
    step = min(4096, max(16, slice_length(1e-10 * (1 + out.size))))
    more = _column_blocks(right, used, step)
    for dense in _column_blocks(left, used, step):
        checkpoint()
        out += dense @ next(more).T
    return out


def _square_by_columns(matrix: Any, used: Integers) -> Floats:
    """Do the same for one matrix: half of it is computed, and added up in place."""
    n = matrix.shape[0]
    out = np.zeros((n, n), order="F")
    step = min(4096, max(16, slice_length(2e-11 * (1 + n * n))))
    for dense in _column_blocks(matrix, used, step):
        checkpoint()
        out = dsyrk(1.0, dense.T, beta=1.0, c=out, trans=1, overwrite_c=1)
    out += np.triu(out, 1).T
    return out.T


def _column_blocks(matrix: Any, used: Integers, step: int) -> Iterator[Floats]:
    """Yield some columns of a CSR matrix with sorted indices, dense and so many at a time."""
    from bagwise.solvers.operators._feature_kernels import fill_columns

    place = np.full(matrix.shape[1], -1)
    place[used] = np.arange(len(used))
    stored = matrix.data, matrix.indices, matrix.indptr
    data, indices, indptr = (_read_only(part) for part in stored)
    position = indptr[:-1].astype(np.int64)
    for start in range(0, len(used), step):
        block = np.zeros((matrix.shape[0], min(step, len(used) - start)))
        fill_columns(data, indices, indptr, place, position, start, block)
        yield block


def _floats(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that is read-only whatever it came from: one type to compile for."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def checked_index(owner: str, rows: ArrayLike, n: int, name: str = "rows") -> Integers:
    """Return numbers of rows, of which there are ``n``."""
    index = np.asarray(rows)
    if index.ndim != 1 or (index.size and not np.issubdtype(index.dtype, np.integer)):
        msg = (
            f"{owner}: {name} must be a vector of row numbers. "
            f"Got {index.dtype} of shape {index.shape}."
        )
        raise ValueError(msg)
    if index.size and not (index.min() >= 0 and index.max() < n):
        found = f"{index.min()} to {index.max()}"
        msg = f"{owner}: {name} must lie between 0 and {n - 1}. Got {found}."
        raise ValueError(msg)
    return index.astype(np.int64, copy=False)
