"""PC-SVM: MI-SVM with projection constraints against false positives (Han, Tao and Wang 2010)."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise._warnings import warn
from bagwise.bags import Bags
from bagwise.base import BagTags, Summary, Target, documented, validate_bags
from bagwise.solvers import RowOperator
from bagwise.svm._misvm import KeyInstanceProblem
from bagwise.svm.machinery._alternation import alternate
from bagwise.svm.machinery._kernel_machine import MEMORY_CONSTRAINT, MaxRuleMachine
from bagwise.svm.machinery._problem import Solution
from bagwise.svm.machinery._projection import CONSTRAINT_WORDS, ProjectionConstraints
from bagwise.svm.machinery._starts import N_INIT_CONSTRAINT, StartCount


@documented
class PCSVM(MaxRuleMachine):
    r"""MI-SVM in which the instances of a positive bag have to differ along the weight vector.

    MI-SVM may call every instance of a positive bag positive, and then bags that share nothing but
    the background with it. Here the instances of a positive bag ought to lie far apart in the
    direction of the weights, so that some of them end on the negative side. With weights
    :math:`v_i` of the bags (1 unless ``sample_weight`` or ``class_weight`` say otherwise) and
    :math:`f(x) = \langle w, \phi(x) \rangle + b` it looks for a minimum of

    .. math::

        \tfrac12 \|w\|^2
        + C \sum_{i : y_i = 1} v_i \bigl(1 - \max_j f(x_{ij})\bigr)_+
        + C \sum_{i : y_i = -1} v_i \sum_j \bigl(1 + f(x_{ij})\bigr)_+
        + P \sum_{i : \rho_i > 0} v_i \bigl(\sqrt{\rho_i} \|w\| - \|A_i w\|\bigr)_+

    No sum is divided by anything. The last sum is over positive bags; row :math:`j` of :math:`A_i`
    is :math:`\phi(x_{ij})` minus the mean of its bag (``centering="bag"``) or as it is
    (``"none"``), :math:`o_i` the sum of squared distances from that mean, :math:`n_i` the size of
    the bag, and :math:`\rho_i = o_i - \lambda n_i`. So a bag meets its constraint if the mean
    squared distance of its centred instances from the line along :math:`w` is at most
    :math:`\lambda`; where it does not, it pays. :math:`P` is ``penalty`` times ``C``. A bag scores
    as its best instance; more than two classes are learned one against the rest.

    Both the maximum and :math:`\|A_i w\|` are linearised where the last round ended, from the
    solution of MI-SVM on; each round is one convex problem with a cone, solved to its optimum, and
    the objective never rises. Weights of 0 meet every constraint: where a price drives them there,
    it is quartered until they stay (see ``penalty_``).

    Parameters
    ----------
    |C|
    spread : float
        Share of the positive bags that have no constraint, those of least mean spread:
        :math:`\lambda` is this quantile of :math:`o_i / n_i`. At 1 no bag has one, which is MI-SVM.
    lam : float or None
        :math:`\lambda` itself, in units of the kernel, instead of ``spread``. A value that no
        direction can meet, or that every direction meets, is warned of.
    penalty : float
        Price of a violated constraint in units of ``C``.
    centering : {"bag", "none"}
        Whether instances are taken relative to the mean of their bag. ``"none"`` is what the
        printed equation of the paper amounts to.
    solver : {"dual", "conic"}
        How rounds are solved: by steps in the dual, or as conic programmes, which is slow and
        serves as a check.
    |kernel, gamma, degree, coef0, approx, rank|
    |n_init|
        These are starts of MI-SVM, from whose best end the constraints come in: here the first has
        the means of bags; random ones have instances drawn at random. With an exact kernel on at
        most 5,000 instances there is a third one, with the instances that score best by the
        machine of `SIL` at a low cost; ``"auto"`` then takes the second and the third.
        ``result_.ends`` are theirs.
    |class_weight, pos_label, cache_size: passes, max_memory: passes, tol: rounds by passes|
    |max_iter: rounds|
    |random_state: starts and maps, n_jobs, verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, pos_label_, support_vectors_, support_, dual_coef_|
    |coef_, fourier_weights_, fourier_offset_, gamma_, intercept_, intercept_shift_, n_features_in_|
    |feature_names_in_, result_: rounds, n_iter_: rounds|
    lam_ : ndarray of shape (n_outputs,)
        :math:`\lambda` in use.
    lam_range_ : ndarray of shape (n_outputs, 2)
        Between these :math:`\lambda` says something and can be met, if ``lam`` is given: below the
        first, which is proven, only weights of 0 meet all constraints; from the second on all
        weights do.
    penalty_ : ndarray of shape (n_outputs,)
        The penalty in use.
    constraint_codes_ : ndarray of int of shape (n_bags, n_outputs)
        ``constraints_`` as places in the list of these words.
    constraints_ : ndarray of str of shape (n_bags, n_outputs)
        What became of the constraint of each training bag: ``"none"`` if the bag is negative,
        ``"vacuous"`` if its spread is too small for one, ``"met"``, ``"active"`` if it holds with
        nothing to spare, or ``"violated"``. Bags of weight 0 are not counted.
    weight_norm_ : ndarray of shape (n_outputs,)
        Length of the weight vector.

    See Also
    --------
    MISVM : Without constraints.

    Notes
    -----
    The constraint does not see the scale of the weights. With a normalised kernel
    :math:`o_i / n_i` is below 1, so the values 1, 10 and 100 of the paper's grid make no
    constraint, and the small ones can be met by weights of 0 only; `lambda_range` tells what is
    between.

    The constraint helps where the largest differences inside positive bags are those between key
    instances and what only resembles them. Where they are those from a background that negative
    bags have too, it may harm: let a search try ``spread=1``.

    References
    ----------
    Y. Han, Q. Tao, J. Wang. Avoiding false positive in multi-instance learning. NIPS 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.datasets import make_key_instance_bags
    >>> from bagwise.svm import PCSVM
    >>> data = make_key_instance_bags(n_bags=40, random_state=0)
    >>> model = PCSVM(C=10.0).fit(data.bags, data.y)
    >>> model.score(data.bags, data.y)
    1.0
    >>> [int((model.constraints_ == word).sum()) for word in ("vacuous", "met", "violated")]
    [15, 4, 1]
    >>> bool((np.diff(model.result_.history) <= 0).all())
    True
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="one instance makes a bag positive, and the others of the bag differ from it",
        objective=(
            "that of `MISVM`, and a penalty where the instances of a positive bag lie close "
            "along the weights"
        ),
        cost="that of `MISVM`, then rounds with a row more for each constraint",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MaxRuleMachine._parameter_constraints,
        "max_memory": MEMORY_CONSTRAINT,
        "spread": [Interval(Real, 0, 1, closed="both")],
        "lam": [Interval(Real, 0, None, closed="left"), None],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "centering": [StrOptions({"bag", "none"})],
        "solver": [StrOptions({"dual", "conic"})],
        "n_init": N_INIT_CONSTRAINT,
    }

    def __init__(
        self,
        C: float = 100.0,
        *,
        spread: float = 0.75,
        lam: float | None = None,
        penalty: float = 0.1,
        centering: str = "bag",
        solver: str = "dual",
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
        self.spread = spread
        self.lam = lam
        self.penalty = penalty
        self.centering = centering
        self.solver = solver
        self.n_init = n_init

    @property
    def constraints_(self) -> NDArray[Any]:
        """What became of the constraint of each training bag."""
        return np.array(CONSTRAINT_WORDS)[self.constraint_codes_]

    def lambda_range(self, X: Any, y: Any) -> Floats:
        r"""Return between which values ``lam`` says something and can be met, without a fit.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : array-like of shape (n_bags,) or (n_bags, n_labels)
            Labels.

        Returns
        -------
        bounds : ndarray of shape (n_outputs, 2)
            As ``lam_range_``; NaN for a label that no bag or every bag has.
        """
        other = clone(self)
        other._validate_params()
        bags = validate_bags(other, X, reset=True)
        (bags, target, _, weight), _ = other._encode(bags, y, None)
        points = other._represent_any(bags, weight, means="mean_instance").trainer.points
        out = np.full((target.n_outputs, 2), np.nan)
        for output in range(target.n_outputs):
            sign = target.signs[:, output]
            if (sign != sign[0]).any():
                out[output] = self._constraints(points, bags, sign).range()
        return out

    def _constraints(self, points: RowOperator, bags: Bags, sign: Floats) -> ProjectionConstraints:
        positive, centred = np.flatnonzero(sign > 0), self.centering == "bag"
        return ProjectionConstraints(points, bags.offsets, positive, centred=centred)

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        represent = self._represent if self.solver == "conic" else self._represent_any
        representation = represent(bags, bag_weight, means="mean_instance")
        trainer = representation.trainer
        points = trainer.points  # remembers what it has computed
        generators = self._start_generators(target.n_outputs)
        known = _unknown(target.n_outputs, len(bags))

        def solve(output: int) -> Solution:
            sign = target.signs[:, output]
            keys = KeyInstanceProblem(
                trainer,
                bags.offsets,
                sign,
                self.C,
                cost_weight[:, output],
                shared_slack=False,
                machine=trainer if self._is_exact else None,
            )
            first = alternate(
                keys, max_iter=self.max_iter, tol=self.tol, n_init=self.n_init,
                rng=generators[output],
            )  # fmt: skip
            constraints = self._constraints(points, bags, sign)
            if self.lam is not None:
                known["lam_range_"][output] = constraints.range()
            found = constraints.solve(
                keys,
                first,
                constraints.quantile(self.spread, bag_weight) if self.lam is None else self.lam,
                self.penalty,
                keys.cost,
                by_program=self.solver == "conic",
                max_iter=self.max_iter,
                tol=self.tol,
            )
            known["lam_"][output], known["penalty_"][output] = found.lam, found.penalty
            known["constraint_codes_"][:, output] = found.codes
            known["weight_norm_"][output] = np.sqrt(found.solution.squared_norm)
            return found.solution

        solutions = self._solve_outputs(trainer, target, solve)
        if self.lam is None:
            del known["lam_range_"]
        else:
            _warn_outside(self.lam, known["lam_range_"])
        return {**self._fitted(representation, solutions), **known}

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(
            max_rule=True,
            asymmetric=True,
            order_tolerance=1e-6,
            supervised_analogue=self._ordinary,
            **self._invariances(),
        )


def _unknown(n_outputs: int, n_bags: int) -> dict[str, Any]:
    """Return what is said of labels that no bag or every bag has."""
    return {
        "lam_": np.full(n_outputs, np.nan),
        "lam_range_": np.full((n_outputs, 2), np.nan),
        "penalty_": np.full(n_outputs, np.nan),
        "constraint_codes_": np.zeros((n_bags, n_outputs), np.int64),
        "weight_norm_": np.zeros(n_outputs),
    }


def _warn_outside(lam: float, bounds: Floats) -> None:
    """Warn of the first output whose constraints say nothing, or cannot be met."""
    for least, most in bounds:
        if lam >= most:
            effect = "every direction meets all constraints, and the model is that of MISVM"
        elif lam < least:
            effect = "only weights of 0 meet all constraints"
        else:
            continue
        warn(
            f"PCSVM: with lam={lam:g} {effect}. On these bags lam says something and can be met "
            f"between {least:.3g} and {most:.3g}; or give spread, which fits all data."
        )
        return
