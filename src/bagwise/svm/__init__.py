"""Support vector machines on bags."""

from bagwise.svm._kernel_svm import MIKernelSVM
from bagwise.svm._label_mean_svm import LabelMeanSVM
from bagwise.svm._misvm import MISVM
from bagwise.svm._misvm_instances import miSVM
from bagwise.svm._sil import SIL

__all__ = ["MISVM", "SIL", "LabelMeanSVM", "MIKernelSVM", "miSVM"]
