"""Linear support vector machines on sparse rows whose Gram matrix would be dear.

Such rows are few beside their features and well filled, as the means of bags of text are. Two kinds
of steps need products of rows with vectors only. Where most rows are free, their conditions are
linear equations, solved by conjugate gradients. Sweeps over coordinates find which are at bounds.
Both take rows from their mean: a free intercept does not notice, and where rows lie close together
it is what they have in common that makes steps slow.
"""

import numpy as np

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._threads import checkpoint
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.svm._coordinate_descent import CoordinateDescent
from bagwise.solvers.svm._linear_problem import LinearPoint, LinearProblem

_SWEEPS = 6  # between two attempts to solve equations
_STEPS = 30  # of conjugate gradients
_OUTSIDE = 0.1  # share of the rows that may leave the box before equations are given up
_PULL = 0.2  # of the intercept in a sweep, in units of the mean curvature
_ENOUGH = 0.5  # of the tolerance, for equations
_SAME = 1e-14  # of the multipliers: what balancing them may change and leave the point as it is
_LOOK = 5  # steps of conjugate gradients after which their end can be foreseen


class ProductSearch:
    """The search for a solution within a number of products with all rows, there and back.

    Parameters
    ----------
    problem : LinearProblem
        With a free intercept.
    square_norms : ndarray of shape (n,)
        Squared lengths of the rows.
    tol : float
        Largest violation of the optimality conditions.
    most : float
        Products, after which it ends.
    """

    def __init__(
        self, problem: LinearProblem, square_norms: Floats, tol: float, most: float
    ) -> None:
        self.problem, self.tol, self.most, self.n_products = problem, tol, most, 0.0
        self.used = problem.cost > 0.0
        n_used = max(1, int(np.count_nonzero(self.used)))
        mean = problem.matrix.combine(self.used / n_used)
        self.lean = problem.matrix.dot(mean)  # inner products with the mean
        self.mean_square = float(mean @ mean)
        # What is left of a length after it cancels is known to rounding only.
        rest = square_norms - 2.0 * self.lean + self.mean_square
        self.rest = np.maximum(rest, 1e-12 * square_norms.max(initial=1e-200))
        self.curvature = self.rest + problem.ridge
        self.n_products += 1.0

    @property
    def has_time(self) -> bool:
        """Whether products are left."""
        return self.n_products < self.most

    def run(self, start: LinearPoint | None) -> LinearPoint:
        """Return the best point that was found."""
        point = self.problem.origin() if start is None else start
        free = self.used if start is None else self._free(point)
        best = point = self._equations(point, free)
        while self.has_time and not point.residual <= self.tol:
            point = self._sweeps(point)
            if point.residual > self.tol:
                point = self._equations(point, self._free(point))
            best = min(best, point, key=lambda point: point.residual)
        return best

    def _free(self, point: LinearPoint) -> Booleans:
        return (point.alpha > 0.0) & (point.alpha < self.problem.cap)

    def _equations(self, point: LinearPoint, free: Booleans) -> LinearPoint:
        """Make the conditions of some rows hold, by conjugate gradients, and clip to the box.

        The step of each row is divided by its curvature beforehand. Steps sum to 0. Products of all
        rows make up the new point, unless it has to be clipped. The point is returned as it was if
        another would not be better.
        """
        problem, rows = self.problem, np.flatnonzero(free)
        if len(rows) < 2:
            return point
        matrix = problem.matrix if len(rows) == problem.matrix.n else problem.matrix.take(rows)
        sign, cap, ridge = problem.sign[rows], problem.cap[rows], problem.ridge[rows]
        alpha, weight = point.alpha[rows], 1.0 / self.curvature[rows]
        short = sign * (problem.target[rows] - ridge * alpha) - point.z[rows]
        change, step, slope = np.zeros(len(rows)), np.zeros(len(rows)), 1.0
        w, z = point.w.copy(), point.z[rows]
        first, share = float(np.ptp(short)), len(rows) / problem.matrix.n
        for count in range(_STEPS):
            checkpoint()
            level = float(weight @ short) / float(weight.sum())
            ahead = weight * (short - level)
            before, slope = slope, float(ahead @ (short - level))
            spread = float(np.ptp(short))
            if spread <= _ENOUGH * self.tol or slope <= 0.0:
                break
            if count >= _LOOK:
                more = share * self._to_come(count, first, spread)
                self.most = 0.0 if self.n_products + more > self.most else self.most
            if not self.has_time:
                break
            step = ahead + (slope / before) * step
            way = matrix.combine(step)
            gain = matrix.dot(way)
            image = gain + ridge * step
            self.n_products += share
            curvature = float(step @ image)
            if curvature <= 0.0:
                break
            change += (slope / curvature) * step
            w += (slope / curvature) * way
            z += (slope / curvature) * gain
            short = short - (slope / curvature) * image
            moved = alpha + sign * change
            if np.count_nonzero((moved < 0.0) | (moved > cap)) > _OUTSIDE * len(rows):
                break
        moved = point.alpha.copy()
        moved[rows] += sign * change
        new_alpha = problem.feasible(moved)
        if len(rows) == len(moved) and np.abs(new_alpha - moved).max() <= _SAME * new_alpha.max():
            new = problem.certified(new_alpha, w, z)
        else:
            new = problem.point(new_alpha)
            self.n_products += 1.0
        return new if new.dual > point.dual or new.residual < point.residual else point

    def _to_come(self, count: int, first: float, spread: float) -> float:
        """Return how many more steps it takes if they go on as they did."""
        if spread >= first:
            return np.inf
        return count * float(np.log(spread / (_ENOUGH * self.tol)) / np.log(first / spread))

    def _sweeps(self, point: LinearPoint) -> LinearPoint:
        """Sweep over the coordinates in random order; rows that look settled rest for a while."""
        problem, matrix = self.problem, self.problem.matrix
        descent = CentredDescent(problem, point, self.rest, self.lean, self.mean_square)
        every = active = np.flatnonzero(self.used)
        for _ in range(_SWEEPS):
            is_whole = len(active) == len(every)
            self.n_products += len(active) / matrix.n
            active = descent.sweep([(matrix.take(active), active)])
            if descent.violation <= 0.5 * self.tol or not len(active):
                if is_whole:
                    break
                active = every
                descent.look_everywhere()
            if not self.has_time:
                break
        self.n_products += 1.0
        return problem.point(problem.feasible(descent.alpha))


class CentredDescent(CoordinateDescent):
    """Sweeps on rows less their mean, which is subtracted from none of them.

    Parameters
    ----------
    problem, point : LinearProblem, LinearPoint
        Where to begin.
    rest : ndarray of shape (n,)
        Squared lengths of the rows less their mean.
    lean : ndarray of shape (n,)
        Inner products of the rows with their mean.
    mean_square : float
        The squared length of the mean.
    """

    def __init__(
        self,
        problem: LinearProblem,
        point: LinearPoint,
        rest: Floats,
        lean: Floats,
        mean_square: float,
    ) -> None:
        turn = float(lean @ (problem.sign * point.alpha))  # inner product of the mean with w
        super().__init__(
            problem.sign, problem.target, problem.cap, rest, alpha=point.alpha, w=point.w,
            b=point.b + turn, ridge=problem.ridge, pull=_PULL,
        )  # fmt: skip
        self.bound = np.append(self.bound, [turn, mean_square])
        self.terms = (*self.terms, lean)

    def _steps(
        self,
        rows: FeatureRows,
        order: Integers,
        terms: tuple[Floats, ...],
        alpha: Floats,
        kept: Integers,
    ) -> int:
        from bagwise.solvers.svm import _linear_svm_kernels as kernels

        sign, target, cap, ridge, curvature, lean = terms
        return kernels.centred_sweep(
            *rows.parts, rows.rows, order, sign, target, cap, ridge, curvature, alpha,
            self.w, self.bias, self.bound, lean, self.above, self.below, kept,
        )  # fmt: skip
