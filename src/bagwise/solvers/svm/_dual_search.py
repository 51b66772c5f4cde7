"""What the searches in the duals of kernel machines have in common: the descent on some rows."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bagwise._threads import checkpoint, slice_length
from bagwise.solvers._checks import not_finite
from bagwise.solvers._result import Status

_RECORD_STEPS = 16  # steps before the first record; each later one waits twice as long


class DualState(Protocol):
    """The point of a search."""

    @property
    def dual(self) -> float:
        """Value of the dual."""

    def primal(self, intercept: float) -> float:
        """Return the value of the primal."""

    def intercept(self) -> float:
        """Return the intercept that goes with the point."""


class DualWork(Protocol):
    """Rows that steps move, with their part of the Gram matrix."""

    v: NDArray[np.float64]
    rows: NDArray[np.int64] | None

    @property
    def step_seconds(self) -> float:
        """About how long a step takes."""

    @property
    def newton_seconds(self) -> float:
        """About how long a Newton step takes."""

    @property
    def rounding(self) -> float:
        """The error that steps have added up in ``v``."""

    def steps(self, tol: float, max_steps: int) -> tuple[int, float, float, bool]:
        """Take steps; return how many, the violation, the decrease and whether rounding rules."""

    def newton(self, rounds: int) -> bool:
        """Take Newton steps on the free rows; return whether they were enough."""


class DualSearch:
    """Steps on rows with their budget and record.

    Parameters
    ----------
    solver : str
        Its name, for errors.
    point : DualState
        The point, as far as the descent sees it.
    tol : float
        The violation to reach in the end.
    max_iter : int
        Most steps.
    steps_per_row : int
        Steps for each row, a thousand at least, after which Newton steps are tried. Each failure
        of these doubles the number.
    most_patience : float
        Its limit.
    """

    def __init__(
        self,
        solver: str,
        point: DualState,
        tol: float,
        max_iter: int,
        *,
        steps_per_row: int,
        most_patience: float = np.inf,
    ) -> None:
        self.solver, self.point, self.tol, self.max_iter = solver, point, tol, max_iter
        self.steps_per_row, self.most_patience = steps_per_row, most_patience
        self.n_iter, self.status = 0, Status.CONVERGED
        self.history: list[float] = []
        self.gaps: list[float] = []
        self.buffer = np.empty(0)
        self.record()

    def record(self) -> None:
        """Note the objective of the dual, as minimised, and the gap."""
        dual = self.point.dual
        self.history.append(-dual)
        self.gaps.append(self.point.primal(self.point.intercept()) - dual)

    def is_hopeless(self, dual: float, n_iter: int) -> bool:
        """Tell whether all steps that are left would not close the gap, or a tenth of it.

        The pace is that of the steps since the dual value and the iteration given.
        """
        point = self.point
        gained = (point.dual - dual) / max(1, self.n_iter - n_iter)
        gap = point.primal(point.intercept()) - point.dual
        return gained * (self.max_iter - self.n_iter) <= 0.1 * max(0.0, gap)

    def square(self, n: int) -> NDArray[np.float64]:
        """Return room for a matrix of ``n`` rows: that of the last one where it is enough."""
        if self.buffer.size < n**2:
            self.buffer = np.empty(0)  # before the next needs room
            self.buffer = np.empty(n**2)
        return self.buffer[: n**2].reshape(n, n)

    def descend(self, work: DualWork, tol: float, budget: int | None = None) -> bool:
        """Take steps until the violation is at most ``tol``, and a Newton step where slow.

        Returns whether rounding stopped them. They also end where ``v`` should be computed anew.
        """
        most = self.max_iter if budget is None else min(self.max_iter, self.n_iter + budget)
        patience, spent = max(1000, self.steps_per_row * len(work.v)), 0
        smallest = np.finfo(np.float64).eps * abs(self.point.dual)
        while True:
            checkpoint()
            a_slice = slice_length(work.step_seconds)
            until_record = max(_RECORD_STEPS, self.n_iter)
            allowed = min(a_slice, until_record, patience - spent, most - self.n_iter)
            steps, violation, decrease, lost = work.steps(tol, allowed)
            self.n_iter += steps
            spent += steps
            if not np.isfinite(work.v).all():
                raise ValueError(not_finite(self.solver))
            lost = lost or bool(steps >= 1000 and decrease <= smallest)
            if violation <= tol or lost or self.n_iter >= most:
                return lost and violation > tol
            if work.rows is None:
                self.record()
            if spent >= patience:  # spend about as long on Newton steps as on other steps
                rounds = int(spent * work.step_seconds / work.newton_seconds)
                spent = 0
                if not work.newton(min(max(rounds, 2), 30)):
                    patience = int(min(2 * patience, self.most_patience))
                if work.rounding > self.tol:  # steps have added up more of it: start from a new v
                    return False
