"""MI-ODM: the optimal margin distribution machine with key instances (Zhang & Jin 2020)."""

from dataclasses import dataclass, replace
from math import inf, nan
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, segment_max
from bagwise.base import BagTags, Summary, Target, best_threshold, documented
from bagwise.solvers import (
    AssignmentProblem,
    AssignmentResult,
    ShiftedRows,
    generate_assignments,
    solve_by_mirror_prox,
)
from bagwise.svm.machinery._odm_machine import ODMMachine
from bagwise.svm.machinery._odm_problem import KeyBandProblem
from bagwise.svm.machinery._odm_trainer import BandSettings
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._representation import Representation

_INNER = 1e-9  # relative gap of problems with given key instances, and decrease at their end
_RESOLUTION = 1e-8  # scores that differ by less are equal to a threshold
_POLISHED = 3  # assignments of a mixture that are tried alone
_RELAXED = ("relaxed", "mirror_prox", "stochastic_mirror_prox")


@documented
class MIODM(ODMMachine):
    r"""Optimal margin distribution machine in which one instance stands for each positive bag.

    It wants the margins of the positive bags and of all negative instances close to 1, where
    `MISVM` wants none of them below 1. With weights :math:`v_i` of the bags (1 unless
    ``sample_weight`` or ``class_weight`` say otherwise), the decision function
    :math:`f(x) = \langle w, \phi(x) \rangle + b` and the loss of a margin :math:`m`

    .. math::

        \ell(m) = \frac{(1 - \theta - m)_+^2 + \nu (m - 1 - \theta)_+^2}{(1 - \theta)^2}

    the objective, to be least over the key instances :math:`d_i` of positive bags as well, is

    .. math::

        H(d) = \min_{w, b} \; \tfrac12 \|w\|^2 + \frac{b^2}{2 \kappa}
        + C \sum_{i: y_i = +1} v_i \, \ell\bigl(f(x_{i d_i})\bigr)
        + \lambda C \sum_{i: y_i = -1} v_i \sum_j \ell\bigl(-f(x_{ij})\bigr)

    No sum is divided by anything. A bag scores as its best instance,
    :math:`f(B_i) = \max_j f(x_{ij})`, which is its key instance; more than two classes are learned
    one against the rest.

    To find the best key instances is hard. The convex relaxation mixes assignments :math:`d_k` of
    key instances: with the rows :math:`r` of the problem, their signs :math:`s_r`, costs
    :math:`c_r` (with the factor :math:`1 / (1 - \theta)^2`) and feature vectors
    :math:`\phi_r(d_k)` it is

    .. math::

        \min_{\mu \in \Delta} \; \max_{u, v \ge 0} \; \sum_r \Bigl[ (1 - \theta) u_r
        - (1 + \theta) v_r - \frac{u_r^2}{4 c_r} - \frac{v_r^2}{4 \nu c_r} \Bigr]
        - \tfrac12 \sum_k \mu_k \Bigl\| \sum_r (u_r - v_r) s_r \phi_r(d_k) \Bigr\|^2

    where :math:`\kappa` is added to all inner products. Its optimum is a lower bound of all
    :math:`H(d)`.

    Parameters
    ----------
    C : float
        Cost of margins outside the band: what a positive bag with the margin 0 costs.
    negative_cost : "bag" or float
        :math:`\lambda`, what a negative instance costs in units of ``C``. ``"bag"``: the number of
        negative bags over the number of their instances, so that all negative instances
        together cost what the negative bags would. With ``class_weight="balanced"`` that is as much
        as all positive bags cost.
    theta : float
        :math:`\theta`, half the width of the band around 1 in which margins cost nothing; at least
        0 and below 1.
    nu : float
        :math:`\nu`, what a margin above the band costs, in units of one below.
    n_key : int
        How many instances stand for a positive bag, by the mean of their scores in place of
        :math:`f(x_{i d_i})`; all, if a bag has fewer.
    solver : {"best", "local", "relaxed", "mirror_prox", "stochastic_mirror_prox"}
        ``"local"`` alternates between key instances and the convex problem for them, beginning with
        the mean instances of positive bags. ``"relaxed"`` solves the relaxation by adding
        assignments to the mixture as they are needed; the decision function is the mean of those
        of the mixture. ``"best"`` does both, alternates from more starts (the best instances of the
        relaxed machine, its three heaviest assignments, likely key instances), and keeps the end
        of lowest objective. The last two solve the relaxation by the method of the paper, over the
        assignments that ``"relaxed"`` found; they are slower by far and are there for
        comparison.
    |kernel, gamma, degree, coef0, approx, rank|
    bias : float
        :math:`\kappa`, a constant that is added to the kernel and makes the constant term
        :math:`b`; with 0 there is none.
    threshold : {"auto", "training", "zero"}
        The score above which a bag is positive: the one with the fewest errors on the training
        bags (weighted), or 0. ``"auto"`` is 0 unless ``solver`` gives a relaxed machine, in which
        one instance of a bag gets only its share of the score.
    |class_weight, pos_label|
    cache_size : float
        Megabytes that the kernel matrix between all training instances may take in double
        precision; a fit of more instances is refused. With the linear kernel or ``approx``,
        ``solver="local"`` needs no matrix.
    |max_memory: passes|
        Only with ``solver="local"`` are they.
    tol : float
        Largest gap at which the solver of the relaxation stops, in units of its objective. Problems
        with given key instances are solved to 1e-9, or to this if it is less.
    max_iter : int
        Most rounds of adding assignments to the mixture, and of choosing key instances.
    n_restarts : int
        Random starts of the search for assignments in every round; three times as many starts cross
        two assignments of the mixture.
    random_state : int, RandomState or None
        Seed of these starts, and of the maps of ``approx`` that are random.
    |n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, pos_label_, support_vectors_, support_, dual_coef_|
    |coef_, fourier_weights_, fourier_offset_, gamma_|
    intercept_ : ndarray of shape (n_outputs,)
        What ``bias`` and ``threshold`` come to: the constant of the decision function.
    |intercept_shift_: margins|
        Not with ``threshold="zero"``.
    |n_features_in_, feature_names_in_|
    result_ : Certificate
        The objective, :math:`H` or that of the relaxation, its values over the rounds, how they
        ended, and with several starts the objectives at which all of them ended, ``ends``. There
        is a ``lower_bound`` only if the relaxation was solved and all assignments could be looked
        at (there are at most 4096); else it is ``-inf``.
    gap_estimate_ : float
        How far the objective may be above its optimum, judged by the assignments that were found:
        an estimate, and a proof only if ``result_.lower_bound`` is finite. With ``"best"`` it is
        the distance of :math:`H` to the relaxation, which need not vanish at the optimum; with
        ``"local"`` nothing is known, and it is NaN.
    n_iter_ : int
        Rounds that led to the machine.

    See Also
    --------
    ODM : Takes every instance of a positive bag for positive.
    MISVM : The support vector machine with key instances.
    InsKISVM : Relaxes the choice of key instances too, with the squared hinge.
    bagwise.metrics.margin_distribution : Mean and variance of the margins.

    Notes
    -----
    This is problem (4) of the paper, with :math:`\lambda_1 = C p` and :math:`\lambda_2 = \lambda C
    q` for :math:`p` positive and :math:`q` negative bags. The paper divides the sum over negative
    *instances* by the number of negative *bags*, so that :math:`\lambda_1 = \lambda_2` makes the
    negative class weigh as many times more as its bags have instances on average;
    ``negative_cost="bag"`` undoes this, and one grid of ``C`` serves bags of any size. Problem (4)
    is not the same as (3), which asks for the maximum over a bag: an instance that
    is not chosen may lie above the band at no cost. Several key instances of a bag are added up
    in the paper; here their mean has to lie in the band, so that ``n_key`` does not change the
    scale of the scores.

    The solution of ``"best"`` and ``"local"`` is a local optimum. The members of a mixture may use
    different instances of a bag; a bag has one score for one instance, so that positive bags of a
    relaxed machine score too low, hence the learned threshold.

    References
    ----------
    T. Zhang, H. Jin. Optimal margin distribution machine for multi-instance learning. IJCAI 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import MIODM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = MIODM(random_state=0).fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.key_instances(bags[1::2])
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="one instance makes a bag positive",
        objective=(
            "squares of the margins of key instances and of negative instances outside a band "
            "around 1"
        ),
        cost="$N^2$ kernel values, all held; Newton steps in each round",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ODMMachine._parameter_constraints,
        "negative_cost": [StrOptions({"bag"}), Interval(Real, 0, None, closed="neither")],
        "n_key": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"best", "local", *_RELAXED})],
        "threshold": [StrOptions({"auto", "training", "zero"})],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 10.0,
        *,
        negative_cost: Any = "bag",
        theta: float = 0.2,
        nu: float = 0.2,
        n_key: int = 1,
        solver: str = "best",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approx: str | None = None,
        rank: int = 300,
        bias: float = 1.0,
        threshold: str = "auto",
        class_weight: Any = None,
        pos_label: Any = None,
        cache_size: float = 1000.0,
        max_memory: int | str | None = None,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_restarts: int = 20,
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
        self.negative_cost = negative_cost
        self.theta = theta
        self.nu = nu
        self.n_key = n_key
        self.solver = solver
        self.bias = bias
        self.threshold = threshold
        self.pos_label = pos_label
        self.max_memory = max_memory
        self.n_restarts = n_restarts

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        self._refuse_unfit(bags)
        represent = self._represent_any if self.solver == "local" else self._represent
        representation = represent(bags, bag_weight, means="mean_instance")
        seeds = self._random_generator().integers(2**31, size=target.n_outputs)
        gaps = np.zeros(target.n_outputs)

        def solve(output: int) -> Solution:
            sign, weight = target.signs[:, output], cost_weight[:, output]
            task = _Task(self, representation, bags, sign, weight, int(seeds[output]))
            solution, gaps[output] = task.solve()
            return self._with_threshold(solution, bags, sign, weight)

        solutions = self._solve_outputs(representation.trainer, target, solve)
        fitted = self._fitted(representation, solutions)
        return {**fitted, "gap_estimate_": float(gaps.sum())}

    @property
    def _threshold_moves(self) -> bool:
        return bool(self.threshold != "zero")

    def _refuse_unfit(self, bags: Bags) -> None:
        if self.solver == "local" and self._is_linear():
            return
        advice = "approx"
        if self.solver != "local":
            advice = "solver='local'" if self._is_linear() else "solver='local' with approx"
        self._refuse_large(bags.n_instances, "all instances", advice)

    def _row_costs(self, bags: Bags, sign: Floats, cost_weight: Floats) -> Floats:
        """Return the cost of each positive bag, and of each instance of a negative one."""
        share = self.negative_cost
        if share == "bag":
            weight = np.where(sign < 0, cost_weight, 0.0)
            total = float(weight @ bags.sizes)
            share = weight.sum() / total if total else 1.0
        return self._unit_cost() * cost_weight * np.where(sign < 0, share, 1.0)

    def _with_threshold(
        self, solution: Solution, bags: Bags, sign: Floats, weight: Floats
    ) -> Solution:
        learned = self.solver in _RELAXED if self.threshold == "auto" else self.threshold != "zero"
        if not learned:
            return solution
        scores = segment_max(solution.scores, bags.offsets[:-1], bags.offsets[1:])
        level = best_threshold(scores, sign, weight, _RESOLUTION)
        return replace(solution, intercept=solution.intercept - level)

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(max_rule=True, asymmetric=True, order_tolerance=5e-3, **self._invariances())


@dataclass(frozen=True, eq=False)
class _Task:
    """The problem of one output."""

    model: MIODM
    representation: Representation[Any]
    bags: Bags
    sign: Floats
    cost_weight: Floats
    seed: int

    def solve(self) -> tuple[Solution, float]:
        """Return the machine, and an estimate of how far it is from the optimum."""
        model = self.model
        settings = model._settings(tol=min(model.tol, _INNER))
        cost = model._row_costs(self.bags, self.sign, self.cost_weight)
        trainer = model._trainer(self.representation, settings)
        problem = KeyBandProblem(trainer, self.bags.offsets, self.sign, cost, settings, model.n_key)
        if model.solver == "local":
            return problem.local(model.max_iter), nan
        relaxed = self.relax(problem, settings)
        solution = self.mixture(problem, relaxed, settings)
        if model.solver in _RELAXED:
            return solution, relaxed.gap_estimate
        best = problem.best(model.max_iter, [solution.scores, *self.columns(problem, relaxed)])
        bound = relaxed.objective - relaxed.gap_estimate
        certificate = replace(
            best.certificate,
            lower_bound=bound if relaxed.gap_is_proven else -inf,
            status=best.certificate.status if relaxed.converged else relaxed.status,
        )
        return replace(best, certificate=certificate), certificate.objective - bound

    def columns(self, problem: KeyBandProblem, relaxed: AssignmentResult) -> Floats:
        """Return the assignments of largest weight, as scores of the instances."""
        weights = relaxed.columns[:_POLISHED]
        scores = np.zeros((len(weights), self.bags.n_instances))
        scores[:, problem.sides.unlabelled] = weights
        return scores

    def relax(self, problem: KeyBandProblem, settings: BandSettings) -> AssignmentResult:
        """Solve the relaxation."""
        model, sides, band = self.model, problem.sides, problem.band
        points = ShiftedRows(self.representation.trainer.points, settings.bias)
        offsets = np.concatenate([[0], np.cumsum(self.bags.sizes[sides.positive])])
        choices = AssignmentProblem.of(
            points, sides.unlabelled, offsets, sides.negatives, model.n_key
        )
        rng, inner = np.random.default_rng(self.seed), settings.inner(band.sign, band.cost)
        result = generate_assignments(
            choices,
            inner,
            rng=rng,
            tol=model.tol,
            max_rounds=model.max_iter,
            n_restarts=model.n_restarts,
        )
        if not model.solver.endswith("mirror_prox"):
            return result
        drawn = rng if model.solver.startswith("stochastic") else None
        return solve_by_mirror_prox(choices, inner, result.columns, rng=drawn, tol=model.tol)

    def mixture(
        self, problem: KeyBandProblem, relaxed: AssignmentResult, settings: BandSettings
    ) -> Solution:
        """Return the machine of a mixture of assignments."""
        points, sides = self.representation.trainer.points, problem.sides
        index = np.concatenate([sides.unlabelled, sides.negatives])
        coef = np.concatenate([relaxed.coef, relaxed.fixed_coef])
        used = np.flatnonzero(coef)
        rows = HingeProblem(index[used], np.sign(coef[used]), np.abs(coef[used]))
        intercept = settings.bias * float(coef.sum())
        every = np.arange(self.bags.n_instances)
        weights = points.weights(index[used], coef[used]) if self.model._is_linear() else None
        return Solution(
            rows=rows,
            beta=coef[used],
            intercept=intercept,
            scores=points.products(index[used], coef[used], every) + intercept,
            squared_norm=float(relaxed.b @ relaxed.decision),
            certificate=relaxed.certificate,
            weights=weights,
        )
