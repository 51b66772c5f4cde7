"""Kernels and SVMs the slow way: all pairs of instances, and a general solver for the dual."""

from itertools import pairwise

import clarabel
import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import StandardScaler

from bagwise import Bags


def instance_kernel(X, Y, kernel, gamma=1.0, degree=3, coef0=0.0):
    params = {
        "linear": {},
        "rbf": {"gamma": gamma},
        "poly": {"gamma": gamma, "degree": degree, "coef0": coef0},
    }
    return pairwise_kernels(X, Y, metric=kernel, **params[kernel])


def set_kernel(bags, others, normalization, **kernel):
    """Return the normalised set kernel, summed one pair of bags at a time."""
    sums = set_sums(bags, others, **kernel)
    return sums / (
        norms(bags, normalization, **kernel)[:, None] * norms(others, normalization, **kernel)
    )


def set_sums(bags, others, **kernel):
    bags, others = Bags.from_list(list(bags)), Bags.from_list(list(others))
    K = instance_kernel(bags.instances, others.instances, **kernel)
    return np.array(
        [
            [K[a:b, c:d].sum() for c, d in pairwise(others.offsets)]
            for a, b in pairwise(bags.offsets)
        ]
    )


def norms(bags, normalization, **kernel):
    if normalization == "average":
        return np.array([len(bag) for bag in bags])
    return np.sqrt([instance_kernel(bag, bag, **kernel).sum() for bag in bags])


def fourier_features(model, rows):
    """Return the random features of a fitted machine, by their formula."""
    waves = np.cos(rows @ model.fourier_weights_ + model.fourier_offset_)
    return np.sqrt(2 / waves.shape[1]) * waves


def assert_within_sampling_error(features, kernel):
    """Compare inner products of random features with an RBF kernel, by what theory says of them.

    A product of two features is ``cos(w'(x - y)) + cos(w'(x + y) + 2b)``, over their number. The
    first term has the mean ``k(x, y)`` and the mean square ``(1 + k(2x, 2y)) / 2``, where
    ``k(2x, 2y)`` is the fourth power of ``k(x, y)``; the second has the mean 0 and the mean square
    1/2.
    """
    variance = (1 + kernel**4 / 2 - kernel**2) / features.shape[1]
    error = np.mean((features @ features.T - kernel) ** 2)
    assert 0.25 < error / variance.mean() < 4.0  # two standard deviations; each has many terms


def scale_gamma(instances):
    return 1.0 / (instances.shape[1] * instances.var())


def solve_dual(K, sign, cost):
    """Return coefficients, intercept and primal objective of an SVM, by an interior-point method.

    libsvm is no reference beyond four digits: it keeps the kernel in single precision.
    """
    n = len(sign)
    cost = np.broadcast_to(cost, n)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    eye = sparse.eye_array(n)
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(K * np.outer(sign, sign))),
        -np.ones(n),
        sparse.csc_matrix(sparse.vstack([sign[None, :], eye, -eye])),
        np.concatenate([[0.0], cost, np.zeros(n)]),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)],
        settings,
    ).solve()
    alpha = np.array(solution.x)
    margin = K @ (alpha * sign)
    intercept = middle_intercept(alpha / cost, sign, sign - margin)
    hinge = np.maximum(0.0, 1.0 - sign * (margin + intercept))
    return alpha * sign, intercept, 0.5 * (alpha * sign) @ margin + cost @ hinge


def middle_intercept(share, sign, wanted):
    """Return the middle of the intercepts that are optimal: one point if a share is inside (0, 1).

    A row with sign +1 asks for at least the wanted intercept if it must keep its margin (share 0)
    and for at most that if it violates it (share 1); with sign -1 the other way round.
    """
    free = (share > 1e-6) & (share < 1 - 1e-6)
    if free.any():
        return np.median(wanted[free])
    at_least = (share < 0.5) == (sign > 0)
    return (wanted[at_least].max() + wanted[~at_least].min()) / 2


def scaled_bags(arrays):
    """Return a set of the data folder as standardised bags, and its labels."""
    X = StandardScaler().fit_transform(arrays["X"].astype(np.float64))
    return Bags(X, arrays["offsets"]), arrays["y"]
