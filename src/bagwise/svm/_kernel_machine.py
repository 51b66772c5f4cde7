"""What support vector machines on bags share: a kernel expansion over instances."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import BagClassifier, Target, one_vs_rest
from bagwise.kernels import InstanceKernel, resolve_gamma
from bagwise.solvers import Certificate, SVMDualResult, constant_svm, solve_svm_dual


class KernelMachine(BagClassifier):
    """Base of classifiers whose instance score is a sum of kernels: sum_r c_r k(s_r, x).

    The rows ``s_r`` are ``support_vectors_``, the factors ``dual_coef_``.
    """

    _convergence_advice = "scale the features, lower C, or raise max_iter or tol"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"linear", "poly", "rbf"}), callable],
        "gamma": [
            StrOptions({"scale", "auto", "median"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000_000,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

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
        """Return the kernel with its numbers settled; a weight counts as a repetition."""
        row_weight = None
        if (bag_weight != bag_weight[0]).any():
            row_weight = np.repeat(bag_weight, bags.sizes)
        gamma = resolve_gamma(self.gamma, bags.instances, row_weight)
        return self._make_kernel(gamma)

    def _make_kernel(self, gamma: float) -> InstanceKernel:
        return InstanceKernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)

    def _solve_outputs(
        self, gram: NDArray[Any], target: Target, cost: NDArray[np.float64]
    ) -> list[SVMDualResult]:
        """Solve the SVM of each output on one Gram matrix, whose rows are those of the target."""

        def solve(output: int) -> SVMDualResult:
            sign = target.signs[:, output]
            if (sign == sign[0]).all():  # a label that no bag or every bag has
                return constant_svm(sign)
            return solve_svm_dual(gram, sign, cost[:, output], tol=self.tol, max_iter=self.max_iter)

        return one_vs_rest(solve, target.n_outputs, self.n_jobs)

    def _fitted_expansion(
        self,
        instances: Any,
        dual_coef: NDArray[np.float64],
        results: list[SVMDualResult],
        kernel: InstanceKernel,
    ) -> dict[str, Any]:
        """Return the fitted attributes; rows without a factor are left out."""
        rows = np.flatnonzero(dual_coef.any(axis=0))
        return {
            "support_vectors_": instances[rows],
            "dual_coef_": np.ascontiguousarray(dual_coef[:, rows]),
            "intercept_": np.array([result.intercept for result in results]),
            "gamma_": kernel.gamma,
            "result_": Certificate.total([result.certificate for result in results]),
        }

    def _expand(self, bags: Bags) -> NDArray[np.float64]:
        """Return sum_r c_r k(s_r, x) for every instance, of shape (n_instances, n_outputs)."""
        kernel = self._make_kernel(self.gamma_)
        return kernel.expand(bags.instances, self.support_vectors_, self.dual_coef_)
