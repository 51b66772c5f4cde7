"""Checks that scikit-learn's tools, and our own store of models, take the estimator."""

# ruff: noqa: D401 (the docstring of a check says what holds)

import inspect
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagwise.bags import Bags
from bagwise.preprocessing import InstanceTransformer
from bagwise.testing._compare import ROUNDING, assert_close, assert_finite, assert_identical
from bagwise.testing._data import make_toy_bags
from bagwise.testing._models import bag_scores, fitted, fresh, learned, takes, with_positive


def _containers(bags: list[Any]) -> dict[str, Any]:
    return {"Bags": Bags.from_list(bags), "a list": bags}


def check_cross_validation(estimator: Any) -> None:
    """`cross_val_score` and `cross_val_predict` take `Bags` and lists, and give the same."""
    bags, y = make_toy_bags(24)
    scores = {}
    for kind, X in _containers(bags).items():
        scores[kind] = cross_val_score(fresh(estimator), X, y, cv=3, error_score="raise")
        assert_finite(scores[kind], f"cross_val_score of {kind}")
        predicted = cross_val_predict(fresh(estimator), X, y, cv=3)
        if predicted.shape != y.shape:
            msg = f"cross_val_predict of {kind} must return one label a bag."
            raise AssertionError(msg)
    assert_identical(scores["Bags"], scores["a list"], "cross_val_score")


def check_train_test_split(estimator: Any) -> None:
    """A split of `Bags` is `Bags`, and the estimator takes it as it takes the bags themselves."""
    listed, y = make_toy_bags(24)
    index = np.arange(24)
    train, test, y_train, _, chosen, held = train_test_split(
        Bags.from_list(listed), y, index, random_state=0
    )
    scores = bag_scores(fitted(estimator, train, y_train), test)
    expected = bag_scores(
        fitted(estimator, [listed[i] for i in chosen], y[chosen]), [listed[i] for i in held]
    )
    assert_close(scores, expected, "a split of Bags", tolerance=ROUNDING)


def check_grid_search(estimator: Any) -> None:
    """`GridSearchCV` takes bags, and refits the best candidate."""
    bags, y = make_toy_bags(24)
    grid = {"C": [0.1, 1.0]} if takes(estimator, "C") else {}
    for X in _containers(bags).values():
        search = GridSearchCV(fresh(estimator), grid, cv=2, error_score="raise").fit(X, y)
        assert_finite(search.cv_results_["mean_test_score"], "scores of GridSearchCV")
        best = fitted(estimator, X, y, **search.best_params_)
        assert_identical(bag_scores(search, X), bag_scores(best, X), "the best candidate")


def check_pipeline(estimator: Any) -> None:
    """In a `Pipeline` behind an `InstanceTransformer` it sees the transformed instances."""
    bags, y = make_toy_bags(24)
    bags = [bag * [1.0, 100.0, 0.01] + 5.0 for bag in bags]
    scaler = StandardScaler().fit(np.concatenate(bags))
    by_hand = [scaler.transform(bag) for bag in bags]
    expected = bag_scores(fitted(estimator, by_hand, y), by_hand)
    pipeline = make_pipeline(InstanceTransformer(StandardScaler()), fresh(estimator))
    for kind, X in _containers(bags).items():
        scores = bag_scores(clone(pipeline).fit(X, y), X)
        assert_close(scores, expected, f"a Pipeline on {kind}", tolerance=ROUNDING)


def check_calibration(estimator: Any) -> None:
    """`CalibratedClassifierCV` takes bags, and its probabilities sum to one."""
    bags, y = make_toy_bags(24)
    calibrated = CalibratedClassifierCV(fresh(estimator), cv=2)
    for kind, X in _containers(bags).items():
        probability = clone(calibrated).fit(X, y).predict_proba(X)
        assert_close(
            probability.sum(axis=1), np.ones(len(y)), f"probabilities of {kind}", tolerance=ROUNDING
        )
        if ((probability[:, 1] > 0.5) == y).mean() < 0.9:
            msg = f"Calibrated probabilities on {kind} must tell classes far apart from each other."
            raise AssertionError(msg)


def check_output_setting(estimator: Any) -> None:
    """Bags come back as bags, also where scikit-learn is told to return data frames."""
    listed, y = make_toy_bags()
    expected = learned(estimator, listed, y).transform(listed)
    if not isinstance(expected, Bags):
        return
    with config_context(transform_output="pandas"):
        output = fitted(estimator, listed, y).transform(listed)
        at_once = fresh(estimator).fit_transform(listed, y)
    for got in (output, at_once):
        assert_identical(got, expected, "transform with transform_output='pandas'")


# ------------------------------------------------------------------ of this library's own


def check_save_and_load(estimator: Any) -> None:
    """`bagwise.save` and `bagwise.load` give back an estimator with the same scores, to the bit."""
    import bagwise

    for n_classes, labels in ((2, np.array(["a", "b"])), (3, np.array([-1, 0, 1]))):
        bags, y = make_toy_bags(21, n_classes=n_classes)
        X = Bags.from_list(bags, feature_names=list("uvw"))
        positive = with_positive(estimator, labels[0]) if n_classes == 2 else {}
        model = fitted(estimator, X, labels[y], **positive)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.safetensors"
            bagwise.save(model, path)
            twin = bagwise.load(path)
        if type(twin) is not type(model):
            msg = f"load must return a {type(model).__name__}. Got {type(twin).__name__}."
            raise AssertionError(msg)
        assert_identical(bag_scores(twin, bags), bag_scores(model, bags), "scores after load")
        if hasattr(model, "predict"):
            assert_identical(twin.predict(bags), model.predict(bags), "labels after load")


def check_docstring(estimator: Any) -> None:
    """The docstring has its sections, explains every parameter, and prints the objective."""
    document = inspect.cleandoc(type(estimator).__doc__ or "")
    problems = [
        f"the section {section!r}"
        for section in ("Parameters", "Attributes", "Examples")
        if f"{section}\n{'-' * len(section)}\n" not in document
    ]
    parameters, _, attributes = document.partition("\nAttributes\n")
    explained = _names_explained(parameters)
    problems += [
        f"the parameter {name!r}"
        for name in estimator.get_params(deep=False)
        if name not in explained
    ]
    bags, y = make_toy_bags()
    explained = _names_explained(attributes)
    problems += [
        f"the attribute {name!r}"
        for name in vars(learned(estimator, bags, y))
        if name.endswith("_") and name not in explained
    ]
    if hasattr(estimator, "predict") and ".. math::" not in document:
        problems.append("the objective (.. math::)")
    if problems:
        msg = f"The docstring of {type(estimator).__name__} lacks {', '.join(problems)}."
        raise AssertionError(msg)


def _names_explained(section: str) -> set[str]:
    """Return the names before a colon in lines such as ``C : float`` and ``low, high : float``."""
    heads = (line.partition(" : ")[0] for line in section.splitlines() if " : " in line)
    return {name for head in heads for name in head.replace(",", " ").split()}
