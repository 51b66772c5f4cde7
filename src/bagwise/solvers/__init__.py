"""Pure optimisation: problems in, points with certificates out. Nothing here knows scikit-learn."""

from bagwise.solvers._key_scores import (
    SAME_SCORE,
    best_in_bags,
    key_direction,
    key_scores,
    mean_scores,
)
from bagwise.solvers._lbfgs import BatchObjective, minimize_lbfgs
from bagwise.solvers._majorize import Majorizable, MajorizeResult, Step, majorize_minimize
from bagwise.solvers._result import Certificate, Result, Status
from bagwise.solvers.assignments._assignment_search import AssignmentProblem
from bagwise.solvers.assignments._assignments import (
    AssignmentResult,
    InnerSolution,
    InnerSolver,
    generate_assignments,
)
from bagwise.solvers.assignments._mirror_prox import solve_by_mirror_prox
from bagwise.solvers.boosting._boost import BoostResult, Stump, Stumps, boost_bags
from bagwise.solvers.clustering._bag_mmc import BagMMCResult, solve_bag_mmc
from bagwise.solvers.clustering._bag_mmc_by_cuts import solve_bag_mmc_by_cuts
from bagwise.solvers.clustering._bag_mmc_search import (
    BagClusters,
    balance_direction,
    search_bag_mmc,
)
from bagwise.solvers.clustering._kmeans import solve_k_means
from bagwise.solvers.clustering._kmedoids import KMedoidsResult, solve_k_medoids
from bagwise.solvers.clustering._mixture import Mixture, MixtureResult, solve_mixture
from bagwise.solvers.clustering._mmc import MMCResult, solve_mmc_by_cccp, solve_mmc_by_cuts
from bagwise.solvers.density._cut import cut_rectangle
from bagwise.solvers.density._diverse_density import (
    Density,
    DensityResult,
    concept_distances,
    log_odds,
    log_odds_of_missed,
    maximize_density,
    maximize_density_by_rounds,
)
from bagwise.solvers.density._rectangle import (
    RectangleResult,
    expanded_bounds,
    grow_rectangle,
)
from bagwise.solvers.expansion._expansion import (
    ExpansionResult,
    MeansSource,
    minimize_expansion,
    solve_expansion,
)
from bagwise.solvers.expansion._kernel_means import KernelMeans
from bagwise.solvers.expansion._reduced_set import ReducedSetResult, reduce_expansion
from bagwise.solvers.metric._bag_pairs import BagPairs, bag_pairs, nearest
from bagwise.solvers.metric._center_metric import CenterMetricResult, solve_center_metric
from bagwise.solvers.metric._cluster_metric import ClusterMetric, learn_cluster_metric
from bagwise.solvers.metric._feature_passes import FeaturePasses
from bagwise.solvers.metric._key_rows import KeyRowsResult, solve_key_rows
from bagwise.solvers.metric._label_assignments import (
    LabelAssignmentResult,
    LabelLists,
    solve_label_assignments,
)
from bagwise.solvers.metric._pair_metric import PairMetricResult, solve_pair_metric
from bagwise.solvers.metric._ratio_metric import RatioMetricResult, solve_ratio_metric
from bagwise.solvers.metric._row_space import RowSpace, row_space
from bagwise.solvers.metric._whitening import Basis, leading, whitening
from bagwise.solvers.operators._cached_rows import CachedRows
from bagwise.solvers.operators._dense_gram import DenseGram
from bagwise.solvers.operators._empirical_map import EmpiricalMap, FeatureOperator
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.operators._filled_rows import FilledRows, remembered
from bagwise.solvers.operators._kernel_rows import KernelRows
from bagwise.solvers.operators._pass_rows import PassRows
from bagwise.solvers.operators._row_operator import RowOperator
from bagwise.solvers.operators._sums import StackedRows, SumRows
from bagwise.solvers.operators._views import SelectedRows, ShiftedRows
from bagwise.solvers.programs._conic import ConicResult, solve_qp
from bagwise.solvers.programs._cut_program import CutProgram, SideConstraints
from bagwise.solvers.programs._cutting_planes import Cut, CutResult, minimize_by_cuts
from bagwise.solvers.svm._band import Band
from bagwise.solvers.svm._best_factor import best_factor
from bagwise.solvers.svm._block_gram import BlockGram
from bagwise.solvers.svm._cone_svm import ConeSVMResult, solve_cone_svm
from bagwise.solvers.svm._cone_svm_by_program import solve_cone_svm_by_program
from bagwise.solvers.svm._grouped_dual import GroupedSVMResult, solve_grouped_svm_dual
from bagwise.solvers.svm._grouped_rows import solve_grouped_svm
from bagwise.solvers.svm._linear_odm import LinearODMResult, solve_linear_odm
from bagwise.solvers.svm._linear_svm import LinearSVMResult, solve_linear_svm
from bagwise.solvers.svm._multipliers import rescale_alpha
from bagwise.solvers.svm._nu_svm import NuSVMResult, solve_nu_svm
from bagwise.solvers.svm._nu_svm_inner import NuSVMInner
from bagwise.solvers.svm._odm import ODMInner, ODMResult, solve_odm
from bagwise.solvers.svm._one_norm_svm import OneNormSVMResult, solve_one_norm_svm
from bagwise.solvers.svm._pass_svm import PassStart, PassSVMResult, solve_svm_by_passes
from bagwise.solvers.svm._perturbation import instance_keys, perturbed, scaled_keys
from bagwise.solvers.svm._primal_newton import PrimalNewtonResult, minimize_squared_hinge
from bagwise.solvers.svm._projection_range import ProjectionRange, projection_range
from bagwise.solvers.svm._svm_dual import SVMDualResult, solve_svm_dual

__all__ = [
    "SAME_SCORE",
    "AssignmentProblem",
    "AssignmentResult",
    "BagClusters",
    "BagMMCResult",
    "BagPairs",
    "Band",
    "Basis",
    "BatchObjective",
    "BlockGram",
    "BoostResult",
    "CachedRows",
    "CenterMetricResult",
    "Certificate",
    "ClusterMetric",
    "ConeSVMResult",
    "ConicResult",
    "Cut",
    "CutProgram",
    "CutResult",
    "DenseGram",
    "Density",
    "DensityResult",
    "EmpiricalMap",
    "ExpansionResult",
    "FeatureOperator",
    "FeaturePasses",
    "FeatureRows",
    "FilledRows",
    "GroupedSVMResult",
    "InnerSolution",
    "InnerSolver",
    "KMedoidsResult",
    "KernelMeans",
    "KernelRows",
    "KeyRowsResult",
    "LabelAssignmentResult",
    "LabelLists",
    "LinearODMResult",
    "LinearSVMResult",
    "MMCResult",
    "Majorizable",
    "MajorizeResult",
    "MeansSource",
    "Mixture",
    "MixtureResult",
    "NuSVMInner",
    "NuSVMResult",
    "ODMInner",
    "ODMResult",
    "OneNormSVMResult",
    "PairMetricResult",
    "PassRows",
    "PassSVMResult",
    "PassStart",
    "PrimalNewtonResult",
    "ProjectionRange",
    "RatioMetricResult",
    "RectangleResult",
    "ReducedSetResult",
    "Result",
    "RowOperator",
    "RowSpace",
    "SVMDualResult",
    "SelectedRows",
    "ShiftedRows",
    "SideConstraints",
    "StackedRows",
    "Status",
    "Step",
    "Stump",
    "Stumps",
    "SumRows",
    "bag_pairs",
    "balance_direction",
    "best_factor",
    "best_in_bags",
    "boost_bags",
    "concept_distances",
    "cut_rectangle",
    "expanded_bounds",
    "generate_assignments",
    "grow_rectangle",
    "instance_keys",
    "key_direction",
    "key_scores",
    "leading",
    "learn_cluster_metric",
    "log_odds",
    "log_odds_of_missed",
    "majorize_minimize",
    "maximize_density",
    "maximize_density_by_rounds",
    "mean_scores",
    "minimize_by_cuts",
    "minimize_expansion",
    "minimize_lbfgs",
    "minimize_squared_hinge",
    "nearest",
    "perturbed",
    "projection_range",
    "reduce_expansion",
    "remembered",
    "rescale_alpha",
    "row_space",
    "scaled_keys",
    "search_bag_mmc",
    "solve_bag_mmc",
    "solve_bag_mmc_by_cuts",
    "solve_by_mirror_prox",
    "solve_center_metric",
    "solve_cone_svm",
    "solve_cone_svm_by_program",
    "solve_expansion",
    "solve_grouped_svm",
    "solve_grouped_svm_dual",
    "solve_k_means",
    "solve_k_medoids",
    "solve_key_rows",
    "solve_label_assignments",
    "solve_linear_odm",
    "solve_linear_svm",
    "solve_mixture",
    "solve_mmc_by_cccp",
    "solve_mmc_by_cuts",
    "solve_nu_svm",
    "solve_odm",
    "solve_one_norm_svm",
    "solve_pair_metric",
    "solve_qp",
    "solve_ratio_metric",
    "solve_svm_by_passes",
    "solve_svm_dual",
    "whitening",
]
