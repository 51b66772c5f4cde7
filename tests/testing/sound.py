"""Small estimators that keep the whole contract, to break in one place at a time."""

from numbers import Integral

import numpy as np

from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, segment_argmax, segment_max, segment_mean
from bagwise.base import (
    AsymmetricClassifier,
    BagClassifier,
    BagClusterer,
    BagTags,
    one_vs_rest,
    used_first,
)
from bagwise.kernels import InstanceMetric, hausdorff
from bagwise.solvers import Certificate, Status

_EUCLIDEAN = InstanceMetric("euclidean")


class NearestMean(AsymmetricClassifier):
    """Linear score between the mean instances of two sides, with the log odds as intercept."""

    _parameter_constraints = {  # noqa: RUF012
        "rule": [StrOptions({"mean", "max"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        **AsymmetricClassifier._parameter_constraints,
    }

    def __init__(self, rule="mean", *, class_weight=None, pos_label=None, max_iter=10, n_jobs=None):
        self.rule = rule
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _learn(self, bags, target, cost_weight, bag_weight):
        def solve(output):
            return self._means(bags, target.signs[:, output], cost_weight[:, output])

        solved = one_vs_rest(solve, target.n_outputs, self.n_jobs)
        return {
            "coef_": target.side * np.array([coef for coef, _ in solved]),
            "intercept_": target.side * np.array([intercept for _, intercept in solved]),
            "result_": self._certificate(sum(np.sum(coef**2) for coef, _ in solved)),
        }

    def _means(self, bags, sign, weight):
        sides = []
        for side in (1.0, -1.0):
            share = np.repeat(weight * (sign == side), bags.sizes)
            if not share.any():
                return np.zeros(bags.n_features), sign[0]
            sides.append((share @ bags.instances / share.sum(), np.sum(weight * (sign == side))))
        (plus, plus_mass), (minus, minus_mass) = sides
        middle = (plus @ plus - minus @ minus) / 2
        return plus - minus, np.log(plus_mass / minus_mass) - middle

    def _certificate(self, objective):
        enough = self.max_iter > 1
        return Certificate(
            objective=float(objective) + 1.0 - enough,
            status=Status.CONVERGED if enough else Status.MAX_ITER,
            n_iter=min(2, self.max_iter),
        )

    def _instance_outputs(self, bags):
        return np.asarray(bags.instances @ self.coef_.T) + self.intercept_

    def _bag_outputs(self, bags):
        reduce = segment_max if self.rule == "max" else segment_mean
        scores = self._side * self._instance_outputs(bags)
        return self._side * reduce(scores, bags.offsets[:-1], bags.offsets[1:])

    def __bagwise_tags__(self):
        return BagTags(max_rule=self.rule == "max", asymmetric=self.rule == "max")


class BagsOnly(NearestMean):
    """The same without instance scores."""

    def _bag_outputs(self, bags):
        scores = np.asarray(bags.instances @ self.coef_.T) + self.intercept_
        return segment_mean(scores, bags.offsets[:-1], bags.offsets[1:])

    _instance_outputs = BagClassifier._instance_outputs

    def __bagwise_tags__(self):
        return BagTags(instance_scores=False)


class UnitFree(NearestMean):
    """The same with distances in units of that between the means."""

    def _means(self, bags, sign, weight):
        coef, intercept = super()._means(bags, sign, weight)
        if not coef.any():
            return coef, intercept
        prior = np.log(weight[sign > 0].sum() / weight[sign < 0].sum())
        return self._in_units(coef, intercept - prior, coef @ coef, prior)

    def _in_units(self, coef, middle, square, prior):
        return coef / square, middle / square + prior

    def __bagwise_tags__(self):
        return BagTags(scale_powers={}, shift_invariant=True)


class MeanClusters(BagClusterer):
    """K-means of the mean instances, from a start that does not depend on the order of bags.

    The score of an instance is minus its squared distance from a centre and that of a bag the mean
    over its instances, which is highest for the centre next to their mean.
    """

    _parameter_constraints = {  # noqa: RUF012
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    _per_cluster = ("centres_",)

    def __init__(self, n_clusters=2, *, max_iter=100):
        self.n_clusters = n_clusters
        self.max_iter = max_iter

    def _learn(self, bags):
        rows = bags.instances.toarray() if bags.is_sparse else bags.instances
        means = segment_mean(rows.astype(np.float64), bags.offsets[:-1], bags.offsets[1:])
        centres, labels, history = self._start(means), None, []
        for _ in range(self.max_iter):
            distances = squared_distances(means, centres)
            last, labels = labels, distances.argmin(axis=1)
            history.append(distances.min(axis=1).sum())
            converged = np.array_equal(last, labels)
            if converged:
                break
            for cluster in np.unique(labels):
                centres[cluster] = means[labels == cluster].mean(axis=0)
        labels = squared_distances(means, centres).argmin(axis=1)
        labels, order = used_first(self, labels, self.n_clusters)
        learned = {"labels_": labels, "centres_": centres[order]}
        return {**learned, **self._more(bags, learned, history, converged)}

    def _start(self, means):
        """Take the mean next to the middle, and then always the one farthest from those taken."""
        chosen = [np.square(means - means.mean(axis=0)).sum(axis=1).argmin()]
        while len(chosen) < self.n_clusters:
            chosen.append(squared_distances(means, means[chosen]).min(axis=1).argmax())
        return means[chosen]

    def _more(self, bags, learned, history, converged):
        certificate = Certificate(
            objective=history[-1],
            status=Status.CONVERGED if converged else Status.MAX_ITER,
            n_iter=len(history),
            history=np.array(history),
        )
        own = np.repeat(learned["labels_"], bags.sizes)
        scores = self._scores(bags, learned["centres_"])[np.arange(bags.n_instances), own]
        keys = segment_argmax(scores, bags.offsets[:-1], bags.offsets[1:])
        return {"key_instances_": keys, "result_": certificate}

    def __bagwise_tags__(self):
        return BagTags(scale_powers={}, shift_invariant=True)

    def _scores(self, bags, centres):
        rows = bags.instances.toarray() if bags.is_sparse else bags.instances
        return -squared_distances(rows.astype(np.float64), centres)

    def _instance_outputs(self, bags):
        return self._scores(bags, self.centres_)

    def _bag_outputs(self, bags):
        scores = self._scores(bags, self.centres_)
        return segment_mean(scores, bags.offsets[:-1], bags.offsets[1:])


def squared_distances(rows, centres):
    return np.square(rows[:, None, :] - centres).sum(axis=2)


class BagClustersOnly(MeanClusters):
    """The same without instance scores."""

    def _more(self, bags, learned, history, converged):
        return {"result_": super()._more(bags, learned, history, converged)["result_"]}

    _instance_outputs = BagClusterer._instance_outputs

    def __bagwise_tags__(self):
        return BagTags(instance_scores=False)


class VoteOfBags(BagClassifier):
    """All bags of the fit vote for their classes, the nearer the stronger.

    Nothing is optimised: what is fitted is the bags themselves.
    """

    _parameter_constraints = {  # noqa: RUF012
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(self, class_weight=None):
        self.class_weight = class_weight

    def _learn(self, bags, target, cost_weight, bag_weight):
        votes = target.signs * cost_weight / cost_weight.sum(axis=0)
        return {"bags_": bags, "votes_": votes}

    def _bag_outputs(self, bags):
        distance = hausdorff(_EUCLIDEAN, *self.bags_.segments, *bags.segments, only="average")
        return np.asarray((1.0 / (1.0 + distance.T)) @ self.votes_, np.float64)

    def _instance_outputs(self, bags):
        return self._bag_outputs(Bags(bags.instances, np.arange(bags.n_instances + 1)))
