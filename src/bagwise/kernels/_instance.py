"""Kernels between instances: their description, and Gram matrices on a fixed grid of blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._progress import counted
from bagwise._threads import checkpoint, ordered_map
from bagwise.kernels._formulas import FORMULAS, Formula, KernelFunction, called
from bagwise.kernels._rows import (
    BLOCK,
    Matrix,
    canonical_rows,
    check_widths,
    common_dtype,
    converted,
    slices,
)


@dataclass(frozen=True)
class InstanceKernel:
    """A kernel between instances, with all its numbers resolved.

    Parameters
    ----------
    name : str or callable
        ``"linear"``: ``<x, y>``; ``"poly"``: ``(gamma <x, y> + coef0) ** degree``; ``"rbf"``:
        ``exp(-gamma |x - y|^2)``; ``"laplacian"``: ``exp(-gamma sum_k |x_k - y_k|)``; ``"chi2"``:
        ``exp(-gamma sum_k (x_k - y_k)^2 / (x_k + y_k))`` for features that are nowhere negative,
        with 0 / 0 = 0; ``"cosine"``: ``<x, y> / (|x| |y|)``, or 0 for a row of zeros. A callable
        ``f(A, B)`` takes two blocks of rows and returns the matrix of values; it is called from
        one thread.
    gamma, degree, coef0 : float
        The numbers in the formulas; a kernel that does not have one ignores it. `resolve_gamma`
        turns a rule such as ``"scale"`` into a number.

    Notes
    -----
    The exponent of ``"rbf"`` comes from norms and inner products, with an error of about ``eps *
    gamma * |x|^2``. Where that would matter, rows are moved to their mean block by block; not so
    rows of CSR matrices of which less than 15 % is stored: scale their features.
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
    def formula(self) -> Formula:
        """How blocks of this kernel are computed."""
        return called(self.name) if callable(self.name) else FORMULAS[self.name]

    def gram(
        self,
        A: Matrix,
        B: Matrix | None = None,
        *,
        out: NDArray[Any] | None = None,
        n_threads: int | None = None,
    ) -> NDArray[Any]:
        """Return the kernel between all rows of ``A`` and all rows of ``B``.

        Parameters
        ----------
        A : ndarray or CSR matrix of shape (n_A, n_features)
            Instances.
        B : ndarray or CSR matrix of shape (n_B, n_features), optional
            Instances; ``A`` if left out. Then only the upper half is computed, the result is
            exactly symmetric and its diagonal is that of `diagonal`.
        out : ndarray of shape (n_A, n_B), optional
            Where to write the result.
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
        shape = (A.shape[0], B.shape[0])
        out = np.empty(shape, dtype) if out is None else out
        if out.shape != shape:
            msg = f"out must have shape {shape}. Got {out.shape}."
            raise ValueError(msg)
        left = self.norms(A, dtype)
        right = left if symmetric else self.norms(B, dtype)

        def fill(tile: tuple[slice, slice]) -> None:
            rows, columns = tile
            on_diagonal = symmetric and rows == columns
            a = converted(A[rows], dtype)
            b = a if on_diagonal else converted(B[columns], dtype)
            place = out[rows, columns]
            if place.flags.c_contiguous and place.dtype == dtype:
                self.formula.fill(self, a, b, left[rows], right[columns], place)
            else:
                place[:] = self.block(a, b, left[rows], right[columns])
            if symmetric:
                mirror(out, rows, columns)

        grid = list(tiles(*out.shape, symmetric=symmetric))
        filled = ordered_map(fill, grid, n_threads=self.threads(n_threads))
        for _ in counted(filled, len(grid)):
            pass
        if symmetric:
            np.fill_diagonal(out, self.diagonal(A))
        return out

    def expand(self, A: Matrix, B: Matrix, coef: Floats, *, n_threads: int | None = None) -> Floats:
        """Return ``sum_r coef[o, r] k(B_r, x)`` for each row ``x`` of ``A``, never the Gram matrix.

        Parameters
        ----------
        A : ndarray or CSR matrix of shape (n_A, n_features)
            Where to evaluate.
        B : ndarray or CSR matrix of shape (n_B, n_features)
            The instances of the expansion.
        coef : ndarray of shape (n_outputs, n_B)
            Their coefficients in each output.
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
            left = self.norms(a, dtype, rows)
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
        """Return one block in the calling thread, given what `norms` says of the rows."""
        out = np.empty((a.shape[0], b.shape[0]), left.dtype)
        self.formula.fill(self, a, b, left, right, out)
        return out

    def norms(
        self, A: Matrix, dtype: "np.dtype[Any]", rows: slice | Integers = slice(0, None)
    ) -> NDArray[Any]:
        """Return the norms of rows in the form that `block` needs, or zeros if it needs none.

        A kernel that is not defined for all rows refuses the others here, so each matrix is looked
        at once. ``rows`` says which rows of the caller's matrix ``A`` holds: an error names them.
        """
        return self.formula.norms(A, rows).astype(dtype, copy=False)

    def threads(self, n_threads: int | None) -> int | None:
        """Return the number of threads that may evaluate blocks: a user's function gets one."""
        return 1 if callable(self.name) else n_threads


def tiles(n_rows: int, n_columns: int, *, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into blocks, or a symmetric one into squares on the diagonal and the rest.

    A symmetric matrix that is little longer than a block is one square: a rest is not worth it.
    """
    if symmetric and 0 < 2 * n_rows <= 3 * BLOCK:
        yield slice(0, n_rows), slice(0, n_rows)
        return
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
    from bagwise.kernels._block_kernels import mirror_upper

    mirror_upper(out[rows, rows])
