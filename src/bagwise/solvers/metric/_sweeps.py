"""Sweeps over bags, each of which gets the best for its rows given all other bags."""

from time import perf_counter
from typing import Any, Protocol

import numpy as np

from bagwise._progress import report
from bagwise.solvers._checks import check_at_least
from bagwise.solvers._result import Status

_KNOWN = {"method": ("exact", "lloyd"), "start": ("means", "random")}


class Search(Protocol):
    """What is chosen for the rows of all bags so far."""

    @property
    def objective(self) -> float:
        """The value of what is chosen."""

    def improve(self, *, is_exact: bool) -> int:
        """Sweep over all bags once; return how many have changed."""


def check_sweeps(solver: str, max_iter: int, least: int, **names: Any) -> None:
    """Refuse names of methods and starts that are not known, and too few sweeps."""
    check_at_least(solver, "max_iter", max_iter, least)
    for name, value in names.items():
        if (isinstance(value, str) or name == "method") and value not in _KNOWN[name]:
            msg = f"{name} of {solver} must be one of {_KNOWN[name]}. Got {value!r}."
            raise ValueError(msg)


def sweep_until_settled(
    search: Search, *, is_exact: bool, max_iter: int, started: float
) -> dict[str, Any]:
    """Sweep until no bag changes; return what the certificate says of it.

    The residual is 0 where no bag alone can lower the objective, else unknown.

    Parameters
    ----------
    search : Search
        At its start; it ends where the sweeps end.
    is_exact : bool
        Whether a bag sees what others have chosen in the same sweep.
    max_iter : int
        Most sweeps.
    started : float
        When the solver began.
    """
    history = [search.objective]
    status = Status.MAX_ITER
    for _ in range(max_iter):
        n_changes = search.improve(is_exact=is_exact)
        history.append(min(search.objective, history[-1]))
        report("pass", len(history) - 1, objective=history[-1])
        if n_changes == 0:
            status = Status.CONVERGED
            break
    return {
        "objective": search.objective,
        "status": status,
        "n_iter": len(history) - 1,
        "residual": 0.0 if status == Status.CONVERGED and is_exact else np.nan,
        "history": np.array(history),
        "solve_time": perf_counter() - started,
    }
