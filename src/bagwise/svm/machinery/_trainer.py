"""How hinge problems are solved: on the inner products of points, or on their features.

Most machines of this package train on points that are instances or means of bags, some of them
again and again with other signs and costs. Which points and why is the method's affair; how they
are solved depends only on the kernel, and is settled here once: on a Gram matrix that is formed
once for all problems (`KernelTrainer`), or on explicit features (`LinearTrainer`).
"""

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise.solvers import (
    FeatureRows,
    RowOperator,
    StackedRows,
    remembered,
    solve_grouped_svm,
    solve_grouped_svm_dual,
    solve_linear_svm,
    solve_svm_dual,
)
from bagwise.svm.machinery._points import mean_instances
from bagwise.svm.machinery._problem import HingeProblem, Solution

_SOLVER_STEPS = 10_000_000  # pair steps that one solve on a Gram matrix may take
_SOLVER_SWEEPS = 1000  # sweeps likewise on features
_FEW_POINTS = 2000  # of a Gram matrix, or rows of features
_FEW_FEATURES = 600  # of which exact answers take next to no more time than rough ones


class Trainer(Protocol):
    """What a method asks of the place where its instances live."""

    @property
    def n_instances(self) -> int:
        """Number of instances."""

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """Train on rows, from the multipliers of an earlier solution if one is given."""

    def project(self, coef: Floats, rows: Integers | None = None) -> Floats:
        """Return the inner product of instances with the sum of all, each times its coefficient.

        ``rows`` says which instances; all by default.
        """

    @property
    def keeps_bounds(self) -> bool:
        """Whether a start for other costs is to have the same multipliers at their bounds."""

    def loosened(self, tol: float) -> "Trainer | None":
        """Return one that solves to ``tol`` only; None if that would save next to nothing."""


class PointTrainer(Trainer, Protocol):
    """A trainer that knows inner products."""

    @property
    def points(self) -> RowOperator:
        """The instances, then the means of the bags if there are any."""


@dataclass(frozen=True, eq=False)
class KernelTrainer:
    """Instances known by inner products, followed by means of bags if a method needs them.

    Rows that take no part have cost 0, so that every problem uses the same matrix, uncopied.

    Parameters
    ----------
    rows : RowOperator
        All instances, then the means of all bags.
    n_instances : int
        Number of instances.
    tol : float
        Of the solver.
    max_iter : int
        Most pair steps of the solver.
    loss : {"hinge", "squared_hinge"}
        What a violated margin costs; rows in groups have the hinge.
    polish : bool
        Whether the solver makes answers within ``tol`` more exact, where that is cheap.
    gap : float
        The relative duality gap that will do, for rows without groups.
    cache_bytes : float
        How much of a Gram matrix that is not in memory may be kept. If all of it may, what one
        problem needs is there for those that start from its solution, in each thread.
    looseness : float
        What solutions are marked with.
    """

    rows: RowOperator
    n_instances: int
    tol: float = 1e-6
    max_iter: int = _SOLVER_STEPS
    loss: Literal["hinge", "squared_hinge"] = "hinge"
    polish: bool = True
    gap: float = 0.0
    cache_bytes: float = 0.0
    looseness: float = 0.0
    _kept: "_Kept" = field(default_factory=lambda: _Kept(), repr=False)

    @property
    def keeps_bounds(self) -> bool:
        """See `Trainer`."""
        return self.loss == "hinge"

    def loosened(self, tol: float) -> "KernelTrainer | None":
        """See `Trainer`: on few points, Newton steps make a rough answer exact at once."""
        if tol <= self.tol or self.rows.n <= _FEW_POINTS:
            return None
        return replace(self, tol=tol, polish=False, gap=tol, looseness=tol)

    @property
    def points(self) -> RowOperator:
        """See `PointTrainer`; what is computed is remembered, in each operator anew."""
        return self.rows if self.rows.array is not None else remembered(self.rows, self.cache_bytes)

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        points, place = self._placed(rows.index, anew=start is None)
        n, repeated = points.n, _repeated(place)
        if len(repeated):  # an instance with both signs needs a second row of the matrix
            points = points.repeated(place[repeated])
            place[repeated] = np.arange(n, n + len(repeated))
            n += len(repeated)
        sign, cost, target = np.full(n, -1.0), np.zeros(n), np.ones(n)
        sign[place], cost[place], target[place] = rows.sign, rows.cost, rows.target
        alpha0 = None
        if start is not None:
            alpha0 = np.zeros(n)
            alpha0[place] = started(rows, start, self.rows.n)
        result = self._solve(points, sign, cost, target, alpha0, _groups(rows, place, n))
        beta = sign * result.x
        return Solution(
            rows=rows,
            beta=beta[place],
            intercept=result.intercept,
            scores=result.decision[: self.n_instances],
            squared_norm=max(0.0, float(beta @ (result.decision - result.intercept))),
            certificate=result.certificate,
            looseness=self.looseness,
        )

    def project(self, coef: Floats, rows: Integers | None = None) -> Floats:
        """See `Trainer`."""
        used = np.flatnonzero(coef)
        return self.rows.products(
            used, coef[used], np.arange(self.n_instances) if rows is None else rows
        )

    def _solve(
        self,
        points: RowOperator,
        sign: Floats,
        cost: Floats,
        target: Floats,
        alpha0: Floats | None,
        groups: tuple[Integers, Floats] | None,
    ) -> Any:
        settings: dict[str, Any] = {"target": target, "alpha0": alpha0, "tol": self.tol}
        if groups is None:
            return solve_svm_dual(
                points, sign, cost, max_iter=self.max_iter, loss=self.loss, polish=self.polish,
                gap=self.gap, **settings,
            )  # fmt: skip
        if points.array is None:
            return solve_grouped_svm(points, sign, *groups, **settings)
        return solve_grouped_svm_dual(
            points.array, sign, *groups, max_iter=self.max_iter, check_finite=False, **settings
        )

    def _placed(self, index: Integers, *, anew: bool) -> tuple[RowOperator, Integers]:
        """Return the points of a problem, and where its rows are among them.

        These are all points, uncopied, or where they are computed all instances and the means in
        question. Means that are no longer needed stay, for the sake of what is remembered.
        """
        if self.rows.array is not None:
            return self.rows, index.copy()
        n = self.n_instances
        means, kept = np.unique(index[index >= n]), self._kept
        if anew or kept.rows is None or not np.isin(means, kept.means).all():
            points = self.rows.take(np.concatenate([np.arange(n), means]))
            kept.rows, kept.means = remembered(points, self.cache_bytes), means
        return kept.rows, np.where(index < n, index, n + np.searchsorted(kept.means, index))


class _Kept(threading.local):
    """What a thread remembers of the last problem: inner products of instances and some means."""

    rows: RowOperator | None = None
    means: Integers = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class LinearTrainer:
    """Instances known by explicit features: their own, or those of a low-rank map of a kernel.

    Parameters
    ----------
    features : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances, bag after bag.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    means : ndarray of shape (n_bags, n_features), optional
        What stands for the means of bags, if not the means of their features.
    tol : float
        Of the solver.
    max_iter : int
        Most sweeps of the solver, if less than a thousand.
    loss : {"hinge", "squared_hinge"}
        What a violated margin costs; rows in groups have the hinge.
    looseness : float
        The relative duality gap that will do, for rows without groups; solutions are marked with
        it.
    """

    features: Any
    offsets: Integers
    means: Any = None
    tol: float = 1e-6
    max_iter: int = _SOLVER_SWEEPS
    loss: Literal["hinge", "squared_hinge"] = "hinge"
    looseness: float = 0.0

    keeps_bounds: ClassVar = False  # the solver itself moves a start to other costs

    def loosened(self, tol: float) -> "LinearTrainer | None":
        """See `Trainer`: few features make a rough answer exact at once."""
        n, d = self.features.shape
        if tol <= self.tol or n <= _FEW_POINTS or d <= _FEW_FEATURES or self.loss != "hinge":
            return None
        loose = replace(self, looseness=tol)
        known = {"bag_means"} & vars(self).keys() | {"rows"}
        vars(loose).update({name: getattr(self, name) for name in known})
        return loose

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return int(self.features.shape[0])

    @cached_property
    def rows(self) -> FeatureRows:
        """The instances."""
        return FeatureRows(self.features)

    @cached_property
    def bag_means(self) -> Any:
        """What stands for the means of bags."""
        return mean_instances(self.features, self.offsets) if self.means is None else self.means

    @property
    def points(self) -> RowOperator:
        """See `PointTrainer`."""
        return StackedRows([self.rows, FeatureRows(self.bag_means)])

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        points = self._points(rows.index)
        alpha0 = None
        if start is not None:
            alpha0 = started(rows, start, self.n_instances + len(self.offsets) - 1)
        result: Any
        if rows.group is None:
            result = solve_linear_svm(
                points, rows.sign, rows.cost, target=rows.target, alpha0=alpha0,
                tol=self.tol, gap=self.looseness, max_iter=min(self.max_iter, _SOLVER_SWEEPS),
                loss=self.loss,
            )  # fmt: skip
        else:
            result = solve_grouped_svm(
                points, rows.sign, *_compact_groups(rows), target=rows.target, alpha0=alpha0,
                tol=self.tol,
            )  # fmt: skip
        is_every_row = points.is_whole and points.matrix is self.rows.matrix
        scores = result.decision if is_every_row else self.rows.dot(result.coef) + result.intercept
        return Solution(
            rows=rows,
            beta=rows.sign * result.x,
            intercept=result.intercept,
            scores=scores,
            squared_norm=float(result.coef @ result.coef),
            certificate=result.certificate,
            weights=result.coef,
            looseness=0.0 if rows.group is not None else self.looseness,
        )

    def project(self, coef: Floats, rows: Integers | None = None) -> Floats:
        """See `Trainer`."""
        asked = self.rows if rows is None else self.rows.take(rows)
        return asked.dot(self.rows.combine(coef))

    def _points(self, index: Integers) -> FeatureRows:
        """Return some points.

        Instances stay where they are. With means of bags, which only the first problem of a method
        has, a matrix of the rows in question is put together.
        """
        if not (index >= self.n_instances).any():
            return self.rows.take(index)
        return FeatureRows(self.points.features(index))


def started(rows: HingeProblem, start: Solution | None, n_points: int) -> Floats:
    """Return where to start: the multipliers that the points had, 0 where the sign has changed."""
    if start is None:
        return np.zeros(len(rows.index))
    before = np.bincount(start.rows.index, weights=start.beta, minlength=n_points)
    return np.maximum(rows.sign * before[rows.index], 0.0)


def _repeated(index: Integers) -> Integers:
    """Return the places at which a point occurs that has occurred before."""
    if np.bincount(index).max(initial=0) <= 1:
        return np.empty(0, np.int64)
    first = np.zeros(len(index), bool)
    first[np.unique(index, return_index=True)[1]] = True
    return np.flatnonzero(~first)


def _groups(rows: HingeProblem, place: Integers, n: int) -> tuple[Integers, Floats] | None:
    """Return the group of each row of the matrix and the caps; rows not in use share a cap of 0."""
    if rows.group is None:
        return None
    numbers, cap = _compact_groups(rows)
    group = np.full(n, len(cap), np.int64)
    group[place] = numbers
    return group, np.append(cap, 0.0)


def _compact_groups(rows: HingeProblem) -> tuple[Integers, Floats]:
    assert rows.group is not None
    _, first, group = np.unique(rows.group, return_index=True, return_inverse=True)
    return group.astype(np.int64), rows.cost[first]
