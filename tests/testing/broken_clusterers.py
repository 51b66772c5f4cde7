"""Clusterers that break the contract in one place each, by the check that must see it."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bagwise.bags import segment_argmax
from bagwise.base import BagTags
from bagwise.solvers import Certificate
from testing.broken import Broken
from testing.sound import BagClustersOnly, MeanClusters

BROKEN = Broken()  # of its own: pytest imports the module twice
caught_by = BROKEN.caught_by


def relabelled(model, change):
    """Change the labels of a fitted clusterer."""
    model.labels_ = change(model.labels_)
    return model


@caught_by("check_clusters_found")
class ClustersByOrder(MeanClusters):
    """Counts the bags off, and predicts what it says."""

    def fit(self, X, y=None):
        return relabelled(super().fit(X), lambda labels: np.arange(len(labels)) % self.n_clusters)


@caught_by("check_clusters_found")
class SeesOnlyTheFit(MeanClusters):
    def predict(self, X):
        labels = super().predict(X)
        is_seen = len(labels) == len(self.labels_) and np.array_equal(labels, self.labels_)
        return labels if is_seen else labels[::-1]


@caught_by("check_cluster_labels")
class CountsFromOne(MeanClusters):
    def fit(self, X, y=None):
        return relabelled(super().fit(X), lambda labels: labels + 1)


@caught_by("check_cluster_labels")
class LeavesHoles(MeanClusters):
    def fit(self, X, y=None):
        return relabelled(super().fit(X), lambda labels: np.where(labels == 1, 2, labels))


@caught_by("check_cluster_labels")
class LabelsAreFloats(MeanClusters):
    def fit(self, X, y=None):
        return relabelled(super().fit(X), lambda labels: labels.astype(float))


@caught_by("check_cluster_labels")
class LabelsAreAList(MeanClusters):
    def fit(self, X, y=None):
        return relabelled(super().fit(X), np.ndarray.tolist)


@caught_by("check_cluster_labels")
class PredictsNoise(MeanClusters):
    def predict(self, X):
        return super().predict(X) - 1


@caught_by("check_fit_predict")
class FitsAndPredictsOtherwise(MeanClusters):
    def fit_predict(self, X, y=None):
        return self.fit(X).labels_[::-1]


@caught_by("check_fit_predict")
class FitsAndTransformsOtherwise(MeanClusters):
    def fit_transform(self, X, y=None):
        return -self.fit(X).transform(X)


@caught_by("check_predict_repeats_labels")
class MovesOneBag(MeanClusters):
    def fit(self, X, y=None):
        first = np.eye(len(X), dtype=int)[0]
        return relabelled(super().fit(X), lambda labels: (labels + first) % self.n_clusters)


@caught_by("check_predict_repeats_labels")
class RenumbersLabelsAlone(MeanClusters):
    """Gives clusters other numbers where some are empty, and forgets their centres."""

    def fit(self, X, y=None):
        model = super().fit(X)
        n_used = model.labels_.max() + 1
        is_whole = n_used == self.n_clusters
        return model if is_whole else relabelled(model, lambda labels: n_used - 1 - labels)


@caught_by("check_predict_by_scores")
class PredictsTheLowest(MeanClusters):
    def predict(self, X):
        return self.transform(X).argmin(axis=1)


@caught_by("check_predict_by_scores")
class ScoresOneCluster(MeanClusters):
    def transform(self, X):
        return super().transform(X)[:, :1]


@caught_by("check_predict_by_scores")
class DecidesOtherwise(MeanClusters):
    def decision_function(self, X):
        return super().decision_function(X)[:, ::-1]


@caught_by("check_predict_by_scores")
class MeasuresSomethingElse(MeanClusters):
    def transform(self, X):
        return super().transform(X)[:, ::-1]


@caught_by("check_target_ignored")
class LooksAtTheTarget(MeanClusters):
    def fit(self, X, y=None):
        super().fit(X)
        return self if y is None or isinstance(y, str) else relabelled(self, lambda _: np.array(y))


@caught_by("check_target_ignored", error=TypeError)
class NeedsATarget(MeanClusters):
    def fit(self, X, y):
        return super().fit(X)


@caught_by("check_cluster_count_refused")
class MakesDoWithLess(MeanClusters):
    def fit(self, X, y=None):
        asked, self.n_clusters = self.n_clusters, min(self.n_clusters, len(X))
        super().fit(X)
        self.n_clusters = asked
        return self


@caught_by("check_cluster_count_refused", error=AssertionError)
class RoundsTheNumber(MeanClusters):
    def _validate_params(self):
        pass

    def _start(self, means):
        return super()._start(means)[: int(self.n_clusters)]


@caught_by("check_extreme_cluster_counts", error=ZeroDivisionError)
class DividesByOthers(MeanClusters):
    def _start(self, means):
        return super()._start(means) * (1 / (self.n_clusters - 1) > 0)


@caught_by("check_extreme_cluster_counts")
class NeedsPairs(MeanClusters):
    def _bag_outputs(self, bags):
        return super()._bag_outputs(bags) * (np.nan if self.n_clusters == 6 else 1.0)


@caught_by("check_cluster_names")
class NamesAreOfFeatures(MeanClusters):
    def get_feature_names_out(self, input_features=None):
        return self.feature_names_in_


@caught_by("check_cluster_names")
class ForgetsFrames(MeanClusters, auto_wrap_output_keys=None):
    def transform(self, X):
        return self._bag_outputs(self._validated(X))


@caught_by("check_cluster_count_is_that_of_fit")
class NamesByTheParameter(MeanClusters):
    @property
    def _n_features_out(self):
        return self.n_clusters


@caught_by("check_cluster_count_is_that_of_fit")
class ScoresByTheParameter(MeanClusters):
    def _bag_outputs(self, bags):
        return super()._bag_outputs(bags)[:, : self.n_clusters]


@caught_by("check_key_instances_of_fit")
class KeepsTheRows(MeanClusters):
    """Counts over all bags in ``key_instances_``."""

    def _more(self, bags, learned, history, converged):
        more = super()._more(bags, learned, history, converged)
        return {**more, "key_instances_": more["key_instances_"] + bags.offsets[:-1]}


class OtherHistory(MeanClusters):
    def change(self, history):
        return history

    def _more(self, bags, learned, history, converged):
        return super()._more(bags, learned, self.change(history), converged)


@caught_by("check_objective_descends")
class Climbs(OtherHistory):
    def change(self, history):
        return [*history, history[-1] + 1.0]


@caught_by("check_objective_descends")
class ForgetsItsHistory(MeanClusters):
    def _more(self, bags, learned, history, converged):
        more = super()._more(bags, learned, history, converged)
        result = more["result_"]
        short = Certificate(objective=result.objective, status=result.status, n_iter=result.n_iter)
        return {**more, "result_": short}


@caught_by("check_objective_descends")
class EndsElsewhere(MeanClusters):
    def _more(self, bags, learned, history, converged):
        more = super()._more(bags, learned, history, converged)
        result = more["result_"]
        other = Certificate(
            objective=result.objective - 1.0,
            status=result.status,
            n_iter=result.n_iter,
            history=result.history,
        )
        return {**more, "result_": other}


# -------------------------------------------- checks that classifiers get too


@caught_by("check_certificate")
class NeverSettles(MeanClusters):
    def _more(self, bags, learned, history, converged):
        return super()._more(bags, learned, history, False)


@caught_by("check_not_converged_warns")
class SettlesAtOnce(MeanClusters):
    def _more(self, bags, learned, history, converged):
        return super()._more(bags, learned, history, True)


@caught_by("check_instance_scores")
class InstancesFollowTheirBag(MeanClusters):
    def instance_predict(self, X):
        return np.repeat(self.predict(X), self._validated(X).sizes)


@caught_by("check_instance_order_permutes_scores")
class ClustersByPlace(MeanClusters):
    def _instance_outputs(self, bags):
        place = np.concatenate([np.arange(size) for size in bags.sizes])
        return super()._instance_outputs(bags) + 0.01 * place[:, None]


@caught_by("check_key_instances")
class KeysOfTheWorstCluster(MeanClusters):
    def key_instances(self, X):
        bags = self._validated(X)
        worst = np.repeat(self._bag_outputs(bags).argmin(axis=1), bags.sizes)
        own = self._instance_outputs(bags)[np.arange(bags.n_instances), worst]
        return segment_argmax(own, bags.offsets[:-1], bags.offsets[1:])


@caught_by("check_max_rule", "check_concepts_found")
class ClaimsBestInstances(MeanClusters):
    def __bagwise_tags__(self):
        return BagTags(max_rule=True)


@caught_by("check_instance_scores_refused")
class ClustersInstancesAnyway(BagClustersOnly):
    def key_instances(self, X):
        return np.zeros(len(X), dtype=int)


@caught_by("check_bag_order")
class StartsFromTheFirstBags(MeanClusters):
    def _start(self, means):
        return means[: self.n_clusters].copy()


@caught_by("check_feature_units")
class StopsEarlyInSmallUnits(MeanClusters):
    """Takes means for the same that differ by little."""

    def _start(self, means):
        return super()._start(np.round(means, 1))


@caught_by("check_feature_origin", error=ConvergenceWarning)
class StartsAtZero(MeanClusters):
    def _start(self, means):
        start = super()._start(means)
        start[0] = 0.0
        return start


@caught_by("check_fit_is_repeatable")
class NumbersClustersAtRandom(MeanClusters):
    """Finds the same clusters in another order each time."""

    calls = 0

    def _start(self, means):
        type(self).calls += 1
        return np.roll(super()._start(means), self.calls, axis=0)


@caught_by("check_pipeline")
class ClustersListsUnscaled(MeanClusters):
    def fit(self, X, y=None):
        return super().fit([np.tanh(bag) for bag in X] if isinstance(X, list) else X)
