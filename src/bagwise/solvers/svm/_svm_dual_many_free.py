"""Newton steps on thousands of free rows of the dual of a kernel SVM.

Steps on pairs of rows converge slowly where inner products are nearly dependent. Newton steps do
not, but guess wrongly which rows end at bounds, and pair steps soon put that right. So the two
alternate. A Newton step needs a factor of a matrix between the free rows, and these change: one
factor serves for many sets of them.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint
from bagwise.solvers.svm._block_gram import BlockGram, IndefiniteError, Systems

if TYPE_CHECKING:
    from bagwise.solvers.svm._svm_dual_set import WorkingSet
    from bagwise.solvers.svm._svm_dual_state import State

MOST_FREE = 8192  # rows: half of their matrix is kept
_MOST_ROUNDS = 12  # of rows that meet bounds
_RIDGE, _ROUGH_RIDGE = 1e-6, 1e-5  # relative to the diagonal, in double and single precision
_LEAST = 1e-12  # of the largest entry of the diagonal: shorter rows count as this


class ManyFree:
    """The free rows of a problem, with a factor of the Gram matrix of most of them.

    Parameters
    ----------
    state : State
        The problem. Where its Gram matrix is in memory the factor outlives a working set.
    """

    def __init__(self, state: "State") -> None:
        self.state = state
        self._use(state.gram, state.kernel_diagonal, state.ridge)

    def climb(self, work: "WorkingSet") -> bool:
        """Go where the free rows of a set agree on the intercept, as far as the dual rises.

        Rows that would leave the box stop at its bounds, and the rest is solved again, until none
        would. The step may go too far, for rows stop at bounds by mistake. It is then shortened to
        the maximum on the line: both ends are feasible, so that point is too.

        Returns whether the dual rose and no new factor was needed in place of another. The next
        climb is then worth it as soon.
        """
        self._use_matrix_of(work)
        start, before, length = work.beta.copy(), work.v.copy(), 0.0
        rows, had_factor = self._rows_of_gram(work, work.free), self.systems.factor is not None
        is_dear = had_factor and not self.systems.serves(rows)
        if self._jump(work):
            change = work.beta - start
            rise, bend = float(before @ change), float((before - work.v) @ change)
            length = min(1.0, rise / bend) if rise > 0.0 and bend > 0.0 else 0.0
        if length < 1.0:
            work.beta[:] = np.clip(start + length * (work.beta - start), work.lower, work.upper)
            work.v[:] = before + length * (work.v - before)
            work.mask()
        return length > 0.0 and not is_dear

    def _jump(self, work: "WorkingSet") -> bool:
        """Solve for the free rows until none would leave the box; return whether that came."""
        free, balance = work.free, float(work.beta.sum())
        for number in range(_MOST_ROUNDS):
            checkpoint()
            if number and not self.systems.serves(self._rows_of_gram(work, free)):
                break  # so many at bounds: most of them by mistake
            goal = self._goal(work, free, balance - float(work.beta.sum()))
            if goal is None:
                break
            start = work.beta.copy()
            work.beta[free] = np.clip(goal, work.lower[free], work.upper[free])
            work.follow(start)
            inside = work.beta[free] == goal
            if inside.all():
                return True
            free = free[inside]
        return False

    def _goal(self, work: "WorkingSet", free: Integers, missing: float) -> Floats | None:
        """Return the point where free rows agree, when their sum has changed by what is missing."""
        if len(free) < 2:
            return None
        v = work.v[free]
        try:
            system = self.systems.of(self.gram, self._rows_of_gram(work, free))
        except IndefiniteError:
            return None
        ahead, ones = system.solve(v - v.mean()), system.solve(np.ones(len(free)))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            step = ahead + (missing - ahead.sum()) / ones.sum() * ones
        goal: Floats = work.beta[free] + step
        return goal if np.isfinite(goal).all() else None

    def _use(self, gram: NDArray[Any], kernel_diagonal: Floats, ridge: Floats) -> None:
        """Take a Gram matrix for all that follows; a small ridge makes up for its rounding."""
        self.gram = BlockGram.of(gram)
        least = max(_LEAST * float(np.abs(kernel_diagonal).max(initial=0.0)), 1e-200)
        relative = _RIDGE if gram.dtype == np.float64 else _ROUGH_RIDGE
        self.systems = Systems(gram, ridge + relative * np.maximum(kernel_diagonal, least))

    def _use_matrix_of(self, work: "WorkingSet") -> None:
        """Take the matrix of a set where there is no other: the problem's ridge is in it."""
        if self.state.source is not None and self.gram.fixed is not work.gram:
            self._use(work.gram, work.kernel_diagonal, np.zeros(len(work.gram)))

    def _rows_of_gram(self, work: "WorkingSet", free: Integers) -> Integers:
        """Return which rows of the matrix some rows of a set are."""
        return free if self.state.source is not None or work.rows is None else work.rows[free]
