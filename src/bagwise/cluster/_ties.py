"""Distances that differ by rounding only, made equal."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise.base import DISTANCE_ROUNDING


def scores_of(distance: NDArray[Any], dtype: Any = np.float64) -> Floats:
    """Return scores that are the higher, the smaller the distance.

    They are the negative distances, but those that equal the smallest of their row up to rounding
    become equal; how far other clusters are does not matter. So the first of two medoids or centres
    that are the same is chosen in the fit and in every prediction.

    Parameters
    ----------
    distance : ndarray of shape (n_rows, n_clusters)
        Distances.
    dtype : dtype
        The precision that they were computed in.
    """
    values = np.asarray(distance, np.float64)
    least = values.min(axis=1, keepdims=True)
    slack = DISTANCE_ROUNDING.get(np.dtype(dtype), 1e-9) * least
    return -np.where(values <= least + slack, least, values)
