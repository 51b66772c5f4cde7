"""Compiled steps over assignments: mixtures of Gram blocks, coordinate ascent, enumeration.

An assignment ``choice`` holds instances as rows of the instances' Gram matrix ``inner``: one per
bag, or several, each with its part of the bag's coefficient. With these coefficients ``b`` and
``fixed``, what the fixed rows give to each instance, the form to maximise is
``|sum_i b_i phi_i + rest|^2``. ``values`` are the inner products of that sum with all instances:
``fixed + sum_i b_i inner[choice_i]``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._jit import REASSOCIATE, compiled


@compiled
def add_chosen(inner: NDArray[Any], choice: Integers, weight: float, out: Floats) -> None:
    """Add ``weight * inner[choice][:, choice]``."""
    n = choice.shape[0]
    for i in range(n):
        source, destination = inner[choice[i]], out[i]
        for j in range(n):
            destination[j] += weight * source[choice[j]]


@compiled(fastmath=REASSOCIATE)
def chosen_times(inner: NDArray[Any], choice: Integers, b: Floats, out: Floats) -> None:
    """Write ``inner[choice][:, choice] @ b``."""
    n = choice.shape[0]
    for i in range(n):
        row, total = inner[choice[i]], 0.0
        for j in range(n):
            total += row[choice[j]] * b[j]
        out[i] = total


@compiled(fastmath=REASSOCIATE)
def mix_rows(cross: NDArray[Any], offsets: Integers, marginal: Floats, out: Floats) -> None:
    """Write, for each bag, the sum of its rows weighted by ``marginal``."""
    n = cross.shape[1]
    for i in range(offsets.shape[0] - 1):
        total = out[i]
        for k in range(n):
            total[k] = 0.0
        for j in range(offsets[i], offsets[i + 1]):
            weight = marginal[j]
            if weight != 0.0:
                row = cross[j]
                for k in range(n):
                    total[k] += weight * row[k]


@compiled(fastmath=REASSOCIATE)
def begin_values(
    inner: NDArray[Any], choice: Integers, b: Floats, fixed: Floats, values: Floats
) -> None:
    """Write the values of an assignment."""
    n = values.shape[0]
    for j in range(n):
        values[j] = fixed[j]
    for i in range(choice.shape[0]):
        factor = b[i]
        if factor != 0.0:
            row = inner[choice[i]]
            for j in range(n):
                values[j] += factor * row[j]


@compiled(fastmath=REASSOCIATE)
def _move(inner: NDArray[Any], old: int, new: int, factor: float, values: Floats) -> None:
    before, after = inner[old], inner[new]
    for j in range(values.shape[0]):
        values[j] += factor * (after[j] - before[j])


@compiled
def _gain(square: float, beside: float, b: float, value: float) -> float:
    """Return what a bag of coefficient ``b`` gains by an instance, up to a constant.

    Known are its product with itself, with the instance that is chosen now, and its value.
    """
    if b == 0.0:
        return 2.0 * value
    return b * (b * (square - 2.0 * beside) + 2.0 * value)


@compiled
def _best(
    inner: NDArray[Any], first: int, last: int, now: int, b: float, taken: Booleans, values: Floats,
    slack: float,
) -> int:  # fmt: skip
    """Return the lowest free instance of a bag that is within ``slack`` of the best.

    A bag of coefficient 0 gives the same whatever is chosen; it takes what would be best for a
    small positive coefficient.
    """
    top, beside = -np.inf, inner[now]
    for j in range(first, last):
        if taken[j] and j != now:
            continue
        top = max(top, _gain(inner[j, j], beside[j], b, values[j]))
    for j in range(first, last):
        if taken[j] and j != now:
            continue
        if _gain(inner[j, j], beside[j], b, values[j]) >= top - slack:
            return j
    return now


@compiled
def ascend(
    inner: NDArray[Any],
    first: Integers,
    last: Integers,
    b: Floats,
    choice: Integers,
    taken: Booleans,
    values: Floats,
    slack: float,
    max_sweeps: int,
) -> bool:
    """Choose the best free instance for one entry after another; return if a sweep changed none.

    Entry ``i`` may be any of the instances ``first[i]`` up to ``last[i]`` that no other entry has,
    which ``taken`` tells.
    """
    for _ in range(max_sweeps):
        changed = False
        for i in range(choice.shape[0]):
            now = choice[i]
            new = _best(inner, first[i], last[i], now, b[i], taken, values, slack)
            if new != now:
                choice[i] = new
                taken[now], taken[new] = False, True
                if b[i] != 0.0:
                    changed = True
                    _move(inner, now, new, b[i], values)
        if not changed:
            return True
    return False


@compiled
def enumerate_forms(
    inner: NDArray[Any],
    offsets: Integers,
    b: Floats,
    fixed: Floats,
    choice: Integers,
    values: Floats,
    out: Floats,
) -> None:
    """Write ``sum_i b_i (values + fixed)[choice_i]`` for all assignments, the last bag fastest.

    ``choice`` must be the first instance of every bag, ``values`` its values.
    """
    n = choice.shape[0]
    for k in range(out.shape[0]):
        form = 0.0
        for i in range(n):
            form += b[i] * (values[choice[i]] + fixed[choice[i]])
        out[k] = form
        i = n - 1
        while i >= 0:
            now = choice[i]
            new = now + 1 if now + 1 < offsets[i + 1] else offsets[i]
            choice[i] = new
            if new != now:
                _move(inner, now, new, b[i], values)
            if new > now:
                break
            i -= 1
