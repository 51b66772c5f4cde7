"""Machines with a penalty on the absolute values of weights: their columns, rows and solutions."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise.bags import segment_rows
from bagwise.solvers import FeatureOperator, OneNormSVMResult, perturbed, solve_one_norm_svm
from bagwise.svm.machinery._problem import HingeProblem, Solution

_SOLVER_STEPS = 1_000_000  # simplex steps that one problem may take
_FEW_ROWS = 1000  # whose problems take seconds at most


class _Points:
    """Rows that are instances or means of bags, with the features of the instances."""

    def __init__(self, instances: FeatureOperator, index: Integers, offsets: Integers) -> None:
        self._instances, self.n, self.d = instances, len(index), instances.d
        is_mean = index >= instances.n
        bag = np.where(is_mean, index - instances.n, 0)
        begin = np.where(is_mean, offsets[bag], index)
        self._sizes = np.where(is_mean, offsets[bag + 1] - offsets[bag], 1)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._rows = segment_rows(begin, begin + self._sizes)
        self._is_plain = not is_mean.any()

    def means(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return what the rows have of something that instances have, one in each column."""
        values = values.take(self._rows, axis=-1)
        if self._is_plain:
            return values
        sums: Floats = np.add.reduceat(values, self._starts, axis=-1, dtype=np.float64)
        sums /= self._sizes
        return sums

    def columns(self, index: Integers) -> NDArray[Any]:
        """See `FeatureOperator`."""
        return self.means(self._instances.columns(index).T).T

    def combine(self, coef: Floats) -> Floats:
        """See `FeatureOperator`."""
        parts = coef if self._is_plain else np.repeat(coef / self._sizes, self._sizes)
        sums: NDArray[Any] = np.bincount(self._rows, parts, self._instances.n)
        return self._instances.combine(sums)

    def dot(self, weights: Floats) -> Floats:
        """See `FeatureOperator`."""
        return self.means(self._instances.dot(weights))


@dataclass(frozen=True, eq=False)
class OneNormSolution(Solution):
    """A trained machine; ``weights`` are those of the columns.

    Parameters
    ----------
    result : OneNormSVMResult
        What the solver said; the place to start the next problem from.
    """

    result: OneNormSVMResult | None = None


@dataclass(frozen=True, eq=False)
class OneNormTrainer:
    """A `Trainer` whose problems have the 1-norm of the weights of columns as their penalty.

    Parameters
    ----------
    features : FeatureOperator
        What is weighted: features of the instances, or a kernel with all of them.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    row_key, column_key : ndarray of shape (n_instances,) and (n_columns,)
        Numbers in [0, 1] that break ties.
    is_kernel : bool
        Whether the features are a kernel with all instances.
    tol : float
        Of the solver.
    is_rough : bool
        Whether a problem with more than 1,000 rows may take no more simplex steps than it has rows.
    """

    features: FeatureOperator
    offsets: Integers
    row_key: Floats
    column_key: Floats
    is_kernel: bool = True
    tol: float = 1e-6
    is_rough: bool = False

    keeps_bounds: ClassVar = False  # it starts from a basis

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return self.features.n

    def loosened(self, tol: float) -> None:
        """See `Trainer`."""

    def project(self, coef: Floats, rows: Integers | None = None) -> Floats:
        """See `Trainer`."""
        found = self.features.dot(coef if self.is_kernel else self.features.combine(coef))
        return found if rows is None else found[rows]

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        points = _Points(self.features, rows.index, self.offsets)
        is_left_early = self.is_rough and points.n > _FEW_ROWS
        if is_left_early:  # where it ends depends on where it starts: not from another fit
            start = None
        result = solve_one_norm_svm(
            points,
            rows.sign,
            perturbed(rows.cost, points.means(self.row_key)),
            penalty=perturbed(np.ones(len(self.column_key)), self.column_key),
            start=start.result if isinstance(start, OneNormSolution) else None,
            tol=self.tol,
            max_iter=points.n if is_left_early else _SOLVER_STEPS,
        )
        return OneNormSolution(
            rows=rows,
            beta=rows.sign * result.alpha,
            intercept=result.intercept,
            scores=self.features.dot(result.x) + result.intercept,
            squared_norm=float(result.x @ result.x),
            certificate=result.certificate,
            weights=result.x,
            result=result,
        )
