"""Few rows fall short: they are solved in memory, and passes find those that are missing."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from bagwise._arrays import Floats, Integers
from bagwise.solvers._result import Status
from bagwise.solvers.operators._feature_rows import FeatureRows, cross_products
from bagwise.solvers.operators._pass_rows import PassRows
from bagwise.solvers.svm._linear_svm import LinearSVMResult, solve_linear_svm
from bagwise.solvers.svm._pass_svm_bounds import Bounds, Point, joined, largest
from bagwise.solvers.svm._svm_dual import SVMDualResult, solve_svm_dual

MOST_SUPPORT = 2000  # rows with multipliers that a set may hold
MOST_BOUND = 300  # of these, about as large as their costs; pair steps on more of them are slow
_SET = 750  # rows that a set begins with, and most rows that join after a pass
_MORE = 300  # most rows that join after a look at the pool
_FEWEST = 50  # rows that join, if there are so many
_PER_SHORT = 3  # rows that join, for each that falls short
_ROUNDS = 25  # most passes
_LOOKS = 4  # most looks at a pool between two passes
_PAIR_STEPS = 500  # for each row, in which a set is solved; usual are 20 to 300
_NARROW = 32  # features up to which a set is solved by Newton steps on its weights
_FIRST_TOL = 1e-2  # violation at which a set is solved, in units of the targets
_LAST_TOL = 1e-12

Solved = SVMDualResult | LinearSVMResult


class SetSearch:
    """The search on working sets.

    A set of rows is solved exactly. A look at the pool, the rows that were nearest to fall short at
    the last pass, finds which of them the set leaves short; these join. When the pool is served, a
    pass over all rows tells the objective and which rows are to be in the next pool.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.is_narrow = bounds, bounds.rows.d <= _NARROW
        self.chosen = KnownRows(bounds.rows, has_gram=not self.is_narrow)
        self.alpha, self.tol = bounds.dual, _FIRST_TOL

    def run(self) -> None:
        """Search until the gap is closed, or the set grows too large."""
        bounds = self.bounds
        point: Point = bounds.w, bounds.b, bounds.z
        short = bounds.shortfall(point[2], point[1])
        has_weights = bool(bounds.w.any())
        self.chosen.choose(self.nearest(short, has_weights))
        for _ in range(_ROUNDS):
            if bounds.ended:
                return
            pool = self.pool(short, has_weights)
            del short  # which is long
            solved, coef = self.solve_in(pool)
            has_weights = True
            bounds.offer_dual(self.alpha, coef)
            z = bounds.dot(coef)
            bounds.offer_point(coef, solved.intercept, z)
            if bounds.ended:
                return
            point = bounds.between(point, (coef, solved.intercept, z))
            bounds.offer_point(*point)
            short = bounds.shortfall(z, solved.intercept)
            if not self.grow(solved, short, None, _SET):
                return

    def nearest(self, short: Floats, has_weights: bool) -> Integers:
        """Return rows of each sign, those that are shortest or nearest to be so: half of a set.

        Of a sign that has more of them there are more, where the other has less than that. A
        machine without weights does not tell them apart: then they come from everywhere.
        """
        sides = sorted((np.flatnonzero(self.bounds.sign == s) for s in (-1, 1)), key=len)
        n_few = min(_SET // 2, len(sides[0]))
        near = [
            side[largest(short[side], n)] if has_weights else side[_spread(len(side), n)]
            for side, n in zip(sides, (n_few, _SET - n_few), strict=True)
        ]
        return joined(len(short), np.concatenate(near), np.flatnonzero(self.alpha)[:MOST_SUPPORT])

    def pool(self, short: Floats, has_weights: bool) -> Integers | None:
        """Return the pool, with the set in it; None if it is of no use.

        That is so if it would hold most rows, or if shortfalls do not tell them apart, as those of
        a machine without weights.
        """
        size = self.bounds.pool_size
        if 2 * size > len(short) or not has_weights:
            return None
        return joined(len(short), largest(short, size), self.chosen.index)

    def solve_in(self, pool: Integers | None) -> tuple[Solved, Floats]:
        """Solve on the set, and let rows of the pool join until their gap is closed."""
        bounds = self.bounds
        solved, coef = self.solve()
        if pool is None:
            return solved, coef
        rows, sign, cost, target = (
            bounds.rows.take(pool), bounds.sign[pool], bounds.cost[pool], bounds.target[pool],
        )  # fmt: skip
        for _ in range(_LOOKS):
            short = target - sign * (rows.dot(coef) + solved.intercept)
            square, loss = float(coef @ coef), float(cost @ np.maximum(short, 0.0))
            gap = square + loss - float(target @ self.alpha[pool])
            if gap <= 0.5 * bounds.tol * (0.5 * square + loss):
                break
            if not self.grow(solved, short, pool, _MORE):
                break
            solved, coef = self.solve()
        return solved, coef

    def solve(self) -> tuple[Solved, Floats]:
        """Solve on the set; return the solution and its weights."""
        bounds, index = self.bounds, self.chosen.index
        sign = bounds.sign[index]
        cost, target, alpha0 = bounds.cost[index], bounds.target[index], self.alpha[index]
        solved: Solved
        if self.is_narrow:
            solved = solve_linear_svm(
                self.chosen.rows, sign, cost, target=target, alpha0=alpha0, tol=self.tol
            )
        else:
            solved = solve_svm_dual(
                self.chosen.gram, sign, cost, target=target, alpha0=alpha0, tol=self.tol,
                max_iter=_PAIR_STEPS * len(index), check_finite=False,
            )  # fmt: skip
        self.alpha = np.zeros(bounds.rows.n)
        self.alpha[index] = solved.x
        return solved, self.chosen.rows.combine(sign * solved.x)

    def grow(self, solved: Solved, short: Floats, where: Integers | None, n: int) -> bool:
        """Let rows join, of which it is known where they fall short; return whether to go on.

        These are some rows or, without ``where``, all.
        """
        index = self.chosen.index
        own = index if where is None else np.searchsorted(where, index)
        before, short[own] = short[own], -np.inf
        n_short = int(np.count_nonzero(short > 0.0))
        new = largest(short, min(n, max(_FEWEST, _PER_SHORT * n_short))) if n_short else own[:0]
        short[own] = before
        if not n_short:  # the set was the right one
            self.tol *= 1e-2
            return solved.residual > 0.0 and self.tol >= _LAST_TOL
        kept = index[solved.x > 0.0]
        n_bound = np.count_nonzero(solved.x >= 0.5 * self.bounds.cost[index])
        is_slow = solved.status is Status.MAX_ITER
        if is_slow or len(kept) > MOST_SUPPORT or n_bound > MOST_BOUND:
            return False
        new = new if where is None else where[new]
        self.chosen.choose(joined(self.bounds.rows.n, kept, new))
        return True


class KnownRows:
    """Some rows in memory, and their Gram matrix if it is used.

    When others are chosen, only these are read.
    """

    def __init__(self, source: PassRows | FeatureRows, *, has_gram: bool) -> None:
        self.source, self.has_gram, self.index = source, has_gram, np.empty(0, np.int64)
        self.rows = source.take(self.index)
        self.gram = np.empty((0, 0))

    def choose(self, index: Integers) -> None:
        """Hold these rows, in an order of its own."""
        kept = np.flatnonzero(np.isin(self.index, index, assume_unique=True))
        new = np.setdiff1d(index, self.index, assume_unique=True)
        before, fresh = self.rows.features(kept), _all(self.source.take(new))
        both = (sp.vstack if sp.issparse(fresh) else np.concatenate)([before, fresh])
        if self.has_gram:
            cross, n_kept = cross_products(fresh, both), len(kept)
            if n_kept:
                gram = np.empty((len(index), len(index)))
                gram[:n_kept, :n_kept] = self.gram[np.ix_(kept, kept)]
                gram[n_kept:] = cross
                gram[:n_kept, n_kept:] = cross[:, :n_kept].T
            else:
                gram = cross
            self.gram = gram
        self.index, self.rows = np.concatenate([self.index[kept], new]), FeatureRows(both)


def _spread(n: int, n_wanted: int) -> Integers:
    """Return about ``n_wanted`` of ``n`` places, as far apart as can be."""
    return np.arange(n) if n <= n_wanted else np.linspace(0, n - 1, n_wanted).astype(np.int64)


def _all(rows: FeatureRows) -> Any:
    return rows.features(np.arange(rows.n))
