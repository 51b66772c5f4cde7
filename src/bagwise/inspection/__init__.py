"""Looking at what was learned: figures of merit and the HTML report."""

from bagwise.inspection._assess import MethodCard, assess, wilson_interval
from bagwise.inspection._report import report, write_report

__all__ = ["MethodCard", "assess", "report", "wilson_interval", "write_report"]
