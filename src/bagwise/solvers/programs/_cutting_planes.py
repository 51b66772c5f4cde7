"""Cutting planes in the 1-slack form (Joachims 2006).

The loss is one convex function below which planes are collected; each round minimises over the
planes so far and takes in the plane that touches the loss at the minimum. What is known then is an
interval: the true objective at the best point seen, and the minimum over the planes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from time import perf_counter

import numpy as np

from bagwise._arrays import Floats
from bagwise._progress import report
from bagwise._threads import checkpoint
from bagwise.solvers._checks import (
    check_at_least,
    check_limits,
    check_positive,
    check_tol,
    checked_array,
)
from bagwise.solvers._result import Result, Status
from bagwise.solvers.programs._cut_program import CutProgram, SideConstraints

_PROGRESS = 0.9  # of the gap before: what a round leaves of it that does not raise the bound


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """A plane that touches a convex function at a point, and is below it elsewhere.

    Parameters
    ----------
    slope : ndarray of shape (n_weights,)
        A subgradient.
    offset : float
        The plane at 0: the function is at least ``offset + slope . w``.
    value : float
        The function at the point where the plane touches it.
    """

    slope: Floats
    offset: float
    value: float


@dataclass(frozen=True, kw_only=True, eq=False)
class CutResult(Result):
    """Solution of `minimize_by_cuts`: ``x`` is the best point seen.

    Parameters
    ----------
    multiplier : ndarray of shape (n_cuts,)
        The multipliers of the cuts in the order in which they came, those of ``start`` first; not
        negative and of sum ``C`` at most.
    """

    multiplier: Floats


def minimize_by_cuts(
    loss: Callable[[Floats], Cut],
    n_weights: int,
    *,
    C: float = 1.0,
    side: SideConstraints | None = None,
    start: Sequence[Cut] = (),
    tol: float = 1e-3,
    eps: float = 0.0,
    max_iter: int = 1000,
) -> CutResult:
    r"""Minimise a convex loss with a quadratic regulariser by cutting planes.

    .. math::

        \min_{w \in S} \; \tfrac12 \|w\|^2 + C \, L(w), \qquad
        L(w) = \max\bigl(0, \max_s \; b_s + g_s^\top w\bigr)

    for planes :math:`(b_s, g_s)` that ``loss`` finds one by one.

    Parameters
    ----------
    loss : callable
        Takes weights and returns the `Cut` that touches the loss there. The loss is convex and
        not negative.
    n_weights : int
        Number of weights.
    C : float
        Weight of the loss, positive.
    side : SideConstraints, optional
        The set ``S``; by default every point.
    start : sequence of Cut
        Planes known to be below the loss. Without any the first cut is taken at 0.
    tol : float
        Stop when the gap is at most ``tol`` times the objective.
    eps : float
        Stop also when the gap is at most ``C * eps``: no plane that is left out is broken by more
        than ``eps``.
    max_iter : int
        Most cuts.

    Returns
    -------
    CutResult
        ``objective`` is the true value at ``x``, which lies in ``S``, ``lower_bound`` the minimum
        over the planes, ``residual`` their difference divided by the objective. ``n_iter`` counts
        cuts. ``STALLED``: the bound does not rise any more, nor does the objective fall: rounding
        forbids to close the gap.
    """
    started = perf_counter()
    name = "minimize_by_cuts"
    check_limits(name, tol, max_iter, least=1)
    check_tol(name, eps, "eps")
    check_positive(name, "C", C)
    check_at_least(name, "n_weights", n_weights, 1)
    for cut in start:
        checked_array(name, "the slope of a cut in start", cut.slope, (n_weights,))
        checked_array(name, "the offset of a cut in start", cut.offset, ())
    program = CutProgram(n_weights, C, side)
    for cut in start:
        program.add_plane(cut.slope, cut.offset)
    best, objective, bound = np.zeros(n_weights), inf, 0.0
    multiplier = np.zeros(len(start))
    history, gaps = [], []
    status, n_iter, idle = Status.MAX_ITER, 0, 0
    for n_iter in range(1, max_iter + 1):
        checkpoint()
        point = program.solve()
        cut = loss(point.w)
        value = 0.5 * float(point.w @ point.w) + C * cut.value
        if value < objective:
            best, objective = point.w, value
        rises = point.bound > bound or n_iter == 1
        if point.bound >= bound or n_iter == 1:
            bound, multiplier = point.bound, point.multiplier
        history.append(objective)
        gaps.append(objective - bound)
        idle = 0 if rises or gaps[-1] <= _PROGRESS * gaps[-2] else idle + 1
        relative = gaps[-1] / objective if objective > 0.0 else 0.0
        report("cut", n_iter, objective=objective, gap=relative, goal=tol)
        if gaps[-1] <= max(tol * objective, C * eps):
            status = Status.CONVERGED
            break
        if idle == 3:
            status = Status.STALLED
            break
        program.add_plane(cut.slope, cut.offset)
    multiplier = np.pad(multiplier, (0, program.n_planes - len(multiplier)))
    return CutResult(
        x=best,
        multiplier=multiplier,
        objective=objective,
        lower_bound=bound,
        residual=(objective - bound) / objective if objective > 0.0 else 0.0,
        status=status,
        n_iter=n_iter,
        history=np.array(history),
        gap_history=np.array(gaps),
        solve_time=perf_counter() - started,
    )
