"""Rows known by their inner products: where solvers meet Gram matrices and features."""

from bagwise.solvers.operators._cached_rows import CachedRows
from bagwise.solvers.operators._dense_gram import DenseGram, as_rows
from bagwise.solvers.operators._empirical_map import EmpiricalMap, FeatureOperator
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.operators._kernel_rows import KernelRows
from bagwise.solvers.operators._row_operator import RowOperator
from bagwise.solvers.operators._sums import StackedRows, SumRows
from bagwise.solvers.operators._views import SelectedRows, ShiftedRows

__all__ = [
    "CachedRows",
    "DenseGram",
    "EmpiricalMap",
    "FeatureOperator",
    "FeatureRows",
    "KernelRows",
    "RowOperator",
    "SelectedRows",
    "ShiftedRows",
    "StackedRows",
    "SumRows",
    "as_rows",
]
