"""A quadratic function over a small unit simplex, by active sets."""

import numpy as np

from bagwise._arrays import Floats


def minimize_on_simplex(quadratic: Floats, linear: Floats, start: Floats) -> Floats:
    """Minimise ``x'Mx / 2 + c'x`` over the unit simplex, for a handful of variables.

    A primal active-set method from a point of the simplex. A positive semi-definite matrix gets a
    ridge of 1e-12 of its largest diagonal entry.
    """
    k = len(linear)
    scale = max(float(quadratic.diagonal().max()), float(np.abs(linear).max()), 1e-300)
    matrix = quadratic + 1e-12 * scale * np.eye(k)
    x, support = start.copy(), start > 0.0
    for _ in range(20 * k + 20):
        rows = np.flatnonzero(support)
        goal, level = _equality_minimum(matrix[np.ix_(rows, rows)], linear[rows])
        step = goal - x[rows]
        falls = np.flatnonzero(goal <= 0.0)
        if len(falls):
            lengths = x[rows[falls]] / -step[falls]
            first = int(lengths.argmin())
            if lengths[first] < 1.0:
                x[rows] = np.maximum(x[rows] + lengths[first] * step, 0.0)
                x[rows[falls[first]]] = 0.0
                support[rows[falls[first]]] = False
                continue
        x[rows] = goal
        slope = matrix @ x + linear - level
        slope[support] = 0.0
        if slope.min() >= -1e-14 * scale:
            break
        support[int(slope.argmin())] = True
    x = np.maximum(x, 0.0)
    return x / x.sum()  # type: ignore[no-any-return]


def _equality_minimum(matrix: Floats, linear: Floats) -> tuple[Floats, float]:
    """Minimise with the sum kept at 1 and no bounds; return the point and the level of slopes."""
    n = len(linear)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = matrix
    system[n, n] = 0.0
    solved = np.linalg.solve(system, np.append(-linear, 1.0))
    return solved[:n], -float(solved[n])
