"""Label-mean support vector machine with the squared hinge (Fu et al., SparseMI, Eq. 5)."""

from typing import Any, ClassVar

from bagwise.base import BagTags, Summary, documented
from bagwise.svm.machinery._bag_kernel_machine import BagKernelMachine
from bagwise.svm.machinery._kernel_machine import KernelMachine


@documented
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
    |C, kernel: bags, gamma, degree, coef0, approx, rank, class_weight, cache_size: unused, tol|
    |max_iter, random_state: maps, n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, support_: bags, support_vectors_: bags, dual_coef_: bags|
    |coef_, fourier_weights_, fourier_offset_, intercept_, intercept_shift_, gamma_, n_features_in_|
    |feature_names_in_, result_, n_iter_|

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
    >>> model = LabelMeanSVM().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="all instances have a say",
        objective="squared hinge loss of mean scores",
        cost="$N^2$ kernel values, summed up to $m^2$; one problem of $m$ rows",
    )

    normalization = "average"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = KernelMachine._parameter_constraints

    def __init__(
        self,
        C: float = 10.0,
        *,
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

    @property
    def _loss(self) -> str:
        return "squared_hinge"

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(instance_scores=self.kernel != "precomputed", **self._invariances())
