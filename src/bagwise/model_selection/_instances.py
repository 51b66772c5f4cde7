"""What a search says of instances, through pipelines too."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bagwise._arrays import Floats, Integers
from bagwise.base import last_step


def _has(method: str) -> Callable[[Any], bool]:
    def check(search: Any) -> bool:
        found = search if hasattr(search, "best_estimator_") else search.estimator
        getattr(last_step(found)[0], method)  # its own error, where there is no such method
        return True

    return check


class InstanceMethods:
    """The methods of the best estimator that are about instances, behind its other steps."""

    @available_if(_has("instance_decision_function"))
    def instance_decision_function(self, X: Any) -> Floats:
        """Return the scores of instances, bag after bag, by the best estimator.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        scores : ndarray of shape (n_instances,) or (n_instances, n_outputs)
            As ``decision_function``.
        """
        return self._ask("instance_decision_function", X)

    @available_if(_has("instance_predict"))
    def instance_predict(self, X: Any) -> NDArray[Any]:
        """Return what the best estimator predicts for instances, bag after bag.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        labels : ndarray of shape (n_instances,) or (n_instances, n_labels)
            As ``predict``.
        """
        return self._ask("instance_predict", X)

    @available_if(_has("key_instances"))
    def key_instances(self, X: Any) -> Integers:
        """Return which instance of each bag decides for what the best estimator predicts.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        places : ndarray of int of shape (n_bags,) or (n_bags, n_labels)
            Place inside the bag, counted from 0. With label lists, one for each label.
        """
        return self._ask("key_instances", X)

    def _ask(self, method: str, X: Any) -> Any:
        check_is_fitted(self, "best_estimator_")
        last, front = last_step(self)
        return getattr(last, method)(X if front is None else front.transform(X))
