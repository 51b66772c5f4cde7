"""Derivatives of kernels with respect to the rows of one side, in weighted sums."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise.kernels._instance import InstanceKernel
from bagwise.kernels._rows import (
    Matrix,
    canonical_rows,
    check_widths,
    common_dtype,
    converted,
    row_lengths,
    scaled,
    slices,
)

#: Rows whose products are summed in single precision: more of them would lose digits.
_SINGLE_ROWS = 2048

#: The kernels whose derivatives are known.
DIFFERENTIABLE = ("cosine", "linear", "poly", "rbf")


def check_differentiable(kernel: InstanceKernel) -> None:
    """Refuse a kernel whose derivative is not known."""
    if kernel.name not in DIFFERENTIABLE:
        msg = f"Derivatives are known for the kernels {list(DIFFERENTIABLE)}. Got {kernel.name!r}."
        raise ValueError(msg)


def gradient_sum(
    kernel: InstanceKernel,
    X: Matrix,
    Z: NDArray[Any],
    W: NDArray[Any],
    K: NDArray[Any] | None = None,
    scratch: NDArray[Any] | None = None,
) -> Floats:
    """Return ``G_k = sum_i W[i, k] * d k(x_i, z_k) / d z_k``.

    Parameters
    ----------
    kernel : InstanceKernel
        One of `DIFFERENTIABLE`. The derivative of ``"cosine"`` at a row of zeros is taken as 0.
    X : ndarray or CSR matrix of shape (n, n_features)
        Instances.
    Z : ndarray of shape (m, n_features)
        The rows with respect to which the derivative is taken.
    W : ndarray of shape (n, m)
        Weights of the pairs.
    K : ndarray of shape (n, m), optional
        The block ``k(X, Z)`` if it is known already; it saves a product for ``"rbf"``.
    scratch : ndarray of shape (n, m), optional
        Working memory, overwritten; it may be ``W`` or ``K`` if they are not needed any more.

    Returns
    -------
    ndarray of shape (m, n_features)
        Products are taken in single precision if ``X`` and ``Z`` both have it, else in double
        precision.
    """
    check_differentiable(kernel)
    X, Z = canonical_rows(X), canonical_rows(Z)
    check_widths(X, Z)
    dtype = common_dtype(X, Z)
    X, Z = converted(X, dtype), converted(Z, dtype)
    if W.shape != (X.shape[0], Z.shape[0]):
        msg = f"W must have shape {(X.shape[0], Z.shape[0])}. Got {W.shape}."
        raise ValueError(msg)
    if scratch is None or scratch.dtype != dtype:
        scratch = np.empty(W.shape, dtype)
    slope = slope_kernel(kernel)
    if slope is None:
        np.copyto(scratch, W, casting="same_kind")
    else:
        values = K if slope is kernel and K is not None else slope.gram(X, Z)
        np.multiply(W, values, out=scratch, casting="same_kind")
    sums = scratch.sum(axis=0, dtype=np.float64)
    return finished_gradient(kernel, Z, weighted_rows(kernel, X, scratch), sums)


def self_gradient(
    kernel: InstanceKernel, Z: NDArray[Any], beta: Floats, K: Floats | None = None
) -> Floats:
    """Return the derivative of ``1/2 sum_c beta_c' k(Z, Z) beta_c`` with respect to ``Z``.

    A row of ``Z`` stands on both sides of the kernel, also in ``k(z_k, z_k)``: the factor 1/2
    cancels, and the sum runs over all pairs.

    Parameters
    ----------
    kernel : InstanceKernel
        One of `DIFFERENTIABLE`.
    Z : ndarray of shape (m, n_features)
        Rows.
    beta : ndarray of shape (n_outputs, m) or (m,)
        Coefficients of the rows in each output.
    K : ndarray of shape (m, m), optional
        The block ``k(Z, Z)`` if it is known already.

    Returns
    -------
    ndarray of shape (m, n_features)
    """
    beta = np.atleast_2d(np.asarray(beta, np.float64))
    return gradient_sum(kernel, Z, Z, beta.T @ beta, K)


def slope_kernel(kernel: InstanceKernel) -> InstanceKernel | None:
    """Return the kernel whose values weights are multiplied by before `weighted_rows`.

    ``"rbf"`` itself; for ``"poly"`` the next lower power; None means that they stay as they are.
    """
    if kernel.name == "rbf":
        return kernel
    if kernel.name == "poly" and kernel.degree != 1:
        return InstanceKernel("poly", kernel.gamma, kernel.degree - 1, kernel.coef0)
    return None


def weighted_rows(kernel: InstanceKernel, X: Matrix, S: NDArray[Any]) -> Floats:
    """Return the product ``S'X`` of which `finished_gradient` makes the sum of derivatives.

    ``S`` are weights that were multiplied by the values of `slope_kernel`. The products of several
    blocks of rows add up; those in single precision are summed in double precision.
    """
    if kernel.name == "cosine":
        X = scaled(X, row_lengths(X).astype(X.dtype))
    if X.dtype == np.float64:
        return _products(X, S)
    total = np.zeros((S.shape[1], X.shape[1]))
    for rows in slices(X.shape[0], _SINGLE_ROWS):
        total += _products(X[rows], S[rows])
    return total


def _products(X: Matrix, S: NDArray[Any]) -> Floats:
    products = (X.T @ S).T if sp.issparse(X) else S.T @ X
    return np.ascontiguousarray(products, np.float64)


def finished_gradient(
    kernel: InstanceKernel, Z: NDArray[Any], products: Floats, sums: Floats
) -> Floats:
    """Turn the result of `weighted_rows` into the sum of derivatives, in place.

    ``sums`` are the sums of the columns of ``S``.
    """
    if kernel.name == "rbf":
        products -= sums[:, None] * Z
        products *= 2 * kernel.gamma
    elif kernel.name == "poly":
        products *= kernel.gamma * kernel.degree
    elif kernel.name == "cosine":
        lengths = row_lengths(Z)
        directions = scaled(Z.astype(np.float64), lengths)
        products -= np.einsum("kj,kj->k", products, directions)[:, None] * directions
        products *= np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)[:, None]
    return products
