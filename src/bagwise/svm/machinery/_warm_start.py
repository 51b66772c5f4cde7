"""A trainer whose problems start from what was found for them at other costs."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise.base import Starts
from bagwise.solvers import rescale_alpha
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._trainer import Trainer


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Any `Trainer`, with a memory for its solutions; all else is the trainer's.

    Parameters
    ----------
    trainer : Trainer
        What solves.
    starts : Starts
        The memory.
    """

    trainer: Trainer
    starts: Starts

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return self.trainer.n_instances

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """Solve from the start that is given, else from an earlier solution; keep the new one."""
        if start is not None:
            return self.trainer.solve(rows, start)
        parts = [rows.index, rows.sign, np.asarray(rows.target, np.float64)]
        if rows.group is not None:
            parts.append(rows.group)
        before = self.starts.find(*parts)
        if before is not None and rows.group is None and self.keeps_bounds:
            before = _rescaled(before, rows)
        solution = self.trainer.solve(rows, before)
        self.starts.keep(replace(solution, scores=np.empty(0)), *parts)
        return solution

    def project(self, coef: Floats, rows: Integers | None = None) -> Floats:
        """See `Trainer`."""
        return self.trainer.project(coef, rows)

    @property
    def keeps_bounds(self) -> bool:
        """See `Trainer`."""
        return self.trainer.keeps_bounds

    def loosened(self, tol: float) -> "WarmStart | None":
        """See `Trainer`."""
        trainer = self.trainer.loosened(tol)
        return None if trainer is None else replace(self, trainer=trainer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.trainer, name)


def _rescaled(solution: Solution, rows: HingeProblem) -> Solution:
    """Return a start for rows that differ from those of the solution in their costs only."""
    alpha = rescale_alpha(np.abs(solution.beta), solution.rows.cost, rows.cost)
    return replace(solution, beta=np.sign(solution.beta) * alpha)
