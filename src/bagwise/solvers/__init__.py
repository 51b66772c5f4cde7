"""Pure optimisation: problems in, points with certificates out. Nothing here knows scikit-learn."""

from bagwise.solvers._conic import ConicResult, solve_qp
from bagwise.solvers._linear_dual import LinearSVMResult, solve_linear_svm_dual
from bagwise.solvers._linear_program import LinearProgramResult, solve_linear_program
from bagwise.solvers._majorize import Majorizable, MajorizeResult, Step, majorize_minimize
from bagwise.solvers._primal_newton import PrimalNewtonResult, minimize_squared_hinge
from bagwise.solvers._result import Certificate, Result, Status
from bagwise.solvers._svm_dual import SVMDualResult, constant_svm, solve_svm_dual

__all__ = [
    "Certificate",
    "ConicResult",
    "LinearProgramResult",
    "LinearSVMResult",
    "Majorizable",
    "MajorizeResult",
    "PrimalNewtonResult",
    "Result",
    "SVMDualResult",
    "Status",
    "Step",
    "constant_svm",
    "majorize_minimize",
    "minimize_squared_hinge",
    "solve_linear_program",
    "solve_linear_svm_dual",
    "solve_qp",
    "solve_svm_dual",
]
