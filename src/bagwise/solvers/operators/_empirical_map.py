"""Rows as their inner products with all rows: the features of machines that weigh a kernel."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise.solvers.operators._row_operator import RowOperator


class FeatureOperator(Protocol):
    """What a solver that weighs features asks of its rows; `FeatureRows` is one.

    Features may be many and need not be stored: only some of them are looked at.
    """

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def d(self) -> int:
        """Number of features."""

    def columns(self, index: Integers) -> NDArray[Any]:
        """Return some features of all rows, as a dense array of shape (n, len(index))."""

    def combine(self, coef: Floats) -> Floats:
        """Return the sum of the rows, each times its coefficient; few may differ from 0."""

    def dot(self, weights: Floats) -> Floats:
        """Return the inner product of each row with weights of the features."""


@dataclass(frozen=True, eq=False)
class EmpiricalMap:
    """Rows whose features are their inner products with all rows: a symmetric matrix of features.

    Parameters
    ----------
    rows : RowOperator
        The rows.
    """

    rows: RowOperator

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows.n

    @property
    def d(self) -> int:
        """Number of features: as many as rows."""
        return self.rows.n

    def columns(self, index: Integers) -> NDArray[Any]:
        """Return some features of all rows."""
        return self.rows.block(index).T

    def combine(self, coef: Floats) -> Floats:
        """Return the sum of the rows, each times its coefficient."""
        used = np.flatnonzero(coef)
        return self.rows.products(used, coef[used])

    dot = combine
