"""Cutting planes in the 1-slack form (Joachims 2006), and maximum-margin clusters by them.

The loss is one convex function below which planes are collected; each round minimises over the
planes so far and takes in the plane that touches the loss at the minimum. What is known then is an
interval: the true objective at the best point seen, and the minimum over the planes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._threads import checkpoint
from bagwise.solvers._bag_margin import BagMarginResult, MarginProblem
from bagwise.solvers._balance import Balance
from bagwise.solvers._checks import (
    check_at_least,
    check_limits,
    check_positive,
    check_tol,
    checked_array,
)
from bagwise.solvers._cut_program import CutProgram, SideConstraints
from bagwise.solvers._result import Result, Status
from bagwise.solvers._row_matrix import RowMatrix


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """A plane that touches a convex function at a point, and is below it elsewhere.

    Parameters
    ----------
    slope : ndarray of shape (n_weights,)
        A subgradient.
    offset : float
        The plane at 0: the function is at least ``offset + slope . w``.
    value : float
        The function at the point where the plane touches it.
    """

    slope: NDArray[np.float64]
    offset: float
    value: float


@dataclass(frozen=True, kw_only=True, eq=False)
class CutResult(Result):
    """Solution of `minimize_by_cuts`: ``x`` is the best point seen.

    Parameters
    ----------
    multiplier : ndarray of shape (n_cuts,)
        The multipliers of the cuts in the order in which they came, those of ``start`` first; not
        negative and of sum ``C`` at most.
    """

    multiplier: NDArray[np.float64]


def minimize_by_cuts(
    loss: Callable[[NDArray[np.float64]], Cut],
    n_weights: int,
    *,
    C: float = 1.0,
    side: SideConstraints | None = None,
    start: Sequence[Cut] = (),
    tol: float = 1e-3,
    eps: float = 0.0,
    max_iter: int = 1000,
) -> CutResult:
    r"""Minimise a convex loss with a quadratic regulariser by cutting planes.

    .. math::

        \min_{w \in S} \; \tfrac12 \|w\|^2 + C \, L(w), \qquad
        L(w) = \max\bigl(0, \max_s \; b_s + g_s^\top w\bigr)

    for planes :math:`(b_s, g_s)` that ``loss`` finds one by one.

    Parameters
    ----------
    loss : callable
        Takes weights and returns the `Cut` that touches the loss there. The loss is convex and
        not negative.
    n_weights : int
        Number of weights.
    C : float
        Weight of the loss, positive.
    side : SideConstraints, optional
        The set ``S``; by default every point.
    start : sequence of Cut
        Planes known to be below the loss. Without any the first cut is taken at 0.
    tol : float
        Stop when the gap is at most ``tol`` times the objective.
    eps : float
        Stop also when the gap is at most ``C * eps``: no plane that is left out is broken by more
        than ``eps``.
    max_iter : int
        Most cuts.

    Returns
    -------
    CutResult
        ``objective`` is the true value at ``x``, which lies in ``S``, ``lower_bound`` the minimum
        over the planes, ``residual`` their difference divided by the objective. ``n_iter`` counts
        cuts. ``STALLED``: the same planes came back, so rounding forbids to close the gap.
    """
    started = perf_counter()
    name = "minimize_by_cuts"
    check_limits(name, tol, max_iter, least=1)
    check_tol(name, eps, "eps")
    check_positive(name, "C", C)
    check_at_least(name, "n_weights", n_weights, 1)
    for cut in start:
        checked_array(name, "the slope of a cut in start", cut.slope, (n_weights,))
        checked_array(name, "the offset of a cut in start", cut.offset, ())
    program = CutProgram(n_weights, C, side)
    for cut in start:
        program.add_plane(cut.slope, cut.offset)
    best, objective, bound = np.zeros(n_weights), inf, 0.0
    multiplier = np.zeros(len(start))
    history, gaps = [], []
    status, n_iter, idle = Status.MAX_ITER, 0, 0
    for n_iter in range(1, max_iter + 1):
        checkpoint()
        point = program.solve()
        cut = loss(point.w)
        value = 0.5 * float(point.w @ point.w) + C * cut.value
        if value < objective:
            best, objective = point.w, value
        idle = idle + 1 if point.bound <= bound and n_iter > 1 else 0
        if point.bound >= bound or n_iter == 1:
            bound, multiplier = point.bound, point.multiplier
        history.append(objective)
        gaps.append(objective - bound)
        if gaps[-1] <= max(tol * objective, C * eps):
            status = Status.CONVERGED
            break
        if idle == 3:
            status = Status.STALLED
            break
        program.add_plane(cut.slope, cut.offset)
    multiplier = np.pad(multiplier, (0, program.n_planes - len(multiplier)))
    return CutResult(
        x=best,
        multiplier=multiplier,
        objective=objective,
        lower_bound=bound,
        residual=(objective - bound) / objective if objective > 0.0 else 0.0,
        status=status,
        n_iter=n_iter,
        history=np.array(history),
        gap_history=np.array(gaps),
        solve_time=perf_counter() - started,
    )


def solve_bag_margin_by_cuts(
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
) -> BagMarginResult:
    """Solve the problem of `solve_bag_margin` by the cutting planes of Zhang et al.

    Parameters
    ----------
    instances, cluster, n_clusters, C, balance, direction, rows, tol
        As for `solve_bag_margin`.
    alpha0 : array-like of shape (n,), optional
        Where to start; it makes the first cut.
    max_iter : int
        Most cuts.
    eps : float
        Stop also when the gap is at most ``C * eps``, the paper's rule (its second epsilon).

    Returns
    -------
    BagMarginResult
        ``objective`` is the true primal value at ``coef``, the best point that was seen; ``x`` and
        ``multiplier`` are those of the lower bound. When the gap is small they belong together as
        in `solve_bag_margin`, but not to the last digit.

    References
    ----------
    D. Zhang, F. Wang, L. Si and T. Li, "Maximum margin multiple instance clustering with
    applications to image and text clustering", Sections 3.4.3 to 3.4.5. The balance rows are
    divided by the length of their direction and not by ``balance``, which may be 0.
    """
    started = perf_counter()
    name = "solve_bag_margin_by_cuts"
    check_limits(name, tol, max_iter, least=1)
    check_tol(name, eps, "eps")
    matrix = RowMatrix(instances, rows, owner=name)
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
    return BagMarginResult(
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
        self._shares: list[NDArray[np.float64]] = []  # in which each row is part of each plane

    def loss(self, w: NDArray[np.float64]) -> Cut:
        """Return the loss and the plane of the rows inside the margin."""
        margin = self.margin(w.reshape(self._k, -1))
        value = float(np.maximum(0.0, 1.0 - margin).mean())
        return self.cut_of((margin <= 1.0).astype(np.float64), value)

    def cut_of(self, share: NDArray[np.float64], value: float = nan) -> Cut:
        """Return the plane of rows that are part of it with shares between 0 and 1."""
        self._shares.append(share)
        slope = self._sums(share).ravel() / -self._n
        if self.side is not None:
            slope = self.side.reachable(slope)
        return Cut(slope=slope, offset=float(share.mean()), value=value)

    def margin(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``kappa (w_r - mean_p w_p) . x`` of each row."""
        weights = self._kappa * (coef - coef.mean(axis=0))
        out = np.empty(self._n)
        for part, members, w in zip(self._parts, self._members, weights, strict=True):
            out[members] = part.dot(w)
        return out

    def alpha(self, multiplier: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the dual variables of rows that planes with these multipliers amount to."""
        total = np.zeros(self._n)
        for factor, share in zip(multiplier, self._shares, strict=False):
            total += factor / self._n * share
        return total

    def multiplier(self, alpha: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the multipliers of the balance that go with dual variables of rows."""
        if self.side is None:
            return np.zeros(self._k)
        return self.side.excess(self._sums(alpha) @ self.side.unit) / self.side.length

    def _sums(self, factor: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``kappa (S_p - mean_q S_q)``, ``S_p`` the sum of cluster p times the factors."""
        pairs = zip(self._parts, self._members, strict=True)
        sums = np.stack([part.combine(factor[members]) for part, members in pairs])
        out: NDArray[np.float64] = self._kappa * (sums - sums.mean(axis=0))
        return out
