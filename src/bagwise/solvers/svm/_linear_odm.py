"""Optimal margin distribution machines on features, in memory or read in passes."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats
from bagwise._progress import report
from bagwise._threads import checkpoint, single_blas_thread
from bagwise.solvers._checks import check_limits, check_positive, checked_array, not_finite
from bagwise.solvers._result import Result, Status
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.operators._pass_rows import PassRows
from bagwise.solvers.svm._band import Band
from bagwise.solvers.svm._primal_newton import NewtonModel

_NAME = "solve_linear_odm"  # in errors
_MOST_STEPS = 200
_COPIED = 3000  # rows that are copied from a file for one step
_PASS_SYSTEM = 1000  # features up to which chunks of rows add up to a linear system
_SHARE = 1e-6  # what conjugate gradients may leave of a gradient
_STALLED = 3  # steps without a lower objective


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearODMResult(Result):
    """An optimal margin distribution machine: ``x`` holds the weights of the features.

    Parameters
    ----------
    intercept : float
        The constant ``b`` of the decision function.
    decision : ndarray of float
        The decision function on the rows.
    dual : ndarray of float
        Coefficients of the rows whose sum makes the weights: minus the derivatives of the losses.
    """

    intercept: float
    decision: Floats
    dual: Floats


def solve_linear_odm(
    rows: Any,
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    theta: float = 0.2,
    nu: float = 0.2,
    bias: float = 1.0,
    w0: ArrayLike | None = None,
    intercept0: float = 0.0,
    tol: float = 1e-9,
    max_iter: int = _MOST_STEPS,
) -> LinearODMResult:
    r"""Train a linear machine whose margins lie in a band around 1.

    The problem, for rows :math:`a_r`, signs :math:`s_r`, costs :math:`c_r` and margins
    :math:`m_r = s_r (\langle w, a_r \rangle + b)`, is

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2 + \frac{b^2}{2 \kappa}
        + \sum_r c_r \bigl[ (1 - \theta - m_r)_+^2 + \nu (m_r - 1 - \theta)_+^2 \bigr]

    which is that of `solve_odm` for the Gram matrix of the rows plus :math:`\kappa`. Coefficients
    :math:`\beta_r` of the rows that are minus the derivatives of the losses are feasible in the
    dual. With :math:`q = \sum_r \beta_r a_r` the gap between both values is

    .. math::

        \tfrac12 \|w - q\|^2 + \tfrac{\kappa}2 \Bigl(\frac b\kappa - \sum_r \beta_r\Bigr)^2 .

    Parameters
    ----------
    rows : array or CSR matrix of shape (n, d), FeatureRows or PassRows
        The vectors :math:`a_r`, in single or double precision. A `PassRows` is read in passes,
        three for a Newton step; with more than 1000 features, there may be more.
    sign : array-like of shape (n,)
        -1 or +1; they may all be the same.
    cost : array-like of shape (n,) or float
        Costs, not negative. A row of cost 0 takes no part.
    theta : float
        Half the width of the band, from 0 to below 1.
    nu : float
        What a margin above the band costs, in units of one below; positive.
    bias : float
        :math:`\kappa`, positive. With 0 there is no constant ``b``.
    w0, intercept0 : array-like of shape (d,) and float
        Where to start.
    tol : float
        Largest gap at the end, in units of the objective.
    max_iter : int
        Most Newton steps.

    Returns
    -------
    LinearODMResult
        ``objective`` is the value of the primal, ``lower_bound`` that of the dual, ``residual`` the
        gap in units of the objective, ``history`` the primal over the steps, which never rises.
    """
    started = perf_counter()
    check_limits(_NAME, tol, max_iter)
    if bias != 0.0:
        check_positive(_NAME, "bias", bias)
    matrix = rows if isinstance(rows, PassRows) else FeatureRows.of(rows, owner=_NAME)
    band = Band(_NAME, sign, cost, theta, nu, matrix.n)
    w = np.zeros(matrix.d) if w0 is None else checked_array(_NAME, "w0", w0, (matrix.d,))
    b = float(checked_array(_NAME, "intercept0", intercept0, ())) if bias else 0.0
    with single_blas_thread():
        model = _BandModel(matrix, band, bias, w, b)
        status = model.climb_down(tol, max_iter)
    return LinearODMResult(
        x=model.w,
        intercept=model.b,
        decision=model.z + model.b,
        dual=model.signed,
        objective=model.value,
        lower_bound=model.value - model.gap,
        residual=model.relative_gap,
        status=status,
        n_iter=model.n_iter,
        history=np.minimum.accumulate(model.history),
        solve_time=perf_counter() - started,
    )


class _BandModel(NewtonModel):
    """The Newton steps of `NewtonModel` for the loss of a band."""

    def __init__(self, matrix: Any, band: Band, bias: float, w: Floats, b: float) -> None:
        nothing = np.zeros(matrix.n)
        super().__init__(
            matrix, band.sign, nothing, base=nothing, slope=nothing, cap=nothing, w=w, b=b,
            intercept_penalty=1.0 / bias if bias else None, share=_SHARE,
        )  # fmt: skip
        self.band = band

    def evaluate(self) -> None:
        """Compute the coefficients of the rows, the value, its gradient and the gap."""
        f = self.z + self.b
        self.signed = self.band.coef(f)
        rho = self.rho or 0.0
        self.value = 0.5 * float(self.w @ self.w) + 0.5 * rho * self.b**2 + self.band.loss(f)
        self.history.append(self.value)
        self.gradient = self.w - self.matrix.combine(self.signed)
        self.gap = 0.5 * float(self.gradient @ self.gradient)
        self.gradient_b = 0.0
        if self.rho is not None:
            self.gradient_b = rho * self.b - float(self.signed.sum())
            self.gap += 0.5 * self.gradient_b**2 / rho
        if not np.isfinite(self.value + self.gap):
            raise ValueError(not_finite(_NAME, "rows"))

    @property
    def relative_gap(self) -> float:
        """The gap in units of the value."""
        return self.gap / max(self.value, 1e-300)

    def climb_down(self, tol: float, max_iter: int) -> Status:
        """Take Newton steps until the gap is small or rounding hides all progress."""
        self.evaluate()
        worse = 0
        while self.relative_gap > 0.01 * tol and self.n_iter < max_iter and worse < _STALLED:
            checkpoint()
            self.n_iter += 1
            before = self.value
            dw, db, _ = self._direction()
            dz = self.matrix.dot(dw)
            step = self.search(dw, db, dz)
            self.w, self.b = self.w + step * dw, self.b + step * db
            self.z = self.matrix.dot(self.w) if worse else self.z + step * dz
            self.evaluate()
            report("step", self.n_iter, objective=self.value, gap=self.relative_gap, goal=tol)
            worse = 0 if self.value < before else worse + 1
        if self.relative_gap <= tol:
            return Status.CONVERGED
        return Status.MAX_ITER if self.n_iter >= max_iter else Status.STALLED

    def search(self, dw: Floats, db: float, dz: Floats) -> float:
        """Return the step along a direction at which the value is least."""
        rho = self.rho or 0.0
        start = float(self.w @ dw) + rho * self.b * db
        form = float(dw @ dw) + rho * db * db
        return self.band.line_search(self.z + self.b, dz + db, start, form)

    def _direction(self) -> tuple[Floats, float, int]:
        """Return the Newton step for the rows outside the band, and how many they are."""
        bend = self.band.bend(*self.band.sides(self.z + self.b))
        active = np.flatnonzero(bend)
        if isinstance(self.matrix, FeatureRows):
            step = self.direction_on(self.matrix.take(active), bend[active])
        elif self.matrix.d <= _PASS_SYSTEM:
            change = self._primal_direction(self.matrix.curvature(bend))
            step = change[:-1], float(change[-1])
        elif len(active) <= _COPIED:
            step = self.direction_on(self.matrix.take(active), bend[active])
        else:
            change = self._conjugate_direction(self.matrix, bend)
            step = change[:-1], float(change[-1])
        return *step, len(active)
