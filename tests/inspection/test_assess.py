import numpy as np
import pytest
from scipy import stats

from bagwise import Bags
from bagwise.inspection import assess, wilson_interval
from inspection.judges import BagsOnly, BothSides, FirstFeature, ThreeClasses


@pytest.mark.parametrize(("successes", "trials"), [(0, 5), (5, 5), (118, 140), (1, 2), (500, 1000)])
def test_interval_is_scipys(successes, trials):
    expected = stats.binomtest(successes, trials).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson_interval(successes, trials), expected, atol=1e-12)


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (3, 2), (-1, 2)])
def test_interval_of_nothing(successes, trials):
    with pytest.raises(ValueError, match=f"Got {successes}, {trials}"):
        wilson_interval(successes, trials)


#                 bag 0       bag 1  bag 2
BAGS = Bags([[1.0], [2.0], [-1.0], [-3.0], [-2.0]], [0, 2, 3, 5])


def test_counts():
    card = assess(FirstFeature(), BAGS, [1, 1, 0], is_key=[False, True, True, False, False])
    assert (card.n_right, card.n_bags) == (2, 3)
    assert (card.n_found, card.n_key_bags) == (2, 2)
    assert card.name == "FirstFeature"
    assert card.interval == wilson_interval(2, 3)


def test_key_instances_of_the_first_class():
    is_key = [True, False, False, True, False]
    card = assess(FirstFeature(), BAGS, [1, 1, 0], is_key=is_key, pos_label=0)
    assert (card.n_found, card.n_key_bags) == (2, 2)  # those with the lowest scores
    with pytest.raises(ValueError, match="one of the classes"):
        assess(FirstFeature(), BAGS, [1, 1, 0], is_key=is_key, pos_label=7)


def test_key_instance_of_a_bag_called_negative():
    card = assess(BothSides(), BAGS, [1, 1, 0], is_key=[False, True, False, False, True])
    assert BothSides().key_instances(BAGS).tolist() == [1, 0, 0]  # what decides for "negative"
    assert (card.n_found, card.n_key_bags) == (2, 2)


def test_key_instances_of_three_classes():
    bags = Bags([[1.0, 0, 0], [0, 2.0, 0], [0, 0, 1.0]], [0, 2, 3])
    card = assess(ThreeClasses(), bags, ["bee", "cat"], is_key=[True, False, True])
    assert (card.n_right, card.n_found, card.n_key_bags) == (2, 1, 2)


def test_key_instance_not_found():
    card = assess(FirstFeature(), BAGS, [1, 1, 0], is_key=[True, False, False, False, False])
    assert card.key_success == 0.0


@pytest.mark.parametrize("is_key", [None, [False] * 5])
def test_no_truth_no_success(is_key):
    assert assess(FirstFeature(), BAGS, [1, 1, 0], is_key=is_key).key_success is None


def test_method_without_instance_scores():
    card = assess(BagsOnly(), BAGS, [1, 0, 0], is_key=[True] * 5)
    assert card.accuracy == 1.0
    assert card.key_success is None


def test_truth_of_wrong_length():
    with pytest.raises(ValueError, match=r"one value per instance, 5. Got \(4,\)"):
        assess(FirstFeature(), BAGS, [1, 1, 0], is_key=[True] * 4)
