"""Which instance stands for which bag: column generation over assignments, and their search."""

from bagwise.solvers.assignments._assignment_search import AssignmentProblem
from bagwise.solvers.assignments._assignments import (
    AssignmentResult,
    InnerSolution,
    InnerSolver,
    generate_assignments,
)

__all__ = [
    "AssignmentProblem",
    "AssignmentResult",
    "InnerSolution",
    "InnerSolver",
    "generate_assignments",
]
