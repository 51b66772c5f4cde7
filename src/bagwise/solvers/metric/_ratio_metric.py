"""Directions along which some differences are short and others long, by their norms (M-C2B)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats
from bagwise.solvers._checks import check_at_least, check_limits, checked_array
from bagwise.solvers._majorize import majorize_minimize
from bagwise.solvers._result import Certificate
from bagwise.solvers.metric._trace_ratio import trace_ratio

_SOLVER = "solve_ratio_metric"
_STEPS = 50  # of each surrogate
_SHORT = 1e-9  # of the largest norm: shorter ones count as this where they are divided by


@dataclass(frozen=True, kw_only=True, eq=False)
class RatioMetricResult(Certificate):
    r"""Orthonormal directions.

    Parameters
    ----------
    components : ndarray of shape (n_components, n_features)
        The directions :math:`U^\top`.
    """

    components: Floats


def solve_ratio_metric(
    rows: ArrayLike,
    near: ArrayLike,
    far: ArrayLike,
    n_components: int,
    *,
    tol: float = 1e-4,
    max_iter: int = 100,
) -> RatioMetricResult:
    r"""Learn directions along which the rows that should be short are, and others are long.

    .. math:: \min_U \lambda(U) = \frac{\sum_i a_i \|U^\top v_i\|}{\sum_i b_i \|U^\top v_i\|}, \quad
              U^\top U = I

    Parameters
    ----------
    rows : array-like of shape (n_rows, n_features)
        The rows :math:`v_i`.
    near, far : array-like of shape (n_rows,)
        Their weights :math:`a_i` and :math:`b_i`.
    n_components : int
        Number of directions.
    tol : float
        Rounds end when one lowers :math:`\lambda` by at most this share of it.
    max_iter : int
        Most rounds.

    Returns
    -------
    RatioMetricResult
        The directions. ``history`` holds :math:`\lambda`, which never rises.

    Notes
    -----
    The start maximises the ratio of squares. A round bounds the norms above, by parabolas, and
    below, by tangents; what remains is a quadratic function of U. It is bounded in turn by a linear
    one, whose minimum is the orthonormal factor of a polar decomposition. The round then goes on in
    the direction of its step, further from round to round, where that lowers :math:`\lambda` more.

    Without the constraint a single direction is always optimal: see Notes of `MC2B`.
    """
    V = checked_array(_SOLVER, "rows", rows, (None, None))
    a = checked_array(_SOLVER, "near", near, (len(V),))
    b = checked_array(_SOLVER, "far", far, (len(V),))
    check_limits(_SOLVER, tol, max_iter)
    check_at_least(_SOLVER, "n_components", n_components, 1)
    problem = _Norms(V, a, b)
    start = problem.start(min(n_components, V.shape[1]))
    found = majorize_minimize(problem, start, tol=tol, max_iter=max_iter)
    components = np.ascontiguousarray(found.x.U.T)
    return RatioMetricResult(**vars(found.certificate), components=components)


class _Point(NamedTuple):
    """Directions U, the rows along them, and the lengths of these."""

    U: Floats
    mapped: Floats
    norms: Floats


class _Surrogate(NamedTuple):
    """The function tr(U' P U) - 2 tr(U' S)."""

    P: Floats
    S: Floats


class _Norms:
    """The ratio in the form of `majorize_minimize`."""

    def __init__(self, V: Floats, a: Floats, b: Floats) -> None:
        self.V, self.a, self.b = V, a, b
        self.reach = 2.0  # how many steps a step is stretched to

    def start(self, n_components: int) -> _Point:
        """Return the best directions for squares."""
        near, far = (self._squares(weight) for weight in (self.a, self.b))
        return self._point(np.asarray(trace_ratio(far, near, n_components).T))

    def value(self, x: _Point) -> float:
        """Return the ratio; 0 if there is nothing to be kept apart."""
        top, bottom = float(self.a @ x.norms), float(self.b @ x.norms)
        return top / bottom if bottom > 0 else 0.0

    def majorize(self, x: _Point) -> _Surrogate:
        """Bound the numerator less the ratio times the denominator."""
        norms = np.maximum(x.norms, _SHORT * x.norms.max(initial=0.0) or 1.0)
        pull = 0.5 * self.value(x) * self.b / norms
        return _Surrogate(
            self._squares(self.a / (2.0 * norms)), self.V.T @ (x.mapped * pull[:, None])
        )

    def minimize(self, surrogate: _Surrogate, x: _Point, tol: float) -> _Point:
        """Go to its minimum, and further in the same direction if the ratio is lower there."""
        near = self._point(self._lowest(surrogate, x.U, tol))
        far = self._point(_orthonormal(x.U + self.reach * (near.U - x.U)))
        if self.value(far) < self.value(near):
            self.reach *= 2.0
            return far
        self.reach = max(2.0, 0.5 * self.reach)
        return near

    def _lowest(self, surrogate: _Surrogate, U: Floats, tol: float) -> Floats:
        """Take steps that lower the surrogate, as long as they do."""
        P, S = surrogate
        bend, value = float(np.linalg.eigvalsh(P)[-1]), np.inf
        for _ in range(_STEPS):
            U = _orthonormal(bend * U - P @ U + S)
            before, value = value, float(np.vdot(P @ U, U) - 2.0 * np.vdot(S, U))
            if not before - value > tol * abs(value):
                break
        return U

    def _point(self, U: Floats) -> _Point:
        mapped = self.V @ U
        return _Point(U, mapped, np.sqrt(np.einsum("ij,ij->i", mapped, mapped)))

    def _squares(self, weight: Floats) -> Floats:
        """Return the weighted sum of the outer products of the rows with themselves."""
        scaled = self.V * np.sqrt(weight)[:, None]
        return np.asarray(scaled.T @ scaled)


def _orthonormal(matrix: Floats) -> Floats:
    """Return the nearest matrix with orthonormal columns."""
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left @ right)
