"""Multi-instance learning for scikit-learn: labels belong to bags of instances."""

from bagwise._version import __version__
from bagwise.bags import Bags
__all__ = ["Bags", "__version__"]
