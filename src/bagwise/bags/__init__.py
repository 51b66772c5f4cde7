"""The container, what is computed per bag, and the loop over bags at every scale."""

from bagwise.bags._bags import Bags
from bagwise.bags._build import is_missing
from bagwise.bags._digests import bag_digests
from bagwise.bags._distinct import distinct_instances
from bagwise.bags._files import unchanged_files
from bagwise.bags._matrix import first_nonfinite, rows_with_nan
from bagwise.bags._segments import (
    scan_max,
    segment_argmax,
    segment_argmin,
    segment_logsumexp,
    segment_max,
    segment_mean,
    segment_min,
    segment_moments,
    segment_range,
    segment_rows,
    segment_scatter,
    segment_softmax,
    segment_sum,
)
from bagwise.bags._selected_rows import SelectedRows, rows_of
from bagwise.bags._source import BagSource, Chunk, in_parts, instance_bytes, parse_bytes
from bagwise.bags._sparse_sums import sparse_moments, sparse_range, sparse_sums
from bagwise.bags._store import StoreWriter

__all__ = [
    "BagSource",
    "Bags",
    "Chunk",
    "SelectedRows",
    "StoreWriter",
    "bag_digests",
    "distinct_instances",
    "first_nonfinite",
    "in_parts",
    "instance_bytes",
    "is_missing",
    "parse_bytes",
    "rows_of",
    "rows_with_nan",
    "scan_max",
    "segment_argmax",
    "segment_argmin",
    "segment_logsumexp",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_moments",
    "segment_range",
    "segment_rows",
    "segment_scatter",
    "segment_softmax",
    "segment_sum",
    "sparse_moments",
    "sparse_range",
    "sparse_sums",
    "unchanged_files",
]
