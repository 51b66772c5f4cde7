"""What Ins-KI-SVM and Bag-KI-SVM share: mixtures of key instances, on one Gram matrix."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from math import inf
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, segment_max, segment_rows
from bagwise.base import BagTags, Share, Starts, Target, best_threshold, one_vs_rest, problem_key
from bagwise.exceptions import MemoryLimitError
from bagwise.kernels import InstanceKernel
from bagwise.solvers import (
    AssignmentProblem,
    AssignmentResult,
    Certificate,
    DenseGram,
    KernelRows,
    NuSVMInner,
    RowOperator,
    ShiftedRows,
    generate_assignments,
)
from bagwise.svm.machinery._kernel_machine import MaxRuleMachine
from bagwise.svm.machinery._points import BagMean, given_points, kernel_points
from bagwise.svm.machinery._problem import constant_solution, instance_coef
from bagwise.svm.machinery._representation import expansion_attributes
from bagwise.svm.machinery._shared_gram import points_of, shared_expansion, shared_gram

_INNER = 1e-3  # of the tolerance: how well the problem of a given mixture is solved
_RESOLUTION = 10.0  # of the tolerance: scores that differ by less are equal to a threshold
_MANY = 2000  # instances to choose from and other rows: from here on, slow rounds are the last
_SLOW = 500.0  # of the tolerance: what three rounds must lower the objective by
_ROUNDED = 1e-3  # of the squared norm: a larger ridge hides what single precision rounds
_LEAST = 1e-7  # of the squared norm: a smaller ridge is lost in rounding if rows contradict


@dataclass(frozen=True, eq=False)
class _KeySolution:
    """The machine of one output: coefficients of the instances, a constant, how it was found.

    The constant is that of the optimum, and bags are positive above ``threshold``.
    """

    coef: Floats
    intercept: float
    certificate: Certificate
    threshold: float = 0.0


@dataclass(frozen=True, eq=False)
class _KeyRows:
    """What one machine trains on.

    Parameters
    ----------
    chosen : ndarray of int
        The instances to choose from, bag after bag.
    offsets : ndarray of int of shape (n_chosen_bags + 1,)
        Where these bags begin in ``chosen``.
    fixed : ndarray of int
        The points of all other rows: positive bags of one instance, then negative rows.
    sign, cost : ndarray of shape (n_rows,)
        Of the bags to choose in, then of the fixed rows.
    """

    chosen: Integers
    offsets: Integers
    fixed: Integers
    sign: Floats
    cost: Floats


@dataclass(eq=False)
class _Points:
    """Training instances, followed by means of bags if they are needed.

    Parameters
    ----------
    rows : RowOperator or None
        Their inner products; None once `release` has let go of them.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    """

    rows: RowOperator | None
    offsets: Integers

    def release(self) -> None:
        """Forget the inner products, where blocks that were copied hold all that is needed."""
        self.rows = None

    def instance_coef(self, points: Integers, coef: Floats) -> Floats:
        """Return an expansion over points as one over instances."""
        every = np.zeros(self.offsets[-1] + len(self.offsets) - 1)
        every[points] = coef
        return instance_coef(every, np.diff(self.offsets))

    def bag_scores(self, coef: Floats, known: Integers, values: Floats) -> Floats:
        """Return the score of the best instance of each bag under an expansion.

        The values of some points are known.
        """
        scores = np.full(self.offsets[-1], np.nan)
        is_instance = known < len(scores)
        scores[known[is_instance]] = values[is_instance]
        others = np.flatnonzero(np.isnan(scores))
        if len(others):
            assert self.rows is not None
            used = np.flatnonzero(coef)
            scores[others] = self.rows.products(used, coef[used], others)
        return segment_max(scores, self.offsets[:-1], self.offsets[1:])

    def ridge(self, rows: _KeyRows) -> Floats:
        """Return one over the costs of the rows, as far as a cost can be told from infinity."""
        assert self.rows is not None
        size = self.rows.diagonal()
        largest = np.maximum.reduceat(size[rows.chosen], rows.offsets[:-1])
        return np.maximum(1.0 / rows.cost, _LEAST * np.append(largest, size[rows.fixed]))


class KeyInstanceMachine(MaxRuleMachine):
    """What the two machines share: key instances in positive bags, fixed rows for negative ones."""

    _convergence_advice = "raise max_iter or tol, or lower C"
    _uses_means: ClassVar[bool]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: rule
            for name, rule in MaxRuleMachine._parameter_constraints.items()
            if name not in ("approx", "rank")
        },
        "bias": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "threshold": [StrOptions({"zero", "training"})],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
    }

    # ------------------------------------------------------------------------------- learning

    @abstractmethod
    def _negative_rows(
        self, bags: Bags, sign: Floats, cost_weight: Floats
    ) -> tuple[Integers, Floats]:
        """Return the points that stand for the negative bags, and their costs."""

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        self._refuse_large(bags)
        kernel = None if self.kernel == "precomputed" else self._resolve_kernel(bags, bag_weight)
        share = self._share(bags)
        gram = self._shared_gram(share, kernel)
        points, given = self._points(bags, kernel, share, gram, target.n_outputs)
        starts = self._starts(share)
        seeds = self._random_generator().integers(2**31, size=target.n_outputs)

        def solve(output: int) -> _KeySolution:
            rng = np.random.default_rng(seeds[output])
            return self._solve(
                bags,
                points,
                target.signs[:, output],
                cost_weight[:, output],
                rng,
                starts,
                is_only=target.n_outputs == 1,
            )

        solutions = one_vs_rest(solve, target.n_outputs, self.n_jobs)
        coef = target.side * np.array([solution.coef for solution in solutions])
        intercept = target.side * np.array([solution.intercept for solution in solutions])
        shift = -target.side * np.array([solution.threshold for solution in solutions])
        fitted: dict[str, Any] = {
            "intercept_": intercept + shift,
            "result_": Certificate.total([solution.certificate for solution in solutions]),
        }
        if self._threshold_moves:
            fitted["intercept_shift_"] = shift
        if share is None or gram is None or kernel is None or kernel.name == "linear":
            return {**fitted, **_expansion(bags, kernel, given, coef)}
        return {**fitted, **shared_expansion(share, gram, coef, kernel)}

    def _refuse_large(self, bags: Bags) -> None:
        n_points = bags.n_instances + (len(bags) if self._uses_means else 0)
        megabytes = 8e-6 * n_points**2
        if megabytes > self.cache_size:
            msg = (
                f"{type(self).__name__} needs the kernel between all instances in memory. That of "
                f"{bags.n_instances:,} instances takes {megabytes:,.0f} MB, cache_size allows "
                f"{self.cache_size:,.0f}. Raise cache_size or fit fewer instances."
            )
            raise MemoryLimitError(msg)

    def _points(
        self,
        bags: Bags,
        kernel: InstanceKernel | None,
        share: Share | None,
        shared: NDArray[Any] | None,
        n_outputs: int,
    ) -> tuple[_Points, Integers]:
        """Return the points, and which training instances or columns of a given matrix they are.

        A single machine on instances alone needs every inner product once: none are kept for it.
        """
        rows: RowOperator
        given = np.arange(bags.n_instances)
        if share is not None and shared is not None:
            rows = DenseGram(shared).take(points_of(share) if self._uses_means else share.rows)
        elif kernel is not None and n_outputs == 1 and self._is_read_once(kernel):
            rows = KernelRows.of(kernel, bags.instances, bags.offsets)
        elif kernel is not None:
            rows = DenseGram(self._gram(bags, kernel))
        else:
            owner = type(self).__name__
            rows, given = given_points(bags, means=self._uses_means, owner=owner)
        if self._constant():
            rows = ShiftedRows(rows, self._constant())
        return _Points(rows, bags.offsets), given

    def _is_read_once(self, kernel: InstanceKernel) -> bool:
        """Return whether points are instances; of a user's function the whole matrix is checked."""
        return not self._uses_means and not callable(kernel.name)

    def _gram(self, bags: Bags, kernel: InstanceKernel) -> NDArray[Any]:
        means: BagMean | None = "kernel_mean" if self._uses_means else None
        owner = type(self).__name__
        gram = kernel_points(
            bags.instances, bags.offsets, kernel, means=means, max_bytes=inf, owner=owner
        ).array
        assert gram is not None
        return gram

    def _shared_gram(
        self, share: Share | None, kernel: InstanceKernel | None
    ) -> NDArray[Any] | None:
        """Return the matrix of all bags of a search; None if there is none to keep."""
        if share is None or kernel is None:
            return None
        means: BagMean | None = "kernel_mean" if self._uses_means else None
        return shared_gram(share, kernel, means, lambda whole: self._gram(whole, kernel))

    def _starts(self, share: Share | None) -> Starts | None:
        """Return where to find the assignments of earlier fits.

        From other assignments the search may end at another mixture, a little better or worse, as
        it may with other random numbers. With a ``random_state`` that is not wanted.
        """
        if share is None or self.random_state is not None:
            return None
        return share.starts(problem_key(self))

    def _constant(self) -> float:
        """Return the constant that is added to the kernel."""
        if self.bias == "auto":
            return 1.0 if isinstance(self.kernel, str) and self.kernel == "linear" else 0.0
        return float(self.bias)

    def _solve(
        self,
        bags: Bags,
        points: _Points,
        sign: Floats,
        cost_weight: Floats,
        rng: np.random.Generator,
        starts: Starts | None,
        *,
        is_only: bool,
    ) -> _KeySolution:
        there = np.unique(sign[cost_weight > 0])
        if len(there) < 2:  # a label that no bag or every bag has, or a class of weight 0
            only = float(there[0]) if len(there) else float(sign[0])
            certificate = constant_solution(0, only).certificate
            return _KeySolution(np.zeros(bags.n_instances), only, certificate)
        rows = self._rows(bags, sign, cost_weight)
        ridge, is_large = points.ridge(rows), len(rows.chosen) + len(rows.fixed) > _MANY
        inner = NuSVMInner(rows.sign, ridge, tol=_INNER * self.tol)
        assert points.rows is not None
        problem = AssignmentProblem.of(
            points.rows,
            rows.chosen,
            rows.offsets,
            rows.fixed,
            single=is_large and float(ridge.min()) > _ROUNDED * float(points.rows.diagonal().max()),
        )
        if is_only and self.threshold == "zero":
            points.release()
        parts = (rows.chosen, rows.offsets, rows.fixed, rows.sign)
        start = None if starts is None else starts.find(*parts)
        result = generate_assignments(
            problem,
            inner,
            rng=rng,
            tol=self.tol,
            max_rounds=self.max_iter,
            n_restarts=self.n_restarts,
            least_decrease=_SLOW * self.tol if is_large else 0.0,
            start="mean" if start is None else start,
        )
        if starts is not None:
            assignments = _assignments(result.columns, len(rows.offsets) - 1)
            if len(assignments):
                starts.keep(assignments, *parts)
        rho = float(result.b @ (result.decision + ridge * result.b))
        index = np.concatenate([rows.chosen, rows.fixed])
        coef = points.instance_coef(index, np.concatenate([result.coef, result.fixed_coef]) / rho)
        intercept = self._constant() * float(coef.sum())
        threshold = 0.0
        if self.threshold == "training":
            on_fixed = result.decision[len(rows.offsets) - 1 :]
            values = np.concatenate([result.instance_values, on_fixed]) / rho
            scores = points.bag_scores(coef, index, values)
            threshold = best_threshold(scores, sign, cost_weight, _RESOLUTION * self.tol)
        return _KeySolution(coef, intercept, _hinge_certificate(result), threshold)

    def _rows(self, bags: Bags, sign: Floats, cost_weight: Floats) -> "_KeyRows":
        positive = np.flatnonzero((sign > 0) & (cost_weight > 0))
        cost, sizes = self.C * cost_weight[positive], bags.sizes[positive]
        free = sizes > 1  # in the others there is no choice
        free[0] |= not free.any()
        start = bags.offsets[positive]
        negative, negative_cost = self._negative_rows(bags, sign, cost_weight)
        return _KeyRows(
            chosen=segment_rows(start[free], start[free] + sizes[free]),
            offsets=np.concatenate([[0], np.cumsum(sizes[free])]),
            fixed=np.concatenate([start[~free], negative]),
            sign=np.repeat([1.0, -1.0], [len(positive), len(negative)]),
            cost=np.concatenate([cost[free], cost[~free], negative_cost]),
        )

    # -------------------------------------------------------------------------------- asking

    @property
    def _threshold_moves(self) -> bool:
        return self.threshold == "training"

    @property
    def gap_estimate_(self) -> float:
        """How far the objective is from the optimum, as far as the search for assignments saw."""
        certificate: Certificate = self.result_
        parts = certificate.parts or (certificate,)
        return float(sum(part.gap_history[-1] for part in parts if len(part.gap_history)))

    def _invariances(self) -> dict[str, Any]:
        return {} if self.kernel == "linear" else super()._invariances()  # the bias is in the norm

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(max_rule=True, asymmetric=True, order_tolerance=5e-3, **self._invariances())


def _assignments(columns: Floats, n_bags: int) -> Integers:
    """Return the columns of a mixture that choose one instance in each bag, as these instances."""
    chosen = columns[(columns == 1.0).sum(axis=1) == n_bags]
    return np.nonzero(chosen)[1].reshape(-1, n_bags)


def _hinge_certificate(result: AssignmentResult) -> Certificate:
    """Return the certificate for the hinge at margin 1; in nu-form a value ``H`` is ``-1/(4H)``."""

    def hinge(value: Any) -> Any:
        return -0.25 / value

    history = hinge(result.history)
    gaps = history - hinge(result.history - result.gap_history)
    objective = float(hinge(result.objective))
    return replace(
        result.certificate,
        objective=objective,
        lower_bound=objective - float(gaps[-1]) if result.gap_is_proven else -inf,
        history=history,
        gap_history=gaps,
    )


def _expansion(
    bags: Bags, kernel: InstanceKernel | None, places: Integers, coef: Floats
) -> dict[str, Any]:
    """Return the decision function as fitted attributes."""
    if kernel is not None and kernel.name == "linear":
        return {"coef_": np.ascontiguousarray((bags.instances.T @ coef.T).T, np.float64)}
    support = np.flatnonzero(coef.any(axis=0))
    if kernel is None:
        return {"support_": places[support], "dual_coef_": np.ascontiguousarray(coef[:, support])}
    return {"support_": support, **expansion_attributes(bags.instances, coef, kernel)}
