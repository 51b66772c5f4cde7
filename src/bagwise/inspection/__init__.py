"""Looking at what was learned: figures of merit, pictures of clusters and the HTML report."""

from bagwise.inspection._assess import MethodCard, assess, wilson_interval
from bagwise.inspection._clusters import plot_clusters
from bagwise.inspection._report import report, write_report

__all__ = ["MethodCard", "assess", "plot_clusters", "report", "wilson_interval", "write_report"]
