"""Bags to be clustered: each cluster has a concept, and most instances show something else."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bagwise._arrays import Integers
from bagwise.datasets._dataset import BagDataset
from bagwise.datasets._drawing import (
    build_bags,
    check_count,
    check_length,
    check_share,
    check_sizes,
    draw_sizes,
    quotas,
    shuffled_inside,
)


def make_cluster_bags(
    n_bags: int = 150,
    *,
    n_clusters: int = 3,
    n_features: int = 10,
    min_size: int = 4,
    max_size: int = 10,
    separation: float = 6.0,
    key_rate: float = 0.2,
    weights: Sequence[float] | None = None,
    random_state: Any = 0,
) -> BagDataset:
    r"""Make bags of several hidden concepts, for clustering.

    A bag of cluster :math:`c` has at least one instance of the concept :math:`N(s e_c, I)`; the
    others are background, standard normal in all clusters. Means of instances blur the concepts,
    which is why bags are clustered by one instance each (Zhang et al. 2011, M3IC).

    Parameters
    ----------
    n_bags : int
        Number of bags, at least as many as clusters.
    n_clusters : int
        Number of clusters, at least 2.
    n_features : int
        Number of features, at least as many as clusters.
    min_size, max_size : int
        Limits of the number of instances in a bag; sizes are spread evenly between them.
    separation : float
        Distance :math:`s` of the concepts' means from the background's, in standard deviations.
    key_rate : float
        A bag has one instance of its concept, and each further instance is one too with this
        chance.
    weights : sequence of float of length n_clusters, optional
        Shares of the clusters; they need not add up to 1. By default all the same.
    random_state : int, numpy.random.Generator or None
        Seed of the drawing; None draws anew at each call. The concepts do not depend on it.

    Returns
    -------
    dataset : BagDataset
        ``instance_y`` is the cluster for instances of a concept and -1 for the background.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.datasets import make_cluster_bags
    >>> data = make_cluster_bags(60, n_clusters=3, weights=[3, 2, 1])
    >>> np.bincount(data.y).tolist()
    [30, 20, 10]
    """
    check_count("n_clusters", n_clusters, 2)
    check_sizes(n_bags, min_size, max_size)
    check_count("n_bags", n_bags, n_clusters)
    check_count("n_features", n_features, n_clusters)
    check_length("separation", separation)
    check_share("key_rate", key_rate)
    counts = _cluster_sizes(n_bags, n_clusters, weights)
    rng = np.random.default_rng(random_state)
    sizes = draw_sizes(rng, n_bags, min_size, max_size)
    y = rng.permutation(np.repeat(np.arange(n_clusters), counts))
    n_keys = 1 + rng.binomial(sizes - 1, key_rate)
    is_key = shuffled_inside(rng, sizes) < np.repeat(n_keys, sizes)
    instance_y = np.where(is_key, np.repeat(y, sizes), -1)
    instances = rng.normal(size=(len(is_key), n_features))
    instances[is_key, instance_y[is_key]] += separation

    names = tuple(f"concept {c}" for c in range(n_clusters))
    bags = build_bags(instances, sizes, y, instance_y, (*names, "background"), instance_y)
    return BagDataset(
        bags=bags,
        y=y,
        label_names=names,
        instance_y=instance_y,
        description=(
            f"{n_bags} bags of {n_clusters} clusters with {bags.n_instances} instances in "
            f"{n_features} dimensions, {int(is_key.sum())} of which show the concept of the "
            "cluster; the others are background."
        ),
    )


def _cluster_sizes(n_bags: int, n_clusters: int, weights: Sequence[float] | None) -> Integers:
    shares = np.ones(n_clusters) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (n_clusters,) or not (np.isfinite(shares).all() and (shares > 0).all()):
        msg = f"weights must be {n_clusters} positive numbers, one a cluster. Got {weights!r}."
        raise ValueError(msg)
    counts = quotas(n_bags, shares)
    if not counts.all():
        msg = (
            f"weights leave cluster {int(counts.argmin())} without any of the {n_bags} bags. "
            "Raise its weight or n_bags."
        )
        raise ValueError(msg)
    return counts
