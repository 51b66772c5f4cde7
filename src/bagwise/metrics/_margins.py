"""How the margins of bags are distributed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats


@dataclass(frozen=True, eq=False)
class MarginDistribution:
    """Margins and their first two moments.

    Parameters
    ----------
    margins : ndarray of shape (n_bags,)
        The margin of each bag.
    mean : float
        Their mean.
    variance : float
        Their variance, divided by the number of bags.
    """

    margins: Floats
    mean: float
    variance: float

    @property
    def relative_spread(self) -> float:
        """The standard deviation over the mean, which no factor of the scores changes."""
        return float(np.sqrt(self.variance) / self.mean) if self.mean else float("inf")


def margin_distribution(
    y: ArrayLike, scores: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> MarginDistribution:
    r"""Return the margins of bags, their mean and their variance.

    The margin of a bag with the label :math:`y_i = \pm 1` and the score :math:`f_i` is
    :math:`y_i f_i`: how safely it is on the right side. Machines such as `bagwise.svm.MIODM`
    choose the scores so that margins have a large mean and a small variance.

    Parameters
    ----------
    y : array-like of shape (n_bags,)
        Labels of two classes. That of the larger label, the second of ``classes_``, has positive
        scores.
    scores : array-like of shape (n_bags,)
        Scores, as ``decision_function`` returns them.
    sample_weight : array-like of shape (n_bags,), optional
        Weights of the bags in mean and variance.

    Returns
    -------
    MarginDistribution
        With ``margins``, ``mean``, ``variance`` and ``relative_spread``.

    Examples
    --------
    >>> from bagwise.metrics import margin_distribution
    >>> found = margin_distribution([0, 0, 1, 1], [-1.0, -2.0, 1.0, 0.0])
    >>> found.margins, found.mean, found.variance
    (array([1., 2., 1., 0.]), 1.0, 0.5)
    """
    classes, code = np.unique(np.asarray(y), return_inverse=True)
    values = np.asarray(scores, np.float64)
    if len(classes) != 2 or code.shape != values.shape or values.ndim != 1:
        msg = (
            f"margin_distribution needs one score for each bag and two classes. Got labels of "
            f"shape {code.shape} with {len(classes)} classes and scores of shape {values.shape}."
        )
        raise ValueError(msg)
    margins = (2.0 * code - 1.0) * values
    weight = np.ones(len(margins)) if sample_weight is None else np.asarray(sample_weight, float)
    mean = float(np.average(margins, weights=weight))
    variance = float(np.average((margins - mean) ** 2, weights=weight))
    return MarginDistribution(margins, mean, variance)
