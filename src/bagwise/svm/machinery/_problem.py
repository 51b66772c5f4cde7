"""The convex problem that machines on bags train on again and again, and its solution."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bagwise._arrays import Floats, Integers, Signs
from bagwise.base import digest
from bagwise.solvers import Certificate


@dataclass(frozen=True, eq=False)
class HingeProblem:
    r"""What one convex problem trains on.

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + \sum_r c_r \bigl(t_r - s_r (\langle w, \phi_r \rangle + b)\bigr)_+

    Parameters
    ----------
    index : ndarray of int of shape (n,)
        Which points: ``k`` below the number of instances is that instance, ``n_instances + i`` the
        mean of bag ``i``. An instance may occur twice, with different signs.
    sign : ndarray of shape (n,)
        -1 or +1, both of them; in a byte where there are many.
    cost : ndarray of shape (n,)
        Costs, not negative.
    target : ndarray of shape (n,) or float
        Margins that the rows ought to have.
    group : ndarray of int of shape (n,), optional
        Rows of one number share one slack, that of the worst of them; they have one cost.
    """

    index: Integers
    sign: Signs
    cost: Floats
    target: Floats | float = 1.0
    group: Integers | None = None

    @cached_property
    def name(self) -> bytes:
        """What no other rows with the same margins are called."""
        return digest(self.index, self.sign, self.cost)

    def same_as(self, other: "HingeProblem") -> bool:
        """Tell whether it is the same problem."""
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("index", "sign", "cost", "target", "group")
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """A trained machine.

    Parameters
    ----------
    rows : HingeProblem
        What it was trained on.
    beta : ndarray of shape (n_rows,)
        Signed multipliers: the weight vector is the sum of the rows' points times these.
    intercept : float
        The constant ``b``.
    scores : ndarray of shape (n_instances,)
        Decision function on all instances.
    squared_norm : float
        ``|w|^2``.
    certificate : Certificate
        How the solver ended.
    weights : ndarray of shape (n_features,) or None
        ``w`` itself in a `LinearTrainer`.
    looseness : float
        The accuracy it was asked for, if that was less than the trainer's own; else 0.
    """

    rows: HingeProblem
    beta: Floats
    intercept: float
    scores: Floats
    squared_norm: float
    certificate: Certificate
    weights: Floats | None = None
    looseness: float = 0.0

    def times(self, side: float) -> "Solution":
        """Return the machine whose scores are the same, or the opposite if ``side`` is -1.0."""
        if side == 1.0:
            return self
        return replace(
            self,
            beta=side * self.beta,
            intercept=side * self.intercept,
            scores=side * self.scores,
            weights=None if self.weights is None else side * self.weights,
        )

    def instance_coef(self, sizes: Integers) -> Floats:
        """Return the coefficient of each instance in the expansion of ``w``."""
        n = len(self.scores)
        coef = np.zeros(n + len(sizes))
        np.add.at(coef, self.rows.index, self.beta)
        return instance_coef(coef, sizes)


def constant_solution(n_instances: int, sign: float) -> Solution:
    """Return the machine for bags that all have one sign: that sign everywhere."""
    rows = HingeProblem(np.empty(0, np.int64), np.empty(0), np.empty(0))
    scores = np.full(n_instances, sign)
    return Solution(rows, np.empty(0), sign, scores, 0.0, Certificate.solved())


def instance_coef(point_coef: Floats, sizes: Integers) -> Floats:
    """Return an expansion over points, instances and then means of bags, as one over instances."""
    n = len(point_coef) - len(sizes)
    return point_coef[:n] + np.repeat(point_coef[n:] / sizes, sizes)
