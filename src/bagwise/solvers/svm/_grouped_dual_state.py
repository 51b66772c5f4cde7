"""The problem of the SVM dual with group caps, checked and in signed form, and its point."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._threads import short_slices
from bagwise.solvers._checks import (
    checked_array,
    checked_gram,
    checked_groups,
    checked_intercept_mask,
    checked_signs,
    not_finite,
)
from bagwise.solvers.svm._multipliers import balanced, intercept_between, middle

NAME = "solve_grouped_svm_dual"  # in errors
EPS = float(np.finfo(np.float64).eps)


class Problem:
    """The checked problem in signed form.

    ``side`` is the sign with which a row enters the intercept's constraint, and +1 where it does
    not. The unknowns are ``side * alpha``, so the constraint is that those of the ``paired`` rows
    sum to 0, and the matrix of the dual is ``gram`` with rows and columns multiplied by ``weight``.
    """

    def __init__(
        self,
        gram: NDArray[Any],
        sign: ArrayLike,
        group: ArrayLike,
        cap: ArrayLike,
        target: ArrayLike,
        intercept: ArrayLike | None,
        *,
        check_finite: bool,
    ) -> None:
        self.gram = checked_gram(NAME, gram, check_finite=check_finite)
        self.n = n = len(self.gram)
        self.sign = checked_signs(NAME, sign, n)
        intercept_mask = checked_intercept_mask(NAME, intercept, n)
        self.target = checked_array(NAME, "target", target, (n,), spread=True)
        self.group, self.cap = checked_groups(NAME, group, cap, n)
        self.order = np.argsort(self.group, kind="stable")
        sizes = np.bincount(self.group, minlength=len(self.cap))
        self.present = np.flatnonzero(sizes)
        self.first = (np.cumsum(sizes) - sizes)[self.present]
        self.paired = intercept_mask > 0.0
        self.side = np.where(self.paired, self.sign, 1.0)
        self.weight = self.sign * self.side
        self.goal = self.side * self.target
        self.diagonal = self.gram.diagonal().astype(np.float64)
        self.flat = max(1e-12 * float(np.abs(self.diagonal).max()), 1e-200)
        self.active = np.flatnonzero(self.cap[self.group] > 0.0)
        self.crowded = sizes > 1
        entry = self.sign * intercept_mask
        mixed = self.group_max(entry) > -self.group_max(-entry)
        if (mixed & (self.cap > 0.0)).any():
            g = int(np.flatnonzero(mixed & (self.cap > 0.0))[0])
            values = np.unique(entry[self.group == g]).astype(int).tolist()
            msg = (
                f"{NAME}: group must hold rows that have the intercept in the same way. "
                f"Got sign * intercept of {values} in group {g}."
            )
            raise ValueError(msg)

    def group_max(self, values: Floats) -> Floats:
        """Return the largest value in each group, minus infinity in groups without rows."""
        out = np.full(len(self.cap), -np.inf)
        out[self.present] = np.maximum.reduceat(values[self.order], self.first)
        return out

    def group_sum(self, values: Floats) -> Floats:
        return np.bincount(self.group, values, minlength=len(self.cap)).astype(
            np.float64, copy=False
        )


def subtract(gram: NDArray[Any], weight: Floats, rows: Integers, change: Floats, v: Floats) -> None:
    """Subtract ``weight * (change @ gram[rows])`` from ``v``."""
    from bagwise.solvers.operators._gram_kernels import add_rows

    v *= weight  # of 1 and -1: multiplying twice changes no bit
    for piece in short_slices(len(rows), 1e-9 * len(v), multiple=4):
        add_rows(gram, rows[piece], -change[piece], v)
    v *= weight


class State:
    """The current point: ``alpha``, the room left in each group, and the slopes ``v``."""

    def __init__(self, problem: Problem, alpha0: ArrayLike | None) -> None:
        self.problem = p = problem
        if alpha0 is None:
            self.alpha = np.zeros(p.n)
        else:
            self.alpha = self._feasible(checked_array(NAME, "alpha0", alpha0, (p.n,)))
        self.room = p.cap.copy()
        self.v = p.goal.copy()
        self.is_exact = True
        if alpha0 is not None:
            self.refresh()

    def _feasible(self, alpha: Floats) -> Floats:
        """Cut, scale the groups down to their caps, then the heavier sign to the lighter one."""
        p = self.problem
        alpha = np.maximum(alpha, 0.0)
        total = p.group_sum(alpha)
        share = np.divide(p.cap, total, out=np.ones_like(total), where=total > p.cap)
        alpha *= share[p.group]
        return balanced(alpha, np.where(p.paired, p.side, 0.0))

    @property
    def multipliers(self) -> Floats:
        """The point itself."""
        return self.alpha

    def go_to(self, multipliers: Floats) -> None:
        """Go to another point, and compute all that follows from it from scratch."""
        self.alpha[:] = multipliers
        self.room[:] = self.problem.cap - self.problem.group_sum(self.alpha)  # which are full?
        self.refresh()

    def refresh(self) -> None:
        """Compute the room and ``v`` from scratch.

        Before, rounding is taken out of the point: a row that only rounding keeps from 0 goes
        there, a group that only rounding keeps from its cap is full, and the signs balance again.
        """
        p, alpha = self.problem, self.alpha
        full = (self.room <= 0.0) & (p.cap > 0.0)
        hair = 16.0 * EPS * np.minimum(p.cap, alpha.max())
        alpha[alpha <= hair[p.group]] = 0.0
        self.room[:] = p.cap - p.group_sum(alpha)
        full |= self.room <= 16.0 * EPS * p.cap
        self._fill(full)
        self.room[full] = 0.0
        self._balance()
        self.v[:] = p.goal
        rows = np.flatnonzero(alpha)
        subtract(p.gram, p.weight, rows, (p.sign * alpha)[rows], self.v)
        if not np.isfinite(self.v).all():
            raise ValueError(not_finite(NAME))
        self.is_exact = True

    def _fill(self, full: Booleans) -> None:
        """Let the largest row of each full group make up what is missing to the cap."""
        p, alpha = self.problem, self.alpha
        largest = alpha == p.group_max(alpha)[p.group]
        rows = np.flatnonzero(largest & (full & (self.room != 0.0))[p.group] & (alpha > 0.0))
        groups, first = np.unique(p.group[rows], return_index=True)
        alpha[rows[first]] += self.room[groups]

    def _balance(self) -> None:
        p, alpha = self.problem, self.alpha
        spare = np.where(p.paired, np.minimum(alpha, self.room[p.group]), 0.0)
        k = int(spare.argmax())
        if spare[k] > 0.0:
            missing = -p.side[k] * float((p.side * alpha)[p.paired].sum())
            missing = float(np.clip(missing, -spare[k], spare[k]))
            alpha[k] += missing
            self.room[p.group[k]] -= missing

    @property
    def free(self) -> Booleans:
        """Return which rows have weight in a group with room."""
        return (self.alpha > 0.0) & (self.room > 0.0)[self.problem.group]

    def interval(self) -> tuple[float, float]:
        """Return the largest ``v`` that may go up and the smallest that may go down.

        At the optimum the intercept lies between the two.
        """
        p = self.problem
        grows, shrinks = (self.room > 0.0)[p.group], self.alpha > 0.0
        up = np.where(p.side > 0.0, grows, shrinks) & p.paired
        down = np.where(p.side > 0.0, shrinks, grows) & p.paired
        return self.v[up].max(initial=-np.inf), self.v[down].min(initial=np.inf)

    def scores(self) -> tuple[Floats, Floats]:
        """Return what each row promises if it grows, and if it shrinks: twice 0 at an optimum.

        A row of a full group is compared with the rows that it would swap with, other rows with
        the middle of the interval of the intercept.
        """
        p = self.problem
        level = p.side * (self.v - np.where(p.paired, middle(self.interval()), 0.0))
        positive = self.alpha > 0.0
        full = self.room <= 0.0
        least = -p.group_max(np.where(positive, -level, -np.inf))
        most = p.group_max(level)
        with np.errstate(invalid="ignore"):
            grow = np.where(full[p.group], level - least[p.group], level)
        shrink = np.where(full[p.group], np.maximum(most[p.group] - level, -level), -level)
        grow[(p.cap == 0.0)[p.group]] = -np.inf
        shrink[~positive] = -np.inf
        return grow, shrink

    @property
    def violation(self) -> float:
        p = self.problem
        highest, lowest = self.interval()
        rising = p.side * self.v
        positive, full = self.alpha > 0.0, self.room <= 0.0
        worst = highest - lowest
        if p.crowded.any():
            swap = p.group_max(rising) + p.group_max(np.where(positive, -rising, -np.inf))
            worst = max(worst, swap[full & p.crowded].max(initial=-np.inf))
        if not p.paired.all():
            grows = rising[~p.paired & ~full[p.group]].max(initial=-np.inf)
            worst = max(worst, grows, -rising[~p.paired & positive].min(initial=np.inf))
        return float(worst)

    @property
    def rounding(self) -> float:
        """Return how exactly ``v`` can be known."""
        p = self.problem
        return float(EPS * (self.alpha @ np.abs(p.diagonal) + np.abs(p.goal).max()))

    @property
    def dual(self) -> float:
        return 0.5 * float(self.alpha @ (self.problem.side * (self.problem.goal + self.v)))

    def intercept(self) -> float:
        free = self.free & self.problem.paired
        return intercept_between(self.v, free, self.interval())

    def primal(self, intercept: float) -> float:
        p = self.problem
        slack = p.group_max(p.side * (self.v - np.where(p.paired, intercept, 0.0)))
        square = float(self.alpha @ (p.side * (p.goal - self.v)))
        return 0.5 * square + float(p.cap @ np.maximum(slack, 0.0))
