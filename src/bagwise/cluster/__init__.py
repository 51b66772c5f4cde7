"""Clusterings of bags."""

from bagwise.cluster._bag_kmeans import BagKMeans
from bagwise.cluster._bamic import BAMIC
from bagwise.cluster._cpm3c import CPM3C
from bagwise.cluster._m3ic import M3IC

__all__ = ["BAMIC", "CPM3C", "M3IC", "BagKMeans"]
