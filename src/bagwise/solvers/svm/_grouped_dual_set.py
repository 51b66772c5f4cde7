"""Steps on some rows of the SVM dual with group caps: along few rows, or along all free ones."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from bagwise._arrays import Booleans, Floats, Integers
from bagwise.solvers._checks import not_finite
from bagwise.solvers.svm._dual_search import FactorisedWork, factorised
from bagwise.solvers.svm._grouped_dual_state import EPS, NAME, State, subtract

_MANY = 1000  # rows beyond which several groups move in each pass, if most have no intercept


class WorkingSet(FactorisedWork):
    """Some rows of the problem with their own Gram matrix; the others stay as they are."""

    step_costs, newton_costs = (4e-7, 2.5e-9), (2e-4, 2e-11)

    def __init__(self, state: State, rows: Integers | None, gram: NDArray[Any]) -> None:
        self.state, self.rows, self.gram = state, rows, gram
        p = state.problem
        if rows is None:  # all rows: work on the state itself
            self.alpha, self.v, self.room = state.alpha, state.v, state.room
            self.group, self.members = p.group, p.order
            self.weight, self.side, self.paired = p.weight, p.side, p.paired
            self.diagonal = p.diagonal
        else:
            self.alpha, self.v = state.alpha[rows], state.v[rows]
            self.groups, self.group = np.unique(p.group[rows], return_inverse=True)
            self.room = state.room[self.groups]
            self.members = np.argsort(self.group, kind="stable")
            self.weight, self.side, self.paired = p.weight[rows], p.side[rows], p.paired[rows]
            self.diagonal = p.diagonal[rows]
        sizes = np.bincount(self.group, minlength=len(self.room))
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.alone = np.flatnonzero(~self.paired)
        self.is_partial = len(self.v) < len(p.active)
        pairs = np.bincount(self.group[self.paired], minlength=len(self.room))
        is_large = len(self.v) > _MANY and 2 * len(self.alone) > len(self.v)
        self.moves_many = is_large and bool(pairs.max(initial=0) <= 1)
        self.mask()

    def mask(self) -> None:
        grows, shrinks = (self.room > 0.0)[self.group], self.alpha > 0.0
        up = np.where(self.side > 0.0, grows, shrinks) & self.paired
        down = np.where(self.side > 0.0, shrinks, grows) & self.paired
        self.up, self.down = np.where(up, 0.0, -np.inf), np.where(down, 0.0, -np.inf)

    @property
    def rounding(self) -> float:
        return float(EPS * (self.alpha @ np.abs(self.diagonal)))

    @property
    def free(self) -> Integers:
        """Return the rows with weight that can move: not alone with weight in a full group."""
        positive = self.alpha > 0.0
        several = np.bincount(self.group[positive], minlength=len(self.room)) > 1
        return np.flatnonzero(positive & (several | (self.room > 0.0))[self.group])

    def steps(self, tol: float, max_steps: int) -> tuple[int, float, float, bool]:
        from bagwise.solvers.svm._grouped_dual_kernels import group_steps, many_group_steps

        self.state.is_exact = False
        try:
            if self.moves_many:
                return many_group_steps(
                    self.gram, self.weight, self.diagonal, self.paired, self.side, self.group,
                    self.members, self.starts, self.alpha, self.room, self.v, self.up, self.down,
                    self.state.problem.flat, tol, max_steps,
                )  # fmt: skip
            return group_steps(
                self.gram, self.weight, self.diagonal, self.paired, self.side, self.group,
                self.members, self.starts, self.alone, self.alpha, self.room, self.v, self.up,
                self.down, self.state.problem.flat, tol, max_steps,
            )  # fmt: skip
        except ZeroDivisionError:  # curvatures are positive, if they are not NaN
            raise ValueError(not_finite(NAME)) from None

    def push(self) -> None:
        if self.rows is None:
            return
        state, p = self.state, self.state.problem
        change = self.alpha - state.alpha[self.rows]
        state.alpha[self.rows] = self.alpha
        state.room[self.groups] = self.room
        changed = np.flatnonzero(change)
        if 2 * len(changed) > np.count_nonzero(state.alpha):
            state.refresh()
        else:
            rows = self.rows[changed]
            subtract(p.gram, p.weight, rows, p.sign[rows] * change[changed], state.v)

    def moves(self, free: Integers) -> "Moves":
        return Moves(self, free)

    def newton_steps(self, moves: "Moves") -> bool:
        """Step until no move promises anything, or until a bound is met."""
        from bagwise.solvers.svm._grouped_dual_kernels import bent_step

        rows, before = moves.free, np.inf
        group, side, weight = self.group[rows], self.side[rows], self.weight[rows]
        error = moves.error(self.v)
        while 0.0 < error <= 0.5 * before:  # else what is left is rounding
            direction = moves.direction(self.v)
            alpha, room = self.alpha[rows], self.room.copy()
            single = moves.single
            upper = np.where(single, alpha + room[group], np.inf)
            room[group[single]] = np.inf
            room[self.room <= 0.0] = np.inf  # the sums of full groups stay as they are
            is_straight = bent_step(
                moves.matrix, direction, moves.matrix @ direction, self.v[rows], side,
                moves.anchor, group, alpha, upper, room,
            )  # fmt: skip
            change = side * (alpha - self.alpha[rows])
            v = self.v.copy()
            subtract(self.gram, self.weight, rows, weight * change, v)
            if change @ (self.v + v)[rows] <= 0.0:  # twice what the dual gained: only rounding
                return True
            self.v[:] = v
            self.alpha[rows] = alpha
            room[group[single]] = (upper - alpha)[single]
            np.copyto(self.room, room, where=self.room > 0.0)
            self.mask()
            if not is_straight:
                return False
            before, error = error, moves.error(self.v)
        return True


class Moves:
    """Independent moves of the free rows that keep the sums of full groups, and the balance.

    The rows of a full group keep their sum, and so do, over all groups with room, the rows that
    have the intercept: in each such class every row moves against an anchor, the row with most
    space around it. Other rows move by themselves and have the anchor -1.
    """

    def __init__(self, work: WorkingSet, free: Integers) -> None:
        self.work, self.free = work, free
        group, n = work.group[free], len(free)
        room = work.room[group]
        kind = np.where(room <= 0.0, group, -1)  # -1: the class of the rows that must balance
        space = np.where(room <= 0.0, work.alpha[free], np.minimum(work.alpha[free], room))
        order = np.lexsort((-space, kind))
        begins = np.diff(kind[order], prepend=-2) != 0
        self.anchor = np.empty(n, np.int64)
        self.anchor[order] = order[begins][np.cumsum(begins) - 1]
        alone = (room > 0.0) & ~work.paired[free]
        if alone.any():
            self._exclude(alone, space)
        self.single = (room > 0.0) & (np.bincount(group, minlength=1)[group] == 1)
        self.chosen = np.flatnonzero(self.anchor != np.arange(n))
        self.tied = self.anchor[self.chosen] >= 0

    def __len__(self) -> int:
        return len(self.chosen)

    def _exclude(self, alone: Booleans, space: Floats) -> None:
        """Take rows that move by themselves out of the class of those that must balance."""
        others = np.flatnonzero((self.anchor == self.anchor[alone][0]) & ~alone)
        self.anchor[alone] = -1
        if len(others):
            self.anchor[others] = others[space[others].argmax()]

    @cached_property
    def matrix(self) -> Floats:
        """Return the matrix of the dual over the free rows."""
        block = self.work.gram[np.ix_(self.free, self.free)].astype(np.float64)
        weight = self.work.weight[self.free]
        block *= weight[:, None] * weight
        return block

    @cached_property
    def factor(self) -> Floats | None:
        """Factorise the matrix of the moves."""
        tied, anchor = self.tied.astype(np.float64), self.anchor[self.chosen]
        half = self.matrix[self.chosen] - tied[:, None] * self.matrix[anchor]
        reduced = half[:, self.chosen] - tied * half[:, anchor]
        return factorised(reduced.copy, float(self.matrix.diagonal().max()))

    def slopes(self, v: Floats) -> Floats:
        """Return the slope of the dual along each move."""
        v = v[self.free]
        return v[self.chosen] - np.where(self.tied, v[self.anchor[self.chosen]], 0.0)

    def error(self, v: Floats) -> float:
        return float(np.abs(self.slopes(v)).max())

    def direction(self, v: Floats) -> Floats:
        """Return the change of the free rows, in signed form, that makes all slopes 0."""
        solved, _ = lapack.dpotrs(self.factor, self.slopes(v), lower=1)
        out = np.zeros(len(self.free))
        out[self.chosen] = solved
        np.subtract.at(out, self.anchor[self.chosen][self.tied], solved[self.tied])
        return out
