"""What instances cost that inherit the label of their bag.

Every instance of a negative bag is negative. Of the n instances of a positive bag anything from 1
to n are positive, and nothing says how many. Where few are, and positive bags are as many as
others, the instances that both have in common are met as often with either label: which one they
get is a matter of chance, and the best instance of a bag says nothing. So a label that may be wrong
ought to cost less. The share of positive instances is between 1/n and 1; in the middle, by factors,
is the square root of 1/n.

Where nearly all instances of positive bags are positive, they had better cost as much as others.
Whether the plain machine ranks bags by chance is seen from bags that it has not learned from. It is
asked only where even the bags that it has learned from leave a doubt, since that takes three more
fits.
"""

from abc import abstractmethod
from copy import copy
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise._warnings import quiet
from bagwise.bags import Bags, segment_max
from bagwise.base import Target, Task, ranked_right, ranking_error, unseen_scores
from bagwise.svm.machinery._kernel_machine import MaxRuleMachine
from bagwise.svm.machinery._problem import Solution
from bagwise.svm.machinery._representation import Representation
from bagwise.svm.machinery._trainer import Trainer

POSITIVE_COST_CONSTRAINT: list[Any] = [
    StrOptions({"auto", "sqrt"}),
    Interval(Real, 0, None, closed="neither"),
]

_PLAIN, _EASED = 1.0, "sqrt"  # what "auto" chooses from
_DOUBT = 0.5  # mistakes, as a share of those by the most frequent label, that leave a doubt
_ERRORS = 2.0  # standard errors within which a ranking may be one by chance
_EQUAL = 1e-9  # shares that differ by less are equal
_RESOLUTION = 1e-5  # scores that differ by less are equal

Cost: TypeAlias = float | str


def inherited_costs(bags: Bags, sign: Floats, weight: Floats, positive_cost: Cost) -> Floats:
    """Return what each instance costs: the weight of its bag, times a factor if that is positive.

    Parameters
    ----------
    bags : Bags
        Bags of instances.
    sign : ndarray of shape (n_bags,)
        1 for positive bags, -1 for others.
    weight : ndarray of shape (n_bags,)
        Weights of the bags.
    positive_cost : float or "sqrt"
        The factor; ``"sqrt"`` is one over the square root of the number of instances of the bag.
    """
    factor = 1.0 / np.sqrt(bags.sizes) if positive_cost == "sqrt" else float(positive_cost)
    return np.repeat(np.where(sign > 0, factor * weight, weight), bags.sizes)


class InheritedLabelMachine(MaxRuleMachine):
    """Base of machines that learn from instances with the label of their bag.

    A subclass writes `_solved`.
    """

    positive_cost: Cost
    positive_cost_: list[Cost]

    @abstractmethod
    def _solved(
        self, task: Task, costs: list[Cost]
    ) -> tuple[Representation[Trainer], list[Solution]]:
        """Solve the problem of each output, at a cost of positive instances for each."""

    def _counts_mistakes(self, bags: Bags) -> bool:
        return bool((bags.sizes == 1).all())  # else those of instances

    def _settle(self) -> None:
        super()._settle()
        if hasattr(self, "positive_cost_"):  # of two classes
            self.positive_cost = self.positive_cost_[0]

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        task = Task(bags, target, cost_weight, bag_weight)
        # On large data the choice would cost more passes than all the rest.
        chooses = self.positive_cost == "auto" and not self._reads_in_passes(bags)
        first = _PLAIN if self.positive_cost == "auto" else self.positive_cost
        costs: list[Cost] = [first if isinstance(first, str) else float(first)] * target.n_outputs
        learned, best = self._fitted_at(task, costs)
        unseen = None
        if chooses and not self._counts_mistakes(bags):
            machine = copy(self)
            machine.__dict__.update(learned)
            for output in range(target.n_outputs):
                costs[output], unseen = machine._chosen_cost(task, output, best[output])
            if _EASED in costs:
                with quiet():  # what there is to say of the instances was said
                    learned, _ = self._fitted_at(task, costs)
        known = {} if unseen is None or target.n_outputs > 1 else {"_unseen": unseen}
        return {**learned, "positive_cost_": costs, **known}

    def _fitted_at(self, task: Task, costs: list[Cost]) -> tuple[dict[str, Any], list[Floats]]:
        """Return fitted attributes, and by output the scores of bags for the sign +1."""
        representation, solutions = self._solved(task, costs)
        side, offsets = task.target.side, task.bags.offsets
        best = [
            segment_max(side * solution.scores, offsets[:-1], offsets[1:]) for solution in solutions
        ]
        return self._fitted(representation, solutions), best

    def _chosen_cost(self, task: Task, output: int, scores: Floats) -> tuple[Cost, Floats | None]:
        """Return what instances of positive bags had better cost in the problem of an output.

        Parameters
        ----------
        task : Task
            What is learned from.
        output : int
            Number of the problem.
        scores : ndarray of shape (n_bags,)
            Scores of the bags by the plain machine.

        Returns
        -------
        cost : float or "sqrt"
            The cost.
        unseen : ndarray of shape (n_bags,) or None
            Scores of bags that were left out of fits with this cost, if they had to be known.
        """
        bags, sign, weight = task.bags, task.target.signs[:, output], task.cost_weight[:, output]
        if (sign == sign[0]).all():
            return _PLAIN, None
        if not self._knows_by_heart and not _is_doubtful(scores, sign, weight):
            return _PLAIN, None
        alone = Target(np.array([0, 1]), (sign > 0).astype(np.intp))
        part = Task(bags, alone, weight[:, None], task.bag_weight)

        def judged(cost: Cost) -> tuple[float, Floats]:
            machine = copy(self)
            machine.positive_cost = cost
            unseen = unseen_scores(machine, part)
            return ranked_right(unseen, sign, weight, _RESOLUTION), unseen

        plain, unseen = judged(_PLAIN)
        error = ranking_error(weight[sign > 0].sum(), weight[sign < 0].sum())
        if plain > 0.5 + _ERRORS * error + _EQUAL:
            return _PLAIN, unseen
        eased, others = judged(_EASED)
        return (_EASED, others) if eased > plain + _EQUAL else (_PLAIN, unseen)


def _is_doubtful(scores: Floats, sign: Floats, weight: Floats) -> bool:
    """Return whether mistakes are more than half of those by the most frequent label, by weight."""
    wrong, is_positive = (
        float(np.average(share, weights=weight)) for share in ((scores > 0) != (sign > 0), sign > 0)
    )
    return wrong > _DOUBT * min(is_positive, 1.0 - is_positive) + _EQUAL
