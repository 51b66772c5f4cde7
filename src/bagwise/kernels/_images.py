"""Gram matrices over instances and means of bags, held in memory or computed as they are needed.

The mean of a bag is the mean of the images of its instances in the space of the kernel; its inner
products are means of kernel values.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._threads import checkpoint
from bagwise.bags import segment_rows
from bagwise.kernels._instance import InstanceKernel
from bagwise.kernels._rows import Matrix, common_dtype, slices

_STRIP = 256  # rows whose means are taken at a time


def point_gram(
    kernel: InstanceKernel, X: Matrix, offsets: NDArray[np.int64], *, means: bool = False
) -> NDArray[Any]:
    """Return the inner products of all instances, then of the means of all bags.

    Parameters
    ----------
    kernel : InstanceKernel
        The kernel between instances.
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        Instances, bag after bag.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    means : bool
        Whether the means of the bags follow the instances.

    Returns
    -------
    ndarray of shape (n, n)
        Exactly symmetric; ``n`` is the number of instances, plus that of the bags with ``means``.
    """
    n, n_bags = X.shape[0], len(offsets) - 1 if means else 0
    out = np.empty((n + n_bags, n + n_bags), common_dtype(X))
    kernel.gram(X, out=out[:n, :n])
    if means:
        fill_means(out, offsets)
    return out


def fill_means(gram: NDArray[Any], offsets: NDArray[np.int64]) -> None:
    """Fill in the rows and columns of the means of bags behind those of the instances."""
    n = int(offsets[-1])
    for rows in slices(n, _STRIP):
        checkpoint()
        gram[rows, n:] = _bag_means(gram[rows, :n], offsets)
    gram[n:, :n] = gram[:n, n:].T
    square = _bag_means(gram[n:, :n], offsets)
    gram[n:, n:] = 0.5 * (square + square.T)


def _bag_means(block: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return means of a block over the columns of each bag."""
    sums: NDArray[np.float64] = np.add.reduceat(block, offsets[:-1], axis=1, dtype=np.float64)
    sums /= np.diff(offsets)
    return sums


@dataclass(frozen=True, eq=False)
class PointGram:
    """The matrix of `point_gram` that is not there: blocks are computed when asked for.

    Parameters
    ----------
    kernel : InstanceKernel
        The kernel between instances.
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        Instances, bag after bag.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    images : ndarray of int of shape (n,)
        Which image each row stands for: an instance, or behind them the mean of a bag.
    """

    kernel: InstanceKernel
    X: Matrix
    offsets: NDArray[np.int64]
    images: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        kernel: InstanceKernel,
        X: Matrix,
        offsets: NDArray[np.int64],
        *,
        means: bool = False,
    ) -> "PointGram":
        """Return the source of all instances, and of the means of bags if asked for."""
        n_bags = len(offsets) - 1 if means else 0
        return cls(kernel, X, offsets, np.arange(X.shape[0] + n_bags))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.images), len(self.images)

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Of the blocks."""
        return common_dtype(self.X)

    def with_copies(self, rows: NDArray[np.int64]) -> "PointGram":
        """Return the source with some rows once more at the end."""
        images = np.concatenate([self.images, self.images[rows]])
        return PointGram(self.kernel, self.X, self.offsets, images)

    def diagonal(self) -> NDArray[Any]:
        """Return the inner product of each row with itself."""
        n = self.X.shape[0]
        out = np.empty(len(self.images), self.dtype)
        is_mean = self.images >= n
        out[~is_mean] = self.kernel.diagonal(self.X)[self.images[~is_mean]]
        if is_mean.any():
            from bagwise.kernels._set import set_self

            bags = self.images[is_mean] - n
            starts, stops = self.offsets[bags], self.offsets[bags + 1]
            out[is_mean] = set_self(self.kernel, self.X, starts, stops) / (stops - starts) ** 2.0
        return out

    def block(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some, or with all."""
        left = self.images[rows]
        right = self.images if columns is None else self.images[columns]
        left_rows, left_bounds = self._instances(left)
        right_rows, right_bounds = self._instances(right)
        values = self.kernel.gram(self.X[left_rows], self.X[right_rows])
        if right_bounds is not None:
            values = _bag_means(values, right_bounds)
        if left_bounds is not None:
            values = _bag_means(values.T, left_bounds).T
        return np.ascontiguousarray(values, self.dtype)

    def _instances(
        self, images: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64] | slice, NDArray[np.int64] | None]:
        """Return the instances behind images, and where those of each image begin."""
        n = self.X.shape[0]
        if len(images) == n and np.array_equal(images, np.arange(n)):
            return slice(None), None
        is_mean = images >= n
        if not is_mean.any():
            return images, None
        bags = np.where(is_mean, images - n, 0)
        starts = np.where(is_mean, self.offsets[bags], images)
        lengths = np.where(is_mean, self.offsets[bags + 1] - self.offsets[bags], 1)
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        return segment_rows(starts, starts + lengths), bounds
