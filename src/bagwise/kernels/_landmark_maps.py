"""Low-rank maps of an instance kernel through its values at a few landmarks.

With landmarks ``Z`` and ``K_ZZ = H H'``, the features ``k(x, Z) H'^-1`` of instances have inner
products ``k(x, Z) K_ZZ^-1 k(Z, y)``: the kernel itself at the landmarks, and elsewhere its best
approximation from their span. What is missing, ``k(x, x) - |features|^2``, is never negative.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint, ordered_map
from bagwise.kernels._instance import InstanceKernel
from bagwise.kernels._rows import (
    BLOCK,
    Matrix,
    canonical_rows,
    check_widths,
    common_dtype,
    converted,
    row_hashes,
    row_passes,
    slices,
    squared_norms,
)

#: At most this many pivots are found among the candidates before all rows are brought up to date.
_PANEL = 64
#: Candidates: a sixteenth of the rows, within these bounds.
_CANDIDATE_SHARE, _FEWEST_CANDIDATES, _MOST_CANDIDATES = 16, 512, 8192


@dataclass(frozen=True)
class LandmarkMap:
    """Features of instances whose inner products approximate a kernel.

    Parameters
    ----------
    kernel : InstanceKernel
        The kernel.
    landmarks : ndarray or CSR matrix of shape (n_landmarks, n_features)
        Instances at which the approximation is exact.
    projection : ndarray of shape (n_landmarks, rank)
        Turns kernels with the landmarks into features.
    indices : ndarray of int of shape (n_landmarks,)
        Which rows of the data the landmarks were.
    trace : float or None
        Trace of the Gram matrix of the data, where it is known.
    error : float or None
        Trace of the Gram matrix of the data less that of its approximation, where it is known. The
        difference of the two matrices is positive semi-definite, so this bounds its trace norm,
        Frobenius norm and spectral norm.
    largest_residual : float or None
        Largest entry on the diagonal of that difference, and so its largest entry in size.
    """

    kernel: InstanceKernel
    landmarks: Matrix
    projection: Floats
    indices: Integers
    trace: float | None = None
    error: float | None = None
    largest_residual: float | None = None

    @property
    def rank(self) -> int:
        """The number of features."""
        return int(self.projection.shape[1])

    @property
    def relative_error(self) -> float | None:
        """`error` as a share of `trace`."""
        if self.error is None or self.trace is None:
            return None
        return self.error / self.trace if self.trace > 0 else 0.0

    def transform(self, X: Matrix, *, n_threads: int | None = None) -> NDArray[Any]:
        """Return the features of the rows of ``X``.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_instances, n_features)
            Instances.
        n_threads : int or None
            Number of threads; it does not change the result.

        Returns
        -------
        ndarray of shape (n_instances, rank)
            In single precision if ``X`` and the landmarks are, else in double precision.
        """
        X = canonical_rows(X)
        check_widths(X, self.landmarks)
        dtype = common_dtype(X, self.landmarks)
        landmarks = converted(self.landmarks, dtype)
        projection = self.projection.astype(dtype, copy=False)
        right = self.kernel.norms(landmarks, dtype)
        out = np.empty((X.shape[0], self.rank), dtype)

        def fill(rows: slice) -> None:
            a = converted(X[rows], dtype)
            left = self.kernel.norms(a, dtype, rows)
            features = np.zeros((a.shape[0], self.rank), dtype)
            for columns in slices(len(projection), BLOCK):
                checkpoint()
                block = self.kernel.block(a, landmarks[columns], left, right[columns])
                features += block @ projection[columns]
            out[rows] = features

        threads = self.kernel.threads(n_threads)
        for _ in ordered_map(fill, slices(len(out), BLOCK), n_threads=threads):
            pass
        return out

    def expansion(self, w: ArrayLike) -> Floats:
        """Return the factors ``c`` with ``<w, features(x)> = sum_r c_r k(landmark_r, x)``.

        Parameters
        ----------
        w : array-like of shape (rank,) or (n_outputs, rank)
            A linear function of the features, or several.

        Returns
        -------
        ndarray of shape (n_landmarks,) or (n_outputs, n_landmarks)
            What `InstanceKernel.expand` takes as ``coef``.
        """
        w = np.asarray(w, np.float64)
        if w.ndim not in (1, 2) or w.shape[-1] != self.rank:
            msg = f"w must have shape ({self.rank},) or (n_outputs, {self.rank}). Got {w.shape}."
            raise ValueError(msg)
        return w @ self.projection.T

    def residual_trace(self, X: Matrix, *, n_threads: int | None = None) -> float:
        """Return the trace of the Gram matrix of ``X`` less that of its approximation.

        It bounds the spectral norm of the difference, whatever rows the landmarks came from.
        """
        X = canonical_rows(X)
        total = 0.0
        for rows in slices(X.shape[0], 16 * BLOCK):
            features = self.transform(X[rows], n_threads=n_threads)
            missing = self.kernel.diagonal(X[rows]) - _squared_rows(features)
            total += float(np.maximum(missing, 0.0).sum())
        return total


def pivoted_cholesky(
    kernel: InstanceKernel, X: Matrix, *, rank: int, tol: float = 0.0, n_threads: int | None = None
) -> LandmarkMap:
    """Choose landmarks greedily: each is the row that is approximated worst so far.

    This is the partial Cholesky factorisation of the Gram matrix with diagonal pivoting. It
    evaluates ``rank`` columns of the Gram matrix and costs O(n rank^2) beside them.

    Parameters
    ----------
    kernel : InstanceKernel
        The kernel; it must be positive semi-definite.
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        Instances.
    rank : int
        The largest number of landmarks. There are fewer if the Gram matrix has a lower rank.
    tol : float
        Stop as soon as the trace of the residual is at most ``tol`` times the trace.
    n_threads : int or None
        Number of threads; it does not change the result.

    Returns
    -------
    LandmarkMap
        With `~LandmarkMap.error` and `~LandmarkMap.largest_residual`. Its rank is 0 if the kernel
        is 0 everywhere.

    Notes
    -----
    Residuals that agree to rounding count as ties, which the row nearest to the origin wins, then
    the lowest index: the choice does not depend on the order of the rows. Pivots that are lost in
    rounding errors are not taken.

    The choice keeps the largest residual small and so favours outliers. Where most rows are far
    from each other at the scale of the kernel, `nystroem` may leave a smaller residual trace.
    """
    return cholesky_features(kernel, X, rank=rank, tol=tol, n_threads=n_threads)[0]


def cholesky_features(
    kernel: InstanceKernel, X: Matrix, *, rank: int, tol: float = 0.0, n_threads: int | None = None
) -> tuple[LandmarkMap, NDArray[Any]]:
    """Return `pivoted_cholesky` and the features of ``X``, which it computes on its way.

    Parameters
    ----------
    kernel, X, rank, tol, n_threads
        As in `pivoted_cholesky`.

    Returns
    -------
    LandmarkMap
        The map.
    ndarray of shape (n_instances, rank)
        What its ``transform(X)`` would return, up to rounding.
    """
    X = _checked_rows("pivoted_cholesky", X)
    _check_rank("pivoted_cholesky", rank)
    if not 0 <= tol < 1:
        msg = f"tol of pivoted_cholesky must be at least 0 and below 1. Got {tol}."
        raise ValueError(msg)
    greedy = _GreedyFactor(kernel, X, min(rank, X.shape[0]), tol, kernel.threads(n_threads))
    greedy.run()
    n_pivots = len(greedy.pivots)
    indices = np.array(greedy.pivots, np.int64)
    projection = _inverse_transposed(greedy.head[:n_pivots, :n_pivots])
    residual = np.maximum(greedy.residual, 0.0)
    landmark_map = LandmarkMap(
        kernel,
        converted(X[indices], greedy.dtype),
        projection,
        indices,
        trace=greedy.trace,
        error=float(residual.sum()),
        largest_residual=float(residual.max()),
    )
    return landmark_map, np.ascontiguousarray(greedy.factor[:, :n_pivots])


def nystroem(
    kernel: InstanceKernel,
    X: Matrix,
    *,
    rank: int,
    rng: np.random.Generator,
    row_weight: Floats | None = None,
    n_threads: int | None = None,
) -> LandmarkMap:
    """Draw landmarks at random, with equal chances and without replacement, among distinct rows.

    Parameters
    ----------
    kernel : InstanceKernel
        The kernel; it must be positive semi-definite.
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        Instances.
    rank : int
        The number of landmarks drawn; all distinct rows if there are no more. Landmarks in the
        span of the others, as far as rounding lets one tell, are then dropped.
    rng : numpy.random.Generator
        Makes one draw.
    row_weight : ndarray of shape (n_instances,), optional
        Rows of weight 0 are not drawn; other weights are repetitions and make no difference.
    n_threads : int or None
        Number of threads; it does not change the result.

    Returns
    -------
    LandmarkMap
        Without an error bound: `~LandmarkMap.residual_trace` computes one.

    Notes
    -----
    The same state of ``rng`` draws the same instances whatever the order of the rows and however
    often each is repeated.
    """
    X = _checked_rows("nystroem", X)
    _check_rank("nystroem", rank)
    candidates = _distinct_rows(X, row_weight)
    drawn = candidates[rng.permutation(len(candidates))[:rank]]
    found = pivoted_cholesky(kernel, X[drawn], rank=len(drawn), n_threads=n_threads)
    return LandmarkMap(kernel, found.landmarks, found.projection, drawn[found.indices])


def _distinct_rows(X: Matrix, row_weight: Floats | None) -> Integers:
    """Return one row of each value, the first, in an order that depends on the values alone."""
    present = np.arange(X.shape[0])
    if row_weight is not None:
        weight = np.asarray(row_weight, np.float64)
        if weight.shape != present.shape or not (weight >= 0).all() or not weight.any():
            msg = (
                f"row_weight of nystroem must give a weight to each of {len(present)} rows, none "
                f"below 0 and one above. Got shape {weight.shape} with minimum "
                f"{weight.min(initial=np.inf)} and maximum {weight.max(initial=-np.inf)}."
            )
            raise ValueError(msg)
        present = np.flatnonzero(weight > 0)
    hashes = np.concatenate([row_hashes(X[rows]) for rows in row_passes(X)])
    _, first = np.unique(hashes[present], return_index=True)
    return present[first]


class _GreedyFactor:
    """A partial Cholesky factor that grows by panels of pivots.

    A residual only falls when pivots are added. So if a candidate is worse than every other row
    was when the panel began, it is the worst of all rows now, and the other rows need not be
    brought up to date before it is chosen: that is done for a whole panel, as a matrix product.
    """

    def __init__(
        self, kernel: InstanceKernel, X: Matrix, rank: int, tol: float, n_threads: int | None
    ) -> None:
        self.kernel, self.X, self.rank, self.tol, self.n_threads = kernel, X, rank, tol, n_threads
        self.dtype = common_dtype(X)
        self.norms = kernel.norms(X, self.dtype)
        self.lengths = squared_norms(X)
        self.residual = kernel.diagonal(X).astype(np.float64)
        if not np.isfinite(self.residual).all() or (self.residual < 0).any():
            row = int(np.argmin(np.where(np.isfinite(self.residual), self.residual, -np.inf)))
            self._refuse(row, f"its kernel with itself is {self.residual[row]}")
        self.trace = float(self.residual.sum())
        self.scale = float(self.residual.max())
        self.eps = float(np.finfo(self.dtype).eps)
        self.tie = 8 * self.eps * self.scale
        self.floor = max(32, rank) * self.eps * self.scale
        # What rounding may do to a residual; distances made from norms lose digits far from 0.
        spread = 16 * self.eps * kernel.gamma * float(self.norms.max())
        self.rounding = max(float(np.sqrt(self.eps)), spread) * self.scale
        self.factor = np.empty((X.shape[0], rank), self.dtype)
        self.head = np.zeros((rank, rank))  # the rows of the factor at the pivots
        self.pivots: list[int] = []

    def run(self) -> None:
        """Add pivots until the rank is reached, the residual small enough, or lost in rounding."""
        while len(self.pivots) < self.rank and self.residual.max() > self.floor:
            chosen = self._choose()
            if self._extend(chosen) < len(chosen) or self._is_close(self.residual.sum()):
                return

    def _is_close(self, residual_trace: Any) -> Any:
        return residual_trace <= self.tol * self.trace

    def _candidates(self) -> tuple[Integers, float]:
        """Return the rows with the largest residuals, in order, and a bound on all others."""
        n_rows = len(self.residual)
        share = n_rows // _CANDIDATE_SHARE
        count = min(max(share, _FEWEST_CANDIDATES), _MOST_CANDIDATES)
        if count >= n_rows:
            return np.arange(n_rows), -np.inf
        order = np.argpartition(-self.residual, count)
        # With ties it need not be among the others.
        first = self._worst(self.residual, self.lengths)
        return np.union1d(order[:count], [first]), float(self.residual[order[count]])

    def _worst(self, residual: Floats, lengths: Floats) -> int:
        """Return the row of the largest residual, of equal ones the shortest, then the first."""
        equal = np.flatnonzero(residual >= residual.max() - self.tie)
        return int(equal[lengths[equal].argmin()])

    def _choose(self) -> list[int]:
        """Find the next pivots, at least one."""
        from bagwise.kernels._low_rank_kernels import reduce_by_pivot

        candidates, bound = self._candidates()
        known = len(self.pivots)
        width = min(_PANEL, self.rank - known)
        factor = np.empty((len(candidates), known + width))
        factor[:, :known] = self.factor[candidates, :known]
        residual = self.residual[candidates]
        rows, norms = converted(self.X[candidates], self.dtype), self.norms[candidates]
        lengths = self.lengths[candidates]
        chosen: list[int] = []
        while len(chosen) < width:
            checkpoint()
            largest = residual.max()
            if chosen and not (largest > self.floor and largest - self.tie > bound):  # or NaN
                break
            pivot = self._worst(residual, lengths)
            here = slice(pivot, pivot + 1)
            column = self.kernel.block(rows, rows[here], norms, norms[here])[:, 0]
            reduce_by_pivot(factor, known + len(chosen), pivot, column.astype(np.float64), residual)
            chosen.append(pivot)
        stop = known + len(chosen)
        self.head[known:stop, :stop] = factor[chosen, :stop]
        self.head[known:stop, known:stop] = np.tril(self.head[known:stop, known:stop])
        return [int(row) for row in candidates[chosen]]

    def _extend(self, chosen: list[int]) -> int:
        """Bring all rows up to date; return how many of the pivots were taken."""
        known = len(self.pivots)
        stop = known + len(chosen)
        rows, norms = converted(self.X[chosen], self.dtype), self.norms[chosen]
        cross = self.head[known:stop, :known].T.astype(self.dtype)
        square = _inverse_transposed(self.head[known:stop, known:stop]).astype(self.dtype)

        def fill(part: slice) -> tuple[Floats, NDArray[Any]]:
            a = converted(self.X[part], self.dtype)
            block = self.kernel.block(a, rows, self.norms[part], norms)
            if known:
                block -= self.factor[part, :known] @ cross
            block = block @ square
            self.factor[part, known:stop] = block
            return np.square(block, dtype=np.float64).sum(axis=0), np.abs(block).max(axis=0)

        sums, largest = np.zeros(len(chosen)), np.zeros(len(chosen))
        for part_sums, part_largest in self._map(fill):
            sums += part_sums
            np.maximum(largest, part_largest, out=largest)
        self.factor[chosen, known:stop] = self.head[known:stop, known:stop]
        taken = self._count_sound(chosen, sums, largest)
        self._reduce(known, known + taken)
        self.residual[chosen[:taken]] = 0.0
        self.pivots += chosen[:taken]
        row = int(np.argmin(self.residual))
        if self.residual[row] < -self.rounding:
            self._refuse(row, f"its residual is {self.residual[row]:.3g}")
        return taken

    def _count_sound(self, chosen: list[int], sums: Floats, largest: Floats) -> int:
        """Return how many pivots are needed for ``tol`` and stand above the rounding errors.

        No entry of a column of the factor may exceed the one at the pivot, by Cauchy-Schwarz: if
        one does, the residual is rounding errors, or the kernel is not positive semi-definite.
        """
        known = len(self.pivots)
        enough = np.flatnonzero(self._is_close(self.residual.sum() - np.cumsum(sums)))
        taken = int(enough[0]) + 1 if len(enough) else len(chosen)
        roots = self.head.diagonal()[known : known + taken]
        unsound = np.flatnonzero(~(largest[:taken] <= 2.0 * roots))  # NaN is unsound
        if not len(unsound):
            return taken
        taken = int(unsound[0])
        if not (roots[taken] ** 2 <= self.rounding and np.isfinite(largest[taken])):
            self._refuse(
                chosen[taken],
                f"with a residual of {roots[taken] ** 2:.3g} it leaves products of "
                f"{largest[taken] * roots[taken]:.3g}",
            )
        return taken

    def _reduce(self, start: int, stop: int) -> None:
        def fill(part: slice) -> None:
            self.residual[part] -= _squared_rows(self.factor[part, start:stop])

        for _ in self._map(fill):
            pass

    def _map(self, function: Any) -> Any:
        return ordered_map(function, slices(len(self.residual), BLOCK), n_threads=self.n_threads)

    def _refuse(self, row: int, what: str) -> None:
        msg = (
            f"pivoted_cholesky and nystroem need a kernel with finite values that is positive "
            f"semi-definite. Got {self.kernel}, which is not at row {row}: {what}."
        )
        raise ValueError(msg)


def _inverse_transposed(lower: Floats) -> Floats:
    identity = np.eye(len(lower))
    if not len(lower):
        return identity
    inverse = scipy.linalg.solve_triangular(lower, identity, lower=True, check_finite=False)
    return np.ascontiguousarray(inverse.T)


def _squared_rows(features: NDArray[Any]) -> Floats:
    out: Floats = np.square(features, dtype=np.float64).sum(axis=1)
    return out


def _checked_rows(function: str, X: Matrix) -> Matrix:
    X = canonical_rows(X)
    if not X.shape[0]:
        msg = f"{function} needs at least one row in X. Got shape {X.shape}."
        raise ValueError(msg)
    return X


def _check_rank(function: str, rank: int) -> None:
    if rank < 1:
        msg = f"rank of {function} must be at least 1. Got {rank}."
        raise ValueError(msg)
