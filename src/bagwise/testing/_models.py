"""Fitting estimators and asking them for scores, whatever their kind."""

import copy
import pickle
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone, is_classifier, is_clusterer
from sklearn.utils import get_tags

from bagwise.bags import Bags
from bagwise.base import BagTags, get_bag_tags
from bagwise.exceptions import ConstantModelWarning
from bagwise.testing._compare import difference

#: Everything that an estimator can be asked after its fit.
QUESTIONS = (
    "predict",
    "decision_function",
    "predict_proba",
    "instance_decision_function",
    "instance_predict",
    "key_instances",
    "transform",
)


def bag_tags(estimator: Any) -> BagTags:
    """Return the tags of an estimator; one without tags makes no promises."""
    if hasattr(estimator, "__bagwise_tags__"):
        return get_bag_tags(estimator)
    return BagTags(instance_scores=False)


def fresh(estimator: Any, **params: Any) -> Any:
    """Return a clone that is not fitted, with a fixed seed and with parameters changed."""
    model = clone(estimator)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=0)
    return model.set_params(**params)


def fitted(estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, **params: Any) -> Any:
    """Return a fresh clone, fitted; it may be constant, as the data of some checks make it."""
    weight = {} if sample_weight is None else {"sample_weight": sample_weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantModelWarning)
        return fresh(estimator, **params).fit(X, y, **weight)


class _Learned:
    """Models of the estimator that was checked last, by the data that they were fitted to."""

    def __init__(self) -> None:
        self._estimator: Any = None
        self._params: Any = None
        self._models: dict[bytes, Any] = {}

    def __call__(self, estimator: Any, X: Any, y: Any, **params: Any) -> Any:
        """Return a model that a check only asks, a copy; it is fitted once for all checks.

        A check that is about the fit itself calls `fitted`.
        """
        own = estimator.get_params(deep=False)
        if estimator is not self._estimator or difference(own, self._params) is not None:
            self._estimator, self._params, self._models = estimator, copy.deepcopy(own), {}
        key = pickle.dumps((X, y, params))
        if key not in self._models:
            self._models[key] = fitted(estimator, X, y, **params)
        return copy.deepcopy(self._models[key])


learned = _Learned()


def with_positive(estimator: Any, label: Any) -> dict[str, Any]:
    """Return the parameter that makes a class the positive one, where there is such a parameter."""
    return {"pos_label": label} if takes(estimator, "pos_label") else {}


def bag_scores(model: Any, X: Any) -> NDArray[Any]:
    """Return the numbers in which a fitted estimator says what it learned about bags."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    if hasattr(model, "transform"):
        output = model.transform(X)
        output = output.instances if isinstance(output, Bags) else output
        return output.toarray() if sparse.issparse(output) else np.asarray(output)
    return np.asarray(model.predict(X))


def questions(model: Any) -> list[str]:
    """Return the names of the methods that can be called with bags after the fit."""
    names = [name for name in QUESTIONS if hasattr(model, name)]
    if not bag_tags(model).instance_scores:
        names = [name for name in names if "instance" not in name]
    return names


def takes(estimator: Any, parameter: str) -> bool:
    """Whether the estimator has a parameter of this name."""
    return parameter in estimator.get_params(deep=False)


def is_own(estimator: Any) -> bool:
    """Whether the estimator is part of this library."""
    return type(estimator).__module__.partition(".")[0] == "bagwise"


def is_bag_classifier(estimator: Any) -> bool:
    """Whether the estimator predicts classes."""
    return bool(is_classifier(estimator))


def takes_label_lists(estimator: Any) -> bool:
    """Tell whether a classifier takes an indicator matrix of label lists."""
    return is_bag_classifier(estimator) and bool(get_tags(estimator).classifier_tags.multi_label)


def is_bag_clusterer(estimator: Any) -> bool:
    """Whether the estimator puts bags into clusters."""
    return bool(is_clusterer(estimator))
