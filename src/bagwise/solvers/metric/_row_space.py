"""Few rows of many features, seen in the space that they span."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bagwise._arrays import Floats, as_dense
from bagwise.solvers.metric._whitening import leading


@dataclass(frozen=True, eq=False)
class RowSpace:
    r"""Coordinates :math:`b_j = P^\top x_j` of rows, with an orthonormal basis P of their span.

    Parameters
    ----------
    coordinates : ndarray of shape (n_rows, n_dimensions)
        The rows :math:`b_j`.
    weights : ndarray of shape (n_dimensions, n_rows)
        :math:`P^\top` in terms of the rows: ``weights @ rows``.
    """

    coordinates: Floats
    weights: Floats

    def lift(self, vectors: Floats, rows: Any) -> Floats:
        """Return vectors of coordinates as vectors of features.

        Parameters
        ----------
        vectors : ndarray of shape (n_vectors, n_dimensions)
            The vectors.
        rows : ndarray or CSR matrix of shape (n_rows, n_features)
            The rows that the space is made of.
        """
        weights = np.asarray(vectors @ self.weights)
        return np.asarray((rows.T @ weights.T).T, np.float64, order="C")


def row_space(rows: Any, weight: Floats) -> RowSpace:
    """Return the span of rows, by the Gram matrix of the rows and not of the features.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_rows, n_features)
        More features than rows.
    weight : ndarray of shape (n_rows,)
        Weights of rows; they decide what counts as rounding.
    """
    gram = as_dense(rows @ rows.T)
    root = np.sqrt(weight)
    values, vectors = leading(root[:, None] * gram * root, None, rows.dtype)
    lengths = np.sqrt(values)
    return RowSpace(vectors * lengths / root[:, None], (vectors / lengths).T * root)
