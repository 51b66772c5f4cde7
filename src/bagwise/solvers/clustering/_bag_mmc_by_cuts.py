"""Maximum-margin clusters of bags, for given key instances and clusters, by cutting planes."""

from math import inf, nan
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats
from bagwise.solvers._checks import check_limits, check_tol, checked_array
from bagwise.solvers.clustering._bag_mmc import BagMMCResult, MarginProblem
from bagwise.solvers.clustering._balance import Balance
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.programs._cutting_planes import Cut, minimize_by_cuts


def solve_bag_mmc_by_cuts(
    instances: Any,
    cluster: ArrayLike,
    n_clusters: int,
    *,
    C: float = 1.0,
    balance: float = inf,
    direction: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    alpha0: ArrayLike | None = None,
    tol: float = 1e-3,
    max_iter: int = 300,
    eps: float = 0.0,
) -> BagMMCResult:
    """Solve the problem of `solve_bag_mmc` by the cutting planes of Zhang et al.

    Parameters
    ----------
    instances, cluster, n_clusters, C, balance, direction, rows, tol
        As for `solve_bag_mmc`.
    alpha0 : array-like of shape (n,), optional
        Where to start; it makes the first cut.
    max_iter : int
        Most cuts.
    eps : float
        Stop also when the gap is at most ``C * eps``, the paper's rule (its second epsilon).

    Returns
    -------
    BagMMCResult
        ``objective`` is the true primal value at ``coef``, the best point that was seen; ``x`` and
        ``multiplier`` are those of the lower bound. When the gap is small they belong together as
        in `solve_bag_mmc`, but not to the last digit.

    References
    ----------
    D. Zhang, F. Wang, L. Si and T. Li, "Maximum margin multiple instance clustering with
    applications to image and text clustering", Sections 3.4.3 to 3.4.5. The balance rows are
    divided by the length of their direction and not by ``balance``, which may be 0.
    """
    started = perf_counter()
    name = "solve_bag_mmc_by_cuts"
    check_limits(name, tol, max_iter, least=1)
    check_tol(name, eps, "eps")
    matrix = FeatureRows.of(instances, rows, owner=name)
    if not np.isfinite(matrix.square_norms().sum()):
        raise ValueError(matrix.not_finite())
    checked = MarginProblem.checked(name, matrix, cluster, n_clusters, C, balance, direction)
    planes = _RowPlanes(checked, Balance.of(name, direction, balance, n_clusters, matrix.d))
    start = []
    if alpha0 is not None:
        share = checked_array(name, "alpha0", alpha0, (matrix.n,)) * (matrix.n / C)
        start.append(planes.cut_of(np.clip(share, 0.0, 1.0)))
    found = minimize_by_cuts(
        planes.loss,
        n_clusters * matrix.d,
        C=C,
        side=planes.side,
        start=start,
        tol=tol,
        eps=eps,
        max_iter=max_iter,
    )
    alpha = planes.alpha(found.multiplier)
    coef = found.x.reshape(n_clusters, -1)
    return BagMMCResult(
        x=alpha,
        coef=coef,
        multiplier=planes.multiplier(alpha),
        margin=planes.margin(coef),
        objective=found.objective,
        lower_bound=found.lower_bound,
        residual=found.residual,
        status=found.status,
        n_iter=found.n_iter,
        history=found.history,
        gap_history=found.gap_history,
        solve_time=perf_counter() - started,
    )


class _RowPlanes:
    """The mean hinge loss of rows in fixed clusters, as planes."""

    def __init__(self, problem: MarginProblem, side: Balance | None) -> None:
        matrix, k = problem.matrix, problem.n_clusters
        self.side, self._n, self._k, self._kappa = side, matrix.n, k, k / (k - 1)
        self._members = [np.flatnonzero(problem.cluster == p) for p in range(k)]
        self._parts = [matrix.take(members) for members in self._members]
        self._shares: list[Floats] = []  # in which each row is part of each plane

    def loss(self, w: Floats) -> Cut:
        """Return the loss and the plane of the rows inside the margin."""
        margin = self.margin(w.reshape(self._k, -1))
        value = float(np.maximum(0.0, 1.0 - margin).mean())
        return self.cut_of((margin <= 1.0).astype(np.float64), value)

    def cut_of(self, share: Floats, value: float = nan) -> Cut:
        """Return the plane of rows that are part of it with shares between 0 and 1."""
        self._shares.append(share)
        slope = self._sums(share).ravel() / -self._n
        if self.side is not None:
            slope = self.side.reachable(slope)
        return Cut(slope=slope, offset=float(share.mean()), value=value)

    def margin(self, coef: Floats) -> Floats:
        """Return ``kappa (w_r - mean_p w_p) . x`` of each row."""
        weights = self._kappa * (coef - coef.mean(axis=0))
        out = np.empty(self._n)
        for part, members, w in zip(self._parts, self._members, weights, strict=True):
            out[members] = part.dot(w)
        return out

    def alpha(self, multiplier: Floats) -> Floats:
        """Return the dual variables of rows that planes with these multipliers amount to."""
        total = np.zeros(self._n)
        for factor, share in zip(multiplier, self._shares, strict=False):
            total += factor / self._n * share
        return total

    def multiplier(self, alpha: Floats) -> Floats:
        """Return the multipliers of the balance that go with dual variables of rows."""
        if self.side is None:
            return np.zeros(self._k)
        return self.side.excess(self._sums(alpha) @ self.side.unit) / self.side.length

    def _sums(self, factor: Floats) -> Floats:
        """Return ``kappa (S_p - mean_q S_q)``, ``S_p`` the sum of cluster p times the factors."""
        pairs = zip(self._parts, self._members, strict=True)
        sums = np.stack([part.combine(factor[members]) for part, members in pairs])
        out: Floats = self._kappa * (sums - sums.mean(axis=0))
        return out
