"""General programmes: quadratic ones with cones, and cutting planes."""

from bagwise.solvers.programs._conic import ConicResult, solve_qp
from bagwise.solvers.programs._cut_program import CutProgram, SideConstraints
from bagwise.solvers.programs._cutting_planes import Cut, CutResult, minimize_by_cuts

__all__ = [
    "ConicResult",
    "Cut",
    "CutProgram",
    "CutResult",
    "SideConstraints",
    "minimize_by_cuts",
    "solve_qp",
]
