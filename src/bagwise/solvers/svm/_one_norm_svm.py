"""The 1-norm support vector machine: a simplex method on few columns and few rows at a time.

The linear programme has one weight per column, thousands of them, of which a few dozen differ from
zero, and one hinge per row, of which as many stand exactly at their kink. Steps go from vertex to
vertex of the piecewise linear objective itself, through kinks for as long as it falls (the idea of
Barrodale and Roberts 1973 for least absolute deviations); the columns and rows that take part are
generated as they are needed.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._progress import report
from bagwise._threads import checkpoint, single_blas_thread, slice_length
from bagwise.solvers._checks import check_limits, checked_array, checked_terms
from bagwise.solvers._result import Result, Status
from bagwise.solvers.operators._empirical_map import FeatureOperator
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.svm._multipliers import balanced

_NAME = "solve_one_norm_svm"  # in errors
_ACCURACY = 1e-9  # relative violation at which a column, a row or a multiplier counts as optimal
_SPREAD = 1e-7  # margins are spread by this much, so that no two kinks coincide
_NEW_COLUMNS = 64  # columns that join in a round
_NEAR = 0.7  # columns whose price is below this part of their penalty leave
_FIRST_ROWS, _NEW_ROWS = 64, 64  # rows that take part from the start, and join in a round
_STEPS = 300  # steps between two computations of the tableau from scratch
_PATIENCE = 50  # rounds that may pass without a gain
_SINGULAR = 1e-6  # error of an inverse above which its matrix is taken apart
_ROUNDED = 1e-4  # error of an inverse up to which one step makes it exact
_DEPENDENT = 1e-9  # pivots below this part of the largest do not make a basis
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, kw_only=True, eq=False)
class OneNormSVMResult(Result):
    """Solution of a 1-norm SVM: ``x`` holds the weights ``w``, one per column.

    Parameters
    ----------
    intercept : float
        The constant ``b`` of the decision function.
    decision : ndarray of float
        The decision function ``A @ w + b`` on the rows.
    alpha : ndarray of float
        Multipliers of the rows, in ``[0, cost]`` and balanced over the signs, scaled so that no
        column's price exceeds its penalty: their sum is ``lower_bound``.
    columns, rows : ndarray of int
        The basis: columns that may have a weight, and rows with margin 1 that determine the
        weights.
    """

    intercept: float
    decision: Floats
    alpha: Floats
    columns: Integers
    rows: Integers


def solve_one_norm_svm(
    A: Any,
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    penalty: ArrayLike = 1.0,
    start: OneNormSVMResult | None = None,
    tol: float = 1e-6,
    max_iter: int = 1_000_000,
) -> OneNormSVMResult:
    r"""Train a support vector machine with a penalty on the absolute values of the weights.

    The problem, for rows :math:`a_i` with signs :math:`s_i` and costs :math:`c_i`, is

    .. math::

        \min_{w, b} \; \sum_j \lambda_j |w_j|
        + \sum_i c_i \bigl(1 - s_i (a_i^\top w + b)\bigr)_+

    and its dual

    .. math::

        \max_{\alpha} \; \sum_i \alpha_i \quad \text{subject to} \quad
        0 \le \alpha \le c, \; s^\top \alpha = 0, \;
        \Bigl|\sum_i s_i \alpha_i a_{ij}\Bigr| \le \lambda_j .

    Parameters
    ----------
    A : ndarray or sparse matrix of shape (n, p), or FeatureOperator
        The rows. An operator need not store its features: a kernel with many instances, say.
    sign : array-like of shape (n,)
        -1 or +1.
    cost : array-like of shape (n,) or float
        Costs, not negative. A row of cost 0 takes no part; a row of cost 2 equals two rows of
        cost 1.
    penalty : array-like of shape (p,) or float
        Penalties :math:`\lambda`, greater than 0.
    start : OneNormSVMResult, optional
        Solution of a similar problem of the same shape, whose basis is the place to start from,
        unless all weights 0 are better.
    tol : float
        The gap, relative to ``max(1, objective)``, at which the answer counts as converged. The
        simplex steps themselves end at a vertex that is optimal to rounding.
    max_iter : int
        Most simplex steps.

    Returns
    -------
    OneNormSVMResult
        ``objective`` is the value at ``(w, b)``, ``lower_bound`` the dual value at ``alpha``,
        ``residual`` the relative gap, ``history`` the least objective up to each round of column
        and row generation, ``gap_history`` its distance from the largest lower bound.

    Notes
    -----
    The solution is a vertex and need not be unique; among several the order of rows and columns
    decides. If no column is worth its penalty, ``w`` is zero and the intercept is the sign with the
    larger total cost, or 0 at a tie. If rows of only one sign have a cost, the intercept is that
    sign.
    """
    started = perf_counter()
    check_limits(_NAME, tol, max_iter)
    problem = _Problem(A, sign, cost, penalty)
    if start is not None and (len(start.alpha), len(start.x)) != (problem.n, problem.p):
        msg = (
            f"solve_one_norm_svm: start must be of shape {(problem.n, problem.p)}. "
            f"Got {(len(start.alpha), len(start.x))}."
        )
        raise ValueError(msg)
    search = _Search(problem, tol, max_iter)
    with single_blas_thread():
        search.run(start)
    return search.result(perf_counter() - started)


def _as_features(A: Any) -> FeatureOperator:
    """Return a matrix as an operator; an operator is returned as it is."""
    if hasattr(A, "combine") and hasattr(A, "columns"):
        rows: FeatureOperator = A
        return rows
    matrix = A if sp.issparse(A) else np.asarray(A)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        msg = f"{_NAME}: A must be a matrix of numbers. Got shape {matrix.shape} of {matrix.dtype}."
        raise ValueError(msg)
    return FeatureRows(matrix, owner=_NAME)


class _Problem:
    """The data, checked."""

    def __init__(self, A: Any, sign: ArrayLike, cost: ArrayLike, penalty: ArrayLike) -> None:
        self.rows = _as_features(A)
        self.n, self.p = self.rows.n, self.rows.d
        self.sign, self.cost, _ = checked_terms(_NAME, sign, cost, 1.0, self.n)
        self.penalty = checked_array(_NAME, "penalty", penalty, (self.p,), spread=True)
        if (self.penalty <= 0).any():
            worst = self.penalty.argmin()
            msg = (
                "solve_one_norm_svm: penalty must be greater than 0. "
                f"Got {self.penalty[worst]} for column {worst}."
            )
            raise ValueError(msg)
        self.balance = tuple(float(self.cost[self.sign == s].sum()) for s in (1.0, -1.0))

    def price(self, alpha: Floats) -> Floats:
        """Return the absolute prices of all columns, relative to their penalties."""
        prices = np.abs(self.rows.combine(self.sign * alpha)) / self.penalty
        if not np.isfinite(prices).all():
            column = int(np.flatnonzero(~np.isfinite(prices))[0])
            msg = f"solve_one_norm_svm: A must be finite. Column {column} is not."
            raise ValueError(msg)
        return prices

    def signed(self, index: Integers, out: Floats) -> None:
        """Write columns, each row times its sign, into the rows of a matrix."""
        np.multiply(self.rows.columns(index).T, self.sign, out=out)
        if not np.isfinite(out).all():
            msg = "solve_one_norm_svm: A must be finite. Got NaN or infinity."
            raise ValueError(msg)

    def feasible(self, alpha: Floats) -> Floats:
        """Clip to the box, then scale the heavier sign down to the lighter one."""
        return balanced(np.minimum(np.maximum(alpha, 0.0), self.cost), self.sign)

    def constant(self) -> float:
        """Return the best intercept where all weights are 0."""
        return float(np.sign(self.balance[0] - self.balance[1]))


class _Search:
    """Rounds of simplex steps on a part of the columns and rows.

    ``work`` holds the signed columns that take part, one per row, and last a column of signs for
    the intercept. ``inner`` (positions in ``work``) and ``kinked`` (rows of the problem) are the
    basis: the weights that are not held at 0 and the rows that are held at margin 1.
    """

    def __init__(self, problem: _Problem, tol: float, max_iter: int) -> None:
        self.problem, self.tol, self.max_iter = problem, tol, max_iter
        self.n_iter, self.limited = 0, False
        self.history: list[float] = []
        self.gap_history: list[float] = []
        self.objective, self.bound = np.inf, -np.inf
        self.weights, self.decision = np.zeros(problem.p), np.zeros(problem.n)
        self.intercept = problem.constant()
        self.alpha = np.zeros(problem.n)
        self.index = np.zeros(0, np.int64)
        self.work = problem.sign[None, :].copy()
        self.penalty = np.zeros(1)  # of the rows of work
        self.inner, self.kinked = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.rows = np.zeros(0, np.int64)
        self.violated, self.side = np.zeros(0, np.int64), np.zeros(1)
        self.basis: NDArray[Any] = np.zeros((0, 0))
        self.inverse: NDArray[Any] = np.zeros((0, 0))
        self.idle = 0  # rounds without a gain
        self.target = 1.0 + _SPREAD * (np.arange(1, problem.n + 1) * _GOLDEN % 1.0)

    def run(self, start: OneNormSVMResult | None) -> "_Search":
        problem = self.problem
        alpha = problem.feasible(problem.cost if start is None else start.alpha)
        prices = problem.price(alpha)
        constant = problem.constant()
        self._record(np.zeros(problem.p), constant, constant * problem.sign, alpha, prices)
        if self.gap <= _ACCURACY * self.objective:
            return self
        self._begin(start, prices)
        if start is not None and self._value() > self.objective:  # a constant is a better start
            self._begin(None, problem.price(problem.feasible(problem.cost)))
        columns, rows, spread, budget = False, False, True, self.max_iter
        while budget > 0:
            steps, optimal = self._steps(budget)
            # Rounding: columns that seemed worth their penalty lead nowhere.
            stuck = not steps and not rows and (columns or not optimal)
            stuck = stuck or self.idle > _PATIENCE
            columns, rows = self._evaluate(optimal=optimal)
            budget -= steps
            self.idle = 0 if rows else self.idle
            if self.gap <= _ACCURACY * self.objective:
                return self
            if not rows and (stuck or (optimal and not columns)):
                if not spread:
                    return self
                # The basis may be optimal for the spread margins only: go on with the true ones,
                # where steps may be of length 0 and therefore are counted.
                spread = False
                self.target = np.ones(problem.n)
                budget = min(budget, 100 + 4 * len(self.inner))
        self.limited = spread
        return self

    @property
    def gap(self) -> float:
        return self.objective - self.bound

    def _begin(self, start: OneNormSVMResult | None, prices: Floats) -> None:
        """Choose the first columns, rows and basis."""
        problem = self.problem
        columns = kinked = self.index = self.inner = np.zeros(0, np.int64)
        if start is not None:
            columns, kinked = start.columns, start.rows[problem.cost[start.rows] > 0]
        prices[columns] = -np.inf  # they take part anyway
        new = np.concatenate([columns, self._dearest(prices, -np.inf)])
        self._exchange_columns(new, np.zeros(0, np.bool_))

        rows = np.flatnonzero(problem.cost > 0)
        if len(rows) > _FIRST_ROWS:
            sample = [
                part[:: max(1, 2 * len(part) // _FIRST_ROWS)]
                for part in (rows[problem.sign[rows] == s] for s in (1.0, -1.0))
            ]
            known = [] if start is None else [kinked, np.flatnonzero(self.alpha)]
            rows = np.unique(np.concatenate([*sample, *known]))
        self.rows = rows
        if start is not None:
            self.inner = np.append(np.arange(len(columns)), len(self.index))
        self.kinked = kinked
        self._factor()

    def _value(self) -> float:
        """Return the objective at the vertex of the basis."""
        weights = self.inverse.sum(axis=0)
        slack = np.maximum(1.0 - weights @ self.work[self.inner], 0.0)
        return float(self.penalty[self.inner] @ np.abs(weights) + self.problem.cost @ slack)

    def _dearest(self, prices: Floats, above: float) -> Integers:
        """Return the dearest columns that do not take part yet."""
        prices = prices.copy()
        prices[self.index] = -np.inf
        candidates = np.flatnonzero(prices > above)
        order = np.argsort(-prices[candidates], kind="stable")
        return candidates[order[:_NEW_COLUMNS]]

    def _exchange_columns(self, new: Integers, stay: Booleans) -> None:
        stays = np.flatnonzero(stay)
        last = len(stays) + len(new)
        position = np.full(len(self.work), last)
        position[stays] = np.arange(len(stays))
        self.inner = position[self.inner]
        self.index = np.concatenate([self.index[stays], new])
        work = np.empty((last + 1, self.problem.n))
        self.work.take(stays, axis=0, out=work[: len(stays)], mode="clip")
        self.problem.signed(new, work[len(stays) : last])
        work[last] = self.problem.sign
        self.work = work
        self.penalty = np.zeros(last + 1)
        self.penalty[:last] = self.problem.penalty[self.index]

    def _steps(self, budget: int) -> tuple[int, bool]:
        """Take simplex steps; return how many, and whether nothing is left to gain."""
        from bagwise.solvers.svm._one_norm_svm_kernels import simplex_steps

        problem, q = self.problem, len(self.work)
        place = np.searchsorted(self.rows, self.kinked)
        tableau, value = self._tableau(place)
        basic, nonbasic = np.arange(q, q + len(self.rows)), np.arange(q)
        basic[place], nonbasic[self.inner] = self.inner, q + place
        cost = problem.cost[self.rows]
        rise = np.concatenate([self.penalty, np.zeros(len(cost))])
        fall = np.concatenate([self.penalty, cost])
        # No multiplier of the optimum exceeds the objective, however large the cost.
        slack = _ACCURACY * np.minimum(fall, self.objective)
        slack[q - 1] = _ACCURACY * min(*problem.balance, self.objective)

        most, done, optimal = min(budget, _STEPS), 0, False
        per_slice = slice_length(2e-9 * tableau.size)
        while done < most and not optimal:
            checkpoint()
            allowed = min(per_slice, most - done)
            steps, optimal = simplex_steps(
                tableau, value, basic, nonbasic, rise, fall, slack, allowed
            )
            done += steps
            if steps < allowed:
                break
        self.n_iter += done
        is_weight = basic < q
        weights, held = np.flatnonzero(is_weight), np.flatnonzero(nonbasic >= q)
        self.inner, self.kinked = basic[weights], self.rows[nonbasic[held] - q]
        self.side = np.zeros(q)
        self.side[self.inner] = np.where(value[weights] > 0, 1.0, -1.0)
        self.violated = self.rows[basic[~is_weight & (value <= 0)] - q]
        self._factor(tableau[held[:, None], weights])
        return done, optimal

    def _tableau(self, place: Integers) -> tuple[Floats, Floats]:
        """Return the tableau and the values of the basic variables, from scratch.

        A basic weight takes the ``place`` of the row that it was exchanged with, and the other way
        round.
        """
        every = len(self.rows) == self.problem.n
        tableau = self.work.copy() if every else self.work.take(self.rows, axis=1)
        edge = self.inverse @ tableau[self.inner]
        edge[:, place] = self.inverse
        factor = tableau[:, place]
        factor[self.inner] = 0.0
        tableau[:, place] = 0.0
        tableau -= factor @ edge
        tableau[self.inner] = edge
        target = self.target[self.rows]
        value = target[place] @ edge
        target[place] = 0.0
        return tableau, value - target

    def _factor(self, guess: Floats | None = None) -> None:
        """Invert the basis, of which the inverse may be known but for rounding.

        What makes it singular is left out.
        """
        from bagwise.solvers.svm._one_norm_svm_kernels import independent_block

        self.basis = block = self.work[self.inner[:, None], self.kinked]
        if block.shape[0] == block.shape[1]:
            if guess is not None:
                error = block @ guess - np.eye(len(block))
                if np.abs(error).max(initial=0.0) <= _ROUNDED:  # Newton's method squares it
                    self.inverse = guess - guess @ error
                    return
            try:
                self.inverse = np.linalg.inv(block)
            except np.linalg.LinAlgError:
                pass
            else:
                error = block @ self.inverse - np.eye(len(block))
                if np.abs(error).max(initial=0.0) <= _SINGULAR:
                    return
        some, others = independent_block(block.copy(), _DEPENDENT)
        self.basis = block[some[:, None], others]
        self.inverse = np.linalg.inv(self.basis)
        self.inner, self.kinked = self.inner[some], self.kinked[others]

    def _evaluate(self, *, optimal: bool) -> tuple[bool, bool]:
        """Measure the vertex on all rows and columns; return whether columns, and rows, joined.

        Columns join where those that take part have nothing left to gain: before, prices say little
        of the columns that the optimum needs.
        """
        problem = self.problem
        columns = self.work[self.inner]
        goal = self.penalty[self.inner] * self.side[self.inner]
        alpha = np.zeros(problem.n)
        alpha[self.violated] = problem.cost[self.violated]
        alpha[self.kinked] = 0.0
        multipliers, weights = np.zeros((2, len(columns)))
        for _ in range(2):  # the second time refines
            multipliers += self.inverse @ (goal - columns @ alpha)
            alpha[self.kinked] = multipliers
            weights += (1.0 - weights @ self.basis) @ self.inverse
        alpha = problem.feasible(alpha)
        prices = problem.price(alpha)
        inside = self.inner < len(self.index)
        w = np.zeros(problem.p)
        w[self.index[self.inner[inside]]] = weights[inside]
        self._record(w, float(weights[~inside].sum()), weights @ columns, alpha, prices)
        missing = self.target - self.target[self.kinked] @ self.inverse @ columns

        new = self._dearest(prices, 1.0 + _ACCURACY) if optimal else np.zeros(0, np.int64)
        if len(new):
            stay = prices[self.index] > _NEAR
            stay[self.inner[self.inner < len(self.index)]] = True
            self._exchange_columns(new, stay)
        return len(new) > 0, self._add_rows(missing)

    def _add_rows(self, missing: Floats) -> bool:
        """Let the rows join that most miss their margin."""
        if len(self.rows) == self.problem.n:
            return False
        takes_part = np.zeros(self.problem.n, np.bool_)
        takes_part[self.rows] = True
        rows = np.flatnonzero((missing > _ACCURACY) & (self.problem.cost > 0) & ~takes_part)
        if not len(rows):
            return False
        order = np.argsort(-missing[rows], kind="stable")
        most = max(_NEW_ROWS, len(self.rows) // 2)  # the more, the more may be missing
        takes_part[rows[order[:most]]] = True
        self.rows = np.flatnonzero(takes_part)
        return True

    def _record(
        self, w: Floats, intercept: float, margin: Floats, alpha: Floats, prices: Floats
    ) -> None:
        """Keep the point if its objective is the least so far, the multipliers likewise."""
        problem = self.problem
        slack = np.maximum(1.0 - margin, 0.0)
        objective = float(problem.penalty @ np.abs(w)) + float(problem.cost @ slack)
        scale = max(1.0, float(prices.max(initial=0.0)))
        bound = float(alpha.sum()) / scale
        gains = objective < self.objective or bound > self.bound
        self.idle = 0 if gains else self.idle + 1
        if objective < self.objective:
            self.objective, self.weights, self.intercept = objective, w, intercept
            self.decision = problem.sign * margin
        if bound > self.bound:
            self.bound, self.alpha = bound, alpha / scale
        self.history.append(self.objective)
        self.gap_history.append(self.gap)
        relative = self.gap / (self.objective or 1.0)
        report("step", self.n_iter, objective=self.objective, gap=relative, goal=_ACCURACY)

    def result(self, seconds: float) -> OneNormSVMResult:
        residual = self.gap / max(1.0, abs(self.objective))
        short = Status.MAX_ITER if self.limited else Status.STALLED
        return OneNormSVMResult(
            x=self.weights,
            intercept=self.intercept,
            decision=self.decision,
            alpha=self.alpha,
            columns=self.index[self.inner[self.inner < len(self.index)]],
            rows=self.kinked,
            objective=self.objective,
            lower_bound=self.bound,
            residual=residual,
            status=Status.CONVERGED if residual <= self.tol else short,
            n_iter=self.n_iter,
            history=np.array(self.history),
            gap_history=np.array(self.gap_history),
            solve_time=seconds,
        )
