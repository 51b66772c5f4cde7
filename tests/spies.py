"""Spies: which solvers an estimator calls, with which arguments, and what comes back."""

import inspect
import sys
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, NamedTuple
from unittest.mock import patch

import bagwise.solvers as solvers


class Call(NamedTuple):
    """A call of a solver from outside of the solvers."""

    solver: str
    arguments: dict[str, Any]
    result: Any


def _noting(name, solver, calls, change):
    signature = inspect.signature(solver)

    @wraps(solver)
    def noted(*args, **options):
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        result = solver(*args, **options)
        if change is not None:
            result = change(name, result)
        calls.append(Call(name, dict(bound.arguments), result))
        return result

    return noted


@contextmanager
def solver_calls(change=None):
    """Collect the calls that estimators make; ``change`` puts another result in place of one."""
    calls: list[Call] = []
    public = {
        solver: _noting(name, solver, calls, change)
        for name, solver in inspect.getmembers(solvers, inspect.isfunction)
        if name in solvers.__all__
    }
    with ExitStack() as stack:
        for module in list(sys.modules.values()):
            name = getattr(module, "__name__", "")
            if not name.startswith("bagwise.") or name.startswith("bagwise.solvers"):
                continue
            for attribute, value in list(vars(module).items()):
                if inspect.isfunction(value) and value in public:
                    stack.enter_context(patch.object(module, attribute, public[value]))
        yield calls
