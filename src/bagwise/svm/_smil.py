"""sMIL: the mean of a positive bag lies as high as one positive instance puts it."""

from typing import Any, ClassVar

from bagwise._arrays import Floats
from bagwise.bags import Bags
from bagwise.base import AsymmetricClassifier, BagTags, Summary, Target, documented
from bagwise.svm.machinery._kernel_machine import KernelMachine
from bagwise.svm.machinery._problem import Solution
from bagwise.svm.machinery._sides import Sides
from bagwise.svm.machinery._smil_loss import SparseLoss, mean_rule


@documented
class SMIL(AsymmetricClassifier, KernelMachine):
    r"""Support vector machine for positive bags in which few instances are positive (sMIL).

    If one of the :math:`n_i` instances of a positive bag scores 1 and all others -1, their mean is
    :math:`2 / n_i - 1`. That is what sMIL asks of a positive bag, so that large bags ask for
    little. With weights :math:`v_i` of the bags (1 unless ``sample_weight`` or ``class_weight`` say
    otherwise) and :math:`f(x) = \langle w, \phi(x) \rangle + b` it solves the convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_{i : y_i = -1} v_i \sum_j \bigl(1 + f(x_{ij})\bigr)_+
        + C \bar n_- \sum_{i : y_i = 1} v_i
          \Bigl(\frac{2}{n_i} - 1 - \frac{1}{n_i} \sum_j f(x_{ij})\Bigr)_+

    where :math:`\bar n_- = \sum_{y_i = -1} v_i n_i / \sum_{y_i = -1} v_i` is the mean size of
    negative bags: a positive bag costs as much as the instances of a negative one. More than two
    classes are learned one against the rest.

    The mean of a negative bag is to lie at -1 or below, that of a positive one at
    :math:`2 / n_i - 1` or above, so a bag is positive if its mean is above the middle of the two:
    it scores :math:`f(B_i) = \frac{1}{n_i} \sum_j f(x_{ij}) - (1 / n_i - 1)`. This rule is ours; it
    follows from the constraints, and neither the sign of the maximum nor that of the mean works.

    Parameters
    ----------
    C : float
        Cost of margin violations, that of one negative instance.
    |kernel, gamma, degree, coef0, approx, rank, class_weight|
    |pos_label, cache_size, tol, max_iter, random_state: maps, n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, pos_label_, support_vectors_, support_, dual_coef_|
    |coef_, fourier_weights_, fourier_offset_, gamma_, intercept_: instances|
    |intercept_shift_, n_features_in_|
    |feature_names_in_, result_, n_iter_|

    See Also
    --------
    STMIL : Keeps the instances of positive bags away from the boundary as well.
    SBMIL : Takes the instances that score best for positive ones.
    MissSVM : Has a bag's best instance in place of its mean.

    Notes
    -----
    The paper divides by counts: the costs are :math:`C' / N_-` for each of the :math:`N_-`
    instances in negative bags and :math:`C' / m_+` for each of the :math:`m_+` positive bags. That
    is ``class_weight="balanced"`` with :math:`C = 2 m_- C' / (m N_-)`, where :math:`m_-` of
    :math:`m` bags are negative. Divided by counts, no grid of :math:`C'` serves sets of different
    sizes; and where positive bags are rare, both sides costing the same calls many a negative bag
    positive.

    With bags of one instance this is an ordinary support vector machine. A bag is the mean of its
    instances in feature space; the variant of the paper that divides by its norm there is not
    offered.

    References
    ----------
    R. C. Bunescu, R. J. Mooney. Multiple instance learning for sparse positive bags. ICML 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import SMIL
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = SMIL().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.key_instances(bags[1::2])
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="positive instances are few: the larger a positive bag, the smaller their share",
        objective=(
            "hinge loss of means of positive bags, whose target falls with their size, and of "
            "negative instances"
        ),
        cost="$N^2$ kernel values, one problem of about $N$ rows",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        **AsymmetricClassifier._parameter_constraints,
    }

    def __init__(
        self,
        C: float = 100.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approx: str | None = None,
        rank: int = 300,
        class_weight: Any = None,
        pos_label: Any = None,
        cache_size: float = 1000.0,
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
        self.pos_label = pos_label

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        representation = self._represent(
            bags, bag_weight, means="kernel_mean", max_iter=self.max_iter
        )
        trainer = representation.trainer

        def solve(output: int) -> Solution:
            sides = Sides.of(bags.offsets, target.signs[:, output])
            loss = SparseLoss.balanced(sides, self.C * cost_weight[:, output])
            return trainer.solve(loss.rows())

        return self._fitted(representation, self._solve_outputs(trainer, target, solve))

    def _bag_outputs(self, bags: Bags) -> Floats:
        return self._side * mean_rule(self._side * self._instance_outputs(bags), bags.offsets)

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(asymmetric=True, supervised_analogue=self._ordinary, **self._invariances())
