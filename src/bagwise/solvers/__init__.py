"""Pure optimisation: problems in, points with certificates out. Nothing here knows scikit-learn."""

from bagwise.solvers._result import Certificate, Result, Status
from bagwise.solvers._svm_dual import SVMDualResult, constant_svm, solve_svm_dual

__all__ = [
    "Certificate",
    "Result",
    "SVMDualResult",
    "Status",
    "constant_svm",
    "solve_svm_dual",
]
