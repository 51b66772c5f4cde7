"""Single-instance learning: every instance takes the label of its bag."""

from typing import Any, ClassVar

import numpy as np

from bagwise.base import BagTags, Summary, Task, documented
from bagwise.svm.machinery._inherited_labels import (
    POSITIVE_COST_CONSTRAINT,
    Cost,
    InheritedLabelMachine,
    inherited_costs,
)
from bagwise.svm.machinery._kernel_machine import MEMORY_CONSTRAINT, MaxRuleMachine
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._representation import Representation
from bagwise.svm.machinery._trainer import Trainer


@documented
class SIL(InheritedLabelMachine):
    r"""Support vector machine on instances that inherit the label of their bag.

    The simplest thing that can be done, and the reference that multi-instance methods must beat.
    With instances :math:`x_{ij}` of bag :math:`i` with label :math:`y_i = \pm 1` it solves the
    convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_i v_i q_i \sum_j \bigl(1 - y_i (\langle w, \phi(x_{ij})\rangle + b)\bigr)_+

    where :math:`v_i` is the weight of the bag (1 unless ``sample_weight`` or ``class_weight`` say
    otherwise). :math:`q_i` is ``positive_cost`` in positive bags and 1 in others: by default 1, or
    one over the root of the number of instances where bags are ranked by chance with 1. The sum is
    not divided by anything. A bag scores as its best instance,
    :math:`f(B_i) = \max_j f(x_{ij})`; more than two classes are learned one against the rest.

    Parameters
    ----------
    |C, kernel, gamma, degree, coef0, approx, rank, class_weight, positive_cost|
    |pos_label, cache_size: passes|
    |max_memory: passes, tol: by passes, max_iter, random_state: maps, n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, pos_label_, support_vectors_, support_, dual_coef_, coef_|
    |fourier_weights_, fourier_offset_, intercept_, intercept_shift_: instances|
    |positive_cost_, gamma_, n_features_in_|
    |feature_names_in_, result_, n_iter_|

    See Also
    --------
    miSVM : Corrects the labels of instances.
    MISVM : Lets one instance stand for each positive bag.
    MIKernelSVM : Compares bags as sets instead of labelling their instances.

    Notes
    -----
    Instances of positive bags are not all positive, so the labels that this method learns from are
    wrong for many of them; the maximum then tends to call negative bags positive. Where few of them
    are positive, instances that all bags have in common get either label by chance:
    ``positive_cost="sqrt"`` helps there. With 1 it is the machine that is called by this name
    elsewhere, which is best where nearly all instances of positive bags are positive.

    ``positive_cost="auto"`` begins with 1. If more than half as many training bags get the wrong
    label as by the most frequent one, by weight, bags are left out of the fit in three folds. If
    these are ranked better than by chance, by two standard errors of the area under the curve (that
    of Mann and Whitney, by weight), it stays. Else the same folds are fitted with
    ``"sqrt"``, which is taken if it ranks the bags that are left out better. More than two classes
    and label lists have a choice for each binary problem; ``positive_cost_`` tells which. Where
    bags are so large that they are read in passes, it is 1.

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

    _summary: ClassVar[Summary] = Summary(
        assumption="every instance bears the label of its bag",
        objective="hinge loss of all instances",
        cost="$N^2$ kernel values, one problem of $N$ rows",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MaxRuleMachine._parameter_constraints,
        "positive_cost": POSITIVE_COST_CONSTRAINT,
        "max_memory": MEMORY_CONSTRAINT,
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approx: str | None = None,
        rank: int = 300,
        class_weight: Any = None,
        positive_cost: float | str = "auto",
        pos_label: Any = None,
        cache_size: float = 1000.0,
        max_memory: int | str | None = None,
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
        self.positive_cost = positive_cost
        self.pos_label = pos_label
        self.max_memory = max_memory

    def _solved(
        self, task: Task, costs: list[Cost]
    ) -> tuple[Representation[Trainer], list[Solution]]:
        bags, target = task.bags, task.target
        representation = self._represent_any(bags, task.bag_weight, max_iter=self.max_iter)
        trainer, every = representation.trainer, np.arange(bags.n_instances)

        def solve(output: int) -> Solution:
            sign, weight = target.signs[:, output], task.cost_weight[:, output]
            return trainer.solve(
                HingeProblem(
                    index=every,
                    sign=np.repeat(sign.astype(np.int8), bags.sizes),
                    cost=self.C * inherited_costs(bags, sign, weight, costs[output]),
                )
            )

        return representation, self._solve_outputs(trainer, target, solve)

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(
            max_rule=True,
            asymmetric=True,
            supervised_analogue=self._ordinary,
            **self._invariances(),
        )
