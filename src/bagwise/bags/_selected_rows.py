"""The rows of a selection of bags, without a copy of all of them."""

from typing import Any

import numpy as np

from bagwise._arrays import Integers
from bagwise.bags import _matrix
from bagwise.bags._bags import Bags
from bagwise.bags._build import check_finite
from bagwise.bags._source import row_bytes_of


class SelectedRows:
    """Rows that are copied, or made if they are lazy, when some of them are asked for.

    They stand for `Bags.instances` where blocks of rows are all that is looked at: indexing by a
    slice or by row numbers returns what indexing the matrix would.

    Parameters
    ----------
    bags : Bags
        In memory, memory-mapped or lazy.
    """

    ndim = 2

    def __init__(self, bags: Bags) -> None:
        self._bags = bags
        self._offsets = bags.offsets
        self.shape, self.dtype = (bags.n_instances, bags.n_features), bags.dtype

    def __getitem__(self, key: slice | Integers) -> _matrix.Matrix:
        if not isinstance(key, slice):
            return self._checked(self._bags.take_instances(key), key)
        rows = range(self.shape[0])[key]
        if len(rows) and rows.step == 1:
            bag = int(np.searchsorted(self._offsets, rows.start, side="right")) - 1
            if rows.stop <= self._offsets[bag + 1]:  # within a bag they need not be copied
                shift = int(self._bags._starts[bag] - self._offsets[bag])
                span = rows.start + shift, rows.stop + shift
                return self._checked(_matrix.row_slice(self._bags._base, *span), rows)
        return self._checked(self._bags.take_instances(np.array(rows, np.int64)), rows)

    def _checked(self, made: _matrix.Matrix, rows: Any) -> _matrix.Matrix:
        """Refuse values that a function behind lazy bags must not return; name their bag."""
        if self._bags.is_lazy:
            bad = _matrix.first_nonfinite(made, allow_nan=self._bags.allow_nan)
            if bad is not None:
                number = int(np.asarray(rows)[bad[0]])
                bag = int(np.searchsorted(self._offsets, number, side="right")) - 1
                one = self._bags[bag : bag + 1]
                whole = np.array([0, self._offsets[bag + 1] - self._offsets[bag]])
                nan = self._bags.allow_nan
                check_finite(self._bags[bag], whole, one.bag_names, first=bag, allow_nan=nan)
        return made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        msg = "Rows of a selection are read block by block: use Bags.instances for all of them."
        raise TypeError(msg)


def rows_of(bags: Bags) -> Any:
    """Return what stands for ``bags.instances`` where blocks of rows are all that is looked at.

    Parameters
    ----------
    bags : Bags
        In memory, memory-mapped or lazy.

    Returns
    -------
    ndarray, CSR array or SelectedRows
        The matrix itself if it is a view, or a copy no larger than a chunk of `BagSource`.
    """
    here = bags._held
    if here.is_lazy:
        return SelectedRows(here)
    is_view = here._contiguous_span() is not None
    if is_view or here.n_instances <= _matrix.chunk_rows(row_bytes_of(here)):
        return here.instances
    return SelectedRows(here)
