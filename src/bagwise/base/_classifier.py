"""The contract that every bag classifier keeps, written once."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bagwise._compat import check_sample_weight
from bagwise._threads import ordered_map
from bagwise.bags import Bags, segment_argmax
from bagwise.base._certificates import warn_unless_converged
from bagwise.base._fitting import all_or_nothing, forget_fit
from bagwise.base._tags import BagTags
from bagwise.base._target import Target, class_weighted, encode_target
from bagwise.base._validation import validate_bags
from bagwise.solvers import Certificate


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


def _scores_instances(estimator: "BagClassifier") -> bool:
    return estimator.__bagwise_tags__().instance_scores


class BagClassifier(ClassifierMixin, BaseEstimator):
    """Base of all bag classifiers.

    A subclass writes three things and inherits the rest of the contract:

    * ``fit``, with its own documentation, which calls `_fit`;
    * `_learn`, which takes validated bags, signs and weights and returns the fitted attributes
      without touching the estimator;
    * `_bag_outputs` and, where instances have scores, `_instance_outputs`.

    Classes of any type, two or more, and label lists (an indicator matrix) arrive in `_learn` as
    columns of signs, one for each binary problem; see `Target`.
    """

    #: End of the sentence "To converge, ..." in a `ConvergenceWarning`.
    _convergence_advice = "raise max_iter or tol"

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        with all_or_nothing(self):
            self._validate_params()
            forget_fit(self)
            bags = validate_bags(self, X, reset=True)
            weight = check_sample_weight(sample_weight, bags)
            target = encode_target(self, y, weight)
            if not weight.all():  # a bag of weight 0 is a bag that is not there
                bags, weight = bags[weight > 0], weight[weight > 0]
            learned = self._learn(bags, target, class_weighted(self, target, weight), weight)
            self.classes_ = target.classes
            self.multilabel_ = target.is_multilabel
            for name, value in learned.items():
                setattr(self, name, value)
            # Inside the block: where warnings are errors, this one is a failed fit like any other.
            warn_unless_converged(self, self.result_, self._convergence_advice)
        return self

    @abstractmethod
    def _learn(
        self,
        bags: Bags,
        target: Target,
        cost_weight: NDArray[np.float64],
        bag_weight: NDArray[np.float64],
    ) -> dict[str, Any]:
        """Solve the problem; return fitted attributes, a ``result_`` certificate among them.

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

    @abstractmethod
    def _bag_outputs(self, bags: Bags) -> NDArray[np.float64]:
        """Return scores of shape (n_bags, n_outputs)."""

    def _instance_outputs(self, bags: Bags) -> NDArray[np.float64]:
        """Return scores of shape (n_instances, n_outputs); only where the tags promise them."""
        msg = f"{type(self).__name__} scores bags only, not instances."
        raise AttributeError(msg)

    # ------------------------------------------------------------------------------- on bags

    def decision_function(self, X: Any) -> NDArray[np.float64]:
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
        return self._columns(self._bag_outputs(self._validated(X)))

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
        return self._labels_of(self._bag_outputs(self._validated(X)))

    # -------------------------------------------------------------------------- on instances

    @available_if(_scores_instances)
    def instance_decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of instances, bag after bag: one row for each of ``X.instances``.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        scores : ndarray of shape (n_instances,) or (n_instances, n_classes)
            As `decision_function`.
        """
        return self._columns(self._instance_outputs(self._validated(X)))

    @available_if(_scores_instances)
    def instance_predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels of instances, bag after bag.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        labels : ndarray of shape (n_instances,) or (n_instances, n_labels)
            As `predict`.
        """
        return self._labels_of(self._instance_outputs(self._validated(X)))

    @available_if(_scores_instances)
    def key_instances(self, X: Any) -> NDArray[np.int64]:
        """Return which instance of each bag decides for the predicted class.

        It is the instance with the highest score for that class. Where a bag is as positive as its
        best instance, that instance decides for the negative class as well.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        places : ndarray of int of shape (n_bags,) or (n_bags, n_labels)
            Place inside the bag, counted from 0. With label lists, one for each label.
        """
        bags = self._validated(X)
        scores = self._instance_outputs(bags)
        starts, stops = bags.offsets[:-1], bags.offsets[1:]
        if self.multilabel_:
            return segment_argmax(scores, starts, stops)
        outputs = self._bag_outputs(bags)
        if scores.shape[1] == 1:
            side = np.where(outputs[:, 0] > 0, 1.0, -1.0)
            sign = 1.0 if self.__bagwise_tags__().max_rule else np.repeat(side, bags.sizes)
            return segment_argmax(sign * scores[:, 0], starts, stops)
        predicted = np.repeat(outputs.argmax(axis=1), bags.sizes)
        return segment_argmax(scores[np.arange(len(scores)), predicted], starts, stops)

    # -------------------------------------------------------------------------------- shared

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver, as in ``result_``."""
        certificate: Certificate = self.result_
        return certificate.n_iter

    def _validated(self, X: Any) -> Bags:
        check_is_fitted(self)
        return validate_bags(self, X, reset=False)

    def _columns(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def _labels_of(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        if self.multilabel_:
            return (outputs > 0).astype(np.int64)
        codes = outputs[:, 0] > 0 if outputs.shape[1] == 1 else outputs.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes.astype(np.intp)]
        return labels

    def __bagwise_tags__(self) -> BagTags:
        return BagTags()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.classifier_tags.multi_label = True
        return tags
