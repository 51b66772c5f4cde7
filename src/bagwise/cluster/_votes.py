"""The vote of the instances of a bag."""

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise.bags import Bags


def shares(bags: Bags, labels: NDArray[np.integer], n_clusters: int) -> Floats:
    """Return which share of the instances of each bag is in each cluster.

    Parameters
    ----------
    bags : Bags
        The bags.
    labels : ndarray of int of shape (n_instances,)
        Clusters of the instances, bag after bag.
    n_clusters : int
        Number of clusters.
    """
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    counts = np.bincount(bag * n_clusters + labels, minlength=len(bags) * n_clusters)
    return counts.reshape(len(bags), n_clusters) / bags.sizes[:, None]
