"""Kernels between instances: their description, and Gram matrices on a fixed grid of blocks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from bagwise._threads import checkpoint, ordered_map

#: Rows of instances: a dense array (also memory-mapped and read-only) or a CSR matrix.
Matrix: TypeAlias = Any
KernelFunction: TypeAlias = Callable[[Matrix, Matrix], ArrayLike]

#: Rows and columns of a block. The grid depends on shapes alone, so the bits of a result do not
#: depend on the number of threads.
BLOCK = 512

_MEDIAN_ROWS = 1000
_DENSE_ENOUGH = 0.15  # of the entries of a sparse block: from here on a dense product is faster
_PASS_ENTRIES = 1 << 18  # entries that one step of a pass over all instances looks at


@dataclass(frozen=True)
class InstanceKernel:
    """A kernel between instances, with all its numbers resolved.

    Parameters
    ----------
    name : str or callable
        ``"linear"``: ``<x, y>``; ``"poly"``: ``(gamma <x, y> + coef0) ** degree``; ``"rbf"``:
        ``exp(-gamma |x - y|^2)``. A callable ``f(A, B)`` takes two blocks of rows and returns the
        matrix of values; it is called from one thread.
    gamma, degree, coef0 : float
        The numbers in the formulas; a kernel that does not have one ignores it. `resolve_gamma`
        turns a rule such as ``"scale"`` into a number.
    """

    name: str | KernelFunction
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if not callable(self.name) and self.name not in FORMULAS:
            msg = (
                f"The name of an InstanceKernel must be one of {sorted(FORMULAS)} or a callable. "
                f"Got {self.name!r}."
            )
            raise ValueError(msg)

    @property
    def formula(self) -> "Formula":
        """How blocks of this kernel are computed."""
        return _called(self.name) if callable(self.name) else FORMULAS[self.name]

    def gram(
        self, A: Matrix, B: Matrix | None = None, *, n_threads: int | None = None
    ) -> NDArray[Any]:
        """Return the kernel between all rows of ``A`` and all rows of ``B``.

        Parameters
        ----------
        A : ndarray or CSR matrix of shape (n_A, n_features)
            Instances.
        B : ndarray or CSR matrix of shape (n_B, n_features), optional
            Instances; ``A`` if left out. Then only the upper half is computed, the result is
            exactly symmetric and its diagonal is that of `diagonal`.
        n_threads : int or None
            Number of threads; it does not change the result.

        Returns
        -------
        ndarray of shape (n_A, n_B)
            In single precision if both inputs are, else in double precision.
        """
        symmetric = B is None
        A = canonical_rows(A)
        B = A if symmetric else canonical_rows(B)
        check_widths(A, B)
        dtype = common_dtype(A, B)
        out = np.empty((A.shape[0], B.shape[0]), dtype)
        left = self.norms(A, dtype)
        right = left if symmetric else self.norms(B, dtype)

        def fill(tile: tuple[slice, slice]) -> None:
            rows, columns = tile
            on_diagonal = symmetric and rows == columns
            a = converted(A[rows], dtype)
            b = a if on_diagonal else converted(B[columns], dtype)
            block = self.block(a, b, left[rows], right[columns])
            out[rows, columns] = block
            if symmetric:
                mirror(out, rows, columns)

        for _ in ordered_map(
            fill, tiles(*out.shape, symmetric=symmetric), n_threads=self.threads(n_threads)
        ):
            pass
        if symmetric:
            np.fill_diagonal(out, self.diagonal(A))
        return out

    def expand(
        self, A: Matrix, B: Matrix, coef: NDArray[np.float64], *, n_threads: int | None = None
    ) -> NDArray[np.float64]:
        """Return ``sum_r coef[o, r] k(B_r, x)`` for each row ``x`` of ``A``, never the Gram matrix.

        Parameters
        ----------
        A : ndarray or CSR matrix of shape (n_A, n_features)
            Where to evaluate.
        B : ndarray or CSR matrix of shape (n_B, n_features)
            The instances of the expansion.
        coef : ndarray of shape (n_outputs, n_B)
            Their factors in each output.
        n_threads : int or None
            Number of threads; it does not change the result.

        Returns
        -------
        ndarray of shape (n_A, n_outputs)
            Sums in double precision.
        """
        A, B = canonical_rows(A), canonical_rows(B)
        check_widths(A, B)
        if coef.ndim != 2 or coef.shape[1] != B.shape[0]:
            msg = f"coef must have shape (n_outputs, {B.shape[0]}). Got {coef.shape}."
            raise ValueError(msg)
        dtype = common_dtype(A, B)
        right = self.norms(B, dtype)
        out = np.zeros((A.shape[0], coef.shape[0]))

        def fill(rows: slice) -> None:
            a = converted(A[rows], dtype)
            left = self.norms(a, dtype)
            for columns in slices(B.shape[0], BLOCK):
                checkpoint()
                block = self.block(a, converted(B[columns], dtype), left, right[columns])
                out[rows] += block @ coef[:, columns].T

        for _ in ordered_map(fill, slices(len(out), BLOCK), n_threads=self.threads(n_threads)):
            pass
        return out

    def diagonal(self, A: Matrix) -> NDArray[Any]:
        """Return the kernel of each row of ``A`` with itself."""
        A = canonical_rows(A)
        return self.formula.diagonal(self, A).astype(common_dtype(A), copy=False)

    def block(self, a: Matrix, b: Matrix, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """Return one block in the calling thread, given the rows' squared norms (see `norms`)."""
        out = np.empty((a.shape[0], b.shape[0]), left.dtype)
        self.formula.fill(self, a, b, left, right, out)
        return out

    def norms(self, A: Matrix, dtype: "np.dtype[Any]") -> NDArray[Any]:
        """Return the squared norms of rows if the kernel needs them, else zeros."""
        if self.formula.needs_norms:
            return squared_norms(A).astype(dtype, copy=False)
        return np.zeros(A.shape[0], dtype)

    def threads(self, n_threads: int | None) -> int | None:
        """Return the number of threads that may evaluate blocks: a user's function gets one."""
        return 1 if callable(self.name) else n_threads


@dataclass(frozen=True)
class Formula:
    """How a kernel is computed; adding a kernel means adding one of these to `FORMULAS`.

    Parameters
    ----------
    fill : callable
        ``fill(kernel, a, b, left, right, out)`` writes the kernel between the rows of ``a`` and
        ``b``, whose squared norms are ``left`` and ``right``, into a contiguous array.
    diagonal : callable
        ``diagonal(kernel, A)`` returns the kernel of each row with itself.
    needs_norms : bool
        Whether ``left`` and ``right`` must hold the norms; else they hold zeros.
    """

    fill: Callable[[InstanceKernel, Matrix, Matrix, NDArray[Any], NDArray[Any], NDArray[Any]], None]
    diagonal: Callable[[InstanceKernel, Matrix], NDArray[Any]]
    needs_norms: bool = False


def _products(
    kernel: InstanceKernel,
    a: Matrix,
    b: Matrix,
    left: NDArray[Any],
    right: NDArray[Any],
    out: NDArray[Any],
) -> None:
    if sp.issparse(a) and sp.issparse(b) and min(_density(a), _density(b)) > _DENSE_ENOUGH:
        np.matmul(a.toarray(), b.toarray().T, out=out)
    elif sp.issparse(a) and sp.issparse(b):
        from bagwise.kernels._block_kernels import sparse_products

        by_column = b.tocsc()
        sparse_products(
            a.indptr, a.indices, a.data,
            by_column.indptr, by_column.indices, by_column.data, out,
        )  # fmt: skip
    elif sp.issparse(a):
        out[:] = a @ b.T
    elif sp.issparse(b):
        out[:] = (b @ a.T).T
    else:
        np.matmul(a, b.T, out=out)


def _density(block: Matrix) -> float:
    return float(block.nnz / max(1, block.shape[0] * block.shape[1]))


def _poly(
    kernel: InstanceKernel,
    a: Matrix,
    b: Matrix,
    left: NDArray[Any],
    right: NDArray[Any],
    out: NDArray[Any],
) -> None:
    _products(kernel, a, b, left, right, out)
    _raise(kernel, out)


def _raise(kernel: InstanceKernel, products: NDArray[Any]) -> None:
    products *= kernel.gamma
    products += kernel.coef0
    if kernel.degree in (2, 3, 4):  # products are several times faster than a general power
        base = products.copy()
        for _ in range(int(kernel.degree) - 1):
            products *= base
    else:
        np.power(products, kernel.degree, out=products)


def _rbf(
    kernel: InstanceKernel,
    a: Matrix,
    b: Matrix,
    left: NDArray[Any],
    right: NDArray[Any],
    out: NDArray[Any],
) -> None:
    from bagwise.kernels._block_kernels import gaussian_exponent

    _products(kernel, a, b, left, right, out)
    gaussian_exponent(out, left, right, out.dtype.type(kernel.gamma))
    np.exp(out, out=out)


def _poly_diagonal(kernel: InstanceKernel, A: Matrix) -> NDArray[Any]:
    values = squared_norms(A)
    _raise(kernel, values)
    return values


#: The kernels by name.
FORMULAS: dict[str, Formula] = {
    "linear": Formula(_products, lambda kernel, A: squared_norms(A)),
    "poly": Formula(_poly, _poly_diagonal),
    "rbf": Formula(_rbf, lambda kernel, A: np.ones(A.shape[0]), needs_norms=True),
}


def _called(function: KernelFunction) -> Formula:
    """Wrap a user's kernel."""

    def evaluate(a: Matrix, b: Matrix) -> NDArray[Any]:
        values = np.asarray(function(a, b))
        if values.shape != (a.shape[0], b.shape[0]):
            msg = (
                f"A kernel called with {a.shape[0]} and {b.shape[0]} rows must return a matrix of "
                f"shape {(a.shape[0], b.shape[0])}. Got shape {values.shape}."
            )
            raise ValueError(msg)
        return values

    def fill(
        kernel: InstanceKernel,
        a: Matrix,
        b: Matrix,
        left: NDArray[Any],
        right: NDArray[Any],
        out: NDArray[Any],
    ) -> None:
        out[:] = evaluate(a, b)

    def diagonal(kernel: InstanceKernel, A: Matrix) -> NDArray[Any]:
        out = np.empty(A.shape[0])
        for rows in slices(len(out), 32):
            out[rows] = evaluate(A[rows], A[rows]).diagonal()
        return out

    return Formula(fill, diagonal)


def resolve_gamma(
    gamma: float | str, X: Matrix, row_weight: NDArray[np.float64] | None = None
) -> float:
    """Turn a rule for ``gamma`` into a number.

    Parameters
    ----------
    gamma : float or str
        A number stands for itself. ``"scale"``: one over (number of features times the variance
        of all entries of ``X``), or 1 if that variance is 0. ``"median"``: one over the median
        squared distance between distinct instances, or 1 if there is only one. ``"auto"``: one
        over the number of features.
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        Instances.
    row_weight : ndarray of shape (n_instances,), optional
        Weights; a weight of 2 is the same as the row given twice, 0 the same as leaving it out.

    Notes
    -----
    ``"median"`` looks at no more than 1000 instances. A hash of the instances' values picks them
    among all distinct ones, so their order, repetitions and weights make no difference.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma not in ("scale", "median", "auto"):
        msg = f'gamma must be a number, "scale", "median" or "auto". Got {gamma!r}.'
        raise ValueError(msg)
    if gamma == "auto":
        return float(1.0 / X.shape[1])
    X = canonical_rows(X)
    weight = np.ones(X.shape[0]) if row_weight is None else np.asarray(row_weight, np.float64)
    if weight.shape != (X.shape[0],) or not (weight >= 0).all() or not weight.any():
        msg = (
            f"row_weight must give a weight to each of {X.shape[0]} rows, none below 0 and one "
            f"above. Got shape {weight.shape} with minimum {weight.min(initial=np.inf)} and "
            f"maximum {weight.max(initial=-np.inf)}."
        )
        raise ValueError(msg)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = X.shape[1] * _variance(X, weight) if gamma == "scale" else _median(X, weight)
    if not np.isfinite(spread):
        msg = f"gamma={gamma!r} needs instances whose squared distances fit a float: scale them."
        raise ValueError(msg)
    return 1.0 / spread if spread > 0 else 1.0


def _variance(X: Matrix, weight: NDArray[np.float64]) -> float:
    """Return the weighted variance of all entries, in one pass over blocks of rows.

    Entries are taken relative to one of them, so constant data have a variance of exactly 0.
    """
    n_features = X.shape[1]
    first = int(np.argmax(weight > 0))
    pivot = np.float64(X[first : first + 1].max())
    mass, mean, scatter = np.zeros(3)
    for rows in _row_passes(X):
        w = weight[rows]
        if not w.any():
            continue
        sums, squares = _row_moments(X[rows], pivot)
        block_mass = n_features * w.sum()
        block_mean = w @ sums / block_mass
        block_scatter = np.maximum(0.0, w @ squares - block_mass * block_mean**2)  # NaN stays
        shift = block_mean - mean
        mean += shift * block_mass / (mass + block_mass)
        scatter += block_scatter + shift**2 * mass * block_mass / (mass + block_mass)
        mass += block_mass
    return float(scatter / mass)


def _row_moments(block: Matrix, pivot: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sum and the sum of squares of ``entry - pivot`` in each row."""
    if not sp.issparse(block):
        entries = block.astype(np.float64) - pivot
        return entries.sum(axis=1), np.einsum("ij,ij->i", entries, entries)
    row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    entries = block.data.astype(np.float64) - pivot
    zeros = block.shape[1] - np.diff(block.indptr)
    sums = np.bincount(row, entries, block.shape[0]) - zeros * pivot
    return sums, np.bincount(row, entries**2, block.shape[0]) + zeros * pivot**2


def _median(X: Matrix, weight: NDArray[np.float64]) -> float:
    """Return the median squared distance between at most 1000 distinct rows."""
    hashes = np.concatenate([_row_hashes(X[rows]) for rows in _row_passes(X)])
    present = np.flatnonzero(weight > 0)
    _, first = np.unique(hashes[present], return_index=True)  # sorted by hash
    picked = X[present[first[:_MEDIAN_ROWS]]].astype(np.float64)
    if picked.shape[0] < 2:
        return 0.0
    if not sp.issparse(picked):
        picked -= picked.mean(axis=0)  # far from the origin, products would drown the distances
    norms = squared_norms(picked)
    products = InstanceKernel("linear").gram(picked, n_threads=1)
    i, j = np.triu_indices(len(norms), 1)
    return float(np.maximum(0.0, np.median(norms[i] + norms[j] - 2.0 * products[i, j])))


def _row_hashes(block: Matrix) -> NDArray[np.uint64]:
    """Hash rows by value: equal rows, dense or sparse, in any precision, have equal hashes."""
    if sp.issparse(block):
        row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        column, values = block.indices, block.data
    else:
        row, column = np.nonzero(block)
        values = block[row, column]
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64)
    bits = _scramble(bits ^ _scramble(column.astype(np.uint64)))
    bits[values == 0] = 0  # a stored zero is a zero
    out = np.zeros(block.shape[0], np.uint64)
    np.add.at(out, row, bits)
    return _scramble(out)


def _scramble(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64 bits (the finaliser of the generator splitmix64)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _row_passes(X: Matrix) -> Iterator[slice]:
    for rows in slices(X.shape[0], max(1, _PASS_ENTRIES // max(1, X.shape[1]))):
        checkpoint()
        yield rows


def squared_norms(A: Matrix) -> NDArray[np.float64]:
    """Return the squared Euclidean norm of each row, summed in double precision."""
    out = np.empty(A.shape[0])
    for rows in _row_passes(A):
        out[rows] = _row_moments(A[rows], 0.0)[1]
    return out


def canonical_rows(A: Matrix) -> Matrix:
    """Return ``A`` as a two-dimensional array or as CSR without repeated entries."""
    if sp.issparse(A):
        A = A.tocsr()
        if not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        return A
    A = np.asarray(A)
    if A.ndim != 2:
        msg = f"Instances must form a matrix of two dimensions. Got {A.ndim}."
        raise ValueError(msg)
    return A


def check_widths(A: Matrix, B: Matrix) -> None:
    """Refuse two matrices of instances with different numbers of features."""
    if A.shape[1] != B.shape[1]:
        msg = (
            f"Both sides of a kernel must have the same number of features. "
            f"Got {A.shape[1]} and {B.shape[1]}."
        )
        raise ValueError(msg)


def common_dtype(*matrices: Matrix) -> "np.dtype[Any]":
    """Return single precision if all matrices have it, else double precision."""
    single = all(matrix.dtype == np.float32 for matrix in matrices)
    return np.dtype(np.float32 if single else np.float64)


def converted(block: Matrix, dtype: "np.dtype[Any]") -> Matrix:
    """Return a block of rows in the given precision, contiguous."""
    if sp.issparse(block):
        return block.astype(dtype, copy=False)
    return np.ascontiguousarray(block, dtype)


def slices(length: int, step: int) -> Iterator[slice]:
    """Cut ``range(length)`` into pieces of ``step``."""
    return (slice(i, min(i + step, length)) for i in range(0, length, step))


def tiles(n_rows: int, n_columns: int, *, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into blocks, or a symmetric one into squares on the diagonal and the rest."""
    for rows in slices(n_rows, BLOCK):
        if symmetric:
            yield rows, rows
        for columns in slices(n_columns, BLOCK):
            first = max(columns.start, rows.stop) if symmetric else columns.start
            if first < columns.stop:
                yield rows, slice(first, columns.stop)


def mirror(out: NDArray[Any], rows: slice, columns: slice) -> None:
    """Copy one of the blocks of `tiles` to the other side of the diagonal."""
    if rows != columns:
        out[columns, rows] = out[rows, columns].T
        return
    square = out[rows, rows]
    lower = np.tril_indices(len(square), -1)
    square[lower] = square.T[lower]
