"""Newton steps on the free rows of the dual of a kernel SVM, while rows come and go.

The factor of their Gram matrix is not made anew when a row meets a bound or leaves one: it is
updated. That suits problems in which thousands of rows do so before the free ones are known, as
where inner products are nearly dependent.
"""

from typing import TYPE_CHECKING

import numpy as np

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._threads import checkpoint
from bagwise.solvers.svm._dual_search import ridged_factor
from bagwise.solvers.svm._updated_factor import UpdatedFactor

if TYPE_CHECKING:
    from bagwise.solvers.svm._svm_dual_set import WorkingSet

_MOST_JOINING = 32  # rows that leave a bound at once
_NEAR_WORST = 0.3  # of the worst violation: rows below it wait
_FEW = 500  # rows that may meet bounds in one solution of so many, whatever the budget


class ActiveSet:
    """The free rows of a working set, with a factor of their Gram matrix plus a constant.

    To steps that sum to 0 a constant in all entries makes no difference; it keeps the constant
    vector out of the null space.

    Parameters
    ----------
    work : WorkingSet
        Its point is moved.
    free : ndarray of int of shape (n_free,)
        Its free rows, two of them at least.
    """

    def __init__(self, work: "WorkingSet", free: Integers) -> None:
        self.work, self.free = work, free
        self.scale = max(float(work.kernel_diagonal[free].max()), 1e-200)
        self.is_positive = True
        found = ridged_factor(lambda: self._square(free), self.scale, lower=False)
        if found is None:
            self.is_positive = False
        else:
            factor, self.ridge = found
            self.factor = UpdatedFactor(factor.T)  # row by row

    def _square(self, rows: Integers) -> Floats:
        """Return the quadratic form of some rows, plus the constant."""
        matrix = self.work.gram[np.ix_(rows, rows)].astype(np.float64, copy=False)
        matrix.flat[:: len(rows) + 1] = self.work.diagonal[rows]
        matrix += self.scale
        return matrix

    def climb(self, tol: float, most_changes: int) -> bool:
        """Raise the dual until no row of the set violates a condition by more than ``tol``.

        Returns whether that was reached, and the free rows agree on the intercept as exactly as
        rounding permits, before so many rows had come and gone.
        """
        left, before = most_changes, np.inf
        while self.is_positive:
            checkpoint()
            few = min(_FEW, _FEW**3 // max(1, len(self.free)) ** 2)  # each costs as a square
            left -= self._solve(max(left, few))
            if left <= 0 or len(self.free) < 2:
                break
            spread = float(np.ptp(self.work.v[self.free]))
            rows = self._breaking(max(0.5 * tol, spread))
            if len(rows):
                self._join(rows)
                left, before = left - len(rows), np.inf
            elif spread <= self.work.rounding or not spread <= 0.5 * before:  # rounding is left
                return True
            else:
                before = spread
        return False

    def _solve(self, most: int) -> int:
        """Take Newton steps until one meets no bound; return how many rows met one.

        They also end once so many have.

        A step of length ``t`` takes ``v`` of the free rows by that part to a common value, so that
        they are known without a product. At the end ``v`` of all rows is brought up to date.
        """
        work, start = self.work, self.work.beta.copy()
        n_met, v = 0, work.v[self.free]
        while len(self.free) > 1 and n_met < most:
            checkpoint()
            free = self.free
            direction, level = self._direction(v)
            step, met = self._step(direction)
            work.beta[free] = np.clip(
                work.beta[free] + step * direction, work.lower[free], work.upper[free]
            )
            v -= step * (v - level)
            if not met.any():
                break
            bound = np.where(direction > 0.0, work.upper[free], work.lower[free])
            work.beta[free[met]] = bound[met]
            self.factor.leave(np.flatnonzero(met))
            self.free, v = free[~met], v[~met]
            n_met += int(np.count_nonzero(met))
        work.follow(start)
        return n_met

    def _direction(self, v: Floats) -> tuple[Floats, float]:
        """Return the step that makes all ``v`` equal and sums to 0, and what they become."""
        mean = float(v.mean())
        ahead, ones = v - mean, np.ones(len(v))
        self.factor.solve_two(ahead, ones)
        rise = float(ahead.sum() / ones.sum())
        return ahead - rise * ones, mean + rise

    def _step(self, direction: Floats) -> tuple[float, Booleans]:
        """Return how much of a direction the bounds permit, and which rows meet them."""
        work, free = self.work, self.free
        beta = work.beta[free]
        room = np.where(direction > 0.0, work.upper[free] - beta, beta - work.lower[free])
        length = np.full(len(free), np.inf)
        with np.errstate(over="ignore"):  # too far away to matter
            np.divide(room, np.abs(direction), out=length, where=direction != 0.0)
        step = min(1.0, float(length.min()))
        return step, length <= step

    def _breaking(self, least: float) -> Integers:
        """Return the rows at bounds that most violate their condition, by more than ``least``."""
        work = self.work
        level = float(work.v[self.free].mean())
        score = np.maximum(work.grow + work.v - level, work.shrink + level - work.v)
        score[self.free] = -np.inf
        worst = np.argpartition(-score, min(_MOST_JOINING, len(score) - 1))[:_MOST_JOINING]
        return worst[score[worst] > max(least, _NEAR_WORST * float(score.max()))]

    def _join(self, rows: Integers) -> None:
        border = self.work.gram[np.ix_(self.free, rows)] + np.float64(self.scale)
        corner = self._square(rows)
        corner.flat[:: len(rows) + 1] += self.ridge
        self.is_positive = self.factor.join(border, corner, self.ridge)
        self.free = np.append(self.free, rows)
