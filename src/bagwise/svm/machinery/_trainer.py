"""Where instances live for a support vector machine: rows in, scores of all instances out.

Most machines of this package train on rows that are instances or means of bags, some of them again
and again with other signs and costs. Which rows and why is the method's affair; how they are solved
depends only on the kernel, and is settled here once: on a Gram matrix that is formed once and never
copied (`KernelTrainer`), or on explicit features (`LinearTrainer`).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise.bags import segment_mean
from bagwise.solvers import (
    CachedGram,
    Certificate,
    FeatureRows,
    Status,
    solve_grouped_svm_by_blocks,
    solve_grouped_svm_dual,
    solve_linear_grouped_svm,
    solve_linear_svm,
    solve_svm_dual,
)

_SOLVER_STEPS = 10_000_000  # pair steps that one solve on a Gram matrix may take
_STRIP = 256  # rows of a matrix that is computed piece by piece
_SOLVER_SWEEPS = 1000  # likewise on features


@dataclass(frozen=True, eq=False)
class HingeProblem:
    r"""What one convex problem trains on.

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + \sum_r c_r \bigl(t_r - s_r (\langle w, \phi_r \rangle + b)\bigr)_+

    Parameters
    ----------
    index : ndarray of int of shape (n,)
        Which images: ``k`` below the number of instances is that instance, ``n_instances + i`` the
        mean of bag ``i``. An instance may occur twice, with different signs.
    sign : ndarray of shape (n,)
        -1.0 or +1.0, both of them.
    cost : ndarray of shape (n,)
        Costs, not negative.
    target : ndarray of shape (n,) or float
        Margins that the rows ought to have.
    group : ndarray of int of shape (n,), optional
        Rows of one number share one slack, that of the worst of them; they have one cost.
    """

    index: NDArray[np.int64]
    sign: NDArray[np.float64]
    cost: NDArray[np.float64]
    target: NDArray[np.float64] | float = 1.0
    group: NDArray[np.int64] | None = None

    def same_as(self, other: "HingeProblem") -> bool:
        """Tell whether it is the same problem."""
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("index", "sign", "cost", "target", "group")
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """A trained machine.

    Parameters
    ----------
    rows : HingeProblem
        What it was trained on.
    beta : ndarray of shape (n_rows,)
        Signed multipliers: the weight vector is the sum of the rows' images times these.
    intercept : float
        The constant ``b``.
    scores : ndarray of shape (n_instances,)
        Decision function on all instances.
    squared_norm : float
        ``|w|^2``.
    certificate : Certificate
        How the solver ended.
    weights : ndarray of shape (n_features,) or None
        ``w`` itself in a `LinearTrainer`.
    """

    rows: HingeProblem
    beta: NDArray[np.float64]
    intercept: float
    scores: NDArray[np.float64]
    squared_norm: float
    certificate: Certificate
    weights: NDArray[np.float64] | None = None

    def instance_coef(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the factor of each instance in the expansion of ``w``."""
        n = len(self.scores)
        image = np.zeros(n + len(sizes))
        np.add.at(image, self.rows.index, self.beta)
        return image[:n] + np.repeat(image[n:] / sizes, sizes)


class Trainer(Protocol):
    """What a method asks of the place where its instances live."""

    @property
    def n_instances(self) -> int:
        """Number of instances."""

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """Train on rows, from the multipliers of an earlier solution if one is given."""

    def project(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the inner product of every instance with their sum, each times its factor."""

    @property
    def keeps_bounds(self) -> bool:
        """Whether a start for other costs is to have the same multipliers at their bounds."""


def constant_solution(n_instances: int, sign: float) -> Solution:
    """Return the machine for bags that all have one sign: that sign everywhere."""
    rows = HingeProblem(np.empty(0, np.int64), np.empty(0), np.empty(0))
    certificate = Certificate(
        objective=0.0, lower_bound=0.0, residual=0.0, status=Status.CONVERGED, n_iter=0
    )
    scores = np.full(n_instances, sign)
    return Solution(rows, np.empty(0), sign, scores, 0.0, certificate)


@dataclass(frozen=True, eq=False)
class KernelTrainer:
    """Instances known by their Gram matrix, followed by means of bags if a method needs them.

    Rows that take no part have cost 0, so that every problem uses the same matrix, uncopied.

    Parameters
    ----------
    gram : ndarray of shape (n, n) or PointGram
        Inner products of all instances, then of the means of all bags; a source computes them as
        they are needed.
    n_instances : int
        Number of instances.
    tol : float
        Of the solver.
    max_iter : int
        Most pair steps of the solver.
    loss : {"hinge", "squared_hinge"}
        What a violated margin costs; rows in groups have the hinge.
    cache_bytes : float
        How much of a matrix that is computed piece by piece each solve may keep.
    """

    gram: Any
    n_instances: int
    tol: float = 1e-6
    max_iter: int = _SOLVER_STEPS
    loss: Literal["hinge", "squared_hinge"] = "hinge"
    cache_bytes: float = 0.0

    @property
    def keeps_bounds(self) -> bool:
        """See `Trainer`."""
        return self.loss == "hinge"

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        n = self.gram.shape[0]
        gram, place = self.gram, rows.index
        repeated = _repeated(rows.index)
        if len(repeated):  # an instance with both signs needs a second row of the matrix
            gram = _with_copies(gram, rows.index[repeated])
            place = rows.index.copy()
            place[repeated] = np.arange(n, n + len(repeated))
            n += len(repeated)
        sign, cost, target = np.full(n, -1.0), np.zeros(n), np.ones(n)
        sign[place], cost[place], target[place] = rows.sign, rows.cost, rows.target
        alpha0 = None
        if start is not None:
            alpha0 = np.zeros(n)
            alpha0[place] = _started(rows, start, self.gram.shape[0])
        result = self._solve(gram, sign, cost, target, alpha0, _groups(rows, place, n))
        beta = sign * result.x
        return Solution(
            rows=rows,
            beta=beta[place],
            intercept=result.intercept,
            scores=result.decision[: self.n_instances],
            squared_norm=max(0.0, float(beta @ (result.decision - result.intercept))),
            certificate=result.certificate,
        )

    def project(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Trainer`."""
        n = self.n_instances
        if isinstance(self.gram, np.ndarray):
            return np.asarray(self.gram[:n, :n] @ coef, np.float64)
        out = np.zeros(n)
        for first in range(0, n, _STRIP):
            rows = np.arange(first, min(first + _STRIP, n))
            out += coef[rows] @ self.gram.block(rows)[:, :n]
        return out

    def _solve(
        self,
        gram: Any,
        sign: NDArray[np.float64],
        cost: NDArray[np.float64],
        target: NDArray[np.float64],
        alpha0: NDArray[np.float64] | None,
        groups: tuple[NDArray[np.int64], NDArray[np.float64]] | None,
    ) -> Any:
        is_array = isinstance(gram, np.ndarray)
        if groups is None:
            return solve_svm_dual(
                gram if is_array else CachedGram(gram, self.cache_bytes), sign, cost,
                target=target, alpha0=alpha0, tol=self.tol, max_iter=self.max_iter,
                loss=self.loss, check_finite=False,
            )  # fmt: skip
        if is_array:
            return solve_grouped_svm_dual(
                gram, sign, *groups, target=target, alpha0=alpha0,
                tol=self.tol, max_iter=self.max_iter, check_finite=False,
            )  # fmt: skip
        source = CachedGram(gram, self.cache_bytes)
        return solve_grouped_svm_by_blocks(
            source, sign, *groups, target=target, alpha0=alpha0, tol=self.tol
        )


@dataclass(frozen=True, eq=False)
class LinearTrainer:
    """Instances known by explicit features: their own, or those of a low-rank map of a kernel.

    Parameters
    ----------
    features : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances, bag after bag.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    means : ndarray of shape (n_bags, n_features), optional
        What stands for the means of bags, if not the means of their features.
    tol : float
        Of the solver.
    max_iter : int
        Most sweeps of the solver, if less than a thousand.
    loss : {"hinge", "squared_hinge"}
        What a violated margin costs; rows in groups have the hinge.
    """

    features: Any
    offsets: NDArray[np.int64]
    means: Any = None
    tol: float = 1e-6
    max_iter: int = _SOLVER_SWEEPS
    loss: Literal["hinge", "squared_hinge"] = "hinge"

    keeps_bounds: ClassVar = False  # the solver itself moves a start to other costs

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return int(self.features.shape[0])

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        matrix, index = self._images(rows.index)
        alpha0 = None
        if start is not None:
            alpha0 = _started(rows, start, self.n_instances + len(self.offsets) - 1)
        if rows.group is None:
            result = solve_linear_svm(
                matrix, rows.sign, rows.cost, target=rows.target, rows=index, alpha0=alpha0,
                tol=self.tol, max_iter=min(self.max_iter, _SOLVER_SWEEPS), loss=self.loss,
            )  # fmt: skip
        else:
            result = solve_linear_grouped_svm(
                matrix, rows.sign, *_compact_groups(rows), target=rows.target, rows=index,
                alpha0=alpha0, tol=self.tol,
            )  # fmt: skip
        scores = FeatureRows(self.features).dot(result.coef) + result.intercept
        return Solution(
            rows=rows,
            beta=rows.sign * result.x,
            intercept=result.intercept,
            scores=scores,
            squared_norm=float(result.coef @ result.coef),
            certificate=result.certificate,
            weights=result.coef,
        )

    def project(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Trainer`."""
        matrix = FeatureRows(self.features)
        return matrix.dot(matrix.combine(coef))

    def _images(self, index: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
        """Return a matrix that holds the images, and their rows in it.

        Instances stay where they are. With means of bags, which only the first problem of a method
        has, a matrix of the rows in question is put together.
        """
        n = self.n_instances
        is_mean = index >= n
        if not is_mean.any():
            return self.features, index
        means = self.means
        if means is None:
            means = mean_instances(self.features, self.offsets)
        means = means[index[is_mean] - n]
        instances = self.features[index[~is_mean]]
        stack = sp.vstack if sp.issparse(self.features) else np.concatenate
        place = np.empty(len(index), np.int64)
        n_plain = instances.shape[0]
        place[~is_mean] = np.arange(n_plain)
        place[is_mean] = np.arange(n_plain, len(index))
        return stack([instances, means]), place


def mean_instances(instances: Any, offsets: NDArray[np.int64]) -> Any:
    """Return the mean of the instances of each bag, in their precision."""
    if not sp.issparse(instances):
        return segment_mean(instances, offsets[:-1], offsets[1:])
    sizes = np.diff(offsets)
    n = instances.shape[0]
    factor = np.repeat(1.0 / sizes, sizes)
    means = sp.csr_array((factor, np.arange(n), offsets), shape=(len(sizes), n)) @ instances
    return means.astype(instances.dtype, copy=False)


def _started(rows: HingeProblem, start: Solution | None, n_images: int) -> NDArray[np.float64]:
    """Return where to start: the multipliers that the images had, 0 where the sign has changed."""
    if start is None:
        return np.zeros(len(rows.index))
    before = np.bincount(start.rows.index, weights=start.beta, minlength=n_images)
    return np.maximum(rows.sign * before[rows.index], 0.0)


def _repeated(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places at which an image occurs that has occurred before."""
    if np.bincount(index).max(initial=0) <= 1:
        return np.empty(0, np.int64)
    first = np.zeros(len(index), bool)
    first[np.unique(index, return_index=True)[1]] = True
    return np.flatnonzero(~first)


def _with_copies(gram: Any, images: NDArray[np.int64]) -> Any:
    """Return the matrix with some of its rows and columns once more at the end."""
    if not isinstance(gram, np.ndarray):
        return gram.with_copies(images)
    n, m = gram.shape[0], len(images)
    border = gram[images]
    out = np.empty((n + m, n + m), gram.dtype)
    out[:n, :n] = gram
    out[n:, :n] = border
    out[:n, n:] = border.T
    out[n:, n:] = border[:, images]
    return out


def _groups(
    rows: HingeProblem, place: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Return the group of each row of the matrix and the caps; rows not in use share a cap of 0."""
    if rows.group is None:
        return None
    numbers, cap = _compact_groups(rows)
    group = np.full(n, len(cap), np.int64)
    group[place] = numbers
    return group, np.append(cap, 0.0)


def _compact_groups(rows: HingeProblem) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    assert rows.group is not None
    _, first, group = np.unique(rows.group, return_index=True, return_inverse=True)
    return group.astype(np.int64), rows.cost[first]
