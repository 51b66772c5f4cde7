"""Linear support vector machines on many rows, dense or sparse, with a free intercept.

Coordinate descent in the dual (Hsieh et al. 2008) serves where features are many. Where they are
few against the rows, and to end exactly in either case, proximal steps in the dual (augmented
Lagrangian) are solved by Newton steps in the primal, on the rows near the margin. Where these come
to many kinks, as with large costs, an interior-point method does without. Few rows of many features
are a matter for the Gram matrix, or where that is dear for products of rows with vectors.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats, Integers
from bagwise._progress import report
from bagwise._threads import checkpoint, single_blas_thread
from bagwise.solvers._checks import check_limits, check_tol, checked_array, checked_terms
from bagwise.solvers._result import Result, Status
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.svm._coordinate_descent import CoordinateDescent
from bagwise.solvers.svm._linear_problem import LinearPoint, LinearProblem
from bagwise.solvers.svm._linear_svm_interior import InteriorSearch
from bagwise.solvers.svm._linear_svm_products import ProductSearch
from bagwise.solvers.svm._primal_newton import NewtonModel, solve_definite, system_work
from bagwise.solvers.svm._svm_dual import solve_svm_dual

_SEED = 2008  # of samples of rows
_SMALL = 4000  # up to so many rows, a cold start is not prepared on a sample
_SAMPLE = 16  # a sample has one row in so many
_MANY_FEATURES = 600  # from so many on (and as many rows) coordinate descent comes first
_LARGEST_GRAM = 4000  # rows up to which a Gram matrix may be formed, if features are as many
_DEAR = 20.0  # products with all rows, there and back, in the time of a Gram matrix that is dear
_SHARE = 0.6  # of that time, which may be spent to do without it
_NEAR = 0.5  # violation from which on a point is no better start than none
_SLOW = 200  # Newton steps after which steps on pairs of rows are tried, if the Gram matrix fits
_SLOW_SYSTEMS = 10  # of all rows, in whose time Newton steps should end if there is another way
_FAR = 1e-2  # violation after coordinate descent from which on Newton steps are not tried before
_INTERIOR_GAPS = (1e-9, 1e-11, 1e-13)  # relative, at which steps in the interior may end
_LARGEST_SYSTEM = 3000  # features up to which they are tried
_SHARPEN = 8.0  # factor between the weights of successive proximal steps
_POLISH_ROUNDS = 4
_LARGEST_FREE = 3000  # free rows up to which their conditions are solved as equations
_REACH = 4.0  # bands by which the rows of a warm start may move before others are looked at
_LEAST_TOL = 1e-14  # a violation that is as good as none
_PATIENCE = 100  # most sweeps in which the violation should halve
_VISIT = 100.0  # products of two numbers of dense matrices in the time of one that a sweep takes
_CHEAP = 8.0  # sweeps in the time of a system, from which on they are tried before others
_HASTE = 50  # the same, where other steps are at hand
_LOOSE_SWEEPS = 800  # the same where a gap will do
_SYSTEMS = 25.0  # in whose time they are to come to it; most sweeps are over few rows
_SWEEPS = 500  # most sweeps of coordinate descent before Newton steps take over


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearSVMResult(Result):
    """Solution of a linear SVM: ``x`` holds ``alpha``, one number per row.

    Parameters
    ----------
    coef : ndarray of shape (d,)
        The weights ``w``. If converged they are the rows summed with ``sign * alpha``, or 0 where
        that is better; if not, or if a gap was asked for, another point may have a lower objective
        and is returned instead.
    intercept : float
        The constant ``b`` of the decision function.
    decision : ndarray of float
        The decision function ``instances @ w + b`` on the rows.
    """

    coef: Floats
    intercept: float
    decision: Floats


def solve_linear_svm(
    instances: Any,
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    rows: ArrayLike | None = None,
    loss: Literal["hinge", "squared_hinge"] = "hinge",
    intercept: Literal["free", "penalized", "none"] = "free",
    alpha0: ArrayLike | None = None,
    tol: float = 1e-6,
    gap: float = 0.0,
    max_iter: int = 1000,
) -> LinearSVMResult:
    r"""Train a linear support vector machine.

    The problem, for rows :math:`x_r` with signs :math:`s_r`, costs :math:`c_r` and targets
    :math:`t_r`, is

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2 + \tfrac{\rho}{2} b^2
        + \sum_r c_r \bigl(t_r - s_r (\langle w, x_r \rangle + b)\bigr)_+^e

    with :math:`e = 1` (``loss="hinge"``) or :math:`e = 2` (``"squared_hinge"``). The intercept is
    not penalised (``intercept="free"``, :math:`\rho = 0`: the solution of a kernel SVM with the
    linear kernel), is penalised like a weight (``"penalized"``, :math:`\rho = 1`: liblinear's
    problem with a bias of 1), or is 0 (``"none"``). The dual is

    .. math::

        \max_\alpha \; t^\top \alpha - \tfrac12 \bigl\|\sum_r s_r \alpha_r x_r\bigr\|^2
        - \sum_r \tfrac12 \delta_r \alpha_r^2 - \tfrac{\rho}{2} b^2
        \quad \text{subject to} \quad 0 \le \alpha \le c

    with :math:`\delta = 0` for the hinge; for the squared hinge :math:`\delta_r = 1 / (2 c_r)` and
    there is no upper bound. A free intercept adds the constraint :math:`s^\top \alpha = 0`, a
    penalised one is :math:`b = s^\top \alpha`.

    Parameters
    ----------
    instances : array or CSR matrix of shape (m, d), or FeatureRows
        The matrix that holds the rows, in single or double precision; it may be read-only or
        memory-mapped, and is not copied if its rows are contiguous.
    sign : array-like of shape (n,)
        -1 or +1.
    cost : array-like of shape (n,) or float
        Costs, not negative. A row of cost 0 takes no part.
    target : array-like of shape (n,) or float
        Margins that the rows ought to have; they may be negative.
    rows : array-like of int, optional
        Which rows of ``instances`` make up the problem; then ``n`` is their number.
    loss, intercept : str
        See above.
    alpha0 : array-like of shape (n,), optional
        Where to start, such as the solution for similar costs. If these were larger or smaller by
        one factor for all rows, give it as it is: what it says of ``w`` would be lost in rescaling.
    tol : float
        The largest violation of the optimality conditions, in units of the targets. With
        ``v = s t - X w - s delta alpha``: for a free intercept the largest ``v`` of a row whose
        ``s alpha`` may grow minus the smallest of one whose ``s alpha`` may shrink, else how far
        a row's ``v`` is on the wrong side of the intercept. A duality gap of at most a thousandth
        of ``tol``, relative to the objective, will do as well.
    gap : float
        A larger relative duality gap that will do. With the hinge the search looks for it on its
        way; many rows of many features then take a fraction of the time.
    max_iter : int
        Most sweeps of coordinate descent, Newton steps and steps in the interior together. Steps on
        the Gram matrix, and those that spare it, count as one.

    Returns
    -------
    LinearSVMResult
        ``objective`` is the primal value at ``(coef, intercept)``, ``lower_bound`` the dual value
        at ``x``, which is feasible, ``residual`` the violation that ``tol`` bounds, all computed
        from scratch; ``history`` holds primal values, which need not fall.

    Notes
    -----
    The intercept follows from ``alpha`` as in `solve_svm_dual`: the mean of ``v`` over the free
    rows, or the middle of the interval of optimal intercepts.
    """
    started = perf_counter()
    name = "solve_linear_svm"
    check_limits(name, tol, max_iter)
    check_tol(name, gap, "gap")
    if loss not in ("hinge", "squared_hinge"):
        msg = f"{name}: loss must be 'hinge' or 'squared_hinge'. Got {loss!r}."
        raise ValueError(msg)
    if intercept not in ("free", "penalized", "none"):
        msg = f"{name}: intercept must be 'free', 'penalized' or 'none'. Got {intercept!r}."
        raise ValueError(msg)
    matrix = FeatureRows.of(instances, rows, owner=name)
    signs, costs, targets = checked_terms(name, sign, cost, target, matrix.n)
    start = None if alpha0 is None else checked_array(name, "alpha0", alpha0, (matrix.n,))
    rho = {"free": 0.0, "penalized": 1.0, "none": None}[intercept]
    problem = LinearProblem(matrix, signs, costs, targets, loss == "squared_hinge", rho)
    search = _Search(problem, tol, max_iter, gap)
    with single_blas_thread():
        point = problem.without_rounding(search.run(start))
    status = Status.CONVERGED if search.is_optimal(point) else search.status
    return LinearSVMResult(
        x=point.alpha,
        coef=point.w,
        intercept=point.b,
        decision=point.z + point.b,
        objective=point.primal,
        lower_bound=point.dual,
        residual=point.residual,
        status=status,
        n_iter=search.n_iter,
        history=np.array([*search.history, point.primal]),
        solve_time=perf_counter() - started,
    )


class _Search:
    """The order of events: a start, proximal steps of growing weight, the certificate."""

    def __init__(self, problem: LinearProblem, tol: float, max_iter: int, gap: float = 0.0) -> None:
        self.problem, self.tol, self.max_iter, self.gap = problem, tol, max_iter, gap
        self.n_iter, self.last_iter = 0, max_iter
        self.work, self.most_work = 0.0, np.inf  # of Newton steps
        self.status = Status.MAX_ITER
        self.history: list[float] = []
        self.square_norms = problem.matrix.square_norms()
        self.longest = float(np.sqrt(self.square_norms.max(initial=0.0)))
        if not np.isfinite(self.longest):
            raise ValueError(problem.matrix.not_finite())

    def is_optimal(self, point: LinearPoint) -> bool:
        """Tell whether the certificate of a point says that it is good enough."""
        gap = max(point.primal - point.dual, np.finfo(np.float64).eps * abs(point.primal))
        enough = max(self.gap, 1e-3 * self.tol) * abs(point.primal)
        return bool(point.residual <= self.tol or gap <= enough)

    def will_do(self, point: LinearPoint) -> bool:
        """Tell whether a point is good enough though it is not meant to be exact."""
        return self.gap > 0.0 and self.is_optimal(point)

    def run(self, alpha0: Floats | None) -> LinearPoint:
        """Return the solution."""
        self._limit_newton()
        point = self._search(alpha0)
        # Newton's steps come to hundreds of kinks where a large cost would separate nearly all of
        # not many more rows than features. Steps on pairs of rows do not mind, nor do steps in the
        # interior of the box.
        others: list[Callable[[LinearPoint], LinearPoint]] = []
        if self._has_interior():
            others = [self._interior]
            if self._has_cheap_sweeps() and not self._has_many():
                others = [self._sweeps, self._interior]
        elif self._has_gram():
            others = [self._pair_steps]
        for other in others:
            if self.is_optimal(point) or self.n_iter >= self.max_iter:
                return point
            point = min(point, other(point), key=self._rank)
        if others and not self.is_optimal(point):
            self.last_iter, self.most_work = self.max_iter, np.inf
            point = self._finish(point)
        return point

    def _limit_newton(self) -> None:
        """Allow so many Newton steps from now on that other steps do not come too late."""
        self.last_iter, self.most_work = self.max_iter, np.inf
        if self._has_interior():
            self.most_work = self.work + _SLOW_SYSTEMS * system_work(self.problem.matrix)
        elif self._has_gram():
            self.last_iter = min(self.max_iter, self.n_iter + _SLOW)

    def _search(self, alpha0: Floats | None) -> LinearPoint:
        problem, start = self.problem, None
        if alpha0 is not None:
            with np.errstate(all="ignore"):  # its square may be too large for a number
                point = problem.point(problem.feasible(alpha0))
                is_finite = np.isfinite(point.primal - point.dual)
                if is_finite and (point.residual <= self.tol or self.will_do(point)):
                    return point
                start = self._moved(alpha0, point)
        if self.max_iter == 0:
            return problem.origin() if start is None else point
        if self._is_wide():
            made = self._by_products(start)
            if made is not None and (self.is_optimal(made) or self.n_iter >= self.max_iter):
                return made
            is_near = made is not None and made.residual < _NEAR
            point = self._pair_steps(made if is_near else start)
        elif self._has_many():
            origin = problem.origin() if start is None else point
            if start is not None and problem.rho == 0.0:  # what clipping did to it is no gain
                origin = replace(point, b=start.b)
            point = self._descend(origin)
        elif start is None and alpha0 is not None and self._has_cheap_sweeps():
            # The start was of another problem: where all that it fits badly are a few rows with
            # large costs, as when others stand for bags, these are soon found.
            point = self._sweeps(problem.origin())
        elif start is None:
            return self._from_primal(*self._rough())
        elif problem.squared:
            return self._newton(start.w, start.b, start.z)
        else:
            weight = self._first_weight(start)
            return self._sharpen(start.w, start.b, start.z, start.alpha, weight, _REACH / weight)
        if point.residual <= self.tol or self.will_do(point):
            return point
        self._limit_newton()
        return point if self._is_far(point) else self._finish(point)

    def _finish(self, point: LinearPoint) -> LinearPoint:
        """Go on from a point that is not far from the solution."""
        if self.problem.squared:
            return self._newton(point.w, point.b, point.z)
        weight = float(np.clip(1.0 / point.residual, 1.0, 1e4))
        reach = max(1.0 / weight, point.residual)
        return self._sharpen(point.w, point.b, point.z, point.alpha, weight, reach)

    def _moved(self, alpha0: Floats, point: LinearPoint) -> LinearPoint | None:
        """Return a start, unless nothing is as good a start; ``point`` is of ``alpha0``.

        Rows at one and the same share of their costs that fall short of their targets were at the
        bounds of another problem, with costs smaller or larger by a factor. The weights of its
        solution are near those of this one as they are, its multipliers after they are scaled.
        """
        problem = self.problem
        used = problem.cost > 0.0
        factor = float((alpha0[used] / problem.cost[used]).max(initial=0.0))
        if not problem.squared and factor not in (0.0, 1.0):
            before = replace(problem, cost=factor * problem.cost)
            solved = before.point(before.feasible(alpha0), known=point)
            short = problem.target - problem.sign * (solved.z + solved.b) > self.tol
            full = solved.alpha >= before.cost
            if np.count_nonzero(full & short & used) > 1:
                alpha = np.where(full, problem.cost, solved.alpha / factor)
                primal = problem.primal(solved.w, solved.b, solved.z)
                point = replace(solved, alpha=np.minimum(alpha, problem.cost), primal=primal)
        if not point.primal < problem.origin().primal:
            return None
        self.history.append(point.primal)
        return point

    def _rank(self, point: LinearPoint) -> tuple[bool, float]:
        """Return what is less for a better point."""
        return not self.will_do(point), point.residual

    def _first_weight(self, start: LinearPoint) -> float:
        """Return a weight at which the band holds enough rows to determine all features."""
        problem = self.problem
        used = problem.cost > 0.0
        short = np.abs(problem.target - problem.sign * (start.z + start.b))[used]
        count = min(2 * (problem.matrix.d + 1), len(short)) - 1
        return float(np.clip(1.0 / max(np.partition(short, count)[count], 1e-4), 1.0, 1e4))

    @property
    def _is_late(self) -> bool:
        """Whether Newton steps have taken as much as they may."""
        return self.n_iter >= self.last_iter or self.work >= self.most_work

    def _has_gram(self) -> bool:
        """Tell whether the Gram matrix is small, and the problem one that it can serve."""
        problem = self.problem
        fits = problem.matrix.n <= _LARGEST_GRAM
        return fits and problem.rho == 0.0 and len(set(problem.sign)) == 2

    def _has_interior(self) -> bool:
        """Tell whether the problem is one for steps in the interior: many rows, few features.

        Where the Gram matrix fits, steps on pairs of rows may take long if features are many.
        """
        matrix = self.problem.matrix
        fits = matrix.d <= min(_LARGEST_SYSTEM, matrix.n) and not self.problem.squared
        return fits and (not self._has_gram() or matrix.d >= _MANY_FEATURES)

    def _has_cheap_sweeps(self) -> bool:
        """Tell whether there are steps in the interior, and one takes as long as many sweeps."""
        matrix = self.problem.matrix
        sweep = _VISIT * matrix.n * matrix.width
        return self._has_interior() and system_work(matrix) >= _CHEAP * sweep

    @property
    def _most_sweeps(self) -> int:
        """How many sweeps take as long as steps in the interior to a gap, if there are any."""
        if not self._has_interior():
            return _LOOSE_SWEEPS
        matrix = self.problem.matrix
        sweep = _VISIT * matrix.n * matrix.width
        return int(np.clip(_SYSTEMS * system_work(matrix) / sweep, _HASTE, _LOOSE_SWEEPS))

    def _has_many(self) -> bool:
        """Tell whether features are so many that coordinate descent comes first."""
        return min(self.problem.matrix.d, self.problem.matrix.n) >= _MANY_FEATURES

    def _is_far(self, point: LinearPoint) -> bool:
        """Tell whether coordinate descent has left a point for steps in the interior."""
        return self._has_interior() and point.residual > _FAR

    def _is_wide(self) -> bool:
        """Tell whether steps on the Gram matrix are the best to begin with.

        On few rows Newton steps form it too, and need few steps for the squared hinge.
        """
        problem, n = self.problem, self.problem.matrix.n
        is_wide = n <= 2 * problem.matrix.d and self._has_gram()
        return is_wide and (n >= _MANY_FEATURES or not problem.squared)

    def _by_products(self, start: LinearPoint | None) -> LinearPoint | None:
        """Return a point found without the Gram matrix, or None where that is not dear."""
        problem, price = self.problem, self.problem.matrix.gram_price
        if price < _DEAR:
            return None
        if start is not None:
            start = problem.point(problem.feasible(start.alpha))
        self.n_iter += 1
        return ProductSearch(problem, self.square_norms, self.tol, _SHARE * price).run(start)

    def _pair_steps(self, start: LinearPoint | None) -> LinearPoint:
        problem = self.problem
        result = solve_svm_dual(
            problem.matrix.gram(), problem.sign, problem.cost, target=problem.target,
            alpha0=None if start is None else start.alpha,
            tol=0.5 * self.tol, gap=self.gap, max_iter=10_000 + 50 * problem.matrix.n,
            loss="squared_hinge" if problem.squared else "hinge",
        )  # fmt: skip
        self.n_iter += 1
        return problem.point(problem.feasible(result.x))

    def _sweeps(self, start: LinearPoint) -> LinearPoint:
        """Sweep a few times: it is all there is to do where few rows matter."""
        return self._descend(self.problem.origin(), patience=_HASTE)

    def _interior(self, start: LinearPoint) -> LinearPoint:
        search, best, first = InteriorSearch(self.problem), start, self.n_iter
        looser = (self.gap, 0.3 * self.gap) if self.gap > 0.0 else ()
        for gap in (*looser, *_INTERIOR_GAPS):
            search.run(gap, self.max_iter - first)
            point = search.inner_point() if gap in looser else self._polish(search.point())
            self.n_iter = first + search.n_iter
            self.history.append(point.primal)
            report("step", self.n_iter, objective=point.primal)
            best = min(best, point, key=self._rank)
            if self.is_optimal(best) or search.is_stuck or self.n_iter >= self.max_iter:
                break
        return best

    def _rough(self) -> tuple[Floats, float, float]:
        """Return a cheap start ``(w, b)`` and the weight of the first proximal step from there."""
        problem = self.problem
        n, d = problem.matrix.n, problem.matrix.d
        size = max(_SMALL // 2, n // _SAMPLE, 10 * d)
        if n <= _SMALL or size > n // 2:
            return np.zeros(d), 0.0, 1.0
        sample = problem.sample(np.random.default_rng(_SEED), size)
        search = _Search(sample, 0.02, self.max_iter)
        search._limit_newton()
        w, b, weight = search._rough()
        point = search._from_primal(w, b, weight)
        return point.w, point.b, 16.0

    def _from_primal(self, w: Floats, b: float, weight: float) -> LinearPoint:
        problem = self.problem
        z = problem.matrix.dot(w)
        if problem.squared:
            return self._newton(w, b, z)
        # A prox centre in the middle of the box smooths the hinge symmetrically about the margin.
        return self._sharpen(w, b, z, 0.5 * problem.cost, weight, 1.0 / weight)

    def _newton(self, w: Floats, b: float, z: Floats) -> LinearPoint:
        problem = self.problem
        model = NewtonModel(
            problem.matrix, problem.sign, problem.target,
            base=np.zeros(problem.matrix.n), slope=2.0 * problem.cost, cap=problem.cap,
            w=w, b=b, z=z, intercept_penalty=problem.rho,
        )  # fmt: skip
        self.status = model.run(*self._gradient_tol(1e-3 * self.tol), self.last_iter - self.n_iter)
        self.n_iter += model.n_iter
        self.history += model.history
        point = problem.point(problem.feasible(np.abs(model.signed)))
        return self._or_better(point, model.w, model.b, model.z)

    def _or_better(self, point: LinearPoint, w: Floats, b: float, z: Floats) -> LinearPoint:
        """Prefer the primal point of the last Newton step where ``alpha`` is too coarse for it."""
        primal = self.problem.primal(w, b, z)
        if point.residual <= self.tol or not primal < point.primal:
            return point
        return replace(point, w=w, b=b, z=z, primal=primal)

    def _gradient_tol(self, tol: float) -> tuple[float, float]:
        """Return gradients so small that putting them right changes decisions by ``tol``."""
        longest = max(self.longest, 1e-150)
        return tol / longest, min(tol / longest**2, 1e-9 * float(self.problem.cost.sum()))

    def _sharpen(
        self, w: Floats, b: float, z: Floats, alpha: Floats, weight: float, reach: float
    ) -> LinearPoint:
        """Take proximal steps from ``alpha`` in the dual, the weight growing, until optimal.

        After a step no condition is violated by more than the inverse weight. The weight stops
        growing where it would magnify the rounding of decisions into errors of ``alpha`` that
        count; then the steps go on as they are, and the last bit is done by `_polish`.
        """
        problem, tol = self.problem, max(self.tol, _LEAST_TOL)
        least = 1.0 / max(self.longest, 1e-150) ** 2
        best, smallest, idle = None, np.inf, 0
        while True:
            # Where no row comes near its cost, the costs say nothing about the size of alpha.
            scale = np.minimum(problem.cost, max(2.0 * float(alpha.max(initial=0.0)), least))
            noise = np.finfo(np.float64).eps * float(scale.max(initial=0.0)) * self.longest**2
            largest = max(100.0, 0.1 * tol / max(noise, 1e-300))
            weight = min(weight, largest)
            w, b, z, alpha = self._proximal_step(w, b, z, alpha, weight * scale, reach)
            self.history.append(problem.primal(w, b, z))
            report("step", self.n_iter, objective=self.history[-1])
            if self.gap > 0.0:
                point = self._or_better(problem.point(problem.feasible(alpha)), w, b, z)
                if self.will_do(point):
                    return point
            violation = self._violation(alpha, z, b)
            at_end = self._is_late or weight > 1e6 / tol
            if violation <= tol or at_end or (weight == largest and violation <= 1e4 * tol):
                point = self._polish(problem.point(problem.feasible(alpha)))
                if best is None or point.residual < best.residual:
                    best = point
            idle = 0 if violation < 0.9 * smallest else idle + 1
            smallest = min(smallest, violation)
            if best is not None and (best.residual <= tol or at_end or idle > 10):
                self.status = Status.MAX_ITER if self.n_iter >= self.max_iter else Status.STALLED
                return self._or_better(best, w, b, z)
            reach = 1.0 / weight
            weight *= _SHARPEN

    def _polish(self, point: LinearPoint) -> LinearPoint:
        """Make the conditions of the free rows hold exactly, where that keeps to the box."""
        problem = self.problem
        sign, cap = problem.sign, problem.cap
        for _ in range(_POLISH_ROUNDS):
            free = np.flatnonzero((point.alpha > 0.0) & (point.alpha < cap))
            if point.residual <= 1e-3 * self.tol or not 0 < len(free) <= _LARGEST_FREE:
                break
            checkpoint()
            wanted = (sign * problem.target - point.z - point.b)[free]
            change = sign[free] * self._balance(free, wanted)
            room = np.where(change > 0.0, (cap - point.alpha)[free], point.alpha[free])
            length = np.full(len(free), np.inf)
            np.divide(room, np.abs(change), out=length, where=change != 0.0)
            step = min(1.0, float(length.min()))
            alpha = point.alpha.copy()
            alpha[free] += step * change
            blocked = free[length <= step]
            alpha[blocked] = np.where(change[length <= step] > 0.0, cap[blocked], 0.0)
            new = problem.point(problem.feasible(alpha))
            if new.dual < point.dual - 1e-12 * abs(point.dual):
                break
            point = new if new.residual < point.residual or step < 1.0 else point
            if point is not new:
                break
        return point

    def _balance(self, free: Integers, wanted: Floats) -> Floats:
        """Return the change of ``sign * alpha`` on some rows that changes ``z + b`` as wanted.

        With a free intercept the wanted change holds up to a constant, and the changes sum to 0.
        """
        rho = self.problem.rho
        system = self.problem.matrix.take(free).gram()
        scale = max(float(system.diagonal().max()), 1e-200)
        if rho is not None:  # to changes that sum to 0 a constant in all entries is nothing
            system += scale if rho == 0.0 else 1.0 / rho
        system.flat[:: len(free) + 1] += 1e-11 * scale
        right = np.stack([wanted, np.ones(len(free))], axis=1)
        solved = solve_definite(system, right)
        ahead, ones = solved[:, 0], solved[:, 1]
        if rho == 0.0:
            ahead -= ones * (ahead.sum() / ones.sum())
        return ahead

    def _violation(self, alpha: Floats, z: Floats, b: float) -> float:
        problem = self.problem
        u = problem.target - problem.sign * (z + b)
        short = u[alpha < problem.cost].max(initial=0.0)
        return float(max(short, -u[alpha > 0.0].min(initial=0.0)))

    def _proximal_step(
        self, w: Floats, b: float, z: Floats, center: Floats, slope: Floats, reach: float
    ) -> tuple[Floats, float, Floats, Floats]:
        """Solve one step on the rows within ``reach`` of the band; the others stay at a bound."""
        problem = self.problem
        sign, target, cost = problem.sign, problem.target, problem.cost
        tol = self._gradient_tol(0.01 * self.tol)
        chosen = np.full(len(sign), len(sign) <= _SMALL)
        while True:
            answer = center + slope * (target - sign * (z + b))
            chosen |= np.maximum(answer - cost, -answer) <= reach * slope
            chosen &= cost > 0
            if not chosen.any():  # the rest is a straight line in the intercept, without an end
                chosen = cost > 0
            rows = np.flatnonzero(chosen)
            fixed = sign * np.clip(answer, 0.0, cost)
            fixed[rows] = 0.0
            model = NewtonModel(
                problem.matrix.take(rows), sign[rows], target[rows],
                base=center[rows], slope=slope[rows], cap=cost[rows], w=w, b=b, z=z[rows],
                intercept_penalty=problem.rho,
                pull=problem.matrix.combine(fixed), intercept_pull=float(fixed.sum()),
            )  # fmt: skip
            limit = np.inf if len(rows) == np.count_nonzero(cost) else 4.0 * reach
            left, work_left = self.last_iter - self.n_iter, self.most_work - self.work
            model.run(*tol, left, limit=limit, most_work=work_left)
            self.n_iter += model.n_iter
            self.work += model.work
            moved = problem.matrix.dot(model.w)
            new = np.clip(center + slope * (target - sign * (moved + model.b)), 0.0, cost)
            wrong = sign * new != fixed
            wrong[rows] = False
            if not (wrong.any() or model.escaped) or self._is_late:
                return model.w, model.b, moved, new
            # Rows taken for settled were not: go as far as is good for all rows, then include them.
            whole = NewtonModel(
                problem.matrix, sign, target, base=center, slope=slope, cap=cost,
                w=w, b=b, z=z, intercept_penalty=problem.rho,
            )  # fmt: skip
            step = whole.search(model.w - w, model.b - b, moved - z) if wrong.any() else 1.0
            w, b, z = w + step * (model.w - w), b + step * (model.b - b), z + step * (moved - z)
            reach *= 2.0

    def _descend(self, start: LinearPoint, patience: float = _PATIENCE) -> LinearPoint:
        """Take coordinate steps; rows that look settled are left out for a while."""
        problem, matrix = self.problem, self.problem.matrix
        descent = CoordinateDescent(
            problem.sign, problem.target, problem.cap, self.square_norms, alpha=start.alpha,
            w=start.w, b=start.b, ridge=problem.ridge, rho=problem.rho,
        )  # fmt: skip
        every = active = np.flatnonzero(problem.cost > 0)
        # Against a Newton step, a sweep over sparse rows is cheap, but each takes from max_iter.
        mark, marked, patience = np.inf, 0, min(20.0 * matrix.d / matrix.width, patience)
        look, most = np.inf, _SWEEPS
        if self.gap > 0.0:  # which is near before the violation falls
            look, most, patience = 4, self._most_sweeps, np.inf
        for count in range(1, most + 1):
            is_whole = len(active) == len(every)
            active = descent.sweep([(matrix.take(active), active)])
            self.n_iter += 1
            report("step", self.n_iter)
            if descent.violation <= 0.5 * self.tol:
                if is_whole:
                    break
                active = every
                descent.look_everywhere()
            if count >= look:
                point, look = problem.point(problem.feasible(descent.alpha)), 1.4 * look
                if self.will_do(point):
                    return point
            if count - marked >= patience:
                if descent.violation > 0.5 * mark:  # too slow: Newton steps will do better
                    break
                mark, marked = descent.violation, count
            if self.n_iter >= self.max_iter:
                break
        point = problem.point(problem.feasible(descent.alpha))
        return point if self._is_far(point) else self._polish(point)
