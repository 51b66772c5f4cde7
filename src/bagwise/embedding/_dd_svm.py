"""DD-SVM: bags as their distances from maxima of diverse density (Chen and Wang 2004)."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Floats, as_dense
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, BagSource, Chunk
from bagwise.base import (
    BagClassifier,
    BagTags,
    Summary,
    Target,
    density_starts,
    digest,
    documented,
    one_vs_rest,
    shared_by,
    standards,
)
from bagwise.embedding._row_svm import RowSVM, solve_row_svm
from bagwise.kernels import InstanceKernel
from bagwise.solvers import Certificate, Density, concept_distances, maximize_density

_FIRST_SCALE = 0.1  # of all features at the start, in units of their standard deviation
_TOL = 1e-2  # relative decrease of the objective at which a search ends
_MOST_STEPS = 30  # of a search
_ALIKE = 0.05  # maxima that differ by less, relatively, in point and scales are one


@documented
class DDSVM(BagClassifier):
    r"""Support vector machine on the distances of a bag from maxima of diverse density.

    For each of the two classes in turn, local maxima of the diverse density are looked for: points
    h with scales s of the features that the bags of this class come near to and the others do not
    (see `bagwise.density.DiverseDensity`, whose noisy or it is). They are the prototypes. Those are
    left out whose logarithm of the density is below the middle between the highest and the lowest
    one found, and those that differ from a better one by less than 5 % in both h and s. A bag B
    becomes the vector

    .. math::

        z_k(B) = \frac{1}{\sigma_k \sqrt q} \min_{x \in B}
        \Bigl(\sum_l s_{kl}^2 (x_l - h_{kl})^2\Bigr)^{1/2}

    of its distances from the q prototypes, with :math:`\sigma_k` the standard deviation over the
    training bags. On these vectors a support vector machine with the map :math:`\phi` of the kernel
    :math:`\exp(-\gamma \|z - z'\|^2)` and weights :math:`v_i` of the bags solves the convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_i v_i \bigl(1 - y_i (\langle w, \phi(z(B_i)) \rangle + b)\bigr)_+ .

    The sum is not divided by anything. More than two classes are learned one against the rest, each
    with prototypes of its own. Both classes of a problem are treated alike. Bags get scores,
    instances do not.

    Parameters
    ----------
    |C|
    gamma : float
        Coefficient of the kernel between vectors. These vary by 1 in all, so it needs no rule.
    n_candidates : int
        Searches for maxima in each of the two classes. They start at those instances of its bags
        where the density is highest.
    |class_weight, tol|
    max_iter : int
        Most iterations of the solver: steps that change two multipliers.
    |n_jobs, verbose: fit|

    Attributes
    ----------
    prototypes_ : ndarray of shape (n_prototypes, n_features)
        The points h of all outputs.
    scales_ : ndarray of shape (n_prototypes, n_features)
        Their scales s, not negative.
    prototype_outputs_ : ndarray of int of shape (n_prototypes,)
        The output that each belongs to.
    prototype_signs_ : ndarray of shape (n_prototypes,)
        1 if the density was that of bags with the label of the output, -1 if of those without.
    units_ : ndarray of shape (n_prototypes,)
        What distances are divided by, :math:`\sigma_k \sqrt q`.
    support_ : ndarray of int of shape (n_support,)
        Which training bags carry the decision function; bags of weight 0 are not counted.
    support_vectors_ : ndarray of shape (n_support, n_prototypes)
        Their vectors, for the prototypes of all outputs.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Their coefficients.
    |intercept_, intercept_shift_, classes_, multilabel_|
    result_ : Certificate
        Objective above for the prototypes that were found, duality gap, how the solver ended, and
        the seconds of the whole fit.
    |n_features_in_, feature_names_in_, n_iter_|

    See Also
    --------
    MILES : Similarities to all instances, of which few are selected.
    bagwise.density.DiverseDensity : The best maximum alone.

    Notes
    -----
    The searches of a class go side by side, in products of matrices. They are short: one ends when
    a step lowers minus the logarithm of the density by less than 1 %, or after 30 steps.

    References
    ----------
    .. [1] Y. Chen, J. Z. Wang: Image categorization by learning and reasoning with regions. Journal
       of Machine Learning Research 5, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.embedding import DDSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = DDSVM().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="bags of a class come near to some points, and others do not",
        objective="hinge loss of vectors of distances from maxima of diverse density",
        cost=r"products of $N \times d$ and $d \times r$ in few iterations, for $r$ candidates",
    )

    _convergence_advice = "lower C, or raise max_iter or tol"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: float = 10.0,
        *,
        gamma: float = 1.0,
        n_candidates: int = 20,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000_000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.n_candidates = n_candidates
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------------------- learning

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        share = shared_by(bags)

        def solve(output: int) -> tuple[_Embedding, RowSVM]:
            sign, weight = target.signs[:, output], cost_weight[:, output]
            if share is None:
                found = self._embedding(bags, sign, weight)
            else:
                key = "prototypes", self.n_candidates, digest(sign, weight)
                found = share.of_selection(key, lambda: self._embedding(bags, sign, weight))
            gram = self._kernel.gram(found.vectors)
            cost = self.C * weight
            svm = solve_row_svm(gram, sign, cost, starts=None, tol=self.tol, max_iter=self.max_iter)
            return found, svm

        embeddings, machines = zip(*one_vs_rest(solve, target.n_outputs, self.n_jobs), strict=True)
        beta = np.array([svm.beta for svm in machines])
        support = np.flatnonzero(beta.any(axis=0))
        vectors = np.hstack([found.vectors for found in embeddings])
        sizes = [len(found.units) for found in embeddings]
        return {
            "prototypes_": np.concatenate([found.points for found in embeddings]),
            "scales_": np.concatenate([found.scales for found in embeddings]),
            "prototype_outputs_": np.repeat(np.arange(len(sizes)), sizes),
            "prototype_signs_": np.concatenate([found.signs for found in embeddings]),
            "units_": np.concatenate([found.units for found in embeddings]),
            "support_": support,
            "support_vectors_": vectors[support],
            "dual_coef_": beta[:, support],
            "intercept_": np.array([svm.intercept for svm in machines]),
            "result_": Certificate.total([svm.certificate for svm in machines]),
        }

    def _embedding(self, bags: Bags, sign: Floats, weight: Floats) -> "_Embedding":
        """Return the prototypes of a binary problem, and the bags as vectors."""
        width = bags.n_features
        counted = sign[weight > 0]  # a class of weight 0 is none
        if (counted == counted[0]).all():
            none = np.empty((0, width))
            return _Embedding(none, none, np.empty(0), np.empty(0), np.empty((len(bags), 0)))
        instances = as_dense(bags.instances)
        center, unit = standards(instances, np.repeat(weight, bags.sizes))
        rows = (instances - center) / unit
        found = [self._maxima(bags, rows, side * sign, weight) for side in (1.0, -1.0)]
        points, scales = np.split(np.concatenate(found), 2, axis=1)
        points, scales = points * unit + center, np.abs(scales / unit)
        apart = _distances(bags, points, scales)
        units = standards(apart, weight)[1] * np.sqrt(len(points))
        signs = np.repeat([1.0, -1.0], [len(side) for side in found])
        return _Embedding(points, scales, signs, units, apart / units)

    def _maxima(self, bags: Bags, rows: Floats, sign: Floats, weight: Floats) -> Floats:
        """Return maxima of the density that are high, and different from each other."""
        density = Density(rows, bags.offsets, sign, weight / weight.sum())
        starts = density_starts(bags, density, self.n_candidates, _FIRST_SCALE)
        results = maximize_density(density, starts, tol=_TOL, max_iter=_MOST_STEPS)
        values = np.array([result.objective for result in results])
        is_high = values <= 0.5 * (values.min() + values.max())
        concepts = np.array([np.r_[result.point, np.abs(result.scale)] for result in results])
        order = np.argsort(values, kind="stable")
        return _different(concepts[order[is_high[order]]])

    def _shared_bytes(self, bags: Bags) -> int:
        """See `SharingEstimator`: the prototypes of a training set, and its vectors."""
        return int(16 * self.n_candidates * (2 * bags.n_features + len(bags)))

    # -------------------------------------------------------------------------------- scoring

    @property
    def _kernel(self) -> InstanceKernel:
        return InstanceKernel("rbf", gamma=self.gamma)

    @property
    def _threshold_moves(self) -> bool:
        return True

    def _bag_outputs(self, bags: Bags) -> Floats:
        vectors = _distances(bags, self.prototypes_, self.scales_) / self.units_
        scores = np.empty((len(bags), len(self.intercept_)))
        for output, coef in enumerate(self.dual_coef_):
            own = self.prototype_outputs_ == output
            scores[:, output] = self._kernel.expand(
                vectors[:, own], self.support_vectors_[:, own], coef[None]
            )[:, 0]
        return scores + self.intercept_

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(
            order_tolerance=0.05, instance_scores=False, scale_powers={}, shift_invariant=True
        )


@dataclass(frozen=True, eq=False)
class _Embedding:
    """The prototypes of a binary problem, and the training bags as vectors.

    Parameters
    ----------
    points, scales : ndarray of shape (n_prototypes, n_features)
        The prototypes.
    signs, units : ndarray of shape (n_prototypes,)
        The side that each is of, and what distances from it are divided by.
    vectors : ndarray of shape (n_bags, n_prototypes)
        The bags.
    """

    points: Floats
    scales: Floats
    signs: Floats
    units: Floats
    vectors: Floats


def _distances(bags: Bags, points: Floats, scales: Floats) -> Floats:
    """Return the distance of the nearest instance of each bag from each prototype."""
    center = points.mean(axis=0) if len(points) else np.zeros(bags.n_features)
    concepts = np.hstack([points - center, scales])

    def nearest(chunk: Chunk) -> Floats:
        rows = as_dense(chunk.instances) - center
        far = concept_distances(rows, rows * rows, concepts)
        return np.sqrt(np.minimum.reduceat(far, chunk.starts, axis=1)).T

    found: Floats = BagSource(bags).concatenate(nearest)
    return found


def _different(concepts: Floats) -> Floats:
    """Return concepts without those that are like an earlier one in point and scales."""
    halves = np.split(concepts, 2, axis=1)
    lengths = [np.linalg.norm(half, axis=1) for half in halves]
    kept: list[int] = []
    for k in range(len(concepts)):
        is_alike = np.ones(len(kept), np.bool_)
        for half, length in zip(halves, lengths, strict=True):
            apart = np.linalg.norm(half[kept] - half[k], axis=1)
            is_alike &= apart <= _ALIKE * np.maximum(length[kept], length[k])
        if not is_alike.any():
            kept.append(k)
    return concepts[kept]
