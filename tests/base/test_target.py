"""Labels of any type become columns of signs."""

from enum import StrEnum

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import type_of_target

from bagwise import Bags
from bagwise.base._target import _kind, class_weighted, encode_target
from bagwise.svm import SIL


class Learner:
    def __init__(self, class_weight=None):
        self.class_weight = class_weight


def encode(y, weight=None):
    return encode_target(Learner(), y, np.ones(len(y)) if weight is None else np.array(weight))


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([0, 1, 0], [0, 1]),
        ([7, -3, 7], [-3, 7]),
        ([True, False, True], [False, True]),
        ([2.0, -1.0, 2.0], [-1.0, 2.0]),
        (["b", "a", "b"], ["a", "b"]),
        (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
    ],
)
def test_two_classes_are_one_problem(y, classes):
    target = encode(y)
    assert target.classes.tolist() == classes
    assert target.signs.tolist() == [[1.0 if label == classes[1] else -1.0] for label in y]
    assert target.codes.tolist() == [classes.index(label) for label in y]
    assert target.n_outputs == 1
    assert not target.is_multilabel


@pytest.mark.parametrize(
    "y",
    [
        np.array([4, 4]),
        np.array([7, -3, 7]),
        np.array([0, 255, 0], np.uint8),
        np.array([-128, 127, -128], np.int8),
        np.array([0, 2, 1, 0]),
        np.array([0, 1], bool),
        np.array([0.0, 0.5, 1.0]),
        np.array([[0, 1], [1, 1]]),
        np.array([[0], [1]]),
        np.array([], np.int64),
        [0, 1, 0],
    ],
    ids=repr,
)
def test_types_of_targets_are_those_of_scikit_learn(y):
    assert _kind(y) == type_of_target(y)


def test_three_classes_are_three_problems():
    target = encode(["c", "a", "b", "a"])
    assert target.signs.tolist() == [[-1, -1, 1], [1, -1, -1], [-1, 1, -1], [1, -1, -1]]
    assert target.codes.tolist() == [2, 0, 1, 0]


@pytest.mark.parametrize("make", [np.array, sparse.csr_matrix, sparse.csr_array, list])
def test_label_lists_are_one_problem_each(make):
    indicator = make([[1, 0, 1], [0, 0, 1]])
    target = encode_target(Learner(), indicator, np.ones(2))
    assert target.is_multilabel
    assert target.classes.tolist() == [0, 1, 2]
    assert target.signs.tolist() == [[1, -1, 1], [-1, -1, 1]]


def test_column_of_labels_is_a_vector():
    with pytest.warns(UserWarning, match="column-vector"):
        target = encode(np.array([[0], [1], [1]]))
    assert target.codes.tolist() == [0, 1, 1]


def test_bags_without_weight_have_no_target():
    target = encode(["a", "z", "b", "a"], weight=[1.0, 0.0, 0.5, 2.0])
    assert target.classes.tolist() == ["a", "b"]
    assert target.codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "Learner requires y"),
        ([1, 1, 1], "Learner needs bags of at least two classes. Got 1 class: 1"),
        ([0.1, 0.2, 0.3], "Unknown label type: continuous"),
        ([0.0, np.nan, 1.0], "NaN"),
        (np.array([0.5, 1.5, 1.5], object), r"of type float: pass y\.astype\(float\)"),
        (np.array([0, 1, 1], object), r"of type int: pass y\.astype\(int\)"),
        (np.array([False, True, True], object), r"of type bool: pass y\.astype\(bool\)"),
        (np.array([0.5, "b", "b"], object), r"of type float and str: pass y\.astype\(str\)"),
        (np.array(["a", 1, 1], object), r"of type int and str: pass y\.astype\(str\)"),
        ([[1, 2], [3, 4], [5, 6]], "y should be a 1d array|bad input shape"),
        ([0, 1], r"\b3\b.*\b2\b|\b2\b.*\b3\b"),
    ],
)
def test_what_cannot_be_learned_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        encode_target(Learner(), y, np.ones(3))


def test_text_of_any_kind_may_lie_in_an_array_of_objects():
    kinds = StrEnum("Kinds", ["HEALTHY", "SICK"])
    target = encode(np.array([kinds.SICK, kinds.HEALTHY, kinds.SICK], object))
    assert target.codes.tolist() == [1, 0, 1]


def test_categories_may_be_numbers():
    pd = pytest.importorskip("pandas")
    for values in ([1, 0, 1], [True, False, True], [2.0, 1.0, 2.0]):
        target = encode(pd.Series(values, dtype="category"))
        assert target.codes.tolist() == [1, 0, 1]


def test_labels_that_look_like_numbers_of_a_regression_are_pointed_out_once():
    with pytest.warns(UserWarning, match="number of unique classes is greater than 50%") as found:
        target = encode(list(range(30)))
    assert target.n_outputs == 30
    assert len(found) == 1


def test_weights_that_leave_one_class_are_refused():
    with pytest.raises(ValueError, match="Got 1 class: 'a'"):
        encode(["a", "b"], weight=[1.0, 0.0])
    with pytest.raises(ValueError, match="Got 0 class"):
        encode(["a", "b"], weight=[0.0, 0.0])


Y = np.array(["a", "b", "b", "c", "b", "c"])


@pytest.mark.parametrize("y", [Y, np.where(Y == "c", "b", Y)], ids=["three", "two"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 2.0, "b": 0.5}])
def test_class_weights_are_those_of_sklearn(y, class_weight):
    target = encode(y)
    weights = class_weighted(Learner(class_weight), target, np.ones(6))
    expected = compute_sample_weight(class_weight, y)
    assert weights.shape == target.signs.shape
    np.testing.assert_allclose(weights, np.tile(expected[:, None], target.n_outputs), rtol=1e-15)


def test_sample_weights_multiply_class_weights():
    target, sample_weight = encode(Y), np.arange(1.0, 7.0)
    weights = class_weighted(Learner({"a": 3.0, "b": 1.0, "c": 2.0}), target, sample_weight)
    expected = sample_weight * np.array([3.0, 1, 1, 2, 1, 2])
    np.testing.assert_allclose(weights, np.tile(expected[:, None], 3))


def test_balanced_counts_a_weight_as_a_repetition():
    sample_weight = np.array([3, 1, 2, 1, 1, 2])
    weights = class_weighted(Learner("balanced"), encode(Y), sample_weight.astype(float))
    repeated = compute_sample_weight("balanced", np.repeat(Y, sample_weight))
    first = np.append(0, np.cumsum(sample_weight)[:-1])
    np.testing.assert_allclose(weights[:, 0], sample_weight * repeated[first])


def test_balanced_label_lists_weigh_both_sides_alike():
    indicator = np.array([[1, 0, 1], [0, 0, 1], [0, 1, 1], [0, 1, 1]])
    sample_weight = np.array([1.0, 2.0, 1.0, 4.0])
    weights = class_weighted(Learner("balanced"), encode(indicator), sample_weight)
    for column in (0, 1):
        positive = indicator[:, column] == 1
        assert weights[positive, column].sum() == pytest.approx(4.0)
        assert weights[~positive, column].sum() == pytest.approx(4.0)
    np.testing.assert_allclose(weights[:, 2], sample_weight / 2)  # one side only


def test_class_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="are not in class_weight"):
        class_weighted(Learner({"z": 1.0}), encode(Y), np.ones(6))
    message = r"class_weight of Learner must be None or 'balanced' with label lists\. Got \{0: 2\.0"
    with pytest.raises(ValueError, match=message):
        class_weighted(Learner({0: 2.0}), encode(np.eye(3, dtype=int)), np.ones(3))
    negative = dict.fromkeys(encode(Y).classes.tolist(), -2.0)
    with pytest.raises(ValueError, match=r"class_weight of Learner must not be negative\. Got \{"):
        class_weighted(Learner(negative), encode(Y), np.ones(6))


def test_methods_without_class_weight_use_the_sample_weight():
    weights = class_weighted(object(), encode(Y), np.arange(6.0))
    np.testing.assert_array_equal(weights, np.tile(np.arange(6.0)[:, None], 3))


# --------------------------------------------------------------------------- missing labels


def frames():
    pd = pytest.importorskip("pandas")
    labels = ["a", "b", None, "a"]
    return {
        "objects": pd.Series(labels, dtype=object),
        "strings": pd.Series(labels, dtype="string"),
        "categories": pd.Series(labels, dtype="category"),
        "whole numbers": pd.Series([0, 1, None, 0], dtype="Int64"),
        "booleans": pd.Series([True, False, None, True], dtype="boolean"),
        "floats": pd.Series([0.0, 1.0, np.nan, 0.0]),
        "a frame": pd.DataFrame({"y": labels}),
        "other rows": pd.Series(labels, index=[7, 5, 3, 1]),
    }


ARRAYS = {
    "a list": ["a", "b", None, "a"],
    "a list with nan": ["a", "b", float("nan"), "a"],
    "numbers with nan": [0, 1, float("nan"), 0],
    "an array of objects": np.array(["a", "b", None, "a"], dtype=object),
    "objects with nan": np.array(["a", "b", np.nan, "a"], dtype=object),
    "numbers and None": np.array([0, 1, None, 0], dtype=object),
    "an array of floats": np.array([0.0, 1.0, np.nan, 0.0]),
    "an indicator": np.array([[0, 1], [1, 1], [np.nan, 1], [0, 0]]),
    "a column": np.array([["a"], ["b"], [None], ["a"]], dtype=object),
}


@pytest.mark.parametrize("kind", [*ARRAYS, "objects", "strings", "categories", "whole numbers",
    "booleans", "floats", "a frame", "other rows"])  # fmt: skip
def test_missing_labels_are_refused_with_class_and_bag(kind):
    y = ARRAYS[kind] if kind in ARRAYS else frames()[kind]
    match = r"Learner needs a label for each bag\. In y that of bag 2 is missing: (NaN|None|<NA>)\."
    with pytest.raises(ValueError, match=match):
        encode(y)


def test_the_bag_without_a_label_is_named():
    bags = Bags([[0.0], [1.0], [2.0]], [0, 1, 2, 3], bag_names=["p", "q", "r"])
    with pytest.raises(ValueError, match=r"SIL needs .* that of bag 1 \('q'\) is missing: None"):
        SIL().fit(bags, ["a", None, "b"])


def test_words_for_missing_are_labels_in_python():
    assert encode(["nan", "NA", "nan"]).classes.tolist() == ["NA", "nan"]


def test_infinite_labels_are_refused_as_scikit_learn_does():
    with pytest.raises(ValueError, match="Input y contains infinity"):
        encode(np.array([0.0, np.inf, 1.0]))
