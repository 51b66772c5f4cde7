"""Scores for clusterings, key instances, margins and ranked label lists, and their scorer forms."""

from bagwise.metrics._clustering import clustering_accuracy, normalized_mutual_information
from bagwise.metrics._instances import (
    instance_auc,
    instance_precision,
    instance_recall,
    key_instance_success_rate,
)
from bagwise.metrics._margins import MarginDistribution, margin_distribution
from bagwise.metrics._ranking import average_precision, coverage, one_error
from bagwise.metrics._scorers import (
    OF_POSITIVE_CLASS,
    SCORERS,
    average_precision_scorer,
    check_scored,
    clustering_accuracy_scorer,
    coverage_scorer,
    instance_auc_scorer,
    instance_precision_scorer,
    instance_recall_scorer,
    key_instance_scorer,
    make_instance_scorer,
    make_positive_scorer,
    nmi_scorer,
    one_error_scorer,
)

__all__ = [
    "OF_POSITIVE_CLASS",
    "SCORERS",
    "MarginDistribution",
    "average_precision",
    "average_precision_scorer",
    "check_scored",
    "clustering_accuracy",
    "clustering_accuracy_scorer",
    "coverage",
    "coverage_scorer",
    "instance_auc",
    "instance_auc_scorer",
    "instance_precision",
    "instance_precision_scorer",
    "instance_recall",
    "instance_recall_scorer",
    "key_instance_scorer",
    "key_instance_success_rate",
    "make_instance_scorer",
    "make_positive_scorer",
    "margin_distribution",
    "nmi_scorer",
    "normalized_mutual_information",
    "one_error",
    "one_error_scorer",
]
