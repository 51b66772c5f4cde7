"""Machines whose score of an instance is an expansion in few vectors; a bag is the mean."""

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise._progress import report
from bagwise.bags import Bags, rows_of, segment_sum
from bagwise.base import BagClassifier, KernelParameters, Target, gamma_attribute
from bagwise.kernels import FORMULAS
from bagwise.solvers import ExpansionResult, KernelMeans
from bagwise.svm.machinery._first_vectors import cluster_centres, drawn_instances


class ExpansionMachine(KernelParameters, BagClassifier):
    """Base of machines with ``expansion_vectors_``, their ``coef_`` and an ``intercept_``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_vectors": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        **KernelParameters._parameter_constraints,
        "kernel": [StrOptions(set(FORMULAS))],
        "coef0": [Interval(Real, 0, None, closed="left")],  # below 0 there may be no minimum
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    @property
    def _threshold_moves(self) -> bool:
        return True

    def _instance_outputs(self, bags: Bags) -> Floats:
        kernel = self._fitted_kernel()
        scores = kernel.expand(rows_of(bags), self.expansion_vectors_, self.coef_)
        return scores + self.intercept_

    def _bag_outputs(self, bags: Bags) -> Floats:
        kernel, offsets = self._fitted_kernel(), bags.offsets
        scores = kernel.expand(rows_of(bags), self.expansion_vectors_, self.coef_)
        sums = segment_sum(scores, offsets[:-1], offsets[1:])
        return sums / bags.sizes[:, None] + self.intercept_


class MultiStartMachine(ExpansionMachine):
    """Base of machines that make first vectors, solve from each such start and keep the best."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ExpansionMachine._parameter_constraints,
        "init": [StrOptions({"random", "kmeans"}), "array-like"],
        "max_memory": [str, Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    _keeps_kernel: ClassVar[bool] = True  # between instances and vectors, if there is room

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        kernel = self._resolve_kernel(bags, bag_weight)
        best: ExpansionResult | None = None
        source: KernelMeans | None = None
        seeds = self._seeds()
        for number, seed in enumerate(seeds, 1):
            report("start", number, total=len(seeds))
            start = self._start(bags, seed)
            if source is None:
                source = KernelMeans(
                    bags, kernel, len(start), max_memory=self.max_memory, keep=self._keeps_kernel
                )
            result = self._solve(source, bags, start, target.signs, self.C * cost_weight)
            if best is None or result.objective < best.objective:
                best = result
        assert best is not None
        return {
            **gamma_attribute(kernel),
            "expansion_vectors_": best.x,
            "coef_": best.coef,
            "intercept_": best.intercept,
            "result_": best.certificate,
        }

    def _n_starts(self) -> int:
        return 1

    def _seeds(self) -> list[int]:
        """Return a seed for each start."""
        random = check_random_state(self.random_state)
        n_starts = self._n_starts() if isinstance(self.init, str) else 1
        return random.randint(2**31 - 1, size=n_starts).tolist()

    def _start(self, bags: Bags, seed: int) -> NDArray[Any]:
        """Return the vectors of one start."""
        if isinstance(self.init, str):
            find = cluster_centres if self.init == "kmeans" else drawn_instances
            return find(bags, self.n_vectors, seed)
        given = np.array(self.init, np.float64)
        is_finite = bool(np.isfinite(given).all())
        if given.shape != (self.n_vectors, bags.n_features) or not is_finite:
            got = f"shape {given.shape}" if is_finite else "NaN or infinity"
            msg = (
                f"init of {type(self).__name__} must hold n_vectors={self.n_vectors} vectors of "
                f"{bags.n_features} finite numbers. Got {got}."
            )
            raise ValueError(msg)
        return given

    @abstractmethod
    def _solve(
        self, source: KernelMeans, bags: Bags, start: NDArray[Any], sign: Floats, cost: Floats
    ) -> ExpansionResult:
        """Learn from one start."""
