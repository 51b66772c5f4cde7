"""Clusters: maximum margins of bags and of instances, k-means, k-medoids."""

from bagwise.solvers.clustering._bag_mmc import BagMMCResult, solve_bag_mmc
from bagwise.solvers.clustering._bag_mmc_by_cuts import solve_bag_mmc_by_cuts
from bagwise.solvers.clustering._bag_mmc_search import (
    BagClusters,
    balance_direction,
    search_bag_mmc,
)
from bagwise.solvers.clustering._kmeans import solve_k_means
from bagwise.solvers.clustering._kmedoids import KMedoidsResult, solve_k_medoids
from bagwise.solvers.clustering._mmc import MMCResult, solve_mmc_by_cccp, solve_mmc_by_cuts

__all__ = [
    "BagClusters",
    "BagMMCResult",
    "KMedoidsResult",
    "MMCResult",
    "balance_direction",
    "search_bag_mmc",
    "solve_bag_mmc",
    "solve_bag_mmc_by_cuts",
    "solve_k_means",
    "solve_k_medoids",
    "solve_mmc_by_cccp",
    "solve_mmc_by_cuts",
]
