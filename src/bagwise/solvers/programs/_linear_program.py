"""Linear programmes by HiGHS, as shipped in scipy.

Warm start: no (scipy does not expose the basis). Sparse: yes, CSR and CSC. Licence: MIT.
A single call cannot be cut by Ctrl-C.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from bagwise.exceptions import SolverError
from bagwise.solvers._checks import check_limits, checked_array
from bagwise.solvers._result import Result, Status

_REASONS = {
    2: "has no feasible point",
    3: "is unbounded below",
    4: "met numerical difficulties in HiGHS",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearProgramResult(Result):
    """Solution of a linear programme, ``x``, with its multipliers.

    Parameters
    ----------
    dual_ub : ndarray of float
        Multipliers of ``A_ub x <= b_ub``, not negative.
    dual_eq : ndarray of float
        Multipliers of ``A_eq x = b_eq``.
    reduced_cost : ndarray of float
        ``c + A_ub' dual_ub + A_eq' dual_eq``: positive only where ``x`` is at its lower bound,
        negative only at its upper bound.
    """

    dual_ub: NDArray[np.float64]
    dual_eq: NDArray[np.float64]
    reduced_cost: NDArray[np.float64]


def solve_linear_program(
    c: ArrayLike,
    A_ub: Any = None,
    b_ub: ArrayLike | None = None,
    A_eq: Any = None,
    b_eq: ArrayLike | None = None,
    *,
    lower: ArrayLike = 0.0,
    upper: ArrayLike = np.inf,
    method: str = "highs",
    tol: float = 1e-7,
    max_iter: int | None = None,
) -> LinearProgramResult:
    r"""Solve :math:`\min c^\top x` subject to ``A_ub x <= b_ub, A_eq x = b_eq`` and bounds.

    Parameters
    ----------
    c : array-like of shape (n,)
        The objective.
    A_ub, A_eq : array or sparse matrix with n columns, optional
        The constraints.
    b_ub, b_eq : array-like, optional
        Their right-hand sides.
    lower, upper : array-like of shape (n,) or float
        Bounds of ``x``, possibly infinite. By default ``x`` is not negative.
    method : str
        ``"highs"`` lets HiGHS choose, ``"highs-ds"`` is dual simplex, ``"highs-ipm"`` interior
        point.
    tol : float
        Largest violation of primal and dual feasibility, relative to the data of the row, and
        largest gap relative to the objective, at which the answer counts as converged. They are
        computed here, whatever HiGHS says.
    max_iter : int, optional
        Most iterations of HiGHS.

    Returns
    -------
    LinearProgramResult
        ``lower_bound`` is the value of the dual at the multipliers, after those that have the
        wrong sign were set to 0.

    Raises
    ------
    SolverError
        If there is no feasible point, no finite minimum, or HiGHS fails.
    """
    from scipy.optimize import linprog  # slow to import, and most users need none of it

    started = perf_counter()
    name = "solve_linear_program"
    check_limits(name, tol, np.inf if max_iter is None else max_iter)
    cost = checked_array(name, "c", c, (None,))
    n = len(cost)
    low, high = checked_bounds(name, lower, upper, n)
    upper_rows, upper_right = checked_constraints(name, "A_ub", A_ub, b_ub, n)
    equal_rows, equal_right = checked_constraints(name, "A_eq", A_eq, b_eq, n)
    options: dict[str, Any] = {} if max_iter is None else {"maxiter": max_iter}
    solution = linprog(
        cost,
        A_ub=upper_rows,
        b_ub=upper_right,
        A_eq=equal_rows,
        b_eq=equal_right,
        bounds=np.stack([low, high], axis=1),
        method=method,
        options=options,
    )
    if solution.status in _REASONS or solution.x is None:
        reason = _REASONS.get(solution.status, "was given up")
        msg = f"The linear programme of {n} variables {reason}: {solution.message}"
        raise SolverError(msg)
    x = np.asarray(solution.x, np.float64)
    dual_ub = np.maximum(-np.asarray(solution.ineqlin.marginals, np.float64), 0.0)
    dual_eq = -np.asarray(solution.eqlin.marginals, np.float64)
    reduced = cost + upper_rows.T @ dual_ub + equal_rows.T @ dual_eq

    primal = max(
        _relative(upper_rows @ x - upper_right, upper_rows, x, upper_right),
        _relative(np.abs(equal_rows @ x - equal_right), equal_rows, x, equal_right),
        float(np.max((low - x) / np.maximum(1.0, np.abs(x)), initial=0.0)),
        float(np.max((x - high) / np.maximum(1.0, np.abs(x)), initial=0.0)),
    )
    # Where there is no bound to push against, a reduced cost is a violation of the dual.
    stray = np.where(reduced > 0, np.isinf(low), np.isinf(high)) & (reduced != 0)
    dual = float(np.max(np.abs(reduced[stray]) / np.maximum(1.0, np.abs(cost[stray])), initial=0.0))
    at = np.where(reduced > 0, low, high)
    at = np.where(stray | (reduced == 0), x, at)  # a stray cost within tol: no bound, so x itself
    objective = float(cost @ x)
    bound = float(reduced @ at) - float(upper_right @ dual_ub) - float(equal_right @ dual_eq)
    residual = max(primal, dual, abs(objective - bound) / max(1.0, abs(objective)))
    limited = Status.MAX_ITER if solution.status == 1 else Status.STALLED
    return LinearProgramResult(
        x=x,
        dual_ub=dual_ub,
        dual_eq=dual_eq,
        reduced_cost=reduced,
        objective=objective,
        lower_bound=bound if dual <= tol else -np.inf,
        residual=residual,
        status=Status.CONVERGED if residual <= tol else limited,
        n_iter=int(solution.nit),
        solve_time=perf_counter() - started,
    )


def checked_constraints(
    solver: str, name: str, matrix: Any, right: ArrayLike | None, n: int
) -> tuple[Any, NDArray[np.float64]]:
    """Return linear constraints on ``n`` variables, of which there may be none."""
    if matrix is None:
        return sp.csr_array((0, n)), np.zeros(0)
    rows = sp.csr_array(matrix) if sp.issparse(matrix) else np.asarray(matrix, np.float64)
    side = np.zeros(0) if right is None else np.atleast_1d(np.asarray(right, np.float64))
    if rows.ndim != 2 or rows.shape[1] != n or side.shape != (rows.shape[0],):
        msg = (
            f"{solver}: {name} must have one column for each of the {n} variables and one "
            "right-hand side for each row. "
            f"Got shape {rows.shape} with a right-hand side of shape {side.shape}."
        )
        raise ValueError(msg)
    values = rows.data if sp.issparse(rows) else rows
    if not (np.isfinite(values).all() and np.isfinite(side).all()):
        msg = (
            f"{solver}: {name} and its right-hand side must hold finite numbers only. "
            "Got NaN or infinity."
        )
        raise ValueError(msg)
    return rows, side


def checked_bounds(
    solver: str, lower: ArrayLike, upper: ArrayLike, n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds of ``n`` variables, which may be infinite."""
    bounds = []
    for name, values in (("lower", lower), ("upper", upper)):
        given = np.asarray(values, np.float64)
        if given.shape not in ((), (n,)) or np.isnan(given).any():
            got = f"shape {given.shape}" if given.shape not in ((), (n,)) else "NaN"
            msg = f"{solver}: {name} must be a number or have shape ({n},). Got {got}."
            raise ValueError(msg)
        bounds.append(np.broadcast_to(given, (n,)))
    return bounds[0], bounds[1]


def _relative(
    violation: NDArray[np.float64], rows: Any, x: NDArray[np.float64], right: NDArray[np.float64]
) -> float:
    if not len(right):
        return 0.0
    size = 1.0 + np.abs(right) + abs(rows) @ np.abs(x)
    return float(np.max(violation / size, initial=0.0))
