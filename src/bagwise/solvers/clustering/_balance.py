"""The balance of clusters along a direction: a range that their weights must keep within."""

from math import inf

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats
from bagwise.solvers.clustering._bag_mmc import balance_range


class Balance:
    """The constraint that no two clusters are far apart along a direction, for cutting planes.

    Weights of ``k`` clusters are one vector, cluster after cluster. Their ``k`` products with a
    unit vector must not differ by more than a width. With a width of 0 the unit vector is out of
    reach; then there are no rows to add, but `reachable` takes it out of every plane.

    Parameters
    ----------
    unit : ndarray of shape (d,)
        The direction, of length 1.
    width : float
        The range allowed.
    length : float
        Length of the direction as it was given.
    n_clusters : int
        Number of clusters.
    """

    def __init__(self, unit: Floats, width: float, length: float, n_clusters: int) -> None:
        self.unit, self.width, self.length, self._k = unit, width, length, n_clusters

    @classmethod
    def of(
        cls, solver: str, direction: ArrayLike | None, balance: float, n_clusters: int, d: int
    ) -> "Balance | None":
        """Return the constraint, or None where there is nothing to keep to."""
        unit, width, length = balance_range(solver, d, balance, direction)
        return None if width == inf else cls(unit, width, length, n_clusters)

    def violated(self, w: Floats) -> tuple[Floats, float] | None:
        """Return the inequality of the two clusters that are farthest apart, if it is broken."""
        along = w.reshape(self._k, -1) @ self.unit
        high, low = int(along.argmax()), int(along.argmin())
        if self.width == 0.0 or along[high] - along[low] <= self.width:
            return None
        row = np.zeros((self._k, len(self.unit)))
        row[high], row[low] = self.unit, -self.unit
        return row.ravel(), self.width

    def project(self, w: Floats) -> Floats:
        """Return the nearest weights that keep the balance."""
        weights = w.reshape(self._k, -1)
        excess = self.excess(weights @ self.unit)
        return (weights - np.outer(excess, self.unit)).ravel() if excess.any() else w

    def excess(self, along: Floats) -> Floats:
        """Return ``k`` numbers less the nearest that lie within the range."""
        from bagwise.solvers.clustering._bag_mmc_kernels import limit_range

        out = np.empty(self._k)
        limit_range(along, self.width, out)
        return out

    def reachable(self, w: Floats) -> Floats:
        """Return the part of a vector that weights can follow: all of it, unless the width is 0."""
        if self.width > 0.0:
            return w
        parts = w.reshape(self._k, -1)
        return (parts - np.outer(parts @ self.unit, self.unit)).reshape(w.shape)
