"""Gram matrices over points: instances, and behind them the kernel means of bags.

The kernel mean of a bag is the mean of its instances in feature space; its inner products are means
of kernel values.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Integers
from bagwise._threads import checkpoint
from bagwise.kernels._instance import InstanceKernel
from bagwise.kernels._rows import Matrix, common_dtype, slices

_STRIP = 256  # bags whose means are taken at a time


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
    from bagwise.kernels._block_kernels import row_means

    n = int(offsets[-1])
    chosen = np.arange(len(offsets) - 1) if bags is None else bags
    starts, stops = offsets[chosen], offsets[chosen + 1]
    for some in slices(len(chosen), _STRIP):
        checkpoint()
        row_means(gram[:n, :n], starts[some], stops[some], gram[n:, :n][some])
    gram[:n, n:] = gram[n:, :n].T
    square = np.empty((len(chosen), len(chosen)))
    row_means(gram[:n, n:], starts, stops, square)
    gram[n:, n:] = 0.5 * (square + square.T)
