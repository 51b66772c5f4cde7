"""Classifiers that are short kernel expansions, learned together with the vectors they expand in.

The objective is minimised over the vectors alone: for given vectors the best classifiers are
found by Newton steps (variable projection), and the derivative of the optimal value is that of
the objective at these classifiers.
"""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._progress import report
from bagwise._threads import checkpoint, single_blas_thread
from bagwise.kernels import InstanceKernel, self_gradient
from bagwise.solvers._checks import check_at_least, check_limits, check_positive, checked_array
from bagwise.solvers._lbfgs import StoppingRule, minimize_lbfgs
from bagwise.solvers._result import Result, Status
from bagwise.solvers.expansion._classifiers import Classifiers, SquaredHinges

_JITTER = 1e-8  # added to the kernel between vectors, in units of its mean diagonal at the start
_LEAST_UNIT = 1e-6  # changes are compared with at least this part of what constants cost
_MOST_TRIALS = 10  # steps that steepest descent tries along one gradient

Array = Floats


class MeansSource(Protocol):
    """What `minimize_expansion` sees of the data; `KernelMeans` is one."""

    @property
    def kernel(self) -> InstanceKernel:
        """The kernel."""

    def cast(self, Z: Array, /) -> NDArray[Any]:
        """Return vectors in the precision in which they are used."""

    def gram(self, Z: NDArray[Any], /) -> Array:
        """Return the kernel between vectors."""

    def means(self, Z: NDArray[Any], /) -> Array:
        """Return the mean kernel of each bag with each vector."""

    def gradient(self, Z: NDArray[Any], V: Array, /) -> Array:
        """Return the derivative of ``(V * means(Z)).sum()`` with respect to ``Z``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpansionResult(Result):
    """Expansion vectors (``x``, in the precision of the instances) and classifiers.

    Parameters
    ----------
    coef : ndarray of shape (n_outputs, n_vectors)
        Coefficients of the vectors in each output.
    intercept : ndarray of shape (n_outputs,)
        Constants.
    decision : ndarray of shape (n_bags, n_outputs)
        The decision function on the bags.
    n_evaluations : int
        How often the objective was computed.
    jitter : float
        What was added to the diagonal of the kernel between vectors.
    """

    coef: Array
    intercept: Array
    decision: Array
    n_evaluations: int
    jitter: float


def minimize_expansion(
    source: MeansSource,
    Z0: Array,
    sign: Array,
    cost: Array,
    *,
    optimizer: str = "lbfgs",
    length: float = 1.0,
    tol: float = 3e-4,
    max_iter: int = 200,
    n_threads: int | None = None,
) -> ExpansionResult:
    r"""Minimise squared hinges of kernel expansions over coefficients and vectors.

    .. math::

        \min_Z g(Z), \qquad g(Z) = \min_{B, b} \sum_c \Bigl[ \tfrac12 \beta_c^\top K_Z \beta_c
        + \sum_i c_{ic} \bigl(1 - y_{ic} f_{ic}\bigr)_+^2 \Bigr], \qquad
        f_{ic} = \frac{1}{n_i} \sum_{x \in B_i} k(x, Z) \beta_c + b_c

    All outputs :math:`c` share the vectors. A function without convexity: the end depends on the
    start, and the certificate says how flat it is there.

    Parameters
    ----------
    source : MeansSource
        The bags and the kernel.
    Z0 : ndarray of shape (n_vectors, n_features)
        Vectors to start from.
    sign, cost : ndarray of shape (n_bags, n_outputs)
        Signs :math:`y_{ic}` and costs :math:`c_{ic}`.
    optimizer : {"lbfgs", "gradient"}
        L-BFGS with a line search; or steepest descent that takes any step which lowers the
        objective, doubles the step after an immediate success and halves it after a failure, ten
        times at most (Fu et al., Algorithm 1). Its first step moves a vector by ``length``.
    length : float
        A typical distance between instances: the unit of steps and of the residual.
    tol : float
        The optimiser ends when the objective falls by at most this much per iteration, on average
        over five, or when the residual is no more. Both are relative to the objective or, if that
        is less, to what the expansion gains over constants: with small costs it is a small part.
    max_iter : int
        Most iterations.
    n_threads : int or None
        Threads for the outputs; the source has its own.

    Returns
    -------
    ExpansionResult
        ``residual`` is the largest norm of a vector's derivative of :math:`g` times ``length``, in
        the units of ``tol``: the change of the objective if one vector moved by that length and
        the derivative stayed. ``history`` never rises. ``n_iter`` is 1 if there was
        nothing to do. ``STALLED`` means that no step along the derivative lowered the objective.

    Notes
    -----
    To the diagonal of :math:`K_Z` is added 1e-8 of its mean at the start, so that vectors may
    coincide; ``objective`` includes it.
    """
    name = "minimize_expansion"
    check_limits(name, tol, max_iter, least=1)
    check_positive(name, "length", length)
    if optimizer not in ("lbfgs", "gradient"):
        msg = f'{name}: optimizer must be "lbfgs" or "gradient". Got {optimizer!r}.'
        raise ValueError(msg)
    started = perf_counter()
    _check(name, "Z0", Z0, sign, cost)
    objective = _Objective(source, Z0, SquaredHinges(sign, cost, n_threads=n_threads))
    X0 = np.asarray(Z0, np.float64).reshape(1, -1)
    stop: dict[str, Any] = {
        "tol": tol, "length": length, "block": Z0.shape[1], "unit": objective.unit
    }  # fmt: skip
    with single_blas_thread():
        if optimizer == "gradient":
            found = _descend(objective, X0, StoppingRule(**stop), max_iter)
        else:
            [found] = minimize_lbfgs(objective, X0, max_iter=max_iter, **stop)
    return _result(
        objective, objective.point, started,
        residual=found.residual, status=found.status, n_iter=max(1, found.n_iter),
        history=found.history,
    )  # fmt: skip


def solve_expansion(
    source: MeansSource,
    Z: Array,
    sign: Array,
    cost: Array,
    *,
    max_iter: int = 100,
    n_threads: int | None = None,
) -> ExpansionResult:
    """Return the best classifiers for given vectors: the convex part of `minimize_expansion`.

    Parameters
    ----------
    source, Z, sign, cost, n_threads
        As there.
    max_iter : int
        Most Newton steps for each output.

    Returns
    -------
    ExpansionResult
        ``n_iter`` counts the Newton steps of the output that took most of them; ``residual`` is
        the largest relative gain that a last step made or promised, 0 where the minimum is exact.
    """
    started = perf_counter()
    check_at_least("solve_expansion", "max_iter", max_iter, 1)
    _check("solve_expansion", "Z", Z, sign, cost)
    hinges = SquaredHinges(sign, cost, max_iter=max_iter, n_threads=n_threads)
    objective = _Objective(source, Z, hinges)
    with single_blas_thread():
        point = objective.evaluate(Z)
    classifiers = point.classifiers
    status = Status.CONVERGED
    if not classifiers.is_exact:
        status = Status.STALLED if classifiers.n_iter < max_iter else Status.MAX_ITER
    return _result(
        objective, point, started,
        residual=classifiers.residual,
        status=status,
        n_iter=classifiers.n_iter,
        history=np.array([point.value]),
    )  # fmt: skip


def _check(solver: str, name: str, Z: Array, sign: Array, cost: Array) -> None:
    checked_array(solver, name, Z, (None, None))
    signs = checked_array(solver, "sign", sign, (None, None))
    if not (np.abs(signs) == 1.0).all():
        msg = f"{solver}: sign must hold -1 and +1 only. Got {np.unique(signs)[:4]}."
        raise ValueError(msg)
    if (checked_array(solver, "cost", cost, signs.shape) < 0.0).any():
        msg = f"{solver}: cost must not be negative. Got {np.min(cost)}."
        raise ValueError(msg)


def _result(
    objective: "_Objective", point: "_Point", started: float, **certificate: Any
) -> ExpansionResult:
    return ExpansionResult(
        x=point.Z,
        coef=point.classifiers.coef.copy(),
        intercept=point.classifiers.intercept.copy(),
        decision=point.classifiers.decision,
        objective=point.value,
        n_evaluations=objective.n_evaluations,
        jitter=objective.jitter,
        solve_time=perf_counter() - started,
        **certificate,
    )


@dataclass(frozen=True)
class _Point:
    """Vectors and the best classifiers for them."""

    Z: NDArray[Any]
    gram: Array
    classifiers: Classifiers

    @property
    def value(self) -> float:
        return self.classifiers.value


class _Objective:
    """The optimal value as a function of the vectors: a `BatchObjective` of one start."""

    def __init__(self, source: MeansSource, Z0: Array, hinges: SquaredHinges) -> None:
        self.source, self.hinges, self.n_evaluations = source, hinges, 0
        self.shape = Z0.shape
        self.point: Any = None  # the `_Point` where the descent is
        self.trial: Any = None  # and the one where it looked last
        diagonal = source.kernel.diagonal(np.asarray(Z0, np.float64))
        self.jitter = _JITTER * (float(np.mean(diagonal)) or 1.0)

    def values(self, X: Array, starts: Integers) -> Array:
        """Return the value at a point, as an array."""
        self.trial = self.evaluate(X.reshape(self.shape), self.point)
        return np.array([self.trial.value])

    def gradients(self, starts: Integers) -> Array:
        """Return the derivative at the point that `values` saw, to which the descent goes."""
        self.point = self.trial
        return self.gradient(self.point).reshape(1, -1)

    def unit(self, values: Array) -> Array:
        """Return what changes of the objective are compared with."""
        ceiling = self.hinges.ceiling
        return np.maximum(np.minimum(values, ceiling - values), _LEAST_UNIT * ceiling)

    def evaluate(self, Z: Array, near: _Point | None = None) -> _Point:
        """Return the point at these vectors; a point nearby makes it faster."""
        vectors = self.source.cast(Z)
        gram = self.source.gram(vectors)
        perturbed = gram.copy()
        perturbed.flat[:: len(perturbed) + 1] += self.jitter
        means = self.source.means(vectors)
        self.n_evaluations += 1
        start = None if near is None else near.classifiers
        if not (np.isfinite(gram).all() and np.isfinite(means).all()):
            if start is None:
                msg = (
                    f"The kernel {self.source.kernel.name!r} between instances and expansion "
                    "vectors must be finite. Got NaN or infinity: scale the features."
                )
                raise ValueError(msg)
            return _Point(vectors, gram, replace(start, value=np.inf))
        return _Point(vectors, gram, self.hinges.solve(means, perturbed, start))

    def gradient(self, point: _Point) -> Array:
        """Return the derivative at a point, at best the one that was evaluated last."""
        classifiers = point.classifiers
        out = self.source.gradient(point.Z, -(classifiers.pull @ classifiers.coef))
        Z = point.Z.astype(np.float64, copy=False)
        out += self_gradient(self.source.kernel, Z, classifiers.coef, point.gram)
        return out


# --------------------------------------------------------------------------- steepest descent


def _descend(objective: _Objective, X: Array, rule: StoppingRule, max_iter: int) -> Result:
    """Take any step that lowers the objective (Fu et al., Algorithm 1, with a scale-free step)."""
    only = np.zeros(1, np.int64)
    history, gradient = [objective.values(X, only)], objective.gradients(only)
    status, step = Status.MAX_ITER, 0.0
    if rule.residual(history[-1], gradient) <= rule.tol:
        status = Status.CONVERGED
    while status is Status.MAX_ITER and len(history) <= max_iter:
        first = step = step or rule.length / float(rule.steepest(gradient)[0])
        for _ in range(_MOST_TRIALS):
            checkpoint()
            value = objective.values(X - step * gradient, only)
            if value < history[-1]:
                break
            step *= 0.5
        else:
            status = Status.STALLED
            break
        X, gradient = X - step * gradient, objective.gradients(only)
        step *= 2.0 if step == first else 1.0
        history.append(value)
        report("step", len(history) - 1, objective=value[0])
        if rule.is_met(history, gradient):
            status = Status.CONVERGED
    return Result(
        x=X,
        objective=float(history[-1][0]),
        status=status,
        n_iter=len(history) - 1,
        residual=float(rule.residual(history[-1], gradient)[0]),
        history=np.concatenate(history),
    )
