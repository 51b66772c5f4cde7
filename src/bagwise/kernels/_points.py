"""Gram matrices over points: instances, and behind them the kernel means of bags.

The kernel mean of a bag is the mean of its instances in feature space; its inner products are means
of kernel values.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint
from bagwise.kernels._instance import InstanceKernel
from bagwise.kernels._rows import Matrix, common_dtype, slices

_STRIP = 256  # rows whose means are taken at a time


def point_gram(
    kernel: InstanceKernel, X: Matrix, offsets: Integers, *, means: bool = False
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


def fill_means(gram: NDArray[Any], offsets: Integers, bags: Integers | None = None) -> None:
    """Fill in the rows and columns of the means of bags behind those of the instances.

    ``bags`` says of which; all by default.
    """
    n = int(offsets[-1])
    chosen = slice(None) if bags is None else bags
    for rows in slices(n, _STRIP):
        checkpoint()
        gram[rows, n:] = _bag_means(gram[rows, :n], offsets)[:, chosen]
    gram[n:, :n] = gram[:n, n:].T
    square = _bag_means(gram[n:, :n], offsets)[:, chosen]
    gram[n:, n:] = 0.5 * (square + square.T)


def _bag_means(block: NDArray[Any], offsets: Integers) -> Floats:
    """Return means of a block over the columns of each bag."""
    sums: Floats = np.add.reduceat(block, offsets[:-1], axis=1, dtype=np.float64)
    sums /= np.diff(offsets)
    return sums
