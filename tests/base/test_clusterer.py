"""The parts of the contract that `BagClusterer` writes once."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from bagwise._compat import InvalidParameterError
from bagwise.base import BagClusterer, used_first
from bagwise.solvers import Certificate, Status
from bagwise.testing import make_toy_bags
from testing.sound import BagClustersOnly, MeanClusters

OF_BAGS = ["predict", "decision_function", "transform"]
OF_INSTANCES = ["instance_decision_function", "instance_predict", "key_instances"]


@parametrize_with_checks([MeanClusters()])
def test_sklearn_checks(estimator, check):
    check(estimator)


def test_number_of_sklearn_checks():
    assert len(list(estimator_checks_generator(MeanClusters(), legacy=True))) >= 45


@pytest.mark.parametrize("question", OF_BAGS + OF_INSTANCES)
def test_nothing_can_be_asked_before_fit(question):
    bags, _ = make_toy_bags()
    with pytest.raises(NotFittedError, match="MeanClusters"):
        getattr(MeanClusters(), question)(bags)


def test_methods_without_instance_scores_say_so():
    bags, _ = make_toy_bags()
    model = BagClustersOnly().fit(bags)
    for question in OF_INSTANCES:
        assert not hasattr(model, question)
    with pytest.raises(AttributeError, match="'BagClustersOnly' has no attribute 'key_instances'"):
        model.key_instances(bags)
    with pytest.raises(AttributeError, match="BagClustersOnly scores bags only, not instances"):
        model._instance_outputs(None)


def test_more_clusters_than_bags_are_refused():
    bags, _ = make_toy_bags(4)
    with pytest.raises(
        ValueError, match=r"MeanClusters needs .* n_clusters=5 bags. Got n_samples=4"
    ):
        MeanClusters(5).fit(bags)
    with pytest.raises(InvalidParameterError, match="n_clusters"):
        MeanClusters(0).fit(bags)


class Given(BagClusterer):
    """Scores are the features themselves, and so are known."""

    _parameter_constraints = {}  # noqa: RUF012
    _per_cluster = ("order_",)

    def __init__(self, n_clusters=3, status=Status.CONVERGED):
        self.n_clusters = n_clusters
        self.status = status

    def _learn(self, bags):
        labels, order = used_first(self, self._scored(bags).argmax(axis=1), self.n_clusters)
        certificate = Certificate(objective=0.0, status=self.status, n_iter=7)
        return {"labels_": labels, "order_": order, "result_": certificate}

    def _scored(self, bags):
        return np.array([bag.sum(axis=0) for bag in bags])

    def _instance_outputs(self, bags):
        return np.asarray(bags.instances)[:, self.order_]

    def _bag_outputs(self, bags):
        return self._scored(bags)[:, self.order_]


BAGS = [
    [[0.0, 1.0, 9.0], [0.0, 8.5, 0.0], [0.0, 8.5, 1.0]],  # sums: 0, 18, 10
    [[1.0, 0.0, 0.0], [2.0, 9.0, -9.0], [9.0, -9.0, 0.0]],  # 12, 0, -9
    [[0.0, 0.0, 4.0], [0.0, 0.0, 5.0]],
]


def test_clusters_and_key_instances_follow_the_scores():
    model = Given().fit(BAGS)
    assert model.labels_.tolist() == model.predict(BAGS).tolist() == [1, 0, 2]
    assert model.transform(BAGS).tolist() == [[0, 18, 10], [12, 0, -9], [0, 0, 9]]
    assert model.decision_function(BAGS).tolist() == model.transform(BAGS).tolist()
    assert model.key_instances(BAGS).tolist() == [1, 2, 1]  # the first of two equal ones
    assert model.instance_predict(BAGS).tolist() == [2, 1, 1, 0, 1, 0, 2, 2]
    assert model.n_iter_ == 7
    assert model.get_feature_names_out().tolist() == ["given0", "given1", "given2"]


def test_names_are_those_of_the_fit():
    with pytest.raises(NotFittedError, match="Given"):
        Given().get_feature_names_out()
    model = Given().fit(BAGS).set_params(n_clusters=2)
    assert model.get_feature_names_out().tolist() == ["given0", "given1", "given2"]

    class Forgotten(Given):
        _per_cluster = ()

    with pytest.raises(TypeError, match="_per_cluster of Forgotten"):
        Forgotten().fit(BAGS).get_feature_names_out()


def test_empty_clusters_stand_last_and_are_warned_of():
    with pytest.warns(ConvergenceWarning, match="Given put bags into 2 of n_clusters=3 clusters"):
        model = Given().fit([BAGS[0], BAGS[2], BAGS[2]])  # columns 1 and 2
    assert model.labels_.tolist() == [0, 1, 1]
    assert model.predict([BAGS[0], BAGS[2]]).tolist() == [0, 1]
    assert model.order_.tolist() == [1, 2, 0]
    assert model.predict([BAGS[1]]).tolist() == [2]  # new bags may fall into an empty cluster


def test_used_first_keeps_the_order():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels, order = used_first(None, np.array([2, 0, 1, 0]), 3)
    assert (labels.tolist(), order.tolist()) == ([2, 0, 1, 0], [0, 1, 2])
    with pytest.warns(ConvergenceWarning, match="NoneType put bags into 2 of"):
        labels, order = used_first(None, np.array([4, 4, 1]), 5)
    assert (labels.tolist(), order.tolist()) == ([1, 1, 0], [1, 4, 0, 2, 3])


def test_warnings_point_at_the_line_that_calls_fit():
    with pytest.warns(ConvergenceWarning, match="empty") as caught:
        Given().fit([BAGS[0], BAGS[0], BAGS[0]])
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="Given did not converge") as caught:
        Given(status=Status.MAX_ITER).fit(BAGS)
    assert caught[0].filename == __file__


def test_a_warning_that_is_an_error_leaves_nothing():
    model = Given(status=Status.MAX_ITER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.fit(BAGS)
    assert vars(model) == {"n_clusters": 3, "status": Status.MAX_ITER}
