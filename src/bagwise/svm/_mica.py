"""MICA: a 1-norm machine in which a point of each positive bag stands for it."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise.bags import Bags
from bagwise.base import BagTags, Share, Summary, Target, documented
from bagwise.kernels import InstanceKernel
from bagwise.solvers import (
    DenseGram,
    EmpiricalMap,
    FeatureOperator,
    FeatureRows,
    KernelRows,
    instance_keys,
    scaled_keys,
)
from bagwise.svm._misvm import KeyInstanceProblem
from bagwise.svm.machinery._kernel_machine import MaxRuleMachine
from bagwise.svm.machinery._one_norm_trainer import OneNormTrainer
from bagwise.svm.machinery._points import kernel_points
from bagwise.svm.machinery._precomputed import given_square
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._representation import expansion_attributes
from bagwise.svm.machinery._shared_gram import shared_expansion, shared_gram
from bagwise.svm.machinery._starts import N_INIT_CONSTRAINT, StartCount
from bagwise.svm.machinery._trainer import KernelTrainer, PointTrainer, Trainer
from bagwise.svm.machinery._warm_start import WarmStart

_GAP = 1e-6  # relative duality gap of a linear programme that counts as solved


@documented
class MICA(MaxRuleMachine):
    r"""Multiple-instance classification algorithm: a sparse machine, by linear programmes.

    An instance scores :math:`f(x) = \sum_k u_k K(x, x^k) + b` with a weight for each of all
    training instances :math:`x^k`, or :math:`f(x) = \langle u, x \rangle + b` with the linear
    kernel. With weights :math:`v_i` of the bags (1 unless ``sample_weight`` or ``class_weight`` say
    otherwise) it looks for a minimum of

    .. math::

        \min_{u, b} \; \sum_k |u_k|
        + C \sum_{i : y_i = 1} v_i \bigl(1 - \max_j f(x_{ij})\bigr)_+
        + C \sum_{i : y_i = -1} v_i \sum_j \bigl(1 + f(x_{ij})\bigr)_+

    where no sum is divided by anything; ``C`` is the :math:`\nu` of the paper. Most weights become
    0. A bag scores as its best instance, :math:`f(B_i) = \max_j f(x_{ij})`; more than two classes
    are learned one against the rest.

    In the paper a convex combination of its instances stands for a positive bag. The best one is a
    single instance, that with the highest score; hence the maximum. It is replaced by the instance
    that attains it, the linear programme is solved, and so on until the choice repeats; the
    objective never rises on the way. In the first programme, combinations have equal parts.

    Parameters
    ----------
    C : float
        Cost of margin violations. If it is too small all weights are 0: on standardised Musk1 with
        0.1, for example.
    |kernel|
        It need not be positive semi-definite.
    |gamma, degree, coef0|
    |n_init|
        Here the first start has equal parts of the instances of a bag; random ones have instances
        drawn at random. With a symmetric kernel on at most 5,000 instances there is a third one,
        with the instances that score best by the machine of `SIL` at a low cost; ``"auto"`` then
        takes the second and the third.
    |class_weight, pos_label|
    cache_size : float
        Megabytes for the kernel matrix. One that is larger is not formed, its columns are computed
        when they are needed.
    tol : float
        Relative decrease of the objective at which the rounds end.
    |max_iter: rounds|
    random_state : int, RandomState or None
        Of random starts; without them nothing is random.
    |n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, pos_label_|
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        Instances that have a weight. Not with the linear kernel or a given kernel matrix.
    support_ : ndarray of int of shape (n_support,)
        Which training instances they are; those in bags of weight 0 are not counted.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Their weights :math:`u`.
    coef_ : ndarray of shape (n_outputs, n_features)
        Weights of the features, with the linear kernel.
    |gamma_, intercept_|
    |intercept_shift_, n_features_in_, feature_names_in_, result_: rounds, n_iter_: rounds|

    See Also
    --------
    MISVM : The same loss with the norm in feature space as its penalty.
    bagwise.representation.MILES : Has a 1-norm machine too, on similarities of bags to instances.

    Notes
    -----
    The defaults give an accuracy of 0.83 on standardised Musk1 (10-fold cross-validation).

    The solution is a local optimum. Which one depends on the start; raising ``n_init`` tries more.
    A first programme with combinations only has to suggest key instances. With more than 1,000
    rows, means and negative instances, it is left after as many simplex steps as rows; all others
    are solved.
    Where a linear programme has several solutions, the values of the instances decide which one is
    taken, not their order. To that end its penalties and costs are perturbed by up to one part in a
    million. Of instances that score the same, as all do while no weight differs from 0, the one
    that lies furthest in the direction from the mean of the negative to that of the positive ones
    stands for its bag.

    References
    ----------
    O. L. Mangasarian, E. W. Wild. Multiple instance classification via successive linear
    programming. Journal of Optimization Theory and Applications 137, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import MICA
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = MICA().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.key_instances(bags[1::2])
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    >>> len(model.support_) < 10
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="one instance makes a bag positive",
        objective="1-norm of the coefficients, and the hinge loss of `MISVM`",
        cost="$N^2$ kernel values, a linear programme in each round",
    )

    _convergence_advice = "raise max_iter or tol"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: rule
            for name, rule in MaxRuleMachine._parameter_constraints.items()
            if name not in ("approx", "rank")
        },
        "n_init": N_INIT_CONSTRAINT,
    }

    def __init__(
        self,
        C: float = 100.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        n_init: StartCount = "auto",
        class_weight: Any = None,
        pos_label: Any = None,
        cache_size: float = 1000.0,
        tol: float = 1e-4,
        max_iter: int = 80,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_init = n_init
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.cache_size = cache_size
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        kernel, given = None, np.arange(bags.n_instances)
        instances, share, gram = None, None, None
        if self.kernel == "precomputed":
            matrix, given = given_square(bags, type(self).__name__)
            features = _given_kernel(matrix)
            row_key = scaled_keys(matrix @ np.repeat(bag_weight, bags.sizes))
        else:
            kernel, instances = self._resolve_kernel(bags, bag_weight), bags.instances
            share = self._share(bags)
            features, gram = self._weighted_features(bags, instances, kernel, share)
            row_key = instance_keys(instances)
        linear = kernel is not None and kernel.name == "linear"
        exact = OneNormTrainer(
            features,
            bags.offsets,
            row_key=row_key,
            column_key=np.linspace(0.0, 1.0, bags.n_features) if linear else row_key,
            is_kernel=not linear,
            tol=min(self.tol, _GAP),
        )
        starts = None if share is None else share.starts(kernel)
        trainer, rough = (
            one if starts is None else WarmStart(one, starts)
            for one in (exact, replace(exact, is_rough=True))
        )
        machine = None
        if isinstance(features, EmpiricalMap):
            machine = KernelTrainer(features.rows, bags.n_instances, tol=exact.tol)
        solutions = self._alternate_outputs(
            trainer,
            target,
            lambda output: _OneNormProblem(
                trainer,
                rough,
                bags.offsets,
                target.signs[:, output],
                self.C,
                cost_weight[:, output],
                machine,
            ),
        )
        weights = _weights(solutions, features.d)
        fitted = self._fitted_parts(solutions)
        if linear:
            return {**fitted, "coef_": weights}
        if share is not None and gram is not None:
            assert kernel is not None
            return {**fitted, **shared_expansion(share, gram, weights, kernel)}
        support = np.flatnonzero(weights.any(axis=0))
        fitted["support_"] = given[support]
        if kernel is None:
            return {**fitted, "dual_coef_": np.ascontiguousarray(weights[:, support])}
        return {**fitted, **expansion_attributes(instances, weights, kernel)}

    def _weighted_features(
        self, bags: Bags, instances: Any, kernel: InstanceKernel, share: Share | None
    ) -> tuple[FeatureOperator, NDArray[Any] | None]:
        """Return what has weights: features, or a kernel with all instances.

        Then the kernel matrix of which it is a part, if that is shared.
        """
        if kernel.name == "linear":
            return FeatureRows(instances), None
        if share is not None:
            shared = shared_gram(share, kernel, None, lambda whole: kernel.gram(whole.instances))
            if shared is not None:
                return EmpiricalMap(DenseGram(shared).take(share.rows)), shared
        rows = kernel_points(
            instances, bags.offsets, kernel,
            means=None, max_bytes=1e6 * self.cache_size, owner=type(self).__name__,
        )  # fmt: skip
        if isinstance(rows, KernelRows):  # prices must agree with columns to rounding
            rows = replace(rows, is_double=True)
        return EmpiricalMap(rows), None

    def _invariances(self) -> dict[str, Any]:
        found = super()._invariances()  # the weights are not squared in the objective
        return {**found, "scale_powers": {"C": -1}} if self.kernel == "linear" else found

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(max_rule=True, asymmetric=True, order_tolerance=1e-6, **self._invariances())


class _OneNormProblem(KeyInstanceProblem):
    """MICA of one output: the loss of MI-SVM, and the 1-norm of the weights.

    ``rough`` trains on means, which only have to suggest key instances.
    """

    def __init__(
        self,
        trainer: Trainer,
        rough: Trainer,
        offsets: Integers,
        sign: Floats,
        C: float,
        weight: Floats,
        machine: PointTrainer | None,
    ) -> None:
        super().__init__(trainer, offsets, sign, C, weight, shared_slack=False, machine=machine)
        self.rough = rough

    def begin(self, surrogate: HingeProblem, near: Solution | None) -> Solution:
        if surrogate.same_as(self.first_start()):
            return self.rough.solve(surrogate)
        return super().begin(surrogate, near)

    def value(self, x: Solution) -> float:
        assert x.weights is not None
        return float(np.abs(x.weights).sum()) + self.loss(x.scores)


def _given_kernel(matrix: NDArray[Any]) -> FeatureOperator:
    """Return a kernel matrix, which need not be symmetric, as features."""
    if np.array_equal(matrix, matrix.T):
        return EmpiricalMap(DenseGram(matrix))
    return FeatureRows(matrix)


def _weights(solutions: list[Solution], n_features: int) -> Floats:
    """Return the weights of features; a constant machine has none."""
    zero = np.zeros(n_features)
    return np.array([zero if s.weights is None else s.weights for s in solutions])
