"""Label-mean support vector machine with the squared hinge (Fu et al., SparseMI, Eq. 5)."""

from typing import Any, ClassVar

from bagwise.base import BagTags
from bagwise.svm.machinery._bag_kernel_machine import BagKernelMachine
from bagwise.svm.machinery._kernel_machine import KernelMachine


class LabelMeanSVM(BagKernelMachine):
    r"""Support vector machine in which a bag scores as the mean of its instances; squared hinge.

    The model that SparseMI makes sparse (its Eq. 5). With scores
    :math:`f(x) = \langle w, \phi(x) \rangle + b` of instances and weights :math:`v_i` of bags it
    solves the convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_i v_i \Bigl(1 - y_i \frac{1}{n_i} \sum_{j=1}^{n_i} f(x_{ij})\Bigr)_+^2 .

    The sum is not divided by anything and the square has no factor 1/2. It is `MIKernelSVM` with
    averaging and ``loss="squared_hinge"``. More than two classes are learned one against the rest.

    Parameters
    ----------
    C : float
        Cost of margin violations.
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
        Low-rank map in place of the kernel, as in `SIL`.
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
    MIKernelSVM : The same with the hinge.

    References
    ----------
    Z. Fu, G. Lu, K. M. Ting, D. Zhang. Building sparse support vector machines for multi-instance
    classification. ECML PKDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import LabelMeanSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = LabelMeanSVM(C=10.0).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    """

    normalization = "average"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = KernelMachine._parameter_constraints

    @property
    def _loss(self) -> str:
        return "squared_hinge"

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(instance_scores=self.kernel != "precomputed")
