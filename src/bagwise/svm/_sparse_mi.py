"""SparseMI and RandomSetSVM: label-mean machines that expand in few vectors (Fu et al. 2011)."""

from abc import abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import BagTags, Target, documented
from bagwise.kernels import DIFFERENTIABLE, needs_gamma
from bagwise.solvers import ExpansionResult, KernelMeans, minimize_expansion, solve_expansion
from bagwise.svm.machinery._expansion_machine import ExpansionMachine
from bagwise.svm.machinery._first_vectors import cluster_centres, drawn_instances, typical_length

_FEW_VECTORS = 5  # up to so many, a bad start is likely and others are cheap
_STARTS = 10  # for few vectors


class _FromStarts(ExpansionMachine):
    """What both machines of this file do: make starts, solve from each, keep the best."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ExpansionMachine._parameter_constraints,
        "init": [StrOptions({"random", "kmeans"}), "array-like"],
        "max_memory": [str, Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def _learn(
        self,
        bags: Bags,
        target: Target,
        cost_weight: NDArray[np.float64],
        bag_weight: NDArray[np.float64],
    ) -> dict[str, Any]:
        kernel = self._resolve_kernel(bags, bag_weight)
        best: ExpansionResult | None = None
        seconds = 0.0
        source: KernelMeans | None = None
        for seed in self._seeds():
            start = self._start(bags, seed)
            if source is None:
                source = KernelMeans(bags, kernel, len(start), max_memory=self.max_memory)
            result = self._solve(source, bags, start, target.signs, self.C * cost_weight)
            seconds += result.solve_time
            if best is None or result.objective < best.objective:
                best = result
        assert best is not None
        fitted = {"gamma_": kernel.gamma} if needs_gamma(self.kernel) else {}
        return {
            **fitted,
            "expansion_vectors_": best.x,
            "coef_": best.coef,
            "intercept_": best.intercept,
            "result_": replace(best.certificate, solve_time=seconds),
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
        self,
        source: KernelMeans,
        bags: Bags,
        start: NDArray[Any],
        sign: NDArray[np.float64],
        cost: NDArray[np.float64],
    ) -> ExpansionResult:
        """Learn from one start."""


@documented
class SparseMI(_FromStarts):
    r"""Label-mean machine with few expansion vectors, which are learned with the classifier.

    The score of an instance is an expansion in a given number of vectors,
    :math:`f(x) = \sum_k \beta_k k(x, z_k) + b`, and that of a bag the mean over its instances.
    With weights :math:`v_i` of bags it solves

    .. math::

        \min_{Z, \beta, b} \; \tfrac12 \beta^\top K_Z \beta
        + C \sum_i v_i \Bigl(1 - y_i \frac{1}{n_i} \sum_{j=1}^{n_i} f(x_{ij})\Bigr)_+^2

    over the vectors as well. The sum is not divided by anything and the square has no factor 1/2.
    With more than two classes, or label lists, it is the sum of the one-against-the-rest problems,
    which share the vectors. `LabelMeanSVM` is the same with as many vectors as one likes; here the
    time of a prediction is proportional to ``n_vectors``.

    Parameters
    ----------
    |n_vectors, C, kernel: smooth, gamma, degree, coef0: not negative|
    init : {"random", "kmeans"} or array-like of shape (n_vectors, n_features)
        Where the vectors start: instances drawn at random, centres of k-means clusters of the
        instances, or where you say. What is drawn depends on the values of the instances and on
        ``random_state``, not on the order or the weights of bags; equal instances count once.
    n_init : int or "auto"
        Starts, of which the one with the least objective is kept. ``"auto"`` makes ten for up to
        five vectors, else one; from given vectors there is always one.
    optimizer : {"lbfgs", "gradient"}
        L-BFGS; or the descent of the paper's Algorithm 1, whose first step moves a vector by the
        mean distance between the vectors.
    tol : float
        The optimiser ends when the objective falls by at most this much per iteration, on average
        over five, or when the residual is no more. Both are relative to the objective or, if that
        is less, to how far it is below that of constant scores.
    max_iter : int
        Most iterations of each start; the paper makes 50.
    |class_weight, max_memory: kernel|
        It is needed twice in each iteration.
    |random_state: starts|
    |n_jobs: classes|

    Attributes
    ----------
    |classes_, multilabel_, expansion_vectors_, coef_: vectors, intercept_, gamma_, n_features_in_|
    |feature_names_in_|
    result_ : Certificate
        Objective (the sum over outputs), its history, which never rises, and the residual: the
        largest norm of a vector's derivative times the mean distance between the vectors at the
        start, in the units of ``tol``.
    n_iter_ : int
        Iterations of the start that was kept.

    See Also
    --------
    RandomSetSVM : The same with vectors that stay where they start.
    LabelMeanSVM : The same without a limit on the number of vectors.

    Notes
    -----
    The objective is minimised over the vectors by L-BFGS; the classifiers that are best for given
    vectors follow by Newton steps. An iteration costs two products of all instances with all
    vectors, and memory that is linear in their numbers. The problem is not convex.

    To the diagonal of :math:`K_Z` is added 1e-8 of its mean, so that vectors may coincide.

    The defaults give an accuracy of 0.87 on standardised Musk1 (10-fold cross-validation).

    References
    ----------
    Z. Fu, G. Lu, K. M. Ting, D. Zhang. Building sparse support vector machines for multi-instance
    classification. ECML PKDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import SparseMI
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = SparseMI(n_vectors=3, C=10.0, random_state=0).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.expansion_vectors_.shape
    (3, 2)
    >>> model.key_instances(bags[1::2])
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_FromStarts._parameter_constraints,
        "kernel": [StrOptions(set(DIFFERENTIABLE))],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "optimizer": [StrOptions({"lbfgs", "gradient"})],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_vectors: int = 50,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        init: Any = "random",
        n_init: Any = "auto",
        optimizer: str = "lbfgs",
        tol: float = 3e-4,
        max_iter: int = 200,
        class_weight: Any = None,
        max_memory: Any = "1GB",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_vectors = n_vectors
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.init = init
        self.n_init = n_init
        self.optimizer = optimizer
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _n_starts(self) -> int:
        if self.n_init == "auto":
            return _STARTS if self.n_vectors <= _FEW_VECTORS else 1
        return int(self.n_init)

    def _solve(
        self,
        source: KernelMeans,
        bags: Bags,
        start: NDArray[Any],
        sign: NDArray[np.float64],
        cost: NDArray[np.float64],
    ) -> ExpansionResult:
        return minimize_expansion(
            source, start, sign, cost,
            optimizer=self.optimizer, length=typical_length(bags, start), tol=self.tol,
            max_iter=self.max_iter, n_threads=effective_n_jobs(self.n_jobs),
        )  # fmt: skip

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(order_tolerance=1e-3)


@documented
class RandomSetSVM(_FromStarts):
    r"""Label-mean machine that expands in instances drawn at random (RSVM).

    The score of an instance is :math:`f(x) = \sum_k \beta_k k(x, z_k) + b` with vectors that are
    drawn before anything is learned, and that of a bag the mean over its instances. With weights
    :math:`v_i` of bags it solves the convex problem

    .. math::

        \min_{\beta, b} \; \tfrac12 \beta^\top K_Z \beta
        + C \sum_i v_i \Bigl(1 - y_i \frac{1}{n_i} \sum_{j=1}^{n_i} f(x_{ij})\Bigr)_+^2 .

    It is `SparseMI` without moving the vectors, which is what that paper calls RSVM. The machine
    that first had the name (Lee and Mangasarian) penalises :math:`|\beta|^2 + b^2` instead.

    Parameters
    ----------
    |n_vectors, C, kernel: vectors, gamma, degree, coef0: not negative|
    init : {"random", "kmeans"} or array-like of shape (n_vectors, n_features)
        The vectors: instances drawn at random, centres of k-means clusters of the instances, or
        those you give. What is drawn depends on the values of the instances and on
        ``random_state``, not on the order or the weights of bags; equal instances count once.
    max_iter : int
        Most Newton steps for each class.
    |class_weight, max_memory: kernel|
    random_state : int, RandomState or None
        Seed of the draw.
    |n_jobs: classes|

    Attributes
    ----------
    |classes_, multilabel_, expansion_vectors_, coef_: vectors, intercept_, gamma_, n_features_in_|
    |feature_names_in_|
    result_ : Certificate
        Objective (the sum over outputs); the residual is the largest relative gain that a last
        Newton step made or promised, 0 where the minimum is exact.
    n_iter_ : int
        Newton steps.

    See Also
    --------
    SparseMI : Learns the vectors too.
    LabelMeanSVM : The same with all instances as vectors.

    Notes
    -----
    To the diagonal of :math:`K_Z` is added 1e-8 of its mean, so that vectors may coincide.

    The defaults give an accuracy of 0.85 on standardised Musk1 (10-fold cross-validation).

    References
    ----------
    Z. Fu, G. Lu, K. M. Ting, D. Zhang. Building sparse support vector machines for multi-instance
    classification. ECML PKDD 2011.

    Y.-J. Lee, O. L. Mangasarian. RSVM: Reduced support vector machines. SIAM International
    Conference on Data Mining 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import RandomSetSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = RandomSetSVM(n_vectors=20, C=10.0, random_state=0).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    """

    _convergence_advice = "scale the features, lower C or raise max_iter"

    def __init__(
        self,
        n_vectors: int = 50,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        init: Any = "random",
        max_iter: int = 100,
        class_weight: Any = None,
        max_memory: Any = "1GB",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_vectors = n_vectors
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.init = init
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _solve(
        self,
        source: KernelMeans,
        bags: Bags,
        start: NDArray[Any],
        sign: NDArray[np.float64],
        cost: NDArray[np.float64],
    ) -> ExpansionResult:
        return solve_expansion(
            source, start, sign, cost,
            max_iter=self.max_iter, n_threads=effective_n_jobs(self.n_jobs),
        )  # fmt: skip

    def __bagwise_tags__(self) -> BagTags:
        return BagTags()
