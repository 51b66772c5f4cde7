"""Classifiers of bags that become points: similarities or distances to chosen instances or bags."""

from bagwise.embedding._dd_svm import DDSVM
from bagwise.embedding._miles import MILES
from bagwise.embedding._mind import MInD
from bagwise.embedding._ppmm_svm import PPMMSVM

__all__ = ["DDSVM", "MILES", "PPMMSVM", "MInD"]
