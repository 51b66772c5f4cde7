"""Machines whose rows share slacks in groups, by generating the rows that matter.

For many rows: with explicit features, or with a Gram matrix that is computed block by block. Of the
rows that share a slack only the worst ones act. The problem is solved on few rows of each
group through their Gram matrix, all rows are scored, the worst of each group joins, and so on until
none is worse than what its group has already paid for.
"""

from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._threads import checkpoint
from bagwise.solvers._checks import (
    check_limits,
    checked_array,
    checked_groups,
    checked_intercept_mask,
    checked_signs,
)
from bagwise.solvers._result import Status
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.operators._gram_source import GramSource
from bagwise.solvers.svm._grouped_dual import solve_grouped_svm_dual
from bagwise.solvers.svm._linear_svm import LinearSVMResult

_BLOCK_ENTRIES = 1 << 22  # of a Gram matrix, computed at a time
_GROWTH = 0.25  # rows that may join in a round, for each one that is there
_LOOSENESS = 0.1  # of the worst row left out: how exactly the others are solved meanwhile


class RowImages(Protocol):
    """What the solver asks of the images of rows, wherever they live."""

    @property
    def n(self) -> int:
        """Number of rows."""

    def gram(self, few: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the inner products of some rows with one another."""

    def combine(
        self, few: NDArray[np.int64], beta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sum of some rows with factors, and its inner product with every row.

        The sum may be left empty where it cannot be written down.
        """


def solve_linear_grouped_svm(
    instances: Any,
    sign: ArrayLike,
    group: ArrayLike,
    cap: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    intercept: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    alpha0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> LinearSVMResult:
    r"""Train a linear support vector machine in which the rows of a group share one slack.

    The problem, for rows :math:`x_r` with signs :math:`s_r` and targets :math:`t_r` in groups
    :math:`g` with costs :math:`c_g`, and :math:`z_r` 1 where a row has the intercept and else 0,
    is

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + \sum_g c_g \max_{r \in g} \bigl(t_r - s_r (\langle w, x_r \rangle + z_r b)\bigr)_+.

    Parameters
    ----------
    instances : array or CSR matrix of shape (m, d)
        The matrix that holds the rows.
    sign : array-like of shape (n,)
        -1 or +1; one sign in each group whose rows have the intercept.
    group : array-like of int of shape (n,)
        Number of each row's group, from 0.
    cap : array-like of shape (n_groups,)
        Costs of the groups, not negative.
    target : array-like of shape (n,) or float
        Margins that the rows ought to have.
    intercept : array-like of shape (n,), optional
        Which rows have the intercept, as booleans or 0 and 1: in each group all or none. By default
        all do.
    rows : array-like of int, optional
        Which rows of ``instances`` make up the problem; then ``n`` is their number.
    alpha0 : array-like of shape (n,), optional
        Where to start; rows with a multiplier are among the first.
    tol : float
        A row joins if it violates its margin by this much more than its group's slack; also the
        tolerance of the problems on few rows.
    max_iter : int
        Most rounds.

    Returns
    -------
    LinearSVMResult
        ``lower_bound`` is the dual value on the rows chosen, which bounds the whole problem.
    """
    name = "solve_linear_grouped_svm"
    matrix = FeatureRows(instances, rows, owner=name)
    if not np.isfinite(matrix.square_norms().sum()):
        raise ValueError(matrix.not_finite())
    return _solve(
        name, _FeatureRows(matrix), sign, group, cap, target, intercept, alpha0, tol, max_iter
    )  # fmt: skip


def solve_grouped_svm_by_blocks(
    source: GramSource,
    sign: ArrayLike,
    group: ArrayLike,
    cap: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    intercept: ArrayLike | None = None,
    alpha0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> LinearSVMResult:
    """Solve the same problem on a Gram matrix of which only blocks are asked for.

    Parameters are those of `solve_linear_grouped_svm`, with the source in place of the features;
    ``coef`` of the result is empty.
    """
    return _solve(
        "solve_grouped_svm_by_blocks", _SourceRows(source), sign, group, cap, target,
        intercept, alpha0, tol, max_iter,
    )  # fmt: skip


class _FeatureRows:
    """Images as rows of features."""

    def __init__(self, matrix: FeatureRows) -> None:
        self.matrix, self.n = matrix, matrix.n

    def gram(self, few: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.matrix.take(few).gram()

    def combine(
        self, few: NDArray[np.int64], beta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weights, and their inner product with every row."""
        coef = self.matrix.take(few).combine(beta)
        return coef, self.matrix.dot(coef)


class _SourceRows:
    """Images known by blocks of their Gram matrix."""

    def __init__(self, source: GramSource) -> None:
        self.source, self.n = source, source.shape[0]

    def gram(self, few: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.source.block(few, few).astype(np.float64)

    def combine(
        self, few: NDArray[np.int64], beta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        out = np.zeros(self.n)
        active = np.flatnonzero(beta)
        per_block = max(1, _BLOCK_ENTRIES // self.n)
        for first in range(0, len(active), per_block):
            checkpoint()
            piece = active[first : first + per_block]
            out += beta[piece] @ self.source.block(few[piece])
        return np.empty(0), out


def solve_grouped_svm_on_images(
    images: RowImages,
    sign: ArrayLike,
    group: ArrayLike,
    cap: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    intercept: ArrayLike | None = None,
    alpha0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> LinearSVMResult:
    """Solve the same problem on rows of which only products are asked for.

    Parameters are those of `solve_linear_grouped_svm`, with `RowImages` in place of the features;
    ``coef`` of the result is what they return as the sum of rows.
    """
    return _solve(
        "solve_grouped_svm_on_images", images, sign, group, cap, target, intercept, alpha0, tol,
        max_iter,
    )  # fmt: skip


def _solve(
    solver: str,
    images: RowImages,
    sign: ArrayLike,
    group: ArrayLike,
    cap: ArrayLike,
    target: ArrayLike,
    intercept: ArrayLike | None,
    alpha0: ArrayLike | None,
    tol: float,
    max_iter: int,
) -> LinearSVMResult:
    started = perf_counter()
    check_limits(solver, tol, max_iter, least=1)
    rows = _GroupedRows(solver, images.n, sign, group, cap, target, intercept)
    alpha = np.zeros(rows.n)
    if alpha0 is not None:
        alpha = checked_array(solver, "alpha0", alpha0, (rows.n,))
    chosen = rows.first(alpha)
    status, accuracy = Status.MAX_ITER, tol
    history: list[float] = []
    while len(history) < max_iter:
        checkpoint()
        few = np.flatnonzero(chosen)
        result = solve_grouped_svm_dual(
            images.gram(few), rows.sign[few], rows.group[few], rows.cap,
            target=rows.target[few], intercept=rows.intercept_mask[few], alpha0=alpha[few],
            tol=accuracy,
        )  # fmt: skip
        alpha[:] = 0.0
        alpha[few] = result.x
        coef, products = images.combine(few, rows.sign[few] * result.x)
        decision = products + result.intercept * rows.intercept_mask
        violation = rows.target - rows.sign * decision
        excess = rows.excess(violation, chosen)
        slack = np.maximum(rows.group_max(violation), 0.0)
        history.append(0.5 * float((rows.sign * alpha) @ products) + float(rows.cap @ slack))
        joining = rows.joining(excess, chosen, tol)
        if len(joining) == 0 and min(result.residual, accuracy) <= tol:
            status = result.status
            break
        chosen[joining] = True
        accuracy = max(tol, _LOOSENESS * float(excess.max())) if len(joining) else tol
    return LinearSVMResult(
        x=alpha,
        coef=coef,
        intercept=result.intercept,
        decision=decision,
        objective=history[-1],
        lower_bound=result.lower_bound,
        residual=max(result.residual, float(excess.max(initial=0.0))),
        status=status,
        n_iter=len(history),
        history=np.minimum.accumulate(history),
        solve_time=perf_counter() - started,
    )


class _GroupedRows:
    """What is asked of each row, and which rows of a group are worst."""

    def __init__(
        self,
        solver: str,
        n: int,
        sign: ArrayLike,
        group: ArrayLike,
        cap: ArrayLike,
        target: ArrayLike,
        intercept: ArrayLike | None,
    ) -> None:
        self.n = n
        self.sign = checked_signs(solver, sign, n)
        self.target = checked_array(solver, "target", target, (n,), spread=True)
        self.intercept_mask = checked_intercept_mask(solver, intercept, n)
        self.group, self.cap = checked_groups(solver, group, cap, n)
        self.order = np.argsort(self.group, kind="stable")
        self.bounds = np.flatnonzero(np.diff(self.group[self.order], prepend=-1))
        self.counts = self.cap[self.group] > 0.0

    def first(self, alpha: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return the rows to begin with: those with a multiplier, and one at least of each group.

        A row that asks for nothing at ``w = 0``, whatever the intercept, can wait.
        """
        chosen = alpha > 0.0
        ones = self.order[self.bounds]
        asks = (self.intercept_mask[ones] > 0.0) | (self.target[ones] > 0.0)
        chosen[ones[asks] if asks.any() else ones] = True
        return chosen & self.counts

    def group_max(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest value in each group, minus infinity in groups without rows."""
        out = np.full(len(self.cap), -np.inf)
        ordered = self.order[self.bounds]
        out[self.group[ordered]] = np.maximum.reduceat(values[self.order], self.bounds)
        return out

    def excess(
        self, violation: NDArray[np.float64], chosen: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return by how much each row exceeds the slack of the chosen rows of its group."""
        slack = np.maximum(self.group_max(np.where(chosen, violation, -np.inf)), 0.0)
        return np.where(self.counts, violation - slack[self.group], -np.inf)

    def joining(
        self, excess: NDArray[np.float64], chosen: NDArray[np.bool_], tol: float
    ) -> NDArray[np.int64]:
        """Return the rows to join: the worst of each group, and if these are few, the next ones.

        A large group would else be the last to be solved, one row at a time.
        """
        rows = np.flatnonzero((excess > tol) & ~chosen)
        rows = rows[np.lexsort((-excess[rows], self.group[rows]))]
        begins = np.flatnonzero(np.diff(self.group[rows], prepend=-1))
        rank = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
        n_joining = max(len(begins), int(_GROWTH * np.count_nonzero(chosen)))
        return rows[np.argsort(rank, kind="stable")[:n_joining]]
