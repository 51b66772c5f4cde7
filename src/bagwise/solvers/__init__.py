"""Pure optimisation: problems in, points with certificates out. Nothing here knows scikit-learn."""

from bagwise.solvers._conic import ConicResult, solve_qp
from bagwise.solvers._gram_source import CachedGram, GramSource
from bagwise.solvers._grouped_dual import GroupedSVMResult, solve_grouped_svm_dual
from bagwise.solvers._grouped_rows import solve_grouped_svm_by_blocks, solve_linear_grouped_svm
from bagwise.solvers._linear_dual import LinearSVMResult, solve_linear_svm_dual
from bagwise.solvers._linear_program import LinearProgramResult, solve_linear_program
from bagwise.solvers._majorize import Majorizable, MajorizeResult, Step, majorize_minimize
from bagwise.solvers._primal_newton import PrimalNewtonResult, minimize_squared_hinge
from bagwise.solvers._result import Certificate, Result, Status
from bagwise.solvers._row_matrix import RowMatrix
from bagwise.solvers._svm_dual import SVMDualResult, constant_svm, solve_svm_dual

__all__ = [
    "CachedGram",
    "Certificate",
    "ConicResult",
    "GramSource",
    "GroupedSVMResult",
    "LinearProgramResult",
    "LinearSVMResult",
    "Majorizable",
    "MajorizeResult",
    "PrimalNewtonResult",
    "Result",
    "RowMatrix",
    "SVMDualResult",
    "Status",
    "Step",
    "constant_svm",
    "majorize_minimize",
    "minimize_squared_hinge",
    "solve_grouped_svm_by_blocks",
    "solve_grouped_svm_dual",
    "solve_linear_grouped_svm",
    "solve_linear_program",
    "solve_linear_svm_dual",
    "solve_qp",
    "solve_svm_dual",
]
