"""Linear support vector machines by an interior-point method (Ferris and Munson 2002).

Its steps are about as many whatever the costs are and however many rows are free at the solution.
Each takes one system of the size of the features, like a Newton step in the primal. Those come to
hundreds of kinks where about as many rows as features are free, or nearly all rows are.
"""

from dataclasses import replace

import numpy as np
from scipy.linalg import lapack

from bagwise._arrays import Floats
from bagwise._threads import checkpoint
from bagwise.solvers.svm._linear_problem import LinearPoint, LinearProblem

_BACK = 0.995  # share of the way to the nearest bound that a step may go
_STRAIGHT = 1e-4  # curvature of all rows together that may be left out, in units of the weights
_RIDGES = (0.0, 1e-13, 1e-11, 1e-9, 1e-7)  # relative to the entries of the diagonal


class InteriorSearch:
    """Steps of Mehrotra's predictor and corrector for the hinge.

    Multipliers ``alpha`` lie between 0 and the costs. ``low`` and ``high`` are the multipliers of
    these bounds; ``high`` is what a row falls short of its target.

    Parameters
    ----------
    problem : LinearProblem
        With the hinge.
    """

    def __init__(self, problem: LinearProblem) -> None:
        used = np.flatnonzero(problem.cost > 0.0)
        self.problem, self.used, self.n_iter, self.is_stuck = problem, used, 0, False
        self.rows = problem.matrix if len(used) == problem.matrix.n else problem.matrix.take(used)
        self.sign, self.cost, self.target = (
            term[used] for term in (problem.sign, problem.cost, problem.target)
        )
        self.rho = problem.rho
        self.w, self.b, self.z = np.zeros(problem.matrix.d), 0.0, np.zeros(len(used))
        self.square_norms, self.alpha = self.rows.square_norms(), 0.5 * self.cost
        self.low, self.high = np.ones(len(used)), np.ones(len(used))

    @property
    def products(self) -> float:
        """The sum of the products of multipliers and distances from bounds."""
        return float(self.alpha @ self.low + (self.cost - self.alpha) @ self.high)

    @property
    def gap(self) -> float:
        """The same as a share of the objective."""
        value = 0.5 * float(self.w @ self.w) + float(self.cost @ self.high)
        return self.products / max(value, 1e-300)

    def run(self, tol: float, max_iter: int) -> None:
        """Go on until the gap is ``tol``, or for so many steps in all."""
        while self.n_iter < max_iter and self.gap > tol and not self.is_stuck:
            checkpoint()
            self.is_stuck = not self._step()
            self.n_iter += 1

    def point(self) -> LinearPoint:
        """Return the multipliers, those near a bound at it, with the weights that they make."""
        return self.problem.point(self.problem.feasible(self._snapped()))

    def inner_point(self) -> LinearPoint:
        """Return the multipliers with the weights as they are here.

        Far from the optimum these two are nearer to it than what one makes of the other. Only
        their gap tells how near.
        """
        problem, alpha = self.problem, np.zeros(self.problem.matrix.n)
        alpha[self.used] = self.alpha
        inner, z = problem.point(problem.feasible(alpha)), problem.matrix.dot(self.w)
        primal = problem.primal(self.w, self.b, z)
        return replace(inner, w=self.w, b=self.b, z=z, primal=primal, residual=np.inf)

    def _snapped(self) -> Floats:
        """Return the multipliers, at a bound where they are smaller than what it pushes with."""
        room, alpha = self.cost - self.alpha, self.alpha.copy()
        unit = max(float(alpha.max(initial=0.0)), 1e-300)
        alpha[self.low * unit > self.alpha] = 0.0
        full = (self.high * unit > room) & (room < self.alpha)
        alpha[full] = self.cost[full]
        out = np.zeros(self.problem.matrix.n)
        out[self.used] = alpha
        return out

    def _step(self) -> bool:
        """Take a step; return whether it went anywhere."""
        alpha, room, n = self.alpha, self.cost - self.alpha, len(self.used)
        bend = 1.0 / (self.low / alpha + self.high / room)
        system = _System(self, bend)
        if not system.is_definite:
            return False
        mean = self.products / (2 * n)
        first = system.solve(-alpha * self.low, -room * self.high)
        share = self._longest(first, 1.0)
        ahead = float((alpha + share * first[0]) @ (self.low + share * first[1]))
        ahead += float((room - share * first[0]) @ (self.high + share * first[2]))
        goal = mean * (ahead / (2 * n * mean)) ** 3
        step = system.solve(
            goal - alpha * self.low - first[0] * first[1],
            goal - room * self.high + first[0] * first[2],
        )
        share = self._longest(step, _BACK)
        if not (share > 1e-8 and np.isfinite(step[0]).all()):
            return False
        change, low, high, dw, db, dz = step
        self.alpha = alpha + share * change
        self.low, self.high = self.low + share * low, self.high + share * high
        self.w, self.b, self.z = self.w + share * dw, self.b + share * db, self.z + share * dz
        return True

    def curvature(self, bend: Floats) -> Floats:
        """Return the curvature of the rows that bend; late in the search these are few."""
        bent = bend * self.square_norms > _STRAIGHT / len(bend)
        bent |= bend > _STRAIGHT / len(bend) * bend.max()
        if bent.all():
            return self.rows.curvature(bend)
        return self.rows.take(np.flatnonzero(bent)).curvature(bend[bent])

    def _longest(self, step: "Step", share: float) -> float:
        """Return how far a step may go, of the way to the nearest bound and not beyond its end."""
        most = 1.0
        distances = self.alpha, self.cost - self.alpha, self.low, self.high
        for now, change in zip(distances, (step[0], -step[0], step[1], step[2]), strict=True):
            falls = change < 0.0
            most = min(most, share * float((now[falls] / -change[falls]).min(initial=np.inf)))
        return most


Step = tuple[Floats, Floats, Floats, Floats, float, Floats]


class _System:
    """The linear equations of a step, factorised."""

    def __init__(self, at: InteriorSearch, bend: Floats) -> None:
        self.at, self.bend, d = at, bend, at.rows.d
        system = at.curvature(bend)
        system.flat[: d * (d + 1) : d + 2] += 1.0
        if at.rho is None:
            system = system[:d, :d].copy()
        else:
            system[d, d] += at.rho
        diagonal = system.diagonal().copy()
        for ridge in _RIDGES:
            np.fill_diagonal(system, (1.0 + ridge) * diagonal)
            self.factor, info = lapack.dpotrf(system.T, lower=1, clean=0)
            self.is_definite = info == 0
            if self.is_definite:
                break

    def solve(self, low: Floats, high: Floats) -> Step:
        """Return the step at whose end products of multipliers and distances change so much."""
        at, bend = self.at, self.bend
        room, rho = at.cost - at.alpha, at.rho or 0.0
        short = at.target - at.sign * (at.z + at.b) + at.low - at.high
        right = short + low / at.alpha - high / room
        signed = at.sign * (at.alpha + bend * right)
        pull = at.rows.combine(signed) - at.w
        if at.rho is not None:
            pull = np.append(pull, signed.sum() - rho * at.b)
        solved, _ = lapack.dpotrs(self.factor, pull, lower=1)
        dw, db = (solved, 0.0) if at.rho is None else (solved[:-1], float(solved[-1]))
        dz = at.rows.dot(dw)
        change = bend * (right - at.sign * (dz + db))
        return (
            change, (low - at.low * change) / at.alpha, (high + at.high * change) / room,
            dw, db, dz,
        )  # fmt: skip
