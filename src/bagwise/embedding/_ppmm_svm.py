"""PPMM kernel: bags as powers of the posteriors of a mixture (Wang, Yang and Zha 2008)."""

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from bagwise._arrays import Floats, Integers, as_dense
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, BagSource, Chunk, distinct_instances, segment_mean, segment_sum
from bagwise.base import (
    BagClassifier,
    BagTags,
    Summary,
    Target,
    dealt_folds,
    digest,
    documented,
    one_vs_rest,
    ranked_right,
    shared_by,
    standards,
)
from bagwise.embedding._row_svm import RowSVM, solve_row_svm
from bagwise.solvers import Certificate, Mixture, solve_mixture

_TOL, _MOST_STEPS = 1e-4, 100  # of the mixture
_POWERS = np.linspace(0.1, 3.0, 30)
_FEW_POWERS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
_N_FOLDS = 3  # of bags that are left out
_FOLD_TOL, _FOLD_STEPS = 1e-6, 10_000_000  # at most, so that no early stop changes the power
_RESOLUTION = 1e-5  # scores that differ by less are equal
_EQUAL = 1e-9  # shares of pairs that differ by less are equal
_LEAST = 1e-300  # sum of posteriors


@documented
class PPMMSVM(BagClassifier):
    r"""Support vector machine with the p-posterior mixture-model kernel between bags.

    A mixture of q Gaussians with diagonal covariances is fitted to the instances of the training
    bags, without their labels. :math:`A_k(B) = \sum_{x \in B} P(k \mid x)` is how many instances of
    a bag are those of component k. Bags are compared by

    .. math::

        K(B, B') = \langle z(B), z(B') \rangle, \quad
        z_k(B) = \frac{A_k(B)^p}{\bigl(\sum_l A_l(B)^{2 p}\bigr)^{1/2}} ,

    where a power p below 1 stresses what is rare in a bag, and one above 1 what is frequent. With
    weights :math:`v_i` of the bags a support vector machine solves the convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_i v_i \bigl(1 - y_i (\langle w, z(B_i) \rangle + b)\bigr)_+ .

    The sum is not divided by anything. More than two classes are learned one against the rest, with
    one mixture. Bags get scores, instances do not.

    Parameters
    ----------
    |C|
    n_components : int
        Number q of Gaussians; there are fewer if there are fewer distinct instances.
    power : float or {"left_out", "aligned"}
        The power p. ``"left_out"`` takes, of 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2 and 3, the one by
        which bags are ranked best that are left out of the machine, though not of the mixture, in
        three folds; of equals, and without such folds, that of the highest alignment.
        ``"aligned"`` takes, of 0.1, 0.2 and so on to 3, the one with the highest alignment of
        kernel and labels on the training bags,
        :math:`\sum_{ij} v_i v_j K_{ij} y_i y_j / (\sum_{ij} v_i v_j K_{ij}^2)^{1/2}`, as in [1]_.
    min_variance : float
        The least variance of a component, in units of the variance of each feature.
    |tol|
    max_iter : int
        Most iterations of the solver: steps that change two multipliers.
    random_state : int, RandomState or None
        Seed of the instances that the Gaussians start from.
    |n_jobs, verbose: fit|

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        The means of the Gaussians.
    variances_ : ndarray of shape (n_components, n_features)
        Their variances.
    shares_ : ndarray of shape (n_components,)
        Their probabilities.
    powers_ : ndarray of shape (n_outputs,)
        The power p of each output.
    coef_ : ndarray of shape (n_outputs, n_components)
        Weights w.
    |intercept_, intercept_shift_, classes_, multilabel_|
    result_ : Certificate
        Objective above for the mixture that was found, duality gap, how the solver ended, and the
        seconds of the whole fit.
    |n_features_in_, feature_names_in_, n_iter_|

    See Also
    --------
    bagwise.svm.MIKernelSVM : Compares all pairs of instances.
    MInD : Dissimilarities from training bags.

    Notes
    -----
    Expectation and maximisation start at instances that are drawn by their values, so that the
    order of bags and instances makes no difference. They end when a step lowers minus the mean log
    likelihood by less than 1e-4, relatively, or after 100 steps.

    A weight counts in the mixture as well, as a repetition of the bag would. There is no
    ``class_weight``, which would not be the same there.

    Bags that are predicted have no part in the mixture.

    References
    ----------
    .. [1] H.-Y. Wang, Q. Yang, H. Zha: Adaptive p-posterior mixture-model kernels for multiple
       instance learning. ICML 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.embedding import PPMMSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = PPMMSVM(n_components=10, random_state=0).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="bags of a class have alike shares of kinds of instances",
        objective="hinge loss of vectors of shares, as a mixture of Gaussians finds them",
        cost=r"products of $N \times d$ and $d \times q$ in each step, for $q$ Gaussians",
    )

    _convergence_advice = "lower C, or raise max_iter or tol"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "power": [Interval(Real, 0, None, closed="neither"), StrOptions({"left_out", "aligned"})],
        "min_variance": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: float = 10.0,
        *,
        n_components: int = 100,
        power: Any = "left_out",
        min_variance: float = 0.3,
        tol: float = 1e-6,
        max_iter: int = 10_000_000,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.n_components = n_components
        self.power = power
        self.min_variance = min_variance
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------------------- learning

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        share = shared_by(bags)
        if share is None:
            mixture = self._mixture(bags, bag_weight, seed)
        else:
            key = "mixture", self.n_components, self.min_variance, seed, digest(bag_weight)
            mixture = share.of_selection(key, lambda: self._mixture(bags, bag_weight, seed))
        counts = _counts(bags, mixture)
        along = _distances(bags, mixture) if self.power == "left_out" else None

        def solve(output: int) -> tuple[float, Floats, RowSVM]:
            sign, weight = target.signs[:, output], cost_weight[:, output]
            power = self.power
            if along is not None:
                counted = np.where(weight > 0, sign, 0.0)
                fold, n_distinct = dealt_folds(along, counted, _N_FOLDS)
                if min(n_distinct) > 1:
                    power = self._best_ranked(counts, sign, weight, fold)
            if isinstance(power, str):
                power = max(_POWERS, key=lambda p: _alignment(_vectors(counts, p), sign, weight))
            vectors = _vectors(counts, power)
            svm = solve_row_svm(
                vectors @ vectors.T, sign, self.C * weight,
                starts=None, tol=self.tol, max_iter=self.max_iter,
            )  # fmt: skip
            return float(power), svm.beta @ vectors, svm

        found = one_vs_rest(solve, target.n_outputs, self.n_jobs)
        powers, coef, machines = zip(*found, strict=True)
        return {
            "means_": mixture.means,
            "variances_": mixture.variances,
            "shares_": mixture.shares,
            "powers_": np.array(powers),
            "coef_": np.array(coef),
            "intercept_": np.array([svm.intercept for svm in machines]),
            "result_": Certificate.total([svm.certificate for svm in machines]),
        }

    def _best_ranked(self, counts: Floats, sign: Floats, weight: Floats, fold: Integers) -> float:
        """Return the power by which bags are ranked best that are left out of the machine."""

        def merits(power: float) -> tuple[float, float]:
            vectors = _vectors(counts, power)
            gram, scores = vectors @ vectors.T, np.zeros(len(sign))
            for k in np.unique(fold):
                out, some = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
                svm = solve_row_svm(
                    gram[np.ix_(some, some)], sign[some], self.C * weight[some],
                    starts=None, tol=min(self.tol, _FOLD_TOL), max_iter=_FOLD_STEPS,
                )  # fmt: skip
                scores[out] = gram[np.ix_(out, some)] @ svm.beta + svm.intercept
            ranked = ranked_right(scores, sign, weight, _RESOLUTION)
            return ranked, _alignment(vectors, sign, weight)

        found = {power: merits(power) for power in _FEW_POWERS}
        best = max(ranked for ranked, _ in found.values()) - _EQUAL
        equals = [power for power, (ranked, _) in found.items() if ranked >= best]
        return max(equals, key=lambda power: found[power][1])

    def _settle(self) -> None:
        super()._settle()
        self.power = float(self.powers_[0])

    def _mixture(self, bags: Bags, bag_weight: Floats, seed: int) -> Mixture:
        """Return a mixture of the instances; a weight counts as a repetition."""
        instances, weight = as_dense(bags.instances), np.repeat(bag_weight, bags.sizes)
        center, unit = standards(instances, weight)
        rows = (instances - center) / unit
        chosen = distinct_instances(bags, self.n_components, seed)[: self.n_components]
        k = len(chosen)
        start = Mixture(rows[chosen], np.ones((k, rows.shape[1])), np.full(k, 1.0 / k))
        found = solve_mixture(
            rows, start, weight=weight,
            min_variance=self.min_variance, tol=_TOL, max_iter=_MOST_STEPS,
        ).mixture  # fmt: skip
        return Mixture(found.means * unit + center, found.variances * unit**2, found.shares)

    def _shared_bytes(self, bags: Bags) -> int:
        """See `SharingEstimator`: the mixture of a training set."""
        return int(16 * self.n_components * bags.n_features)

    # -------------------------------------------------------------------------------- scoring

    @property
    def _threshold_moves(self) -> bool:
        return True

    def _bag_outputs(self, bags: Bags) -> Floats:
        counts = _counts(bags, Mixture(self.means_, self.variances_, self.shares_))

        def outputs() -> Iterator[Floats]:
            for power, coef in zip(self.powers_, self.coef_, strict=True):
                yield _vectors(counts, power) @ coef

        return np.column_stack(list(outputs())) + self.intercept_

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(instance_scores=False, scale_powers={}, shift_invariant=True)


def _counts(bags: Bags, mixture: Mixture) -> Floats:
    """Return how many instances of each bag are those of each component."""
    center = mixture.means.mean(axis=0)
    moved = Mixture(mixture.means - center, mixture.variances, mixture.shares)

    def count(chunk: Chunk) -> Floats:
        posteriors = moved.posteriors(as_dense(chunk.instances) - center)
        return np.asarray(segment_sum(posteriors, chunk.starts, chunk.stops))

    found: Floats = BagSource(bags).concatenate(count)
    return found


def _distances(bags: Bags, mixture: Mixture) -> Floats:
    """Return the mean squared distance of the instances of each bag from the mean of the mixture.

    It is in units of the standard deviations of the features.
    """
    center = mixture.shares @ mixture.means
    unit = np.sqrt(mixture.shares @ (mixture.variances + (mixture.means - center) ** 2))

    def far(chunk: Chunk) -> Floats:
        apart = (as_dense(chunk.instances) - center) / unit
        square = np.einsum("ij,ij->i", apart, apart) / len(center)
        return np.asarray(segment_mean(square, chunk.starts, chunk.stops))

    return np.asarray(BagSource(bags).concatenate(far))


def _vectors(counts: Floats, power: float) -> Floats:
    """Return powers of counts, divided by the length of each row."""
    logs = power * np.log(np.maximum(counts, _LEAST))
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(powers / np.linalg.norm(powers, axis=1, keepdims=True))


def _alignment(vectors: Floats, sign: Floats, weight: Floats) -> float:
    """Return the alignment of the kernel of vectors with that of labels, up to a factor."""
    pull = (weight * sign) @ vectors
    size = np.linalg.norm(vectors.T @ (weight[:, None] * vectors))
    return float(pull @ pull / size) if size > 0 else 0.0
