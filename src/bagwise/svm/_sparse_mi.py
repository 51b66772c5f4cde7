"""SparseMI: label-mean machine whose few expansion vectors are learned (Fu et al. 2011)."""

from numbers import Integral, Real
from typing import Any, ClassVar

from joblib import effective_n_jobs
from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import BagTags, Summary, documented
from bagwise.kernels import DIFFERENTIABLE
from bagwise.solvers import ExpansionResult, KernelMeans, minimize_expansion
from bagwise.svm.machinery._expansion_machine import MultiStartMachine
from bagwise.svm.machinery._first_vectors import typical_length

_FEW_VECTORS = 5  # up to so many, a bad start is likely and others are cheap
_STARTS = 10  # for few vectors


@documented
class SparseMI(MultiStartMachine):
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
    |n_jobs: classes, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, expansion_vectors_, coef_: vectors, intercept_|
    |intercept_shift_, gamma_, n_features_in_|
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

    The defaults give an accuracy of 0.88 on standardised Musk1 (10-fold cross-validation).

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

    _summary: ClassVar[Summary] = Summary(
        assumption="all instances have a say",
        objective=(
            "that of `LabelMeanSVM`, over a given number of vectors in place of the instances"
        ),
        cost="$r N$ kernel values in each iteration, for $r$ vectors",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiStartMachine._parameter_constraints,
        "kernel": [StrOptions(set(DIFFERENTIABLE))],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "optimizer": [StrOptions({"lbfgs", "gradient"})],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_vectors: int = 50,
        *,
        C: float = 10.0,
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
        verbose: int = 0,
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
        self.verbose = verbose

    def _n_starts(self) -> int:
        if self.n_init == "auto":
            return _STARTS if self.n_vectors <= _FEW_VECTORS else 1
        return int(self.n_init)

    def _solve(
        self, source: KernelMeans, bags: Bags, start: NDArray[Any], sign: Floats, cost: Floats
    ) -> ExpansionResult:
        return minimize_expansion(
            source, start, sign, cost,
            optimizer=self.optimizer, length=typical_length(bags, start), tol=self.tol,
            max_iter=self.max_iter, n_threads=effective_n_jobs(self.n_jobs),
        )  # fmt: skip

    def __bagwise_tags__(self) -> BagTags:
        powers = self._invariances().get("scale_powers")
        if powers is None or isinstance(self.init, str):  # which draws instances by their digits
            return BagTags(order_tolerance=1e-3)
        return BagTags(order_tolerance=1e-3, scale_powers={**powers, "init": 1})
