"""What counts as bags, what as a matrix, and what is said about the rest."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from bagwise import Bags
from bagwise.base import as_bags, holds_bags, validate_bags
from bagwise.exceptions import InvalidBagsError

LISTED = [np.arange(4.0).reshape(2, 2), np.array([[4.0, 5.0]])]
CUBE = np.arange(12.0).reshape(3, 2, 2)
MATRIX = np.arange(6.0).reshape(3, 2)


class Learner(BaseEstimator):
    pass


@pytest.fixture
def learner():
    return Learner()


def object_array(items):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


@pytest.mark.parametrize(
    "X",
    [
        LISTED,
        tuple(LISTED),
        object_array(LISTED),
        [bag.tolist() for bag in LISTED],
        [sparse.csr_array(bag) for bag in LISTED],
        [sparse.coo_matrix(bag) for bag in LISTED],
        [pd.DataFrame(bag) for bag in LISTED],
        Bags(np.arange(6.0).reshape(3, 2), [0, 2, 3]),
    ],
    ids=["list", "tuple", "object array", "nested lists", "csr", "coo", "frames", "Bags"],
)
def test_bags_of_different_sizes(X, learner):
    assert holds_bags(X)
    assert as_bags(X).sizes.tolist() == [2, 1]
    bags = validate_bags(learner, X, reset=True)
    assert bags.sizes.tolist() == [2, 1]
    instances = bags.instances.toarray() if bags.is_sparse else bags.instances
    np.testing.assert_array_equal(instances, np.arange(6.0).reshape(3, 2))
    assert learner.n_features_in_ == 2


def test_bags_are_taken_as_they_are(learner):
    bags = Bags.from_list(LISTED)
    assert validate_bags(learner, bags, reset=True) is bags


def test_cube_is_bags_of_equal_size(learner):
    bags = validate_bags(learner, CUBE, reset=True)
    assert bags.sizes.tolist() == [2, 2, 2]
    np.testing.assert_array_equal(bags.instances, CUBE.reshape(-1, 2))


@pytest.mark.parametrize(
    "X",
    [
        MATRIX,
        MATRIX.tolist(),
        list(MATRIX),
        sparse.csr_array(MATRIX),
        sparse.csc_matrix(MATRIX),
        pd.DataFrame(MATRIX),
        MATRIX.astype(object),
        MATRIX.astype(int),
    ],
    ids=["array", "lists", "rows", "csr", "csc", "frame", "objects", "integers"],
)
def test_matrix_is_bags_of_one(X, learner):
    assert not holds_bags(X)
    bags = validate_bags(learner, X, reset=True)
    assert bags.sizes.tolist() == [1, 1, 1]
    instances = bags.instances.toarray() if bags.is_sparse else bags.instances
    np.testing.assert_array_equal(instances, MATRIX)
    assert instances.dtype == np.float64


@pytest.mark.parametrize("X", [LISTED, CUBE, MATRIX], ids=["list", "cube", "matrix"])
def test_float32_is_kept(X, learner):
    single = [bag.astype(np.float32) for bag in X] if X is LISTED else X.astype(np.float32)
    assert validate_bags(learner, single, reset=True).dtype == np.float32


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([LISTED[0], np.empty((0, 2))], r"bag\(s\) \[1\] have none"),
        ([LISTED[0], np.full((1, 2), np.nan)], "bag 1 holds NaN at instance 0, feature 0"),
        ([LISTED[0], np.full((1, 2), np.inf)], "bag 1 holds infinity"),
        ([LISTED[0], np.zeros((1, 3))], r"bag\(s\) \[1\] have \[3\], the others 2"),
        ([LISTED[0], [["a", "b"]]], "bag 1 must be real numbers"),
        ([LISTED[0], [[1.0, 2.0], [3.0]]], "bag 1 must be numbers in a rectangular array"),
        ([[[1.0, 2.0], [3.0]], LISTED[0]], "bag 0 must be numbers in a rectangular array"),
        ([[], LISTED[0].tolist()], "bag 0 must be a 2-D matrix"),
        ([LISTED[0].tolist(), []], "bag 1 must be a 2-D matrix"),
        ([LISTED[0], np.zeros(2)], "bag 1 must be a 2-D matrix"),
        (np.zeros((2, 0, 3)), "Every bag needs at least one instance"),
        (CUBE * np.nan, "bag 0 holds NaN"),
    ],
)
def test_bad_bags_are_named(X, message, learner):
    with pytest.raises(InvalidBagsError, match=message):
        validate_bags(learner, X, reset=True)
    assert not hasattr(learner, "n_features_in_")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "Expected 2D array|at least one|0 sample"),
        (np.empty((0, 2)), "0 sample"),
        (Bags.from_list(LISTED)[:0], "Found Bags with 0 sample.*Learner"),
        ([1.0, 2.0], "Expected 2D array"),
        (np.zeros((2, 2, 2, 2)), "dim 4|4 dim"),
        ("bags", "could not convert string|scalar"),
        (MATRIX * np.nan, "contains NaN"),
    ],
)
def test_what_is_no_bags_is_refused(X, message, learner):
    with pytest.raises(ValueError, match=message):
        validate_bags(learner, X, reset=True)


@pytest.mark.parametrize("X", [LISTED, CUBE, MATRIX, Bags.from_list(LISTED)])
def test_width_must_be_that_of_fit(X, learner):
    learner.n_features_in_ = 5
    with pytest.raises(ValueError, match="X has 2 features, but Learner is expecting 5 features"):
        validate_bags(learner, X, reset=False)


def test_names_are_set_checked_and_forgotten(learner):
    named = Bags.from_list(LISTED, feature_names=["u", "v"])
    validate_bags(learner, named, reset=True)
    assert learner.feature_names_in_.tolist() == ["u", "v"]
    assert learner.feature_names_in_.dtype == object  # as scikit-learn has it
    validate_bags(learner, named, reset=False)
    validate_bags(learner, LISTED, reset=False)
    swapped = Bags.from_list(LISTED, feature_names=["v", "u"])
    message = "Learner was fitted with, in that order: feature 0 was 'u' and is 'v'"
    with pytest.raises(ValueError, match=message):
        validate_bags(learner, swapped, reset=False)
    validate_bags(learner, LISTED, reset=True)
    assert not hasattr(learner, "feature_names_in_")
    validate_bags(learner, swapped, reset=False)


def test_names_of_a_frame_of_rows(learner):
    frame = pd.DataFrame(MATRIX, columns=["u", "v"])
    validate_bags(learner, frame, reset=True)
    assert learner.feature_names_in_.tolist() == ["u", "v"]
    with pytest.raises(ValueError, match="feature names should match"):
        validate_bags(learner, frame[["v", "u"]], reset=False)
    with pytest.raises(ValueError, match="feature 0 was 'u' and is 'v'"):
        validate_bags(learner, Bags.from_list(LISTED, feature_names=["v", "u"]), reset=False)
