"""A linear machine on rows that are read in passes: the problem and the bounds found so far."""

import numpy as np

from bagwise._arrays import Floats
from bagwise._progress import report
from bagwise.solvers.operators._pass_rows import PassRows

_PATIENCE = 100  # passes in which the gap should shrink by a tenth


class Bounds:
    """The best point and the best multipliers met, and the passes that they took.

    All rows have costs above 0.
    """

    def __init__(
        self,
        rows: PassRows,
        sign: Floats,
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

    @property
    def gap(self) -> float:
        """The relative gap."""
        return (self.primal - self.lower) / self.primal if self.primal > 0.0 else 0.0

    @property
    def ended(self) -> bool:
        """Whether the gap is as asked for, no pass is left, or passes no longer help."""
        return self.gap <= self.tol or self.n_passes >= self.max_iter or self.stalled

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
        return self.target - self.sign * (z + b)

    def offer_point(self, w: Floats, b: float, z: Floats) -> None:
        """Keep a point if it is the best so far."""
        from bagwise.solvers.svm._pass_svm_kernels import hinge

        value = 0.5 * float(w @ w) + hinge(self.sign, self.target, self.cost, z, b)
        if value < self.primal:
            self.primal, self.w, self.b, self.z = value, w, b, z
        self.history.append(self.primal)
        self.gaps.append(self.primal - self.lower)
        report("pass", self.n_passes, objective=self.primal, gap=self.gap, goal=self.tol)

    def offer_dual(self, alpha: Floats, v: Floats) -> None:
        """Keep feasible multipliers, with ``v`` the sum of rows that they make, if the best."""
        value = float(self.target @ alpha) - 0.5 * float(v @ v)
        if value > self.lower:
            self.lower, self.dual = value, alpha
