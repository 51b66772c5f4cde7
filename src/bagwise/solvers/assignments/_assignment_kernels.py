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

TILE = 256  # columns of a matrix at a time


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
    n, m = values.shape[0], choice.shape[0]
    whole = m - m % 4
    for j in range(n):
        values[j] = fixed[j]
    for i in range(0, whole, 4):
        s, t, x, y = b[i], b[i + 1], b[i + 2], b[i + 3]
        c, d, e, f = (
            inner[choice[i]], inner[choice[i + 1]], inner[choice[i + 2]], inner[choice[i + 3]]
        )  # fmt: skip
        for j in range(n):
            values[j] += s * c[j] + t * d[j] + x * e[j] + y * f[j]
    for i in range(whole, m):
        c, s = inner[choice[i]], b[i]
        for j in range(n):
            values[j] += s * c[j]


@compiled(fastmath=REASSOCIATE)
def chosen_rows(
    cross: NDArray[Any], choices: Integers, b: Floats, first: int, last: int, out: Floats
) -> None:
    """Add ``b @ cross[choice]`` for each row of ``choices``, in the columns ``first`` to ``last``.

    A few columns at a time stay near the processor for all choices.
    """
    n = choices.shape[1]
    whole = n - n % 4
    for left in range(first, last, TILE):
        right = min(left + TILE, last)
        for k in range(choices.shape[0]):
            choice, total = choices[k], out[k, left:right]
            for i in range(0, whole, 4):
                s, t, x, y = b[i], b[i + 1], b[i + 2], b[i + 3]
                c, d = cross[choice[i], left:right], cross[choice[i + 1], left:right]
                e, f = cross[choice[i + 2], left:right], cross[choice[i + 3], left:right]
                for j in range(right - left):
                    total[j] += s * c[j] + t * d[j] + x * e[j] + y * f[j]
            for i in range(whole, n):
                c, s = cross[choice[i], left:right], b[i]
                for j in range(right - left):
                    total[j] += s * c[j]


@compiled(fastmath=REASSOCIATE)
def _move(inner: NDArray[Any], old: int, new: int, factor: float, values: Floats) -> None:
    before, after = inner[old], inner[new]
    for j in range(values.shape[0]):
        values[j] += factor * (after[j] - before[j])


@compiled(fastmath=REASSOCIATE)
def _write_own(
    inner: NDArray[Any], diagonal: Floats, first: int, last: int, now: int, b: float, own: Floats
) -> None:
    """Write the part of an entry's gains that only its own instance changes.

    An instance ``j`` in place of ``now`` gains ``own[j] + 2 b values[j]``, up to a constant.
    """
    beside = inner[now]
    for j in range(first, last):
        own[j - first] = b * b * (diagonal[j] - 2.0 * beside[j])


@compiled
def write_all_own(
    inner: NDArray[Any], diagonal: Floats, first: Integers, last: Integers, choice: Integers,
    b: Floats, own: Floats,
) -> None:  # fmt: skip
    """Write that part for all entries, one after another."""
    end = 0
    for i in range(choice.shape[0]):
        begin, end = end, end + last[i] - first[i]
        _write_own(inner, diagonal, first[i], last[i], choice[i], b[i], own[begin:end])


@compiled
def _best(
    first: int, last: int, now: int, b: float, taken: Booleans, own: Floats, values: Floats,
    slack: float,
) -> int:  # fmt: skip
    """Return the lowest free instance of a bag that is within ``slack`` of the best.

    A bag of coefficient 0 gives the same whatever is chosen; it takes what would be best for a
    small positive coefficient.
    """
    top, factor = -np.inf, 2.0 * b if b != 0.0 else 2.0
    for j in range(first, last):
        if not taken[j] or j == now:
            top = max(top, own[j - first] + factor * values[j])
    for j in range(first, last):
        if (not taken[j] or j == now) and own[j - first] + factor * values[j] >= top - slack:
            return j
    return now


@compiled
def ascend(
    inner: NDArray[Any],
    diagonal: Floats,
    first: Integers,
    last: Integers,
    b: Floats,
    choice: Integers,
    taken: Booleans,
    own: Floats,
    values: Floats,
    slack: float,
    max_sweeps: int,
) -> bool:
    """Choose the best free instance for one entry after another; return if a sweep changed none.

    Entry ``i`` may be any of the instances ``first[i]`` up to ``last[i]`` that no other entry has,
    which ``taken`` tells. ``own`` has a part for each entry, as `write_all_own` writes it.
    """
    for _ in range(max_sweeps):
        changed, end = False, 0
        for i in range(choice.shape[0]):
            now, begin = choice[i], end
            end = begin + last[i] - first[i]
            new = _best(first[i], last[i], now, b[i], taken, own[begin:end], values, slack)
            if new != now:
                choice[i] = new
                taken[now], taken[new] = False, True
                if b[i] != 0.0:
                    changed = True
                    _move(inner, now, new, b[i], values)
                    _write_own(inner, diagonal, first[i], last[i], new, b[i], own[begin:end])
        if not changed:
            return True
    return False


@compiled
def wander(
    inner: NDArray[Any],
    diagonal: Floats,
    first: Integers,
    last: Integers,
    b: Floats,
    fixed: Floats,
    choice: Integers,
    taken: Booleans,
    own: Floats,
    values: Floats,
    slack: float,
    max_sweeps: int,
    kicked: Booleans,
    draws: Floats,
) -> None:
    """Change the entries that a row of ``kicked`` tells and ascend again, row after row.

    ``draws`` has numbers from 0 to 1, which tell the new instances. Where the end is lower than the
    start, the next row begins at the start.
    """
    form = _form(b, fixed, choice, values)
    kept, kept_own, kept_values = choice.copy(), own.copy(), values.copy()
    for r in range(kicked.shape[0]):
        end = 0
        for i in range(choice.shape[0]):
            begin, now = end, choice[i]
            end = begin + last[i] - first[i]
            new = first[i] + int(draws[r, i] * (last[i] - first[i]))
            if kicked[r, i] and b[i] != 0.0 and not taken[new]:
                choice[i] = new
                taken[now], taken[new] = False, True
                _move(inner, now, new, b[i], values)
                _write_own(inner, diagonal, first[i], last[i], new, b[i], own[begin:end])
        ascend(inner, diagonal, first, last, b, choice, taken, own, values, slack, max_sweeps)
        reached = _form(b, fixed, choice, values)
        if reached >= form:
            form = reached
            kept[:], kept_own[:], kept_values[:] = choice, own, values
        else:
            for i in range(choice.shape[0]):
                taken[choice[i]] = False
            for i in range(choice.shape[0]):
                taken[kept[i]] = True
            choice[:], own[:], values[:] = kept, kept_own, kept_values


@compiled
def _form(b: Floats, fixed: Floats, choice: Integers, values: Floats) -> float:
    form = 0.0
    for i in range(choice.shape[0]):
        form += b[i] * (values[choice[i]] + fixed[choice[i]])
    return form


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
