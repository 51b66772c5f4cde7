"""Spaces for fits that have much in common: one matrix for all, earlier solutions as starts."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.solvers import rescale_alpha
from bagwise.svm._cache import Cache, digest
from bagwise.svm._one_norm import OneNormSpace
from bagwise.svm._spaces import KernelSpace, LinearSpace, Rows, Solution


@dataclass(frozen=True, eq=False)
class Starts:
    """Solutions that were found on a selection of bags, for the same problems at other costs.

    Parameters
    ----------
    kept : Cache
        The solutions.
    key : hashable
        What tells the problems of one space from those of others.
    """

    kept: Cache
    key: Hashable

    def solve(
        self, space_solve: Any, rows: Rows, start: Solution | None, *, rescale: bool
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
class SelectedSpace:
    """Some of the bags of a `KernelSpace`; the others take no part, and the matrix is not copied.

    Parameters
    ----------
    space : KernelSpace
        Where all instances live.
    rows : ndarray of int of shape (n_instances,)
        The instances of the selected bags.
    images : ndarray of int of shape (n_instances + n_bags,)
        These, then the means of the bags.
    starts : Starts
        Where to start.
    """

    space: KernelSpace
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
        images = self.images[self.images < len(self.space.gram)]
        chosen: NDArray[Any] = self.space.gram[np.ix_(images, images)]
        return chosen

    def solve(self, rows: Rows, start: Solution | None = None) -> Solution:
        """See `Space`."""
        return self.starts.solve(self._solve, rows, start, rescale=self.space.loss == "hinge")

    def project(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Space`."""
        whole = np.zeros(self.space.n_instances)
        whole[self.rows] = coef
        return self.space.project(whole)[self.rows]

    def _solve(self, rows: Rows, start: Solution | None) -> Solution:
        if start is not None:
            start = replace(start, rows=self._outside(start.rows))
        solution = self.space.solve(self._outside(rows), start)
        return replace(solution, rows=rows, scores=solution.scores[self.rows])

    def _outside(self, rows: Rows) -> Rows:
        return replace(rows, index=self.images[rows.index])


@dataclass(frozen=True, eq=False)
class StartedKernelSpace(KernelSpace):
    """A `KernelSpace` that starts from earlier solutions."""

    starts: Starts = field(kw_only=True)

    def solve(self, rows: Rows, start: Solution | None = None) -> Solution:
        """See `Space`."""
        return self.starts.solve(super().solve, rows, start, rescale=self.loss == "hinge")


@dataclass(frozen=True, eq=False)
class StartedLinearSpace(LinearSpace):
    """A `LinearSpace` that starts from earlier solutions; its solver sees to the bounds itself."""

    starts: Starts = field(kw_only=True)

    def solve(self, rows: Rows, start: Solution | None = None) -> Solution:
        """See `Space`."""
        return self.starts.solve(super().solve, rows, start, rescale=False)


@dataclass(frozen=True, eq=False)
class StartedOneNormSpace(OneNormSpace):
    """A `OneNormSpace` that starts from earlier solutions."""

    starts: Starts = field(kw_only=True)

    def solve(self, rows: Rows, start: Solution | None = None) -> Solution:
        """See `Space`."""
        return self.starts.solve(super().solve, rows, start, rescale=False)


#: The spaces that can start from earlier solutions, and what does.
STARTED: dict[type, Any] = {
    KernelSpace: StartedKernelSpace,
    LinearSpace: StartedLinearSpace,
    OneNormSpace: StartedOneNormSpace,
}


def _rescaled(solution: Solution, rows: Rows) -> Solution:
    """Return a start for rows that differ from those of the solution in their costs only."""
    alpha = rescale_alpha(np.abs(solution.beta), solution.rows.cost, rows.cost)
    return replace(solution, beta=np.sign(solution.beta) * alpha)
