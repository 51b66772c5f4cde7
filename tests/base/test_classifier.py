"""The parts of the contract that `BagClassifier` writes once."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from bagwise.base import BagClassifier, BagTags, all_or_nothing, get_bag_tags, one_vs_rest
from bagwise.testing import make_toy_bags
from testing.sound import BagsOnly, NearestMean


class Thing:
    def __init__(self):
        self.kept, self.removed = [1], "old"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_all_or_nothing_puts_everything_back(error):
    thing = Thing()
    kept = thing.kept

    def change():
        thing.kept = [2]
        thing.new = 3
        del thing.removed
        raise error

    with pytest.raises(error), all_or_nothing(thing):
        change()
    assert vars(thing) == {"kept": [1], "removed": "old"}
    assert thing.kept is kept


def test_all_or_nothing_keeps_what_succeeds():
    thing = Thing()
    with all_or_nothing(thing):
        thing.kept = [2]
        del thing.removed
    assert vars(thing) == {"kept": [2]}


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 8, -1])
def test_one_vs_rest_keeps_the_order(n_jobs):
    assert one_vs_rest(lambda output: 10 * output, 5, n_jobs) == [0, 10, 20, 30, 40]


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_one_vs_rest_passes_errors_on(n_jobs, error):
    def solve(output):
        if output == 2:
            raise error("third")
        return output

    with pytest.raises(error, match="third"):
        one_vs_rest(solve, 4, n_jobs)


@pytest.mark.parametrize(
    "method",
    ["predict", "decision_function", "instance_decision_function", "instance_predict",
     "key_instances"],
)  # fmt: skip
def test_nothing_can_be_asked_before_fit(method):
    bags, _ = make_toy_bags()
    with pytest.raises(NotFittedError, match="NearestMean"):
        getattr(NearestMean(), method)(bags)


def test_methods_without_instance_scores_say_so():
    bags, y = make_toy_bags()
    model = BagsOnly().fit(bags, y)
    for method in ("instance_decision_function", "instance_predict", "key_instances"):
        assert not hasattr(model, method)
    with pytest.raises(AttributeError, match="'BagsOnly' has no attribute 'key_instances'"):
        model.key_instances(bags)


def test_score_is_the_accuracy_of_bags():
    bags, y = make_toy_bags(20)
    model = NearestMean().fit(bags, y)
    flipped = np.where(np.arange(20) < 3, 1 - model.predict(bags), model.predict(bags))
    assert model.score(bags, flipped) == pytest.approx(17 / 20)
    weight = np.where(np.arange(20) < 3, 0.0, 1.0)
    assert model.score(bags, flipped, sample_weight=weight) == 1.0


def test_score_of_label_lists_is_the_share_of_bags_that_are_all_right():
    bags, y = make_toy_bags(20)
    model = NearestMean().fit(bags, np.column_stack([y, 1 - y]))
    predicted = model.predict(bags)
    predicted[:5, 0] = 1 - predicted[:5, 0]
    assert model.score(bags, predicted) == pytest.approx(15 / 20)


class Given(BagClassifier):
    """Scores are the features themselves, and so are known."""

    _parameter_constraints = {}  # noqa: RUF012

    def __init__(self, max_rule=False):
        self.max_rule = max_rule

    def fit(self, X, y):
        self.n_features_in_ = np.shape(X[0])[1]
        self.classes_ = np.unique(y)
        self.multilabel_ = np.ndim(y) == 2
        if self.multilabel_:
            self.classes_ = np.arange(np.shape(y)[1])
        return self

    def _learn(self, bags, target, cost_weight, bag_weight):
        return {}

    def _instance_outputs(self, bags):
        return np.asarray(bags.instances)

    def _bag_outputs(self, bags):
        reduce = np.max if self.max_rule else np.mean
        return np.array([reduce(bag, axis=0) for bag in bags])

    def __bagwise_tags__(self):
        return BagTags(max_rule=self.max_rule)


def test_key_instance_of_a_mean_is_the_one_that_pulls_its_way():
    bags = [[[1.0], [3.0], [-1.0]], [[1.0], [-3.0], [0.5]], [[2.0], [2.0]], [[-2.0], [-2.0]]]
    model = Given().fit(bags, ["no", "yes"])
    assert model.predict(bags).tolist() == ["yes", "no", "yes", "no"]
    assert model.key_instances(bags).tolist() == [1, 1, 0, 0]


def test_key_instance_of_a_maximum_is_the_maximum():
    bags = [[[1.0], [3.0], [-1.0]], [[-1.0], [-3.0], [-0.5]]]
    model = Given(max_rule=True).fit(bags, ["no", "yes"])
    assert model.predict(bags).tolist() == ["yes", "no"]
    assert model.key_instances(bags).tolist() == [1, 2]


def test_key_instance_of_many_classes_is_best_for_the_predicted_one():
    bags = [
        [[0.0, 1.0, 9.0], [0.0, 8.0, 0.0], [0.0, 8.0, 1.0]],
        [[1.0, 0.0, 0.0], [2.0, 9.0, -9.0], [9.0, -9.0, 0.0]],
    ]
    model = Given().fit(bags, ["a", "b", "c"])
    assert model.predict(bags).tolist() == ["b", "a"]
    assert model.key_instances(bags).tolist() == [1, 2]


def test_label_lists_have_a_key_instance_for_each_label():
    bags = [[[5.0, -3.0], [1.0, -1.0]], [[-5.0, 3.0], [-1.0, 7.0], [-1.0, 7.0]]]
    model = Given().fit(bags, np.eye(2, dtype=int))
    assert model.predict(bags).tolist() == [[1, 0], [0, 1]]
    assert model.key_instances(bags).tolist() == [[0, 1], [1, 1]]
    assert model.instance_predict(bags).tolist() == [[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]]


def test_score_of_zero_is_the_first_class():
    bags = [[[0.0]], [[1e-300]]]
    model = Given().fit(bags, ["first", "second"])
    assert model.predict(bags).tolist() == ["first", "second"]


def test_tags():
    assert get_bag_tags(NearestMean()) == BagTags()
    assert get_bag_tags(NearestMean("max")).max_rule
    assert BagClassifier.__bagwise_tags__(NearestMean("max")) == BagTags(
        order_tolerance=0.0, instance_scores=True, max_rule=False, supervised_analogue=None
    )
