"""Kernels between instances, kernels and distances between bags, low-rank maps."""

from bagwise.kernels._checks import check_psd
from bagwise.kernels._distances import (
    BagDistances,
    DirectedDistances,
    directed,
    hausdorff,
    nearest,
    nearest_among,
)
from bagwise.kernels._formulas import FORMULAS
from bagwise.kernels._fourier_map import FourierMap, random_fourier
from bagwise.kernels._gamma import is_gamma_rule, needs_gamma, resolve_gamma
from bagwise.kernels._gradient import (
    DIFFERENTIABLE,
    check_differentiable,
    finished_gradient,
    gradient_sum,
    self_gradient,
    slope_kernel,
    weighted_rows,
)
from bagwise.kernels._graph import BagGraphs, bag_edges, clique_weights, graph_gram, graph_norms
from bagwise.kernels._instance import InstanceKernel
from bagwise.kernels._landmark_maps import (
    LandmarkMap,
    cholesky_features,
    nystroem,
    pivoted_cholesky,
)
from bagwise.kernels._metrics import InstanceMetric
from bagwise.kernels._points import fill_means, point_gram
from bagwise.kernels._set import normalise_set_gram, set_gram, set_self
from bagwise.kernels._statistic import bag_statistics

__all__ = [
    "DIFFERENTIABLE",
    "FORMULAS",
    "BagDistances",
    "BagGraphs",
    "DirectedDistances",
    "FourierMap",
    "InstanceKernel",
    "InstanceMetric",
    "LandmarkMap",
    "bag_edges",
    "bag_statistics",
    "check_differentiable",
    "check_psd",
    "cholesky_features",
    "clique_weights",
    "directed",
    "fill_means",
    "finished_gradient",
    "gradient_sum",
    "graph_gram",
    "graph_norms",
    "hausdorff",
    "is_gamma_rule",
    "nearest",
    "nearest_among",
    "needs_gamma",
    "normalise_set_gram",
    "nystroem",
    "pivoted_cholesky",
    "point_gram",
    "random_fourier",
    "resolve_gamma",
    "self_gradient",
    "set_gram",
    "set_self",
    "slope_kernel",
    "weighted_rows",
]
