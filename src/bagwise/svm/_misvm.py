"""MI-SVM: the best instance of a positive bag stands for it (Andrews et al. 2002)."""

from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._compat import StrOptions
from bagwise.bags import Bags
from bagwise.base import BagTags, Summary, Target, documented
from bagwise.svm.machinery._alternation import Alternation
from bagwise.svm.machinery._kernel_machine import MEMORY_CONSTRAINT, MaxRuleMachine
from bagwise.svm.machinery._problem import HingeProblem
from bagwise.svm.machinery._sides import Sides
from bagwise.svm.machinery._starts import (
    N_INIT_CONSTRAINT,
    StartCount,
    label_scores,
    learns_from_labels,
)
from bagwise.svm.machinery._trainer import PointTrainer, Trainer


@documented
class MISVM(MaxRuleMachine):
    r"""Support vector machine in which one instance stands for each positive bag.

    With weights :math:`v_i` of the bags (1 unless ``sample_weight`` or ``class_weight`` say
    otherwise) and :math:`f(x) = \langle w, \phi(x) \rangle + b` it looks for a minimum of

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_{i : y_i = 1} v_i \bigl(1 - \max_j f(x_{ij})\bigr)_+
        + C \sum_{i : y_i = -1} v_i \sum_j \bigl(1 + f(x_{ij})\bigr)_+

    or, with ``negative_slack="bag"``, with the last sum over :math:`j` replaced by a maximum: one
    slack for a negative bag, as in the original paper. No sum is divided by anything. A bag scores
    as its best instance, :math:`f(B_i) = \max_j f(x_{ij})`; more than two classes are learned one
    against the rest.

    The maximum of a positive bag is not convex. It is replaced by the instance that attains it, the
    convex problem is solved, and so on until the choice repeats; the objective never rises on the
    way. The first problem has the mean instances of the positive bags in their place, a second
    start their likely key instances. With an exact kernel on at most 5,000 instances there is a
    third, with those that score best by the machine of `SIL` at a low cost; by default it takes the
    place of the first.

    Parameters
    ----------
    |C|
    negative_slack : {"instance", "bag"}
        Whether every instance of a negative bag has a slack of its own, or the bag one in common.
        With ``"instance"``, negative bags weigh as much as they have instances.
    |kernel, gamma, degree, coef0, approx, rank|
    |n_init|
        Here the first start has the means of bags; random ones have instances drawn at random.
        Where there is a third one, ``"auto"`` takes the second and the third.
    |class_weight, pos_label, cache_size: passes, max_memory: passes, tol: rounds by passes|
    |max_iter: rounds|
    |random_state: starts and maps, n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, pos_label_, support_vectors_, support_, dual_coef_|
    |coef_, fourier_weights_, fourier_offset_, gamma_, intercept_, intercept_shift_, n_features_in_|
    |feature_names_in_, result_: rounds, n_iter_: rounds|

    See Also
    --------
    miSVM : Labels all instances of positive bags instead of choosing one.
    SIL : Takes every instance of a positive bag for positive.

    Notes
    -----
    The solution is a local optimum. Which one depends on the start; raising ``n_init`` tries more.
    Instances of a bag that score the same, as all do where the first problem has no weights, are
    told apart by how far they lie in the direction from the negative to the positive mean.
    A kernel matrix that is given does not tell the mean instance of a bag, so the first problem
    then has the mean of its instances in feature space.

    References
    ----------
    S. Andrews, I. Tsochantaridis, T. Hofmann. Support vector machines for multiple-instance
    learning. NIPS 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import MISVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = MISVM(C=10.0, n_init=5, random_state=0).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.key_instances(bags[1::2])
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    >>> bool((np.diff(model.result_.history) <= 0).all())
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="one instance makes a bag positive",
        objective="hinge loss of the best instances of positive bags and of all negative instances",
        cost="$N^2$ kernel values, a problem of $N$ rows in each round",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MaxRuleMachine._parameter_constraints,
        "max_memory": MEMORY_CONSTRAINT,
        "negative_slack": [StrOptions({"instance", "bag"})],
        "n_init": N_INIT_CONSTRAINT,
    }

    def __init__(
        self,
        C: float = 100.0,
        *,
        negative_slack: str = "instance",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approx: str | None = None,
        rank: int = 300,
        n_init: StartCount = "auto",
        class_weight: Any = None,
        pos_label: Any = None,
        cache_size: float = 1000.0,
        max_memory: int | str | None = None,
        tol: float = 1e-6,
        max_iter: int = 50,
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
        self.max_memory = max_memory
        self.negative_slack = negative_slack
        self.n_init = n_init

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        shared = self.negative_slack == "bag"
        represent = self._represent if shared else self._represent_any
        representation = represent(bags, bag_weight, means="mean_instance")
        trainer = representation.trainer
        solutions = self._alternate_outputs(
            trainer,
            target,
            lambda output: KeyInstanceProblem(
                trainer,
                bags.offsets,
                target.signs[:, output],
                self.C,
                cost_weight[:, output],
                shared_slack=shared,
                machine=trainer if self._is_exact else None,
            ),
        )
        return self._fitted(representation, solutions)

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(
            max_rule=True,
            asymmetric=True,
            order_tolerance=1e-6,
            supervised_analogue=self._ordinary,
            **self._invariances(),
        )


class KeyInstanceProblem(Alternation):
    """MI-SVM of one output: rows are the key instances of positive bags and all negatives.

    Parameters
    ----------
    trainer : Trainer
        Solves the convex problems of the rounds.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    sign : ndarray of shape (n_bags,)
        Labels of the bags, +1 or -1.
    C : float
        The cost.
    weight : ndarray of shape (n_bags,)
        Weights of the bags.
    shared_slack : bool
        Whether the rows of a negative bag share one slack.
    machine : PointTrainer, optional
        For a third start, on few instances: those that score best by `label_scores` with it.
    """

    def __init__(
        self,
        trainer: Trainer,
        offsets: Integers,
        sign: Floats,
        C: float,
        weight: Floats,
        *,
        shared_slack: bool,
        machine: PointTrainer | None = None,
    ) -> None:
        super().__init__(trainer, Sides.of(offsets, sign), weight)
        self.cost, self.shared_slack, self.machine = C * weight, shared_slack, machine

    def loss(self, scores: Floats) -> float:
        sides, best = self.sides, self.bag_scores(scores)
        positive = np.maximum(1.0 - best[sides.positive], 0.0) @ self.cost[sides.positive]
        if self.shared_slack:
            violation, cost = 1.0 + best[sides.negative], self.cost[sides.negative]
        else:
            violation, cost = 1.0 + scores[sides.negatives], self.cost[sides.negative_bags]
        return float(positive + np.maximum(violation, 0.0) @ cost)

    def choose(self, scores: Floats) -> HingeProblem:
        return self._rows(self.best_instances(scores))

    def first_start(self) -> HingeProblem:
        return self._rows(self.sides.means)

    def fixed_starts(self) -> list[Callable[[], HingeProblem]]:
        machine, usual = self.machine, super().fixed_starts()
        if machine is None or not learns_from_labels(machine):
            return usual
        return [*usual, lambda: self.choose(label_scores(machine, self.sides, self.weight))]

    def key_rows(self, scores: Floats) -> HingeProblem:
        return self.choose(scores)

    def random_start(self, rng: np.random.Generator) -> HingeProblem:
        return self._rows(rng.integers(self.sides.starts, self.sides.stops))

    def name(self, surrogate: HingeProblem) -> Hashable:
        assert isinstance(surrogate, KeyRows)
        return surrogate.chosen.tobytes()  # the rest is always the same

    def _rows(self, standing_for: Integers) -> HingeProblem:
        """Return the problem in which these points stand for the positive bags."""
        return KeyRows(self.sides, self.cost, standing_for, shares_slack=self.shared_slack)


class KeyRows(HingeProblem):
    """The rows of MI-SVM: points that stand for the positive bags, then all negatives.

    Negatives are many, and the same in all problems: they are put together when they are asked for.

    Parameters
    ----------
    sides : Sides
        Which instances are negative.
    bag_cost : ndarray of shape (n_bags,)
        The cost of each bag.
    chosen : ndarray of int of shape (n_positive,)
        Which points stand for the positive bags.
    shares_slack : bool
        Whether the rows of a bag share one slack.
    """

    sides: Sides
    bag_cost: Floats
    chosen: Integers
    shares_slack: bool

    def __init__(
        self, sides: Sides, bag_cost: Floats, chosen: Integers, *, shares_slack: bool
    ) -> None:
        self.__dict__.update(
            sides=sides, bag_cost=bag_cost, chosen=chosen, shares_slack=shares_slack
        )

    @property
    def index(self) -> Integers:
        return np.concatenate([self.chosen, self.sides.negatives])

    @property
    def sign(self) -> Floats:
        return np.repeat([1.0, -1.0], [len(self.chosen), self.sides.n_negatives])

    @property
    def cost(self) -> Floats:
        return self.bag_cost[self._bags]

    @property
    def group(self) -> Integers | None:
        return self._bags if self.shares_slack else None

    @property
    def _bags(self) -> Integers:
        return np.concatenate([self.sides.positive, self.sides.negative_bags])

    def same_as(self, other: HingeProblem) -> bool:
        """Tell whether it is the same problem."""
        if isinstance(other, KeyRows) and other.sides is self.sides:
            return np.array_equal(self.chosen, other.chosen)
        return super().same_as(other)
