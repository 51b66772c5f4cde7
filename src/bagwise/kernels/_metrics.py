"""Distances between instances: their description, and how blocks of them are computed."""

from collections.abc import Callable
from dataclasses import InitVar, dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Floats
from bagwise._threads import checkpoint
from bagwise.kernels._coordinates import coordinate_sums
from bagwise.kernels._instance import InstanceKernel
from bagwise.kernels._rows import Matrix, slices, squared_norms

MetricFunction: TypeAlias = Callable[[Matrix, Matrix], ArrayLike]

_PRODUCTS = InstanceKernel("linear")
#: Below this share of the sum of both norms, norms and products leave too few digits of a distance:
#: it is computed anew from the difference. What stays has a relative error of about eps / share.
SHARE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}
_SLICE_TERMS = 1 << 24  # terms of sums in one compiled call, should all entries be computed anew
_NEGATIVE = 1e-10  # of the largest eigenvalue: a smaller negative one is rounding


@dataclass(frozen=True, eq=False)
class InstanceMetric:
    """A distance between instances.

    Parameters
    ----------
    name : str or callable
        ``"euclidean"``: ``|x - y|``; ``"sqeuclidean"``: its square; ``"cityblock"``: the sum of
        ``|x_k - y_k|``; ``"cosine"``: ``1 - <x, y> / (|x| |y|)``, where a row of zeros has
        distance 1 from every row; ``"mahalanobis"``: the root of ``(x - y)' M (x - y)``;
        ``"sqmahalanobis"``: its square. A callable ``f(A, B)`` takes two blocks of rows and
        returns the matrix of distances; it is called from one thread, and taken for symmetric
        where bags are compared with themselves.
    factor : ndarray of shape (n_features, rank), optional
        ``L`` with ``M = L L'`` for the Mahalanobis distances.
    matrix : ndarray of shape (n_features, n_features), optional
        ``M`` itself instead: symmetric and positive semi-definite. It is factorised at once.
    """

    name: str | MetricFunction
    factor: Floats | None = None
    matrix: InitVar[ArrayLike | None] = None

    def __post_init__(self, matrix: ArrayLike | None) -> None:
        if not callable(self.name) and self.name not in METRICS:
            msg = (
                f"The name of an InstanceMetric must be one of {sorted(METRICS)} or a callable. "
                f"Got {self.name!r}."
            )
            raise ValueError(msg)
        given = (self.factor is not None) + (matrix is not None)
        if given != self.formula.mapped:
            need = "either factor or matrix" if self.formula.mapped else "neither factor nor matrix"
            msg = f"InstanceMetric({self.name!r}) takes {need}. Got {given} of the two."
            raise ValueError(msg)
        if matrix is not None:
            object.__setattr__(self, "factor", _factorise(matrix))
        elif self.factor is not None:
            object.__setattr__(self, "factor", _checked_factor(self.factor))

    @property
    def formula(self) -> "MetricFormula":
        """How blocks of this metric are computed."""
        return _called(self.name) if callable(self.name) else METRICS[self.name]

    def threads(self, n_threads: int | None) -> int | None:
        """Return the number of threads that may evaluate blocks: a user's function gets one."""
        return 1 if callable(self.name) else n_threads


Fill: TypeAlias = Callable[[Matrix, Matrix, NDArray[Any], NDArray[Any], NDArray[Any]], None]


@dataclass(frozen=True)
class MetricFormula:
    """How a metric is computed; adding one means adding one of these to `METRICS`.

    Minima are taken of *raw* values, which grow with the distance but cost less; ``finish`` then
    turns the few that are left into distances.

    Parameters
    ----------
    fill : callable
        ``fill(a, b, left, right, out)`` writes the raw values between the rows of ``a`` and ``b``
        (both dense or both CSR), whose norms are ``left`` and ``right``.
    norms : callable
        ``norms(a)`` returns the number that ``fill`` needs for each row.
    finish : callable
        ``finish(values)`` turns raw values into distances, in place.
    centred : bool
        Whether dense rows may be moved to their mean: far from the origin, products would drown
        the distances.
    scaled : bool
        Whether rows are divided by their lengths.
    mapped : bool
        Whether rows are multiplied by the factor of the metric.
    """

    fill: Fill
    norms: Callable[[Matrix], Floats]
    finish: Callable[[NDArray[Any]], object] = lambda values: None
    centred: bool = False
    scaled: bool = False
    mapped: bool = False


def _squared(
    a: Matrix, b: Matrix, left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]
) -> None:
    from bagwise.kernels._distance_kernels import (
        sparse_squared_from_products,
        squared_from_products,
    )

    share = out.dtype.type(SHARE[out.dtype])
    _PRODUCTS.formula.fill(_PRODUCTS, a, b, left, right, out)
    if not sp.issparse(a):
        for rows in slices(len(a), max(1, _SLICE_TERMS // max(1, b.size))):
            checkpoint()
            squared_from_products(out[rows], left[rows], right, share, a[rows], b)
        return
    terms = b.shape[0] * (1 + a.nnz // max(1, a.shape[0])) + b.nnz
    for rows in slices(a.shape[0], max(1, _SLICE_TERMS // (8 * terms + 1))):
        checkpoint()
        sparse_squared_from_products(
            out[rows], left[rows], right, share,
            a.indptr[rows.start : rows.stop + 1], a.indices, a.data, b.indptr, b.indices, b.data,
        )  # fmt: skip


def _cityblock(
    a: Matrix, b: Matrix, left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]
) -> None:
    coordinate_sums(a, b, out, chi2=False)


def _absolute_sums(A: Matrix) -> Floats:
    return np.asarray(abs(A).sum(axis=1, dtype=np.float64)).ravel()


def _root(values: NDArray[Any]) -> None:
    np.sqrt(values, out=values)


def _halve(values: NDArray[Any]) -> None:
    values *= 0.5  # |x - y|^2 = 2 - 2 <x, y> between rows of length 1


def _unit_norms(A: Matrix) -> Floats:
    """Return the squared norms of rows of length 1; 1 for a row of zeros: 2 - 2 <x, y> is right."""
    norms = squared_norms(A)
    norms[norms == 0.0] = 1.0
    return norms


#: The metrics by name.
METRICS: dict[str, MetricFormula] = {
    "euclidean": MetricFormula(_squared, squared_norms, _root, centred=True),
    "sqeuclidean": MetricFormula(_squared, squared_norms, centred=True),
    "cityblock": MetricFormula(_cityblock, _absolute_sums),
    "cosine": MetricFormula(_squared, _unit_norms, _halve, scaled=True),
    "mahalanobis": MetricFormula(_squared, squared_norms, _root, centred=True, mapped=True),
    "sqmahalanobis": MetricFormula(_squared, squared_norms, centred=True, mapped=True),
}


def _called(function: MetricFunction) -> MetricFormula:
    """Wrap a user's metric."""

    def fill(
        a: Matrix, b: Matrix, left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]
    ) -> None:
        values = np.asarray(function(a, b))
        if values.shape != out.shape:
            msg = (
                f"A metric called with {a.shape[0]} and {b.shape[0]} rows must return a matrix of "
                f"shape {out.shape}. Got shape {values.shape}."
            )
            raise ValueError(msg)
        out[:] = values
        if np.isnan(out).any():
            msg = "A metric must return numbers. Got NaN."
            raise ValueError(msg)

    return MetricFormula(fill, lambda A: np.zeros(A.shape[0]))


def _checked_factor(factor: ArrayLike) -> Floats:
    factor = np.asarray(factor, np.float64)
    if factor.ndim != 2 or not np.isfinite(factor).all():
        msg = (
            f"The factor of an InstanceMetric must be a finite matrix of shape (n_features, rank). "
            f"Got shape {factor.shape}."
        )
        raise ValueError(msg)
    return factor


def _factorise(matrix: ArrayLike) -> Floats:
    """Return ``L`` with ``L L' = matrix``; directions that the matrix ignores are left out."""
    M = np.asarray(matrix, np.float64)
    if M.ndim != 2 or M.shape[0] != M.shape[1] or not np.isfinite(M).all():
        msg = f"The matrix of an InstanceMetric must be square and finite. Got shape {M.shape}."
        raise ValueError(msg)
    skew = np.abs(M - M.T).max(initial=0.0)
    if skew > _NEGATIVE * np.abs(M).max(initial=0.0):
        msg = f"The matrix of an InstanceMetric must be symmetric. Entries differ by {skew:.3g}."
        raise ValueError(msg)
    values, vectors = np.linalg.eigh((M + M.T) / 2.0)
    largest = np.abs(values).max(initial=0.0)
    if values.min(initial=0.0) < -_NEGATIVE * largest:
        msg = (
            f"The matrix of an InstanceMetric must be positive semi-definite. "
            f"Got an eigenvalue of {values.min():.3g} beside one of {largest:.3g}."
        )
        raise ValueError(msg)
    kept = values > np.finfo(np.float64).eps * largest
    factor: Floats = vectors[:, kept] * np.sqrt(values[kept])
    return factor
