"""Ins-KI-SVM and Bag-KI-SVM: key instances by a convex relaxation (Li, Kwok, Tsang & Zhou 2009)."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import Summary, documented
from bagwise.svm.machinery._ki_machine import KeyInstanceMachine


@documented
class InsKISVM(KeyInstanceMachine):
    r"""Key-instance support vector machine in which every negative instance counts (Ins-KI-SVM).

    A positive bag is represented by one of its instances, its key instance :math:`d_i`. For given
    key instances the machine, without a constant term, has the squared hinge

    .. math::

        H(d) = \min_w \; \tfrac12 \|w\|^2
        + \tfrac C2 \sum_{i: y_i = +1} v_i \bigl(1 - \langle w, \phi(x_{i d_i}) \rangle\bigr)_+^2
        + \tfrac{\lambda C}2 \sum_{i: y_i = -1} v_i \sum_j
        \bigl(1 + \langle w, \phi(x_{ij}) \rangle\bigr)_+^2

    with weights :math:`v_i` of the bags (1 unless ``sample_weight`` or ``class_weight`` say
    otherwise); the sums are not divided by anything. To choose the key instances so that
    :math:`H(d)` is least is hard. The convex relaxation that is solved mixes assignments
    :math:`d_k` of key instances,

    .. math::

        \min_{\mu \in \Delta} \; \max_{a \ge 0} \; \sum_r a_r - \tfrac12 \sum_k \mu_k
        \Bigl\| \sum_r a_r s_r \phi_r(d_k) \Bigr\|^2 - \tfrac12 \sum_r \frac{a_r^2}{c_r}

    where the rows :math:`r` are the positive bags (:math:`s_r = 1`, :math:`c_r = C v_i`,
    :math:`\phi_r` the key instance) and the negative instances (:math:`s_r = -1`, :math:`c_r =
    \lambda C v_i`). Its optimum is a lower bound of all :math:`H(d)`, and :math:`H(d)` if all
    weight is on one assignment. The decision function is the mean of those of the mixture,
    :math:`f(x) = \sum_k \mu_k \sum_r a_r s_r \langle \phi_r(d_k), \phi(x) \rangle`; a bag scores
    as its best instance, :math:`\max_j f(x_{ij})`, which is its key instance. More than two classes
    are learned one against the rest.

    Parameters
    ----------
    C : float
        Cost of margin violations. The cost of a row is at most 1e7 over its squared norm, which is
        next to infinite.
    negative_cost : "bag" or float
        :math:`\lambda`, what a negative instance costs in units of ``C``. ``"bag"``: the number of
        negative bags over the number of their instances, so that all negative instances
        together cost what the negative bags would. With ``class_weight="balanced"`` that is as much
        as all positive bags cost.
    |kernel, gamma, degree, coef0|
    bias : float or "auto"
        Constant that is added to the kernel, in place of a constant term of the decision function;
        0 in the paper. ``"auto"``: 1 for the linear kernel, 0 for all others.
    threshold : {"training", "zero"}
        The score above which a bag is positive: the one with the fewest errors on the training
        bags (weighted), or ``"zero"``, as in the paper.
    |class_weight, pos_label|
    cache_size : float
        Megabytes that the kernel matrix between all training instances may take in double
        precision; a fit of more instances is refused. Working copies take up to twice as
        much again. The linear kernel needs the matrix too.
    tol : float
        Largest gap at which the solver stops, in units of the objective. With more than
        2,000 rows and instances to choose from, it also stops if three rounds together lower the
        objective by less than 500 times as much; the status is then ``stalled``.
    max_iter : int
        Most rounds of adding assignments to the mixture.
    n_restarts : int
        Random starts of the search for assignments in every round; three times as many starts cross
        two assignments of the mixture. Up to four times as many are made where they cost little.
        The best ones are changed a little and searched from again, up to half as many times.
    random_state : int, RandomState or None
        Seed of these starts. With None, two fits may end a little apart; see Notes.
    |n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, pos_label_|
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        Instances that carry the decision function. Not with the linear kernel or a given kernel
        matrix.
    support_ : ndarray of int of shape (n_support,)
        Which training instances they are; those in bags of weight 0 are not counted.
    |dual_coef_|
    coef_ : ndarray of shape (n_outputs, n_features)
        Weights of the features; with the linear kernel only.
    intercept_ : ndarray of shape (n_outputs,)
        What ``bias`` and ``threshold`` come to: the constant of the decision function.
    |intercept_shift_: training, gamma_, n_features_in_, feature_names_in_|
    result_ : Certificate
        Objective of the relaxation and how the solver ended. There is a ``lower_bound`` only if
        all assignments could be looked at (there are at most 4096); else it is ``-inf``.
    gap_estimate_ : float
        How far the objective is from the optimum of the relaxation, judged by the assignments that
        were found. A proof if ``result_.lower_bound`` is finite.
    n_iter_ : int
        Rounds of adding assignments.

    See Also
    --------
    BagKISVM : The same with one row for each negative bag.
    MISVM : Chooses key instances by alternation.

    Notes
    -----
    The paper writes the problem in nu-form, :math:`\min_{w, \rho} \tfrac12 \|w\|^2 - \rho +
    \tfrac12 \sum_r c_r (\rho - s_r \langle w, \phi_r \rangle)_+^2`. Its minimiser is :math:`\rho`
    times the one above and its value :math:`-1 / (4 H)`, so that mixtures, signs and key
    instances are the same; scores are divided by :math:`\rho` here so that those of several
    outputs can be compared. The balance :math:`\lambda` is
    a parameter of the paper; its default here is our choice.

    An assignment that improves the mixture is found by a local search, so that the relaxation is
    solved up to what the search can see. Another ``random_state`` or order of the bags may
    end at another objective, as a rule by less than one part in a thousand; a larger
    ``n_restarts`` makes this rarer.

    Where there are more than 2,000 rows and all :math:`1 / c_r` are above a thousandth of the
    largest squared norm, the inner products of the rows that are not chosen from are rounded to
    single precision. The objective is that of the rounded matrix.

    Weight 2 is the same as having a positive bag twice although the two might choose different
    key instances: the norm in the relaxation is convex in what the two contribute
    together, so that the assignments which count choose the same instance in both.

    The members of a mixture may use different instances of a positive bag, and one instance then
    gets only its share of the score: bags tend to score below zero, the more so where ``C`` is
    large or positive bags are rare. Hence the learned threshold. Without a constant term and
    with the Gaussian kernel, :math:`f` vanishes far from all training instances; ``bias`` lets it
    fall to a negative value there.

    References
    ----------
    Y.-F. Li, J. T. Kwok, I. W. Tsang, Z.-H. Zhou. A convex method for locating regions of interest
    with multi-instance learning. ECML PKDD 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import InsKISVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = InsKISVM(C=10.0, random_state=0).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> bool((model.key_instances(bags[1::2]) == 2).all())
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="one instance makes a bag positive",
        objective="squared hinge loss of mixed key instances and of negative instances",
        cost="$N^2$ kernel values, all held; rounds that add a choice of key instances",
    )

    _uses_means = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KeyInstanceMachine._parameter_constraints,
        "negative_cost": [StrOptions({"bag"}), Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        negative_cost: Any = "bag",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        bias: Any = 1.0,
        threshold: str = "training",
        class_weight: Any = None,
        pos_label: Any = None,
        cache_size: float = 1000.0,
        tol: float = 1e-6,
        max_iter: int = 30,
        n_restarts: int = 20,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.negative_cost = negative_cost
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.bias = bias
        self.threshold = threshold
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.cache_size = cache_size
        self.tol = tol
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _negative_rows(
        self, bags: Bags, sign: Floats, cost_weight: Floats
    ) -> tuple[Integers, Floats]:
        weight = np.repeat(np.where(sign < 0, cost_weight, 0.0), bags.sizes)
        rows = np.flatnonzero(weight)
        share = self.negative_cost
        if share == "bag":
            share = cost_weight[sign < 0].sum() / weight.sum()
        return rows, self.C * share * weight[rows]


@documented
class BagKISVM(KeyInstanceMachine):
    r"""Key-instance support vector machine in which negative bags count by their mean (Bag-KI-SVM).

    A positive bag is represented by one of its instances, its key instance :math:`d_i`, a negative
    bag by the mean of its :math:`n_i` instances in feature space. For given key instances the
    machine, without a constant term, has the squared hinge

    .. math::

        H(d) = \min_w \; \tfrac12 \|w\|^2
        + \tfrac C2 \sum_{i: y_i = +1} v_i \bigl(1 - \langle w, \phi(x_{i d_i}) \rangle\bigr)_+^2
        + \tfrac C2 \sum_{i: y_i = -1} v_i
        \Bigl(1 + \frac1{n_i} \sum_j \langle w, \phi(x_{ij}) \rangle\Bigr)_+^2

    with weights :math:`v_i` of the bags (1 unless ``sample_weight`` or ``class_weight`` say
    otherwise); the sums are not divided by anything. What is solved is the convex relaxation over
    mixtures of assignments that `InsKISVM` describes, with one row :math:`r` of cost :math:`C v_i`
    for each bag. A bag scores as its best instance, :math:`\max_j f(x_{ij})`, which is its key
    instance. More than two classes are learned one against the rest.

    Parameters
    ----------
    C : float
        Cost of margin violations. The cost of a row is at most 1e7 over its squared norm, which is
        next to infinite.
    |kernel, gamma, degree, coef0|
    bias : float or "auto"
        Constant that is added to the kernel, in place of a constant term of the decision function;
        0 in the paper. ``"auto"``: 1 for the linear kernel, 0 for all others.
    threshold : {"training", "zero"}
        The score above which a bag is positive: the one with the fewest errors on the training
        bags (weighted), or ``"zero"``, as in the paper.
    |class_weight, pos_label|
    cache_size : float
        Megabytes that the kernel matrix between all training instances and means of bags may take
        in double precision; a fit of more instances is refused. Working copies take up to
        one and a half times as much again. The linear kernel needs the matrix too.
    tol : float
        Largest gap at which the solver stops, in units of the objective. With more than
        2,000 rows and instances to choose from, it also stops if three rounds together lower the
        objective by less than 500 times as much; the status is then ``stalled``.
    max_iter : int
        Most rounds of adding assignments to the mixture.
    n_restarts : int
        Random starts of the search for assignments in every round; three times as many starts cross
        two assignments of the mixture. Up to four times as many are made where they cost little.
        The best ones are changed a little and searched from again, up to half as many times.
    random_state : int, RandomState or None
        Seed of these starts. With None, two fits may end a little apart: the relaxation is solved
        up to what the search can see.
    |n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, pos_label_|
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        Instances that carry the decision function. Not with the linear kernel or a given kernel
        matrix.
    support_ : ndarray of int of shape (n_support,)
        Which training instances they are; those in bags of weight 0 are not counted.
    |dual_coef_|
    coef_ : ndarray of shape (n_outputs, n_features)
        Weights of the features; with the linear kernel only.
    intercept_ : ndarray of shape (n_outputs,)
        What ``bias`` and ``threshold`` come to: the constant of the decision function.
    |intercept_shift_: training, gamma_, n_features_in_, feature_names_in_|
    result_ : Certificate
        Objective of the relaxation and how the solver ended. There is a ``lower_bound`` only if
        all assignments could be looked at (there are at most 4096); else it is ``-inf``.
    gap_estimate_ : float
        How far the objective is from the optimum of the relaxation, judged by the assignments that
        were found. A proof if ``result_.lower_bound`` is finite.
    n_iter_ : int
        Rounds of adding assignments.

    See Also
    --------
    InsKISVM : The same with one row for each negative instance; its Notes hold here too.
    MIKernelSVM : Represents positive bags by their means as well.

    Notes
    -----
    Instances of negative bags may score high as long as their mean is low, so the key instances
    of this machine are less trustworthy than those of `InsKISVM`; it is the faster of the two.

    References
    ----------
    Y.-F. Li, J. T. Kwok, I. W. Tsang, Z.-H. Zhou. A convex method for locating regions of interest
    with multi-instance learning. ECML PKDD 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import BagKISVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = BagKISVM(C=10.0, random_state=0).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="one instance makes a bag positive",
        objective="squared hinge loss of mixed key instances and of means of negative bags",
        cost="$N^2$ kernel values, all held; rounds that add a choice of key instances",
    )

    _uses_means = True

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        bias: Any = 1.0,
        threshold: str = "training",
        class_weight: Any = None,
        pos_label: Any = None,
        cache_size: float = 1000.0,
        tol: float = 1e-6,
        max_iter: int = 30,
        n_restarts: int = 20,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.bias = bias
        self.threshold = threshold
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.cache_size = cache_size
        self.tol = tol
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _negative_rows(
        self, bags: Bags, sign: Floats, cost_weight: Floats
    ) -> tuple[Integers, Floats]:
        rows = np.flatnonzero((sign < 0) & (cost_weight > 0))
        return bags.n_instances + rows, self.C * cost_weight[rows]
