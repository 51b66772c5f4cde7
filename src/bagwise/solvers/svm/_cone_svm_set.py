"""Steps and Newton steps on some rows and all contrasts of the dual of an SVM with a cone."""

from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from bagwise._arrays import Floats, Integers
from bagwise.solvers.svm._cone_svm_state import ConeState
from bagwise.solvers.svm._dual_search import FactorisedWork, factorised


class ConeSet(FactorisedWork):
    """Some rows and the contrasts with their own Gram matrix; other rows stay as they are."""

    step_costs, newton_costs = (6e-7, 2e-9), (1e-4, 1.5e-11)

    def __init__(self, state: ConeState, rows: Integers, gram: Floats) -> None:
        self.state, self.rows, self.gram = state, rows, gram
        self.n_rows = int(np.searchsorted(rows, state.n_rows))
        self.x, self.u = state.x[rows], state.u[rows]
        self.lower, self.upper = state.lower[rows], state.upper[rows]
        self.goal, self.radius = state.goal[rows], state.radius[rows]
        self.squared, self.offset = state.squared, state.offset
        self.is_partial = len(rows) < state.n
        self.mask()

    def mask(self) -> None:
        self.grow = np.where(self.x < self.upper, 0.0, -np.inf)
        self.shrink = np.where(self.x > self.lower, 0.0, -np.inf)

    @property
    def v(self) -> Floats:  # type: ignore[override]
        norm, share = self.cone
        return self.goal - share * self.u + norm * self.radius

    @property
    def cone(self) -> tuple[float, float]:
        """Length of the weight vector, and what it is of the sum of rows and contrasts."""
        length = float(np.sqrt(self.squared))
        norm = max(0.0, length - self.offset)
        return norm, norm / length if length > 0.0 else 1.0

    @property
    def rounding(self) -> float:
        return float(np.finfo(np.float64).eps * np.abs(self.x).sum() * self.state.largest)

    @property
    def free(self) -> Integers:
        return np.flatnonzero((self.grow == 0.0) & (self.shrink == 0.0))

    def steps(self, tol: float, max_steps: int) -> tuple[int, float, float, bool]:
        from bagwise.solvers.svm._cone_svm_kernels import cone_steps

        *outcome, self.squared, self.offset = cone_steps(
            self.gram, self.n_rows, self.x, self.lower, self.upper, self.u, self.goal, self.radius,
            self.grow, self.shrink, self.squared, self.offset, self.state.flat, tol, max_steps,
        )  # fmt: skip
        return tuple(outcome)  # type: ignore[return-value]

    def push(self) -> None:
        self.state.move(self.rows, self.x)

    def moves(self, free: Integers) -> "_FreeMoves":
        return _FreeMoves(self, free)

    def newton_steps(self, moves: "_FreeMoves") -> bool:
        """Take one damped Newton step after another until the conditions hold or a bound is met."""
        from bagwise.solvers.operators._gram_kernels import add_rows
        from bagwise.solvers.svm._cone_svm_kernels import line_step

        free = moves.free
        direction = moves.direction(self.v)
        x, lower, upper = self.x[free], self.lower[free], self.upper[free]
        room = np.where(direction > 0.0, upper - x, x - lower)
        length = np.full(len(free), np.inf)
        with np.errstate(over="ignore"):  # too far away to matter
            np.divide(room, np.abs(direction), out=length, where=direction != 0.0)
        most = min(2.0, float(length.min()))
        curvature = float(direction @ moves.gram @ direction)
        gain, turn = float(self.goal[free] @ direction), float(self.radius[free] @ direction)
        product = float(self.u[free] @ direction)
        norm, share = self.cone
        if gain - share * product + norm * turn <= 0.0:  # what is left is rounding
            return True
        step = line_step(most, gain, self.squared, product, curvature, self.offset, turn)
        moved = np.clip(x + step * direction, lower, upper)
        blocked = length <= step
        moved[blocked] = np.where(direction > 0.0, upper, lower)[blocked]
        self.x[free] = moved
        add_rows(self.gram, free, moved - x, self.u)
        self.squared = max(0.0, self.squared + step * (2.0 * product + step * curvature))
        self.offset += step * turn
        self.mask()
        return False if blocked.any() else moves.spread(self.v) <= 1e-12 * max(1.0, norm)


class _FreeMoves:
    """Moves of the free rows, whose changes sum to 0, and of the free contrasts."""

    def __init__(self, work: ConeSet, free: Integers) -> None:
        self.work, self.free = work, free
        self.is_row = free < work.n_rows
        self.gram = work.gram[np.ix_(free, free)]

    def __len__(self) -> int:
        n_rows = int(np.count_nonzero(self.is_row))
        return max(0, n_rows - 1) + len(self.free) - n_rows

    def spread(self, v: Floats) -> float:
        """Return by how much the free ones miss their conditions."""
        v, is_row = v[self.free], self.is_row
        rows = float(np.ptp(v[is_row])) if is_row.any() else 0.0
        return max(rows, float(np.abs(v[~is_row]).max(initial=0.0)))

    @cached_property
    def factor(self) -> Floats | None:
        """Factorise minus the second derivative of the dual, plus a constant among rows."""
        work, free = self.work, self.free
        norm, share = work.cone
        if norm <= 0.0 or work.squared <= 0.0:
            return None
        length = float(np.sqrt(work.squared))
        ahead = work.u[free] / length
        tilted = ahead - work.radius[free]
        scale = max(share * float(self.gram.diagonal().max()), 1e-200)

        def build() -> Floats:
            matrix = share * self.gram
            matrix += np.outer(tilted, tilted) - share * np.outer(ahead, ahead)
            matrix += scale * np.outer(self.is_row, self.is_row)
            return matrix

        return factorised(build, scale)

    def direction(self, v: Floats) -> Floats:
        """Return the Newton step: rows agree on the intercept, contrasts have slope 0."""
        right = np.empty((len(self.free), 2), order="F")
        right[:, 0] = v[self.free]
        if self.is_row.any():
            right[self.is_row, 0] -= v[self.free][self.is_row].mean()
        right[:, 1] = self.is_row
        solved, _ = lapack.dpotrs(self.factor, right, lower=1, overwrite_b=1)
        ahead, ones = solved[:, 0], solved[:, 1]
        if not self.is_row.any():
            return ahead  # type: ignore[no-any-return]
        excess = ahead[self.is_row].sum() / ones[self.is_row].sum()
        return ahead - excess * ones  # type: ignore[no-any-return]
