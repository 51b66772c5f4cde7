"""The dual of a kernel SVM as data: the problem, the current point, and access to the Gram matrix.

The matrix lies in memory, or a `RowOperator` computes blocks on demand. The squared hinge adds a
ridge to its diagonal; the ridge is kept as a vector, so that the matrix need not be copied.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise.solvers._checks import checked_array, checked_terms, not_finite
from bagwise.solvers.operators._dense_gram import as_rows
from bagwise.solvers.operators._row_operator import RowOperator
from bagwise.solvers.svm._multipliers import intercept_between

_FAR = 0.5  # rows rest if they are so far from violating a condition, in units of the target
_FEWEST = 0.2  # of the rows: fewer are not sent to rest

NAME = "solve_svm_dual"  # in errors
LOSSES = ("hinge", "squared_hinge")


class State:
    """The problem and the current point, in signed form: ``beta = sign * alpha``.

    ``v`` is ``sign * target - (gram + ridge) @ beta``. Rows may rest (`rest`): they stay at their
    bounds, and their ``v`` is out of date until `wake`.
    """

    def __init__(
        self,
        gram: NDArray[Any] | RowOperator,
        sign: ArrayLike,
        cost: ArrayLike,
        target: ArrayLike,
        alpha0: ArrayLike | None,
        *,
        loss: str,
        check_finite: bool,
    ) -> None:
        if loss not in LOSSES:
            msg = f"{NAME}: loss must be one of {', '.join(map(repr, LOSSES))}. Got {loss!r}."
            raise ValueError(msg)
        self.rows = as_rows(NAME, gram, check_finite=check_finite)
        #: The rows if they are not in memory, and what follows is computed piece by piece.
        self.source = self.rows if self.rows.array is None else None
        self.gram: NDArray[Any] = np.empty((0, 0)) if self.rows.array is None else self.rows.array
        kernel = self.rows.diagonal()
        if not np.isfinite(kernel).all():
            raise ValueError(not_finite(NAME))
        self.n = n = len(kernel)
        self.sign, self.cost, targets = checked_terms(NAME, sign, cost, target, n)
        if self.sign.min() == self.sign.max():
            msg = f"{NAME}: sign must hold -1 and +1, both of them. Got {self.sign[0]:g} only."
            raise ValueError(msg)
        self.goal = self.sign * targets
        self.is_squared = loss == "squared_hinge"
        self.kernel_diagonal = kernel
        self.ridge = np.zeros(n)
        bound = self.cost
        self.flat = max(1e-12 * float(np.abs(kernel).max()), 1e-200)
        if self.is_squared:
            used = self.cost > 0.0
            np.divide(0.5, self.cost, out=self.ridge, where=used)
            bound = np.where(used, np.inf, 0.0)
            least = 2.0 * float(self.ridge[used].min(initial=np.inf))
            self.flat = min(self.flat, max(least, 4e-4 * self.flat))
        self.diagonal = kernel + self.ridge
        self.lower = np.where(self.sign < 0, -bound, 0.0)
        self.upper = np.where(self.sign > 0, bound, 0.0)
        self.beta = np.zeros(n)
        self.v = self.goal.copy()
        # An array's entries are what they are; a source may round them differently in each block.
        self._eps = float(np.finfo(self.source.dtype if self.source else np.float64).eps)
        self.blur = 0.0  # what rounding has added up to in v, at most
        self.is_exact = True
        self.awake: Integers | None = None  # None: all rows
        self._rested_beta = self._rested_v = np.empty(0)
        self._rested_dual = 0.0
        if alpha0 is not None:
            self._start(np.clip(checked_array(NAME, "alpha0", alpha0, (n,)), 0.0, bound))

    def _start(self, alpha: Floats) -> None:
        """Start from a point of the box, after the excess of the heavier sign is taken off.

        Free rows pay first, so that rows at a bound stay there. If that is not enough, rows at
        their upper bound pay, in the order in which a falling intercept would free them.
        """
        self.beta = self.sign * alpha
        self.subtract(np.flatnonzero(alpha), self.beta)
        excess = float(self.beta.sum())
        heavier = self.sign * excess > 0.0
        free = heavier & self.free
        paid = min(abs(excess), float(alpha[free].sum()))
        if paid > 0.0:
            alpha[free] *= 1.0 - paid / float(alpha[free].sum())
        left = abs(excess) - paid
        if left > 0.0:
            alpha[free] = 0.0
            bound = np.flatnonzero(heavier & (alpha > 0.0))
            bound = bound[np.argsort((self.sign * self.v)[bound], kind="stable")]
            before = np.cumsum(alpha[bound]) - alpha[bound]
            alpha[bound] -= np.clip(left - before, 0.0, alpha[bound])
        change = self.sign * alpha - self.beta
        self.beta += change
        self.subtract(np.flatnonzero(change), change)

    def subtract(self, rows: Integers, factor: Floats, columns: Integers | None = None) -> None:
        """Subtract ``factor[rows] @ (gram + ridge)[rows]`` from ``v``.

        From a source only ``columns`` are computed, or those of the rows that are awake.
        """
        self.blur += self._eps * float(np.abs(factor[rows]) @ self.diagonal[rows])
        if self.source is not None and columns is None:
            columns = self.awake
        products = self.rows.products(rows, factor[rows], columns)
        if not np.isfinite(products).all():
            raise ValueError(not_finite(NAME))
        if columns is None:
            self.v -= products
        else:
            self.v[columns] -= products
        if self.is_squared:
            if columns is not None:
                rows = np.intersect1d(rows, columns, assume_unique=True)
            self.v[rows] -= self.ridge[rows] * factor[rows]

    def square(self, rows: Integers, out: Floats) -> None:
        """Write the block of some rows and the same columns, with the ridge."""
        if self.source is None:
            self.rows.block(rows, rows, out)
        else:
            for piece in self.rows.strips(rows, len(rows)):
                if not np.isfinite(self.rows.block(rows[piece], rows, out[piece])).all():
                    raise ValueError(not_finite(NAME))
        out.flat[:: len(rows) + 1] = self.diagonal[rows]

    def tidied(self) -> Floats:
        """Return the point without rounding.

        A row that only rounding keeps from a bound goes there (or it would fix the intercept), and
        the signs balance again.
        """
        beta = self.beta.copy()
        hair = 16.0 * np.finfo(np.float64).eps * np.abs(beta).max()
        below, above = beta - self.lower, self.upper - beta
        np.copyto(beta, self.lower, where=(below <= hair) & (below <= above))
        np.copyto(beta, self.upper, where=(above <= hair) & (above < below))
        free = (beta > self.lower) & (beta < self.upper)
        if free.any():
            room = np.where(free, np.minimum(self.upper - beta, beta - self.lower), -1.0)
            k = int(room.argmax())
            beta[k] = np.clip(beta[k] - beta.sum(), self.lower[k], self.upper[k])
        return beta

    @property
    def multipliers(self) -> Floats:
        """The point itself."""
        return self.beta

    def go_to(self, multipliers: Floats) -> None:
        """Go to another point, and compute all that follows from it from scratch."""
        self.beta[:] = multipliers
        self.refresh()

    def refresh(self) -> None:
        """Take rounding out of the point and compute ``v`` from scratch."""
        if self.awake is not None:
            self._set_awake(None)
        self.beta[:] = self.tidied()
        self.v[:] = self.goal
        self.blur = 0.0
        self.subtract(np.flatnonzero(self.beta), self.beta)
        self.is_exact = True

    def settle(self, tol: float) -> None:
        """Make ``v`` exact: from scratch, unless a source has kept it well within ``tol``."""
        self.wake()
        if self.source is None or self.blur > 1e-3 * tol:
            self.refresh()
            return
        change = self.tidied() - self.beta
        self.beta += change
        np.clip(self.beta, self.lower, self.upper, out=self.beta)
        self.subtract(np.flatnonzero(change), change)
        self.is_exact = True

    def move(self, rows: Integers, beta: Floats) -> None:
        """Give some rows new values."""
        change = np.zeros(self.n)
        change[rows] = beta - self.beta[rows]
        changed = np.flatnonzero(change)
        before = self.v[changed]
        self.beta[rows] = beta
        n_nonzero = np.count_nonzero(self.beta)
        # From an array what is computed is cheap, and from scratch it is more exact.
        if len(changed) * (2 if self.source is None else 1) > n_nonzero and self.awake is None:
            self.refresh()
        else:
            self.subtract(changed, change)
        self._rested_dual += 0.5 * float(change[changed] @ (before + self.v[changed]))

    def rest(self, violation: float) -> None:
        """Let rows far from violating a condition rest, if they are many."""
        if self.source is None:
            return
        growing, shrinking = self.scores(violation)
        near = np.maximum(growing, shrinking) > -max(_FAR, 5.0 * violation)
        near &= self.cost > 0.0
        n_awake = self.n if self.awake is None else len(self.awake)
        if np.count_nonzero(near) > n_awake - _FEWEST * self.n:
            return
        if self.awake is None:
            self._rested_dual = self.dual
            self._rested_beta, self._rested_v = self.beta.copy(), self.v.copy()
        # Some rest after others: v of all of them is that of the time before the first.
        far = np.flatnonzero(~near)
        self.v[far] = self._rested_v[far]
        self._set_awake(np.flatnonzero(near))

    def wake(self) -> None:
        """Bring ``v`` of the resting rows up to date."""
        if self.awake is None:
            return
        resting = np.ones(self.n, bool)
        resting[self.awake] = False
        change = self.beta - self._rested_beta
        self.subtract(np.flatnonzero(change), change, np.flatnonzero(resting))
        self._set_awake(None)

    def _set_awake(self, rows: Integers | None) -> None:
        self.awake = rows
        self.rows.narrow(rows)

    @property
    def free(self) -> Booleans:
        return (self.beta > self.lower) & (self.beta < self.upper)

    def moves(self) -> tuple[Booleans, Booleans]:
        """Tell which rows may grow and which may shrink. Resting rows may do neither."""
        grows, shrinks = self.beta < self.upper, self.beta > self.lower
        if self.awake is not None:
            awake = np.zeros(self.n, bool)
            awake[self.awake] = True
            grows, shrinks = grows & awake, shrinks & awake
        return grows, shrinks

    def interval(self) -> tuple[float, float]:
        """Return the largest ``v`` that may grow and the smallest that may shrink.

        At the optimum the intercept lies between the two.
        """
        from bagwise.solvers.svm._svm_dual_kernels import extremes

        if self.awake is None:
            highest, lowest = extremes(self.v, self.beta, self.lower, self.upper)
        else:
            awake = self.awake
            highest, lowest = extremes(
                self.v[awake], self.beta[awake], self.lower[awake], self.upper[awake]
            )
        if np.isnan(highest):
            raise ValueError(not_finite(NAME))
        return highest, lowest

    @property
    def violation(self) -> float:
        highest, lowest = self.interval()
        return highest - lowest

    def scores(self, violation: float) -> tuple[Floats, Floats]:
        """Return how much rows want to grow and to shrink: above 0 where they violate a condition.

        Minus infinity stands where they may not.
        """
        middle = self.interval()[0] - 0.5 * violation
        grows, shrinks = self.moves()
        return np.where(grows, self.v - middle, -np.inf), np.where(
            shrinks, middle - self.v, -np.inf
        )

    @property
    def n_breaking(self) -> int:
        """Return how many rows violate a condition nearly as much as the worst one."""
        highest, lowest = self.interval()
        fifth = 0.2 * (highest - lowest)
        grows = (self.beta < self.upper) & (self.v > highest - fifth)
        shrinks = (self.beta > self.lower) & (self.v < lowest + fifth)
        return int(np.count_nonzero(grows | shrinks))

    @property
    def rounding(self) -> float:
        """Return how exactly ``v`` can be known."""
        size = np.abs(self.beta)
        terms = size @ np.abs(self.kernel_diagonal) + (np.abs(self.goal) + self.ridge * size).max()
        return float(np.finfo(np.float64).eps * terms)

    @property
    def dual(self) -> float:
        if self.awake is not None:
            return self._rested_dual
        return 0.5 * float(self.beta @ (self.goal + self.v))

    def intercept(self) -> float:
        return intercept_between(self.v, self.free, self.interval())

    def primal(self, intercept: float) -> float:
        from bagwise.solvers.svm._svm_dual_kernels import primal_value

        return primal_value(
            self.v, self.ridge, self.beta, self.goal, self.sign, self.cost, intercept,
            self.is_squared,
        )  # fmt: skip

    def decision(self, intercept: float) -> Floats:
        return self.goal - self.v - self.ridge * self.beta + intercept
