"""Machines that alternate: choose rows that suit the scores, train on them, until nothing changes.

A method says which rows its objective is majorised by at given scores; the loop, the starts and the
record of the objective are the same for all.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cached_property
from weakref import ref

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise.bags import segment_argmax, segment_max
from bagwise.solvers import key_scores, mean_scores
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._sides import Sides
from bagwise.svm.machinery._starts import (
    StartCount,
    balanced_error,
    best_of_starts,
)
from bagwise.svm.machinery._trainer import Trainer

_LOOSE = 1e-2  # accuracy of the first convex problems
TIE = 1e-9  # scores that differ by less are equal up to the solver's rounding


class Alternation(ABC):
    r"""A problem :math:`\min_{w, b} \tfrac12 \|w\|^2 + L(f)` with a loss of all instances' scores.

    Parameters
    ----------
    trainer : Trainer
        Solves the convex problems of the rounds.
    sides : Sides
        The positive and the negative bags.
    weight : ndarray of shape (n_bags,)
        Weights of the bags, in any unit.
    """

    def __init__(self, trainer: Trainer, sides: Sides, weight: Floats) -> None:
        self.trainer, self.sides, self.weight = trainer, sides, weight
        self._last: Solution | None = None  # that of the last round
        #: The best scores of bags that were asked for last, and of which scores of instances.
        self._scored: tuple[ref[Floats], Floats] | None = None

    @abstractmethod
    def loss(self, scores: Floats) -> float:
        """Return the loss of the method, costs included, at scores of all instances."""

    @abstractmethod
    def choose(self, scores: Floats) -> HingeProblem:
        """Return rows whose loss is nowhere below that of the method, and equal at the scores."""

    @abstractmethod
    def first_start(self) -> HingeProblem:
        """Return the rows of the first start."""

    @abstractmethod
    def key_rows(self, scores: Floats) -> HingeProblem:
        """Return the rows in which only the best instances of positive bags are positive."""

    @abstractmethod
    def random_start(self, rng: np.random.Generator) -> HingeProblem:
        """Return the rows of a random start."""

    def bag_scores(self, scores: Floats) -> Floats:
        """Return how the method scores the training bags: as their best instances."""
        if self._scored is None or self._scored[0]() is not scores:
            offsets = self.sides.offsets
            self._scored = ref(scores), segment_max(scores, offsets[:-1], offsets[1:])
        return self._scored[1]

    def best_instances(self, scores: Floats) -> Integers:
        """Return the best instance of each positive bag.

        Of instances whose scores are equal up to rounding, as all are where a problem has no
        weights, it is the one that lies furthest in the direction from the negative to the positive
        mean. Their order does not matter.
        """
        sides, best = self.sides, Alternation.bag_scores(self, scores)[self.sides.positive]
        sizes = sides.stops - sides.starts
        level = np.repeat(best - TIE * np.maximum(1.0, np.abs(best)), sizes)
        is_best = scores[sides.unlabelled] >= level
        del level  # which is long
        if np.count_nonzero(is_best) == len(sides.positive):
            return sides.unlabelled[is_best]
        lean, stops = np.where(is_best, self._lean, -np.inf), np.cumsum(sizes)
        return sides.starts + segment_argmax(lean, stops - sizes, stops)

    @cached_property
    def _lean(self) -> Floats:
        """How far instances of positive bags lie from the negative towards the positive mean."""
        sides = self.sides
        lean = mean_scores(self._project, sides.offsets, sides.positive, self.weight)
        return lean[sides.unlabelled]

    def _project(self, coef: Floats) -> Floats:
        """Project the instances of positive bags, which alone are to be told apart."""
        found = self.trainer.project(coef, self.sides.unlabelled)
        out = np.zeros(len(coef))
        out[self.sides.unlabelled] = found
        return out

    # What `best_of_starts` asks of a problem.

    def value(self, x: Solution) -> float:
        """Return the objective."""
        return 0.5 * x.squared_norm + self.loss(x.scores)

    def majorize(self, x: Solution) -> HingeProblem:
        """Return the rows of the next problem."""
        return self.choose(x.scores)

    def minimize(self, surrogate: HingeProblem, x: Solution, tol: float) -> Solution:
        """Train on rows; the same rows again have the same solution."""
        near = x
        if self._last is not None and surrogate.same_as(self._last.rows):
            near = self._last  # it was no better, but is nearer
        if not surrogate.same_as(near.rows) or near.looseness > tol:
            near = self._last = self._solve(surrogate, near, tol)
        return near

    @cached_property
    def looseness(self) -> float:
        """To what accuracy the first problems are solved, where that saves time."""
        return _LOOSE if self.trainer.loosened(_LOOSE) is not None else 0.0

    def _solve(self, rows: HingeProblem, start: Solution | None, tol: float) -> Solution:
        """Train on rows, loosely if ``tol`` permits."""
        loose = self.trainer.loosened(tol)
        return (self.trainer if loose is None else loose).solve(rows, start)

    def fixed_starts(self) -> list[Callable[[], HingeProblem]]:
        """Return what makes the rows of the starts that are not random."""
        return [self.first_start, self.key_start]

    def key_start(self) -> HingeProblem:
        """Return the rows with likely key instances."""
        sides = self.sides
        return self.key_rows(key_scores(self._project, sides.offsets, sides.positive, self.weight))

    def begin(self, surrogate: HingeProblem, near: Solution | None) -> Solution:
        """Train on the rows of a start."""
        self.turn()
        return self._solve(surrogate, near, self.looseness)

    def turn(self) -> None:
        """Forget the last round, which is long, and of another start."""
        self._last = None

    def name(self, surrogate: HingeProblem) -> Hashable:
        """Return what no other rows are called."""
        return surrogate.name

    def error(self, x: Solution) -> float:
        """Return the share of training bags on the wrong side."""
        return balanced_error(self.bag_scores(x.scores), self.sides, self.weight)


def alternate(
    problem: Alternation, *, max_iter: int, tol: float, n_init: StartCount, rng: np.random.Generator
) -> Solution:
    """Run the loop from several starts and return the best end, as `best_of_starts` says.

    Parameters
    ----------
    problem : Alternation
        The problem of one output.
    max_iter : int
        Most rounds from each start.
    tol : float
        The loop ends when a round lowers the objective by at most this much, relatively.
    n_init : int or "auto"
        Number of starts.
    rng : Generator
        Of the random starts.

    Returns
    -------
    Solution
        Its certificate is that of the loop: the objective of the method and its history, which
        never rises. It has converged if the last convex problem has as well.
    """
    best = best_of_starts(
        problem, n_init=n_init, rng=rng, max_iter=max_iter, tol=tol, looseness=problem.looseness
    )
    x, certificate = best.x, best.certificate
    if _has_means(x, problem) and x.rows.name == problem.first_start().name:
        # Means stand for bags at the start only.
        x = problem.trainer.solve(problem.choose(x.scores), x)
        value = problem.value(x)
        history = np.append(np.maximum(certificate.history[:-1], value), value)
        certificate = replace(certificate, objective=value, history=history)
    if certificate.converged:  # as far as its last convex problem was solved
        certificate = replace(certificate, status=x.certificate.status)
    return replace(x, certificate=certificate)


def _has_means(x: Solution, problem: Alternation) -> bool:
    return bool((x.rows.index >= problem.trainer.n_instances).any())
