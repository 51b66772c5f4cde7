"""MInD: bags as their dissimilarities from prototype bags (Cheplygina, Tax and Loog 2015)."""

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils.validation import has_fit_parameter

from bagwise._arrays import Floats, Integers
from bagwise._compat import HasMethods, Interval, StrOptions
from bagwise.bags import Bags, bag_digests
from bagwise.base import (
    DISTANCE_ROUNDING,
    BagClassifier,
    BagTags,
    MetricParameter,
    Summary,
    Target,
    documented,
    one_vs_rest,
    problem_key,
    shared_by,
)
from bagwise.embedding._row_svm import RowSVM, solve_row_svm
from bagwise.kernels import directed, hausdorff
from bagwise.solvers import Certificate

_BLOCK = 1 << 22  # dissimilarities that are computed at a time, five kinds of each
_POOLED = {"minmin": "min", "meanmin": "average", "maxmin": "max"}


@documented
class MInD(MetricParameter, BagClassifier):
    r"""A linear classifier, or any other, on the dissimilarities of a bag from training bags.

    With :math:`\delta(x, P) = \min_{z \in P} \delta(x, z)`, the distance from an instance to the
    nearest one of a bag, a bag B of n instances differs from a prototype P by

    .. math::

        d(B, P) = \frac1n \sum_{x \in B} \delta(x, P), \quad
        \min_{x \in B} \delta(x, P) \quad \text{or} \quad \max_{x \in B} \delta(x, P)

    (``"meanmin"``, ``"minmin"``, ``"maxmin"``). The prototypes :math:`P_1, \dots, P_q` are the
    training bags, with weights :math:`u_k` that are their :math:`v_k`, or some of the training
    bags, with :math:`u_k = 1`. A bag becomes the vector

    .. math::

        s_k(B) = \sqrt{\frac{u_k}{\sum_l u_l}} \, \frac{d(B, P_k)}{\bar d}, \quad
        \bar d = \frac{\sum_{i, k} v_i u_k \, d(B_i, P_k)}{\sum_i v_i \sum_k u_k},

    so that units do not matter, nor how many prototypes there are. On these vectors, with weights
    :math:`v_i` of the bags, a support vector machine solves the convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_i v_i \bigl(1 - y_i (\langle w, s(B_i) \rangle + b)\bigr)_+ .

    The sum is not divided by anything. More than two classes are learned one against the rest. Bags
    get scores, instances do not.

    Parameters
    ----------
    |C|
        With dissimilarities that are divided by their mean, but not by the root of the number of
        prototypes, it would be ``C`` over that number.
    dissimilarity : {"meanmin", "minmin", "maxmin"}
        What the distances of instances come to; see above.
    direction : {"to", "from", "mean", "pooled"}
        Whose instances: those of the bag, ``"to"`` the prototype, or the other way round,
        ``"from"`` it. ``"mean"`` is the mean of both numbers. ``"pooled"`` takes the instances of
        both bags together, so that ``"maxmin"`` is the Hausdorff distance and ``"meanmin"`` the
        average one.
    |metric|
    n_prototypes : int or None
        How many training bags are prototypes: two that differ most, then always the one that
        differs most from those that there are. None: all training bags.
    estimator : classifier of scikit-learn or None
        What learns from the vectors, in the place of the support vector machine; then ``C``,
        ``tol`` and ``max_iter`` mean nothing. Its ``fit`` takes ``sample_weight``, or all weights
        are the same.
    |class_weight, tol|
    max_iter : int
        Most iterations of the solver: steps that change two multipliers.
    n_jobs : int or None
        Threads for the one-vs-rest problems. The dissimilarities use all processors regardless.
    |verbose: fit|

    Attributes
    ----------
    prototypes_ : ndarray of int of shape (n_prototypes,)
        Which training bags are prototypes; those of weight 0 are not counted.
    prototype_instances_ : ndarray or CSR array of shape (n_prototype_instances, n_features)
        Their instances, bag after bag.
    prototype_offsets_ : ndarray of int of shape (n_prototypes + 1,)
        At which of these rows each prototype begins and ends.
    coef_ : ndarray of shape (n_outputs, n_prototypes)
        Weights of the dissimilarities as they are: their scale is in it. Not with an ``estimator``.
    intercept_ : ndarray of shape (n_outputs,)
        Constant of the decision function. Not with an ``estimator``.
    intercept_shift_ : ndarray of shape (n_outputs,)
        What it was moved by, if the optimum gives all training bags one of two labels; else 0. Not
        with an ``estimator``.
    factors_ : ndarray of shape (n_outputs, n_prototypes)
        What dissimilarities are multiplied by before ``estimators_`` see them; only with an
        ``estimator``.
    estimators_ : list
        The classifier of each output; only with an ``estimator``.
    |classes_, multilabel_|
    |n_features_in_, feature_names_in_, result_, n_iter_|

    See Also
    --------
    MILES : Similarities to single instances, of which few are selected.
    bagwise.neighbors.CitationKNN : The nearest bags vote.

    Notes
    -----
    The model holds the prototypes, and so does its file. Files hold the support vector machine; a
    model with an ``estimator`` can be kept with skops.

    A bag differs from itself by 0, as no new bag does. That is part of the method.

    The default of ``C`` gives an accuracy of 0.86 on standardised Musk1 (10-fold cross-validation),
    100 gives 0.83.

    References
    ----------
    .. [1] V. Cheplygina, D. M. J. Tax, M. Loog: Multiple instance learning with bag
       dissimilarities. Pattern Recognition 48(1), 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.embedding import MInD
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = MInD().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="bags are known by how they differ from others",
        objective="hinge loss of vectors of dissimilarities from training bags",
        cost="distances of $N^2$ pairs, one problem of $m$ rows",
    )

    _convergence_advice = "lower C, or raise max_iter or tol"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "dissimilarity": [StrOptions({"meanmin", "minmin", "maxmin"})],
        "direction": [StrOptions({"to", "from", "mean", "pooled"})],
        **MetricParameter._parameter_constraints,
        "n_prototypes": [Interval(Integral, 1, None, closed="left"), None],
        "estimator": [HasMethods(["fit", "predict"]), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: float = 1000.0,
        *,
        dissimilarity: str = "meanmin",
        direction: str = "to",
        metric: Any = "sqeuclidean",
        n_prototypes: int | None = None,
        estimator: Any = None,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000_000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.dissimilarity = dissimilarity
        self.direction = direction
        self.metric = metric
        self.n_prototypes = n_prototypes
        self.estimator = estimator
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------------------- learning

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        share = shared_by(bags, room_for=self) if isinstance(self.metric, str) else None
        if share is None:
            among = self._between(bags)
        else:
            key = ("dissimilarities", self.dissimilarity, self.direction, self.metric)
            whole = share.of_whole(key, self._between)
            among = whole[np.ix_(share.index, share.index)]
        chosen = self._chosen(bags, among)
        views = self._views(among, chosen, cost_weight)
        solve = self._solve_svm if self.estimator is None else self._fit_estimator
        starts = None if share is None else share.starts(problem_key(self))
        learned = one_vs_rest(
            lambda output: solve(views[output], target.signs[:, output], starts),
            target.n_outputs,
            self.n_jobs,
        )
        prototypes = bags if len(chosen) == len(bags) else bags[chosen]
        if share is not None:
            places = share.index[chosen]
            share.remember(chosen, whole, places, np.ones((1, len(places))), of_bags=True)
        return {
            "prototypes_": chosen,
            "prototype_instances_": prototypes.instances,
            "prototype_offsets_": prototypes.offsets,
            **self._fitted(learned, views),
        }

    def _chosen(self, bags: Bags, among: Floats) -> Integers:
        """Return which training bags are prototypes."""
        if self.n_prototypes is None or self.n_prototypes >= len(bags):
            return np.arange(len(bags))
        return _far_apart(among, self.n_prototypes, bag_digests(bags), bags.dtype)

    @staticmethod
    def _views(among: Floats, chosen: Integers, cost_weight: Floats) -> "list[_View]":
        """Return the vectors of each output: the same, unless weights of labels differ."""
        found, is_all = among[:, chosen], len(chosen) == len(among)

        def view(weight: Floats) -> _View:
            return _View(found, weight, weight if is_all else np.ones(len(chosen)))

        first = view(cost_weight[:, 0])
        return [first if (w == first.weight).all() else view(w) for w in cost_weight.T]

    def _solve_svm(self, view: "_View", sign: Floats, starts: Any) -> RowSVM:
        return solve_row_svm(
            view.gram, sign, self.C * view.weight,
            starts=starts, tol=self.tol, max_iter=self.max_iter,
        )  # fmt: skip

    def _fit_estimator(self, view: "_View", sign: Floats, starts: Any) -> Any:
        if (sign == sign[0]).all():
            return DummyClassifier().fit(view.rows, sign)
        learner = clone(self.estimator)
        if has_fit_parameter(learner, "sample_weight"):
            return learner.fit(view.rows, sign, sample_weight=view.weight)
        if (view.weight != view.weight[0]).any():
            name = type(learner).__name__
            msg = f"estimator of MInD must take sample_weight in fit for weights. {name} does not."
            raise ValueError(msg)
        return learner.fit(view.rows, sign)

    def _fitted(self, learned: list[Any], views: "list[_View]") -> dict[str, Any]:
        factors = np.array([view.factors for view in views])
        if self.estimator is not None:
            return {"estimators_": learned, "factors_": factors}
        coef = [svm.beta @ view.rows for svm, view in zip(learned, views, strict=True)]
        return {
            "coef_": np.array(coef) * factors,
            "intercept_": np.array([svm.intercept for svm in learned]),
            "result_": Certificate.total([svm.certificate for svm in learned]),
        }

    def _shared_bytes(self, bags: Bags) -> int:
        """See `SharingEstimator`: the dissimilarities between all bags."""
        return 8 * len(bags) ** 2

    # -------------------------------------------------------------------------------- scoring

    @property
    def _threshold_moves(self) -> bool:
        return self.estimator is None

    def _bag_outputs(self, bags: Bags) -> Floats:
        share = shared_by(bags)
        found = None if share is None else share.block(self.prototypes_, of_bags=True)
        if found is None:
            prototypes = Bags(self.prototype_instances_, self.prototype_offsets_)
            step = max(1, _BLOCK // len(prototypes))
            parts = [bags[start : start + step] for start in range(0, len(bags), step)]
            found = np.concatenate([self._between(prototypes, part) for part in parts])
        if self.estimator is None:
            return np.asarray(found @ self.coef_.T + self.intercept_)
        learners = zip(self.estimators_, self.factors_, strict=True)
        return np.column_stack([_scores(learner, found * factors) for learner, factors in learners])

    def _between(self, prototypes: Bags, bags: Bags | None = None) -> Floats:
        """Return the dissimilarities of bags, or of the prototypes themselves, from prototypes.

        The prototypes come first: where distances are centred, theirs is the mean that is taken,
        and what is found of a bag does not depend on the bags beside it.
        """
        metric = self._instance_metric
        sides: tuple[Any, ...] = (*prototypes.segments, *(() if bags is None else bags.segments))
        if self.direction == "pooled":
            pooled: Floats = hausdorff(metric, *sides, only=_POOLED[self.dissimilarity])  # type: ignore[call-overload]
            return pooled.T
        found = directed(metric, *sides)
        if self.dissimilarity == "minmin":
            return found.minmin.T
        is_mean = self.dissimilarity == "meanmin"
        from_prototypes = found.meanmin.T if is_mean else found.maxmin.T
        to_prototypes = found.meanmin_back.T if is_mean else found.maxmin_back.T
        if self.direction == "mean":
            return 0.5 * (to_prototypes + from_prototypes)
        return to_prototypes if self.direction == "to" else from_prototypes

    def __bagwise_tags__(self) -> BagTags:
        if self.estimator is None:
            return BagTags(instance_scores=False, **self._distance_tags())
        return BagTags(instance_scores=False, order_tolerance=0.05)


@dataclass(frozen=True, eq=False)
class _View:
    """The training bags as vectors, under the weights of one output.

    Parameters
    ----------
    found : ndarray of shape (n_bags, n_prototypes)
        Dissimilarities.
    weight : ndarray of shape (n_bags,)
        Weights of the bags.
    prototype_weight : ndarray of shape (n_prototypes,)
        Weights of the prototypes.
    """

    found: Floats
    weight: Floats
    prototype_weight: Floats

    @cached_property
    def factors(self) -> Floats:
        """What each dissimilarity is multiplied by."""
        total = self.prototype_weight.sum()
        mean = self.weight @ self.found @ self.prototype_weight / (self.weight.sum() * total)
        return np.sqrt(self.prototype_weight / total) / (mean if mean > 0 else 1.0)

    @cached_property
    def rows(self) -> Floats:
        """The vectors."""
        return self.found * self.factors

    @cached_property
    def gram(self) -> Floats:
        """Their inner products."""
        return self.rows @ self.rows.T


def _far_apart(among: Floats, number: int, digests: NDArray[np.uint64], dtype: Any) -> Integers:
    """Return bags far from each other: the two that differ most, then the one furthest from all.

    Of several that are as far, the digests decide, so that the order of bags does not.
    """
    apart, rounding = among + among.T, DISTANCE_ROUNDING[dtype]

    def furthest(far: Floats) -> int:
        last = np.flatnonzero(far >= (1.0 - rounding) * far.max())
        return int(last[digests[last].argmin()])

    chosen = [furthest(apart.max(axis=1))]
    nearest = apart[chosen[0]].copy()
    while len(chosen) < number:
        nearest[chosen] = -1.0
        chosen.append(furthest(nearest))
        np.minimum(nearest, apart[chosen[-1]], out=nearest)
    return np.sort(chosen)


def _scores(learner: Any, rows: Floats) -> Floats:
    """Return scores above 0 where a classifier of signs would say 1."""
    if hasattr(learner, "decision_function"):
        return np.asarray(learner.decision_function(rows), np.float64)
    if hasattr(learner, "predict_proba") and len(learner.classes_) > 1:
        return np.asarray(2.0 * learner.predict_proba(rows)[:, 1] - 1.0)
    return np.asarray(learner.predict(rows), np.float64)
