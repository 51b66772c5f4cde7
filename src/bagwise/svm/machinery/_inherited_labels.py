"""What instances cost that inherit the label of their bag.

Every instance of a negative bag is negative. Of the n instances of a positive bag anything from 1
to n are positive, and nothing says how many. Where few are, and positive bags are as many as
others, the instances that both have in common are met as often with either label: which one they
get is a matter of chance, and the best instance of a bag says nothing. So a label that may be wrong
ought to cost less. The share of positive instances is between 1/n and 1; in the middle, by factors,
is the square root of 1/n.
"""

from numbers import Real
from typing import Any

import numpy as np

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags

POSITIVE_COST_CONSTRAINT: list[Any] = [
    StrOptions({"sqrt"}),
    Interval(Real, 0, None, closed="neither"),
]


def inherited_costs(bags: Bags, sign: Floats, weight: Floats, positive_cost: float | str) -> Floats:
    """Return what each instance costs: the weight of its bag, times a factor if that is positive.

    Parameters
    ----------
    bags : Bags
        Bags of instances.
    sign : ndarray of shape (n_bags,)
        1 for positive bags, -1 for others.
    weight : ndarray of shape (n_bags,)
        Weights of the bags.
    positive_cost : float or "sqrt"
        The factor; ``"sqrt"`` is one over the square root of the number of instances of the bag.
    """
    factor = 1.0 / np.sqrt(bags.sizes) if positive_cost == "sqrt" else float(positive_cost)
    return np.repeat(np.where(sign > 0, factor * weight, weight), bags.sizes)
