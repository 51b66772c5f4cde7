"""Where to call bags positive if the optimum of a method calls none so, or all, or too many.

A machine with few positive bags may have an optimum with one label for all of them, while its
scores still rank bags. On the bags that it learned from these scores say little about others: of
bags that no machine has seen, a threshold which is right for most training bags calls far too many
positive. So the threshold comes from machines that each learned from two thirds of the bags, and
the scores they give to the last third.

Methods that do not count mistakes, such as those that take the nearest centre, have no such optimum
and hardly fit the labels of their training bags, whose own scores are good enough.

As many bags as are positive ought to be called so. But where few are and the ranking is weak, most
of these are called so wrongly: then it is fewer, or more, until the most frequent label alone would
not be right more often.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._warnings import quiet, warn
from bagwise.bags import Bags, bag_digests
from bagwise.base._label_lists import plain_label
from bagwise.base._target import Target
from bagwise.base._threshold import matching_threshold, ranked_right
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


def move_if_constant(
    classifier: "BagClassifier", task: Task, scores: Floats, label: object
) -> bool:
    """Move the threshold of a model that gives all training bags one label.

    It moves if bags are ranked better than by chance, or if the other label is more frequent, by
    weight, or if some threshold is right for as many bags as the one label: then it costs nothing
    to tell bags apart. These are bags that were left out of a fit; or training bags, if the
    classifier does not memorize them. A threshold that the method learned from its training bags
    is forgotten.

    Parameters
    ----------
    classifier : BagClassifier
        Fitted, with two classes.
    task : Task
        What it was fitted to.
    scores : ndarray of shape (n_bags,)
        Scores of these bags for the positive class.
    label : object
        What it predicts, for the warning.

    Returns
    -------
    bool
        Whether it was moved; a warning says so.
    """
    if np.ptp(scores) <= _RESOLUTION:
        return False
    sign, weight = task.target.signs[:, 0], task.cost_weight[:, 0]
    is_unsure = classifier._memorizes or classifier._knows_by_heart
    counted = unseen_scores(classifier, task) if is_unsure else None
    asked = scores if counted is None else counted
    is_ranked = ranked_right(asked, sign, weight, _RESOLUTION) > 0.5 + _EQUAL
    may_harm = is_ranked or _is_mistaken(scores, sign, weight)
    is_learned = classifier.intercept_shift_.any()
    where = "with the threshold that it learned" if is_learned else "at its optimum"
    name = type(classifier).__name__
    fault = f"{name} predicts {label!r} {where} for every bag that it learned from."
    return _move(classifier, task, scores, counted, fault, may_harm=may_harm)


def move_if_mistaken(classifier: "BagClassifier", task: Task) -> None:
    """Move the threshold if the most frequent label is right more often, by weight of bags.

    Counted are training bags; or bags that were left out of a fit, if the classifier knows its
    training bags by heart.
    """
    sign, weight, side = task.target.signs[:, 0], task.cost_weight[:, 0], task.target.side

    def seen() -> Floats:
        return np.asarray(side * classifier._bag_scores(task.bags)[:, 0])

    by_heart = classifier._knows_by_heart
    unseen = unseen_scores(classifier, task, unless_right=True) if by_heart else None
    asked = seen() if unseen is None else unseen
    if not _is_mistaken(asked, sign, weight):
        return
    right, is_positive = (
        float(np.average(share, weights=weight)) for share in ((asked > 0) == (sign > 0), sign > 0)
    )
    frequent = classifier.classes_[int((is_positive > 0.5) == (side > 0))]
    which = "that it learned from" if unseen is None else "that are left out of the fit"
    fault = (
        f"{type(classifier).__name__} is right for {right:.0%} of the bags {which}, and "
        f"{plain_label(frequent)!r} is for {max(is_positive, 1.0 - is_positive):.0%}."
    )
    scores = asked if unseen is None else seen()
    if unseen is None and classifier._memorizes:
        unseen = unseen_scores(classifier, task)
    _move(classifier, task, scores, unseen, fault)


def _is_mistaken(scores: Floats, sign: Floats, weight: Floats) -> bool:
    """Return whether one sign for all bags would be right more often, by weight."""
    is_right, is_positive = (
        np.average(share, weights=weight) for share in ((scores > 0) == (sign > 0), sign > 0)
    )
    return bool(is_right < max(is_positive, 1.0 - is_positive) - _EQUAL)


def _move(
    classifier: "BagClassifier",
    task: Task,
    scores: Floats,
    unseen: Floats | None,
    fault: str,
    *,
    may_harm: bool = True,
) -> bool:
    """Move the threshold to where as much weight of bags is called positive as is positive.

    Or nearly so, if more would be wrong than by the most frequent label; see
    `matching_threshold`. Counted are the unseen scores of bags, if there are any. If all training
    bags would still get one label there, it moves on until one of them gets the other. Unless that
    may do harm, it stays if more of the counted bags were wrong then than by one label for all.

    Returns whether it was moved. The warning begins with the fault.
    """
    sign, weight, side = task.target.signs[:, 0], task.cost_weight[:, 0], task.target.side
    learned = -side * float(classifier.intercept_shift_[0])
    scores = scores + learned  # as at the optimum
    counted = scores if unseen is None else unseen
    matching = matching_threshold(counted, sign, weight, _RESOLUTION)
    level = None if matching is None else _between(scores, matching)
    if level is None or (not may_harm and _is_mistaken(counted - level, sign, weight)):
        return False
    shift = -side * (level - learned)
    classifier.intercept_shift_ += shift
    if hasattr(classifier, "intercept_"):  # others add the shift itself
        classifier.intercept_ = classifier.intercept_ + shift
    found, mistaken = (
        float(np.average(counted[mine] > level, weights=weight[mine]))
        for mine in (sign > 0, sign < 0)
    )
    positive = plain_label(classifier.classes_[int(side > 0)])
    where = "" if unseen is None else ", where bags are left out of the fit"
    why = (
        f"so that it predicts {positive!r} for {found:.0%} of the bags that have that label "
        f"and {mistaken:.0%} of the others{where}"
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


def unseen_scores(classifier: "BagClassifier", task: Task, *, unless_right: bool = False) -> Floats:
    """Return the score of each bag by a machine that learned from the other folds, or 0.

    They are scores for the positive class, at the optimum: a fold has no threshold of its own.
    Those that the classifier knows from its fit are not made again. If only mistakes are asked for,
    it counts all bags of further folds as mistakes, and ends as soon as the most frequent label is
    not right more often even so. What is returned then has the wrong sign in these folds.
    """
    if classifier._unseen is not None:
        return classifier._unseen
    fold, sign, side = folds(task), task.target.signs[:, 0], task.target.side
    if fold is None:
        return np.zeros(len(task.bags))
    scores = -sign
    for k in np.unique(fold):
        scores[fold == k] = side * classifier._scores_by_others(task, fold == k)
        if unless_right and not _is_mistaken(scores, sign, task.cost_weight[:, 0]):
            break
    return scores


def unseen_scores_by(
    classifier: "BagClassifier", task: Task, settings: Sequence[Mapping[str, Any]]
) -> Floats:
    """Return `unseen_scores` with each of several settings, of shape (n_settings, n_bags).

    Parameters
    ----------
    classifier : BagClassifier
        Fitted, with two classes.
    task : Task
        What it was fitted to.
    settings : sequence of mappings
        Attributes that matter to predictions, which machines get after they have learned.
    """
    fold, scores = folds(task), np.zeros((len(settings), len(task.bags)))
    if fold is None:
        return scores
    for k in np.unique(fold):
        machine, shift = _learned_from_others(classifier, task, fold == k)
        bags = task.bags[np.flatnonzero(fold == k)]
        for row, changes in zip(scores, settings, strict=True):
            for name, value in changes.items():
                setattr(machine, name, value)
            row[fold == k] = (machine._bag_scores(bags) - shift)[:, 0]
    return task.target.side * scores


def scores_by_others(classifier: "BagClassifier", task: Task, left_out: Booleans) -> Floats:
    """Return the scores of bags, as they are, by a machine that learned from the others."""
    machine, shift = _learned_from_others(classifier, task, left_out)
    scores: Floats = machine._bag_scores(task.bags[np.flatnonzero(left_out)]) - shift
    return scores[:, 0]


def _learned_from_others(
    classifier: "BagClassifier", task: Task, left_out: Booleans
) -> tuple["BagClassifier", Floats | float]:
    """Return a machine that learned from bags that are not left out, and its learned threshold."""
    machine = copy(classifier)
    machine._settle()
    with quiet():
        learned = machine._learn(*task.take(np.flatnonzero(~left_out)))
    for name, value in learned.items():
        setattr(machine, name, value)
    return machine, learned.get("intercept_shift_", 0.0)
