"""Classifiers that add up many weak ones."""

from bagwise.ensemble._mil_boost import MILBoost

__all__ = ["MILBoost"]
