import numpy as np
import pytest

from bagwise import Bags
from bagwise.inspection._verdicts import judge
from inspection.judges import BagsOnly, FirstFeature, LabelLists, ThreeClasses


def test_two_classes():
    bags = Bags([[1.0], [2.0], [-1.0], [-3.0], [-2.0]], [0, 2, 3, 5])
    verdicts = judge(FirstFeature(), bags, [1, 1, 0], ["dull", "bright"])
    np.testing.assert_array_equal(verdicts.predicted, [1, 0, 0])
    np.testing.assert_array_equal(verdicts.scores, [2, -1, -2])
    np.testing.assert_array_equal(verdicts.margins, [2, -1, 2])
    np.testing.assert_array_equal(verdicts.keys, [1, 0, 1])
    assert verdicts.majority == ("bright", 2 / 3)
    assert verdicts.is_binary


def test_three_classes():
    bags = Bags([[1.0, 2, 3], [5, 0, 0], [0, 1, 0.5]], [0, 2, 3])
    verdicts = judge(ThreeClasses(), bags, ["bee", "bee"])
    np.testing.assert_array_equal(verdicts.predicted, [0, 1])
    np.testing.assert_array_equal(verdicts.scores, [2, 0.5])  # 5 against 3, 1 against 0.5
    np.testing.assert_array_equal(verdicts.margins, [-3, 0.5])  # 2 against 5
    np.testing.assert_array_equal(verdicts.instance_scores, [1, 5, 1])
    assert verdicts.label_names == ("ant", "bee", "cat")


def test_unknown_labels():
    bags = Bags([[1.0], [2.0], [-1.0], [-3.0], [-2.0]], [0, 2, 3, 5])
    verdicts = judge(FirstFeature(), bags, label_names=["dull", "bright"])
    assert verdicts.truth is None
    assert not verdicts.is_judged
    np.testing.assert_array_equal(verdicts.margins, [2, 1, 2])  # towards what is predicted
    np.testing.assert_array_equal(verdicts.counts, [2, 1])
    assert verdicts.majority == ("dull", 2 / 3)
    verdicts = judge(ThreeClasses(), Bags([[1.0, 2, 3], [5, 0, 0], [0, 1, 0.5]], [0, 2, 3]))
    np.testing.assert_array_equal(verdicts.margins, [2, 0.5])
    np.testing.assert_array_equal(verdicts.counts, [1, 1, 0])


LISTS = Bags([[1.0, 2, -3], [0.5, -1, -2], [-4, -1, -2], [-3, -2, -5]], [0, 2, 4])


def test_label_lists():
    verdicts = judge(LabelLists(), LISTS, [[1, 0, 0], [0, 1, 1]], ["ant", "bee", "cat"])
    np.testing.assert_array_equal(verdicts.predicted, [[1, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(verdicts.top, [1, 1])
    np.testing.assert_array_equal(verdicts.scores, [2, -1])
    np.testing.assert_array_equal(verdicts.keys, [0, 0])
    np.testing.assert_array_equal(verdicts.instance_scores, [2, -1, -1, -2])
    np.testing.assert_array_equal(verdicts.counts, [1, 1, 0])
    assert verdicts.average_precision == 0.75  # second of the first ranking; first two of the other
    assert not verdicts.is_judged
    assert judge(LabelLists(), LISTS).average_precision is None
    assert judge(LabelLists(), LISTS, np.zeros((2, 3))).average_precision is None


def test_label_lists_of_wrong_shape():
    with pytest.raises(ValueError, match=r"indicator matrix of label lists, \(2, 3\). Got \(2,\)"):
        judge(LabelLists(), LISTS, [0, 1])


def test_bags_only():
    verdicts = judge(BagsOnly(), Bags([[1.0], [2.0]], [0, 1, 2]), [1, 0])
    assert verdicts.keys is None
    assert verdicts.instance_scores is None


def test_a_tenth_is_unsure():
    margins = np.random.default_rng(0).permutation(np.arange(1.0, 101.0))
    bags = Bags(margins[:, None], np.arange(101))
    verdicts = judge(FirstFeature(), bags, np.ones(100))
    np.testing.assert_array_equal(verdicts.unsure, margins <= 10)
    assert judge(FirstFeature(), bags[:1], [1]).unsure.tolist() == [True]


@pytest.mark.parametrize(
    ("y", "names", "message"),
    [
        ([1, 2], None, r"not fitted on the label\(s\) 2 in y"),
        ([1], None, r"one label for each of the 2 bags. Got \(1,\)"),
        ([[0, 1], [1, 0]], None, "one label for each of the 2 bags"),
        ([1, 0], ["only one"], "must name the 2 classes. Got 1 names"),
    ],
)
def test_labels_that_do_not_fit(y, names, message):
    with pytest.raises(ValueError, match=message):
        judge(FirstFeature(), Bags([[1.0], [2.0]], [0, 1, 2]), y, names)
