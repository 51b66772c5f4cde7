"""MILES: bags as points in a space of instances, and a sparse linear classifier there."""

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import (
    BagClassifier,
    BagTags,
    KernelParameters,
    Summary,
    Target,
    Task,
    documented,
    one_vs_rest,
    problem_key,
    scale_powers,
    settled_gamma,
    shared_by,
)
from bagwise.kernels import InstanceMetric, hausdorff, nearest, nearest_among
from bagwise.solvers import (
    Certificate,
    OneNormSVMResult,
    instance_keys,
    perturbed,
    solve_one_norm_svm,
)

_SQUARED = InstanceMetric("sqeuclidean")
#: Squared distances that differ by no more than this, relatively, are the same up to rounding.
_TIE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 5e-4}


@documented
class MILES(BagClassifier):
    r"""Multiple-instance learning via embedded instance selection.

    A bag becomes the vector of its similarities to all training instances :math:`x^k`,

    .. math::

        s_k(B) = \max_{x \in B} \exp\bigl(-\gamma \|x - x^k\|^2\bigr),

    and a 1-norm support vector machine on these vectors selects the few instances that matter. With
    weights :math:`v_i` of the bags (1 unless ``sample_weight`` or ``class_weight`` say otherwise)
    it solves the linear programme

    .. math::

        \min_{w, b} \; \sum_k |w_k|
        + C \sum_i v_i \bigl(1 - y_i (\langle w, s(B_i) \rangle + b)\bigr)_+

    and a bag scores :math:`f(B) = \langle w, s(B) \rangle + b`. No sum is divided by anything, the
    intercept is free. More than two classes are learned one against the rest, on one and the same
    embedding.

    The score of an instance is its contribution to the score of its bag. Each selected instance
    :math:`x^k` gives :math:`w_k s_k(B)` to the instance of the bag that is most similar to it, in
    equal parts if there are several; so the scores of the instances of a bag and the intercept add
    up to the score of the bag, and instances that are nobody's most similar have score 0.

    Parameters
    ----------
    C : float
        Cost of margin violations. In the paper's notation, with its penalty :math:`\lambda` and
        balance :math:`\mu = 1/2`, it is :math:`1 / (2 \lambda)`; another balance is
        ``class_weight={negative: 2 * (1 - mu), positive: 2 * mu}``.
    |gamma|
        In the paper's notation it is :math:`1 / \sigma^2`.
    |class_weight|
    tol : float
        Duality gap, relative to the objective, at which the linear programme counts as solved.
    max_iter : int
        Most simplex steps of each linear programme.
    n_jobs : int or None
        Threads for the one-vs-rest problems. The embedding uses all processors regardless.
    |verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_|
    prototypes_ : ndarray or CSR array of shape (n_prototypes, n_features)
        The selected instances: those with a weight in one of the outputs.
    support_ : ndarray of int of shape (n_prototypes,)
        Which training instances they are; those in bags of weight 0 are not counted.
    coef_ : ndarray of shape (n_outputs, n_prototypes)
        Their weights.
    |intercept_, intercept_shift_: others|
    gamma_ : float
        The value of ``gamma`` in use.
    |n_features_in_, feature_names_in_, result_|
    n_iter_ : int
        Simplex steps.

    See Also
    --------
    bagwise.svm.MICA : A 1-norm machine on kernels, whose bags score as their best instance.
    bagwise.svm.MISVM : Lets one instance stand for each positive bag.

    Notes
    -----
    The embedding holds one number for each pair of a training bag and a training instance, in the
    precision of the features. Only the selected instances are needed afterwards.

    The default of ``C`` gives an accuracy of 0.88 on standardised Musk1 (10-fold cross-validation),
    1 gives 0.84.

    An instance is most similar to itself, so a bag has similarity 1 to each of its own instances.
    That is part of the method, although no new bag can have it. So training bags do not tell where
    the threshold ought to be. With two labels, folds of bags are left out of three more programmes,
    with their instances, and the threshold moves if one label for all would be right for more of
    them. The similarities are those of the whole, which are not computed or copied again, and the
    third programme is not solved where two are enough to see that the threshold stays.

    Where the linear programme has several solutions, the values of the instances decide which one
    is taken, not their order. Equal instances have equal similarities, and only the sum of their
    weights matters.

    References
    ----------
    Y. Chen, J. Bi, J. Z. Wang. MILES: Multiple-instance learning via embedded instance selection.
    IEEE Transactions on Pattern Analysis and Machine Intelligence 28(12), 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.embedding import MILES
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = MILES().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.key_instances(bags[1::2])
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    >>> len(model.prototypes_) < 5
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="bags come near to some typical instances, or do not",
        objective="1-norm of the weights, and hinge loss of similarities to all training instances",
        cost="$N^2$ kernel values, a linear programme of $m$ rows, up to three of two thirds",
    )

    _convergence_advice = "scale the features, lower C, or raise max_iter or tol"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "gamma": KernelParameters._parameter_constraints["gamma"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: float = 10.0,
        *,
        gamma: Any = "scale",
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 1_000_000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        gamma = settled_gamma(self.gamma, bags, bag_weight)
        share = shared_by(bags, room_for=self)
        if share is None:
            distance = _distances(bags)
        else:
            whole = share.of_whole("nearest", _distances)
            distance = whole[np.ix_(share.index, share.rows)]
        starts = None if share is None else share.starts(problem_key(self))
        similarity = _similarity(distance, gamma)
        programme = _Programme.of(similarity, bags, tol=self.tol, max_iter=self.max_iter)

        def solve(output: int) -> tuple[OneNormSVMResult, OneNormSVMResult]:
            sign, cost = target.signs[:, output], self.C * cost_weight[:, output]
            first = programme.vertex(sign, cost, None if starts is None else starts.find(sign))
            if starts is not None:
                starts.keep(first, sign)
            # Where several solutions are optimal, the one just found is: no step is taken.
            left = self.max_iter - first.n_iter
            result = solve_one_norm_svm(
                similarity, sign, cost, start=first, tol=self.tol, max_iter=left
            )
            return first, replace(
                result,
                n_iter=first.n_iter + result.n_iter,
                solve_time=first.solve_time + result.solve_time,
            )

        vertices, results = zip(*one_vs_rest(solve, target.n_outputs, self.n_jobs), strict=True)
        weights = np.array([result.x for result in results])
        support = np.flatnonzero(weights.any(axis=0))
        coef = np.ascontiguousarray(weights[:, support])
        if share is not None:
            share.remember(coef, whole, share.rows[support], coef, of_bags=True)
        return {
            "prototypes_": bags.take_instances(support),
            "support_": support,
            "coef_": coef,
            "intercept_": np.array([result.intercept for result in results]),
            "gamma_": gamma,
            "result_": Certificate.total([result.certificate for result in results]),
            "_solved": (programme, vertices[0]),  # until the threshold is where it stays
        }

    def _review(self, *task: Any) -> None:
        super()._review(*task)
        del self._solved

    def _scores_by_others(self, task: Task, left_out: Booleans) -> Floats:
        sign, cost = task.target.signs[:, 0], self.C * task.cost_weight[:, 0]
        programme, vertex = self._solved
        return programme.scores_by_others(sign, cost, left_out, vertex)

    def _shared_bytes(self, bags: Bags) -> int:
        """See `SharingEstimator`: the distances of bags to instances."""
        return int(bags.dtype.itemsize * len(bags) * bags.n_instances)

    @property
    def _threshold_moves(self) -> bool:
        return True

    def _counts_mistakes(self, bags: Bags) -> bool:
        return False  # of training bags alone, which are at no distance from their own instances

    @property
    def _knows_by_heart(self) -> bool:
        return True

    def _bag_outputs(self, bags: Bags) -> Floats:
        share = shared_by(bags)
        distance = None if share is None else share.block(self.coef_, of_bags=True)
        if distance is None:
            distance = hausdorff(_SQUARED, *self._prototypes, *bags.segments, only="min").T
        similarity = _similarity(distance, self.gamma_)
        return np.asarray(similarity @ self.coef_.T + self.intercept_)

    @property
    def _prototypes(self) -> tuple[Any, Integers, Integers]:
        """The selected instances as bags of one.

        They come before the bags that are scored: distances are taken from the mean of the first
        ones, and a score does not depend on the bags beside it.
        """
        rows = np.arange(len(self.support_))
        return self.prototypes_, rows, rows + 1

    def _instance_outputs(self, bags: Bags) -> Floats:
        starts = bags.offsets[:-1]
        distance = nearest(_SQUARED, *self._prototypes, bags.instances).T
        least = np.minimum.reduceat(distance, starts, axis=0)
        limit = np.repeat(least * (1 + _TIE[distance.dtype]), bags.sizes, axis=0)
        is_nearest = (distance <= limit).astype(np.float64)
        number = np.add.reduceat(is_nearest, starts, axis=0)
        share = np.exp(-self.gamma_ * least.astype(np.float64)) / number
        return np.asarray((is_nearest * np.repeat(share, bags.sizes, axis=0)) @ self.coef_.T)

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(scale_powers=scale_powers("rbf", self.gamma), shift_invariant=True)


@dataclass(frozen=True, eq=False)
class _Programme:
    """The linear programme on the similarities of bags to their instances, for any signs.

    Parameters
    ----------
    similarity : ndarray of shape (n_bags, n_instances)
        The rows.
    sizes : ndarray of int of shape (n_bags,)
        How many columns are the instances of each bag.
    penalty : ndarray of shape (n_instances,)
        Penalties of the weights, perturbed.
    keys : ndarray of shape (n_bags,)
        What the costs are perturbed by.
    tol, max_iter : float, int
        When to stop.
    """

    similarity: NDArray[Any]
    sizes: Integers
    penalty: Floats
    keys: Floats
    tol: float
    max_iter: int

    @classmethod
    def of(cls, similarity: NDArray[Any], bags: Bags, *, tol: float, max_iter: int) -> "_Programme":
        """Return the programme of these bags, perturbed by the values of their instances."""
        keys = instance_keys(bags.instances)
        bag_keys = np.add.reduceat(keys, bags.offsets[:-1]) / bags.sizes
        penalty = perturbed(np.ones(len(keys)), keys)
        return cls(similarity, bags.sizes, penalty, bag_keys, tol, max_iter)

    def vertex(
        self, sign: Floats, cost: Floats, start: OneNormSVMResult | None = None
    ) -> OneNormSVMResult:
        """Return the one solution that is optimal for perturbed costs and penalties."""
        return self._solve(sign, cost, self.penalty, start)

    def scores_by_others(
        self, sign: Floats, cost: Floats, left_out: Booleans, vertex: OneNormSVMResult
    ) -> Floats:
        """Return the scores of bags by the machine that all others, with their instances, make.

        It is found among all rows and columns, which need not be copied. These bags cost nothing,
        and their instances more than a weight can gain: similarities are at most 1, so no price
        exceeds the sum of the costs. The search starts at the vertex of all bags, without what is
        left out.
        """
        is_out = np.repeat(left_out, self.sizes)
        cost = np.where(left_out, 0.0, cost)
        penalty = np.where(is_out, 2.0 * cost.sum(), self.penalty)
        start = replace(vertex, columns=vertex.columns[~is_out[vertex.columns]])
        found = self._solve(sign, cost, penalty, start)
        if not found.x.any():  # no perturbation decides between two labels that cost the same
            return np.full(left_out.sum(), np.sign(sign @ cost))
        return found.decision[left_out]

    def _solve(
        self, sign: Floats, cost: Floats, penalty: Floats, start: OneNormSVMResult | None = None
    ) -> OneNormSVMResult:
        return solve_one_norm_svm(
            self.similarity,
            sign,
            perturbed(cost, self.keys),
            penalty=penalty,
            start=start,
            tol=self.tol,
            max_iter=self.max_iter,
        )


def _distances(bags: Bags) -> NDArray[Any]:
    """Return the squared distance from each bag to the nearest instance of every bag."""
    return nearest_among(_SQUARED, *bags.segments)


def _similarity(distance: NDArray[Any], gamma: float) -> NDArray[Any]:
    """Turn squared distances into similarities, in place."""
    with np.errstate(over="ignore", under="ignore"):
        distance *= -min(gamma, float(np.finfo(distance.dtype).max))
        return np.exp(distance, out=distance)
