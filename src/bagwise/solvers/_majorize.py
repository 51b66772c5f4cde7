"""Majorise-minimise loop; linearising a concave part is CCCP (Yuille and Rangarajan 2003)."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from bagwise._progress import report
from bagwise._threads import checkpoint
from bagwise.solvers._checks import check_limits
from bagwise.solvers._result import Certificate, Status

Point = TypeVar("Point")
Surrogate = TypeVar("Surrogate")


class Majorizable(Protocol[Point, Surrogate]):
    """What `majorize_minimize` asks of a problem. A point may be an array, a tuple, anything."""

    def value(self, x: Point, /) -> float:
        """Return the objective at ``x``."""

    def majorize(self, x: Point, /) -> Surrogate:
        """Return a function that equals the objective at ``x`` and is nowhere below it."""

    def minimize(self, surrogate: Surrogate, x: Point, tol: float, /) -> Point:
        """Return the surrogate's minimiser to relative accuracy ``tol``, started at ``x``."""


class Step(NamedTuple):
    """One round of the loop: its number, the objective after it, and by how much it fell."""

    n_iter: int
    objective: float
    decrease: float


@dataclass(frozen=True, kw_only=True, eq=False)
class MajorizeResult(Certificate, Generic[Point]):
    """Where the loop ended: the best point met, of the type that the problem works with.

    Parameters
    ----------
    x : object
        The point. ``objective`` is its value, ``history`` holds the values from the start on,
        which never rise, and ``residual`` the last relative decrease.
    """

    x: Point


def majorize_minimize(
    problem: Majorizable[Point, Surrogate],
    x0: Point,
    *,
    max_iter: int = 50,
    tol: float = 1e-6,
    looseness: float = 0.0,
    on_step: Callable[[Step], bool | None] | None = None,
) -> MajorizeResult[Point]:
    """Minimise surrogates that lie above an objective until it falls no further.

    Parameters
    ----------
    problem : Majorizable
        Has the methods ``value(x)``, ``majorize(x)`` and ``minimize(surrogate, x, tol)``.
    x0 : object
        Where to start.
    max_iter : int
        Most rounds.
    tol : float
        The loop ends when a round lowers the objective by at most this much, in units of
        ``|objective|``. Surrogates are minimised to a tenth of it.
    looseness : float
        If it is more than that, the accuracy to which the first surrogate is minimised. Later ones
        are minimised to half of the last relative decrease, if that is less. After a loose round
        that lowers the objective by no more than its accuracy comes one that is ten times as exact,
        or to a tenth of the change if that is less. Only an exact round can end the loop, and the
        last of ``max_iter`` is one.
    on_step : callable, optional
        Called with a `Step` after each round; a true answer ends the loop.

    Returns
    -------
    MajorizeResult
        ``STALLED`` means that a round raised the objective by more than ``tol``, which theory
        forbids: a surrogate was not above the objective, or was minimised too loosely. ``MAX_ITER``
        is also the status after ``on_step`` ended the loop.
    """
    started = perf_counter()
    check_limits("majorize_minimize", tol, max_iter)
    x, value = x0, float(problem.value(x0))
    del x0  # which may be large
    history = [value]
    status, change, n_iter, exact = Status.MAX_ITER, float("nan"), 0, 0.1 * tol
    accuracy = exact if max_iter == 1 else max(looseness, exact)
    for n_iter in range(1, max_iter + 1):
        checkpoint()
        candidate = problem.minimize(problem.majorize(x), x, accuracy)
        new = float(problem.value(candidate))
        decrease, slack = value - new, tol * abs(value)
        change = decrease / (abs(value) or 1.0)
        is_exact = accuracy == exact
        is_surer = is_exact and looseness > exact and decrease == 0.0
        if decrease > 0.0 or is_surer:  # never trade a better point for a worse one
            x, value = candidate, new
        history.append(value)
        if is_exact:
            if not decrease >= -slack:  # NaN too
                status = Status.STALLED
            elif decrease <= slack:
                status = Status.CONVERGED
        follows = change > accuracy  # there is progress that a loose round does not hide
        aim = 0.5 * change if follows else 0.1 * min(accuracy, abs(change))
        accuracy = exact if n_iter + 1 == max_iter else max(min(looseness, aim), exact)
        report("round", n_iter, objective=value)
        stop = on_step is not None and on_step(Step(n_iter, value, decrease))
        if stop or status is not Status.MAX_ITER:
            break
    return MajorizeResult(
        x=x,
        objective=value,
        status=status,
        n_iter=n_iter,
        residual=abs(change),
        history=np.array(history),
        solve_time=perf_counter() - started,
    )
