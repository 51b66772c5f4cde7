"""The search in the dual of a kernel machine: steps on working sets, then Newton steps.

Steps along few rows find which rows are free. Once a rough answer is known they run on a small copy
of the Gram matrix that holds the rows in question, and Newton steps on the free rows make the
answer exact.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._progress import report
from bagwise._threads import checkpoint, slice_length
from bagwise.solvers._checks import not_finite
from bagwise.solvers._result import Status

_WHOLE = 1024  # up to so many rows, all of them are worked on at once
_SMALLEST_SET, LARGEST_SET = 512, 4096  # rows of a working set
LARGEST_FREE = 2000  # free rows up to which Newton steps make an answer exact
_NEWTON_BELOW = 1e-3  # violation at which the free rows are probably known
_EXACT = 1e-4  # of tol: the violation that Newton steps are to reach
_POLISH_ATTEMPTS = 5
_LOSSES = 3  # times that rounding may stop the steps
_NEARLY = 4.0  # times tol: violations up to this that rounding hides count as within it
_RECORD_STEPS = 32  # steps before the first record; each later one waits twice as long
_RIDGES = (1e-11, 1e-9, 1e-7, 1e-5)  # relative to the kernel's diagonal


class DualState(Protocol):
    """The point of a search, with the slopes ``v`` of all rows."""

    is_exact: bool

    @property
    def dual(self) -> float:
        """Value of the dual."""

    @property
    def violation(self) -> float:
        """The largest violation of an optimality condition."""

    @property
    def rounding(self) -> float:
        """How exactly ``v`` can be known."""

    @property
    def free(self) -> Booleans:
        """Which rows are between their bounds."""

    @property
    def multipliers(self) -> Floats:
        """The point itself."""

    def go_to(self, multipliers: Floats) -> None:
        """Go to another point, and compute all that follows from it from scratch."""

    def primal(self, intercept: float) -> float:
        """Return the value of the primal."""

    def intercept(self) -> float:
        """Return the intercept that goes with the point."""

    def refresh(self) -> None:
        """Take rounding out of the point and compute ``v`` from scratch."""


class Moves(Protocol):
    """Directions in which Newton steps take the free rows."""

    def __len__(self) -> int: ...

    @property
    def factor(self) -> Floats | None:
        """The factorised matrix of the moves, if it has one."""


class DualWork(ABC):
    """Rows that steps move, with their part of the Gram matrix."""

    state: Any  # of the kind that the rows are from
    rows: Integers | None  # None: all rows, in the state's own arrays
    v: Floats
    is_partial: bool  # whether there are rows besides that could move
    step_costs: tuple[float, float]  # seconds of a step, and in it for each row
    newton_costs: tuple[float, float]  # seconds of a Newton step, and for the cube of the free rows
    most_rounds = 30  # of Newton steps, before other steps are taken

    @property
    @abstractmethod
    def free(self) -> Integers:
        """Return the rows that Newton steps move."""

    @property
    def step_seconds(self) -> float:
        """Return about how long a step takes."""
        return self.step_costs[0] + self.step_costs[1] * len(self.v)

    @property
    def newton_seconds(self) -> float:
        """Return about how long a Newton step takes."""
        return self.newton_costs[0] + self.newton_costs[1] * float(len(self.free)) ** 3

    @property
    @abstractmethod
    def rounding(self) -> float:
        """Return how exactly ``v`` can be known, as far as these rows matter."""

    @abstractmethod
    def steps(self, tol: float, max_steps: int) -> tuple[int, float, float, bool]:
        """Take steps; return how many, the violation, the decrease and whether rounding rules."""

    @abstractmethod
    def push(self) -> None:
        """Hand the new point to the state."""

    @abstractmethod
    def newton(self, n_rounds: int, tol: float) -> bool:
        """Solve for the free rows as if there were no bounds, as far as the bounds permit.

        What reaches a bound stays there, and the rest is solved again; some kinds of work let rows
        at bounds come in once that is done. Every step raises the dual.
        Returns whether the free rows ended where all their conditions hold.

        Parameters
        ----------
        n_rounds : int
            Times that a matrix of the free rows may be factorised, or as much work of another kind.
        tol : float
            How much rows at bounds may violate their conditions before they are free again, where
            they can become so.
        """

    def leap(self, n_rounds: int, tol: float) -> bool:
        """Take Newton steps in place of many small ones; return whether to try again as soon.

        Parameters
        ----------
        n_rounds, tol
            As for `newton`, which this is where a kind of work has no other steps.
        """
        return self.newton(n_rounds, tol)


class FactorisedWork(DualWork):
    """A working set that factorises a matrix of its free rows whenever these have changed."""

    @abstractmethod
    def moves(self, free: Integers) -> Moves:
        """Return the moves of the free rows."""

    @abstractmethod
    def newton_steps(self, moves: Any) -> bool:
        """Take Newton steps until they promise nothing, or until a bound is met: then not."""

    def newton(self, n_rounds: int, tol: float) -> bool:
        """See `DualWork`: rows at bounds stay there."""
        for _ in range(n_rounds):
            checkpoint()
            free = self.free
            if len(free) > LARGEST_FREE:
                return False
            moves = self.moves(free)
            if not len(moves):
                return True
            if moves.factor is None:
                return False
            self.state.is_exact = False
            if self.newton_steps(moves):
                return True
        return False


def factorised(build: Callable[[], Floats], scale: float) -> Floats | None:
    """Return the Cholesky factor of a matrix, for ``dpotrs``, or None if it is not positive.

    See `ridged_factor`.
    """
    found = ridged_factor(build, scale)
    return None if found is None else found[0]


def ridged_factor(
    build: Callable[[], Floats], scale: float, *, lower: bool = True
) -> tuple[Floats, float] | None:
    """Return a Cholesky factor and what was added to the diagonal; None if it is not positive.

    Duplicate rows make the matrix singular, so a tiny multiple of ``scale`` times the identity is
    added: the shortest step is taken where many would do, and repeating the step takes the rest of
    the error out.

    Parameters
    ----------
    build : callable
        Returns the matrix in C order, which is overwritten: it is built anew for each attempt.
    scale : float
        The largest entry of the kernel's diagonal.
    lower : bool
        Whether the factor is the lower one, or the upper, both in Fortran order.
    """
    for ridge in _RIDGES:
        matrix = build()
        added = ridge * max(scale, 1e-200)
        matrix.flat[:: len(matrix) + 1] += added
        factor, info = lapack.dpotrf(matrix.T, lower=lower, clean=0, overwrite_a=1)
        if info == 0:
            return factor, added
        del factor, matrix  # before the next needs room
    return None


def breaking_rows(
    grow: Floats, shrink: Floats, free: Booleans, dead: Booleans, size: int
) -> Booleans:
    """Choose the free rows and those closest to breaking, or already breaking, a condition.

    Parameters
    ----------
    grow, shrink : ndarray of shape (n,)
        What each row promises if it grows and if it shrinks.
    free : ndarray of bool
        Rows to take in any case if they are not too many.
    dead : ndarray of bool
        Rows that can never move.
    size : int
        How many to choose.
    """
    score = np.maximum(grow, shrink)
    if 3 * np.count_nonzero(free) <= 2 * size:
        score[free] = np.inf
    for side in (grow, shrink):  # a step needs one of each
        score[np.argpartition(-side, size // 8)[: size // 8 + 1]] = np.inf
    score[dead] = -np.inf
    chosen = np.zeros(len(score), np.bool_)
    chosen[np.argpartition(-score, size)[:size]] = True
    return chosen & (score > -np.inf)


class DualSearch(ABC):
    """The order of events: steps on all rows, then on working sets, then the polish.

    Parameters
    ----------
    solver : str
        Its name, for errors.
    point : DualState
        The point.
    tol : float
        The violation to reach in the end.
    max_iter : int
        Most steps.
    steps_per_row : int
        Steps for each row, a thousand at least, after which Newton steps are tried. Each failure
        of these doubles the number.
    most_patience : float
        Its limit.
    polish_rounds : int
        Most rounds of Newton steps that are to make an answer exact; with 0 of them, an answer
        within ``tol`` is left as it is.
    gap : float
        The relative duality gap that will do, whatever the violation.
    """

    in_memory = True  # all rows of the Gram matrix, so that steps may use any of them
    n_active: int  # rows that could move

    def __init__(
        self,
        solver: str,
        point: DualState,
        tol: float,
        max_iter: int,
        *,
        steps_per_row: int,
        most_patience: float = np.inf,
        polish_rounds: int,
        gap: float = 0.0,
    ) -> None:
        self.solver, self.point, self.tol, self.max_iter = solver, point, tol, max_iter
        self.steps_per_row, self.most_patience = steps_per_row, most_patience
        self.polish_rounds, self.goal, self.gap = polish_rounds, tol, gap
        self.attempts = 0 if polish_rounds else _POLISH_ATTEMPTS
        self.n_iter, self.status = 0, Status.CONVERGED
        self.history: list[float] = []
        self.gaps: list[float] = []
        self.buffer = np.empty(0)
        self.record()

    @property
    @abstractmethod
    def n_breaking(self) -> int:
        """Return how many rows violate a condition nearly as much as the worst one."""

    @abstractmethod
    def free_rows(self) -> Booleans:
        """Tell which rows a Newton step would move."""

    @abstractmethod
    def all_rows(self) -> DualWork:
        """Return a working set of all rows that could move."""

    @abstractmethod
    def some_rows(self, violation: float, free: Booleans, size: int) -> DualWork:
        """Return a working set of about so many rows."""

    def settle(self) -> None:
        """Make ``v`` exact at the end."""
        self.point.refresh()

    def rest(self, violation: float) -> None:  # noqa: B027  most searches let no row rest
        """Let rows rest, where that saves work."""

    def wake(self) -> bool:
        """Wake all rows; return whether some rested."""
        return False

    def run(self) -> None:
        """Search until the conditions hold, as exactly as few more steps permit."""
        point, tol = self.point, self.tol
        if self.in_memory and self.n_active > _WHOLE and self.n_breaking > _SMALLEST_SET:
            self.descend(self.all_rows(), 0.5 * tol, budget=self.n_active // 6)
        losses, stuck, violation = 0, False, point.violation
        polished = violation == -np.inf or not self.polish_rounds  # or nothing need
        good = None
        while not self.is_close():
            if violation <= tol and not polished and good is None:
                good = point.multipliers.copy()
            if violation <= tol and polished:
                if self.wake():
                    violation = point.violation
                    continue
                if point.is_exact:
                    break
                self.settle()
                violation = point.violation
                losses += violation > tol
                polished = not self.sharpens(violation)
                continue
            if losses >= _LOSSES and good is not None:
                self.fall_back_on(good)
                violation, good = point.violation, None
                if violation <= tol:
                    break
            if losses >= _LOSSES or (self.n_iter >= self.max_iter and violation > tol):
                if losses < _LOSSES:
                    self.status = Status.MAX_ITER
                elif violation > min(_NEARLY * tol, point.rounding):  # else it is as good as tol
                    self.status = Status.STALLED
                break
            work = self.all_rows() if stuck else self.working_set(violation)
            # Other rows may come in while the free rows are not known: do not be exact too early.
            aim = 0.05 * violation if work.is_partial else _NEWTON_BELOW
            aim = max(0.5 * self.goal, min(aim, 0.05 * violation))
            # Within tol the answer is good enough: what makes it exact must not cost much more.
            budget = None if violation > tol else max(1000, self.n_iter // 4)
            dual, n_iter = point.dual, self.n_iter
            lost = self.descend(work, aim, budget)
            # Where very many rows tie, the set may hold no two that can move together.
            stuck = self.n_iter == n_iter and work.is_partial and self.in_memory
            polish = self.attempts < _POLISH_ATTEMPTS and len(work.free) <= LARGEST_FREE
            polish = polish and self.n_iter < self.max_iter  # Newton steps are no way round it
            polished = not polish
            if polish and (lost or aim <= max(_NEWTON_BELOW, tol)):
                polished = work.newton(self.polish_rounds, 0.5 * self.goal)
            work.push()
            del work  # and its matrix, before the next needs room
            self.record()
            blurred = point.rounding > tol
            if lost or blurred:
                point.refresh()
            violation = point.violation
            if lost or (blurred and self.is_hopeless(dual, n_iter)):  # steps can do no more
                polished = True
                losses += violation > tol
                continue
            self.rest(violation)
            if polish:
                polished = not self.sharpens(violation, polished=polished)
        if not point.is_exact:
            self.settle()
        self.record()

    def fall_back_on(self, multipliers: Floats) -> None:
        """Go back to a point that was within ``tol``, unless the present one is better.

        Where rounding is near to ``tol``, steps that should sharpen an answer may have spoiled it.
        """
        point, last, violation = self.point, self.point.multipliers.copy(), self.point.violation
        point.go_to(multipliers)
        if point.violation > violation:
            point.go_to(last)

    def working_set(self, violation: float) -> DualWork:
        """Choose all rows if they are few, else half as many again as are free."""
        if self.n_active <= _WHOLE:
            return self.all_rows()
        free = self.free_rows()
        n_free = int(np.count_nonzero(free))
        size = min(max(_SMALLEST_SET, n_free + n_free // 2), self.largest_set(n_free))
        if size >= self.n_active:
            return self.all_rows()
        return self.some_rows(violation, free, size)

    def largest_set(self, n_free: int) -> int:
        """Return how many rows a working set may have if so many rows are free."""
        return LARGEST_SET

    def sharpens(self, violation: float, *, polished: bool = True) -> bool:
        """Tell whether an answer within ``tol`` should be made more exact, and set the goal."""
        exact = max(_EXACT * self.tol, self.point.rounding)
        if violation > self.tol:
            return not polished
        if self.attempts >= _POLISH_ATTEMPTS or violation <= exact:
            return False
        if np.count_nonzero(self.free_rows()) > LARGEST_FREE:
            return False
        self.attempts += 1
        self.goal = 0.1 * max(violation, exact)
        return True

    def solution(self, intercept: float, solve_time: float) -> dict[str, Any]:
        """Return what the result says besides ``x`` and the decision values."""
        point = self.point
        return {
            "intercept": intercept,
            "objective": point.primal(intercept),
            "lower_bound": point.dual,
            "residual": max(0.0, point.violation),
            "status": self.status,
            "n_iter": self.n_iter,
            "history": np.array(self.history),
            "gap_history": np.array(self.gaps),
            "solve_time": solve_time,
        }

    def record(self) -> None:
        """Note the objective of the dual, as minimised, and the gap."""
        dual = self.point.dual
        self.history.append(-dual)
        self.gaps.append(self.point.primal(self.point.intercept()) - dual)
        objective = dual + self.gaps[-1]
        relative = self.gaps[-1] / objective if objective > 0.0 else 0.0
        report("step", self.n_iter, objective=objective, gap=relative)

    def is_close(self) -> bool:
        """Tell whether the gap that was noted last will do."""
        objective = self.gaps[-1] - self.history[-1]
        return self.gap > 0.0 and self.gaps[-1] <= self.gap * max(1.0, abs(objective))

    def is_hopeless(self, dual: float, n_iter: int) -> bool:
        """Tell whether all steps that are left would not close the gap, or a tenth of it.

        The pace is that of the steps since the dual value and the iteration given.
        """
        point = self.point
        gained = (point.dual - dual) / max(1, self.n_iter - n_iter)
        gap = point.primal(point.intercept()) - point.dual
        return gained * (self.max_iter - self.n_iter) <= 0.1 * max(0.0, gap)

    def square(self, n: int, dtype: Any = np.float64) -> NDArray[Any]:
        """Return room for a matrix of ``n`` rows: that of the last one where it is enough."""
        size = n**2 * np.dtype(dtype).itemsize
        if self.buffer.nbytes < size:
            self.buffer = np.empty(0)  # before the next needs room
            self.buffer = np.empty(-(-size // self.buffer.itemsize))
        room: NDArray[Any] = self.buffer.view(dtype)[: n**2].reshape(n, n)
        return room

    def descend(self, work: DualWork, tol: float, budget: int | None = None) -> bool:
        """Take steps until the violation is at most ``tol``, and a Newton step where slow.

        Returns whether rounding stopped them. They also end where ``v`` should be computed anew.
        """
        most = self.max_iter if budget is None else min(self.max_iter, self.n_iter + budget)
        patience, spent, rescued = max(1000, self.steps_per_row * len(work.v)), 0, False
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
            if lost and violation > tol and not rescued and len(work.free) > LARGEST_FREE:
                rescued, lost = True, not work.leap(2, tol)  # of fewer, `run` takes care
            if violation <= tol or lost or self.n_iter >= most:
                return lost and violation > tol
            if work.rows is None:
                self.record()
            if spent >= patience:  # spend about as long on Newton steps as on other steps
                rounds = int(spent * work.step_seconds / work.newton_seconds)
                spent = 0
                if not work.leap(min(max(rounds, 2), work.most_rounds), tol):
                    patience = int(min(2 * patience, self.most_patience))
                if work.rounding > self.tol:  # steps have added up more of it: start from a new v
                    return False
