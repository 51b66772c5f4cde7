"""Newton steps on thousands of free rows of the dual of a kernel SVM.

Steps along pairs soon end what is steep. Along what is flat, as where inner products are nearly
dependent, they need millions. Newton steps are exact there and wrong about which rows are at
bounds, which pairs put right at once: the two take turns. One factor serves many sets of free rows.
"""

from typing import TYPE_CHECKING

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint
from bagwise.solvers.svm._block_gram import BlockGram, IndefiniteError, Systems

if TYPE_CHECKING:
    from bagwise.solvers.svm._svm_dual_set import WorkingSet
    from bagwise.solvers.svm._svm_dual_state import State

MOST_FREE = 8192  # rows: half of their matrix is kept
_MOST_ROUNDS = 12  # of rows that meet bounds
_RIDGE = 1e-6  # relative to the kernel's diagonal: what is flatter is not known well enough


class ManyFree:
    """The free rows of a problem, with a factor of the Gram matrix of most of them.

    Parameters
    ----------
    state : State
        The problem. Where its Gram matrix is in memory the factor outlives a working set.
    """

    def __init__(self, state: "State") -> None:
        self.state = state
        self.ridge = _RIDGE * max(float(state.diagonal.max()), 1e-200)
        self.gram = BlockGram.of(state.gram)
        self.systems = Systems(state.gram, state.ridge + self.ridge)

    def climb(self, work: "WorkingSet") -> bool:
        """Go where the free rows of a set agree on the intercept, as far as the dual rises.

        Rows that would leave the box stop at its bounds, and the rest is solved again, until none
        would. That may pass the maximum between the old point and the new one, which both are
        feasible: it ends there.

        Returns whether the dual rose, unless that took another factor than the one that was there.
        """
        self._look_at(work)
        start, before, length = work.beta.copy(), work.v.copy(), 0.0
        rows, had_factor = self._numbers(work, work.free), self.systems.factor is not None
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
            if number and not self.systems.serves(self._numbers(work, free)):
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
            system = self.systems.of(self.gram, self._numbers(work, free))
        except IndefiniteError:
            return None
        ahead, ones = system.solve(v - v.mean()), system.solve(np.ones(len(free)))
        goal: Floats = work.beta[free] + ahead + (missing - ahead.sum()) / ones.sum() * ones
        return goal if np.isfinite(goal).all() else None

    def _look_at(self, work: "WorkingSet") -> None:
        """Make ready for a set: where blocks are computed, its matrix is all there is."""
        if self.state.source is not None and self.gram.fixed is not work.gram:
            self.gram = BlockGram.of(work.gram)  # the ridge of the problem is in it
            self.systems = Systems(work.gram, np.full(len(work.gram), self.ridge))

    def _numbers(self, work: "WorkingSet", free: Integers) -> Integers:
        """Return which rows of the matrix some rows of a set are."""
        return free if self.state.source is not None or work.rows is None else work.rows[free]
