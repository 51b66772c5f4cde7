"""Checks of what a fit leaves behind: all of it, nothing else, and the same each time."""

# ruff: noqa: D401 (the docstring of a check says what holds)

import copy
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from bagwise._compat import InvalidParameterError
from bagwise.bags import Bags
from bagwise.testing._compare import assert_identical, assert_same_state, difference, snapshot
from bagwise.testing._data import as_sparse, make_toy_bags
from bagwise.testing._expect import raises
from bagwise.testing._interrupts import CUTS, Trip, cut_places
from bagwise.testing._models import bag_scores, fitted, fresh, is_bag_classifier, learned, questions


def check_default_constructible(estimator: Any) -> None:
    """The class can be used without arguments."""
    cls = type(estimator)
    try:
        default = cls()
    except TypeError as error:
        msg = f"{cls.__name__}() must work without arguments: {error}"
        raise AssertionError(msg) from error
    bags, y = make_toy_bags()
    bag_scores(fitted(default, bags, y), bags)


def check_bad_parameter_refused(estimator: Any) -> None:
    """A parameter that makes no sense is refused in fit; the message names class and parameter."""
    bags, y = make_toy_bags()
    name = type(estimator).__name__
    for parameter in fresh(estimator).get_params(deep=False):
        model = fresh(estimator).set_params(**{parameter: _Nonsense()})
        with raises(
            InvalidParameterError,
            rf"\b{parameter}\b",
            rf"\b{name}\b",
            what=f"fit of {name} with {parameter}=<a plain object>",
        ):
            model.fit(bags, y)
        if set(vars(model)) != set(vars(fresh(estimator))):
            msg = f"fit refused {parameter} but left attributes: {sorted(vars(model))}."
            raise AssertionError(msg)


class _Nonsense:
    """A value that no parameter can have."""


def check_scoring_changes_no_state(estimator: Any) -> None:
    """Asking a fitted estimator for anything leaves it exactly as it was, at any depth."""
    bags, y = make_toy_bags()
    model = learned(estimator, bags, y)
    before = snapshot(model)
    for question in questions(model):
        first = getattr(model, question)(bags)
        assert_same_state(model, before, question)
        assert_identical(getattr(model, question)(bags), first, f"{question} asked again")


def check_pickle(estimator: Any) -> None:
    """A fitted estimator comes back from a pickle with the same state and the same scores."""
    _check_copy(estimator, lambda model: pickle.loads(pickle.dumps(model)), "a pickle")


def check_deepcopy(estimator: Any) -> None:
    """A deep copy of a fitted estimator has the same state and the same scores."""
    _check_copy(estimator, copy.deepcopy, "a deep copy")


def _check_copy(estimator: Any, duplicate: Any, what: str) -> None:
    bags, y = make_toy_bags()
    model = fitted(estimator, bags, y)
    twin = duplicate(model)
    assert_same_state(twin, snapshot(model), what)
    assert_identical(bag_scores(twin, bags), bag_scores(model, bags), f"scores of {what}")


def check_clone(estimator: Any) -> None:
    """A clone of a fitted estimator has its parameters, is not fitted, and learns the same."""
    bags, y = make_toy_bags()
    model = learned(estimator, bags, y)
    twin = clone(model)
    _assert_not_fitted(twin, "a clone")
    place = difference(twin.get_params(deep=False), fresh(estimator).get_params(deep=False))
    if place is not None:
        msg = f"A clone must have the same parameters ({place})."
        raise AssertionError(msg)
    assert_identical(bag_scores(twin.fit(bags, y), bags), bag_scores(model, bags), "a clone")


def _assert_not_fitted(model: Any, what: str) -> None:
    left = sorted(name for name in vars(model) if name.endswith("_") and name[:1] != "_")
    if left:
        msg = f"{what}: the estimator must not be fitted, but has {left}."
        raise AssertionError(msg)
    try:
        check_is_fitted(model)
    except NotFittedError:
        return
    except TypeError as error:  # no fit method, or a class in place of an estimator
        raise AssertionError(str(error)) from error
    msg = f"{what}: the estimator must not be fitted, but says that it is."
    raise AssertionError(msg)


def check_fit_is_repeatable(estimator: Any) -> None:
    """The same data, parameters and seed give the same state, to the last bit."""
    bags, y = make_toy_bags(kind="close")
    expected = snapshot(fitted(estimator, bags, y))
    assert_same_state(fitted(estimator, bags, y), expected, "a second fit of the same data")


def check_refit_equals_fresh_fit(estimator: Any) -> None:
    """A second fit forgets the first: its width, names, classes and kind of matrix."""
    bags, y = make_toy_bags(n_features=2, kind="close", random_state=1)
    expected = snapshot(fitted(estimator, bags, y))
    first, first_y = make_toy_bags(21, n_features=5, n_classes=3)
    for kind, X in {
        "bags with feature names": Bags.from_list(first, feature_names=list("abcde")),
        "other bags": first,
    }.items():
        model = fitted(estimator, X, first_y).fit(bags, y)
        assert_same_state(model, expected, f"a second fit after one of {kind}")


def check_refit_after_sparse(estimator: Any) -> None:
    """A second fit forgets that the first had a CSR matrix."""
    bags, y = make_toy_bags(kind="close", random_state=1)
    expected = snapshot(fitted(estimator, bags, y))
    first, first_y = make_toy_bags()
    model = fitted(estimator, as_sparse(first), first_y).fit(bags, y)
    assert_same_state(model, expected, "a second fit after one of CSR bags")


def check_n_jobs(estimator: Any) -> None:
    """The number of jobs does not change a bit of the result."""
    bags, y = make_toy_bags(21, n_classes=3, kind="close")
    expected = bag_scores(fitted(estimator, bags, y, n_jobs=1), bags)
    for n_jobs in (None, 3):
        scores = bag_scores(fitted(estimator, bags, y, n_jobs=n_jobs), bags)
        assert_identical(scores, expected, f"n_jobs={n_jobs} against n_jobs=1")


def check_thread_count(estimator: Any) -> None:
    """The number of threads does not change a bit of the result."""
    bags, y = make_toy_bags(120, kind="close", max_size=8)
    with _threads(1):
        expected = bag_scores(fitted(estimator, bags, y), bags)
    with _threads(3):
        scores = bag_scores(fitted(estimator, bags, y), bags)
    assert_identical(scores, expected, "three threads against one")


@contextmanager
def _threads(number: int) -> Iterator[None]:
    with patch.dict(os.environ, {"BAGWISE_NUM_THREADS": str(number)}):
        yield


# ------------------------------------------------------------------------ fits that are cut


def check_interrupted_first_fit(estimator: Any) -> None:
    """Ctrl-C in a first fit leaves an estimator that is not fitted, wherever it comes."""
    _check_cut_fit(estimator, KeyboardInterrupt, before_first=True)


def check_interrupted_refit(estimator: Any) -> None:
    """Ctrl-C in a second fit leaves the first one whole, wherever it comes."""
    _check_cut_fit(estimator, KeyboardInterrupt, before_first=False)


def check_failing_first_fit(estimator: Any) -> None:
    """An error in a first fit leaves an estimator that is not fitted, wherever it comes."""
    _check_cut_fit(estimator, MemoryError, before_first=True)


def check_failing_refit(estimator: Any) -> None:
    """An error in a second fit leaves the first one whole, wherever it comes."""
    _check_cut_fit(estimator, MemoryError, before_first=False)


def check_refused_refit(estimator: Any) -> None:
    """Data that are refused in a second fit leave the first one whole."""
    bags, y = make_toy_bags()
    model = learned(estimator, bags, y)
    before = snapshot(model)
    wide = [bag[:, [0, 1, 2, 0]] for bag in bags]
    if is_bag_classifier(model):
        with raises(ValueError, what="fit of bags of one class"):
            model.fit(wide, [1] * len(y))
        assert_same_state(model, before, "a second fit that was refused")
    wide[3] = np.full_like(wide[3], np.inf)
    with raises(ValueError, what="fit of a bag that holds infinity"):
        model.fit(wide, y)
    assert_same_state(model, before, "a second fit that was refused")


def _check_cut_fit(estimator: Any, error: type[BaseException], *, before_first: bool) -> None:
    first, first_y = make_toy_bags()
    # Errors come to a fit of one machine, Ctrl-C to one of several.
    n_classes = 3 if error is KeyboardInterrupt else 2
    listed, y = make_toy_bags(15, n_features=2, n_classes=n_classes, random_state=1)
    bags = Bags.from_list(listed, feature_names=["u", "v"])
    # One model for all cuts: each has to leave it as it was.
    model = fresh(estimator) if before_first else learned(estimator, first, first_y)
    before = snapshot(model)
    scores = None if before_first else bag_scores(model, first)
    for where, fit in CUTS.items():
        counter = Trip()
        fit(fresh(estimator), bags, y, counter)
        for place in cut_places(counter.count):
            what = f"fit cut by {error.__name__} at {where} ({place} of {counter.count})"
            try:
                fit(model, bags, y, Trip(place, error))
            except error:
                pass
            else:
                msg = f"{what}: the exception did not come through."
                raise AssertionError(msg)
            if before_first:
                _assert_not_fitted(model, what)
            assert_same_state(model, before, what)
            if scores is not None:
                assert_identical(bag_scores(model, first), scores, f"scores of {what}")
