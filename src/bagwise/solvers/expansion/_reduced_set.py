"""Few vectors in place of a long kernel expansion (Burges 1996; Schoelkopf and others 1999).

Vectors are added one by one where the rest of the expansion is largest, then all of them are moved
together. Their coefficients are eliminated: for given vectors they solve a linear system.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from bagwise._arrays import Floats, Integers
from bagwise._progress import report
from bagwise._threads import checkpoint, ordered_map, single_blas_thread
from bagwise.kernels import InstanceKernel, check_differentiable, gradient_sum, self_gradient
from bagwise.solvers._checks import check_at_least, check_tol, checked_array
from bagwise.solvers._lbfgs import minimize_lbfgs
from bagwise.solvers._result import Result, Status

_JITTERS = (1e-10, 1e-8, 1e-6, 1e-4)  # relative to the mean of the diagonal
_NEGLIGIBLE = 1e-11  # part of the squared norm that counts as nothing left
_CANCELLED = 1e-14  # squared norm below this part of what its terms could add up to: all rounding
_DEPENDENT = 1e-9  # part of a vector's squared norm outside the span of the others, at least
_BLOCK = 4096  # rows of the expansion whose derivatives are summed at a time
_SMALL = 1 << 18  # entries of a block for which threads are not worth waking
_CLIMB_STEPS = 10  # of the fixed-point iteration: what they leave to do is done by the refinement
_CLIMB_TOL = 1e-3  # relative gain of a step at which that iteration ends
_MEMORY = 20  # pairs of differences that L-BFGS keeps


@dataclass(frozen=True, kw_only=True, eq=False)
class ReducedSetResult(Result):
    """An expansion in few vectors: ``x`` holds them, of shape (n_vectors, n_features).

    Parameters
    ----------
    coef : ndarray of shape (n_outputs, n_vectors)
        Coefficients of the vectors in each output.
    errors : ndarray of shape (n_outputs,)
        Squared distance between the expansion of each output and its approximation.
    squared_norms : ndarray of shape (n_outputs,)
        Squared norm of the expansion of each output.
    """

    coef: Floats
    errors: Floats
    squared_norms: Floats

    @property
    def relative_errors(self) -> Floats:
        """The errors in units of the squared norms; 0 for an expansion that is 0."""
        norms = self.squared_norms
        return np.divide(self.errors, norms, out=np.zeros_like(norms), where=norms > 0)


def reduce_expansion(
    kernel: InstanceKernel,
    X: Any,
    coef: ArrayLike,
    n_vectors: int,
    *,
    n_starts: int = 5,
    refine: bool = True,
    tol: float = 1e-5,
    max_iter: int = 1000,
) -> ReducedSetResult:
    r"""Approximate kernel expansions by expansions in few vectors, which all outputs share.

    .. math::

        \min_{Z, \beta} \; \sum_c \Bigl\| \sum_k \beta_{ck} \phi(z_k) - w_c \Bigr\|^2,
        \qquad w_c = \sum_j a_{cj} \phi(x_j)

    Parameters
    ----------
    kernel : InstanceKernel
        One whose derivative is known.
    X : ndarray or CSR matrix of shape (n, n_features)
        The instances :math:`x_j`.
    coef : array-like of shape (n_outputs, n)
        Their coefficients :math:`a_{cj}`.
    n_vectors : int
        Most vectors :math:`z_k`.
    n_starts : int
        With the kernel ``"rbf"``, from how many instances the best place of each new vector is
        searched. With other kernels the new vector is the best of so many instances.
    refine : bool
        Whether all vectors are moved together at the end.
    tol : float
        The refinement ends when an iteration lowers the objective, on average over five, by no
        more than this part of :math:`\sum_c \|w_c\|^2`.
    max_iter : int
        Most iterations of the refinement.

    Returns
    -------
    ReducedSetResult
        ``history`` holds the objective after each added vector and then after each iteration of
        the refinement, ``n_iter`` counts these iterations. ``residual`` is the largest entry of
        the gradient by the vectors, in units of :math:`\sum_c \|w_c\|^2` and of the length over
        which the kernel changes. ``lower_bound`` is 0, or the optimum where that is known.

    Notes
    -----
    The vectors are the distinct instances themselves, in the order of their values, if these are
    no more than ``n_vectors``. With the kernels ``"linear"`` and ``"cosine"`` the optimum is known:
    the :math:`w_c` themselves or, if these are too many, their principal directions. There are
    fewer vectors than ``n_vectors`` where the approximation becomes exact before.

    Time is proportional to ``n * n_vectors * n_features`` for each iteration, memory to ``n *
    n_vectors``; the squared norms need all pairs of instances once, block by block.
    """
    started = perf_counter()
    check_differentiable(kernel)
    check_tol("reduce_expansion", tol)
    for name, number in (("n_vectors", n_vectors), ("n_starts", n_starts), ("max_iter", max_iter)):
        check_at_least("reduce_expansion", name, number, 1)
    rows, factors = _distinct(
        X, checked_array("reduce_expansion", "coef", np.atleast_2d(coef), (None, X.shape[0]))
    )
    with single_blas_thread():
        if kernel.name in ("linear", "cosine"):
            parts = _principal(kernel, rows, factors, n_vectors)
        elif rows.shape[0] <= n_vectors:
            parts = _unchanged(kernel, rows, factors)
        else:
            expansion = _Expansion(kernel, rows, factors)
            parts = _reduced(expansion, n_vectors, n_starts, refine, tol, max_iter)
    return ReducedSetResult(
        **parts, objective=float(parts["errors"].sum()), solve_time=perf_counter() - started
    )


def _distinct(X: Any, coef: Floats) -> tuple[Floats | Any, Floats]:
    """Return the distinct rows that have coefficients, in double precision, and the sums of these.

    The values of rows decide on their order, so that the order in which they came means nothing.
    """
    used = np.flatnonzero(coef.any(axis=0))
    rows, coef = X[used].astype(np.float64), coef[:, used]
    if not len(used):
        return _dense(rows), coef
    if sp.issparse(rows):
        rows = rows.tocsr()
        rows.sum_duplicates()
        rows.eliminate_zeros()
        keys = rows @ np.random.default_rng(0).normal(size=rows.shape[1])
        order = np.argsort(keys, kind="stable")
        rows = rows[order]
        is_new = np.diff((rows[1:] != rows[:-1]).tocsr().indptr) > 0
    else:
        rows = np.ascontiguousarray(rows + 0.0)  # no negative zeros: equal rows have equal bytes
        order = np.argsort(rows.view(np.dtype((np.void, rows.strides[0]))).ravel(), kind="stable")
        rows = rows[order]
        is_new = (rows[1:] != rows[:-1]).any(axis=1)
    first = np.concatenate([[0], 1 + np.flatnonzero(is_new)])
    return rows[first], np.add.reduceat(coef[:, order], first, axis=1)


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, np.float64)


def _unchanged(kernel: InstanceKernel, rows: Any, coef: Floats) -> dict[str, Any]:
    norms = _squared_norms(coef, kernel.expand(rows, rows, coef))
    return _ended(_dense(rows), coef, np.zeros(len(coef)), norms)


def _principal(kernel: InstanceKernel, rows: Any, coef: Floats, n_vectors: int) -> dict[str, Any]:
    """Reduce expansions that are vectors of features, or of directions with the cosine."""
    if kernel.name == "cosine":
        lengths = np.sqrt(InstanceKernel("linear").diagonal(rows))
        coef = np.divide(coef, lengths, out=np.zeros_like(coef), where=lengths > 0)
    weights = np.asarray(coef @ rows)
    norms = np.einsum("cj,cj->c", weights, weights)
    used = np.flatnonzero(norms)
    if len(used) <= n_vectors:
        lengths = np.sqrt(norms) if kernel.name == "cosine" else np.ones(len(norms))
        return _ended(weights[used], np.diag(lengths)[:, used], np.zeros(len(norms)), norms)
    left, lengths, vectors = np.linalg.svd(weights, full_matrices=False)
    errors = np.square(left[:, n_vectors:] * lengths[n_vectors:]).sum(axis=1)
    return _ended(vectors[:n_vectors], (left * lengths)[:, :n_vectors], errors, norms)


def _ended(
    vectors: Floats, coef: Floats, errors: Floats, norms: Floats, **parts: Any
) -> dict[str, Any]:
    """Return the parts of a result, of an optimum unless others are said."""
    best: dict[str, Any] = {
        "status": Status.CONVERGED,
        "n_iter": 0,
        "residual": 0.0,
        "lower_bound": float(errors.sum()),
        "history": errors.sum(keepdims=True),
    }
    return {
        **best, **parts,
        "x": np.ascontiguousarray(vectors), "coef": np.ascontiguousarray(coef),
        "errors": errors, "squared_norms": norms,
    }  # fmt: skip


def _squared_norms(coef: Floats, values: Floats) -> Floats:
    return np.asarray(np.maximum(np.einsum("cj,jc->c", coef, values), 0.0))


class _Expansion:
    """What is to be approximated: the functions ``sum_j coef[c, j] k(rows_j, .)``."""

    def __init__(self, kernel: InstanceKernel, rows: Any, coef: Floats) -> None:
        self.kernel, self.rows, self.coef = kernel, rows, coef
        self.values = kernel.expand(rows, rows, coef)
        self.diagonal = np.asarray(kernel.diagonal(rows), np.float64)
        self.norms = _squared_norms(coef, self.values)
        self.total = float(self.norms.sum())

    @property
    def is_zero(self) -> bool:
        """Whether all terms cancel, up to rounding."""
        terms = np.abs(self.coef) @ np.sqrt(np.maximum(self.diagonal, 0.0))
        return bool((self.norms <= _CANCELLED * terms**2).all())

    def block(self, Z: Floats, out: Floats | None = None) -> Floats:
        """Return the kernel between rows and vectors."""
        n_threads = 1 if self.rows.shape[0] * len(Z) <= _SMALL else None
        return self.kernel.gram(self.rows, Z, out=out, n_threads=n_threads)

    def between(self, Z: Floats, others: Floats | None = None) -> Floats:
        """Return the kernel between few vectors."""
        return self.kernel.gram(Z, others, n_threads=1)

    def value_and_gradient(self, Z: Floats, block: Floats) -> tuple[float, Floats]:
        """Return the objective with the best coefficients, and its derivative by the vectors.

        The coefficients solve a linear system, so that their own derivatives do not count.
        ``block`` is working memory.
        """
        block = self.block(Z, block)
        gram, inner = self.between(Z), (self.coef @ block).T
        factors, _ = solve_shifted(gram, inner)
        gradient = self_gradient(self.kernel, Z, factors.T, gram)

        def part(rows: slice) -> Floats:
            weights = self.coef[:, rows].T @ factors.T
            return gradient_sum(self.kernel, self.rows[rows], Z, weights, block[rows], weights)

        grid = [slice(i, i + _BLOCK) for i in range(0, len(block), _BLOCK)]
        n_threads = 1 if block.size <= _SMALL else None
        for term in ordered_map(part, grid, n_threads=n_threads):
            gradient -= term
        return self.total - float(np.vdot(inner, factors)), 2.0 * gradient

    def errors(self, block: Floats, gram: Floats, factors: Floats) -> Floats:
        """Return the squared distance of each output from its approximation."""
        cross = np.einsum("kc,ck->c", factors, self.coef @ block)
        own = np.einsum("kc,kc->c", factors, gram @ factors)
        return np.asarray(np.maximum(self.norms - 2.0 * cross + own, 0.0))


def solve_shifted(gram: Floats, inner: Floats) -> tuple[Floats, float]:
    """Solve a linear system whose matrix may be singular: vectors may coincide.

    A small multiple of the identity is added, and returned: the solution minimises the objective
    plus this multiple of the squared coefficients.
    """
    scale = float(np.abs(np.diagonal(gram)).mean()) or 1.0
    for jitter in _JITTERS:
        shift = jitter * scale
        factor, info = lapack.dpotrf(_shifted(gram, shift), lower=1)
        if info == 0:
            break
    else:  # no positive semi-definite kernel, such as a polynomial with a negative constant
        shift = scale + 2.0 * abs(float(np.linalg.eigvalsh(gram)[0]))
        factor, _ = lapack.dpotrf(_shifted(gram, shift), lower=1)
    return lapack.dpotrs(factor, inner, lower=1)[0], shift


def _shifted(gram: Floats, shift: float) -> Floats:
    out = gram.copy()
    out.flat[:: len(gram) + 1] += shift
    return out


def _reduced(
    expansion: _Expansion, n_vectors: int, n_starts: int, refine: bool, tol: float, max_iter: int
) -> dict[str, Any]:
    """Reduce an expansion of more than ``n_vectors`` rows."""
    if expansion.is_zero:
        nothing = np.zeros((len(expansion.norms), 1))
        return _ended(_dense(expansion.rows[:1]), nothing, expansion.norms, expansion.norms)
    Z, history = _greedy(expansion, n_vectors, n_starts)
    parts: dict[str, Any] = {"residual": np.nan}
    if refine and history[-1] > _NEGLIGIBLE * expansion.total:
        found = _refined(expansion, Z, tol, max_iter)
        Z, history = found.x.reshape(Z.shape), [*history, *found.history[1:]]
        parts = {"status": found.status, "n_iter": found.n_iter, "residual": found.residual}
    block, gram = expansion.block(Z), expansion.between(Z)
    factors, _ = solve_shifted(gram, (expansion.coef @ block).T)
    errors = expansion.errors(block, gram, factors)
    return _ended(
        Z, factors.T, errors, expansion.norms,
        **{**parts, "lower_bound": 0.0, "history": np.array(history)},
    )  # fmt: skip


# ---------------------------------------------------------------------------- one by one


def _greedy(expansion: _Expansion, n_vectors: int, n_starts: int) -> tuple[Floats, list[float]]:
    """Add vectors one by one, each where it lowers the objective most; return the objectives."""
    n, n_features = expansion.rows.shape
    Z = np.empty((n_vectors, n_features))
    gram = np.empty((n_vectors, n_vectors))
    block = np.empty((n, n_vectors), order="F")
    rest = _Rest(expansion, Z[:0], np.empty((0, len(expansion.norms))), gram[:0, :0])
    values, history = expansion.values, []
    for m in range(n_vectors):
        checkpoint()
        starts = _starts(expansion, values, n_starts)
        if expansion.kernel.name == "rbf":
            starts = rest.climb(starts)
        Z[m] = starts[rest.gains(starts).argmax()]
        block[:, m] = expansion.block(Z[m : m + 1])[:, 0]
        gram[: m + 1, m] = gram[m, : m + 1] = expansion.between(Z[: m + 1], Z[m : m + 1])[:, 0]
        used, inner = gram[: m + 1, : m + 1], (expansion.coef @ block[:, : m + 1]).T
        factors, shift = solve_shifted(used, inner)
        rest = _Rest(expansion, Z[: m + 1], factors, used)
        values = expansion.values - block[:, : m + 1] @ factors
        explained = np.vdot(inner, factors) + shift * np.vdot(factors, factors)
        history.append(expansion.total - float(explained))
        report("step", m + 1, total=n_vectors, objective=history[-1])
        if history[-1] <= _NEGLIGIBLE * expansion.total:
            return Z[: m + 1], history
    return Z, history


def _starts(expansion: _Expansion, values: Floats, n_starts: int) -> Floats:
    """Return the instances where the rest is largest, each far from those before it."""
    diagonal = expansion.diagonal
    gain = np.zeros(len(values))
    np.divide(np.square(values).sum(axis=1), diagonal, out=gain, where=diagonal > 0)
    chosen: list[int] = []
    for _ in range(min(n_starts, len(gain))):
        chosen.append(int(gain.argmax()))
        if len(chosen) < n_starts:
            last = chosen[-1]
            column = expansion.block(_dense(expansion.rows[[last]]))[:, 0]
            scale = np.where(diagonal > 0, diagonal, 1.0) * (diagonal[last] or 1.0)
            gain *= np.maximum(1.0 - column**2 / scale, 0.0)
    return _dense(expansion.rows[chosen])


class _Rest:
    """What vectors with their best coefficients leave of an expansion: a function of a place."""

    def __init__(self, expansion: _Expansion, Z: Floats, factors: Floats, gram: Floats) -> None:
        self.expansion, self.Z, self.factors, self.gram = expansion, Z, factors, gram

    def gains(self, places: Floats) -> Floats:
        """Return by how much one more vector at each place would lower the objective."""
        rest = self.expansion.coef @ self.expansion.block(places)
        norm = np.asarray(self.expansion.kernel.diagonal(places), np.float64)
        left = norm
        if len(self.Z):
            cross = self.expansion.between(self.Z, places)
            rest -= self.factors.T @ cross
            left = norm - np.einsum("kp,kp->p", cross, solve_shifted(self.gram, cross)[0])
        left = np.maximum(left, _DEPENDENT * norm)
        gains = np.zeros(len(places))
        np.divide(np.square(rest).sum(axis=0), left, out=gains, where=left > 0)
        return gains

    def climb(self, places: Floats) -> Floats:
        r"""Move places towards maxima of the sum of squares of a Gaussian expansion's rest.

        The step of the fixed-point iteration is the gradient divided by the sum of squares. It
        points upwards but may be too long where coefficients have both signs: then it is halved.
        """
        gamma = self.expansion.kernel.gamma
        places, step = places.copy(), np.ones(len(places))
        values, slopes = self._squares(places)
        active = np.flatnonzero(values > 0)
        for _ in range(_CLIMB_STEPS):
            if not len(active):
                break
            length = step[active] / (2.0 * gamma * values[active])
            trial = places[active] + length[:, None] * slopes[active]
            new, new_slopes = self._squares(trial)
            better = new > values[active]
            small = better & (new - values[active] <= _CLIMB_TOL * values[active])
            moved = active[better]
            places[moved], values[moved], slopes[moved] = (
                trial[better], new[better], new_slopes[better],
            )  # fmt: skip
            step[active] = np.where(better, np.minimum(1.0, 2.0 * step[active]), step[active] / 2)
            active = active[~small]
        return places

    def _squares(self, places: Floats) -> tuple[Floats, Floats]:
        """Return the sum of squares over outputs at places, and half its gradient there."""
        expansion, kernel = self.expansion, self.expansion.kernel
        block = expansion.block(places)
        cross = expansion.between(self.Z, places)
        rest = expansion.coef @ block - self.factors.T @ cross
        slopes = gradient_sum(kernel, expansion.rows, places, expansion.coef.T @ rest, block)
        slopes -= gradient_sum(kernel, self.Z, places, self.factors @ rest, cross)
        return np.square(rest).sum(axis=0), slopes


# ---------------------------------------------------------------------------- all together


def _refined(expansion: _Expansion, start: Floats, tol: float, max_iter: int) -> Result:
    """Move all vectors by L-BFGS on the objective with the coefficients eliminated."""
    kernel, total = expansion.kernel, expansion.total
    # Steps are counted in the length over which the kernel changes, errors in squared norms.
    unit = kernel.gamma**-0.5 if kernel.name == "rbf" else np.sqrt(np.square(start).sum(1).mean())
    [found] = minimize_lbfgs(
        _Moved(expansion, start.shape), start.reshape(1, -1),
        tol=tol, max_iter=max_iter, memory=_MEMORY, length=float(unit) or 1.0,
        unit=lambda values: np.full_like(values, total),
    )  # fmt: skip
    return found


class _Moved:
    """The objective by the vectors: a `BatchObjective` of one start."""

    def __init__(self, expansion: _Expansion, shape: tuple[int, int]) -> None:
        self.expansion, self.shape = expansion, shape
        self.block = np.empty((expansion.rows.shape[0], shape[0]))  # working memory
        self.slope = np.empty(0)

    def values(self, X: Floats, starts: Integers) -> Floats:
        value, self.slope = self.expansion.value_and_gradient(X.reshape(self.shape), self.block)
        return np.array([value])

    def gradients(self, starts: Integers) -> Floats:
        return self.slope.reshape(1, -1)
