"""Rows that are read in passes: bags in memory or in a file, chunk by chunk and in threads."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from bagwise._arrays import Floats, Integers
from bagwise.bags import Bags, BagSource, Chunk
from bagwise.exceptions import SolverError
from bagwise.solvers.operators._feature_rows import FeatureRows


class PassRows:
    """The instances of bags, and perhaps some points behind them, as rows to be read in passes.

    A product with all rows is one pass over the chunks of a `BagSource`. Nothing is copied but the
    few rows that are taken. The result does not depend on where the bags lie, on the number of
    threads or on the memory limit.

    Parameters
    ----------
    bags : Bags
        In memory or memory-mapped; a scattered selection is read where it is.
    more : array or CSR matrix of shape (n_more, n_features), optional
        Further rows behind the instances, in memory.
    transform : callable, optional
        Makes the features of a matrix of instances, each time they are read.
    n_features : int, optional
        Number of these features.
    n_threads, max_memory
        See `BagSource`.
    """

    def __init__(
        self,
        bags: Bags,
        *,
        more: Any = None,
        transform: Callable[[Any], Any] | None = None,
        n_features: int | None = None,
        n_threads: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.d = bags.n_features if n_features is None else n_features
        scratch = 0 if transform is None else 8 * self.d
        self._source = BagSource(bags, n_threads=n_threads, max_memory=max_memory, scratch=scratch)
        self._bags, self._transform, self._offsets = bags, transform, bags.offsets
        self._more = None if more is None else FeatureRows(more)
        self.n_instances = bags.n_instances
        self.n = self.n_instances + (0 if self._more is None else self._more.n)

    @property
    def is_sparse(self) -> bool:
        """Whether rows are taken from a CSR matrix."""
        return self._transform is None and self._bags.is_sparse

    def dot(self, w: Floats) -> Floats:
        """Return the inner product of each row with ``w``: one pass."""

        def products(chunk: Chunk) -> Floats:
            return self._features(chunk.instances).dot(w)

        out: Floats = self._source.concatenate(products)
        if self._more is not None:
            out = np.concatenate([out, self._more.dot(w)])
        return self._checked(out)

    def combine(self, factor: Floats) -> Floats:
        """Return the sum of the rows, each times its factor: one pass over chunks that count."""

        def add(chunk: Chunk) -> Floats:
            part = factor[chunk.rows]
            if not part.any():
                return np.zeros(self.d)
            return self._features(chunk.instances).combine(part)

        out: Floats = self._source.reduce(add)
        if self._more is not None:
            out = out + self._more.combine(factor[self.n_instances :])
        return self._checked(out)

    def take(self, rows: Integers) -> FeatureRows:
        """Return a copy of some rows, in memory."""
        inside = rows < self.n_instances
        matrix, starts, _ = self._bags.segments
        own = rows[inside]
        bag = np.searchsorted(self._offsets, own, side="right") - 1
        found = matrix[starts[bag] + own - self._offsets[bag]]
        found = found if self._transform is None else self._transform(found)
        if self._more is None or inside.all():
            return FeatureRows(found)
        others = self._more.features(rows[~inside] - self.n_instances)
        stacked = sp.vstack([found, others], format="csr") if sp.issparse(found) else None
        both = np.concatenate([found, others]) if stacked is None else stacked
        order = np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)])
        return FeatureRows(both, np.argsort(order))

    def _features(self, instances: Any) -> FeatureRows:
        return FeatureRows(instances if self._transform is None else self._transform(instances))

    def _checked(self, values: Floats) -> Floats:
        """Return finite values; otherwise say which bag holds NaN or infinity."""
        if np.isfinite(values).all():
            return values
        self._source.refuse_nonfinite()
        msg = "Products of instances and weights are too large for a number: scale the features."
        raise SolverError(msg)
