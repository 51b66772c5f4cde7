"""Mixtures of assignments by column generation: the convex relaxation of KI-SVM and MI-ODM.

An assignment says which instance stands for each bag. A mixture of assignments mixes their Gram
matrices, so that the relaxed problem is multiple kernel learning over all assignments (Li, Kwok,
Tsang & Zhou 2009). Columns, the assignments of the mixture, are found as they are needed.
"""

from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats, Integers
from bagwise._progress import report
from bagwise._threads import checkpoint, short_slices, single_blas_thread
from bagwise.solvers._checks import check_at_least, check_tol
from bagwise.solvers._result import Result, Status
from bagwise.solvers.assignments._assignment_search import AssignmentProblem, AssignmentSearch
from bagwise.solvers.assignments._mixture_weights import minimize_on_simplex
from bagwise.solvers.svm._block_gram import BlockGram

_DROP = 1e-8  # weight below which a column goes
_NEW_COLUMNS = 60
_CLIMBED = 20  # columns of largest weight from which the search starts
_LARGE_BAGS = 10  # instances a bag from which on the Gram matrices of a hundred columns are small
_MOST_TIMES = 4  # as many starts where they cost little
_CROSSED = 3  # starts that cross two columns, for each random one
_LOOKED_AT = 5  # assignments, the best found, whose forms are computed exactly for the gap
_WANDERERS = 20  # assignments found from which the search goes on
_KICKS = 10  # times at most that each of them is changed; half the number of random starts
_CONFIRM = 4  # times as many starts before a gap is believed to be small
_MASTER_SHARE = 0.3  # of the tolerance: how well the weights of the columns at hand are chosen
_NEARLY = 0.03  # of the gap: the same before that, where there are no new columns
_BY_WEIGHTS = 5.0  # times what the weights were chosen up to: a larger gap needs new columns
_INNER_SHARE = 1e-2  # of the decrease foretold: how well the inner problem is solved to see it
_HIDDEN = 0.1  # of the decrease foretold: a larger error of the value hides it
_FIRST_INNER = 1e-2  # for the first columns, which new ones replace
_LOOSE_STEPS = 1  # of the weights in a round, as long as there are new columns
_PATIENCE = 3  # rounds that together must lower the value by the least decrease
_MASTER_STEPS = 50
_TRIALS = 16  # of a step, with more and more damping
_LEAST_DAMPING = 1e-3  # in units of the mean curvature


class InnerSolution(Protocol):
    """A solution of the inner problem ``F = max_b h(b) - b'Kb / 2``."""

    @property
    def b(self) -> Floats:
        """The signed coefficients of the rows."""

    @property
    def value(self) -> float:
        """The value at ``b``, a lower bound of ``F``."""

    @property
    def error(self) -> float:
        """How far ``F`` is above ``value`` at most."""

    @property
    def decision(self) -> Floats:
        """The Gram matrix times ``b``."""

    def curvature(self, rows: Floats) -> Floats:
        """Return the second derivatives of ``F`` along changes ``K_k`` of the Gram matrix.

        ``rows`` holds ``K_k @ b`` for each of them. If the coefficients answer to a change ``K_k``
        by ``-P K_k b``, the derivatives are ``rows @ P @ rows.T``.
        """


class InnerSolver(Protocol):
    """What is maximised over the coefficients of the rows, for a given Gram matrix."""

    def solve(self, gram: BlockGram, like: Any, tol: float) -> InnerSolution:
        """Maximise ``h(b) - b'Kb / 2`` up to ``tol`` of the value, or as well as it can be done.

        ``like`` is what this method gave for a similar Gram matrix with the same fixed rows, or
        None. A solver may start there, and keep in it what these rows need no second time.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class AssignmentResult(Result):
    """A mixture of assignments; ``x`` holds the weights of its columns, largest first.

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_instances)
        Each column's weights of the instances: one 1 in every bag for an assignment, or
        ``n_chosen`` equal parts.
    b : ndarray of shape (n_rows,)
        Signed coefficients of the bags and of the fixed rows.
    decision : ndarray of shape (n_rows,)
        The mixed Gram matrix times ``b``: what the mixture gives to each row.
    coef, fixed_coef : ndarray of shape (n_instances,) and (n_fixed,)
        The same decision function as one expansion over instances and fixed rows.
    instance_values : ndarray of shape (n_instances,)
        That expansion, evaluated at the instances.
    gap_estimate : float
        The objective minus the value that the best assignments found would give. Where not all
        assignments were looked at, better ones may exist and the true gap be larger.
    gap_is_proven : bool
        Whether all assignments were looked at. Only then there is a ``lower_bound``.
    n_inner : int
        Inner problems solved.
    """

    columns: Floats
    b: Floats
    decision: Floats
    coef: Floats
    fixed_coef: Floats
    instance_values: Floats
    gap_estimate: float
    gap_is_proven: bool
    n_inner: int


def generate_assignments(
    problem: AssignmentProblem,
    inner: InnerSolver,
    *,
    rng: np.random.Generator,
    tol: float = 1e-3,
    max_rounds: int = 100,
    n_restarts: int = 20,
    least_decrease: float = 0.0,
    start: Literal["mean"] | ArrayLike = "mean",
) -> AssignmentResult:
    r"""Minimise over mixtures of assignments what is maximised over the coefficients of the rows.

    .. math::

        \min_{v \in \Delta} F(v), \quad
        F(v) = \max_b \; h(b) - \tfrac12 \sum_k v_k \, b^\top K_k b

    where :math:`K_k` is the Gram matrix of the rows under assignment :math:`k` and :math:`h` is
    what the inner solver makes it. The function is convex in :math:`v`.

    Parameters
    ----------
    problem : AssignmentProblem
        The inner products.
    inner : InnerSolver
        Solves for ``b`` at a given Gram matrix.
    rng : numpy.random.Generator
        Draws the starts of the search for new columns.
    tol : float
        Largest gap at the end, in units of ``|F|``; see ``gap_estimate``.
    max_rounds : int
        Most rounds of choosing weights and adding columns.
    n_restarts : int
        Random starts of the search in every round; three times as many cross columns. There are
        more where they cost little.
    least_decrease : float
        In units of ``|F|``: if three rounds together lower the value by less, they are the last. 0:
        there is no such rule.
    start : "mean" or array-like of shape (n_bags,) or (n_columns, n_bags)
        The first columns: all instances of a bag at equal weights, or assignments, whose
        entries are rows of ``problem.instances``. With ``n_chosen`` above 1 an assignment has as
        many entries as there are in all bags together.

    Returns
    -------
    AssignmentResult
        ``objective`` is :math:`F(v)`, ``history`` its value after each round, which falls,
        ``gap_history`` the estimates of the gap beside it, ``residual`` the last of them in units
        of ``|F|``. ``STALLED``: three rounds lowered the value by less than ``least_decrease``, or
        there is nothing to add and the weights cannot be chosen any better.

    Notes
    -----
    A round chooses the weights of the columns by a damped Newton step over the simplex, then looks
    for assignments that maximise :math:`b^\top K_k b`, by coordinate ascent from the twenty columns
    of largest weight, from the instances of largest value and from random starts; and, three for
    each random start, from assignments that choose in every bag as one of two columns does. From
    the twenty best of these it goes on: a tenth of the choices is changed at random and ascended
    from, which is kept where it is no lower (Lourenço, Martin & Stützle 2003), ten times, or once
    for every two random starts. Where the inner problem costs much more than these starts, there
    are up to four times as many. The sixty best that promise to lower the value are added. Four
    times as many starts confirm the last gap. If there are at most 4096 assignments, all of them
    are looked at. Else, and with more than 1,000 instances, the search reads their inner products
    in single precision; gaps and values are computed in double precision.
    """
    started = perf_counter()
    for name, value, least in (("max_rounds", max_rounds, 1), ("n_restarts", n_restarts, 0)):
        check_at_least("generate_assignments", name, value, least)
    check_tol("generate_assignments", tol)
    columns = _first_columns(problem, start)
    with single_blas_thread():
        master = Master(problem, inner, columns)
        status, gaps, history = _rounds(master, rng, tol, max_rounds, n_restarts, least_decrease)
        return master.result(
            status,
            history,
            gaps,
            n_iter=len(history),
            is_proven=problem.can_be_enumerated,
            solve_time=perf_counter() - started,
        )


def _rounds(
    master: "Master",
    rng: np.random.Generator,
    tol: float,
    max_rounds: int,
    n_restarts: int,
    least_decrease: float,
) -> tuple[Status, list[float], list[float]]:
    history: list[float] = []
    gaps: list[float] = []
    n_starts = n_restarts * _times_as_many(master.problem)
    exact = _MASTER_SHARE * tol
    aim, steps = 0.1, _LOOSE_STEPS  # early rounds need no exact weights
    while True:
        point = master.solve(aim, steps)
        size = max(abs(point.value), 1e-300)
        found, gap = _best_columns(master, rng, n_starts, tol * size)
        history.append(point.most)
        gaps.append(gap)
        report("round", len(history), objective=point.most, gap=gap / size, goal=tol)
        if gap <= tol * size:
            return Status.CONVERGED, gaps, history
        if len(history) >= max_rounds:
            return Status.MAX_ITER, gaps, history
        fell = history[-1 - _PATIENCE] - point.most if len(history) > _PATIENCE else inf
        slow = fell < least_decrease * size
        settled = steps == _MASTER_STEPS
        if slow and not (settled and aim > exact and gap <= _BY_WEIGHTS * aim * size):
            return Status.STALLED, gaps, history
        if not slow and master.replace(found):
            aim, steps = max(exact, min(0.1 * gap / size, 0.1)), _LOOSE_STEPS
        elif settled and aim <= exact:  # the weights cannot be chosen any better
            return Status.STALLED, gaps, history
        else:  # where rounds may be slow, exact weights might be of no use
            nearly = _NEARLY * gap / size if least_decrease > 0.0 and not settled else 0.0
            aim, steps = max(exact, nearly), _MASTER_STEPS


def _times_as_many(problem: AssignmentProblem) -> int:
    """Return how many times as many starts cost little beside the inner problem, which has N^2."""
    climbs = 100 * problem.n_bags * len(problem.instances)
    return int(min(max(problem.n_rows**2 // climbs, 1), _MOST_TIMES))


def _best_columns(
    master: "Master", rng: np.random.Generator, n_restarts: int, goal: float
) -> tuple[list["Column"], float]:
    """Look for assignments that are better than the columns; return the best ones and the gap.

    A gap within the goal, that rests on a search, is confirmed by a longer one.
    """
    problem, point = master.problem, master.point
    largest = float(point.forms.max())
    scale = max(float(np.abs(point.forms).max()), 1e-300)
    search = AssignmentSearch(
        problem, point.b[: problem.n_bags], point.outer, point.constant, scale
    )
    order = np.argsort(-point.v, kind="stable")
    starts = [master.columns[k].choice for k in order if point.v[k] > 0.0][:_CLIMBED]
    starts.append(problem.largest(point.instance_values(master)))
    for start in starts:
        if start is not None:
            search.climb(start)
    if problem.can_be_enumerated and problem.n_chosen == 1:
        search.enumerate()
    for number in (n_restarts, _CONFIRM * n_restarts):
        for start in problem.drawn(rng, number):
            search.climb(start)
        for start in master.crossed(rng, _CROSSED * number):
            search.climb(start)
        for _, start in search.best(_WANDERERS):
            search.climb(start, problem.kicks(rng, min(number // 2, _KICKS)))
        found = search.best()
        top = max(*(search.form(choice) for _, choice in found[:_LOOKED_AT]), largest)
        gap = 0.5 * (top - point.mean_form) + point.solution.error
        if gap > goal or problem.can_be_enumerated:
            break
    known = {column.key for column in master.columns}
    useful = min(largest + search.slack, point.mean_form + 2.0 * goal)
    new = [c for form, c in found if form > useful and c.tobytes() not in known][:_NEW_COLUMNS]
    return [Column(problem, problem.indicator(choice), choice) for choice in new], gap


def _first_columns(
    problem: AssignmentProblem, start: Literal["mean"] | ArrayLike
) -> list["Column"]:
    if isinstance(start, str):
        if start != "mean":
            msg = f"generate_assignments: start must be 'mean' or assignments. Got {start!r}."
            raise ValueError(msg)
        if problem.n_assignments > 1:
            return [Column(problem, np.repeat(1.0 / problem.sizes, problem.sizes), None)]
        start = problem.largest(np.zeros(len(problem.instances)))
    choices = np.atleast_2d(np.asarray(start))
    valid = choices.ndim == 2 and choices.shape[1] == len(problem.slots) and len(choices) > 0
    valid = valid and np.issubdtype(choices.dtype, np.integer)
    bags = problem.slots
    valid = valid and bool(
        ((choices >= problem.offsets[bags]) & (choices < problem.offsets[bags + 1])).all()
    )
    valid = valid and all(len(np.unique(choice)) == len(choice) for choice in choices)
    if not valid:
        msg = (
            f"generate_assignments: start must give each of the {problem.n_bags} bags one of its "
            "own instances, or n_chosen, as rows of problem.instances."
        )
        raise ValueError(msg)
    distinct = {choice.tobytes(): choice for choice in np.sort(choices, axis=1).astype(np.int64)}
    return [Column(problem, problem.indicator(c), c) for c in distinct.values()]


class Column:
    """Weights of the instances; an assignment (``choice``) if every bag has one only.

    Where bags are large, the Gram matrix of the bags under the column is small beside that of all
    instances, and it is kept.
    """

    def __init__(
        self, problem: AssignmentProblem, weights: Floats, choice: Integers | None
    ) -> None:
        self.weights, self.choice = weights, choice
        self.key = b"" if choice is None else choice.tobytes()
        self.block: Floats | None = None
        if choice is None:
            half = problem.mixed_rows(problem.instances, weights)
            self.block = problem.bag_sums(half * weights)
        elif len(problem.instances) >= _LARGE_BAGS * problem.n_bags:
            block = np.zeros((problem.n_bags, problem.n_bags))
            self.add_block(problem, 1.0, block)
            self.block = block

    def add_block(self, problem: AssignmentProblem, weight: float, out: Floats) -> None:
        """Add the Gram matrix of the bags under this column, times a weight."""
        from bagwise.solvers.assignments._assignment_kernels import add_chosen

        if self.block is not None:
            out += weight * self.block
            return
        assert self.choice is not None
        if problem.n_chosen == 1:
            add_chosen(problem.instances, self.choice, weight, out)
        else:
            block = problem.instances[np.ix_(self.choice, self.choice)]
            out += weight * problem.slot_means(problem.slot_means(block).T)

    def block_times(self, problem: AssignmentProblem, b: Floats) -> Floats:
        """Return the Gram matrix of the bags under this column times ``b``."""
        from bagwise.solvers.assignments._assignment_kernels import chosen_times

        if self.block is not None:
            return self.block @ b
        assert self.choice is not None
        out = np.empty(len(self.choice))
        chosen_times(problem.instances, self.choice, problem.slot_coef(b), out)
        return problem.slot_means(out)

    def of_bags(self, problem: AssignmentProblem, values: Floats) -> Floats:
        """Return what this column makes of values of the instances, for each bag."""
        if self.choice is None:
            return problem.bag_sums(self.weights * values)
        return problem.slot_means(values[self.choice])


class Point:
    """Weights ``v`` of the columns, the inner solution for them, and what each column gives.

    ``outer`` is what the fixed rows give to the instances, and ``inner`` what they give to each
    other.
    """

    def __init__(
        self, master: "Master", v: Floats, solution: InnerSolution, outer: Floats, inner: Floats
    ) -> None:
        problem, self.v, self.solution = master.problem, v, solution
        self.value, self.b = float(solution.value), solution.b
        self.outer, self.inner = outer, inner
        bags, fixed = np.split(self.b, [problem.n_bags])
        self.constant = float(fixed @ self.inner)
        products = np.array([column.block_times(problem, bags) for column in master.columns])
        outer = np.array([column.of_bags(problem, self.outer) for column in master.columns])
        self.on_bags = products + outer
        self.forms = (self.on_bags + outer) @ bags + self.constant  # b'K_k b
        self.mean_form = float(v @ self.forms)

    @property
    def most(self) -> float:
        """What the maximum over the coefficients is at most, by how well they are known."""
        return self.value + self.solution.error

    @property
    def spread(self) -> float:
        """Twice the gap, were there no other columns."""
        return float(self.forms.max()) - self.mean_form

    def rows(self, master: "Master") -> Floats:
        """Return ``K_k b`` for each column."""
        from bagwise.solvers.assignments._assignment_kernels import TILE, chosen_rows

        problem, bags = master.problem, self.b[: master.problem.n_bags]
        below = np.tile(self.inner, (len(master.columns), 1))
        choices = [column.choice for column in master.columns if column.choice is not None]
        if len(choices) == len(below):
            chosen, coef = np.array(choices), problem.slot_coef(bags)
            for some in short_slices(len(self.inner), 1e-9 * chosen.size, multiple=TILE):
                chosen_rows(problem.cross, chosen, coef, some.start, some.stop, below)
        else:
            below += (master.weights * problem.spread(bags)) @ problem.cross
        return np.hstack([self.on_bags, below])

    def coef(self, master: "Master") -> Floats:
        """Return the coefficients of the instances."""
        mixed = self.v @ master.weights
        return mixed * master.problem.spread(self.b)  # type: ignore[no-any-return]

    def instance_values(self, master: "Master") -> Floats:
        """Return the decision function at the instances."""
        from bagwise.solvers.operators._gram_kernels import add_rows

        coef, values = self.coef(master), self.outer.copy()
        rows = np.flatnonzero(coef)
        for some in short_slices(len(rows), 1e-9 * len(values), multiple=4):
            add_rows(master.problem.instances, rows[some], coef[rows[some]], values)
        return values


class Master:
    """The problem over the columns at hand."""

    def __init__(
        self, problem: AssignmentProblem, inner: InnerSolver, columns: list[Column]
    ) -> None:
        self.problem, self.inner = problem, inner
        self.n_inner, self.damping = 0, 0.0
        self.take(columns)
        self.point = self.evaluate(np.full(len(columns), 1.0 / len(columns)), None, _FIRST_INNER)

    def take(self, columns: list[Column]) -> None:
        """Let these be the columns."""
        self.columns = columns
        self.weights = np.array([column.weights for column in columns])

    def evaluate(self, v: Floats, like: InnerSolution | None, tol: float = 0.0) -> Point:
        """Solve the inner problem for weights of the columns."""
        problem, p = self.problem, self.problem.n_bags
        bags = np.zeros((p, p))
        for column, weight in zip(self.columns, v, strict=True):
            if weight > 0.0:
                checkpoint()
                column.add_block(problem, float(weight), bags)
        cross = self.mixed_cross(v)
        self.n_inner += 1
        return self.at(v, self.inner.solve(BlockGram(bags, cross, problem.fixed), like, tol), cross)

    def mixed_cross(self, v: Floats) -> Floats:
        """Return the inner products of bags and fixed rows under a mixture of the columns."""
        return self.problem.mixed_rows(self.problem.cross, v @ self.weights)

    def at(self, v: Floats, solution: InnerSolution, cross: Floats) -> Point:
        """Return the point of a solution for weights of the columns and their `mixed_cross`."""
        bags, fixed = np.split(solution.b, [self.problem.n_bags])
        inner = solution.decision[len(bags) :] - bags @ cross
        return Point(self, v, solution, self.problem.cross @ fixed, inner)

    def crossed(self, rng: np.random.Generator, number: int) -> list[Integers]:
        """Draw assignments that choose in each bag as one of two columns does."""
        parents = [c.choice for c, v in zip(self.columns, self.point.v, strict=True) if v > 0.0]
        parents = [choice for choice in parents if choice is not None]
        if len(parents) < 2:
            return []
        slots, out = self.problem.slots, []
        for _ in range(number):
            one, two = rng.choice(len(parents), 2, replace=False)
            heads = rng.random(self.problem.n_bags) < 0.5
            out.append(np.where(heads[slots], parents[one], parents[two]))
        return out

    def solve(self, tol: float, max_steps: int = _MASTER_STEPS) -> Point:
        """Choose the weights until the gap over the columns is at most ``tol * |F|``."""
        for _ in range(max_steps):
            point = self.point
            if point.spread <= 2.0 * tol * abs(point.value):
                break
            if not self.step(point.solution.curvature(point.rows(self))):
                break
        enough = tol * abs(self.point.value)
        if self.point.solution.error > enough > 0.0:  # a start that was solved for loosely
            self.point = self.evaluate(self.point.v, self.point.solution, 0.1 * tol)
        return self.point

    def step(self, curvature: Floats) -> bool:
        """Take a damped Newton step to a lower value; return whether there is one.

        The curvature holds as long as the rows at work stay the same. Where columns are alike it is
        next to nothing and the Newton step goes too far, in a direction that a shorter step along
        it would not mend; damping (Levenberg 1944) does. It follows the share of the decrease
        foretold that comes true, and outlasts the step if there is one. Where the inner problem was
        solved too loosely to see that decrease, it is solved again.
        """
        begin = self.point
        unit = float(curvature.diagonal().mean()) or float(np.abs(begin.forms).max())
        before = inf  # the error of the value when it was last too large
        for _ in range(_TRIALS):
            damped = curvature + self.damping * unit * np.eye(len(curvature))
            linear = -0.5 * begin.forms - damped @ begin.v
            v = minimize_on_simplex(damped, linear, begin.v)
            way = v - begin.v
            slope = -0.5 * float(begin.forms @ way)
            if slope >= 0.0:
                break
            foretold = -slope - 0.5 * float(way @ curvature @ way)
            tol = _INNER_SHARE * foretold / max(abs(begin.value), 1e-300)
            error = begin.solution.error
            if _HIDDEN * foretold < error < 0.5 * before:
                before = error
                self.point = begin = self.evaluate(begin.v, begin.solution, tol)
                continue
            trial = self.evaluate(v, begin.solution, tol)
            share = (begin.value - trial.value) / max(foretold, 1e-300)
            # Where rounding hides the fall, slopes still tell it (Hager & Zhang 2005).
            level = trial.value <= begin.value + 1e-13 * abs(begin.value)
            is_lower = share >= 0.1 or (level and float(trial.forms @ way) >= 1.6 * slope)
            if share > 0.7:
                self.damping = self.damping / 5.0 if self.damping > _LEAST_DAMPING else 0.0
            elif share < 0.3:
                self.damping = (2.0 if is_lower else 8.0) * max(self.damping, _LEAST_DAMPING)
            if is_lower:
                self.point = trial
                return True
        self.damping = 0.0
        return False

    def replace(self, found: list[Column]) -> int:
        """Drop the columns that are of no use, add new ones; return how many are new."""
        point = self.point
        known = {column.key for column in self.columns}
        new = [column for column in found if column.key not in known]
        if self.columns[0].choice is None and new:  # the first column of all: it was a start only
            self.take(new)
            self.point = self.evaluate(np.full(len(new), 1.0 / len(new)), None, _FIRST_INNER)
            return len(new)
        keep = (point.v > _DROP) | (point.forms > point.mean_form)
        if not new and keep.all():
            return 0
        kept = [column for column, stays in zip(self.columns, keep, strict=True) if stays]
        v = np.where(keep, point.v, 0.0)
        v = np.append(v[keep] / v.sum(), np.zeros(len(new)))
        self.take(kept + new)
        if keep.all() or not point.v[~keep].any():
            self.point = Point(self, v, point.solution, point.outer, point.inner)
        else:
            size = max(abs(point.value), 1e-300)
            self.point = self.evaluate(v, point.solution, point.solution.error / size)
        return len(new)

    def result(
        self,
        status: Status,
        history: list[float],
        gaps: list[float],
        *,
        n_iter: int,
        is_proven: bool,
        solve_time: float,
    ) -> AssignmentResult:
        """Return the current point, with the gap that was noted last."""
        problem, point = self.problem, self.point
        used = np.flatnonzero(point.v > 0.0)
        used = used[np.argsort(-point.v[used], kind="stable")]
        v, b = point.v[used], point.b
        return AssignmentResult(
            x=v,
            columns=self.weights[used],
            b=b,
            decision=v @ point.rows(self)[used],
            coef=point.coef(self),
            fixed_coef=b[problem.n_bags :].copy(),
            instance_values=point.instance_values(self),
            objective=point.most,
            lower_bound=point.most - gaps[-1] if is_proven else -inf,
            residual=gaps[-1] / max(abs(point.value), 1e-300),
            gap_estimate=gaps[-1],
            gap_is_proven=is_proven,
            status=status,
            n_iter=n_iter,
            n_inner=self.n_inner,
            history=np.array(history),
            gap_history=np.array(gaps),
            solve_time=solve_time,
        )
