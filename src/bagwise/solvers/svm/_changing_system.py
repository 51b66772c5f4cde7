"""Systems whose rows change little from one to the next, by one factor for several of them.

The factor is not changed: what differs is a border of it, which is made in one go and costs more
with each row that differs. Where rows come and go one by one, thousands of them, `UpdatedFactor`
changes the factor.
"""

import numpy as np
from scipy.linalg import lapack

from bagwise._arrays import Booleans, Floats, Integers
from bagwise.solvers.svm._block_gram import BlockGram, Bordered, cholesky

_FEW = 64  # rows up to which a factor costs less than to see what has changed
_MOST_CHANGED = 4  # at most one row is added or taken for so many rows of the factor


class ChangingSystem(Bordered):
    """``K + D`` of some rows by the factor of a similar system, or by one of its own.

    Parameters
    ----------
    gram : BlockGram
        Inner products ``K`` of all rows.
    ridge : ndarray of shape (n,)
        The diagonal of ``D``.
    rows : ndarray of int
        Rows of the system, in order.
    like : ChangingSystem, optional
        A system that may have most rows in common with this one.
    """

    def __init__(
        self, gram: BlockGram, ridge: Floats, rows: Integers, like: "ChangingSystem | None" = None
    ) -> None:
        is_same = None if like is None else like.base.useful(gram, ridge, rows)
        self.base: _RowFactor
        self.is_shared = is_same is not None
        if like is None or is_same is None:
            self.base = _RowFactor(gram, ridge, rows)
            self._border_nothing(rows)
        else:
            self.base = like.base
            self._border(gram, ridge, rows, is_same)

    def _border_nothing(self, rows: Integers) -> None:
        n, none = len(rows), np.empty(0, np.int64)
        place = np.searchsorted(rows, self.base.rows)
        factor = _Lower(self.base.lower)
        super().__init__(
            factor, np.empty((n, 0)), np.empty((0, 0)), np.arange(n), kept=place, others=none
        )

    def solve(self, right: Floats) -> Floats:
        """Return the solution for one right side."""
        if self.is_shared or not len(right):
            return super().solve(right)
        out = np.empty_like(right)
        out[self.kept] = lapack.dpotrs(self.base.lower, right[self.kept], lower=1)[0]
        return out

    def _border(self, gram: BlockGram, ridge: Floats, rows: Integers, is_same: Booleans) -> None:
        base = self.base.rows[: len(is_same)]
        is_kept = np.zeros(len(gram), bool)
        is_kept[base[is_same]] = True
        others, taken = np.flatnonzero(~is_kept[rows]), np.flatnonzero(~is_same)
        added, n_added = rows[others], len(others)
        columns = np.zeros((n_added + len(taken), len(base)))
        _fill(gram, added, base, columns[:n_added])
        columns[n_added + np.arange(len(taken)), taken] = 1.0
        factor = _Lower(self.base.lower[: len(base), : len(base)])
        system = gram.some(added)
        system.flat[:: n_added + 1] += ridge[added]
        super().__init__(
            factor,
            factor.forward(columns.T),
            system,
            inside=np.flatnonzero(is_same),
            kept=np.searchsorted(rows, base[is_same]),
            others=others,
        )


class _RowFactor:
    """The lower Cholesky factor of ``K + D`` of some rows: the fixed ones, then the others."""

    def __init__(self, gram: BlockGram, ridge: Floats, rows: Integers) -> None:
        first = int(np.searchsorted(rows, len(gram.head)))
        self.gram, self.n_fixed = gram, len(rows) - first
        self.rows = np.concatenate([rows[first:], rows[:first]])
        self.ridge = ridge[self.rows]
        matrix = np.empty((len(rows), len(rows)))
        _fill(gram, rows[first:], self.rows, matrix[: self.n_fixed])
        _fill(gram, rows[:first], self.rows, matrix[self.n_fixed :])
        matrix.flat[:: len(rows) + 1] += self.ridge
        self.lower = cholesky(matrix)

    def useful(self, gram: BlockGram, ridge: Floats, rows: Integers) -> Booleans | None:
        """Tell which rows of the factor another system has too; None if they are too few.

        If most of the rows that are not fixed are other ones, the factor of the fixed rows, which
        is the first part of this one, does better without them.
        """
        if len(rows) <= _FEW or gram.fixed is not self.gram.fixed or len(gram) != len(self.gram):
            return None
        in_use = np.zeros(len(gram), bool)
        in_use[rows] = True
        if gram is not self.gram:
            in_use[: len(gram.head)] &= _same_heads(self.gram, gram)
        is_same: Booleans = in_use[self.rows] & (self.ridge == ridge[self.rows])
        if 2 * np.count_nonzero(is_same[self.n_fixed :]) < len(is_same) - self.n_fixed:
            is_same = is_same[: self.n_fixed]
        n_changes = len(rows) + len(is_same) - 2 * np.count_nonzero(is_same)
        return is_same if n_changes * _MOST_CHANGED <= len(is_same) else None


class _Lower:
    """A triangle as a `Factor`."""

    def __init__(self, lower: Floats) -> None:
        self.lower = lower

    def forward(self, right: Floats) -> Floats:
        """See `Factor`."""
        return self._solve(right, 0)

    def backward(self, right: Floats) -> Floats:
        """See `Factor`."""
        return self._solve(right, 1)

    def _solve(self, right: Floats, trans: int) -> Floats:
        if not right.size:
            return right.copy()
        return lapack.dtrtrs(self.lower, right, lower=1, trans=trans)[0]  # type: ignore[no-any-return]


def _same_heads(before: BlockGram, gram: BlockGram) -> Booleans:
    """Tell which rows that are not fixed have the inner products that they had."""
    same: Booleans = (before.cross == gram.cross).all(axis=1)
    same &= before.head.diagonal() == gram.head.diagonal()
    rows = np.flatnonzero(same)
    block = np.ix_(rows, rows)
    same[rows] = (before.head[block] == gram.head[block]).all(axis=1)
    return same


def _fill(gram: BlockGram, rows: Integers, columns: Integers, out: Floats) -> None:
    """Write the inner products of rows, which must be in order, with fixed rows and then others."""
    from bagwise.solvers.operators._gram_kernels import gather

    p = len(gram.head)
    first, last = int(np.searchsorted(rows, p)), int((columns >= p).sum())
    top, below, fixed, heads = rows[:first], rows[first:] - p, columns[:last] - p, columns[last:]
    gather(gram.fixed, below, fixed, out[first:, :last])
    if first:
        gather(gram.cross, top, fixed, out[:first, :last])
        gather(gram.head, top, heads, out[:first, last:])
    if len(heads) and len(below):
        gather(gram.cross.T, below, heads, out[first:, last:])
