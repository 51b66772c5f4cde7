"""The metric under which k-means finds given labels again: least squares (MLCA)."""

from dataclasses import dataclass

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise.solvers.metric._feature_passes import FeaturePasses
from bagwise.solvers.metric._whitening import Basis, solve_normal


@dataclass(frozen=True, eq=False)
class ClusterMetric:
    r"""A linear map :math:`L^\top` of features, and the centres of labels.

    Parameters
    ----------
    components : ndarray of shape (n_used, n_features)
        :math:`L^\top`.
    centroids : ndarray of shape (n_used, n_features)
        Mean :math:`z_c` of the rows of each label.
    mapped : ndarray of shape (n_used, n_used)
        :math:`L^\top z_c` in the rows.
    used : ndarray of int of shape (n_used,)
        The labels that some row bears.
    mass : float
        The weight n of the rows that bear a label.
    """

    components: Floats
    centroids: Floats
    mapped: Floats
    used: Integers
    mass: float


def learn_cluster_metric(
    passes: FeaturePasses, labels: Integers, n_labels: int, basis: Basis
) -> ClusterMetric:
    r"""Return the metric of labels.

    It is :math:`M = L L^\top` with :math:`L = (X^\top W X + \lambda I)^+ X^\top W J`. The rows of X
    are the features of the rows that bear a label, W their weights. J has a column for each label,
    :math:`\sqrt{n / n_c}` where a row bears it: :math:`n_c` is the weight of all those rows, n that
    of the rows of all labels. X is seen in the directions that the basis keeps, whose shift is
    :math:`\lambda`.

    Parameters
    ----------
    passes : FeaturePasses
        Features and weights of all rows.
    labels : ndarray of int of shape (n_rows,)
        The label of each row, -1 for none.
    n_labels : int
        Number of labels.
    basis : Basis
        Directions and shift, as `whitening` gives them for all rows.
    """
    sums, mass = passes.label_sums(labels, n_labels)
    used = np.flatnonzero(mass > 0)
    sums, mass = sums[used], mass[used]
    without = labels < 0
    if not without.any():
        gram = basis.gram
    elif 2 * without.sum() < len(labels):
        gram = basis.gram - basis.project_gram(passes.gram(without))
    else:
        gram = basis.project_gram(passes.gram(~without))
    total = float(mass.sum())
    right = basis.project(sums) * np.sqrt(total / mass)[:, None]
    inner, mapped = solve_normal(gram, right, basis.shift, basis.factor.dtype)
    mapped /= np.sqrt(total * mass)[:, None]  # of sums to means
    sums /= mass[:, None]
    return ClusterMetric(basis.lift(inner), sums, mapped, used, total)
