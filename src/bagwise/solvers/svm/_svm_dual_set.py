"""Pair steps and Newton steps on some rows of the dual of a kernel SVM, with their Gram matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise.solvers.svm import _dual_search as dual_search
from bagwise.solvers.svm._dual_search import DualWork
from bagwise.solvers.svm._svm_dual_active_set import ActiveSet
from bagwise.solvers.svm._svm_dual_many_free import MOST_FREE, ManyFree
from bagwise.solvers.svm._svm_dual_state import State

_LARGE = 3000  # rows above which several pairs are moved in each pass
_FEWEST_CHANGES = 64  # of the free rows that Newton steps may make


def precision(n_rows: int) -> type[np.floating[Any]]:
    """Return the precision in which a set of so many rows copies its part of the Gram matrix.

    Of many rows it is single, for steps wait for memory. What is lost is in proportion to what the
    steps of the set change, and the state adds these changes up in full precision.
    """
    return np.float32 if n_rows > _LARGE else np.float64


class WorkingSet(DualWork):
    """Some rows of the problem with their own Gram matrix; the others stay as they are.

    The Gram matrix of some rows holds the ridge; that of all rows does not.
    """

    step_costs, newton_costs = (4e-7, 1.2e-9), (1e-4, 1.5e-11)
    most_rounds = 1000

    def __init__(
        self, state: State, rows: Integers | None, gram: NDArray[Any], many: ManyFree
    ) -> None:
        self.state, self.rows, self.gram, self.many = state, rows, gram, many
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
        from bagwise.solvers.svm._svm_dual_kernels import many_pair_steps, pair_steps

        self.state.is_exact = False
        take = many_pair_steps if len(self.v) > _LARGE else pair_steps
        return take(
            self.gram, self.diagonal, self.beta, self.lower, self.upper, self.v,
            self.grow, self.shrink, self.state.flat, tol, max_steps,
        )  # fmt: skip

    def follow(self, start: Floats) -> None:
        """Bring ``v`` up to date after rows have moved from where they were."""
        from bagwise.solvers.operators._gram_kernels import add_rows

        change = start - self.beta
        rows = np.flatnonzero(change)
        add_rows(self.gram, rows, change[rows], self.v)
        self.v[rows] += self.ridge[rows] * change[rows]
        self.mask()

    def push(self) -> None:
        if self.rows is not None:
            self.state.move(self.rows, self.beta)

    def newton(self, n_rounds: int, tol: float) -> bool:
        """See `DualWork`: rows that violate their condition by more than ``tol`` are free again."""
        free = self.free
        is_blurred = self.is_partial and self.gram.dtype == np.float32
        if len(free) > dual_search.LARGEST_FREE or is_blurred:
            return False
        if len(free) < 2:
            return True
        self.state.is_exact = False
        changes = max(_FEWEST_CHANGES, int(n_rounds * self.newton_seconds / self._change_seconds))
        return ActiveSet(self, free).climb(tol, changes)

    def leap(self, n_rounds: int, tol: float) -> bool:
        """See `DualWork`: where thousands of rows are free, rows at bounds stay there."""
        n_free = len(self.free)
        if n_free <= dual_search.LARGEST_FREE:
            return self.newton(n_rounds, tol)
        if n_free > MOST_FREE or not self._has_all_free:
            return False
        self.state.is_exact = False
        return self.many.climb(self)

    @property
    def _has_all_free(self) -> bool:
        """Whether no other row is free."""
        others = self.state.free
        others[slice(None) if self.rows is None else self.rows] = False
        return not others.any()

    @property
    def _change_seconds(self) -> float:
        """About how long it takes to let a free row come or go."""
        return 1e-5 + 1.5e-9 * float(len(self.free)) ** 2
