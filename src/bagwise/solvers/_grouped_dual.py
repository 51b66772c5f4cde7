"""The dual of a kernel support vector machine whose rows share slacks in groups.

Steps along one or two rows with second-order selection find which rows are free and which groups
are full. They run on a small copy of the Gram matrix that holds the rows in question, and Newton
steps on the free rows make the answer exact.
"""

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack

from bagwise._threads import checkpoint, ordered_map
from bagwise.solvers._result import Result, Status

_SLICE_SECONDS = 0.02  # compiled loops come back this often, so that Ctrl-C is answered
_WHOLE = 1024  # up to so many rows, all of them are worked on at once
_SMALLEST_SET, _LARGEST_SET = 512, 4096  # rows of a working set
_LARGEST_FREE = 2000  # free rows up to which Newton steps are taken
_NEWTON_BELOW = 1e-3  # violation at which the free rows are probably known
_EXACT = 1e-4  # of tol: the violation that Newton steps are to reach
_POLISH_ATTEMPTS, _POLISH_ROUNDS = 5, 12
_RECORD_STEPS = 16  # steps before the first record; each later one waits twice as long
_LOSSES = 3  # times that rounding may stop the steps
_RIDGES = (1e-11, 1e-9, 1e-7, 1e-5)  # relative to the kernel's diagonal
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedSVMResult(Result):
    """Solution of a kernel SVM with shared slacks: ``x`` holds ``alpha``, one number per row.

    Parameters
    ----------
    intercept : float
        The constant ``b`` of the decision function.
    decision : ndarray of float
        The decision function on the rows: ``gram @ (sign * alpha)``, plus ``b`` where the row
        feels the intercept.
    """

    intercept: float
    decision: NDArray[np.float64]


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
    check_finite: bool = True,
) -> GroupedSVMResult:
    r"""Train a support vector machine in which the rows of a group share one slack.

    The problem, for rows :math:`r` with images :math:`\phi_r`, signs :math:`s_r`, targets
    :math:`t_r`, groups of cost :math:`c_g`, and :math:`z_r` 1 where a row feels the intercept and
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
        Inner products of the rows' images: symmetric and positive semi-definite, in single or
        double precision. It is not copied if it is contiguous.
    sign : array-like of shape (n,)
        -1 or +1.
    group : array-like of int of shape (n,)
        The group of each row, counted from 0. Rows of a group need not be neighbours, but all of
        them must feel the intercept with the same sign, or none of them.
    cap : array-like of shape (n_groups,) or float
        Costs of the groups, not negative. The rows of a group of cost 0 take no part, whatever
        their signs.
    target : array-like of shape (n,) or float
        Margins that the rows ought to have; they may be negative.
    intercept : array-like of shape (n,), optional
        Which rows feel the intercept, as booleans or 0 and 1. By default all do.
    alpha0 : array-like of shape (n,), optional
        Where to start. Negative entries are cut, groups above their cap scaled down to it, and the
        heavier sign scaled down to the lighter one, first.
    tol : float
        The largest violation of the optimality conditions: no feasible step along two rows, or
        along one that does not feel the intercept, may raise the dual by more than ``tol`` per
        unit of length.
    max_iter : int
        Most steps.
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
    ``alpha > 0``. If no row feels the intercept, it is 0.

    With at most 2000 free rows the last step solves their optimality conditions as linear
    equations, so that decision values are accurate far beyond ``tol``.
    """
    started = perf_counter()
    problem = _Problem(gram, sign, group, cap, target, intercept, check_finite=check_finite)
    state = _State(problem, alpha0)
    # One BLAS thread, so that the bits of the answer do not depend on the number of threads.
    [search] = ordered_map(
        lambda search: search.run(), [_Search(state, tol, max_iter)], n_threads=1
    )
    return search.result(perf_counter() - started)


class _Problem:
    """The checked problem in signed form.

    ``side`` is the sign with which a row enters the intercept's constraint, and +1 where it does
    not. The unknowns are ``side * alpha``, so the constraint is that those of the ``paired`` rows
    sum to 0, and the matrix of the dual is ``gram`` with rows and columns multiplied by ``weight``.
    """

    def __init__(
        self,
        gram: NDArray[Any],
        sign: ArrayLike,
        group: ArrayLike,
        cap: ArrayLike,
        target: ArrayLike,
        intercept: ArrayLike | None,
        *,
        check_finite: bool,
    ) -> None:
        self.gram = _checked_gram(gram, check_finite=check_finite)
        self.n = n = len(self.gram)
        self.sign = _checked_rows("sign", sign, n)
        if not np.isin(self.sign, (-1.0, 1.0)).all():
            msg = f"sign must hold -1 and +1 only. Got {np.unique(self.sign)[:4]}."
            raise ValueError(msg)
        felt = np.ones(n) if intercept is None else _checked_rows("intercept", intercept, n)
        if not np.isin(felt, (0.0, 1.0)).all():
            msg = f"intercept must hold 0 and 1, or booleans. Got {np.unique(felt)[:4]}."
            raise ValueError(msg)
        self.target = _checked_rows("target", target, n)
        self.group, self.cap = _checked_groups(group, cap, n)
        self.order = np.argsort(self.group, kind="stable")
        self.present, self.first = np.unique(self.group[self.order], return_index=True)
        self.paired = felt > 0.0
        self.side = np.where(self.paired, self.sign, 1.0)
        self.weight = self.sign * self.side
        self.is_plain = bool((self.weight > 0.0).all())
        self.goal = self.side * self.target
        self.diagonal = self.gram.diagonal().astype(np.float64)
        self.flat = max(1e-12 * float(np.abs(self.diagonal).max()), 1e-200)
        self.active = np.flatnonzero(self.cap[self.group] > 0.0)
        self.crowded = np.bincount(self.group, minlength=len(self.cap)) > 1
        entry = self.sign * felt
        mixed = self.group_max(entry) > -self.group_max(-entry)
        if (mixed & (self.cap > 0.0)).any():
            g = int(np.flatnonzero(mixed & (self.cap > 0.0))[0])
            values = np.unique(entry[self.group == g]).astype(int).tolist()
            msg = (
                "group must hold rows that feel the intercept in the same way. "
                f"Got sign * intercept of {values} in group {g}."
            )
            raise ValueError(msg)

    def group_max(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest value in each group, minus infinity in groups without rows."""
        out = np.full(len(self.cap), -np.inf)
        out[self.present] = np.maximum.reduceat(values[self.order], self.first)
        return out

    def group_sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self.group, values, minlength=len(self.cap))


def _checked_gram(gram: NDArray[Any], *, check_finite: bool) -> NDArray[Any]:
    gram = np.asarray(gram)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not gram.size:
        msg = f"gram must be a square matrix. Got shape {gram.shape}."
        raise ValueError(msg)
    if gram.dtype not in (np.float32, np.float64):
        gram = gram.astype(np.float64)
    if not gram.flags.c_contiguous:  # a symmetric matrix in Fortran order is its own transpose
        gram = np.ascontiguousarray(gram.T if gram.flags.f_contiguous else gram)
    if check_finite:
        from bagwise.solvers._svm_dual_kernels import upper_half_is_finite

        per_slice = max(1, int(_SLICE_SECONDS * 1e9 / len(gram)))
        for start in range(0, len(gram), per_slice):
            checkpoint()
            if not upper_half_is_finite(gram, start, min(start + per_slice, len(gram))):
                raise ValueError(_not_finite())
    return gram


def _not_finite() -> str:
    return "gram must hold finite numbers only. Got NaN or infinity."


def _checked_rows(name: str, values: ArrayLike, n: int) -> NDArray[np.float64]:
    out = np.array(values, np.float64)
    if out.ndim == 0 and name == "target":
        out = np.full(n, out)
    if out.shape != (n,):
        msg = f"{name} must have one entry for each of the {n} rows of gram. Got shape {out.shape}."
        raise ValueError(msg)
    if not np.isfinite(out).all():
        msg = f"{name} must hold finite numbers only. Got NaN or infinity."
        raise ValueError(msg)
    return out


def _checked_groups(
    group: ArrayLike, cap: ArrayLike, n: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    groups, caps = np.asarray(group), np.array(cap, np.float64)
    if groups.shape != (n,) or groups.dtype.kind not in "iu":
        msg = (
            f"group must hold one integer for each of the {n} rows of gram. "
            f"Got {groups.dtype} of shape {groups.shape}."
        )
        raise ValueError(msg)
    if caps.ndim == 0:
        caps = np.full(int(groups.max()) + 1, caps)
    if caps.ndim != 1:
        msg = f"cap must be a number or hold one for each group. Got shape {caps.shape}."
        raise ValueError(msg)
    if groups.min() < 0 or groups.max() >= len(caps):
        msg = (
            f"group must lie between 0 and {len(caps) - 1}, as cap has {len(caps)} entries. "
            f"Got {groups.min()} to {groups.max()}."
        )
        raise ValueError(msg)
    if not np.isfinite(caps).all() or (caps < 0).any():
        wrong = int(np.flatnonzero(~(np.isfinite(caps) & (caps >= 0)))[0])
        msg = f"cap must be finite and not negative. Got {caps[wrong]} for group {wrong}."
        raise ValueError(msg)
    return groups.astype(np.int64), caps


def _subtract(
    gram: NDArray[Any],
    weight: NDArray[np.float64],
    rows: NDArray[np.int64],
    change: NDArray[np.float64],
    v: NDArray[np.float64],
) -> None:
    """Subtract ``weight * (change @ gram[rows])`` from ``v``."""
    from bagwise.solvers._svm_dual_kernels import subtract_rows

    per_slice = 4 * max(1, int(_SLICE_SECONDS * 2.5e8 / len(v)))
    v *= weight  # of 1 and -1: multiplying twice changes no bit
    for first in range(0, len(rows), per_slice):
        checkpoint()
        piece = slice(first, first + per_slice)
        subtract_rows(gram, rows[piece], change[piece], v)
    v *= weight


class _State:
    """The current point: ``alpha``, the room left in each group, and the slopes ``v``."""

    def __init__(self, problem: _Problem, alpha0: ArrayLike | None) -> None:
        self.problem = p = problem
        if alpha0 is None:
            self.alpha = np.zeros(p.n)
        else:
            self.alpha = self._feasible(_checked_rows("alpha0", alpha0, p.n))
        self.room = p.cap.copy()
        self.v = p.goal.copy()
        self.is_exact = True
        if alpha0 is not None:
            self.refresh()

    def _feasible(self, alpha: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cut, scale the groups down to their caps, then the heavier sign to the lighter one."""
        p = self.problem
        alpha = np.maximum(alpha, 0.0)
        total = p.group_sum(alpha)
        share = np.divide(p.cap, total, out=np.ones_like(total), where=total > p.cap)
        alpha *= share[p.group]
        positive, negative = (alpha[p.paired & (p.side == s)].sum() for s in (1.0, -1.0))
        heavier = p.paired & (p.side == (1.0 if positive > negative else -1.0))
        if positive != negative:
            alpha[heavier] *= min(positive, negative) / max(positive, negative)
        return alpha

    def refresh(self) -> None:
        """Compute the room and ``v`` from scratch.

        Before, rounding is taken out of the point: a row that only rounding keeps from 0 goes
        there, a group that only rounding keeps from its cap is full, and the signs balance again.
        """
        p, alpha = self.problem, self.alpha
        full = (self.room <= 0.0) & (p.cap > 0.0)
        hair = 16.0 * _EPS * np.minimum(p.cap, alpha.max())
        alpha[alpha <= hair[p.group]] = 0.0
        self.room[:] = p.cap - p.group_sum(alpha)
        full |= self.room <= 16.0 * _EPS * p.cap
        self._fill(full)
        self.room[full] = 0.0
        self._balance()
        self.v[:] = p.goal
        rows = np.flatnonzero(alpha)
        _subtract(p.gram, p.weight, rows, (p.sign * alpha)[rows], self.v)
        if not np.isfinite(self.v).all():
            raise ValueError(_not_finite())
        self.is_exact = True

    def _fill(self, full: NDArray[np.bool_]) -> None:
        """Let the largest row of each full group make up what is missing to the cap."""
        p, alpha = self.problem, self.alpha
        largest = alpha == p.group_max(alpha)[p.group]
        rows = np.flatnonzero(largest & (full & (self.room != 0.0))[p.group] & (alpha > 0.0))
        groups, first = np.unique(p.group[rows], return_index=True)
        alpha[rows[first]] += self.room[groups]

    def _balance(self) -> None:
        p, alpha = self.problem, self.alpha
        spare = np.where(p.paired, np.minimum(alpha, self.room[p.group]), 0.0)
        k = int(spare.argmax())
        if spare[k] > 0.0:
            missing = -p.side[k] * float((p.side * alpha)[p.paired].sum())
            missing = float(np.clip(missing, -spare[k], spare[k]))
            alpha[k] += missing
            self.room[p.group[k]] -= missing

    @property
    def free(self) -> NDArray[np.bool_]:
        """Return which rows have weight in a group with room."""
        return (self.alpha > 0.0) & (self.room > 0.0)[self.problem.group]

    def interval(self) -> tuple[float, float]:
        """Return the largest ``v`` that may go up and the smallest that may go down.

        At the optimum the intercept lies between the two.
        """
        p = self.problem
        grows, shrinks = (self.room > 0.0)[p.group], self.alpha > 0.0
        up = np.where(p.side > 0.0, grows, shrinks) & p.paired
        down = np.where(p.side > 0.0, shrinks, grows) & p.paired
        return self.v[up].max(initial=-np.inf), self.v[down].min(initial=np.inf)

    def middle(self) -> float:
        highest, lowest = self.interval()
        if np.isinf(highest) and np.isinf(lowest):
            return 0.0
        if np.isinf(highest) or np.isinf(lowest):
            return lowest if np.isinf(highest) else highest
        return 0.5 * (highest + lowest)

    def scores(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what each row promises if it grows, and if it shrinks: twice 0 at an optimum.

        A row of a full group is compared with the rows that it would swap with, other rows with
        the middle of the interval of the intercept.
        """
        p = self.problem
        level = p.side * (self.v - np.where(p.paired, self.middle(), 0.0))
        positive = self.alpha > 0.0
        full = self.room <= 0.0
        least = -p.group_max(np.where(positive, -level, -np.inf))
        most = p.group_max(level)
        with np.errstate(invalid="ignore"):
            grow = np.where(full[p.group], level - least[p.group], level)
        shrink = np.where(full[p.group], np.maximum(most[p.group] - level, -level), -level)
        grow[(p.cap == 0.0)[p.group]] = -np.inf
        shrink[~positive] = -np.inf
        return grow, shrink

    @property
    def violation(self) -> float:
        p = self.problem
        highest, lowest = self.interval()
        rising = p.side * self.v
        positive, full = self.alpha > 0.0, self.room <= 0.0
        worst = highest - lowest
        if p.crowded.any():
            swap = p.group_max(rising) + p.group_max(np.where(positive, -rising, -np.inf))
            worst = max(worst, swap[full & p.crowded].max(initial=-np.inf))
        if not p.paired.all():
            grows = rising[~p.paired & ~full[p.group]].max(initial=-np.inf)
            worst = max(worst, grows, -rising[~p.paired & positive].min(initial=np.inf))
        return float(worst)

    @property
    def rounding(self) -> float:
        """Return how exactly ``v`` can be known."""
        p = self.problem
        return float(_EPS * (self.alpha @ np.abs(p.diagonal) + np.abs(p.goal).max()))

    @property
    def dual(self) -> float:
        return 0.5 * float(self.alpha @ (self.problem.side * (self.problem.goal + self.v)))

    def intercept(self) -> float:
        free = self.free & self.problem.paired
        return float(self.v[free].mean()) if free.any() else self.middle()

    def primal(self, intercept: float) -> float:
        p = self.problem
        slack = p.group_max(p.side * (self.v - np.where(p.paired, intercept, 0.0)))
        square = float(self.alpha @ (p.side * (p.goal - self.v)))
        return 0.5 * square + float(p.cap @ np.maximum(slack, 0.0))


class _WorkingSet:
    """Some rows of the problem with their own Gram matrix; the others stay as they are."""

    def __init__(self, state: _State, rows: NDArray[np.int64] | None, gram: NDArray[Any]) -> None:
        self.state, self.rows, self.gram = state, rows, gram
        p = state.problem
        if rows is None:  # all rows: work on the state itself
            self.alpha, self.v, self.room = state.alpha, state.v, state.room
            self.group, self.members = p.group, p.order
            self.weight, self.side, self.paired = p.weight, p.side, p.paired
            self.diagonal = p.diagonal
        else:
            self.alpha, self.v = state.alpha[rows], state.v[rows]
            self.groups, self.group = np.unique(p.group[rows], return_inverse=True)
            self.room = state.room[self.groups]
            self.members = np.argsort(self.group, kind="stable")
            self.weight, self.side, self.paired = p.weight[rows], p.side[rows], p.paired[rows]
            self.diagonal = p.diagonal[rows]
        sizes = np.bincount(self.group, minlength=len(self.room))
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.alone = np.flatnonzero(~self.paired)
        self.mask()

    def mask(self) -> None:
        grows, shrinks = (self.room > 0.0)[self.group], self.alpha > 0.0
        up = np.where(self.side > 0.0, grows, shrinks) & self.paired
        down = np.where(self.side > 0.0, shrinks, grows) & self.paired
        self.up, self.down = np.where(up, 0.0, -np.inf), np.where(down, 0.0, -np.inf)

    @property
    def is_partial(self) -> bool:
        return len(self.v) < len(self.state.problem.active)

    @property
    def rounding(self) -> float:
        """Return how exactly ``v`` can be known, as far as these rows matter."""
        return float(_EPS * (self.alpha @ np.abs(self.diagonal)))

    @property
    def free(self) -> NDArray[np.int64]:
        """Return the rows with weight that can move: not alone with weight in a full group."""
        positive = self.alpha > 0.0
        several = np.bincount(self.group[positive], minlength=len(self.room)) > 1
        return np.flatnonzero(positive & (several | (self.room > 0.0))[self.group])

    @property
    def step_seconds(self) -> float:
        """Return about how long a step takes."""
        return 4e-7 + 2.5e-9 * len(self.v)

    @property
    def newton_seconds(self) -> float:
        """Return about how long a Newton step takes."""
        return 2e-4 + 2e-11 * float(len(self.free)) ** 3

    def steps(self, tol: float, max_steps: int) -> tuple[int, float, float, bool]:
        from bagwise.solvers._grouped_dual_kernels import group_steps

        self.state.is_exact = False
        return group_steps(
            self.gram, self.weight, self.diagonal, self.paired, self.side, self.group,
            self.members, self.starts, self.alone, self.alpha, self.room, self.v, self.up,
            self.down, self.state.problem.flat, tol, max_steps,
        )  # fmt: skip

    def push(self) -> None:
        """Hand the new point to the state."""
        if self.rows is None:
            return
        state, p = self.state, self.state.problem
        change = self.alpha - state.alpha[self.rows]
        state.alpha[self.rows] = self.alpha
        state.room[self.groups] = self.room
        changed = np.flatnonzero(change)
        if 2 * len(changed) > np.count_nonzero(state.alpha):
            state.refresh()
        else:
            rows = self.rows[changed]
            _subtract(p.gram, p.weight, rows, p.sign[rows] * change[changed], state.v)

    def newton(self, n_rounds: int) -> bool:
        """Solve for the free rows as if there were no bounds, as far as the bounds permit.

        A row that reaches 0 stays there, a group that reaches its cap keeps its sum, and the rest
        is solved again. Every step raises the dual. Returns whether the free rows ended where all
        their conditions hold.
        """
        for _ in range(n_rounds):
            checkpoint()
            rows = self.free
            if len(rows) > _LARGEST_FREE:
                return False
            moves = _Moves(self, rows)
            if not len(moves.chosen):
                return True
            if moves.factor is None:
                return False
            self.state.is_exact = False
            if self._newton_steps(moves):
                return True
        return False

    def _newton_steps(self, moves: "_Moves") -> bool:
        """Step until no move promises anything, or until a bound is met."""
        from bagwise.solvers._grouped_dual_kernels import bent_step

        rows, before = moves.free, np.inf
        group, side, weight = self.group[rows], self.side[rows], self.weight[rows]
        error = moves.error(self.v)
        while 0.0 < error <= 0.5 * before:  # else what is left is rounding
            direction = moves.direction(self.v)
            alpha, room = self.alpha[rows], self.room.copy()
            single = moves.single
            upper = np.where(single, alpha + room[group], np.inf)
            room[group[single]] = np.inf
            room[self.room <= 0.0] = np.inf  # the sums of full groups stay as they are
            is_straight = bent_step(
                moves.matrix, direction, moves.matrix @ direction, self.v[rows], side,
                moves.anchor, group, alpha, upper, room,
            )  # fmt: skip
            change = side * (alpha - self.alpha[rows])
            v = self.v.copy()
            _subtract(self.gram, self.weight, rows, weight * change, v)
            if change @ (self.v + v)[rows] <= 0.0:  # twice what the dual gained: only rounding
                return True
            self.v[:] = v
            self.alpha[rows] = alpha
            room[group[single]] = (upper - alpha)[single]
            np.copyto(self.room, room, where=self.room > 0.0)
            self.mask()
            if not is_straight:
                return False
            before, error = error, moves.error(self.v)
        return True


class _Moves:
    """Independent moves of the free rows that keep the sums of full groups, and the balance.

    The rows of a full group keep their sum, and so do, over all groups with room, the rows that
    feel the intercept: in each such class every row moves against an anchor, the row with most
    space around it. Other rows move by themselves and have the anchor -1.
    """

    def __init__(self, work: _WorkingSet, free: NDArray[np.int64]) -> None:
        self.work, self.free = work, free
        group, n = work.group[free], len(free)
        room = work.room[group]
        kind = np.where(room <= 0.0, group, -1)  # -1: the class of the rows that must balance
        space = np.where(room <= 0.0, work.alpha[free], np.minimum(work.alpha[free], room))
        order = np.lexsort((-space, kind))
        begins = np.diff(kind[order], prepend=-2) != 0
        self.anchor = np.empty(n, np.int64)
        self.anchor[order] = order[begins][np.cumsum(begins) - 1]
        alone = (room > 0.0) & ~work.paired[free]
        if alone.any():
            self._exclude(alone, space)
        self.single = (room > 0.0) & (np.bincount(group, minlength=1)[group] == 1)
        self.chosen = np.flatnonzero(self.anchor != np.arange(n))
        self.tied = self.anchor[self.chosen] >= 0

    def _exclude(self, alone: NDArray[np.bool_], space: NDArray[np.float64]) -> None:
        """Take rows that move by themselves out of the class of those that must balance."""
        others = np.flatnonzero((self.anchor == self.anchor[alone][0]) & ~alone)
        self.anchor[alone] = -1
        if len(others):
            self.anchor[others] = others[space[others].argmax()]

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """Return the matrix of the dual over the free rows."""
        block = self.work.gram[np.ix_(self.free, self.free)].astype(np.float64)
        weight = self.work.weight[self.free]
        block *= weight[:, None] * weight
        return block  # type: ignore[no-any-return]

    @cached_property
    def factor(self) -> NDArray[np.float64] | None:
        """Factorise the matrix of the moves.

        Duplicate rows make it singular, so a tiny multiple of the identity is added: the shortest
        step is taken where many would do, and repeating the step takes the rest of the error out.
        """
        tied, anchor = self.tied.astype(np.float64), self.anchor[self.chosen]
        half = self.matrix[self.chosen] - tied[:, None] * self.matrix[anchor]
        reduced = half[:, self.chosen] - tied * half[:, anchor]
        diagonal = reduced.diagonal().copy()
        scale = max(float(self.matrix.diagonal().max()), 1e-200)
        for ridge in _RIDGES:
            np.fill_diagonal(reduced, diagonal + ridge * scale)
            factor, info = lapack.dpotrf(reduced.T, lower=1, clean=0, overwrite_a=0)
            if info == 0:
                return factor  # type: ignore[no-any-return]
        return None

    def slopes(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the slope of the dual along each move."""
        v = v[self.free]
        return v[self.chosen] - np.where(self.tied, v[self.anchor[self.chosen]], 0.0)  # type: ignore[no-any-return]

    def error(self, v: NDArray[np.float64]) -> float:
        return float(np.abs(self.slopes(v)).max())

    def direction(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the change of the free rows, in signed form, that makes all slopes 0."""
        solved, _ = lapack.dpotrs(self.factor, self.slopes(v), lower=1)
        out = np.zeros(len(self.free))
        out[self.chosen] = solved
        np.subtract.at(out, self.anchor[self.chosen][self.tied], solved[self.tied])
        return out


class _Search:
    """The order of events: steps on all rows, then on working sets, then the polish."""

    def __init__(self, state: _State, tol: float, max_iter: int) -> None:
        self.state, self.tol, self.max_iter = state, tol, max_iter
        self.n_iter = 0
        self.status = Status.CONVERGED
        self.history: list[float] = []
        self.gaps: list[float] = []
        self.record()
        self.buffer = np.empty(0)

    def record(self) -> None:
        """Note the objective of the dual, as minimised, and the gap."""
        dual = self.state.dual
        self.history.append(-dual)
        self.gaps.append(self.state.primal(self.state.intercept()) - dual)

    def run(self) -> "_Search":
        state, tol = self.state, self.tol
        active = state.problem.active
        if len(active) > _WHOLE and self.n_breaking > _SMALLEST_SET:
            self.descend(self.whole(), 0.5 * tol, budget=len(active) // 6)
        goal, attempts, losses = tol, 0, 0
        polished = state.violation == -np.inf  # nothing can move
        while True:
            violation = state.violation
            if violation <= tol and polished:
                if state.is_exact:
                    break
                state.refresh()
                losses += state.violation > tol
                continue
            if losses >= _LOSSES or (self.n_iter >= self.max_iter and violation > tol):
                self.status = Status.STALLED if losses >= _LOSSES else Status.MAX_ITER
                break
            work = self.working_set(violation)
            # Other rows may come in while the free rows are not known: do not be exact too early.
            aim = 0.05 * violation if work.is_partial else _NEWTON_BELOW
            aim = max(0.5 * goal, min(aim, 0.05 * violation))
            # Within tol the answer is good enough: what makes it exact must not cost much more.
            budget = None if violation > tol else max(1000, self.n_iter // 4)
            dual, n_iter = state.dual, self.n_iter
            lost = self.descend(work, aim, budget)
            polish = attempts < _POLISH_ATTEMPTS and len(work.free) <= _LARGEST_FREE
            polished = not polish
            if polish and (lost or aim <= max(_NEWTON_BELOW, tol)):
                polished = work.newton(_POLISH_ROUNDS)
            work.push()
            self.record()
            blurred = state.rounding > tol
            if lost or blurred:
                state.refresh()
            if lost or (blurred and self.is_hopeless(dual, n_iter)):  # steps can do no more
                polished = True
                losses += state.violation > tol
                continue
            violation = state.violation
            exact = max(_EXACT * tol, state.rounding)
            if polish and violation <= tol and not (polished and violation <= exact):
                polished = False
                attempts += 1
                goal = 0.1 * max(violation, exact)
        if not state.is_exact:
            state.refresh()
        self.record()
        return self

    def is_hopeless(self, dual: float, n_iter: int) -> bool:
        """Tell whether all steps that are left would not close the gap, or a tenth of it.

        The pace is that of the steps since the dual value and the iteration given.
        """
        state = self.state
        gained = (state.dual - dual) / max(1, self.n_iter - n_iter)
        gap = state.primal(state.intercept()) - state.dual
        return gained * (self.max_iter - self.n_iter) <= 0.1 * max(0.0, gap)

    @property
    def n_breaking(self) -> int:
        """Return how many rows violate a condition nearly as much as the worst one."""
        score = np.maximum(*self.state.scores())
        return int(np.count_nonzero(score > max(0.0, 0.6 * score.max())))

    def whole(self) -> _WorkingSet:
        return _WorkingSet(self.state, None, self.state.problem.gram)

    def working_set(self, violation: float) -> _WorkingSet:
        """Choose the free rows and those closest to breaking, or already breaking, a condition."""
        state, p = self.state, self.state.problem
        if len(p.active) <= _WHOLE:
            return self.whole() if len(p.active) == p.n else self.gathered(p.active)
        positive = state.alpha > 0.0
        free = positive & ((state.room > 0.0) | p.crowded)[p.group]
        n_free = int(free.sum())
        size = min(max(_SMALLEST_SET, n_free + n_free // 2), _LARGEST_SET)
        if size >= len(p.active):
            return self.gathered(p.active)
        grow, shrink = state.scores()
        score = np.maximum(grow, shrink)
        if 3 * n_free <= 2 * size:
            score[free] = np.inf
        for part in (grow, shrink):  # a step needs one of each
            score[np.argpartition(-part, size // 8)[: size // 8 + 1]] = np.inf
        score[(p.cap == 0.0)[p.group]] = -np.inf
        rows = np.argpartition(-score, size)[:size]
        return self.gathered(np.sort(rows[score[rows] > -np.inf]))

    def gathered(self, rows: NDArray[np.int64]) -> _WorkingSet:
        """Return a working set with a copy of its part of the Gram matrix."""
        from bagwise.solvers._svm_dual_kernels import gather

        if self.buffer.size < len(rows) ** 2:
            self.buffer = np.empty(len(rows) ** 2)
        gram = self.buffer[: len(rows) ** 2].reshape(len(rows), len(rows))
        gather(self.state.problem.gram, rows, rows, gram)
        return _WorkingSet(self.state, rows, gram)

    def descend(self, work: _WorkingSet, tol: float, budget: int | None = None) -> bool:
        """Take steps until the violation is at most ``tol``, and a Newton step where slow.

        Returns whether rounding stopped them. They also end where ``v`` should be computed anew.
        """
        most = self.max_iter if budget is None else min(self.max_iter, self.n_iter + budget)
        patience, spent = max(1000, 2 * len(work.v)), 0
        smallest = _EPS * abs(self.state.dual)
        while True:
            checkpoint()
            a_slice = max(1, int(_SLICE_SECONDS / work.step_seconds))
            until_record = max(_RECORD_STEPS, self.n_iter)
            allowed = min(a_slice, until_record, patience - spent, most - self.n_iter)
            steps, violation, decrease, lost = work.steps(tol, allowed)
            self.n_iter += steps
            spent += steps
            if not np.isfinite(work.v).all():
                raise ValueError(_not_finite())
            lost = lost or bool(steps >= 1000 and decrease <= smallest)
            if violation <= tol or lost or self.n_iter >= most:
                return lost and violation > tol
            if work.rows is None:
                self.record()
            if spent >= patience:  # spend about as long on Newton steps as on other steps
                rounds = int(spent * work.step_seconds / work.newton_seconds)
                spent = 0
                if not work.newton(min(max(rounds, 2), 30)):
                    patience *= 2
                if work.rounding > self.tol:  # steps have added up more of it: start from a new v
                    return False

    def result(self, solve_time: float) -> GroupedSVMResult:
        state, p = self.state, self.state.problem
        intercept = state.intercept()
        image = p.weight * (p.goal - state.v)
        return GroupedSVMResult(
            x=state.alpha,
            intercept=intercept,
            decision=image + np.where(p.paired, intercept, 0.0),
            objective=state.primal(intercept),
            lower_bound=state.dual,
            residual=max(0.0, state.violation),
            status=self.status,
            n_iter=self.n_iter,
            history=np.array(self.history),
            gap_history=np.array(self.gaps),
            solve_time=solve_time,
        )
