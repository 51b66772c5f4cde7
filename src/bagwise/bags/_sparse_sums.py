"""Sums over the instances of each bag that stay sparse."""

from itertools import pairwise

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
    starts, stops = (read_only(np.asarray(rows, np.int64)) for rows in (starts, stops))
    n_bags, n_columns = len(starts), int(matrix.shape[1])
    ranges = _ranges(indptr[stops].astype(np.int64) - indptr[starts])
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
            data, indices, indptr, weight, starts, stops, n_columns, *bags, bounds, total, column
        )

    for _ in ordered_map(add, ranges, n_threads=n_threads):
        pass
    return csr_from_parts(total, column, bounds, (n_bags, n_columns))


def _ranges(n_stored: Integers) -> list[tuple[int, int]]:
    """Cut bags into ranges of about as many stored values."""
    work = np.cumsum(n_stored)
    marks = np.arange(_VALUES_PER_RANGE, work[-1] if len(work) else 0, _VALUES_PER_RANGE)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(work, marks) + 1, [len(work)]])).tolist()
    return list(pairwise(cuts))
