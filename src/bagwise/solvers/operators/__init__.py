"""Rows known by their inner products: where solvers meet Gram matrices and features."""

from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.operators._gram_source import CachedGram, GramSource

__all__ = [
    "CachedGram",
    "FeatureRows",
    "GramSource",
]
