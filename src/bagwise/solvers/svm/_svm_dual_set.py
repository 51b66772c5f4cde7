"""Pair steps and Newton steps on some rows of the dual of a kernel SVM, with their Gram matrix."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from bagwise._arrays import Floats, Integers
from bagwise.solvers.svm._dual_search import DualWork, factorised
from bagwise.solvers.svm._svm_dual_state import State


class WorkingSet(DualWork):
    """Some rows of the problem with their own Gram matrix; the others stay as they are.

    The Gram matrix of some rows holds the ridge; that of all rows does not.
    """

    step_costs, newton_costs = (4e-7, 1.2e-9), (1e-4, 1.5e-11)

    def __init__(self, state: State, rows: Integers | None, gram: NDArray[Any]) -> None:
        self.state, self.rows, self.gram = state, rows, gram
        if rows is None:  # all rows: work on the state itself
            self.diagonal, self.beta, self.v = state.diagonal, state.beta, state.v
            self.lower, self.upper = state.lower, state.upper
            self.kernel_diagonal, self.ridge = state.kernel_diagonal, state.ridge
        else:
            self.diagonal, self.beta, self.v = state.diagonal[rows], state.beta[rows], state.v[rows]
            self.lower, self.upper = state.lower[rows], state.upper[rows]
            self.kernel_diagonal, self.ridge = state.kernel_diagonal[rows], np.zeros(len(rows))
        self.is_partial = rows is not None
        self.mask()

    def mask(self) -> None:
        self.grow = np.where(self.beta < self.upper, 0.0, -np.inf)
        self.shrink = np.where(self.beta > self.lower, 0.0, -np.inf)

    @property
    def rounding(self) -> float:
        terms = np.abs(self.beta) @ np.abs(self.kernel_diagonal)
        return float(np.finfo(np.float64).eps * terms)

    @property
    def free(self) -> Integers:
        return np.flatnonzero((self.grow == 0.0) & (self.shrink == 0.0))

    def steps(self, tol: float, max_steps: int) -> tuple[int, float, float, bool]:
        from bagwise.solvers.svm._svm_dual_kernels import pair_steps

        self.state.is_exact = False
        return pair_steps(
            self.gram, self.diagonal, self.beta, self.lower, self.upper, self.v,
            self.grow, self.shrink, self.state.flat, tol, max_steps,
        )  # fmt: skip

    def push(self) -> None:
        if self.rows is not None:
            self.state.move(self.rows, self.beta)

    def moves(self, free: Integers) -> "_SumZero":
        return _SumZero(self, free)

    def newton_steps(self, moves: "_SumZero") -> bool:
        """Step until the free rows agree on the intercept, or until one is at a bound."""
        from bagwise.solvers.operators._gram_kernels import add_rows

        free = moves.free
        spread = np.ptp(self.v[free])
        while spread > 0.0:
            direction = moves.direction(self.v)
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
            add_rows(self.gram, free, beta - moved, self.v)
            self.v[free] -= self.ridge[free] * (moved - beta)
            self.mask()
            if blocked.any():
                return False
            spread, before = np.ptp(self.v[free]), spread
            if spread > 0.5 * before:  # what is left is rounding
                break
        return True


class _SumZero:
    """Moves of the free rows whose changes sum to 0."""

    def __init__(self, work: WorkingSet, free: Integers) -> None:
        self.work, self.free = work, free

    def __len__(self) -> int:
        return max(0, len(self.free) - 1)

    @cached_property
    def factor(self) -> Floats | None:
        """Factorise the Gram matrix of the free rows plus a constant.

        To steps that sum to 0 a constant in all entries makes no difference; it keeps the constant
        vector out of the null space.
        """
        work, free = self.work, self.free
        scale = max(float(work.kernel_diagonal[free].max()), 1e-200)

        def build() -> Floats:
            matrix = work.gram[np.ix_(free, free)].astype(np.float64, copy=False)
            matrix.flat[:: len(free) + 1] = work.diagonal[free]
            matrix += scale
            return matrix

        return factorised(build, scale)

    def direction(self, v: Floats) -> Floats:
        """Return the step that makes all ``v`` equal and sums to 0."""
        right = np.empty((len(self.free), 2), order="F")
        right[:, 0] = v[self.free] - v[self.free].mean()
        right[:, 1] = 1.0
        solved, _ = lapack.dpotrs(self.factor, right, lower=1, overwrite_b=1)
        ahead, ones = solved[:, 0], solved[:, 1]
        return ahead - (ahead.sum() / ones.sum()) * ones  # type: ignore[no-any-return]
