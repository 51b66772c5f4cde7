"""Sums over many rows of single precision: their error is that of one rounding, not of many.

Every public function that sums over instances is here. It gets the same numbers in single and in
double precision, so that only the way in which it computes can make a difference. All numbers are
positive: added up one by one in single precision, 100,000 of them are off by 1e-5 and more.
"""

import numpy as np
import pytest
from scipy import sparse

import bagwise.bags
from bagwise import Bags
from bagwise.bags import (
    BagSource,
    scan_max,
    segment_logsumexp,
    segment_mean,
    segment_moments,
    segment_softmax,
    segment_sum,
)
from bagwise.kernels import (
    InstanceKernel,
    bag_statistics,
    gradient_sum,
    resolve_gamma,
    set_gram,
    set_self,
)
from bagwise.solvers import balance_direction

N = 100_000
ROUNDING = 8 * 2.0**-24  # of the largest number: that of the input, of a product and of the result
X = np.random.default_rng(0).uniform(0.5, 1.5, size=(N, 4)).astype(np.float32)
STARTS, STOPS = np.array([0, 10, 0]), np.array([N, N - 7, 500])
FEW, FEW_STOPS = np.array([0]), np.array([50])
SMALL = np.array([4000, 3990, 500])
KERNELS = {
    "rbf": InstanceKernel("rbf", gamma=0.3),
    "linear": InstanceKernel("linear"),
    "poly": InstanceKernel("poly", gamma=0.3, degree=2, coef0=1.0),
    "cosine": InstanceKernel("cosine"),
}
FAR = np.array([[2.0, 0.1, 0.3, 0.2], [0.1, 1.9, 0.1, 1.8]], np.float32)


def gradients(X, kernel):
    return gradient_sum(kernel, X, FAR.astype(X.dtype), np.ones((X.shape[0], 2)))


def statistics(X):
    found = bag_statistics(X, STARTS, STOPS, "mean_std")
    return found.toarray() if sparse.issparse(found) else found


def direction(X):
    total, length = balance_direction(BagSource(Bags(X, [0, N // 2, N])))
    return np.append(total, length)


#: Name of a sum -> the sum as a function of instances, and whether these may be sparse.
SUMS = {
    "segment_sum": (lambda X: segment_sum(X, STARTS, STOPS), False),
    "segment_mean": (lambda X: segment_mean(X, STARTS, STOPS), False),
    "weighted segment_mean": (lambda X: segment_mean(X, STARTS, STOPS, weights=X[:, 0]), False),
    "segment_moments": (lambda X: np.hstack(segment_moments(X, STARTS, STOPS)), False),
    "segment_logsumexp": (lambda X: segment_logsumexp(X, STARTS, STOPS), False),
    "segment_softmax": (lambda X: segment_softmax(X, STARTS[:1], STOPS[:1]), False),
    "scan_max": (lambda X: scan_max(X, np.ones((2, 4)), STARTS, STOPS)[0], True),
    "bag_statistics": (statistics, True),
    "resolve_gamma": (lambda X: resolve_gamma("scale", X), True),
    "balance_direction": (direction, True),
}
for name, kernel in KERNELS.items():
    SUMS |= {
        f"gradient_sum {name}": (lambda X, k=kernel: gradients(X, k), True),
        f"set_gram {name}": (
            lambda X, k=kernel: set_gram(k, X, STARTS, STOPS, X, FEW, FEW_STOPS),
            True,
        ),
        f"set_self {name}": (lambda X, k=kernel: set_self(k, X, STARTS, SMALL), True),
    }


#: Functions of segments that do not sum.
NO_SUMS = {"argmax", "argmin", "max", "min", "range", "rows", "scatter"}


def test_every_sum_of_segments_is_here():
    public = {name for name in bagwise.bags.__all__ if name.startswith("segment_")}
    assert public - {f"segment_{name}" for name in NO_SUMS} <= SUMS.keys()


@pytest.mark.parametrize("name", SUMS)
def test_error_is_that_of_one_rounding(name):
    function, may_be_sparse = SUMS[name]
    expected = np.asarray(function(X.astype(np.float64)), np.float64)
    layouts = {"dense": X, **({"CSR": sparse.csr_array(X)} if may_be_sparse else {})}
    for layout, instances in layouts.items():
        actual = np.asarray(function(instances), np.float64)
        scale = np.abs(expected).max(axis=-1, keepdims=True) if expected.ndim else expected
        error = np.max(np.abs(actual - expected) / scale)
        assert error <= ROUNDING, f"{layout}: {error:.2g}"
