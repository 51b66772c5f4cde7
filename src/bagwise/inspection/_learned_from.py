"""Which bags an estimator learned from."""

from typing import Any

from bagwise._arrays import Booleans
from bagwise.base import as_bags, remembered_bags


def learned_from(estimator: Any, bags: Any) -> Booleans | None:
    """Return which bags an estimator learned from; what it does with these says little of others.

    A bag is known again by its instances in single precision, in whatever order. Its label does
    not count.

    Parameters
    ----------
    estimator : object
        A fitted estimator of bagwise, a pipeline with one in it, or a search over these.
    bags : Bags, sequence of matrices or 3-D array
        The bags.

    Returns
    -------
    ndarray of bool of shape (n_bags,) or None
        None if the estimator cannot tell.

    Examples
    --------
    >>> from bagwise.datasets import load_digit_bags
    >>> from bagwise.inspection import learned_from
    >>> from bagwise.svm import SIL
    >>> data = load_digit_bags(40)
    >>> model = SIL().fit(data.bags[:38], data.y[:38])
    >>> learned_from(model, data.bags[36:])
    array([ True,  True, False, False])
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    for _, step in getattr(estimator, "steps", [("", estimator)]):
        if (known := remembered_bags(step, as_bags(bags))) is not None:
            return known
        if not hasattr(step, "transform"):
            break
        bags = step.transform(bags)
    return None
