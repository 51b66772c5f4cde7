"""Spaces for fits that have much in common: one matrix for all, earlier solutions as starts."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.solvers import rescale_alpha
from bagwise.svm.machinery._cache import Cache, digest
from bagwise.svm.machinery._one_norm_trainer import OneNormTrainer
from bagwise.svm.machinery._trainer import HingeProblem, KernelTrainer, LinearTrainer, Solution


@dataclass(frozen=True, eq=False)
class Starts:
    """Solutions that were found on a selection of bags, for the same problems at other costs.

    Parameters
    ----------
    kept : Cache
        The solutions.
    key : hashable
        What tells the problems of one trainer from those of others.
    """

    kept: Cache
    key: Hashable

    def solve(
        self, space_solve: Any, rows: HingeProblem, start: Solution | None, *, rescale: bool
    ) -> Solution:
        """Solve from the start that is given, else from an earlier solution; keep the new one.

        Where ``rescale`` says so, multipliers at their old bound are brought to the new one.
        """
        if start is not None:
            return space_solve(rows, start)
        parts = [rows.index, rows.sign, np.asarray(rows.target, np.float64)]
        if rows.group is not None:
            parts.append(rows.group)
        before = self.find(*parts)
        if before is not None and rescale and rows.group is None:
            before = _rescaled(before, rows)
        solution: Solution = space_solve(rows, before)
        self.keep(replace(solution, scores=np.empty(0)), *parts)
        return solution

    def find(self, *parts: NDArray[Any]) -> Any:
        """Return what was kept last of a problem with these parts, or None."""
        return self.kept.find((self.key, digest(*parts)))

    def keep(self, solution: Any, *parts: NDArray[Any]) -> None:
        """Keep where the next problem with these parts is to start."""
        self.kept.put((self.key, digest(*parts)), solution)


@dataclass(frozen=True, eq=False)
class SelectedTrainer:
    """Some of the bags of a `KernelTrainer`; the others take no part, and the matrix is not copied.

    Parameters
    ----------
    trainer : KernelTrainer
        Where all instances live.
    rows : ndarray of int of shape (n_instances,)
        The instances of the selected bags.
    images : ndarray of int of shape (n_instances + n_bags,)
        These, then the means of the bags.
    starts : Starts
        Where to start.
    """

    trainer: KernelTrainer
    rows: NDArray[np.int64]
    images: NDArray[np.int64]
    starts: Starts

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.rows)

    @cached_property
    def gram(self) -> NDArray[Any]:
        """The matrix of the selection, for methods that look into it."""
        images = self.images[self.images < len(self.trainer.gram)]
        chosen: NDArray[Any] = self.trainer.gram[np.ix_(images, images)]
        return chosen

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        return self.starts.solve(self._solve, rows, start, rescale=self.trainer.loss == "hinge")

    def project(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Trainer`."""
        whole = np.zeros(self.trainer.n_instances)
        whole[self.rows] = coef
        return self.trainer.project(whole)[self.rows]

    def _solve(self, rows: HingeProblem, start: Solution | None) -> Solution:
        if start is not None:
            start = replace(start, rows=self._outside(start.rows))
        solution = self.trainer.solve(self._outside(rows), start)
        return replace(solution, rows=rows, scores=solution.scores[self.rows])

    def _outside(self, rows: HingeProblem) -> HingeProblem:
        return replace(rows, index=self.images[rows.index])


@dataclass(frozen=True, eq=False)
class StartedKernelTrainer(KernelTrainer):
    """A `KernelTrainer` that starts from earlier solutions."""

    starts: Starts = field(kw_only=True)

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        return self.starts.solve(super().solve, rows, start, rescale=self.loss == "hinge")


@dataclass(frozen=True, eq=False)
class StartedLinearTrainer(LinearTrainer):
    """A `LinearTrainer` that starts from earlier solutions; its solver sees to the bounds."""

    starts: Starts = field(kw_only=True)

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        return self.starts.solve(super().solve, rows, start, rescale=False)


@dataclass(frozen=True, eq=False)
class StartedOneNormTrainer(OneNormTrainer):
    """A `OneNormTrainer` that starts from earlier solutions."""

    starts: Starts = field(kw_only=True)

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        return self.starts.solve(super().solve, rows, start, rescale=False)


#: The spaces that can start from earlier solutions, and what does.
STARTED: dict[type, Any] = {
    KernelTrainer: StartedKernelTrainer,
    LinearTrainer: StartedLinearTrainer,
    OneNormTrainer: StartedOneNormTrainer,
}


def _rescaled(solution: Solution, rows: HingeProblem) -> Solution:
    """Return a start for rows that differ from those of the solution in their costs only."""
    alpha = rescale_alpha(np.abs(solution.beta), solution.rows.cost, rows.cost)
    return replace(solution, beta=np.sign(solution.beta) * alpha)
