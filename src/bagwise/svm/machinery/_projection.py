"""Projection constraints: instances of a positive bag ought to differ along the weight vector.

A bag has a spread in feature space, and a weight vector shows a part of it: that along its own
direction. A constraint asks for a part that is not too small.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from bagwise._arrays import Floats, Integers
from bagwise.solvers import (
    Certificate,
    MajorizeResult,
    RowOperator,
    majorize_minimize,
    projection_range,
    solve_cone_svm,
    solve_cone_svm_by_program,
)
from bagwise.svm.machinery._alternation import Alternation
from bagwise.svm.machinery._problem import HingeProblem, Solution, instance_coef

#: What becomes of a constraint; "none" is for negative bags.
CONSTRAINT_WORDS = ("none", "vacuous", "met", "active", "violated")
_NOTHING = 1e-6  # of the largest spread: a constraint that asks for less is vacuous
_COLLAPSED = 1e-12  # of the squared length of the weights without constraints
_PROGRAM_TOL = 1e-5  # an interior-point method does not tell smaller changes from its own error
_ATTEMPTS = 12  # prices tried; the last is a sixteen-millionth of the first


def bag_spreads(points: RowOperator, offsets: Integers, bags: Integers) -> Floats:
    """Return the sum of squared distances of a bag's instances from their mean.

    Parameters
    ----------
    points : RowOperator
        The instances, and perhaps more points behind them.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    bags : ndarray of int
        Which bags.
    """
    squares = points.diagonal()
    out = np.empty(len(bags))
    for k, bag in enumerate(bags):
        inside = np.arange(offsets[bag], offsets[bag + 1])
        total = points.products(inside, np.ones(len(inside)), inside).sum()
        out[k] = squares[inside].sum() - total / len(inside)
    return np.maximum(out, 0.0)


@dataclass(frozen=True, eq=False)
class ProjectedRows:
    """What a round trains on: rows, and a contrast for each bag with a constraint.

    Parameters
    ----------
    rows : HingeProblem
        The rows.
    contrasts : CSR array of shape (n_constraints, n_points)
        The contrasts.
    """

    rows: HingeProblem
    contrasts: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class ProjectedSolution(Solution):
    """A machine trained with constraints; ``beta`` is what the cone has not shortened yet.

    Parameters
    ----------
    mu : ndarray of shape (n_constraints,)
        Multipliers of the constraints.
    coef : ndarray of shape (n_points,)
        Coefficients of the points in the weight vector.
    """

    mu: Floats
    coef: Floats

    def instance_coef(self, sizes: Integers) -> Floats:
        """Return the coefficient of each instance in the expansion of ``w``."""
        return instance_coef(self.coef, sizes)

    def times(self, side: float) -> "ProjectedSolution":
        """Return the machine whose scores are these times 1 or -1."""
        turned = super().times(side)
        assert isinstance(turned, ProjectedSolution)
        return turned if side == 1.0 else replace(turned, coef=side * self.coef)


class ProjectionProblem:
    r"""MI-SVM with constraints :math:`\sqrt{\rho_i} \|w\| \le \|A_i w\|` that may be paid for.

    Parameters
    ----------
    keys : Alternation
        The problem without constraints.
    points : RowOperator
        The instances, and perhaps more points behind them.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    bags : ndarray of int of shape (n_constraints,)
        The bags with a constraint.
    radius : ndarray of shape (n_constraints,)
        Square roots of the :math:`\rho_i`.
    price : ndarray of shape (n_constraints,)
        What a unit of violation costs.
    centred : bool
        Whether :math:`A_i` has the mean of the bag subtracted.
    by_program : bool
        Whether rounds are solved as conic programmes.
    tol : float
        Of the solver.
    """

    def __init__(
        self,
        keys: Alternation,
        points: RowOperator,
        offsets: Integers,
        bags: Integers,
        radius: Floats,
        price: Floats,
        *,
        centred: bool,
        by_program: bool,
        tol: float,
    ) -> None:
        self.keys, self.points, self.centred, self.tol = keys, points, centred, tol
        self.by_program = by_program
        self.radius, self.price = radius, price
        starts, sizes = offsets[bags], np.diff(offsets)[bags]
        self.bounds = np.concatenate([[0], np.cumsum(sizes)])
        first = np.repeat(starts - self.bounds[:-1], sizes)
        self.inside = np.arange(self.bounds[-1]) + first
        self.sizes = sizes

    # What `majorize_minimize` asks of a problem.

    def value(self, x: Solution) -> float:
        """Return the objective."""
        return self.keys.value(x) + float(self.price @ np.maximum(self.shortfall(x), 0.0))

    def majorize(self, x: Solution) -> ProjectedRows:
        """Return key instances as rows, and contrasts along which bags differ now."""
        deviation, length = self.deviations(x)
        level = 1e-12 * (np.abs(x.scores).max() + 1.0)
        for k in np.flatnonzero(length <= level):
            part = slice(self.bounds[k], self.bounds[k + 1])
            deviation[part] = self._widest(self.inside[part])
            length[k] = 1.0
        matrix = (deviation / np.repeat(length, self.sizes), self.inside, self.bounds)
        shape = len(self.sizes), self.points.n
        return ProjectedRows(self.keys.choose(x.scores), sp.csr_array(matrix, shape=shape))

    def minimize(self, surrogate: ProjectedRows, x: Solution, tol: float) -> ProjectedSolution:
        """Train on rows and contrasts, from the multipliers of an earlier solution."""
        rows = surrogate.rows
        parts = (
            self.points, rows.index, rows.sign, rows.cost, surrogate.contrasts, self.radius,
            self.price,
        )  # fmt: skip
        if self.by_program:
            result = solve_cone_svm_by_program(*parts, target=rows.target)
        else:
            start = self._start(rows, x)
            result = solve_cone_svm(*parts, target=rows.target, start=start, tol=self.tol)
        used = np.flatnonzero(result.coef)
        weights = self.points.weights(used, result.coef[used])
        return ProjectedSolution(
            rows=rows,
            beta=rows.sign * result.x,
            intercept=result.intercept,
            scores=result.projections[: len(x.scores)] + result.intercept,
            squared_norm=result.norm**2,
            certificate=result.certificate,
            weights=weights if len(weights) else None,
            mu=result.mu,
            coef=result.coef,
        )

    def _start(self, rows: HingeProblem, x: Solution) -> tuple[Floats, Floats]:
        """Return the multipliers that rows and constraints have had; 0 where a sign is another."""
        before = np.bincount(x.rows.index, weights=x.beta, minlength=self.points.n)
        alpha = np.maximum(rows.sign * before[rows.index], 0.0)
        return alpha, x.mu if isinstance(x, ProjectedSolution) else np.zeros(len(self.radius))

    def shortfall(self, x: Solution) -> Floats:
        """Return by how much each constraint is violated; negative where it holds."""
        return self.radius * np.sqrt(x.squared_norm) - self.deviations(x)[1]

    def deviations(self, x: Solution) -> tuple[Floats, Floats]:
        """Return how instances of the bags deviate along the weights, and each bag's total."""
        along = x.scores[self.inside] - x.intercept
        if self.centred:
            means = np.add.reduceat(along, self.bounds[:-1]) / self.sizes
            along -= np.repeat(means, self.sizes)
        return along, np.sqrt(np.add.reduceat(along**2, self.bounds[:-1]))

    def _widest(self, inside: Integers) -> Floats:
        """Return the direction, over a bag's instances, along which these differ most."""
        gram = self.points.block(inside, inside).astype(np.float64)
        if self.centred:
            gram -= gram.mean(axis=0)
            gram -= gram.mean(axis=1)[:, None]
        return np.linalg.eigh(gram)[1][:, -1]


@dataclass(frozen=True, eq=False)
class Projected:
    """What PC-SVM found for one output.

    Parameters
    ----------
    solution : Solution
        The machine.
    lam : float
        The bound on the mean squared distance of a bag's instances from the line along ``w``.
    penalty : float
        Price of a violation in units of ``C``, after it was lowered where the weights vanished.
    codes : ndarray of int of shape (n_bags,)
        What became of the constraint of each bag: places in `CONSTRAINT_WORDS`.
    """

    solution: Solution
    lam: float
    penalty: float
    codes: Integers


class ProjectionConstraints:
    """The constraints of one output: which bags have one, and how far they reach.

    Parameters
    ----------
    points : RowOperator
        The instances, and perhaps more points behind them.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    positive : ndarray of int
        The positive bags.
    centred : bool
        Whether the weights have to tell instances apart, or only to be far from 0 on them.
    """

    def __init__(
        self, points: RowOperator, offsets: Integers, positive: Integers, *, centred: bool
    ) -> None:
        self.points, self.offsets, self.positive, self.centred = points, offsets, positive, centred
        self.spreads = bag_spreads(points, offsets, positive)
        self.sizes = np.diff(offsets)[positive]

    def quantile(self, share: float, weight: Floats) -> float:
        """Return the bound that a share of the positive bags meets whatever the weights are."""
        values = self.spreads / self.sizes
        order = np.argsort(values, kind="stable")
        mass = np.cumsum(weight[self.positive][order])
        place = int(np.searchsorted(mass, share * mass[-1] * (1.0 - 1e-12)))
        return float(values[order[min(place, len(order) - 1)]])

    def range(self) -> tuple[float, float]:
        """Return between which bounds the constraints say something and can be met."""
        starts, stops = self.offsets[self.positive], self.offsets[self.positive + 1]
        found = projection_range(self.points, starts, stops, self.spreads, centred=self.centred)
        return found.impossible, found.vacuous

    def solve(
        self,
        keys: Alternation,
        first: Solution,
        lam: float,
        penalty: float,
        cost: Floats,
        *,
        by_program: bool,
        max_iter: int,
        tol: float,
    ) -> Projected:
        """Train with constraints, from the machine without.

        Where a price makes the weights vanish, which meets every constraint, it is quartered.

        Parameters
        ----------
        keys : Alternation
            The problem without constraints.
        first : Solution
            Its solution.
        lam, penalty : float
            Bound, and price of a violation in units of the bags' costs.
        cost : ndarray of shape (n_bags,)
            Costs of the bags.
        by_program : bool
            Whether rounds are solved as conic programmes.
        max_iter, tol
            Of the rounds; see `majorize_minimize`.
        """
        slack = self.spreads - lam * self.sizes
        is_bound = slack > _NOTHING * max(float(self.spreads.max(initial=0.0)), 1e-300)
        bags = self.positive[is_bound]
        codes = np.zeros(len(self.offsets) - 1, np.int64)
        codes[self.positive] = CONSTRAINT_WORDS.index("vacuous")
        if not is_bound.any():
            return Projected(first, lam, penalty, codes)
        if by_program:
            tol = max(tol, _PROGRAM_TOL)
        for _ in range(_ATTEMPTS):
            problem = ProjectionProblem(
                keys, self.points, self.offsets, bags, np.sqrt(slack[is_bound]),
                penalty * cost[bags], centred=self.centred, by_program=by_program, tol=tol,
            )  # fmt: skip
            ended = majorize_minimize(problem, first, max_iter=max_iter, tol=tol)
            if ended.x.squared_norm > _COLLAPSED * first.squared_norm:
                break
            penalty /= 4.0
        hair = 1e-4 * np.sqrt(ended.x.squared_norm)
        shortfall = problem.shortfall(ended.x)
        met = CONSTRAINT_WORDS.index("met")  # then come active and violated
        codes[bags] = met + (shortfall > -hair).astype(np.int64) + (shortfall > hair)
        return Projected(_certified(ended, first), lam, penalty, codes)


def _certified(ended: MajorizeResult[Solution], first: Solution) -> Solution:
    """Return where rounds ended; they have converged if all that led there has.

    That is the machine without constraints, the rounds, and their last problem.
    """
    stages = [first.certificate, ended.certificate, ended.x.certificate]
    status = Certificate.total(stages).status
    n_iter = first.certificate.n_iter + ended.n_iter
    ends = first.certificate.ends  # of the machine without constraints
    certificate = replace(ended.certificate, status=status, n_iter=n_iter, ends=ends)
    return replace(ended.x, certificate=certificate)
