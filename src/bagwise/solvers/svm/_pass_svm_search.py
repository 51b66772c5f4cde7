"""The order of events in a search by passes: working sets, pools, coordinate and Newton steps."""

import numpy as np

from bagwise._arrays import Floats, Integers, Signs
from bagwise._threads import checkpoint
from bagwise.solvers._result import Status
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.operators._pass_rows import PassRows
from bagwise.solvers.svm._linear_svm import solve_linear_svm
from bagwise.solvers.svm._multipliers import balanced
from bagwise.solvers.svm._pass_svm_bounds import Bounds, Point, joined, largest
from bagwise.solvers.svm._pass_svm_coordinates import PASSES, CoordinateSearch
from bagwise.solvers.svm._pass_svm_sets import MOST_BOUND, MOST_SUPPORT, SetSearch
from bagwise.solvers.svm._pass_svm_smoothing import Smoothing
from bagwise.solvers.svm._primal_newton import NewtonModel

POOLS = 3  # how often pools are tried

_WIDE = 3000  # features; with more of them coordinate steps come before Newton steps
_FEW_ROWS = 4  # for each feature: so many rows are solved in memory, if they may be copied
_MANY_FEATURES = 600  # that they have, or more
_CHEAP_PASSES = 40  # which take little beside such a solution
_SETS = 3  # how often working sets are tried
_POOL_ROUNDS = 5  # most passes that one of these attempts takes
_TELLING = 0.1  # share of the objective that multipliers of a start reach, if they tell anything
_RARE = 1000  # rows of a sign, at most, with which working sets are tried if these do not
_ROOM = 4  # rows that a pool has for each that matters

Start = tuple[Point, Floats]  # a point, and multipliers


def are_wide(rows: PassRows | FeatureRows) -> bool:
    """Tell whether features are too many for Newton steps to begin with."""
    return rows.d > _WIDE


class Search(Bounds):
    """The search for a point and multipliers that certify it."""

    def run(self, start: Start | None = None, *, pools_left: int = POOLS) -> None:
        """Search, from a point and multipliers if they are given."""
        self.offer_first()
        if self.ended:
            return
        if start is not None:
            start = start[0], np.clip(start[1], 0.0, self.cost)
            self.offer_start(start)
            if self.ended:
                return
        smooth, sets_left, is_wide = Smoothing(self), _SETS, are_wide(self.rows)
        if start is None:
            smooth.begin_evenly()
        elif self.lower < _TELLING * self.primal and self.n_rare <= _RARE:
            sets_left -= 1
            del start  # whose numbers are many
            smooth.rest()
            SetSearch(self).run()
            smooth.begin_at(self.dual)
        else:
            smooth.begin_at(start[1])
            del start
        suits_memory = self.suits_memory
        while not self.ended:
            checkpoint()
            may_be_few = sets_left and smooth.n_support <= MOST_SUPPORT
            if may_be_few and self.count_bound(smooth.model) <= MOST_BOUND:
                sets_left -= 1
                smooth.rest()
                SetSearch(self).run()
                smooth.begin_at(self.dual)
            elif pools_left and self.suits_pool(smooth.n_support):
                pools_left -= 1
                smooth.rest()
                self.solve_pools(self.dual)
                smooth.begin_at(self.dual)
            elif is_wide and self.passes_left >= PASSES:
                is_wide = False
                CoordinateSearch(self).run()
                if self.is_near:
                    smooth.begin_at(self.dual)
            elif suits_memory and self.n_passes >= _CHEAP_PASSES:
                suits_memory = False
                smooth.rest()
                self.solve_in_memory()
                smooth.begin_at(self.dual)
            else:
                smooth.step()

    @property
    def suits_memory(self) -> bool:
        """Tell whether all rows may be copied, and are few beside their features.

        Steps on samples and pools may get nowhere there, if nearly all rows fall short.
        """
        rows = self.rows
        is_few = rows.n <= min(self.most_rows, _FEW_ROWS * rows.d)
        is_whole = isinstance(rows, PassRows)  # no pool
        return is_whole and is_few and _MANY_FEATURES <= rows.d <= _WIDE

    def solve_in_memory(self) -> None:
        """Copy all rows, and solve their problem with these."""
        rows = self.rows.take(np.arange(self.rows.n))
        solved = solve_linear_svm(
            rows, self.sign, self.cost, target=self.target,
            alpha0=balanced(self.dual, self.sign),
            gap=0.75 * self.tol,
        )  # fmt: skip
        self.offer_dual(solved.x, rows.combine(self.sign * solved.x))
        self.n_passes += 1
        self.offer_point(solved.coef, solved.intercept, rows.dot(solved.coef))

    def offer_first(self) -> None:
        """Offer what may be the best machines without weights."""
        sides = [(s, self.sign == s) for s in (-1.0, 1.0)]
        levels = [s * float(self.target[side].max()) for s, side in sides if side.any()]
        for b in levels or [0.0]:
            self.offer_point(self.w, b, self.z)

    def offer_start(self, start: Start) -> None:
        """Offer a point, and multipliers within their bounds, as far as they are balanced."""
        self.offer_point(*start[0])
        alpha = balanced(start[1], self.sign)
        if np.count_nonzero(alpha) <= MOST_SUPPORT or not self.ended:
            self.offer_dual(alpha, self.sum_of(alpha))

    @property
    def n_rare(self) -> int:
        """Number of rows of the sign that has fewer."""
        n_negative = int(np.count_nonzero(self.sign < 0.0))
        return min(n_negative, self.rows.n - n_negative)

    def count_bound(self, model: NewtonModel) -> int:
        """Count multipliers, the best or those of a centre, near the costs of rows that need it."""
        from bagwise.solvers.svm._pass_svm_kernels import count_bound

        point = model.sign, model.target, model.z, model.b
        return int(count_bound(*point, self.dual, model.base, self.cost))

    def suits_pool(self, n_support: int) -> bool:
        """Tell whether it is known which rows matter, and a pool has room for them."""
        return self.lower > 0.0 and self.has_room(n_support)

    def has_room(self, n_support: int) -> bool:
        """Tell whether a pool has room for the rows that matter, and is small beside all rows."""
        n_used, size = max(n_support, int(np.count_nonzero(self.dual))), self.pool_size
        return _ROOM * n_used <= size and 2 * size <= self.rows.n

    def solve_pools(self, alpha: Floats) -> None:
        """Solve the problem of the rows nearest to fall short, and see what it leaves short."""
        best: Point = self.w, self.b, self.z
        w, b, z = best
        for _ in range(_POOL_ROUNDS):
            near = largest(self.shortfall(z, b), self.pool_size)
            pool = joined(self.rows.n, near, np.flatnonzero(alpha))
            inner = self.on(pool)
            inner.run(((w, b, z[pool]), alpha[pool]), pools_left=0)
            alpha = np.zeros(self.rows.n)
            alpha[pool] = inner.multipliers
            w, b, z = inner.w, inner.b, self.dot(inner.w)
            self.take_over(inner, alpha, z)
            if self.ended:
                return
            best = self.between(best, (w, b, z))
            self.offer_point(*best)

    def on(self, pool: Integers) -> "Search":
        """Return the search on a pool."""
        return Search(*self.terms_on(pool))

    def terms_on(self, pool: Integers) -> tuple[FeatureRows, Signs, Floats, Floats, float, int]:
        """Return what a search on a pool is made of; it has to leave less of a gap."""
        terms = self.rows.take(pool), self.sign[pool], self.cost[pool], self.target[pool]
        return *terms, 0.75 * self.tol, self.max_iter

    @property
    def multipliers(self) -> Floats:
        """Multipliers for a similar problem to start from."""
        return self.dual

    def take_over(self, inner: "Search", alpha: Floats, z: Floats) -> None:
        """Offer what the search on a pool has found, with its multipliers and products of rows."""
        self.offer_dual(alpha, inner.rows.combine(inner.sign * inner.dual))
        self.offer_point(inner.w, inner.b, z)

    @property
    def status(self) -> Status:
        """How the search ended."""
        if self.gap <= self.tol:
            return Status.CONVERGED
        return Status.MAX_ITER if self.n_passes >= self.max_iter else Status.STALLED
