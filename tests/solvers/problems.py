"""A solver on an input that is hard, with its formulas in plain numpy beside it.

A `Problem` is a solver, its arguments, and what can be said of any point without the solver: the
objective there, the value of the dual, and the number that ``tol`` bounds. `runs` solves it with
few iterations, with many, and as exactly as rounding lets.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import bagwise.solvers as solvers

EPS = np.finfo(float).eps


class Value(NamedTuple):
    """A number, and the size of the terms it is the sum of: rounding is a part of these."""

    value: float
    size: float

    @classmethod
    def of(cls, *terms):
        flat = np.concatenate([np.ravel(term) for term in terms])
        return cls(float(flat.sum()), float(np.abs(flat).sum()))

    def over(self, unit):
        return Value(self.value / unit, self.size / unit)

    @property
    def rounding(self):
        return 1e4 * EPS * self.size + 1e-300


@dataclass(frozen=True, eq=False)
class Problem:
    """A solver on an input, and what it ought to say of its point.

    ``objective`` and ``dual`` map a result to a `Value`, and ``criterion`` to what ``tol`` bounds.
    This is the residual, or else ``residual`` says what is; "other" if it cannot be seen.
    ``history`` is "falls" where it holds objectives that never rise, "ends" where only its last
    entry is one, or "dual" where it holds negative values of the dual. Where ``is_sure`` is false
    the solver may find out only later that its point meets the criterion. ``limits`` are constants
    of modules that send this small problem the way of a large one.
    """

    solver: str
    kind: str
    arguments: Mapping[str, Any]
    objective: Callable[[Any], Value]
    dual: Callable[[Any], Value] | None = None
    criterion: Callable[[Any], Value] | None = None
    residual: Callable[[Any], Value] | str | None = None
    budget: str = "max_iter"
    history: str = "falls"
    exact: Mapping[str, Any] = field(default_factory=lambda: {"tol": 1e-9})
    least: int = 0
    tol: float | None = None
    is_sure: bool = True
    limits: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self):
        return f"{self.solver}-{self.kind}"

    def solve(self, **changes):
        with ExitStack() as stack:
            for name, value in self.limits.items():
                stack.enter_context(patch(f"bagwise.solvers.svm.{name}", value))
            found = getattr(solvers, self.solver)(**{**self.arguments, **changes})
        return found[0] if isinstance(found, list) else found

    def default(self, parameter):
        """Return what a run takes for a parameter."""
        if parameter in self.arguments:
            return self.arguments[parameter]
        parameters = signature(getattr(solvers, self.solver)).parameters
        return parameters[parameter].default if parameter in parameters else None


class Run(NamedTuple):
    """A result, and the budget and the tolerance that it was asked for with."""

    budget: int
    tol: float
    result: Any


@cache
def runs(problem):
    """Solve with budgets of 0 to 3 iterations, these loosely too, halfway, as usual and exactly."""
    usual = {problem.budget: problem.default(problem.budget)}
    changes = [{problem.budget: budget} for budget in range(problem.least, 4)]
    if problem.exact and problem.criterion:
        changes += [
            change | {"tol": loose} for loose in (0.3, 0.05) for change in [*changes, usual]
        ]
    end = _run(problem, usual)
    if end.result.n_iter > 7:
        changes.append({problem.budget: end.result.n_iter // 2})
    return [
        *(_run(problem, change) for change in changes), end, _run(problem, usual | problem.exact)
    ]  # fmt: skip


def _run(problem, change):
    tol = problem.default("tol") if problem.tol is None else problem.tol
    return Run(change[problem.budget], change.get("tol", tol), problem.solve(**change))


# ------------------------------------------------------------------------------------ hard rows


def rows(kind):
    """Return rows, signs and costs that are hard in one way."""
    rng = np.random.default_rng(12)
    n, d = (24, 60) if kind == "wide" else (48, 5)
    A = rng.normal(size=(n, d))
    noise = 0.0 if kind == "apart" else 0.7
    sign = np.where(A[:, 0] + noise * rng.normal(size=n) > 0.2, 1.0, -1.0)
    cost = np.ones(n)
    if kind in ("apart", "large"):
        A[:, 0] += 0.3 * sign
        cost[:] = 1e6
    elif kind == "scaled":
        A = A * np.array([1e3, 1e-3, 1.0, 10.0, 0.1])
    elif kind == "rank one":
        A = np.outer(A[:, 0], [1.0, 2.0, -1.0, 0.5, 0.0])
    elif kind == "twice":
        A[n // 2 :] = A[: n // 2]
        sign[n // 2 :] = sign[: n // 2]
        sign[n // 2 : n // 2 + 4] *= -1.0
        cost[:] = 100.0
    elif kind == "single":
        A = A.astype(np.float32)
    elif kind == "costs":
        sign[:] = -1.0
        sign[:5] = 1.0
        cost = 10.0 ** rng.uniform(-3, 3, n)
        cost[::5] = 0.0
        cost[0] = 7.0
    return A, sign, cost


KINDS = ("plain", "apart", "large", "scaled", "rank one", "twice", "single", "costs", "wide")


def hinges(decision, sign, cost, size=0.0, *, squared=False):
    """Return the losses, and terms of sum 0 as large as what decisions are the sums of."""
    short = 1.0 - sign * decision
    slack = np.maximum(short, 0.0)
    loss = cost * (slack**2 if squared else slack)
    bend = 2.0 * slack if squared else short > -1e-9
    blur = np.broadcast_to(cost * bend * size, slack.shape)
    return np.concatenate([loss, 0.5 * blur, -0.5 * blur])


def pair_violation(v, sign, alpha, cap):
    """Return the largest ``v`` of a row whose ``sign * alpha`` may grow minus the smallest."""
    beta = sign * alpha
    lower, upper = np.where(sign < 0, -cap, 0.0), np.where(sign > 0, cap, 0.0)
    grow, shrink = beta < upper, beta > lower
    return max(0.0, v[grow].max(initial=-np.inf) - v[shrink].min(initial=np.inf))
