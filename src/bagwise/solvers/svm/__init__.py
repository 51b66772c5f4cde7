"""Support vector machines: duals on Gram matrices, linear machines, Newton steps, the 1-norm."""

from bagwise.solvers.svm._block_gram import BlockGram
from bagwise.solvers.svm._grouped_dual import GroupedSVMResult, solve_grouped_svm_dual
from bagwise.solvers.svm._grouped_rows import solve_grouped_svm
from bagwise.solvers.svm._linear_svm import LinearSVMResult, solve_linear_svm
from bagwise.solvers.svm._multipliers import rescale_alpha
from bagwise.solvers.svm._nu_svm import NuSVMInner, NuSVMResult, solve_nu_svm
from bagwise.solvers.svm._one_norm_svm import OneNormSVMResult, solve_one_norm_svm
from bagwise.solvers.svm._perturbation import instance_keys, perturbed, scaled_keys
from bagwise.solvers.svm._primal_newton import PrimalNewtonResult, minimize_squared_hinge
from bagwise.solvers.svm._svm_dual import SVMDualResult, solve_svm_dual

__all__ = [
    "BlockGram",
    "GroupedSVMResult",
    "LinearSVMResult",
    "NuSVMInner",
    "NuSVMResult",
    "OneNormSVMResult",
    "PrimalNewtonResult",
    "SVMDualResult",
    "instance_keys",
    "minimize_squared_hinge",
    "perturbed",
    "rescale_alpha",
    "scaled_keys",
    "solve_grouped_svm",
    "solve_grouped_svm_dual",
    "solve_linear_svm",
    "solve_nu_svm",
    "solve_one_norm_svm",
    "solve_svm_dual",
]
