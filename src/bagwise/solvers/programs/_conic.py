"""Quadratic programmes over cones by clarabel.

Warm start: no. Sparse: yes (dense input is converted). Cones: equalities, inequalities and
second-order cones. Licence: Apache-2.0. A single call cannot be cut by Ctrl-C.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from bagwise._arrays import Floats
from bagwise.exceptions import SolverError
from bagwise.solvers._checks import check_limits, checked_array
from bagwise.solvers._result import Result, Status

_NAME = "solve_qp"
_REASONS = {
    "PrimalInfeasible": "has no feasible point",
    "AlmostPrimalInfeasible": "has no feasible point",
    "DualInfeasible": "is unbounded below",
    "AlmostDualInfeasible": "is unbounded below",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ConicResult(Result):
    """Solution of a conic quadratic programme, ``x``, with its multipliers.

    Parameters
    ----------
    dual_eq : ndarray of float
        Multipliers of ``A_eq x = b_eq``.
    dual_ub : ndarray of float
        Multipliers of ``A_ub x <= b_ub``, not negative.
    dual_lower, dual_upper : ndarray of float
        Multipliers of the bounds, not negative, 0 where a bound is infinite.
    dual_cones : tuple of ndarray
        Multipliers of the second-order cones, each a member of its cone.
    """

    dual_eq: Floats
    dual_ub: Floats
    dual_lower: Floats
    dual_upper: Floats
    dual_cones: tuple[Floats, ...]


def solve_qp(
    P: Any,
    q: ArrayLike,
    A_ub: Any = None,
    b_ub: ArrayLike | None = None,
    A_eq: Any = None,
    b_eq: ArrayLike | None = None,
    *,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
    cones: Sequence[tuple[Any, ArrayLike]] = (),
    tol: float = 1e-8,
    max_iter: int = 200,
) -> ConicResult:
    r"""Minimise a convex quadratic function under linear and second-order cone constraints.

    .. math::

        \min_x \; \tfrac12 x^\top P x + q^\top x \quad \text{subject to} \quad
        A_{ub} x \le b_{ub}, \; A_{eq} x = b_{eq}, \; l \le x \le u, \;
        \|(G_k x + h_k)_{1:}\| \le (G_k x + h_k)_0

    Parameters
    ----------
    P : array or sparse matrix of shape (n, n), or None
        Symmetric and positive semi-definite; ``None`` for 0.
    q : array-like of shape (n,)
        Linear part of the objective.
    A_ub, A_eq : array or sparse matrix with n columns, optional
        Linear constraints.
    b_ub, b_eq : array-like, optional
        Their right-hand sides.
    lower, upper : array-like of shape (n,) or float
        Bounds of ``x``. By default there are none.
    cones : sequence of pairs (G, h)
        Second-order cones that ``G x + h`` lies in.
    tol : float
        Largest primal and dual residual, and largest duality gap, relative to the size of the
        numbers that they are made of. They are computed here, whatever clarabel says.
    max_iter : int
        Most interior-point iterations.

    Returns
    -------
    ConicResult
        ``lower_bound`` is the dual value at the multipliers, a bound up to ``tol``; ``-inf`` if not
        converged, as the multipliers need not be feasible then.

    Raises
    ------
    SolverError
        If there is no feasible point, no finite minimum, or clarabel fails.
    """
    started = perf_counter()
    check_limits(_NAME, tol, max_iter)
    linear = checked_array(_NAME, "q", q, (None,))
    n = len(linear)
    quadratic = sp.csc_array((n, n)) if P is None else sp.csc_array(P, dtype=np.float64)
    if quadratic.shape != (n, n):
        msg = (
            f"{_NAME}: P must be of shape ({n}, {n}), as q has {n} entries. Got {quadratic.shape}."
        )
        raise ValueError(msg)
    if not np.isfinite(quadratic.data).all():
        msg = f"{_NAME}: P must hold finite numbers only. Got NaN or infinity."
        raise ValueError(msg)
    low, high = _checked_bounds(lower, upper, n)
    has_low, has_high = np.isfinite(low), np.isfinite(high)
    unit = sp.eye_array(n, format="csr")
    # Clarabel's form: rows x + slack = right, the slack in a product of cones.
    parts = [
        _checked_constraints("A_eq", A_eq, b_eq, n),
        _checked_constraints("A_ub", A_ub, b_ub, n),
        (-unit[has_low], -low[has_low]),
        (unit[has_high], high[has_high]),
    ]
    for G, h in cones:
        rows, side = _checked_constraints("G", G, h, n)
        parts.append((-rows, side))
    sizes = [len(side) for _, side in parts]
    rows = sp.csc_array(sp.vstack([sp.csr_array(part) for part, _ in parts], format="csc"))
    right = np.concatenate([side for _, side in parts])

    answer = _call(quadratic, linear, rows, right, sizes, tol, max_iter)
    status = str(answer.status)
    if status in _REASONS:
        msg = f"The quadratic programme of {n} variables {_REASONS[status]}."
        raise SolverError(msg)
    x, z = np.array(answer.x), np.array(answer.z)
    if not (np.isfinite(x).all() and np.isfinite(z).all()):
        msg = f"The quadratic programme of {n} variables could not be solved: {status}."
        raise SolverError(msg)

    ends = np.cumsum(sizes)
    slack = right - rows @ x
    primal = float(np.abs(slack[: ends[0]]).max(initial=0.0))
    primal = max(primal, -float(slack[ends[0] : ends[3]].min(initial=0.0)))
    z[ends[0] : ends[3]] = np.maximum(z[ends[0] : ends[3]], 0.0)
    for first, last in pairwise(ends[3:]):
        primal = max(primal, float(np.linalg.norm(slack[first + 1 : last]) - slack[first]))
        z[first] = max(z[first], float(np.linalg.norm(z[first + 1 : last])))
    bent = quadratic @ x
    turned = rows.T @ z
    dual = float(np.abs(bent + linear + turned).max(initial=0.0))
    objective = 0.5 * float(x @ bent) + float(linear @ x)
    bound = -0.5 * float(x @ bent) - float(right @ z)
    residual = max(
        primal / max(1.0, _largest(right), _largest(rows @ x)),
        dual / max(1.0, _largest(linear), _largest(bent), _largest(turned)),
        abs(objective - bound) / max(1.0, abs(objective)),
    )
    duals = np.split(z, ends[:-1])
    at_low, at_high = np.zeros(n), np.zeros(n)
    at_low[has_low], at_high[has_high] = duals[2], duals[3]
    limited = Status.MAX_ITER if status == "MaxIterations" else Status.STALLED
    return ConicResult(
        x=x,
        dual_eq=duals[0],
        dual_ub=duals[1],
        dual_lower=at_low,
        dual_upper=at_high,
        dual_cones=tuple(duals[4:]),
        objective=objective,
        lower_bound=bound if residual <= tol else -np.inf,
        residual=residual,
        status=Status.CONVERGED if residual <= tol else limited,
        n_iter=int(answer.iterations),
        solve_time=perf_counter() - started,
    )


def _call(
    quadratic: Any,
    linear: Floats,
    rows: Any,
    right: Floats,
    sizes: list[int],
    tol: float,
    max_iter: int,
) -> Any:
    import clarabel

    cones: list[Any] = [clarabel.ZeroConeT(sizes[0]), clarabel.NonnegativeConeT(sum(sizes[1:4]))]
    cones += [clarabel.SecondOrderConeT(size) for size in sizes[4:]]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = max_iter
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 0.1 * tol
    # A panic of the compiled library arrives as a BaseException that is no Exception.
    try:
        upper = sp.triu(quadratic, format="csc")
        solver = clarabel.DefaultSolver(
            sp.csc_matrix(upper), linear, sp.csc_matrix(rows), right, cones, settings
        )
        return solver.solve()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        msg = f"Clarabel failed on a quadratic programme of {len(linear)} variables: {error}"
        raise SolverError(msg) from error


def _checked_constraints(
    name: str, matrix: Any, right: ArrayLike | None, n: int
) -> tuple[Any, Floats]:
    """Return linear constraints on ``n`` variables, of which there may be none."""
    if matrix is None:
        return sp.csr_array((0, n)), np.zeros(0)
    rows = sp.csr_array(matrix) if sp.issparse(matrix) else np.asarray(matrix, np.float64)
    side = np.zeros(0) if right is None else np.atleast_1d(np.asarray(right, np.float64))
    if rows.ndim != 2 or rows.shape[1] != n or side.shape != (rows.shape[0],):
        msg = (
            f"{_NAME}: {name} must have one column for each of the {n} variables and one "
            "right-hand side for each row. "
            f"Got shape {rows.shape} with a right-hand side of shape {side.shape}."
        )
        raise ValueError(msg)
    values = rows.data if sp.issparse(rows) else rows
    if not (np.isfinite(values).all() and np.isfinite(side).all()):
        msg = (
            f"{_NAME}: {name} and its right-hand side must hold finite numbers only. "
            "Got NaN or infinity."
        )
        raise ValueError(msg)
    return rows, side


def _checked_bounds(lower: ArrayLike, upper: ArrayLike, n: int) -> tuple[Floats, Floats]:
    """Return bounds of ``n`` variables, which may be infinite."""
    bounds = []
    for name, values in (("lower", lower), ("upper", upper)):
        given = np.asarray(values, np.float64)
        if given.shape not in ((), (n,)) or np.isnan(given).any():
            got = f"shape {given.shape}" if given.shape not in ((), (n,)) else "NaN"
            msg = f"{_NAME}: {name} must be a number or have shape ({n},). Got {got}."
            raise ValueError(msg)
        bounds.append(np.broadcast_to(given, (n,)))
    return bounds[0], bounds[1]


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))
