"""Pure optimisation: problems in, points with certificates out. Nothing here knows scikit-learn."""

from bagwise.solvers._result import Certificate, Result, Status

__all__ = ["Certificate", "Result", "Status"]
