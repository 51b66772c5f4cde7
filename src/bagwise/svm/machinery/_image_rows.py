"""Rows that are sums of a few instances and means of bags, for the solver of shared slacks.

They are never written down all at once: the solver asks for the inner products of few of them, and
for those of one sum with all.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._threads import checkpoint
from bagwise.exceptions import MemoryLimitError
from bagwise.solvers import CachedGram, FeatureRows
from bagwise.svm.machinery._trainer import mean_instances

_BLOCK_ENTRIES = 1 << 22  # of a Gram matrix, looked at in one go
_ALWAYS = 1000.0  # megabytes for the inner products of the rows that matter, whatever the cache


class Images(Protocol):
    """Products of instances, and of means of bags behind them."""

    def gram(self, used: NDArray[np.int64], factors: Any) -> NDArray[np.float64]:
        """Return the inner products of sums of some images with one another."""

    def combine(self, coef: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return a sum of images, empty if unknown, and its inner product with every image."""


class CombinedRows:
    """Rows that are sums of a few images each, as the solver wants them.

    Parameters
    ----------
    images : Images
        Where the images live.
    matrix : CSR array of shape (n_rows, n_images)
        The factors in the sums.
    cache_size : float
        Megabytes that the inner products of rows with one another may take; 1000 are always there.
    owner : str
        Class name for messages.
    """

    def __init__(self, images: Images, matrix: Any, cache_size: float, owner: str) -> None:
        self.images, self.matrix, self.n = images, matrix, matrix.shape[0]
        self.cache_size, self.owner = cache_size, owner

    def gram(self, few: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the inner products of some rows with one another."""
        megabytes = 8e-6 * float(len(few)) ** 2
        if megabytes > max(self.cache_size, _ALWAYS):
            msg = (
                f"{self.owner} needs the inner products of the {len(few)} rows that matter, "
                f"{megabytes:.0f} MB, at once. Raise cache_size to allow it, or learn from fewer "
                f"bags. Got cache_size={self.cache_size:g}."
            )
            raise MemoryLimitError(msg)
        used, factors = _columns_in_use(self.matrix[few])
        return self.images.gram(used, factors)

    def combine(
        self, few: NDArray[np.int64], beta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sum of some rows with factors, and its inner product with every row."""
        weights, products = self.images.combine(self.matrix[few].T @ beta)
        return weights, self.matrix @ products


def _columns_in_use(matrix: Any) -> tuple[NDArray[np.int64], Any]:
    """Return the columns that are not empty, and the matrix without the others."""
    used, place = np.unique(matrix.indices, return_inverse=True)
    shape = (matrix.shape[0], len(used))
    return used.astype(np.int64), sp.csr_array((matrix.data, place, matrix.indptr), shape=shape)


def images_of(trainer: Any, offsets: NDArray[np.int64]) -> Images:
    """Return the images of a trainer; means of bags are among those of a kernel."""
    if hasattr(trainer, "features"):
        return FeatureImages(trainer.features, mean_instances(trainer.features, offsets))
    if isinstance(trainer.gram, np.ndarray):
        return GramImages(trainer.gram)
    return SourceImages(CachedGram(trainer.gram, trainer.cache_bytes), offsets)


class GramImages:
    """Images known by their Gram matrix."""

    def __init__(self, gram: NDArray[Any]) -> None:
        self._gram = gram

    def gram(self, used: NDArray[np.int64], factors: Any) -> NDArray[np.float64]:
        """See `Images`."""
        return _square(self._block(used), factors)

    def combine(self, coef: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See `Images`."""
        out = np.zeros(len(coef))
        for rows in self._strips(np.flatnonzero(coef)):
            out += coef[rows] @ self._rows(rows)
        return np.empty(0), out

    def _block(self, used: NDArray[np.int64]) -> NDArray[Any]:
        block: NDArray[Any] = self._gram[np.ix_(used, used)]
        return block

    def _rows(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        strip: NDArray[Any] = self._gram[rows]
        return strip

    def _strips(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Cut images up so that what their rows take stays small."""
        taken = np.cumsum(self._effort(rows)) * self._gram.shape[0]
        for strip in np.split(rows, np.flatnonzero(np.diff(taken // _BLOCK_ENTRIES)) + 1):
            checkpoint()
            if len(strip):
                yield strip

    def _effort(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.ones(len(rows), np.int64)


class SourceImages(GramImages):
    """Images whose Gram matrix is computed by rows, when they are asked for.

    The row of a mean takes those of all instances of its bag.
    """

    def __init__(self, source: CachedGram, offsets: NDArray[np.int64]) -> None:
        self._gram: Any = source
        self._sizes = np.concatenate([np.ones(offsets[-1], np.int64), np.diff(offsets)])

    def _block(self, used: NDArray[np.int64]) -> NDArray[Any]:
        # Whole rows, though some columns would do: they stay in the cache for `combine`.
        return np.concatenate([self._rows(rows)[:, used] for rows in self._strips(used)])

    def _rows(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        strip: NDArray[Any] = self._gram.block(rows)
        return strip

    def _effort(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._sizes[rows]


def _square(gram: NDArray[Any], factors: Any) -> NDArray[np.float64]:
    """Return the Gram matrix of sums with factors."""
    half = factors @ gram.astype(np.float64, copy=False)
    square: NDArray[np.float64] = factors @ half.T
    return 0.5 * (square + square.T)


class FeatureImages:
    """Images as rows of features, dense or CSR."""

    def __init__(self, features: Any, means: Any) -> None:
        self.features, self.means = features, means
        self.n = features.shape[0]

    def gram(self, used: NDArray[np.int64], factors: Any) -> NDArray[np.float64]:
        """See `Images`."""
        first_mean = np.searchsorted(used, self.n)
        parts = [self.features[used[:first_mean]], self.means[used[first_mean:] - self.n]]
        stack = sp.vstack if sp.issparse(self.features) else np.concatenate
        return FeatureRows(factors @ stack(parts).astype(np.float64)).gram()

    def combine(self, coef: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See `Images`."""
        active = np.flatnonzero(coef[: self.n])
        weights = FeatureRows(self.features, active).combine(coef[active])
        weights += FeatureRows(self.means).combine(coef[self.n :])
        parts = [FeatureRows(rows).dot(weights) for rows in (self.features, self.means)]
        return weights, np.concatenate(parts)
