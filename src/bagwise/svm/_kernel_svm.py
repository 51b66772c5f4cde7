"""Support vector machine with the normalised set kernel between bags (Gärtner et al. 2002)."""

from typing import Any, ClassVar

from bagwise._compat import StrOptions
from bagwise.base import BagTags, Summary, documented
from bagwise.svm.machinery._bag_kernel_machine import BagKernelMachine


@documented
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
        Cost of margin violations. Bags that are means of many instances lie close together, the
        closer the larger they are, and a small ``C`` then gives all of them the same label.
    normalization : {"average", "feature_space"}
        What the sum over pairs is divided by; see above.
    loss : {"hinge", "squared_hinge"}
        What a violated margin costs. The squared hinge is the machine of the SparseMI paper.
    |kernel: bags, gamma, degree, coef0|
    |approx|
        With ``"feature_space"``, norms are those of the kernel itself.
    |rank, class_weight, cache_size: unused, tol, max_iter, random_state: maps, n_jobs|
    |verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, support_: bags, support_vectors_: bags, dual_coef_: bags|
    |coef_, fourier_weights_, fourier_offset_, intercept_, intercept_shift_, gamma_, n_features_in_|
    |feature_names_in_, result_, n_iter_|

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
    >>> model = MIKernelSVM().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="all instances have a say",
        objective="hinge loss of bags under the normalised set kernel",
        cost="$N^2$ kernel values, summed up to $m^2$; one problem of $m$ rows",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BagKernelMachine._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
    }

    def __init__(
        self,
        C: float = 100.0,
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
            **self._invariances(),
        )
