"""Gram matrices most of whose rows stay, and systems that reuse one factor of these rows."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint, ordered_map, short_slices

_TILE = 512
_JITTERS = (0.0, 1e-15, 1e-13, 1e-11, 1e-9)  # relative to the largest diagonal entry
_DENSE_SHARE = 0.8  # of the coefficients are not 0: each entry of half the matrix serves twice
_DENSE = 600  # rows up to which a new factor costs next to nothing
_MOST_CHANGED = 8  # one row in so many may differ from those of the factor


@dataclass(frozen=True, eq=False)
class BlockGram:
    """A Gram matrix ``[[head, cross], [cross.T, fixed]]``.

    Parameters
    ----------
    head : ndarray of shape (n_head, n_head)
        Inner products of the rows that change from one problem to the next.
    cross : ndarray of shape (n_head, n_fixed)
        Their inner products with the rows that stay.
    fixed : ndarray of shape (n_fixed, n_fixed)
        Inner products of the rows that stay. The same array stands for the same rows.
    """

    head: Floats
    cross: Floats
    fixed: NDArray[Any]

    @classmethod
    def of(cls, gram: NDArray[Any]) -> "BlockGram":
        """Return a matrix without rows that change."""
        return cls(np.empty((0, 0)), np.empty((0, len(gram))), gram)

    def __len__(self) -> int:
        return len(self.head) + len(self.fixed)

    def diagonal(self) -> Floats:
        """Return the squared norms of the rows."""
        return np.concatenate([self.head.diagonal(), self.fixed.diagonal()])

    def times(self, coef: Floats) -> Floats:
        """Return the matrix times a vector, summed in double precision."""
        from bagwise.solvers.operators._gram_kernels import add_rows, add_symmetric

        p = len(self.head)
        head, below = coef[:p], coef[p:]
        fixed = head @ self.cross
        rows = np.flatnonzero(below)
        if len(rows) > _DENSE_SHARE * len(below):  # half of all entries are fewer than these rows
            for piece in short_slices(len(below), 1e-9 * len(self), multiple=4):
                add_symmetric(self.fixed, piece.start, piece.stop, below, fixed)
        else:
            factor = below[rows]
            for piece in short_slices(len(rows), 1e-9 * len(self), multiple=4):
                add_rows(self.fixed, rows[piece], factor[piece], fixed)
        return np.concatenate([self.head @ head + self.cross @ below, fixed])

    def dense(self) -> Floats:
        """Return the whole matrix."""
        return self.some(np.arange(len(self)))

    def some(self, rows: Integers) -> Floats:
        """Return the inner products of some rows, which must be in order."""
        from bagwise.solvers.operators._gram_kernels import gather

        p = len(self.head)
        k = int(np.searchsorted(rows, p))
        top, below = rows[:k], rows[k:] - p
        out = np.empty((len(rows), len(rows)))
        out[:k, :k] = self.head[np.ix_(top, top)]
        out[:k, k:] = self.cross[np.ix_(top, below)]
        out[k:, :k] = out[:k, k:].T
        gather(self.fixed, below, below, out[k:, k:])
        return out


class IndefiniteError(ValueError):
    """A matrix that should have a Cholesky factor has none."""

    def __init__(self) -> None:
        super().__init__(
            "gram must be positive semi-definite, and no rounding can explain how it is not."
        )


def cholesky(matrix: Floats) -> Floats:
    """Return the lower factor of a symmetric matrix; what is above its diagonal is arbitrary.

    A diagonal that makes up for rounding is added if it must be.
    """
    n = len(matrix)
    if n == 0:
        return np.empty((0, 0))
    scale = float(matrix.diagonal().max())
    for jitter in _JITTERS:
        tried = matrix.T
        if jitter:
            tried = tried.copy(order="F")
            tried.flat[:: n + 1] += jitter * scale
        factor, info = lapack.dpotrf(tried, lower=1, clean=0, overwrite_a=0)
        if info == 0:
            return factor  # type: ignore[no-any-return]
    raise IndefiniteError


class Factor(Protocol):
    """A lower Cholesky factor."""

    def forward(self, right: Floats) -> Floats:
        """Return the inverse of the factor times one or several columns."""

    def backward(self, right: Floats) -> Floats:
        """Return the inverse of the transposed factor times one column."""


class DenseSystem:
    """``K + D`` of some rows by its Cholesky factor."""

    def __init__(self, gram: BlockGram, ridge: Floats, rows: Integers) -> None:
        matrix = gram.some(rows)
        matrix.flat[:: len(rows) + 1] += ridge[rows]
        self.factor = cholesky(matrix)

    def solve(self, right: Floats) -> Floats:
        """Return the solution for one right side."""
        if not len(right):
            return right.copy()
        return lapack.dpotrs(self.factor, right, lower=1)[0]  # type: ignore[no-any-return]

    def form(self, right: Floats) -> Floats:
        """Return ``right.T`` times the solutions for the columns of ``right``."""
        half = solve_triangular(self.factor, right, lower=True, check_finite=False)
        return half.T @ half  # type: ignore[no-any-return]


class TiledCholesky:
    """The lower Cholesky factor of a large matrix, in panels of rows without their upper half.

    Tiles of a fixed size are worked on in threads, with the same bits for any number of them.

    Parameters
    ----------
    gram : ndarray of shape (n_all, n_all)
        Symmetric.
    diagonal : ndarray of shape (n,)
        Is added to the diagonal.
    rows : ndarray of int of shape (n,)
        Rows and columns of ``gram`` to factorise.
    """

    def __init__(self, gram: NDArray[Any], diagonal: Floats, rows: Integers) -> None:
        self.starts = range(0, len(rows), _TILE)
        scale = float((gram.diagonal()[rows] + diagonal).max())
        for jitter in _JITTERS:
            if self.factorise(gram, diagonal + jitter * scale, rows):
                return
        raise IndefiniteError

    def factorise(self, gram: NDArray[Any], diagonal: Floats, rows: Integers) -> bool:
        from bagwise.solvers.operators._gram_kernels import gather

        ends = [min(start + _TILE, len(rows)) for start in self.starts]
        self.panels = [
            np.empty((end - start, end)) for start, end in zip(self.starts, ends, strict=True)
        ]

        def begun(i: int, j: int) -> Floats:
            """Fill in a tile, and take off what the columns before it explain."""
            above, panel = self.panels[j], self.panels[i]
            start, end = self.starts[j], ends[j]
            tile = panel[:, start:end]
            gather(gram, rows[self.starts[i] : ends[i]], rows[start:end], tile)
            tile -= panel[:, :start] @ above[:, :start].T
            return tile

        def finish(j: int, i: int) -> None:
            tile = begun(i, j)
            tile[:] = solve_triangular(self.corner(j), tile.T, lower=True, check_finite=False).T

        for j, (start, end) in enumerate(zip(self.starts, ends, strict=True)):
            checkpoint()
            tile = begun(j, j)
            tile[np.diag_indices(end - start)] += diagonal[start:end]
            factor, info = lapack.dpotrf(tile, lower=1, clean=1)
            if info != 0:
                return False
            tile[:] = factor
            for _ in ordered_map(partial(finish, j), range(j + 1, len(ends))):
                pass
        return True

    def corner(self, i: int) -> Floats:
        """Return a tile of the diagonal."""
        return self.panels[i][:, self.starts[i] :]

    def forward(self, right: Floats) -> Floats:
        """Return the inverse of the factor times one or several columns."""
        out = np.array(right, np.float64, order="C")
        for i, start in enumerate(self.starts):
            checkpoint()
            panel = self.panels[i]
            part = out[start : start + len(panel)]
            part -= panel[:, :start] @ out[:start]
            part[:] = solve_triangular(self.corner(i), part, lower=True, check_finite=False)
        return out

    def backward(self, right: Floats) -> Floats:
        """Return the inverse of the transposed factor times one column."""
        out = right.copy()
        for i in reversed(range(len(self.panels))):
            checkpoint()
            panel, start = self.panels[i], self.starts[i]
            part = out[start : start + len(panel)]
            part[:] = solve_triangular(
                self.corner(i), part, lower=True, trans=1, check_finite=False
            )
            out[:start] -= part @ panel[:, :start]
        return out


class Systems:
    """Systems ``K + D`` of some rows, for Gram matrices with the same fixed rows.

    Many rows share a factor of most of the fixed ones, which is bordered by the others. It is made
    anew when too many rows in use are not in it or the other way round. Only the last system is
    kept.

    Parameters
    ----------
    fixed : ndarray of shape (n_fixed, n_fixed)
        Inner products of the fixed rows.
    ridge : ndarray of shape (n_head + n_fixed,)
        The diagonal of ``D``.
    """

    def __init__(self, fixed: NDArray[Any], ridge: Floats) -> None:
        self.fixed, self.ridge = fixed, ridge
        self.base = np.empty(0, np.int64)
        self.factor: TiledCholesky | None = None
        self.crossed_gram: BlockGram | None = None
        self.last: tuple[BlockGram, Integers, DenseSystem | BorderedSystem] | None = None

    def fit(self, gram: BlockGram, ridge: Floats) -> bool:
        """Say whether a Gram matrix has these fixed rows."""
        return gram.fixed is self.fixed and np.array_equal(ridge, self.ridge)

    def of(self, gram: BlockGram, rows: Integers) -> "DenseSystem | BorderedSystem":
        """Return the system of some rows, which must be in order."""
        if self.last is not None:
            last_gram, last_rows, system = self.last
            if gram is last_gram and np.array_equal(rows, last_rows):
                return system
        self.last = None
        n_head = int(np.searchsorted(rows, len(gram.head)))
        if len(rows) - n_head > max(_DENSE, n_head):
            system = BorderedSystem(gram, rows, self)
        else:
            system = DenseSystem(gram, self.ridge, rows)
        self.last = gram, rows, system
        return system

    def serves(self, rows: Integers) -> bool:
        """Tell whether a system of some fixed rows needs no new factor of many."""
        if len(rows) <= _DENSE:
            return True
        return self._known_changes(rows) is not None

    def _known_changes(self, rows: Integers) -> tuple[Integers, Integers] | None:
        """Return which rows to add to the factor and to take from it; None if it does not serve."""
        if self.factor is None:
            return None
        added = np.setdiff1d(rows, self.base, assume_unique=True)
        taken = np.setdiff1d(self.base, rows, assume_unique=True)
        new = sum(row not in self.place for row in (*added.tolist(), *taken.tolist()))
        most = len(self.base) // _MOST_CHANGED
        serves = len(added) + len(taken) <= most and len(self.place) + new <= 2 * most
        return (added, taken) if serves else None

    def changes(self, rows: Integers) -> tuple[TiledCholesky, Integers, Integers]:
        """Return the factor and which rows to add to it and to take from it."""
        known = self._known_changes(rows)
        if self.factor is not None and known is not None:
            return self.factor, *known
        self.factor = self.crossed_gram = None  # frees the memory for the next one
        self.columns = self.crosses = np.empty((len(rows), 0))
        diagonal = self.ridge[len(self.ridge) - len(self.fixed) + rows]
        self.factor, self.base = TiledCholesky(self.fixed, diagonal, rows), rows
        self.place: dict[int, int] = {}
        return self.factor, np.empty(0, np.int64), np.empty(0, np.int64)

    def crossed(self, gram: BlockGram) -> Floats:
        """Return the inverse of the factor times the columns of all rows that change."""
        assert self.factor is not None
        if gram is not self.crossed_gram:
            right = np.ascontiguousarray(gram.cross[:, self.base].T)
            self.crossed_gram, self.crosses = gram, self.factor.forward(right)
        return self.crosses

    def borders(self, added: Integers, taken: Integers) -> Floats:
        """Return the inverse of the factor times the columns that add rows and take rows."""
        from bagwise.solvers.operators._gram_kernels import gather

        assert self.factor is not None
        add = np.array([row for row in added.tolist() if row not in self.place], np.int64)
        take = np.array([row for row in taken.tolist() if row not in self.place], np.int64)
        if len(add) + len(take):
            right = np.zeros((len(self.base), len(add) + len(take)))
            gather(self.fixed, self.base, add, right[:, : len(add)])
            right[np.searchsorted(self.base, take), np.arange(len(add), right.shape[1])] = 1.0
            first = len(self.place)
            self.place.update(
                {row: first + k for k, row in enumerate([*add.tolist(), *take.tolist()])}
            )
            pieces = [
                self.factor.forward(right[:, first : first + _TILE])
                for first in range(0, right.shape[1], _TILE)
            ]
            self.columns = np.hstack([self.columns, *pieces])
        chosen = [self.place[row] for row in (*added.tolist(), *taken.tolist())]
        return self.columns[:, chosen]


class Bordered:
    """A system of some rows by a factor of other ones, most of which are among them.

    With ``x`` on the rows of the factor, ``t`` on those added and ``u`` forcing those taken to 0,
    ``[[M, W], [W.T, E]] [x, (t, u)]`` is solved by eliminating ``x``.

    Parameters
    ----------
    factor : Factor
        Of ``M``.
    border : ndarray of shape (n_factor, n_added + n_taken)
        The inverse of the factor times ``W``.
    added : ndarray of shape (n_added, n_added)
        The system of the rows added, which is the upper left of ``E``; all else is 0.
    inside, kept, others : ndarray of int
        Where the rows of the system that the factor has are in the factor and in the system, and
        where those added are in the system.
    """

    def __init__(
        self,
        factor: Factor,
        border: Floats,
        added: Floats,
        inside: Integers,
        kept: Integers,
        others: Integers,
    ) -> None:
        self.factor, self.border = factor, border
        self.inside, self.kept, self.others = inside, kept, others
        system = -(border.T @ border)
        system[: len(added), : len(added)] += added
        if len(system):
            self.lu, self.pivots, _ = lapack.dgetrf(system)

    def halves(self, right: Floats) -> tuple[Floats, Floats, Floats]:
        """Return a right side after the elimination: on the factor, on the border, solved."""
        begun = np.zeros((len(self.border), *right.shape[1:]))
        begun[self.inside] = right[self.kept]
        half = self.factor.forward(begun)
        rest = np.zeros((self.border.shape[1], *right.shape[1:]))
        rest[: len(self.others)] = right[self.others]
        rest -= self.border.T @ half
        solved = lapack.dgetrs(self.lu, self.pivots, rest)[0] if len(rest) else rest
        return half, rest, solved

    def solve(self, right: Floats) -> Floats:
        """Return the solution for one right side."""
        half, _, solved = self.halves(right)
        out = np.empty_like(right)
        out[self.others] = solved[: len(self.others)]
        out[self.kept] = self.factor.backward(half - self.border @ solved)[self.inside]
        return out

    def form(self, right: Floats) -> Floats:
        """Return ``right.T`` times the solutions for the columns of ``right``."""
        half, rest, solved = self.halves(right)
        out = half.T @ half + rest.T @ solved
        return 0.5 * (out + out.T)


class BorderedSystem(Bordered):
    """``K + D`` of some rows by a factor of most of its fixed rows."""

    def __init__(self, gram: BlockGram, rows: Integers, shared: Systems) -> None:
        p = len(gram.head)
        n_head = int(np.searchsorted(rows, p))
        top, below = rows[:n_head], rows[n_head:] - p
        factor, added, taken = shared.changes(below)
        border = np.hstack([shared.crossed(gram)[:, top], shared.borders(added, taken)])
        extra = np.concatenate([top, added + p])
        system = gram.some(extra)
        system.flat[:: len(extra) + 1] += shared.ridge[extra]
        is_kept = np.isin(below, shared.base, assume_unique=True)
        super().__init__(
            factor,
            border,
            system,
            inside=np.flatnonzero(np.isin(shared.base, below, assume_unique=True)),
            kept=n_head + np.flatnonzero(is_kept),
            others=np.concatenate([np.arange(n_head), n_head + np.flatnonzero(~is_kept)]),
        )
