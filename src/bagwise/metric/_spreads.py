"""Two classes as Gaussians, each with a variance of its own."""

from typing import NamedTuple

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise.solvers import FeaturePasses

_LEAST = 1e-12  # of the variances: a smaller one may be rounding


class ClassSpreads(NamedTuple):
    """Means of classes, and their variances per feature."""

    means: Floats
    variances: Floats


def class_spreads(passes: FeaturePasses, codes: Integers, n_features: int) -> ClassSpreads | None:
    """Return the mean and the variance of two classes; None if one of these has no spread.

    Parameters
    ----------
    passes : FeaturePasses
        All instances.
    codes : ndarray of int of shape (n_bags,)
        The class of each bag, 0 or 1: that of its instances.
    n_features : int
        Number of features, if the passes are over coordinates in the space that the rows span.
    """
    labels = np.repeat(codes, passes.source.bags.sizes).astype(np.int64)
    sums, mass = passes.label_sums(labels, 2)
    if not mass.all():
        return None
    means = sums / mass[:, None]
    variances = passes.label_scatter(labels, means) / (mass * n_features)
    if variances.min() <= _LEAST * variances.max():
        return None
    return ClassSpreads(means, variances)


def likelihoods(scores: Floats, variances: Floats, n_features: int) -> Floats:
    """Return log likelihoods, twice and up to a constant, for distances that are the scores."""
    return np.asarray(scores / variances - n_features * np.log(variances))
