"""Pair steps and Newton steps on some rows of the dual of a kernel SVM, with their Gram matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from bagwise._threads import checkpoint
from bagwise.solvers.svm._svm_dual_state import State

LARGEST_FREE = 2000  # free rows up to which Newton steps are taken
_RIDGES = (1e-11, 1e-9, 1e-7, 1e-5)  # relative to the kernel's diagonal


class WorkingSet:
    """Some rows of the problem with their own Gram matrix; the others stay as they are.

    The Gram matrix of some rows holds the ridge; that of all rows does not.
    """

    def __init__(self, state: State, rows: NDArray[np.int64] | None, gram: NDArray[Any]) -> None:
        self.state, self.rows, self.gram = state, rows, gram
        if rows is None:  # all rows: work on the state itself
            self.diagonal, self.beta, self.v = state.diagonal, state.beta, state.v
            self.lower, self.upper = state.lower, state.upper
            self.kernel_diagonal, self.ridge = state.kernel_diagonal, state.ridge
        else:
            self.diagonal, self.beta, self.v = state.diagonal[rows], state.beta[rows], state.v[rows]
            self.lower, self.upper = state.lower[rows], state.upper[rows]
            self.kernel_diagonal, self.ridge = state.kernel_diagonal[rows], np.zeros(len(rows))
        self.mask()

    def mask(self) -> None:
        self.grow = np.where(self.beta < self.upper, 0.0, -np.inf)
        self.shrink = np.where(self.beta > self.lower, 0.0, -np.inf)

    @property
    def violation(self) -> float:
        return float((self.v + self.grow).max() + (self.shrink - self.v).max())

    @property
    def rounding(self) -> float:
        """Return how exactly ``v`` can be known, as far as these rows matter."""
        terms = np.abs(self.beta) @ np.abs(self.kernel_diagonal)
        return float(np.finfo(np.float64).eps * terms)

    @property
    def n_free(self) -> int:
        return int(np.count_nonzero((self.grow == 0.0) & (self.shrink == 0.0)))

    @property
    def step_seconds(self) -> float:
        """Return about how long a pair step takes."""
        return 4e-7 + 1.2e-9 * len(self.v)

    @property
    def newton_seconds(self) -> float:
        """Return about how long a Newton step takes."""
        return 1e-4 + 1.5e-11 * float(self.n_free) ** 3

    def steps(self, tol: float, max_steps: int) -> tuple[int, float, float, bool]:
        from bagwise.solvers.svm._svm_dual_kernels import pair_steps

        self.state.is_exact = False
        return pair_steps(
            self.gram, self.diagonal, self.beta, self.lower, self.upper, self.v,
            self.grow, self.shrink, self.state.flat, tol, max_steps,
        )  # fmt: skip

    def push(self) -> None:
        """Hand the new point to the state."""
        if self.rows is not None:
            self.state.move(self.rows, self.beta)

    def newton(self, n_rounds: int) -> bool:
        """Solve for the free rows as if the box were not there, as far as the box permits.

        A row that reaches a bound stays there, and the rest is solved again. Every step lowers the
        objective. Returns whether the free rows ended where all their conditions hold.
        """
        for _ in range(n_rounds):
            checkpoint()
            free = np.flatnonzero((self.grow == 0.0) & (self.shrink == 0.0))
            if len(free) < 2:
                return True
            if len(free) > LARGEST_FREE:
                return False
            factor = self._factorised(free)
            if factor is None:
                return False
            self.state.is_exact = False
            if self._newton_steps(free, factor):
                return True
        return False

    def _newton_steps(self, free: NDArray[np.int64], factor: NDArray[np.float64]) -> bool:
        """Step until the free rows agree on the intercept, or until one is at a bound."""
        from bagwise.solvers.svm._svm_dual_kernels import subtract_rows

        spread = np.ptp(self.v[free])
        while spread > 0.0:
            direction = _direction(factor, self.v[free])
            beta, lower, upper = self.beta[free], self.lower[free], self.upper[free]
            room = np.where(direction > 0.0, upper - beta, beta - lower)
            length = np.full(len(free), np.inf)
            with np.errstate(over="ignore"):  # too far away to matter
                np.divide(room, np.abs(direction), out=length, where=direction != 0.0)
            step = min(1.0, float(length.min()))
            moved = np.clip(beta + step * direction, lower, upper)
            blocked = length <= step
            moved[blocked] = np.where(direction > 0.0, upper, lower)[blocked]
            self.beta[free] = moved
            subtract_rows(self.gram, free, moved - beta, self.v)
            self.v[free] -= self.ridge[free] * (moved - beta)
            self.mask()
            if blocked.any():
                return False
            spread, before = np.ptp(self.v[free]), spread
            if spread > 0.5 * before:  # what is left is rounding
                break
        return True

    def _factorised(self, free: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Factorise the Gram matrix of the free rows for steps that sum to 0.

        To such steps a constant in all entries makes no difference; it keeps the constant vector
        out of the null space. Duplicate rows make the matrix singular, so a tiny multiple of the
        identity is added: the shortest step is taken where many would do, and repeating the step
        takes the rest of the error out.
        """
        n = len(free)
        scale = max(float(self.kernel_diagonal[free].max()), 1e-200)
        for ridge in _RIDGES:
            matrix = self.gram[np.ix_(free, free)].astype(np.float64, copy=False)
            matrix.flat[:: n + 1] = self.diagonal[free] + ridge * scale
            matrix += scale
            factor, info = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
            if info == 0:
                return factor  # type: ignore[no-any-return]
            del factor, matrix
        return None


def _direction(factor: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the step that makes all ``v`` equal and sums to 0."""
    right = np.empty((len(v), 2), order="F")
    right[:, 0] = v - v.mean()
    right[:, 1] = 1.0
    solved, _ = lapack.dpotrs(factor, right, lower=1, overwrite_b=1)
    ahead, ones = solved[:, 0], solved[:, 1]
    return ahead - (ahead.sum() / ones.sum()) * ones  # type: ignore[no-any-return]
