"""What every solver returns: a point, and the certificate that says how good it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from math import inf, nan
from typing import TypeVar

import numpy as np

from bagwise._arrays import Floats

Found = TypeVar("Found", bound="Certificate")


class Status(StrEnum):
    """How a solver ended."""

    NOTHING = "nothing to optimise"  #: the method has no objective
    CONVERGED = "converged"  #: the stopping rule holds
    MAX_ITER = "max_iter"  #: the budget of iterations is spent
    STALLED = "stalled"  #: rounding or a loose inner solve forbids further progress


#: From best to worst: a sum of problems is as good as its worst part.
_SEVERITY = (Status.NOTHING, Status.CONVERGED, Status.STALLED, Status.MAX_ITER)


@dataclass(frozen=True, kw_only=True, eq=False)
class Certificate:
    """How a solver ended and what is proven about the point it returned.

    Parameters
    ----------
    objective : float
        Value of the objective, which is always minimised, at the returned point.
    status : Status
        How the solver ended.
    n_iter : int
        Iterations done.
    lower_bound : float
        A proven lower bound of the objective: the dual value where there is one, else ``-inf``.
    residual : float
        Largest violation of the optimality conditions, in the units of the solver's ``tol``.
    history : ndarray of float
        The objective (of the problem that the solver works on) as iterations went by.
    gap_history : ndarray of float
        The duality gap at the entries of ``history``, where the solver knows it; else empty.
    solve_time : float
        Seconds by the clock: of the solver, or of the whole fit in the ``result_`` of an estimator.
    ends : ndarray of float
        The objectives at which several starts ended, in their order; empty if there was one.
    parts : tuple of Certificate
        The certificates of independent problems of which this is the sum (one-vs-rest).
    """

    objective: float
    status: Status
    n_iter: int
    lower_bound: float = -inf
    residual: float = nan
    history: Floats = field(default_factory=lambda: np.empty(0))
    gap_history: Floats = field(default_factory=lambda: np.empty(0))
    solve_time: float = 0.0
    ends: Floats = field(default_factory=lambda: np.empty(0))
    parts: tuple["Certificate", ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the stopping rule holds, or there was nothing to optimise."""
        # A plain string after a detour through skops, and equal all the same.
        return self.status in (Status.CONVERGED, Status.NOTHING)

    @property
    def gap(self) -> float:
        """How far from the optimum the objective can be at most: objective minus lower bound."""
        return self.objective - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """The gap in units of ``max(1, |objective|)``."""
        return self.gap / max(1.0, abs(self.objective))

    @property
    def n_starts(self) -> int:
        """Number of starts; of several problems, the most that one of them had."""
        return max((part.n_starts for part in self.parts), default=max(1, len(self.ends)))

    @property
    def spread(self) -> float:
        """How far apart the starts ended, in units of ``max(1, |lowest objective|)``.

        Of several problems it is the largest such difference; with one start it is 0.
        """
        if self.parts:
            return max(part.spread for part in self.parts)
        if len(self.ends) == 0:
            return 0.0
        lowest = float(self.ends.min())
        return (float(self.ends.max()) - lowest) / max(1.0, abs(lowest))

    @property
    def end_range(self) -> tuple[float, float]:
        """The lowest and the highest objective at which starts ended.

        Of several problems these are the sums of theirs; with one start both are the objective.
        """
        if self.parts:
            lowest, highest = zip(*(part.end_range for part in self.parts), strict=True)
            return sum(lowest), sum(highest)
        if len(self.ends) == 0:
            return self.objective, self.objective
        return float(self.ends.min()), float(self.ends.max())

    @property
    def starts_text(self) -> str:
        """Say in words where the starts ended; nothing if there was one."""
        if self.n_starts == 1:
            return ""
        low, high = (f"{end:.6g}" for end in self.end_range)
        ends = f"at {low}" if low == high else f"between {low} and {high}"
        return f"best of {self.n_starts} starts, which ended {ends}"

    @property
    def certificate(self) -> "Certificate":
        """The certificate alone, without the arrays of a point: what an estimator keeps."""
        return Certificate(**{part.name: getattr(self, part.name) for part in fields(Certificate)})

    @classmethod
    def nothing(cls) -> "Certificate":
        """Certify a fit without an objective, such as that of a method that only keeps bags."""
        return replace(cls.solved(), status=Status.NOTHING)

    @classmethod
    def solved(cls) -> "Certificate":
        """Certify a problem that is solved before it is begun, such as that of a single label."""
        return cls(objective=0.0, lower_bound=0.0, residual=0.0, status=Status.CONVERGED, n_iter=0)

    @staticmethod
    def lowest(results: "Sequence[Found]") -> "Found":
        """Return the result of lowest objective, the first if several have it.

        If there are several results, its ``ends`` are the objectives of all.
        """
        ends = np.array([result.objective for result in results])
        best = results[int(ends.argmin())]
        return replace(best, ends=ends) if len(ends) > 1 else best

    @classmethod
    def total(cls, parts: Sequence["Certificate"]) -> "Certificate":
        """Certify a sum of independent problems: values add up, the worst status counts."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            objective=sum(part.objective for part in parts),
            status=max((part.status for part in parts), key=_SEVERITY.index),
            n_iter=sum(part.n_iter for part in parts),
            lower_bound=sum(part.lower_bound for part in parts),
            residual=max(part.residual for part in parts),
            solve_time=sum(part.solve_time for part in parts),
            parts=tuple(parts),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Result(Certificate):
    """A certificate together with the point that it is about.

    Parameters
    ----------
    x : ndarray
        The point. What its entries mean is said by the solver.
    """

    x: Floats
