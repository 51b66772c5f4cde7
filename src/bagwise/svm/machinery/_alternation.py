"""Machines that alternate: choose rows that suit the scores, train on them, until nothing changes.

A method says which rows its objective is majorised by at given scores; the loop, restarts and the
record of the objective are the same for all.
"""

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from bagwise._arrays import Floats
from bagwise.solvers import majorize_minimize
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._trainer import Trainer


class Alternation(ABC):
    r"""A problem :math:`\min_{w, b} \tfrac12 \|w\|^2 + L(f)` with a loss of all instances' scores.

    Parameters
    ----------
    trainer : Trainer
        Solves the convex problems of the rounds.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer

    @abstractmethod
    def loss(self, scores: Floats) -> float:
        """Return the loss of the method, costs included, at scores of all instances."""

    @abstractmethod
    def choose(self, scores: Floats) -> HingeProblem:
        """Return rows whose loss is nowhere below that of the method, and equal at the scores."""

    @abstractmethod
    def first_rows(self) -> HingeProblem:
        """Return the rows of the deterministic start."""

    @abstractmethod
    def random_rows(self, rng: np.random.Generator) -> HingeProblem:
        """Return the rows of a random start."""

    # What `majorize_minimize` asks of a problem.

    def value(self, x: Solution) -> float:
        """Return the objective."""
        return 0.5 * x.squared_norm + self.loss(x.scores)

    def majorize(self, x: Solution) -> HingeProblem:
        """Return the rows of the next problem."""
        return self.choose(x.scores)

    def minimize(self, surrogate: HingeProblem, x: Solution, tol: float) -> Solution:
        """Train on rows; the same rows again have the same solution."""
        return x if surrogate.same_as(x.rows) else self.trainer.solve(surrogate, x)


def alternate(
    problem: Alternation, *, max_iter: int, tol: float, n_init: int, rng: np.random.Generator
) -> Solution:
    """Run the loop from the deterministic start, then from random ones; return the best end.

    Parameters
    ----------
    problem : Alternation
        The problem of one output.
    max_iter : int
        Most rounds from each start.
    tol : float
        The loop ends when a round lowers the objective by at most this much, relatively.
    n_init : int
        Number of starts.
    rng : Generator
        Of the random starts.

    Returns
    -------
    Solution
        Its certificate is that of the loop: the objective of the method and its history, which
        never rises. It has converged if the last convex problem has as well.
    """
    best, is_start = None, False
    for start in range(n_init):
        rows = problem.random_rows(rng) if start else problem.first_rows()
        first = problem.trainer.solve(rows)
        ended = majorize_minimize(problem, first, max_iter=max_iter, tol=tol)
        if best is None or ended.objective < best.objective:
            best, is_start = ended, ended.x is first
    assert best is not None
    x, certificate = best.x, best.certificate
    if is_start and _has_means(x, problem):  # which stand for bags at the start only
        x = problem.trainer.solve(problem.choose(x.scores), x)
        value = problem.value(x)
        history = np.append(np.maximum(certificate.history[:-1], value), value)
        certificate = replace(certificate, objective=value, history=history)
    if certificate.converged:  # as far as its last convex problem was solved
        certificate = replace(certificate, status=x.certificate.status)
    return replace(x, certificate=certificate)


def _has_means(x: Solution, problem: Alternation) -> bool:
    return bool((x.rows.index >= problem.trainer.n_instances).any())
