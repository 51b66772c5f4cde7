"""Classifiers by a region of features that positive bags reach and negative bags do not."""

from bagwise.density._apr import APR
from bagwise.density._diverse_density import DiverseDensity
from bagwise.density._emdd import EMDD

__all__ = ["APR", "EMDD", "DiverseDensity"]
