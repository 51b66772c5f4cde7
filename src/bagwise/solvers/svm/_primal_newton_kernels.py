"""Compiled loops over rows of a matrix (dense or CSR) and over the terms of the Newton model.

``rows`` always says which rows of the shared matrix are meant. A term of the model answers a
shortfall ``u = target - sign * (z + b)`` with ``clip(base + slope * u, 0, cap)``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def dense_dot(
    matrix: NDArray[Any], rows: NDArray[np.int64], w: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Write ``matrix[rows] @ w``."""
    for i in range(rows.shape[0]):
        row = matrix[rows[i]]
        total = 0.0
        for k in range(row.shape[0]):
            total += row[k] * w[k]
        out[i] = total


@compiled(fastmath=REASSOCIATE)
def dense_combine(
    matrix: NDArray[Any],
    rows: NDArray[np.int64],
    factor: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Add ``factor @ matrix[rows]`` to ``out``."""
    for i in range(rows.shape[0]):
        if factor[i] != 0.0:
            row, by = matrix[rows[i]], factor[i]
            for k in range(row.shape[0]):
                out[k] += by * row[k]


@compiled(fastmath=REASSOCIATE)
def dense_square_norms(
    matrix: NDArray[Any], rows: NDArray[np.int64], out: NDArray[np.float64]
) -> None:
    """Write the squared lengths of the rows."""
    for i in range(rows.shape[0]):
        row = matrix[rows[i]]
        total = 0.0
        for k in range(row.shape[0]):
            value = np.float64(row[k])
            total += value * value
        out[i] = total


@compiled
def csr_dot(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: NDArray[np.int64],
    w: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write ``matrix[rows] @ w``."""
    for i in range(rows.shape[0]):
        total = 0.0
        for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
            total += data[k] * w[indices[k]]
        out[i] = total


@compiled
def csr_combine(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: NDArray[np.int64],
    factor: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Add ``factor @ matrix[rows]`` to ``out``."""
    for i in range(rows.shape[0]):
        if factor[i] != 0.0:
            for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
                out[indices[k]] += factor[i] * data[k]


@compiled
def csr_square_norms(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Write the squared lengths of the rows, in which no column comes twice."""
    for i in range(rows.shape[0]):
        total = 0.0
        for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
            value = np.float64(data[k])
            total += value * value
        out[i] = total


@compiled(fastmath=REASSOCIATE)
def answers(
    sign: NDArray[np.float64],
    target: NDArray[np.float64],
    z: NDArray[np.float64],
    b: float,
    base: NDArray[np.float64],
    slope: NDArray[np.float64],
    cap: NDArray[np.float64],
    out: NDArray[np.float64],
) -> tuple[float, float, float]:
    """Write the answers times the signs; return their sum, that of their sizes, and the terms'."""
    total, size, value = 0.0, 0.0, 0.0
    for i in range(z.shape[0]):
        a = base[i] + slope[i] * (target[i] - sign[i] * (z[i] + b))
        answer = min(max(a, 0.0), cap[i])
        out[i] = sign[i] * answer
        total += out[i]
        size += answer
        if answer > 0.0:
            value += answer * (a - 0.5 * answer) / slope[i]
    return total, size, value


@compiled(fastmath=REASSOCIATE)
def along(
    sign: NDArray[np.float64],
    target: NDArray[np.float64],
    z: NDArray[np.float64],
    dz: NDArray[np.float64],
    b: float,
    db: float,
    base: NDArray[np.float64],
    slope: NDArray[np.float64],
    cap: NDArray[np.float64],
    step: float,
) -> tuple[float, float]:
    """Return first and second derivative of the sum of the terms along a direction."""
    first, second = 0.0, 0.0
    for i in range(z.shape[0]):
        rate = sign[i] * (dz[i] + db)
        a = base[i] + slope[i] * (target[i] - sign[i] * (z[i] + b) - step * rate)
        if a > 0.0:
            if a < cap[i]:
                first -= a * rate
                second += slope[i] * rate * rate
            else:
                first -= cap[i] * rate
    return first, second


@compiled
def free_terms(
    sign: NDArray[np.float64],
    target: NDArray[np.float64],
    z: NDArray[np.float64],
    b: float,
    base: NDArray[np.float64],
    slope: NDArray[np.float64],
    cap: NDArray[np.float64],
    widest: float,
    blur: float,
    out: NDArray[np.int64],
    weight: NDArray[np.float64],
) -> int:
    """Write which terms answer strictly between their bounds, and their slopes; return how many.

    A ``blur`` above 0 adds terms whose unclipped answer is beyond a bound by less than so many
    times the distance of the bounds, or ``widest`` if that is less. Their slope counts for less
    the farther they are.
    """
    count = 0
    for i in range(z.shape[0]):
        a = base[i] + slope[i] * (target[i] - sign[i] * (z[i] + b))
        beyond = max(-a, a - cap[i])
        width = min(cap[i], widest)
        if beyond < 0.0 or beyond < blur * width:
            out[count] = i
            weight[count] = slope[i]
            if beyond > 0.0:
                weight[count] /= 1.0 + 2.0 * beyond / width
            count += 1
    return count
