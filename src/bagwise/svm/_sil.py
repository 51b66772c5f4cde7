"""Single-instance learning: every instance takes the label of its bag."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.bags import Bags, segment_max
from bagwise.base import BagTags, Target
from bagwise.svm._kernel_machine import KernelMachine


class SIL(KernelMachine):
    r"""Support vector machine on instances that inherit the label of their bag.

    The simplest thing that can be done, and the reference that multi-instance methods must beat.
    With instances :math:`x_{ij}` of bag :math:`i` with label :math:`y_i = \pm 1` it solves the
    convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_i v_i \sum_j \bigl(1 - y_i (\langle w, \phi(x_{ij})\rangle + b)\bigr)_+

    where :math:`v_i` is the weight of the bag (1 unless ``sample_weight`` or ``class_weight`` say
    otherwise). The sum is not divided by anything. A bag scores as its best instance,
    :math:`f(B_i) = \max_j f(x_{ij})`; more than two classes are learned one against the rest.

    Parameters
    ----------
    C : float
        Cost of margin violations.
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
        Instances that carry the decision function.
    support_ : ndarray of int of shape (n_support,)
        Which training instances they are; those in bags of weight 0 are not counted.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Their factors.
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
    MIKernelSVM : Compares bags as sets instead of labelling their instances.

    Notes
    -----
    Instances of positive bags are not all positive, so the labels that this method learns from are
    wrong for many of them; the maximum then tends to call negative bags positive.

    The kernel matrix of all instances is held in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import SIL
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[1:] += 4.0
    >>> model = SIL().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> bool((model.key_instances(bags[1::2]) >= 1).all())
    True
    """

    def _learn(
        self,
        bags: Bags,
        target: Target,
        cost_weight: NDArray[np.float64],
        bag_weight: NDArray[np.float64],
    ) -> dict[str, Any]:
        kernel = self._resolve_kernel(bags, bag_weight)
        instances, sizes = bags.instances, bags.sizes
        inherited = target.repeat(sizes)
        cost = self.C * np.repeat(cost_weight, sizes, axis=0)
        results = self._solve_outputs(kernel.gram(instances), inherited, cost)
        dual_coef = np.array([result.x for result in results]) * inherited.signs.T
        return {
            "support_": np.flatnonzero(dual_coef.any(axis=0)),
            **self._fitted_expansion(instances, dual_coef, results, kernel),
        }

    def _instance_outputs(self, bags: Bags) -> NDArray[np.float64]:
        return self._expand(bags) + self.intercept_

    def _bag_outputs(self, bags: Bags) -> NDArray[np.float64]:
        offsets = bags.offsets
        return segment_max(self._instance_outputs(bags), offsets[:-1], offsets[1:])

    def __bagwise_tags__(self) -> BagTags:
        from sklearn.svm import SVC

        return BagTags(max_rule=True, supervised_analogue=SVC(tol=1e-8))
