"""Support vector machines on statistics of bags (Gärtner et al. 2002)."""

import math
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bagwise._arrays import Floats
from bagwise._compat import StrOptions
from bagwise.bags import Bags, in_parts
from bagwise.base import BagTags, Summary, Target, documented
from bagwise.kernels import bag_statistics
from bagwise.svm.machinery._bag_kernel_machine import BagRowMachine
from bagwise.svm.machinery._kernel_machine import KernelMachine

_WELL_FILLED = 0.3  # share of stored entries from which on sparse statistics are made dense


class StatisticMachine(BagRowMachine):
    """Base of machines on one vector of statistics for each bag."""

    statistic: str

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        return self._learn_rows(self._vectors(bags), target, cost_weight, bag_weight)

    def _bag_outputs(self, bags: Bags) -> Floats:
        return self._expand(self._vectors(bags)) + self.intercept_

    def _vectors(self, bags: Bags) -> Bags:
        """Return the statistics of each bag, as bags of one; a given kernel has them in it."""
        if self.kernel == "precomputed":
            return self._one_row_each(bags)
        is_linear = self.kernel == "linear"

        def vectors(bags: Bags) -> Bags:
            rows = in_parts(bags, lambda part: bag_statistics(*part.segments, self.statistic))
            is_filled = sp.issparse(rows) and rows.nnz > _WELL_FILLED * math.prod(rows.shape)
            if is_filled or (sp.issparse(rows) and not is_linear):
                rows = rows.toarray()  # products of dense rows are faster
            return Bags(rows, np.arange(len(bags) + 1))

        share = self._share(bags)
        if share is None or not share.fits(self._vector_bytes(share.whole)):
            return vectors(bags)
        return share.of_each(("statistic", self.statistic, is_linear), vectors)

    def _shared_bytes(self, bags: Bags) -> int:
        """See `SharingEstimator`: a matrix between all bags, and their statistics."""
        return super()._shared_bytes(bags) + self._vector_bytes(bags)

    def _vector_bytes(self, bags: Bags) -> int:
        """Return the size of two statistics of each feature, for all bags, at most."""
        dense = bags.dtype.itemsize * 2 * len(bags) * bags.n_features
        if not bags.is_sparse or self.kernel != "linear":
            return int(dense)
        return int(min(dense, (bags.dtype.itemsize + 8) * 2 * bags.n_values))

    def __bagwise_tags__(self) -> BagTags:
        # With one instance the vector is the instance, perhaps twice: sums over its entries double,
        # and so does the number that a rule for gamma divides by.
        by_rule = isinstance(self.gamma, str) and self.kernel in ("rbf", "poly")
        is_instance = self.statistic == "mean" or (self.statistic == "minmax" and by_rule)
        return BagTags(
            instance_scores=False,
            supervised_analogue=self._ordinary if is_instance else None,
            **self._invariances(),
        )

    def _invariances(self) -> dict[str, Any]:
        found = super()._invariances()
        # Deviations do not move with the features, and so the variance of all entries changes.
        moves_alike = self.statistic != "mean_std" or self.kernel == "linear"
        return {**found, "shift_invariant": moves_alike and found.get("shift_invariant", False)}


@documented
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
    |C|
    statistic : {"minmax", "mean", "mean_std"}
        What is known of a bag: minima and maxima of the features, their means, or means and
        standard deviations (divided by the size of the bag).
    |kernel: statistics|
    |gamma|
        A rule looks at the statistics, and ``d`` is their number.
    |degree, coef0, approx: statistics, rank, class_weight, cache_size: bags, tol, max_iter|
    |random_state: maps, n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, support_: statistics, support_vectors_: statistics, dual_coef_|
    |coef_: statistics, fourier_weights_: statistics, fourier_offset_, intercept_|
    |intercept_shift_, gamma_|
    |n_features_in_, feature_names_in_, result_, n_iter_|

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

    _summary: ClassVar[Summary] = Summary(
        assumption="means, spreads or extremes of the features tell bags apart",
        objective="hinge loss of vectors of statistics",
        cost="$m^2$ kernel values, one problem of $m$ rows",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "statistic": [StrOptions({"minmax", "mean", "mean_std"})],
    }

    def __init__(
        self,
        C: float = 10.0,
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
        self.statistic = statistic


@documented
class MinimaxKernelSVM(StatisticMachine):
    r"""Support vector machine with the polynomial minimax kernel between bags.

    Bags are compared by the minima and maxima of their features, :math:`s(B)` of :math:`2 d`
    numbers, with

    .. math::

        K(B, B') = \bigl(\gamma \langle s(B), s(B') \rangle + c_0\bigr)^p .

    It is `StatisticKernelSVM`, which says what is minimised, with other defaults. More than two
    classes are learned one against the rest. Bags get scores, instances do not.

    Parameters
    ----------
    |C, degree, coef0|
    |gamma|
        A rule looks at the statistics, and ``d`` is their number: twice that of the features.
    |kernel: minimax, approx: statistics, rank, class_weight, cache_size: bags, tol, max_iter|
    |random_state: maps, n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, support_: statistics, support_vectors_: statistics, dual_coef_|
    |coef_: statistics, fourier_weights_: statistics, fourier_offset_, intercept_|
    |intercept_shift_, gamma_|
    |n_features_in_, feature_names_in_, result_, n_iter_|

    See Also
    --------
    StatisticKernelSVM : Other kernels and statistics.

    Notes
    -----
    In the paper :math:`\gamma = c_0 = 1`. Inner products grow with the number of features, and
    their powers more so: ``"scale"`` divides by the number of statistics and their variance,
    ``"auto"`` (or ``"2/d"``, twice that) by the number alone, which suits features between 0 and 1.

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

    _summary: ClassVar[Summary] = Summary(
        assumption="minima and maxima of the features tell bags apart",
        objective="hinge loss of vectors of statistics",
        cost="$m^2$ kernel values, one problem of $m$ rows",
    )

    statistic = "minmax"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = KernelMachine._parameter_constraints

    def __init__(
        self,
        C: float = 10.0,
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
