"""Compiled coordinate steps of the linear SVM dual, for dense and CSR rows.

Row ``r`` of the problem is row ``rows[r]`` of the shared matrix. ``bound`` holds the four numbers
of a sweep: the intercept, the sum of ``sign * alpha``, and the largest and the smallest derivative
of the objective, projected on the box, that were met.
"""

from typing import Any

from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import compiled
from bagwise.solvers.operators._row_kernels import row_add, row_dot, row_loop

_TINY = 1e-300


@compiled
def _step(
    derivative: float, alpha: float, cap: float, curvature: float, bound: Floats,
    drop_above: float, drop_below: float,
) -> tuple[float, bool]:  # fmt: skip
    """Return the best value of a coordinate, and whether its row may be left out for a while."""
    projected = derivative
    if alpha <= 0.0:
        if derivative > drop_above:
            return alpha, True
        projected = min(derivative, 0.0)
    elif alpha >= cap:
        if derivative < drop_below:
            return alpha, True
        projected = max(derivative, 0.0)
    bound[2] = max(bound[2], projected)
    bound[3] = min(bound[3], projected)
    if projected == 0.0:
        return alpha, False
    return min(max(alpha - derivative / max(curvature, _TINY), 0.0), cap), False


@row_loop
def sweep(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: Integers,
    order: Integers,
    sign: Floats,
    target: Floats,
    cap: Floats,
    ridge: Floats,
    curvature: Floats,
    alpha: Floats,
    w: Floats,
    bias: float,
    bound: Floats,
    drop_above: float,
    drop_below: float,
    kept: Integers,
) -> int:
    """Minimise over one coordinate after another; return how many rows are worth a next visit."""
    count = 0
    for r in order:
        row = rows[r]
        total = row_dot(data, indices, indptr, row, w)
        slope = sign[r] * (total + bound[0]) - target[r] + ridge[r] * alpha[r]
        value, drop = _step(slope, alpha[r], cap[r], curvature[r], bound, drop_above, drop_below)
        if drop:
            continue
        kept[count] = r
        count += 1
        change = sign[r] * (value - alpha[r])
        if change != 0.0:
            alpha[r] = value
            row_add(data, indices, indptr, row, change, w)
            bound[0] += bias * change
            bound[1] += change
    return count


@row_loop
def centred_sweep(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: Integers,
    order: Integers,
    sign: Floats,
    target: Floats,
    cap: Floats,
    ridge: Floats,
    curvature: Floats,
    alpha: Floats,
    w: Floats,
    bias: float,
    bound: Floats,
    lean: Floats,
    drop_above: float,
    drop_below: float,
    kept: Integers,
) -> int:
    """Do the same on rows less their mean, which is not subtracted from any of them.

    ``lean`` holds the inner products of the rows with the mean. Behind its four numbers ``bound``
    has the inner product of ``w`` with the mean, and the square of that. ``w`` and the curvatures
    are those of the rows as they are, and of the rows less their mean.
    """
    count = 0
    for r in order:
        row = rows[r]
        total = row_dot(data, indices, indptr, row, w)
        total -= bound[4] + bound[1] * (lean[r] - bound[5])
        slope = sign[r] * (bound[0] + total) - target[r] + ridge[r] * alpha[r]
        value, drop = _step(slope, alpha[r], cap[r], curvature[r], bound, drop_above, drop_below)
        if drop:
            continue
        kept[count] = r
        count += 1
        change = sign[r] * (value - alpha[r])
        if change != 0.0:
            alpha[r] = value
            row_add(data, indices, indptr, row, change, w)
            bound[0] += bias * change
            bound[1] += change
            bound[4] += change * lean[r]
    return count
