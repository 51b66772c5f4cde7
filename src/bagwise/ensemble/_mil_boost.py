"""MILBoost (Viola, Platt and Zhang 2005), and boosting of averages (Xu and Frank 2004)."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from bagwise._arrays import Floats, as_dense
from bagwise._compat import HasMethods, Interval, StrOptions
from bagwise.bags import Bags, BagSource, Chunk, segment_logsumexp, segment_mean, segment_sum
from bagwise.base import AsymmetricClassifier, BagTags, Summary, Target, documented, one_vs_rest
from bagwise.solvers import (
    BoostResult,
    Certificate,
    Status,
    Stump,
    Stumps,
    boost_bags,
    log_odds_of_missed,
)

_SURE = 1e3  # score of all instances where all bags have one sign


@documented
class MILBoost(AsymmetricClassifier):
    r"""Boosting on bags: a sum of weak learners of instances, fitted to the labels of bags.

    An instance scores :math:`F_{ij} = b + \sum_t \lambda_t h_t(x_{ij})` with weak learners
    :math:`h_t` of values -1 and 1. With weights :math:`v_i` of the bags the objective is

    .. math:: -\sum_{i : y_i = 1} v_i \log P_i - \sum_{i : y_i = -1} v_i \log(1 - P_i)

    where a bag is positive with probability :math:`P_i = 1 - \prod_j 1 / (1 + e^{F_{ij}})`
    (``variant="noisy_or"``) or :math:`P_i = S_i / (1 + S_i)`, :math:`S_i = \sum_j e^{F_{ij}}`
    (``"isr"``, the integrated segmentation and recognition of the paper), and scores as the log
    odds of :math:`P_i`. With ``"average"`` it is :math:`\sum_i v_i e^{-y_i f_i}`, and a bag scores
    :math:`f_i = \sum_j F_{ij} / n_i`. Each round adds the learner that agrees best with minus the
    derivatives of the objective by :math:`F_{ij}`, and goes along it until the objective is flat.
    More than two classes are learned one against the rest.

    Parameters
    ----------
    variant : {"noisy_or", "isr", "average"}
        How instances make a bag positive; see above.
    estimator : classifier of scikit-learn or None
        The weak learner, whose ``fit`` takes ``sample_weight``. None: decision stumps, the best of
        all features and thresholds.
    n_estimators : int
        Most rounds.
    |class_weight, pos_label|
    tol : float
        Boosting ends before ``n_estimators`` rounds when a round lowers the objective by less, in
        units of the weight of all bags.
    |n_jobs, verbose: fit|

    Attributes
    ----------
    estimator_weights_ : ndarray of shape (n_outputs, n_rounds)
        The coefficients :math:`\lambda_t`; 0 where an output has fewer rounds.
    stump_features_ : ndarray of int of shape (n_outputs, n_rounds)
        The feature of each stump; only with ``estimator=None``, as the next two.
    stump_thresholds_ : ndarray of shape (n_outputs, n_rounds)
        Its threshold; minus infinity if the stump is constant.
    stump_signs_ : ndarray of shape (n_outputs, n_rounds)
        Its value above the threshold, 1 or -1; below it is the other one.
    estimators_ : list of list
        The weak learners of each output; only with an ``estimator``.
    |intercept_: instances, classes_, multilabel_, pos_label_|
    |n_features_in_, feature_names_in_|
    result_ : Certificate
        Objective above, and its values over the rounds.
    n_iter_ : int
        Rounds, summed over outputs.

    See Also
    --------
    bagwise.density.DiverseDensity : The noisy or of distances from a point.

    Notes
    -----
    Features are sorted once. A round of stumps then costs one pass over all values.

    Model files hold stumps only; a model with an ``estimator`` can be kept with skops.

    References
    ----------
    .. [1] P. Viola, J. Platt, C. Zhang: Multiple instance boosting for object detection. NIPS 2005.
    .. [2] X. Xu, E. Frank: Logistic regression and boosting for labeled bags of instances. PAKDD
       2004.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.ensemble import MILBoost
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = MILBoost().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.key_instances(bags[1::2])
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """

    _hides_nan = True  # in features that are not used

    _summary: ClassVar[Summary] = Summary(
        assumption="one instance makes a bag positive, by a noisy or; or all have a say",
        objective=(
            "minus the log likelihood of the labels, or exponential loss of mean scores, over "
            "sums of weak learners"
        ),
        cost="a pass over $d N$ sorted values in each round",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "variant": [StrOptions({"noisy_or", "isr", "average"})],
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        **AsymmetricClassifier._parameter_constraints,
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        variant: str = "noisy_or",
        estimator: Any = None,
        n_estimators: int = 100,
        class_weight: Any = None,
        pos_label: Any = None,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.variant = variant
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        stumps = Stumps(as_dense(bags.instances)) if self.estimator is None else None

        def solve(output: int) -> BoostResult:
            sign = target.signs[:, output]
            if (sign == sign[0]).all():
                return _constant(_SURE * sign[0])
            weak = stumps or _Weak(self.estimator, bags.instances, np.repeat(sign, bags.sizes))
            return boost_bags(
                weak, bags.offsets, sign, cost_weight[:, output],
                loss=self.variant,  # type: ignore[arg-type]
                tol=self.tol, max_iter=self.n_estimators,
            )  # fmt: skip

        results = one_vs_rest(solve, target.n_outputs, self.n_jobs)
        coef = _padded([result.x for result in results], 0.0)
        learned = {
            "estimator_weights_": coef,
            "intercept_": np.array([result.intercept for result in results]),
            "result_": Certificate.total([_ended(result) for result in results]),
        }
        if self.estimator is not None:
            return {**learned, "estimators_": [list(result.learners) for result in results]}
        feature, threshold, sign = (
            _padded([np.array([stump[k] for stump in found.learners]) for found in results], none)
            for k, none in enumerate(Stump(0, 0.0, 1.0))
        )
        return {
            **learned,
            "stump_features_": feature.astype(np.int64),
            "stump_thresholds_": threshold,
            "stump_signs_": sign,
        }

    # --------------------------------------------------------------------------------- scores

    def _scores(self, instances: Any) -> Floats:
        """Return the scores F of instances, positive for the positive class."""
        return np.column_stack(
            [
                self._weak_values(instances, output) @ coef[: self._n_learners(output)] + constant
                for output, (coef, constant) in enumerate(
                    zip(self.estimator_weights_, self.intercept_, strict=True)
                )
            ]
        )

    def _n_learners(self, output: int) -> int:
        weights = self.estimator_weights_
        return weights.shape[1] if self.estimator is None else len(self.estimators_[output])

    def _weak_values(self, instances: Any, output: int) -> Floats:
        """Return the values of the weak learners, a column for each."""
        if self.estimator is None:
            values = as_dense(instances[:, self.stump_features_[output]])
            above = np.where(values > self.stump_thresholds_[output], 1.0, -1.0)
            return np.asarray(above * self.stump_signs_[output])
        values = np.empty((instances.shape[0], self._n_learners(output)))
        for column, learner in zip(values.T, self.estimators_[output], strict=True):
            column[:] = learner.predict(instances)
        return values

    def _of_bags(self, scores: Floats, chunk: Chunk) -> Floats:
        bounds = chunk.starts, chunk.stops
        if self.variant == "average":
            return np.asarray(segment_mean(scores, *bounds))
        if self.variant == "isr":
            return np.asarray(segment_logsumexp(scores, *bounds))
        return log_odds_of_missed(segment_sum(np.logaddexp(0.0, scores), *bounds))

    def _bag_outputs(self, bags: Bags) -> Floats:
        def score(chunk: Chunk) -> Floats:
            return self._of_bags(self._scores(chunk.instances), chunk)

        return self._side * BagSource(bags).concatenate(score)

    def _instance_outputs(self, bags: Bags) -> Floats:
        def score(chunk: Chunk) -> Floats:
            return self._scores(chunk.instances)

        return self._side * BagSource(bags).concatenate(score)

    def __bagwise_tags__(self) -> BagTags:
        has_stumps = self.estimator is None
        return BagTags(
            order_tolerance=1e-6 if has_stumps else 0.05,
            asymmetric=self.variant != "average",
            scale_powers={} if has_stumps else None,
            shift_invariant=has_stumps,
        )


class _Weak:
    """A classifier of scikit-learn as a weak learner."""

    def __init__(self, estimator: Any, instances: Any, sign: Floats) -> None:
        if not has_fit_parameter(estimator, "sample_weight"):
            name = type(estimator).__name__
            msg = f"estimator of MILBoost must take sample_weight in fit. {name} does not."
            raise ValueError(msg)
        self.estimator, self.instances, self.sign = estimator, instances, sign

    def __call__(self, pull: Floats) -> tuple[Any, Floats]:
        """Return the classifier fitted with the sizes of ``pull`` as weights, and its values."""
        size = np.abs(pull)
        weight = size * (len(size) / size.sum())
        learner = clone(self.estimator).fit(self.instances, self.sign, sample_weight=weight)
        return learner, np.asarray(learner.predict(self.instances), np.float64)


def _constant(score: float) -> BoostResult:
    return BoostResult(
        objective=0.0, lower_bound=0.0, residual=0.0, status=Status.CONVERGED, n_iter=0,
        x=np.empty(0), intercept=score, learners=(),
    )  # fmt: skip


def _ended(result: BoostResult) -> Certificate:
    """Return the certificate: the number of rounds belongs to the method, so they are an end."""
    return replace(result.certificate, status=Status.CONVERGED)


def _padded(rows: list[Floats], value: float) -> Floats:
    length = max(map(len, rows))
    return np.array([np.r_[row, np.full(length - len(row), value)] for row in rows])
