"""The nearest rows of pairs of segments, compiled."""

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def nearest_rows(
    rows_a: NDArray[np.floating],
    starts_a: Integers,
    stops_a: Integers,
    rows_b: NDArray[np.floating],
    starts_b: Integers,
    stops_b: Integers,
    places: Integers,
    squares: Floats,
) -> None:
    """Write for each pair of segments which rows of both are nearest, the first of several.

    Parameters
    ----------
    rows_a, rows_b : ndarray of shape (n_rows, n_features)
        Rows.
    starts_a, stops_a, starts_b, stops_b : ndarray of int of shape (n_pairs,)
        Where the segments of each pair begin and end.
    places : ndarray of int of shape (n_pairs, 2)
        The rows.
    squares : ndarray of shape (n_pairs,)
        Their squared distances.
    """
    for pair in range(len(squares)):
        best = np.inf
        for i in range(starts_a[pair], stops_a[pair]):
            for j in range(starts_b[pair], stops_b[pair]):
                total = 0.0
                for k in range(rows_a.shape[1]):
                    step = rows_a[i, k] - rows_b[j, k]
                    total += step * step
                if total < best:
                    best = total
                    places[pair, 0] = i
                    places[pair, 1] = j
        squares[pair] = best
