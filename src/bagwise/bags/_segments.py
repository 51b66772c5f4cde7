"""Reductions over the instances of each bag, in one pass and on all processors.

All functions take the rows as ``starts`` and ``stops``, one pair a bag, so that a fold or a shuffle
of bags is worked on in place. Bags may stand in any order and share rows, but none may be empty.
Values may be a vector (one per row) or a matrix (rows x columns) of float32 or float64; the result
has the same dtype, and sums are accumulated in float64. Results are the same to the last bit for
any number of threads.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import ordered_map
from bagwise.bags._matrix import Matrix, as_matrix, chunk_rows, read_only, row_bytes

Bounds: TypeAlias = tuple[Integers, Integers]  # starts and stops

_VALUES_PER_RANGE = 2**19  # a few milliseconds of work between two looks at Ctrl-C
_VALUES_PER_PIECE = 2**16  # longer bags are cut: columns are walked one by one, so in the cache
_OUTPUTS_PER_READ = 8  # so many outputs of a scan cost about as much as reading the instances
_SERIAL_VALUES = 2**15  # below this, handing work to threads costs more than it brings


def segment_max(
    values: ArrayLike, starts: ArrayLike, stops: ArrayLike, *, n_threads: int | None = None
) -> NDArray[Any]:
    """Return the largest value of each bag.

    Parameters
    ----------
    values : array-like of shape (n_rows,) or (n_rows, n_columns)
        One value, or one row of values, per instance.
    starts, stops : array-like of int of shape (n_bags,)
        First row of each bag and the row behind its last.
    n_threads : int or None
        See `BagSource`.

    Examples
    --------
    >>> segment_max([1.0, 5.0, 2.0, 7.0], [0, 2], [2, 4])
    array([5., 7.])
    """
    return _extreme(values, starts, stops, n_threads, sign=1)[0]


def segment_min(
    values: ArrayLike, starts: ArrayLike, stops: ArrayLike, *, n_threads: int | None = None
) -> NDArray[Any]:
    """Return the smallest value of each bag; parameters as for `segment_max`."""
    return _extreme(values, starts, stops, n_threads, sign=-1)[0]


def segment_range(
    values: ArrayLike, starts: ArrayLike, stops: ArrayLike, *, n_threads: int | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the smallest and the largest value of each bag, read together.

    Parameters as for `segment_max`.

    Examples
    --------
    >>> segment_range([1.0, 5.0, 2.0, 7.0], [0, 2], [2, 4])
    (array([1., 2.]), array([5., 7.]))
    """
    from bagwise.bags import _segment_kernels as kernels

    matrix, is_vector = _as_rows(values)
    bounds = _as_bounds(starts, stops, len(matrix))
    pieces, first_piece = _split_long_bags(*bounds, chunk_rows(row_bytes(matrix)))
    low, high = (np.empty((len(pieces[0]), matrix.shape[1]), matrix.dtype) for _ in range(2))
    _run(kernels.fill_range, [matrix], pieces, [low, high], n_threads)
    if len(pieces[0]) > len(bounds[0]):
        low = segment_min(low, first_piece[:-1], first_piece[1:], n_threads=1)
        high = segment_max(high, first_piece[:-1], first_piece[1:], n_threads=1)
    return (low[:, 0], high[:, 0]) if is_vector else (low, high)


def segment_moments(
    values: ArrayLike, starts: ArrayLike, stops: ArrayLike, *, n_threads: int | None = None
) -> tuple[Floats, Floats]:
    """Return the mean of each bag, and the sum of squared differences from it.

    Parameters as for `segment_max`; the results are in double precision.

    Examples
    --------
    >>> segment_moments([1.0, 5.0, 2.0, 7.0], [0, 2], [2, 4])
    (array([3. , 4.5]), array([ 8. , 12.5]))
    """
    from bagwise.bags import _segment_kernels as kernels

    matrix, is_vector = _as_rows(values)
    bounds = _as_bounds(starts, stops, len(matrix))
    mean, squares = (np.empty((len(bounds[0]), matrix.shape[1])) for _ in range(2))
    _run(kernels.fill_moments, [matrix], bounds, [mean, squares], n_threads)
    return (mean[:, 0], squares[:, 0]) if is_vector else (mean, squares)


def segment_argmax(
    values: ArrayLike, starts: ArrayLike, stops: ArrayLike, *, n_threads: int | None = None
) -> Integers:
    """Return the place inside each bag of its largest value; the first of equal ones.

    ``starts + segment_argmax(...)`` are rows of ``values``. Parameters as for `segment_max`.
    """
    return _extreme(values, starts, stops, n_threads, sign=1)[1]


def segment_argmin(
    values: ArrayLike, starts: ArrayLike, stops: ArrayLike, *, n_threads: int | None = None
) -> Integers:
    """Return the place inside each bag of its smallest value; the first of equal ones."""
    return _extreme(values, starts, stops, n_threads, sign=-1)[1]


def segment_sum(
    values: ArrayLike,
    starts: ArrayLike,
    stops: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    n_threads: int | None = None,
) -> NDArray[Any]:
    """Return the sum of each bag, with a weight per row if given.

    Parameters
    ----------
    values, starts, stops, n_threads
        As for `segment_max`.
    weights : array-like of shape (n_rows,), optional
        Weights of the rows.

    Examples
    --------
    >>> segment_sum([1.0, 5.0, 2.0, 7.0], [0, 2], [2, 4], weights=[1.0, 0.0, 2.0, 1.0])
    array([ 1., 11.])
    """
    from bagwise.bags import _segment_kernels as kernels

    matrix, is_vector = _as_rows(values)
    bounds = _as_bounds(starts, stops, len(matrix))
    total = np.empty((len(bounds[0]), matrix.shape[1]), matrix.dtype)
    if weights is None:
        _run(kernels.fill_sum, [matrix], bounds, [total], n_threads)
    else:
        factors = _as_row_vector(weights, len(matrix))
        _run(kernels.fill_weighted_sum, [matrix, factors], bounds, [total], n_threads)
    return total[:, 0] if is_vector else total


def segment_mean(
    values: ArrayLike,
    starts: ArrayLike,
    stops: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    n_threads: int | None = None,
) -> NDArray[Any]:
    """Return the mean of each bag, weighted if weights are given (which must not sum to 0)."""
    total = segment_sum(values, starts, stops, weights=weights, n_threads=n_threads)
    if weights is None:
        mass = np.asarray(stops, np.int64) - np.asarray(starts, np.int64)
    else:
        mass = segment_sum(np.asarray(weights, np.float64), starts, stops, n_threads=n_threads)
    return (total / (mass if total.ndim == 1 else mass[:, None])).astype(total.dtype, copy=False)


def segment_logsumexp(
    values: ArrayLike, starts: ArrayLike, stops: ArrayLike, *, n_threads: int | None = None
) -> NDArray[Any]:
    """Return log(sum(exp(values))) of each bag without overflow; as for `segment_max`."""
    from bagwise.bags import _segment_kernels as kernels

    matrix, is_vector = _as_rows(values)
    bounds = _as_bounds(starts, stops, len(matrix))
    pieces, first_piece = _split_long_bags(*bounds, _piece_rows(matrix))
    result = np.empty((len(pieces[0]), matrix.shape[1]), np.float64)
    _run(kernels.fill_logsumexp, [matrix], pieces, [result], n_threads)
    if len(pieces[0]) > len(bounds[0]):
        result = segment_logsumexp(result, first_piece[:-1], first_piece[1:], n_threads=1)
    result = result.astype(matrix.dtype, copy=False)
    return result[:, 0] if is_vector else result


def segment_softmax(
    values: ArrayLike, starts: ArrayLike, stops: ArrayLike, *, n_threads: int | None = None
) -> NDArray[Any]:
    """Return the softmax inside each bag: one row per instance, 0 for rows of no bag.

    Parameters as for `segment_max`; here bags must not share rows.
    """
    from bagwise.bags import _segment_kernels as kernels

    matrix, is_vector = _as_rows(values)
    bounds = _as_bounds(starts, stops, len(matrix))
    if _share_rows(*bounds):
        msg = "Bags must not share rows here: the result has one row per instance."
        raise ValueError(msg)
    result = np.zeros(matrix.shape, matrix.dtype)
    _run(kernels.fill_softmax, [matrix], bounds, [result], n_threads)
    return result[:, 0] if is_vector else result


def segment_scatter(
    bag_values: ArrayLike,
    starts: ArrayLike,
    stops: ArrayLike,
    n_rows: int,
    *,
    weights: ArrayLike | None = None,
    n_threads: int | None = None,
) -> NDArray[Any]:
    """Hand the value of each bag to its rows, times the weight of the row: `segment_sum` backwards.

    Parameters
    ----------
    bag_values : array-like of shape (n_bags,) or (n_bags, n_columns)
        One value, or one row of values, per bag.
    starts, stops : array-like of int of shape (n_bags,)
        First row of each bag and the row behind its last.
    n_rows : int
        Rows of the result. A row of several bags gets the sum, a row of none gets 0.
    weights : array-like of shape (n_rows,), optional
        Weights of the rows.
    n_threads : int or None
        See `BagSource`.

    Examples
    --------
    >>> segment_scatter([10.0, 20.0], [0, 2], [2, 3], 4)
    array([10., 10., 20.,  0.])
    """
    from bagwise.bags import _segment_kernels as kernels

    matrix, is_vector = _as_rows(bag_values)
    bounds = _as_bounds(starts, stops, n_rows)
    if len(matrix) != len(bounds[0]):
        msg = f"bag_values must have one entry per bag, {len(bounds[0])}. Got {len(matrix)}."
        raise ValueError(msg)
    factors = np.ones(n_rows) if weights is None else weights
    inputs = [matrix, _as_row_vector(factors, n_rows)]
    rows = np.zeros((n_rows, matrix.shape[1]), matrix.dtype)
    if _share_rows(*bounds):  # two threads must not add to one row
        n_threads = 1
    _run(kernels.fill_scatter, inputs, bounds, [rows], n_threads)
    return rows[:, 0] if is_vector else rows


def segment_rows(starts: Integers, stops: Integers) -> Integers:
    """Return the numbers of the rows of all bags, bag after bag.

    Parameters
    ----------
    starts, stops : ndarray of int of shape (n_bags,)
        First row of each bag and the row behind its last.

    Examples
    --------
    >>> segment_rows(np.array([4, 0]), np.array([6, 3]))
    array([4, 5, 0, 1, 2])
    """
    sizes = stops - starts
    ends = np.cumsum(sizes)
    rows: Integers = np.repeat(stops - ends, sizes)
    rows += np.arange(len(rows))
    return rows


def scan_max(
    instances: Matrix | ArrayLike,
    coef: ArrayLike,
    starts: ArrayLike,
    stops: ArrayLike,
    *,
    intercept: ArrayLike = 0.0,
    n_threads: int | None = None,
) -> tuple[NDArray[Any], Integers]:
    """Return the best linear score of each bag and where it is, without a matrix of scores.

    The scores are ``instances @ coef.T + intercept``; for each bag and output the largest is kept,
    with its place inside the bag (the first of equal ones). Instances are read once.

    Parameters
    ----------
    instances : matrix of shape (n_rows, n_features)
        Dense, memory-mapped or CSR.
    coef : array-like of shape (n_outputs, n_features) or (n_features,)
        Weights; taken in the dtype of the instances.
    starts, stops : array-like of int of shape (n_bags,)
        First row of each bag and the row behind its last.
    intercept : array-like of shape (n_outputs,) or float
        Added to the scores.
    n_threads : int or None
        See `BagSource`.

    Returns
    -------
    best : ndarray of shape (n_bags, n_outputs)
        Or (n_bags,) if ``coef`` is a vector.
    where : ndarray of int of the same shape
        Place inside the bag.

    Examples
    --------
    >>> scan_max(np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 2.0]]), [1.0, 1.0], [0, 2], [2, 3])
    (array([3., 4.]), array([1, 0]))
    """
    from bagwise.bags import _segment_kernels as kernels

    matrix = as_matrix(instances)
    weights = np.ascontiguousarray(np.atleast_2d(coef), dtype=matrix.dtype)
    if weights.ndim != 2 or weights.shape[1] != matrix.shape[1]:
        msg = f"coef must have {matrix.shape[1]} columns. Got shape {np.shape(coef)}."
        raise ValueError(msg)
    bias = np.ascontiguousarray(np.broadcast_to(intercept, len(weights)), dtype=matrix.dtype)
    bounds = _as_bounds(starts, stops, matrix.shape[0])
    n_reads = max(1, len(weights) // _OUTPUTS_PER_READ)
    piece_rows = max(1, chunk_rows(row_bytes(matrix)) // n_reads)
    pieces, first_piece = _split_long_bags(*bounds, piece_rows)
    outputs = [
        np.empty((len(pieces[0]), len(weights)), matrix.dtype),
        np.empty((len(pieces[0]), len(weights)), np.int64),
    ]
    if isinstance(matrix, np.ndarray):
        inputs = [matrix, weights, bias]
        row_work = matrix.shape[1] * n_reads
        _run(kernels.fill_scan_dense, inputs, pieces, outputs, n_threads, row_work)
    else:
        by_feature = np.ascontiguousarray(weights.T)
        inputs = [matrix.data, matrix.indices, matrix.indptr, by_feature, bias]
        row_work = (1 + matrix.nnz // max(1, matrix.shape[0])) * len(weights)
        _run(kernels.fill_scan_csr, inputs, pieces, outputs, n_threads, row_work)
    best, where = outputs
    if len(pieces[0]) > len(bounds[0]):
        best, where = _join_pieces(best, where, pieces[0], first_piece)
    return (best[:, 0], where[:, 0]) if np.ndim(coef) == 1 else (best, where)


def _extreme(
    values: ArrayLike, starts: ArrayLike, stops: ArrayLike, n_threads: int | None, *, sign: int
) -> tuple[NDArray[Any], Integers]:
    from bagwise.bags import _segment_kernels as kernels

    matrix, is_vector = _as_rows(values)
    bounds = _as_bounds(starts, stops, len(matrix))
    pieces, first_piece = _split_long_bags(*bounds, _piece_rows(matrix))
    best = np.empty((len(pieces[0]), matrix.shape[1]), matrix.dtype)
    where = np.empty(best.shape, np.int64)
    inputs = [matrix, matrix.dtype.type(sign)]
    _run(kernels.fill_extreme, inputs, pieces, [best, where], n_threads)
    if len(pieces[0]) > len(bounds[0]):
        best, where = _join_pieces(best, where, pieces[0], first_piece, sign=sign)
    return (best[:, 0], where[:, 0]) if is_vector else (best, where)


# ------------------------------------------------------------------------------- arguments


def _as_rows(values: ArrayLike) -> tuple[NDArray[Any], bool]:
    """Return values as a C-ordered matrix of floats, and whether they were a vector."""
    array = np.asarray(values)
    if array.ndim not in (1, 2):
        msg = f"Values must be a vector or a matrix. Got {array.ndim} dimension(s)."
        raise ValueError(msg)
    matrix = as_matrix(array[:, None] if array.ndim == 1 else array, what="values")
    assert isinstance(matrix, np.ndarray)
    return matrix, array.ndim == 1


def _as_row_vector(weights: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Return weights as a vector of floats with one entry per row."""
    matrix, is_vector = _as_rows(weights)
    if not is_vector or len(matrix) != n_rows:
        msg = f"weights must be a vector with one entry per row, {n_rows}. Got {np.shape(weights)}."
        raise ValueError(msg)
    return matrix[:, 0]


def _as_bounds(starts: ArrayLike, stops: ArrayLike, n_rows: int) -> Bounds:
    """Return the rows of the bags as int64, checked: compiled code trusts them."""
    begin, end = (read_only(np.ascontiguousarray(b, dtype=np.int64)) for b in (starts, stops))
    if begin.ndim != 1 or begin.shape != end.shape:
        msg = f"starts and stops must be vectors of one length. Got {begin.shape}, {end.shape}."
        raise ValueError(msg)
    wrong = np.flatnonzero((begin < 0) | (begin >= end) | (end > n_rows))
    if len(wrong):
        bag = wrong[0]
        msg = (
            f"Each bag must be a non-empty range among the {n_rows} rows. "
            f"Bag {bag} is rows {begin[bag]} to {end[bag]}."
        )
        raise ValueError(msg)
    return begin, end


def _share_rows(starts: Integers, stops: Integers) -> bool:
    order = np.argsort(starts, kind="stable")
    return bool((starts[order][1:] < stops[order][:-1]).any())


# -------------------------------------------------------------------------- the loop over bags


def _run(
    kernel: Callable[..., None],
    inputs: list[Any],
    bounds: Bounds,
    outputs: list[NDArray[Any]],
    n_threads: int | None,
    row_work: int | None = None,
) -> None:
    """Fill the outputs: ``kernel(*inputs, starts, stops, first, last, *outputs)`` over ranges.

    ``row_work`` is what a row costs, in values read; by default its number of columns.
    """
    starts, stops = bounds
    row_work = max(1, row_work or outputs[0].shape[1])
    if row_work * int((stops - starts).sum()) < _SERIAL_VALUES:
        kernel(*inputs, starts, stops, 0, len(starts), *outputs)
        return
    work = row_work * np.cumsum(stops - starts)
    n_ranges = int(work[-1]) // _VALUES_PER_RANGE + 1
    marks = work[-1] * np.arange(1, n_ranges) // n_ranges
    cuts = np.unique(np.concatenate([[0], np.searchsorted(work, marks) + 1, [len(work)]]))
    ranges = zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)

    def fill(bag_range: tuple[int, int]) -> None:
        kernel(*inputs, starts, stops, *bag_range, *outputs)

    for _ in ordered_map(fill, ranges, n_threads=n_threads):
        pass


def _piece_rows(matrix: NDArray[Any]) -> int:
    return max(2, _VALUES_PER_PIECE // max(1, int(matrix.shape[1])))


def _split_long_bags(starts: Integers, stops: Integers, rows: int) -> tuple[Bounds, Integers]:
    """Cut bags into pieces of at most so many rows; also tell the first piece of each bag."""
    sizes = stops - starts
    if sizes.max(initial=0) <= rows:
        return (starts, stops), np.arange(len(starts) + 1)
    n_pieces = -(-sizes // rows)
    first_piece = np.concatenate([[0], np.cumsum(n_pieces)])
    number = np.arange(first_piece[-1]) - np.repeat(first_piece[:-1], n_pieces)
    begin = np.repeat(starts, n_pieces) + number * rows
    return (begin, np.minimum(begin + rows, np.repeat(stops, n_pieces))), first_piece


def _join_pieces(
    best: NDArray[Any],
    where: Integers,
    piece_starts: Integers,
    first_piece: Integers,
    *,
    sign: int = 1,
) -> tuple[NDArray[Any], Integers]:
    """Take the best piece of each bag. Comparing is exact, so cutting a bag changes no bit."""
    begin, end = first_piece[:-1], first_piece[1:]
    winner = begin[:, None] + _extreme(best, begin, end, 1, sign=sign)[1]
    columns = np.arange(best.shape[1])
    shift = piece_starts[winner] - piece_starts[begin][:, None]
    return best[winner, columns], where[winner, columns] + shift
