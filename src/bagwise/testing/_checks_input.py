"""Checks of what goes in: every shape of bags means the same, and what is no bags is refused."""

# ruff: noqa: D401 (the docstring of a check says what holds)

import copy
import tempfile
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
from sklearn.utils import get_tags

from bagwise.bags import Bags
from bagwise.testing._compare import ROUNDING, assert_close, assert_finite, assert_identical
from bagwise.testing._data import (
    as_object_array,
    as_one_instance_bags,
    as_selection,
    as_sparse,
    make_toy_bags,
)
from bagwise.testing._expect import raises
from bagwise.testing._models import bag_scores, bag_tags, fitted, learned, questions

#: Parameters that say how to compute and not what; an analogue keeps its own.
_HOW = frozenset({"tol", "max_iter", "n_jobs", "random_state", "verbose"})


def check_sequences_agree(estimator: Any) -> None:
    """A list, a tuple and an array of matrices give the bits that `Bags` gives."""
    bags, y = make_toy_bags()
    expected = bag_scores(learned(estimator, Bags.from_list(bags), y), Bags.from_list(bags))
    for kind, X in {
        "a list": bags,
        "a tuple": tuple(bags),
        "an object array": as_object_array(bags),
        "a list of lists": [bag.tolist() for bag in bags],
    }.items():
        scores = bag_scores(fitted(estimator, X, y), X)
        assert_identical(scores, expected, f"{kind} of matrices against Bags")


def check_cube_agrees(estimator: Any) -> None:
    """A 3-D array gives the bits that a list of its slices gives."""
    _, y = make_toy_bags()
    cube = np.random.default_rng(0).normal(size=(len(y), 4, 3)) + 3.0 * y[:, None, None]
    expected = bag_scores(fitted(estimator, list(cube), y), list(cube))
    assert_identical(bag_scores(fitted(estimator, cube, y), cube), expected, "a 3-D array")


def check_integers_agree(estimator: Any) -> None:
    """Whole numbers mean the same as integers and as floats."""
    bags, y = make_toy_bags()
    whole = [np.rint(4 * bag).astype(np.int32) for bag in bags]
    floats = [bag.astype(np.float64) for bag in whole]
    expected = bag_scores(fitted(estimator, floats, y), floats)
    assert_identical(bag_scores(fitted(estimator, whole, y), whole), expected, "integer features")


def check_sparse_agrees(estimator: Any) -> None:
    """A CSR instance matrix gives the scores that the dense one gives, in fit and afterwards."""
    bags, y = make_toy_bags()
    for bag in bags:
        bag[np.abs(bag) < 0.7] = 0.0
    dense, csr = Bags.from_list(bags), as_sparse(bags)
    model, sparse_model = fitted(estimator, dense, y), fitted(estimator, csr, y)
    expected = bag_scores(model, dense)
    assert_close(bag_scores(model, csr), expected, "CSR bags scored", tolerance=ROUNDING)
    assert_close(bag_scores(sparse_model, csr), expected, "CSR bags in fit")
    assert_close(bag_scores(sparse_model, dense), expected, "dense bags after CSR in fit")
    matrices = list(csr)
    listed = bag_scores(fitted(estimator, matrices, y), matrices)
    assert_identical(listed, bag_scores(sparse_model, csr), "a list of CSR matrices")


def check_memory_map_agrees(estimator: Any) -> None:
    """Bags in a file give the bits that bags in memory give."""
    bags, y = make_toy_bags()
    in_memory = Bags.from_list(bags)
    expected = bag_scores(learned(estimator, in_memory, y), in_memory)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        in_memory.write(Path(folder) / "toy.bags")
        on_disk = Bags.open(Path(folder) / "toy.bags")
        scores = bag_scores(fitted(estimator, on_disk, y), on_disk)
        assert_identical(scores, expected, "memory-mapped bags")
        del on_disk


def check_lazy_agrees(estimator: Any) -> None:
    """Bags that are transformed when they are read give the bits that they give in memory."""
    bags, y = make_toy_bags()
    in_memory = Bags.from_list(bags)
    lazy = Bags.from_list([bag / 2 for bag in bags]).map_instances(_twice, lazy=True)
    expected = bag_scores(learned(estimator, in_memory, y), in_memory)
    assert_identical(bag_scores(fitted(estimator, lazy, y), lazy[:]), expected, "lazy bags")


def _twice(instances: Any) -> Any:
    return 2 * instances


def check_selection_agrees(estimator: Any) -> None:
    """A view that picks bags from a larger container means these bags and no others."""
    bags, y = make_toy_bags()
    view = as_selection(bags)
    expected = bag_scores(learned(estimator, bags, y), bags)
    scores = bag_scores(fitted(estimator, view, y), view)
    assert_close(scores, expected, "a shuffled selection of bags", tolerance=ROUNDING)


def check_rows_are_bags_of_one(estimator: Any) -> None:
    """The rows of a matrix are bags of one instance."""
    X, y = _one_instance_data()
    expected = bag_scores(fitted(estimator, X, y), X)
    for kind, same in {
        "a list of one-row matrices": as_one_instance_bags(X),
        "Bags of one instance": Bags(X, np.arange(len(X) + 1)),
        "a list of rows": [list(row) for row in X],
    }.items():
        scores = bag_scores(fitted(estimator, same, y), same)
        assert_identical(scores, expected, f"{kind} against a matrix")


def check_supervised_analogue(estimator: Any) -> None:
    """On bags of one instance the method is the ordinary one that its tags name.

    Parameters of the same name are given to the ordinary one, save those about how to compute.
    """
    X, y = _one_instance_data()
    X_new, _ = _one_instance_data(random_state=1)
    params = estimator.get_params(deep=False)
    analogue = bag_tags(estimator).supervised_analogue
    shared = analogue.get_params(deep=False).keys() & params.keys() - _HOW
    model = fitted(estimator, as_one_instance_bags(X), y)
    if params.get("gamma") == "median":  # a rule of ours
        params["gamma"] = model.gamma_
    ordinary = fitted(analogue, X, y, **{name: params[name] for name in shared})
    name = type(analogue).__name__
    for rows in (X, X_new):
        assert_close(
            bag_scores(model, as_one_instance_bags(rows)),
            bag_scores(ordinary, rows),
            f"bags of one instance against {name}",
        )


def _one_instance_data(random_state: int = 0) -> tuple[Any, Any]:
    bags, y = make_toy_bags(30, kind="close", max_size=1, random_state=random_state)
    return np.concatenate(bags), y


def check_input_unchanged(estimator: Any) -> None:
    """Neither the fit nor anything afterwards writes into bags, labels or weights."""
    bags, y = make_toy_bags()
    before = copy.deepcopy((bags, y))
    model = fitted(estimator, bags, y)
    assert_identical((bags, y), before, "bags and labels after fit")
    for question in questions(model):
        getattr(model, question)(bags)
        assert_identical((bags, y), before, f"bags and labels after {question}")


def check_float32(estimator: Any) -> None:
    """Features in single precision work, and give about the scores of double precision."""
    bags, y = make_toy_bags()
    single = [bag.astype(np.float32) for bag in bags]
    expected = bag_scores(learned(estimator, bags, y), bags)
    model = fitted(estimator, single, y)
    assert_close(bag_scores(model, single), expected, "float32 in fit", tolerance=1e-3)
    assert_close(bag_scores(model, bags), expected, "float32 in fit only", tolerance=1e-3)
    for question in questions(model):
        if question != "transform":
            assert_finite(getattr(model, question)(single), f"{question} of float32 bags")


def check_feature_names(estimator: Any) -> None:
    """Names of features are kept, and bags with other names are refused afterwards."""
    bags, y = make_toy_bags(n_features=3)
    named = Bags.from_list(bags, feature_names=["width", "height", "mass"])
    swapped = Bags.from_list(bags, feature_names=["height", "width", "mass"])
    model = fitted(estimator, named, y)
    got = getattr(model, "feature_names_in_", None)
    if got is None or list(got) != ["width", "height", "mass"]:
        msg = f"feature_names_in_ must hold the names of the bags' features. Got {got!r}."
        raise AssertionError(msg)
    with raises(ValueError, "width", "height", what="Scoring bags with other feature names"):
        bag_scores(model, swapped)
    assert_identical(bag_scores(model, bags), bag_scores(model, named), "bags without names")
    if hasattr(fitted(estimator, bags, y), "feature_names_in_"):
        msg = "feature_names_in_ must not be there if the bags' features have no names."
        raise AssertionError(msg)


def check_frame_names(estimator: Any) -> None:
    """The columns of a data frame name the features, as bags by a column and as rows."""
    pandas = _pandas()
    bags, y = make_toy_bags(n_features=2)
    long = Bags.from_list(bags, feature_names=["width", "mass"]).to_frame()
    rows = pandas.DataFrame([bag[0] for bag in bags], columns=["width", "mass"])
    for kind, X in {"Bags.from_frame": Bags.from_frame(long), "a frame of rows": rows}.items():
        model = fitted(estimator, X, y)
        if list(getattr(model, "feature_names_in_", ())) != ["width", "mass"]:
            msg = f"{kind}: feature_names_in_ must hold the names of the columns."
            raise AssertionError(msg)
    assert_identical(
        bag_scores(fitted(estimator, rows, y), rows),
        bag_scores(fitted(estimator, rows.to_numpy(), y), rows.to_numpy()),
        "a frame of rows against a matrix",
    )


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        msg = "pandas is not installed"
        raise SkipTest(msg) from error
    return pandas


# ------------------------------------------------------------------------------- bad input


def check_wrong_width_refused(estimator: Any) -> None:
    """Bags of another width than in fit are refused, and the message says both widths."""
    bags, y = make_toy_bags(n_features=3)
    model = learned(estimator, bags, y)
    wide = [np.hstack([bag, bag[:, :2]]) for bag in bags]
    for kind, X in {
        "a list": wide,
        "Bags": Bags.from_list(wide),
        "a matrix": np.concatenate(wide),
        "a 3-D array": np.zeros((2, 4, 5)),
    }.items():
        for question in questions(model):
            what = f"{question} of {kind} with 5 features, after fit with 3,"
            with raises(ValueError, r"\b3\b", r"\b5\b", what=what):
                getattr(model, question)(X)


def check_nonfinite_refused(estimator: Any) -> None:
    """NaN and infinity are refused in fit and afterwards, and the message names the bag.

    NaN is taken where scikit-learn's tag says so, as by transformers that fill it.
    """
    bags, y = make_toy_bags()
    model = learned(estimator, bags, y)
    takes_nan = get_tags(estimator).input_tags.allow_nan
    for value in (np.inf, -np.inf) if takes_nan else (np.nan, np.inf, -np.inf):
        bad = copy.deepcopy(bags)
        bad[11][-1, 2] = value
        with raises(ValueError, r"\bbag 11\b", what=f"fit of a bag that holds {value}"):
            fitted(estimator, bad, y)
        with raises(ValueError, r"\bbag 11\b", what=f"Scoring a bag that holds {value}"):
            bag_scores(model, bad)
    if takes_nan:
        return
    bags[11][-1, 2] = np.nan
    marked = Bags.from_list(bags, allow_nan=True)
    with raises(ValueError, r"\bbag 11\b", what="fit of Bags that hold NaN and may"):
        fitted(estimator, marked, y)
    with raises(ValueError, r"\bbag 11\b", what="Scoring Bags that hold NaN and may"):
        bag_scores(model, marked)


def check_empty_bag_refused(estimator: Any) -> None:
    """A bag without instances is refused, and the message names it; so is having no bags."""
    bags, y = make_toy_bags()
    model = learned(estimator, bags, y)
    bad = [*bags[:11], np.empty((0, 3)), *bags[12:]]
    with raises(ValueError, r"\bbag\(?s?\)? \[?11\b", what="fit of an empty bag"):
        fitted(estimator, bad, y)
    with raises(ValueError, r"\bbag\(?s?\)? \[?11\b", what="Scoring an empty bag"):
        bag_scores(model, bad)
    with raises(ValueError, what="fit of an empty list"):
        fitted(estimator, [], [])
    with raises(ValueError, "0 sample", what="Scoring no bags"):
        bag_scores(model, Bags.from_list(bags)[:0])


def check_ragged_bags_refused(estimator: Any) -> None:
    """Bags of different widths are refused, and the message names the odd one."""
    bags, y = make_toy_bags()
    bad = [*bags[:11], bags[11][:, :2], *bags[12:]]
    with raises(ValueError, r"\bbag\(?s?\)? \[?11\b", what="fit of a bag of another width"):
        fitted(estimator, bad, y)


def check_text_refused(estimator: Any) -> None:
    """Features that are no numbers are refused, and the message names the bag."""
    bags, y = make_toy_bags()
    bad: list[Any] = [bag.tolist() for bag in bags]
    bad[11][0][1] = "heavy"
    with raises(ValueError, r"\bbag 11\b", what="fit of a bag with text in it"):
        fitted(estimator, bad, y)


def check_label_count_refused(estimator: Any) -> None:
    """One label too few or too many is refused, and the message says both numbers."""
    bags, y = make_toy_bags(16)
    for labels, number in ((y[:-1], 15), (np.append(y, 0), 17)):
        what = f"fit of 16 bags with {number} labels"
        with raises(ValueError, r"\b16\b", rf"\b{number}\b", what=what):
            fitted(estimator, bags, labels)
