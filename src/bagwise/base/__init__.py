"""The estimator contract: input, labels, one-vs-rest, certificates, tags."""

from bagwise.base._asymmetric import AsymmetricClassifier, is_conventional, positive_place
from bagwise.base._cache import Same, digest
from bagwise.base._certificates import warn_unless_converged
from bagwise.base._classifier import BagClassifier, one_vs_rest
from bagwise.base._clusterer import BagClusterer, used_first
from bagwise.base._concepts import density_starts, standards
from bagwise.base._distance_parameters import (
    DISTANCE_ROUNDING,
    DistanceParameters,
    MetricParameter,
)
from bagwise.base._docs import documented
from bagwise.base._estimator import BagEstimator, told_by_place
from bagwise.base._feature_map import (
    MAP_CONSTRAINTS,
    FeatureMap,
    expand,
    linear_scores,
    make_features,
    make_map,
)
from bagwise.base._fitting import (
    all_or_nothing,
    forget_fit,
    remember_bags,
    remembered_bags,
)
from bagwise.base._frequency_threshold import FrequencyThreshold
from bagwise.base._kernel_parameters import (
    GammaRule,
    KernelParameters,
    gamma_attribute,
    scale_powers,
    settled_gamma,
)
from bagwise.base._label_lists import holds_lists
from bagwise.base._last_step import last_step
from bagwise.base._left_out import dealt_folds
from bagwise.base._moved_threshold import Task, unseen_scores, unseen_scores_by
from bagwise.base._shared_work import (
    SOLVER_PARAMETERS,
    Share,
    SharedWork,
    SharingEstimator,
    Starts,
    problem_key,
    shared_by,
)
from bagwise.base._summary import Summary
from bagwise.base._tags import BagTags, get_bag_tags
from bagwise.base._target import Target
from bagwise.base._threshold import best_threshold, ranked_right, ranking_error
from bagwise.base._validation import as_bags, holds_bags, validate_bags

__all__ = [
    "DISTANCE_ROUNDING",
    "MAP_CONSTRAINTS",
    "SOLVER_PARAMETERS",
    "AsymmetricClassifier",
    "BagClassifier",
    "BagClusterer",
    "BagEstimator",
    "BagTags",
    "DistanceParameters",
    "FeatureMap",
    "FrequencyThreshold",
    "GammaRule",
    "KernelParameters",
    "MetricParameter",
    "Same",
    "Share",
    "SharedWork",
    "SharingEstimator",
    "Starts",
    "Summary",
    "Target",
    "Task",
    "all_or_nothing",
    "as_bags",
    "best_threshold",
    "dealt_folds",
    "density_starts",
    "digest",
    "documented",
    "expand",
    "forget_fit",
    "gamma_attribute",
    "get_bag_tags",
    "holds_bags",
    "holds_lists",
    "is_conventional",
    "last_step",
    "linear_scores",
    "make_features",
    "make_map",
    "one_vs_rest",
    "positive_place",
    "problem_key",
    "ranked_right",
    "ranking_error",
    "remember_bags",
    "remembered_bags",
    "scale_powers",
    "settled_gamma",
    "shared_by",
    "standards",
    "told_by_place",
    "unseen_scores",
    "unseen_scores_by",
    "used_first",
    "validate_bags",
    "warn_unless_converged",
]
