"""Orthonormal directions along which one spread is large and another one small."""

import numpy as np
from scipy import linalg

from bagwise._arrays import Floats

_MOST = 50  # rounds; a few are enough, as convergence is quadratic
_EXACT = 1e-12  # relative change of the ratio at which it ends
_NOTHING = 1e-9  # of the spread before: new directions along which nothing varies are no better
_ROUNDING = 1e-14  # of the spread in all directions: less may be rounding, and so is its ratio


def trace_ratio(
    between: Floats, within: Floats, n_components: int, start: Floats | None = None
) -> Floats:
    r"""Return orthonormal rows A that maximise :math:`\mathrm{tr}(AVA') / \mathrm{tr}(AUA')`.

    Each round takes the leading eigenvectors of :math:`V - s U`, where s is the ratio so far.

    Parameters
    ----------
    between, within : ndarray of shape (n_features, n_features)
        V and U, positive semidefinite.
    n_components : int
        Number of rows.
    start : ndarray of shape (n_components, n_features), optional
        Directions that are kept if none are better.
    """
    last = len(between) - n_components, len(between) - 1
    best, top, bottom, whole = start, 0.0, 1.0, float(np.trace(between))
    if best is not None:
        top, bottom = spread(best, between), spread(best, within)
    for _ in range(_MOST):
        if bottom <= np.finfo(np.float64).eps * top:
            break
        ratio = top / bottom
        vectors = linalg.eigh(between - ratio * within, subset_by_index=last, check_finite=False)[1]
        A = np.ascontiguousarray(vectors[:, ::-1].T)
        before, top, bottom = top, spread(A, between), spread(A, within)
        if best is not None and top <= max(_NOTHING * before, _ROUNDING * whole):
            break
        best = A
        if top <= (1.0 + _EXACT) * ratio * bottom:
            break
    assert best is not None
    return best


def spread(A: Floats, matrix: Floats) -> float:
    r"""Return :math:`\mathrm{tr}(A M A')`."""
    return float(np.vdot(A @ matrix, A))
