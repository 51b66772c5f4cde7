"""The metric under which bags that share a label have near instances: logistic loss (MildML)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bagwise._arrays import Floats, Integers
from bagwise.solvers._checks import check_limits, check_tol, checked_array
from bagwise.solvers._lbfgs import minimize_lbfgs
from bagwise.solvers._result import Certificate
from bagwise.solvers.metric._bag_pairs import BagPairs, nearest

_SOLVER = "solve_pair_metric"


@dataclass(frozen=True, kw_only=True, eq=False)
class PairMetricResult(Certificate):
    """A linear map, and the squared distance up to which bags are alike.

    Parameters
    ----------
    components : ndarray of shape (n_components, n_features)
        The map :math:`L`.
    threshold : float
        The distance :math:`b`.
    """

    components: Floats
    threshold: float


def solve_pair_metric(
    rows: NDArray[Any],
    offsets: Integers,
    pairs: BagPairs,
    start: ArrayLike,
    *,
    threshold: float = 1.0,
    alpha: float = 0.0,
    tol: float = 1e-4,
    max_iter: int = 100,
) -> PairMetricResult:
    r"""Learn a map after which bags are near if and only if they share a label.

    .. math:: \min_{L, b} \; \frac{1}{2 P} \sum_{(d, e) \in \mathcal P} w_{de}
              \log(1 + e^{D_L(d, e) - b}) + \frac{1}{2 N} \sum_{(d, e) \in \mathcal N} w_{de}
              \log(1 + e^{b - D_L(d, e)}) + \frac{\alpha}{2 r} \|L\|_F^2, \quad
              D_L(d, e) = \min_{x \in d, y \in e} \|L (x - y)\|^2

    over the pairs of bags that share a label, of weight P, and those that share none, of weight N;
    r is the number of components.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        The instances of all bags.
    offsets : ndarray of int of shape (n_bags + 1,)
        Rows at which bags begin, and the number of rows.
    pairs : BagPairs
        Pairs of bags.
    start : array-like of shape (n_components, n_features)
        The map to start from.
    threshold : float
        The distance to start from.
    alpha : float
        The weight :math:`\alpha`. With 0 there is no minimum where the pairs can be separated.
    tol : float
        The descent ends when an iteration lowers the loss by at most this much.
    max_iter : int
        Most iterations.

    Returns
    -------
    PairMetricResult
        The map. ``history`` holds the loss, which never rises. The loss is neither convex nor,
        where another pair of instances becomes the nearest, smooth: it is a local minimum at best,
        and ``STALLED`` means that no step along the gradient lowered it.
    """
    rows = checked_array(_SOLVER, "rows", rows, (int(offsets[-1]), None))
    L = checked_array(_SOLVER, "start", start, (None, rows.shape[1]))
    check_limits(_SOLVER, tol, max_iter)
    check_tol(_SOLVER, alpha, "alpha")
    loss = PairLoss(rows, offsets, pairs, len(L), alpha)
    point = np.append(L.ravel(), threshold)
    # One block: the path does not depend on the axes of the features.
    [found] = minimize_lbfgs(loss, point[None], tol=tol, max_iter=max_iter, block=len(point))
    return PairMetricResult(
        **vars(found.certificate),
        components=found.x[:-1].reshape(L.shape),
        threshold=float(found.x[-1]),
    )


class PairLoss:
    """The loss, at one point at a time: a map, row after row, and the threshold."""

    def __init__(
        self, rows: Floats, offsets: Integers, pairs: BagPairs, n_components: int, alpha: float
    ) -> None:
        self.penalty = alpha / n_components
        self.rows, self.shape = rows, (n_components, rows.shape[1])
        self.ends = [(offsets[bag], offsets[bag + 1]) for bag in pairs.bags.T]
        self.sign = np.where(pairs.is_alike, 1.0, -1.0)
        self.weight = pairs.weight.copy()
        for kind in (pairs.is_alike, ~pairs.is_alike):
            self.weight[kind] /= 2.0 * max(self.weight[kind].sum(), np.finfo(float).tiny)

    def values(self, X: Floats, starts: Integers) -> Floats:
        """Return the loss at each of several points; there is one."""
        [point] = X
        L = point[:-1].reshape(self.shape)
        mapped = self.rows @ L.T
        places, squares = nearest(mapped, self.ends[0], mapped, self.ends[1])
        lead = self.sign * (squares - point[-1])
        pull = self.sign * self.weight * expit(lead)  # the derivative by the squared distance
        self._slope = L, mapped, places, pull
        size = 0.5 * self.penalty * float(np.vdot(L, L))
        return np.array([self.weight @ np.logaddexp(0.0, lead) + size])

    def gradients(self, starts: Integers) -> Floats:
        """Return the gradient there, if each pair of bags keeps its nearest instances."""
        L, mapped, places, pull = self._slope
        i, j = places.T
        n = len(mapped)
        between = sp.coo_array((pull, (i, j)), shape=(n, n)).tocsr()
        between = between + between.T
        degree = np.bincount(i, pull, n) + np.bincount(j, pull, n)
        change = degree[:, None] * mapped - between @ mapped
        slope = 2.0 * change.T @ self.rows + self.penalty * L
        return np.append(slope.ravel(), -pull.sum())[None]
