"""Finite Newton steps in the primal for piecewise quadratic losses (Mangasarian 2002).

The loss of a row has a derivative that is linear between two bounds. Where the rows strictly
between the bounds stay the same, one Newton step is exact; a search along each step, exact up to
a safe remainder, makes the method end from any start. The squared hinge is the case without an
upper bound; `bagwise.solvers.svm._linear_svm` solves smoothed hinges with the same code.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from bagwise._arrays import Floats, Integers, Signs
from bagwise._progress import report
from bagwise._threads import checkpoint, single_blas_thread
from bagwise.solvers._checks import check_limits, checked_array, checked_terms
from bagwise.solvers._result import Result, Status
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.svm._multipliers import balanced

_LARGEST_SYSTEM = 3000  # order of a linear system up to which it is factorised
_WIDEST_BLUR = 2.0**20
_RIDGES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)  # relative to the largest diagonal entry


@dataclass(frozen=True, kw_only=True, eq=False)
class PrimalNewtonResult(Result):
    """Minimum of a regularised squared hinge: ``x`` holds the weights ``w``.

    Parameters
    ----------
    intercept : float
        The constant ``b`` of the decision function.
    decision : ndarray of float
        The decision function ``A @ w + b`` on the rows.
    dual : ndarray of float
        ``2 * cost * (target - sign * decision)_+``, minus the derivative of each row's loss.
    """

    intercept: float
    decision: Floats
    dual: Floats


def minimize_squared_hinge(
    A: Any,
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    quadratic: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    fit_intercept: bool = True,
    w0: ArrayLike | None = None,
    intercept0: float = 0.0,
    tol: float = 1e-9,
    max_iter: int = 200,
) -> PrimalNewtonResult:
    r"""Minimise a quadratic form plus squared hinges of linear functions.

    .. math::

        \min_{w, b} \; \tfrac12 w^\top R w
        + \sum_r c_r \bigl(t_r - s_r (\langle a_r, w \rangle + b)\bigr)_+^2

    Its dual, for a regular :math:`R`, is

    .. math::

        \max_{\alpha \ge 0} \; t^\top \alpha - \sum_r \frac{\alpha_r^2}{4 c_r}
        - \tfrac12 q^\top R^{-1} q, \quad q = \sum_r s_r \alpha_r a_r,
        \quad \text{subject to} \quad s^\top \alpha = 0.

    Parameters
    ----------
    A : array or CSR matrix of shape (n, p)
        The vectors :math:`a_r`, in single or double precision. Not copied if rows are contiguous.
    sign : array-like of shape (n,)
        -1 or +1.
    cost : array-like of shape (n,) or float
        Costs :math:`c_r`, not negative. A row of cost 0 takes no part.
    target : array-like of shape (n,) or float
        Margins :math:`t_r` that the rows ought to have. A ceiling for the margin (as in optimal
        margin distribution machines) is one more row: the opposite sign, the ceiling negated.
    quadratic : array-like of shape (p, p), optional
        The symmetric, positive semi-definite :math:`R`; the identity if not given.
    rows : array-like of int, optional
        Rows of ``A`` that make up the problem, possibly repeated; then ``n`` is their number.
    fit_intercept : bool
        Whether there is an intercept ``b``, which is not penalised; else it is 0.
    w0, intercept0 : array-like of shape (p,) and float
        Where to start.
    tol : float
        Largest entry of the gradient at the end, in units of the largest value that the
        derivatives of the rows' losses could give it: the sum of their sizes times the length of
        the longest row (at least 1 with an intercept).
    max_iter : int
        Most Newton steps.

    Returns
    -------
    PrimalNewtonResult
        ``lower_bound`` is the value of the dual (``-inf`` where a singular ``R`` leaves it
        without one), ``residual`` the relative gradient that ``tol`` bounds.

    Notes
    -----
    Where ``R`` is singular in a direction that no active row sees, a multiple of the identity of
    about 1e-14 of the Hessian's diagonal picks one of the equally good steps.
    """
    started = perf_counter()
    name = "minimize_squared_hinge"
    check_limits(name, tol, max_iter)
    matrix = FeatureRows.of(A, rows, owner=name)
    n, d = matrix.n, matrix.d
    signs, costs, targets = checked_terms(name, sign, cost, target, n)
    quad = None if quadratic is None else checked_array(name, "quadratic", quadratic, (d, d))
    w = np.zeros(d) if w0 is None else checked_array(name, "w0", w0, (d,))
    if not np.isfinite(intercept0):
        msg = f"{name}: intercept0 must be a finite number. Got {intercept0}."
        raise ValueError(msg)
    model = NewtonModel(
        matrix, signs, targets,
        base=np.zeros(matrix.n), slope=2.0 * costs, cap=np.where(costs > 0, np.inf, 0.0),
        quadratic=quad, intercept_penalty=0.0 if fit_intercept else None,
        w=w, b=float(intercept0) if fit_intercept else 0.0,
    )  # fmt: skip
    length = np.sqrt(matrix.square_norms().max(initial=0.0))
    length = max(float(length), 1.0 if fit_intercept else 0.0)
    with single_blas_thread():
        status = model.run(0.0, 0.0, max_iter, relative=tol * length)
    slack = np.maximum(targets - signs * (model.z + model.b), 0.0)
    objective = 0.5 * float(model.w @ model.quadratic_times(model.w)) + float(costs @ slack**2)
    dual = 2.0 * costs * slack
    residual = model.gradient_size
    if residual > 0.0:
        residual = residual / (model.weight * length) if model.weight * length > 0.0 else np.inf
    return PrimalNewtonResult(
        x=model.w,
        intercept=model.b,
        decision=model.z + model.b,
        dual=dual,
        objective=objective,
        lower_bound=_dual_value(matrix, signs, costs, targets, quad, dual, fit_intercept),
        residual=residual,
        status=Status.CONVERGED if residual <= tol else status,
        n_iter=model.n_iter,
        history=np.array(model.history),
        solve_time=perf_counter() - started,
    )


def _dual_value(
    matrix: FeatureRows,
    sign: Floats,
    cost: Floats,
    target: Floats,
    quadratic: Floats | None,
    alpha: Floats,
    fit_intercept: bool,
) -> float:
    if fit_intercept:
        alpha = balanced(alpha, sign)
    used = cost > 0
    value = float(target @ alpha) - 0.25 * float(alpha[used] @ (alpha[used] / cost[used]))
    q = matrix.combine(sign * alpha)
    if quadratic is None:
        return value - 0.5 * float(q @ q)
    factor, info = lapack.dpotrf(quadratic.T, lower=1)
    if info == 0:
        solved, _ = lapack.dpotrs(factor, q, lower=1)
        return value - 0.5 * float(q @ solved)
    eigenvalues, vectors = np.linalg.eigh(quadratic)
    inside = eigenvalues > 1e-13 * max(float(eigenvalues[-1]), 0.0)
    parts = vectors.T @ q
    rounding = 1e-12 * np.abs(alpha).sum() * np.sqrt(matrix.square_norms().max(initial=0.0))
    if np.abs(parts[~inside]).max(initial=0.0) > rounding:
        return -np.inf
    return value - 0.5 * float(parts[inside] @ (parts[inside] / eigenvalues[inside]))


class NewtonModel:
    r"""A convex function of ``(w, b)`` whose terms have clipped linear derivatives.

    It is :math:`\tfrac12 w^\top R w + \tfrac12 \rho b^2 - \langle p, w \rangle - p_b b` plus, for
    each row with shortfall ``u = target - sign * (z + b)`` and ``z`` the inner product of row and
    ``w``, a term whose derivative by ``u`` is ``clip(base + slope * u, 0, cap)``.

    Parameters
    ----------
    matrix : FeatureRows or PassRows
        The rows; `run` needs the former.
    sign, target, base, slope, cap : ndarray of shape (n,)
        The terms; ``cap`` may be infinite.
    w, b, z : ndarray of shape (d,), float, ndarray of shape (n,)
        The start; ``z`` is computed if it is not given.
    quadratic : ndarray of shape (d, d), optional
        ``R``; the identity if not given.
    intercept_penalty : float or None
        ``rho``; ``None`` keeps ``b`` where it is.
    pull : ndarray of shape (d,), optional
        ``p``.
    intercept_pull : float
        ``p_b``.
    share : float
        What conjugate gradients may leave of a gradient.
    n_conjugate : int
        Most steps of theirs for one Newton step.
    """

    def __init__(
        self,
        matrix: Any,
        sign: Signs,
        target: Floats,
        *,
        base: Floats,
        slope: Floats,
        cap: Floats,
        w: Floats,
        b: float,
        z: Floats | None = None,
        quadratic: Floats | None = None,
        intercept_penalty: float | None = 0.0,
        pull: Floats | None = None,
        intercept_pull: float = 0.0,
        share: float = 1e-3,
        n_conjugate: int = 500,
    ) -> None:
        self.share, self.n_conjugate = share, n_conjugate
        self.matrix, self.sign, self.target = matrix, sign, target
        self.base, self.slope, self.cap = base, slope, cap
        self.quadratic, self.rho = quadratic, intercept_penalty
        self.pull = np.zeros(matrix.d) if pull is None else pull
        self.intercept_pull = intercept_pull
        self.w, self.b = w, b
        self.z = matrix.dot(w) if z is None else z
        self.n_iter, self.blur, self.escaped = 0, 0.0, False
        self.work = 0.0  # in products of two numbers of dense matrices
        self.history: list[float] = []
        self.forget()
        self.signed = np.empty(matrix.n)

    def forget(self) -> None:
        """Hold no answers, and no list of free terms, until they are made again."""
        self.signed = np.empty(0)
        self.forget_free()

    def forget_free(self) -> None:
        """Hold no list of free terms, until it is made again."""
        self._free, self._weight = np.empty(0, np.int64), np.empty(0)

    @property
    def _terms(self) -> tuple[Floats, Floats, Floats]:
        return self.base, self.slope, self.cap

    def quadratic_times(self, w: Floats) -> Floats:
        """Return ``R w``."""
        return w if self.quadratic is None else self.quadratic @ w

    def evaluate(self) -> None:
        """Compute the answers of the terms and the gradient at the current point."""
        from bagwise.solvers.svm._primal_newton_kernels import answers

        total, self.weight, value = answers(
            self.sign, self.target, self.z, self.b, *self._terms, self.signed
        )
        quad = self.quadratic_times(self.w)
        self.history.append(
            value + float(self.w @ (0.5 * quad - self.pull)) - self.intercept_pull * self.b
            + 0.5 * (self.rho or 0.0) * self.b**2
        )  # fmt: skip
        self.gradient = quad - self.pull - self.matrix.combine(self.signed)
        self.gradient_b = 0.0
        if self.rho is not None:
            self.gradient_b = self.rho * self.b - self.intercept_pull - total

    @property
    def gradient_size(self) -> float:
        """Return the largest entry of the gradient."""
        return max(float(np.abs(self.gradient).max(initial=0.0)), abs(self.gradient_b))

    def run(
        self,
        tol: float,
        tol_b: float,
        max_iter: int,
        *,
        relative: float = 0.0,
        limit: float = np.inf,
        most_work: float = np.inf,
    ) -> Status:
        """Step until the gradient's entries are at most ``tol``, that of ``b`` at most ``tol_b``.

        To both is added ``relative`` times the sum of the terms' derivatives. Returns ``STALLED``
        when rounding forbids further progress. Gives up, and sets ``escaped``, when a row's
        ``z + b`` has moved by more than ``limit``. After ``most_work``, in products of two numbers
        of dense matrices, it ends as after ``max_iter`` steps.
        """
        smallest, worse, origin = np.inf, 0, self.z + self.b
        self.evaluate()
        while True:
            size = self.gradient_size
            if np.isnan(size):
                raise ValueError(self.matrix.not_finite())
            more = relative * self.weight
            small = np.abs(self.gradient).max(initial=0.0) <= tol + more
            if small and abs(self.gradient_b) <= tol_b + more:
                return Status.CONVERGED
            if self.n_iter >= max_iter or self.work >= most_work:
                return Status.MAX_ITER
            # Far from the end the gradient may grow for a while; rounding makes it stay.
            worse = 0 if size < 0.5 * smallest else worse + 1
            smallest = min(size, smallest)
            checkpoint()
            dw, db, n_free = self._direction()
            dz = self.matrix.dot(dw)
            step = self.search(dw, db, dz)
            self.adapt_blur(step)
            if step == 0.0 or (worse > 3 and self._is_rounding(size, n_free)):
                return Status.STALLED
            self.w = self.w + step * dw
            self.b += step * db
            self.z = self.matrix.dot(self.w) if worse else self.z + step * dz
            self.n_iter += 1
            self.evaluate()
            report("step", self.n_iter)
            if limit < np.inf and np.abs(self.z + self.b - origin).max(initial=0.0) > limit:
                self.escaped = True
                return Status.MAX_ITER

    def _is_rounding(self, size: float, n_free: int) -> bool:
        """Tell whether a gradient of this size may be nothing but the rounding of its terms."""
        rows = np.sqrt(self.matrix.square_norms().max(initial=0.0))
        bend = float(np.max(self.slope[self._free[:n_free]], initial=0.0))
        margin = rows * float(np.abs(self.w).sum()) + abs(self.b) + 1.0
        terms = (self.weight + bend * margin) * max(rows, 1.0) + np.abs(self.pull).max(initial=0.0)
        return bool(size <= 64.0 * np.finfo(np.float64).eps * terms)

    def search(self, dw: Floats, db: float, dz: Floats) -> float:
        """Return the step along a direction at which the function is least, or a bit before."""
        from bagwise.solvers.svm._primal_newton_kernels import along

        quad = self.quadratic_times(dw)
        rho = self.rho or 0.0
        constant = float(self.w @ quad) - float(self.pull @ dw)
        constant += (rho * self.b - self.intercept_pull) * db
        bend = float(dw @ quad) + rho * db * db

        def derivatives(step: float) -> tuple[float, float]:
            first, second = along(
                self.sign, self.target, self.z, dz, self.b, db, *self._terms, step
            )
            return first + constant + step * bend, second + bend

        start, curvature = derivatives(0.0)
        if not start < 0.0:
            return 0.0
        low, high, step = 0.0, np.inf, 1.0
        for _ in range(100):
            slope, curvature = derivatives(step)
            if abs(slope) <= -1e-9 * start or (slope <= 0.0 and slope >= 0.1 * start):
                return step
            low, high = (step, high) if slope < 0.0 else (low, step)
            if high - low <= 1e-14 * low:
                return low
            guess = step - slope / curvature if curvature > 0.0 else np.inf
            middle = 10.0 * low if high == np.inf else 0.5 * (low + high)
            step = guess if low < guess < min(high, 1e3 * max(low, 1.0)) else middle
        return low

    def adapt_blur(self, step: float) -> None:
        """Widen the blur after a step cut short: it ran into terms that were taken for settled."""
        if step <= 0.3:
            self.blur = min(max(4.0 * self.blur, 0.5), _WIDEST_BLUR)
        elif step < 3.0:
            self.blur = 0.25 * self.blur if self.blur > 0.2 else 0.0

    def free_terms(self) -> tuple[Integers, Floats]:
        """Return which terms are free, or nearly so, and how much they bend; until the next call.

        ``signed`` must hold the answers at the current point.
        """
        from bagwise.solvers.svm._primal_newton_kernels import free_terms

        if len(self._free) < self.matrix.n:
            self._free, self._weight = np.empty(self.matrix.n, np.int64), np.empty(self.matrix.n)
        widest = float(np.abs(self.signed).max(initial=0.0)) if self.blur else 0.0
        count = free_terms(
            self.sign, self.target, self.z, self.b, *self._terms, widest, self.blur,
            self._free, self._weight,
        )  # fmt: skip
        return self._free[:count], self._weight[:count]

    def _direction(self) -> tuple[Floats, float, int]:
        """Return the Newton step as if no term reached a bound, and how many terms are free."""
        free, weight = self.free_terms()
        return *self.direction_on(self.matrix.take(free), weight), len(free)

    def direction_on(
        self, rows: FeatureRows, weight: Floats, *, rough: bool = False
    ) -> tuple[Floats, float]:
        """Return the Newton step if these rows, bent by these weights, are all that bends."""
        d, count = self.matrix.d, rows.n
        if self.quadratic is not None or d <= min(max(2 * count, 64), _LARGEST_SYSTEM):
            curvature = rows.rough_curvature if rough else rows.curvature
            self.work += system_work(rows)
            step = self._primal_direction(curvature(weight))
        elif count <= _LARGEST_SYSTEM:
            self.work += count**2 * (d + count / 3.0)
            step = self._dual_direction(rows, weight)
        else:
            step = self._conjugate_direction(rows, weight)
        return step[:d], float(step[d])

    def _primal_direction(self, hessian: Floats) -> Floats:
        d = self.matrix.d
        if self.quadratic is None:
            hessian.flat[: d * (d + 1) : d + 2] += 1.0
        else:
            hessian[:d, :d] += self.quadratic
        right = -np.append(self.gradient, self.gradient_b)
        if self.rho is None:
            return np.append(solve_definite(hessian[:d, :d].copy(), right[:d]), 0.0)
        hessian[d, d] += self.rho
        if hessian[d, d] == 0.0:  # no term bends: go one unit, the search corrects it
            hessian[d, d] = max(abs(self.gradient_b), 1e-300)
        return solve_definite(hessian, right)

    def _dual_direction(self, rows: FeatureRows, weight: Floats) -> Floats:
        """Solve for the change of the free terms' answers: a system of their number."""
        if not rows.n:
            return -np.append(self.gradient, np.sign(self.gradient_b))
        system = rows.gram()
        system.flat[:: rows.n + 1] += 1.0 / weight
        right = np.empty((rows.n, 2))
        right[:, 0] = rows.dot(self.gradient)
        right[:, 1] = 1.0
        solved = solve_definite(system, right)
        db = 0.0
        if self.rho is not None:
            db = (solved[:, 0].sum() - self.gradient_b) / (solved[:, 1].sum() + self.rho)
        change = db * solved[:, 1] - solved[:, 0]
        return np.append(-self.gradient - rows.combine(change), db)

    def _conjugate_direction(self, rows: FeatureRows, weight: Floats) -> Floats:
        """Solve roughly by conjugate gradients, without forming a matrix.

        Features are scaled by the diagonal of the matrix: in text some are in most rows, most in
        hardly any.
        """
        has_b = self.rho is not None

        def times(v: Floats) -> Floats:
            bent = weight * (rows.dot(v[:-1]) + v[-1])
            last = bent.sum() + (self.rho or 0.0) * v[-1] if has_b else v[-1]
            return np.append(v[:-1] + rows.combine(bent), last)

        right = -np.append(self.gradient, self.gradient_b)
        scale = rows.curvature_diagonal(weight)
        scale[:-1] += 1.0
        scale[-1] = max(scale[-1], 1.0) if has_b else 1.0
        x, residual = np.zeros(len(right)), right.copy()
        p = preconditioned = residual / scale
        product, first = float(residual @ preconditioned), float(np.abs(right).max())
        for _ in range(self.n_conjugate):
            checkpoint()
            if np.abs(residual).max() <= self.share * first:
                break
            q = times(p)
            step = product / float(p @ q)
            x, residual = x + step * p, residual - step * q
            preconditioned = residual / scale
            product, before = float(residual @ preconditioned), product
            p = preconditioned + (product / before) * p
        return x


def system_work(rows: FeatureRows) -> float:
    """Return the work of a system of the rows' features, in products of two dense numbers."""
    return rows.curvature_work + rows.d**3 / 3.0


def solve_definite(matrix: Floats, right: Floats) -> Floats:
    """Solve a positive semi-definite system, with a tiny ridge where rounding asks for one."""
    diagonal = matrix.diagonal().copy()
    scale = max(float(diagonal.max(initial=0.0)), 1e-200)
    for ridge in _RIDGES:
        np.fill_diagonal(matrix, diagonal + ridge * scale)
        factor, info = lapack.dpotrf(matrix.T, lower=1, clean=0)
        if info == 0:
            solved, _ = lapack.dpotrs(factor, right, lower=1)
            return solved  # type: ignore[no-any-return]
    msg = "The matrix of a Newton step is not positive semi-definite: is the quadratic form?"
    raise ValueError(msg)
