"""Checks of classes and label lists."""

# ruff: noqa: D401 (the docstring of a check says what holds)

from typing import Any

import numpy as np

from bagwise.testing._compare import assert_close, assert_finite, assert_identical
from bagwise.testing._data import make_toy_bags
from bagwise.testing._expect import raises
from bagwise.testing._models import bag_scores, bag_tags, fitted, learned, with_positive

#: A negative and a positive label of every kind, in sorted order.
_LABEL_PAIRS = {
    "integers": np.array([3, 7]),
    "negative integers": np.array([-9, -2]),
    "signs": np.array([-1, 1]),
    "booleans": np.array([False, True]),
    "floats": np.array([-1.0, 2.0]),
    "strings": np.array(["inert", "musk"]),
    "objects": np.array(["inert", "musk"], dtype=object),
}


def check_learns(estimator: Any) -> None:
    """Classes that lie far apart are told apart, also in bags that were not seen."""
    for n_classes in (2, 3):
        bags, y = make_toy_bags(40, n_classes=n_classes)
        new, new_y = make_toy_bags(40, n_classes=n_classes, random_state=1)
        model = fitted(estimator, bags, y)
        for what, score in (("seen", model.score(bags, y)), ("new", model.score(new, new_y))):
            if score < 0.9:
                msg = f"{n_classes} classes far apart: the accuracy on {what} bags is {score:.2f}."
                raise AssertionError(msg)


def check_label_types(estimator: Any) -> None:
    """Labels may be of any type: the scores are those of 0 and 1, the predictions are labels."""
    bags, y = make_toy_bags()
    coded = learned(estimator, bags, y)
    expected = bag_scores(coded, bags)
    codes = np.searchsorted(coded.classes_, coded.predict(bags))
    for kind, labels in _LABEL_PAIRS.items():
        for target in (labels[y], labels[y].tolist()):
            model = fitted(estimator, bags, target, **with_positive(estimator, labels[1]))
            assert_identical(bag_scores(model, bags), expected, f"scores with {kind} as labels")
            _assert_equal(model.classes_, labels, f"classes_ with {kind} as labels")
            _assert_equal(model.predict(bags), labels[codes], f"predictions with {kind} as labels")
        if model.predict(bags).dtype != model.classes_.dtype:
            msg = f"Predictions must have the dtype of classes_, {model.classes_.dtype}."
            raise AssertionError(msg)


def check_scores_follow_classes(estimator: Any) -> None:
    """Positive scores mean the second of ``classes_``, or the largest column its class."""
    bags, y = make_toy_bags(24, kind="close")
    names = np.array(["b", "a"])  # sorted, these are the other way round
    model = fitted(estimator, bags, names[y], **with_positive(estimator, "b"))
    scores = bag_scores(model, bags)
    _assert_equal(model.classes_, ["a", "b"], "classes_ must be sorted")
    _assert_equal(
        model.predict(bags), model.classes_[(scores > 0).astype(int)], "predict by the sign"
    )
    codes = fitted(estimator, bags, np.where(names[y] == "b", 1, 0))
    assert_identical(bag_scores(codes, bags), scores, "scores by name and by place of the class")
    bags, y = make_toy_bags(24, n_classes=3, kind="close")
    model = fitted(estimator, bags, np.array(["c", "a", "b"])[y])
    scores = bag_scores(model, bags)
    if scores.shape != (24, 3):
        msg = f"Scores of three classes must have shape (24, 3). Got {scores.shape}."
        raise AssertionError(msg)
    _assert_equal(model.predict(bags), model.classes_[scores.argmax(axis=1)], "predict by column")


def check_many_classes(estimator: Any) -> None:
    """Five classes work, the scores have a column for each, and names do not matter."""
    bags, y = make_toy_bags(40, n_features=6, n_classes=5)
    scores = bag_scores(fitted(estimator, bags, y), bags)
    renamed = np.array(list("edcba"))[y]  # sorted, the columns come backwards
    other = bag_scores(fitted(estimator, bags, renamed), bags)
    assert_close(other[:, ::-1], scores, "five classes, renamed")


def check_label_lists(estimator: Any) -> None:
    """With an indicator matrix, each column of scores ranks bags that have the label first."""
    bags, y = make_toy_bags(40, n_features=4, n_classes=4)
    lists = [y == 0, y != 1, (y == 2) | (y == 3)]
    if bag_tags(estimator).exclusive_labels:
        lists = [y == 0, y == 1, y >= 2]
    indicator = np.column_stack(lists).astype(int)
    model = fitted(estimator, bags, indicator)
    scores = bag_scores(model, bags)
    assert_finite(scores, "scores of label lists")
    if scores.shape != indicator.shape:
        msg = f"Scores of three labels must have shape {indicator.shape}. Got {scores.shape}."
        raise AssertionError(msg)
    predicted = model.predict(bags)
    if predicted.shape != indicator.shape or not np.isin(predicted, (0, 1)).all():
        msg = f"Predictions of label lists must be 0 or 1 in the shape {indicator.shape}."
        raise AssertionError(msg)
    for column, has_label in enumerate(indicator.T.astype(bool)):
        with_label, without = scores[has_label, column], scores[~has_label, column]
        ranked = (with_label[:, None] > without).mean()
        if ranked < 0.9:
            msg = f"Label {column}: only {ranked:.0%} of the pairs are ranked right."
            raise AssertionError(msg)


def check_constant_label(estimator: Any) -> None:
    """A label that every bag has, or none, is predicted for every bag, or none."""
    bags, y = make_toy_bags()
    indicator = np.column_stack([np.ones_like(y), y, np.zeros_like(y)])
    model = fitted(estimator, bags, indicator)
    assert_finite(bag_scores(model, bags), "scores with a constant label")
    predicted = model.predict(bags)
    _assert_equal(predicted[:, 0], np.ones(len(y)), "a label that every bag has")
    _assert_equal(predicted[:, 2], np.zeros(len(y)), "a label that no bag has")


def check_unseen_label_in_score(estimator: Any) -> None:
    """Bags of a class that was not seen in fit count as wrong in ``score`` and break nothing."""
    bags, y = make_toy_bags(20)
    for names, unseen in ((np.array([0, 1]), 2), (np.array(["a", "b"]), "c")):
        model = fitted(estimator, bags, names[y], **with_positive(estimator, names[1]))
        target = model.predict(bags)
        target[:5] = unseen
        score = model.score(bags, target)
        if not np.isclose(score, 0.75):
            msg = f"5 of 20 bags of an unseen class must cost 0.25 of the accuracy. Got {score}."
            raise AssertionError(msg)


def check_one_class_refused(estimator: Any) -> None:
    """Bags of one class only, and a single bag, are refused; the message speaks of classes."""
    bags, y = make_toy_bags()
    with raises(ValueError, "class", what="fit of bags of one class"):
        fitted(estimator, bags, np.zeros_like(y))
    with raises(ValueError, "class", what="fit of a single bag"):
        fitted(estimator, bags[:1], y[:1])


def check_continuous_labels_refused(estimator: Any) -> None:
    """Numbers that are no classes are refused; so are missing labels, with class and bag."""
    bags, y = make_toy_bags()
    with raises(ValueError, "label type|continuous", what="fit of continuous labels"):
        fitted(estimator, bags, y + np.linspace(0.1, 0.2, len(y)))
    gone, words = np.arange(len(y)) == 4, np.array(["inert", "musk"])[y].astype(object)
    for what, target in (
        ("a label that is NaN", np.where(gone, np.nan, y)),
        ("words of which one is None", np.where(gone, np.array(None), words)),
        ("a list of words and NaN", np.where(gone, np.nan, words).tolist()),
    ):
        name = type(estimator).__name__
        with raises(ValueError, name, "bag 4", what=f"fit of {what}"):
            fitted(estimator, bags, target)


def check_class_with_one_bag(estimator: Any) -> None:
    """A class that only one bag has is a class like any other."""
    bags, y = make_toy_bags(15)
    for n_classes, others in ((2, np.zeros_like(y)), (3, y)):
        target = np.where(np.arange(15) == 7, n_classes - 1, others)
        model = fitted(estimator, bags, target)
        assert_finite(bag_scores(model, bags), "scores with a class of one bag")
        _assert_equal(model.classes_, np.arange(n_classes), "classes_ with a class of one bag")


def _assert_equal(actual: Any, expected: Any, what: str) -> None:
    if not np.array_equal(actual, expected):
        msg = f"{what}: got {np.asarray(actual)!r}, expected {np.asarray(expected)!r}."
        raise AssertionError(msg)
