"""Machines with a penalty on the absolute values of weights: their columns, rows and solutions."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise.bags import segment_rows
from bagwise.kernels import InstanceKernel
from bagwise.solvers import FeatureRows, OneNormSVMResult, perturbed, solve_one_norm_svm
from bagwise.svm.machinery._trainer import HingeProblem, Solution


class Columns(Protocol):
    """A matrix with one row for each instance: kernel values with others, or features."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """Return some columns."""

    def combine(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the rows, each times its factor; few differ from 0."""

    def dot(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the columns, each times its weight; few differ from 0."""


class StoredColumns:
    """A matrix in memory.

    Parameters
    ----------
    matrix : ndarray or CSR matrix of shape (n_instances, n_columns)
        The matrix.
    transposed : ndarray of shape (n_columns, n_instances), optional
        Its transpose if that is at hand, as it is of a symmetric matrix: columns are then rows.
    """

    def __init__(self, matrix: Any, transposed: NDArray[Any] | None = None) -> None:
        self.shape: tuple[int, int] = matrix.shape
        self.rows = FeatureRows(matrix)
        self.columns = None if transposed is None else FeatureRows(transposed)

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """See `Columns`."""
        if self.columns is not None:
            block: Any = self.columns.matrix[index].T
        else:
            block = self.rows.matrix[:, index]
        return np.asarray(block.toarray() if sp.issparse(block) else block)

    def combine(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Columns`."""
        used = np.flatnonzero(coef)
        return self.rows.take(used).combine(coef[used])

    def dot(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Columns`."""
        if self.columns is None:
            return self.rows.dot(weights)
        used = np.flatnonzero(weights)
        return self.columns.take(used).combine(weights[used])


class SelectedColumns:
    """Some rows of a symmetric matrix in memory, and the columns of the same; nothing is copied.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        The matrix.
    index : ndarray of int of shape (n_instances,)
        Which rows and columns.
    """

    def __init__(self, matrix: NDArray[Any], index: NDArray[np.int64]) -> None:
        self.index, self.shape = index, (len(index), len(index))
        self.rows = FeatureRows(matrix, index)

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """See `Columns`."""
        block: NDArray[Any] = self.rows.matrix[np.ix_(self.index[index], self.index)]
        return block.T

    def combine(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Columns`."""
        used = np.flatnonzero(coef)
        return self.rows.take(used).combine(coef[used])[self.index]

    dot = combine


@dataclass(frozen=True, eq=False)
class ComputedColumns:
    """A kernel matrix whose entries are computed when they are needed.

    Prices must agree with columns to rounding, so values are in double precision throughout.

    Parameters
    ----------
    kernel : InstanceKernel
        The kernel.
    instances : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances.
    """

    kernel: InstanceKernel
    instances: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.instances.shape[0], self.instances.shape[0]

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """See `Columns`."""
        return self.kernel.gram(self.instances, self.instances[index].astype(np.float64))

    def combine(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Columns`."""
        used = np.flatnonzero(coef)
        some = self.instances[used].astype(np.float64)
        return self.kernel.expand(self.instances, some, coef[None, used])[:, 0]

    dot = combine


class _Rows:
    """The matrix of a problem whose rows are instances or means of bags: a `ColumnSource`."""

    def __init__(
        self, columns: Columns, index: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> None:
        n, n_columns = columns.shape
        self.source, self.shape = columns, (len(index), n_columns)
        is_mean = index >= n
        bag = np.where(is_mean, index - n, 0)
        begin = np.where(is_mean, offsets[bag], index)
        self.sizes = np.where(is_mean, offsets[bag + 1] - offsets[bag], 1)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.instance = segment_rows(begin, begin + self.sizes)
        self.plain = not is_mean.any()

    def means(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return what the rows have of something that instances have, one in each column."""
        values = values.take(self.instance, axis=-1)
        if self.plain:
            return values
        sums: NDArray[np.float64] = np.add.reduceat(values, self.starts, axis=-1, dtype=np.float64)
        sums /= self.sizes
        return sums

    def price(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `ColumnSource`."""
        parts = vector if self.plain else np.repeat(vector / self.sizes, self.sizes)
        coef: NDArray[Any] = np.bincount(self.instance, parts, self.source.shape[0])
        return self.source.combine(coef)

    def columns(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """See `ColumnSource`."""
        return self.means(self.source.take(index).T).T


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
    columns : Columns
        What is weighted.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    row_key, column_key : ndarray of shape (n_instances,) and (n_columns,)
        Numbers in [0, 1] that break ties.
    linear : bool
        Whether the columns are features of the instances; else they are a kernel with all of them.
    tol : float
        Of the solver.
    """

    columns: Columns
    offsets: NDArray[np.int64]
    row_key: NDArray[np.float64]
    column_key: NDArray[np.float64]
    linear: bool = False
    tol: float = 1e-6

    keeps_bounds: ClassVar = False  # it starts from a basis

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return self.columns.shape[0]

    def project(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Trainer`."""
        return self.columns.dot(self.columns.combine(coef) if self.linear else coef)

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        matrix = _Rows(self.columns, rows.index, self.offsets)
        result = solve_one_norm_svm(
            matrix,
            rows.sign,
            perturbed(rows.cost, matrix.means(self.row_key)),
            penalty=perturbed(np.ones(len(self.column_key)), self.column_key),
            start=start.result if isinstance(start, OneNormSolution) else None,
            tol=self.tol,
        )
        return OneNormSolution(
            rows=rows,
            beta=rows.sign * result.alpha,
            intercept=result.intercept,
            scores=self.columns.dot(result.x) + result.intercept,
            squared_norm=float(result.x @ result.x),
            certificate=result.certificate,
            weights=result.x,
            result=result,
        )
