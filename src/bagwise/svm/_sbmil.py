"""sbMIL: sMIL ranks the instances of positive bags, the best of them train an ordinary SVM."""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise._compat import Interval
from bagwise.bags import Bags
from bagwise.base import BagTags, Summary, Target, documented
from bagwise.svm.machinery._kernel_machine import MaxRuleMachine
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._sides import Sides
from bagwise.svm.machinery._smil_loss import SparseLoss
from bagwise.svm.machinery._trainer import Trainer

_TIE = 1e-9


@documented
class SBMIL(MaxRuleMachine):
    r"""Support vector machine on the instances that sMIL ranks best (sbMIL).

    `SMIL` is trained first. By its scores the best instances of all positive bags together, a share
    ``eta`` of them, are called positive, the others negative, like all instances of negative bags.
    With these labels :math:`t_{ij} = \pm 1`, weights :math:`v_i` of the bags (1 unless
    ``sample_weight`` or ``class_weight`` say otherwise) and
    :math:`f(x) = \langle w, \phi(x) \rangle + b` it solves the convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_i v_i \sum_j \bigl(1 - t_{ij} f(x_{ij})\bigr)_+

    The sum is not divided by anything. A bag scores as its best instance,
    :math:`f(B_i) = \max_j f(x_{ij})`; more than two classes are learned one against the rest.

    Parameters
    ----------
    C : float
        Cost of margin violations, in both stages; in the first it is that of `SMIL`.
    eta : float
        Share of positive ones among the instances of positive bags, 0 to 1. They are at least as
        many as there are positive bags. Worth tuning, in {0.1, 0.3, 0.5, 0.7, 0.9}.
    |kernel, gamma, degree, coef0, approx, rank, class_weight, pos_label, cache_size, tol|
    max_iter : int
        Most iterations of the solver in each stage.
    |random_state: maps, n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, pos_label_, support_vectors_, support_, dual_coef_|
    |coef_, fourier_weights_, fourier_offset_, gamma_, intercept_: instances|
    |intercept_shift_, n_features_in_|
    |feature_names_in_|
    result_ : Certificate
        Objective above, its duality gap and how the solver of the second stage ended; iterations
        and time are those of both stages. A first stage that is cut short by ``max_iter`` ranks
        less exactly, that is all.
    n_iter_ : int
        Iterations of the solver in both stages.

    See Also
    --------
    SMIL : The first stage.
    miSVM : Finds the labels of instances by alternation.
    SIL : ``eta=1``.

    Notes
    -----
    Shares are weighted: the instances of a bag of weight 2 are there twice. The instance with which
    the share is reached is the last positive one, and others with the same score go with it.

    On inner training folds the best ``eta`` was 0.9 for Musk1 and 0.5 for the images Elephant and
    Tiger; the default lies between.

    References
    ----------
    R. C. Bunescu, R. J. Mooney. Multiple instance learning for sparse positive bags. ICML 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import SBMIL
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = SBMIL(C=10.0, eta=0.2).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.key_instances(bags[1::2])
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="a share `eta` of the instances in positive bags is positive",
        objective="that of `SMIL`, then hinge loss of all instances with labels by its ranking",
        cost="$N^2$ kernel values, two problems of about $N$ rows",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MaxRuleMachine._parameter_constraints,
        "eta": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        eta: float = 0.7,
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
        self.eta = eta

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        representation = self._represent(
            bags, bag_weight, means="kernel_mean", max_iter=self.max_iter
        )
        trainer = representation.trainer

        def solve(output: int) -> Solution:
            sides = Sides.of(bags.offsets, target.signs[:, output])
            return _solve(trainer, sides, self.C, self.eta, cost_weight[:, output])

        return self._fitted(representation, self._solve_outputs(trainer, target, solve))

    def __bagwise_tags__(self) -> BagTags:
        from sklearn.svm import SVC

        return BagTags(
            max_rule=True,
            asymmetric=True,
            order_tolerance=1e-5,
            supervised_analogue=SVC(tol=1e-8),
            **self._invariances(),
        )


def _solve(trainer: Trainer, sides: Sides, C: float, eta: float, weight: Floats) -> Solution:
    """Run both stages of one output."""
    sparse = trainer.solve(SparseLoss.balanced(sides, C * weight).rows())
    sign = np.full(trainer.n_instances, -1.0)
    sign[sides.unlabelled[best_share(sparse.scores, sides, eta, weight)]] = 1.0
    cost = np.empty(trainer.n_instances)
    cost[sides.negatives] = C * weight[sides.negative_bags]
    cost[sides.unlabelled] = C * weight[sides.unlabelled_bags]
    rows = HingeProblem(np.arange(trainer.n_instances), sign, cost)
    solution = trainer.solve(rows, sparse)  # which has computed most of the inner products
    first, second = sparse.certificate, solution.certificate
    certificate = replace(
        second, n_iter=first.n_iter + second.n_iter, solve_time=first.solve_time + second.solve_time
    )
    return replace(solution, certificate=certificate)


def best_share(scores: Floats, sides: Sides, eta: float, weight: Floats) -> NDArray[np.intp]:
    """Return which instances of positive bags are among the best: a share ``eta``, weighted.

    They are at least as many as there are positive bags. Equal scores go together, so that a bag of
    weight 2 is the same as having it twice.
    """
    _, n_unlabelled, n_positive = sides.counts(weight)
    wanted = min(max(eta * n_unlabelled, n_positive), n_unlabelled)
    score = scores[sides.unlabelled]
    order = np.argsort(-score, kind="stable")
    mass = np.cumsum(weight[sides.unlabelled_bags][order])
    last = order[min(int(np.searchsorted(mass, wanted * (1.0 - _TIE))), len(order) - 1)]
    slack = _TIE * max(1.0, float(np.abs(score).max()))
    return np.flatnonzero(score >= score[last] - slack)
