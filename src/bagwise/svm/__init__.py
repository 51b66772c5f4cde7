"""Support vector machines on bags."""

from bagwise.svm._graph_svm import MIGraphSVM
from bagwise.svm._kernel_svm import MIKernelSVM
from bagwise.svm._ki_svm import BagKISVM, InsKISVM
from bagwise.svm._label_mean_svm import LabelMeanSVM
from bagwise.svm._mica import MICA
from bagwise.svm._miodm import MIODM
from bagwise.svm._misssvm import MissSVM
from bagwise.svm._misvm import MISVM
from bagwise.svm._misvm_labels import miSVM
from bagwise.svm._odm import ODM
from bagwise.svm._pc_svm import PCSVM
from bagwise.svm._random_set_svm import RandomSetSVM
from bagwise.svm._reduced_set import ReducedSetSVM
from bagwise.svm._reg_svm import RegSVM
from bagwise.svm._sbmil import SBMIL
from bagwise.svm._sil import SIL
from bagwise.svm._smil import SMIL
from bagwise.svm._sparse_mi import SparseMI
from bagwise.svm._statistic_svm import MinimaxKernelSVM, StatisticKernelSVM
from bagwise.svm._stmil import STMIL

__all__ = [
    "MICA",
    "MIODM",
    "MISVM",
    "ODM",
    "PCSVM",
    "SBMIL",
    "SIL",
    "SMIL",
    "STMIL",
    "BagKISVM",
    "InsKISVM",
    "LabelMeanSVM",
    "MIGraphSVM",
    "MIKernelSVM",
    "MinimaxKernelSVM",
    "MissSVM",
    "RandomSetSVM",
    "ReducedSetSVM",
    "RegSVM",
    "SparseMI",
    "StatisticKernelSVM",
    "miSVM",
]
