"""Boosting on bags: weak learners of instances, one after the other, for a loss of bags."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats
from bagwise._progress import report
from bagwise._threads import checkpoint
from bagwise.solvers._checks import check_limits, checked_array, checked_signs, checked_weights
from bagwise.solvers._result import Result, Status

_LOSSES = ("noisy_or", "isr", "average")
_LONGEST = 8.0  # step along a learner: there is no best one where it separates the bags
_FLAT = 1e-3  # of the first slope: where a line search ends
_TRIALS = 30
_SAME = 1e-10  # relative difference of stumps that are as good

BagLoss = Literal["noisy_or", "isr", "average"]


class Stump(NamedTuple):
    """A weak learner that looks at one feature: ``sign`` above the threshold, else ``-sign``."""

    feature: int
    threshold: float
    sign: float


class Stumps:
    """All decision stumps on some rows, with the features sorted once.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Instances.
    """

    def __init__(self, rows: ArrayLike) -> None:
        self.rows = checked_array("Stumps", "rows", rows, (None, None))
        columns = np.ascontiguousarray(self.rows.T)
        self._order = np.argsort(columns, axis=1, kind="stable").astype(np.int32)
        self._values = np.take_along_axis(columns, self._order, axis=1)

    def __call__(self, pull: Floats) -> tuple[Stump, Floats]:
        """Return the stump h with the largest sum of ``pull * h``, and its h on the rows."""
        from bagwise.solvers.boosting._boost_kernels import best_stump

        margin = _SAME * float(np.abs(pull).sum())
        stump = Stump(*best_stump(self._values, self._order, pull, margin))
        is_above = self.rows[:, stump.feature] > stump.threshold
        return stump, np.where(is_above, stump.sign, -stump.sign)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoostResult(Result):
    """Scores of instances: ``intercept`` plus the sum of learners h with the coefficients ``x``.

    Parameters
    ----------
    intercept : float
        The constant.
    learners : tuple
        What the caller gave back for each learner.
    """

    intercept: float
    learners: tuple[Any, ...]


def boost_bags(
    weak: Callable[[Floats], tuple[Any, Floats]],
    offsets: ArrayLike,
    sign: ArrayLike,
    weight: ArrayLike = 1.0,
    *,
    loss: BagLoss = "noisy_or",
    tol: float = 1e-6,
    max_iter: int = 100,
) -> BoostResult:
    r"""Minimise a loss of bags over sums of weak learners, one learner at a time.

    The score of an instance is :math:`F_{ij} = b + \sum_t \lambda_t h_t(x_{ij})` with
    :math:`\lambda_t \ge 0`. The loss is

    * noisy or and ISR: :math:`-\sum_{i+} w_i \log P_i - \sum_{i-} w_i \log(1 - P_i)` with
      :math:`P_i = 1 - \prod_j (1 - p_{ij})`, :math:`p_{ij} = 1 / (1 + e^{-F_{ij}})`, or
      :math:`P_i = S_i / (1 + S_i)`, :math:`S_i = \sum_j e^{F_{ij}}`;
    * average: :math:`\sum_i w_i \exp(-y_i \sum_j F_{ij} / n_i)`.

    First b is the best constant. Each round takes the learner that agrees best with minus the
    derivatives of the loss by the scores, and goes along it until the loss is flat; the loss never
    rises.

    Parameters
    ----------
    weak : callable
        Takes minus the derivatives, one for each instance, and returns a learner and its values
        between -1 and 1 on all instances. The sign of a derivative is that of the bag. `Stumps` is
        one.
    offsets : array-like of int of shape (n_bags + 1,)
        Rows at which bags begin.
    sign : array-like of shape (n_bags,)
        +1 or -1; there are both.
    weight : array-like of shape (n_bags,)
        Weights :math:`w_i`.
    loss : {"noisy_or", "isr", "average"}
        How instances make a bag; see above.
    tol : float
        It ends when a round lowers the loss by less, in units of the weight of all bags.
    max_iter : int
        Most rounds.

    Returns
    -------
    BoostResult
        Coefficients and learners, one for each round.
    """
    started = perf_counter()
    descent = _Descent(offsets, sign, weight, loss)
    check_limits("boost_bags", tol, max_iter)
    up = np.ones(len(descent.scores))
    way = 1.0 if descent.pull.sum() > 0.0 else -1.0
    intercept = way * descent.go(way * up, longest=np.inf)
    coef, learners, history = [], [], [descent.value]
    status, enough = Status.MAX_ITER, tol * float(descent.weight.sum())
    for _ in range(max_iter):
        checkpoint()
        learner, direction = weak(descent.pull)
        step = descent.go(direction)
        if step > 0.0:
            coef.append(step)
            learners.append(learner)
            history.append(descent.value)
            report("round", len(coef), total=max_iter, objective=descent.value)
        if step == 0.0 or history[-2] - history[-1] <= enough:
            status = Status.CONVERGED
            break
    return BoostResult(
        objective=descent.value, status=status, n_iter=len(coef), history=np.array(history),
        solve_time=perf_counter() - started, x=np.array(coef), intercept=intercept,
        learners=tuple(learners),
    )  # fmt: skip


class _Descent:
    """Scores that go down a loss of bags."""

    def __init__(self, offsets: ArrayLike, sign: ArrayLike, weight: ArrayLike, loss: str) -> None:
        name = "boost_bags"
        self.offsets = np.asarray(offsets, np.int64)
        n_bags = len(self.offsets) - 1
        self.sign = checked_signs(name, sign, n_bags)
        self.weight = checked_weights(name, weight, n_bags)
        if loss not in _LOSSES:
            msg = f"loss of {name} must be one of {_LOSSES}. Got {loss!r}."
            raise ValueError(msg)
        self.loss = _LOSSES.index(loss)
        self.scores = np.zeros(int(self.offsets[-1]))
        self.pull = np.empty_like(self.scores)
        self.value = self._evaluate(self.scores)

    def _evaluate(self, scores: Floats) -> float:
        from bagwise.solvers.boosting._boost_kernels import fill_pull

        return fill_pull(self.loss, scores, self.offsets, self.sign, self.weight, self.pull)

    def go(self, direction: Floats, longest: float = _LONGEST) -> float:
        """Go along a direction to where the loss is flat; return how far, 0 if it rises."""
        first = slope = float(self.pull @ direction)
        best, value, step = 0.0, self.value, 1.0
        low, high = (0.0, first), None
        for _ in range(_TRIALS if first > 0.0 else 0):
            trial = self._evaluate(self.scores + step * direction)
            slope = float(self.pull @ direction)
            if trial < value:
                best, value = step, trial
            if abs(slope) <= _FLAT * first or (high is None and slope > 0.0 and step >= longest):
                break
            if slope > 0.0:
                low = (step, slope)
            else:
                high = (step, slope)
            step = _between(low, high) if high else min(2.0 * step, longest)
        self.scores += best * direction
        self.value = self._evaluate(self.scores)
        return best


def _between(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Return where the slope is 0 if it is linear, but not near an end."""
    length = high[0] - low[0]
    share = low[1] / (low[1] - high[1])
    return low[0] + min(max(share, 0.1), 0.9) * length
