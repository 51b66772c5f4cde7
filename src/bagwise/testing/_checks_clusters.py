"""Checks of clusterings: which bags are together, and what is said of it."""

# ruff: noqa: D401 (the docstring of a check says what holds)

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context

from bagwise._arrays import Integers
from bagwise._compat import InvalidParameterError
from bagwise.bags import Bags
from bagwise.datasets import make_cluster_bags
from bagwise.metrics import clustering_accuracy
from bagwise.testing._compare import assert_close, assert_finite, assert_identical, difference
from bagwise.testing._data import make_toy_bags, turned
from bagwise.testing._expect import convergence_is_no_matter, raises
from bagwise.testing._models import bag_scores, fitted, fresh, takes

_ANSWERS = ("predict", "decision_function", "transform", "instance_predict", "key_instances")


def _clusters_apart(n_clusters: int, random_state: int = 0) -> tuple[list[Any], Integers]:
    """Return bags of clusters that every method finds: all instances tell, none misleads.

    Each cluster lies in a direction of its own from the origin, for methods without an intercept.
    """
    bags, y = make_toy_bags(
        16 * n_clusters, n_clusters, n_classes=n_clusters, random_state=random_state
    )
    return [2.0 * bag for bag in bags], y


def check_clusters_found(estimator: Any) -> None:
    """Clusters that lie far apart are found, and new bags are put where they belong."""
    for n_clusters in (2, 3):
        bags, y = _clusters_apart(n_clusters)
        new, new_y = _clusters_apart(n_clusters, random_state=1)
        model = fitted(estimator, bags, None, n_clusters=n_clusters)
        both = np.append(y, new_y), np.append(model.labels_, model.predict(new))
        _assert_found(y, model.labels_, f"{n_clusters} clusters far apart, bags of the fit")
        _assert_found(*both, f"{n_clusters} clusters far apart, with new bags")


def check_concepts_found(estimator: Any) -> None:
    """Bags that share their background are told apart by one instance each, with enough starts."""
    starts = {"n_init": 20} if takes(estimator, "n_init") else {}
    for n_clusters in (2, 3):
        data = make_cluster_bags(
            20 * n_clusters,
            n_clusters=n_clusters,
            n_features=5,
            min_size=20,
            max_size=40,
            separation=10.0,
            key_rate=0.0,
        )
        model = fitted(estimator, data.bags, None, n_clusters=n_clusters, **starts)
        _assert_found(data.y, model.labels_, f"{n_clusters} clusters by one instance of each bag")


def _assert_found(true: NDArray[Any], found: NDArray[Any], what: str) -> None:
    score = clustering_accuracy(true, found)
    if score < 0.9:
        msg = f"{what}: the accuracy is {score:.2f}."
        raise AssertionError(msg)


def check_cluster_labels(estimator: Any) -> None:
    """``labels_`` is an integer for each bag, counted from 0 without holes."""
    for n_clusters in (2, 3, 5):
        for kind in ("apart", "close"):
            bags, _ = make_toy_bags(24, n_classes=3, kind=kind)
            with convergence_is_no_matter():  # more clusters than there are may stay empty
                model = fitted(estimator, bags, None, n_clusters=n_clusters)
            _assert_labels(model.labels_, len(bags), n_clusters)
            _assert_in_range(model.predict(bags), n_clusters)


def check_fit_predict(estimator: Any) -> None:
    """``fit_predict`` returns ``labels_``, and ``fit_transform`` what ``transform`` then says."""
    bags, _ = make_toy_bags(kind="close")
    model = fresh(estimator)
    found = model.fit_predict(bags)
    assert_identical(found, model.labels_, "fit_predict against labels_")
    assert_identical(found, fitted(estimator, bags, None).labels_, "fit_predict against fit")
    model = fresh(estimator)
    scores = model.fit_transform(bags)
    assert_close(scores, model.transform(bags), "fit_transform against transform")
    assert_identical(model.labels_, found, "labels_ after fit_transform")


def check_predict_repeats_labels(estimator: Any) -> None:
    """The bags of the fit are predicted where ``labels_`` has them.

    Also where clusters stay empty, since few bags differ, and where a bag is as near to several
    clusters but for rounding.
    """
    for n_clusters in (2, 3):
        for kind in ("apart", "close"):
            bags, _ = make_toy_bags(24, n_classes=3, kind=kind)
            _assert_repeated(estimator, bags, n_clusters, f"{n_clusters} clusters {kind}")
    bags, _ = make_toy_bags(24, kind="close")
    few = [bags[i % 3] for i in range(24)]
    tied = turned([np.rint(bag) for bag in bags])
    for seed in range(3) if takes(estimator, "random_state") else [None]:
        start = {} if seed is None else {"random_state": seed}
        _assert_repeated(estimator, few, 5, "bags of which few differ", **start)
        _assert_repeated(estimator, tied, 5, "ties up to rounding", **start)


def _assert_repeated(
    estimator: Any, bags: list[Any], n_clusters: int, what: str, **params: Any
) -> None:
    with convergence_is_no_matter():
        model = fitted(estimator, bags, None, n_clusters=n_clusters, **params)
    differ = np.flatnonzero(model.predict(bags) != model.labels_)
    if len(differ):
        msg = f"{what}: bags {differ.tolist()} are not where labels_ says."
        raise AssertionError(msg)


def check_predict_by_scores(estimator: Any) -> None:
    """A bag is in the cluster with its highest score, the first if several have it.

    There ``transform`` is highest too; or lowest, where it measures distances.
    """
    bags, _ = make_toy_bags(24, n_classes=3, kind="close")
    with convergence_is_no_matter():
        model = fitted(estimator, bags, None, n_clusters=3)
    scores = bag_scores(model, bags)
    if scores.shape != (24, 3):
        msg = f"Scores of 24 bags in 3 clusters must have shape (24, 3). Got {scores.shape}."
        raise AssertionError(msg)
    assert_finite(scores, "scores of clusters")
    predicted = model.predict(bags)
    if not np.array_equal(predicted, scores.argmax(axis=1)):
        msg = "predict must return the column of the highest score."
        raise AssertionError(msg)
    measures = model.transform(bags)
    if measures.shape != scores.shape:
        msg = f"transform must have the shape of the scores, {scores.shape}. Got {measures.shape}."
        raise AssertionError(msg)
    own = measures[np.arange(len(bags)), predicted]
    if not any(np.allclose(own, best(measures, axis=1)) for best in (np.max, np.min)):
        msg = "transform must be highest, or lowest, for the cluster of each bag."
        raise AssertionError(msg)


def check_target_ignored(estimator: Any) -> None:
    """``y`` is for pipelines only: whatever it is, and without it, the fit is the same."""
    bags, y = make_toy_bags(kind="close")
    model = fresh(estimator).fit(bags)
    for kind, target in {"None": None, "labels": y, "other labels": 1 - y, "text": "?"}.items():
        place = difference(dict(vars(fitted(estimator, bags, target))), dict(vars(model)))
        if place is not None:
            msg = f"y must be ignored, but with {kind} the fit is another one ({place})."
            raise AssertionError(msg)


def check_cluster_count_refused(estimator: Any) -> None:
    """More clusters than bags are refused, and the message says both numbers."""
    bags, _ = make_toy_bags(6)
    with raises(ValueError, r"n_clusters=7\b", r"\b6\b", what="fit of 6 bags with n_clusters=7"):
        fitted(estimator, bags, None, n_clusters=7)
    for number in (0, -1, 2.5):
        with raises(InvalidParameterError, "n_clusters", what=f"fit with n_clusters={number}"):
            fitted(estimator, bags, None, n_clusters=number)


def check_extreme_cluster_counts(estimator: Any) -> None:
    """One cluster holds all bags, and there may be as many clusters as bags."""
    bags, _ = make_toy_bags(6)
    model = fitted(estimator, bags, None, n_clusters=1)
    _assert_labels(model.labels_, 6, 1)
    _assert_in_range(model.predict(bags), 1)
    assert_finite(bag_scores(model, bags), "scores of one cluster")
    with convergence_is_no_matter():
        model = fitted(estimator, bags, None, n_clusters=6)
    _assert_labels(model.labels_, 6, 6)
    assert_finite(bag_scores(model, bags), "scores of a cluster for each bag")


def check_cluster_names(estimator: Any) -> None:
    """``transform`` has a column for each cluster, named after the class and numbered."""
    bags, _ = make_toy_bags()
    model = fitted(estimator, Bags.from_list(bags, feature_names=["u", "v", "w"]), None)
    prefix = type(model).__name__.lower()
    expected = [f"{prefix}{number}" for number in range(model.n_clusters)]
    names = model.get_feature_names_out()
    if list(names) != expected or model.transform(bags).shape[1] != len(expected):
        msg = f"get_feature_names_out must be {expected}, one for each column. Got {list(names)}."
        raise AssertionError(msg)
    with config_context(transform_output="pandas"):
        try:
            frame = model.transform(bags)
        except ImportError:
            return
    if list(getattr(frame, "columns", ())) != expected:
        msg = f"With transform_output='pandas' the columns must be {expected}."
        raise AssertionError(msg)
    assert_identical(frame.to_numpy(), model.transform(bags), "transform_output='pandas'")


def check_cluster_count_is_that_of_fit(estimator: Any) -> None:
    """Another ``n_clusters`` means nothing before the next fit."""
    bags, _ = make_toy_bags(24, n_classes=3)
    with convergence_is_no_matter():
        model = fitted(estimator, bags, None, n_clusters=3)
    answers = [name for name in _ANSWERS if hasattr(model, name)]
    before = {name: getattr(model, name)(bags) for name in answers}
    names = model.get_feature_names_out()
    for number in (2, 5):
        model.set_params(n_clusters=number)
        what = f"after a fit of 3 clusters and set_params(n_clusters={number})"
        for name in answers:
            assert_identical(getattr(model, name)(bags), before[name], f"{name} {what}")
        assert_identical(model.get_feature_names_out(), names, f"get_feature_names_out {what}")


def check_key_instances_of_fit(estimator: Any) -> None:
    """``key_instances_``, where there is one, is what ``key_instances`` says of the same bags."""
    bags, _ = make_toy_bags(24, n_classes=3, kind="close")
    with convergence_is_no_matter():
        model = fitted(estimator, bags, None, n_clusters=3)
    if not hasattr(model, "key_instances_"):
        return
    kept, asked = model.key_instances_, model.key_instances(bags)
    if kept.dtype.kind != "i" or not np.array_equal(kept, asked):
        msg = f"key_instances_ must be the places {asked.tolist()}. Got {kept!r}."
        raise AssertionError(msg)


def check_objective_descends(estimator: Any) -> None:
    """The ``history`` of ``result_`` never rises, and ends with the objective."""
    for kind in ("apart", "close"):
        bags, _ = make_toy_bags(40, n_classes=3, kind=kind)
        with convergence_is_no_matter():
            result = fitted(estimator, bags, None, n_clusters=3).result_
        slack = 1e-9 * max(1.0, abs(result.objective))
        if not len(result.history):
            msg = "The history of result_ must not be empty."
            raise AssertionError(msg)
        if (rise := np.diff(result.history).max(initial=0.0)) > slack:
            msg = f"The history of result_ must not rise. It does by {rise:.3g}."
            raise AssertionError(msg)
        if abs(result.history[-1] - result.objective) > slack:
            msg = (
                f"The history of result_ must end with the objective {result.objective:.6g}. "
                f"Got {result.history[-1]:.6g}."
            )
            raise AssertionError(msg)


def _assert_labels(labels: Any, n_bags: int, n_clusters: int) -> None:
    if not isinstance(labels, np.ndarray) or labels.shape != (n_bags,):
        msg = f"labels_ must be an array of shape ({n_bags},). Got {labels!r}."
        raise AssertionError(msg)
    _assert_in_range(labels, n_clusters)
    if not np.array_equal(np.unique(labels), np.arange(labels.max() + 1)):
        msg = f"labels_ must count from 0 without holes. Got {np.unique(labels).tolist()}."
        raise AssertionError(msg)


def _assert_in_range(labels: NDArray[Any], n_clusters: int) -> None:
    if labels.dtype.kind != "i" or not ((labels >= 0) & (labels < n_clusters)).all():
        msg = f"Labels of {n_clusters} clusters must be integers from 0. Got {labels!r}."
        raise AssertionError(msg)
