"""Choosing parameters and splitting bags."""

from bagwise.model_selection._cluster_search import ClusterSearch
from bagwise.model_selection._search import (
    BagGridSearchCV,
    BagHalvingGridSearchCV,
    BagHalvingRandomSearchCV,
    BagRandomizedSearchCV,
)
from bagwise.model_selection._splitters import (
    RepeatedStratifiedBagKFold,
    StratifiedBagKFold,
    groups_from_names,
)

__all__ = [
    "BagGridSearchCV",
    "BagHalvingGridSearchCV",
    "BagHalvingRandomSearchCV",
    "BagRandomizedSearchCV",
    "ClusterSearch",
    "RepeatedStratifiedBagKFold",
    "StratifiedBagKFold",
    "groups_from_names",
]
