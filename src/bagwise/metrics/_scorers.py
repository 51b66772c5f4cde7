"""The metrics in the form that scikit-learn takes as ``scoring=``."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, make_scorer
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._compat import methods_scored
from bagwise.bags import Bags, segment_argmax
from bagwise.base import last_step, positive_place
from bagwise.metrics._clustering import clustering_accuracy, normalized_mutual_information
from bagwise.metrics._instances import (
    instance_auc,
    instance_precision,
    instance_recall,
    key_instance_success_rate,
)
from bagwise.metrics._ranking import average_precision, coverage, one_error


class InstanceScorer:
    """A scorer that compares what an estimator says of instances with ``X.instance_labels``.

    Made by `make_instance_scorer`.
    """

    def __init__(self, metric: str, positive: Any, unknown: Any, pos_label: Any) -> None:
        self.metric, self.positive, self.unknown = metric, positive, unknown
        self.pos_label = pos_label

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score of a fitted estimator.

        Parameters
        ----------
        estimator : object
            A fitted classifier with instance scores; also as the last step of a `Pipeline` or
            inside a search.
        X : Bags
            Bags with instance labels.
        y : array-like of shape (n_bags,) or (n_bags, n_labels)
            Their labels.
        """
        if not isinstance(X, Bags) or X.instance_labels is None:
            msg = (
                f"The scorer {self.metric!r} needs Bags with instance_labels. "
                f"Got {'Bags without them' if isinstance(X, Bags) else type(X).__name__}."
            )
            raise ValueError(msg)
        classifier, seen = _last_step(estimator, X)
        return _METRICS[self.metric](_InstanceTruth(self, classifier, X, y), classifier, seen)

    def __repr__(self) -> str:
        return (
            f"make_instance_scorer({self.metric!r}, positive={self.positive!r}, "
            f"unknown={self.unknown!r}, pos_label={self.pos_label!r})"
        )


def make_instance_scorer(
    metric: str, *, positive: Any = None, unknown: Any = -1, pos_label: Any = None
) -> InstanceScorer:
    """Make a scorer of what an estimator says of instances; the truth is ``X.instance_labels``.

    With two classes only the positive one is scored; otherwise every class or label, and the
    result is the mean over them (for the success rate, over bags and their labels).

    Parameters
    ----------
    metric : {"key_instance_success_rate", "instance_precision", "instance_recall", "instance_auc"}
        Which function of `bagwise.metrics`. The success rate looks, in each bag of a class, at the
        instance with the highest score for that class, whatever is predicted for the bag.
    positive : object, optional
        With two classes, the instance label that means positive. By default it is the positive
        class, or 1 if all instance labels are 0 or 1. More classes: instance labels must be
        classes; label lists: numbers of columns.
    unknown : object
        The instance label that means that nothing is known; such instances are left out. Not used
        if it is a class, or None. Give None where -1 means "none of the labels".
    pos_label : label, optional
        The positive one of two classes of bags. By default it is the ``pos_label_`` of the
        classifier, or the second class if it has none.

    Returns
    -------
    scorer : callable
        With the signature ``scorer(estimator, X, y)`` that scikit-learn takes as ``scoring=``.

    Examples
    --------
    In bags of digits the instance labels are the digits, and one digit makes a bag positive:

    >>> from sklearn.model_selection import cross_val_score
    >>> from bagwise.datasets import load_digit_bags
    >>> from bagwise.metrics import make_instance_scorer
    >>> from bagwise.svm import SIL
    >>> data = load_digit_bags(60, target=0)
    >>> scorer = make_instance_scorer("key_instance_success_rate", positive=data.target)
    >>> bool(cross_val_score(SIL(), data.bags, data.y, scoring=scorer, cv=3).mean() > 0.5)
    True
    """
    if metric not in _METRICS:
        msg = f"metric must be one of {sorted(_METRICS)}. Got {metric!r}."
        raise ValueError(msg)
    return InstanceScorer(metric, positive, unknown, pos_label)


#: The scores of scikit-learn that are about the positive one of two classes; all others are the
#: same, whichever that is.
OF_POSITIVE_CLASS = (
    "average_precision",
    "f1",
    "jaccard",
    "neg_negative_likelihood_ratio",
    "positive_likelihood_ratio",
    "precision",
    "recall",
)


class PositiveScorer:
    """A score of scikit-learn for the positive one of two classes, whatever the labels are.

    Made by `make_positive_scorer`.
    """

    def __init__(self, scoring: str, pos_label: Any) -> None:
        self.scoring, self.pos_label = scoring, pos_label

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score of a fitted estimator.

        Parameters
        ----------
        estimator : object
            A fitted classifier of two classes; also a `Pipeline` that ends in one, or a search.
        X : Bags
            Bags.
        y : array-like of shape (n_bags,)
            Their labels.
        """
        n_classes = len(estimator.classes_)
        if np.ndim(y) != 1 or n_classes != 2:
            got = "label lists" if np.ndim(y) != 1 else f"{n_classes} classes"
            msg = f"The score {self.scoring!r} is for two classes. Got {got}."
            raise ValueError(msg)
        place = positive_place(last_step(estimator)[0], self.pos_label)
        truth = np.asarray(y) == estimator.classes_[place]
        scorer = get_scorer(self.scoring)
        return float(scorer(_Coded(estimator, place), X, truth.astype(np.intp)))

    def __repr__(self) -> str:
        return f"make_positive_scorer({self.scoring!r}, pos_label={self.pos_label!r})"


def make_positive_scorer(scoring: str, *, pos_label: Any = None) -> PositiveScorer:
    """Make a scorer of scikit-learn's that follows the positive class of the classifier.

    ``scoring="f1"`` alone is about the class 1, and fails if there is none.

    Parameters
    ----------
    scoring : str
        A score about the positive one of two classes, as scikit-learn calls it:
        "average_precision", "f1", "jaccard", "precision", "recall", "positive_likelihood_ratio" or
        "neg_negative_likelihood_ratio".
    pos_label : label, optional
        The positive class. By default it is the ``pos_label_`` of the classifier, or the second
        class if it has none.

    Returns
    -------
    scorer : callable
        With the signature ``scorer(estimator, X, y)`` that scikit-learn takes as ``scoring=``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from bagwise.datasets import load_digit_bags
    >>> from bagwise.metrics import make_positive_scorer
    >>> from bagwise.svm import SIL
    >>> data = load_digit_bags(60, target=0)
    >>> y = np.where(data.y == 1, "a zero", "none")
    >>> model, scorer = SIL(pos_label="a zero"), make_positive_scorer("f1")
    >>> bool(cross_val_score(model, data.bags, y, scoring=scorer, cv=3).mean() > 0.5)
    True
    """
    if scoring not in OF_POSITIVE_CLASS:
        msg = f"scoring must be one of {list(OF_POSITIVE_CLASS)}. Got {scoring!r}."
        raise ValueError(msg)
    return PositiveScorer(scoring, pos_label)


class _Coded(ClassifierMixin, BaseEstimator):
    """A fitted classifier as if its classes were 0 and 1, the positive one."""

    def __init__(self, estimator: Any, place: int) -> None:
        self.estimator, self.place = estimator, place
        self.classes_ = np.array([0, 1])

    def predict(self, X: Any) -> Integers:
        """Return 1 where the positive class is predicted."""
        found = self.estimator.predict(X) == self.estimator.classes_[self.place]
        return np.asarray(found, dtype=np.intp)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: Any) -> Floats:
        """Return scores for the positive class."""
        scores: Floats = self.estimator.decision_function(X)
        return scores if self.place else -scores

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the other class and of the positive one."""
        found: Floats = self.estimator.predict_proba(X)
        return found if self.place else found[:, ::-1]


def check_scored(scoring: str, estimator: Any) -> None:
    """Refuse a score of scikit-learn that asks an estimator for what it does not have.

    Parameters
    ----------
    scoring : str
        As scikit-learn calls it.
    estimator : object
        Fitted or not.
    """
    methods = methods_scored(get_scorer(scoring))
    if methods and not any(hasattr(estimator, method) for method in methods):
        name = type(last_step(estimator)[0]).__name__
        msg = f"The score {scoring!r} needs {' or '.join(methods)}, which {name} does not have."
        raise ValueError(msg)


class _InstanceTruth:
    """The truth about instances as flags, one column for each class or label that is scored."""

    def __init__(self, scorer: InstanceScorer, classifier: Any, bags: Bags, y: Any) -> None:
        classes, labels = classifier.classes_, np.asarray(bags.instance_labels)
        target = np.asarray(y)
        self.bags, self.classes = bags, classes
        self.is_multilabel = target.ndim == 2
        self.known = np.ones(len(labels), dtype=bool)
        if scorer.unknown is not None and scorer.unknown not in classes.tolist():
            self.known = labels != scorer.unknown
        foreign = self.known & ~np.isin(labels, classes)
        self.place = None
        if not self.is_multilabel and len(classes) == 2:
            self.place = positive_place(classifier, scorer.pos_label)
            positive, positive_class = scorer.positive, classes[self.place]
            if positive is None:
                flagged = np.isin(labels[self.known], (0, 1)).all()
                if foreign.any() and not flagged:
                    _refuse(scorer, "among the classes, or 0 and 1, or positive=", labels[foreign])
                positive = 1 if foreign.any() else positive_class
            self.flags = (labels == positive)[:, None]
            self.of_bags = (target == positive_class)[:, None]
            return
        if self.is_multilabel and scorer.unknown is None:
            foreign &= labels != -1
        if foreign.any():
            _refuse(scorer, f"among {classes.tolist()[:10]}", labels[foreign])
        self.flags = labels[:, None] == classes
        self.of_bags = target > 0 if self.is_multilabel else target[:, None] == classes

    def predictions(self, predicted: NDArray[Any]) -> Booleans:
        """Return what ``instance_predict`` says, in the columns of the truth."""
        if self.is_multilabel:
            return predicted > 0
        scored = self.classes if self.place is None else self.classes[[self.place]]
        return predicted[:, None] == scored

    def scores(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Return what ``instance_decision_function`` says, in the columns of the truth."""
        columns = scores.reshape(len(scores), -1)
        return -columns if self.place == 0 else columns


def _refuse(scorer: InstanceScorer, needed: str, foreign: NDArray[Any]) -> None:
    msg = f"The scorer {scorer.metric!r} needs instance_labels {needed}. Got {foreign[0].item()!r}."
    raise ValueError(msg)


def _last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the classifier inside searches and pipelines, and the bags as it gets them."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, Pipeline):
            if len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        else:
            return estimator, X


def _key_instances_found(truth: _InstanceTruth, classifier: Any, seen: Any) -> float:
    # Not `key_instances`, which points at what decides for the *predicted* class: the question
    # is where the positive class is, whatever the prediction.
    bags, scores = truth.bags, truth.scores(classifier.instance_decision_function(seen))
    places = segment_argmax(scores, bags.offsets[:-1], bags.offsets[1:])
    flags = truth.flags & truth.known[:, None]
    present = np.logical_or.reduceat(flags, bags.offsets[:-1], axis=0)
    return key_instance_success_rate(flags, places, bags.offsets, relevant=present & truth.of_bags)


def _precision(truth: _InstanceTruth, classifier: Any, seen: Any) -> float:
    predicted = truth.predictions(classifier.instance_predict(seen))
    return instance_precision(truth.flags, predicted, known=truth.known)


def _recall(truth: _InstanceTruth, classifier: Any, seen: Any) -> float:
    predicted = truth.predictions(classifier.instance_predict(seen))
    return instance_recall(truth.flags, predicted, known=truth.known)


def _auc(truth: _InstanceTruth, classifier: Any, seen: Any) -> float:
    scores = truth.scores(classifier.instance_decision_function(seen))
    return instance_auc(truth.flags, scores, known=truth.known)


_METRICS: Mapping[str, Callable[[_InstanceTruth, Any, Any], float]] = MappingProxyType(
    {
        "instance_auc": _auc,
        "instance_precision": _precision,
        "instance_recall": _recall,
        "key_instance_success_rate": _key_instances_found,
    }
)

clustering_accuracy_scorer = make_scorer(clustering_accuracy)
nmi_scorer = make_scorer(normalized_mutual_information)

#: Negated, as scikit-learn does with what is to be small.
one_error_scorer = make_scorer(
    one_error, greater_is_better=False, response_method="decision_function"
)
coverage_scorer = make_scorer(
    coverage, greater_is_better=False, response_method="decision_function"
)
average_precision_scorer = make_scorer(average_precision, response_method="decision_function")

key_instance_scorer = make_instance_scorer("key_instance_success_rate")
instance_precision_scorer = make_instance_scorer("instance_precision")
instance_recall_scorer = make_instance_scorer("instance_recall")
instance_auc_scorer = make_instance_scorer("instance_auc")

#: All scorers by name; higher is better in each.
SCORERS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {
        "average_precision": average_precision_scorer,
        "clustering_accuracy": clustering_accuracy_scorer,
        "instance_auc": instance_auc_scorer,
        "instance_precision": instance_precision_scorer,
        "instance_recall": instance_recall_scorer,
        "key_instance_success_rate": key_instance_scorer,
        "neg_coverage": coverage_scorer,
        "neg_one_error": one_error_scorer,
        "nmi": nmi_scorer,
    }
)
