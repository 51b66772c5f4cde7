"""Machines on a kernel between bags that is a sum over pairs of their instances."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._compat import StrOptions
from bagwise.bags import Bags, segment_sum
from bagwise.base import Target
from bagwise.kernels import InstanceKernel, normalise_set_gram, set_gram, set_self
from bagwise.svm._embeddings import expansion_attributes
from bagwise.svm._kernel_machine import KernelMachine
from bagwise.svm._precomputed import given_gram
from bagwise.svm._spaces import KernelSpace, LinearSpace, Rows, Solution, Space


class BagKernelMachine(KernelMachine):
    r"""Base of machines with a kernel :math:`K(B, B') = \langle \Phi(B), \Phi(B') \rangle`.

    .. math::

        \Phi(B) = \frac{1}{\nu(B)} \sum_{x \in B} u(x) \phi(x)

    with factors :math:`u` of the instances (1 unless a subclass says otherwise) and
    :math:`\nu(B) = \sum_{x \in B} u(x)` or the norm of the sum. The score of an instance is that of
    the bag that holds it alone.
    """

    #: What a violated margin costs.
    _loss = "hinge"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "normalization": [StrOptions({"average", "feature_space"})],
    }

    def _instance_factors(self, bags: Bags) -> NDArray[np.float64] | None:
        """Return the factor of each instance, or None if all are 1."""
        return None

    # -------------------------------------------------------------------------------- learning

    def _learn(
        self,
        bags: Bags,
        target: Target,
        cost_weight: NDArray[np.float64],
        bag_weight: NDArray[np.float64],
    ) -> dict[str, Any]:
        solver: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "loss": self._loss}
        if self.kernel == "precomputed":
            return self._learn_given(bags, target, cost_weight, solver)
        kernel = self._resolve_kernel(bags, bag_weight)
        factors = self._instance_factors(bags)
        if kernel.name == "linear" or self.approx is not None:
            embedding = self._embed(bags, bag_weight)
            sums = weighted_sums(embedding.space.features, bags.offsets, factors)
            norm = self._norms(bags, kernel, factors)
            features = (
                sp.diags_array(1.0 / norm) @ sums if sp.issparse(sums) else sums / norm[:, None]
            )
            space: Space = LinearSpace(features, np.arange(len(bags) + 1), **solver)
            solutions = self._solve_bags(space, target, cost_weight)
            return {**self._fitted_parts(solutions), **embedding.attributes(solutions)}
        gram = self._bag_gram(bags, kernel, factors)
        norm = self._norms(bags, kernel, factors, np.diagonal(gram))
        normalise_set_gram(gram, norm, norm, out=gram)
        solutions = self._solve_bags(KernelSpace(gram, len(bags), **solver), target, cost_weight)
        bag_coef = np.array([s.instance_coef(np.ones(len(bags), np.int64)) for s in solutions])
        support = np.flatnonzero(bag_coef.any(axis=0))
        sizes = bags.sizes[support]
        coef = np.repeat(bag_coef[:, support] / norm[support], sizes, axis=1)
        if factors is not None:
            coef *= factors[np.isin(np.repeat(np.arange(len(bags)), bags.sizes), support)]
        return {
            **self._fitted_parts(solutions),
            "support_": support,
            **expansion_attributes(bags[support].instances, coef, kernel),
        }

    def _bag_gram(
        self, bags: Bags, kernel: InstanceKernel, factors: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        if factors is None:
            return set_gram(kernel, *bags.segments)
        offsets = bags.offsets
        return set_gram(kernel, bags.instances, offsets[:-1], offsets[1:], weights=factors)

    def _learn_given(
        self,
        bags: Bags,
        target: Target,
        cost_weight: NDArray[np.float64],
        solver: dict[str, Any],
    ) -> dict[str, Any]:
        """Learn from the kernel between bags that the user brings."""
        refuse_several_instances(bags, type(self).__name__)
        gram, rows = given_gram(bags, type(self).__name__)
        solutions = self._solve_bags(KernelSpace(gram, len(bags), **solver), target, cost_weight)
        coef = np.array([s.instance_coef(np.ones(len(bags), np.int64)) for s in solutions])
        support = np.flatnonzero(coef.any(axis=0))
        return {
            **self._fitted_parts(solutions),
            "support_": rows[support],
            "dual_coef_": np.ascontiguousarray(coef[:, support]),
        }

    def _solve_bags(
        self, space: Space, target: Target, cost_weight: NDArray[np.float64]
    ) -> list[Solution]:
        every = np.arange(space.n_instances)
        return self._solve_outputs(
            space,
            target,
            lambda output: space.solve(
                Rows(every, target.signs[:, output], self.C * cost_weight[:, output])
            ),
        )

    def _norms(
        self,
        bags: Bags,
        kernel: InstanceKernel,
        factors: NDArray[np.float64] | None,
        squares: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Return what the sums over each bag are divided by; ``squares`` if they are known."""
        offsets = bags.offsets
        if self.normalization == "average":
            if factors is None:
                return bags.sizes.astype(np.float64)
            return np.add.reduceat(factors, offsets[:-1])
        if squares is None and factors is None:
            squares = set_self(kernel, *bags.segments)
        elif squares is None:
            squares = set_self(kernel, bags.instances, offsets[:-1], offsets[1:], weights=factors)
        return _positive_root(squares)

    # -------------------------------------------------------------------------------- scoring

    def _bag_outputs(self, bags: Bags) -> NDArray[np.float64]:
        scores = self._expand(bags)
        if self.kernel == "precomputed":
            refuse_several_instances(bags, type(self).__name__)
            return scores + self.intercept_
        factors = self._instance_factors(bags)
        if factors is not None:
            scores = scores * factors[:, None]
        kernel = self._make_kernel(getattr(self, "gamma_", 1.0))
        offsets = bags.offsets
        sums = segment_sum(scores, offsets[:-1], offsets[1:])
        return sums / self._norms(bags, kernel, factors)[:, None] + self.intercept_

    def _instance_outputs(self, bags: Bags) -> NDArray[np.float64]:
        scores = self._expand(bags)
        if self.normalization == "feature_space" and self.kernel != "precomputed":
            kernel = self._make_kernel(getattr(self, "gamma_", 1.0))
            scores = scores / _positive_root(kernel.diagonal(bags.instances))[:, None]
        return scores + self.intercept_


def weighted_sums(
    features: Any, offsets: NDArray[np.int64], factors: NDArray[np.float64] | None
) -> Any:
    """Return the sum of the features of each bag, each instance with its factor."""
    if factors is None:
        factors = np.ones(features.shape[0])
    shape = (len(offsets) - 1, features.shape[0])
    return sp.csr_array((factors, np.arange(features.shape[0]), offsets), shape=shape) @ features


def refuse_several_instances(bags: Bags, owner: str) -> None:
    """Refuse bags of rows where a kernel between bags has one row for each."""
    if (bags.sizes != 1).any():
        which = int(np.flatnonzero(bags.sizes != 1)[0])
        msg = (
            f"With kernel='precomputed', {owner} takes a matrix with one row for each bag. "
            f"Got {bags.describe(which)} with {bags.sizes[which]} rows."
        )
        raise ValueError(msg)


def _positive_root(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return square roots, and 1 for a bag of norm 0, whose kernel values are all 0 anyway."""
    roots = np.sqrt(np.maximum(squares, 0.0)).astype(np.float64)
    return np.where(roots > 0, roots, 1.0)
