"""What is said of a fitted estimator: how often it is right, and where it looks."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from bagwise._arrays import Booleans, Integers
from bagwise.bags import Bags, segment_argmax
from bagwise.base import last_step, positive_place
from bagwise.inspection._answers import unwrapped
from bagwise.inspection._learned_from import learned_from
from bagwise.metrics import key_instance_success_rate
from bagwise.solvers import Certificate

_NORMAL_975 = 1.959963984540054  # quantile of the normal distribution: a 95 % interval


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the Wilson 95 % interval of a share; unlike the normal one it stays inside 0 and 1.

    Parameters
    ----------
    successes, trials : int
        Counts, of which there is at least one trial.

    References
    ----------
    E. B. Wilson. Probable inference, the law of succession, and statistical inference. Journal of
    the American Statistical Association 22, 1927.

    Examples
    --------
    >>> low, high = wilson_interval(90, 100)
    >>> round(low, 3), round(high, 3)
    (0.826, 0.945)
    """
    if not 0 <= successes <= trials or trials == 0:
        msg = f"An interval needs 0 <= successes <= trials, trials > 0. Got {successes}, {trials}."
        raise ValueError(msg)
    share, z2 = successes / trials, _NORMAL_975**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = _NORMAL_975 * sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    half /= 1 + z2 / trials
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True, kw_only=True)
class MethodCard:
    """How one fitted method does, as a row of the report's tables.

    Parameters
    ----------
    name : str
        Name of the method.
    n_right, n_bags : int
        Bags labelled right, of all bags.
    n_found, n_key_bags : int or None
        Bags in which a true key instance is found, of all bags that hold one; see `count_found`.
        None if the truth is not known or the method scores no instances.
    parameters : str
        The settings, in words.
    fit_seconds, cv_accuracy : float or None
        Time of the fit, and the accuracy in cross-validation inside the training bags.
    certificate : Certificate or None
        How the fit ended.
    n_seen, n_right_seen : int
        Bags that the method learned from, as far as it can tell, and those labelled right.
    """

    name: str
    n_right: int
    n_bags: int
    n_found: int | None = None
    n_key_bags: int | None = None
    parameters: str = ""
    fit_seconds: float | None = None
    cv_accuracy: float | None = None
    certificate: Certificate | None = None
    n_seen: int = 0
    n_right_seen: int = 0

    @property
    def accuracy(self) -> float:
        """Share of bags labelled right."""
        return self.n_right / self.n_bags

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson 95 % interval of the accuracy; None if the method learned from some bags."""
        return None if self.n_seen else wilson_interval(self.n_right, self.n_bags)

    @property
    def interval_text(self) -> str:
        """The interval in words, or of how many bags the method learned from."""
        if self.interval is None:
            return f"learned from {'all' if self.n_seen == self.n_bags else self.n_seen} of them"
        return "{:.1f} to {:.1f}".format(*(100 * end for end in self.interval))

    @property
    def key_success(self) -> float | None:
        """Share of the bags with a true key instance in which one is found."""
        if self.n_found is None or not self.n_key_bags:
            return None
        return self.n_found / self.n_key_bags


def assess(
    estimator: Any,
    bags: Bags,
    y: Any,
    *,
    is_key: Any = None,
    name: str | None = None,
    parameters: str = "",
    fit_seconds: float | None = None,
    cv_accuracy: float | None = None,
    pos_label: Any = None,
) -> MethodCard:
    """Measure a fitted classifier on bags.

    Parameters
    ----------
    estimator : object
        A fitted bag classifier, a pipeline that ends in one, or a search over these.
    bags : Bags
        Bags with known labels, best ones that it has not seen.
    y : array-like of shape (n_bags,)
        Their labels.
    is_key : array-like of bool of shape (n_instances,), optional
        Which instances are true key instances. Among the bags that hold one, it is counted how
        often one is found.
    name : str, optional
        Default: the name of the class.
    parameters, fit_seconds, cv_accuracy
        Kept as they are; see `MethodCard`.
    pos_label : label, optional
        The positive one of two classes, to which the key instances belong. Default: that of the
        classifier, or the second class if it has none.
    """
    name = type(last_step(estimator)[0]).__name__ if name is None else name
    estimator = unwrapped(estimator)
    right = estimator.predict(bags) == np.asarray(y)
    seen = learned_from(estimator, bags)
    found = n_key_bags = None
    if is_key is not None and key_places(estimator, bags) is not None:
        truth = check_is_key(is_key, bags)
        found, n_key_bags = count_found(estimator, bags, truth, pos_label)
    return MethodCard(
        name=name,
        n_right=int(right.sum()),
        n_bags=len(bags),
        n_found=found,
        n_key_bags=n_key_bags,
        parameters=parameters,
        fit_seconds=fit_seconds,
        cv_accuracy=cv_accuracy,
        certificate=getattr(estimator, "result_", None),
        n_seen=0 if seen is None else int(seen.sum()),
        n_right_seen=0 if seen is None else int(right[seen].sum()),
    )


def check_is_key(is_key: Any, bags: Bags) -> Booleans:
    """Return the truth about instances as an array, one value for each."""
    truth = np.asarray(is_key, dtype=bool)
    if truth.shape != (bags.n_instances,):
        msg = f"is_key must have one value per instance, {bags.n_instances}. Got {truth.shape}."
        raise ValueError(msg)
    return truth


def key_places(estimator: Any, bags: Bags) -> Integers | None:
    """Return the key instance of each bag, or None if the method scores bags only."""
    try:
        places: Integers = estimator.key_instances(bags)
    except AttributeError:
        return None
    return places


def count_found(
    estimator: Any, bags: Bags, is_key: Booleans, pos_label: Any = None
) -> tuple[int, int]:
    """Return in how many bags a true key instance is found, and how many bags hold one.

    With two classes it is found if it has the highest score for the positive one, whatever label
    the bag got: the success rate of `bagwise.metrics`. With more, if it decides for the class
    predicted.

    Parameters
    ----------
    estimator : object
        A fitted bag classifier with instance scores.
    bags : Bags
        The bags.
    is_key : ndarray of bool of shape (n_instances,)
        Which instances are true key instances.
    pos_label : label, optional
        See `assess`.

    Returns
    -------
    found, holding : int
        The two counts.
    """
    if len(estimator.classes_) == 2:
        side = 1.0 if positive_place(estimator, pos_label) else -1.0
        scores = side * np.asarray(estimator.instance_decision_function(bags), dtype=np.float64)
        places = segment_argmax(scores, bags.offsets[:-1], bags.offsets[1:])
    else:
        places = estimator.key_instances(bags)
    n_key_bags = int(np.logical_or.reduceat(is_key, bags.offsets[:-1]).sum())
    if n_key_bags == 0:
        return 0, 0
    return round(n_key_bags * key_instance_success_rate(is_key, places, bags.offsets)), n_key_bags
