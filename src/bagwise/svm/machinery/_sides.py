"""The two sides of a binary problem."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise.bags import segment_rows

_FEW = 2**15  # instances of which lists are kept


class _KeptIfFew:
    """A property that is computed once where instances are few, else each time."""

    def __init__(self, find: Callable[["Sides"], Integers]) -> None:
        self.find, self.__doc__ = find, find.__doc__

    def __get__(self, sides: "Sides", owner: type["Sides"]) -> Integers:
        found = self.find(sides)
        if sides.offsets[-1] <= _FEW:
            sides.__dict__[self.find.__name__] = found  # which is found first from now on
        return found


@dataclass(frozen=True, eq=False)
class Sides:
    """Which instances are known to be negative, and which lie in positive bags.

    Parameters
    ----------
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    positive : ndarray of int
        The positive bags.

    Notes
    -----
    Where instances are many, which they are is found out whenever it is asked for. Lists of few are
    kept, for they are asked for often; they are only read.
    """

    offsets: Integers
    positive: Integers

    @classmethod
    def of(cls, offsets: Integers, sign: Floats) -> "Sides":
        """Split bags of these signs."""
        return cls(offsets=offsets, positive=np.flatnonzero(sign > 0))

    @_KeptIfFew
    def negatives(self) -> Integers:
        """Instances of negative bags."""
        negative = self.negative
        return segment_rows(self.offsets[:-1][negative], self.offsets[1:][negative])

    @_KeptIfFew
    def unlabelled(self) -> Integers:
        """Instances of positive bags."""
        return segment_rows(self.starts, self.stops)

    @cached_property
    def n_negatives(self) -> int:
        """Number of instances of negative bags."""
        return int(self.offsets[-1] - (self.stops - self.starts).sum())

    def counts(self, weight: Floats) -> tuple[float, float, float]:
        """Return the numbers of negative and unlabelled instances and of positive bags.

        A bag of weight 2 is there twice.
        """
        return (
            float(weight[self.negative_bags].sum()),
            float(weight[self.unlabelled_bags].sum()),
            float(weight[self.positive].sum()),
        )

    def mean_sizes(self, weight: Floats) -> tuple[float, float]:
        """Return the mean number of instances in a negative and in a positive bag, weighted.

        A side of weight 0 has no mean; 1 stands for it.
        """
        n_negative, n_unlabelled, n_positive = self.counts(weight)
        m_negative = float(weight.sum()) - n_positive
        return (
            n_negative / m_negative if n_negative else 1.0,
            n_unlabelled / n_positive if n_unlabelled else 1.0,
        )

    @cached_property
    def negative(self) -> Integers:
        """The negative bags."""
        is_negative = np.ones(len(self.offsets) - 1, bool)
        is_negative[self.positive] = False
        return np.flatnonzero(is_negative)

    @_KeptIfFew
    def negative_bags(self) -> Integers:
        """Return the bag of each instance of a negative bag."""
        negative = self.negative
        return np.repeat(negative, np.diff(self.offsets)[negative])

    @_KeptIfFew
    def unlabelled_bags(self) -> Integers:
        """Return the bag of each instance of a positive bag."""
        return np.repeat(self.positive, self.stops - self.starts)

    @cached_property
    def starts(self) -> Integers:
        """Where the positive bags begin."""
        return self.offsets[:-1][self.positive]

    @cached_property
    def stops(self) -> Integers:
        """Where they end."""
        return self.offsets[1:][self.positive]

    @cached_property
    def means(self) -> Integers:
        """The points that are means of positive bags."""
        return self.offsets[-1] + self.positive
