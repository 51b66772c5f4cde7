"""A mixture of Gaussians with diagonal covariances, by expectation and maximisation."""

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats
from bagwise._progress import report
from bagwise._threads import checkpoint, single_blas_thread
from bagwise.solvers._checks import check_limits, check_positive, checked_array, checked_weights
from bagwise.solvers._result import Result, Status

_NAME = "solve_mixture"
_EMPTY = 1e-12  # share of all weights below which a component stays where it is
_ROWS = 4096  # whose posteriors are held at a time


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians with diagonal covariances, and how often each occurs.

    Parameters
    ----------
    means, variances : ndarray of shape (n_components, n_features)
        The Gaussians.
    shares : ndarray of shape (n_components,)
        Their probabilities.
    """

    means: Floats
    variances: Floats
    shares: Floats

    def log_densities(self, rows: Floats) -> Floats:
        """Return the log of share times density, of every row and each component.

        Rounding is relative to the squares of the rows: they should be near the origin.
        """
        precision = 1.0 / self.variances
        apart = (rows * rows) @ precision.T
        apart -= 2.0 * (rows @ (self.means * precision).T)
        apart += np.einsum("ij,ij->i", self.means * self.means, precision)
        apart = np.maximum(apart, 0.0, out=apart)
        with np.errstate(divide="ignore"):
            constant = np.log(self.shares) - 0.5 * np.log(2.0 * np.pi * self.variances).sum(axis=1)
        return np.asarray(constant - 0.5 * apart)

    def posteriors(self, rows: Floats) -> Floats:
        """Return the probability of each component, given a row: each row of them sums to 1."""
        return _posteriors(self.log_densities(rows))[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureResult(Result):
    """A mixture: ``x`` holds the means of its components.

    ``objective`` is the mean over the rows, by weight, of minus the log of their density.
    """

    mixture: Mixture


def solve_mixture(
    rows: ArrayLike,
    start: Mixture,
    *,
    weight: ArrayLike = 1.0,
    min_variance: float = 1e-6,
    tol: float = 1e-4,
    max_iter: int = 100,
) -> MixtureResult:
    r"""Fit a mixture of Gaussians with diagonal covariances.

    It looks for a minimum of

    .. math:: -\frac{1}{\sum_i w_i} \sum_i w_i \log \sum_k \pi_k \prod_l
              \frac{1}{\sqrt{2 \pi v_{kl}}} e^{-(x_{il} - \mu_{kl})^2 / 2 v_{kl}}

    over shares, means and variances that are not below a bound. No step raises it.

    Parameters
    ----------
    rows : array-like of shape (n_rows, n_features)
        The data.
    start : Mixture
        Where to start; variances below the bound are raised to it.
    weight : array-like of shape (n_rows,) or float
        Weights :math:`w_i` of the rows.
    min_variance : float
        The least variance, above 0.
    tol : float
        It ends when a step lowers the objective by less, in units of ``max(1, |objective|)``.
    max_iter : int
        Most steps.

    Returns
    -------
    MixtureResult
        The mixture.
    """
    started = perf_counter()
    check_limits(_NAME, tol, max_iter)
    check_positive(_NAME, "min_variance", min_variance)
    X = checked_array(_NAME, "rows", rows, (None, None))
    w = checked_weights(_NAME, weight, len(X))
    mixture = _checked_start(start, X.shape[1], min_variance)
    w = w / w.sum()
    history: list[float] = []
    status = Status.MAX_ITER
    with single_blas_thread():
        for step in range(max_iter + 1):
            moments = _expected(mixture, X, w)
            history.append(-moments.log_density)
            report("step", step, objective=history[-1])
            if step and history[-2] - history[-1] <= tol * max(1.0, abs(history[-1])):
                status = Status.CONVERGED
                break
            if step < max_iter:
                mixture = _maximized(mixture, moments, min_variance)
    return MixtureResult(
        x=mixture.means,
        mixture=mixture,
        objective=history[-1],
        status=status,
        n_iter=len(history) - 1,
        history=np.array(history),
        solve_time=perf_counter() - started,
    )


def _posteriors(logs: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities of components, and the log of each row's density."""
    largest = logs.max(axis=1)
    parts = np.exp(logs - largest[:, None])
    total = parts.sum(axis=1)
    return parts / total[:, None], largest + np.log(total)


class _Moments(NamedTuple):
    """Of each component, the weight of its rows, their sum and that of their squares.

    ``log_density`` is the mean of the logs of the rows' densities.
    """

    mass: Floats
    sums: Floats
    squares: Floats
    log_density: float


def _expected(mixture: Mixture, rows: Floats, weight: Floats) -> _Moments:
    """Return the moments if each row belongs to components by its posteriors."""
    shape = mixture.means.shape
    mass, sums, squares, log_density = np.zeros(shape[0]), np.zeros(shape), np.zeros(shape), 0.0
    for start in range(0, len(rows), _ROWS):
        checkpoint()
        x, w = rows[start : start + _ROWS], weight[start : start + _ROWS]
        posterior, logs = _posteriors(mixture.log_densities(x))
        joint = posterior * w[:, None]
        mass += joint.sum(axis=0)
        sums += joint.T @ x
        squares += joint.T @ (x * x)
        log_density += float(w @ logs)
    return _Moments(mass, sums, squares, log_density)


def _maximized(old: Mixture, moments: _Moments, min_variance: float) -> Mixture:
    """Return the mixture that is best for given moments."""
    mass = moments.mass
    is_empty = (mass < _EMPTY)[:, None]
    unit = np.maximum(mass, _EMPTY)[:, None]
    means = np.where(is_empty, old.means, moments.sums / unit)
    spread = np.maximum(moments.squares / unit - means * means, min_variance)
    return Mixture(means, np.where(is_empty, old.variances, spread), mass / mass.sum())


def _checked_start(start: Mixture, n_features: int, min_variance: float) -> Mixture:
    if not isinstance(start, Mixture):
        msg = f"start of {_NAME} must be a Mixture. Got {type(start).__name__}."
        raise ValueError(msg)
    means = checked_array(_NAME, "start", start.means, (None, n_features))
    variances = checked_array(_NAME, "start", start.variances, means.shape)
    shares = checked_array(_NAME, "start", start.shares, (len(means),))
    if not len(means) or (variances < 0).any() or (shares < 0).any() or not shares.any():
        msg = f"{_NAME}: start must have components, with variances and shares not below 0."
        raise ValueError(msg)
    return Mixture(means, np.maximum(variances, min_variance), shares / shares.sum())
