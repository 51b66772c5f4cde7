"""What is looked at once a classifier has learned: whether it tells its training bags apart."""

from typing import TYPE_CHECKING

import numpy as np

from bagwise.base._constant import in_turn, scores_if_constant, warn_constant
from bagwise.base._label_lists import plain_label
from bagwise.base._moved_threshold import Task, move_if_constant, move_if_mistaken

if TYPE_CHECKING:
    from bagwise.base._classifier import BagClassifier


def review(classifier: "BagClassifier", task: Task) -> None:
    """Move the threshold of a model that predicts one class for all training bags, or warn.

    It moves only with two classes; see `move_if_constant`. Of classifiers that do not count
    mistakes it moves sooner: where the most frequent label is right more often; see
    `move_if_mistaken`.

    Parameters
    ----------
    classifier : BagClassifier
        Fitted.
    task : Task
        What it was fitted to.
    """
    bags, target = task.bags, task.target
    if classifier._threshold_moves and not hasattr(classifier, "intercept_shift_"):
        classifier.intercept_shift_ = np.zeros(target.n_outputs)
    if target.is_one_for_all:
        return
    is_movable = classifier._threshold_moves and target.codes is not None and target.n_outputs == 1
    order = in_turn(target)
    scores = scores_if_constant(classifier, bags, order)
    if scores is None:
        if is_movable and not classifier._counts_mistakes(bags):
            move_if_mistaken(classifier, task)
        return
    (label,) = classifier._labels_of(scores[:1])
    if is_movable:
        in_place = target.side * scores[np.argsort(order), 0]
        if move_if_constant(classifier, task, in_place, plain_label(label)):
            return
    warn_constant(classifier, label)
