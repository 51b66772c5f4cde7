"""Rows that are read in passes: bags in memory or in a file, chunk by chunk and in threads."""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import cycle
from math import ceil
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint, ordered_map
from bagwise.bags import Bags, BagSource, Chunk, segment_rows
from bagwise.exceptions import SolverError
from bagwise.solvers.operators._feature_rows import FeatureRows, cross_products
from bagwise.solvers.operators._row_operator import RowOperator, written

_FEW_VALUES = 2**22  # in rows that are copied for a sum of them; beyond, it is a pass
_HELD = 80  # bytes that solvers hold for each instance, about
_PIECES = 32  # into which rows are cut, if they are many and their products independent
_PIECE_VALUES = 1e6  # that each of them has at least
_MAPPED = 512  # instances that are copied at a time where their features are what is kept


class PassRows(RowOperator):
    """The instances of bags, and perhaps some points behind them, as rows to be read in passes.

    A product with all rows is one pass over the chunks of a `BagSource`. Nothing is copied but the
    few rows that are taken. The result does not depend on where the bags lie, on the number of
    threads or on the memory limit.

    Parameters
    ----------
    bags : Bags
        In memory, memory-mapped or lazy; a scattered selection is read where it is.
    more : array or CSR matrix of shape (n_more, n_features), optional
        Further rows behind the instances, in memory.
    transform : callable, optional
        Makes the features of a matrix of instances, each time they are read.
    n_features : int, optional
        Number of these features.
    n_threads, max_memory
        See `BagSource`. What solvers hold for each instance counts against the limit.
    """

    def __init__(
        self,
        bags: Bags,
        *,
        more: Any = None,
        transform: Callable[[Any], Any] | None = None,
        n_features: int | None = None,
        n_threads: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.d = bags.n_features if n_features is None else n_features
        scratch = 0 if transform is None else 8 * self.d
        self._source = BagSource(
            bags, n_threads=n_threads, max_memory=max_memory, scratch=scratch,
            held=_HELD * bags.n_instances,
        )  # fmt: skip
        self._bags, self._transform, self._n_threads = bags, transform, n_threads
        self._offsets, self._directions = bags.offsets, cycle((1, -1))
        self._index: Integers | None = None  # which instances, if not all
        self._here = None  # the rows where they are, if they may be read there
        if transform is None and max_memory is None and not bags.is_lazy:
            self._here = FeatureRows(bags.segments[0]).take(segment_rows(*bags.segments[1:]))
        self._more = None if more is None else FeatureRows(more)
        self.n_instances = bags.n_instances
        n_values = self.d * bags.n_instances if transform is not None else bags.n_values
        self.width = max(1.0, n_values / bags.n_instances)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.n_instances + (0 if self._more is None else self._more.n)

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products: sums are in double precision."""
        return np.dtype(np.float64)

    def followed_by(self, more: Any) -> "PassRows":
        """Return the instances with other rows behind them."""
        out = self._like()
        out._more = FeatureRows(more)
        return out

    def alone(self) -> "PassRows":
        """Return the instances without other rows behind them."""
        out = self._like()
        out._more = None
        return out

    def part(self, rows: Integers) -> "PassRows":
        """Return some of the rows, given in ascending order; chunks without any are not read."""
        out = self._like()
        n_own = int(np.searchsorted(rows, self.n_instances))
        own = rows[:n_own]
        out._index = own if self._index is None else self._index[own]
        out._here = None if self._here is None else self._here.take(own)
        if self._more is not None:
            out._more = self._more.take(rows[n_own:] - self.n_instances)
        out.n_instances = n_own
        return out

    def _like(self) -> "PassRows":
        """Return a copy that knows no squared norms."""
        out = object.__new__(PassRows)
        out.__dict__.update(self.__dict__)
        out.__dict__.pop("_squares", None)
        return out

    def dot(self, w: Floats) -> Floats:
        """Return the inner product of each row with ``w``: one pass."""
        out = np.empty(self.n)

        def fill(part: FeatureRows, rows: slice) -> None:
            out[rows] = part.dot(w)

        for _ in self._map(fill, any_order=True):
            pass
        if self._more is not None:
            out[self.n_instances :] = self._more.dot(w)
        return self._checked(out)

    def combine(self, factor: Floats) -> Floats:
        """Return the sum of the rows, each times its factor: one pass over chunks that count."""

        def add(part: FeatureRows, rows: slice) -> Floats | None:
            return part.combine(factor[rows]) if factor[rows].any() else None

        last = None
        if self._more is not None:
            last = self._more.combine(factor[self.n_instances :])
        return self._sum(add, (self.d,), last)

    def _sum(
        self,
        function: Callable[[FeatureRows, slice], Floats | None],
        shape: tuple[int, ...],
        last: Floats | None,
    ) -> Floats:
        """Return the sum of what a function makes of chunks, in their order, and of a last term."""
        out = np.zeros(shape)
        for total in self._map(function):
            if total is not None:
                out += total
        if last is not None:
            out += last
        return self._checked(out)

    def diagonal(self) -> Floats:
        """Return the squared norm of each row: one pass, once."""
        return self._squares

    @cached_property
    def _squares(self) -> Floats:
        out = np.empty(self.n)

        def fill(part: FeatureRows, rows: slice) -> None:
            out[rows] = part.square_norms()

        for _ in self._map(fill, any_order=True):
            pass
        if self._more is not None:
            out[self.n_instances :] = self._more.square_norms()
        return self._checked(out)

    def block(
        self, rows: Integers, columns: Integers | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all, which are copied."""
        if columns is rows:
            return written(self.take(rows).gram(), out)
        columns = np.arange(self.n) if columns is None else columns
        return written(cross_products(self.features(rows), self.features(columns)), out)

    def gram(self) -> Floats:
        """Return the inner products of the rows with one another; two blocks of rows are copied."""
        out = np.empty((self.n, self.n))
        blocks = np.array_split(np.arange(self.n), ceil(self.n * self.width / _FEW_VALUES))
        blocks = [block for block in blocks if len(block)]
        for number, rows in enumerate(blocks):
            left = self.features(rows)
            for columns in blocks[number:]:
                checkpoint()
                right = left if columns is rows else self.features(columns)
                part = cross_products(left, right)
                out[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = part
                out[columns[0] : columns[-1] + 1, rows[0] : rows[-1] + 1] = part.T
        return self._checked(out)

    def products(self, rows: Integers, coef: Floats, columns: Integers | None = None) -> Floats:
        """Return the inner products of a sum of rows with some rows, or with all: one pass."""
        weights = self.weights(rows, coef)
        return self.dot(weights) if columns is None else self.take(columns).dot(weights)

    def weights(self, rows: Integers, coef: Floats) -> Floats:
        """Return a sum of rows itself; of many rows by a pass."""
        if len(rows) * self.d <= _FEW_VALUES:
            return self.take(rows).combine(coef)
        factor = np.zeros(self.n)
        np.add.at(factor, rows, coef)
        return self.combine(factor)

    def weighted_sum(self, coef: Floats) -> Floats:
        """Return the sum of all rows times their coefficients; of few that are not 0, no pass."""
        if np.count_nonzero(coef) * self.d > _FEW_VALUES:
            return self.combine(coef)
        used = np.flatnonzero(coef)
        return self.take(used).combine(coef[used])

    def features(self, rows: Integers) -> Any:
        """Return a copy of some rows as a matrix, in its precision."""
        return self.take(rows).features(np.arange(len(rows)))

    def curvature(self, weight: Floats) -> Floats:
        """Return the sum of ``weight * [x, 1] [x, 1]'`` over the rows: one pass over those in use.

        Each chunk in flight takes a matrix of that size.
        """

        def add(part: FeatureRows, rows: slice) -> Floats | None:
            return _curvature(part, weight[rows])

        last = None
        if self._more is not None:
            last = _curvature(self._more, weight[self.n_instances :])
        return self._sum(add, (self.d + 1, self.d + 1), last)

    def curvature_diagonal(self, weight: Floats) -> Floats:
        """Return the diagonal of the same: one pass over the rows in use."""

        def add(part: FeatureRows, rows: slice) -> Floats | None:
            return _curvature_diagonal(part, weight[rows])

        last = None
        if self._more is not None:
            last = _curvature_diagonal(self._more, weight[self.n_instances :])
        return self._sum(add, (self.d + 1,), last)

    def take(self, rows: Integers) -> FeatureRows:
        """Return a copy of some rows, in memory."""
        inside = rows < self.n_instances
        own = rows[inside] if self._index is None else self._index[rows[inside]]
        self._source.refuse_changed()
        found = self._taken(own)
        order = None
        if not inside.all() and self._more is not None:
            others = self._more.features(rows[~inside] - self.n_instances)
            stack = sp.vstack if sp.issparse(found) else np.concatenate
            found = stack([found, others])
            order = np.argsort(np.argsort(~inside, kind="stable"))
        taken = FeatureRows(found, order)
        self._checked(taken.parts[0])
        return taken

    def _taken(self, rows: Integers) -> Any:
        """Return the features of some instances; of few at a time the instances are copied."""
        if self._transform is None or len(rows) <= _MAPPED:
            found = self._bags.take_instances(rows)
            return found if self._transform is None else self._transform(found)
        out: Any = None
        for start in range(0, len(rows), _MAPPED):
            part = self._transform(self._bags.take_instances(rows[start : start + _MAPPED]))
            if out is None:
                out = np.empty((len(rows), part.shape[1]), part.dtype)
            out[start : start + _MAPPED] = part
        return out

    def _map(
        self, function: Callable[[FeatureRows, slice], Any], *, any_order: bool = False
    ) -> Iterator[Any]:
        """Yield what a function makes of each chunk of rows, and of which rows they are.

        Under ``any_order`` chunks may be joined, which saves calls, and every other pass begins at
        the end: of a file that is larger than memory, what was read last is still there.
        """
        step = next(self._directions) if any_order else 1
        bounds = self._offsets[self._source.grid]
        if self._index is not None:
            bounds = np.searchsorted(self._index, bounds)
        if self._here is None:
            numbers = np.flatnonzero(np.diff(bounds))
            yield from self._source.map(
                lambda chunk: function(*self._read(chunk)), chunks=numbers[::step].tolist()
            )
            return
        here = self._here
        if any_order:
            n_pieces = min(_PIECES, int(self.n * self.width / _PIECE_VALUES) + 1)
            bounds = np.append(bounds[: -1 : max(1, len(bounds) // n_pieces)], bounds[-1])
        bounds = np.unique(bounds)  # none without rows

        def read(rows: slice) -> Any:
            self._source.refuse_changed()
            return function(here.take(rows), rows)

        yield from ordered_map(
            read,
            map(slice, bounds[:-1][::step].tolist(), bounds[1:][::step].tolist()),
            n_threads=self._n_threads,
        )

    def _read(self, chunk: Chunk) -> tuple[FeatureRows, slice]:
        """Return the features of a chunk, and which rows they are."""
        instances, rows = chunk.instances, chunk.rows
        if self._index is not None:
            first, last = np.searchsorted(self._index, [rows.start, rows.stop]).tolist()
            instances = instances[self._index[first:last] - rows.start]
            rows = slice(first, last)
        return FeatureRows(
            instances if self._transform is None else self._transform(instances)
        ), rows

    def _checked(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return finite values; otherwise say which bag holds NaN or infinity."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = values.sum()  # finite only if all are, and soon found
        if np.isfinite(total) or np.isfinite(values).all():
            return values
        self._source.refuse_nonfinite()
        msg = "Products of instances and weights are too large for a number: scale the features."
        raise SolverError(msg)


def _curvature(rows: FeatureRows, weight: Floats) -> Floats | None:
    used = np.flatnonzero(weight)
    return rows.take(used).curvature(weight[used]) if len(used) else None


def _curvature_diagonal(rows: FeatureRows, weight: Floats) -> Floats | None:
    used = np.flatnonzero(weight)
    return rows.take(used).curvature_diagonal(weight[used]) if len(used) else None
