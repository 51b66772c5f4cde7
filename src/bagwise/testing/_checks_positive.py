"""Checks of which class is positive, and of models that know one class only."""

# ruff: noqa: D401 (the docstring of a check says what holds)

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from bagwise.exceptions import ConstantModelWarning, PositiveClassWarning
from bagwise.testing._compare import assert_close, assert_identical, assert_scores_differ
from bagwise.testing._data import make_toy_bags
from bagwise.testing._expect import raises, warns
from bagwise.testing._models import bag_scores, bag_tags, fitted, fresh, questions, takes

#: Names of a negative and a positive class, of which the positive one sorts first.
_NAMES = (np.array(["normal", "cancer"]), np.array([2, 1]), np.array([True, False]))


def check_asymmetry(estimator: Any) -> None:
    """Scores are negated if all labels are swapped, unless the tag ``asymmetric`` says otherwise.

    It has to be true where it does, and there has to be a parameter ``pos_label`` then.
    """
    data = [make_toy_bags(24, kind=kind) for kind in ("witness", "apart")]
    scores, swapped = (
        np.concatenate([bag_scores(fitted(estimator, bags, target(y)), bags) for bags, y in data])
        for target in (lambda y: y, lambda y: 1 - y)
    )
    swapped = -swapped
    if not bag_tags(estimator).asymmetric:
        assert_close(swapped, scores, "labels swapped, of a method that is not asymmetric")
        return
    assert_scores_differ(swapped, scores, "labels swapped, of a method that is asymmetric")
    if not takes(estimator, "pos_label"):
        msg = "A method that is asymmetric must have a parameter pos_label."
        raise AssertionError(msg)


def check_positive_class(estimator: Any) -> None:
    """Whatever the classes are called, the model is that of 0 and 1 if ``pos_label`` is given.

    Scores are the same to the last bit, or negated if the positive class is the first of
    ``classes_``; predictions are the new names and key instances the old places.
    """
    bags, y = make_toy_bags(24, kind="witness")
    new, _ = make_toy_bags(24, kind="witness", random_state=1)
    plain = fitted(estimator, bags, y)
    for names in (*_NAMES, np.array(["absent", "present"])):
        side = 1.0 if names[1] > names[0] else -1.0
        model = clone(fresh(estimator, pos_label=names[1])).fit(bags, names[y])
        what = f"classes called {names.tolist()}"
        if model.classes_.tolist() != sorted(names.tolist()) or model.pos_label_ != names[1]:
            msg = f"{what}: classes_ must be sorted, and pos_label_ the positive one."
            raise AssertionError(msg)
        scores = bag_scores(plain, new)
        assert_identical(side * bag_scores(model, new) + 0.0, scores + 0.0, f"scores, {what}")
        sure = scores != 0  # a score of 0 means the first class, whichever it is
        expected = names[plain.predict(new)]
        assert_identical(model.predict(new)[sure], expected[sure], f"predictions, {what}")
        if "key_instances" in questions(model):
            assert_identical(model.key_instances(new), plain.key_instances(new), f"keys, {what}")
            inside = side * model.instance_decision_function(new) + 0.0
            expected = plain.instance_decision_function(new) + 0.0
            assert_identical(inside, expected, f"instance scores, {what}")


def check_pos_label_refused(estimator: Any) -> None:
    """A positive class that is none of two classes is refused, and the classes are shown."""
    bags, y = make_toy_bags(n_classes=2)
    with raises(ValueError, "pos_label", "cancer", "normal", what="a pos_label that is no class"):
        fitted(estimator, bags, _NAMES[0][y], pos_label="toxic")
    bags, y = make_toy_bags(n_classes=3)
    with raises(ValueError, "pos_label", "two classes", what="a pos_label with three classes"):
        fitted(estimator, bags, y, pos_label=1)


def check_guessed_class_warns(estimator: Any) -> None:
    """A positive class that was not said is told, unless the labels speak for themselves."""
    bags, y = make_toy_bags()
    for names in (np.array(["cancer", "normal"]), np.array([1, 2])):
        guess = str(names[1])
        with warns(PositiveClassWarning, guess, "pos_label", what=f"fit of classes {names}"):
            fitted(estimator, bags, names[y])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PositiveClassWarning)
        for names in (np.array([0, 1]), np.array([-1, 1]), np.array([False, True])):
            fitted(estimator, bags, names[y])
        fitted(estimator, *make_toy_bags(n_classes=3))


def check_constant_model_warns(estimator: Any) -> None:
    """A model that predicts the same for all bags of the fit says so; another one does not."""
    bags, y = make_toy_bags()
    name = type(estimator).__name__
    same = [np.repeat([[1.0, -2.0, 0.5]], 3, axis=0) for _ in bags]
    with warns(ConstantModelWarning, rf"\b{name}\b", what="fit of bags that are all the same"):
        fresh(estimator).fit(same, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConstantModelWarning)
        model = fresh(estimator).fit(bags, y)
    if len(np.unique(model.predict(bags))) < 2:
        msg = "A model is constant on classes far apart, and does not say so."
        raise AssertionError(msg)
