"""Pure optimisation: problems in, points with certificates out. Nothing here knows scikit-learn."""

from bagwise.solvers._assignment_search import AssignmentProblem
from bagwise.solvers._assignments import (
    AssignmentResult,
    InnerSolution,
    InnerSolver,
    generate_assignments,
)
from bagwise.solvers._bag_margin import BagMarginResult, solve_bag_margin
from bagwise.solvers._bag_margin_search import (
    BagClusters,
    balance_direction,
    search_bag_margin,
)
from bagwise.solvers._block_gram import BlockGram
from bagwise.solvers._conic import ConicResult, solve_qp
from bagwise.solvers._cut_program import CutProgram, SideConstraints
from bagwise.solvers._cutting_planes import (
    Cut,
    CutResult,
    minimize_by_cuts,
    solve_bag_margin_by_cuts,
)
from bagwise.solvers._expansion import (
    ExpansionResult,
    MeansSource,
    minimize_expansion,
    solve_expansion,
)
from bagwise.solvers._expansion_blocks import KernelMeans
from bagwise.solvers._gram_source import CachedGram, GramSource
from bagwise.solvers._grouped_dual import GroupedSVMResult, solve_grouped_svm_dual
from bagwise.solvers._grouped_rows import (
    RowImages,
    solve_grouped_svm_by_blocks,
    solve_grouped_svm_on_images,
    solve_linear_grouped_svm,
)
from bagwise.solvers._instance_margin import (
    InstanceMarginResult,
    cluster_instances_by_cccp,
    cluster_instances_by_cuts,
)
from bagwise.solvers._kmeans import solve_k_means
from bagwise.solvers._kmedoids import KMedoidsResult, solve_k_medoids
from bagwise.solvers._linear_dual import LinearSVMResult, solve_linear_svm_dual
from bagwise.solvers._linear_program import LinearProgramResult, solve_linear_program
from bagwise.solvers._majorize import Majorizable, MajorizeResult, Step, majorize_minimize
from bagwise.solvers._multipliers import rescale_alpha
from bagwise.solvers._one_norm_svm import ColumnSource, OneNormSVMResult, solve_one_norm_svm
from bagwise.solvers._primal_newton import PrimalNewtonResult, minimize_squared_hinge
from bagwise.solvers._reduced_set import ReducedSetResult, reduce_expansion
from bagwise.solvers._result import Certificate, Result, Status
from bagwise.solvers._row_matrix import RowMatrix
from bagwise.solvers._simplex_dual import SimplexDualInner, SimplexDualResult, solve_simplex_dual
from bagwise.solvers._svm_dual import SVMDualResult, solve_svm_dual

__all__ = [
    "AssignmentProblem",
    "AssignmentResult",
    "BagClusters",
    "BagMarginResult",
    "BlockGram",
    "CachedGram",
    "Certificate",
    "ColumnSource",
    "ConicResult",
    "Cut",
    "CutProgram",
    "CutResult",
    "ExpansionResult",
    "GramSource",
    "GroupedSVMResult",
    "InnerSolution",
    "InnerSolver",
    "InstanceMarginResult",
    "KMedoidsResult",
    "KernelMeans",
    "LinearProgramResult",
    "LinearSVMResult",
    "Majorizable",
    "MajorizeResult",
    "MeansSource",
    "OneNormSVMResult",
    "PrimalNewtonResult",
    "ReducedSetResult",
    "Result",
    "RowImages",
    "RowMatrix",
    "SVMDualResult",
    "SideConstraints",
    "SimplexDualInner",
    "SimplexDualResult",
    "Status",
    "Step",
    "balance_direction",
    "cluster_instances_by_cccp",
    "cluster_instances_by_cuts",
    "generate_assignments",
    "majorize_minimize",
    "minimize_by_cuts",
    "minimize_expansion",
    "minimize_squared_hinge",
    "reduce_expansion",
    "rescale_alpha",
    "search_bag_margin",
    "solve_bag_margin",
    "solve_bag_margin_by_cuts",
    "solve_expansion",
    "solve_grouped_svm_by_blocks",
    "solve_grouped_svm_dual",
    "solve_grouped_svm_on_images",
    "solve_k_means",
    "solve_k_medoids",
    "solve_linear_grouped_svm",
    "solve_linear_program",
    "solve_linear_svm_dual",
    "solve_one_norm_svm",
    "solve_qp",
    "solve_simplex_dual",
    "solve_svm_dual",
]
