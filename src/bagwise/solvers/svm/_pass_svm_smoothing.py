"""Many rows fall short: Newton steps on a smoothed hinge, whose curvature a sample tells."""

from typing import Any

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise.solvers.svm._multipliers import balanced
from bagwise.solvers.svm._pass_svm_bounds import Bounds, Point
from bagwise.solvers.svm._primal_newton import NewtonModel

_SEED = 2010  # of the samples
_SAMPLE = 4  # rows per feature that curvature is estimated from
_MOST_FEATURES = 4096  # counted for it
_SMALLEST_SAMPLE = 1000
_SHARE = 0.1  # of a gradient that a step on a sample may leave
_CONJUGATE = 50  # steps of conjugate gradients, at most, that solve for it
_BALANCED = 1e-10  # of the answers that may be left; one multiplier makes up for it
_UNEVEN = 0.4  # share of all costs in balanced multipliers, below which one sign has most of them
_GOOD = 0.1  # share of the objective that these should reach


class Smoothing:
    """Newton steps on a hinge that is smoothed about multipliers ``center``.

    Each row answers its shortfall ``u`` with ``clip(center + slope * u, 0, cost)``. The intercept
    is always the one at which the answers of both signs weigh the same, so that they are feasible.
    """

    sharpen = 3.0  #: factor between the slopes of successive smoothings
    sharp = 4.0  #: least slope about multipliers that are known, in units of the costs
    corrects = True  #: whether multipliers that a step foresees are offered

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.rng = bounds, np.random.default_rng(_SEED)
        self.n_support = bounds.rows.n
        self.model = NewtonModel(
            bounds.rows, bounds.sign, bounds.target,
            base=0.5 * bounds.cost, slope=bounds.cost, cap=bounds.cost,
            w=bounds.w, b=bounds.b, z=bounds.z, share=_SHARE, n_conjugate=_CONJUGATE,
        )  # fmt: skip
        self.sharpness = 1.0
        self.before, self.length = bounds.primal, 0.0  # of the last Newton step
        self.center_v: Floats | None = None  # the sum of rows that the centre makes, if known

    def begin_evenly(self) -> None:
        """Begin about multipliers that are one share of the costs of each sign, if they are good.

        They are where one sign has most of the costs and weights do not help.
        """
        bounds = self.bounds
        alpha = balanced(bounds.cost, bounds.sign)
        if float(alpha.sum()) > _UNEVEN * float(bounds.cost.sum()):
            return
        v = bounds.combine(bounds.sign * alpha)
        bounds.offer_dual(alpha, v)
        if bounds.lower >= _GOOD * bounds.primal:
            self.model.base, self.center_v = alpha, v
            self._bend()

    def rest(self) -> None:
        """Hold no more numbers for each row than others do, until the next `begin_at`."""
        model, bounds = self.model, self.bounds
        model.w, model.b, model.z = bounds.w, bounds.b, bounds.z
        model.base = model.slope = model.cap
        model.forget()

    def begin_at(self, dual: Floats) -> None:
        """Go on at the best point met, about multipliers that are known."""
        bounds, model = self.bounds, self.model
        model.w, model.b, model.z = bounds.w, bounds.b, bounds.z
        model.base, self.center_v = np.minimum(dual, bounds.cost), None
        model.signed = model.signed if len(model.signed) else np.empty(bounds.rows.n)
        self.sharpness = max(self.sharpness, self.sharp)
        self.n_support = bounds.n_short
        self._bend()

    def step(self) -> None:
        """Look at the answers; then move the centre, or take a Newton step."""
        alpha, v = self._look()
        if self.bounds.ended:
            return
        model, cost = self.model, self.bounds.cost
        gradient, short = model.w - v, self.bounds.shortfall(model.z, model.b)
        linear = float(alpha @ short)
        smoothing = float(cost @ np.maximum(short, 0.0, out=short)) - linear
        del short
        if 0.5 * float(gradient @ gradient) > smoothing:
            self._newton(alpha, v, gradient)
            return
        model.base, self.center_v = alpha, v
        self.sharpness *= self.sharpen
        self._bend()
        self._go_back()

    def _look(self) -> tuple[Floats, Floats]:
        """Offer the point and the answers; return these, and the sum of rows that they make."""
        from bagwise.solvers.svm._pass_svm_kernels import are_close

        bounds, model = self.bounds, self.model
        self._settle()
        alpha, v = np.abs(model.signed), self.center_v
        if v is not None and are_close(alpha, model.base, _BALANCED):
            alpha = model.base
        else:
            v = bounds.combine(model.signed)
        self.n_support = int(np.count_nonzero(alpha))
        bounds.offer_point(model.w, model.b, model.z)
        bounds.offer_dual(alpha, v)
        return alpha, v

    def _bend(self) -> None:
        """Set the slopes; where no row of a sign comes near its cost, costs do not tell alpha."""
        from bagwise.solvers.svm._pass_svm_kernels import bend

        cost, model = self.bounds.cost, self.model
        least = 1e-6 * float(cost.max())
        model.slope = bend(model.sign, model.base, cost, least, self.sharpness)

    def _go_back(self) -> None:
        """Go to the best point met if it is known to be good, and the smoothed hinge lower there.

        About a new centre it may be, as where weights do not help: there the centre itself answers.
        """
        bounds, model = self.bounds, self.model
        best: Point = bounds.w, bounds.b, bounds.z
        if not bounds.is_near:
            return
        if self._smoothed(best) < self._smoothed((model.w, model.b, model.z)):
            model.w, model.b, model.z = best

    def _smoothed(self, point: Point) -> float:
        """Return the objective with the smoothed hinge."""
        from bagwise.solvers.svm._pass_svm_kernels import smoothed

        model, (w, b, z) = self.model, point
        terms = model.base, model.slope, model.cap
        return 0.5 * float(w @ w) + smoothed(model.sign, model.target, z, b, *terms)

    def _settle(self) -> None:
        """Find the intercept at which the answers of both signs weigh the same."""
        from bagwise.solvers.svm._pass_svm_kernels import imbalance
        from bagwise.solvers.svm._primal_newton_kernels import answers

        model = self.model
        terms = model.base, model.slope, model.cap
        model.b = _root(lambda b: imbalance(model.sign, model.target, model.z, b, *terms), model.b)
        answers(model.sign, model.target, model.z, model.b, *terms, model.signed)
        _take_excess(model.signed, model.cap, float(model.signed.sum()))

    def _newton(self, alpha: Floats, v: Floats, gradient: Floats) -> None:
        bounds, model = self.bounds, self.model
        some, weight = self._sample()
        rows = bounds.rows.take(some)
        model.gradient, model.gradient_b = gradient, 0.0
        dw, db = model.direction_on(rows, weight, rough=True)
        if self.corrects:
            inside = (alpha[some] > 0.0) & (alpha[some] < model.cap[some])
            self._offer_corrected(alpha, v, some, rows, np.where(inside, weight, 0.0), dw, db)
            if bounds.ended:
                return
        dz = bounds.dot(dw)
        step = model.search(dw, db, dz)
        model.adapt_blur(step)
        self.before, self.length = bounds.primal, step
        dz *= step
        dz += model.z
        model.w, model.b, model.z = model.w + step * dw, model.b + step * db, dz

    def _sample(self) -> tuple[Integers, Floats]:
        """Return rows that tell the curvature, and how much each of them bends."""
        size, (free, weight) = sample_size(self.bounds), self.model.free_terms()
        if len(free) <= size:
            found = free.copy(), weight.copy()
        else:
            some = np.sort(self.rng.choice(len(free), size, replace=False))
            found = free[some], weight[some] * (len(free) / size)
        self.model.forget_free()
        return found

    def _offer_corrected(
        self,
        alpha: Floats,
        v: Floats,
        some: Integers,
        rows: Any,
        weight: Floats,
        dw: Floats,
        db: float,
    ) -> None:
        """Offer multipliers that are changed on the sample as the Newton step foresees it."""
        from bagwise.solvers.svm._pass_svm_kernels import imbalance

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
        self.bounds.offer_dual(changed, v + rows.combine(signed - sign * before))


def sample_size(bounds: Bounds) -> int:
    """Return how many rows tell the curvature.

    Where they are short, as in text, there are many: of a feature that none of them has, they tell
    nothing.
    """
    size = max(_SAMPLE * min(bounds.rows.d, _MOST_FEATURES), _SMALLEST_SAMPLE)
    return max(size, min(_SAMPLE * bounds.rows.d, bounds.most_rows))


def _take_excess(signed: Floats, cap: Floats, excess: float) -> None:
    """Take what rounding left of a balance from the multiplier that is farthest from its bounds."""
    from bagwise.solvers.svm._pass_svm_kernels import roomiest

    k, room = roomiest(signed, cap)
    if room > abs(excess):
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
