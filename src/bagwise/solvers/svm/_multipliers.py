"""Multipliers of rows with two signs: balanced, moved to other costs, and their intercept."""

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Booleans, Floats, Signs
from bagwise.solvers._checks import checked_array


def balanced(alpha: Floats, sign: Signs) -> Floats:
    """Scale the heavier sign down until both signs weigh the same."""
    above = np.maximum(sign, 0.0)
    positive = float(alpha @ above)
    above -= sign
    negative = float(alpha @ above)
    del above  # rows may be many
    if positive == negative:
        return alpha
    heavier = sign == (1.0 if positive > negative else -1.0)
    share, out = min(positive, negative) / max(positive, negative), alpha.copy()
    return np.multiply(alpha, share, out=out, where=heavier)


def rescale_alpha(alpha: ArrayLike, cost_from: ArrayLike, cost_to: ArrayLike) -> Floats:
    """Turn the solution for some costs into a start for others, for the hinge.

    Rows at a bound stay at that bound; the others are clipped to the new box.

    Parameters
    ----------
    alpha : array-like of shape (n,)
        The solution for ``cost_from``.
    cost_from, cost_to : array-like of shape (n,) or float
        The costs that it belongs to, and those that it is to serve.
    """
    values = checked_array("rescale_alpha", "alpha", alpha, (None,))
    before, after = (
        checked_array("rescale_alpha", name, cost, values.shape, spread=True)
        for name, cost in (("cost_from", cost_from), ("cost_to", cost_to))
    )
    return np.where((values >= before) & (before > 0.0), after, np.minimum(values, after))


def intercept_between(values: Floats, free: Booleans, interval: tuple[float, float]) -> float:
    """Return the mean of ``values`` over the free rows or, without any, the middle of an interval.

    These are the intercepts that multipliers leave possible. Of an interval with one end it is that
    end, without an end 0.
    """
    return float(values[free].mean()) if free.any() else middle(interval)


def middle(interval: tuple[float, float]) -> float:
    """Return the middle of an interval, its only end, or 0."""
    ends = [float(end) for end in interval if not np.isinf(end)]
    return sum(ends) / len(ends) if ends else 0.0
