"""reg-SVM: the score of a bag is tied to that of its best instance (Cheung and Kwok 2006)."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._compat import Interval
from bagwise.bags import Bags, segment_max, segment_sum
from bagwise.base import (
    AsymmetricClassifier,
    BagTags,
    SharedWork,
    Summary,
    Target,
    documented,
)
from bagwise.exceptions import MemoryLimitError
from bagwise.solvers import (
    Certificate,
    RowOperator,
    SumRows,
    best_in_bags,
    key_scores,
    solve_grouped_svm,
)
from bagwise.svm.machinery._bag_kernel_machine import BagKernelMachine, positive_root
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._sides import Sides
from bagwise.svm.machinery._starts import (
    N_INIT_CONSTRAINT,
    StartCount,
    balanced_error,
    best_of_starts,
)

_ALWAYS = 1000.0  # megabytes for the inner products of the rows that matter, whatever the cache
_TIE = 10.0  # times tol: differences of scores that mean nothing


@documented
class RegSVM(AsymmetricClassifier, BagKernelMachine):
    r"""Support vector machine on bags whose score must agree with that of their best instance.

    With the map :math:`\Phi` of the normalised set kernel (see `MIKernelSVM`),
    :math:`f(B) = \langle w, \Phi(B) \rangle + b`, the score :math:`f(x)` of an instance as that of
    the bag that holds it alone, and weights :math:`v_i` of the bags, it looks for a minimum of

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2 + C \sum_i v_i \bigl(1 - y_i f(B_i)\bigr)_+
        + C \lambda \sum_i v_i \bigl| f(B_i) - \max_j f(x_{ij}) \bigr|

    where :math:`\lambda` is ``consistency``. The sums are not divided by anything: the paper's
    :math:`\gamma` is :math:`C` times the number of bags. A bag is classified by :math:`f(B)`; more
    than two classes are learned one against the rest.

    With ``"average"`` the score of a bag is the mean of its instances' scores and never above their
    maximum: the problem is convex, and the last sum is what makes the scores inside a bag alike.
    With ``"feature_space"`` it may be above. That half of the absolute value is not convex; the
    maximum in it is replaced by the instance that attains it (the mean of all that do), the convex
    problem is solved, and so on until the choice repeats. The objective never rises on the way. The
    first problem is the one without that half, which also bounds the objective from below.

    Parameters
    ----------
    |C|
    consistency : float
        Cost of a bag's disagreement with its best instance, in units of ``C``. With 0 it is
        `MIKernelSVM`; a large value leaves no differences inside a bag.
    normalization : {"average", "feature_space"}
        Whether a bag is the mean of its instances in the feature space of the kernel, or the vector
        of norm 1 in that direction.
    |kernel|
        This goes with ``normalization="average"`` only: the norm of a new bag needs the kernel
        between its own instances.
    |gamma, degree, coef0|
    |approx|
        With ``"feature_space"``, norms are those of the kernel itself.
    |rank|
    |n_init|
        Here the first start is the problem without the half that is not convex; random ones have
        instances drawn at random. With ``"average"`` one start is enough.
    |class_weight, pos_label|
    |cache_size|
        The matrix of the rows in the Notes may take as much, and 1000 in any case.
    |tol: rounds|
    max_iter : int
        Most rounds: from each start, and in each convex problem, to which rows are added as they
        are found to matter.
    |random_state: starts and maps, n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, pos_label_, support_vectors_, support_, dual_coef_|
    |coef_, fourier_weights_, fourier_offset_, gamma_, intercept_, intercept_shift_, n_features_in_|
    |feature_names_in_|
    result_ : Certificate
        Objective above, a lower bound of its minimum, its values over the rounds, and how they
        ended.
    n_iter_ : int
        Rounds: of the convex problem if one was enough, else of the replaced maxima.

    See Also
    --------
    MIKernelSVM : The same bags without the last sum.
    MISVM : The best instance is the bag.

    Notes
    -----
    The convex problem has a row for each bag and one for each instance, the difference between the
    instance and its bag. Few of the latter matter and only these enter the problem. If the kernel
    matrix between instances does not fit into ``cache_size``, parts of it are computed again in
    each round: raise ``cache_size``, or use ``approx`` for many thousands of instances. The rows
    that matter, one for each bag at least, need a matrix of their own in any case, so there can
    be about ten thousand of them in 1000 megabytes; beyond that an error says so.

    References
    ----------
    P.-M. Cheung, J. T. Kwok. A regularization framework for multiple-instance learning. ICML 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import RegSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = RegSVM(C=10.0).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.result_.relative_gap < 1e-6
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="all instances have a say, and the best one agrees with the bag",
        objective=(
            "hinge loss of bags, and how far their scores are from those of their best instances"
        ),
        cost="$N^2$ kernel values, a problem of $m + N$ rows in each round",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BagKernelMachine._parameter_constraints,
        **AsymmetricClassifier._parameter_constraints,
        "consistency": [Interval(Real, 0, None, closed="left")],
        "n_init": N_INIT_CONSTRAINT,
    }

    def __init__(
        self,
        C: float = 100.0,
        *,
        consistency: float = 0.01,
        normalization: str = "average",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approx: str | None = None,
        rank: int = 300,
        n_init: StartCount = "auto",
        class_weight: Any = None,
        pos_label: Any = None,
        cache_size: float = 1000.0,
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            C,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            approx=approx,
            rank=rank,
            class_weight=class_weight,
            cache_size=cache_size,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.pos_label = pos_label
        self.consistency = consistency
        self.normalization = normalization
        self.n_init = n_init

    # -------------------------------------------------------------------------------- learning

    def _encode(
        self, bags: Bags, y: Any, sample_weight: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Let machines on folds, which may follow to move the threshold, share the matrix."""
        (bags, *others), known = super()._encode(bags, y, sample_weight)
        if bags.shared is None:
            bags = bags.with_shared(_OneFit(1e6 * self.cache_size))
        return (bags, *others), known

    def _review(self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats) -> None:
        try:
            super()._review(bags, target, cost_weight, bag_weight)
        finally:
            if isinstance(bags.shared, _OneFit):
                bags.shared.close()

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        if self.kernel == "precomputed" and not self._averages:
            msg = (
                "RegSVM with kernel='precomputed' needs normalization='average': the norm of a new "
                "bag takes the kernel between its own instances. "
                f"Got normalization={self.normalization!r}."
            )
            raise ValueError(msg)
        representation = self._represent(bags, bag_weight, means="kernel_mean")
        scale = self._point_scale(bags, bag_weight)
        generators = self._start_generators(target.n_outputs)

        def solve(output: int) -> Solution:
            problem = ConsistencyProblem(
                representation.trainer.points,
                scale,
                bags.offsets,
                target.signs[:, output],
                self.C * cost_weight[:, output],
                self.consistency,
                tol=self.tol,
                max_iter=self.max_iter,
                cache_size=self.cache_size,
            )
            point = problem.relaxed
            if not self._averages:
                point = problem.alternate(n_init=self.n_init, rng=generators[output])
            return point.solution()

        return self._fitted(
            representation, self._solve_outputs(representation.trainer, target, solve)
        )

    def _point_scale(self, bags: Bags, bag_weight: Floats) -> Floats:
        """Return what instances, and means of bags behind them, are multiplied by."""
        if self._averages:
            return np.ones(bags.n_instances + len(bags))
        kernel = self._resolve_kernel(bags, bag_weight)
        alone = positive_root(kernel.diagonal(bags.instances))
        return np.concatenate([1.0 / alone, bags.sizes / self._norms(bags, kernel, None)])

    # -------------------------------------------------------------------------------- scoring

    def _bag_outputs(self, bags: Bags) -> Floats:
        offsets = bags.offsets
        sums = segment_sum(self._expand(bags), offsets[:-1], offsets[1:])
        if self._averages:
            return sums / bags.sizes[:, None] + self.intercept_
        return sums / self._norms(bags, self._fitted_kernel(), None)[:, None] + self.intercept_

    def __bagwise_tags__(self) -> BagTags:
        from sklearn.svm import SVC

        # An instance of norm 1, as all are under the RBF kernel, is not changed by normalising it.
        keeps_kernel = self._averages or self.kernel == "rbf"
        return BagTags(
            asymmetric=self.consistency != 0,
            order_tolerance=0.0 if self._averages else 1e-6,
            supervised_analogue=SVC(tol=1e-8) if keeps_kernel else None,
            **self._invariances(),
        )


class _OneFit(SharedWork):
    """What a fit shares with the machines on folds that move its threshold, and no others."""


# ------------------------------------------------------------------------------------ the problem


@dataclass(frozen=True, eq=False)
class Point:
    """A machine: the scores of bags and instances, and what they are made of.

    Parameters
    ----------
    keys : ndarray of bool of shape (n_instances,) or None
        The instances that stood for the maxima, if any did.
    alpha : ndarray of shape (n_rows,)
        Multipliers of the rows.
    bags, instances : ndarray
        Scores.
    intercept : float
        The constant in them.
    squared_norm : float
        ``|w|^2``.
    coef : ndarray of shape (n_points,)
        ``w`` as a sum of instances and means of bags.
    weights : ndarray of shape (n_features,) or None
        ``w`` itself, where there are features.
    certificate : Certificate
        How the solver ended.
    """

    keys: Booleans | None
    alpha: Floats
    bags: Floats
    instances: Floats
    intercept: float
    squared_norm: float
    coef: Floats
    weights: Floats | None
    certificate: Certificate

    def solution(self) -> Solution:
        """Return it as other machines do."""
        index = np.flatnonzero(self.coef)
        rows = HingeProblem(index, np.ones(len(index)), np.zeros(len(index)))
        return Solution(
            rows, self.coef[index], self.intercept, self.instances, self.squared_norm,
            self.certificate, self.weights,
        )  # fmt: skip


class ConsistencyProblem:
    """reg-SVM of one output.

    Rows are the bags; the differences between instances and their bags, which share one slack in
    each bag; and the differences of the instances that stand for the maxima once more, with the
    other sign and the same slack. Of several such instances in a bag it is the mean.

    Parameters
    ----------
    points : RowOperator
        Instances, and means of bags behind them.
    scale : ndarray of shape (n_instances + n_bags,)
        What they are to be multiplied by.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    sign, cost : ndarray of shape (n_bags,)
        Of the bags.
    consistency : float
        Cost of the second slack in units of that of the first.
    tol : float
        Of the solver and of the loop.
    max_iter : int
        Most rounds of both.
    cache_size : float
        Megabytes for the inner products of the rows that matter; 1000 are always there.
    """

    def __init__(
        self,
        points: RowOperator,
        scale: Floats,
        offsets: Integers,
        sign: Floats,
        cost: Floats,
        consistency: float,
        *,
        tol: float,
        max_iter: int,
        cache_size: float,
    ) -> None:
        self.points, self.cache_size = points, cache_size
        self.tol, self.max_iter = tol, max_iter
        self.starts, self.stops = offsets[:-1], offsets[1:]
        self.m, self.n = len(sign), int(offsets[-1])
        self.sides, self.scale = Sides.of(offsets, sign), scale[: self.n]
        self.sign, self.cost, self.strain_cost = sign, cost, consistency * cost
        self.bag_of = np.repeat(np.arange(self.m), np.diff(offsets))
        scaled = sp.diags_array(scale, format="csr")
        bags = scaled[self.n :]
        self.rows = sp.vstack([bags, scaled[: self.n] - bags[self.bag_of]], format="csr")

    # What `best_of_starts` asks of a problem.

    def value(self, x: Point) -> float:
        """Return the objective."""
        best = segment_max(x.instances, self.starts, self.stops)
        hinge = np.maximum(1.0 - self.sign * x.bags, 0.0)
        loss = self.cost @ hinge + self.strain_cost @ np.abs(x.bags - best)
        return 0.5 * x.squared_norm + float(loss)

    def majorize(self, x: Point) -> Booleans:
        """Return the best instances of each bag: several where they score the same.

        One of them would do as well, but rounding would choose it.
        """
        best = segment_max(x.instances, self.starts, self.stops)
        level = best - self._tie(best)
        keys: Booleans = x.instances >= level[self.bag_of]
        return keys

    def minimize(self, surrogate: Booleans | None, x: Point, tol: float) -> Point:
        """Solve with these instances in the place of the maxima."""
        if surrogate is not None and x.keys is not None and np.array_equal(surrogate, x.keys):
            return x
        new = self._solve(surrogate, x)
        # The surrogate lies above the objective at x by no more than what counts as a tie.
        rise = self.value(new) - self.value(x)
        best = segment_max(x.instances, self.starts, self.stops)
        return x if 0.0 < rise <= self.strain_cost @ self._tie(best) else new

    def _tie(self, scores: Floats) -> Floats:
        """Return the difference up to which scores are the same, for all that the solver knows."""
        return _TIE * self.tol * np.maximum(1.0, np.abs(scores))

    def fixed_starts(self) -> list[Callable[[], Booleans | None]]:
        """Return what makes the problems of the starts that are not random."""
        return [self.first_start, self.key_start]

    def first_start(self) -> None:
        """Begin without the half that is not convex."""
        return

    def key_start(self) -> Booleans:
        """Return likely key instances, and those of negative bags that look like them."""
        scores = key_scores(self._project, self.sides.offsets, self.sides.positive, self.cost)
        return best_in_bags(scores, self.sides.offsets)

    def random_start(self, rng: np.random.Generator) -> Booleans:
        """Draw an instance of each bag."""
        keys = np.zeros(self.n, bool)
        keys[rng.integers(self.starts, self.stops)] = True
        return keys

    def begin(self, surrogate: Booleans | None, near: Point | None) -> Point:
        """Solve the problem of a start."""
        return self.relaxed if surrogate is None else self._solve(surrogate, near)

    def turn(self) -> None:
        """Keep nothing of another start."""

    def name(self, surrogate: Booleans | None) -> Hashable:
        """Return what no other choice of instances is called."""
        return None if surrogate is None else surrogate.tobytes()

    def error(self, x: Point) -> float:
        """Return the share of training bags on the wrong side."""
        return balanced_error(x.bags, self.sides, self.cost)

    def _project(self, coef: Floats) -> Floats:
        """Return the inner product of every instance with a sum of instances."""
        used, every = np.flatnonzero(coef), np.arange(self.n)
        products = self.points.products(used, (self.scale * coef)[used], every)
        return self.scale * products

    # The loop around it.

    @cached_property
    def relaxed(self) -> Point:
        """The solution without the half that is not convex."""
        return self._solve(None, None)

    def alternate(self, *, n_init: StartCount, rng: np.random.Generator) -> Point:
        """Run the loop from the relaxed solution and other starts; return the best end."""
        relaxed, bound = self.relaxed, self.relaxed.certificate
        if self.value(relaxed) <= bound.objective + self.tol * max(1.0, bound.objective):
            return relaxed  # what was left out is not violated
        best = best_of_starts(self, n_init=n_init, rng=rng, max_iter=self.max_iter, tol=self.tol)
        inner = best.x.certificate
        certificate = replace(
            best.certificate,
            lower_bound=bound.lower_bound,
            status=best.status if inner.converged else inner.status,
        )
        return replace(best.x, certificate=certificate)

    def _solve(self, keys: Booleans | None, start: Point | None) -> Point:
        """Solve the convex problem, with these instances in the place of the maxima if given."""
        m, n = self.m, self.n
        matrix, group = self.rows, np.concatenate([np.arange(m), m + self.bag_of])
        sign = np.concatenate([self.sign, np.full(n, -1.0)])
        if keys is not None:
            matrix = sp.vstack([matrix, self._averages(keys) @ matrix[m:]], format="csr")
            group = np.concatenate([group, m + np.arange(m)])
            sign = np.concatenate([sign, np.ones(m)])
        is_bag = np.arange(len(sign)) < m
        rows = SumRows(self.points, matrix, max_bytes=1e6 * max(self.cache_size, _ALWAYS))
        try:
            result = solve_grouped_svm(
                rows,
                sign,
                group,
                np.concatenate([self.cost, self.strain_cost]),
                target=is_bag,
                intercept=is_bag,
                alpha0=None if start is None else self._started(keys, start),
                tol=self.tol,
                max_iter=self.max_iter,
            )
        except MemoryLimitError as error:
            msg = (
                f"RegSVM needs the inner products of the rows that matter at once. {error} Raise "
                f"cache_size, or learn from fewer bags. Got cache_size={self.cache_size:g}."
            )
            raise MemoryLimitError(msg) from error
        beta = sign * result.x
        bags = result.decision[:m]
        return Point(
            keys=keys,
            alpha=result.x,
            bags=bags,
            instances=result.decision[m : m + n] + bags[self.bag_of],
            intercept=result.intercept,
            squared_norm=max(0.0, float(beta @ (result.decision - result.intercept * is_bag))),
            coef=matrix.T @ beta,
            weights=result.coef if len(result.coef) else None,
            certificate=result.certificate,
        )

    def _averages(self, keys: Booleans) -> Any:
        """Return the matrix that averages over some instances of each bag."""
        index, bag = np.flatnonzero(keys), self.bag_of[keys]
        share = 1.0 / np.bincount(bag, minlength=self.m)
        return sp.csr_array((share[bag], (bag, index)), shape=(self.m, self.n))

    def _started(self, keys: Booleans | None, start: Point) -> Floats:
        """Return the multipliers to start with: rows of other instances than before have none."""
        plain = start.alpha[: self.m + self.n]
        if keys is None:
            return plain
        again = np.zeros(self.m)
        if start.keys is not None:
            same = np.logical_and.reduceat(keys == start.keys, self.starts)
            again = np.where(same, start.alpha[len(plain) :], 0.0)
        return np.concatenate([plain, again])
