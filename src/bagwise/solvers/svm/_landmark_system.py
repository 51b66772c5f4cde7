"""Systems ``K + D`` of many rows, nearly: a factor of few columns through some of the fixed rows.

The fixed rows are written by their inner products with a few of them, the landmarks (Williams &
Seeger 2001); what that leaves of their norms is a diagonal (Snelson & Ghahramani 2006). The rows
that change are exact beside the landmarks.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from bagwise._arrays import Floats, Integers
from bagwise.solvers.svm._block_gram import BlockGram, cholesky

_LANDMARKS = 256


class LandmarkSystems:
    """Approximate systems of some rows, for Gram matrices with the same fixed rows.

    Parameters
    ----------
    fixed : ndarray of shape (n_fixed, n_fixed)
        Inner products of the fixed rows.
    ridge : ndarray of shape (n_head + n_fixed,)
        The diagonal of ``D``, positive.
    """

    def __init__(self, fixed: NDArray[Any], ridge: Floats) -> None:
        self.fixed, self.ridge = fixed, ridge
        n = len(fixed)
        self.landmarks = np.linspace(0, n - 1, min(n, _LANDMARKS)).astype(np.int64)
        beside = fixed[self.landmarks].astype(np.float64, copy=False)
        corner = np.ascontiguousarray(beside[:, self.landmarks])
        rounding = len(corner) * float(np.finfo(fixed.dtype).eps)
        corner.flat[:: len(corner) + 1] += rounding * float(corner.diagonal().max(initial=0.0))
        self.corner = cholesky(corner)
        left = np.ascontiguousarray(self.halved(beside).T)
        explained = np.einsum("ij,ij->i", left, left)
        rest = np.maximum(fixed.diagonal() - explained, 0.0)
        self.scale = 1.0 / np.sqrt(ridge[len(ridge) - n :] + rest)
        left *= self.scale[:, None]
        self.left = left
        self.rows = np.empty(0, np.int64)
        self.square = np.zeros((len(self.landmarks),) * 2)
        self.last: tuple[BlockGram, Integers, LandmarkSystem] | None = None

    def squared(self, rows: Integers) -> Floats:
        """Return the inner products of the columns of the factor over some fixed rows.

        They are kept, and follow from those before if few rows have changed.
        """
        added = np.setdiff1d(rows, self.rows, assume_unique=True)
        taken = np.setdiff1d(self.rows, rows, assume_unique=True)
        if len(added) + len(taken) > len(rows) // 2:
            added, taken, self.square = rows, rows[:0], np.zeros_like(self.square)
        for some, side in ((added, 1.0), (taken, -1.0)):
            if len(some):
                part = self.left[some]
                self.square = self.square + side * (part.T @ part)
        self.rows = rows
        return self.square

    def halved(self, beside: Floats) -> Floats:
        """Return the columns of the factor from inner products with the landmarks."""
        half: Floats = solve_triangular(self.corner, beside, lower=True, check_finite=False)
        return half

    def fit(self, gram: BlockGram, ridge: Floats) -> bool:
        """Say whether a Gram matrix has these fixed rows."""
        return gram.fixed is self.fixed and np.array_equal(ridge, self.ridge)

    def of(self, gram: BlockGram, rows: Integers) -> "LandmarkSystem":
        """Return the system of some rows, which must be in order."""
        if self.last is not None:
            last_gram, last_rows, system = self.last
            if gram is last_gram and np.array_equal(rows, last_rows):
                return system
        self.last = None
        system = LandmarkSystem(gram, rows, self)
        self.last = gram, rows, system
        return system


class LandmarkSystem:
    """``L L' + B`` with a block ``B`` for the rows that change and a diagonal for the others."""

    def __init__(self, gram: BlockGram, rows: Integers, shared: LandmarkSystems) -> None:
        p = len(gram.head)
        self.n_head = k = int(np.searchsorted(rows, p))
        top, self.below, self.shared = rows[:k], rows[k:] - p, shared
        left = shared.halved(gram.cross[np.ix_(top, shared.landmarks)].T).T
        block = gram.head[np.ix_(top, top)] - left @ left.T
        block.flat[:: k + 1] += shared.ridge[top]
        self.block = cholesky(block)
        self.head = self.half(left)
        inner = shared.squared(self.below) + self.head.T @ self.head
        inner.flat[:: len(inner) + 1] += 1.0
        self.factor = cholesky(inner)

    def half(self, right: Floats, *, transposed: bool = False) -> Floats:
        """Return the inverse of the factor of the block, or of its transpose, times columns."""
        if not len(right):
            return right
        return solve_triangular(  # type: ignore[no-any-return]
            self.block, right, lower=True, trans=int(transposed), check_finite=False
        )

    def whitened(self, right: Floats) -> tuple[Floats, Floats]:
        """Return columns after the inverse of the factor of ``B``, in two parts.

        The second part has all fixed rows, zeros where they are not in the system.
        """
        k, scale = self.n_head, self.shared.scale
        below = np.zeros((len(scale), *right.shape[1:]))
        below[self.below] = (right[k:].T * scale[self.below]).T
        return self.half(right[:k]), below

    def solve(self, right: Floats) -> Floats:
        """Return the solution for one right side."""
        head, below = self.whitened(right)
        inside = self.head.T @ head + below @ self.shared.left
        inside = lapack.dpotrs(self.factor, inside, lower=1)[0]
        head = self.half(head - self.head @ inside, transposed=True)
        below -= self.shared.left @ inside
        return np.concatenate([head, (below * self.shared.scale)[self.below]])

    def form(self, right: Floats) -> Floats:
        """Return ``right.T`` times the solutions for the columns of ``right``."""
        head, below = self.whitened(right)
        inside = self.head.T @ head + self.shared.left.T @ below
        inside = solve_triangular(self.factor, inside, lower=True, check_finite=False)
        return head.T @ head + below.T @ below - inside.T @ inside  # type: ignore[no-any-return]
