"""Rows in the feature space of a kernel, whose inner products are computed when asked for."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise.bags import segment_rows
from bagwise.kernels import InstanceKernel, fill_means, set_self
from bagwise.solvers.operators._row_operator import RowOperator, written


@dataclass(frozen=True, eq=False)
class KernelRows(RowOperator):
    """Points of a kernel's feature space: instances, and behind them the kernel means of bags.

    The kernel mean of a bag is the mean of its instances in feature space; its inner products are
    means of kernel values.

    Parameters
    ----------
    kernel : InstanceKernel
        The kernel between instances.
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        Instances, bag after bag.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    points : ndarray of int of shape (n,)
        What each row is: ``k`` below the number of instances is that instance, ``n_instances + i``
        the kernel mean of bag ``i``.
    is_double : bool
        Whether inner products are in double precision, whatever the instances are in.
    """

    kernel: InstanceKernel
    X: Any
    offsets: Integers
    points: Integers
    is_double: bool = False

    @classmethod
    def of(
        cls, kernel: InstanceKernel, X: Any, offsets: Integers, *, means: bool = False
    ) -> "KernelRows":
        """Return all instances, and the kernel means of the bags if asked for."""
        n_bags = len(offsets) - 1 if means else 0
        return cls(kernel, X, offsets, np.arange(X.shape[0] + n_bags))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.points)

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Precision of the inner products."""
        is_single = self.X.dtype == np.float32 and not self.is_double
        return np.dtype(np.float32 if is_single else np.float64)

    def take(self, rows: Integers) -> "KernelRows":
        """Return some of the rows."""
        return replace(self, points=self.points[rows])

    def effort(self, rows: Integers) -> Integers:
        """Return how many instances are behind each row."""
        n, sizes = self.X.shape[0], np.diff(self.offsets)
        points = self.points[rows]
        return np.where(points < n, 1, sizes[np.maximum(points - n, 0)])

    def diagonal(self) -> Floats:
        """Return the squared norm of each row."""
        n = self.X.shape[0]
        out = np.empty(self.n)
        is_mean = self.points >= n
        out[~is_mean] = self.kernel.diagonal(self.X)[self.points[~is_mean]]
        if is_mean.any():
            bags = self.points[is_mean] - n
            starts, stops = self.offsets[bags], self.offsets[bags + 1]
            out[is_mean] = set_self(self.kernel, self.X, starts, stops) / (stops - starts) ** 2.0
        return out.astype(self.dtype).astype(np.float64)

    def block(
        self, rows: Integers, columns: Integers | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the inner products of some rows with some others or all."""
        left_rows, left_bounds = self._instances(self.points[rows])
        right = self.points if columns is None else self.points[columns]
        left = self.X[left_rows].astype(self.dtype, copy=False)
        right_rows, of_points = self._columns(right)
        if out is not None and left_bounds is None and (right < self.X.shape[0]).all():
            return self.kernel.gram(left, self.X[right_rows], out=out)
        values = of_points(self.kernel.gram(left, self.X[right_rows]))
        if left_bounds is not None:
            values = _means(values.T, left_bounds).T
        return written(values.astype(self.dtype, copy=False), out)

    def fill_square(self, out: NDArray[Any]) -> bool:
        """Write all inner products, one half of them as a mirror image of the other."""
        n = self.X.shape[0]
        if (self.points < n).all():
            self.kernel.gram(self.X[self.points].astype(self.dtype, copy=False), out=out)
            return True
        if not self._begins_with_instances(self.points):
            return False
        self.kernel.gram(self.X.astype(self.dtype, copy=False), out=out[:n, :n])
        fill_means(out, self.offsets, self.points[n:] - n)
        return True

    def products(self, rows: Integers, coef: Floats, columns: Integers | None = None) -> Floats:
        """Return the inner products of a sum of rows with some rows or all."""
        right, of_points = self._columns(self.points if columns is None else self.points[columns])
        left, left_bounds = self._instances(self.points[rows])
        if left_bounds is not None:
            sizes = np.diff(left_bounds)
            coef = np.repeat(coef / sizes, sizes)
        some = self.X[left].astype(self.dtype, copy=False)
        values = self.kernel.expand(self.X[right], some, coef[None])[:, 0]
        products: Floats = of_points(values[None])[0]
        return products

    def _columns(self, points: Integers) -> tuple[Integers | slice, Callable[[Any], Any]]:
        """Return the instances behind points, and what makes columns of points of theirs.

        Where all instances are among the points, values for them serve the means as well.
        """
        n = self.X.shape[0]
        if len(points) > n and self._begins_with_instances(points):
            bags = points[n:] - n
            return slice(None), lambda values: np.hstack(
                [values, _means(values, self.offsets)[:, bags]]
            )
        rows, bounds = self._instances(points)
        return rows, lambda values: values if bounds is None else _means(values, bounds)

    def _begins_with_instances(self, points: Integers) -> bool:
        """Tell whether points are all instances in their order, then means of bags if any."""
        n = self.X.shape[0]
        return np.array_equal(points[:n], np.arange(n)) and bool((points[n:] >= n).all())

    def _instances(self, points: Integers) -> tuple[Integers | slice, Integers | None]:
        """Return the instances behind points, and where those of each point begin."""
        n = self.X.shape[0]
        if len(points) == n and np.array_equal(points, np.arange(n)):
            return slice(None), None
        is_mean = points >= n
        if not is_mean.any():
            return points, None
        bags = np.where(is_mean, points - n, 0)
        starts = np.where(is_mean, self.offsets[bags], points)
        lengths = np.where(is_mean, self.offsets[bags + 1] - self.offsets[bags], 1)
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        return segment_rows(starts, starts + lengths), bounds


def _means(block: NDArray[Any], bounds: Integers) -> Floats:
    """Return means of a block over ranges of its columns."""
    sums: Floats = np.add.reduceat(block, bounds[:-1], axis=1, dtype=np.float64)
    sums /= np.diff(bounds)
    return sums
