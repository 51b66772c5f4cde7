"""Classifiers of bags that become points: similarities or distances to chosen instances."""

from bagwise.embedding._miles import MILES

__all__ = ["MILES"]
