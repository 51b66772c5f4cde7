"""The dual of a kernel support vector machine with one cost and one target per row.

Pair steps with second-order selection (Fan, Chen and Lin 2005) find which rows are free. Once a
rough answer is known they run on a small copy of the Gram matrix that holds the rows in question,
and Newton steps on the free rows make the answer exact.
"""

from dataclasses import dataclass
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
_POLISH_ATTEMPTS = 5
_RECORD_STEPS = 16  # pair steps before the first record; each later one waits twice as long
_LOSSES = 3  # times that rounding may stop the pair steps
_RIDGES = (1e-11, 1e-9, 1e-7, 1e-5)  # relative to the kernel's diagonal


@dataclass(frozen=True, kw_only=True, eq=False)
class SVMDualResult(Result):
    """Solution of a kernel SVM: ``x`` holds ``alpha``, one number in ``[0, cost]`` per row.

    Parameters
    ----------
    intercept : float
        The constant ``b`` of the decision function.
    decision : ndarray of float
        The decision function ``gram @ (sign * alpha) + b`` on the rows.
    """

    intercept: float
    decision: NDArray[np.float64]


def solve_svm_dual(
    gram: NDArray[Any],
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    alpha0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000_000,
    check_finite: bool = True,
) -> SVMDualResult:
    r"""Train a support vector machine on a Gram matrix.

    The problem, for rows :math:`r` with images :math:`\phi_r`, signs :math:`s_r`, costs
    :math:`c_r` and targets :math:`t_r`, is

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + \sum_r c_r \bigl(t_r - s_r (\langle w, \phi_r \rangle + b)\bigr)_+

    and its dual, with :math:`Q_{rq} = s_r s_q \langle \phi_r, \phi_q \rangle`,

    .. math::

        \max_{\alpha} \; t^\top \alpha - \tfrac12 \alpha^\top Q \alpha
        \quad \text{subject to} \quad 0 \le \alpha \le c, \; s^\top \alpha = 0.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Inner products of the rows' images: symmetric and positive semi-definite, in single or
        double precision. It is not copied if it is contiguous.
    sign : array-like of shape (n,)
        -1 or +1; both must occur.
    cost : array-like of shape (n,) or float
        Costs, not negative. A row of cost 0 takes no part.
    target : array-like of shape (n,) or float
        Margins that the rows ought to have; they may be negative.
    alpha0 : array-like of shape (n,), optional
        Where to start. It is clipped to the box, and the heavier sign scaled down, first.
    tol : float
        The largest violation of the optimality conditions: with ``v = s t - gram (s alpha)``, the
        largest ``v`` of a row that may grow minus the smallest ``v`` of one that may shrink.
    max_iter : int
        Most pair steps.
    check_finite : bool
        Whether to look for NaN and infinity in the whole Gram matrix first.

    Returns
    -------
    SVMDualResult
        ``objective`` is the primal value at ``(w, b)``, ``lower_bound`` the dual value,
        ``residual`` the violation that ``tol`` bounds, computed from scratch, ``history`` the
        negative dual values, ``gap_history`` the duality gap beside them.

    Notes
    -----
    The intercept is the mean of ``v`` over the free rows (``0 < alpha < cost``); if there are
    none, the middle of the interval of optimal intercepts, or its end if it has only one. With
    at most 2000 free rows the last step solves their optimality conditions as linear equations, so
    that decision values are accurate far beyond ``tol``.
    """
    started = perf_counter()
    state = _State(gram, sign, cost, target, alpha0, check_finite=check_finite)
    # One BLAS thread, so that the bits of the answer do not depend on the number of threads.
    [search] = ordered_map(
        lambda search: search.run(), [_Search(state, tol, max_iter)], n_threads=1
    )
    return search.result(perf_counter() - started)


def constant_svm(sign: ArrayLike) -> SVMDualResult:
    """Return the solution for rows that all have one sign: ``w = 0`` and that sign everywhere."""
    signs = np.asarray(sign, np.float64)
    return SVMDualResult(
        x=np.zeros(len(signs)),
        intercept=float(signs[0]),
        decision=signs.copy(),
        objective=0.0,
        lower_bound=0.0,
        residual=0.0,
        status=Status.CONVERGED,
        n_iter=0,
    )


class _State:
    """The problem and the current point, in signed form: ``beta = sign * alpha``."""

    def __init__(
        self,
        gram: NDArray[Any],
        sign: ArrayLike,
        cost: ArrayLike,
        target: ArrayLike,
        alpha0: ArrayLike | None,
        *,
        check_finite: bool,
    ) -> None:
        self.gram = _checked_gram(gram, check_finite=check_finite)
        self.n = n = len(self.gram)
        self.sign = _checked_rows("sign", sign, n)
        if not np.isin(self.sign, (-1.0, 1.0)).all() or len(np.unique(self.sign)) < 2:
            msg = f"sign must hold -1 and +1, both of them. Got {np.unique(self.sign)[:4]}."
            raise ValueError(msg)
        self.cost = _checked_rows("cost", cost, n)
        if (self.cost < 0).any():
            msg = f"cost must not be negative. Got {self.cost.min()} in row {self.cost.argmin()}."
            raise ValueError(msg)
        self.goal = self.sign * _checked_rows("target", target, n)
        self.diagonal = self.gram.diagonal().astype(np.float64)
        self.flat = max(1e-12 * float(np.abs(self.diagonal).max()), 1e-200)
        self.lower = np.where(self.sign < 0, -self.cost, 0.0)
        self.upper = np.where(self.sign > 0, self.cost, 0.0)
        if alpha0 is None:
            self.beta = np.zeros(n)
        else:
            self.beta = self.sign * self._feasible(_checked_rows("alpha0", alpha0, n))
        self.v = self.goal.copy()
        self.subtract(np.flatnonzero(self.beta), self.beta)
        self.is_exact = True

    def _feasible(self, alpha: NDArray[np.float64]) -> NDArray[np.float64]:
        """Clip to the box, then scale the heavier sign down to the lighter one."""
        alpha = np.clip(alpha, 0.0, self.cost)
        positive, negative = (alpha[self.sign == s].sum() for s in (1.0, -1.0))
        heavier = self.sign == (1.0 if positive > negative else -1.0)
        if positive != negative:
            alpha[heavier] *= min(positive, negative) / max(positive, negative)
        return alpha

    def subtract(self, rows: NDArray[np.int64], factor: NDArray[np.float64]) -> None:
        """Subtract ``factor[rows] @ gram[rows]`` from ``v``."""
        from bagwise.solvers._svm_dual_kernels import subtract_rows

        per_slice = 4 * max(1, int(_SLICE_SECONDS * 2.5e8 / self.n))
        for first in range(0, len(rows), per_slice):
            checkpoint()
            piece = rows[first : first + per_slice]
            subtract_rows(self.gram, piece, factor[piece], self.v)

    def refresh(self) -> None:
        """Compute ``v`` from scratch.

        Before, rounding is taken out of the point: a row that only rounding keeps from a bound goes
        there (or it would fix the intercept), and the signs balance again.
        """
        hair = 16.0 * np.finfo(np.float64).eps * np.abs(self.beta).max()
        below, above = self.beta - self.lower, self.upper - self.beta
        np.copyto(self.beta, self.lower, where=(below <= hair) & (below <= above))
        np.copyto(self.beta, self.upper, where=(above <= hair) & (above < below))
        free = self.free
        if free.any():
            room = np.where(free, np.minimum(self.upper - self.beta, self.beta - self.lower), -1.0)
            k = int(room.argmax())
            self.beta[k] = np.clip(self.beta[k] - self.beta.sum(), self.lower[k], self.upper[k])
        self.v[:] = self.goal
        self.subtract(np.flatnonzero(self.beta), self.beta)
        self.is_exact = True

    @property
    def free(self) -> NDArray[np.bool_]:
        return (self.beta > self.lower) & (self.beta < self.upper)

    def interval(self) -> tuple[float, float]:
        """Return the largest ``v`` that may grow and the smallest that may shrink.

        At the optimum the intercept lies between the two.
        """
        highest = self.v[self.beta < self.upper].max(initial=-np.inf)
        lowest = self.v[self.beta > self.lower].min(initial=np.inf)
        if np.isnan(highest) or np.isnan(lowest):
            raise ValueError(_not_finite())
        return float(highest), float(lowest)

    @property
    def violation(self) -> float:
        highest, lowest = self.interval()
        return highest - lowest

    @property
    def n_breaking(self) -> int:
        """Return how many rows violate a condition nearly as much as the worst one."""
        highest, lowest = self.interval()
        fifth = 0.2 * (highest - lowest)
        grows = (self.beta < self.upper) & (self.v > highest - fifth)
        shrinks = (self.beta > self.lower) & (self.v < lowest + fifth)
        return int(np.count_nonzero(grows | shrinks))

    @property
    def rounding(self) -> float:
        """Return how exactly ``v`` can be known."""
        terms = np.abs(self.beta) @ np.abs(self.diagonal) + np.abs(self.goal).max()
        return float(np.finfo(np.float64).eps * terms)

    @property
    def dual(self) -> float:
        return 0.5 * float(self.beta @ (self.goal + self.v))

    def intercept(self) -> float:
        free = self.free
        if free.any():
            return float(self.v[free].mean())
        highest, lowest = self.interval()
        if np.isinf(highest) and np.isinf(lowest):
            return 0.0
        if np.isinf(highest) or np.isinf(lowest):
            return lowest if np.isinf(highest) else highest
        return 0.5 * (highest + lowest)

    def primal(self, intercept: float) -> float:
        slack = np.maximum(self.sign * (self.v - intercept), 0.0)
        return 0.5 * float(self.beta @ (self.goal - self.v)) + float(self.cost @ slack)


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
    if out.ndim == 0 and name in ("cost", "target"):
        out = np.full(n, out)
    if out.shape != (n,):
        msg = f"{name} must have one entry for each of the {n} rows of gram. Got shape {out.shape}."
        raise ValueError(msg)
    if not np.isfinite(out).all():
        msg = f"{name} must hold finite numbers only. Got NaN or infinity."
        raise ValueError(msg)
    return out


class _WorkingSet:
    """Some rows of the problem with their own Gram matrix; the others stay as they are."""

    def __init__(self, state: _State, rows: NDArray[np.int64] | None, gram: NDArray[Any]) -> None:
        self.state, self.rows, self.gram = state, rows, gram
        if rows is None:  # all rows: work on the state itself
            self.diagonal, self.beta, self.v = state.diagonal, state.beta, state.v
            self.lower, self.upper = state.lower, state.upper
        else:
            self.diagonal, self.beta, self.v = state.diagonal[rows], state.beta[rows], state.v[rows]
            self.lower, self.upper = state.lower[rows], state.upper[rows]
        self.mask()

    def mask(self) -> None:
        self.grow = np.where(self.beta < self.upper, 0.0, -np.inf)
        self.shrink = np.where(self.beta > self.lower, 0.0, -np.inf)

    @property
    def violation(self) -> float:
        return float((self.v + self.grow).max() + (self.shrink - self.v).max())

    @property
    def rounding(self) -> float:
        """Return how exactly ``v`` can be known, as far as these rows matter."""
        return float(np.finfo(np.float64).eps * (np.abs(self.beta) @ np.abs(self.diagonal)))

    @property
    def n_free(self) -> int:
        return int(np.count_nonzero((self.grow == 0.0) & (self.shrink == 0.0)))

    @property
    def step_seconds(self) -> float:
        """Return about how long a pair step takes."""
        return 4e-7 + 1.2e-9 * len(self.v)

    @property
    def newton_seconds(self) -> float:
        """Return about how long a Newton step takes."""
        return 1e-4 + 1.5e-11 * float(self.n_free) ** 3

    def steps(self, tol: float, max_steps: int) -> tuple[int, float, float, bool]:
        from bagwise.solvers._svm_dual_kernels import pair_steps

        self.state.is_exact = False
        return pair_steps(
            self.gram, self.diagonal, self.beta, self.lower, self.upper, self.v,
            self.grow, self.shrink, self.state.flat, tol, max_steps,
        )  # fmt: skip

    def push(self) -> None:
        """Hand the new point to the state."""
        if self.rows is None:
            return
        state = self.state
        change = np.zeros(state.n)
        change[self.rows] = self.beta - state.beta[self.rows]
        state.beta[self.rows] = self.beta
        changed = np.flatnonzero(change)
        if 2 * len(changed) > np.count_nonzero(state.beta):
            state.refresh()
        else:
            state.subtract(changed, change)

    def newton(self, n_rounds: int) -> bool:
        """Solve for the free rows as if the box were not there, as far as the box permits.

        A row that reaches a bound stays there, and the rest is solved again. Every step lowers the
        objective. Returns whether the free rows ended where all their conditions hold.
        """
        for _ in range(n_rounds):
            checkpoint()
            free = np.flatnonzero((self.grow == 0.0) & (self.shrink == 0.0))
            if len(free) < 2:
                return True
            if len(free) > _LARGEST_FREE:
                return False
            factor = _factorised(self.gram[np.ix_(free, free)])
            if factor is None:
                return False
            self.state.is_exact = False
            if self._newton_steps(free, factor):
                return True
        return False

    def _newton_steps(self, free: NDArray[np.int64], factor: NDArray[np.float64]) -> bool:
        """Step until the free rows agree on the intercept, or until one is at a bound."""
        from bagwise.solvers._svm_dual_kernels import subtract_rows

        spread = np.ptp(self.v[free])
        while spread > 0.0:
            direction = _direction(factor, self.v[free])
            beta, lower, upper = self.beta[free], self.lower[free], self.upper[free]
            room = np.where(direction > 0.0, upper - beta, beta - lower)
            length = np.full(len(free), np.inf)
            np.divide(room, np.abs(direction), out=length, where=direction != 0.0)
            step = min(1.0, float(length.min()))
            moved = np.clip(beta + step * direction, lower, upper)
            blocked = length <= step
            moved[blocked] = np.where(direction > 0.0, upper, lower)[blocked]
            self.beta[free] = moved
            subtract_rows(self.gram, free, moved - beta, self.v)
            self.mask()
            if blocked.any():
                return False
            spread, before = np.ptp(self.v[free]), spread
            if spread > 0.5 * before:  # what is left is rounding
                break
        return True


def _factorised(gram: NDArray[Any]) -> NDArray[np.float64] | None:
    """Factorise a Gram matrix for steps that sum to 0.

    To such steps a constant in all entries makes no difference; it keeps the constant vector out of
    the null space. Duplicate rows make the matrix singular, so a tiny multiple of the identity is
    added: the shortest step is taken where many would do, and repeating the step takes the rest of
    the error out.
    """
    n = len(gram)
    scale = max(float(gram.diagonal().max()), 1e-200)
    for ridge in _RIDGES:
        matrix = gram.astype(np.float64)
        matrix += scale
        matrix.flat[:: n + 1] += ridge * scale
        factor, info = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return factor  # type: ignore[no-any-return]
    return None


def _direction(factor: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the step that makes all ``v`` equal and sums to 0."""
    right = np.empty((len(v), 2), order="F")
    right[:, 0] = v - v.mean()
    right[:, 1] = 1.0
    solved, _ = lapack.dpotrs(factor, right, lower=1, overwrite_b=1)
    ahead, ones = solved[:, 0], solved[:, 1]
    return ahead - (ahead.sum() / ones.sum()) * ones  # type: ignore[no-any-return]


class _Search:
    """The order of events: pair steps on all rows, then on working sets, then the polish."""

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
        if state.n > _WHOLE and state.n_breaking > _SMALLEST_SET:
            self.descend(self.whole(), 0.5 * tol, budget=state.n // 6)
        goal, attempts, losses = tol, 0, 0
        polished = state.violation == -np.inf  # one sign has no cost: nothing can move
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
            aim = 0.05 * violation if work.rows is not None else _NEWTON_BELOW
            aim = max(0.5 * goal, min(aim, 0.05 * violation))
            # Within tol the answer is good enough: what makes it exact must not cost much more.
            budget = None if violation > tol else max(1000, self.n_iter // 4)
            dual, n_iter = state.dual, self.n_iter
            lost = self.descend(work, aim, budget)
            polish = attempts < _POLISH_ATTEMPTS and work.n_free <= _LARGEST_FREE
            polished = not polish
            if polish and (lost or aim <= max(_NEWTON_BELOW, tol)):
                polished = work.newton(4)
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

    def whole(self) -> _WorkingSet:
        return _WorkingSet(self.state, None, self.state.gram)

    def working_set(self, violation: float) -> _WorkingSet:
        """Choose the free rows and those closest to breaking, or already breaking, a condition."""
        from bagwise.solvers._svm_dual_kernels import gather

        state = self.state
        if state.n <= _WHOLE:
            return self.whole()
        free = state.free
        n_free = int(free.sum())
        size = min(max(_SMALLEST_SET, n_free + n_free // 2), _LARGEST_SET)
        if size >= state.n:
            return self.whole()
        middle = state.interval()[0] - 0.5 * violation
        grows = np.where(state.beta < state.upper, state.v - middle, -np.inf)
        shrinks = np.where(state.beta > state.lower, middle - state.v, -np.inf)
        score = np.maximum(grows, shrinks)
        if 3 * n_free <= 2 * size:
            score[free] = np.inf
        for side in (grows, shrinks):  # a step needs one of each
            score[np.argpartition(-side, size // 8)[: size // 8 + 1]] = np.inf
        score[state.cost == 0.0] = -np.inf
        rows = np.argpartition(-score, size)[:size]
        rows = np.sort(rows[score[rows] > -np.inf])
        if self.buffer.size < len(rows) ** 2:
            self.buffer = np.empty(len(rows) ** 2)
        gram = self.buffer[: len(rows) ** 2].reshape(len(rows), len(rows))
        gather(state.gram, rows, rows, gram)
        return _WorkingSet(state, rows, gram)

    def descend(self, work: _WorkingSet, tol: float, budget: int | None = None) -> bool:
        """Take pair steps until the violation is at most ``tol``, and a Newton step where slow.

        Returns whether rounding stopped them. They also end where ``v`` should be computed anew.
        """
        most = self.max_iter if budget is None else min(self.max_iter, self.n_iter + budget)
        patience, spent = max(1000, 20 * len(work.v)), 0
        smallest = np.finfo(np.float64).eps * abs(self.state.dual)
        while True:
            checkpoint()
            a_slice = max(1, int(_SLICE_SECONDS / work.step_seconds))
            until_record = max(_RECORD_STEPS, self.n_iter)
            allowed = min(a_slice, until_record, patience - spent, most - self.n_iter)
            steps, violation, decrease, lost = work.steps(tol, allowed)
            self.n_iter += steps
            spent += steps
            if np.isnan(violation):
                raise ValueError(_not_finite())
            lost = lost or bool(steps >= 1000 and decrease <= smallest)
            if violation <= tol or lost or self.n_iter >= most:
                return lost and violation > tol
            if work.rows is None:
                self.record()
            if spent >= patience:  # spend about as long on Newton steps as on pair steps
                rounds = int(spent * work.step_seconds / work.newton_seconds)
                spent = 0
                if not work.newton(min(max(rounds, 2), 30)):
                    patience *= 2
                if work.rounding > self.tol:  # steps have added up more of it: start from a new v
                    return False

    def result(self, solve_time: float) -> SVMDualResult:
        state = self.state
        intercept = state.intercept()
        return SVMDualResult(
            x=np.abs(state.beta),
            intercept=intercept,
            decision=state.goal - state.v + intercept,
            objective=state.primal(intercept),
            lower_bound=state.dual,
            residual=max(0.0, state.violation),
            status=self.status,
            n_iter=self.n_iter,
            history=np.array(self.history),
            gap_history=np.array(self.gaps),
            solve_time=solve_time,
        )
