"""The loss of optimal margin distribution machines: squares outside a band of margins."""

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Booleans, Floats
from bagwise.solvers._checks import checked_array, checked_signs

_LINE_STEPS = 100


class Band:
    r"""Losses :math:`c_r [(1 - \theta - m_r)_+^2 + \nu (m_r - 1 - \theta)_+^2]` of rows.

    The margin :math:`m_r = s_r f_r` of a row is its decision value times its sign. The loss is
    continuously differentiable and piecewise quadratic.

    Parameters
    ----------
    owner : str
        Solver, for messages.
    sign : array-like of shape (n,)
        -1 or +1.
    cost : array-like of shape (n,) or float
        Costs, not negative. A row of cost 0 takes no part.
    theta : float
        Half the width of the band, from 0 to below 1.
    nu : float
        What a margin above the band costs, in units of one below; positive.
    n : int
        Number of rows.
    """

    def __init__(
        self, owner: str, sign: ArrayLike, cost: ArrayLike, theta: float, nu: float, n: int
    ) -> None:
        self.n = n
        self.sign = checked_signs(owner, sign, n)
        self.cost = checked_array(owner, "cost", cost, (n,), spread=True)
        for name, value, valid in (
            ("cost", float(self.cost.min(initial=np.inf)), "not negative"),
            ("theta", theta, "at least 0 and below 1"),
            ("nu", nu, "positive"),
        ):
            is_bad = value < 0.0 or (name == "theta" and value >= 1.0)
            if is_bad or (name == "nu" and value <= 0.0) or not np.isfinite(value):
                msg = f"{owner}: {name} must be {valid}. Got {value:g}."
                raise ValueError(msg)
        self.low, self.high, self.nu = 1.0 - theta, 1.0 + theta, nu
        self.used = self.cost > 0.0

    def sides(self, f: Floats) -> tuple[Booleans, Booleans]:
        """Return which rows are below and which above the band."""
        margin = self.sign * f
        return (margin < self.low) & self.used, (margin > self.high) & self.used

    def loss(self, f: Floats) -> float:
        """Return the sum of the losses."""
        margin = self.sign * f
        below, above = np.maximum(self.low - margin, 0.0), np.maximum(margin - self.high, 0.0)
        return float(self.cost @ (below**2 + self.nu * above**2))

    def bend(self, below: Booleans, above: Booleans) -> Floats:
        """Return the second derivatives of the losses by the decision values."""
        weight: Floats = 2.0 * self.cost * (below + self.nu * above)
        return weight

    def coef(self, f: Floats) -> Floats:
        """Return minus the derivatives of the losses by the decision values."""
        below, above = self.sides(f)
        goal = self.sign * np.where(above, self.high, self.low)
        return self.bend(below, above) * (goal - f)

    def conjugate(self, coef: Floats) -> float:
        """Return what the coefficients of the rows give in the dual, without the norm."""
        alpha, cost = (self.sign * coef)[self.used], self.cost[self.used]
        up, down = np.maximum(alpha, 0.0), np.maximum(-alpha, 0.0)
        value = self.low * up - self.high * down - up**2 / (4.0 * cost)
        value -= down**2 / (4.0 * self.nu * cost)
        return float(value.sum())

    def line_search(self, f: Floats, change: Floats, start: float, form: float) -> float:
        """Return the ``t >= 0`` at which the losses of ``f + t * change`` and a parabola are least.

        The slope is piecewise linear in ``t`` and increases, so that Newton steps between bounds
        find where it is 0.

        Parameters
        ----------
        f, change : ndarray of shape (n,)
            Decision values and their change.
        start, form : float
            The parabola: ``start * t + form * t**2 / 2``.
        """
        margin, change = self.sign * f, self.sign * change
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(_LINE_STEPS):
            here = margin + t * change
            below, above = here < self.low, here > self.high
            weight = self.bend(below, above)
            off = here - np.where(below, self.low, self.high)
            slope = start + t * form + float(weight @ (off * change))
            bend = form + float(weight @ (change * change))
            low, high = (t, high) if slope < 0.0 else (low, t)
            if bend <= 0.0 or slope == 0.0:
                break
            new = t - slope / bend
            if not low < new < high:
                new = 0.5 * (low + high) if np.isfinite(high) else 2.0 * t
            if abs(new - t) <= 1e-15 * max(1.0, t):
                break
            t = new
        return t
