"""What every solver asks of its rows: inner products, wherever the rows lie."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint

_STRIP_ENTRIES = 1 << 21  # inner products that are looked at in one go


class RowOperator(ABC):
    """Rows known by their inner products.

    This is the one seam between solvers and data. A solver never indexes a Gram matrix: it asks for
    the products of some rows, or of a sum of rows with others. Where rows lie (a matrix in memory,
    features, a kernel that is computed block by block, another machine) is the operator's affair.

    Four members make an operator: `n`, `dtype`, `diagonal` and `block`. The others follow from
    these, and an operator that can do better overrides them.
    """

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products: single or double."""

    @abstractmethod
    def diagonal(self) -> Floats:
        """Return the squared norm of each row."""

    @abstractmethod
    def block(
        self, rows: Integers, columns: Integers | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with others; ``None`` means all.

        The array belongs to the caller: it is ``out`` if that is given, which may be of higher
        precision.
        """

    @property
    def array(self) -> NDArray[Any] | None:
        """The whole Gram matrix if it lies in memory, for compiled loops that only read it."""
        return None

    def fill_square(self, out: NDArray[Any]) -> bool:
        """Write all inner products where that takes much less time than row by row; else False."""
        return False

    def products(self, rows: Integers, coef: Floats, columns: Integers | None = None) -> Floats:
        """Return the inner products of ``sum_r coef[r] rows[r]`` with some rows, or with all."""
        from bagwise.solvers.operators._gram_kernels import add_rows

        out = np.zeros(self.n if columns is None else len(columns))
        for piece in self.strips(rows, len(out)):
            block = np.ascontiguousarray(self.block(rows[piece], columns))
            add_rows(block, np.arange(len(block)), coef[piece], out)
        return out

    def weights(self, rows: Integers, coef: Floats) -> Floats:
        """Return ``sum_r coef[r] rows[r]`` itself; empty where it cannot be written down."""
        return np.empty(0)

    def features(self, rows: Integers) -> Any:
        """Return some rows as a dense or CSR matrix; None where they have no features."""
        return None

    def take(self, rows: Integers) -> "RowOperator":
        """Return some of the rows, in any order, without a copy."""
        from bagwise.solvers.operators._views import SelectedRows

        return SelectedRows(self, rows)

    def repeated(self, rows: Integers) -> "RowOperator":
        """Return all rows, and some of them once more at the end."""
        return self.take(np.concatenate([np.arange(self.n), rows]))

    def narrow(self, columns: Integers | None) -> None:  # noqa: B027
        """Expect requests for these columns from now on (``None``: all); a hint for caches."""

    def refuse_large(self, n_rows: int, n_columns: int) -> None:  # noqa: B027
        """Raise an error where so many inner products at once are not allowed."""

    def effort(self, rows: Integers) -> Integers:
        """Return how many rows have to be read for each of these."""
        return np.ones(len(rows), np.int64)

    def strips(self, rows: Integers, width: int) -> Iterator[slice]:
        """Cut rows into pieces whose products with ``width`` others take little memory and time."""
        taken = np.cumsum(self.effort(rows)) * max(1, width)
        cuts = np.flatnonzero(np.diff(taken // _STRIP_ENTRIES)) + 1
        for first, last in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            checkpoint()
            if first < last:
                yield slice(first, last)


def written(values: NDArray[Any], out: NDArray[Any] | None) -> NDArray[Any]:
    """Return values, in ``out`` if that is given."""
    if out is None:
        return np.ascontiguousarray(values)
    out[:] = values
    return out
