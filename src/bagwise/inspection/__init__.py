"""Looking at what was learned: figures of merit, pictures of clusters and the HTML report."""

from bagwise.inspection._answers import Answers
from bagwise.inspection._assess import MethodCard, assess, count_found, wilson_interval
from bagwise.inspection._clusters import plot_clusters
from bagwise.inspection._learned_from import learned_from
from bagwise.inspection._provenance import data_digest
from bagwise.inspection._report import report, write_report

__all__ = [
    "Answers",
    "MethodCard",
    "assess",
    "count_found",
    "data_digest",
    "learned_from",
    "plot_clusters",
    "report",
    "wilson_interval",
    "write_report",
]
