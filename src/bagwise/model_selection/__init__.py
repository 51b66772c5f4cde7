"""Choosing parameters and splitting bags."""

from bagwise.model_selection._search import BagGridSearchCV
from bagwise.model_selection._splitters import (
    RepeatedStratifiedBagKFold,
    StratifiedBagKFold,
    groups_from_names,
)

__all__ = [
    "BagGridSearchCV",
    "RepeatedStratifiedBagKFold",
    "StratifiedBagKFold",
    "groups_from_names",
]
