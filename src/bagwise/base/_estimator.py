"""The contract that every estimator on bags keeps, whatever it learns, written once."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bagwise._arrays import Floats, Integers
from bagwise._progress import shown
from bagwise.bags import Bags, BagSource, in_parts, segment_argmax, unchanged_files
from bagwise.base._certificates import warn_unless_converged
from bagwise.base._fitting import all_or_nothing, forget_fit, remember_bags
from bagwise.base._tags import BagTags
from bagwise.base._validation import validate_bags
from bagwise.solvers import Certificate


def _scores_instances(estimator: "BagEstimator") -> bool:
    return estimator.__bagwise_tags__().instance_scores


@contextmanager
def told_by_place(bags: Bags) -> Iterator[None]:
    """Name bag, instance and feature if the block refuses a value that is not finite."""
    try:
        yield
    except ValueError:
        BagSource(bags).refuse_nonfinite()
        raise


class BagEstimator(BaseEstimator):
    """Base of all that is fitted to bags.

    A family of methods, such as classifiers, writes

    * ``fit``, which calls `_fit`;
    * `_encode`, which turns bags, ``y`` and weights into what its methods learn from;
    * `_labels_of`, which turns scores into predictions.

    A method of it writes

    * `_learn`, which takes what `_encode` made and returns the fitted attributes without touching
      the estimator. Among them is the certificate ``result_``, unless there is nothing to optimise;
    * `_bag_outputs` and, where instances have scores, `_instance_outputs`.
    """

    #: End of the sentence "To converge, ..." in a `ConvergenceWarning`.
    _convergence_advice = "raise max_iter or tol"

    #: Whether scores may be finite though a value is NaN.
    _hides_nan = False

    def _fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        started = perf_counter()
        with all_or_nothing(self):
            self._validate_params()
            forget_fit(self)
            bags = validate_bags(self, X, reset=True)
            with unchanged_files(bags):
                task, known = self._encode(bags, y, sample_weight)
                remember_bags(self, bags)  # first: it reads all, and names what is not finite
                with shown(type(self).__name__, getattr(self, "verbose", 0)):
                    learned = {**known, **self._learn(*task)}
                ended = learned.setdefault("result_", Certificate.nothing())
                for name, value in learned.items():
                    setattr(self, name, value)
                # Inside the block: where warnings are errors, these are failed fits like others.
                warn_unless_converged(self, ended, self._convergence_advice)
                self._review(*task)
            self.result_ = replace(ended, solve_time=perf_counter() - started)
        return self

    def _review(self, *task: Any) -> None:
        """Mend what was learned if it is of no use, or warn; takes what `_learn` does."""

    @abstractmethod
    def _encode(
        self, bags: Bags, y: Any, sample_weight: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of `_learn`, and the fitted attributes that are known before it."""

    @abstractmethod
    def _learn(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Solve the problem; return fitted attributes."""

    @abstractmethod
    def _bag_outputs(self, bags: Bags) -> Floats:
        """Return scores of shape (n_bags, n_outputs)."""

    def _instance_outputs(self, bags: Bags) -> Floats:
        """Return scores of shape (n_instances, n_outputs); only where the tags promise them."""
        msg = f"{type(self).__name__} scores bags only, not instances."
        raise AttributeError(msg)

    def _bag_scores(self, bags: Bags) -> Floats:
        """Return `_bag_outputs`; lazy bags are read in chunks."""
        return self._finite_outputs(bags, self._bag_outputs)

    def _instance_scores(self, bags: Bags) -> Floats:
        """Return `_instance_outputs`; lazy bags are read in chunks."""
        return self._finite_outputs(bags, self._instance_outputs)

    def _finite_outputs(self, bags: Bags, outputs: Callable[[Bags], Floats]) -> Floats:
        with unchanged_files(bags):
            if self._hides_nan and bags.is_memory_mapped:
                BagSource(bags).refuse_nonfinite()
            with told_by_place(bags):
                return self._finite(bags, in_parts(bags, outputs))

    def _finite(self, bags: Bags, scores: Floats) -> Floats:
        """Return scores of bags; if NaN is among them, name the place in the bags that it is from.

        A fit reads all bags for that first. Predictions read them once.
        """
        if not np.isfinite(scores).all():
            BagSource(bags).refuse_nonfinite()
        return scores

    @abstractmethod
    def _labels_of(self, outputs: Floats) -> NDArray[Any]:
        """Return what scores of bags or instances predict."""

    def _columns(self, outputs: Floats) -> Floats:
        """Return scores as users see them."""
        return outputs

    # -------------------------------------------------------------------------- on instances

    @available_if(_scores_instances)
    def instance_decision_function(self, X: Any) -> Floats:
        """Return the scores of instances, bag after bag: one row for each of ``X.instances``.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        scores : ndarray of shape (n_instances,) or (n_instances, n_outputs)
            As `decision_function`.
        """
        return self._columns(self._instance_scores(self._validated(X)))

    @available_if(_scores_instances)
    def instance_predict(self, X: Any) -> NDArray[Any]:
        """Return what is predicted for instances, bag after bag.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        labels : ndarray of shape (n_instances,) or (n_instances, n_labels)
            As `predict`.
        """
        return self._labels_of(self._instance_scores(self._validated(X)))

    @available_if(_scores_instances)
    def key_instances(self, X: Any) -> Integers:
        """Return which instance of each bag decides for what is predicted.

        It is the instance with the highest score for the class or cluster of the bag. Where a bag
        is as positive as its best instance, that instance decides for the negative class as well.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        places : ndarray of int of shape (n_bags,) or (n_bags, n_labels)
            Place inside the bag, counted from 0. With label lists, one for each label.
        """
        return self._key_places(self._validated(X))

    def _key_places(self, bags: Bags) -> Integers:
        """Return the place of the instance with the highest score for the output of its bag."""
        scores = self._instance_scores(bags)
        chosen = np.repeat(self._bag_scores(bags).argmax(axis=1), bags.sizes)
        own = scores[np.arange(len(scores)), chosen]
        return segment_argmax(own, bags.offsets[:-1], bags.offsets[1:])

    # -------------------------------------------------------------------------------- shared

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver, as in ``result_``."""
        certificate: Certificate = self.result_
        return certificate.n_iter

    def _validated(self, X: Any) -> Bags:
        check_is_fitted(self)
        return validate_bags(self, X, reset=False)

    def __bagwise_tags__(self) -> BagTags:
        return BagTags()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        return tags
