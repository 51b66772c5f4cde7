"""What is true of a method beyond scikit-learn's tags; the bag checks read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BagTags:
    """Properties of a multi-instance method.

    Parameters
    ----------
    order_tolerance : float
        By how much the final objective may change, relatively, when bags or instances are
        given in another order. 0 for convex methods: they do not depend on the order beyond the
        tolerance of their solver.
    instance_scores : bool
        Whether instances get scores of their own.
    max_rule : bool
        Whether a bag's score is that of its best instance, so that this instance decides, however
        the bag is classified. The best one has the highest score for the positive class.
    asymmetric : bool
        Of a classifier: whether it does not treat two classes alike, so that scores are not
        simply negated if the labels are swapped. Then it has a parameter ``pos_label``.
    exclusive_labels : bool
        Of a classifier of label lists: whether an instance bears one label at most, so that labels
        compete for instances. Then a label that comes with others is learned only if it has
        instances of its own.
    supervised_analogue : object or None
        The ordinary estimator that the method equals on bags of one instance.
    predicts_training_labels : bool
        Of a clusterer: whether `predict` puts the bags of the fit where ``labels_`` has them.
    descends : bool
        Of a clusterer: whether the ``history`` of its ``result_`` never rises and ends with the
        objective.
    scale_powers : mapping of str to int, or None
        What has to be done to parameters if all features are multiplied by a number :math:`s`:
        each of these is multiplied by :math:`s` to this power, and bags score and are predicted as
        before. Empty if nothing has to be done; None if nothing is promised.
    shift_invariant : bool
        Whether nothing changes if one number is added to all features.
    """

    order_tolerance: float = 0.0
    instance_scores: bool = True
    max_rule: bool = False
    asymmetric: bool = False
    exclusive_labels: bool = False
    supervised_analogue: Any = None
    predicts_training_labels: bool = True
    descends: bool = True
    scale_powers: Mapping[str, int] | None = None
    shift_invariant: bool = False


def get_bag_tags(estimator: Any) -> BagTags:
    """Return the tags of an estimator."""
    tags: BagTags = estimator.__bagwise_tags__()
    return tags
