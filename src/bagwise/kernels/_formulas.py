"""How each kernel between instances is computed, block by block."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint
from bagwise.kernels._coordinates import coordinate_sums
from bagwise.kernels._rows import (
    Matrix,
    density,
    row_lengths,
    row_passes,
    scaled,
    slices,
    squared_norms,
)

if TYPE_CHECKING:
    from bagwise.kernels._instance import InstanceKernel

KernelFunction: TypeAlias = Callable[[Matrix, Matrix], ArrayLike]
Rows: TypeAlias = slice | Integers

_DENSE_ENOUGH = 0.15  # of the entries of a sparse block: from here on a dense product is faster
_SLICE_TERMS = 1 << 25  # terms of sparse products in one compiled call: 20 ms at most

# A Gaussian of norms and products is wrong by about eps * gamma * |x|^2. Rows are moved to the
# origin if the centre's part of that is above the first number, and if the centre's squared norm
# is so many times the mean squared distance from it: below that little is to be gained.
_CENTRE_EXPONENT = 4.0
_CENTRE_RATIO = 4.0


def _no_norms(A: Matrix, rows: Rows) -> Floats:
    return np.zeros(A.shape[0])


@dataclass(frozen=True)
class Formula:
    """How a kernel is computed; adding a kernel means adding one of these to `FORMULAS`.

    Parameters
    ----------
    fill : callable
        ``fill(kernel, a, b, left, right, out)`` writes the kernel between the rows of ``a`` and
        ``b``, of which ``norms`` says ``left`` and ``right``, into a contiguous array.
    diagonal : callable
        ``diagonal(kernel, A)`` returns the kernel of each row with itself.
    norms : callable
        ``norms(A, rows)`` returns a number for each row that all blocks share, and refuses rows
        for which the kernel is not defined. ``rows`` are their numbers, for the error message.
    """

    fill: Callable[
        ["InstanceKernel", Matrix, Matrix, NDArray[Any], NDArray[Any], NDArray[Any]], None
    ]
    diagonal: Callable[["InstanceKernel", Matrix], NDArray[Any]]
    norms: Callable[[Matrix, Rows], Floats] = _no_norms


def _products(
    kernel: "InstanceKernel",
    a: Matrix,
    b: Matrix,
    left: NDArray[Any],
    right: NDArray[Any],
    out: NDArray[Any],
) -> None:
    if _are_sparse(a, b):
        from bagwise.kernels._block_kernels import sparse_products

        by_column = b.tocsc()
        terms = (1 + a.nnz // max(1, a.shape[0])) * max(1, b.shape[0])  # of a row, at most
        for rows in slices(a.shape[0], max(1, _SLICE_TERMS // terms)):
            checkpoint()
            sparse_products(
                a.indptr[rows.start : rows.stop + 1], a.indices, a.data,
                by_column.indptr, by_column.indices, by_column.data, out[rows],
            )  # fmt: skip
    elif sp.issparse(a) and sp.issparse(b):
        np.matmul(a.toarray(), b.toarray().T, out=out)
    elif sp.issparse(a):
        out[:] = a @ b.T
    elif sp.issparse(b):
        out[:] = (b @ a.T).T
    else:
        np.matmul(a, b.T, out=out)


def _are_sparse(a: Matrix, b: Matrix) -> bool:
    """Tell whether both blocks are CSR, and one so sparse that dense products take longer."""
    both = sp.issparse(a) and sp.issparse(b)
    return both and min(density(a), density(b)) <= _DENSE_ENOUGH


def _poly(
    kernel: "InstanceKernel",
    a: Matrix,
    b: Matrix,
    left: NDArray[Any],
    right: NDArray[Any],
    out: NDArray[Any],
) -> None:
    _products(kernel, a, b, left, right, out)
    _raise(kernel, out)


def _raise(kernel: "InstanceKernel", products: NDArray[Any]) -> None:
    products *= kernel.gamma
    products += kernel.coef0
    if kernel.degree in (2, 3, 4):  # products are several times faster than a general power
        base = products.copy()
        for _ in range(int(kernel.degree) - 1):
            products *= base
    else:
        np.power(products, kernel.degree, out=products)


def _poly_diagonal(kernel: "InstanceKernel", A: Matrix) -> NDArray[Any]:
    values = squared_norms(A)
    _raise(kernel, values)
    return values


def _cosine(
    kernel: "InstanceKernel",
    a: Matrix,
    b: Matrix,
    left: NDArray[Any],
    right: NDArray[Any],
    out: NDArray[Any],
) -> None:
    # Rows are scaled before the product and not after it: there it could overflow.
    _products(kernel, scaled(a, left), scaled(b, right), left, right, out)


def _rbf(
    kernel: "InstanceKernel",
    a: Matrix,
    b: Matrix,
    left: NDArray[Any],
    right: NDArray[Any],
    out: NDArray[Any],
) -> None:
    from bagwise.kernels._block_kernels import gaussian_exponent

    centre = _centre(kernel.gamma, a, b, right)
    if centre is not None:
        same = a is b
        a, left = _moved(a, centre)
        b, right = (a, left) if same else _moved(b, centre)
    _products(kernel, a, b, left, right, out)
    gaussian_exponent(out, left, right, out.dtype.type(kernel.gamma))
    np.exp(out, out=out)


def _centre(gamma: float, a: Matrix, b: Matrix, right: NDArray[Any]) -> NDArray[Any] | None:
    """Return the mean of the rows of ``b`` if products about it are more exact.

    Rows of ``a`` do not matter: those far from the centre are about as far from all of ``b``, so
    that the error is small beside the distance. Blocks that stay sparse cannot be moved.
    """
    if _are_sparse(a, b) or not b.shape[0]:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        norm = right.mean(dtype=np.float64)
        if not gamma * norm > _CENTRE_EXPONENT:  # and so is the norm of the mean
            return None
        centre = np.asarray(b.mean(axis=0), right.dtype).ravel()
        part = np.square(centre, dtype=np.float64).sum()
        far = gamma * part > _CENTRE_EXPONENT and part > _CENTRE_RATIO * (norm - part)
    return centre if far else None


def _moved(rows: Matrix, centre: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows relative to a centre, dense, and their squared norms."""
    moved = (rows.toarray() if sp.issparse(rows) else rows) - centre
    return moved, squared_norms(moved).astype(rows.dtype, copy=False)


def _laplacian(
    kernel: "InstanceKernel",
    a: Matrix,
    b: Matrix,
    left: NDArray[Any],
    right: NDArray[Any],
    out: NDArray[Any],
) -> None:
    coordinate_sums(a, b, out, chi2=False)
    out *= -kernel.gamma
    np.exp(out, out=out)


def _chi2(
    kernel: "InstanceKernel",
    a: Matrix,
    b: Matrix,
    left: NDArray[Any],
    right: NDArray[Any],
    out: NDArray[Any],
) -> None:
    coordinate_sums(a, b, out, chi2=True)
    out *= -kernel.gamma
    np.exp(out, out=out)


def _refuse_negative(A: Matrix, rows: Rows) -> Floats:
    """Refuse rows with an entry that is negative or NaN; there are no norms to return."""
    for part in row_passes(A):
        block = A[part]
        values = block.data if sp.issparse(block) else block
        if not values.size or values.min() >= 0:
            continue
        if sp.issparse(block):
            block = block.tocoo()
            first = np.flatnonzero(~(block.data >= 0))[0]
            row, column, value = block.row[first], block.col[first], block.data[first]
        else:
            row, column = np.argwhere(~(block >= 0))[0]
            value = block[row, column]
        row += part.start
        row = rows[row] if isinstance(rows, np.ndarray) else row + rows.start
        msg = (
            'The kernel "chi2" needs features that are nowhere negative. '
            f"Got {value} in row {row}, column {column} of the instances."
        )
        raise ValueError(msg)
    return _no_norms(A, rows)


def _ones(kernel: "InstanceKernel", A: Matrix) -> NDArray[Any]:
    return np.ones(A.shape[0])


#: The kernels by name.
FORMULAS: dict[str, Formula] = {
    "chi2": Formula(_chi2, _ones, _refuse_negative),
    "cosine": Formula(
        _cosine,
        lambda kernel, A: np.where(row_lengths(A) == 0, 0.0, 1.0),
        lambda A, rows: row_lengths(A),
    ),
    "laplacian": Formula(_laplacian, _ones),
    "linear": Formula(_products, lambda kernel, A: squared_norms(A)),
    "poly": Formula(_poly, _poly_diagonal),
    "rbf": Formula(_rbf, _ones, lambda A, rows: squared_norms(A)),
}


def called(function: KernelFunction) -> Formula:
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
        kernel: "InstanceKernel",
        a: Matrix,
        b: Matrix,
        left: NDArray[Any],
        right: NDArray[Any],
        out: NDArray[Any],
    ) -> None:
        out[:] = evaluate(a, b)

    def diagonal(kernel: "InstanceKernel", A: Matrix) -> NDArray[Any]:
        out = np.empty(A.shape[0])
        for rows in slices(len(out), 32):
            out[rows] = evaluate(A[rows], A[rows]).diagonal()
        return out

    return Formula(fill, diagonal)
