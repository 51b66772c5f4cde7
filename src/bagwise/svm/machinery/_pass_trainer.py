"""Hinge problems on instances that are read in passes, in memory or from a store."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._threads import single_blas_thread
from bagwise.bags import Bags
from bagwise.solvers import (
    DenseGram,
    PassRows,
    PassStart,
    RowOperator,
    Status,
    best_factor,
    solve_svm_by_passes,
)
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._trainer import KernelTrainer

#: Instances with so many values in all are read in passes: 8,192 of 512 features.
MANY_VALUES = 2**22

_FEW_POINTS = 4000  # and at most twice as many as features, whose inner products are kept if
_MANY_FEATURES = 1000  # are in each, or more
_MOST_VALUES = 2**25  # of these: more would be read too often
_PAIR_STEPS = 500  # for each point, that one problem may take
_PASSES = 1000  # that one problem may take
_LOOSEST = 1e-2  # relative gap beyond which no problem counts as solved
_PROGRESS = 0.1  # of all that a loose problem has gained: a step that gains less is the last
_CHANGED = 1 / 3  # share of the rows that may have other signs in a similar problem
_FEW = 4  # numbers for each that is kept with its place
_SHARPER = 1e-2  # violation that is left, in units of the one before
_LEAST_TOL = 1e-12
_PER_TOL = 1e3  # relative gap for each unit of ``tol``


class FewValues:
    """Numbers of which most may be 0, in little memory.

    Parameters
    ----------
    values : ndarray of float
        The numbers; kept as they are if many are not 0.
    """

    def __init__(self, values: Floats) -> None:
        self._n, self._places = len(values), np.empty(0, np.int64)
        self._values, self._is_whole = values, True
        if _FEW * np.count_nonzero(values) <= len(values):
            self._places, self._is_whole = np.flatnonzero(values), False
            self._values = values[self._places]

    def all(self) -> Floats:
        """Return all numbers, to be read only."""
        if self._is_whole:
            return self._values
        out = np.zeros(self._n)
        out[self._places] = self._values
        return out


@dataclass(frozen=True, eq=False, kw_only=True)
class PassSolution(Solution):
    """A machine trained by passes, with all that the next one can start from.

    Parameters
    ----------
    decision : ndarray of shape (n_points,)
        Decision function on all instances and means of bags.
    answers : FewValues or None
        Multipliers to start from, if not the sizes of ``beta``, which is held in little memory.
    """

    decision: Floats
    answers: FewValues | None

    @property  # type: ignore[misc]  # mypy takes it for an attribute that is written
    def beta(self) -> Floats:
        """Signed multipliers."""
        held: FewValues = self.__dict__["held"]
        return held.all()

    @beta.setter
    def beta(self, beta: Floats) -> None:
        self.__dict__["held"] = FewValues(beta)


@dataclass(frozen=True, eq=False)
class PassTrainer:
    """Instances known by features that are read in passes.

    Parameters
    ----------
    bags : Bags
        The bags, in memory or memory-mapped; a scattered selection is read where it is.
    means : ndarray or CSR matrix of shape (n_bags, n_features), optional
        What stands for the means of bags.
    transform : callable, optional
        Makes features of instances, whenever they are read.
    n_features : int, optional
        Number of these features.
    max_memory : int, str or None
        Bound on what the chunks in flight take.
    tol : float
        Problems are solved to a relative duality gap of a thousand times this, 0.01 at most.
    max_iter : int
        Most passes for one problem, if less than a thousand.
    looseness : float
        The relative gap that will do for a problem that is like the one it starts from, if any.
    """

    bags: Bags
    means: Any = None
    transform: Callable[[Any], Any] | None = None
    n_features: int | None = None
    max_memory: int | str | None = None
    tol: float = 1e-6
    max_iter: int = _PASSES
    looseness: float = 0.0

    @property
    def keeps_bounds(self) -> bool:
        """See `Trainer`."""
        return self.has_gram

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return self.bags.n_instances

    @property
    def has_gram(self) -> bool:
        """Whether points are so few, and so wide, that their inner products are kept."""
        n, width = self.rows.n, self.rows.width
        is_few = self.transform is None and n <= min(_FEW_POINTS, 2 * self.rows.d)
        return is_few and width >= _MANY_FEATURES and n * width <= _MOST_VALUES

    @cached_property
    def gram_trainer(self) -> KernelTrainer:
        """What trains on these inner products."""
        with single_blas_thread():
            gram = self.rows.gram()
        steps = _PAIR_STEPS * self.rows.n
        return KernelTrainer(DenseGram(gram), self.n_instances, tol=self.tol, max_iter=steps)

    @cached_property
    def rows(self) -> PassRows:
        """The instances, then the means of bags if there are any."""
        return PassRows(
            self.bags,
            more=self.means,
            transform=self.transform,
            n_features=self.n_features,
            max_memory=self.max_memory,
        )

    @property
    def points(self) -> RowOperator:
        """See `PointTrainer`; products with all points are passes."""
        return self.rows

    @cached_property
    def instances(self) -> PassRows:
        """The instances alone."""
        return self.rows.alone()

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`; no point comes twice, and no rows share a slack."""
        assert rows.group is None
        found = self._solved_by_gram(rows, start) if self.has_gram else None
        if found is not None:
            return found
        gap, is_near = self.gap, self.looseness > 0.0 and _is_near(rows, start)
        if start is None or is_near:
            gap = max(gap, self.looseness)
        result = solve_svm_by_passes(
            self.rows, rows.sign, rows.cost, target=rows.target, index=rows.index,
            start=_started(rows, start, self.rows.n),
            tol=gap, max_iter=min(self.max_iter, _PASSES),
            progress=_PROGRESS if is_near else 0.0,
        )  # fmt: skip
        return PassSolution(
            rows=rows,
            beta=rows.sign * result.dual,
            intercept=result.intercept,
            scores=result.decision[: self.n_instances],
            squared_norm=float(result.x @ result.x),
            certificate=result.certificate,
            weights=result.x,
            looseness=self.looseness if result.residual > self.gap else 0.0,
            decision=result.decision,
            answers=None if result.answers is result.dual else FewValues(result.answers),
        )

    def _solved_by_gram(self, rows: HingeProblem, start: Solution | None) -> Solution | None:
        """Train on inner products; None if steps on pairs get nowhere, or rounding is too much.

        What they come to is computed anew from the features, by a pass: inner products of features
        that are far from 0 have errors as large as what tells bags apart.
        """
        if len(np.unique(rows.sign)) < 2:
            return None
        trainer = self.gram_trainer
        found = trainer.solve(rows, start)
        while True:
            best = self._by_features(found)
            if best.certificate.gap <= self.gap * abs(best.certificate.objective):
                certificate = replace(best.certificate, status=Status.CONVERGED)
                return replace(best, certificate=certificate)
            if not found.certificate.converged or trainer.tol <= _LEAST_TOL:
                return None
            trainer = replace(trainer, tol=_SHARPER * trainer.tol)  # a large cost magnifies it
            found = trainer.solve(rows, found)

    def _by_features(self, found: Solution) -> Solution:
        """Return a machine with weights, scores and certificate that features make.

        It is multiplied by the factor with the least objective.
        """
        rows, used = found.rows, np.flatnonzero(found.beta)
        weights = self.rows.weights(rows.index[used], found.beta[used])
        z, b, square = self.rows.dot(weights), found.intercept, float(weights @ weights)
        margin = rows.sign * (z[rows.index] + b)
        factor, value = best_factor(margin, rows.target, rows.cost, square)
        alpha = np.clip(rows.sign * found.beta, 0.0, rows.cost)
        bound = float((alpha * rows.target).sum()) - 0.5 * square
        return replace(
            found,
            beta=factor * found.beta,
            intercept=factor * b,
            scores=factor * (z[: self.n_instances] + b),
            squared_norm=factor**2 * square,
            weights=factor * weights,
            certificate=replace(found.certificate, objective=value, lower_bound=min(bound, value)),
        )

    @property
    def gap(self) -> float:
        """The relative gap at which problems are solved."""
        return min(_PER_TOL * self.tol, _LOOSEST)

    def loosened(self, tol: float) -> "PassTrainer | None":
        """See `Trainer`: where means stand for bags, other rows soon do, and few steps are saved.

        Only problems without a start are solved loosely, and those that differ in few signs from
        the one they start from. These also end when steps gain little: the next signs may be better
        already.
        """
        if self.means is not None or tol <= self.gap or self.has_gram:
            return None
        return replace(self, looseness=tol)

    def project(self, coef: Floats, rows: Integers | None = None) -> Floats:
        """See `Trainer`."""
        asked = self.instances if rows is None else self.instances.part(rows)
        return asked.dot(self.instances.weighted_sum(coef))


def _started(rows: HingeProblem, start: Solution | None, n_points: int) -> PassStart | None:
    """Return where to start: multipliers of points whose sign has changed are 0.

    Where as many rows come in the same order, as where other instances stand for the same bags, a
    point has the multiplier of the one whose place it takes.
    """
    if not isinstance(start, PassSolution):
        return None
    assert start.weights is not None
    before, index = start.rows, rows.index
    beta = before.sign * start.answers.all() if start.answers is not None else start.beta.copy()
    if len(beta) != len(index):
        of_point = np.zeros(n_points)
        of_point[before.index] = beta
        beta = of_point[index]
    beta *= rows.sign
    alpha = np.maximum(beta, 0.0, out=beta)
    return PassStart(start.weights, start.intercept, start.decision, alpha)


def _is_near(rows: HingeProblem, start: Solution | None) -> bool:
    """Tell whether rows are those of a solution, most of them with the same signs."""
    if start is None or not np.array_equal(rows.index, start.rows.index):
        return False
    n_changed = int(np.count_nonzero(rows.sign != start.rows.sign))
    return n_changed <= _CHANGED * len(rows.sign)
