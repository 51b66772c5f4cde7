"""Maximum-margin clusters of key rows: the convex problem inside maximum-margin clustering of bags.

One row stands for each bag and belongs to one cluster. The dual has one number per row in a box;
coordinate descent with shrinking solves it. The balance constraint costs nothing extra: its
multipliers have a closed form, which every coordinate step takes into account.
"""

from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint, slice_length
from bagwise.solvers._checks import check_limits, check_positive, checked_array
from bagwise.solvers._result import Result, Status
from bagwise.solvers.operators._feature_rows import FeatureRows

_SEED = 1964  # of the order in which rows are visited
_FIRST_SLACK = 0.1  # rows this near to being wrong at guessed margins are visited too
_ROUNDING = 1e-12  # rows no more than this wrong are right: margins are of size 1
_SWEEPS_PER_CHECK = 30  # of some rows only, before all are looked at: the choice may be a bad one


@dataclass(frozen=True, kw_only=True, eq=False)
class BagMMCResult(Result):
    """Solution of `solve_bag_mmc`: ``x`` holds ``alpha``, one number per row in [0, C / n].

    Parameters
    ----------
    coef : ndarray of shape (n_clusters, d)
        The weights ``w_p``. They add up to 0 and satisfy the balance constraint.
    multiplier : ndarray of shape (n_clusters,)
        The multipliers ``mu_p`` of the balance constraint, which add up to 0: ``coef`` is
        ``kappa (S_p - mean_q S_q) - mu_p m`` with ``S_p`` the sum of ``alpha_i x_i`` over the
        rows of cluster ``p``.
    margin : ndarray of shape (n,)
        ``kappa (w_{r_i} - mean_p w_p) . x_i`` for each row.
    """

    coef: Floats
    multiplier: Floats
    margin: Floats


def solve_bag_mmc(
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
) -> BagMMCResult:
    r"""Find the weights of clusters, given which row stands for each bag and its cluster.

    For rows :math:`x_1, \dots, x_n` in clusters :math:`r_1, \dots, r_n` out of :math:`k`, with
    :math:`\kappa = k / (k - 1)` and :math:`\bar w` the mean of the weights, the problem is

    .. math::

        \min_W \; \tfrac12 \sum_p \|w_p\|^2
        + \frac{C}{n} \sum_i \bigl(1 - \kappa (w_{r_i} - \bar w)^\top x_i\bigr)_+
        \quad \text{subject to} \quad \max_p w_p^\top m - \min_p w_p^\top m \le l .

    Parameters
    ----------
    instances : array or CSR matrix of shape (N, d)
        The matrix that holds the rows, in single or double precision; it may be read-only or
        memory-mapped, and is neither copied nor changed.
    cluster : array-like of int of shape (n,)
        The cluster of each row, from 0 to ``n_clusters - 1``; clusters may be empty.
    n_clusters : int
        Number of clusters ``k``, at least 2.
    C : float
        Weight of the losses.
    balance : float
        The bound ``l``, not negative; ``inf`` for none.
    direction : array-like of shape (d,), optional
        The vector ``m``: in clustering, the sum over bags of their mean instances. Without it, or
        if it is 0, there is no constraint.
    rows : array-like of int of shape (n,), optional
        Which rows of ``instances`` make up the problem; by default all, in order.
    alpha0 : array-like of shape (n,), optional
        Where to start. It is clipped to the box first.
    tol : float
        Stop when the duality gap is at most ``tol`` times the objective.
    max_iter : int
        Most sweeps over the rows (for cutting planes: most cuts).

    Returns
    -------
    BagMMCResult
        ``objective`` is the primal value at ``coef``, which is feasible, ``lower_bound`` the dual
        value at ``x``, ``residual`` their difference divided by the objective.
    """
    started = perf_counter()
    name = "solve_bag_mmc"
    check_limits(name, tol, max_iter)
    matrix = FeatureRows.of(instances, rows, owner=name)
    problem = MarginProblem.checked(name, matrix, cluster, n_clusters, C, balance, direction)
    start = np.zeros(matrix.n)
    if alpha0 is not None:
        start = checked_array(name, "alpha0", alpha0, (matrix.n,))
    return descend(problem, start, tol=tol, max_iter=max_iter, started=started)


@dataclass(frozen=True, eq=False)
class MarginProblem:
    """The problem of `solve_bag_mmc`.

    Parameters
    ----------
    matrix : FeatureRows
        The rows.
    cluster : ndarray of int64 of shape (n,)
        Their clusters.
    n_clusters : int
        Number of clusters.
    C : float
        Weight of the losses.
    unit : ndarray of shape (d,)
        Direction of the balance constraint, of length 1; 0 if there is none.
    width : float
        The range of levels ``w_p . unit`` that it allows.
    scale : float
        Length of the direction as it was given.
    """

    matrix: FeatureRows
    cluster: Integers
    n_clusters: int
    C: float
    unit: Floats
    width: float
    scale: float

    @classmethod
    def checked(
        cls,
        solver: str,
        matrix: FeatureRows,
        cluster: ArrayLike,
        n_clusters: int,
        C: float,
        balance: float,
        direction: ArrayLike | None,
    ) -> "MarginProblem":
        """Return the problem, or say what is wrong with it."""
        if not matrix.n:
            msg = f"{solver} needs at least one row. Got none."
            raise ValueError(msg)
        if not n_clusters >= 2:
            msg = f"n_clusters of {solver} must be at least 2. Got {n_clusters}."
            raise ValueError(msg)
        check_positive(solver, "C", C)
        numbers = np.array(cluster)
        is_whole = numbers.dtype.kind in "iu" and numbers.shape == (matrix.n,)
        if not is_whole or numbers.min() < 0 or numbers.max() >= n_clusters:
            msg = (
                f"cluster of {solver} must hold a whole number from 0 to {n_clusters - 1} "
                f"for each of {matrix.n} rows. Got {numbers.dtype} of shape {numbers.shape}."
            )
            raise ValueError(msg)
        unit, width, scale = balance_range(solver, matrix.d, balance, direction)
        return cls(matrix, numbers.astype(np.int64), int(n_clusters), float(C), unit, width, scale)


def balance_range(
    solver: str, d: int, balance: float, direction: ArrayLike | None
) -> tuple[Floats, float, float]:
    """Return the unit vector of the balance constraint, the range it allows and its length."""
    if not balance >= 0:
        msg = f"{solver}: balance must be a number, not negative. Got {balance}."
        raise ValueError(msg)
    if direction is None:
        return np.zeros(d), inf, 0.0
    vector = checked_array(solver, "direction", direction, (d,))
    length = float(np.linalg.norm(vector))
    if length == 0.0 or balance == inf:
        return np.zeros(d), inf, 0.0
    return vector / length, float(balance) / length, length


def descend(
    problem: MarginProblem,
    alpha0: Floats,
    *,
    tol: float,
    max_iter: int,
    before: float = inf,
    share: float = 0.0,
    margin0: Floats | None = None,
    order: Integers | None = None,
    started: float | None = None,
) -> BagMMCResult:
    """Solve a checked problem.

    Parameters
    ----------
    problem : MarginProblem
        The problem.
    alpha0 : ndarray of shape (n,)
        Where to start.
    tol, max_iter : float, int
        As for `solve_bag_mmc`.
    before, share : float
        A gap of at most ``share * (before - objective)`` will do as well.
    margin0 : ndarray of shape (n,), optional
        Margins that are nearly those of the start: they say which rows to visit at first.
    order : ndarray of int of shape (n,), optional
        The rows in the order that sweeps shuffle; by default as they come.
    started : float, optional
        When the clock began to run.
    """
    started = perf_counter() if started is None else started
    before = min(before, problem.C)
    descent = _Descent(problem, alpha0, np.arange(problem.matrix.n) if order is None else order)
    if margin0 is not None:
        descent.restrict(margin0, _FIRST_SLACK)
    history: list[float] = []
    gaps: list[float] = []
    while True:
        limit = min(max_iter, descent.n_sweeps + _SWEEPS_PER_CHECK)
        descent.sweep(limit, tol, before, share)
        primal, dual = descent.values()
        history.append(primal)
        gaps.append(primal - dual)
        goal = max(tol * primal, share * (before - primal))
        if gaps[-1] <= goal or descent.n_sweeps >= max_iter:
            break
        descent.restrict(descent.margin, -_ROUNDING)
    return BagMMCResult(
        x=descent.alpha,
        coef=descent.coef,
        multiplier=descent.mu / (problem.scale or 1.0),
        margin=descent.margin,
        objective=primal,
        lower_bound=dual,
        residual=gaps[-1] / primal,
        status=Status.CONVERGED if gaps[-1] <= goal else Status.MAX_ITER,
        n_iter=descent.n_sweeps,
        history=np.array(history),
        gap_history=np.array(gaps),
        solve_time=perf_counter() - started,
    )


class _Descent:
    """Coordinate descent: the multipliers, the sums of rows they make, the rows still visited."""

    def __init__(self, problem: MarginProblem, alpha0: Floats, order: Integers) -> None:
        from bagwise.solvers.clustering import _bag_mmc_kernels as kernels

        self.problem, self.kernels = problem, kernels
        matrix, k = problem.matrix, problem.n_clusters
        n, d = matrix.n, matrix.d
        self.cap = problem.C / n
        self.alpha = np.clip(alpha0, 0.0, self.cap)
        self.all_rows, self.order, self.place = order, order.copy(), np.array([-1, 0, n, 0, _SEED])
        self.found = np.array([0.0, -inf, inf, inf, -inf, 0.0, *[0.0] * (2 * k)])
        self.sums, self.total, self.coef = np.zeros((k, d)), np.empty(d), np.empty((k, d))
        self.square, self.height, self.margin = np.empty(n), np.empty(n), np.empty(n)
        for piece in matrix.slices():
            kernels.prepare(
                *matrix.parts, matrix.rows[piece], problem.cluster[piece], self.alpha[piece],
                problem.unit, self.square[piece], self.height[piece], self.sums,
            )  # fmt: skip
        if not np.isfinite(self.square.sum()):
            raise ValueError(problem.matrix.not_finite())
        self._settle()

    @property
    def mu(self) -> Floats:
        """Multipliers of the balance constraint."""
        return self.found[-self.problem.n_clusters :]

    @property
    def n_sweeps(self) -> int:
        """Sweeps done."""
        return int(self.place[self.kernels.SWEEPS])

    def sweep(self, max_iter: int, tol: float, before: float, share: float) -> None:
        """Sweep until the rows in play find a gap that is small enough."""
        problem, matrix = self.problem, self.problem.matrix
        function: Any = self.kernels.csr_descend if matrix.is_sparse else self.kernels.dense_descend
        parts = matrix.parts if matrix.is_sparse else matrix.parts[:1]
        budget = slice_length(4 * matrix.row_seconds)
        done = self.n_sweeps >= max_iter
        while not done:
            checkpoint()
            done = function(
                *parts, matrix.rows, problem.cluster, self.square, self.height,
                self.cap, self.alpha, self.sums, self.total, problem.width,
                self.order, self.place, self.found, budget, max_iter, tol, before, share,
            )  # fmt: skip

    def restrict(self, margin: Floats, slack: float) -> None:
        """Visit only rows that are not optimal, or nearly so, at these margins."""
        self.kernels.restrict(
            self.alpha, self.cap, margin, slack, self.all_rows, self.order, self.place, self.found
        )

    def values(self) -> tuple[float, float]:
        """Compute weights and margins, and return the objective and the dual value."""
        problem, matrix = self.problem, self.problem.matrix
        penalty = self._settle()
        loss = 0.0
        for piece in matrix.slices():
            rows, cluster = matrix.rows[piece], problem.cluster[piece]
            margin = self.margin[piece]
            loss += self.kernels.margins(*matrix.parts, rows, cluster, self.coef, margin)
        return penalty + self.cap * loss, float(self.found[self.kernels.DUAL])

    def _settle(self) -> float:
        problem = self.problem
        penalty: float = self.kernels.settle(
            self.alpha, self.sums, problem.unit, problem.width, self.total, self.coef, self.found
        )  # fmt: skip
        return penalty
