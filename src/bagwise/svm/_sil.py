"""Single-instance learning: every instance takes the label of its bag."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.bags import Bags
from bagwise.base import BagTags, Target
from bagwise.svm.machinery._kernel_machine import MaxRuleMachine
from bagwise.svm.machinery._trainer import HingeProblem, Solution


class SIL(MaxRuleMachine):
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
    kernel : {"rbf", "linear", "poly", "laplacian", "chi2", "cosine", "precomputed"} or callable
        Kernel between instances. ``"linear"``: :math:`\langle x, y \rangle`; ``"poly"``:
        :math:`(\gamma \langle x, y \rangle + c_0)^p`; ``"rbf"``: :math:`\exp(-\gamma |x - y|^2)`;
        ``"laplacian"``: :math:`\exp(-\gamma |x - y|_1)`; ``"chi2"``: :math:`\exp(-\gamma \sum_k
        (x_k - y_k)^2 / (x_k + y_k))` for features that are not negative; ``"cosine"``: the linear
        kernel of rows of length 1. A callable takes two matrices and returns theirs. With
        ``"precomputed"`` the bags hold rows of the kernel matrix: in ``fit`` a square matrix
        between all training instances, later one row for each instance and one column for each
        training instance.
    gamma : {"scale", "auto", "median"}, a rule such as "2/d", or float
        Number of the RBF, polynomial, Laplacian and chi-squared kernels. ``"scale"`` is 1 /
        (n_features x variance of all values), ``"auto"`` is 1 / n_features, ``"median"`` is 1 /
        median of the squared distances; ``"2/d"`` is 2 / n_features, ``"0.5*median"`` half of
        ``"median"``, and so on.
    degree : int
        Degree of the polynomial kernel.
    coef0 : float
        Constant of the polynomial kernel.
    approx : {"cholesky", "nystroem", "fourier"} or None
        Replace the kernel by inner products of ``rank`` features, so that cost and memory grow only
        linearly with the instances: a pivoted Cholesky factor, which takes the instances that
        matter most; landmarks drawn at random; or random Fourier features (RBF and Laplacian
        kernels). None, and always for a kernel that is linear or given: the kernel itself.
    rank : int
        Number of these features.
    class_weight : dict, "balanced" or None
        Weights of the classes: what every bag of the class weighs.
    cache_size : float
        Megabytes for the kernel matrix. One that is larger is not formed: as many of its rows as
        fit are kept, the others computed when needed.
    tol : float
        Largest violation of the optimality conditions at which the solver stops.
    max_iter : int
        Most iterations of the solver: steps that change two multipliers. With the linear kernel and
        low-rank maps they are sweeps over all instances, a thousand at most.
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
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        Instances that carry the decision function, or the landmarks. Not with the linear kernel,
        random Fourier features or a given kernel matrix.
    support_ : ndarray of int of shape (n_support,)
        Which training instances they are; those in bags of weight 0 are not counted. Not for
        landmarks.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Their factors.
    coef_ : ndarray of shape (n_outputs, n_features)
        Weights of the features; with the linear kernel and with random Fourier features only.
    fourier_weights_ : ndarray of shape (n_features_in_, rank)
        Frequencies of the random Fourier features.
    fourier_offset_ : ndarray of shape (rank,)
        Their phases.
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
    miSVM : Corrects the labels of instances.
    MISVM : Lets one instance stand for each positive bag.
    MIKernelSVM : Compares bags as sets instead of labelling their instances.

    Notes
    -----
    Instances of positive bags are not all positive, so the labels that this method learns from are
    wrong for many of them; the maximum then tends to call negative bags positive.

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
        representation = self._represent(bags, bag_weight, max_iter=self.max_iter)
        trainer, every = representation.trainer, np.arange(bags.n_instances)

        def solve(output: int) -> Solution:
            return trainer.solve(
                HingeProblem(
                    index=every,
                    sign=np.repeat(target.signs[:, output], bags.sizes),
                    cost=self.C * np.repeat(cost_weight[:, output], bags.sizes),
                )
            )

        return self._fitted(representation, self._solve_outputs(trainer, target, solve))

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(max_rule=True, supervised_analogue=self._ordinary)
