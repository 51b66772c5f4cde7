"""What methods of diverse density share: concepts, their starts, and scores by distance."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Floats, Integers, as_dense
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, BagSource, Chunk
from bagwise.base import (
    AsymmetricClassifier,
    BagTags,
    Target,
    best_threshold,
    density_starts,
    one_vs_rest,
    standards,
)
from bagwise.solvers import (
    Certificate,
    Density,
    DensityResult,
    log_odds,
    log_odds_of_missed,
)

_UNREACHED = 1e9  # a threshold that no bag is above


class ConceptMachine(AsymmetricClassifier):
    r"""Base of classifiers by the distance from one point, with a scale for each feature.

    An instance is positive with probability :math:`p = \exp(-\sum_k s_k^2 (x_k - h_k)^2)` and
    scores as the log odds of it, less a threshold. A subclass says how instances make a bag
    positive, and how h and s are found.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
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
            share = weight / weight.sum()  # so that tol means the same for any weights
            density = Density(rows, bags.offsets, sign, share, self._cause)  # type: ignore[arg-type]
            number = None if self.n_init == "all" else int(self.n_init)
            starts = density_starts(bags, density, number, self.first_scale)
            found = Certificate.lowest(self._search(density, starts))
            threshold = 0.0
            if self.threshold == "learned":
                odds = self._of_bags(density.distances(found.x[None])[0], bags.offsets[:-1])
                threshold = best_threshold(odds, sign, weight)
            return _Concept(
                found.point * unit + center, np.abs(found.scale / unit), threshold,
                _times(found, float(weight.sum())),
            )  # fmt: skip

        concepts = one_vs_rest(solve, target.n_outputs, self.n_jobs)
        return {
            "concepts_": np.array([concept.point for concept in concepts]),
            "scales_": np.array([concept.scale for concept in concepts]),
            "intercept_": -target.side * np.array([concept.threshold for concept in concepts]),
            "result_": Certificate.total([concept.certificate for concept in concepts]),
        }

    # --------------------------------------------------------------------------------- scores

    def _of_bags(self, distance: Floats, starts: Integers) -> Floats:
        """Return the log odds of bags from the squared distances of their instances."""
        if self._cause == "most_likely":
            return log_odds(np.minimum.reduceat(distance, starts))
        with np.errstate(under="ignore"):
            missed = np.log(-np.expm1(-np.maximum(distance, 1e-12)))
        return log_odds_of_missed(-np.add.reduceat(missed, starts))

    def _distances(self, instances: Any, output: int) -> Floats:
        apart = (as_dense(instances) - self.concepts_[output]) * self.scales_[output]
        return np.asarray(np.einsum("ij,ij->i", apart, apart))

    def _bag_outputs(self, bags: Bags) -> Floats:
        def score(chunk: Chunk) -> Floats:
            return np.column_stack(
                [
                    self._of_bags(self._distances(chunk.instances, k), chunk.starts)
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
    certificate: Certificate


def _everywhere(n_features: int, *, is_positive: bool) -> _Concept:
    """Return the concept that all instances are at, with a threshold below or above them."""
    nothing = np.zeros(n_features)
    threshold = 0.0 if is_positive else _UNREACHED
    return _Concept(nothing, nothing, threshold, Certificate.solved())


def _times(found: DensityResult, weight: float) -> Certificate:
    """Return the certificate of a mean over weights as that of the sum."""
    return replace(
        found.certificate,
        objective=weight * found.objective,
        history=weight * found.history,
        ends=weight * found.ends,
    )
