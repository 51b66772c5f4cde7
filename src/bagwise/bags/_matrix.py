"""The instance matrix: dense or CSR, one set of operations for both."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from bagwise._arrays import Integers
from bagwise.exceptions import InvalidBagsError

#: C-ordered float32/float64 array, or canonical CSR of the same; never written to. Inside of bags
#: it may be `LazyRows`, too.
Matrix: TypeAlias = Any

_CHUNK_BYTES = 4 * 2**20


@dataclass(frozen=True, eq=False)
class LazyRows:
    """Rows that functions make of the rows of a matrix, each time they are read.

    Parameters
    ----------
    inner : ndarray or CSR array
        What the rows are made of.
    functions : tuple of callables
        Applied one after the other. Each takes a matrix and returns one with as many rows, and
        makes of a row the same whatever the others are.
    n_features : int
        Number of columns that come out.
    dtype : dtype
        float32 or float64.
    is_sparse : bool
        Whether CSR comes out.
    """

    inner: Matrix
    functions: tuple[Callable[[Matrix], Any], ...]
    n_features: int
    dtype: np.dtype[Any]
    is_sparse: bool

    @classmethod
    def of(cls, matrix: Matrix, function: Callable[[Matrix], Any], row: int) -> "LazyRows":
        """Put a function behind a matrix; what comes out is found by trying one row."""
        made = _apply(function, row_slice(matrix, row, row + 1))
        earlier = matrix.functions if isinstance(matrix, LazyRows) else ()
        inner, sparse_out = inner_matrix(matrix), not isinstance(made, np.ndarray)
        return cls(inner, (*earlier, function), made.shape[1], made.dtype, sparse_out)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.inner.shape[0]), self.n_features

    def make(self, rows: Matrix) -> Matrix:
        """Return what becomes of rows of the inner matrix; of none, none."""
        if not rows.shape[0]:
            empty = np.empty((0, self.n_features), self.dtype)
            return as_matrix(sparse.csr_array(empty) if self.is_sparse else empty)
        for function in self.functions:
            rows = _apply(function, rows)
        found = rows.shape[1], rows.dtype, not isinstance(rows, np.ndarray)
        if found != (self.n_features, self.dtype, self.is_sparse):
            msg = (
                "The transformer must return the same kind of matrix whatever rows it gets: "
                f"{_kind(self.n_features, self.dtype, self.is_sparse)} came first, "
                f"{_kind(*found)} came later."
            )
            raise InvalidBagsError(msg)
        return rows


def _kind(n_features: int, dtype: np.dtype[Any], is_sparse: bool) -> str:
    return f"{n_features} columns of {dtype}{' in CSR' if is_sparse else ''}"


def _apply(function: Callable[[Matrix], Any], rows: Matrix) -> Matrix:
    return one_row_each(function(rows), int(rows.shape[0]))


def one_row_each(made: Any, n_rows: int) -> Matrix:
    """Return what a transformer made of instances as a matrix; refuse another number of rows."""
    matrix = as_matrix(made, what="the transformed instances")
    if matrix.shape[0] != n_rows:
        msg = (
            f"The transformer must return one row per instance: {n_rows} were given, "
            f"{matrix.shape[0]} came back."
        )
        raise InvalidBagsError(msg)
    return matrix


def as_matrix(data: Any, *, what: str = "instances") -> Matrix:
    """Return the data as an instance matrix, copying only where the layout demands it.

    float32 and float64 stay as they are, float16 becomes float32, integers and booleans become
    float64. Whether the values are finite is not looked at here: see `first_nonfinite`.
    """
    if sparse.issparse(data):
        return _as_csr(data, what)
    array = _as_numeric(data, what)
    if array.ndim != 2:
        msg = f"{what} must be a 2-D matrix (rows x features). Got {array.ndim} dimension(s)."
        raise InvalidBagsError(msg)
    return read_only(np.ascontiguousarray(array))


def _as_csr(data: Any, what: str) -> Matrix:
    if data.ndim != 2:
        msg = f"{what} must be a 2-D matrix (rows x features). Got {data.ndim} dimension(s)."
        raise InvalidBagsError(msg)
    matrix = sparse.csr_array(data)
    try:
        matrix.check_format(full_check=True)  # compiled code will trust the positions
    except ValueError as error:
        msg = f"{what} must be a valid sparse matrix: {error}."
        raise InvalidBagsError(msg) from error
    dtype = _float_dtype(matrix.dtype, what)
    if matrix.dtype != dtype:
        matrix = matrix.astype(dtype)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # summing duplicates works in place: not on the caller's matrix
        matrix.sum_duplicates()
    return csr_from_parts(matrix.data, matrix.indices, matrix.indptr, matrix.shape)


def csr_from_parts(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> Matrix:
    """Put a CSR matrix together from parts known to be valid, without copying them."""
    matrix = sparse.csr_array((data, indices, indptr), shape=shape)
    for name, part in (("data", data), ("indices", indices), ("indptr", indptr)):
        built = getattr(matrix, name)  # scipy copies short views, and aligns the integer types
        setattr(matrix, name, read_only(part if built.dtype == part.dtype else built))
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def _as_numeric(data: ArrayLike, what: str) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        msg = f"{what} must not have masked values: np.asarray would uncover them."
        raise InvalidBagsError(msg)
    try:
        array = np.asarray(data)
        if array.dtype == object:
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{what} must be numbers in a rectangular array: {error}."
        raise InvalidBagsError(msg) from error
    dtype = _float_dtype(array.dtype, what)
    return array.astype(dtype, copy=False)


def _float_dtype(dtype: np.dtype[Any], what: str) -> np.dtype[Any]:
    if (native := dtype.newbyteorder("=")) in (np.float32, np.float64):
        return native
    if dtype.kind in "biu" or dtype == np.longdouble:
        return np.dtype(np.float64)
    if native == np.float16:
        return np.dtype(np.float32)
    msg = f"{what} must be real numbers. Got dtype {dtype}."
    raise InvalidBagsError(msg)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of base class ndarray; the array itself keeps its flags."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def row_slice(matrix: Matrix, start: int, stop: int) -> Matrix:
    """Return rows ``start`` to ``stop`` without copying their values; lazy ones are made now."""
    if isinstance(matrix, LazyRows):
        return matrix.make(row_slice(matrix.inner, start, stop))
    if isinstance(matrix, np.ndarray):
        return matrix[start:stop]
    low, high = matrix.indptr[start], matrix.indptr[stop]
    return csr_from_parts(
        matrix.data[low:high],
        matrix.indices[low:high],
        matrix.indptr[start : stop + 1] - low,
        (stop - start, matrix.shape[1]),
    )


def take_rows(matrix: Matrix, rows: Integers) -> Matrix:
    """Return a copy of the rows named."""
    if isinstance(matrix, LazyRows):
        return matrix.make(take_rows(matrix.inner, rows))
    if isinstance(matrix, np.ndarray):
        return read_only(np.take(matrix, rows, axis=0))
    return _as_csr(matrix[rows], "instances")


def stack_rows(matrices: "list[Matrix]") -> Matrix:
    """Stack matrices of equal width; the result is sparse only if all of them are."""
    if all(sparse.issparse(matrix) for matrix in matrices):
        return _as_csr(sparse.vstack(matrices, format="csr"), "instances")
    dense = [m.toarray() if sparse.issparse(m) else m for m in matrices]
    return read_only(np.concatenate(dense))


def rows_with_nan(matrix: Matrix) -> NDArray[np.bool_]:
    """Tell which rows have a NaN."""
    if isinstance(matrix, np.ndarray):
        return np.asarray(np.isnan(matrix).any(axis=1))
    counts = np.diff(matrix.indptr)
    row_of = np.repeat(np.arange(matrix.shape[0]), counts)
    return np.bincount(row_of[np.isnan(matrix.data)], minlength=matrix.shape[0]) > 0


def row_bytes(matrix: Matrix) -> int:
    """Bytes that a row takes (on average, if sparse); at least 1."""
    if not is_sparse(matrix):
        return max(1, int(matrix.shape[1] * matrix.dtype.itemsize))
    return sparse_row_bytes(int(matrix.nnz), int(matrix.shape[0]), matrix.dtype)


def sparse_row_bytes(n_stored: int, n_rows: int, dtype: np.dtype[Any]) -> int:
    """Bytes that a sparse row takes on average, whatever integers hold the positions.

    The type of the positions changes on the way to a file and back; what is derived from this
    number must not.
    """
    return 8 + n_stored * (dtype.itemsize + 4) // max(1, n_rows)


def matrix_bytes(matrix: Matrix) -> int:
    """Bytes that the values and, if sparse, their positions take; what lazy rows are made of."""
    return sum(int(part.nbytes) for part in parts_of(matrix))


def parts_of(matrix: Matrix) -> list[NDArray[Any]]:
    """Return the arrays that hold the matrix, or what lazy rows are made of."""
    matrix = inner_matrix(matrix)
    if isinstance(matrix, np.ndarray):
        return [matrix]
    return [matrix.data, matrix.indices, matrix.indptr]


def inner_matrix(matrix: Matrix) -> Matrix:
    """Return the matrix itself, or the one that lazy rows are made of."""
    return matrix.inner if isinstance(matrix, LazyRows) else matrix


def is_sparse(matrix: Matrix) -> bool:
    """Whether rows come as CSR."""
    if isinstance(matrix, LazyRows):
        return matrix.is_sparse
    return not isinstance(matrix, np.ndarray)


def chunk_rows(bytes_per_row: int) -> int:
    """Rows that make about 4 MB: 16,384 rows of 64 float32 values."""
    return max(1, _CHUNK_BYTES // bytes_per_row)


def first_nonfinite(matrix: Matrix, *, allow_nan: bool = False) -> tuple[int, int] | None:
    """Return row and column of the first NaN or infinity, or None; reads the matrix once.

    Parameters
    ----------
    matrix : ndarray or CSR array
        An instance matrix.
    allow_nan : bool
        Whether to look for infinity only.

    Notes
    -----
    A sum is finite only if all its terms are, and costs a quarter of looking at each value; an
    overflowing sum of finite values only sends us to the slow look.
    """
    values = matrix if isinstance(matrix, np.ndarray) else matrix.data
    step = chunk_rows(max(1, values.nbytes // max(1, len(values))))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(values), step):
            block = values[start : start + step]
            if np.isfinite(block.sum(dtype=block.dtype)):
                continue
            bad = np.argwhere(np.isinf(block) if allow_nan else ~np.isfinite(block))
            if not len(bad):
                continue
            if isinstance(matrix, np.ndarray):
                return start + int(bad[0, 0]), int(bad[0, 1])
            position = start + int(bad[0, 0])
            row = int(np.searchsorted(matrix.indptr, position, side="right")) - 1
            return row, int(matrix.indices[position])
    return None
