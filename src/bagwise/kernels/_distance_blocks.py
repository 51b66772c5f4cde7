"""Blocks of distances between the instances of bags: rows made ready, and the grid of tasks."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint, ordered_map
from bagwise.kernels._metrics import InstanceMetric
from bagwise.kernels._rows import (
    BLOCK,
    Matrix,
    check_widths,
    common_dtype,
    converted,
    row_lengths,
    slices,
)
from bagwise.kernels._sides import Side

#: Blocks side by side that one task works through with one buffer.
_STRIP = 8

#: A run of bags on the left, and runs of bags on the right.
Strip: TypeAlias = tuple[slice, list[slice]]


@dataclass(frozen=True)
class Rows:
    """Bags on one side with all that blocks of distances need to know of their rows."""

    metric: InstanceMetric
    side: Side
    dtype: "np.dtype[Any]"
    dense: bool
    origin: NDArray[Any] | None  # taken from each row
    scale: NDArray[Any] | None  # multiplies each row of the list
    norms: NDArray[Any]  # of each row of the list

    @classmethod
    def of(
        cls,
        metric: InstanceMetric,
        side: Side,
        dtype: "np.dtype[Any]",
        *,
        dense: bool,
        origin: NDArray[Any] | None,
    ) -> "Rows":
        scale = None
        if metric.formula.scaled:
            length = np.empty(side.length)
            for rows in slices(side.length, BLOCK):
                checkpoint()
                length[rows] = row_lengths(side.matrix[side.index(rows)])
            length[length == 0.0] = 1.0
            with np.errstate(over="ignore"):
                scale = (1.0 / length).astype(dtype)
        norms = np.empty(side.length, dtype)
        self = cls(metric, side, dtype, dense, origin, scale, norms)
        for rows in slices(side.length, BLOCK):
            checkpoint()
            with np.errstate(over="ignore", invalid="ignore"):
                norms[rows] = metric.formula.norms(self.load(rows))
        return self

    @property
    def n_bags(self) -> int:
        return len(self.side.starts)

    @property
    def sizes(self) -> Integers:
        return self.side.stops - self.side.starts

    def load(self, rows: slice) -> Matrix:
        """Return a piece of the list, ready for products."""
        block = self.side.matrix[self.side.index(rows)]
        if self.dense and sp.issparse(block):
            block = block.toarray()
        block = converted(block, self.dtype)
        if self.origin is not None:
            block = block - self.origin
        if self.scale is not None and sp.issparse(block):
            factors = np.repeat(self.scale[rows], np.diff(block.indptr))
            return sp.csr_array((block.data * factors, block.indices, block.indptr), block.shape)
        return block if self.scale is None else block * self.scale[rows, None]

    def pieces(self, bags: slice) -> list[slice]:
        """Cut the rows of a run of bags into even pieces no larger than a block."""
        first, last = int(self.side.offsets[bags.start]), int(self.side.offsets[bags.stop])
        n_pieces = max(1, -(-(last - first) // BLOCK))
        cuts = [first + (last - first) * k // n_pieces for k in range(n_pieces + 1)]
        return [slice(a, b) for a, b in pairwise(cuts)]


def prepare(
    caller: str,
    metric: InstanceMetric,
    X: Matrix,
    starts: Integers,
    stops: Integers,
    Y: Matrix | None,
    y_starts: Integers | None,
    y_stops: Integers | None,
    n_threads: int | None,
) -> tuple[Rows, Rows]:
    """Check the input and return both sides; one object twice if there is no other side."""
    sides = [Side.of(caller, X, starts, stops, None)]
    if Y is not None:
        if y_starts is None or y_stops is None:
            msg = f"{caller} needs y_starts and y_stops to know the bags of Y. Got None."
            raise ValueError(msg)
        sides.append(Side.of(caller, Y, y_starts, y_stops, None))
        check_widths(sides[0].matrix, sides[1].matrix)
    for name, side in zip("XY", sides, strict=False):
        empty = np.flatnonzero(side.starts == side.stops)
        if empty.size:
            msg = f"{caller} needs an instance in each bag. Bag {empty[0]} of {name} is empty."
            raise ValueError(msg)
    dtype = common_dtype(*(side.matrix for side in sides))
    if metric.factor is not None:
        sides = [_mapped(caller, metric.factor, side, dtype, n_threads) for side in sides]
    dense = not all(sp.issparse(side.matrix) for side in sides)
    origin = _mean(sides[0], dtype) if dense and metric.formula.centred else None
    ready = [Rows.of(metric, side, dtype, dense=dense, origin=origin) for side in sides]
    for name, rows in zip("XY", ready, strict=False):
        _check_norms(caller, name, rows)
    return ready[0], ready[-1]


def _check_norms(caller: str, name: str, rows: Rows) -> None:
    limit = np.finfo(rows.dtype).max / 8  # sums of two norms and two products stay finite
    wrong = np.flatnonzero(~(rows.norms <= limit))
    if wrong.size:
        bag = int(np.searchsorted(rows.side.offsets, wrong[0], side="right")) - 1
        msg = (
            f"{caller} needs finite instances whose squared distances fit {rows.dtype}. "
            f"Bag {bag} of {name} has one of squared norm {rows.norms[wrong[0]]}."
        )
        raise ValueError(msg)


def _mapped(
    caller: str, factor: Floats, side: Side, dtype: "np.dtype[Any]", n_threads: int | None
) -> Side:
    """Return the bags with all their rows multiplied by a factor."""
    if factor.shape[0] != side.matrix.shape[1]:
        msg = (
            f"{caller} got instances of {side.matrix.shape[1]} features and a metric whose factor "
            f"has {factor.shape[0]} rows. The two must agree."
        )
        raise ValueError(msg)
    factor = factor.astype(dtype)
    out = np.empty((side.length, factor.shape[1]), dtype)

    def fill(rows: slice) -> None:
        block = converted(side.matrix[side.index(rows)], dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # the norms are checked
            out[rows] = block @ factor

    for _ in ordered_map(fill, slices(side.length, BLOCK), n_threads=n_threads):
        pass
    return Side(out, side.offsets[:-1], side.offsets[1:], None, side.offsets)


def _mean(side: Side, dtype: "np.dtype[Any]") -> NDArray[Any] | None:
    """Return the mean of all rows; None if it is so large that a row must be to blame."""
    total = np.zeros(side.matrix.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in slices(side.length, BLOCK):
            checkpoint()
            total += np.asarray(side.matrix[side.index(rows)].sum(axis=0, dtype=np.float64)).ravel()
        mean: NDArray[Any] = (total / max(1, side.length)).astype(dtype)
        return mean if np.isfinite(mean @ mean) else None


def strips(left: Rows, right: Rows) -> Iterator[Strip]:
    """Cut all pairs of bags into tasks; bags against themselves into those above the diagonal."""
    groups = list(right.side.groups(BLOCK))
    for k, bags in enumerate(groups if left is right else left.side.groups(BLOCK)):
        strip: list[slice] = []
        for other in groups[k:] if left is right else groups:
            strip.append(other)
            if len(strip) == _STRIP:
                yield bags, strip
                strip = []
        if strip:
            yield bags, strip


def span(strip: Strip) -> slice:
    return slice(strip[1][0].start, strip[1][-1].stop)


def blocks(left: Rows, right: Rows, strip: Strip) -> Iterator[tuple[slice, slice, NDArray[Any]]]:
    """Yield the blocks of raw values of a task, all columns of a piece of the rows at a time.

    The block is valid until the next one is asked for.
    """
    fill = left.metric.formula.fill
    buffer = np.empty(BLOCK * BLOCK, left.dtype)
    columns = [piece for others in strip[1] for piece in right.pieces(others)]
    for rows in left.pieces(strip[0]):
        a = left.load(rows)
        for piece in columns:
            checkpoint()
            b = right.load(piece)
            block = buffer[: a.shape[0] * b.shape[0]].reshape(a.shape[0], b.shape[0])
            fill(a, b, left.norms[rows], right.norms[piece], block)
            yield rows, piece, block
