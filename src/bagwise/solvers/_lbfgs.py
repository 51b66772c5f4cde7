"""Quasi-Newton steps with limited memory (L-BFGS), from one start or from many at once.

All starts go side by side: each iteration asks for their values and gradients in one call, and
those that have ended drop out. None of them feels the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._progress import report
from bagwise._threads import checkpoint, single_blas_thread
from bagwise.solvers._checks import check_at_least, check_limits, check_positive, checked_array
from bagwise.solvers._result import Result, Status

_FIRST_STEP = 0.1  # the longest move along the gradient, in units of `length`
_SUFFICIENT, _CURVATURE = 1e-4, 0.9  # the conditions of Armijo and Wolfe
_MOST_TRIALS = 10  # evaluations along one direction
_EARLY = 1e-3  # of tol: the decrease at which fewer iterations than the window may end

Array = Floats
Index = Integers


class BatchObjective(Protocol):
    """A smooth function at several points, one for each start that is still going."""

    def values(self, X: Array, starts: Index, /) -> Array:
        """Return the value at each row of ``X``, the new point of the start of that number.

        Infinity or NaN where there is none: the step is cut.
        """

    def gradients(self, starts: Index, /) -> Array:
        """Return the gradient of some of the starts, each at its point of the last `values`."""


def _unit(values: Array) -> Array:
    return np.maximum(np.abs(values), 1.0)


@dataclass(frozen=True, kw_only=True)
class StoppingRule:
    """When a descent has arrived: it falls no further, or it is flat.

    Parameters
    ----------
    tol : float
        The descent ends when an iteration lowers the objective by at most this much, on average
        over a window, or when the residual is no more.
    length : float
        A typical size of moves.
    block : int
        Variables come in vectors of so many entries, which move together.
    window : int
        Number of iterations over which the decrease is looked at. Before there have been so many,
        only a thousandth of ``tol`` ends a descent: a few slow steps prove little.
    unit : callable
        Takes values, and returns what their changes are compared with: by default ``max(1, |f|)``.
    """

    tol: float
    length: float = 1.0
    block: int = 1
    window: int = 5
    unit: Callable[[Array], Array] = _unit

    def steepest(self, gradients: Array) -> Array:
        """Return the norm of the longest vector of each gradient."""
        vectors = gradients.reshape(len(gradients), -1, self.block)
        squares: Array = np.vecdot(vectors, vectors).max(axis=1, initial=0.0)
        return np.sqrt(squares)

    def residual(self, values: Array, gradients: Array) -> Array:
        """Return the change if one vector moved by ``length`` and the gradient stayed, in units."""
        unit = np.maximum(self.unit(values), 1e-300)  # what is flat at 0 is flat
        return self.steepest(gradients) * self.length / unit

    def is_met(self, history: list[Array], gradients: Array) -> Booleans:
        """Tell who has arrived, after at least one step."""
        values, window = history[-1], min(self.window, len(history) - 1)
        decrease = (history[-1 - window] - values) / window
        share = 1.0 if window == self.window else _EARLY
        slow = decrease <= share * self.tol * self.unit(values)
        return slow | (self.residual(values, gradients) <= self.tol)


def minimize_lbfgs(
    objective: BatchObjective,
    X0: ArrayLike,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    memory: int = 10,
    length: float = 1.0,
    block: int = 1,
    window: int = 5,
    unit: Callable[[Array], Array] = _unit,
) -> list[Result]:
    """Minimise a smooth function from each of several starts, all at once.

    Parameters
    ----------
    objective : BatchObjective
        Has the methods ``values(X, starts)`` and ``gradients(starts)``.
    X0 : array-like of shape (n_starts, n_variables)
        Where to start.
    tol, length, block, window, unit
        When to end; see `StoppingRule`. The first step moves a vector by a tenth of ``length``.
    max_iter : int
        Most iterations of each start.
    memory : int
        Number of pairs of steps and gradient changes that a start remembers.

    Returns
    -------
    list of Result
        One for each start. ``history`` holds its values from the start on, which never rise, and
        ``residual`` the largest change that its gradient promises for a move by ``length``, in
        units of the objective. ``STALLED`` means that no step along the gradient lowered the
        objective, or that there was no finite value to start from; but if a step to the minimum, as
        far as the curvature is known, promises no more than ``tol``, the descent has converged.

    Notes
    -----
    A step that gains too little is cut at the minimum of a parabola; a step after which the
    objective still falls almost as fast as at its beginning is lengthened.
    """
    name = "minimize_lbfgs"
    check_limits(name, tol, max_iter)
    check_positive(name, "length", length)
    for parameter, least in (("memory", memory), ("block", block), ("window", window)):
        check_at_least(name, parameter, least, 1)
    X = checked_array(name, "X0", X0, (None, None))
    if X.shape[1] % block:
        msg = f"{name}: block must divide the {X.shape[1]} variables of X0. Got {block}."
        raise ValueError(msg)
    if not len(X):
        return []
    rule = StoppingRule(tol=tol, length=length, block=block, window=window, unit=unit)
    with single_blas_thread():
        descent = _Descent(objective, X, rule, memory)
        while len(descent.starts) and len(descent.history) <= max_iter:
            descent.iterate()
    descent.end(np.ones(len(descent.starts), np.bool_), Status.MAX_ITER)
    return [descent.results[start] for start in range(len(X))]


class _Descent:
    """The starts that are still going: one row of each array, one column of the history."""

    def __init__(
        self, objective: BatchObjective, X: Array, rule: StoppingRule, memory: int
    ) -> None:
        self.objective, self.rule, self.began = objective, rule, perf_counter()
        self.starts, self.X = np.arange(len(X)), X
        self.pairs = _Pairs(len(X), X.shape[1], memory)
        self.results: dict[int, Result] = {}
        self.values = np.asarray(objective.values(X, self.starts), np.float64)
        self.gradients = np.array(objective.gradients(self.starts), np.float64)
        self.history = [self.values]
        with np.errstate(invalid="ignore"):
            known = np.isfinite(self.values) & np.isfinite(self.gradients).all(axis=1)
            flat = rule.residual(self.values, self.gradients) <= rule.tol
        self.end(~known, Status.STALLED)
        self.end(flat[known], Status.CONVERGED)

    def iterate(self) -> None:
        """Take a step from each start; let those that have arrived, or cannot step, end."""
        directions, has_pairs = self.pairs.directions(self.gradients), self.pairs.n_added > 0
        new = self.X.copy(), self.values.copy(), self.gradients.copy()
        steps = np.ones(len(directions))
        promise = -0.5 * np.vecdot(directions, self.gradients)  # of a step to the minimum
        enough = self.rule.tol * self.rule.unit(self.values)
        is_little = has_pairs & (promise >= 0.0) & (promise <= enough)
        found = self._search(np.flatnonzero(has_pairs), directions, steps, *new)
        if not found.all():  # there are no pairs yet, or they mislead
            again = np.flatnonzero(~found)
            self.pairs.forget(again)
            directions[again] = -self.gradients[again]
            steepest = self.rule.steepest(_rows(directions, again))
            steps[again] = _FIRST_STEP * self.rule.length / steepest
            found |= self._search(again, directions, steps, *new)
        old, (self.X, self.values, self.gradients) = (self.X, self.gradients), new
        self.pairs.add(self.X - old[0], self.gradients - old[1])
        self.history.append(self.values)
        report("step", len(self.history) - 1, objective=self.values.min())
        arrived = self.rule.is_met(self.history, self.gradients)
        is_little &= ~found
        left = found | is_little
        self.end(~left, Status.STALLED)
        self.end(is_little[left], Status.CONVERGED, is_idle=True)
        self.end(arrived[found], Status.CONVERGED)

    def _search(
        self, at: Index, directions: Array, steps: Array, X: Array, values: Array, gradients: Array
    ) -> Booleans:
        """Look along the directions of some starts for points where enough is gained.

        Write points, values and gradients to the last three, and tell who found any.
        """
        slopes = np.vecdot(directions, self.gradients)
        found, was_cut = np.zeros((2, len(X)), np.bool_)
        at = at[slopes[at] < 0.0]
        for _ in range(_MOST_TRIALS):
            if not len(at):
                break
            checkpoint()
            step, slope, before = steps[at], slopes[at], self.values[at]
            trial = step[:, None] * _rows(directions, at)
            trial += _rows(self.X, at)
            value = np.asarray(self.objective.values(trial, self.starts[at]), np.float64)
            enough = value <= before + _SUFFICIENT * step * slope
            going = np.zeros(len(X), np.bool_)
            if not enough.all():
                short = np.flatnonzero(~(enough | found[at]))
                cut = at[short]
                going[cut] = was_cut[cut] = True
                steps[cut] = _shortened(step, slope, value - before)[short]
            better = np.flatnonzero(enough & (value <= values[at]))
            if len(better):
                at, slope = at[better], slope[better]
                gradient = self.objective.gradients(self.starts[at])
                X[at], values[at], gradients[at] = _rows(trial, better), value[better], gradient
                found[at] = True
                falls = np.vecdot(_rows(directions, at), gradient) < _CURVATURE * slope
                going[at] = falls & ~was_cut[at]
                steps[at] *= 4.0
            at = np.flatnonzero(going)
        return found

    def end(self, which: Booleans, status: Status, *, is_idle: bool = False) -> None:
        """Note the results of some starts, which drop out; the idle ones have not moved."""
        if not which.any():
            return
        residual = self.rule.residual(self.values, self.gradients)
        # Where no step was found there was no iteration either.
        is_idle = is_idle or status is Status.STALLED
        last = len(self.history) - (is_idle and len(self.history) > 1)
        for i in np.flatnonzero(which):
            self.results[int(self.starts[i])] = Result(
                x=self.X[i].copy(),
                objective=float(self.values[i]),
                status=status,
                n_iter=last - 1,
                residual=float(residual[i]),
                history=np.array([values[i] for values in self.history[:last]]),
                solve_time=perf_counter() - self.began,
            )
        kept = ~which
        self.starts, self.X = self.starts[kept], self.X[kept]
        self.values, self.gradients = self.values[kept], self.gradients[kept]
        self.history = [values[kept] for values in self.history]
        self.pairs.keep(kept)


class _Pairs:
    """The latest steps of each start, and behind them the changes of its gradient.

    The approximate inverse of the Hessian is in the compact form of Byrd, Nocedal and Schnabel
    (1994), Theorem 2.2: ``R`` holds the products of each step with the changes that are not older,
    ``W`` those of changes with one another. The order of places means nothing, and an empty one
    has no effect.
    """

    def __init__(self, n_starts: int, n_variables: int, size: int) -> None:
        self.size, self.pairs = size, np.zeros((n_starts, 2 * size, n_variables))
        self.R, self.W = np.zeros((2, n_starts, size, size))
        self.scale, self.n_added = np.ones(n_starts), np.zeros(n_starts, np.int64)
        self.forget(np.arange(n_starts))

    def directions(self, gradients: Array) -> Array:
        """Return minus the approximate inverse of the Hessian times the gradient, of each start."""
        m, scale = self.size, self.scale[:, None, None]
        along = self.pairs @ gradients[:, :, None]
        p = np.linalg.solve(self.R, along[:, :m])
        bend = np.diagonal(self.R, axis1=1, axis2=2)[:, :, None] * p
        bend += scale * (self.W @ p - along[:, m:])
        along[:, :m], along[:, m:] = np.linalg.solve(self.R.mT, bend), -scale * p
        return -(self.pairs.mT @ along)[:, :, 0] - self.scale[:, None] * gradients

    def add(self, s: Array, y: Array) -> None:
        """Remember the pair of each start along which the function bends upwards; it is used up."""
        product, square, length = np.vecdot(s, y), np.vecdot(y, y), np.sqrt(np.vecdot(s, s))
        at = np.flatnonzero(product > 1e-10 * length * np.sqrt(square))
        if not len(at):
            return
        m, place = self.size, self.n_added[at] % self.size
        s, y, unit = _rows(s, at), _rows(y, at), length[at, None]
        s /= unit
        y /= unit
        self.pairs[at, place], self.pairs[at, m + place] = s, y
        along = (_rows(self.pairs, at) @ y[:, :, None])[:, :, 0]
        self.R[at, place], self.R[at, :, place] = 0.0, along[:, :m]
        self.W[at, place] = self.W[at, :, place] = along[:, m:]
        self.scale[at] = product[at] / square[at]
        self.n_added[at] += 1

    def forget(self, which: Index) -> None:
        """Forget the pairs of some starts."""
        self.pairs[which] = self.W[which] = 0.0
        self.R[which] = np.eye(self.size)
        self.scale[which], self.n_added[which] = 1.0, 0

    def keep(self, kept: Booleans) -> None:
        """Go on with some of the starts."""
        self.pairs, self.R, self.W = self.pairs[kept], self.R[kept], self.W[kept]
        self.scale, self.n_added = self.scale[kept], self.n_added[kept]


def _rows(array: Array, at: Index) -> Array:
    """Return some rows, given in order: the array itself if they are all of them."""
    return array if len(at) == len(array) else array[at]


def _shortened(step: Array, slope: Array, change: Array) -> Array:
    """Cut steps at the minimum of the parabola through what is known, within limits."""
    bend = change - step * slope
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        guess = -0.5 * slope * step * step / bend
    shorter = np.clip(guess, 0.1 * step, 0.5 * step)
    return np.where(np.isfinite(bend), shorter, 0.1 * step)
