"""MI-ODM's saddle point over given assignments by mirror prox (Zhang & Jin 2020, corrected).

The paper's Algorithm 1 keeps a weight for every assignment, of which there may be 10^28, and leaves
the step open. Here the assignments are those that column generation found, and the step is as long
as the convergence proof of mirror prox (Nemirovski 2004) allows.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from bagwise._arrays import Floats
from bagwise._progress import report
from bagwise._threads import checkpoint, single_blas_thread
from bagwise.exceptions import SolverError
from bagwise.solvers._checks import check_limits, checked_array
from bagwise.solvers._result import Status
from bagwise.solvers.assignments._assignment_search import AssignmentProblem
from bagwise.solvers.assignments._assignments import AssignmentResult, Column, Master
from bagwise.solvers.svm._band import Band
from bagwise.solvers.svm._odm import ODMInner

_NAME = "solve_by_mirror_prox"
_SMALLEST = 1e-300
_LOOKS = 1.25  # the gap is looked at after so many times as many steps
_GROWTH = 1.2  # of the step after one that was short enough
_POWERS = 10  # steps towards the largest eigenvalue
_EXACT = 20  # steps along exact slopes that tell how long those along estimates are


def solve_by_mirror_prox(
    problem: AssignmentProblem,
    inner: ODMInner,
    columns: Any,
    *,
    rng: np.random.Generator | None = None,
    tol: float = 1e-3,
    max_iter: int = 10_000,
) -> AssignmentResult:
    r"""Find the saddle point of MI-ODM over mixtures of given assignments.

    .. math::

        \min_{\mu \in \Delta} \; \max_{u, v \ge 0} \; \sum_r \Bigl[ (1 - \theta) u_r
        - (1 + \theta) v_r - \frac{u_r^2}{4 c_r} - \frac{v_r^2}{4 \nu c_r} \Bigr]
        - \tfrac12 \sum_k \mu_k \, \beta^\top K_k \beta, \quad \beta_r = s_r (u_r - v_r)

    Euclidean steps in :math:`(u, v)`, inside a box that holds the solution, and multiplicative ones
    in :math:`\mu` are taken twice from each point, the second time along the slope at the end of
    the first. The result is the average of the ends of the first steps, in which step :math:`t`
    has a weight proportional to :math:`t`.

    Parameters
    ----------
    problem : AssignmentProblem
        The inner products.
    inner : ODMInner
        The losses of the rows. It also tells the value at a mixture, for the gap.
    columns : array-like of shape (n_columns, n_instances)
        Assignments as weights of the instances, as in `AssignmentResult`.
    rng : numpy.random.Generator, optional
        If given, slopes are estimated from one assignment that is drawn by the weights of the
        mixture, for :math:`\beta`, and from one that is drawn uniformly, for :math:`\mu`.
    tol : float
        Largest gap over the columns at the end, in units of the value.
    max_iter : int
        Most steps.

    Returns
    -------
    AssignmentResult
        ``objective`` is the largest value for the mixture, ``gap_estimate`` what it may lie above
        the optimum over the given columns; ``history`` and ``gap_history`` hold both at the
        steps where they were looked at, which are about a quarter further apart each time.
    """
    started = perf_counter()
    check_limits(_NAME, tol, max_iter, least=1)
    weights = checked_array(_NAME, "columns", columns, (None, len(problem.instances)))
    band = Band(_NAME, inner.sign, inner.cost, inner.theta, inner.nu, problem.n_rows)
    with single_blas_thread():
        master = Master(problem, inner, [Column(problem, row, None) for row in weights])
        state = _MirrorProx(_Saddle(master, band), rng)
        status, history, gaps, n_iter = _run(state, tol, max_iter)
        state.saddle.settle(state.mean, history[-1])
        return master.result(
            status,
            history,
            gaps,
            n_iter=n_iter,
            is_proven=False,
            solve_time=perf_counter() - started,
        )


def _run(
    state: "_MirrorProx", tol: float, max_iter: int
) -> tuple[Status, list[float], list[float], int]:
    history: list[float] = []
    gaps: list[float] = []
    look = 10
    for t in range(1, max_iter + 1):
        checkpoint()
        state.step(t)
        if t >= look or t == max_iter:
            look = int(np.ceil(_LOOKS * look))
            value, gap = state.saddle.gap(state.mean)
            history.append(value)
            gaps.append(gap)
            relative = gap / max(abs(value), _SMALLEST)
            report("round", t, objective=value, gap=relative, goal=tol)
            if gap <= tol * abs(value):
                return Status.CONVERGED, history, gaps, t
    return Status.MAX_ITER, history, gaps, max_iter


@dataclass(frozen=True, eq=False)
class _Pair:
    """A point: dual variables ``u`` of shape (2, n_rows) and weights ``v`` of the columns."""

    u: Floats
    v: Floats

    def mixed(self, other: "_Pair", share: float) -> "_Pair":
        return _Pair(
            (1.0 - share) * self.u + share * other.u, (1.0 - share) * self.v + share * other.v
        )


@dataclass(frozen=True, eq=False)
class _Average:
    """An average of coefficients, as an `InnerSolution` that nothing starts from."""

    b: Floats
    decision: Floats
    value: float
    error: float = 0.0

    def curvature(self, rows: Floats) -> Floats:
        msg = "An average of coefficients is no solution, and has no curvature."
        raise SolverError(msg)


class _Saddle:
    """The function, its slopes and its gap."""

    def __init__(self, master: Master, band: Band) -> None:
        self.master, self.band = master, band
        used = band.cost > 0.0
        scale = np.where(used, band.cost, 1.0)
        self.bend = np.array([0.5 / scale, 0.5 / (band.nu * scale)])
        start = band.loss(np.zeros(band.n))  # bounds the optimum, and so all losses at it
        top = 2.0 * np.sqrt(start * band.cost)
        self.top = np.array([top, np.sqrt(band.nu) * top])

    def coef(self, pair: _Pair) -> Floats:
        """Return the coefficients of the rows."""
        coef: Floats = self.band.sign * (pair.u[0] - pair.u[1])
        return coef

    def rows(self, pair: _Pair, columns: Floats) -> Floats:
        """Return the Gram matrix of the rows under some columns times their coefficients."""
        problem, coef = self.master.problem, self.coef(pair)
        fixed = coef[problem.n_bags :]
        spread = columns * problem.spread(coef)
        on_bags = problem.bag_sums(columns * (spread @ problem.instances + problem.cross @ fixed))
        return np.hstack([on_bags, spread @ problem.cross + problem.fixed @ fixed])

    def slope(self, pair: _Pair, decision: Floats) -> Floats:
        """Return the slope in ``u`` if the rows have these decision values."""
        band, margin = self.band, self.band.sign * decision
        return np.array([band.low - margin, margin - band.high]) - self.bend * pair.u

    def slopes(self, pair: _Pair, rng: np.random.Generator | None) -> tuple[Floats, Floats]:
        """Return the slopes in ``u`` and in ``v``, exact or estimated."""
        columns = self.master.weights
        if rng is None:
            rows = self.rows(pair, columns)
            return self.slope(pair, pair.v @ rows), -0.5 * rows @ self.coef(pair)
        drawn = np.array([rng.choice(len(columns), p=pair.v), rng.integers(len(columns))])
        rows = self.rows(pair, columns[drawn])
        by_v = np.zeros(len(columns))
        by_v[drawn[1]] = -0.5 * len(columns) * float(rows[1] @ self.coef(pair))
        return self.slope(pair, rows[0]), by_v

    def gap(self, pair: _Pair) -> tuple[float, float]:
        """Return the largest value for the mixture, and what the smallest for ``u`` is below it."""
        self.master.point = self.master.evaluate(pair.v, self.master.point.solution)
        coef = self.coef(pair)
        forms = self.rows(pair, self.master.weights) @ coef
        value = self.master.point.value + self.master.point.solution.error
        return value, value - (self.band.conjugate(coef) - 0.5 * float(forms.max()))

    def weights(self) -> tuple[float, float]:
        """Return the weights of both parts of the mirror map, which the paper leaves open.

        They balance how fast the slopes in ``u`` change along ``u`` itself, which is twice the
        largest eigenvalue of the Gram matrix, and along ``v``, which are the decision values.
        """
        point = self.master.point
        vector, size = np.ones(self.band.n), 1.0
        for _ in range(_POWERS):
            pair = _Pair(np.array([self.band.sign * vector, 0.0 * vector]), point.v)
            product = point.v @ self.rows(pair, self.master.weights)
            size = float(np.linalg.norm(product))
            vector = product / max(size, _SMALLEST)
        decision = float(np.linalg.norm(point.solution.decision))
        return (2.0 * size / max(decision, _SMALLEST)) ** 2, 1.0

    def settle(self, pair: _Pair, value: float) -> None:
        """Let a point be the master's."""
        rows = self.rows(pair, self.master.weights)
        solution = _Average(self.coef(pair), pair.v @ rows, value)
        self.master.point = self.master.at(pair.v, solution, self.master.mixed_cross(pair.v))


class _MirrorProx:
    """The current point, the average and the length of the step."""

    def __init__(self, saddle: _Saddle, rng: np.random.Generator | None) -> None:
        self.saddle, self.rng = saddle, rng
        n_columns = len(saddle.master.weights)
        self.now = self.mean = _Pair(np.zeros_like(saddle.top), np.full(n_columns, 1.0 / n_columns))
        self.weight_u, self.weight_v = saddle.weights()
        self.length = 1.0

    def moved(self, slopes: tuple[Floats, Floats], length: float) -> _Pair:
        """Return the end of a step from the current point along slopes."""
        up = self.now.u + (length / self.weight_u) * slopes[0]
        away = -(length / self.weight_v) * slopes[1]
        v = self.now.v * np.exp(away - away.max())
        return _Pair(np.clip(up, 0.0, self.saddle.top), np.maximum(v / v.sum(), _SMALLEST))

    def distance(self, left: _Pair, right: _Pair) -> float:
        """Return the Bregman distance of the mirror map."""
        square = float(((left.u - right.u) ** 2).sum())
        entropy = max(float(left.v @ np.log(left.v / right.v)), 0.0)
        return 0.5 * self.weight_u * square + self.weight_v * entropy

    def step(self, t: int) -> None:
        """Go twice from the current point, and add the end of the first way to the average."""
        if self.rng is None or t <= _EXACT:
            ahead, end = self.exact_ways()
        else:
            length = self.length * np.sqrt(_EXACT / t)
            ahead = self.moved(self.saddle.slopes(self.now, self.rng), length)
            end = self.moved(self.saddle.slopes(ahead, self.rng), length)
        self.now, self.mean = end, self.mean.mixed(ahead, 2.0 / (t + 1.0))

    def exact_ways(self) -> tuple[_Pair, _Pair]:
        """Return the ends of both ways, with a step as long as the slopes allow."""
        first = self.saddle.slopes(self.now, None)
        self.length *= _GROWTH
        while True:
            ahead = self.moved(first, self.length)
            second = self.saddle.slopes(ahead, None)
            end = self.moved(second, self.length)
            twist = float(((first[0] - second[0]) * (ahead.u - end.u)).sum())
            twist += float((second[1] - first[1]) @ (ahead.v - end.v))
            bound = self.distance(ahead, self.now) + self.distance(end, ahead)
            if self.length * twist <= bound or self.length < _SMALLEST:
                return ahead, end
            self.length *= 0.5
