"""What sMIL and its relatives share: sMIL's own rows, and the loss of labels that are free."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise.bags import segment_mean
from bagwise.svm.machinery._problem import HingeProblem
from bagwise.svm.machinery._sides import Sides

_ROUNDING = 1e-9  # scores nearer to 0 than this may be 0


@dataclass(frozen=True, eq=False)
class SparseLoss:
    """The loss of sMIL: negative instances below -1, means of positive bags above ``2 / n - 1``.

    Parameters
    ----------
    sides : Sides
        The bags.
    negative_cost : ndarray
        Of each negative instance.
    positive_cost : ndarray
        Of each positive bag.
    """

    sides: Sides
    negative_cost: Floats
    positive_cost: Floats

    @classmethod
    def balanced(cls, sides: Sides, cost: Floats) -> "SparseLoss":
        """Return the loss in which a positive bag costs as much as a mean negative one.

        ``cost`` is that of an instance, for each bag.
        """
        negative_size, _ = sides.mean_sizes(cost)
        return cls(sides, cost[sides.negative_bags], negative_size * cost[sides.positive])

    @property
    def margins(self) -> Floats:
        """What the mean score of a positive bag ought to be if one instance of it is positive."""
        return 2.0 / (self.sides.stops - self.sides.starts) - 1.0

    def rows(self) -> HingeProblem:
        """Return what sMIL trains on."""
        sides = self.sides
        n_negative, n_positive = len(sides.negatives), len(sides.positive)
        return HingeProblem(
            index=np.concatenate([sides.negatives, sides.means]),
            sign=np.repeat([-1.0, 1.0], [n_negative, n_positive]),
            cost=np.concatenate([self.negative_cost, self.positive_cost]),
            target=np.concatenate([np.ones(n_negative), self.margins]),
        )

    def value(self, scores: Floats) -> float:
        """Return the loss at scores of all instances."""
        sides = self.sides
        mean = segment_mean(scores, sides.starts, sides.stops)
        negative = np.maximum(1.0 + scores[sides.negatives], 0.0) @ self.negative_cost
        return float(negative + np.maximum(self.margins - mean, 0.0) @ self.positive_cost)


def mean_rule(scores: Floats, offsets: Integers) -> Floats:
    """Return how far the mean score of each bag is above the middle of what both signs ask for.

    That is -1 for a negative bag and ``2 / n - 1`` for a positive one of ``n`` instances.
    """
    mean = segment_mean(scores, offsets[:-1], offsets[1:])
    middle = 1.0 / np.diff(offsets) - 1.0
    return np.asarray(mean - (middle if mean.ndim == 1 else middle[:, None]), np.float64)


def with_rows(rows: HingeProblem, index: Any, sign: Any, cost: Any) -> HingeProblem:
    """Return rows and further ones, whose margins are 1."""
    target = np.broadcast_to(rows.target, rows.index.shape)
    return HingeProblem(
        index=np.concatenate([rows.index, index]),
        sign=np.concatenate([rows.sign, sign]),
        cost=np.concatenate([rows.cost, cost]),
        target=np.concatenate([target, np.ones(len(index))]),
    )


def signs(scores: Floats) -> Floats:
    """Return the label that suits each score best, +1 for 0, which rounding may have moved."""
    return np.where(scores >= -_ROUNDING, 1.0, -1.0)


def unsure(scores: Floats) -> Floats:
    """Return the loss of instances whose labels are free: the smaller of both hinges."""
    return np.maximum(1.0 - np.abs(scores), 0.0)
