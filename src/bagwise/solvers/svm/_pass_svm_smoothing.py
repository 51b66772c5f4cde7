"""Many rows fall short: Newton steps on a smoothed hinge, whose curvature a sample tells."""

from typing import Any

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise.solvers.svm._pass_svm_bounds import Bounds
from bagwise.solvers.svm._primal_newton import NewtonModel

_SEED = 2010  # of the samples
_SAMPLE = 4  # rows per feature that curvature is estimated from
_MOST_FEATURES = 4096  # counted for it
_SMALLEST_SAMPLE = 1000
_SHARE = 0.1  # of a gradient that a step on a sample may leave
_BALANCED = 1e-10  # of the answers that may be left; one multiplier makes up for it
_SHARPEN = 3.0  # factor between the slopes of successive smoothings


class Smoothing:
    """Newton steps on a hinge that is smoothed about multipliers ``center``.

    Each row answers its shortfall ``u`` with ``clip(center + slope * u, 0, cost)``. The intercept
    is always the one at which the answers of both signs weigh the same, so that they are feasible.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.rng = bounds, np.random.default_rng(_SEED)
        self.n_support = bounds.rows.n
        self.model = NewtonModel(
            bounds.rows, bounds.sign, bounds.target,
            base=0.5 * bounds.cost, slope=bounds.cost.copy(), cap=bounds.cost,
            w=bounds.w, b=bounds.b, z=bounds.z, share=_SHARE,
        )  # fmt: skip
        self.sharpness = 1.0
        self.v: Floats | None = None  # the sum of rows that the answers make, once it is known

    def begin_at(self, dual: Floats) -> None:
        """Go on at the best point met, about multipliers that are known."""
        bounds, model = self.bounds, self.model
        model.w, model.b, model.z = bounds.w, bounds.b, bounds.z
        model.base = np.minimum(dual, bounds.cost)
        self.sharpness = max(self.sharpness, 4.0)
        self.n_support = int(np.count_nonzero(bounds.shortfall(model.z, model.b) > 0.0))
        self._bend()

    def step(self) -> None:
        """Look at the answers; then move the centre, or take a Newton step."""
        bounds, model = self.bounds, self.model
        self._settle()
        if self.v is None:
            self.v = bounds.combine(model.signed)
        alpha = np.abs(model.signed)
        self.n_support = int(np.count_nonzero(alpha))
        bounds.offer_point(model.w, model.b, model.z)
        bounds.offer_dual(alpha, self.v)
        if bounds.ended:
            return
        gradient = model.w - self.v
        short = bounds.shortfall(model.z, model.b)
        smoothing = float(bounds.cost @ np.maximum(short, 0.0)) - float(alpha @ short)
        if 0.5 * float(gradient @ gradient) <= smoothing:
            model.base = alpha
            self.sharpness *= _SHARPEN
            self._bend()
            return
        self._newton(alpha, gradient)

    def _bend(self) -> None:
        """Set the slopes; where no row comes near its cost, costs say nothing about alpha."""
        cost, model = self.bounds.cost, self.model
        most = max(2.0 * float(model.base.max(initial=0.0)), 1e-6 * float(cost.max()))
        model.slope = self.sharpness * np.minimum(cost, most)
        self.v = None

    def _settle(self) -> None:
        """Find the intercept at which the answers of both signs weigh the same."""
        from bagwise.solvers.svm._pass_svm_kernels import imbalance
        from bagwise.solvers.svm._primal_newton_kernels import answers

        model = self.model
        terms = model.base, model.slope, model.cap
        model.b = _root(lambda b: imbalance(model.sign, model.target, model.z, b, *terms), model.b)
        answers(model.sign, model.target, model.z, model.b, *terms, model.signed)
        _take_excess(model.signed, model.cap, float(model.signed.sum()))

    def _newton(self, alpha: Floats, gradient: Floats) -> None:
        bounds, model = self.bounds, self.model
        some, weight = self._sample()
        rows = bounds.rows.take(some)
        model.gradient, model.gradient_b = gradient, 0.0
        dw, db = model.direction_on(rows, weight)
        inside = (alpha[some] > 0.0) & (alpha[some] < model.cap[some])
        self._offer_corrected(alpha, some, rows, np.where(inside, weight, 0.0), dw, db)
        if bounds.ended:
            return
        dz = bounds.dot(dw)
        step = model.search(dw, db, dz)
        model.adapt_blur(step)
        model.w, model.b, model.z = model.w + step * dw, model.b + step * db, model.z + step * dz
        self.v = None

    def _sample(self) -> tuple[Integers, Floats]:
        """Return rows that tell the curvature, and how much each of them bends."""
        d, (free, weight) = self.bounds.rows.d, self.model.free_terms()
        size = max(_SAMPLE * min(d, _MOST_FEATURES), _SMALLEST_SAMPLE)
        if len(free) <= size:
            return free.copy(), weight.copy()
        some = np.sort(self.rng.choice(len(free), size, replace=False))
        return free[some], weight[some] * (len(free) / size)

    def _offer_corrected(
        self, alpha: Floats, some: Integers, rows: Any, weight: Floats, dw: Floats, db: float
    ) -> None:
        """Offer multipliers that are changed on the sample as the Newton step foresees it."""
        from bagwise.solvers.svm._pass_svm_kernels import imbalance

        assert self.v is not None
        model, before = self.model, alpha[some]
        sign, cap, zero = model.sign[some], model.cap[some], np.zeros(len(some))
        z, wanted = rows.dot(dw), float(sign @ before)

        def excess(b: float) -> tuple[float, float, float]:
            total, size, bend = imbalance(sign, zero, z, b, before, weight, cap)
            return total - wanted, size, bend

        b = _root(excess, db)
        after = np.clip(before - weight * sign * (z + b), 0.0, cap)
        signed = sign * after
        others = float(model.signed.sum()) - float(sign @ before)
        _take_excess(signed, cap, float(signed.sum()) + others)
        changed = alpha.copy()
        changed[some] = np.abs(signed)
        v = self.v + rows.combine(signed - sign * before)
        self.bounds.offer_dual(changed, v)


def _take_excess(signed: Floats, cap: Floats, excess: float) -> None:
    """Take what rounding left of a balance from the multiplier that is farthest from its bounds."""
    if not len(signed):
        return
    size = np.abs(signed)
    room = np.minimum(size, cap - size)
    k = int(room.argmax())
    if room[k] > abs(excess):
        signed[k] -= excess


def _root(function: Any, b: float) -> float:
    """Return where a falling function is 0, from its value, its scale and minus its slope."""
    low, high, width = -np.inf, np.inf, 1.0
    for _ in range(200):
        value, size, bend = function(b)
        if abs(value) <= _BALANCED * size:
            return b
        low, high = (b, high) if value > 0.0 else (low, b)
        guess = b + value / bend if bend > 0.0 else np.inf
        if guess == b:
            return b
        if not low < guess < high:
            width *= 2.0
            guess = 0.5 * (low + high)
            if not np.isfinite(guess):
                guess = b + width if value > 0.0 else b - width
        b = guess
    return b
