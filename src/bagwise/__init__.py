"""Multi-instance learning for scikit-learn: labels belong to bags of instances."""

from bagwise._version import __version__

__all__ = ["__version__"]
