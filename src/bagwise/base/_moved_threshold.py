"""Where to call bags positive if the optimum of a method calls none so, or all, or too many.

A machine with few positive bags may have an optimum with one label for all of them, while its
scores still rank bags. On the bags that it learned from these scores say little about others: of
bags that no machine has seen, a threshold which is right for most training bags calls far too many
positive. So the threshold comes from machines that each learned from two thirds of the bags, and
the scores they give to the last third.

Methods that do not count mistakes, such as those that take the nearest centre, have no such optimum
and hardly fit the labels of their training bags, whose own scores are good enough.
"""

from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._warnings import quiet, warn
from bagwise.bags import Bags, bag_digests
from bagwise.base._target import Target
from bagwise.base._threshold import matching_threshold
from bagwise.exceptions import MovedThresholdWarning

if TYPE_CHECKING:
    from bagwise.base._classifier import BagClassifier

_N_FOLDS = 3
_EQUAL = 1e-9  # shares that differ by less are equal
_RESOLUTION = 1e-5  # scores that differ by less are equal to a threshold


class Task(NamedTuple):
    """What a classifier learns from: the arguments of ``_learn``."""

    bags: Bags
    target: Target
    cost_weight: Floats
    bag_weight: Floats

    def take(self, bags: Integers) -> "Task":
        """Return the same of some of the bags."""
        return Task(
            self.bags[bags], self.target.take(bags), self.cost_weight[bags], self.bag_weight[bags]
        )


def move_threshold(
    classifier: "BagClassifier",
    task: Task,
    scores: Floats,
    fault: str,
    unseen: Floats | None = None,
) -> bool:
    """Move the threshold to where as much weight of bags is called positive as is positive.

    Counted are bags that were left out of a fit; or training bags, if the classifier does not
    memorize them. If all training bags would still get one label there, it moves on until one of
    them gets the other. The threshold stays if the counted bags are told apart no better than by
    chance and no more of them are right. A threshold that the method learned from its training bags
    is forgotten before.

    Parameters
    ----------
    classifier : BagClassifier
        Fitted, with two classes.
    task : Task
        What it was fitted to.
    scores : ndarray of shape (n_bags,)
        Scores of these bags for the positive class.
    fault : str
        What is wrong with the threshold as it is, a sentence for the warning.
    unseen : ndarray of shape (n_bags,), optional
        What `unseen_scores` returns, if it is known.

    Returns
    -------
    bool
        Whether it was moved; a warning says so.
    """
    sign, weight, side = task.target.signs[:, 0], task.cost_weight[:, 0], task.target.side
    if np.ptp(scores) <= _RESOLUTION:
        return False
    learned = -side * float(classifier.intercept_shift_[0])
    scores = scores + learned  # as at the optimum
    counted = scores
    if classifier._memorizes:
        counted = unseen_scores(classifier, task) if unseen is None else unseen
    level = matching_threshold(counted, sign, weight, _RESOLUTION)
    if level is None:
        return False
    found, mistaken = (
        float(np.average(counted[mine] > level, weights=weight[mine]))
        for mine in (sign > 0, sign < 0)
    )
    before = np.average((counted > learned) == (sign > 0), weights=weight)
    after = np.average((counted > level) == (sign > 0), weights=weight)
    if found <= mistaken and after <= before + _EQUAL:
        return False
    matching, level = level, _between(scores, level)
    if level is None:
        return False
    shift = -side * (level - learned)
    classifier.intercept_shift_ += shift
    if hasattr(classifier, "intercept_"):  # others add the shift itself
        classifier.intercept_ = classifier.intercept_ + shift
    positive = classifier.classes_[int(side > 0)]
    where = ", where bags are left out of the fit" if classifier._memorizes else ""
    why = (
        f"so that it predicts {positive.item()!r} as often as there is that label: for "
        f"{found:.0%} of the bags that have it and {mistaken:.0%} of the others{where}"
        if level == matching
        else "just so far that they do not all get the same label"
    )
    warn(f"{fault} The threshold was moved by {shift:.3g}, {why}.", MovedThresholdWarning)
    return True


def _between(scores: Floats, level: float) -> float | None:
    """Return the threshold nearest to the level that has scores on either side; None without."""
    ordered = np.sort(scores)
    if ordered[0] <= level < ordered[-1]:
        return level
    gaps = np.flatnonzero(np.diff(ordered) > _RESOLUTION)
    if not len(gaps):
        return None
    k = gaps[0] if level < ordered[0] else gaps[-1]
    return float(0.5 * (ordered[k] + ordered[k + 1]))


def move_if_mistaken(classifier: "BagClassifier", task: Task) -> None:
    """Move the threshold if the most frequent label is right more often, by weight of bags.

    Counted are training bags; or bags that were left out of a fit, if the classifier knows its
    training bags by heart.
    """
    sign, weight, side = task.target.signs[:, 0], task.cost_weight[:, 0], task.target.side

    def seen() -> Floats:
        return np.asarray(side * classifier._bag_scores(task.bags)[:, 0])

    unseen = unseen_scores(classifier, task) if classifier._knows_by_heart else None
    counted = seen() if unseen is None else unseen
    is_positive = float(np.average(sign > 0, weights=weight))
    right = float(np.average((counted > 0) == (sign > 0), weights=weight))
    if right >= max(is_positive, 1.0 - is_positive) - _EQUAL:
        return
    frequent = classifier.classes_[int((is_positive > 0.5) == (side > 0))]
    which = "that it learned from" if unseen is None else "that are left out of the fit"
    fault = (
        f"{type(classifier).__name__} is right for {right:.0%} of the bags {which}, and "
        f"{frequent.item()!r} is for {max(is_positive, 1.0 - is_positive):.0%}."
    )
    scores = counted if unseen is None else seen()
    move_threshold(classifier, task, scores, fault, unseen)


def folds(task: Task) -> Integers | None:
    """Return a fold for each bag, in each class as many of all; None if a class is one bag.

    They do not depend on the order of bags, nor on that of instances, unless the instances are rows
    of a given kernel matrix. Equal bags of one class are in the same fold.
    """
    fold = np.zeros(len(task.bags), np.intp)
    digests, sign = bag_digests(task.bags), task.target.signs[:, 0]
    for side in (-1.0, 1.0):
        mine = (sign == side) & (task.cost_weight[:, 0] > 0)
        known, place = np.unique(digests[mine], return_inverse=True)
        if len(known) < 2:
            return None
        fold[mine] = place % _N_FOLDS
    return fold


def unseen_scores(classifier: "BagClassifier", task: Task) -> Floats:
    """Return the score of each bag by a machine that learned from the other folds, or 0.

    They are scores for the positive class, at the optimum: a fold has no threshold of its own.
    """
    fold = folds(task)
    scores = np.zeros(len(task.bags))
    if fold is None:
        return scores
    for k in np.unique(fold):
        machine, left_out = copy(classifier), np.flatnonzero(fold == k)
        if hasattr(machine, "gamma_"):
            machine.gamma = machine.gamma_  # the same kernel in all of them
        with quiet():
            learned = machine._learn(*task.take(np.flatnonzero(fold != k)))
        for name, value in learned.items():
            setattr(machine, name, value)
        shift = learned.get("intercept_shift_", 0.0)
        scores[left_out] = (machine._bag_scores(task.bags[left_out]) - shift)[:, 0]
    return task.target.side * scores
