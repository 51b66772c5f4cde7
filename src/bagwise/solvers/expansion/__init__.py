"""Expansions of a function in few vectors, learned or reduced."""

from bagwise.solvers.expansion._expansion import (
    ExpansionResult,
    MeansSource,
    minimize_expansion,
    solve_expansion,
)
from bagwise.solvers.expansion._kernel_means import KernelMeans
from bagwise.solvers.expansion._reduced_set import ReducedSetResult, reduce_expansion

__all__ = [
    "ExpansionResult",
    "KernelMeans",
    "MeansSource",
    "ReducedSetResult",
    "minimize_expansion",
    "reduce_expansion",
    "solve_expansion",
]
