"""Coordinates in which rows are orthonormal, and linear equations that may be singular."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from bagwise._arrays import Floats


@dataclass(frozen=True, eq=False)
class Basis:
    r"""Coordinates :math:`u = T^\top P^\top x` in which rows are orthonormal, or shorter.

    Parameters
    ----------
    projection : ndarray of shape (n_features, n_components) or None
        :math:`P`, orthonormal; None is the identity.
    gram : ndarray of shape (n_components, n_components)
        The sum of squares of :math:`P^\top x`.
    factor : ndarray
        Upper triangular :math:`R` with :math:`R^\top R = P^\top G P + \lambda I` and
        :math:`T = R^{-1}`; or one number for each component, by which it is divided.
    shift : float
        :math:`\lambda`, what is added to the diagonal.
    """

    projection: NDArray[Any] | None
    gram: NDArray[Any]
    factor: NDArray[Any]
    shift: float

    @property
    def n_components(self) -> int:
        """Number of coordinates."""
        return len(self.gram)

    def project(self, x: NDArray[Any]) -> NDArray[Any]:
        r"""Return :math:`P^\top x` of each row."""
        return x if self.projection is None else np.asarray(x @ self.projection)

    def project_gram(self, gram: NDArray[Any]) -> Floats:
        r"""Return :math:`P^\top G P`."""
        gram = gram.astype(np.float64, copy=False)
        if self.projection is None:
            return gram
        return np.asarray(self.projection.T @ gram @ self.projection)

    def lift(self, components: Floats) -> Floats:
        r"""Return components that were found for :math:`P^\top x` as components for x."""
        if self.projection is None:
            return components
        return np.asarray(components @ self.projection.T)

    def whiten(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the coordinates of rows."""
        x = self.project(x)
        if self.factor.ndim == 1:
            return np.asarray(x / self.factor)
        trsm = linalg.get_blas_funcs("trsm", (self.factor, x))
        return np.asarray(trsm(1.0, self.factor, x.T, trans_a=1)).T


def whitening(gram: NDArray[Any], *, n_components: int | None = None, shift: float = 0.0) -> Basis:
    r"""Return coordinates in which rows with this Gram matrix of features are orthonormal.

    Parameters
    ----------
    gram : ndarray of shape (n_features, n_features)
        :math:`G = \sum_j w_j x_j x_j^\top`.
    n_components : int, optional
        How many directions are kept, those along which the rows are longest; by default all
        along which they are not 0 but for rounding.
    shift : float
        What is added to the eigenvalues, :math:`\lambda`. Directions along which rows are short
        then count less.
    """
    precision = gram.dtype
    gram = gram.astype(np.float64, copy=False)
    if n_components is None or n_components >= len(gram):
        factor = _triangle(gram + shift * np.eye(len(gram)) if shift else gram, precision)
        if factor is not None:
            return Basis(None, gram, np.asfortranarray(factor, precision), shift)
    values, vectors = leading(gram, n_components, precision)
    projection = np.ascontiguousarray(vectors, precision)
    return Basis(projection, np.diag(values), np.sqrt(values + shift).astype(precision), shift)


def leading(gram: Floats, n_components: int | None, precision: Any) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues and their vectors, without those that are 0 but for rounding.

    At least one is returned.
    """
    n = len(gram)
    wanted = n if n_components is None else min(n_components, n)
    values, vectors = linalg.eigh(gram, subset_by_index=(n - wanted, n - 1), check_finite=False)
    above = values > _least(precision, n) * max(float(values[-1]), np.finfo(np.float64).tiny)
    above[-1] = True
    values = np.maximum(values[above], np.finfo(np.float64).tiny)
    return values[::-1].copy(), np.ascontiguousarray(vectors[:, above][:, ::-1])


def solve_normal(
    gram: Floats, right: Floats, shift: float, precision: Any
) -> tuple[Floats, Floats]:
    """Solve ``(gram + shift I) x = b``, for each row b of ``right``.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Positive semidefinite.
    right : ndarray of shape (n_rows, n)
        It is used up.
    shift : float
        What is added to the diagonal.
    precision : dtype
        That of the numbers that ``gram`` is made of: triangles are solved in it.

    Returns
    -------
    solutions : ndarray of shape (n_rows, n)
        The shortest solution of each.
    products : ndarray of shape (n_rows, n_rows)
        The inner products of all b with all solutions.
    """
    if shift:
        gram = gram + shift * np.eye(len(gram))
    factor = _triangle(gram, precision)
    if factor is not None:
        factor, right = np.asfortranarray(factor, precision), right.astype(precision, copy=False)
        trsm = linalg.get_blas_funcs("trsm", (factor, right))
        half = trsm(1.0, factor, right.T, trans_a=1, overwrite_b=True)
        products = (half.T @ half).astype(np.float64, copy=False)
        solutions = trsm(1.0, factor, half, overwrite_b=True).T
        return solutions.astype(np.float64, copy=False), products
    values, vectors = leading(gram, None, precision)
    half = right @ vectors / np.sqrt(values)
    return np.asarray((half / np.sqrt(values)) @ vectors.T), half @ half.T


def _triangle(gram: Floats, precision: Any) -> Floats | None:
    """Return the Cholesky factor, None if the matrix is singular or nearly so."""
    try:
        factor = np.asarray(linalg.cholesky(gram, check_finite=False))
    except linalg.LinAlgError:
        return None
    diagonal = np.diag(factor)
    if diagonal.min() ** 2 <= _least(precision, len(gram)) * diagonal.max() ** 2:
        return None
    return factor


def _least(precision: Any, n: int) -> float:
    """Return which share of the largest eigenvalue is 0 but for rounding."""
    return max(1e-10, n * float(np.finfo(precision).eps))
