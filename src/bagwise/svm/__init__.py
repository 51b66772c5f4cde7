"""Support vector machines on bags."""

from bagwise.svm._kernel_svm import MIKernelSVM
from bagwise.svm._sil import SIL

__all__ = ["SIL", "MIKernelSVM"]
