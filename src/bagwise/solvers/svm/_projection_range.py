"""Between which bounds projection constraints say something and can all be met."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint
from bagwise.solvers._checks import check_limits
from bagwise.solvers.operators._row_operator import RowOperator

_RATE = 8.0  # at which weights of bags change in the first round
_FEW = 8  # instances for which all eigenvectors are computed
_EIGEN_TOL = 1e-6


@dataclass(frozen=True)
class ProjectionRange:
    r"""What bounds :math:`\lambda` on the mean squared distance from a line leave possible.

    Parameters
    ----------
    impossible : float
        Below it no direction meets all constraints; proven.
    met : float
        At it the direction that was found meets all of them.
    vacuous : float
        From it on every direction does.
    n_iter : int
        Directions tried.
    """

    impossible: float
    met: float
    vacuous: float
    n_iter: int


def projection_range(
    points: RowOperator,
    starts: Integers,
    stops: Integers,
    spreads: Floats,
    *,
    centred: bool,
    tol: float = 1e-2,
    max_iter: int = 100,
) -> ProjectionRange:
    r"""Find for which :math:`\lambda` some direction comes close to the instances of every bag.

    The constraint of bag :math:`i` with :math:`n_i` instances and spread :math:`o_i` is
    :math:`o_i - \|A_i w\|^2 \le \lambda n_i` for a unit vector :math:`w`. For any weights
    :math:`t` of the bags that sum to 1, every feasible :math:`\lambda` is at least

    .. math:: \sum_i t_i o_i / n_i - \lambda_{\max}\Bigl(\sum_i t_i A_i^\top A_i / n_i\Bigr)

    The weights of bags whose constraint is missed most grow from round to round.

    Parameters
    ----------
    points : RowOperator
        Instances by their inner products.
    starts, stops : ndarray of int of shape (n_bags,)
        Where the bags begin and end among the points.
    spreads : ndarray of shape (n_bags,)
        The :math:`o_i`.
    centred : bool
        Whether :math:`A_i` has the mean of the bag subtracted.
    tol : float
        How close bound and direction have to come, as a share of the vacuous value.
    max_iter : int
        Most directions.
    """
    check_limits("projection_range", tol, max_iter)
    bags = _Bags(points, starts, stops, centred=centred)
    mean_spreads = spreads / bags.sizes
    vacuous = float(mean_spreads.max(initial=0.0))
    if vacuous <= 0.0:
        return ProjectionRange(0.0, 0.0, 0.0, 0)
    weights = np.full(len(spreads), 1.0 / len(spreads))
    vector: Floats | None = None
    proven, met, n_iter = 0.0, vacuous, 0
    for n_iter in range(1, max_iter + 1):
        checkpoint()
        largest, vector, shown = bags.widest(weights, vector)
        proven = max(proven, float(weights @ mean_spreads) - largest)
        missed = mean_spreads - shown
        met = min(met, float(missed.max()))
        if met - proven <= tol * vacuous:
            break
        weights *= np.exp(_RATE / np.sqrt(n_iter) * (missed - missed.max()) / vacuous)
        weights /= weights.sum()
    return ProjectionRange(proven, met, vacuous, n_iter)


class _Bags:
    """Instances of some bags, each about the mean of its bag or about 0."""

    def __init__(
        self, points: RowOperator, starts: Integers, stops: Integers, *, centred: bool
    ) -> None:
        self.points, self.centred, self.sizes = points, centred, stops - starts
        self.bounds = np.concatenate([[0], np.cumsum(self.sizes)])
        first = np.repeat(starts - self.bounds[:-1], self.sizes)
        self.inside = np.arange(self.bounds[-1]) + first

    def widest(self, weights: Floats, start: Floats | None) -> tuple[float, Floats, Floats]:
        """Return what the best direction shows of weighted bags, that direction, and of each bag.

        The first is the largest eigenvalue, and a hair more, so that it is a bound.
        """
        n, root = len(self.inside), np.repeat(np.sqrt(weights / self.sizes), self.sizes)

        def times(x: Floats) -> Floats:
            return root * self._about(self._products(self._about(root * x)))

        if n < _FEW:
            matrix = np.column_stack([times(unit) for unit in np.eye(n)])
            values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        else:
            operator = LinearOperator((n, n), matvec=times, dtype=np.float64)
            begin = 1.0 + np.arange(n) / n if start is None else start
            values, vectors = eigsh(operator, k=1, which="LA", v0=begin, tol=_EIGEN_TOL)
        vector = vectors[:, -1]
        coef = self._about(root * vector)
        along = self._products(coef)
        squared = float(coef @ along)
        seen = np.add.reduceat(self._about(along) ** 2, self.bounds[:-1])
        shown = seen / (squared * self.sizes) if squared > 0.0 else np.zeros(len(self.sizes))
        return float(values[-1]) * (1.0 + 10.0 * _EIGEN_TOL), vector, shown

    def _products(self, coef: Floats) -> Floats:
        return self.points.products(self.inside, coef, self.inside)

    def _about(self, along: Floats) -> Floats:
        if not self.centred:
            return along
        means = np.add.reduceat(along, self.bounds[:-1]) / self.sizes
        out: Floats = along - np.repeat(means, self.sizes)
        return out
