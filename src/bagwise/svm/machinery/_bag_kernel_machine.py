"""Machines that train on bags as wholes, and those whose bag kernel is a sum over instances."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bagwise._arrays import Floats, Integers
from bagwise._compat import StrOptions
from bagwise.bags import Bags, BagSource, Chunk, in_parts, rows_of, segment_sum, sparse_sums
from bagwise.base import FeatureMap, Share, Target, make_features, make_map, problem_key
from bagwise.kernels import InstanceKernel, check_psd, normalise_set_gram, set_gram, set_self
from bagwise.solvers import DenseGram, RowOperator
from bagwise.svm.machinery._kernel_machine import KernelMachine
from bagwise.svm.machinery._points import divided_rows
from bagwise.svm.machinery._precomputed import warn_unless_psd
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._representation import expansion_attributes, weights_of
from bagwise.svm.machinery._trainer import KernelTrainer, LinearTrainer, PointTrainer
from bagwise.svm.machinery._warm_start import WarmStart


class BagRowMachine(KernelMachine):
    """Base of machines that train on one row for each bag; a given kernel is one between bags."""

    @property
    def _loss(self) -> str:
        """What a violated margin costs."""
        return "hinge"

    @property
    def _has_features(self) -> bool:
        """Whether features are explicit."""
        return self.kernel == "linear" or (self.approx is not None and self.kernel != "precomputed")

    @property
    def _solver(self) -> dict[str, Any]:
        return {"max_iter": self.max_iter, "loss": self._loss}

    def _shared_bytes(self, bags: Bags) -> int:
        """See `SharingEstimator`: a matrix between all bags, and weights of instances."""
        return int(8 * (len(bags) ** 2 + bags.n_instances))

    def _learn_rows(
        self, rows: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        """Learn from bags of one row each: vectors, or rows of a given kernel matrix."""
        representation = self._represent(rows, bag_weight, **self._solver)
        solutions = self._solve_rows(representation.trainer, target, cost_weight)
        return self._fitted(representation, solutions)

    def _solve_rows(
        self, trainer: PointTrainer, target: Target, cost_weight: Floats
    ) -> list[Solution]:
        if (
            self._loss == "squared_hinge"
            and not self._has_features
            and (
                self.kernel == "precomputed"
                or callable(self.kernel)
                or (self.kernel == "poly" and self.coef0 < 0)
            )
        ):
            self._refuse_unbounded(trainer.points, self.C * cost_weight)
        every = np.arange(trainer.n_instances)
        return self._solve_outputs(
            trainer,
            target,
            lambda output: trainer.solve(
                HingeProblem(every, target.signs[:, output], self.C * cost_weight[:, output])
            ),
        )

    def _refuse_unbounded(self, points: RowOperator, cost: Floats) -> None:
        """Refuse a kernel so far from positive semi-definite that the dual has no maximum.

        The squared hinge, unlike the hinge, sets no bound to the multipliers of the dual. It adds
        one over twice the cost to the diagonal of the kernel, which makes up for a little.
        """
        name = f"{type(self).__name__}: the kernel"
        every = np.arange(points.n)
        gram = points.block(every, every) if points.array is None else points.array
        if check_psd(gram, name=name) == 0.0:
            return
        for column in cost.T:
            rows = np.flatnonzero(column)
            least = check_psd(gram[np.ix_(rows, rows)] + np.diag(0.5 / column[rows]), name=name)
            if least < -1e-6:
                msg = (
                    f"{name} between bags, with 1 / (2 C) added to its diagonal, must be positive "
                    f"semi-definite: with the squared hinge there is no optimum otherwise. Its "
                    f"smallest eigenvalue is {least:.2g} times the largest one. Lower C or use "
                    'the hinge: MIKernelSVM(loss="hinge").'
                )
                raise ValueError(msg)

    def _warn_unless_kernel(self, gram: Floats) -> None:
        """Warn if a function that the user brought makes no kernel between the training bags."""
        if callable(self.kernel):
            warn_unless_psd(gram, f"{type(self).__name__}: the kernel between bags")

    def _one_row_each(self, bags: Bags) -> Bags:
        """Refuse bags of several rows: a kernel between bags has one row for each bag."""
        if (bags.sizes != 1).any():
            which = int(np.flatnonzero(bags.sizes != 1)[0])
            msg = (
                f"With kernel='precomputed', {type(self).__name__} takes a matrix with one row for "
                f"each bag. Got {bags.describe(which)} with {bags.sizes[which]} rows."
            )
            raise ValueError(msg)
        return bags


class BagKernelMachine(BagRowMachine):
    r"""Base of machines with a kernel :math:`K(B, B') = \langle \Phi(B), \Phi(B') \rangle`.

    .. math::

        \Phi(B) = \frac{1}{\nu(B)} \sum_{x \in B} u(x) \phi(x)

    with weights :math:`u` of the instances (1 unless a subclass says otherwise) and
    :math:`\nu(B) = \sum_{x \in B} u(x)` or the norm of the sum. The score of an instance is that of
    the bag that holds it alone.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "normalization": [StrOptions({"average", "feature_space"})],
    }

    def _instance_weights(self, bags: Bags) -> Floats | None:
        """Return the weight of each instance, or None if all are 1."""
        return None

    @property
    def _averages(self) -> bool:
        """Whether sums are divided by the sum of the weights, else by their norm."""
        return bool(self.normalization == "average")

    def _invariances(self) -> dict[str, Any]:
        if self.kernel == "linear" and not self._averages:  # all bags have norm 1
            return {"scale_powers": {}}
        return super()._invariances()

    # -------------------------------------------------------------------------------- learning

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        if self.kernel == "precomputed":
            return self._learn_rows(self._one_row_each(bags), target, cost_weight, bag_weight)
        kernel = self._resolve_kernel(bags, bag_weight)
        if self._has_features:
            feature_map, features = self._bag_features(bags, kernel)
            rows = LinearTrainer(features, np.arange(len(bags) + 1), tol=self.tol, **self._solver)
            solutions = self._solve_rows(rows, target, cost_weight)
            coef = weights_of(solutions, features.shape[1])
            return {**self._fitted_parts(solutions), **feature_map.attributes(coef)}
        share = self._share(bags, needs_room=True)
        gram, weights = self._pair_sums(bags, kernel, share)
        norm = self._norms(bags, kernel, weights, np.diagonal(gram))
        normalise_set_gram(gram, norm, norm, out=gram)
        coef, fitted = self._solve_gram(gram, target, cost_weight, share)
        instance_coef = spread(coef / norm, bags.sizes)
        if weights is not None:
            instance_coef *= weights
        fitted |= expansion_attributes(bags.instances, instance_coef, kernel)
        if share is not None:
            sums, _ = self._whole_sums(share, kernel)
            share.remember(fitted["dual_coef_"], sums, share.index, coef / norm, of_bags=True)
        return fitted

    def _bag_features(self, bags: Bags, kernel: InstanceKernel) -> tuple[FeatureMap, Any]:
        """Return the map of the kernel, and the features of each bag."""
        weights, is_linear = self._instance_weights(bags), kernel.name == "linear"
        if is_linear and self._averages and weights is None and bags.is_sparse:
            means = in_parts(bags, lambda part: sparse_sums(*part.segments, divisor=part.sizes))
            return FeatureMap(kernel), means
        feature_map, sums = self._summed_features(bags, kernel, weights)
        squares = _row_squares(sums) if is_linear and not self._averages else None
        return feature_map, divided_rows(sums, self._norms(bags, kernel, weights, squares))

    def _summed_features(
        self, bags: Bags, kernel: InstanceKernel, weights: Floats | None
    ) -> tuple[FeatureMap, Any]:
        """Return the map of the kernel, and the sum of the features of each bag.

        Chunks of bags are mapped when they are read: the features of all instances are kept only
        where the map itself is made of them.
        """
        settings: dict[str, Any] = {
            "approx": self.approx,
            "rank": self.rank,
            "rng": self._random_generator(),
            "owner": type(self).__name__,
        }
        if kernel.name == "linear":
            feature_map = FeatureMap(kernel)
            if weights is None:
                add_up = sparse_sums if bags.is_sparse else segment_sum
                return feature_map, in_parts(bags, lambda part: add_up(*part.segments))
        elif self.approx == "cholesky":
            feature_map, features = make_features(kernel, rows_of(bags), **settings)
            return feature_map, weighted_sums(features, bags.offsets, weights)
        else:
            feature_map = make_map(kernel, rows_of(bags), **settings)

        def add(chunk: Chunk) -> Any:
            own = None if weights is None else weights[chunk.rows]
            return weighted_sums(feature_map.transform(chunk.instances), chunk.bags.offsets, own)

        return feature_map, BagSource(bags).concatenate(add)

    def _pair_sums(
        self, bags: Bags, kernel: InstanceKernel, share: Share | None
    ) -> tuple[Floats, Floats | None]:
        """Return the sums over pairs of instances of every two bags, and the weights in them."""
        if share is None:
            weights = self._instance_weights(bags)
            return _weighted(set_gram, kernel, bags, weights), weights
        sums, weights = self._whole_sums(share, kernel)
        chosen = np.ix_(share.index, share.index)
        return sums[chosen], None if weights is None else weights[share.rows]

    def _whole_sums(self, share: Share, kernel: InstanceKernel) -> tuple[Floats, Floats | None]:
        """Return the same of all bags of a search, whatever is selected."""
        own = set(self._parameter_constraints) - set(KernelMachine._parameter_constraints)
        parameters = tuple(getattr(self, name) for name in sorted(own - {"loss", "normalization"}))
        sums: tuple[Floats, Floats | None] = share.of_whole(
            (type(self), kernel, parameters), lambda whole: self._pair_sums(whole, kernel, None)
        )
        return sums

    def _solve_gram(
        self, gram: Floats, target: Target, cost_weight: Floats, share: Share | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Return the coefficient of each bag in each output, and the attributes that follow."""
        self._warn_unless_kernel(gram)
        trainer: PointTrainer = KernelTrainer(
            DenseGram(gram), len(gram), tol=self.tol, **self._solver
        )
        if share is not None:
            trainer = WarmStart(trainer, share.starts(problem_key(self)))
        solutions = self._solve_rows(trainer, target, cost_weight)
        coef = np.array([s.instance_coef(np.ones(len(gram), np.int64)) for s in solutions])
        return coef, {**self._fitted_parts(solutions), "support_": np.flatnonzero(coef.any(axis=0))}

    def _norms(
        self,
        bags: Bags,
        kernel: InstanceKernel,
        weights: Floats | None,
        squares: Floats | None = None,
    ) -> Floats:
        """Return what the sums over each bag are divided by; ``squares`` if they are known."""
        if not self._averages:
            if squares is None:
                squares = self._squares(bags, kernel, weights)
            return positive_root(squares)
        if weights is None:
            return bags.sizes.astype(np.float64)
        return np.add.reduceat(weights, bags.offsets[:-1])

    def _squares(self, bags: Bags, kernel: InstanceKernel, weights: Floats | None) -> Floats:
        """Return the kernel of each bag with itself, before it is divided."""
        if weights is not None:
            return _weighted(set_self, kernel, bags, weights)
        squares: Floats = in_parts(bags, lambda part: set_self(kernel, *part.segments))
        return squares

    # -------------------------------------------------------------------------------- scoring

    def _bag_outputs(self, bags: Bags) -> Floats:
        if self.kernel == "precomputed":
            return self._expand(self._one_row_each(bags)) + self.intercept_
        share = self._share(bags)
        sums = self._shared_sums(share)
        kernel, squares = self._fitted_kernel(), None
        if share is not None and sums is not None:
            whole, weights = self._whole_sums(share, kernel)
            squares = np.diagonal(whole)[share.index]
            weights = None if weights is None else weights[share.rows]
        else:
            weights, offsets = self._instance_weights(bags), bags.offsets
            sums = segment_sum(self._expand(bags), offsets[:-1], offsets[1:], weights=weights)
        return sums / self._norms(bags, kernel, weights, squares)[:, None] + self.intercept_

    def _shared_sums(self, share: Share | None) -> Floats | None:
        """Return the sums of bags over the columns of the shared matrix, if they are known."""
        fitted = getattr(self, "dual_coef_", None)
        return None if share is None else share.scores(fitted, of_bags=True)

    def _instance_outputs(self, bags: Bags) -> Floats:
        scores = self._expand(bags)
        if not self._averages:
            diagonal = self._fitted_kernel().diagonal(rows_of(bags))
            scores = scores / positive_root(diagonal)[:, None]
        return scores + self.intercept_


def spread(values: Floats, sizes: Integers) -> Floats:
    """Give the value of each bag, in each row, to all of its parts."""
    return np.repeat(values, sizes, axis=1)


def weighted_sums(features: Any, offsets: Integers, weights: Floats | None) -> Any:
    """Return the sum of the features of each bag, each instance with its weight."""
    if not sp.issparse(features):
        return segment_sum(features, offsets[:-1], offsets[1:], weights=weights)
    return sparse_sums(features, offsets[:-1], offsets[1:], weights=weights)


def positive_root(squares: Floats) -> Floats:
    """Return square roots, and 1 for a bag of norm 0, whose kernel values are all 0 anyway."""
    roots = np.sqrt(np.maximum(squares, 0.0)).astype(np.float64)
    return np.where(roots > 0, roots, 1.0)


def _weighted(pair_sums: Any, kernel: InstanceKernel, bags: Bags, weights: Floats | None) -> Floats:
    """Call `set_gram` or `set_self`; weights belong to rows in the order of the bags."""
    sums: Floats
    if weights is None:
        sums = pair_sums(kernel, *bags.segments)
    else:
        offsets = bags.offsets
        sums = pair_sums(kernel, bags.instances, offsets[:-1], offsets[1:], weights=weights)
    return sums


def _row_squares(matrix: Any) -> Floats:
    """Return the squared norms of the rows of a dense or CSR matrix, in double precision."""
    if sp.issparse(matrix):
        return np.asarray(matrix.power(2).sum(axis=1), np.float64)
    return np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
