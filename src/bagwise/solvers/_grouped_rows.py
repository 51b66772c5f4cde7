"""Machines whose rows share slacks in groups, by generating the rows that matter.

For many rows: with explicit features, or with a Gram matrix that is computed block by block. Of the
rows that share a slack only the worst ones act. The problem is solved on few rows of each
group through their Gram matrix, all rows are scored, the worst of each group joins, and so on until
none is worse than what its group has already paid for.
"""

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._threads import checkpoint
from bagwise.solvers._gram_source import GramSource
from bagwise.solvers._grouped_dual import solve_grouped_svm_dual
from bagwise.solvers._linear_dual import LinearSVMResult
from bagwise.solvers._result import Status
from bagwise.solvers._row_matrix import RowMatrix

_BLOCK_ENTRIES = 1 << 22  # of a Gram matrix, computed at a time


def solve_linear_grouped_svm(
    instances: Any,
    sign: ArrayLike,
    group: ArrayLike,
    cap: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    rows: ArrayLike | None = None,
    alpha0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> LinearSVMResult:
    r"""Train a linear support vector machine in which the rows of a group share one slack.

    The problem, for rows :math:`x_r` with signs :math:`s_r` and targets :math:`t_r` in groups
    :math:`g` with costs :math:`c_g`, is

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + \sum_g c_g \max\bigl(0, \max_{r \in g} t_r - s_r (\langle w, x_r \rangle + b)\bigr).

    Parameters
    ----------
    instances : array or CSR matrix of shape (m, d)
        The matrix that holds the rows.
    sign : array-like of shape (n,)
        -1 or +1; one sign in each group.
    group : array-like of int of shape (n,)
        Number of each row's group, from 0.
    cap : array-like of shape (n_groups,)
        Costs of the groups, not negative.
    target : array-like of shape (n,) or float
        Margins that the rows ought to have.
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
    return _generate(
        _FeatureRows(RowMatrix(instances, rows)), sign, group, cap, target, alpha0, tol, max_iter
    )


def solve_grouped_svm_by_blocks(
    source: GramSource,
    sign: ArrayLike,
    group: ArrayLike,
    cap: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    alpha0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> LinearSVMResult:
    """Solve the same problem on a Gram matrix of which only blocks are asked for.

    Parameters are those of `solve_linear_grouped_svm`, with the source in place of the features;
    ``coef`` of the result is empty.
    """
    return _generate(_SourceRows(source), sign, group, cap, target, alpha0, tol, max_iter)


class _FeatureRows:
    """Images as rows of features."""

    def __init__(self, matrix: RowMatrix) -> None:
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


def _generate(
    images: _FeatureRows | _SourceRows,
    sign: ArrayLike,
    group: ArrayLike,
    cap: ArrayLike,
    target: ArrayLike,
    alpha0: ArrayLike | None,
    tol: float,
    max_iter: int,
) -> LinearSVMResult:
    """Solve on few rows, let the worst row of each group join, until none is too bad."""
    started = perf_counter()
    n = images.n
    signs, goal = np.asarray(sign, np.float64), np.broadcast_to(np.asarray(target, float), (n,))
    groups, caps = np.asarray(group, np.int64), np.asarray(cap, np.float64)
    order = np.argsort(groups, kind="stable")
    bounds = np.flatnonzero(np.diff(groups[order], prepend=-1))
    chosen = np.zeros(n, bool)
    alpha = np.zeros(n) if alpha0 is None else np.asarray(alpha0, np.float64).copy()
    chosen[alpha > 0] = True
    chosen[order[bounds]] = True  # one row at least of each group
    chosen &= caps[groups] > 0
    status = Status.MAX_ITER
    history: list[float] = []
    while len(history) < max_iter:
        checkpoint()
        few = np.flatnonzero(chosen)
        result = solve_grouped_svm_dual(
            images.gram(few), signs[few], groups[few], caps,
            target=goal[few], alpha0=alpha[few], tol=tol,
        )  # fmt: skip
        alpha[:] = 0.0
        alpha[few] = result.x
        coef, products = images.combine(few, signs[few] * result.x)
        decision = products + result.intercept
        violation = goal - signs * decision
        slack = np.zeros(len(caps))
        np.maximum.at(slack, groups[few], violation[few])
        excess = np.where(caps[groups] > 0, violation - slack[groups], -np.inf)
        worst = order[_segment_argmax(excess[order], bounds)]
        worst = worst[(excess[worst] > tol) & ~chosen[worst]]
        np.maximum.at(slack, groups, violation)
        half_norm = 0.5 * float((signs * alpha) @ products)
        objective = half_norm + float(caps @ slack)
        history.append(objective)
        if len(worst) == 0:
            status = result.status
            break
        chosen[worst] = True
    return LinearSVMResult(
        x=alpha,
        coef=coef,
        intercept=result.intercept,
        decision=decision,
        objective=objective,
        lower_bound=result.lower_bound,
        residual=max(result.residual, float(excess.max(initial=0.0))),
        status=status,
        n_iter=len(history),
        history=np.minimum.accumulate(history),
        solve_time=perf_counter() - started,
    )


def _segment_argmax(values: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the largest value of each segment is; segments end where the next begins."""
    largest = np.maximum.reduceat(values, starts)
    lengths = np.diff(np.append(starts, len(values)))
    at = np.where(values == np.repeat(largest, lengths), np.arange(len(values)), len(values))
    return np.minimum.reduceat(at, starts)
