"""Machines whose rows share slacks in groups, by generating the rows that matter.

For many rows: with features, or with inner products that are computed block by block. Of the rows
that share a slack only the worst ones act. The problem is solved on few rows of each
group through their Gram matrix, all rows are scored, the worst of each group joins, and so on until
none is worse than what its group has already paid for.
"""

from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._threads import checkpoint
from bagwise.solvers._checks import (
    check_limits,
    checked_array,
    checked_groups,
    checked_intercept_mask,
    checked_signs,
    not_finite,
)
from bagwise.solvers._result import Status
from bagwise.solvers.operators._row_operator import RowOperator
from bagwise.solvers.svm._grouped_dual import GroupedSVMResult, solve_grouped_svm_dual

_NAME = "solve_grouped_svm"  # in errors
_GROWTH = 0.25  # rows that may join in a round, for each one that is there
_NEAR = 0.3  # of the worst row left out: those that are no further from their margins join as well
_ROOM = 1.5  # memory that is asked for beside what is needed; it is taken when it is used
_LOOSENESS = 0.1  # of the worst row left out: how exactly the others are solved meanwhile


def solve_grouped_svm(
    rows: RowOperator,
    sign: ArrayLike,
    group: ArrayLike,
    cap: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    intercept: ArrayLike | None = None,
    alpha0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> GroupedSVMResult:
    r"""Train a support vector machine in which the rows of a group share one slack.

    The problem, for rows :math:`\phi_r` with signs :math:`s_r` and targets :math:`t_r` in groups
    :math:`g` with costs :math:`c_g`, and :math:`z_r` 1 where a row has the intercept and else 0, is

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + \sum_g c_g \max_{r \in g} \bigl(t_r - s_r (\langle w, \phi_r \rangle + z_r b)\bigr)_+.

    Parameters
    ----------
    rows : RowOperator
        The rows: features, blocks of a Gram matrix that are computed on demand, or sums of these.
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
    alpha0 : array-like of shape (n,), optional
        Where to start; rows with a multiplier are among the first.
    tol : float
        A row joins if it violates its margin by this much more than its group's slack; also the
        tolerance of the problems on few rows.
    max_iter : int
        Most rounds.

    Returns
    -------
    GroupedSVMResult
        ``lower_bound`` is the dual value on the rows chosen, which bounds the whole problem;
        ``history`` the objective after each round, which need not fall; ``coef`` the weights, where
        the rows have features.

    See Also
    --------
    solve_grouped_svm_dual : The same problem on a Gram matrix in memory, with all rows.
    """
    started = perf_counter()
    check_limits(_NAME, tol, max_iter, least=1)
    if not isinstance(rows, RowOperator):
        msg = f"{_NAME}: rows must be a RowOperator. Got {type(rows).__name__}."
        raise ValueError(msg)
    terms = _Terms(rows.n, sign, group, cap, target, intercept)
    alpha = np.zeros(rows.n)
    if alpha0 is not None:
        alpha = checked_array(_NAME, "alpha0", alpha0, (rows.n,))
    chosen = terms.first(alpha)
    gram, joining = _GrowingGram(rows), np.flatnonzero(chosen)
    status, accuracy = Status.MAX_ITER, tol
    history: list[float] = []
    while len(history) < max_iter:
        checkpoint()
        gram.join(joining)
        few = gram.index
        result = solve_grouped_svm_dual(
            gram.matrix, terms.sign[few], terms.group[few], terms.cap,
            target=terms.target[few], intercept=terms.intercept_mask[few], alpha0=alpha[few],
            tol=accuracy, polish=accuracy <= tol, check_finite=False,
        )  # fmt: skip
        alpha[:] = 0.0
        alpha[few] = result.x
        active = few[result.x != 0.0]
        products = rows.products(active, (terms.sign * alpha)[active])
        if not np.isfinite(products).all():
            raise ValueError(not_finite(_NAME, "rows"))
        decision = products + result.intercept * terms.intercept_mask
        violation = terms.target - terms.sign * decision
        excess = terms.excess(violation, chosen)
        slack = np.maximum(terms.group_max(violation), 0.0)
        history.append(0.5 * float((terms.sign * alpha) @ products) + float(terms.cap @ slack))
        joining = terms.joining(excess, chosen, tol)
        is_solved = len(joining) == 0 and min(result.residual, accuracy) <= tol
        status = result.status if is_solved else Status.MAX_ITER
        if is_solved and accuracy <= tol:  # else once more, polished
            break
        chosen[joining] = True
        accuracy = max(tol, _LOOSENESS * float(excess.max())) if len(joining) else tol
    return GroupedSVMResult(
        x=alpha,
        coef=rows.weights(active, (terms.sign * alpha)[active]),
        intercept=result.intercept,
        decision=decision,
        objective=history[-1],
        lower_bound=result.lower_bound,
        residual=max(result.residual, float(excess.max(initial=0.0))),
        status=status,
        n_iter=len(history),
        history=np.array(history),
        solve_time=perf_counter() - started,
    )


class _GrowingGram:
    """Inner products of the rows that take part, in the order in which they joined."""

    def __init__(self, rows: RowOperator) -> None:
        self.rows, self.index, self.matrix = rows, np.empty(0, np.int64), np.empty((0, 0))
        self.room = np.empty(0)  # memory of the matrix, and of some more rows

    def join(self, new: Integers) -> None:
        """Add rows."""
        if not len(new):
            return
        old, k = self.index, len(self.index)
        self.index = np.concatenate([old, new])
        n = len(self.index)
        self.rows.refuse_large(n, n)
        self._widen(n)
        grown = self.matrix
        grown[k:, k:] = self.rows.block(new, new)
        if k:
            grown[k:, :k] = self.rows.block(new, old)
            grown[:k, k:] = grown[k:, :k].T
        if not np.isfinite(grown[k:]).all():
            raise ValueError(not_finite(_NAME, "rows"))

    def _widen(self, n: int) -> None:
        """Make the matrix one of ``n`` rows, in the same memory while it has room for them."""
        from bagwise.solvers.operators._gram_kernels import widen

        k = len(self.matrix)
        if len(self.room) >= n**2:
            widen(self.room, k, n)
            self.matrix = self.room[: n**2].reshape(n, n)
            return
        self.room = np.empty(int(_ROOM * n**2))
        grown = self.room[: n**2].reshape(n, n)
        grown[:k, :k] = self.matrix
        self.matrix = grown


class _Terms:
    """What is asked of each row, and which rows of a group are worst."""

    def __init__(
        self,
        n: int,
        sign: ArrayLike,
        group: ArrayLike,
        cap: ArrayLike,
        target: ArrayLike,
        intercept: ArrayLike | None,
    ) -> None:
        self.n = n
        self.sign = checked_signs(_NAME, sign, n)
        self.target = checked_array(_NAME, "target", target, (n,), spread=True)
        self.intercept_mask = checked_intercept_mask(_NAME, intercept, n)
        self.group, self.cap = checked_groups(_NAME, group, cap, n)
        self.order = np.argsort(self.group, kind="stable")
        self.bounds = np.flatnonzero(np.diff(self.group[self.order], prepend=-1))
        self.counts = self.cap[self.group] > 0.0

    def first(self, alpha: Floats) -> Booleans:
        """Return the rows to begin with: those with a multiplier, and one at least of each group.

        A row that asks for nothing at ``w = 0``, whatever the intercept, can wait.
        """
        chosen = alpha > 0.0
        ones = self.order[self.bounds]
        asks = (self.intercept_mask[ones] > 0.0) | (self.target[ones] > 0.0)
        chosen[ones[asks] if asks.any() else ones] = True
        return chosen & self.counts

    def group_max(self, values: Floats) -> Floats:
        """Return the largest value in each group, minus infinity in groups without rows."""
        out = np.full(len(self.cap), -np.inf)
        ordered = self.order[self.bounds]
        out[self.group[ordered]] = np.maximum.reduceat(values[self.order], self.bounds)
        return out

    def excess(self, violation: Floats, chosen: Booleans) -> Floats:
        """Return by how much each row exceeds the slack of the chosen rows of its group."""
        slack = np.maximum(self.group_max(np.where(chosen, violation, -np.inf)), 0.0)
        return np.where(self.counts, violation - slack[self.group], -np.inf)

    def joining(self, excess: Floats, chosen: Booleans, tol: float) -> Integers:
        """Return the rows to join: the worst of each group, and if these are few, the next ones.

        A large group would else be the last to be solved, one row at a time.
        """
        rows = np.flatnonzero((excess > tol) & ~chosen)
        rows = rows[np.lexsort((-excess[rows], self.group[rows]))]
        begins = np.flatnonzero(np.diff(self.group[rows], prepend=-1))
        rank = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
        n_joining = max(len(begins), int(_GROWTH * np.count_nonzero(chosen)))
        rows = rows[np.argsort(rank, kind="stable")[:n_joining]]
        if not len(rows):
            return rows
        # If these are few, those that nearly violate their margins come too: else they would be
        # the last, a few in each round.
        near = np.flatnonzero((excess <= tol) & (excess > -_NEAR * excess.max()) & ~chosen)
        near = near[np.argsort(-excess[near], kind="stable")[: n_joining - len(rows)]]
        return np.concatenate([rows, near])
