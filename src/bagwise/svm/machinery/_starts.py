"""Where alternations begin, and which of their ends is kept.

A method whose objective is not convex has a first problem of its own, one in which the likely key
instances of positive bags stand for them (`key_scores` finds these, or `label_scores`), and
problems drawn at random. What they are is the method's affair; the loop over them is the same for
all.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._compat import Interval, StrOptions
from bagwise._progress import report
from bagwise.solvers import SAME_SCORE, Majorizable, MajorizeResult, majorize_minimize
from bagwise.svm.machinery._problem import HingeProblem
from bagwise.svm.machinery._sides import Sides
from bagwise.svm.machinery._trainer import PointTrainer

#: How many starts: as many as asked for, or all that are not random.
StartCount: TypeAlias = int | Literal["auto"]

N_INIT_CONSTRAINT: list[Any] = [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")]
_FEW_INSTANCES = 10_000  # of a machine to which all matter
_N_FIXED = 2  # starts that are not random, at least

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
        Number of starts: the fixed ones, then random ones. ``"auto"`` leaves out the random ones.
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
    fixed = problem.fixed_starts()
    count = len(fixed) if n_init == "auto" else n_init
    for number, surrogate in enumerate(_starts(problem, fixed[:count], count, rng)):
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
    problem: Startable[Point, Surrogate],
    fixed: Sequence[Callable[[], Surrogate]],
    count: int,
    rng: np.random.Generator,
) -> Iterator[Surrogate]:
    for make in fixed:
        yield make()
    for _ in range(len(fixed), count):
        yield problem.random_start(rng)


def has_random_starts(n_init: StartCount) -> bool:
    """Tell whether so many starts may be more than those that are not random."""
    return n_init != "auto" and n_init > _N_FIXED


def label_scores(trainer: PointTrainer, offsets: Integers, sign: Floats, weight: Floats) -> Floats:
    r"""Return the scores of a machine for which every instance bears the label of its bag.

    Instances of positive bags score high if there are many like them in other positive bags, and
    few in negative ones. The machine is that of `SIL`, with a cost of :math:`v_i / s` for the
    instances of bag i, where s is the weighted mean of the squared norms of all: soft, so that
    instances are not known by heart.

    Parameters
    ----------
    trainer : PointTrainer
        What trains on instances.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    sign : ndarray of shape (n_bags,)
        Labels of the bags, +1 or -1.
    weight : ndarray of shape (n_bags,)
        Weights v of the bags.
    """
    sizes, n = np.diff(offsets), trainer.n_instances
    cost = np.repeat(weight, sizes)
    norms = np.abs(trainer.points.diagonal()[:n])  # of a kernel that need not be definite
    mean = float(cost @ norms) / (cost.sum() or 1.0)
    cost /= mean or 1.0
    rows = HingeProblem(index=np.arange(n), sign=np.repeat(sign, sizes), cost=cost)
    return trainer.solve(rows).scores


def few_label_scores(
    trainer: PointTrainer | None, offsets: Integers, sign: Floats, weight: Floats
) -> Callable[[], Floats] | None:
    """Return what computes `label_scores`; None without a trainer or for many instances.

    All instances matter to that machine. On few it takes a moment, on many it would take longer
    than all the rest.
    """
    if trainer is None or trainer.n_instances > _FEW_INSTANCES:
        return None
    return partial(label_scores, trainer, offsets, sign, weight)


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
