"""Where alternations begin, and which of their ends is kept.

A method whose objective is not convex has a first problem of its own, one in which the likely key
instances of positive bags stand for them (`key_scores` finds these), and problems drawn at random.
What they are is the method's affair; the loop over them is the same for all.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise._progress import report
from bagwise.solvers import SAME_SCORE, Majorizable, MajorizeResult, majorize_minimize
from bagwise.svm.machinery._sides import Sides

#: How many starts: as many as asked for, or all that are not random.
StartCount: TypeAlias = int | Literal["auto"]

N_INIT_CONSTRAINT: list[Any] = [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")]
_N_FIXED = 2  # starts that are not random

Point = TypeVar("Point")
Surrogate = TypeVar("Surrogate")


class Startable(Majorizable[Point, Surrogate], Protocol[Point, Surrogate]):
    """What `best_of_starts` asks of a problem."""

    def first_start(self) -> Surrogate:
        """Return the problem to begin with according to the method's authors."""

    def key_start(self) -> Surrogate:
        """Return the problem in which likely key instances stand for positive bags."""

    def random_start(self, rng: np.random.Generator) -> Surrogate:
        """Return a problem that is drawn at random."""

    def begin(self, surrogate: Surrogate, near: Point | None) -> Point:
        """Return the solution to begin with, computed from that of another problem if given."""

    def name(self, surrogate: Surrogate) -> Hashable:
        """Return what no other problem is called."""

    def error(self, x: Point) -> float:
        """Return the share of training bags on the wrong side, as `balanced_error` has it."""


@dataclass(eq=False)
class _Way:
    """The problem on the way from one start, which ends where another has been before.

    From there both would go the same way, and the end of the other is not higher.
    """

    problem: Startable[Any, Any]
    number: int
    met: dict[Hashable, int]  # who solved a problem first
    joined: int | None = None

    def value(self, x: Any) -> float:
        return self.problem.value(x)

    def majorize(self, x: Any) -> Any:
        return self.problem.majorize(x)

    def minimize(self, surrogate: Any, x: Any, tol: float) -> Any:
        if self.meets(surrogate):
            return x
        return self.problem.minimize(surrogate, x, tol)

    def meets(self, surrogate: Any) -> bool:
        """Tell whether an earlier start had this problem; note it otherwise."""
        owner = self.met.setdefault(self.problem.name(surrogate), self.number)
        self.joined = None if owner == self.number else owner
        return self.joined is not None


def best_of_starts(
    problem: Startable[Point, Surrogate],
    *,
    n_init: StartCount,
    rng: np.random.Generator,
    max_iter: int,
    tol: float,
    looseness: float = 0.0,
) -> MajorizeResult[Point]:
    """Run the majorise-minimise loop from several starts and return the best end.

    That is the one with the fewest training bags on the wrong side, by `balanced_error`, and of
    several such ends the one with the lowest objective. No convex problem is solved twice: a start
    that comes to one which an earlier start had ends there, with the end of that start. The first
    problem of each start is solved from the solution of the very first one.

    Parameters
    ----------
    problem : Startable
        What to minimise.
    n_init : int or "auto"
        Number of starts: the first one, that of key instances, then random ones. ``"auto"`` leaves
        out the random ones.
    rng : Generator
        Of the random starts.
    max_iter : int
        Most rounds from each start.
    tol : float
        Relative decrease of the objective at which the rounds end.
    looseness : float
        How loosely the first problems from each start may be solved, as in `majorize_minimize`.

    Returns
    -------
    MajorizeResult
        The best end. If there were several starts, ``ends`` has the objectives of all.
    """
    met: dict[Hashable, int] = {}
    best: MajorizeResult[Point] | None = None  # the others are not kept: points may be large
    ends: list[float] = []
    least = (np.inf, np.inf)
    near: list[Point] = []  # what others begin from, while others are to come
    count = _N_FIXED if n_init == "auto" else n_init
    for number, surrogate in enumerate(_starts(problem, count, rng)):
        way = _Way(problem, number, met)
        if count > 1:
            report("start", number + 1, total=count)
        if not way.meets(surrogate):
            first = [problem.begin(surrogate, near[0] if near else None)]
            near = [] if number + 1 == count else near or first.copy()
            ended = majorize_minimize(  # which is handed the first point, and may let it go
                way, first.pop(), max_iter=max_iter, tol=tol, looseness=looseness
            )
        if way.joined is not None:
            ends.append(ends[way.joined])
            continue
        ends.append(ended.objective)
        if count == 1:
            return ended
        rank = round(problem.error(ended.x), 9), ended.objective
        if best is None or rank < least:
            best, least = ended, rank
        del ended
    assert best is not None
    return replace(best, ends=np.array(ends)) if len(ends) > 1 else best


def _starts(
    problem: Startable[Point, Surrogate], count: int, rng: np.random.Generator
) -> Iterator[Surrogate]:
    yield problem.first_start()
    if count > 1:
        yield problem.key_start()
    for _ in range(_N_FIXED, count):
        yield problem.random_start(rng)


def has_random_starts(n_init: StartCount) -> bool:
    """Tell whether so many starts are more than those that are not random."""
    return n_init != "auto" and n_init > _N_FIXED


def balanced_error(scores: Floats, sides: Sides, weight: Floats) -> float:
    """Return the share of bags on the wrong side of 0: the mean of the shares of both classes.

    Parameters
    ----------
    scores : ndarray of shape (n_bags,)
        Scores of the bags; above 0 is positive, by more than rounding.
    sides : Sides
        Which bags are positive.
    weight : ndarray of shape (n_bags,)
        Weights of the bags.
    """
    wrong = scores > SAME_SCORE * np.abs(scores).max(initial=0.0)
    wrong[sides.positive] = ~wrong[sides.positive]
    shares = [
        weight[bags] @ wrong[bags] / (weight[bags].sum() or 1.0)
        for bags in (sides.positive, sides.negative)
    ]
    return float(np.mean(shares))
