"""Points that machines train on: instances in feature space, and behind them means of bags."""

from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._arrays import Integers
from bagwise.bags import Bags, BagSource, segment_mean, sparse_sums
from bagwise.kernels import InstanceKernel, fill_means, point_gram
from bagwise.solvers import DenseGram, KernelRows, RowOperator
from bagwise.svm.machinery._precomputed import given_gram, warn_unless_psd

#: Which mean of a bag: that of its instances in feature space, or the mean instance, mapped.
BagMean: TypeAlias = Literal["kernel_mean", "mean_instance"]


def kernel_points(
    instances: Any,
    offsets: Integers,
    kernel: InstanceKernel,
    *,
    means: BagMean | None,
    max_bytes: float,
    owner: str,
) -> RowOperator:
    """Return points by their inner products: a matrix in memory if it fits, else computed.

    Parameters
    ----------
    instances : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances, bag after bag.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    kernel : InstanceKernel
        The kernel between instances.
    means : {"kernel_mean", "mean_instance"} or None
        Which means of bags follow the instances, if any.
    max_bytes : float
        Most memory for the matrix.
    owner : str
        Class name for messages.
    """
    n, X, has_kernel_means = instances.shape[0], instances, means == "kernel_mean"
    n_points = n + (len(offsets) - 1 if means else 0)
    if means == "mean_instance":
        X = _stacked(X, mean_instances(X, offsets))
    if X.dtype.itemsize * n_points**2 > max_bytes:
        return KernelRows.of(kernel, X, offsets, means=has_kernel_means)
    gram = point_gram(kernel, X, offsets, means=has_kernel_means)
    if callable(kernel.name):
        warn_unless_psd(gram[:n, :n], f"{owner}: the kernel")
    return DenseGram(gram)


def given_points(bags: Bags, *, means: bool, owner: str) -> tuple[DenseGram, Integers]:
    """Return points known by a given Gram matrix, and which of its rows the instances are.

    Of the means of bags only those in feature space are known.
    """
    gram, rows = given_gram(bags, owner)
    if means:
        n = len(gram)
        inner, gram = gram, np.empty((n + len(bags),) * 2, gram.dtype)
        gram[:n, :n] = inner
        fill_means(gram, bags.offsets)
    return DenseGram(gram), rows


def mean_instances(instances: Any, offsets: Integers) -> Any:
    """Return the mean of the instances of each bag, in their precision."""
    if not sp.issparse(instances):
        return segment_mean(instances, offsets[:-1], offsets[1:])
    means = sparse_sums(instances, offsets[:-1], offsets[1:], divisor=np.diff(offsets))
    return means.astype(instances.dtype, copy=False)


def divided_rows(matrix: Any, divisor: NDArray[Any]) -> Any:
    """Return the rows of a dense or CSR matrix, each divided by a number."""
    if not sp.issparse(matrix):
        return (matrix / divisor[:, None]).astype(matrix.dtype, copy=False)
    values = matrix.data / np.repeat(divisor, np.diff(matrix.indptr))
    return sp.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def bag_means(bags: Bags, max_memory: int | str | None = None) -> Any:
    """Return the mean instance of each bag, in one pass and without a copy of the instances."""
    source = BagSource(bags, max_memory=max_memory)
    return source.concatenate(lambda chunk: mean_instances(chunk.instances, chunk.bags.offsets))


def _stacked(rows: Any, more: Any) -> Any:
    if sp.issparse(rows):
        return sp.vstack([rows, more], format="csr")
    return np.concatenate([rows, more])
