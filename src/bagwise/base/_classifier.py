"""The contract that every bag classifier keeps, written once."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._compat import check_sample_weight
from bagwise._threads import ordered_map
from bagwise.bags import Bags, segment_argmax
from bagwise.base._estimator import BagEstimator
from bagwise.base._label_lists import checked_lists, holds_lists, indicator_of
from bagwise.base._moved_threshold import Task, scores_by_others
from bagwise.base._review import review
from bagwise.base._target import Target, class_weighted, encode_target


def one_vs_rest(
    solve: Callable[[int], Any], n_outputs: int, n_jobs: int | None = None
) -> list[Any]:
    """Solve the binary problem of each output; in threads if there are several and jobs to spare.

    Parameters
    ----------
    solve : callable
        Takes the number of the output. Should spend its time in compiled code.
    n_outputs : int
        Number of problems.
    n_jobs : int or None
        As in scikit-learn: None means 1, -1 all processors.
    """
    n_threads = min(effective_n_jobs(n_jobs), n_outputs)
    return list(ordered_map(solve, range(n_outputs), n_threads=n_threads))


class BagClassifier(ClassifierMixin, BagEstimator):
    """Base of all bag classifiers.

    A subclass writes two things and inherits the rest of the contract:

    * `_learn`, which takes validated bags, signs and weights and returns the fitted attributes
      without touching the estimator;
    * `_bag_outputs` and, where instances have scores, `_instance_outputs`.

    Classes of any type, two or more, and label lists (an indicator matrix, or sets of labels)
    arrive in `_learn` as columns of signs, one for each binary problem; see `Target`.
    """

    classes_: NDArray[Any]
    multilabel_: bool
    intercept_: Floats
    intercept_shift_: Floats

    #: What `unseen_scores` gives, if `_learn` had to know it; forgotten when the fit ends.
    _unseen: Floats | None = None

    @property
    def _threshold_moves(self) -> bool:
        """Whether the threshold may be moved, as where all training bags get one label.

        Only where it is a constant in the scores of bags, and not chosen by its user.
        """
        return False

    def _counts_mistakes(self, bags: Bags) -> bool:
        """Whether the objective is about how many of these bags, or of others, get their label.

        If not, the threshold also moves where training bags get it less often than by the most
        frequent label, by weight; see also `_knows_by_heart`.
        """
        return True

    @property
    def _memorizes(self) -> bool:
        """Whether training bags are on the right side more often than others."""
        return True

    @property
    def _knows_by_heart(self) -> bool:
        """Whether they are so much more often that one must ask bags that were left out.

        Then mistakes are counted there, where the objective does not count them.
        """
        return False

    def _scores_by_others(self, task: Task, left_out: Booleans) -> Floats:
        """Return the scores of bags by a machine that learned from the others, at its optimum.

        Called of a fitted classifier, with what it was fitted to. A method may know more of this
        task than `_learn` knows of a part of it.
        """
        return scores_by_others(self, task, left_out)

    def _settle(self) -> None:
        """Set parameters to what the fit made of them, so that parts of the bags get the same."""
        if hasattr(self, "gamma_"):
            self.gamma = self.gamma_

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from labelled bags.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : array-like of shape (n_bags,) or (n_bags, n_labels), or list of sets
            Labels; or label lists, as an indicator matrix or as a set of labels for each bag. They
            are required.
        sample_weight : array-like of shape (n_bags,), optional
            Weights of the bags; weight 2 is the same as having the bag twice.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _encode(
        self, bags: Bags, y: Any, sample_weight: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        weight = check_sample_weight(sample_weight, bags)
        target = encode_target(self, y, weight, bags)
        if not weight.all():  # a bag of weight 0 is a bag that is not there
            bags, weight = bags[weight > 0], weight[weight > 0]
        task = bags, target, class_weighted(self, target, weight), weight
        return task, {"classes_": target.classes, "multilabel_": target.is_multilabel}

    def _review(self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats) -> None:
        review(self, Task(bags, target, cost_weight, bag_weight))
        self.__dict__.pop("_unseen", None)

    @abstractmethod
    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        """Solve the problem; return fitted attributes, the certificate ``result_`` among them.

        Parameters
        ----------
        bags : Bags
            All of positive weight.
        target : Target
            Their signs.
        cost_weight : ndarray of shape (n_bags, n_outputs)
            What the loss of each bag counts in each problem: sample weight times class weight.
        bag_weight : ndarray of shape (n_bags,)
            The sample weight: how often each bag counts as being there.
        """

    # ------------------------------------------------------------------------------- on bags

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of bags: positive means the second class, or the class of the column.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        scores : ndarray of shape (n_bags,) or (n_bags, n_classes)
            One column for each class if there are more than two, or for each label with label
            lists.
        """
        return self._columns(self._bag_scores(self._validated(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels of bags.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        labels : ndarray of shape (n_bags,) or (n_bags, n_labels)
            Labels, or an indicator matrix with label lists.
        """
        return self._labels_of(self._bag_scores(self._validated(X)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of bags that are labelled right; of label lists, entirely right.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : array-like of shape (n_bags,) or (n_bags, n_labels), or list of sets
            True labels, in the form that `fit` takes.
        sample_weight : array-like of shape (n_bags,), optional
            Weights of the bags.

        Returns
        -------
        score : float
            The accuracy.
        """
        if not holds_lists(y):
            return float(super().score(X, y, sample_weight))
        found, name = self.predict(X), type(self).__name__
        if not self.multilabel_:
            msg = f"{name} was fitted to one label for each bag. Got lists of labels to compare."
            raise ValueError(msg)
        wanted = indicator_of(checked_lists(y, name), self.classes_)
        # Of labels that were not in the fit none is found.
        found = np.column_stack([found, np.zeros(len(found), found.dtype)])
        return float(accuracy_score(wanted, found, sample_weight=sample_weight))

    # -------------------------------------------------------------------------------- shared

    def _columns(self, outputs: Floats) -> Floats:
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def _labels_of(self, outputs: Floats) -> NDArray[Any]:
        if self.multilabel_:
            return (outputs > 0).astype(np.int64)
        codes = outputs[:, 0] > 0 if outputs.shape[1] == 1 else outputs.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes.astype(np.intp)]
        return labels

    def _key_places(self, bags: Bags) -> Integers:
        if not self.multilabel_ and len(self.classes_) > 2:
            return super()._key_places(bags)
        scores = self._instance_scores(bags)
        if not self.multilabel_:
            if self.__bagwise_tags__().max_rule:
                side = np.full((len(bags), 1), self._side)
            else:
                side = np.where(self._bag_scores(bags) > 0, 1.0, -1.0)
            scores = (np.repeat(side, bags.sizes, axis=0) * scores)[:, 0]
        return segment_argmax(scores, bags.offsets[:-1], bags.offsets[1:])

    @property
    def _side(self) -> float:
        """Sign of the scores of the positive class."""
        return 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
