"""Distances between rows that no matrix product gives: sums over coordinates."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._threads import checkpoint
from bagwise.kernels._rows import Matrix, density, slices

_DENSE_ENOUGH = 0.3  # of the entries of a sparse block: from here on dense sums are faster
_SLICE_TERMS = 1 << 26  # terms of sums in one compiled call: 5 to 20 ms
_SUM_COLUMNS = 64  # sums run along so many columns at once


def coordinate_sums(a: Matrix, b: Matrix, out: NDArray[Any], *, chi2: bool) -> None:
    """Write the distances that no matrix product gives: absolute or chi-squared differences."""
    both = sp.issparse(a) and sp.issparse(b)
    if both and min(density(a), density(b)) <= _DENSE_ENOUGH:
        _sparse_sums(a, b, out, chi2=chi2)
        return
    a, b = _writable(a), _writable(b)
    if len(b) < min(len(a), _SUM_COLUMNS):  # the loop runs along the longer side
        turned = np.empty((len(b), len(a)), out.dtype)
        _dense_sums(b, a, turned, chi2=chi2)
        out[:] = turned.T
    else:
        _dense_sums(a, b, out, chi2=chi2)


def _writable(block: Matrix) -> NDArray[Any]:
    """Return a dense block that is not read-only: compiled code would be compiled anew for that."""
    dense: NDArray[Any] = block.toarray() if sp.issparse(block) else block
    return dense if dense.flags.writeable else dense.copy()


def _dense_sums(a: NDArray[Any], b: NDArray[Any], out: NDArray[Any], *, chi2: bool) -> None:
    from bagwise.kernels._block_kernels import dense_coordinate_sums

    rows_at_once = max(1, _SLICE_TERMS // max(1, _SUM_COLUMNS * a.shape[1]))
    tiles_at_once = max(1, rows_at_once // max(1, len(a)))
    for columns in slices(len(b), tiles_at_once * _SUM_COLUMNS):
        for rows in slices(len(a), rows_at_once):
            checkpoint()
            dense_coordinate_sums(a[rows], b[columns], chi2, out, rows.start, columns.start)


def _sparse_sums(a: Matrix, b: Matrix, out: NDArray[Any], *, chi2: bool) -> None:
    from bagwise.kernels._block_kernels import sparse_coordinate_sums

    left, right = (abs(side.astype(np.float64)).sum(axis=1) for side in (a, b))
    left, right = np.asarray(left).ravel(), np.asarray(right).ravel()
    by_column = b.tocsc()
    for rows in slices(a.shape[0], max(1, _SLICE_TERMS // max(1, b.shape[0] + b.nnz))):
        checkpoint()
        sparse_coordinate_sums(
            a.indptr[rows.start : rows.stop + 1], a.indices, a.data, left[rows],
            by_column.indptr, by_column.indices, by_column.data, right, chi2, out[rows],
        )  # fmt: skip
