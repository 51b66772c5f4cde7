"""Machines whose score of an instance is an expansion in few vectors; a bag is the mean."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, segment_sum
from bagwise.base import BagClassifier, GammaRule
from bagwise.kernels import FORMULAS, InstanceKernel, needs_gamma, resolve_gamma


class ExpansionMachine(BagClassifier):
    """Base of machines with ``expansion_vectors_``, their ``coef_`` and an ``intercept_``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_vectors": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions(set(FORMULAS))],
        "gamma": [GammaRule(), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],  # below 0 there may be no minimum
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled bags.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : array-like of shape (n_bags,) or (n_bags, n_labels)
            Labels, or an indicator matrix of label lists.
        sample_weight : array-like of shape (n_bags,), optional
            Weights of the bags; weight 2 is the same as having the bag twice.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _resolve_kernel(self, bags: Bags, bag_weight: NDArray[np.float64]) -> InstanceKernel:
        gamma = 1.0
        if needs_gamma(self.kernel):
            gamma = self.gamma
            if isinstance(gamma, str):
                weight = np.repeat(bag_weight, bags.sizes)
                gamma = resolve_gamma(gamma, bags.instances, weight)
        return InstanceKernel(self.kernel, float(gamma), self.degree, self.coef0)

    def _fitted_kernel(self) -> InstanceKernel:
        gamma = self.gamma_ if needs_gamma(self.kernel) else 1.0
        return InstanceKernel(self.kernel, gamma, self.degree, self.coef0)

    def _instance_outputs(self, bags: Bags) -> NDArray[np.float64]:
        kernel = self._fitted_kernel()
        scores = kernel.expand(bags.instances, self.expansion_vectors_, self.coef_)
        return scores + self.intercept_

    def _bag_outputs(self, bags: Bags) -> NDArray[np.float64]:
        kernel, offsets = self._fitted_kernel(), bags.offsets
        scores = kernel.expand(bags.instances, self.expansion_vectors_, self.coef_)
        sums = segment_sum(scores, offsets[:-1], offsets[1:])
        return sums / bags.sizes[:, None] + self.intercept_
