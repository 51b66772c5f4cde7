"""Diverse density: where positive bags come near and negative bags do not."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint
from bagwise.solvers._checks import (
    check_at_least,
    check_limits,
    checked_array,
    checked_signs,
    checked_weights,
)
from bagwise.solvers._lbfgs import minimize_lbfgs
from bagwise.solvers._result import Result, Status

#: The smallest squared distance: nearer instances are as near as can be.
NEAREST = 1e-12
_FURTHEST = 700.0  # beyond it a probability is 0 but for rounding
_LEAST_CHANCE = 1e-300
_SMALL = 1e-9  # a probability of a bag that is the sum of those of its instances
_UNIT = 0.1  # of the weight of all bags: smaller values count as 0
_BLOCK = 64e6  # bytes of distances in work at a time

Cause = Literal["noisy_or", "most_likely"]


def log_odds(distance: NDArray[Any]) -> Floats:
    r"""Return :math:`\log p / (1 - p)` of :math:`p = e^{-q}`, for squared distances q."""
    q = np.maximum(distance, NEAREST)
    return np.asarray(np.where(q > _FURTHEST, -q, -np.log(np.expm1(np.minimum(q, _FURTHEST)))))


def log_odds_of_missed(missed: NDArray[Any]) -> Floats:
    r"""Return :math:`\log P / (1 - P)` of :math:`P = 1 - e^{-a}`, for a not negative.

    Of a noisy or, a is the sum of :math:`-\log(1 - p)` over the instances of the bag.
    """
    a = np.maximum(missed, _LEAST_CHANCE)
    large = np.minimum(a, _FURTHEST)
    return np.asarray(np.where(a > _SMALL, np.log(np.expm1(large)) + (a - large), np.log(a)))


def concept_distances(rows: Floats, squares: Floats, concepts: Floats) -> Floats:
    r"""Return :math:`\sum_k s_k^2 (x_k - h_k)^2` of every row x and each concept (h, s).

    Parameters
    ----------
    rows, squares : ndarray of shape (n_rows, n_features)
        Rows near the origin, as rounding is relative to their squares, and these squares.
    concepts : ndarray of shape (n_concepts, 2 * n_features)
        Points and, behind each, its scales.

    Returns
    -------
    ndarray of shape (n_concepts, n_rows)
        At least `NEAREST`.
    """
    h, s = np.split(concepts, 2, axis=1)
    s2 = s * s
    far = s2 @ squares.T
    far -= 2.0 * ((s2 * h) @ rows.T)
    far += np.einsum("ij,ij->i", s2, h * h)[:, None]
    return np.maximum(far, NEAREST, out=far)


@dataclass(frozen=True, kw_only=True, eq=False)
class DensityResult(Result):
    """A concept: ``x`` holds the point h and, behind it, the scales s of the features.

    ``objective`` is the negative logarithm of the diverse density.
    """

    @property
    def point(self) -> Floats:
        """The point h."""
        return self.x[: len(self.x) // 2]

    @property
    def scale(self) -> Floats:
        """The scales s."""
        return self.x[len(self.x) // 2 :]


class Density:
    r"""The negative logarithm of the diverse density of concepts, and its gradient.

    .. math:: \sum_{i+} -w_i \log P_i + \sum_{i-} -w_i \log(1 - P_i), \quad
              p_{ij} = \exp(-\sum_k s_k^2 (x_{ijk} - h_k)^2)

    with :math:`P_i = 1 - \prod_j (1 - p_{ij})` (noisy or) or :math:`P_i = \max_j p_{ij}`.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Instances, bag after bag.
    offsets : ndarray of int of shape (n_bags + 1,)
        Rows at which bags begin.
    sign : ndarray of shape (n_bags,)
        +1 or -1.
    weight : ndarray of shape (n_bags,)
        Weights :math:`w_i`.
    cause : {"noisy_or", "most_likely"}
        What makes a bag positive.
    """

    def __init__(
        self,
        rows: ArrayLike,
        offsets: ArrayLike,
        sign: ArrayLike,
        weight: ArrayLike = 1.0,
        cause: Cause = "noisy_or",
    ) -> None:
        ends = np.asarray(offsets, np.int64)
        self.rows = checked_array("Density", "rows", rows, (int(ends[-1]), None))
        self.squares = self.rows * self.rows
        self.starts, self.sizes = ends[:-1], np.diff(ends)
        self.is_positive = checked_signs("Density", sign, len(self.sizes)) > 0
        self.weight = checked_weights("Density", weight, len(self.sizes))
        if cause not in ("noisy_or", "most_likely"):
            msg = f"cause of Density must be 'noisy_or' or 'most_likely'. Got {cause!r}."
            raise ValueError(msg)
        self.cause = cause
        self._slopes: dict[int, tuple[Floats, Floats]] = {}

    def unit(self, values: Floats) -> Floats:
        """Return what changes of values are compared with."""
        return np.maximum(values, _UNIT * float(self.weight.sum()))

    def distances(self, concepts: Floats) -> Floats:
        """Return the squared distance of every row from each concept."""
        return concept_distances(self.rows, self.squares, concepts)

    def values(self, concepts: Floats, starts: Integers) -> Floats:
        """Return the value at each concept, and remember its slope."""
        checkpoint()
        values = np.empty(len(concepts))
        block = max(1, int(_BLOCK / (8 * len(self.rows))))
        for begin in range(0, len(concepts), block):
            part = slice(begin, begin + block)
            values[part], pulls = self._evaluate(self.distances(concepts[part]))
            slopes = zip(concepts[part], pulls, strict=True)
            self._slopes.update(zip(starts[part].tolist(), slopes, strict=True))
        return values

    def gradients(self, starts: Integers) -> Floats:
        """Return the gradients at the last concepts of some starts."""
        concepts, pulls = map(
            np.array, zip(*(self._slopes[k] for k in starts.tolist()), strict=True)
        )
        return _slope(concepts, pulls, pulls @ self.rows, pulls @ self.squares)

    def _evaluate(self, q: Floats) -> tuple[Floats, Floats]:
        """Return values, and the derivatives by the squared distances."""
        if self.cause == "most_likely":
            return self._by_nearest(q)
        least = np.minimum.reduceat(q, self.starts, axis=1)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            missed = np.log(-np.expm1(-q))  # log(1 - p)
            odds = 1.0 / np.expm1(np.minimum(q, _FURTHEST))  # p / (1 - p)
            chance = -np.add.reduceat(missed, self.starts, axis=1)  # -log(1 - P)
            ahead = 1.0 / np.expm1(np.minimum(chance, _FURTHEST))
            # Far from all instances P is the sum of p, which may be below the smallest number.
            near = np.exp(np.repeat(least, self.sizes, axis=1) - q)
            total = np.add.reduceat(near, self.starts, axis=1)
            is_far = chance < _SMALL
            terms = np.where(is_far, least - np.log(total), -np.log(-np.expm1(-chance)))
        pull = np.where(self.is_positive, np.where(is_far, 0.0, ahead), -1.0) * self.weight
        pulls = odds * np.repeat(pull, self.sizes, axis=1)
        share = np.where(self.is_positive & is_far, self.weight / total, 0.0)
        pulls += near * np.repeat(share, self.sizes, axis=1)
        return np.where(self.is_positive, terms, chance) @ self.weight, pulls

    def _by_nearest(self, q: Floats) -> tuple[Floats, Floats]:
        least = np.minimum.reduceat(q, self.starts, axis=1)
        with np.errstate(over="ignore", under="ignore"):
            terms = np.where(self.is_positive, least, -np.log(-np.expm1(-least)))
            odds = 1.0 / np.expm1(np.minimum(least, _FURTHEST))
        pull = np.where(self.is_positive, 1.0, -odds) * self.weight
        nearest = q == np.repeat(least, self.sizes, axis=1)
        share = 1.0 / np.add.reduceat(nearest, self.starts, axis=1)
        return terms @ self.weight, nearest * np.repeat(pull * share, self.sizes, axis=1)


def maximize_density(
    density: Density, starts: ArrayLike, *, tol: float = 1e-5, max_iter: int = 500
) -> list[DensityResult]:
    r"""Find concepts of high diverse density, from several starts at once.

    Minimised is the negative logarithm of the density over the point h and the scales s; it has
    many local minima.

    Parameters
    ----------
    density : Density
        The bags. Features of about unit size are minimised fastest.
    starts : array-like of shape (n_starts, 2 * n_features)
        Points and, behind each, scales to start from.
    tol : float
        A start ends when its value falls by less, in units of itself or of a tenth of the
        weight of all bags, or is flat to this.
    max_iter : int
        Most steps of each start.

    Returns
    -------
    list of DensityResult
        One for each start.
    """
    first = _checked_starts("maximize_density", density, starts, tol, max_iter)
    results = minimize_lbfgs(density, first, tol=tol, max_iter=max_iter, unit=density.unit)
    return [DensityResult(**vars(result)) for result in results]


def maximize_density_by_rounds(
    density: Density,
    starts: ArrayLike,
    *,
    tol: float = 1e-5,
    max_iter: int = 100,
    inner_max_iter: int = 500,
) -> list[DensityResult]:
    """Find concepts of high diverse density by expectation and maximisation: EM-DD.

    In turn each bag is represented by its nearest instance, and the density of these is maximised,
    as long as the density of the bags rises. A round that does not raise it is undone.

    Parameters
    ----------
    density : Density
        The bags, of which the most likely instance is the cause.
    starts : array-like of shape (n_starts, 2 * n_features)
        Points and, behind each, scales to start from.
    tol : float
        A start ends when a round lowers its value by less, in units of itself or of a tenth of
        the weight of all bags; so do the steps in a round.
    max_iter : int
        Most rounds.
    inner_max_iter : int
        Most steps in a round.

    Returns
    -------
    list of DensityResult
        One for each start; ``n_iter`` counts rounds.
    """
    name = "maximize_density_by_rounds"
    started = perf_counter()
    best = _checked_starts(name, density, starts, tol, max_iter)
    check_at_least(name, "inner_max_iter", inner_max_iter, 1)
    if density.cause != "most_likely":
        msg = f"{name} needs a density whose cause is 'most_likely'. Got {density.cause!r}."
        raise ValueError(msg)
    values = density.values(best, np.arange(len(best)))
    histories = [[float(value)] for value in values]
    going, is_done = np.arange(len(best)), np.zeros(len(best), bool)
    inner = [Status.CONVERGED] * len(best)
    for _ in range(max_iter):
        if not len(going):
            break
        chosen = _Chosen(density, best[going])
        results = minimize_lbfgs(
            chosen, best[going], tol=tol, max_iter=inner_max_iter, unit=density.unit
        )
        moved = np.array([result.x for result in results])
        before, after = values[going], density.values(moved, going)
        lower = after < before
        best[going[lower]], values[going[lower]] = moved[lower], after[lower]
        for start in going.tolist():
            histories[start].append(float(values[start]))
        falls = after < before - tol * density.unit(before)
        for start, result in zip(going.tolist(), results, strict=True):
            inner[start] = result.status
        is_done[going[~falls]] = True
        going = going[falls]
    return [
        DensityResult(
            objective=float(values[k]),
            status=_status(inner[k]) if is_done[k] else Status.MAX_ITER,
            n_iter=len(histories[k]) - 1,
            history=np.array(histories[k]),
            solve_time=perf_counter() - started,
            x=best[k],
        )
        for k in range(len(best))
    ]


def _status(inner: Status) -> Status:
    """Return how a search has ended whose last round ended like this; flat ones stall at once."""
    return Status.MAX_ITER if inner == Status.MAX_ITER else Status.CONVERGED


def _checked_starts(
    solver: str, density: Density, starts: ArrayLike, tol: float, max_iter: float
) -> Floats:
    check_limits(solver, tol, max_iter)
    return checked_array(solver, "starts", starts, (None, 2 * density.rows.shape[1]))


class _Chosen:
    """The density of the instances that are nearest to each concept, one of every bag."""

    def __init__(self, density: Density, concepts: Floats) -> None:
        q = density.distances(concepts)
        least = np.minimum.reduceat(q, density.starts, axis=1)
        is_nearest = q == np.repeat(least, density.sizes, axis=1)
        first = np.where(is_nearest, np.arange(len(density.rows)), len(density.rows))
        chosen = np.minimum.reduceat(first, density.starts, axis=1)
        self.rows, self.squares = density.rows[chosen], density.squares[chosen]
        self.density = density
        self._slopes: dict[int, tuple[Floats, Floats]] = {}

    def values(self, concepts: Floats, starts: Integers) -> Floats:
        """Return the value at each concept, and remember its slope."""
        checkpoint()
        weight, is_positive = self.density.weight, self.density.is_positive
        h, s = np.split(concepts, 2, axis=1)
        s2 = s * s
        q = (self._of(self.squares, starts) @ s2[:, :, None])[:, :, 0]
        q -= 2.0 * (self._of(self.rows, starts) @ (s2 * h)[:, :, None])[:, :, 0]
        q += np.einsum("ij,ij->i", s2, h * h)[:, None]
        q = np.maximum(q, NEAREST, out=q)
        with np.errstate(over="ignore", under="ignore"):
            values = np.where(is_positive, q, -np.log(-np.expm1(-q))) @ weight
            odds = 1.0 / np.expm1(np.minimum(q, _FURTHEST))
        pulls = np.where(is_positive, 1.0, -odds) * weight
        self._slopes.update(zip(starts.tolist(), zip(concepts, pulls, strict=True), strict=True))
        return np.asarray(values)

    def gradients(self, starts: Integers) -> Floats:
        """Return the gradients at the last concepts of some starts."""
        concepts, pulls = map(
            np.array, zip(*(self._slopes[k] for k in starts.tolist()), strict=True)
        )
        first = (pulls[:, None] @ self._of(self.rows, starts))[:, 0]
        second = (pulls[:, None] @ self._of(self.squares, starts))[:, 0]
        return _slope(concepts, pulls, first, second)

    def _of(self, rows: Floats, starts: Integers) -> Floats:
        return rows if len(starts) == len(rows) else rows[starts]


def _slope(concepts: Floats, pulls: Floats, first: Floats, second: Floats) -> Floats:
    """Return gradients by points and scales, from sums of rows and of their squares."""
    h, s = np.split(concepts, 2, axis=1)
    total = pulls.sum(axis=1)[:, None]
    of_point = -2.0 * s * s * (first - h * total)
    of_scale = 2.0 * s * (second - 2.0 * h * first + h * h * total)
    return np.hstack([of_point, of_scale])
