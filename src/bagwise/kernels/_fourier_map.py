"""Random Fourier features of kernels that depend on the difference of two instances.

Rahimi and Recht (2007): such a kernel is the mean of ``2 cos(<w, x> + b) cos(<w, y> + b)`` over
random frequencies ``w`` and phases ``b``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise._threads import ordered_map
from bagwise.kernels._instance import InstanceKernel
from bagwise.kernels._rows import BLOCK, Matrix, canonical_rows, common_dtype, converted, slices


@dataclass(frozen=True)
class FourierMap:
    """Features of instances whose inner products approximate a kernel: sqrt(2 / r) cos(XW + b).

    Parameters
    ----------
    kernel : InstanceKernel
        The kernel.
    weights : ndarray of shape (n_features, rank)
        The frequencies ``W``.
    offset : ndarray of shape (rank,)
        The phases ``b``.
    """

    kernel: InstanceKernel
    weights: Floats
    offset: Floats

    @property
    def rank(self) -> int:
        """The number of features."""
        return len(self.offset)

    def transform(self, X: Matrix, *, n_threads: int | None = None) -> NDArray[Any]:
        """Return the features of the rows of ``X``.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_instances, n_features)
            Instances.
        n_threads : int or None
            Number of threads; it does not change the result.

        Returns
        -------
        ndarray of shape (n_instances, rank)
            In single precision if ``X`` is, else in double precision.
        """
        X = canonical_rows(X)
        if X.shape[1] != len(self.weights):
            msg = f"X must have {len(self.weights)} features, as the map has. Got {X.shape[1]}."
            raise ValueError(msg)
        dtype = common_dtype(X)
        weights, offset = self.weights.astype(dtype), self.offset.astype(dtype)
        factor = dtype.type(np.sqrt(2.0 / self.rank))
        out = np.empty((X.shape[0], self.rank), dtype)

        def fill(tile: tuple[slice, slice]) -> None:
            rows, columns = tile
            phases = converted(X[rows], dtype) @ weights[:, columns]
            phases += offset[columns]
            np.cos(phases, out=phases)
            np.multiply(phases, factor, out=out[rows, columns])

        grid = (
            (rows, columns)
            for rows in slices(len(out), BLOCK)
            for columns in slices(self.rank, 2 * BLOCK)
        )
        for _ in ordered_map(fill, grid, n_threads=n_threads):
            pass
        return out


def random_fourier(
    kernel: InstanceKernel, n_features: int, *, rank: int, rng: np.random.Generator
) -> FourierMap:
    """Draw a Fourier map of a kernel.

    Parameters
    ----------
    kernel : InstanceKernel
        ``"rbf"`` (Gaussian frequencies) or ``"laplacian"`` (Cauchy frequencies), with a
        ``gamma`` above 0.
    n_features : int
        Number of features of an instance.
    rank : int
        Number of features of the map. The inner product of two instances is off by more than
        ``t`` with a probability of at most ``2 exp(-rank t^2 / 8)``.
    rng : numpy.random.Generator
        Draws the frequencies, then the phases.

    Returns
    -------
    FourierMap
        The map.
    """
    if kernel.name not in ("rbf", "laplacian"):
        msg = f'random_fourier needs the kernel "rbf" or "laplacian". Got {kernel.name!r}.'
        raise ValueError(msg)
    if not (kernel.gamma > 0 and np.isfinite(kernel.gamma)):
        msg = f"random_fourier needs a kernel with finite gamma above 0. Got {kernel.gamma}."
        raise ValueError(msg)
    if rank < 1:
        msg = f"rank of random_fourier must be at least 1. Got {rank}."
        raise ValueError(msg)
    if kernel.name == "rbf":
        weights = np.sqrt(2.0 * kernel.gamma) * rng.standard_normal((n_features, rank))
    else:
        weights = kernel.gamma * rng.standard_cauchy((n_features, rank))
    return FourierMap(kernel, weights, rng.uniform(0.0, 2.0 * np.pi, rank))
