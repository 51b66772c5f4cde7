"""What support vector machines on bags share: a kernel between instances, exact or approximated."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, rows_of, scan_max, segment_max
from bagwise.base import (
    MAP_CONSTRAINTS,
    AsymmetricClassifier,
    BagClassifier,
    BagTags,
    FeatureMap,
    KernelParameters,
    Share,
    Target,
    expand,
    make_map,
    one_vs_rest,
    shared_by,
)
from bagwise.kernels import FORMULAS
from bagwise.solvers import Certificate
from bagwise.svm.machinery._alternation import Alternation, alternate
from bagwise.svm.machinery._pass_trainer import MANY_VALUES
from bagwise.svm.machinery._points import BagMean
from bagwise.svm.machinery._problem import Solution, constant_solution
from bagwise.svm.machinery._representation import (
    Representation,
    represent,
    represent_by_passes,
)
from bagwise.svm.machinery._shared_gram import represent_shared
from bagwise.svm.machinery._starts import StartCount, has_random_starts
from bagwise.svm.machinery._trainer import PointTrainer, Trainer

#: Bytes, or text like "512MB".
MEMORY_CONSTRAINT: list[Any] = [Interval(Integral, 1, None, closed="left"), str, None]


class KernelMachine(KernelParameters, BagClassifier):
    """Base of classifiers whose instance score is linear in the space of a kernel.

    Parameters that all of them have are described once, in the documentation of `SIL`.
    """

    _convergence_advice = "scale the features, lower C, or raise max_iter or tol"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        **KernelParameters._parameter_constraints,
        "kernel": [StrOptions({*FORMULAS, "precomputed"}), callable],
        **MAP_CONSTRAINTS,
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "cache_size": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approx: str | None = None,
        rank: int = 300,
        class_weight: Any = None,
        cache_size: float = 1000.0,
        tol: float = 1e-6,
        max_iter: int = 10_000_000,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.approx = approx
        self.rank = rank
        self.class_weight = class_weight
        self.cache_size = cache_size
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -------------------------------------------------------------------------------- learning

    n_init: StartCount  # of the methods that alternate
    max_memory: int | str | None = None  # a parameter of methods that read in passes

    def _random_generator(self) -> np.random.Generator:
        """Return the source of all that is random in a fit."""
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _represent(
        self, bags: Bags, bag_weight: Floats, *, means: BagMean | None = None, **solver: Any
    ) -> Representation[PointTrainer]:
        """Return what trains on the instances, and on the means of bags if the method needs them.

        Settings of the solver beyond ``tol`` go to the trainer.
        """
        solver = {"tol": self.tol, **solver}
        kernel = None if self.kernel == "precomputed" else self._resolve_kernel(bags, bag_weight)
        rng = self._random_generator()

        def make(bags: Bags, cache_bytes: float) -> Representation[PointTrainer]:
            return represent(
                bags,
                kernel,
                approx=self.approx,
                rank=self.rank,
                rng=rng,
                means=means,
                cache_bytes=int(cache_bytes),
                solver=solver,
                owner=type(self).__name__,
            )

        share, cache_bytes = self._share(bags), self.cache_size * 1e6
        if share is None or kernel is None:
            return make(bags, cache_bytes)
        return represent_shared(
            share, kernel, means, solver, make, cache_bytes=cache_bytes, has_gram=self._is_exact
        )

    @property
    def _is_exact(self) -> bool:
        """Whether machines are trained on inner products, and not on features."""
        return bool(self.kernel != "linear") and self.approx is None

    def _represent_any(
        self, bags: Bags, bag_weight: Floats, *, means: BagMean | None = None, **solver: Any
    ) -> Representation[PointTrainer]:
        """Return the same for a method that needs few inner products: many rows are not copied.

        Whether the instances are read in passes depends on the number of values alone, never on
        where they lie.
        """
        if not self._reads_in_passes(bags):
            return self._represent(bags, bag_weight, means=means, **solver)
        kernel = self._resolve_kernel(bags, bag_weight)
        if kernel.name == "linear":
            feature_map = FeatureMap(kernel)
        else:
            feature_map = make_map(
                kernel,
                rows_of(bags),
                approx=self.approx,
                rank=self.rank,
                rng=self._random_generator(),
                owner=type(self).__name__,
            )
        return represent_by_passes(
            bags,
            feature_map,
            means=means is not None,
            max_memory=self.max_memory,
            solver={"tol": self.tol, **solver},
        )

    def _reads_in_passes(self, bags: Bags) -> bool:
        """Tell whether instances are many, or have more features than ``cache_size`` has room for.

        Features that the Cholesky factor makes are those of all instances: these are kept.
        """
        if self.kernel == "linear":
            return bags.n_values >= MANY_VALUES
        is_mapped = self.kernel != "precomputed" and self.approx in ("nystroem", "fourier")
        return is_mapped and 8.0 * bags.n_instances * self.rank > 1e6 * self.cache_size

    def _share(self, bags: Bags, *, needs_room: bool = False) -> Share | None:
        """Return what fits on these bags share.

        None outside a search, with a given matrix, and with a kernel that only one fit knows since
        `clone` copies it; with ``needs_room`` also if all of it does not fit in memory.
        """
        share = shared_by(bags, room_for=self if needs_room else None)
        if share is None or not callable(self.kernel):
            return None if self.kernel == "precomputed" else share
        return share if clone(self.kernel, safe=False) is self.kernel else None

    def _shared_bytes(self, bags: Bags) -> int:
        """See `SharingEstimator`: a matrix between all instances and means of bags."""
        return int(bags.dtype.itemsize * (bags.n_instances + len(bags)) ** 2)

    def _solve_outputs(
        self, trainer: Trainer, target: Target, solve: Callable[[int], Solution]
    ) -> list[Solution]:
        """Solve the problem of each output; a label that no bag or every bag has is constant.

        The scores of the solutions are those of the second of two classes, also where the signs
        are not.
        """

        def solve_one(output: int) -> Solution:
            sign = target.signs[:, output]
            if (sign == sign[0]).all():
                return constant_solution(trainer.n_instances, float(sign[0]))
            return solve(output)

        solutions = one_vs_rest(solve_one, target.n_outputs, self.n_jobs)
        return [solution.times(target.side) for solution in solutions]

    def _start_generators(self, n_outputs: int) -> list[np.random.Generator]:
        """Return the sources of the random starts, one for each output."""
        seeds = np.zeros(n_outputs, np.int64)
        if has_random_starts(self.n_init):
            seeds = self._random_generator().integers(2**31, size=n_outputs)
        return [np.random.default_rng(seed) for seed in seeds]

    def _alternate_outputs(
        self, trainer: Trainer, target: Target, problem: Callable[[int], Alternation]
    ) -> list[Solution]:
        """Solve by alternation the problem of each output, from ``n_init`` starts."""
        generators = self._start_generators(target.n_outputs)

        def solve(output: int) -> Solution:
            return alternate(
                problem(output),
                max_iter=self.max_iter,
                tol=self.tol,
                n_init=self.n_init,
                rng=generators[output],
            )

        return self._solve_outputs(trainer, target, solve)

    def _fitted(
        self, representation: Representation[Trainer], solutions: list[Solution]
    ) -> dict[str, Any]:
        """Return the fitted attributes."""
        return {**self._fitted_parts(solutions), **representation.attributes(solutions)}

    @staticmethod
    def _fitted_parts(solutions: list[Solution]) -> dict[str, Any]:
        """Return the fitted attributes that do not depend on the kernel."""
        return {
            "intercept_": np.array([solution.intercept for solution in solutions]),
            "result_": Certificate.total([solution.certificate for solution in solutions]),
        }

    # -------------------------------------------------------------------------------- scoring

    @property
    def _threshold_moves(self) -> bool:
        return True

    def _expand(self, bags: Bags) -> Floats:
        """Return the scores of instances without intercept, of shape (n_instances, n_outputs)."""
        share = self._share(bags)
        scores = None if share is None else share.scores(getattr(self, "dual_coef_", None))
        return expand(self, rows_of(bags)) if scores is None else scores

    def _instance_outputs(self, bags: Bags) -> Floats:
        return self._expand(bags) + self.intercept_

    @property
    def _ordinary(self) -> Any:
        """The support vector machine of scikit-learn with these parameters, if it has them."""
        from sklearn.svm import SVC

        known = self.kernel in ("linear", "poly", "rbf") and self.approx is None
        by_name = not isinstance(self.gamma, str) or self.gamma in ("scale", "auto", "median")
        return SVC(tol=1e-8) if known and by_name else None

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(**self._invariances())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


class MaxRuleMachine(AsymmetricClassifier, KernelMachine):
    """Base of machines that score a bag as its best instance."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        **AsymmetricClassifier._parameter_constraints,
    }

    def _bag_outputs(self, bags: Bags) -> Floats:
        side = self._side
        if hasattr(self, "coef_") and not hasattr(self, "fourier_weights_"):
            coef, intercept = side * self.coef_, side * self.intercept_
            best, _ = scan_max(bags.segments[0], coef, *bags.segments[1:], intercept=intercept)
            return np.asarray(side * best, np.float64)
        offsets = bags.offsets
        return side * segment_max(side * self._instance_outputs(bags), offsets[:-1], offsets[1:])

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(max_rule=True, asymmetric=True, **self._invariances())
