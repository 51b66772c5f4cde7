"""Squared hinges on few shared columns: Newton steps for several outputs, started warm."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from bagwise._arrays import Booleans, Floats
from bagwise._threads import checkpoint, ordered_map
from bagwise.solvers.svm._primal_newton import solve_definite

_EXACT = 1e-9  # relative gain of a Newton step after which no other is needed
_THREADED_WORK = 5e7  # multiplications in the Newton steps of all outputs: about 5 ms


@dataclass(frozen=True)
class Classifiers:
    """Linear functions of the columns, one for each output, and how they do.

    Parameters
    ----------
    weights : ndarray of shape (n_outputs, n_columns + 1)
        Coefficients of the columns, and the intercept at the end.
    decision : ndarray of shape (n_rows, n_outputs)
        Their values.
    pull : ndarray of shape (n_rows, n_outputs)
        Minus the derivative of each loss by its decision value.
    value : float
        The objective.
    n_iter : int
        Newton steps of the output that took most of them.
    residual : float
        Largest relative gain that an output's last full step made or promised; 0 where the minimum
        is exact.
    """

    weights: Floats
    decision: Floats
    pull: Floats
    value: float
    n_iter: int
    residual: float

    @property
    def is_exact(self) -> bool:
        """Whether all outputs reached their minimum."""
        return self.residual <= _EXACT

    @property
    def coef(self) -> Floats:
        """The coefficients of the columns."""
        return self.weights[:, :-1]

    @property
    def intercept(self) -> Floats:
        """The constants."""
        return self.weights[:, -1]


class SquaredHinges:
    r"""Linear classifiers with the squared hinge, for changing columns and quadratic forms.

    .. math::

        \min_{B, b} \sum_c \Bigl[\tfrac12 \beta_c^\top R \beta_c
        + \sum_i c_{ic} (1 - y_{ic} (\langle a_i, \beta_c \rangle + b_c))_+^2 \Bigr]

    Parameters
    ----------
    sign, cost : ndarray of shape (n_rows, n_outputs)
        Signs and costs.
    max_iter : int
        Most Newton steps for each output.
    n_threads : int or None
        Threads over outputs, where there is enough to do.
    """

    def __init__(
        self, sign: Floats, cost: Floats, *, max_iter: int = 100, n_threads: int | None = None
    ) -> None:
        self._signs = np.ascontiguousarray(sign.T)
        self._costs = np.ascontiguousarray(cost.T)
        self._max_iter, self._n_threads = max_iter, n_threads
        positive = np.where(sign > 0, cost, 0.0).sum(axis=0)
        both = cost.sum(axis=0)
        shares = positive / np.where(both > 0, both, 1.0)
        #: The least objective of constants: what any columns can only improve upon.
        self.ceiling = float((4.0 * both * shares * (1.0 - shares)).sum())

    def solve(
        self, columns: Floats, quadratic: Floats, start: Classifiers | None = None
    ) -> Classifiers:
        """Return the minimiser for these columns and this quadratic form."""
        n, m = columns.shape
        A = np.ones((n, m + 1))
        A[:, :m] = columns
        R = np.zeros((m + 1, m + 1))
        R[:m, :m] = quadratic
        n_outputs = len(self._signs)
        inside = np.ones((n_outputs, n), np.bool_) if start is None else start.pull.T != 0.0

        def one(c: int) -> _Minimum:
            return _minimize(A, R, self._signs[c], self._costs[c], inside[c], self._max_iter)

        work = 2.0 * n_outputs * n * m * m
        n_threads = self._n_threads if n_outputs > 1 and work > _THREADED_WORK else 1
        found = list(ordered_map(one, range(n_outputs), n_threads=n_threads))
        return Classifiers(
            weights=np.array([minimum.w for minimum in found]),
            decision=np.array([minimum.f for minimum in found]).T,
            pull=np.array([minimum.pull for minimum in found]).T,
            value=float(sum(minimum.value for minimum in found)),
            n_iter=max(minimum.n_iter for minimum in found),
            residual=max(minimum.residual for minimum in found),
        )


@dataclass(frozen=True)
class _Minimum:
    w: Floats
    f: Floats
    pull: Floats
    value: float
    n_iter: int
    residual: float


def _minimize(
    A: Floats, R: Floats, sign: Floats, cost: Floats, inside: Booleans, max_iter: int
) -> _Minimum:
    """Minimise for one output, given which rows are expected to fall short of their margin.

    While the same rows fall short the objective is quadratic, so a step after which they still do
    has reached the minimum. Which rows they are is the start, and not the weights: where vectors
    are close, weights are large and cancel, and they fit no other vectors.
    """
    used = cost > 0
    if not used.any() or (sign[used] == sign[used][0]).all():
        return _constant(A, sign, used)
    double = 2.0 * cost
    root, target = np.sqrt(double), sign * double
    inside = inside & used
    if not inside.any():
        inside = used
    hessian = R + _products(A, root, inside)
    w = f = shortfall = np.empty(0)
    value, gain, n_iter = np.inf, 1.0, 0
    while n_iter < max_iter and gain > _EXACT:
        checkpoint()
        n_iter += 1
        new_w = _solved(hessian, A.T @ (target * inside))
        new_f = A @ new_w
        new_shortfall, new_value = _value(R, sign, cost, new_w, new_f)
        new_inside = (new_shortfall > 0.0) & used
        if (new_inside == inside).all():
            gain = 0.0
        elif n_iter > 1:
            dw, df = new_w - w, new_f - f
            slope = float(dw @ (R @ w)) - float((target * shortfall) @ df)
            if value - new_value < -0.1 * slope:
                step = _search(R, sign, double, w, f, dw, df, slope)
                new_w, new_f = w + step * dw, f + step * df
                new_shortfall, new_value = _value(R, sign, cost, new_w, new_f)
                new_inside = (new_shortfall > 0.0) & used
            gain = max(value - new_value, -0.5 * slope) / value  # a short step proves nothing
            if new_value >= value:  # by rounding
                break
        if gain > _EXACT:
            if not new_inside.any():
                new_inside = used
            hessian += _products(A, root, new_inside & ~inside)
            hessian -= _products(A, root, inside & ~new_inside)
        w, f, shortfall, value, inside = new_w, new_f, new_shortfall, new_value, new_inside
    return _Minimum(w, f, target * shortfall, value, n_iter, gain)


def _products(A: Floats, root: Floats, which: Booleans) -> Floats:
    """Return the products of some rows, each times its coefficient, with one another."""
    index = which.nonzero()[0]
    rows = A[index]
    rows *= root[index, None]
    return rows.T @ rows


def _solved(hessian: Floats, right: Floats) -> Floats:
    _, solved, info = lapack.dposv(hessian, right, lower=1)
    return solved if info == 0 else solve_definite(hessian.copy(), right)


def _value(R: Floats, sign: Floats, cost: Floats, w: Floats, f: Floats) -> tuple[Floats, float]:
    """Return by how much each row falls short of its margin, and the objective."""
    shortfall = np.maximum(1.0 - sign * f, 0.0)
    return shortfall, 0.5 * float(w @ (R @ w)) + float(cost @ (shortfall * shortfall))


def _constant(A: Floats, sign: Floats, used: Booleans) -> _Minimum:
    """Return the minimum where all rows that count have one sign: a constant, without loss."""
    w = np.zeros(A.shape[1])
    w[-1] = sign[used][0] if used.any() else 0.0
    return _Minimum(w, np.full(len(A), w[-1]), np.zeros(len(A)), 0.0, 0, 0.0)


def _search(
    R: Floats,
    sign: Floats,
    double: Floats,
    w: Floats,
    f: Floats,
    dw: Floats,
    df: Floats,
    slope: float,
) -> float:
    """Return the step at which the objective is least along a direction, or nearly so."""
    quad = R @ dw
    constant, bend = float(w @ quad), float(dw @ quad)
    margin, rate = 1.0 - sign * f, sign * df
    low, high, step = 0.0, np.inf, 1.0
    for _ in range(60):
        shortfall = margin - step * rate
        weighted = np.where(shortfall > 0.0, double * rate, 0.0)
        first = constant + step * bend - float(weighted @ shortfall)
        if abs(first) <= -1e-3 * slope:
            return step
        low, high = (step, high) if first < 0.0 else (low, step)
        guess = step - first / (bend + float(weighted @ rate))
        middle = 2.0 * step if high == np.inf else 0.5 * (low + high)
        step = guess if low < guess < high else middle
    return low
