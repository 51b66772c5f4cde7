"""Support vector machines on statistics of bags (Gärtner et al. 2002)."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bagwise._compat import StrOptions
from bagwise.bags import Bags
from bagwise.base import BagTags, Target
from bagwise.kernels import bag_statistics
from bagwise.svm.machinery._bag_kernel_machine import BagRowMachine
from bagwise.svm.machinery._kernel_machine import KernelMachine
from bagwise.svm.machinery._sharing import shared_by


class StatisticMachine(BagRowMachine):
    """Base of machines on one vector of statistics for each bag."""

    statistic: str

    def _learn(
        self,
        bags: Bags,
        target: Target,
        cost_weight: NDArray[np.float64],
        bag_weight: NDArray[np.float64],
    ) -> dict[str, Any]:
        return self._learn_rows(self._vectors(bags), target, cost_weight, bag_weight)

    def _bag_outputs(self, bags: Bags) -> NDArray[np.float64]:
        return self._expand(self._vectors(bags)) + self.intercept_

    def _vectors(self, bags: Bags) -> Bags:
        """Return the statistics of each bag, as bags of one; a given kernel has them in it."""
        if self.kernel == "precomputed":
            return self._one_row_each(bags)

        def vectors(bags: Bags) -> Bags:
            rows = bag_statistics(*bags.segments, self.statistic)
            return Bags(rows, np.arange(len(bags) + 1))

        share = shared_by(bags)
        if share is None:
            return vectors(bags)
        return share.of_each(("statistic", self.statistic), vectors)

    def _shared_bytes(self, bags: Bags) -> int:
        """See `SharingMachine`: a matrix between all bags, and their statistics."""
        statistics = bags.segments[0].dtype.itemsize * 2 * len(bags) * bags.n_features
        return super()._shared_bytes(bags) + int(statistics)

    def __bagwise_tags__(self) -> BagTags:
        # With one instance the vector is the instance, perhaps twice: sums over its entries double,
        # and so does the number that a rule for gamma divides by.
        by_rule = isinstance(self.gamma, str) and self.kernel in ("rbf", "poly")
        is_instance = self.statistic == "mean" or (self.statistic == "minmax" and by_rule)
        return BagTags(
            instance_scores=False, supervised_analogue=self._ordinary if is_instance else None
        )


class StatisticKernelSVM(StatisticMachine):
    r"""Support vector machine on statistics of bags, by default their extreme values.

    A bag of instances in :math:`d` dimensions becomes one vector :math:`s(B)`, by default of
    :math:`2 d` numbers, the smallest and the largest value of each feature. With the kernel
    :math:`k` between such vectors it solves the convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_i v_i \bigl(1 - y_i (\langle w, \phi(s(B_i)) \rangle + b)\bigr)_+

    with the map :math:`\phi` of :math:`k` and the weights :math:`v_i` of the bags. The sum is not
    divided by anything. More than two classes are learned one against the rest. Bags get scores,
    instances do not.

    Parameters
    ----------
    C : float
        Cost of margin violations.
    statistic : {"minmax", "mean", "mean_std"}
        What is known of a bag: minima and maxima of the features, their means, or means and
        standard deviations (divided by the size of the bag).
    kernel : {"rbf", "linear", "poly", "laplacian", "chi2", "cosine", "precomputed"} or callable
        Kernel between vectors of statistics, as in `SIL` between instances. With
        ``"precomputed"`` the input is the kernel between *bags*: in ``fit`` a square matrix, later
        one row for each bag and one column for each training bag.
    gamma : {"scale", "auto", "median"}, a rule such as "2/d", or float
        Number of the kernel, as in `SIL`. A rule looks at the statistics, and ``d`` is their
        number.
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
        Megabytes for the kernel matrix between bags, as in `SIL`.
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
    support_ : ndarray of int of shape (n_support,)
        Which training bags carry the decision function; bags of weight 0 are not counted, except
        as columns of a given kernel matrix.
    support_vectors_ : ndarray of shape (n_support, n_statistics)
        Their statistics, or the landmarks. Not with the linear kernel, random Fourier features or
        a given kernel matrix.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Their factors.
    coef_, fourier_weights_, fourier_offset_ : ndarray
        The decision function as weights of features, as in `SIL`; here of the statistics.
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
    MinimaxKernelSVM : The same with a polynomial kernel on the extreme values.
    MIKernelSVM : Compares all pairs of instances.

    Notes
    -----
    One outlier among the instances moves an extreme value of its bag as far as it likes. On bags of
    one instance, minimum and maximum are that instance; with a rule for ``gamma`` the method is
    then an ordinary support vector machine.

    References
    ----------
    T. Gärtner, P. A. Flach, A. Kowalczyk, A. J. Smola. Multi-instance kernels. ICML 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import StatisticKernelSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = StatisticKernelSVM().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "statistic": [StrOptions({"minmax", "mean", "mean_std"})],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        statistic: str = "minmax",
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
        self.statistic = statistic


class MinimaxKernelSVM(StatisticMachine):
    r"""Support vector machine with the polynomial minimax kernel between bags.

    Bags are compared by the minima and maxima of their features, :math:`s(B)` of :math:`2 d`
    numbers, with

    .. math::

        K(B, B') = \bigl(\gamma \langle s(B), s(B') \rangle + c\bigr)^p .

    It is `StatisticKernelSVM`, which says what is minimised, with other defaults. More than two
    classes are learned one against the rest. Bags get scores, instances do not.

    Parameters
    ----------
    C : float
        Cost of margin violations.
    degree : int
        The degree :math:`p`.
    coef0 : float
        The constant :math:`c`.
    gamma : {"scale", "auto", "median"}, a rule such as "2/d", or float
        The factor :math:`\gamma`. A rule looks at the statistics, and ``d`` is their number: twice
        that of the features.
    kernel : {"poly", "rbf", "linear", "laplacian", "chi2", "cosine", "precomputed"} or callable
        Kernel between vectors of statistics, if not the polynomial one, as in
        `StatisticKernelSVM`. With ``"precomputed"`` the input is the kernel between *bags*.
    approx : {"cholesky", "nystroem"} or None
        Low-rank map in place of the kernel, as in `SIL`.
    rank : int
        Rank of that map.
    class_weight : dict, "balanced" or None
        Weights of the classes: what every bag of the class weighs.
    cache_size : float
        Megabytes for the kernel matrix between bags, as in `SIL`.
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
    support_ : ndarray of int of shape (n_support,)
        Which training bags carry the decision function; bags of weight 0 are not counted, except
        as columns of a given kernel matrix.
    support_vectors_ : ndarray of shape (n_support, n_statistics)
        Their statistics, or the landmarks. Not with the linear kernel, random Fourier features or
        a given kernel matrix.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Their factors.
    coef_, fourier_weights_, fourier_offset_ : ndarray
        The decision function as weights of features, as in `SIL`; here of the statistics.
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
    StatisticKernelSVM : Other kernels and statistics.

    Notes
    -----
    In the paper :math:`\gamma = c = 1`. Inner products grow with the number of features, and their
    powers more so: ``"scale"`` divides by the number of statistics and their variance, ``"auto"``
    (or ``"2/d"``, twice that) by the number alone, which suits features between 0 and 1.

    References
    ----------
    T. Gärtner, P. A. Flach, A. Kowalczyk, A. J. Smola. Multi-instance kernels. ICML 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import MinimaxKernelSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = MinimaxKernelSVM().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    """

    statistic = "minmax"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = KernelMachine._parameter_constraints

    def __init__(
        self,
        C: float = 1.0,
        *,
        degree: int = 2,
        coef0: float = 1.0,
        gamma: Any = "scale",
        kernel: Any = "poly",
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
