"""ODM: the optimal margin distribution machine on instances (Zhang & Zhou 2019)."""

from typing import Any, ClassVar

import numpy as np

from bagwise.base import Summary, Task, documented
from bagwise.svm.machinery._inherited_labels import (
    POSITIVE_COST_CONSTRAINT,
    Cost,
    InheritedLabelMachine,
    inherited_costs,
)
from bagwise.svm.machinery._odm_machine import ODMMachine
from bagwise.svm.machinery._odm_trainer import BandProblem
from bagwise.svm.machinery._problem import Solution
from bagwise.svm.machinery._representation import Representation


@documented
class ODM(InheritedLabelMachine, ODMMachine):
    r"""Optimal margin distribution machine on instances that inherit the label of their bag.

    It wants all margins close to 1, where a support vector machine wants none of them below 1. With
    instances :math:`x_{ij}` of bag :math:`i` with label :math:`y_i = \pm 1` and margins
    :math:`m_{ij} = y_i f(x_{ij})`, :math:`f(x) = \langle w, \phi(x) \rangle + b`, it solves the
    convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2 + \frac{b^2}{2 \kappa}
        + \frac{C}{(1 - \theta)^2} \sum_i v_i q_i \sum_j \bigl[ (1 - \theta - m_{ij})_+^2
        + \nu (m_{ij} - 1 - \theta)_+^2 \bigr]

    where :math:`v_i` is the weight of the bag (1 unless ``sample_weight`` or ``class_weight`` say
    otherwise). :math:`q_i` is ``positive_cost`` in positive bags and 1 in others. The sum is not
    divided by anything. On bags of one instance, or on a plain
    matrix, this is the classifier of the paper; on others it trains as `SIL` does, and a bag
    scores as its best instance, :math:`f(B_i) = \max_j f(x_{ij})`. More than two classes are
    learned one against the rest.

    Parameters
    ----------
    C : float
        Cost of margins outside the band: what an instance with the margin 0 costs.
    theta : float
        :math:`\theta`, half the width of the band around 1 in which margins cost nothing; at least
        0 and below 1.
    nu : float
        :math:`\nu`, what a margin above the band costs, in units of one below.
    |kernel, gamma, degree, coef0, approx, rank|
    bias : float
        :math:`\kappa`, a constant that is added to the kernel and makes the constant term
        :math:`b`; with 0 there is none.
    |class_weight, positive_cost, pos_label|
    cache_size : float
        Megabytes that the kernel matrix between all training instances may take in double
        precision; a fit of more instances is refused. The linear kernel and ``approx`` need
        none.
    |max_memory: passes|
    tol : float
        Largest duality gap at which the solver stops, in units of the objective.
    max_iter : int
        Most Newton steps.
    |random_state: maps, n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, pos_label_, support_vectors_, support_, dual_coef_, coef_|
    |fourier_weights_, fourier_offset_, intercept_, intercept_shift_: by heart|
    |positive_cost_, gamma_, n_features_in_|
    |feature_names_in_, result_|
    n_iter_ : int
        Newton steps.

    See Also
    --------
    MIODM : Chooses one instance of each positive bag.
    SIL : The support vector machine that trains on the same rows.
    bagwise.metrics.margin_distribution : Mean and variance of the margins.

    Notes
    -----
    The paper divides the sum by the number :math:`m` of instances: its :math:`\lambda` is
    :math:`C m`. Its dual has a wrong diagonal in the multi-instance paper; the gap reported here is
    that of the corrected one. The loss is smooth and piecewise quadratic, so that a few Newton
    steps solve the problem: on the kernel matrix, or on features, of which chunks are read one
    after the other where there are many.

    Squares have no bound on coefficients, so that nearly all training bags are on their side of the
    threshold while others are not. With two labels, bags of several instances and a kernel matrix,
    machines without a third of the bags each therefore say where the threshold is: a fit takes
    about twice as long. The linear kernel and ``approx`` leave less room, and training bags tell.

    With ``positive_cost="auto"`` the bags that are left out also say whether instances of positive
    bags cost 1 or ``"sqrt"``: the latter if it ranks them better, and with 1 they are not ranked
    better than by chance, by two standard errors of the area under the curve. With the linear
    kernel and ``approx`` they are left out only if more than half as many training bags get the
    wrong label as by the most frequent one, and where bags are so large that they are read in
    passes the cost is 1.

    References
    ----------
    T. Zhang, Z.-H. Zhou. Optimal margin distribution machine. IEEE Transactions on Knowledge and
    Data Engineering, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import ODM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = ODM().fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.result_.relative_gap < 1e-6
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="every instance bears the label of its bag",
        objective="squares of the margins of all instances outside a band around 1",
        cost="$N^2$ kernel values, all held; Newton steps",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ODMMachine._parameter_constraints,
        "positive_cost": POSITIVE_COST_CONSTRAINT,
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        theta: float = 0.2,
        nu: float = 0.2,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approx: str | None = None,
        rank: int = 300,
        bias: float = 1.0,
        class_weight: Any = None,
        positive_cost: float | str = 1.0,
        pos_label: Any = None,
        cache_size: float = 1000.0,
        max_memory: int | str | None = None,
        tol: float = 1e-6,
        max_iter: int = 200,
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
        self.theta = theta
        self.nu = nu
        self.bias = bias
        self.positive_cost = positive_cost
        self.pos_label = pos_label
        self.max_memory = max_memory

    @property
    def _knows_by_heart(self) -> bool:
        # No bound on coefficients: each instance pulls its own score to its label, if that is free.
        return not self._is_linear()

    def _solved(self, task: Task, costs: list[Cost]) -> tuple[Representation[Any], list[Solution]]:
        bags, target = task.bags, task.target
        if not self._is_linear():
            self._refuse_large(bags.n_instances, "all instances", "approx")
        representation = self._represent_any(bags, task.bag_weight)
        trainer = self._trainer(
            representation, self._settings(tol=self.tol, max_iter=self.max_iter)
        )
        every = np.arange(bags.n_instances)

        def solve(output: int) -> Solution:
            sign, weight = target.signs[:, output], task.cost_weight[:, output]
            cost = inherited_costs(bags, sign, weight, costs[output])
            return trainer.solve(
                BandProblem(
                    index=every,
                    sign=np.repeat(sign, bags.sizes),
                    cost=self._unit_cost() * cost,
                )
            )

        return representation, self._solve_outputs(trainer, target, solve)
