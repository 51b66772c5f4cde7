"""A linear machine on rows that are read in passes: the problem and the bounds found so far."""

import numpy as np

from bagwise._arrays import Floats, Integers, Signs
from bagwise._progress import report
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.operators._pass_rows import PassRows

_POOL = 16  # rows, for each that a pool holds
_SMALLEST_POOL = 4000
_POOL_VALUES = 2**23  # that a pool may have: it is copied
_FEW = 2000  # rows that are summed without a pass, if they may be copied
_PATIENCE = 100  # passes in which the gap should shrink by a tenth
_SAMPLE = 5000  # values that tell about where the largest begin
_HALVINGS = 10  # of the way between two points
_NEAR = 0.5  # share of the objective of a point that multipliers reach if both are good

Point = tuple[Floats, float, Floats]  # weights, intercept, products of the rows with the weights


class Bounds:
    """The best point and the best multipliers met, and the passes that they took.

    All rows have costs above 0.
    """

    def __init__(
        self,
        rows: PassRows | FeatureRows,
        sign: Signs,
        cost: Floats,
        target: Floats,
        tol: float,
        max_iter: int,
    ) -> None:
        self.rows, self.sign, self.cost, self.target = rows, sign, cost, target
        self.tol, self.max_iter, self.n_passes = tol, max_iter, 0
        self.mark, self.marked = np.inf, 0  # a gap, and the pass at which it was met
        self.primal, self.lower = np.inf, 0.0
        self.w, self.b, self.z = np.zeros(rows.d), 0.0, np.zeros(rows.n)
        self.dual = np.zeros(rows.n)
        self.history: list[float] = []
        self.gaps: list[float] = []
        self.told = (-1, np.inf, np.inf)  # passes, objective and gap that were reported last

    def forget_terms(self) -> None:
        """Hold no signs, costs and targets any longer: the search is over."""
        self.sign, self.cost, self.target = np.empty(0, np.int8), np.empty(0), np.empty(0)

    @property
    def gap(self) -> float:
        """The relative gap."""
        return max(self.primal - self.lower, 0.0) / self.primal if self.primal > 0.0 else 0.0

    @property
    def ended(self) -> bool:
        """Whether the gap is as asked for, no pass is left, or passes no longer help."""
        return self.gap <= self.tol or self.n_passes >= self.max_iter or self.stalled

    @property
    def is_near(self) -> bool:
        """Whether the multipliers tell that the best point is good, and are good themselves."""
        return self.lower >= _NEAR * self.primal

    @property
    def n_short(self) -> int:
        """Number of rows that fall short at the best point."""
        from bagwise.solvers.svm._pass_svm_kernels import count_short

        return int(count_short(self.sign, self.target, self.z, self.b))

    @property
    def passes_left(self) -> int:
        """How many passes may still be taken."""
        return self.max_iter - self.n_passes

    @property
    def stalled(self) -> bool:
        """Whether the gap has stopped shrinking."""
        if self.gap < 0.9 * self.mark:
            self.mark, self.marked = self.gap, self.n_passes
        return self.n_passes - self.marked > _PATIENCE

    def dot(self, w: Floats) -> Floats:
        """Return the products of all rows with weights: a pass."""
        self.n_passes += 1
        return self.rows.dot(w)

    def combine(self, factor: Floats) -> Floats:
        """Return a sum of all rows: a pass."""
        self.n_passes += 1
        return self.rows.combine(factor)

    def shortfall(self, z: Floats, b: float) -> Floats:
        """Return by how much each row falls short of its target."""
        from bagwise.solvers.svm._pass_svm_kernels import shortfall

        out = np.empty(len(z))
        shortfall(self.sign, self.target, z, b, out)
        return out

    def sum_of(self, alpha: Floats) -> Floats:
        """Return the sum of rows that multipliers make: of many rows it takes a pass."""
        support = np.flatnonzero(alpha)
        if len(support) <= min(_FEW, self.most_rows):
            return self.rows.take(support).combine(self.sign[support] * alpha[support])
        del support  # which is long
        return self.combine(self.sign * alpha)

    @property
    def most_rows(self) -> int:
        """How many rows may be copied."""
        return int(_POOL_VALUES / self.rows.width) + 1

    @property
    def pool_size(self) -> int:
        """How many rows a pool may hold: rows in memory that are nearest to fall short."""
        return min(max(self.rows.n // _POOL, _SMALLEST_POOL), self.most_rows)

    def offer_point(self, w: Floats, b: float, z: Floats) -> None:
        """Keep a point if it is the best so far."""
        from bagwise.solvers.svm._pass_svm_kernels import hinge

        value = 0.5 * float(w @ w) + hinge(self.sign, self.target, self.cost, z, b)
        if value < self.primal:
            self.primal, self.w, self.b, self.z = value, w, b, z
        self.history.append(self.primal)
        self.gaps.append(self.primal - self.lower)
        self.report()

    def report(self) -> None:
        """Say how far the search is if that is new, unless it is a part of another, in memory."""
        state = self.n_passes, self.primal, self.gap
        if isinstance(self.rows, PassRows) and state != self.told:
            self.told = state
            report("pass", self.n_passes, objective=self.primal, gap=self.gap, goal=self.tol)

    def offer_dual(self, alpha: Floats, v: Floats) -> None:
        """Keep feasible multipliers, with ``v`` the sum of rows that they make, if the best."""
        value = float(self.target @ alpha) - 0.5 * float(v @ v)
        if value > self.lower:
            self.lower, self.dual = value, alpha

    def between(self, first: Point, last: Point) -> Point:
        """Return the point between two at which the objective is least."""
        from bagwise.solvers.svm._pass_svm_kernels import hinge_slope

        w, b, z = first
        dw, db, dz = last[0] - w, last[1] - b, last[2] - z
        terms = self.sign, self.target, self.cost
        low, high, step = 0.0, 1.0, 1.0
        for _ in range(_HALVINGS):
            slope = float(dw @ (w + step * dw)) + hinge_slope(*terms, z, dz, b, db, step)
            low, high = (step, high) if slope <= 0.0 else (low, step)
            if low == 1.0:
                return last
            step = 0.5 * (low + high)
        dz *= low
        dz += z
        return w + low * dw, b + low * db, dz


def joined(n: int, first: Integers, second: Integers) -> Integers:
    """Return the numbers below ``n`` that are among the first or the second, in order."""
    among = np.zeros(n, bool)
    among[first] = among[second] = True
    return np.flatnonzero(among)


def largest(values: Floats, n: int) -> Integers:
    """Return where the largest ``n`` values are that are not minus infinity."""
    if n >= len(values):
        return np.flatnonzero(values > -np.inf)
    stride = max(1, len(values) // _SAMPLE)  # a sample tells about which values may be among them
    sample = np.sort(values[::stride])
    rank = int(1.2 * n / stride) + 50
    among = np.flatnonzero(values >= sample[-min(rank, len(sample))])
    if len(among) < n:
        among = np.arange(len(values))
    found = among[np.argpartition(-values[among], n - 1)[:n]] if n else among[:0]
    return found[values[found] > -np.inf]
