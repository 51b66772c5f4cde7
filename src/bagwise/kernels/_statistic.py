"""Bags as vectors of statistics of their instances.

The statistic kernel of Gärtner, Flach, Kowalczyk and Smola (2002) is an ordinary kernel between
these vectors; on minima and maxima it is the minimax kernel.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._arrays import Integers
from bagwise.bags import (
    segment_mean,
    segment_moments,
    segment_range,
    sparse_moments,
    sparse_range,
    sparse_sums,
)
from bagwise.kernels._rows import Matrix, canonical_rows, common_dtype
from bagwise.kernels._sides import Side

_STATISTICS = ("mean", "mean_std", "minmax")


def bag_statistics(
    X: Matrix,
    starts: Integers,
    stops: Integers,
    statistic: str = "minmax",
    *,
    n_threads: int | None = None,
) -> Matrix:
    """Return one vector of statistics per bag.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances, of which bags are ranges of rows. Entries that a sparse matrix does not
        store are zeros like any other.
    starts, stops : ndarray of int of shape (n_bags,)
        Bag ``i`` is ``X[starts[i]:stops[i]]``. Bags may come in any order and overlap, but none may
        be empty.
    statistic : {"minmax", "mean", "mean_std"}
        The minima of all features followed by their maxima; the means; the means followed by the
        standard deviations (of the bag itself: divided by its size, and 0 for one instance).
    n_threads : int or None
        Number of threads; it does not change the result.

    Returns
    -------
    ndarray or CSR array of shape (n_bags, 2 * n_features), or (n_bags, n_features) for the means
        In the precision of ``X``, and sparse if ``X`` is.

    Notes
    -----
    The polynomial minimax kernel divides inner products of these vectors by the number of features
    of an instance: ``InstanceKernel("poly", gamma=1 / n_features, coef0=1)``.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 2.0]])
    >>> bag_statistics(X, np.array([0, 2]), np.array([2, 3]))
    array([[0., 0., 1., 3.],
           [2., 2., 2., 2.]])
    """
    if statistic not in _STATISTICS:
        msg = (
            f"The statistic of bag_statistics must be one of {list(_STATISTICS)}. "
            f"Got {statistic!r}."
        )
        raise ValueError(msg)
    X = canonical_rows(X)
    side = Side.of("bag_statistics", X, starts, stops, None)
    empty = np.flatnonzero(side.starts == side.stops)
    if empty.size:
        msg = f"bag_statistics needs bags with at least one instance. Bag {empty[0]} has none."
        raise ValueError(msg)
    if sp.issparse(X):
        found = _sparse_statistics(side, statistic, n_threads)
    else:
        found = _dense_statistics(side, statistic, n_threads)
    return found.astype(common_dtype(X), copy=False)


def _dense_statistics(side: Side, statistic: str, n_threads: int | None) -> NDArray[Any]:
    values = side.matrix, side.starts, side.stops
    if statistic == "mean":
        return segment_mean(*values, n_threads=n_threads)
    if statistic == "minmax":
        return np.hstack(segment_range(*values, n_threads=n_threads))
    mean, squares = segment_moments(*values, n_threads=n_threads)
    squares /= (side.stops - side.starts)[:, None]
    return np.hstack([mean, np.sqrt(squares)])


def _sparse_statistics(side: Side, statistic: str, n_threads: int | None) -> Matrix:
    values = side.matrix, side.starts, side.stops
    if statistic == "minmax":
        return sparse_range(*values, n_threads=n_threads)
    if statistic == "mean_std":
        return sparse_moments(*values, n_threads=n_threads)
    return sparse_sums(*values, divisor=side.stops - side.starts, n_threads=n_threads)
