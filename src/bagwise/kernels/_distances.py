"""Distances between bags from the nearest instances of each other.

All of them are built on the smallest distance from an instance to the instances of a bag. One
pass over blocks of distances between instances finds these minima on both sides; the matrix of
all distances between instances is never formed.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._progress import counted
from bagwise._threads import checkpoint, ordered_map
from bagwise.kernels._distance_blocks import Rows, Strip, blocks, prepare, span, strips
from bagwise.kernels._instance import tiles
from bagwise.kernels._metrics import SHARE, InstanceMetric
from bagwise.kernels._rows import Matrix, canonical_rows

Kind: TypeAlias = Literal["min", "max", "average"]
Output = TypeVar("Output")

#: Distances that differ by no more than this many roundings of the norms count as tied.
_TIE = 32


class BagDistances(NamedTuple):
    """The three Hausdorff distances between bags, each of shape (n_bags, n_y_bags)."""

    min: Floats
    max: Floats
    average: Floats


class DirectedDistances(NamedTuple):
    """What the distances from the instances of one bag to another bag come to.

    ``meanmin[i, j]`` and ``maxmin[i, j]`` are taken over the instances of bag ``i`` of ``X``, the
    two with ``_back`` over those of bag ``j`` on the other side. All have shape (n_bags, n_y_bags).
    """

    minmin: Floats
    meanmin: Floats
    maxmin: Floats
    meanmin_back: Floats
    maxmin_back: Floats


@overload
def hausdorff(
    metric: InstanceMetric,
    X: Matrix,
    starts: Integers,
    stops: Integers,
    Y: Matrix | None = ...,
    y_starts: Integers | None = ...,
    y_stops: Integers | None = ...,
    *,
    only: None = ...,
    n_threads: int | None = ...,
) -> BagDistances: ...
@overload
def hausdorff(
    metric: InstanceMetric,
    X: Matrix,
    starts: Integers,
    stops: Integers,
    Y: Matrix | None = ...,
    y_starts: Integers | None = ...,
    y_stops: Integers | None = ...,
    *,
    only: Kind,
    n_threads: int | None = ...,
) -> Floats: ...


def hausdorff(
    metric: InstanceMetric,
    X: Matrix,
    starts: Integers,
    stops: Integers,
    Y: Matrix | None = None,
    y_starts: Integers | None = None,
    y_stops: Integers | None = None,
    *,
    only: Kind | None = None,
    n_threads: int | None = None,
) -> BagDistances | Floats:
    """Return the minimal, the maximal and the average Hausdorff distance between bags.

    With ``d(x, B)`` the distance from ``x`` to the nearest instance of ``B``: the least ``d(x, B)``
    over ``x`` in ``A``; the largest ``d(x, B)`` and ``d(y, A)`` over ``x`` in ``A`` and ``y`` in
    ``B``; the mean of all these ``|A| + |B|`` numbers.

    Parameters
    ----------
    metric : InstanceMetric
        The distance between instances.
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances, of which bags are ranges of rows.
    starts, stops : ndarray of int of shape (n_bags,)
        Bag ``i`` is ``X[starts[i]:stops[i]]``; it must not be empty. Bags may come in any order,
        overlap, and leave rows of ``X`` out.
    Y, y_starts, y_stops : optional
        The bags on the other side, likewise. Without them the bags of ``X`` are compared with
        each other: only the upper half is computed, the results are exactly symmetric, and their
        diagonals are exactly 0.
    only : {"min", "max", "average"}, optional
        The one matrix that is wanted; it saves the memory of the others.
    n_threads : int or None
        Number of threads; it does not change the result.

    Returns
    -------
    BagDistances or ndarray of shape (n_bags, n_y_bags)
        ``min``, ``max`` and ``average``, or the one asked for, in double precision.

    Notes
    -----
    Euclidean and cosine distances come from matrix products in the precision of the instances.
    Dense rows are moved to the mean of ``X`` first, CSR rows are not. Squared distances below 1e-6
    of the sum of the squared norms (1e-3 in single precision) are computed anew from the
    differences. So equal rows have distance 0, and the relative error of a distance is about 1e-9
    (1e-4 in single precision) plus what the move rounds off: eps times the distance from the
    origin. Data whose distances are mostly that small beside their norms take several times longer.
    A Mahalanobis metric maps the rows first: equal rows may end up eps times their length apart.
    Cityblock distances are sums of differences.
    """
    if only is not None and only not in BagDistances._fields:
        msg = f"only of hausdorff must be one of {BagDistances._fields} or None. Got {only!r}."
        raise ValueError(msg)
    left, right = prepare("hausdorff", metric, X, starts, stops, Y, y_starts, y_stops, n_threads)
    shape = left.n_bags, right.n_bags
    out = {kind: np.empty(shape) for kind in (BagDistances._fields if only is None else [only])}
    for bags, others, minima in _pass(metric, left, right, n_threads):
        for kind, values in out.items():
            values[bags, others] = _combined(kind, minima, left.sizes[bags], right.sizes[others])
    if left is right:
        for values in out.values():
            _reflect(values, values)
    return BagDistances(**out) if only is None else out[only]


def _combined(kind: str, minima: "_Minima", sizes: Integers, other_sizes: Integers) -> Floats:
    if kind == "min":
        return minima.least
    if kind == "max":
        largest: Floats = np.maximum(minima.largest, minima.largest_back)
        return largest
    average: Floats = minima.total + minima.total_back
    average /= np.add.outer(sizes, other_sizes)
    return average


def directed(
    metric: InstanceMetric,
    X: Matrix,
    starts: Integers,
    stops: Integers,
    Y: Matrix | None = None,
    y_starts: Integers | None = None,
    y_stops: Integers | None = None,
    *,
    n_threads: int | None = None,
) -> DirectedDistances:
    """Return the least, the mean and the largest distance from instances of a bag to other bags.

    Parameters and accuracy are those of `hausdorff`. Cheplygina, Tax and Loog (2015) use these as
    bag dissimilarities, with the metric ``"sqeuclidean"``.

    Returns
    -------
    DirectedDistances
        Without ``Y`` the two matrices of the way back are the transposes of the others.
    """
    left, right = prepare("directed", metric, X, starts, stops, Y, y_starts, y_stops, n_threads)
    shape = left.n_bags, right.n_bags
    minmin, meanmin, maxmin, meanmin_back, maxmin_back = (np.empty(shape) for _ in range(5))
    for bags, others, minima in _pass(metric, left, right, n_threads):
        minmin[bags, others] = minima.least
        meanmin[bags, others] = minima.total / left.sizes[bags, None]
        maxmin[bags, others] = minima.largest
        meanmin_back[bags, others] = minima.total_back / right.sizes[others]
        maxmin_back[bags, others] = minima.largest_back
    if left is right:
        _reflect(minmin, minmin)
        _reflect(meanmin, meanmin_back)
        _reflect(maxmin, maxmin_back)
        meanmin_back, maxmin_back = meanmin.T, maxmin.T
    return DirectedDistances(minmin, meanmin, maxmin, meanmin_back, maxmin_back)


@overload
def nearest(
    metric: InstanceMetric,
    X: Matrix,
    starts: Integers,
    stops: Integers,
    Y: Matrix,
    *,
    return_index: Literal[False] = ...,
    n_threads: int | None = ...,
) -> NDArray[Any]: ...
@overload
def nearest(
    metric: InstanceMetric,
    X: Matrix,
    starts: Integers,
    stops: Integers,
    Y: Matrix,
    *,
    return_index: Literal[True],
    n_threads: int | None = ...,
) -> tuple[NDArray[Any], Integers]: ...


def nearest(
    metric: InstanceMetric,
    X: Matrix,
    starts: Integers,
    stops: Integers,
    Y: Matrix,
    *,
    return_index: bool = False,
    n_threads: int | None = None,
) -> NDArray[Any] | tuple[NDArray[Any], Integers]:
    """Return the distance from each row of ``Y`` to the nearest instance of each bag.

    Parameters
    ----------
    metric, X, starts, stops, n_threads
        As in `hausdorff`; so is the accuracy.
    Y : ndarray or CSR matrix of shape (n_rows, n_features)
        Single instances.
    return_index : bool
        Whether to return the nearest instance's place in its bag too.

    Returns
    -------
    distance : ndarray of shape (n_bags, n_rows)
        In single precision if both inputs are, else in double precision.
    index : ndarray of int of shape (n_bags, n_rows)
        Only with ``return_index``: row ``starts[i] + index[i, r]`` of ``X`` is the nearest to row
        ``r`` of ``Y`` in bag ``i``. The lowest of those whose distances agree to rounding.
    """
    Y = canonical_rows(Y)
    rows = np.arange(Y.shape[0], dtype=np.int64)
    left, right = prepare("nearest", metric, X, starts, stops, Y, rows, rows + 1, n_threads)
    out = np.empty((left.n_bags, right.n_bags), left.dtype)
    index = np.empty(out.shape, np.int64) if return_index else None

    def work(strip: Strip) -> None:
        bags, others = strip[0], span(strip)
        out[bags, others], places = _nearest(left, right, strip, index=return_index)
        if index is not None:
            index[bags, others] = places

    for _ in _over(strips(left, right), work, metric.threads(n_threads)):
        pass
    return out if index is None else (out, index)


def nearest_among(
    metric: InstanceMetric,
    X: Matrix,
    starts: Integers,
    stops: Integers,
    *,
    n_threads: int | None = None,
) -> NDArray[Any]:
    """Return the distance from each instance of all bags to the nearest instance of each bag.

    It is what `nearest` returns for the instances themselves, at half the cost: each distance is
    computed once and used both ways.

    Parameters
    ----------
    metric, X, starts, stops, n_threads
        As in `hausdorff`; so is the accuracy.

    Returns
    -------
    ndarray of shape (n_bags, n_instances)
        Columns are the instances bag after bag; in the precision of ``X``.
    """
    side, _ = prepare("nearest_among", metric, X, starts, stops, None, None, None, n_threads)
    offsets = side.side.offsets
    out = np.empty((side.n_bags, side.side.length), side.dtype)

    def work(strip: Strip) -> None:
        bags, others = strip[0], span(strip)
        forth, back = _nearest_both_ways(side, strip)
        # On the diagonal both are there and differ by rounding: the one written last stays.
        out[others, offsets[bags.start] : offsets[bags.stop]] = back.T
        out[bags, offsets[others.start] : offsets[others.stop]] = forth

    for _ in _over(strips(side, side), work, metric.threads(n_threads)):
        pass
    return out


class _Minima:
    """What the minima between the bags of one task and the others' instances come to."""

    def __init__(self, n_bags: int, n_others: int) -> None:
        shape = n_bags, n_others
        self.least = np.full(shape, np.inf)
        self.total, self.total_back = np.zeros(shape), np.zeros(shape)
        self.largest, self.largest_back = np.full(shape, -np.inf), np.full(shape, -np.inf)

    def add(self, by_row: NDArray[Any], bounds: Integers, bags: slice) -> None:
        """Take in the distances from instances (rows) on the left to all others' bags."""
        first = bounds[:-1]
        self.least[bags] = np.minimum(self.least[bags], np.minimum.reduceat(by_row, first, axis=0))
        self.total[bags] += np.add.reduceat(by_row, first, axis=0, dtype=np.float64)
        largest = np.maximum.reduceat(by_row, first, axis=0)
        self.largest[bags] = np.maximum(self.largest[bags], largest)

    def add_back(self, by_column: NDArray[Any], bounds: Integers, others: slice) -> None:
        """Take in the distances from the others' instances (columns) to all bags on the left."""
        first = bounds[:-1]
        self.total_back[:, others] += np.add.reduceat(by_column, first, axis=1, dtype=np.float64)
        largest = np.maximum.reduceat(by_column, first, axis=1)
        self.largest_back[:, others] = np.maximum(self.largest_back[:, others], largest)


def _pass(
    metric: InstanceMetric, left: Rows, right: Rows, n_threads: int | None
) -> Iterator[tuple[slice, slice, _Minima]]:
    """Yield the minima of each task with the bags on both sides that they belong to."""

    def work(strip: Strip) -> tuple[slice, slice, _Minima]:
        return strip[0], span(strip), _minima(left, right, strip)

    return _over(strips(left, right), work, metric.threads(n_threads))


def _over(
    grid: Iterable[Strip], work: Callable[[Strip], Output], n_threads: int | None
) -> Iterator[Output]:
    """Yield what is made of each task, and report how many are done."""
    tasks = list(grid)
    return counted(ordered_map(work, tasks, n_threads=n_threads), len(tasks))


def _minima(left: Rows, right: Rows, strip: Strip) -> _Minima:
    from bagwise.kernels._distance_kernels import column_minima, row_minima

    finish = left.metric.formula.finish
    bags, others = strip[0], span(strip)
    n_bags, n_others = bags.stop - bags.start, others.stop - others.start
    out = _Minima(n_bags, n_others)
    last_row, last_column = left.side.offsets[bags.stop], right.side.offsets[others.stop]
    # Only a bag that is alone in its run is cut into several pieces of rows; so what waits here
    # for the bag's other pieces is one number for each column.
    waiting: dict[int, NDArray[Any]] = {}
    by_row = np.empty((0, n_others), left.dtype)
    for rows, columns, block in blocks(left, right, strip):
        if columns.start == right.side.offsets[others.start]:
            by_row = np.full((block.shape[0], n_others), np.inf, left.dtype)
        row_bounds, column_bounds = left.side.bounds(rows), right.side.bounds(columns)
        touched = right.side.bags(columns)
        touched = slice(touched.start - others.start, touched.stop - others.start)
        row_minima(block, column_bounds, touched.start, by_row)
        by_column = waiting.pop(columns.start, None)
        if by_column is None:
            by_column = np.full((n_bags, block.shape[1]), np.inf, left.dtype)
        column_minima(block, row_bounds, 0, by_column)
        if rows.stop == last_row:
            finish(by_column)
            out.add_back(by_column, column_bounds, touched)
        else:
            waiting[columns.start] = by_column
        if columns.stop == last_column:
            finish(by_row)
            here = left.side.bags(rows)
            out.add(by_row, row_bounds, slice(here.start - bags.start, here.stop - bags.start))
    return out


def _nearest(
    left: Rows, right: Rows, strip: Strip, *, index: bool
) -> tuple[NDArray[Any], Integers]:
    """Return the distances from the bags of a task to its columns, and if asked the places."""
    from bagwise.kernels._distance_kernels import column_minima, column_positions

    n_bags = strip[0].stop - strip[0].start
    first_column = right.side.offsets[strip[1][0].start]
    smallest = np.full((n_bags, span(strip).stop - span(strip).start), np.inf, left.dtype)
    places = np.zeros(smallest.shape if index else (0, 0), np.int64)
    eps = np.finfo(left.dtype).eps
    for rows, columns, block in blocks(left, right, strip):
        bounds = left.side.bounds(rows)
        first = int(columns.start - first_column)
        if not index:
            column_minima(block, bounds, first, smallest)
            continue
        here = left.side.bags(rows)
        begin = rows.start + bounds[:-1] - left.side.offsets[here]
        norms = right.norms[columns]
        exact = norms * left.dtype.type(SHARE[left.dtype])
        slack = (norms + left.norms[rows].max()) * left.dtype.type(_TIE * eps)
        column_positions(block, bounds, begin, exact, slack, first, smallest, places)
    left.metric.formula.finish(smallest)
    return smallest, places


def _nearest_both_ways(side: Rows, strip: Strip) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return distances from the left bags of a task to instances, and from instances to bags."""
    from bagwise.kernels._distance_kernels import column_minima, row_minima

    offsets, bags, others = side.side.offsets, strip[0], span(strip)
    first_row, first_column = offsets[bags.start], offsets[others.start]
    n_bags, n_others = bags.stop - bags.start, others.stop - others.start
    forth = np.full((n_bags, offsets[others.stop] - first_column), np.inf, side.dtype)
    back = np.full((offsets[bags.stop] - first_row, n_others), np.inf, side.dtype)
    for rows, columns, block in blocks(side, side, strip):
        column_minima(block, side.side.bounds(rows), int(columns.start - first_column), forth)
        touched = int(side.side.bags(columns).start - others.start)
        part = back[rows.start - first_row : rows.stop - first_row]
        row_minima(block, side.side.bounds(columns), touched, part)
    side.metric.formula.finish(forth)
    side.metric.formula.finish(back)
    return forth, back


def _reflect(out: Floats, back: Floats) -> None:
    """Complete a square of which the upper half is known, with the transpose of another's."""
    for rows, columns in tiles(*out.shape, symmetric=True):
        checkpoint()
        if rows != columns:
            out[columns, rows] = back[rows, columns].T
        else:
            square, source = out[rows, rows], back[rows, rows]
            lower = np.tril_indices(len(square), -1)
            square[lower] = source.T[lower]
    np.fill_diagonal(out, 0.0)
