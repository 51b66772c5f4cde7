"""Lists of labels: the same as the indicator matrix that scikit-learn makes of them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MultiLabelBinarizer

from bagwise import load, save
from bagwise.base._label_lists import holds_lists
from bagwise.base._target import encode_target
from bagwise.embedding import MILES
from bagwise.metric import MIMLCA, MLCA
from bagwise.neighbors import CitationKNN
from bagwise.svm import SIL, MIKernelSVM
from bagwise.testing import make_toy_bags

SETS = [{"sea", "sky"}, {"sky"}, set(), {"sand"}, {"sand", "sky"}]
CLASSIFIERS = [SIL(), MIKernelSVM(), MILES(), MIMLCA(), CitationKNN()]


def encode(y, weight=None):
    return encode_target(SIL(), y, np.ones(len(y)) if weight is None else np.array(weight))


def objects(rows):
    out = np.empty(len(rows), object)
    out[:] = rows
    return out


@pytest.mark.parametrize(
    "y",
    [
        SETS,
        tuple(SETS),
        [frozenset(row) for row in SETS],
        [sorted(row) for row in SETS],
        [tuple(row) for row in SETS],
        objects(SETS),
        [["a", "b"], ["c", "a"]],
        [{1}, {1, 2}, {7}],
        [{np.int64(3)}, {5}],
        [{0.5, 1.5}, {2.5}],
    ],
)
def test_lists_are_what_scikit_learn_makes_of_them(y):
    target, binarizer = encode(y), MultiLabelBinarizer()
    np.testing.assert_array_equal(target.signs > 0, binarizer.fit_transform(y))
    assert target.classes.tolist() == list(binarizer.classes_)
    assert target.is_multilabel


@pytest.mark.parametrize(
    "y",
    [
        ["sea", "sky"],
        np.array(["sea", "sky"], object),
        [[0, 1], [1, 0]],
        [(0, 1), (1, 0)],
        np.eye(2),
        [0, 1],
        [np.array([0, 1]), np.array([1, 1])],
        "text",
        None,
        {"a": 1},
        [],
    ],
    ids=repr,
)
def test_what_is_no_list_of_lists(y):
    assert not holds_lists(y)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ([{"a"}, "b"], "SIL: y must hold a set or list of labels for each bag.*'b' for bag 1"),
        ([["a", "b"], ["a"], 3], "Got 3 for bag 2 beside lists"),
        ([["a"], [["b"]]], r"labels must be texts or numbers. Got \['b'\] on the list of bag 1"),
        ([{"a"}, {None}], "Got None on the list of bag 1"),
        ([{1.0}, {float("nan")}], "Got nan on the list of bag 1"),
        ([{"a"}, {1}], r"must be of one type.*\['int', 'str'\]"),
        ([{"a"}, {"a"}], r"at least two labels in all. Got \['a'\]"),
        ([set(), set()], "at least two labels"),
        ([[1], [1, 2], [7]], "SIL: lists of numbers are not taken for lists of labels"),
    ],
)
def test_lists_that_cannot_be_learned_are_refused(y, match):
    with pytest.raises(ValueError, match=match):
        encode(y)


def test_labels_of_bags_of_weight_zero_are_no_classes():
    target = encode(SETS, [0.0, 1.0, 1.0, 1.0, 1.0])
    assert target.classes.tolist() == ["sand", "sky"]
    assert len(target.signs) == 4
    with pytest.raises(ValueError, match="inconsistent"):
        encode_target(SIL(), SETS, np.ones(4))


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=str)
def test_classifiers_take_sets(classifier):
    bags, y = make_toy_bags(12, random_state=1)
    sets = [{"red"} if label else {"blue", "red"} for label in y]
    sets[3] = {"blue"}
    matrix = MultiLabelBinarizer().fit_transform(sets)
    model, other = (clone(classifier).fit(bags, labels) for labels in (sets, matrix))
    assert model.classes_.tolist() == ["blue", "red"]
    assert other.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.decision_function(bags), other.decision_function(bags))
    np.testing.assert_array_equal(model.predict(bags), other.predict(bags))
    assert model.score(bags, sets) == other.score(bags, matrix)


def test_a_label_that_was_not_in_the_fit_is_never_right():
    bags, _ = make_toy_bags(5, random_state=1)
    model = MIKernelSVM(C=100.0).fit(bags, SETS)
    right = model.score(bags, SETS)
    assert right > 0.0
    assert model.score(bags, [row | {"sun"} for row in SETS]) == 0.0


def test_models_of_named_labels_are_saved(tmp_path):
    bags, _ = make_toy_bags(5, random_state=1)
    model = MIKernelSVM().fit(bags, SETS)
    save(model, tmp_path / "sets.model")
    again = load(tmp_path / "sets.model")
    assert again.classes_.tolist() == ["sand", "sea", "sky"]
    np.testing.assert_array_equal(again.predict(bags), model.predict(bags))


def test_labels_of_instances_are_no_lists():
    with pytest.raises(ValueError, match="one label for each instance, not lists"):
        MLCA().fit(np.eye(3), [{"a"}, {"b"}, {"a", "b"}])


def test_lists_are_scored_by_models_of_lists_alone():
    bags, y = make_toy_bags(12, random_state=1)
    with pytest.raises(NotFittedError):
        SIL().score(bags, [{"a"}, {"b"}] * 6)
    with pytest.raises(ValueError, match="SIL was fitted to one label for each bag"):
        SIL().fit(bags, y).score(bags, [{"a"}, {"b"}] * 6)


def test_types_without_a_kind_are_asked_for_their_items():
    class Column(list):
        dtype = "Object"

    assert holds_lists(Column(SETS))
    assert not holds_lists(Column(["sea", "sky"]))
