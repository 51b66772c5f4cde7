"""The estimator contract: input, labels, one-vs-rest, certificates, tags."""

from bagwise.base._certificates import warn_unless_converged
from bagwise.base._classifier import BagClassifier, one_vs_rest
from bagwise.base._clusterer import BagClusterer, used_first
from bagwise.base._docs import documented
from bagwise.base._estimator import BagEstimator
from bagwise.base._expansions import check_fourier, expand, gamma_attribute
from bagwise.base._fitting import all_or_nothing, forget_fit
from bagwise.base._parameters import GammaRule
from bagwise.base._tags import BagTags, get_bag_tags
from bagwise.base._target import Target
from bagwise.base._validation import as_bags, holds_bags, validate_bags

__all__ = [
    "BagClassifier",
    "BagClusterer",
    "BagEstimator",
    "BagTags",
    "GammaRule",
    "Target",
    "all_or_nothing",
    "as_bags",
    "check_fourier",
    "documented",
    "expand",
    "forget_fit",
    "gamma_attribute",
    "get_bag_tags",
    "holds_bags",
    "one_vs_rest",
    "used_first",
    "validate_bags",
    "warn_unless_converged",
]
