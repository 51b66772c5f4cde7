"""mi-SVM: labels of instances in positive bags are found along the way (Andrews et al. 2002)."""

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Booleans, Floats, Integers, Signs
from bagwise.bags import Bags
from bagwise.base import BagTags, Summary, Target, documented
from bagwise.solvers import best_in_bags
from bagwise.svm.machinery._alternation import TIE, Alternation
from bagwise.svm.machinery._kernel_machine import MEMORY_CONSTRAINT, MaxRuleMachine
from bagwise.svm.machinery._problem import HingeProblem
from bagwise.svm.machinery._sides import Sides
from bagwise.svm.machinery._starts import N_INIT_CONSTRAINT, StartCount
from bagwise.svm.machinery._trainer import Trainer


@documented
class miSVM(MaxRuleMachine):
    r"""Support vector machine on instances whose labels in positive bags are found along the way.

    With weights :math:`v_i` of the bags (1 unless ``sample_weight`` or ``class_weight`` say
    otherwise) and :math:`f(x) = \langle w, \phi(x) \rangle + b` it looks for a minimum of

    .. math::

        \min_{y_{ij}} \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_i v_i \sum_j \bigl(1 - y_{ij} f(x_{ij})\bigr)_+

    over labels :math:`y_{ij} = \pm 1` of the instances: all -1 in negative bags, at least one +1 in
    each positive bag. No sum is divided by anything. A bag scores as its best instance,
    :math:`f(B_i) = \max_j f(x_{ij})`; more than two classes are learned one against the rest.

    Every instance starts with the label of its bag, which is `SIL`. Then the labels in positive
    bags become the signs of the scores (+1 where a score is 0; the best instance of a bag without
    any +1 gets it), the convex problem is solved again, and so on until no label changes. These
    labels are the best ones for the scores, so the objective never rises.

    Parameters
    ----------
    |C, kernel, gamma, degree, coef0, approx, rank|
    |n_init|
        Here the first start has the labels of the bags; in random ones a random half of the
        instances of each positive bag are positive.
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
    MISVM : Lets one instance stand for each positive bag instead of labelling all.
    SIL : Takes every instance of a positive bag for positive.

    Notes
    -----
    The solution is a local optimum. Which one depends on the start; raising ``n_init`` tries more.
    A kernel flexible enough to fit the first labels never changes them: the end of the first start
    then is `SIL`. The objective alone does not tell a good end: it counts every instance, and is
    often lowest where nearly all of them are called negative. Hence errors on bags come first.

    Where instances are read in passes, only the last round solves its convex problem to the full
    accuracy. Earlier ones end when steps gain little; they never raise the objective either.

    References
    ----------
    S. Andrews, I. Tsochantaridis, T. Hofmann. Support vector machines for multiple-instance
    learning. NIPS 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import miSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = miSVM(C=10.0).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> float((model.key_instances(bags[1::2]) == 2).mean())
    1.0
    >>> bool((np.diff(model.result_.history) <= 0).all())
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption=(
            "at least one instance of a positive bag is positive, and none of a negative one"
        ),
        objective="hinge loss of all instances, over their labels too",
        cost="$N^2$ kernel values, a problem of $N$ rows in each round",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MaxRuleMachine._parameter_constraints,
        "max_memory": MEMORY_CONSTRAINT,
        "n_init": N_INIT_CONSTRAINT,
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
        self.n_init = n_init

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        representation = self._represent_any(bags, bag_weight)
        solutions = self._alternate_outputs(
            representation.trainer,
            target,
            lambda output: _LabelProblem(
                representation.trainer,
                bags.offsets,
                target.signs[:, output],
                self.C * cost_weight[:, output],
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


class _LabelProblem(Alternation):
    """mi-SVM of one output: rows are all instances, with the labels that suit the scores best."""

    def __init__(self, trainer: Trainer, offsets: Integers, sign: Floats, cost: Floats) -> None:
        super().__init__(trainer, Sides.of(offsets, sign), cost)
        sizes = np.diff(offsets)
        self.inherited = np.repeat(sign.astype(np.int8), sizes)
        self.cost = np.repeat(cost, sizes)
        self.index = np.arange(len(self.cost))
        self._known: tuple[Floats, Signs] | None = None  # the last scores, and their labels

    def loss(self, scores: Floats) -> float:
        short = self._labels(scores) * scores
        np.subtract(1.0, short, out=short)
        return float(np.maximum(short, 0.0, out=short) @ self.cost)

    def choose(self, scores: Floats) -> HingeProblem:
        return self._rows(self._labels(scores))

    def first_start(self) -> HingeProblem:
        return self._rows(self.inherited)

    def key_rows(self, scores: Floats) -> HingeProblem:
        is_key = best_in_bags(scores, self.sides.offsets)
        return self._rows(_signs(is_key & (self.inherited > 0)))

    def random_start(self, rng: np.random.Generator) -> HingeProblem:
        return self._rows(self._labels(rng.uniform(-1.0, 1.0, len(self.inherited))))

    def name(self, surrogate: HingeProblem) -> Hashable:
        """Return what no other labels are called: rows and costs are always the same."""
        return np.packbits(surrogate.sign > 0.0).tobytes()

    def _labels(self, scores: Floats) -> Signs:
        """Return the labels of least loss: signs, and one +1 at least in each positive bag."""
        if self._known is None or self._known[0] is not scores:
            labels = _signs((self.inherited > 0) & (scores >= -TIE))
            labels[self.best_instances(scores)] = 1
            self._known = scores, labels
        return self._known[1]

    def _rows(self, labels: Signs) -> HingeProblem:
        return HingeProblem(self.index, labels, self.cost)


def _signs(is_positive: Booleans) -> Signs:
    """Return +1 and -1, a byte for each."""
    return np.where(is_positive, np.int8(1), np.int8(-1))
