"""Sums, extremes and moments of the instances of each bag that stay sparse."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._threads import ordered_map
from bagwise.bags._matrix import Matrix, csr_from_parts, parts_of, read_only

_VALUES_PER_RANGE = 2**20  # a few milliseconds of work between two looks at Ctrl-C


def sparse_sums(
    matrix: Matrix,
    starts: Integers,
    stops: Integers,
    *,
    weights: Floats | None = None,
    divisor: Floats | Integers | None = None,
    n_threads: int | None = None,
) -> Matrix:
    """Return the sum of the rows of each bag as a CSR array, with a weight per row if given.

    Parameters
    ----------
    matrix : CSR array of shape (n_rows, n_columns)
        The instances.
    starts, stops : ndarray of int of shape (n_bags,)
        First row of each bag and the row behind its last; a bag may be empty.
    weights : ndarray of shape (n_rows,), optional
        Weights of the rows.
    divisor : ndarray of shape (n_bags,), optional
        What the sum of each bag is divided by, such as its size.
    n_threads : int or None
        See `BagSource`.

    Returns
    -------
    CSR array of shape (n_bags, n_columns)
        In double precision. Rows are added from the first to the last, so that the result is the
        same to the last bit for any number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from bagwise.bags import sparse_sums
    >>> rows = sp.csr_array([[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 4.0]])
    >>> sparse_sums(rows, np.array([0, 2]), np.array([2, 3])).toarray()
    array([[3., 3., 0.],
           [0., 0., 4.]])
    """
    from bagwise.bags import _sparse_sum_kernels as kernels

    data, indices, indptr = (read_only(part) for part in parts_of(matrix))
    weight = read_only(np.empty(0) if weights is None else np.asarray(weights, np.float64))
    by = np.ones(len(starts)) if divisor is None else np.asarray(divisor, np.float64)
    starts, stops = (read_only(np.asarray(rows, np.int64)) for rows in (starts, stops))
    n_bags, n_columns = len(starts), int(matrix.shape[1])
    ranges = _ranges(indptr, starts, stops)
    count = np.empty(n_bags, np.int64)

    def look(bags: tuple[int, int]) -> None:
        kernels.count_columns(indices, indptr, starts, stops, n_columns, *bags, count)

    for _ in ordered_map(look, ranges, n_threads=n_threads):
        pass
    total = np.empty(int(count.sum()))
    index_type = np.int32 if max(n_columns, len(total)) < 2**31 else np.int64
    column = np.empty(len(total), index_type)
    bounds = np.concatenate([[0], np.cumsum(count)]).astype(index_type)

    def add(bags: tuple[int, int]) -> None:
        kernels.fill_sums(
            data, indices, indptr, weight, starts, stops, read_only(by), n_columns, *bags,
            bounds, total, column,
        )  # fmt: skip

    for _ in ordered_map(add, ranges, n_threads=n_threads):
        pass
    return csr_from_parts(total, column, bounds, (n_bags, n_columns))


def sparse_range(
    matrix: Matrix, starts: Integers, stops: Integers, *, n_threads: int | None = None
) -> Matrix:
    """Return the minima of all columns and behind them the maxima, for each bag.

    Parameters as for `sparse_sums`; no bag may be empty. The result is a CSR array of shape
    (n_bags, 2 * n_columns) in the precision of the matrix that stores no zeros.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> rows = sp.csr_array([[1.0, 0.0, -2.0], [2.0, 3.0, 0.0]])
    >>> sparse_range(rows, np.array([0]), np.array([2])).toarray()
    array([[ 1.,  0., -2.,  2.,  3.,  0.]])
    """
    from bagwise.bags._sparse_sum_kernels import fill_ranges

    return _pairs(fill_ranges, matrix, starts, stops, n_threads)


def sparse_moments(
    matrix: Matrix, starts: Integers, stops: Integers, *, n_threads: int | None = None
) -> Matrix:
    """Return the means of all columns and behind them the standard deviations, for each bag.

    Parameters and result as for `sparse_range`, but that zeros may be stored. Deviations are those
    of the bag itself: squares are divided by its size.
    """
    from bagwise.bags._sparse_sum_kernels import fill_moments

    return _pairs(fill_moments, matrix, starts, stops, n_threads)


def _pairs(
    fill: Callable[..., int],
    matrix: Matrix,
    starts: Integers,
    stops: Integers,
    n_threads: int | None,
) -> Matrix:
    """Run a loop over ranges of bags that writes up to two values for each column."""
    if not matrix.has_canonical_format:  # a column that is stored twice is the sum of both
        matrix = matrix.copy()
        matrix.sum_duplicates()
    data, indices, indptr = (read_only(part) for part in parts_of(matrix))
    if data.dtype not in (np.float32, np.float64):
        data = read_only(data.astype(np.float64))
    starts, stops = (read_only(np.asarray(rows, np.int64)) for rows in (starts, stops))
    n_bags, n_columns = len(starts), int(matrix.shape[1])
    stored = indptr[stops].astype(np.int64) - indptr[starts]
    most = 2 * min(int(stored.sum()), n_bags * n_columns)
    index_type = np.int32 if max(2 * n_columns, most) < 2**31 else np.int64
    count = np.empty(n_bags, np.int64)

    def run(bags: tuple[int, int]) -> tuple[Any, Any]:
        first, last = bags
        room = 2 * min(int(stored[first:last].sum()), (last - first) * n_columns)
        # A value is written before it is known whether it is kept: one place more.
        value, column = np.empty(room + 1, data.dtype), np.empty(room + 1, index_type)
        where = starts, stops, n_columns, first, last
        n_written = fill(data, indices, indptr, *where, value, column, count)
        for array in (value, column):
            array.resize(n_written, refcheck=False)  # gives memory back, and copies nothing
        return value, column

    pieces = list(ordered_map(run, _ranges(indptr, starts, stops), n_threads=n_threads))
    values = np.concatenate([np.empty(0, data.dtype), *(value for value, _ in pieces)])
    columns = np.concatenate([np.empty(0, index_type), *(column for _, column in pieces)])
    bounds = np.concatenate([[0], np.cumsum(count)]).astype(index_type)
    return csr_from_parts(values, columns, bounds, (n_bags, 2 * n_columns))


def _ranges(indptr: Any, starts: Integers, stops: Integers) -> list[tuple[int, int]]:
    """Cut bags into ranges of about as many stored values."""
    work = np.cumsum(indptr[stops].astype(np.int64) - indptr[starts])
    marks = np.arange(_VALUES_PER_RANGE, work[-1] if len(work) else 0, _VALUES_PER_RANGE)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(work, marks) + 1, [len(work)]])).tolist()
    return list(pairwise(cuts))
