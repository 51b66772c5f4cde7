"""Classifiers that are short kernel expansions, learned together with the vectors they expand in.

The objective is minimised over the vectors alone: for given vectors the best classifiers are
found by Newton steps (variable projection), and the derivative of the optimal value is that of
the objective at these classifiers.
"""

from collections import deque
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bagwise._threads import checkpoint, single_blas_thread
from bagwise.kernels import InstanceKernel, self_gradient
from bagwise.solvers._checks import (
    check_at_least,
    check_limits,
    check_positive,
    checked_array,
)
from bagwise.solvers._result import Result, Status
from bagwise.solvers.expansion._classifiers import Classifiers, SquaredHinges

_JITTER = 1e-8  # added to the kernel between vectors, in units of its mean diagonal at the start
_LEAST_UNIT = 1e-6  # changes are compared with at least this part of what constants cost
_WINDOW = 5  # iterations over which the decrease is looked at
_MEMORY = 10  # pairs of steps and gradient changes that L-BFGS remembers
_FIRST_STEP = 0.1  # the longest move in its first step, in units of `length`
_SUFFICIENT, _CURVATURE = 1e-4, 0.9  # the conditions of Armijo and Wolfe
_MOST_TRIALS = 10  # evaluations along one direction

Array = NDArray[np.float64]


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
    with single_blas_thread():
        path = _Path(objective, Z0, length, tol)
        (_descend if optimizer == "gradient" else _quasi_newton)(path, max_iter)
    return _result(
        objective, path.point, started,
        residual=path.residual, status=path.status, n_iter=max(1, path.n_iter),
        history=np.array(path.history),
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
    """The optimal value as a function of the vectors."""

    def __init__(self, source: MeansSource, Z0: Array, hinges: SquaredHinges) -> None:
        self.source, self.hinges, self.n_evaluations = source, hinges, 0
        diagonal = source.kernel.diagonal(np.asarray(Z0, np.float64))
        self.jitter = _JITTER * (float(np.mean(diagonal)) or 1.0)

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


class _Path:
    """Where a descent is, and where it has been."""

    def __init__(self, objective: _Objective, Z0: Array, length: float, tol: float) -> None:
        self.objective, self.length, self.tol = objective, length, tol
        self.point = objective.evaluate(Z0)
        self.gradient = objective.gradient(self.point)
        self.history = [self.point.value]
        self.status, self.n_iter = Status.MAX_ITER, 0
        if self.residual <= tol:
            self.status = Status.CONVERGED

    @property
    def unit(self) -> float:
        """What changes of the objective are compared with."""
        ceiling, value = self.objective.hinges.ceiling, self.point.value
        return max(min(value, ceiling - value), _LEAST_UNIT * ceiling)

    @property
    def residual(self) -> float:
        """The steepest derivative by one vector, for a move by `length`, relative to `unit`."""
        steepest = _longest(self.gradient)
        return steepest * self.length / self.unit if steepest > 0.0 else 0.0

    def move(self, point: _Point, gradient: Array) -> None:
        """Go to a point that is no worse, and see whether that is the end."""
        self.point, self.gradient = point, gradient
        self.history.append(point.value)
        self.n_iter += 1
        window = min(_WINDOW, self.n_iter)
        decrease = (self.history[-1 - window] - point.value) / window
        share = 1.0 if window == _WINDOW else 1e-3  # of tol: a few slow steps prove little
        if decrease <= share * self.tol * self.unit or self.residual <= self.tol:
            self.status = Status.CONVERGED

    def is_open(self, max_iter: int) -> bool:
        """Tell whether to go on."""
        checkpoint()
        return self.status is Status.MAX_ITER and self.n_iter < max_iter


def _longest(rows: Array) -> float:
    """Return the largest Euclidean norm of a row."""
    return float(np.sqrt(np.einsum("kj,kj->k", rows, rows).max()))


# -------------------------------------------------------------------------------------- L-BFGS


def _quasi_newton(path: _Path, max_iter: int) -> None:
    pairs: deque[tuple[Array, Array, float]] = deque(maxlen=_MEMORY)
    while path.is_open(max_iter):
        direction = _direction(path.gradient, pairs)
        step = 1.0 if pairs else _FIRST_STEP * path.length / _longest(direction)
        found = _searched(path, direction, step)
        if found is None and not pairs:
            path.status = Status.STALLED
        elif found is None:
            pairs.clear()
        else:
            point, gradient = found
            s, y = point.Z.astype(np.float64) - path.point.Z, gradient - path.gradient
            product = float(np.vdot(s, y))
            if product > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
                pairs.append((s, y, 1.0 / product))
            path.move(point, gradient)


def _direction(gradient: Array, pairs: "deque[tuple[Array, Array, float]]") -> Array:
    """Return minus the approximate inverse of the Hessian times the gradient."""
    out = -gradient
    factors = []
    for s, y, inverse in reversed(pairs):
        factor = inverse * float(np.vdot(s, out))
        out -= factor * y
        factors.append(factor)
    if pairs:
        _, y, inverse = pairs[-1]
        out /= inverse * float(np.vdot(y, y))
    for (s, y, inverse), factor in zip(pairs, reversed(factors), strict=True):
        out += (factor - inverse * float(np.vdot(y, out))) * s
    return out


def _searched(path: _Path, direction: Array, step: float) -> tuple[_Point, Array] | None:
    """Return a point along a direction, with its gradient, where enough is gained; or None.

    Steps that gain too little are cut at the minimum of a parabola; steps after which the
    objective still falls almost as fast as at the start are lengthened.
    """
    origin, slope = path.point, float(np.vdot(direction, path.gradient))
    best: tuple[_Point, Array] | None = None
    was_cut = False
    if not slope < 0.0:
        return None
    for _ in range(_MOST_TRIALS):
        checkpoint()
        point = path.objective.evaluate(origin.Z + step * direction, origin)
        if not point.value <= origin.value + _SUFFICIENT * step * slope:
            if best is not None:
                break
            bend = point.value - origin.value - step * slope
            guess = -0.5 * slope * step * step / bend
            step = min(max(guess, 0.1 * step), 0.5 * step) if bend < np.inf else 0.1 * step
            was_cut = True
            continue
        if best is not None and point.value >= best[0].value:
            break
        best = point, path.objective.gradient(point)
        if was_cut or float(np.vdot(direction, best[1])) >= _CURVATURE * slope:
            break
        step *= 4.0
    return best


# --------------------------------------------------------------------------- steepest descent


def _descend(path: _Path, max_iter: int) -> None:
    """Take any step that lowers the objective (Fu et al., Algorithm 1, with a scale-free step)."""
    step = 0.0
    while path.is_open(max_iter):
        step = step or path.length / _longest(path.gradient)
        point = path.objective.evaluate(path.point.Z - step * path.gradient, path.point)
        n_halved = 0
        while not point.value < path.point.value:
            n_halved += 1
            if n_halved == _MOST_TRIALS:
                path.status = Status.STALLED
                return
            checkpoint()
            step *= 0.5
            point = path.objective.evaluate(path.point.Z - step * path.gradient, path.point)
        step *= 1.0 if n_halved else 2.0
        path.move(point, path.objective.gradient(point))
