"""Classifiers by the nearest bags."""

from bagwise.neighbors._citation_knn import CitationKNN
from bagwise.neighbors._citation_knn_roi import CitationKNNROI

__all__ = ["CitationKNN", "CitationKNNROI"]
