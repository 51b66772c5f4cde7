"""What methods of diverse density share: concepts, their starts, and scores by distance."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Floats, Integers, as_dense
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, BagSource, Chunk, segment_mean, segment_rows
from bagwise.base import (
    AsymmetricClassifier,
    BagTags,
    Target,
    best_threshold,
    dealt_folds,
    density_starts,
    one_vs_rest,
    ranked_right,
    ranking_error,
    standards,
)
from bagwise.solvers import (
    Certificate,
    Density,
    DensityResult,
    key_direction,
    log_odds,
    log_odds_of_missed,
)

_UNREACHED = 1e9  # a threshold that no bag is above
_N_FOLDS = 3  # of bags that are left out
_FEW_STARTS = 1  # of a search without them
_FAR = 100.0  # distance of a far concept, in lengths of the longest instance
_SURE = 2.0  # standard errors that make a far concept better


class ConceptMachine(AsymmetricClassifier):
    r"""Base of classifiers by the distance from one point, with a scale for each feature.

    It is the one of the highest density that is found, or a far one; see `DiverseDensity`.

    An instance is positive with probability :math:`p = \exp(-\sum_k s_k^2 (x_k - h_k)^2)` and
    scores as the log odds of it, less a threshold. A subclass says how instances make a bag
    positive, and how h and s are found.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "search": [StrOptions({"best", "density"})],
        "n_init": [Interval(Integral, 1, None, closed="left"), StrOptions({"all"})],
        "first_scale": [Interval(Real, 0, None, closed="neither")],
        "threshold": [StrOptions({"learned", "half"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        **AsymmetricClassifier._parameter_constraints,
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        search: str = "best",
        n_init: int | str = 10,
        first_scale: float = 0.1,
        threshold: str = "learned",
        class_weight: Any = None,
        pos_label: Any = None,
        tol: float = 1e-4,
        max_iter: int = 500,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.search = search
        self.n_init = n_init
        self.first_scale = first_scale
        self.threshold = threshold
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    @abstractmethod
    def _cause(self) -> str:
        """What makes a bag positive: see `maximize_density`."""

    @abstractmethod
    def _search(self, density: Density, starts: Floats) -> list[DensityResult]:
        """Return what the starts come to."""

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        instances = as_dense(bags.instances)

        def solve(output: int) -> _Concept:
            sign, weight = target.signs[:, output], cost_weight[:, output]
            counted = sign[weight > 0]  # a class of weight 0 is none
            if (counted == counted[0]).all():
                return _everywhere(bags.n_features, is_positive=counted[0] > 0)
            center, unit = standards(instances, np.repeat(weight, bags.sizes))
            rows = (instances - center) / unit
            problem = _Problem(bags, rows, sign, weight)
            found, threshold = self._densest(problem, self.n_init), 0.0
            certificate = _times(found, float(weight.sum()))
            if self.threshold == "learned":
                far = self._far(problem.counted) if self.search == "best" else None
                if far is not None:
                    return replace(far.of_features(center, unit), certificate=certificate)
                odds = self._of_bags(_distances(rows, found.x), bags.offsets[:-1])
                threshold = best_threshold(odds, sign, weight)
            concept = _Concept(found.point, found.scale, threshold, False, certificate)
            return concept.of_features(center, unit)

        concepts = one_vs_rest(solve, target.n_outputs, self.n_jobs)
        return {
            "concepts_": np.array([concept.point for concept in concepts]),
            "scales_": np.array([concept.scale for concept in concepts]),
            "far_": np.array([concept.is_far for concept in concepts]),
            "intercept_": -target.side * np.array([concept.threshold for concept in concepts]),
            "result_": Certificate.total([concept.certificate for concept in concepts]),
        }

    def _densest(self, problem: "_Problem", n_init: int | str) -> DensityResult:
        """Return the concept of the highest density that searches come to."""
        share = problem.weight / problem.weight.sum()  # so that tol means the same for any weights
        density = Density(
            problem.rows, problem.bags.offsets, problem.sign, share,
            self._cause,  # type: ignore[arg-type]
        )  # fmt: skip
        number = None if n_init == "all" else int(n_init)
        starts = density_starts(problem.bags, density, number, self.first_scale)
        return Certificate.lowest(self._search(density, starts))

    def _far(self, problem: "_Problem") -> "_Concept | None":
        """Return a far concept if it ranks bags that are left out clearly better than a search."""
        concept = problem.far_concept()
        if concept is None:
            return None
        fold, n_distinct = problem.folds()
        if min(n_distinct) < 2:
            return None
        margin = _SURE * ranking_error(*n_distinct)

        def ranked(scores_of: Callable[[_Problem, _Problem], Floats | None]) -> float:
            unseen = np.zeros(len(fold))
            for k in np.unique(fold):
                is_out = fold == k
                learned, left_out = (
                    problem.take(np.flatnonzero(mine)) for mine in (~is_out, is_out)
                )
                scores = scores_of(learned, left_out)
                if scores is None:
                    return 0.0
                unseen[is_out] = scores
            return ranked_right(unseen, problem.sign, problem.weight)

        def by_far(learned: _Problem, left_out: _Problem) -> Floats | None:
            along = learned.direction()
            return None if along is None else left_out.best(left_out.rows @ along)

        def by_search(learned: _Problem, left_out: _Problem) -> Floats:
            found = self._densest(learned, _FEW_STARTS)
            return self._of_bags(_distances(left_out.rows, found.x), left_out.bags.offsets[:-1])

        far = ranked(by_far)
        if far <= 0.5 + margin or far <= ranked(by_search) + margin:
            return None
        scores = problem.best(-_distances(problem.rows, np.r_[concept.point, concept.scale]))
        return replace(concept, threshold=best_threshold(scores, problem.sign, problem.weight))

    # --------------------------------------------------------------------------------- scores

    def _is_far(self, output: int) -> bool:
        return bool(self.far_[output]) if hasattr(self, "far_") else False  # models of old

    def _of_bags(self, distance: Floats, starts: Integers, *, is_far: bool = False) -> Floats:
        """Return the log odds of bags from the squared distances of their instances."""
        if is_far or self._cause == "most_likely":
            return log_odds(np.minimum.reduceat(distance, starts))
        with np.errstate(under="ignore"):
            missed = np.log(-np.expm1(-np.maximum(distance, 1e-12)))
        return log_odds_of_missed(-np.add.reduceat(missed, starts))

    def _distances(self, instances: Any, output: int) -> Floats:
        return _distances(instances, np.r_[self.concepts_[output], self.scales_[output]])

    def _bag_outputs(self, bags: Bags) -> Floats:
        def score(chunk: Chunk) -> Floats:
            return np.column_stack(
                [
                    self._of_bags(
                        self._distances(chunk.instances, k), chunk.starts, is_far=self._is_far(k)
                    )
                    for k in range(len(self.concepts_))
                ]
            )

        return self._signed(BagSource(bags).concatenate(score))

    def _instance_outputs(self, bags: Bags) -> Floats:
        def score(chunk: Chunk) -> Floats:
            outputs = range(len(self.concepts_))
            return np.column_stack([log_odds(self._distances(chunk.instances, k)) for k in outputs])

        return self._signed(BagSource(bags).concatenate(score))

    def _signed(self, odds: Floats) -> Floats:
        return np.asarray(self._side * odds + self.intercept_)

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(
            order_tolerance=0.05,
            max_rule=self._cause == "most_likely",
            asymmetric=True,
            scale_powers={},
            shift_invariant=True,
        )


@dataclass(frozen=True)
class _Concept:
    """Point, scales and threshold of a binary problem, and how they were found."""

    point: Floats
    scale: Floats
    threshold: float
    is_far: bool
    certificate: Certificate

    def of_features(self, center: Floats, unit: Floats) -> "_Concept":
        """Return the same for features that have this mean and unit."""
        return replace(self, point=self.point * unit + center, scale=np.abs(self.scale / unit))


@dataclass(frozen=True)
class _Problem:
    """Bags of two signs, with their standardised instances."""

    bags: Bags
    rows: Floats
    sign: Floats
    weight: Floats

    @property
    def counted(self) -> "_Problem":
        """The same without bags of weight 0."""
        return self if self.weight.all() else self.take(np.flatnonzero(self.weight))

    def take(self, bags: Integers) -> "_Problem":
        """Return the same of some of the bags."""
        starts, stops = self.bags.offsets[:-1][bags], self.bags.offsets[1:][bags]
        rows = self.rows[segment_rows(starts, stops)]
        return _Problem(self.bags[bags], rows, self.sign[bags], self.weight[bags])

    def best(self, scores: Floats) -> Floats:
        """Return the highest score of an instance of each bag."""
        return np.asarray(np.maximum.reduceat(scores, self.bags.offsets[:-1]))

    def direction(self) -> Floats | None:
        """Return the direction of likely key instances, None if there is none."""
        positive = np.flatnonzero(self.sign > 0)
        return key_direction(self.rows, self.bags.offsets, positive, self.weight)

    def far_concept(self) -> "_Concept | None":
        """Return the concept that lies far in the direction of likely key instances."""
        along = self.direction()
        if along is None:
            return None
        best = self.best(self.rows @ along)
        spread = float(standards(best[:, None], self.weight)[1][0])
        far = _FAR * float(np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows).max()))
        scale = np.full(len(along), np.sqrt(0.5 / (far * spread)))
        return _Concept(far * along, scale, 0.0, True, Certificate.solved())

    def folds(self) -> tuple[Integers, tuple[int, int]]:
        """Return a fold for each bag, and the numbers of different bags of both signs."""
        along = self.rows @ np.cos(np.arange(self.bags.n_features))
        along += along**2  # bags of one mean differ
        place = segment_mean(along, self.bags.offsets[:-1], self.bags.offsets[1:])
        return dealt_folds(place, self.sign, _N_FOLDS)


def _distances(instances: Any, concept: Floats) -> Floats:
    """Return the squared distance of instances from a concept: its point and, behind it, scales."""
    point, scale = np.split(concept, 2)
    apart = (as_dense(instances) - point) * scale
    return np.asarray(np.einsum("ij,ij->i", apart, apart))


def _everywhere(n_features: int, *, is_positive: bool) -> _Concept:
    """Return the concept that all instances are at, with a threshold below or above them."""
    nothing = np.zeros(n_features)
    threshold = 0.0 if is_positive else _UNREACHED
    return _Concept(nothing, nothing, threshold, False, Certificate.solved())


def _times(found: DensityResult, weight: float) -> Certificate:
    """Return the certificate of a mean over weights as that of the sum."""
    return replace(
        found.certificate,
        objective=weight * found.objective,
        history=weight * found.history,
        ends=weight * found.ends,
    )
