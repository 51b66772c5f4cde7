"""Support vector machine with the normalised set kernel between bags (Gärtner et al. 2002)."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bagwise._compat import StrOptions
from bagwise.bags import Bags, segment_sum
from bagwise.base import BagTags, Target
from bagwise.kernels import normalise_set_gram, set_gram, set_self
from bagwise.svm._kernel_machine import KernelMachine


class MIKernelSVM(KernelMachine):
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

    with the map :math:`\Phi` of :math:`K` and the weights :math:`v_i` of the bags. The sum is not
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
    kernel : {"rbf", "linear", "poly"} or callable
        Kernel between instances; a callable takes two matrices and returns theirs.
    gamma : {"scale", "auto", "median"} or float
        Width of the RBF and factor of the polynomial kernel: ``"scale"`` is 1 / (n_features x
        variance of all values), ``"auto"`` is 1 / n_features, ``"median"`` is 1 / median of the
        squared distances.
    degree : int
        Degree of the polynomial kernel.
    coef0 : float
        Constant of the polynomial kernel.
    class_weight : dict, "balanced" or None
        Weights of the classes: what every bag of the class weighs.
    tol : float
        Largest violation of the optimality conditions at which the solver stops.
    max_iter : int
        Most iterations of the solver.
    n_jobs : int or None
        Threads for the one-vs-rest problems. The kernel matrix uses all processors regardless.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    multilabel_ : bool
        Whether it was fitted on label lists.
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        Instances of the bags that carry the decision function.
    support_ : ndarray of int of shape (n_support_bags,)
        Which training bags they are; bags of weight 0 are not counted.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        The factor of each of these instances.
    intercept_ : ndarray of shape (n_outputs,)
        Constant of the decision function.
    gamma_ : float
        The value of ``gamma`` in use.
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
        **KernelMachine._parameter_constraints,
        "normalization": [StrOptions({"average", "feature_space"})],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        normalization: str = "average",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000_000,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            C,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            class_weight=class_weight,
            tol=tol,
            max_iter=max_iter,
            n_jobs=n_jobs,
        )
        self.normalization = normalization

    def _learn(
        self,
        bags: Bags,
        target: Target,
        cost_weight: NDArray[np.float64],
        bag_weight: NDArray[np.float64],
    ) -> dict[str, Any]:
        kernel = self._resolve_kernel(bags, bag_weight)
        gram = set_gram(kernel, *bags.segments)
        norm = bags.sizes.astype(np.float64)
        if self.normalization == "feature_space":
            norm = _positive_root(np.diagonal(gram))
        normalise_set_gram(gram, norm, norm, out=gram)
        results = self._solve_outputs(gram, target, self.C * cost_weight)
        bag_coef = np.array([result.x for result in results]) * target.signs.T
        support = np.flatnonzero(bag_coef.any(axis=0))
        instance_coef = np.repeat(bag_coef[:, support] / norm[support], bags.sizes[support], axis=1)
        return {
            "support_": support,
            **self._fitted_expansion(bags[support].instances, instance_coef, results, kernel),
        }

    def _bag_outputs(self, bags: Bags) -> NDArray[np.float64]:
        offsets = bags.offsets
        sums = segment_sum(self._expand(bags), offsets[:-1], offsets[1:])
        if self.normalization == "average":
            norm = bags.sizes.astype(np.float64)
        else:
            kernel = self._make_kernel(self.gamma_)
            norm = _positive_root(set_self(kernel, *bags.segments))
        return sums / norm[:, None] + self.intercept_

    def _instance_outputs(self, bags: Bags) -> NDArray[np.float64]:
        scores = self._expand(bags)
        if self.normalization == "feature_space":
            diagonal = self._make_kernel(self.gamma_).diagonal(bags.instances)
            scores = scores / _positive_root(diagonal)[:, None]
        return scores + self.intercept_

    def __bagwise_tags__(self) -> BagTags:
        from sklearn.svm import SVC

        # An instance of norm 1, as all are under the RBF kernel, is not changed by normalising it.
        keeps_kernel = self.normalization == "average" or self.kernel == "rbf"
        return BagTags(supervised_analogue=SVC(tol=1e-8) if keeps_kernel else None)


def _positive_root(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return square roots, and 1 for a bag of norm 0, whose kernel values are all 0 anyway."""
    roots = np.sqrt(np.maximum(squares, 0.0)).astype(np.float64)
    return np.where(roots > 0, roots, 1.0)
