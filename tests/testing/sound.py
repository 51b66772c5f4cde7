"""A small estimator that keeps the whole contract, to break in one place at a time."""

from numbers import Integral

import numpy as np

from bagwise._compat import Interval, StrOptions
from bagwise.bags import segment_max, segment_mean
from bagwise.base import BagClassifier, BagTags, one_vs_rest
from bagwise.solvers import Certificate, Status


class NearestMean(BagClassifier):
    """Linear score between the mean instances of two sides, with the log odds as intercept."""

    _parameter_constraints = {  # noqa: RUF012
        "rule": [StrOptions({"mean", "max"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(self, rule="mean", *, class_weight=None, max_iter=10, n_jobs=None):
        self.rule = rule
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit(self, X, y, sample_weight=None):
        return self._fit(X, y, sample_weight)

    def _learn(self, bags, target, cost_weight, bag_weight):
        def solve(output):
            return self._means(bags, target.signs[:, output], cost_weight[:, output])

        solved = one_vs_rest(solve, target.n_outputs, self.n_jobs)
        return {
            "coef_": np.array([coef for coef, _ in solved]),
            "intercept_": np.array([intercept for _, intercept in solved]),
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
        return reduce(self._instance_outputs(bags), bags.offsets[:-1], bags.offsets[1:])

    def __bagwise_tags__(self):
        return BagTags(max_rule=self.rule == "max")


class BagsOnly(NearestMean):
    """The same without instance scores."""

    def _bag_outputs(self, bags):
        scores = np.asarray(bags.instances @ self.coef_.T) + self.intercept_
        return segment_mean(scores, bags.offsets[:-1], bags.offsets[1:])

    _instance_outputs = BagClassifier._instance_outputs

    def __bagwise_tags__(self):
        return BagTags(instance_scores=False)
