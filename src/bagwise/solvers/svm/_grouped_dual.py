"""The dual of a kernel support vector machine whose rows share slacks in groups.

Steps along one or two rows with second-order selection find which rows are free and which groups
are full. They run on a small copy of the Gram matrix that holds the rows in question, and Newton
steps on the free rows make the answer exact.
"""

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._threads import single_blas_thread
from bagwise.solvers._checks import check_limits
from bagwise.solvers._result import Result
from bagwise.solvers.svm._dual_search import LARGEST_SET, DualSearch, DualWork, breaking_rows
from bagwise.solvers.svm._grouped_dual_set import WorkingSet
from bagwise.solvers.svm._grouped_dual_state import NAME, Problem, State

_PATIENCE = 20_000  # steps after which Newton steps are tried, at the latest
_LATE = 4  # steps for each row after which they are tried where the answer need not be exact
_POLISH_ROUNDS = 12  # of Newton steps that make an answer exact


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedSVMResult(Result):
    """Solution of a kernel SVM with shared slacks: ``x`` holds ``alpha``, one number per row.

    Parameters
    ----------
    intercept : float
        The constant ``b`` of the decision function.
    decision : ndarray of float
        The decision function on the rows: ``gram @ (sign * alpha)``, plus ``b`` where the row
        has the intercept.
    coef : ndarray of float
        The weights ``w`` where the rows have features, else empty.
    """

    intercept: float
    decision: Floats
    coef: Floats = field(default_factory=lambda: np.empty(0))


def solve_grouped_svm_dual(
    gram: NDArray[Any],
    sign: ArrayLike,
    group: ArrayLike,
    cap: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    intercept: ArrayLike | None = None,
    alpha0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000_000,
    polish: bool = True,
    check_finite: bool = True,
) -> GroupedSVMResult:
    r"""Train a support vector machine in which the rows of a group share one slack.

    The problem, for rows :math:`r` with feature vectors :math:`\phi_r`, signs :math:`s_r`, targets
    :math:`t_r`, groups of cost :math:`c_g`, and :math:`z_r` 1 where a row has the intercept and
    else 0, is

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + \sum_g c_g \max_{r \in g} \bigl(t_r - s_r (\langle w, \phi_r \rangle + z_r b)\bigr)_+

    and its dual, with :math:`Q_{rq} = s_r s_q \langle \phi_r, \phi_q \rangle`,

    .. math::

        \max_{\alpha \ge 0} \; t^\top \alpha - \tfrac12 \alpha^\top Q \alpha
        \quad \text{subject to} \quad
        \sum_{r \in g} \alpha_r \le c_g, \; \sum_r s_r z_r \alpha_r = 0.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Inner products of the rows' feature vectors: symmetric and positive semi-definite, in single
        or double precision. It is not copied if it is contiguous.
    sign : array-like of shape (n,)
        -1 or +1.
    group : array-like of int of shape (n,)
        The group of each row, counted from 0. Rows of a group need not be neighbours, but all of
        them must have the intercept with the same sign, or none of them.
    cap : array-like of shape (n_groups,) or float
        Costs of the groups, not negative. The rows of a group of cost 0 take no part, whatever
        their signs.
    target : array-like of shape (n,) or float
        Margins that the rows ought to have; they may be negative.
    intercept : array-like of shape (n,), optional
        Which rows have the intercept, as booleans or 0 and 1. By default all do.
    alpha0 : array-like of shape (n,), optional
        Where to start. Negative entries are cut, groups above their cap scaled down to it, and the
        heavier sign scaled down to the lighter one, first.
    tol : float
        The largest violation of the optimality conditions: no feasible step along two rows that
        have the intercept, along two rows of a full group, or along one row that does not have the
        intercept may raise the dual by more than ``tol`` per unit of length.
    max_iter : int
        Most steps.
    polish : bool
        Whether an answer within ``tol`` is made more exact, as far as few more steps do it.
    check_finite : bool
        Whether to look for NaN and infinity in the whole Gram matrix first.

    Returns
    -------
    GroupedSVMResult
        ``objective`` is the primal value at ``(w, b)``, ``lower_bound`` the dual value,
        ``residual`` the violation that ``tol`` bounds, computed from scratch, ``history`` the
        negative dual values, ``gap_history`` the duality gap beside them.

    Notes
    -----
    With ``u = target - sign * (gram @ (sign * alpha))`` and ``v = sign * u``, a row of a group
    with room has ``u <= sign * b``, with equality where ``alpha > 0``; a row with ``alpha > 0`` of
    a full group has ``u >= sign * b``. So the intercept is the mean of ``v`` over the rows with
    ``alpha > 0`` in groups with room. If there are none, it is the middle of the interval of
    optimal intercepts, or its end if it has only one: the interval begins at the largest ``v``
    over the positive rows of groups with room and the negative rows with ``alpha > 0``, and it ends
    at the smallest ``v`` over the negative rows of groups with room and the positive rows with
    ``alpha > 0``. If no row has the intercept, it is 0.

    With ``polish`` and at most 2000 free rows the last step solves their optimality conditions as
    linear equations, so that decision values are accurate far beyond ``tol``.
    """
    started = perf_counter()
    check_limits(NAME, tol, max_iter)
    problem = Problem(gram, sign, group, cap, target, intercept, check_finite=check_finite)
    state = State(problem, alpha0)
    search = _Search(state, tol, max_iter, polish=polish)
    with single_blas_thread():
        search.run()
    return search.result(perf_counter() - started)


class _Search(DualSearch):
    """The search for the point of `State`."""

    def __init__(self, state: State, tol: float, max_iter: int, *, polish: bool) -> None:
        self.state, self.n_active = state, len(state.problem.active)
        # Newton steps make answers exact: to find rough ones, they come late.
        steps_per_row, polish_rounds = (1, _POLISH_ROUNDS) if polish else (_LATE, 0)
        super().__init__(
            NAME, state, tol, max_iter, steps_per_row=steps_per_row, most_patience=_PATIENCE,
            polish_rounds=polish_rounds,
        )  # fmt: skip

    @property
    def n_breaking(self) -> int:
        score = np.maximum(*self.state.scores())
        return int(np.count_nonzero(score > max(0.0, 0.6 * score.max())))

    def free_rows(self) -> Booleans:
        state, group = self.state, self.state.problem.group
        positive = state.alpha > 0.0
        several = np.bincount(group[positive], minlength=len(state.room)) > 1
        return positive & (several | (state.room > 0.0))[group]

    def working_set(self, violation: float) -> DualWork:
        """Choose all rows, uncopied, where most are free."""
        if 2 * np.count_nonzero(self.free_rows()) > self.n_active:
            return self.all_rows()
        return super().working_set(violation)

    def all_rows(self) -> WorkingSet:
        p = self.state.problem
        if len(p.active) < p.n and len(p.active) <= LARGEST_SET:
            return self.copied(p.active)
        return WorkingSet(self.state, None, p.gram)

    def some_rows(self, violation: float, free: Booleans, size: int) -> WorkingSet:
        state, p = self.state, self.state.problem
        chosen = breaking_rows(*state.scores(), free, (p.cap == 0.0)[p.group], size)
        full = state.room <= 0.0
        touched = np.bincount(p.group[chosen], minlength=len(full)) > 0
        # Whoever is to grow in a full group swaps with these.
        chosen |= (state.alpha > 0.0) & (full & touched)[p.group]
        return self.copied(np.flatnonzero(chosen))

    def copied(self, rows: Integers) -> WorkingSet:
        """Return a working set with a copy of its part of the Gram matrix."""
        from bagwise.solvers.operators._gram_kernels import gather

        gram = self.square(len(rows))
        gather(self.state.problem.gram, rows, rows, gram)
        return WorkingSet(self.state, rows, gram)

    def result(self, solve_time: float) -> GroupedSVMResult:
        state, p = self.state, self.state.problem
        intercept = state.intercept()
        scores = p.weight * (p.goal - state.v)
        return GroupedSVMResult(
            x=state.alpha,
            decision=scores + np.where(p.paired, intercept, 0.0),
            **self.solution(intercept, solve_time),
        )
