"""Support vector machine with the normalised set kernel between bags (Gärtner et al. 2002)."""

from typing import Any, ClassVar

from bagwise._compat import StrOptions
from bagwise.base import BagTags
from bagwise.svm.machinery._bag_kernel_machine import BagKernelMachine


class MIKernelSVM(BagKernelMachine):
    r"""Support vector machine with the normalised set kernel: bags compared by all their pairs.

    With a kernel :math:`k` between instances, bags are compared by

    .. math::

        K(B, B') = \frac{1}{\nu(B)\, \nu(B')} \sum_{x \in B} \sum_{x' \in B'} k(x, x'),

    where :math:`\nu(B) = |B|` (``"average"``: the inner product of mean embeddings) or
    :math:`\nu(B) = \sqrt{\sum_{x, x' \in B} k(x, x')}` (``"feature_space"``: every bag has norm 1).
    Then an ordinary support vector machine on bags solves the convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_i v_i \bigl(1 - y_i (\langle w, \Phi(B_i)\rangle + b)\bigr)_+

    with the map :math:`\Phi` of :math:`K` and the weights :math:`v_i` of the bags; with
    ``loss="squared_hinge"`` every term of the sum is squared, without a factor 1/2. The sum is not
    divided by anything. More than two classes are learned one against the rest.

    The score of an instance is the score of the bag that holds it alone. With ``"average"``, the
    score of a bag is the mean of the scores of its instances.

    Parameters
    ----------
    C : float
        Cost of margin violations. It counts in units of the kernel, whose diagonal is below 1 with
        ``"average"`` and the RBF kernel.
    normalization : {"average", "feature_space"}
        What the sum over pairs is divided by; see above.
    loss : {"hinge", "squared_hinge"}
        What a violated margin costs. The squared hinge is the machine of the SparseMI paper.
    kernel : {"rbf", "linear", "poly", "laplacian", "chi2", "cosine", "precomputed"} or callable
        Kernel between instances, as in `SIL`. With ``"precomputed"`` the input is the kernel
        between *bags*: in ``fit`` a square matrix, later one row for each bag and one column for
        each training bag.
    gamma : {"scale", "auto", "median"}, a rule such as "2/d", or float
        Number of the kernel, as in `SIL`.
    degree : int
        Degree of the polynomial kernel.
    coef0 : float
        Constant of the polynomial kernel.
    approx : {"cholesky", "nystroem", "fourier"} or None
        Low-rank map in place of the kernel, as in `SIL`. With ``"feature_space"``, norms are those
        of the kernel itself.
    rank : int
        Rank of that map.
    class_weight : dict, "balanced" or None
        Weights of the classes: what every bag of the class weighs.
    cache_size : float
        Megabytes for a kernel matrix between instances; this method forms none.
    tol : float
        Largest violation of the optimality conditions at which the solver stops.
    max_iter : int
        Most iterations of the solver.
    random_state : int, RandomState or None
        Of the random maps; without one of these nothing is random.
    n_jobs : int or None
        Threads for the one-vs-rest problems. The kernel matrix uses all processors regardless.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    multilabel_ : bool
        Whether it was fitted on label lists.
    support_ : ndarray of int of shape (n_support_bags,)
        Which training bags carry the decision function; bags of weight 0 are not counted, except
        as columns of a given kernel matrix.
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        The instances of these bags.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        The factor of each of these instances; with ``"precomputed"`` of each of these bags.
    coef_, fourier_weights_, fourier_offset_ : ndarray
        The decision function as weights of features, as in `SIL`.
    intercept_ : ndarray of shape (n_outputs,)
        Constant of the decision function.
    gamma_ : float
        The value of ``gamma`` in use, if the kernel has one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, if the data had any.
    result_ : Certificate
        Objective, duality gap and how the solver ended.
    n_iter_ : int
        Iterations of the solver.

    See Also
    --------
    LabelMeanSVM : The same bags with the squared hinge.
    MIGraphSVM : Instances that resemble each other share one vote.
    SIL : Labels instances by their bag instead of comparing bags.

    References
    ----------
    T. Gärtner, P. A. Flach, A. Kowalczyk, A. J. Smola. Multi-instance kernels. ICML 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import MIKernelSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = MIKernelSVM(C=10.0).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BagKernelMachine._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        normalization: str = "average",
        loss: str = "hinge",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approx: str | None = None,
        rank: int = 300,
        class_weight: Any = None,
        cache_size: float = 200.0,
        tol: float = 1e-6,
        max_iter: int = 10_000_000,
        random_state: Any = None,
        n_jobs: int | None = None,
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
        )
        self.normalization = normalization
        self.loss = loss

    @property
    def _loss(self) -> str:
        return self.loss

    def __bagwise_tags__(self) -> BagTags:
        # An instance of norm 1, as all are under the RBF kernel, is not changed by normalising it.
        keeps_kernel = self.normalization == "average" or self.kernel == "rbf"
        has_analogue = keeps_kernel and self.loss == "hinge"
        return BagTags(
            instance_scores=self.kernel != "precomputed",
            supervised_analogue=self._ordinary if has_analogue else None,
        )
