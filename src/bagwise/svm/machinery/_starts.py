"""Where alternations begin, and which of their ends is kept.

A method whose objective is not convex has a first problem of its own, one in which the likely key
instances of positive bags stand for them (`key_scores` finds these, or `label_scores`), and
problems drawn at random. What they are is the method's affair; the race between them is the same
for all.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise._progress import report
from bagwise.solvers import SAME_SCORE, Majorizable, MajorizeResult, majorize_minimize
from bagwise.svm.machinery._problem import HingeProblem
from bagwise.svm.machinery._sides import Sides
from bagwise.svm.machinery._trainer import PointTrainer

#: How many starts: as many as asked for, or all that are not random.
StartCount: TypeAlias = int | Literal["auto"]

N_INIT_CONSTRAINT: list[Any] = [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")]
_FEW_INSTANCES = 5_000  # of a machine to which all matter
_N_FIXED = 2  # starts that are not random, by default; a method may have more
_REACH = 2.0  # gains of its last round that a start may be behind the best end, and go on

Point = TypeVar("Point")
Surrogate = TypeVar("Surrogate")


class Startable(Majorizable[Point, Surrogate], Protocol[Point, Surrogate]):
    """What `best_of_starts` asks of a problem."""

    def fixed_starts(self) -> Sequence[Callable[[], Surrogate]]:
        """Return what makes the problems to begin with that are not random, the authors' first."""

    def random_start(self, rng: np.random.Generator) -> Surrogate:
        """Return a problem that is drawn at random."""

    def begin(self, surrogate: Surrogate, near: Point | None) -> Point:
        """Return the solution to begin with, computed from that of another problem if given."""

    def turn(self) -> None:
        """Let go of what is kept of another start."""

    def name(self, surrogate: Surrogate) -> Hashable:
        """Return what no other problem is called."""

    def error(self, x: Point) -> float:
        """Return the share of training bags on the wrong side, as `balanced_error` has it."""


@dataclass(eq=False)
class _Way:
    """The problem on the way from one start, which ends where another has been before.

    From there both would go the same way, and the end of the other is not higher. It ends also
    where it is far behind: the best end so far has no training bag on the wrong side, and twice
    what the last round gained would not take the objective below that of this end. Rounds gain
    less and less.

    Parameters
    ----------
    problem : Startable
        What is minimised.
    number : int
        Which start it is.
    met : dict
        Which start solved a problem first.
    bar : float
        The objective of the best end so far; infinity unless all training bags are right there.
    """

    problem: Startable[Any, Any]
    number: int
    met: dict[Hashable, int]
    bar: float
    joined: int | None = None
    lowest: float = np.inf  # value so far
    gained: float = np.inf  # by the last round that lowered it
    accuracy: float = 0.0  # of the last round

    def value(self, x: Any) -> float:
        value = self.problem.value(x)
        if value < self.lowest:
            self.gained, self.lowest = self.lowest - value, value
        return value

    def majorize(self, x: Any) -> Any:
        return self.problem.majorize(x)

    def minimize(self, surrogate: Any, x: Any, tol: float) -> Any:
        if self.is_behind or self.meets(surrogate):
            return x
        self.accuracy = tol
        return self.problem.minimize(surrogate, x, tol)

    @property
    def is_behind(self) -> bool:
        """Whether the best end is out of reach, as far as the last round tells.

        One that gained less than its accuracy may have hidden what is to be gained.
        """
        is_telling = self.gained > self.accuracy * abs(self.lowest)
        return is_telling and self.lowest - _REACH * self.gained > self.bar

    def meets(self, surrogate: Any) -> bool:
        """Tell whether another start had this problem; note it otherwise."""
        owner = self.met.setdefault(self.problem.name(surrogate), self.number)
        self.joined = None if owner == self.number else owner
        return self.joined is not None


@dataclass(eq=False)
class _Begun(Generic[Point, Surrogate]):
    """A start whose first problem is solved."""

    number: int
    surrogate: Surrogate
    points: list[Point]  # its solution, until it goes on from there
    rank: tuple[float, float]


def _turn(start: _Begun[Any, Any]) -> tuple[tuple[float, float], int]:
    """Return what is less for a start that goes on earlier."""
    return start.rank, start.number


class _Race(Generic[Point, Surrogate]):
    """Starts of one problem, each run to its end unless another one got there before.

    Parameters
    ----------
    problem : Startable
        What is minimised.
    count : int
        Number of starts.
    max_iter, tol, looseness
        See `best_of_starts`.
    """

    def __init__(
        self,
        problem: Startable[Point, Surrogate],
        count: int,
        *,
        max_iter: int,
        tol: float,
        looseness: float,
    ) -> None:
        self.problem, self.count = problem, count
        self.go_on = partial(majorize_minimize, max_iter=max_iter, tol=tol, looseness=looseness)
        self.met: dict[Hashable, int] = {}
        self.first: dict[Hashable, int] = {}  # who began with a problem
        self.near: list[Point] = []  # what others begin from, while others are to come
        self.ends: dict[int, float] = {}
        self.joined: dict[int, int] = {}  # whose end that of a start is
        self.best: MajorizeResult[Point] | None = None  # others are not kept: points may be large
        self.least = (np.inf, np.inf)

    def begin(self, number: int, surrogate: Surrogate) -> _Begun[Point, Surrogate] | None:
        """Solve the first problem of a start; None if another start had it."""
        report("start", number + 1, total=self.count)
        name = self.problem.name(surrogate)
        owner = self.met.get(name, self.first.setdefault(name, number))
        near, is_last = self.near[:1], number + 1 == self.count
        if is_last:
            self.near = []
        if owner != number:
            self.joined[number] = owner
            return None
        point = self.problem.begin(surrogate, near.pop() if near else None)
        if not (self.near or is_last):
            self.near = [point]
        return _Begun(number, surrogate, [point], self.rank(point, self.problem.value(point)))

    def run(self, start: _Begun[Point, Surrogate]) -> None:
        """Go on from the first problem of a start to its end."""
        report("start", start.number + 1, total=self.count)
        bar = self.least[1] if self.least[0] == 0.0 else np.inf
        way = _Way(self.problem, start.number, self.met, bar)
        if not way.meets(start.surrogate):
            self.problem.turn()
            ended = self.go_on(way, start.points.pop())  # which may let the point go
        start.points.clear()
        if way.joined is not None:
            self.joined[start.number] = way.joined
            return
        self.ends[start.number] = ended.objective
        rank = self.rank(ended.x, ended.objective)
        if self.best is None or rank < self.least:
            self.best, self.least = ended, rank

    def rank(self, x: Point, value: float) -> tuple[float, float]:
        """Return what is less for a better point."""
        return round(self.problem.error(x), 9), value

    def result(self) -> MajorizeResult[Point]:
        """Return the best end, with the objectives of all."""
        assert self.best is not None
        ends = np.array([self.end_of(number) for number in range(self.count)])
        return replace(self.best, ends=ends)

    def end_of(self, number: int) -> float:
        """Return the objective at the end of a start, or of the one that it has joined."""
        while number in self.joined:
            number = self.joined[number]
        return self.ends[number]


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
    several such ends the one with the lowest objective. The first problem of each start is solved
    from the solution of the very first one. Starts that are not random begin together, and go on
    one after another, the best so far first. No convex problem is solved twice: a start that comes
    to one which another had ends there, with the end of that start. A start that is far behind an
    end with all training bags on the right side is left where it is.

    Parameters
    ----------
    problem : Startable
        What to minimise.
    n_init : int or "auto"
        Number of starts: the fixed ones, then random ones. ``"auto"`` takes the last two of the
        fixed ones.
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
    fixed = problem.fixed_starts()
    if n_init == "auto":
        fixed = fixed[-_N_FIXED:]
        n_init = len(fixed)
    count = n_init
    if count == 1:
        first = [problem.begin(fixed[0](), None)]  # the loop is handed it, and may let it go
        return majorize_minimize(
            problem, first.pop(), max_iter=max_iter, tol=tol, looseness=looseness
        )
    race = _Race(problem, count, max_iter=max_iter, tol=tol, looseness=looseness)
    begun = [race.begin(number, make()) for number, make in enumerate(fixed[:count])]
    waiting = sorted(filter(None, begun), key=_turn, reverse=True)
    begun.clear()  # points and problems may be large
    while waiting:
        race.run(waiting.pop())
    for number in range(len(fixed), count):
        drawn = race.begin(number, problem.random_start(rng))
        if drawn is not None:
            race.run(drawn)
    return race.result()


def has_random_starts(n_init: StartCount) -> bool:
    """Tell whether so many starts may be more than those that are not random."""
    return n_init != "auto" and n_init > _N_FIXED


def learns_from_labels(machine: PointTrainer) -> bool:
    """Tell whether `label_scores` are to be had at little cost.

    All instances matter to that machine. On few it takes a moment, on many it would take longer
    than all the rest.
    """
    return machine.n_instances <= _FEW_INSTANCES


def label_scores(machine: PointTrainer, sides: Sides, weight: Floats) -> Floats:
    r"""Return the scores of a machine for which every instance bears the label of its bag.

    Instances of positive bags score high if there are many like them in other positive bags, and
    few in negative ones. The machine is that of `SIL`, with a cost of :math:`v_i / s` for the
    instances of bag i, where s is the weighted mean of the squared norms of all: soft, so that
    instances are not known by heart.

    Parameters
    ----------
    machine : PointTrainer
        What trains on instances.
    sides : Sides
        The positive and the negative bags.
    weight : ndarray of shape (n_bags,)
        Weights v of the bags.
    """
    n = machine.n_instances
    sign = np.full(n, -1.0)
    sign[sides.unlabelled] = 1.0
    cost = np.repeat(weight, np.diff(sides.offsets))
    norms = np.abs(machine.points.diagonal()[:n])  # of a kernel that need not be definite
    mean = float(cost @ norms) / (cost.sum() or 1.0)
    cost /= mean or 1.0
    return machine.solve(HingeProblem(index=np.arange(n), sign=sign, cost=cost)).scores


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
