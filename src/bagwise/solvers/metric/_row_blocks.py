"""Rows of bags, in memory or by passes, in pieces that answer Ctrl-C."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint
from bagwise.solvers._checks import checked_array, not_finite

_BAGS = 256  # of a piece

#: Walks over blocks of whole bags: which bags they are, and their rows.
Pass = Callable[[], Iterable[tuple[slice, NDArray[Any]]]]


class RowBlock(NamedTuple):
    """Some bags, which rows are theirs, these rows, and where those of each bag begin."""

    bags: slice
    own: slice
    rows: NDArray[Any]
    starts: Integers


class RowBlocks:
    """The rows of bags, as often as they are walked over.

    Parameters
    ----------
    solver : str
        For messages.
    rows : ndarray of shape (n_rows, n_features), or callable
        The rows; or a function that returns an iterable of blocks of whole bags, each as the slice
        of its bags and their rows, in order.
    offsets : ndarray of int of shape (n_bags + 1,)
        Rows at which bags begin, and the number of rows.
    n_features : int or None
        Needed if ``rows`` is a function.
    """

    def __init__(
        self, solver: str, rows: NDArray[Any] | Pass, offsets: Integers, n_features: int | None
    ) -> None:
        self.offsets = offsets
        if callable(rows):
            if n_features is None:
                msg = f"{solver} needs n_features if rows is a function."
                raise ValueError(msg)
            self.n_features = n_features
            self._walk: Pass = rows
        else:
            matrix = _checked_rows(solver, rows, int(offsets[-1]))
            self.n_features = matrix.shape[1]
            self._walk = lambda: [(slice(0, len(offsets) - 1), matrix)]

    def __iter__(self) -> Iterator[RowBlock]:
        offsets = self.offsets
        for bags, rows in self._walk():
            first = offsets[bags.start]
            for begin in range(bags.start, bags.stop, _BAGS):
                checkpoint()
                end = min(begin + _BAGS, bags.stop)
                own = slice(offsets[begin], offsets[end])
                yield RowBlock(
                    slice(begin, end), own, rows[own.start - first : own.stop - first],
                    offsets[begin : end + 1] - own.start,
                )  # fmt: skip


def checked_weight(solver: str, weight: ArrayLike | None, n_bags: int) -> Floats:
    """Return a positive weight for each bag, 1 by default."""
    given = 1.0 if weight is None else weight
    checked = checked_array(solver, "sample_weight", given, (n_bags,), spread=True)
    if (checked <= 0).any():
        msg = f"{solver}: sample_weight must be positive. Got {checked.min()}."
        raise ValueError(msg)
    return checked


def _checked_rows(solver: str, rows: Any, n_rows: int) -> NDArray[Any]:
    matrix = np.ascontiguousarray(rows)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if matrix.ndim != 2 or len(matrix) != n_rows:
        msg = f"{solver} needs {n_rows} rows, as many as the bags hold. Got shape {matrix.shape}."
        raise ValueError(msg)
    if not np.isfinite(matrix).all():
        raise ValueError(not_finite(solver, "rows"))
    return matrix
