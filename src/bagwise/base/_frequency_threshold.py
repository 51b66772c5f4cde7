"""Thresholds of methods that do not count mistakes."""

import numpy as np

from bagwise._arrays import Floats
from bagwise.bags import Bags
from bagwise.base._classifier import BagClassifier


class FrequencyThreshold(BagClassifier):
    """Base of classifiers whose optimum says nothing about where bags ought to be called positive.

    If the most frequent label is right for more training bags, their threshold moves to where
    these are called positive as often as they are, but no further than where more of them would be
    wrong than with that label for all. They have no ``intercept_`` that could take the shift:
    `_bag_outputs` ends with `_shifted`.
    """

    @property
    def _threshold_moves(self) -> bool:
        return True

    def _counts_mistakes(self, bags: Bags) -> bool:
        return False

    @property
    def _memorizes(self) -> bool:
        return False

    def _shifted(self, scores: Floats) -> Floats:
        """Return scores, with the threshold where it was moved to."""
        return np.asarray(scores + getattr(self, "intercept_shift_", 0.0))
