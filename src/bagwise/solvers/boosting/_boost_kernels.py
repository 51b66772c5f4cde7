"""Compiled loops of `bagwise.solvers.boosting`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import compiled

_LEAST = 1e-300


@compiled
def _noisy_or(score: Floats, sign: float, weight: float, pull: Floats) -> float:
    missed = 0.0  # -log(1 - P)
    for j in range(len(score)):
        missed += max(score[j], 0.0) + np.log1p(np.exp(-abs(score[j])))
        pull[j] = 1.0 / (1.0 + np.exp(-score[j]))
    missed = max(missed, _LEAST)
    factor = weight / np.expm1(missed) if sign > 0.0 else -weight
    for j in range(len(score)):
        pull[j] *= factor
    if sign < 0.0:
        return weight * missed
    rest: float = -np.log(-np.expm1(-missed)) if missed < 1.0 else -np.log1p(-np.exp(-missed))
    return weight * rest


@compiled
def _isr(score: Floats, sign: float, weight: float, pull: Floats) -> float:
    highest = score.max()
    total = 0.0
    for j in range(len(score)):
        pull[j] = np.exp(score[j] - highest)
        total += pull[j]
    margin = sign * (highest + np.log(total))
    factor = sign * weight / (1.0 + np.exp(margin)) / total
    for j in range(len(score)):
        pull[j] *= factor
    loss: float = weight * (max(-margin, 0.0) + np.log1p(np.exp(-abs(margin))))
    return loss


@compiled
def _average(score: Floats, sign: float, weight: float, pull: Floats) -> float:
    value: float = weight * np.exp(-sign * score.mean())
    pull[:] = sign * value / len(score)
    return value


@compiled
def fill_pull(
    loss: int, scores: Floats, offsets: Integers, sign: Floats, weight: Floats, pull: Floats
) -> float:
    """Return the loss of all bags, and put minus its derivatives by the scores into ``pull``."""
    total = 0.0
    for i in range(len(sign)):
        begin, end = offsets[i], offsets[i + 1]
        if loss == 0:
            total += _noisy_or(scores[begin:end], sign[i], weight[i], pull[begin:end])
        elif loss == 1:
            total += _isr(scores[begin:end], sign[i], weight[i], pull[begin:end])
        else:
            total += _average(scores[begin:end], sign[i], weight[i], pull[begin:end])
    return total


@compiled
def best_stump(
    values: Floats, order: NDArray[Any], pull: Floats, margin: float
) -> tuple[int, float, float]:
    """Return feature, threshold and sign of the stump that agrees best with ``pull``.

    ``values`` has the sorted values of each feature in a row, ``order`` the instances that have
    them. A later stump has to be better by ``margin``, so that rounding does not choose.
    """
    total = pull.sum()
    best, feature, threshold = abs(total), 0, -np.inf
    side = 1.0 if total >= 0.0 else -1.0
    for k in range(values.shape[0]):
        below = 0.0
        for r in range(values.shape[1] - 1):
            below += pull[order[k, r]]
            low, high = values[k, r], values[k, r + 1]
            edge = total - 2.0 * below
            if low < high and abs(edge) > best + margin:
                best, feature = abs(edge), k
                threshold = low + 0.5 * (high - low)
                if threshold >= high:
                    threshold = low
                side = 1.0 if edge > 0.0 else -1.0
    return feature, threshold, side
