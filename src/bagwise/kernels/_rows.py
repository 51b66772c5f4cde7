"""Matrices of instances, dense or CSR: their rows in blocks, precisions and norms."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise._threads import checkpoint
from bagwise.bags import SelectedRows

#: Rows of instances: a dense array (also memory-mapped and read-only) or a CSR matrix. Functions
#: that look at blocks of rows alone take `bagwise.bags.SelectedRows` too.
Matrix: TypeAlias = Any

#: Rows and columns of a block. The grid depends on shapes alone, so the bits of a result do not
#: depend on the number of threads.
BLOCK = 512

_PASS_ENTRIES = 1 << 18  # entries that one step of a pass over all instances looks at


def canonical_rows(A: Matrix) -> Matrix:
    """Return ``A`` as a two-dimensional array or as CSR without repeated entries.

    Selected rows stay as they are: each block of them will be such an array or CSR.
    """
    if isinstance(A, SelectedRows):
        return A
    if sp.issparse(A):
        A = A.tocsr()
        if not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        return A
    A = np.asarray(A)
    if A.ndim != 2:
        msg = f"Instances must form a matrix of two dimensions. Got {A.ndim}."
        raise ValueError(msg)
    return A


def check_widths(A: Matrix, B: Matrix) -> None:
    """Refuse two matrices of instances with different numbers of features."""
    if A.shape[1] != B.shape[1]:
        msg = (
            f"Both sides of a kernel must have the same number of features. "
            f"Got {A.shape[1]} and {B.shape[1]}."
        )
        raise ValueError(msg)


def common_dtype(*matrices: Matrix) -> "np.dtype[Any]":
    """Return single precision if all matrices have it, else double precision."""
    single = all(matrix.dtype == np.float32 for matrix in matrices)
    return np.dtype(np.float32 if single else np.float64)


def converted(block: Matrix, dtype: "np.dtype[Any]") -> Matrix:
    """Return a block of rows in the given precision, contiguous."""
    if sp.issparse(block):
        return block.astype(dtype, copy=False)
    return np.ascontiguousarray(block, dtype)


def slices(length: int, step: int) -> Iterator[slice]:
    """Cut ``range(length)`` into pieces of ``step``."""
    return (slice(i, min(i + step, length)) for i in range(0, length, step))


def row_passes(X: Matrix) -> Iterator[slice]:
    """Cut rows into short steps, between which a computation can be cut."""
    for rows in slices(X.shape[0], max(1, _PASS_ENTRIES // max(1, X.shape[1]))):
        checkpoint()
        yield rows


def row_moments(block: Matrix, pivot: float) -> tuple[Floats, Floats]:
    """Return the sum and the sum of squares of ``entry - pivot`` in each row."""
    if not sp.issparse(block):
        entries = block.astype(np.float64) - pivot
        return entries.sum(axis=1), _squares(entries)
    row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    entries = block.data.astype(np.float64) - pivot
    zeros = block.shape[1] - np.diff(block.indptr)
    sums = np.bincount(row, entries, block.shape[0]) - zeros * pivot
    return sums, np.bincount(row, entries**2, block.shape[0]) + zeros * pivot**2


def squared_norms(A: Matrix) -> Floats:
    """Return the squared Euclidean norm of each row, summed in double precision."""
    out = np.empty(A.shape[0])
    for rows in row_passes(A):
        block = A[rows].astype(np.float64, copy=False)
        out[rows] = row_moments(block, 0.0)[1] if sp.issparse(block) else _squares(block)
    return out


def _squares(block: Floats) -> Floats:
    """Return the sum of squares of each row."""
    sums: Floats = np.einsum("ij,ij->i", block, block)
    return sums


def density(block: Matrix) -> float:
    """Return which share of the entries of a sparse block is stored."""
    return float(block.nnz / max(1, block.shape[0] * block.shape[1]))


def scaled(block: Matrix, norms: NDArray[Any]) -> Matrix:
    """Return rows divided by their norms; rows of zeros stay."""
    norms = np.where(norms == 0, norms.dtype.type(1), norms)
    if not sp.issparse(block):
        return block / norms[:, None]
    data = block.data / np.repeat(norms, np.diff(block.indptr))
    return type(block)((data, block.indices, block.indptr), shape=block.shape)


def row_lengths(A: Matrix) -> Floats:
    """Return the Euclidean norms of rows, also where their squares do not fit a float."""
    with np.errstate(over="ignore", under="ignore"):
        squares = squared_norms(A)
    out = np.sqrt(squares)
    doubtful = np.flatnonzero(~((squares > 1e-280) & (squares < 1e280)))
    if doubtful.size and A.shape[1]:
        picked = A[doubtful].astype(np.float64)
        largest = abs(picked).max(axis=1)
        largest = largest.toarray().ravel() if sp.issparse(largest) else largest
        usable = np.isfinite(largest) & (largest > 0)
        picked, largest = picked[usable], largest[usable]
        out[doubtful[usable]] = largest * np.sqrt(squared_norms(scaled(picked, largest)))
    return out


def row_hashes(block: Matrix) -> NDArray[np.uint64]:
    """Hash rows by value: equal rows, dense or sparse, in any precision, have equal hashes."""
    if sp.issparse(block):
        row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        column, values = block.indices, block.data
    else:
        row, column = np.nonzero(block)
        values = block[row, column]
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64)
    bits = _scramble(bits ^ _scramble(column.astype(np.uint64)))
    bits[values == 0] = 0  # a stored zero is a zero
    out = np.zeros(block.shape[0], np.uint64)
    np.add.at(out, row, bits)
    return _scramble(out)


def _scramble(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64 bits (the finaliser of the generator splitmix64)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
